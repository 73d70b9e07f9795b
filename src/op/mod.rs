//! The classes of operations, which turn one rule into all the rules an interpreter asks for.
//!
//! An operation is a small attribute struct that implements [`Kernel`] (how it runs) and the trait of its
//! class (how it differentiates and batches). The class trait *requires* what cannot be derived and
//! *provides* the rest, and the list in `src/op/list.rs` names the class of each operation: an operation
//! whose rules are incomplete does not compile.
//!
//! | class        | you write                       | you get                                            |
//! |--------------|---------------------------------|----------------------------------------------------|
//! | Elementwise  | the partial `g * d out / d x_i` | VJP, JVP, batching                                 |
//! | Linear       | the transpose, batching         | VJP, JVP (the operation itself, on the tangent)    |
//! | Bilinear     | both transposes, batching       | VJP, JVP by the product rule                       |
//! | General      | VJP, JVP, batching              |                                                    |
//! | Composite    | the same function by other ops  | VJP, JVP, batching, each replaceable by an own one |
//! | Discrete     | batching                        | no derivative: its output is piecewise constant    |
//!
//! Every operation also says its floating point operations ([`Kernel::flops`]) and its rules as formulas,
//! from which `docs/operations.md` is made.
//!
//! Read next: `src/op/list.rs`.

mod at_call;
mod batched;
mod effect;
mod list;
mod needs;
mod outputs;

pub use at_call::AtCall;
pub(crate) use batched::batch;
pub use batched::{Batched, BatchedOutputs, align, aligned, first_in_front, in_front, in_place};
pub use effect::Effect;
pub use list::{Op, OpEntry};
pub use needs::{Needs, Saves};
pub use outputs::{Operation, Outputs};

use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::random::State;
use crate::bind::bind;
use crate::cpu::pointwise::fused::ElementFn;
use crate::error::{Error, Result};
use crate::tape::node::Vjp;
use crate::tensor::{Tensor, Tensors};
use smallvec::{SmallVec, smallvec};

/// Concrete outputs.
pub type Arrays = SmallVec<[Array; 1]>;
/// One optional gradient or tangent per position; `None` is zero.
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// How an operation runs on concrete arrays. Shapes and dtypes were checked where the operation was built.
pub trait Kernel {
    /// The public name.
    fn name(&self) -> &'static str;
    /// Runs on the device of the inputs.
    fn eval(&self, x: &[&Array]) -> Result<Arrays>;
    /// Floating point operations of this formula from `x` to `y`; what counts is in `src/watch/cost.rs`.
    fn flops(&self, x: &[&Array], y: &[Array]) -> u64;
    /// [`Kernel::eval`] of an operation with one output.
    #[inline]
    fn eval_one(&self, x: &[&Array]) -> Result<Array> {
        self.eval(x)?.pop().ok_or_else(no_output)
    }
    /// The loop over elements that the operation is on the host, for dense operands of these dtypes, with its
    /// rule, of which a GPU makes kernels; `None` where it is anything else.
    fn element_fn(&self, _dtypes: &[DType]) -> Option<ElementFn> {
        None
    }
    /// The seed and position of the random numbers that the operation reads; `None` if it reads none.
    fn random_state(&mut self) -> Option<&mut State> {
        None
    }
    /// Runs and stores the outputs in `out`, memory of their shapes, dtypes and device. An input may be one
    /// of them, which then changes; otherwise no input overlaps an output where the operation does not say
    /// so. Outputs do not overlap each other, and nobody else reads or writes them meanwhile.
    fn eval_into(&self, x: &[&Array], out: &[&Array]) -> Result<()> {
        self.eval(x)?.iter().zip(out).try_for_each(|(y, out)| out.assign(y))
    }
}

/// The error for an operation with one output that gave none.
#[cold]
pub fn no_output() -> Error {
    Error::value("internal: an operation returned no output")
}

/// The values that a pointwise partial may read; only those it declared are there.
pub struct Reads<'a> {
    /// The inputs.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The output.
    pub output: Option<&'a Tensor>,
}

/// Functions with a diagonal Jacobian; operands broadcast.
pub trait Elementwise: Operation<Out = Tensor> {
    /// What [`Elementwise::partial`] reads for input `wrt`.
    fn reads(&self, wrt: usize) -> Saves;
    /// `g * d out / d x_wrt`; `None` where the derivative is zero everywhere.
    fn partial(&self, wrt: usize, g: &Tensor, reads: &Reads) -> Result<Option<Tensor>>;

    /// What the tape keeps.
    #[inline]
    fn saves(&self, needs: Needs, inputs: usize) -> Saves {
        let mut saves = Saves::NONE;
        for i in 0..inputs {
            saves = saves.and(self.reads(i).when(needs.has(i)));
        }
        saves
    }
    /// Reverse rule.
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        // Loops rather than iterators here: this runs once per entry of the tape, and they are inlined.
        let mut inputs: SmallVec<[Option<&Tensor>; 4]> = SmallVec::new();
        for i in 0..c.inputs() {
            inputs.push(c.saved_input(i));
        }
        let reads = Reads { inputs: &inputs, output: c.saved_output(0) };
        let mut grads = Grads::new();
        for i in 0..c.inputs() {
            grads.push(if c.needs(i) { self.partial(i, g, &reads)? } else { None });
        }
        Ok(grads)
    }
    /// Forward rule.
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let inputs: SmallVec<[Option<&Tensor>; 4]> = x.iter().map(|&x| Some(x)).collect();
        let reads = Reads { inputs: &inputs, output: y.first() };
        let mut total: Option<Tensor> = None;
        for (i, t) in t.iter().enumerate() {
            let Some(t) = t else { continue };
            total = added(total, self.partial(i, t, &reads)?)?;
        }
        // A tangent has its value's shape and dtype, also if only a broadcast operand moves, or a number.
        let total = total.map(|t| t.cast(y[0].dtype())?.expand(&y[0].shape())).transpose()?;
        Ok(smallvec![total])
    }
    /// Batching rule: align the axes and run as before.
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        aligned(self.clone(), x, size)
    }
}

/// The sum of two gradients or tangents.
pub fn added(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    match (a, b) {
        (Some(a), Some(b)) => a.add(&b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

/// Functions linear in all their floating point inputs together; other inputs (indices) are constants.
pub trait Linear: Operation {
    /// The transpose in words or as a formula of the cotangent `g`, for the documentation.
    const TRANSPOSE: &'static str;
    /// What the transpose reads: the constants.
    const READS: Saves = Saves::NONE;
    /// Whether each element of the output is one of the first input, so that [`Linear::add_transpose`] adds
    /// to the part of a gradient that was selected.
    const SELECTS: bool = false;

    /// The transpose with respect to input `wrt`, applied to the cotangent `g`.
    fn transpose(&self, wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor>;
    /// Adds the transpose with respect to the first input to `total`, which has no other handle, in place, at
    /// the cost of the elements of `g`; returns whether it did.
    fn add_transpose(&self, _total: &Array, _g: &Array, _c: &Vjp) -> Result<bool> {
        Ok(false)
    }
    /// What the tape keeps.
    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Self::READS
    }
    /// The operation on tangents; differs from the operation itself only where that adds a constant.
    fn tangent(&self) -> Op {
        self.clone().into()
    }
    /// Batching rule.
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs>;

    /// Reverse rule.
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let mut grads = Grads::new();
        for i in 0..c.inputs() {
            grads.push(if c.needs(i) { Some(self.transpose(i, g, c)?) } else { None });
        }
        Ok(grads)
    }
    /// Forward rule.
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let mut moved: SmallVec<[Tensor; 2]> = SmallVec::new();
        for (x, t) in x.iter().zip(t) {
            moved.push(match t {
                Some(t) => t.clone(),
                None if x.dtype().is_differentiable() => x.zeros_like()?,
                None => (*x).clone(),
            });
        }
        let refs: SmallVec<[&Tensor; 4]> = moved.iter().collect();
        Ok(bind(self.tangent(), &refs)?.into_iter().map(Some).collect())
    }
}

/// The rule [`Linear::transpose`], the same for every input.
macro_rules! transpose {
    (|$self:ident, $g:ident| $value:expr) => {
        $crate::op::transpose!(|$self, $g, _c| $value);
    };
    (|$self:ident, $g:ident, $c:ident| $value:expr) => {
        fn transpose(
            &$self,
            _wrt: usize,
            $g: &$crate::tensor::Tensor,
            $c: &$crate::tape::node::Vjp,
        ) -> $crate::error::Result<$crate::tensor::Tensor> {
            $value
        }
    };
}
pub(crate) use transpose;

/// Functions of two inputs, linear in each.
pub trait Bilinear: Operation<Out = Tensor> {
    /// Both transposes as formulas of the cotangent `g` and the inputs `x`, `y`, for the documentation.
    const TRANSPOSES: [&'static str; 2];

    /// Cotangent of the left input, from the output's cotangent and the right input.
    fn transpose_left(&self, g: &Tensor, y: &Tensor, c: &Vjp) -> Result<Tensor>;
    /// Cotangent of the right input, from the output's cotangent and the left input.
    fn transpose_right(&self, g: &Tensor, x: &Tensor, c: &Vjp) -> Result<Tensor>;
    /// Batching rule.
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs>;

    /// What the tape keeps: each input for the other's gradient.
    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }
    /// Reverse rule.
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let left = if c.needs(0) { Some(self.transpose_left(g, c.input(1)?, c)?) } else { None };
        let right = if c.needs(1) { Some(self.transpose_right(g, c.input(0)?, c)?) } else { None };
        Ok(smallvec![left, right])
    }
    /// Forward rule: the product rule.
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let left = t[0].as_ref().map(|t| bind(self.clone(), &[t, x[1]])).transpose()?;
        let right = t[1].as_ref().map(|t| bind(self.clone(), &[x[0], t])).transpose()?;
        Ok(smallvec![added(left, right)?])
    }
}

/// Functions whose rules are all written out.
pub trait General: Operation {
    /// The reverse rule as a formula of the cotangent `g`, the inputs and the output `o`, for the docs.
    const VJP: &'static str;
    /// The forward rule, with the tangent `t`.
    const JVP: &'static str;

    /// What the tape keeps.
    fn saves(&self, needs: Needs, inputs: usize) -> Saves;
    /// Reverse rule.
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads>;
    /// Forward rule.
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads>;
    /// Batching rule.
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs>;
}

/// The formula of a rule that comes from the composition.
const BY_PARTS: &str = "by its composition";

/// Which interpreters an operation of class Composite has its own rule for.
#[derive(Clone, Copy)]
pub struct Own {
    /// An own reverse rule.
    pub vjp: bool,
    /// An own forward rule.
    pub jvp: bool,
    /// An own batching rule.
    pub batch: bool,
}

impl Own {
    /// No rules.
    pub const NONE: Own = Own { vjp: false, jvp: false, batch: false };
    /// Rules for all of them.
    pub const ALL: Own = Own { vjp: true, jvp: true, batch: true };
}

/// Fused kernels that equal a composition of other operations. `Tape`, `Dual` and `Batch` replace it by the
/// composition unless it has an own rule for them; the others pass it on. So a fused kernel needs no
/// derivatives of its own.
pub trait Composite: Operation {
    /// The reverse rule as a formula, for the documentation, unless the composition has it.
    const VJP: &'static str = BY_PARTS;
    /// The forward rule.
    const JVP: &'static str = BY_PARTS;
    /// Which own rules exist.
    const OWN: Own = Own::NONE;

    /// The same function by other operations.
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors>;
    /// [`Composite::OWN`], or what of it this one has.
    fn own(&self) -> Own {
        Self::OWN
    }
    /// What the own reverse rule keeps.
    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::NONE
    }
    /// Own reverse rule.
    fn vjp(&self, _c: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Err(missing(self.name(), "reverse"))
    }
    /// Own forward rule.
    fn jvp(&self, _x: &[&Tensor], _y: &[Tensor], _t: &[Option<Tensor>]) -> Result<Grads> {
        Err(missing(self.name(), "forward"))
    }
    /// Own batching rule.
    fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Err(missing(self.name(), "batching"))
    }
}

#[cold]
fn missing(name: &str, rule: &str) -> Error {
    Error::unsupported(format!("internal: {name} has no own {rule} rule; it is decomposed instead"))
}

/// Functions with integer or truth values, or none at all of the inputs' derivatives.
pub trait Discrete: Operation {
    /// Batching rule.
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs>;
    /// Nothing is kept.
    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::NONE
    }
    /// No gradient.
    fn vjp(&self, _c: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(Grads::new())
    }
    /// No tangent.
    fn jvp(&self, _x: &[&Tensor], y: &[Tensor], _t: &[Option<Tensor>]) -> Result<Grads> {
        Ok(y.iter().map(|_| None).collect())
    }
}

/// The class of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// See [`Elementwise`].
    Elementwise,
    /// See [`Linear`].
    Linear,
    /// See [`Bilinear`].
    Bilinear,
    /// See [`General`].
    General,
    /// See [`Composite`].
    Composite,
    /// See [`Discrete`].
    Discrete,
}

/// Under autocast: the type an operation computes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// The low precision of the autocast region: matrix products.
    Low,
    /// float32: exponentials, logarithms, sums, losses.
    F32,
    /// Whatever the inputs have; mixed inputs promote.
    Any,
    /// That of the row, for operations which stand for all rows of the tables: its column.
    Row,
}
