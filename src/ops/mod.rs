//! The operations, one family per folder or file. Read next: `src/ops/pointwise/unary.rs`, one-variable
//! calculus.

pub mod collective;
pub mod complex;
pub mod contract;
pub mod create;
pub mod custom;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod nn;
pub mod pointwise;
mod prelude;
pub mod random;
pub mod reduce;
pub mod shapes;
pub mod updates;
pub mod views;
pub mod writes;

use crate::error::Result;
use crate::op::no_output;
use crate::tensor::{Tensor, Tensors};

/// Wraps a single output as the list of an operation's outputs.
macro_rules! one {
    ($out:expr) => {
        $out.map(|y| smallvec::smallvec![y])
    };
}
pub(crate) use one;

/// How an operation runs: its type, its public name, its kernel, which makes one output or `-> Arrays`; how
/// it runs `into` memory that is given, if not by a copy of its outputs; where its random numbers begin, if
/// it draws any; and the count of its floating point operations on inputs with outputs, which for one output
/// is 0 if none is given.
macro_rules! kernel {
    ($op:ty, $name:expr, |$self:ident, $x:ident| -> Arrays $eval:block, $(into |$out:ident| $into:block,)?
        $(random_state $state:block,)?
        $(#[$doc:meta])* flops |$inputs:ident, $outputs:ident| $flops:expr) => {
        impl $crate::op::Kernel for $op {
            fn name(&$self) -> &'static str {
                $name
            }
            fn eval(&$self, $x: &[&$crate::array::Array]) -> $crate::error::Result<$crate::op::Arrays> $eval
            $crate::ops::kernel! {
                @rest $self, $x; $(into |$out| $into,)? $(random_state $state,)?
                $(#[$doc])* flops |$inputs, $outputs| $flops
            }
        }
    };
    ($op:ty, $name:expr, |$self:ident, $x:ident| $eval:expr $(, into |$out:ident| $into:block)?
        $(, element_fn |$dtypes:ident| $element_fn:block)? $(, random_state $state:block)?) => {
        $crate::ops::kernel! {
            $op, $name, |$self, $x| $eval, $(into |$out| $into,)? $(element_fn |$dtypes| $element_fn,)?
            $(random_state $state,)? flops |_x, _y| 0
        }
    };
    ($op:ty, $name:expr, |$self:ident, $x:ident| $eval:expr, $(into |$out:ident| $into:block,)?
        $(element_fn |$dtypes:ident| $element_fn:block,)? $(random_state $state:block,)?
        $(#[$doc:meta])* flops |$inputs:ident, $outputs:ident| $flops:expr) => {
        impl $crate::op::Kernel for $op {
            fn name(&$self) -> &'static str {
                $name
            }
            fn eval(&$self, x: &[&$crate::array::Array]) -> $crate::error::Result<$crate::op::Arrays> {
                $crate::ops::one!($self.eval_one(x))
            }
            #[inline]
            fn eval_one(&$self, $x: &[&$crate::array::Array]) -> $crate::error::Result<$crate::array::Array> {
                $eval
            }
            $crate::ops::kernel! {
                @rest $self, $x; $(into |$out| $into,)? $(element_fn |$dtypes| $element_fn,)?
                $(random_state $state,)? $(#[$doc])* flops |$inputs, $outputs| $flops
            }
        }
    };
    (@rest $self:ident, $x:ident; $(into |$out:ident| $into:block,)?
        $(element_fn |$dtypes:ident| $element_fn:block,)? $(random_state $state:block,)?
        $(#[$doc:meta])* flops |$inputs:ident, $outputs:ident| $flops:expr) => {
        $(fn eval_into(
            &$self, $x: &[&$crate::array::Array], $out: &[&$crate::array::Array],
        ) -> $crate::error::Result<()> $into)?
        $(fn element_fn(
            &$self, $dtypes: &[$crate::array::dtype::DType],
        ) -> Option<$crate::cpu::pointwise::fused::ElementFn> $element_fn)?
        $(fn random_state(&mut $self) -> Option<&mut $crate::array::random::State> $state)?
        $(#[$doc])*
        fn flops(&$self, $inputs: &[&$crate::array::Array], $outputs: &[$crate::array::Array]) -> u64 {
            $flops
        }
    };
}
pub(crate) use kernel;

/// The outputs of an operation that has `N` of them.
pub(crate) fn outputs<const N: usize>(list: Tensors) -> Result<[Tensor; N]> {
    list.into_vec().try_into().map_err(|_| no_output())
}

/// The first of several outputs; the others serve derivatives.
pub(crate) fn first(list: Tensors) -> Result<Tensor> {
    list.into_iter().next().ok_or_else(no_output)
}
