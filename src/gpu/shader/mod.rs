//! WGSL text: template files with marked lines, and rules translated to expressions.

pub mod halves;
pub(crate) mod int_expr;
pub mod merge;
pub mod template;
pub mod wgsl;
