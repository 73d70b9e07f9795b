//! `Tensor`: what operations, rules and Python see. Either a plain [`Array`], or a value that belongs to one
//! interpreter of the chain: recorded on a tape, carrying a tangent, carrying a batch axis, or written down
//! by `linearize`.
//!
//! User-facing methods live beside their operations in `src/ops/`; all they do is check shapes, build an
//! [`Op`] and call [`bind`], or call other methods. Read next: `src/bind.rs`.
//!
//! [`Op`]: crate::op::Op [`bind`]: crate::bind::bind

use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::{DType, Element};
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::interp::linearized::LinearMap;
use crate::interp::{DONATED_TAG, Tag, branch};
use crate::tape::node::{Edge, Handle, Node};
use crate::watch::{absent, script};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// What is known of a value without looking at its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aval {
    /// Its shape, without the batch axes of enclosing `vmap`s.
    pub shape: Shape,
    /// Its element type.
    pub dtype: DType,
    /// Where it lies.
    pub device: Device,
}

/// A tensor at some level of the interpreter chain.
#[derive(Clone)]
pub enum Tensor {
    /// A concrete value.
    Array(Array),
    /// A value that one interpreter owns.
    Traced(Arc<Traced>),
}

/// A value owned by the interpreter with this tag.
pub struct Traced {
    /// The owner.
    pub tag: Tag,
    /// Shape, dtype and device as seen at the owner's level.
    pub aval: Aval,
    /// What the owner knows about it.
    pub payload: Payload,
}

/// What an interpreter attaches to a value. The inner tensors live one level down.
pub enum Payload {
    /// Recorded on a tape: output `index` of `node`.
    Taped {
        /// The value.
        primal: Tensor,
        /// The node that made it.
        node: Handle,
        /// Which of the node's outputs it is.
        index: u32,
    },
    /// Pushed forward: `None` is a tangent known to be zero.
    Dual {
        /// The value.
        primal: Tensor,
        /// Its tangent.
        tangent: Option<Tensor>,
    },
    /// One of a batch that is computed at once.
    Batched {
        /// All values of the batch.
        value: Tensor,
        /// Where in `value` the batch axis is.
        axis: usize,
        /// The branch that it was made in.
        branch: branch::BranchId,
    },
    /// Written down: what is at `var` of a list of operations.
    Linearized {
        /// The value for the inputs with which the list is written.
        value: Tensor,
        /// Its variable.
        var: usize,
        /// The list.
        map: Arc<LinearMap>,
    },
    /// Donated to a jitted call, which took its memory: shape, dtype and device are left.
    Donated {
        /// An array without values.
        shell: Tensor,
    },
}

/// The outputs of an operation; nearly always one.
pub type Tensors = SmallVec<[Tensor; 1]>;

impl Traced {
    /// The tensor one level down.
    pub fn inner(&self) -> &Tensor {
        match &self.payload {
            Payload::Taped { primal, .. } | Payload::Dual { primal, .. } => primal,
            Payload::Batched { value, .. } | Payload::Linearized { value, .. } => value,
            Payload::Donated { shell } => shell,
        }
    }

    /// The same value of its interpreter over another one a level down.
    pub fn with_inner(&self, inner: Tensor) -> Tensor {
        let payload = match &self.payload {
            Payload::Taped { node, index, .. } => {
                Payload::Taped { primal: inner, node: node.clone(), index: *index }
            }
            Payload::Dual { tangent, .. } => Payload::Dual { primal: inner, tangent: tangent.clone() },
            Payload::Batched { axis, branch, .. } => {
                Payload::Batched { value: inner, axis: *axis, branch: *branch }
            }
            Payload::Linearized { var, map, .. } => {
                Payload::Linearized { value: inner, var: *var, map: map.clone() }
            }
            Payload::Donated { .. } => Payload::Donated { shell: inner },
        };
        Tensor::Traced(Arc::new(Traced { tag: self.tag, aval: self.aval, payload }))
    }
}

impl From<Array> for Tensor {
    fn from(array: Array) -> Tensor {
        Tensor::Array(array)
    }
}

impl Tensor {
    /// Shape, dtype and device.
    #[inline]
    pub fn aval(&self) -> Aval {
        match self {
            Tensor::Array(a) => Aval { shape: a.shape(), dtype: a.dtype(), device: a.device() },
            Tensor::Traced(t) => t.aval,
        }
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> Shape {
        match self {
            Tensor::Array(a) => a.shape(),
            Tensor::Traced(t) => t.aval.shape,
        }
    }

    /// Whether this is its shape, without copying one.
    #[inline]
    pub fn has_shape(&self, shape: &Shape) -> bool {
        match self {
            Tensor::Array(a) => a.shape() == *shape,
            Tensor::Traced(t) => t.aval.shape == *shape,
        }
    }

    /// Whether both have the same shape.
    #[inline(always)]
    pub fn same_shape(&self, other: &Tensor) -> bool {
        match (self, other) {
            (Tensor::Array(a), Tensor::Array(b)) => a.same_shape(b),
            (x, Tensor::Traced(t)) => x.has_shape(&t.aval.shape),
            (Tensor::Traced(t), x) => x.has_shape(&t.aval.shape),
        }
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        match self {
            Tensor::Array(a) => a.rank(),
            Tensor::Traced(t) => t.aval.shape.rank(),
        }
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        match self {
            Tensor::Array(a) => a.numel(),
            Tensor::Traced(t) => t.aval.shape.numel(),
        }
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        match self {
            Tensor::Array(a) => a.dtype(),
            Tensor::Traced(t) => t.aval.dtype,
        }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        match self {
            Tensor::Array(a) => a.device(),
            Tensor::Traced(t) => t.aval.device,
        }
    }

    /// The traced value, if an interpreter owns this tensor.
    #[inline]
    pub fn traced(&self) -> Option<&Arc<Traced>> {
        match self {
            Tensor::Array(_) => None,
            Tensor::Traced(t) => Some(t),
        }
    }

    /// The traced value, if the interpreter `tag` owns this tensor.
    #[inline]
    pub fn owned_by(&self, tag: Tag) -> Option<&Arc<Traced>> {
        self.traced().filter(|t| t.tag == tag)
    }

    /// Whether the interpreter `tag` owns this tensor.
    #[inline]
    pub fn belongs_to(&self, tag: Tag) -> bool {
        matches!(self, Tensor::Traced(t) if t.tag == tag)
    }

    /// This value as output `index` of a node of the tape `tag`.
    #[inline(always)]
    pub fn on_tape(self, tag: Tag, node: Handle, index: u32) -> Tensor {
        let memory = Arc::new(MaybeUninit::<Traced>::uninit());
        let at: *mut Traced = Arc::as_ptr(&memory).cast_mut().cast();
        // SAFETY: nobody else knows this memory, and every field is written. In place: to move a whole
        // `Traced` there would cost as much as to write it.
        unsafe {
            (&raw mut (*at).tag).write(tag);
            (&raw mut (*at).aval).write(self.aval());
            (&raw mut (*at).payload).write(Payload::Taped { primal: self, node, index });
            Tensor::Traced(memory.assume_init())
        }
    }

    /// This tensor without its outer levels, as far as `peel` holds for the tag of each.
    pub fn peeled(&self, peel: impl Fn(Tag) -> bool) -> Tensor {
        self.levels().take_while(|traced| peel(traced.tag)).last().map_or(self, |t| t.inner()).clone()
    }

    /// The node that made this tensor, if it is recorded.
    pub fn edge(&self) -> Option<Edge> {
        match &self.traced()?.payload {
            Payload::Taped { node, index, .. } => Some(Edge { node: node.node().clone(), index: *index }),
            _ => None,
        }
    }

    /// What interpreters attached to this tensor, outermost first.
    pub fn levels(&self) -> impl Iterator<Item = &Arc<Traced>> {
        std::iter::successors(self.traced(), |traced| traced.inner().traced())
    }

    /// Whether something differentiates it, at any level.
    pub fn is_differentiated(&self) -> bool {
        use Payload::{Dual, Linearized, Taped};
        self.levels()
            .any(|t| matches!(t.payload, Taped { .. } | Linearized { .. } | Dual { tangent: Some(_), .. }))
    }

    /// The node of [`Tensor::edge`], without a reference of its own.
    pub fn node(&self) -> Option<&Arc<Node>> {
        match &self.traced()?.payload {
            Payload::Taped { node, .. } => Some(node.node()),
            _ => None,
        }
    }

    /// The concrete array of a tensor that is at most recorded on tapes: `None` inside `vmap` and `jvp`.
    pub fn concrete(&self) -> Option<&Array> {
        match self {
            Tensor::Array(a) => Some(a),
            Tensor::Traced(t) => match &t.payload {
                Payload::Taped { primal, .. } => primal.concrete(),
                _ => None,
            },
        }
    }

    /// What is left of this tensor when it is donated: its shape, dtype and device.
    pub fn to_donated(&self) -> Result<Tensor> {
        let aval = self.aval();
        let payload = Payload::Donated { shell: absent::absent(aval.shape, aval.dtype)?.into() };
        Ok(Tensor::Traced(Arc::new(Traced { tag: DONATED_TAG, aval, payload })))
    }

    /// Whether this was donated, or is a history over what was.
    pub fn is_donated(&self) -> bool {
        self.levels().any(|t| matches!(t.payload, Payload::Donated { .. }))
    }

    /// The concrete array, or an error that says which transform hides it.
    pub fn array(&self, op: &str) -> Result<&Array> {
        self.concrete().ok_or_else(|| {
            if self.is_donated() {
                return donated(op, &self.shape());
            }
            let instead = if op == "bool" { "use where(), cond() or while_loop()" } else { "use where()" };
            Error::dtype(format!(
                "{op}: the value of this tensor depends on the batch element or tangent of an enclosing \
                 vmap or jvp; move {op} out of the transformed function, or {instead} instead of a branch"
            ))
        })
    }

    /// A 0-d constant of this dtype on this device.
    pub fn scalar(value: f64, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(crate::device::create_on!(device, create::full(Shape::SCALAR, value, dtype))?.into())
    }

    /// A 0-d integer on the CPU: 64-bit integers hold numbers that no `f64` does.
    pub fn integer(value: i64, dtype: DType) -> Result<Tensor> {
        let mut out = Array::empty(Shape::SCALAR, dtype, Device::Cpu)?;
        crate::dispatch!(dtype, T => out.slice_mut::<T>()?[0] = T::from_i64(value));
        Ok(out.into())
    }

    /// A 0-d constant as an operand: on a GPU all equal ones share their memory, so nothing may write to it.
    pub fn operand(value: f64, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(crate::device::constant(value, dtype, device)?.into())
    }

    /// A 0-d constant with the dtype and device of `self`.
    pub fn scalar_like(&self, value: f64) -> Result<Tensor> {
        Tensor::scalar(value, self.dtype(), self.device())
    }

    /// A CPU tensor holding a copy of `values`.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Tensor> {
        Ok(Array::from_slice(values, Shape::new(shape)?)?.into())
    }

    /// The elements of a concrete tensor as `f64`, in row-major order; for tests, printing and plots.
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        absent::check("a look at the elements", self.array("to_vec")?)?;
        script::left("a look at the elements", self.array("to_vec")?)?;
        let host = self.array("to_vec")?.to_device(Device::Cpu)?;
        let host = crate::cpu::pointwise::copy::contiguous(&host)?;
        crate::dispatch!(host.dtype(), T => {
            crate::array::buffer::collect_at_most(host.numel(), host.slice::<T>()?.iter().map(|v| v.to_f64()))
        })
    }

    /// The value of a one-element tensor.
    pub fn item(&self) -> Result<f64> {
        if self.numel() != 1 {
            return Err(Error::value(format!(
                "item: a tensor with one element expected, got shape {}; use tolist() or index it",
                self.shape()
            )));
        }
        script::left("a look at an element", self.array("item")?)?;
        self.array("item")?.to_device(Device::Cpu)?.item()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tensor::Array(a) => a.fmt(f),
            Tensor::Traced(t) => {
                let kind = match t.payload {
                    Payload::Taped { .. } => "taped",
                    Payload::Dual { .. } => "dual",
                    Payload::Batched { .. } => "batched",
                    Payload::Linearized { .. } => "linearized",
                    Payload::Donated { .. } => "donated",
                };
                write!(f, "{kind} {}{} over [{:?}]", t.aval.dtype, t.aval.shape, t.inner())
            }
        }
    }
}

/// The error of the operation `op` on a tensor of this shape that was donated.
#[cold]
pub fn donated(op: &str, shape: &Shape) -> Error {
    Error::autodiff(format!(
        "{op}: a tensor of shape {shape} was donated to a jitted call (donate_argnums), which took its \
         memory; use what the call returned, or do not donate it"
    ))
}

/// `t` over other memory: the concrete array at its bottom is replaced, its history at every level is kept.
pub fn over_memory(t: &Tensor, array: &Array) -> Tensor {
    match t {
        Tensor::Array(_) => array.clone().into(),
        Tensor::Traced(traced) => traced.with_inner(over_memory(traced.inner(), array)),
    }
}
