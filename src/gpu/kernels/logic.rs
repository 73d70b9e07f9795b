//! Comparisons, selection and truth values on the GPU; the twin of `src/cpu/logic.rs`.

use super::map::{Job, run};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The dtype in whose arithmetic elements of `dtype` are compared.
fn arithmetic(dtype: DType) -> DType {
    if dtype.is_float() {
        DType::F32
    } else {
        DType::I32
    }
}

/// `a` where `mask` holds, `b` elsewhere; `a` and `b` have one dtype, all three broadcast together.
pub fn select(mask: &Array, a: &Array, b: &Array) -> Result<Array> {
    if a.dtype() != b.dtype() || mask.dtype() != DType::Bool {
        return Err(Error::dtype(format!(
            "internal: select by {mask:?} between {a:?} and {b:?}"
        )));
    }
    let job = Job {
        name: "select",
        key: 0,
        dtype: a.dtype(),
        compute: arithmetic(a.dtype()),
    };
    run(&job, &[mask, a, b], &|| {
        Ok("fn op(m: T, a: T, b: T) -> T { return select(b, a, m != T(0)); }".to_string())
    })
}

/// Where the floats of `x` are infinite or NaN.
pub fn is_not_finite(x: &Array) -> Result<Array> {
    let job = Job {
        name: "is_not_finite",
        key: 0,
        dtype: DType::Bool,
        compute: DType::F32,
    };
    let text = "fn op(x: T) -> T { return select(0.0, 1.0, (bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u); }";
    run(&job, &[x], &|| Ok(text.to_string()))
}
