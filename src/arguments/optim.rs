//! Arguments of an optimiser step: the update rule, and the arrays that it reads and writes.

use crate::array::Array;
pub use crate::math::updates::{Elementwise, Formula};
use std::sync::Arc;

/// The hyperparameters of stochastic gradient descent (Robbins and Monro 1951; momentum: Polyak 1964,
/// Nesterov 1983). By default a learning rate of 0.001 and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Factor on the momentum buffer.
    pub momentum: f64,
    /// Dampening: the fraction of the gradient kept out of the momentum buffer.
    pub dampening: f64,
    /// The parameter times this is added to its gradient.
    pub weight_decay: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Whether to ascend instead of descend.
    pub maximize: bool,
}

/// The hyperparameters of Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017). By default those
/// of the paper: `lr` 0.001, `beta1` 0.9, `beta2` 0.999, `eps` 1e-8, no decay.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay rate of the first moment.
    pub beta1: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub eps: f64,
    /// Weight decay, as a factor on the parameter.
    pub weight_decay: f64,
    /// AdamW: the decay acts on the parameter instead of on its gradient.
    pub decoupled: bool,
    /// Whether to ascend instead of descend.
    pub maximize: bool,
}

impl Default for Sgd {
    fn default() -> Sgd {
        Sgd { lr: 1e-3, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: false }
    }
}

impl Default for Adam {
    fn default() -> Adam {
        let (lr, beta1, beta2, eps) = (1e-3, 0.9, 0.999, 1e-8);
        Adam { lr, beta1, beta2, eps, weight_decay: 0.0, decoupled: false, maximize: false }
    }
}

impl Adam {
    /// Bias corrections: `lr / (1 - beta1^t)` and `sqrt(1 / (1 - beta2^t))`.
    pub fn corrections(&self, step: i32) -> (f64, f64) {
        let (first, second) = (1.0 - self.beta1.powi(step), 1.0 - self.beta2.powi(step));
        (self.lr / first, second.sqrt().recip())
    }

    /// Weight decay: the factor on the parameter, and the multiple of it that is added to the gradient. One
    /// of the two has no effect (1 or 0).
    pub fn decay(&self) -> (f64, f64) {
        if self.decoupled { (1.0 - self.lr * self.weight_decay, 0.0) } else { (1.0, self.weight_decay) }
    }
}

/// An update rule, and what its state holds.
#[derive(Clone, Debug)]
pub enum UpdateRule {
    /// State: a momentum buffer, or nothing.
    Sgd(Sgd),
    /// State: both moments, and for AMSGrad the largest second moment so far.
    Adam(Adam),
    /// State: what the formula has. Shared, so that operations stay small.
    Elementwise(Arc<Elementwise>),
}

impl UpdateRule {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            UpdateRule::Sgd(_) => "SGD",
            UpdateRule::Adam(_) => "Adam",
            UpdateRule::Elementwise(rule) => rule.formula.class(),
        }
    }
}

/// A parameter, with the arrays that its step reads and writes.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    /// The parameter, then its state; all are written.
    pub state: &'a [&'a Array],
    /// The gradient.
    pub grad: &'a Array,
    /// The number of the parameter's step, from 1. In step 1 of SGD the momentum is the gradient itself.
    pub step: i32,
}

impl<'a> Slot<'a> {
    /// The parameter.
    pub fn param(&self) -> &'a Array {
        self.state[0]
    }
}

/// The slots of parameters of one rule. `arrays` lists each parameter, its state and its gradient, `width`
/// arrays in all, one parameter after the other; `steps` has one number for each, or one for all.
pub fn slots<'a>(arrays: &'a [&'a Array], width: usize, steps: &'a [i32]) -> impl Iterator<Item = Slot<'a>> {
    let step = move |i: usize| steps[if steps.len() == 1 { 0 } else { i }];
    let slot = move |(i, x): (usize, &'a [&'a Array])| Slot {
        state: &x[..width - 1],
        grad: x[width - 1],
        step: step(i),
    };
    arrays.chunks_exact(width).enumerate().map(slot)
}
