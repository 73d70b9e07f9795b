//! Optimiser steps, fused: each element of parameter, gradient and state is read and written once.
//!
//! float32 and float64 are updated in their own precision, halves in float32 with one rounding at the end.

use super::copy::{cast, contiguous, copy_into};
use super::isa::{PlainBody, run_plain};
use super::threads::{Shared, parallel_for};
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::optim::{Adam, Sgd};

/// Elements that one thread should handle at least.
const GRAIN: usize = 1 << 14;

/// A loop over stretches of equally long slices: `state` is written, `grad` is read.
trait Step<T>: Sync {
    /// Updates one stretch.
    fn run<const N: usize>(&self, state: [&mut [T]; N], grad: &[T]);
}

/// Applies `step` to contiguous arrays in parallel stretches.
fn sweep<T: Element, const N: usize>(state: [&Array; N], grad: &Array, step: &impl Step<T>) -> Result<()> {
    let g = grad.slice::<T>()?;
    for x in state {
        x.slice::<T>()?;
    }
    let pointers = state.map(|x| Shared::new(x.ptr::<T>()));
    parallel_for(g.len(), GRAIN, |range| {
        // SAFETY: all arrays are contiguous and as long as `g` (checked by the caller), and pieces are
        // disjoint.
        let part = pointers
            .map(|p| unsafe { std::slice::from_raw_parts_mut(p.get().add(range.start), range.len()) });
        step.run(part, &g[range]);
    });
    Ok(())
}

/// Runs `step` in the precision of the parameter, on contiguous copies of whatever is not contiguous or too
/// narrow.
fn on_wide<const N: usize>(state: [&Array; N], grad: &Array, step: impl Step<f32> + Step<f64>) -> Result<()> {
    let wide = state[0].dtype().compute();
    if !wide.is_float() {
        return Err(Error::dtype(format!(
            "optimizers update floating point parameters, got {}",
            state[0].dtype()
        )));
    }
    let grad = contiguous(&cast(grad, wide)?)?;
    let direct = |x: &Array| x.dtype() == wide && x.is_contiguous();
    let mut copies = Vec::with_capacity(N);
    for x in state {
        copies.push(if direct(x) { x.clone() } else { contiguous(&cast(x, wide)?)? });
    }
    let views: [&Array; N] = std::array::from_fn(|i| &copies[i]);
    if wide == DType::F64 {
        sweep::<f64, N>(views, &grad, &step)?;
    } else {
        sweep::<f32, N>(views, &grad, &step)?;
    }
    for (x, copy) in state.into_iter().zip(&copies).filter(|(x, _)| !direct(x)) {
        copy_into(x, &cast(copy, x.dtype())?)?;
    }
    Ok(())
}

/// Writes a step for both precisions; the loop is compiled for every instruction set.
macro_rules! step {
    ($name:ident, |$self:ident, $state:ident, $grad:ident, $float:ident| $body:block) => {
        step!(@one $name, f32, $self, $state, $grad, $float, $body);
        step!(@one $name, f64, $self, $state, $grad, $float, $body);
    };
    (@one $name:ident, $t:ident, $self:ident, $state:ident, $grad:ident, $float:ident, $body:block) => {
        impl Step<$t> for $name {
            fn run<const N: usize>(&self, state: [&mut [$t]; N], grad: &[$t]) {
                struct Loop<'a, const N: usize>($name, [&'a mut [$t]; N], &'a [$t]);
                impl<const N: usize> PlainBody for Loop<'_, N> {
                    type Output = ();
                    #[inline(always)]
                    fn run(self) {
                        #[allow(non_camel_case_types, dead_code)]
                        type $float = $t;
                        let ($self, mut $state, $grad) = (self.0, self.1, self.2);
                        $body
                    }
                }
                run_plain(Loop(*self, state, grad))
            }
        }
    };
}

#[derive(Clone, Copy)]
struct SgdStep(Sgd, bool);

step!(SgdStep, |this, state, grad, Float| {
    let SgdStep(s, with_momentum) = this;
    let (lr, decay) = (s.lr as Float, s.weight_decay as Float);
    let (momentum, fresh) = (s.momentum as Float, (1.0 - s.dampening) as Float);
    let [x, rest @ ..] = &mut state[..] else { return };
    match rest {
        [m, ..] if with_momentum => {
            for ((x, m), &g) in x.iter_mut().zip(m.iter_mut()).zip(grad) {
                let g = g + decay * *x;
                *m = if s.first { g } else { momentum * *m + fresh * g };
                *x -= lr * if s.nesterov { g + momentum * *m } else { *m };
            }
        }
        _ => {
            for (x, &g) in x.iter_mut().zip(grad) {
                *x -= lr * (g + decay * *x);
            }
        }
    }
});

/// One step of SGD on `param`, in place.
pub fn sgd(param: &Array, grad: &Array, momentum: Option<&Array>, s: &Sgd) -> Result<()> {
    match momentum {
        Some(m) => on_wide([param, m], grad, SgdStep(*s, true)),
        None => on_wide([param], grad, SgdStep(*s, false)),
    }
}

#[derive(Clone, Copy)]
struct AdamStep(Adam);

step!(AdamStep, |this, state, grad, Float| {
    let a = this.0;
    let (b1, b2, eps) = (a.beta1 as Float, a.beta2 as Float, a.eps as Float);
    let (new1, new2) = ((1.0 - a.beta1) as Float, (1.0 - a.beta2) as Float);
    let rate = (a.lr / a.bias_correction1) as Float;
    let root = a.bias_correction2.sqrt().recip() as Float;
    // Decoupled decay shrinks the parameter; coupled decay adds to the gradient.
    let shrink = if a.decoupled { (1.0 - a.lr * a.weight_decay) as Float } else { 1.0 };
    let decay = if a.decoupled { 0.0 } else { a.weight_decay as Float };
    let [x, m, v, rest @ ..] = &mut state[..] else { return };
    match rest {
        [top, ..] => {
            for ((((x, m), v), top), &g) in
                x.iter_mut().zip(m.iter_mut()).zip(v.iter_mut()).zip(top.iter_mut()).zip(grad)
            {
                let g = g + decay * *x;
                *m = b1 * *m + new1 * g;
                *v = b2 * *v + new2 * (g * g);
                *top = if *v > *top { *v } else { *top };
                *x = *x * shrink - rate * *m / (top.sqrt() * root + eps);
            }
        }
        [] => {
            for (((x, m), v), &g) in x.iter_mut().zip(m.iter_mut()).zip(v.iter_mut()).zip(grad) {
                let g = g + decay * *x;
                *m = b1 * *m + new1 * g;
                *v = b2 * *v + new2 * (g * g);
                *x = *x * shrink - rate * *m / (v.sqrt() * root + eps);
            }
        }
    }
});

/// One step of Adam or AdamW on `param` and its moments, in place.
pub fn adam(
    param: &Array,
    grad: &Array,
    first: &Array,
    second: &Array,
    largest: Option<&Array>,
    a: &Adam,
) -> Result<()> {
    match largest {
        Some(top) => on_wide([param, first, second, top], grad, AdamStep(*a)),
        None => on_wide([param, first, second], grad, AdamStep(*a)),
    }
}

#[derive(Clone, Copy)]
struct ScaleStep(f64);

step!(ScaleStep, |this, state, grad, Float| {
    let factor = this.0 as Float;
    let [x, ..] = &mut state[..] else { return };
    for (x, &g) in x.iter_mut().zip(grad) {
        *x = factor * g;
    }
});

/// Multiplies `x` by `factor`, in place.
pub fn scale_in_place(x: &Array, factor: f64) -> Result<()> {
    on_wide([x], x, ScaleStep(factor))
}

/// Multiplies every array by `factor`, in place; true if any element of any of them was infinite or NaN.
pub fn unscale_check(grads: &[&Array], factor: f64) -> Result<bool> {
    let mut found = false;
    for g in grads {
        found |= has_non_finite(g)?;
        scale_in_place(g, factor)?;
    }
    Ok(found)
}

fn has_non_finite(x: &Array) -> Result<bool> {
    let wide = contiguous(&cast(x, x.dtype().compute())?)?;
    // A sum of products with zero is zero unless something is not finite; it needs no branch per element.
    Ok(if wide.dtype() == DType::F64 {
        wide.slice::<f64>()?.chunks(1024).any(|c| c.iter().map(|v| v * 0.0).sum::<f64>() != 0.0)
    } else {
        wide.slice::<f32>()?.chunks(1024).any(|c| c.iter().map(|v| v * 0.0).sum::<f32>() != 0.0)
    })
}

/// The sum of the squares of all elements of all arrays, accumulated in float64.
pub fn sum_squares(arrays: &[&Array]) -> Result<f64> {
    let mut total = 0.0;
    for x in arrays {
        let wide = contiguous(&cast(x, x.dtype().compute())?)?;
        total += if wide.dtype() == DType::F64 {
            chunked(wide.slice::<f64>()?, |v| v)
        } else {
            chunked(wide.slice::<f32>()?, f64::from)
        };
    }
    Ok(total)
}

/// Squares summed in eight interleaved sums, in the same order always.
fn chunked<T: Copy>(x: &[T], widen: fn(T) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let blocks = x.chunks_exact(8);
    let rest: f64 = blocks.remainder().iter().map(|&v| widen(v) * widen(v)).sum();
    for block in blocks {
        for (s, &v) in sums.iter_mut().zip(block) {
            *s += widen(v) * widen(v);
        }
    }
    sums.iter().sum::<f64>() + rest
}
