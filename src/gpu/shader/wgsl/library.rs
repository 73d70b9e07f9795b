//! The WGSL library: functions named `w_...` that generated and hand-written shaders call.
//!
//! Those of one or two numbers are the functions of `src/math/mod.rs`, translated by [`Expr`]. Four are
//! files of `shaders/lib/`: `w_ne` and `w_ordered`, which must read bits, `w_turns`, which has branches and
//! two results, and `w_fmod`, which has a loop.

use super::{Expr, math, write_float};

/// Declares the list of names.
macro_rules! names {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
        /// The names of all library functions, each after those it calls; `exp` stands for `w_exp`.
        pub const NAMES: &[&str] = &["ne", "ordered", "turns", $(stringify!($name),)* "pow", "fmod"];
    };
}
crate::math::functions::primitives!(names);

/// The formulas of the primitive functions on GPUs.
mod formulas {
    use super::{Expr, math};
    pub use math::special::sigmoid;
    pub use math::{erf, exp, expm1, log, log1p, tanh};

    /// Defines functions that have one formula for both precisions.
    macro_rules! of_both_precisions {
        ($($name:ident)*) => {$(
            pub fn $name(x: Expr) -> Expr {
                math::special::$name::<f32, Expr>(x)
            }
        )*};
    }
    of_both_precisions! {
        exp2 log2 log10 asin acos atan sinh cosh asinh acosh atanh erfc erfinv ndtr gelu lgamma digamma i0
        i0e i1 i1e erfcx ndtri bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1
    }
    pub fn sin(x: Expr) -> Expr {
        math::sin(x, x.quarters())
    }
    pub fn cos(x: Expr) -> Expr {
        math::cos(x.quarters())
    }
    pub fn tan(x: Expr) -> Expr {
        math::special::tan(x, x.quarters())
    }
    pub fn silu(x: Expr) -> Expr {
        math::special::silu::<f32, Expr>(x, sigmoid(x))
    }
}

/// Returns the text of one library function, and the names of those that it calls.
fn one(name: &str) -> (String, Vec<&'static str>) {
    macro_rules! of_one_number {
        ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
            match name {
                $(stringify!($name) => {
                    return write_float(concat!("w_", stringify!($name)), &["x"], &|v| formulas::$name(v[0]));
                })*
                _ => {}
            }
        };
    }
    crate::math::functions::primitives!(of_one_number);
    let file = match name {
        "pow" => return write_float("w_pow", &["x", "y"], &|v| math::pow(v[0], v[1])),
        "ne" => shader!("lib/ne"),
        "ordered" => shader!("lib/ordered"),
        "turns" => shader!("lib/turns"),
        "fmod" => shader!("lib/fmod"),
        // An unknown function has no text; naga reports its name at the call.
        _ => "",
    };
    (file.to_owned(), Vec::new())
}

/// The name of the library function `w_{name}`, if there is one.
pub fn function(name: &str) -> Option<&'static str> {
    NAMES.iter().copied().find(|known| *known == name)
}

/// Returns the texts of the named library functions and of all that they call, each once.
pub fn library(needed: &[&str]) -> String {
    let mut included = [false; NAMES.len()];
    let mut texts = [const { String::new() }; NAMES.len()];
    // Functions call only those listed before them, so one pass from the end finds all.
    for i in (0..NAMES.len()).rev() {
        if included[i] || needed.contains(&NAMES[i]) {
            let (text, calls) = one(NAMES[i]);
            texts[i] = text;
            for (k, name) in NAMES.iter().enumerate() {
                included[k] |= calls.contains(name);
            }
        }
    }
    texts.concat()
}

/// The text of `shaders/lib/math.wgsl`: the whole library, for hosts other than this one.
pub fn library_file() -> String {
    let head = "\
// The library of math functions w_exp, w_log, ... : prepend what a shader calls.
//
// Written by `cargo run --example math_wgsl` from src/math/mod.rs: change that, not this. NaN and
// infinity are treated as IEEE 754 says where the compiler lets them pass; subnormal numbers may
// count as 0.

";
    head.to_owned() + &library(NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::shader::wgsl::with_library;
    use crate::math::real::Real;

    /// The text of a rule's function.
    struct Print;

    impl crate::ops::pointwise::table::Visit for Print {
        type Out = String;
        fn visit<const N: usize, P: crate::math::real::Pointwise<N>>(self, rule: P) -> String {
            let names = &["x", "y", "z", "w"][..N];
            write_float("op", names, &|x| rule.apply(std::array::from_fn(|i| x[i]))).0
        }
    }

    /// Kernels of one row and other attributes are one kernel, unless `Fun::counts` says that they are not.
    #[test]
    fn attributes_are_no_part_of_the_text() {
        for fun in crate::ops::pointwise::table::all() {
            let texts = |p| {
                let partials = (0..2).filter_map(move |i| fun.partial(i, p, Print));
                partials.chain([fun.value(p, Print)]).collect::<Vec<String>>()
            };
            assert_eq!(texts([2.0, 3.0]) != texts([5.0, 7.0]), fun.counts(), "{}", fun.name());
        }
    }

    /// Panics with naga's message unless `text` is valid WGSL.
    fn check(text: &str) {
        let module = match naga::front::wgsl::parse_str(text) {
            Ok(module) => module,
            Err(error) => panic!("{}\n{text}", error.emit_to_string(text)),
        };
        let mut validator = naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::empty(),
        );
        if let Err(error) = validator.validate(&module) {
            panic!("{}\n{text}", error.emit_to_string(text));
        }
    }

    #[test]
    fn every_library_function_is_valid() {
        for name in NAMES {
            let text = library(&[name]);
            assert!(text.contains(&format!("fn w_{name}(")), "{name} is missing");
            check(&text);
        }
        check(&library(NAMES));
    }

    #[test]
    fn the_file_is_up_to_date() {
        let code = |text: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.split("//").next()).map(str::trim);
            lines.filter(|line| !line.is_empty()).map(String::from).collect()
        };
        let file = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/lib/math.wgsl"));
        let is_alike = code(file) == code(&library_file());
        assert!(is_alike, "run `cargo run --example math_wgsl > shaders/lib/math.wgsl`");
    }

    #[test]
    fn a_rule_becomes_a_function() {
        let text = with_library("op", &["x", "g"], &|v| v[1] * (1.0 - v[0] * v[0]));
        let lines = [
            "fn op(x: f32, g: f32) -> f32 {",
            "    let v0 = x;",
            "    let v1 = g;",
            "    let v2 = v0 * v0;",
            "    let v3 = 1.0f;",
            "    let v4 = v3 - v2;",
            "    let v5 = v1 * v4;",
            "    return v5;",
            "}\n",
        ];
        assert_eq!(text, lines.join("\n"));
        check(&text);
    }

    #[test]
    fn literals_without_a_spelling_are_made_from_bits() {
        for value in [f64::INFINITY, -f64::INFINITY, f64::NAN, 1e300, -0.0, 1e-45, 3.4028234663852886e38] {
            check(&with_library("op", &["x"], &|v| v[0] + value));
        }
    }

    #[test]
    fn every_operation_has_a_spelling() {
        let text = with_library("op", &["x", "y"], &|v| {
            let (x, y) = (v[0], v[1]);
            let mask = x.lt(y) & x.le(y) | x.eq(y) & !x.ne(y) | x.gt(y) & x.ge(y);
            let sum =
                x.abs() + x.floor() - x.round() * x.sqrt() / -x + x.exp() + x.expm1() + x.log() + x.log1p();
            Expr::select(mask, sum + x.sin() + x.cos() + x.tanh() + x.erf(), x.pow(y) + 2.0)
        });
        check(&text);
    }
}
