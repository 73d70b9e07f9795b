//! What looks at operations as they run: debugging modes, counts, shapes without values, and `wengert.jit`
//! (`script`: the trace; `program`: planning, fusion, running).

pub mod absent;
pub mod anomaly;
pub mod cost;
pub mod debug;
pub mod program;
pub mod script;
