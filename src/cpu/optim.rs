//! Fused optimiser steps: one parallel loop over all parameters (`src/cpu/run/many.rs`) reads and writes each
//! element of parameter, gradient and state once. float32 and float64 are updated in their own precision,
//! halves in float32 with one rounding at the end.

use crate::arguments::optim::{Adam, Elementwise, Sgd, Slot, UpdateRule};
use crate::cpu::create::fill;
use crate::cpu::pointwise::copy::{copy_into, duplicate};
use crate::cpu::prelude::*;
use crate::cpu::run::many::Row;
use crate::math::lane::{F32, F64};
use crate::math::real::Real;
use crate::math::updates::{Move, Visit};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state (the parameter first) and gradient of one parameter, in the precision of the loop.
struct Wide<T> {
    state: SmallVec<[Shared<T>; 4]>,
    grad: Shared<T>,
    length: usize,
    step: i32,
}

/// Contiguous copies of arrays that a loop cannot use directly, and the arrays that they are copied back to.
#[derive(Default)]
struct Copies(Vec<(Array, Option<Array>)>);

impl Copies {
    /// Returns the start of `x`, or of a copy in the precision of `T`, which is copied back if it is written.
    fn start<T: Element>(&mut self, x: &Array, is_alone: bool, is_written: bool) -> Result<Shared<T>> {
        if x.dtype() == T::DTYPE && x.is_contiguous() && is_alone {
            return Ok(Shared::new(x.ptr::<T>()));
        }
        let copy = if x.dtype() == T::DTYPE { duplicate(x)? } else { cast(x, T::DTYPE)? };
        let start = Shared::new(copy.ptr::<T>());
        self.0.push((copy, is_written.then(|| x.clone())));
        Ok(start)
    }

    /// Copies the results into the original arrays.
    fn write_back(self) -> Result<()> {
        let written = self.0.iter().filter_map(|(copy, to)| Some((copy, to.as_ref()?)));
        written.into_iter().try_for_each(|(copy, to)| copy_into(to, &cast(copy, to.dtype())?))
    }
}

/// Whether `x` shares no memory with `others`.
fn is_alone(x: &Array, others: &[&Array]) -> bool {
    let (start, end) = x.buffer().span();
    others.iter().map(|o| o.buffer().span()).all(|(s, e)| e <= start || end <= s)
}

/// Applies `body` to all `slots` whose parameters compute in the precision of `T`, as one loop.
fn sweep<T: Element>(slots: &[Slot], body: &impl PartUpdate<T>) -> Result<()> {
    let mut copies = Copies::default();
    let mut items: Vec<Wide<T>> = Vec::new();
    for slot in slots.iter().filter(|s| s.param().dtype().compute() == T::DTYPE) {
        let mut state = SmallVec::new();
        for (i, &x) in slot.state.iter().enumerate() {
            state.push(copies.start(x, is_alone(x, &slot.state[..i]), true)?);
        }
        let grad = copies.start(slot.grad, is_alone(slot.grad, slot.state), false)?;
        items.push(Wide { state, grad, length: slot.param().numel(), step: slot.step });
    }
    if items.is_empty() {
        return Ok(());
    }
    Row::new(items.iter().map(|item| item.length)).for_each(|i, range| {
        let item = &items[i];
        let mut state = SmallVec::<[&mut [T]; 4]>::new();
        // SAFETY: every array has `length` elements; a written one overlaps no other (the caller checks that
        // between parameters, `is_alone` within one); parts are disjoint.
        item.state.iter().for_each(|p| state.push(unsafe { p.part(range.start, range.len()) }));
        // SAFETY: as above.
        let grad = unsafe { item.grad.view(range.start, range.len()) };
        body.run(item.step, &mut state, grad);
    });
    copies.write_back()
}

/// The update of a part of one parameter: `state` is written, `grad` is read.
trait PartUpdate<T>: Sync {
    /// Updates one part; `step` counts from 1.
    fn run(&self, step: i32, state: &mut [&mut [T]], grad: &[T]);
}

/// Implements [`PartUpdate`] for both precisions; [`run_plain`] chooses the instruction set of the loop.
macro_rules! step {
    (
        $rule:ident $($t:ident)*,
        |$this:ident, $step:ident, $state:ident, $grad:ident, $float:ident| $body:block
    ) => {
        $(impl PartUpdate<$t> for $rule {
            fn run(&self, step: i32, state: &mut [&mut [$t]], grad: &[$t]) {
                struct Loop<'a, 'b>(&'a $rule, i32, &'a mut [&'b mut [$t]], &'a [$t]);
                impl PlainBody for Loop<'_, '_> {
                    type Output = ();
                    #[inline(always)]
                    fn run(self) {
                        #[allow(non_camel_case_types)]
                        type $float = $t;
                        let Loop($this, $step, $state, $grad) = self;
                        $body
                    }
                }
                run_plain(Loop(self, step, state, grad))
            }
        })*
    };
}

step!(Sgd f32 f64, |this, step, state, grad, Float| {
    let (lr, decay) = (this.lr as Float, this.weight_decay as Float);
    let (momentum, fresh) = (this.momentum as Float, (1.0 - this.dampening) as Float);
    let sign: Float = if this.maximize { -1.0 } else { 1.0 };
    // Zero decay leaves the parameter out of the sum: zero times infinity is NaN.
    let decays = decay != 0.0;
    match state {
        [x] => {
            for (x, &g) in x.iter_mut().zip(grad) {
                *x -= lr * (sign * g + if decays { decay * *x } else { 0.0 });
            }
        }
        [x, m, ..] => {
            for ((x, m), &g) in x.iter_mut().zip(m.iter_mut()).zip(grad) {
                let g = sign * g + if decays { decay * *x } else { 0.0 };
                *m = if step == 1 { g } else { momentum * *m + fresh * g };
                *x -= lr * if this.nesterov { g + momentum * *m } else { *m };
            }
        }
        [] => {}
    }
});

step!(Adam f32 f64, |this, step, state, grad, Float| {
    let (b1, b2, eps) = (this.beta1 as Float, this.beta2 as Float, this.eps as Float);
    let (new1, new2) = ((1.0 - this.beta1) as Float, (1.0 - this.beta2) as Float);
    let (rate, root) = this.corrections(step);
    let (shrink, decay) = this.decay();
    let (rate, root, shrink, decay) = (rate as Float, root as Float, shrink as Float, decay as Float);
    let sign: Float = if this.maximize { -1.0 } else { 1.0 };
    // As above.
    let decays = decay != 0.0;
    match state {
        [x, m, v] => {
            for (((x, m), v), &g) in x.iter_mut().zip(m.iter_mut()).zip(v.iter_mut()).zip(grad) {
                let g = sign * g + if decays { decay * *x } else { 0.0 };
                *m = b1 * *m + new1 * g;
                *v = b2 * *v + new2 * (g * g);
                *x = *x * shrink - rate * *m / (v.sqrt() * root + eps);
            }
        }
        [x, m, v, top] => {
            for ((((x, m), v), top), &g) in
                x.iter_mut().zip(m.iter_mut()).zip(v.iter_mut()).zip(top.iter_mut()).zip(grad)
            {
                let g = sign * g + if decays { decay * *x } else { 0.0 };
                *m = b1 * *m + new1 * g;
                *v = b2 * *v + new2 * (g * g);
                *top = if *v > *top { *v } else { *top };
                *x = *x * shrink - rate * *m / (top.sqrt() * root + eps);
            }
        }
        _ => {}
    }
});

/// A part of one parameter, and the rule that moves it.
struct Part<'a, 'b, T> {
    rule: &'a Elementwise,
    state: &'a mut [&'b mut [T]],
    grad: &'a [T],
}

/// Implements [`PartUpdate`] for rules of one formula, in the precision of a lane.
macro_rules! elementwise {
    ($($t:ident $lane:ident),*) => {$(
        impl PartUpdate<$t> for Elementwise {
            fn run(&self, _step: i32, state: &mut [&mut [$t]], grad: &[$t]) {
                self.formula.visit(Part { rule: self, state, grad });
            }
        }

        impl Visit for Part<'_, '_, $t> {
            fn visit<const STATE: usize, F: Move>(self, formula: F) {
                struct Loop<'a, 'b, const STATE: usize, F>(Part<'a, 'b, $t>, F);
                impl<const STATE: usize, F: Move> PlainBody for Loop<'_, '_, STATE, F> {
                    type Output = ();
                    #[inline(always)]
                    fn run(self) {
                        let Loop(Part { rule, state, grad }, formula) = self;
                        let numbers = rule.numbers.map($lane::lit);
                        let [decay, shrink, sign] = rule.preparation().map($lane::lit);
                        let step = |[x, a, b, d]: [$t; 4], g: $t| {
                            let (x, g) = Elementwise::prepared(decay, shrink, sign, $lane(x), $lane(g));
                            formula.apply(numbers, [x, $lane(a), $lane(b), $lane(d)], g).map(|v| v.0)
                        };
                        let n = grad.len();
                        match state {
                            [x, a] if STATE == 1 => {
                                let (x, a) = (&mut x[..n], &mut a[..n]);
                                for i in 0..n {
                                    [x[i], a[i], ..] = step([x[i], a[i], 0.0, 0.0], grad[i]);
                                }
                            }
                            [x, a, b] if STATE == 2 => {
                                let (x, a, b) = (&mut x[..n], &mut a[..n], &mut b[..n]);
                                for i in 0..n {
                                    [x[i], a[i], b[i], _] = step([x[i], a[i], b[i], 0.0], grad[i]);
                                }
                            }
                            [x, a, b, d] if STATE == 3 => {
                                let (x, a, b, d) = (&mut x[..n], &mut a[..n], &mut b[..n], &mut d[..n]);
                                for i in 0..n {
                                    [x[i], a[i], b[i], d[i]] = step([x[i], a[i], b[i], d[i]], grad[i]);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                run_plain(Loop::<STATE, F>(self, formula))
            }
        }
    )*};
}
elementwise!(f32 F32, f64 F64);

/// A step by a formula, apart so that the loops of SGD and Adam are inlined as they were without it.
#[cold]
#[inline(never)]
fn by_formula(slots: &[Slot], rule: &Elementwise) -> Result<()> {
    sweep::<f32>(slots, rule)?;
    sweep::<f64>(slots, rule)
}

/// Applies one step of `rule`, in place, to parameters that share no memory; none if `found` is not 0.
#[inline]
pub fn step(slots: &[Slot], rule: &UpdateRule, found: Option<&Array>) -> Result<()> {
    if let Some(found) = found
        && found.item()? != 0.0
    {
        return Ok(());
    }
    fn both(slots: &[Slot], body: &(impl PartUpdate<f32> + PartUpdate<f64>)) -> Result<()> {
        sweep::<f32>(slots, body)?;
        sweep::<f64>(slots, body)
    }
    match rule {
        UpdateRule::Sgd(s) => both(slots, s),
        UpdateRule::Adam(a) => both(slots, a),
        UpdateRule::Elementwise(e) => by_formula(slots, e),
    }
}

/// Loops over whole gradients, for one precision.
trait Gradient: Element {
    /// Multiplies `x` by `factor`; returns whether an element was infinite or NaN.
    fn scale(x: &mut [Self], factor: f64) -> bool;
    /// Returns the sum of squares, accumulated as eight interleaved sums.
    fn squares(x: &[Self]) -> f64;
}

/// Implements [`Gradient`] for a float type, given with the mask of its exponent bits.
macro_rules! gradient {
    ($($t:ident $exponent:literal),*) => {
        $(impl Gradient for $t {
            fn scale(x: &mut [$t], factor: f64) -> bool {
                struct Loop<'a>(&'a mut [$t], $t);
                impl PlainBody for Loop<'_> {
                    type Output = bool;
                    #[inline(always)]
                    fn run(self) -> bool {
                        // Accumulated without a branch per element.
                        let mut found = false;
                        for v in self.0.iter_mut() {
                            found |= v.to_bits() & $exponent == $exponent;
                            *v *= self.1;
                        }
                        found
                    }
                }
                run_plain(Loop(x, factor as $t))
            }

            fn squares(x: &[$t]) -> f64 {
                struct Loop<'a>(&'a [$t]);
                impl PlainBody for Loop<'_> {
                    type Output = f64;
                    #[inline(always)]
                    fn run(self) -> f64 {
                        let mut sums = [0.0; 8];
                        let blocks = self.0.chunks_exact(8);
                        let rest = blocks.remainder();
                        for block in blocks {
                            for (s, &v) in sums.iter_mut().zip(block) {
                                *s += f64::from(v) * f64::from(v);
                            }
                        }
                        rest.iter().zip(&mut sums).for_each(|(&v, s)| *s += f64::from(v) * f64::from(v));
                        sums.iter().sum()
                    }
                }
                run_plain(Loop(x))
            }
        })*
    };
}
gradient!(f32 0x7f80_0000, f64 0x7ff0_0000_0000_0000);

/// Returns the arrays that compute in the precision of `T` as a row, and the start of each or of its copy.
fn gather<T: Element>(
    arrays: &[&Array], copies: &mut Copies, are_written: bool,
) -> Result<(Row, Vec<Shared<T>>)> {
    let wide: Vec<&Array> = arrays.iter().copied().filter(|x| x.dtype().compute() == T::DTYPE).collect();
    let starts = wide.iter().map(|x| copies.start(x, true, are_written)).collect::<Result<_>>()?;
    Ok((Row::new(wide.iter().map(|x| x.numel())), starts))
}

/// Multiplies the arrays that compute in the precision of `T`, in one loop; whether one was not finite.
fn scale_all<T: Gradient>(arrays: &[&Array], factor: f64) -> Result<bool> {
    let mut copies = Copies::default();
    let (row, starts) = gather::<T>(arrays, &mut copies, true)?;
    let found = AtomicBool::new(false);
    row.for_each(|i, range| {
        // SAFETY: `gather` made the arrays contiguous, `distinct` keeps them apart; parts are disjoint.
        if T::scale(unsafe { starts[i].part(range.start, range.len()) }, factor) {
            found.store(true, Ordering::Relaxed);
        }
    });
    copies.write_back()?;
    Ok(found.into_inner())
}

/// Multiplies every array in place; writes to `found`, an int32, whether any element was infinite or NaN.
pub fn unscale(arrays: &[&Array], factor: f64, found: &Array) -> Result<()> {
    fill(found, f64::from(scaled(arrays, factor)?))
}

/// Multiplies every array by `factor`, in place; returns whether any element was infinite or NaN.
fn scaled(arrays: &[&Array], factor: f64) -> Result<bool> {
    let mut found = false;
    for wave in distinct(arrays) {
        found |= scale_all::<f32>(&wave, factor)? | scale_all::<f64>(&wave, factor)?;
    }
    Ok(found)
}

/// Splits the arrays into as few lists as possible, such that arrays of one list share no memory.
fn distinct<'a>(arrays: &[&'a Array]) -> Vec<Vec<&'a Array>> {
    let mut order: Vec<&Array> = arrays.to_vec();
    order.sort_by_key(|x| x.buffer().span().0);
    let mut waves: Vec<(usize, Vec<&Array>)> = Vec::new();
    for x in order {
        let (start, end) = x.buffer().span();
        match waves.iter_mut().find(|(last, _)| *last <= start) {
            Some((last, wave)) => {
                *last = end;
                wave.push(x);
            }
            None => waves.push((end, vec![x])),
        }
    }
    waves.into_iter().map(|(_, wave)| wave).collect()
}

/// Multiplies every array by the number `factor`, in place.
pub fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    scaled(arrays, factor.item()?).map(|_| ())
}

/// Returns the root of the sum of all squares, added in float64, where no square of a float32 overflows.
pub fn norm(arrays: &[&Array]) -> Result<Array> {
    let is_double = arrays.iter().any(|x| x.dtype() == DType::F64);
    let total = squares_of::<f32>(arrays)? + squares_of::<f64>(arrays)?;
    Array::full(Shape::SCALAR, total.sqrt(), if is_double { DType::F64 } else { DType::F32 })
}

fn squares_of<T: Gradient>(arrays: &[&Array]) -> Result<f64> {
    let mut copies = Copies::default();
    let (row, starts) = gather::<T>(arrays, &mut copies, false)?;
    // SAFETY: `gather` made the arrays contiguous, and nothing writes them.
    Ok(row.sum(|i, range| T::squares(unsafe { starts[i].view(range.start, range.len()) })))
}
