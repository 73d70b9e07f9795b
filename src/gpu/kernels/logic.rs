//! Comparisons, selection and truth values on the GPU; the counterpart of `src/cpu/pointwise/logic.rs`.

use super::map::{Job, run};
use crate::arguments::logic::{Logic, Relation};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::shader::template::arithmetic;

/// Runs the elementwise text `fn op` over `x`, arrays of one dtype; returns bool.
fn truth(name: &str, key: u64, x: &[&Array], text: String) -> Result<Array> {
    let compute = arithmetic(x[0].dtype());
    let job = Job { name, key: [key, 0], text: "", attributes: [0.0; 2], dtype: DType::Bool, compute };
    run(&job, x, &|| Ok(text.clone()))
}

/// Whether `x` is in `relation` to `y`, elementwise, for one dtype; NaN as in IEEE 754, tested by its bits.
pub fn compare(x: &Array, y: &Array, relation: Relation) -> Result<Array> {
    if x.dtype() != y.dtype() {
        return Err(Error::dtype(format!("internal: comparison of {x:?} with {y:?}")));
    }
    let sign = match relation {
        Relation::Lt => "<",
        Relation::Le => "<=",
        Relation::Eq => "==",
        Relation::Ne => "!=",
        Relation::Gt => ">",
        Relation::Ge => ">=",
    };
    let ordered =
        "((bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u) & ((bitcast<u32>(y) & 0x7fffffffu) <= 0x7f800000u)";
    let holds = match (arithmetic(x.dtype()), relation) {
        (DType::F32, Relation::Ne) => format!("(x != y) | !({ordered})"),
        (DType::F32, _) => format!("(x {sign} y) & {ordered}"),
        _ => format!("x {sign} y"),
    };
    truth("compare", relation as u64, &[x, y], format!("fn op(x: T, y: T) -> T {{ return T({holds}); }}"))
}

/// A function of bool arrays: of two, `not` of one.
pub fn logical(logic: Logic, x: &[&Array]) -> Result<Array> {
    check_bool(x)?;
    let text = match logic {
        Logic::And => "fn op(x: T, y: T) -> T { return x & y; }",
        Logic::Or => "fn op(x: T, y: T) -> T { return x | y; }",
        Logic::Xor => "fn op(x: T, y: T) -> T { return x ^ y; }",
        Logic::Not => "fn op(x: T) -> T { return 1 - x; }",
    };
    truth("logic", logic as u64, x, text.to_string())
}

fn check_bool(x: &[&Array]) -> Result<()> {
    match x.iter().find(|a| a.dtype() != DType::Bool) {
        Some(a) => Err(Error::dtype(format!("internal: logic is for bool, got {a:?}"))),
        None => Ok(()),
    }
}

/// `a` where `mask` holds, `b` elsewhere; `a` and `b` have one dtype, and all three broadcast.
pub fn select(mask: &Array, a: &Array, b: &Array) -> Result<Array> {
    if a.dtype() != b.dtype() || mask.dtype() != DType::Bool {
        return Err(Error::dtype(format!("internal: select by {mask:?} between {a:?} and {b:?}")));
    }
    let compute = arithmetic(a.dtype());
    let job = Job { name: "select", key: [0; 2], text: "", attributes: [0.0; 2], dtype: a.dtype(), compute };
    run(&job, &[mask, a, b], &|| {
        Ok("fn op(m: T, a: T, b: T) -> T { return select(b, a, m != T(0)); }".to_string())
    })
}
