//! `define_table!` and its macros for the columns of a row. A file with a table imports all of `table`.

/// Does `v` with a formula for integers; `None` for a row without one.
macro_rules! visit_integer {
    ($v:ident; [$($x:ident),*] => float) => {
        None
    };
    ($v:ident; [$($x:ident),*] => $body:expr) => {
        Some($v.visit(integer_rule!([$($x),*] => $body)))
    };
}
pub(crate) use visit_integer;

/// A function of integers as a type that implements `PointwiseInt`.
macro_rules! integer_rule {
    ([$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule;
        impl $crate::math::real::PointwiseInt<{ [$(stringify!($x)),*].len() }> for Rule {
            #[inline(always)]
            fn apply<I: $crate::math::real::Integer>(
                &self,
                [$($x),*]: [I; [$(stringify!($x)),*].len()],
            ) -> I {
                $body
            }
        }
        Rule
    }};
}
pub(crate) use integer_rule;

/// What an argument of a partial stands for: `o` for the output, another for the operand of that name.
macro_rules! operand {
    (o, $output:ident) => {
        $output
    };
    ($x:ident, $output:ident) => {
        $x
    };
}
pub(crate) use operand;

/// A function with attributes `p` as a type that implements `Pointwise`.
macro_rules! pointwise_rule {
    ($p:ident; [$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl $crate::math::real::Pointwise<{ [$(stringify!($x)),*].len() }> for Rule {
            fn attributes(&self) -> [f64; 2] {
                self.0
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<R: $crate::math::real::Real>(&self, [$($x),*]: [R; [$(stringify!($x)),*].len()]) -> R {
                let $p = $crate::math::real::Attributes::<R>::new(self.0);
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
            fn attributes(&self) -> [f64; 2] {
                self.0
            }
            #[inline(always)]
            fn apply<Q: Real>(&self, x: [Q; 1 + 2 * READS]) -> Q {
                #[inline(always)]
                fn body<R: Real>($p: Attributes<R>, $g: R, [$($x),+]: [R; READS]) -> R {
                    $body
                }
                let mut next = 0;
                $(
                    next += 1;
                    let $x = Jet::moving(x[next], x[next + READS]);
                )+
                body(Attributes::new(self.0), Jet::fixed(x[0]), [$($x),+]).tangent()
            }
        }
        Some($v.visit(Rule($p)))
    }};
}
pub(crate) use visit_jet;

/// The expression of this index out of at most two, or `none`.
macro_rules! nth {
    ($index:expr, $none:expr; $($first:expr $(, $second:expr)?)?) => {
        match $index {
            $(0 => $first, $(1 => $second,)?)?
            _ => $none,
        }
    };
}
pub(crate) use nth;

/// Makes the enum of a table, its names and documentation, and the way from a row to its rules.
macro_rules! define_table {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$(($g:ident $(, $arg:ident)*) => $partial:expr),*],
        $precision:ident, $slope:ident, $integer:tt, $complex:expr;
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

            /// The documentation.
            pub fn doc(self) -> &'static str {
                match self { $($kind::$name => concat!($($doc, "\n"),*).trim_ascii(),)* }
            }

            /// What the partial for each input reads; empty where the derivative is zero.
            pub fn reads(self) -> &'static [&'static [Arg]] {
                match self { $($kind::$name => &[$(const { &[$(Arg::of(stringify!($arg))),*] }),*],)* }
            }

            /// What the partial for input `wrt` reads, as the tape counts it.
            #[inline]
            pub fn saves(self, wrt: usize) -> $crate::op::Saves {
                use $crate::op::Saves;
                const SAVES: &[&[Saves]] = &[$(
                    &[$(Saves::NONE $(.and(Arg::of(stringify!($arg)).saves()))*),*],
                )*];
                SAVES[self as usize].get(wrt).copied().unwrap_or_default()
            }

            /// What the row says besides its formulas.
            pub fn columns(self) -> &'static Columns {
                const COLUMNS: &[Columns] = &[$(
                    Columns {
                        precision: $crate::op::Precision::$precision,
                        slope: Slope::$slope,
                        has_integers: !matches!(stringify!($integer).as_bytes(), b"float"),
                        complex: { use ComplexRule::*; $complex },
                    },
                )*];
                &COLUMNS[self as usize]
            }

            /// Does `v` with the formula for integers; `None` for a row without one.
            #[allow(unused_variables, unused_parens)]
            pub fn integer<V: VisitInt>(self, v: V) -> Option<V::Out> {
                match self {
                    $($kind::$name => visit_integer!(v; [$($x),+] => $integer),)*
                }
            }

            /// Does `v` with the function.
            pub fn value<V: Visit>(self, $p: [f64; 2], v: V) -> V::Out {
                match self {
                    $($kind::$name => v.visit(pointwise_rule!($p; [$($x),+] => $value)),)*
                }
            }

            /// Does `v` with the partial for input `wrt`; `None` where it is zero.
            #[allow(unused_variables)]
            pub fn partial<V: Visit>(self, wrt: usize, $p: [f64; 2], v: V) -> Option<V::Out> {
                match self {
                    $($kind::$name => nth!(wrt, None; $(
                        Some(v.visit(pointwise_rule!($p; [$g $(, $arg)*] => $partial)))
                    ),*),)*
                }
            }

            /// Does `v` with the derivative of the partial for input `wrt` along the values that the partial
            /// reads; `None` where it reads nothing.
            #[allow(unused_variables)]
            pub fn jet<V: Visit>(self, wrt: usize, $p: [f64; 2], v: V) -> Option<V::Out> {
                match self {
                    $($kind::$name => nth!(wrt, None; $(
                        visit_jet!(v, $p; [$g $(, $arg)*] => $partial)
                    ),*),)*
                }
            }

            $(
                /// The value of the row of this name.
                #[inline(always)]
                #[allow(unused_variables, dead_code)]
                pub fn $method<R: Real>($p: Attributes<R>, [$($x),+]: [R; $n]) -> R {
                    $value
                }
            )*
        }

        impl Partial<$kind> {
            $(
                /// The partial for input `WRT`, given the operands and the output.
                #[inline(always)]
                #[allow(unused_variables, dead_code)]
                pub fn $method<const WRT: usize, R: Real>(
                    $p: Attributes<R>,
                    cotangent: R,
                    [$($x),+]: [R; $n],
                    output: R,
                ) -> R {
                    nth!(WRT, R::lit(0.0); $({
                        let $g = cotangent;
                        $(let $arg = operand!($arg, output);)*
                        $partial
                    }),*)
                }
            )*
        }
    };
}
pub(crate) use define_table;
