//! What a Python tensor holds, and how it is looked at and exchanged.
//!
//! To Python the class is mutable, to PyO3 it is frozen: PyO3's own count of borrows is atomic, four locked
//! instructions for every `a + b`. Here the global interpreter lock guards the count where there is one, and
//! only an interpreter without it pays for atomic updates.

use crate::interp::{self, Tag};
use crate::py::aside::Aside;
use crate::py::tensor::view::View;
use crate::tape::hooks::Keep;
use crate::tape::node::Node;
use crate::tensor::Tensor;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
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
    /// How many glances at the state there are; [`EXCHANGING`] while it is being changed.
    glances: AtomicU32,
}

/// What the object holds.
pub struct State {
    /// The value as it was when this object was made or last written; `value()` is the value of now.
    pub t: Tensor,
    /// What it is a view of.
    pub view: Option<View>,
    /// Moved by every recorded in-place write, for the views of this tensor.
    pub epoch: u64,
    /// What few tensors have.
    pub ties: Option<Box<Ties>>,
}

/// What ties an object to a transform or to an entry of a tape.
#[derive(Default)]
pub struct Ties {
    /// The level in which it is an argument of a function that a transform runs, or, with [`SHARING`], in
    /// which it was made of the memory of another.
    given: Tag,
    /// The leaf whose gradient this is, where a value is no memory that the two could share.
    pub gradient_of: Option<Arc<Node>>,
    /// The gradient that `retain_grad()` keeps; the tape knows of it as long as this object lives.
    pub kept: Option<Arc<Keep>>,
    /// The custom function that returned one of its arguments, or a view of one, as this object, which is
    /// therefore not written: the write would not reach the argument.
    pub returned_by: Option<&'static str>,
}

/// Marks the level of an object that is not given its memory there.
const SHARING: Tag = 1 << 63;

impl State {
    /// The level in which it is an argument; 0 for all other tensors.
    pub fn given(&self) -> Tag {
        let given = self.ties.as_ref().map_or(0, |ties| ties.given);
        if given & SHARING == 0 { given } else { 0 }
    }

    /// The level in which the object is known to be made.
    pub fn made(&self) -> Tag {
        let viewed = self.view.as_ref().map_or(0, |view| view.made);
        self.ties.as_ref().map_or(0, |ties| ties.given & !SHARING).max(viewed)
    }
}

/// The count of glances while the state is being changed.
const EXCHANGING: u32 = u32::MAX;

/// Whether threads run Python at the same time, which is known once this module is imported.
static PARALLEL: AtomicBool = AtomicBool::new(true);

/// Finds out whether there is a global lock. It is never taken away from a running program.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let sys = m.py().import("sys")?;
    let parallel = match sys.getattr_opt("_is_gil_enabled")? {
        Some(enabled) => !enabled.call0()?.is_truthy()?,
        None => false,
    };
    PARALLEL.store(parallel, Ordering::Relaxed);
    m.add_class::<PyTensor>()
}

// SAFETY: the state is read through a counted [`ReadGuard`] and changed while there is none; the count is
// updated by attached threads only, one at a time under the global lock, atomically without it.
unsafe impl Sync for PyTensor {}

impl From<Tensor> for PyTensor {
    #[inline(always)]
    fn from(t: Tensor) -> PyTensor {
        PyTensor::viewing(t, None)
    }
}

impl PyTensor {
    /// An object that is a view of another, if `view` says of which.
    #[inline(always)]
    pub fn viewing(t: Tensor, view: Option<View>) -> PyTensor {
        PyTensor::holding(State { t, view, epoch: 0, ties: None })
    }

    /// An argument of a function that a transform runs, which is inside now.
    pub fn argument(t: Tensor) -> PyTensor {
        PyTensor::tied(t, None, Ties { given: interp::current().tag, ..Ties::default() })
    }

    /// An object of its own for the memory of another, which may be from outside of the transforms that are
    /// in force.
    pub fn sharing(t: Tensor, view: Option<View>) -> PyTensor {
        PyTensor::tied(t, view, Ties { given: interp::current().tag | SHARING, ..Ties::default() })
    }

    /// The gradient `t` of a leaf, as an object through which it can be written.
    pub fn gradient(t: Tensor, leaf: &Arc<Node>) -> PyTensor {
        match t.concrete() {
            Some(_) => t.into(),
            None => PyTensor::tied(t, None, Ties { gradient_of: Some(leaf.clone()), ..Ties::default() }),
        }
    }

    /// What the custom function `name` returned, a value of a transform that shares its numbers with an
    /// argument.
    pub fn returned(t: Tensor, name: &'static str) -> PyTensor {
        PyTensor::tied(t, None, Ties { returned_by: Some(name), ..Ties::default() })
    }

    fn tied(t: Tensor, view: Option<View>, ties: Ties) -> PyTensor {
        PyTensor::holding(State { t, view, epoch: 0, ties: Some(Box::new(ties)) })
    }

    #[inline(always)]
    fn holding(state: State) -> PyTensor {
        PyTensor { state: UnsafeCell::new(state), glances: AtomicU32::new(0) }
    }

    /// What the object holds; `None` while another thread exchanges it.
    #[inline(always)]
    pub fn try_read(&self) -> Option<ReadGuard<'_>> {
        if PARALLEL.load(Ordering::Relaxed) {
            return self.read_in_parallel();
        }
        let now = self.glances.load(Ordering::Relaxed);
        if now == EXCHANGING {
            return None;
        }
        self.glances.store(now + 1, Ordering::Relaxed);
        Some(ReadGuard(self, PhantomData))
    }

    #[cold]
    fn read_in_parallel(&self) -> Option<ReadGuard<'_>> {
        let more = |now: u32| (now != EXCHANGING).then(|| now + 1);
        self.glances.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(ReadGuard(self, PhantomData))
    }

    /// What the object holds. Without a global interpreter lock another thread may be exchanging it at this
    /// very moment, which takes a few instructions: this waits for them.
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
            Python::attach(|py| py.aside(std::thread::yield_now));
            if let Some(guard) = self.try_read() {
                return guard;
            }
        }
    }

    /// Changes what the object holds; `None`, without having called `f`, while somebody looks at it. `f` must
    /// run no Python code, so it hands out what it replaces instead of dropping it.
    pub fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.glances.compare_exchange(0, EXCHANGING, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: the count says that nobody looks, and lets nobody look until it is back at zero.
        let out = f(unsafe { &mut *self.state.get() });
        self.glances.store(0, Ordering::Release);
        Some(out)
    }
}

/// A look at what an object holds, which stays the same meanwhile. It ends on an attached thread.
pub struct ReadGuard<'a>(&'a PyTensor, PhantomData<*const ()>);

// SAFETY: a reference to a guard gives access to the state, which may be read by any thread; a guard itself
// is not `Send`, so that it ends where it began.
unsafe impl Sync for ReadGuard<'_> {}

impl Deref for ReadGuard<'_> {
    type Target = State;
    #[inline(always)]
    fn deref(&self) -> &State {
        // SAFETY: the count keeps writers away as long as this guard exists.
        unsafe { &*self.0.state.get() }
    }
}

impl Drop for ReadGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let glances = &self.0.glances;
        if PARALLEL.load(Ordering::Relaxed) {
            glances.fetch_sub(1, Ordering::Release);
        } else {
            glances.store(glances.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

/// Looking at the tensor behind a Python object.
pub trait ReadState {
    /// What the object holds.
    fn read(&self) -> ReadGuard<'_>;
}

impl ReadState for Bound<'_, PyTensor> {
    #[inline(always)]
    fn read(&self) -> ReadGuard<'_> {
        self.get().read()
    }
}

/// The value of an object as of now: its own, or that of a view whose root was written.
pub enum Value<'a> {
    /// What the object holds.
    Read(ReadGuard<'a>),
    /// A view that was taken anew.
    Renewed(Tensor),
}

impl Value<'_> {
    /// A tensor that outlives the look at it.
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
