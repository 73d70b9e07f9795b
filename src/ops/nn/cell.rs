//! A step of a recurrent cell as one operation: the product of the hidden state, the gates, and one entry of
//! the tape. The product of the input is made for all times at once, before.
//!
//! Read next: `src/ops/nn/recurrent.rs`, all steps of a layer; `src/math/cells.rs`, the formulas;
//! `src/cpu/rows/cell.rs`, their loops.

use crate::cpu::rows::cell as kernels;
use crate::interp;
use crate::math::cells::{Cotangents, Gated, Gru, Lstm, MOST, Plain};
use crate::math::real::Real;
use crate::ops::contract::linear::{AffineVjp, finished, rows, unrolled};
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::pointwise::reading::spent;
use crate::ops::pointwise::sym::{self, Sym};
use crate::ops::prelude::*;
use crate::ops::views::join::cat;

/// The cells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Long short-term memory, whose state is a pair.
    Lstm,
    /// Gated recurrent units.
    Gru,
    /// One gate, the hyperbolic tangent.
    Tanh,
    /// One gate, the positive part.
    Relu,
}

/// Runs an expression with `$cell` bound to the formulas of a kind.
macro_rules! with_cell {
    ($kind:expr, $cell:ident => $body:expr) => {
        match $kind {
            Kind::Lstm => {
                let $cell = Lstm;
                $body
            }
            Kind::Gru => {
                let $cell = Gru;
                $body
            }
            kind => {
                let $cell = Plain { relu: kind == Kind::Relu };
                $body
            }
        }
    };
}
pub(super) use with_cell;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Lstm => "lstm_cell",
            Kind::Gru => "gru_cell",
            Kind::Tanh | Kind::Relu => "rnn_cell",
        }
    }
    /// The name of a layer of such cells.
    pub(super) fn layer(self) -> &'static str {
        match self {
            Kind::Lstm => "lstm",
            Kind::Gru => "gru",
            Kind::Tanh | Kind::Relu => "rnn",
        }
    }
    pub(super) fn gates(self) -> usize {
        with_cell!(self, cell => cell.gates())
    }
    pub(super) fn has_cell(self) -> bool {
        with_cell!(self, cell => cell.has_cell())
    }
    pub(super) fn differ(self) -> bool {
        with_cell!(self, cell => cell.differ())
    }
    fn kept(self) -> usize {
        with_cell!(self, cell => cell.kept())
    }
    /// The operations on numbers of a step, and of its VJP.
    pub(super) fn costs(self) -> [u64; 2] {
        let step = spent(|v| with_cell!(self, cell => cell.step([v; MOST], [v; MOST], v)));
        let vjp = spent(|v| {
            let g = Cotangents { out: v, state: v, kept: [v; MOST] };
            with_cell!(self, cell => cell.vjp([v; MOST], [v; 2], g))
        });
        [step, vjp]
    }
    /// The values of a step, as operations.
    fn step(self, values: &[Tensor]) -> Result<[Tensor; 6]> {
        let count = self.gates();
        sym::record(values, |v| {
            let before = v[2 * count];
            let (x, h) = (padded(&v[..count]), padded(&v[count..2 * count]));
            let (kept, after, out) = with_cell!(self, cell => cell.step(x, h, before));
            [out, after, kept[0], kept[1], kept[2], kept[3]]
        })
    }
}

/// The numbers of a product, and zeros for those that it lacks.
fn padded(values: &[Sym]) -> [Sym; MOST] {
    std::array::from_fn(|k| values.get(k).copied().unwrap_or_else(|| Sym::lit(0.0)))
}

/// A tensor's last axis in `count` pieces, in the dtype that kernels compute in.
fn pieces(x: &Tensor, count: usize) -> Result<Vec<Tensor>> {
    let wide = x.cast(x.dtype().compute())?;
    let n = x.shape().at(x.rank() - 1) / count;
    (0..count).map(|k| wide.narrow(-1, k * n, n)).collect()
}

/// A step of a cell. Inputs: the product of the input `[..., gates * n]`, the weight `[gates * n, k]`, the
/// hidden state `[..., k]`, the cell state `[..., n]` if the kind has one, and a bias `[gates * n]` if
/// `bias`. Outputs: the hidden state, the cell state, and what derivatives read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// Which cell.
    pub kind: Kind,
    /// Whether there is a bias.
    pub bias: bool,
}

impl Cell {
    /// The state that the gates change, among the inputs.
    pub(super) fn state(&self) -> usize {
        if self.kind.has_cell() { 3 } else { 2 }
    }
    /// The bias among them.
    pub(super) fn bias<'a, T>(&self, x: &[&'a T]) -> Option<&'a T> {
        x.get(self.state() + 1).copied()
    }
    /// Raises unless the inputs fit, with products of the input of shape `gates` at each step.
    pub(super) fn check(&self, name: &str, lead: &str, gates: Shape, x: &[&Tensor]) -> Result<()> {
        let (weight, hidden, state) = (x[1].shape(), x[2].shape(), x[self.state()].shape());
        let fits = state.rank() > 0 && hidden.rank() == state.rank() && weight.rank() == 2 && {
            let last = state.rank() - 1;
            let rows = self.kind.gates() * state.at(last);
            gates == state.with(last, rows)
                && hidden == state.with(last, weight.at(1))
                && weight.at(0) == rows
                && (self.kind.has_cell() || weight.at(1) == state.at(last))
                && self.bias(x).is_none_or(|bias| bias.shape().to_vec() == [rows])
        };
        if fits { Ok(()) } else { Err(self.misfit(name, lead, x)) }
    }
    /// The error for inputs that do not fit; `lead` stands before the last axis of the gates.
    pub(super) fn misfit(&self, name: &str, lead: &str, x: &[&Tensor]) -> Error {
        let count = self.kind.gates();
        let shapes: Vec<String> = x.iter().map(|x| x.shape().to_string()).collect();
        let states = match self.kind.has_cell() {
            true => "hidden state (..., k), cell state (..., n)",
            false => "state (..., n)",
        };
        Error::shape(format!(
            "{name}: operands of shapes {}; expected gates {lead}{count} n), weight ({count} n, k), {states} \
             and bias ({count} n)",
            shapes.join(", ")
        ))
    }
}

kernel! {
    Cell, self.kind.name(), |self, x| -> Arrays {
        if x[0].device() != Device::Cpu {
            return by_parts(self, x);
        }
        let sum = finished(&rows(x[2])?, x[1], self.bias(x), None)?.0;
        let sum = unrolled(sum, x[2])?;
        let out = with_cell!(self.kind, cell => kernels::cell(&cell, x[0], &sum, x[self.state()]))?;
        Ok(out.into_iter().collect())
    },
    /// Those of the product, and those of the formula for each element of the state.
    flops |x, y| {
        let (gates, [each, _]) = (x[0].numel(), self.kind.costs());
        cost::product(gates, x[1].dim(1)) + u64::from(self.bias) * gates as u64 + cost::each(&y[..1], each)
    }
}

impl Composite for Cell {
    const VJP: &'static str =
        "with h that of the gates: h for the input's product, h W, h' x and the sum of h";
    const OWN: Own = Own { vjp: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let product = x[2].linear(x[1], self.bias(x), None)?;
        let mut values = pieces(x[0], self.kind.gates())?;
        values.extend(pieces(&product, self.kind.gates())?);
        values.extend(pieces(x[self.state()], 1)?);
        let [out, after, kept @ ..] = self.kind.step(&values)?;
        let dtype = x[0].dtype();
        let mut all = smallvec![out.cast(dtype)?];
        if self.kind.has_cell() {
            all.push(after.cast(dtype)?);
        }
        all.push(cat(&kept[..self.kind.kept()], -1)?);
        Ok(all)
    }
    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        // Without a cell state no formula reads the state after the step.
        Saves::STATISTICS
            .and(Saves::input(1).when(needs.has(2)))
            .and(Saves::input(2).when(needs.has(1)))
            .and(Saves::input(self.state()))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let (has_cell, state) = (self.kind.has_cell(), self.state());
        let kept = c.output(1 + usize::from(has_cell))?;
        let after = if has_cell { c.output(1)? } else { c.input(state)? };
        let given = |k: usize| g.get(k).and_then(Option::as_ref);
        let g = [given(0), has_cell.then(|| given(1)).flatten(), given(1 + usize::from(has_cell))];
        if g.iter().all(Option::is_none) {
            return Ok(Grads::new());
        }
        let op = CellVjp { kind: self.kind, given: g.map(|g| g.is_some()) };
        let inputs = [kept, c.input(state)?, after].into_iter().chain(g.into_iter().flatten());
        let mut found = bind(op, &inputs.collect::<SmallVec<[&Tensor; 6]>>())?;
        let dstate = found.pop().ok_or_else(no_output)?;
        let sums = &found[found.len() - 1];

        let bias = state + 1;
        let wants = [c.needs(2), c.needs(1), self.bias && c.needs(bias)];
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![sums];
        if wants[0] {
            inputs.push(c.input(1)?);
        }
        if wants[1] {
            inputs.push(c.input(2)?);
        }
        let mut products = bind(AffineVjp { act: None, wants }, &inputs)?.into_iter();
        let [dhidden, dweight, dbias] = wants.map(|wanted| if wanted { products.next() } else { None });
        let dx = Some(found[0].clone());
        Ok(match has_cell {
            true => smallvec![dx, dweight, dhidden, Some(dstate), dbias],
            false => smallvec![dx, dweight, dhidden.map(|d| d.add(&dstate)).transpose()?, dbias],
        })
    }
}

/// The gradients of the gates. Inputs: what the step kept, the state before and after it, and the given
/// cotangents. Outputs: the cotangents of the product of the input, of that of the hidden state unless they
/// are the same, and of the state before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CellVjp {
    /// Which cell.
    pub kind: Kind,
    /// Whether the hidden state, the cell state and what the step kept have cotangents.
    pub given: [bool; 3],
}

impl CellVjp {
    /// The cotangents among the inputs.
    fn cotangents<'a, T>(&self, x: &[&'a T]) -> [Option<&'a T>; 3] {
        let mut rest = x[3..].iter().copied();
        self.given.map(|is_given| if is_given { rest.next() } else { None })
    }
}

kernel! {
    CellVjp, self.kind.name(), |self, x| -> Arrays {
        if x[0].device() != Device::Cpu {
            return by_parts(self, x);
        }
        let g = self.cotangents(x);
        let out = with_cell!(self.kind, cell => kernels::cell_vjp(&cell, x[0], [x[1], x[2]], g))?;
        Ok(out.into_iter().collect())
    },
    /// Those of the formula for each element of the state.
    flops |x, _y| {
        cost::each(&x[1..2], self.kind.costs()[1])
    }
}

impl Composite for CellVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (kept, mut values) = (self.kind.kept(), Vec::new());
        for state in &x[1..3] {
            values.extend(pieces(state, 1)?);
        }
        values.extend(pieces(x[0], kept)?);
        for (g, count) in self.cotangents(x).into_iter().zip([1, 1, kept]) {
            match g {
                Some(g) => values.extend(pieces(g, count)?),
                None => values.extend(std::iter::repeat_n(values[0].zeros_like()?, count)),
            }
        }
        let all = sym::record(&values, |v| {
            let (before, after) = v.split_at(2 + kept);
            let g = Cotangents { out: after[0], state: after[1], kept: padded(&after[2..]) };
            let states = [before[0], before[1]];
            let (dx, dh, dstate) = with_cell!(self.kind, cell => cell.vjp(padded(&before[2..]), states, g));
            [dx[0], dx[1], dx[2], dx[3], dh[0], dh[1], dh[2], dh[3], dstate]
        })?;
        let (dtype, count) = (x[1].dtype(), self.kind.gates());
        let mut out = smallvec![cat(&all[..count], -1)?.cast(dtype)?];
        if self.kind.differ() {
            out.push(cat(&all[MOST..MOST + count], -1)?.cast(dtype)?);
        }
        // A constant where the state does not reach the next one.
        out.push(all[2 * MOST].cast(dtype)?.expand(&x[1].shape())?);
        Ok(out)
    }
}

/// Binds an operation on a cell's operands, as it is where they have one float dtype; operands of different
/// dtypes are promoted, and where that is no float the operation runs by its parts.
pub(super) fn run(op: impl Composite<Out = Tensors>, x: &[&Tensor]) -> Result<Tensors> {
    let dtype = x.iter().fold(x[0].dtype(), |dtype, x| dtype.promote(x.dtype()));
    if !dtype.is_float() {
        return op.decompose(x);
    }
    // Autocast makes one dtype of those that it converts.
    let are_made_alike = interp::autocasting() && x.iter().all(|x| interp::eligible(x.dtype()));
    if are_made_alike || x.iter().all(|x| x.dtype() == dtype) {
        return bind(op, x);
    }
    let alike: Vec<Tensor> = x.iter().map(|x| x.cast(dtype)).collect::<Result<_>>()?;
    bind(op, &alike.iter().collect::<SmallVec<[&Tensor; 5]>>())
}

/// A step of a cell: the hidden state, and the cell state if the kind has one. Operands of different dtypes
/// are promoted.
///
/// # Errors
/// One that names the operand whose shape does not fit.
pub fn cell(
    kind: Kind, gates: &Tensor, states: &[&Tensor], weight: &Tensor, bias: Option<&Tensor>,
) -> Result<Tensors> {
    let mut x: SmallVec<[&Tensor; 5]> = smallvec![gates, weight];
    x.extend(states.iter().copied());
    x.extend(bias);
    let op = Cell { kind, bias: bias.is_some() };
    op.check(kind.name(), "(..., ", gates.shape(), &x)?;
    let mut out = run(op, &x)?;
    out.truncate(states.len());
    Ok(out)
}
