//! The state of a Python tensor, and how it is read and exchanged.
//!
//! For Python the class is mutable, for PyO3 it is frozen, because PyO3's borrow count is atomic: four locked
//! instructions for every `a + b`. Here the global interpreter lock guards the count where there is one, and
//! only a free-threaded interpreter pays for atomic updates.

use crate::interp::Tag;
use crate::py::prelude::*;
use crate::py::tensor::view::View;
use crate::tape::hooks::Keep;
use crate::tape::node::Node;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A tensor: numbers of one dtype in a grid of up to eight axes, on the CPU or a GPU, with their derivatives.
///
/// Made by `wengert.tensor`, `wengert.zeros` and their kin rather than by this class, whose constructor
/// shares the memory of what it is given.
///
/// Example:
///     >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
///     >>> (x * x).sum().backward()
///     >>> x.grad
///     tensor([2., 4.])
#[pyclass(name = "Tensor", module = "wengert", subclass, weakref, frozen)]
pub struct PyTensor {
    state: UnsafeCell<State>,
    /// The number of read-only borrows of the state; [`EXCHANGING`] while it is being changed.
    readers: AtomicU32,
}

/// The state of a tensor object.
pub struct State {
    /// The value as of the creation or last write of this object; `value()` returns the current value.
    pub t: Tensor,
    /// The link to the root, if this is a view.
    pub view: Option<View>,
    /// Incremented by every recorded in-place write, to notify the views of this tensor.
    pub epoch: u64,
    /// Rarely needed fields.
    pub ties: Option<Box<Ties>>,
}

/// Ties of an object to a transform or to a node.
#[derive(Default)]
pub struct Ties {
    /// The level in which this is an argument of a transformed function, or, with [`SHARING`], in which it
    /// was made over the memory of another object.
    given: Tag,
    /// The leaf whose gradient this is, if the value is not memory that the two could share.
    pub gradient_of: Option<Arc<Node>>,
    /// The gradient that `retain_grad()` keeps; the tape holds it only weakly, this object owns it.
    pub kept: Option<Arc<Keep>>,
    /// The custom function that returned one of its arguments, or a view of one, as this object. It must not
    /// be written then, as the write would not reach the argument.
    pub returned_by: Option<&'static str>,
}

/// Flag in `given`: the object was not given as an argument in that level, but shares memory.
const SHARING: Tag = 1 << 63;

impl State {
    /// Returns the level in which this is an argument; 0 for all other tensors.
    pub fn given(&self) -> Tag {
        let given = self.ties.as_ref().map_or(0, |ties| ties.given);
        if given & SHARING == 0 { given } else { 0 }
    }

    /// Returns the level in which the object is known to have been made.
    pub fn made(&self) -> Tag {
        let viewed = self.view.as_ref().map_or(0, |view| view.made);
        self.ties.as_ref().map_or(0, |ties| ties.given & !SHARING).max(viewed)
    }
}

/// The value of `readers` while the state is being changed.
const EXCHANGING: u32 = u32::MAX;

/// Whether threads run Python in parallel; known once this module is imported.
static PARALLEL: AtomicBool = AtomicBool::new(true);

/// Registers the class and detects whether there is a global lock, which a running program never loses.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let sys = m.py().import("sys")?;
    let parallel = match sys.getattr_opt("_is_gil_enabled")? {
        Some(enabled) => !enabled.call0()?.is_truthy()?,
        None => false,
    };
    PARALLEL.store(parallel, Ordering::Relaxed);
    m.add_class::<PyTensor>()
}

// SAFETY: the state is read through a counted [`ReadGuard`] and changed only while the count is 0. Only
// attached threads update the count: one at a time under the global lock, atomically without it.
unsafe impl Sync for PyTensor {}

impl From<Tensor> for PyTensor {
    #[inline(always)]
    fn from(t: Tensor) -> PyTensor {
        PyTensor::viewing(t, None)
    }
}

impl PyTensor {
    /// Returns an object that is a view of another if `view` is given.
    #[inline(always)]
    pub fn viewing(t: Tensor, view: Option<View>) -> PyTensor {
        PyTensor::holding(State { t, view, epoch: 0, ties: None })
    }

    /// Returns an argument of the function that the current transform runs.
    pub fn argument(t: Tensor) -> PyTensor {
        PyTensor::tied(t, None, Ties { given: interp::current().tag, ..Ties::default() })
    }

    /// A separate object over the memory of another, which may be from outside of the active transforms.
    pub fn sharing(t: Tensor, view: Option<View>) -> PyTensor {
        PyTensor::tied(t, view, Ties { given: interp::current().tag | SHARING, ..Ties::default() })
    }

    /// Returns the gradient `t` of a leaf as an object; writes to it reach the leaf.
    pub fn gradient(t: Tensor, leaf: &Arc<Node>) -> PyTensor {
        match t.concrete() {
            Some(_) => t.into(),
            None => PyTensor::tied(t, None, Ties { gradient_of: Some(leaf.clone()), ..Ties::default() }),
        }
    }

    /// Returns a result of the custom function `name`, a value of a transform that aliases an argument.
    pub fn returned(t: Tensor, name: &'static str) -> PyTensor {
        PyTensor::tied(t, None, Ties { returned_by: Some(name), ..Ties::default() })
    }

    fn tied(t: Tensor, view: Option<View>, ties: Ties) -> PyTensor {
        PyTensor::holding(State { t, view, epoch: 0, ties: Some(Box::new(ties)) })
    }

    #[inline(always)]
    fn holding(state: State) -> PyTensor {
        PyTensor { state: UnsafeCell::new(state), readers: AtomicU32::new(0) }
    }

    /// Borrows the state; `None` while another thread exchanges it.
    #[inline(always)]
    pub fn try_read(&self) -> Option<ReadGuard<'_>> {
        if PARALLEL.load(Ordering::Relaxed) {
            return self.read_in_parallel();
        }
        let now = self.readers.load(Ordering::Relaxed);
        if now == EXCHANGING {
            return None;
        }
        self.readers.store(now + 1, Ordering::Relaxed);
        Some(ReadGuard(self, PhantomData))
    }

    #[cold]
    fn read_in_parallel(&self) -> Option<ReadGuard<'_>> {
        let more = |now: u32| (now != EXCHANGING).then(|| now + 1);
        self.readers.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(ReadGuard(self, PhantomData))
    }

    /// Borrows the state. On a free-threaded interpreter another thread may be exchanging it, which takes a
    /// few instructions; this waits for that.
    #[inline(always)]
    pub fn read(&self) -> ReadGuard<'_> {
        match self.try_read() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> ReadGuard<'_> {
        loop {
            Python::attach(|py| py.detached(std::thread::yield_now));
            if let Some(guard) = self.try_read() {
                return guard;
            }
        }
    }

    /// Changes the state by `f`; returns `None` without calling `f` while the state is borrowed. `f` must run
    /// no Python code, so it returns what it replaces instead of dropping it.
    pub fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.readers.compare_exchange(0, EXCHANGING, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: the count was 0: nothing is borrowed; [`EXCHANGING`] prevents that until it is 0 again.
        let out = f(unsafe { &mut *self.state.get() });
        self.readers.store(0, Ordering::Release);
        Some(out)
    }
}

/// A read-only borrow of an object's state, which cannot change meanwhile. It must end on an attached thread.
pub struct ReadGuard<'a>(&'a PyTensor, PhantomData<*const ()>);

// SAFETY: a shared guard only gives read access to the state, which any thread may have. A guard is not
// `Send`, so it is dropped on the thread that made it.
unsafe impl Sync for ReadGuard<'_> {}

impl Deref for ReadGuard<'_> {
    type Target = State;
    #[inline(always)]
    fn deref(&self) -> &State {
        // SAFETY: the count prevents changes as long as this guard exists.
        unsafe { &*self.0.state.get() }
    }
}

impl Drop for ReadGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let readers = &self.0.readers;
        if PARALLEL.load(Ordering::Relaxed) {
            readers.fetch_sub(1, Ordering::Release);
        } else {
            readers.store(readers.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

/// Read access to the state behind a Python object.
pub trait ReadState {
    /// Borrows the state.
    fn read(&self) -> ReadGuard<'_>;
}

impl ReadState for Bound<'_, PyTensor> {
    #[inline(always)]
    fn read(&self) -> ReadGuard<'_> {
        self.get().read()
    }
}

/// The current value of an object: its own, or that of a view whose root was written.
pub enum Value<'a> {
    /// The stored value, borrowed.
    Read(ReadGuard<'a>),
    /// The value of a view, computed again from its root.
    Renewed(Tensor),
}

impl Value<'_> {
    /// Returns the tensor, independent of the borrow.
    #[inline]
    pub fn into_owned(self) -> Tensor {
        match self {
            Value::Read(guard) => guard.t.clone(),
            Value::Renewed(t) => t,
        }
    }
}

impl Deref for Value<'_> {
    type Target = Tensor;
    #[inline(always)]
    fn deref(&self) -> &Tensor {
        match self {
            Value::Read(guard) => &guard.t,
            Value::Renewed(t) => t,
        }
    }
}
