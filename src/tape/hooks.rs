//! Hooks: callbacks that see, and may replace, the gradients at one node.
//!
//! Order of a visit by backward: the hooks on the gradient of each output (a tensor's hooks), the storing of
//! the gradient for `retain_grad`, the hooks before the node, the node itself, the hooks after accumulation
//! into a leaf, and the hooks after the node.

use crate::error::{Error, Result};
use crate::process::sync::lock;
use crate::tape::host_ref::HostRef;
use crate::tensor::{Aval, Tensor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A callback on one gradient; a `Some` that it returns replaces the gradient.
pub type GradHook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;
/// Gradients of all outputs, or for all inputs, of a node; `None` where there is none.
pub type Gradients = [Option<Tensor>];
/// A callback on the gradients of a node's outputs, before the node runs; `Some` replaces them.
pub type PreHook = Arc<dyn Fn(&Gradients) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync>;
/// A callback on the gradients of a node's inputs and outputs, after it ran; `Some` replaces the former.
pub type PostHook = Arc<dyn Fn(&Gradients, &Gradients) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync>;

/// A callback, by when it runs.
#[derive(Clone)]
pub enum Hook {
    /// When the gradient of this output is complete.
    Grad(u32, GradHook),
    /// Before the node runs.
    Before(PreHook),
    /// After accumulation into a leaf; gets the sum.
    Accumulated(GradHook),
    /// After the node ran.
    After(PostHook),
}

/// A slot for the gradient that `retain_grad` keeps.
#[derive(Default)]
pub struct Keep(Mutex<Option<Tensor>>);

impl Keep {
    /// The gradient.
    pub fn get(&self) -> Option<Tensor> {
        lock(&self.0).clone()
    }

    /// Replaces the gradient.
    pub fn set(&self, grad: Option<Tensor>) {
        // Drops outside the lock: the memory may belong to a Python object with a destructor.
        let before = std::mem::replace(&mut *lock(&self.0), grad);
        drop(before);
    }
}

/// A registered hook, its id, and the Python object that it holds.
struct Registered {
    id: u64,
    hook: Hook,
    held: Option<HostRef>,
}

/// The hooks of one node, and where its `retain_grad` gradients are kept.
#[derive(Default)]
pub struct Hooks {
    /// The last id given.
    last: AtomicU64,
    entries: Mutex<Vec<Registered>>,
    retained: Mutex<Vec<(u32, Weak<Keep>)>>,
    notes: OnceLock<HostRef>,
}

impl Hooks {
    /// Registers a hook and returns the id that removes it. `held` is the Python object that the hook holds.
    pub fn add(&self, hook: Hook, held: Option<HostRef>) -> u64 {
        let id = 1 + self.last.fetch_add(1, Ordering::Relaxed);
        lock(&self.entries).push(Registered { id, hook, held });
        id
    }

    /// Removes a hook by its id.
    pub fn remove(&self, id: u64) {
        // Drops outside the lock: a callback may be a Python object with a destructor.
        let removed: Vec<_> = lock(&self.entries).extract_if(.., |e| e.id == id).collect();
        drop(removed);
    }

    /// The Python data attached to this node, made on first use.
    pub fn notes(&self, make: impl FnOnce() -> HostRef) -> &HostRef {
        self.notes.get_or_init(make)
    }

    /// The last id given and how many hooks there are: two numbers that change with every change.
    pub fn stamp(&self) -> (u64, usize) {
        (self.last.load(Ordering::Relaxed), lock(&self.entries).len())
    }

    /// Shows `see` the Python objects that the notes and hooks hold.
    pub fn held(&self, see: &mut dyn FnMut(&HostRef)) {
        self.notes.get().into_iter().for_each(&mut *see);
        lock(&self.entries).iter().filter_map(|e| e.held.as_ref()).for_each(see);
    }

    /// Returns the callbacks that `pick` selects, in order of registration.
    fn picked<T>(&self, pick: impl Fn(&Hook) -> Option<T>) -> Vec<T> {
        lock(&self.entries).iter().filter_map(|e| pick(&e.hook)).collect()
    }

    /// Makes backward keep the gradient of output `index`, and returns its slot. The caller owns the slot: a
    /// gradient of `create_graph` leads back to this node, which must not hold it.
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

    /// Makes backward keep the gradient of output `index` in a slot that another node had.
    pub fn take_over(&self, index: u32, keep: &Arc<Keep>) {
        lock(&self.retained).push((index, Arc::downgrade(keep)));
    }

    /// Keeps no gradient in this slot any more.
    pub fn give_up(&self, keep: &Arc<Keep>) {
        lock(&self.retained).retain(|(_, kept)| !std::ptr::eq(kept.as_ptr(), Arc::as_ptr(keep)));
    }

    /// The slot that keeps the gradient of output `index`, if there is one.
    pub fn retained(&self, index: u32) -> Option<Arc<Keep>> {
        lock(&self.retained).iter().find(|r| r.0 == index).and_then(|r| r.1.upgrade())
    }

    /// Runs the hooks on the gradient of output `index`.
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

    /// Runs the hooks before the node.
    pub fn before(&self, g: &mut Gradients) -> Result<()> {
        for hook in self.picked(|h| if let Hook::Before(f) = h { Some(f.clone()) } else { None }) {
            if let Some(new) = hook(g)? {
                exchange("a pre-hook of a graph node", g, new)?;
            }
        }
        Ok(())
    }

    /// Whether there are hooks after the node.
    pub fn has_after(&self) -> bool {
        lock(&self.entries).iter().any(|e| matches!(e.hook, Hook::After(_)))
    }

    /// Runs the hooks after the node, which turned the gradients `outputs` into `inputs`.
    pub fn after(&self, inputs: &mut Gradients, outputs: &Gradients) -> Result<()> {
        for hook in self.picked(|h| if let Hook::After(f) = h { Some(f.clone()) } else { None }) {
            if let Some(new) = hook(inputs, outputs)? {
                exchange("a hook of a graph node", inputs, new)?;
            }
        }
        Ok(())
    }

    /// Runs the hooks after accumulation.
    pub fn accumulated(&self, grad: &Tensor) -> Result<()> {
        for hook in self.picked(|h| if let Hook::Accumulated(f) = h { Some(f.clone()) } else { None }) {
            hook(grad)?;
        }
        Ok(())
    }
}

/// Raises unless the gradient that a hook returned has the shape, dtype and device of the one it was given.
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

/// Replaces the gradients that a hook was given by those it returned.
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
