//! A step of an optimiser: its rule, and the arrays that it reads and writes.

use crate::array::Array;
use smallvec::SmallVec;

/// The hyperparameters of stochastic gradient descent (Robbins and Monro 1951; momentum: Polyak 1964,
/// Nesterov 1983).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Factor on the momentum buffer.
    pub momentum: f64,
    /// What of a gradient does not enter the momentum buffer.
    pub dampening: f64,
    /// Factor on the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Nesterov's form.
    pub nesterov: bool,
    /// Ascent instead of descent.
    pub maximize: bool,
}

/// The hyperparameters of Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017).
#[derive(Clone, Copy, Debug, Default)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Factor on the parameter.
    pub weight_decay: f64,
    /// AdamW: the decay acts on the parameter instead of on its gradient.
    pub decoupled: bool,
    /// Ascent instead of descent.
    pub maximize: bool,
}

impl Adam {
    /// The learning rate over `1 - beta1^t`, and the root of `1 / (1 - beta2^t)`.
    pub fn corrections(&self, step: i32) -> (f64, f64) {
        let (first, second) = (1.0 - self.beta1.powi(step), 1.0 - self.beta2.powi(step));
        (self.lr / first, second.sqrt().recip())
    }

    /// The factor on the parameter, and the factor on it that is added to the gradient: one of them does
    /// nothing.
    pub fn decay(&self) -> (f64, f64) {
        if self.decoupled { (1.0 - self.lr * self.weight_decay, 0.0) } else { (1.0, self.weight_decay) }
    }
}

/// An update rule.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The state is a momentum buffer, or nothing.
    Sgd(Sgd),
    /// The state is the two moments, and for AMSGrad the largest second moment so far.
    Adam(Adam),
}

impl Rule {
    /// Its name, for errors.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Rule::Sgd(_) => "SGD",
            Rule::Adam(_) => "Adam",
        }
    }
}

/// A parameter with all that its step reads and writes.
#[derive(Clone)]
pub struct Slot {
    /// The parameter, then its state. All are written.
    pub state: SmallVec<[Array; 4]>,
    /// The gradient.
    pub grad: Array,
    /// Which step of this parameter it is, from 1 on. In the first step of SGD momentum is the gradient
    /// itself.
    pub step: i32,
}

impl Slot {
    /// The parameter.
    pub fn param(&self) -> &Array {
        &self.state[0]
    }
}
