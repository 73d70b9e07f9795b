//! Errors that kernels find in their data: an index out of range.
//!
//! A kernel cannot raise. It writes two words, `[1, index]`, which are read along with the next read-back;
//! that raises the error. So nothing waits for the GPU just to check for errors. Launches record the axes
//! they index, so that the message can name them.

use super::device::{Gpu, gpu};
use super::transfer::upload;
use crate::array::Array;
use crate::array::buffer::Buffer;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::process::sync::lock;

/// The two words, and the indexing launches since they were last read.
#[derive(Default)]
pub struct Status {
    words: Option<Array>,
    pending: Vec<Indexed>,
}

/// A launch that indexes an axis.
#[derive(Clone, PartialEq, Eq)]
struct Indexed {
    name: &'static str,
    size: usize,
    wraps: bool,
}

/// The number of distinct launches remembered for the message.
const REMEMBERED: usize = 256;

/// The buffer in which a kernel of operation `name` reports an index outside an axis of `size`. `wraps` tells
/// whether negative indices count from the end.
pub fn status(index: u8, name: &'static str, size: usize, wraps: bool) -> Result<Buffer> {
    let gpu = gpu(index)?;
    let launch = Indexed { name, size, wraps };
    let known = {
        let mut status = lock(&gpu.status);
        if !status.pending.contains(&launch) && status.pending.len() < REMEMBERED {
            status.pending.push(launch);
        }
        status.words.clone()
    };
    let words = match known {
        Some(words) => words,
        None => {
            let made = upload(&Array::full(Shape::new(&[2])?, 0.0, DType::I32)?, index)?;
            lock(&gpu.status).words.get_or_insert(made).clone()
        }
    };
    Ok(words.buffer().clone())
}

/// The buffer to read back, if a launch may have reported an error.
pub(crate) fn to_read(gpu: &Gpu) -> Option<Array> {
    let status = lock(&gpu.status);
    if status.pending.is_empty() { None } else { status.words.clone() }
}

/// Raises the error that the two words of `words` report, if any.
pub(crate) fn judge(gpu: &Gpu, words: &Array, [flag, found]: [u32; 2]) -> Result<()> {
    let pending = std::mem::take(&mut lock(&gpu.status).pending);
    if flag == 0 {
        return Ok(());
    }
    crate::gpu::kernels::create::fill(words, 0.0)?;
    let found = i64::from(found as i32);
    let outside = |l: &&Indexed| found >= l.size as i64 || found < if l.wraps { -(l.size as i64) } else { 0 };
    Err(Error::index(match pending.iter().find(outside) {
        Some(Indexed { name, size, wraps }) => {
            let (what, least) = match wraps {
                true => (format!("an axis of size {size}"), format!("-{size}")),
                false => (format!("{size} classes"), "0".to_string()),
            };
            format!(
                "{name}: index {found} is out of range for {what}, expected {least}..{}",
                *size as i64 - 1
            )
        }
        None => {
            format!("an indexing operation on gpu:{} met the index {found}, which is out of range", gpu.index)
        }
    }))
}
