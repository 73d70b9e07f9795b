//! A guard for what must happen at the end of a region, however it ends.

/// Runs the function when dropped.
#[must_use]
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}
