//! From the rows of the tables to Rust types: `define_table!` makes an enum of the rows, their names and
//! documentation, and the way from a row to a type that implements [`Pointwise`], for its value and each of
//! its derivatives.
//!
//! Whoever wants to do something with any row (run it, record it, print it as WGSL) implements [`Visit`].

use crate::math::real::Pointwise;
use crate::op::{Precision, Saves};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::unary::{Parametric, Unary};

/// A value that a derivative reads besides the cotangent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The first input.
    X,
    /// The second input.
    Y,
    /// The output.
    Out,
}

impl Arg {
    /// What the tape keeps for it.
    pub const fn saves(self) -> Saves {
        match self {
            Arg::X => Saves::input(0),
            Arg::Y => Saves::input(1),
            Arg::Out => Saves::OUTPUTS,
        }
    }
}

/// Something that can be done with any row of any table.
pub trait Visit {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Self::Out;
}

macro_rules! arg {
    (x) => {
        $crate::ops::pointwise::table::Arg::X
    };
    (y) => {
        $crate::ops::pointwise::table::Arg::Y
    };
    (o) => {
        $crate::ops::pointwise::table::Arg::Out
    };
}
pub(crate) use arg;

/// A function with attributes `p` as a type that implements `Pointwise`.
macro_rules! pointwise_rule {
    ($p:ident; [$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl $crate::math::real::Pointwise<{ [$(stringify!($x)),*].len() }> for Rule {
            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<R: $crate::math::real::Real>(&self, [$($x),*]: [R; [$(stringify!($x)),*].len()]) -> R
            where
                f64: $crate::math::real::Left<R>,
            {
                let $p = self.0;
                $body
            }
        }
        Rule($p)
    }};
}
pub(crate) use pointwise_rule;

/// Does `v` with the derivative of a partial along the values that it reads: its operands are the cotangent,
/// those values, and their tangents. `None` for a partial that reads nothing.
macro_rules! visit_jet {
    ($v:ident, $p:ident; [$g:ident] => $body:expr) => {
        None
    };
    ($v:ident, $p:ident; [$g:ident, $($x:ident),+] => $body:expr) => {{
        const READS: usize = [$(stringify!($x)),+].len();
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl $crate::math::real::Pointwise<{ 1 + 2 * READS }> for Rule {
            const IS_WIDEST: bool = false;
            #[inline(always)]
            fn apply<Q: $crate::math::real::Real>(&self, x: [Q; 1 + 2 * READS]) -> Q
            where
                f64: $crate::math::real::Left<Q>,
            {
                #[inline(always)]
                fn body<R: $crate::math::real::Real>($p: [f64; 2], $g: R, [$($x),+]: [R; READS]) -> R
                where
                    f64: $crate::math::real::Left<R>,
                {
                    $body
                }
                let mut next = 0;
                $(
                    next += 1;
                    let $x = $crate::ops::pointwise::jet::Jet::moving(x[next], x[next + READS]);
                )+
                let g = $crate::ops::pointwise::jet::Jet::fixed(x[0]);
                body::<$crate::ops::pointwise::jet::Jet<Q>>(self.0, g, [$($x),+]).tangent()
            }
        }
        Some($v.visit(Rule($p)))
    }};
}
pub(crate) use visit_jet;

/// Makes the enum of a table, its names and documentation, and the way from a row to its rules.
macro_rules! define_table {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$(($g:ident $(, $arg:ident)*) => $partial:expr),*];
    )*) => {
        /// The rows of the table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// Every row.
            pub const ALL: &'static [$kind] = &[$($kind::$name,)*];

            /// The name of the method.
            pub fn name(self) -> &'static str {
                match self { $($kind::$name => stringify!($method),)* }
            }

            /// The first line of the documentation.
            pub fn doc(self) -> &'static str {
                match self { $($kind::$name => concat!($($doc, "\n"),*).trim_ascii(),)* }
            }

            /// What the partial for each input reads; empty where the derivative is zero.
            pub fn reads(self) -> &'static [&'static [$crate::ops::pointwise::table::Arg]] {
                match self { $($kind::$name => &[$(&[$($crate::ops::pointwise::table::arg!($arg)),*]),*],)* }
            }

            /// What the partial for input `wrt` reads, as the tape counts it.
            #[inline]
            pub fn saves(self, wrt: usize) -> $crate::op::Saves {
                use $crate::op::Saves;
                const SAVES: &[&[Saves]] = &[$(
                    &[$(Saves::NONE $(.and($crate::ops::pointwise::table::arg!($arg).saves()))*),*],
                )*];
                SAVES[self as usize].get(wrt).copied().unwrap_or_default()
            }

            /// Does `v` with the function.
            pub fn value<V: $crate::ops::pointwise::table::Visit>(self, $p: [f64; 2], v: V) -> V::Out {
                match self {
                    $($kind::$name => v.visit(
                        $crate::ops::pointwise::table::pointwise_rule!($p; [$($x),+] => $value)
                    ),)*
                }
            }

            /// Does `v` with the partial for input `wrt`; `None` where it is zero.
            #[allow(unused_variables, unused_mut, unused_assignments)]
            pub fn partial<V>(self, wrt: usize, $p: [f64; 2], v: V) -> Option<V::Out>
            where
                V: $crate::ops::pointwise::table::Visit,
            {
                match self {
                    $($kind::$name => {
                        let mut position = 0;
                        $(
                            if position == wrt {
                                return Some(v.visit(
                                    $crate::ops::pointwise::table::pointwise_rule!(
                                        $p; [$g $(, $arg)*] => $partial
                                    ),
                                ));
                            }
                            position += 1;
                        )*
                        None
                    })*
                }
            }

            /// Does `v` with the derivative of the partial for input `wrt` along the values that the partial
            /// reads; `None` where it reads nothing.
            #[allow(unused_variables, unused_mut, unused_assignments)]
            pub fn jet<V>(self, wrt: usize, $p: [f64; 2], v: V) -> Option<V::Out>
            where
                V: $crate::ops::pointwise::table::Visit,
            {
                match self {
                    $($kind::$name => {
                        let mut position = 0;
                        $(
                            if position == wrt {
                                return $crate::ops::pointwise::table::visit_jet!(
                                    v, $p; [$g $(, $arg)*] => $partial
                                );
                            }
                            position += 1;
                        )*
                        None
                    })*
                }
            }
        }
    };
}
pub(crate) use define_table;

/// A row of one of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fun {
    /// One input.
    Unary(Unary),
    /// One input and attributes.
    Parametric(Parametric),
    /// Two inputs.
    Binary(Binary),
}

impl Fun {
    /// The public name of the row.
    pub fn name(self) -> &'static str {
        match self {
            Fun::Unary(f) => f.name(),
            Fun::Parametric(f) => f.name(),
            Fun::Binary(f) => f.name(),
        }
    }
    /// The precision under autocast: float32 for what grows or shrinks so fast, or is so steep, that halves
    /// overflow or lose its digits. The choice is PyTorch's.
    pub fn precision(self) -> Precision {
        use Unary::{
            Acos, Asin, Cosh, Entr, Erfinv, Exp, Expm1, Log, Log1p, Log2, Log10, LogNdtr, Reciprocal, Rsqrt,
            Sinh, Tan,
        };
        match self {
            Fun::Unary(Acos | Asin | Cosh | Erfinv | Exp | Expm1 | Log | Log1p | Log2 | Log10) => {
                Precision::F32
            }
            Fun::Unary(Entr | LogNdtr | Reciprocal | Rsqrt | Sinh | Tan) => Precision::F32,
            Fun::Parametric(Parametric::Softplus) => Precision::F32,
            Fun::Binary(Binary::Pow | Binary::Xlogy | Binary::Xlog1py) => Precision::F32,
            _ => Precision::Any,
        }
    }
    /// What the derivative for input `wrt` reads; `None` where it is zero.
    pub fn reads(self, wrt: usize) -> Option<&'static [Arg]> {
        match self {
            Fun::Unary(f) => f.reads().get(wrt).copied(),
            Fun::Parametric(f) => f.reads().get(wrt).copied(),
            Fun::Binary(f) => f.reads().get(wrt).copied(),
        }
    }
    /// What the derivative for input `wrt` reads, as the tape counts it.
    #[inline]
    pub fn saves(self, wrt: usize) -> Saves {
        match self {
            Fun::Unary(f) => f.saves(wrt),
            Fun::Parametric(f) => f.saves(wrt),
            Fun::Binary(f) => f.saves(wrt),
        }
    }
    /// Does `v` with the row's value.
    #[inline]
    pub fn value<V: Visit>(self, p: [f64; 2], v: V) -> V::Out {
        match self {
            Fun::Unary(f) => f.value(p, v),
            Fun::Parametric(f) => f.value(p, v),
            Fun::Binary(f) => f.value(p, v),
        }
    }
    /// Does `v` with the row's derivative for input `wrt`; `None` where it is zero.
    pub fn partial<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        match self {
            Fun::Unary(f) => f.partial(wrt, p, v),
            Fun::Parametric(f) => f.partial(wrt, p, v),
            Fun::Binary(f) => f.partial(wrt, p, v),
        }
    }
    /// Does `v` with the derivative of that derivative along the values it reads; `None` where it reads
    /// nothing.
    pub fn jet<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        match self {
            Fun::Unary(f) => f.jet(wrt, p, v),
            Fun::Parametric(f) => f.jet(wrt, p, v),
            Fun::Binary(f) => f.jet(wrt, p, v),
        }
    }
}

/// A pair of `f64` attributes that can be compared and hashed: equal when their bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Params([u64; 2]);

impl From<[f64; 2]> for Params {
    fn from(p: [f64; 2]) -> Params {
        Params(p.map(f64::to_bits))
    }
}
impl Params {
    /// The attributes.
    pub fn get(self) -> [f64; 2] {
        self.0.map(f64::from_bits)
    }
}

/// Every row of every table.
pub fn all() -> impl Iterator<Item = Fun> {
    let unary = Unary::ALL.iter().map(|&f| Fun::Unary(f));
    let parametric = Parametric::ALL.iter().map(|&f| Fun::Parametric(f));
    unary.chain(parametric).chain(Binary::ALL.iter().map(|&f| Fun::Binary(f)))
}
