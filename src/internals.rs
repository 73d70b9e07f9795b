//! Re-exports for the crate's tests and benchmarks, under shortened paths; they change without notice.

#![allow(missing_docs)]

pub mod array {
    pub use crate::array::{Array, buffer::Buffer, random};
}

pub mod autodiff {
    pub use crate::autodiff::backward::{self, Options};
    pub use crate::autodiff::checkpoint::checkpoint;
    pub use crate::autodiff::transform::{batching, vmap};
}

pub use crate::bind::bind;

pub mod cpu {
    pub use crate::arguments::logic::Relation;
    pub use crate::cpu::run::isa::{Isa, isa};
    pub use crate::cpu::run::threads::set_num_threads;
    pub mod vector {
        pub use crate::cpu::pointwise::vector::{Number, map_on};
    }
    pub mod gather {
        pub use crate::cpu::indexing::gather::take;
    }
    pub mod copy {
        pub use crate::cpu::pointwise::copy::{cast, contiguous, duplicate};
    }
    pub mod logic {
        pub use crate::cpu::pointwise::logic::{compare, select};
    }
    pub mod map {
        pub use crate::cpu::pointwise::map::{pointwise, pointwise_into};
    }
    pub mod matmul {
        pub use crate::cpu::product::matmul::matmul;
    }
    pub mod norm {
        pub use crate::cpu::rows::cross_entropy::cross_entropy;
        pub use crate::cpu::rows::norm::{layer_norm, layer_norm_vjp, softmax, softmax_vjp};
    }
    pub mod random {
        pub use crate::cpu::random::{normal, randint};
    }
    pub mod reduce {
        pub use crate::cpu::reduce::{argmax, max, sum};
    }
}

#[cfg(feature = "gpu")]
pub mod gpu {
    pub use crate::gpu::shader::halves::{Halves, Matrices};
    pub use crate::gpu::shader::template::{LISTS, Template};
    pub use crate::gpu::shader::wgsl::{library_file, with_library};
    pub use crate::gpu::{describe_adapters, flush, info, is_available, synchronize};
}

pub mod interp {
    pub use crate::interp::{Randomness, ambient, is_plain, no_grad};
}

pub mod math {
    pub use crate::math::lane::F64Fma;
    pub use crate::math::real::{Pointwise, Real};
}

pub mod op {
    pub use crate::op::{Class, Grads, Kernel, Op};
    pub use crate::ops::custom::{CustomRule, ForwardFacts, RuleInput, call};
}

pub mod ops {
    pub use crate::ops::nn::attention::AttentionOptions;
    pub use crate::ops::nn::loss::{CrossEntropyOptions, Reduction, cross_entropy};
    pub use crate::ops::pointwise::binary::Binary;
    pub use crate::ops::pointwise::elementwise::Map;
    pub use crate::ops::pointwise::table::{Fun, Params, Visit, all};
    pub use crate::ops::pointwise::unary::{Parametric, Unary};
    pub use crate::ops::views::join::cat;
}

pub mod tape {
    pub use crate::tape::host_ref::Holder;
    pub use crate::tape::location::{self, Host, Location};
    pub use crate::tape::node::{Edge, NewNode, Node};
}

pub mod watch {
    pub use crate::watch::anomaly;
    pub use crate::watch::debug::{self, Listener, Log, Modes};
}

pub use crate::tensor::Tensors;
