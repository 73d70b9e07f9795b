//! Errors that a driver reports outside of a call, kept until the next call.

use crate::error::{Error, Result};
use crate::process::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the driver of a GPU has reported since the last check.
#[derive(Default)]
pub struct Fault {
    raised: AtomicBool,
    lost: AtomicBool,
    message: Mutex<Option<String>>,
}

impl Fault {
    /// Keeps the message of an error, or the reason why the device was lost.
    pub(crate) fn raise(&self, message: String, lost: bool) {
        let mut slot = lock(&self.message);
        // Keep the first error: it causes those that follow.
        slot.get_or_insert(message);
        if lost {
            self.lost.store(true, Ordering::Release);
        }
        self.raised.store(true, Ordering::Release);
    }

    /// Raises the error reported since the last check; a lost device stays lost.
    #[inline]
    pub(crate) fn check(&self, index: u8) -> Result<()> {
        if !self.raised.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(self.take(index))
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    #[cold]
    fn take(&self, index: u8) -> Error {
        let mut slot = lock(&self.message);
        if self.is_lost() {
            let why = slot.as_deref().unwrap_or("no reason given");
            return Error::device(format!(
                "gpu:{index} was lost ({why}), and its tensors with it; wengert.gpu.reset({index}) opens it \
                 again, for new tensors"
            ));
        }
        self.raised.store(false, Ordering::Release);
        Error::device(slot.take().unwrap_or_default())
    }
}

/// Calls the driver. Returns the error of these kinds that it reports to this thread, of the first kind that
/// has one.
pub(crate) fn guarded<T, const N: usize>(
    device: &wgpu::Device, kinds: [wgpu::ErrorFilter; N], call: impl FnOnce() -> T,
) -> (T, Option<wgpu::Error>) {
    let scopes = kinds.map(|kind| device.push_error_scope(kind));
    let made = call();
    let errors = scopes.into_iter().rev().map(|scope| pollster::block_on(scope.pop()));
    (made, errors.fold(None, |inner, outer| outer.or(inner)))
}
