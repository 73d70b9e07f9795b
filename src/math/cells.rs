//! Steps of gated recurrent cells as formulas of one element: read by loops of the CPU and as operations on
//! tensors.
//!
//! A cell adds two products, of its input and of its hidden state, and passes the sums through gates.

use crate::math::real::Real;

/// The most numbers that a product has for an element, and that derivatives read.
pub const MOST: usize = 4;

/// A cell.
pub trait Gated: Copy + Sync {
    /// How many numbers each product has for an element.
    fn gates(self) -> usize;
    /// Whether it has a state beside the hidden one.
    fn has_cell(self) -> bool;
    /// How many numbers derivatives read for an element.
    #[inline(always)]
    fn kept(self) -> usize {
        self.gates()
    }
    /// Whether the cotangents of the two products differ.
    fn differ(self) -> bool {
        false
    }
    /// From the products of the input and of the hidden state, and the state before: what the derivatives
    /// read, the state after and the hidden state after.
    fn step<R: Real>(self, x: [R; MOST], h: [R; MOST], before: R) -> ([R; MOST], R, R);
    /// The cotangents of the products and of the state before, from what [`Gated::step`] returned and the
    /// cotangents of that. Without a cell state only `out` is that of the hidden state, and `state` is 0.
    fn vjp<R: Real>(self, kept: [R; MOST], states: [R; 2], g: Cotangents<R>) -> ([R; MOST], [R; MOST], R);
}

/// The cotangents of the results of a step.
#[derive(Clone, Copy)]
pub struct Cotangents<R> {
    /// Of the hidden state.
    pub out: R,
    /// Of the cell state.
    pub state: R,
    /// Of what derivatives read.
    pub kept: [R; MOST],
}

/// The slope of the logistic sigmoid, from its value.
#[inline(always)]
fn sigmoid_slope<R: Real>(y: R) -> R {
    y * (1.0 - y)
}

/// The slope of the hyperbolic tangent, from its value.
#[inline(always)]
fn tanh_slope<R: Real>(y: R) -> R {
    1.0 - y * y
}

/// Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate (Gers et al. 2000). The gates
/// lie in the order input, forget, cell, output, and are what the derivatives read.
#[derive(Clone, Copy)]
pub struct Lstm;

impl Gated for Lstm {
    #[inline(always)]
    fn gates(self) -> usize {
        4
    }
    #[inline(always)]
    fn has_cell(self) -> bool {
        true
    }

    #[inline(always)]
    fn step<R: Real>(self, x: [R; MOST], h: [R; MOST], before: R) -> ([R; MOST], R, R) {
        let [i, f] = [(x[0] + h[0]).sigmoid(), (x[1] + h[1]).sigmoid()];
        let [g, o] = [(x[2] + h[2]).tanh(), (x[3] + h[3]).sigmoid()];
        let after = f * before + i * g;
        ([i, f, g, o], after, o * after.tanh())
    }

    #[inline(always)]
    fn vjp<R: Real>(self, kept: [R; MOST], states: [R; 2], g: Cotangents<R>) -> ([R; MOST], [R; MOST], R) {
        let ([i, f, new, o], [before, after]) = (kept, states);
        let bounded = after.tanh();
        let state = g.state + g.out * o * tanh_slope(bounded);
        let sums = [
            (state * new + g.kept[0]) * sigmoid_slope(i),
            (state * before + g.kept[1]) * sigmoid_slope(f),
            (state * i + g.kept[2]) * tanh_slope(new),
            (g.out * bounded + g.kept[3]) * sigmoid_slope(o),
        ];
        (sums, sums, state * f)
    }
}

/// Gated recurrent units (Cho et al. 2014) whose reset gate acts after the product. The gates lie in the
/// order reset, update, new; derivatives read them and the hidden state's product for the third.
#[derive(Clone, Copy)]
pub struct Gru;

impl Gated for Gru {
    #[inline(always)]
    fn gates(self) -> usize {
        3
    }
    #[inline(always)]
    fn has_cell(self) -> bool {
        false
    }
    #[inline(always)]
    fn kept(self) -> usize {
        4
    }
    #[inline(always)]
    fn differ(self) -> bool {
        true
    }

    #[inline(always)]
    fn step<R: Real>(self, x: [R; MOST], h: [R; MOST], before: R) -> ([R; MOST], R, R) {
        let [r, z] = [(x[0] + h[0]).sigmoid(), (x[1] + h[1]).sigmoid()];
        let n = (x[2] + r * h[2]).tanh();
        // Exact at both ends of `z`, which `n + z * (before - n)` is not.
        let after = (1.0 - z) * n + z * before;
        ([r, z, n, h[2]], after, after)
    }

    #[inline(always)]
    fn vjp<R: Real>(self, kept: [R; MOST], states: [R; 2], g: Cotangents<R>) -> ([R; MOST], [R; MOST], R) {
        let ([r, z, n, product], [before, _]) = (kept, states);
        let new = (g.out * (1.0 - z) + g.kept[2]) * tanh_slope(n);
        let reset = (new * product + g.kept[0]) * sigmoid_slope(r);
        let update = (g.out * (before - n) + g.kept[1]) * sigmoid_slope(z);
        let none = R::lit(0.0);
        ([reset, update, new, none], [reset, update, new * r + g.kept[3], none], g.out * z)
    }
}

/// The recurrence of Elman (1990): one gate, whose value is the hidden state and what the derivatives read.
#[derive(Clone, Copy)]
pub struct Plain {
    /// Whether the gate is the positive part of the sum, not its hyperbolic tangent.
    pub relu: bool,
}

impl Gated for Plain {
    #[inline(always)]
    fn gates(self) -> usize {
        1
    }
    #[inline(always)]
    fn has_cell(self) -> bool {
        false
    }

    #[inline(always)]
    fn step<R: Real>(self, x: [R; MOST], h: [R; MOST], _before: R) -> ([R; MOST], R, R) {
        let (sum, none) = (x[0] + h[0], R::lit(0.0));
        // As `Unary::Relu`, which passes NaN on.
        let after = if self.relu { R::select(sum.le(none), none, sum) } else { sum.tanh() };
        ([after, none, none, none], after, after)
    }

    #[inline(always)]
    fn vjp<R: Real>(self, kept: [R; MOST], _states: [R; 2], g: Cotangents<R>) -> ([R; MOST], [R; MOST], R) {
        let (y, g, none) = (kept[0], g.out + g.kept[0], R::lit(0.0));
        let sum = if self.relu { R::select(y.gt(none), g, none) } else { g * tanh_slope(y) };
        ([sum, none, none, none], [sum, none, none, none], none)
    }
}
