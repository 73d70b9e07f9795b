//! Hooks: callbacks that see, and may replace, a gradient on its way.

use crate::autodiff::node::lock;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock};

/// A callback on the gradient of one tensor; `Some` replaces it.
pub type GradHook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// The callbacks registered on one tape entry.
#[derive(Default)]
pub struct Hooks {
    next: Mutex<u64>,
    on_grad: Mutex<Vec<(u64, u32, GradHook)>>,
    after_accumulate: Mutex<Vec<(u64, GradHook)>>,
    retained: Mutex<Vec<(u32, Option<Tensor>)>>,
    notes: OnceLock<Notes>,
}

/// Something that the host language keeps with an entry.
pub type Notes = Box<dyn Any + Send + Sync>;

impl Hooks {
    fn id(&self) -> u64 {
        let mut next = lock(&self.next);
        *next += 1;
        *next
    }

    /// What the host language keeps here, made on first use.
    pub fn notes(&self, make: impl FnOnce() -> Notes) -> &Notes {
        self.notes.get_or_init(make)
    }

    /// Registers a callback on the gradient of output `index`; the result removes it.
    pub fn add(&self, index: u32, hook: GradHook) -> u64 {
        let id = self.id();
        lock(&self.on_grad).push((id, index, hook));
        id
    }

    /// Registers a callback that runs after a leaf's gradient was accumulated.
    pub fn add_after_accumulate(&self, hook: GradHook) -> u64 {
        let id = self.id();
        lock(&self.after_accumulate).push((id, hook));
        id
    }

    /// Removes a callback.
    pub fn remove(&self, id: u64) {
        // Dropped outside the locks: a callback may be a Python object with a destructor.
        let removed: Vec<_> = lock(&self.on_grad).extract_if(.., |h| h.0 == id).collect();
        drop(removed);
        let removed: Vec<_> = lock(&self.after_accumulate).extract_if(.., |h| h.0 == id).collect();
        drop(removed);
    }

    /// Keeps the gradient of output `index` when backward passes it.
    pub fn retain_grad(&self, index: u32) {
        let mut retained = lock(&self.retained);
        if !retained.iter().any(|r| r.0 == index) {
            retained.push((index, None));
        }
    }

    /// The kept gradient of output `index`; the outer `None` means that it is not kept.
    pub fn retained(&self, index: u32) -> Option<Option<Tensor>> {
        lock(&self.retained).iter().find(|r| r.0 == index).map(|r| r.1.clone())
    }

    /// Replaces the kept gradient of output `index`.
    pub fn set_retained(&self, index: u32, grad: Option<Tensor>) {
        let mut retained = lock(&self.retained);
        let slot = retained.iter_mut().find(|r| r.0 == index);
        let before = slot.map(|slot| std::mem::replace(&mut slot.1, grad));
        drop(retained);
        drop(before);
    }

    /// Runs the callbacks on the gradient of output `index`.
    pub fn on_grad(&self, index: u32, mut g: Tensor) -> Result<Tensor> {
        let hooks: Vec<GradHook> =
            lock(&self.on_grad).iter().filter(|h| h.1 == index).map(|h| h.2.clone()).collect();
        for hook in hooks {
            if let Some(new) = hook(&g)? {
                if new.shape() != g.shape() {
                    return Err(Error::autodiff(format!(
                        "a gradient hook returned shape {}, expected {} as it was given",
                        new.shape(),
                        g.shape()
                    )));
                }
                g = new;
            }
        }
        Ok(g)
    }

    /// Runs the callbacks after accumulation.
    pub fn run_after_accumulate(&self, grad: &Tensor) -> Result<()> {
        let hooks: Vec<GradHook> = lock(&self.after_accumulate).iter().map(|h| h.1.clone()).collect();
        for hook in hooks {
            hook(grad)?;
        }
        Ok(())
    }
}
