//! Comparisons, selection, truth values and next numbers on the GPU; the counterpart of
//! `src/cpu/pointwise/logic.rs`.

use super::map::{MapKernel, run};
use super::prelude::*;
use crate::arguments::logic::{Logic, Relation};
use crate::gpu::shader::int_expr::{self, IntExpr};
use crate::gpu::shader::wgsl::{self, Expr};
use crate::math::real::{Integer, Real};

/// Runs a function with the arithmetic of `compute`; `body` writes it.
fn run_as(
    (name, key): (&str, u64), dtype: DType, compute: DType, x: &[&Array], body: &dyn Fn() -> String,
) -> Result<Array> {
    let job = MapKernel { name, key: [key, 0], attributes: [0.0; 2], dtype, compute };
    run(&job, x, &|| Ok(body()))
}

/// Whether `x` is in `relation` to `y`, elementwise, for one dtype; NaN as in IEEE 754, tested by its bits.
pub fn compare(x: &Array, y: &Array, relation: Relation) -> Result<Array> {
    if x.dtype() != y.dtype() {
        return Err(Error::dtype(format!("internal: comparison of {x:?} with {y:?}")));
    }
    let (kernel, compute) = (("compare", relation as u64), arithmetic(x.dtype()));
    let body = || match compute {
        DType::F32 => wgsl::with_library("op", &["x", "y"], &|x| of_floats(relation, x[0], x[1])),
        _ => int_expr::text(compute, &["x", "y"], &|x| x[0].relation(relation, x[1])),
    };
    run_as(kernel, DType::Bool, compute, &[x, y], &body)
}

/// How WGSL spells a relation.
fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Lt => "<",
        Relation::Le => "<=",
        Relation::Eq => "==",
        Relation::Ne => "!=",
        Relation::Gt => ">",
        Relation::Ge => ">=",
    }
}

/// 1 where `x` is in `relation` to `y`, else 0.
pub(super) fn of_floats(relation: Relation, x: Expr, y: Expr) -> Expr {
    let holds = match relation {
        Relation::Ne => x.ne(y),
        _ => x.relation(sign(relation), y) & x.ordered(y),
    };
    Expr::select(holds, Expr::lit(1.0), Expr::lit(0.0))
}

/// A function of bool arrays: of two, `not` of one.
pub fn logical(logic: Logic, x: &[&Array]) -> Result<Array> {
    if let Some(a) = x.iter().find(|a| a.dtype() != DType::Bool) {
        return Err(Error::dtype(format!("internal: logic is for bool, got {a:?}")));
    }
    let body = || {
        int_expr::text(DType::I32, &["x", "y"][..x.len()], &|x| match logic {
            Logic::And => x[0].and(x[1]),
            Logic::Or => x[0].or(x[1]),
            Logic::Xor => x[0].xor(x[1]),
            Logic::Not => IntExpr::lit(1).sub(x[0]),
        })
    };
    run_as(("logic", logic as u64), DType::Bool, DType::I32, x, &body)
}

/// `a` where `mask` holds, `b` elsewhere; `a` and `b` have one dtype, and all three broadcast.
pub fn select(mask: &Array, a: &Array, b: &Array) -> Result<Array> {
    if a.dtype() != b.dtype() || mask.dtype() != DType::Bool {
        return Err(Error::dtype(format!("internal: select by {mask:?} between {a:?} and {b:?}")));
    }
    let compute = arithmetic(a.dtype());
    let body = || match compute {
        DType::F32 => wgsl::with_library("op", &["m", "a", "b"], &|x| {
            Expr::select(x[0].relation("!=", Expr::lit(0.0)), x[1], x[2])
        }),
        _ => int_expr::text(compute, &["m", "a", "b"], &|x| x[0].select(x[1], x[2])),
    };
    run_as(("select", 0), a.dtype(), compute, &[mask, a, b], &body)
}

/// The next number after each of `x` towards `y`, by the bits of the numbers, as the CPU has it.
pub fn next_after(x: &Array, y: &Array) -> Result<Array> {
    let own = match x.dtype() {
        DType::F16 => "next_f16(",
        DType::BF16 => "next_bf16(",
        _ => "next_f32(",
    };
    let body = || shader!("lib/next_after").replace(own, "op(");
    run_as(("nextafter", 0), x.dtype(), DType::F32, &[x, y], &body)
}
