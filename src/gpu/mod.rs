//! The GPU: the only folder that knows `wgpu`.
