//! Memory that an operation may write instead of a copy of it, because its caller gives it away.

use crate::array::Array;
use crate::error::Result;
use crate::op::AtCall;
use crate::ops::writes::alone::Memory;
use crate::process::on_drop::OnDrop;
use crate::process::sync::lock;
use std::sync::{Arc, Mutex};

/// Arrays that an operation, or the operations that its rules make of it, may write in place: each once, and
/// only during [`donating`]. Nothing by default.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Donated(AtCall<Option<Arc<Mutex<Memory>>>>);

/// Runs `f`, which gets the right to write each array of `memory` once.
pub fn donating<T>(memory: Memory, f: impl FnOnce(Donated) -> T) -> T {
    let all = (!memory.is_empty()).then(|| Arc::new(Mutex::new(memory)));
    // The tape may keep the operation.
    let _end = OnDrop(|| all.iter().for_each(|all| lock(all).clear()));
    f(Donated(AtCall(all.clone())))
}

impl Donated {
    /// What an operation that changes `x` writes: `x` itself if it was donated, else a copy of it.
    pub fn base(&self, x: &Array) -> Result<Array> {
        let same = |d: &Array| {
            d.buffer().same(x.buffer())
                && d.offset() == x.offset()
                && d.numel() == x.numel()
                && x.is_contiguous()
        };
        if let AtCall(Some(all)) = &self.0 {
            let mut all = lock(all);
            if let Some(at) = all.iter().position(same) {
                all.swap_remove(at);
                return Ok(x.clone());
            }
        }
        x.copied()
    }
}

/// Makes `out` equal to `x`, which it may be.
#[inline]
pub fn based(x: &Array, out: &Array) -> Result<()> {
    if out.is(x) { Ok(()) } else { out.assign(x) }
}
