//! Update rules of optimisers that are one formula per element: read by loops of the CPU, as WGSL, and as
//! operations on tensors where a step is batched or pushed forward.

use crate::math::real::Real;

/// The most arrays of state of a parameter, with the parameter itself.
pub const WIDTH: usize = 4;
/// The most numbers that a formula takes.
pub const NUMBERS: usize = 6;

/// What depends on the formula and is compiled for each.
pub trait Visit {
    /// Does it, for the formula `F` of `STATE` arrays of state.
    fn visit<const STATE: usize, F: Move>(self, formula: F);
}

/// One formula.
pub trait Move: Copy + Send + Sync {
    /// The parameter and its state after a step (those that it lacks are not looked at), from these, the
    /// numbers of the step and the gradient.
    fn apply<R: Real>(self, c: [R; NUMBERS], x: [R; WIDTH], g: R) -> [R; WIDTH];
}

/// Defines the rules: `Name "Class" [numbers] (parameter, state), gradient => [what they become]`.
macro_rules! rules {
    ($(
        $(#[doc = $doc:literal])*
        $rule:ident $class:literal [$($c:ident),*] ($x:ident $(, $state:ident)*), $g:ident => $body:expr;
    )*) => {
        /// An update rule of one formula per element.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Formula {
            $($(#[doc = $doc])* $rule,)*
        }

        impl Formula {
            /// The rule of this name.
            pub fn named(name: &str) -> Option<Formula> {
                let all = [$((stringify!($rule), Formula::$rule)),*];
                all.into_iter().find(|one| one.0 == name).map(|one| one.1)
            }

            /// The class that a message names.
            pub fn class(self) -> &'static str {
                match self {
                    $(Formula::$rule => $class,)*
                }
            }

            /// How many arrays of state there are.
            pub fn states(self) -> usize {
                match self {
                    $(Formula::$rule => [$(stringify!($state)),*].len(),)*
                }
            }

            /// Does what is compiled for each formula.
            pub fn visit(self, visit: impl Visit) {
                match self {
                    $(Formula::$rule => {
                        #[derive(Clone, Copy)]
                        struct Rule;
                        impl Move for Rule {
                            #[inline(always)]
                            fn apply<R: Real>(self, c: [R; NUMBERS], x: [R; WIDTH], $g: R) -> [R; WIDTH] {
                                let [$($c,)* ..] = c;
                                let [$x, $($state,)* ..] = x;
                                let moved = $body;
                                let mut out = x;
                                out[..moved.len()].copy_from_slice(&moved);
                                out
                            }
                        }
                        visit.visit::<{ [$(stringify!($state)),*].len() }, Rule>(Rule)
                    })*
                }
            }
        }
    };
}

rules! {
    /// Adagrad (Duchi et al. 2011).
    Adagrad "Adagrad" [rate, eps] (x, sum), g => {
        let sum = sum + g * g;
        [x - rate * g / (sum.sqrt() + eps), sum]
    };
    /// Adadelta (Zeiler 2012).
    Adadelta "Adadelta" [rate, rho, fresh, eps] (x, squares, steps), g => {
        let squares = rho * squares + fresh * (g * g);
        let delta = (steps + eps).sqrt() / (squares + eps).sqrt() * g;
        [x - rate * delta, squares, rho * steps + fresh * (delta * delta)]
    };
    /// RMSprop (Hinton 2012).
    RmsProp "RMSprop" [rate, alpha, fresh, eps] (x, squares), g => {
        let squares = alpha * squares + fresh * (g * g);
        [x - rate * g / (squares.sqrt() + eps), squares]
    };
    /// RMSprop with momentum.
    RmsPropMomentum "RMSprop" [rate, alpha, fresh, eps, momentum] (x, squares, moved), g => {
        let squares = alpha * squares + fresh * (g * g);
        let moved = momentum * moved + g / (squares.sqrt() + eps);
        [x - rate * moved, squares, moved]
    };
    /// RMSprop with the variance of gradients instead of their squares (Graves 2013).
    RmsPropCentered "RMSprop" [rate, alpha, fresh, eps] (x, squares, mean), g => {
        let squares = alpha * squares + fresh * (g * g);
        let mean = mean + fresh * (g - mean);
        [x - rate * g / ((squares - mean * mean).sqrt() + eps), squares, mean]
    };
    /// Both of these.
    RmsPropBoth "RMSprop" [rate, alpha, fresh, eps, momentum] (x, squares, mean, moved), g => {
        let squares = alpha * squares + fresh * (g * g);
        let mean = mean + fresh * (g - mean);
        let moved = momentum * moved + g / ((squares - mean * mean).sqrt() + eps);
        [x - rate * moved, squares, mean, moved]
    };
    /// Adamax (Kingma and Ba 2014).
    Adamax "Adamax" [rate, fresh, beta2, eps] (x, mean, largest), g => {
        let mean = mean + fresh * (g - mean);
        let largest = larger(beta2 * largest, g.abs() + eps);
        [x - rate * mean / largest, mean, largest]
    };
    /// NAdam (Dozat 2016): `now` and `after` are the rates of the gradient and of the momentum.
    Nadam "NAdam" [now, after, fresh, beta2, bias, eps] (x, mean, squares), g => {
        let mean = mean + fresh * (g - mean);
        let squares = beta2 * squares + (1.0 - beta2) * (g * g);
        let root = (squares / bias).sqrt() + eps;
        [x - now * g / root - after * mean / root, mean, squares]
    };
    /// RAdam (Liu et al. 2019): `rectified` is 0 in the steps whose variance is too large.
    Radam "RAdam" [rate, fresh, beta2, rectified, eps] (x, mean, squares), g => {
        let mean = mean + fresh * (g - mean);
        let squares = beta2 * squares + (1.0 - beta2) * (g * g);
        let scaled = rectified * mean / (squares.sqrt() + eps);
        [x - rate * R::select(rectified.gt(R::lit(0.0)), scaled, mean), mean, squares]
    };
    /// Rprop (Riedmiller and Braun 1993). An element whose gradient is NaN stays where it is.
    Rprop "Rprop" [down, up, low, high] (x, before, size), g => {
        let (zero, one) = (R::lit(0.0), R::lit(1.0));
        let agreed = g * before;
        let factor = R::select(agreed.lt(zero), down, R::select(agreed.gt(zero), up, one));
        let size = size * factor;
        let size = R::select(size.lt(low), low, R::select(size.gt(high), high, size));
        let g = R::select(agreed.lt(zero), zero, g);
        let sign = R::select(g.gt(zero), one, R::select(g.lt(zero), -one, zero));
        [x - sign * size, g, size]
    };
    /// Averaged stochastic gradient descent (Polyak and Juditsky 1992): a weight of 1 starts the mean anew.
    Asgd "ASGD" [eta, shrink, weight] (x, mean), g => {
        let x = shrink * x - eta * g;
        [x, R::select(weight.eq(R::lit(1.0)), x, mean + weight * (x - mean))]
    };
}

/// The larger of two numbers; NaN where either is.
#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    R::select(a.ge(b) | a.ne(a), a, b)
}

/// A rule with its numbers for one step, and what optimisers do with gradients before.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    /// The rule.
    pub formula: Formula,
    /// Its numbers; those behind the ones that it takes are not looked at.
    pub numbers: [f64; NUMBERS],
    /// The parameter times this is added to its gradient.
    pub decay: f64,
    /// A factor on the parameter before the step: decoupled weight decay.
    pub shrink: f64,
    /// Whether to ascend instead of descend.
    pub maximize: bool,
}

impl Elementwise {
    /// The gradient and the parameter that the formula is given.
    #[inline(always)]
    pub fn prepared<R: Real>(decay: R, shrink: R, sign: R, x: R, g: R) -> (R, R) {
        // Zero decay leaves the parameter out of the sum: zero times infinity is NaN.
        (shrink * x, sign * g + R::select(decay.ne(R::lit(0.0)), decay * x, R::lit(0.0)))
    }

    /// Decay, factor and sign of the gradient.
    pub fn preparation(&self) -> [f64; 3] {
        [self.decay, self.shrink, if self.maximize { -1.0 } else { 1.0 }]
    }
}
