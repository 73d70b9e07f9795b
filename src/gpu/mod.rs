//! The GPU: the only folder that knows `wgpu`.

pub mod wgsl;

use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Memory for a contiguous tensor on GPU `index`.
pub fn alloc(index: u8, shape: &Shape, dtype: DType) -> Result<Buffer> {
    Err(Error::device(format!("gpu:{index} cannot hold a {dtype} tensor of shape {shape}")))
}
