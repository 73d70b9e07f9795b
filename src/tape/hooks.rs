//! Hooks: callbacks that see, and may replace, gradients on their way through one tape entry.
//!
//! In the order in which backward comes by: the hooks on the gradient of each output (a tensor's hooks), the
//! kept gradient of `retain_grad`, the hooks before the entry runs, the entry itself, the hooks after
//! accumulation into a leaf, and the hooks after the entry ran.

use crate::error::{Error, Result};
use crate::process::sync::lock;
use crate::tape::host_ref::HostRef;
use crate::tensor::{Aval, Tensor};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A callback on one gradient; `Some` replaces it.
pub type GradHook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;
/// Gradients of all outputs, or for all inputs, of an entry; `None` where there is none.
pub type Gradients = [Option<Tensor>];
/// A callback on the gradients of an entry's outputs, before it runs; `Some` replaces them.
pub type PreHook = Arc<dyn Fn(&Gradients) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync>;
/// A callback on the gradients for an entry's inputs and of its outputs, after it ran; `Some` replaces the
/// former.
pub type PostHook = Arc<dyn Fn(&Gradients, &Gradients) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync>;

/// A callback and when it runs.
#[derive(Clone)]
pub enum Hook {
    /// When the gradient of this output is complete.
    Grad(u32, GradHook),
    /// Before the entry runs.
    Before(PreHook),
    /// After a leaf's gradient was accumulated; gets the sum.
    Accumulated(GradHook),
    /// After the entry ran.
    After(PostHook),
}

/// A place for a gradient that is kept.
#[derive(Default)]
pub struct Keep(Mutex<Option<Tensor>>);

impl Keep {
    /// The gradient.
    pub fn get(&self) -> Option<Tensor> {
        lock(&self.0).clone()
    }

    /// Replaces the gradient.
    pub fn set(&self, grad: Option<Tensor>) {
        // Dropped outside the lock: its memory may belong to a Python object with a destructor.
        let before = std::mem::replace(&mut *lock(&self.0), grad);
        drop(before);
    }
}

/// One registration.
struct Entry {
    id: u64,
    hook: Hook,
    held: Option<HostRef>,
}

/// The callbacks registered on one tape entry, and the gradients that it keeps.
#[derive(Default)]
pub struct Hooks {
    next: Mutex<u64>,
    entries: Mutex<Vec<Entry>>,
    retained: Mutex<Vec<(u32, Weak<Keep>)>>,
    notes: OnceLock<HostRef>,
}

impl Hooks {
    /// Registers a callback; the result removes it. `held` is what it holds of the host language.
    pub fn add(&self, hook: Hook, held: Option<HostRef>) -> u64 {
        let id = {
            let mut next = lock(&self.next);
            *next += 1;
            *next
        };
        lock(&self.entries).push(Entry { id, hook, held });
        id
    }

    /// Removes a callback.
    pub fn remove(&self, id: u64) {
        // Dropped outside the lock: a callback may be a Python object with a destructor.
        let removed: Vec<_> = lock(&self.entries).extract_if(.., |e| e.id == id).collect();
        drop(removed);
    }

    /// What the host language keeps here, made on first use.
    pub fn notes(&self, make: impl FnOnce() -> HostRef) -> &HostRef {
        self.notes.get_or_init(make)
    }

    /// What the callbacks hold of the host language.
    pub fn held(&self, see: &mut dyn FnMut(&HostRef)) {
        self.notes.get().into_iter().for_each(&mut *see);
        lock(&self.entries).iter().filter_map(|e| e.held.as_ref()).for_each(see);
    }

    /// The callbacks that `pick` picks, in order of registration.
    fn picked<T>(&self, pick: impl Fn(&Hook) -> Option<T>) -> Vec<T> {
        lock(&self.entries).iter().filter_map(|e| pick(&e.hook)).collect()
    }

    /// Where the gradient of output `index` is kept when backward passes it. The place belongs to the caller:
    /// a gradient of `create_graph` leads back to this entry, which must not keep it.
    pub fn retain_grad(&self, index: u32) -> Arc<Keep> {
        let mut retained = lock(&self.retained);
        retained.retain(|r| r.1.strong_count() > 0);
        if let Some(keep) = retained.iter().find(|r| r.0 == index).and_then(|r| r.1.upgrade()) {
            return keep;
        }
        let keep = Arc::new(Keep::default());
        retained.push((index, Arc::downgrade(&keep)));
        keep
    }

    /// Where the gradient of output `index` is kept, if anywhere.
    pub fn retained(&self, index: u32) -> Option<Arc<Keep>> {
        lock(&self.retained).iter().find(|r| r.0 == index).and_then(|r| r.1.upgrade())
    }

    /// Runs the callbacks on the gradient of output `index`.
    pub fn on_grad(&self, index: u32, mut g: Tensor) -> Result<Tensor> {
        for hook in self.picked(|h| match h {
            Hook::Grad(i, f) if *i == index => Some(f.clone()),
            _ => None,
        }) {
            if let Some(new) = hook(&g)? {
                fits("a gradient hook", &new, &g.aval())?;
                g = new;
            }
        }
        Ok(g)
    }

    /// Runs the callbacks before the entry.
    pub fn before(&self, g: &mut Gradients) -> Result<()> {
        for hook in self.picked(|h| match h {
            Hook::Before(f) => Some(f.clone()),
            _ => None,
        }) {
            if let Some(new) = hook(g)? {
                exchange("a pre-hook of a graph node", g, new)?;
            }
        }
        Ok(())
    }

    /// Whether there are callbacks after the entry.
    pub fn has_after(&self) -> bool {
        lock(&self.entries).iter().any(|e| matches!(e.hook, Hook::After(_)))
    }

    /// Runs the callbacks after the entry, which had the gradients `outputs` and gave `inputs`.
    pub fn after(&self, inputs: &mut Gradients, outputs: &Gradients) -> Result<()> {
        for hook in self.picked(|h| match h {
            Hook::After(f) => Some(f.clone()),
            _ => None,
        }) {
            if let Some(new) = hook(inputs, outputs)? {
                exchange("a hook of a graph node", inputs, new)?;
            }
        }
        Ok(())
    }

    /// Runs the callbacks after accumulation.
    pub fn accumulated(&self, grad: &Tensor) -> Result<()> {
        for hook in self.picked(|h| match h {
            Hook::Accumulated(f) => Some(f.clone()),
            _ => None,
        }) {
            hook(grad)?;
        }
        Ok(())
    }
}

/// Raises unless what a hook returned can take the place of what it was given.
fn fits(who: &str, new: &Tensor, old: &Aval) -> Result<()> {
    let aval = new.aval();
    if aval == *old {
        return Ok(());
    }
    let (what, got, expected) = if aval.shape != old.shape {
        ("shape", aval.shape.to_string(), old.shape.to_string())
    } else if aval.dtype != old.dtype {
        ("dtype", aval.dtype.to_string(), old.dtype.to_string())
    } else {
        ("device", aval.device.to_string(), old.device.to_string())
    };
    Err(Error::autodiff(format!(
        "{who} returned a gradient of {what} {got}, expected {expected} as it was given; return a gradient \
         of the same shape, dtype and device, or None to leave it as it is"
    )))
}

/// Puts the gradients that a hook returned in the place of those it was given.
fn exchange(who: &str, old: &mut Gradients, new: Vec<Option<Tensor>>) -> Result<()> {
    if new.len() != old.len() {
        return Err(Error::autodiff(format!(
            "{who} returned {} gradients, expected {} as it was given; return one gradient (or None) for \
             each",
            new.len(),
            old.len()
        )));
    }
    for (slot, new) in old.iter_mut().zip(new) {
        if let (Some(new), Some(old)) = (&new, slot.as_ref()) {
            fits(who, new, &old.aval())?;
        }
        *slot = new;
    }
    Ok(())
}
