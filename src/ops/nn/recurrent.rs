//! A recurrent layer in one direction as one operation: all its steps, one entry of the tape, and products
//! by the weight for which that is packed once. Its derivative walks back through the steps in the same way,
//! and multiplies all cotangents of the gates by all hidden states at once.
//!
//! Read next: `src/ops/nn/cell.rs`, a step; `src/cpu/rows/recurrent.rs`, the walks.

use crate::cpu::rows::recurrent::{self as kernels, Walked};
use crate::math::cells::{Gru, Lstm, Plain};
use crate::ops::nn::cell::{self, Cell, CellVjp, Kind, with_cell};
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::prelude::*;
use crate::ops::views::join::{cat, stack};

/// The steps of a layer. Inputs: the products of the input `[time, ..., gates * n]`, the weight
/// `[gates * n, n]`, the first hidden state `[..., n]`, the first cell state if the kind has one, and a bias
/// `[gates * n]` if `bias`. Outputs, at all times: the hidden states, the cell states, and what derivatives
/// read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recurrent {
    /// Its steps.
    pub cell: Cell,
    /// Whether the last time is the first step.
    pub backwards: bool,
}

/// The times in the order of steps.
fn order(time: usize, backwards: bool) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator {
    (0..time).map(move |step| (if backwards { time - 1 - step } else { step }) as i64)
}

/// Tensors of all steps as one tensor of all times.
fn in_time(mut steps: Vec<Tensor>, backwards: bool) -> Result<Tensor> {
    if backwards {
        steps.reverse();
    }
    stack(&steps, 0)
}

kernel! {
    Recurrent, self.cell.kind.layer(), |self, x| -> Arrays {
        if x[0].device() != Device::Cpu {
            return by_parts(self, x);
        }
        let (first, bias) = ([x[2], x[self.cell.state()]], self.cell.bias(x));
        let out = with_cell!(self.cell.kind, cell => {
            kernels::recurrent(&cell, self.backwards, x[0], x[1], first, bias)
        })?;
        Ok(out.into_iter().collect())
    },
    /// Those of its steps.
    flops |x, y| {
        let (gates, [each, _]) = (x[0].numel(), self.cell.kind.costs());
        let bias = u64::from(self.cell.bias) * gates as u64;
        cost::product(gates, x[1].dim(1)) + bias + cost::each(&y[..1], each)
    }
}

impl Composite for Recurrent {
    const VJP: &'static str = "step by step from the last, with h that of all gates: h for the input's \
                               product, h' times the hidden states before, and the sum of h";
    const OWN: Own = Own { vjp: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let states = self.cell.state() - 1;
        let mut all = vec![Vec::new(); states + 1];
        let mut inputs: Vec<Tensor> = x.iter().map(|&x| x.clone()).collect();
        for time in order(x[0].shape().at(0), self.backwards) {
            inputs[0] = x[0].select_index(0, time)?;
            let out = cell::run(self.cell, &inputs.iter().collect::<SmallVec<[&Tensor; 5]>>())?;
            inputs[2..2 + states].clone_from_slice(&out[..states]);
            all.iter_mut().zip(out).for_each(|(steps, out)| steps.push(out));
        }
        all.into_iter().map(|steps| in_time(steps, self.backwards)).collect()
    }
    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        let hidden = needs.has(1) || !self.cell.kind.has_cell();
        let outputs = if hidden { Saves::OUTPUTS } else { Saves::STATISTICS };
        outputs.and(Saves::input(1)).and(Saves::input(2).when(hidden)).and(Saves::input(self.cell.state()))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let kind = self.cell.kind;
        let (has_cell, state) = (kind.has_cell(), self.cell.state());
        let given = |k: usize| g.get(k).and_then(Option::as_ref);
        let g = [given(0), has_cell.then(|| given(1)).flatten(), given(1 + usize::from(has_cell))];
        if g.iter().all(Option::is_none) {
            return Ok(Grads::new());
        }
        let wants = [c.needs(1), self.cell.bias && c.needs(state + 1)];
        let op = RecurrentVjp { kind, backwards: self.backwards, given: g.map(|g| g.is_some()), wants };
        let kept = c.output(1 + usize::from(has_cell))?;
        let mut inputs: SmallVec<[&Tensor; 9]> =
            smallvec![kept, c.input(1)?, c.input(state)?, c.output(usize::from(has_cell))?];
        if op.reads_hidden() {
            inputs.extend([c.input(2)?, c.output(0)?]);
        }
        inputs.extend(g.into_iter().flatten());
        let mut found = bind(op, &inputs)?.into_iter();
        let (dx, dhidden) = (found.next(), found.next());
        let dstate = if has_cell { found.next() } else { None };
        let [dweight, dbias] = wants.map(|wanted| if wanted { found.next() } else { None });
        Ok(match has_cell {
            true => smallvec![dx, dweight, dhidden, dstate, dbias],
            false => smallvec![dx, dweight, dhidden, dbias],
        })
    }
}

/// The gradients of a layer. Inputs: what its steps kept, the weight, the state that the gates change, at
/// first and at all times; for the gradient of the weight of a kind with a cell state also the hidden state,
/// at first and at all times; and the given cotangents. Outputs: the cotangents of the products of the input,
/// of the first hidden state, of the first cell state if there is one, and of weight and bias if wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecurrentVjp {
    /// The cell of its steps.
    pub kind: Kind,
    /// Whether the last time was the first step.
    pub backwards: bool,
    /// Whether the hidden states, the cell states and what the steps kept have cotangents.
    pub given: [bool; 3],
    /// Whether the gradients of weight and bias are wanted.
    pub wants: [bool; 2],
}

impl RecurrentVjp {
    /// Whether the hidden states are inputs of their own.
    fn reads_hidden(&self) -> bool {
        self.wants[0] && self.kind.has_cell()
    }
    /// The hidden state among the inputs, at first and at all times.
    fn hidden<'a, T>(&self, x: &[&'a T]) -> [&'a T; 2] {
        if self.reads_hidden() { [x[4], x[5]] } else { [x[2], x[3]] }
    }
    /// The cotangents among them.
    fn cotangents<'a, T>(&self, x: &[&'a T]) -> [Option<&'a T>; 3] {
        let mut rest = x[if self.reads_hidden() { 6 } else { 4 }..].iter().copied();
        self.given.map(|is_given| if is_given { rest.next() } else { None })
    }
}

kernel! {
    RecurrentVjp, self.kind.layer(), |self, x| -> Arrays {
        if x[0].device() != Device::Cpu {
            return by_parts(self, x);
        }
        let [wants_weight, wants_bias] = self.wants;
        let hidden = wants_weight.then(|| self.hidden(x));
        let walked = Walked { kept: x[0], weight: x[1], states: [x[2], x[3]], hidden };
        let g = self.cotangents(x);
        let out = with_cell!(self.kind, cell => {
            kernels::recurrent_vjp(&cell, self.backwards, &walked, g, wants_bias)
        })?;
        Ok(out.into_iter().collect())
    },
    /// Those of the steps: a product and the formula for each element of the state; and of what is made for
    /// all times.
    flops |x, y| {
        let (gates, n) = (y[0].numel(), x[1].dim(1));
        let [weight, bias] = self.wants.map(|wanted| gates as u64 * u64::from(wanted));
        let products = cost::product(gates / self.kind.gates(), x[1].dim(0)) + 2 * weight * n as u64;
        products + bias + cost::each(&x[3..4], self.kind.costs()[1])
    }
}

impl Composite for RecurrentVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (kept, weight, first, all) = (x[0], x[1], x[2], x[3]);
        let times: Vec<i64> = order(kept.shape().at(0), self.backwards).collect();
        let has_cell = self.kind.has_cell();
        let (mut dx, mut sums) = (Vec::new(), Vec::new());
        // Of the hidden state and of the cell state after the step.
        let (mut hidden, mut own): (Option<Tensor>, Option<Tensor>) = (None, None);
        for (step, &time) in times.iter().enumerate().rev() {
            let at = |x: &Tensor| x.select_index(0, time);
            let given = self.cotangents(x).map(|g| g.map(at));
            let [out, state, more] = given.map(|g| g.transpose());
            let g = [added(out?, hidden)?, added(state?, own)?, more?];
            let before = if step > 0 { all.select_index(0, times[step - 1])? } else { first.clone() };
            let inputs = [at(kept)?, before, at(all)?];
            let inputs = inputs.iter().chain(g.iter().flatten()).collect::<SmallVec<[&Tensor; 6]>>();
            let op = CellVjp { kind: self.kind, given: g.each_ref().map(Option::is_some) };
            let mut found = bind(op, &inputs)?;
            let dstate = found.pop().ok_or_else(no_output)?;
            let sum = found.last().ok_or_else(no_output)?.clone();
            dx.push(found.remove(0));
            let product = sum.matmul(weight)?;
            (hidden, own) = match has_cell {
                true => (Some(product), Some(dstate)),
                false => (Some(product.add(&dstate)?), None),
            };
            sums.push(sum);
        }
        let (dx, sums) = (in_time(dx, !self.backwards)?, in_time(sums, !self.backwards)?);
        let mut out: Tensors = smallvec![dx];
        out.extend(hidden.into_iter().chain(own));
        let flat = |x: &Tensor| x.flatten(0, -2);
        if self.wants[0] {
            let [first, all] = self.hidden(x);
            let (first, steps) = (first.unsqueeze(0)?, times.len() - 1);
            let before = match self.backwards {
                true => [all.narrow(0, 1, steps)?, first],
                false => [first, all.narrow(0, 0, steps)?],
            };
            out.push(flat(&sums)?.transpose(0, 1)?.matmul(&flat(&cat(&before, 0)?)?)?);
        }
        if self.wants[1] {
            out.push(flat(&sums)?.sum(Some(&[0]), false)?);
        }
        Ok(out)
    }
}

/// All steps of a layer in one direction: the hidden states of all times, and the last states. Operands of
/// different dtypes are promoted.
///
/// # Errors
/// One that names the operand whose shape does not fit.
pub fn recurrent(
    kind: Kind, backwards: bool, gates: &Tensor, states: &[&Tensor], weight: &Tensor, bias: Option<&Tensor>,
) -> Result<(Tensor, Tensors)> {
    let mut x: SmallVec<[&Tensor; 5]> = smallvec![gates, weight];
    x.extend(states.iter().copied());
    x.extend(bias);
    let op = Recurrent { cell: Cell { kind, bias: bias.is_some() }, backwards };
    let shape = gates.shape();
    let steps = if shape.rank() > 1 { shape.at(0) } else { 0 };
    if steps == 0 || weight.shape().iter().last() != x[op.cell.state()].shape().iter().last() {
        return Err(op.cell.misfit(kind.layer(), "(time, ..., ", &x));
    }
    op.cell.check(kind.layer(), "(time, ..., ", shape.removed(0), &x)?;
    if steps == 1 {
        // The weight is read once, so it is not packed.
        let states = cell::cell(kind, &gates.select_index(0, 0)?, states, weight, bias)?;
        return Ok((states[0].unsqueeze(0)?, states));
    }
    let out = cell::run(op, &x)?;
    let last = if backwards { 0 } else { -1 };
    let states = out[..states.len()].iter().map(|x| x.select_index(0, last)).collect::<Result<_>>()?;
    Ok((out[0].clone(), states))
}
