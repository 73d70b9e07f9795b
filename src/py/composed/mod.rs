//! Operations that are made of others. They have no rules of their own: their derivatives, batching and
//! kernels are those of the operations that they call. Read next: `src/py/composed/pointwise.rs`.

mod asking;
mod joining;
mod ordering;
mod parts;
mod placing;
mod pointwise;
mod products;
mod quantiles;
mod scatter;
mod shapes;
mod statistics;
mod windows;
mod writes;

use crate::interp::{autocast::eligible, autocast_of, autocasting, current, enter_autocast};
use crate::py::prelude::*;
use crate::py::writes::aliasing::unaliased;

/// Returns what `f` makes of `x` and others, on behalf of the method `name`, in memory of its own.
fn composed(
    py: Python<'_>, name: &str, x: &Tensor, f: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    run(py, x.numel(), || unaliased(f().named(name)?, x)).map(PyTensor::from)
}

/// The tensors among operands.
fn tensors<'a>(x: &'a Tensor, more: &'a [Arg]) -> impl Iterator<Item = &'a Tensor> {
    let others = more.iter().filter_map(|arg| if let Arg::Tensor(t) = arg { Some(t) } else { None });
    std::iter::once(x).chain(others)
}

/// Converts the tensors among operands for which `is` holds.
fn cast<const N: usize>(
    x: &Tensor, mut more: [Arg; N], to: DType, is: impl Fn(DType) -> bool,
) -> Result<(Tensor, [Arg; N])> {
    let one = |t: &Tensor| if is(t.dtype()) { t.cast(to) } else { Ok(t.clone()) };
    for arg in &mut more {
        if let Arg::Tensor(t) = arg {
            *t = one(t)?;
        }
    }
    Ok((one(x)?, more))
}

/// Runs `f` of operands, halves among them in float32; the result is rounded to their type once, also under
/// autocast.
fn rounding_once<const N: usize>(
    x: &Tensor, more: [Arg; N], f: impl FnOnce(&Tensor, [Arg; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    if !tensors(x, &more).any(|t| t.dtype().is_half()) {
        return f(x, more);
    }
    let dtype = only_dtype(x, &more);
    let (x, more) = cast(x, more, DType::F32, DType::is_half)?;
    let out = f(&x, more)?;
    match dtype {
        Some(dtype) if out.dtype().is_float() => out.cast(dtype),
        _ => Ok(out),
    }
}

/// [`rounding_once`], but for autocast, under which the result stays in float32.
fn in_float32<const N: usize>(
    x: &Tensor, more: [Arg; N], f: impl FnOnce(&Tensor, [Arg; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    if !autocasting() {
        return rounding_once(x, more, f);
    }
    let (x, more) = cast(x, more, DType::F32, DType::is_half)?;
    f(&x, more)
}

/// Runs `f` of operands, under autocast in the widest type of theirs.
fn in_widest<const N: usize>(
    x: &Tensor, more: [Arg; N], f: impl FnOnce(&Tensor, [Arg; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    if !autocasting() {
        return f(x, more);
    }
    let given = tensors(x, &more).map(Tensor::dtype).filter(|&dtype| eligible(dtype));
    let widest = given.reduce(DType::promote).unwrap_or(DType::F32);
    let (x, more) = cast(x, more, widest, eligible)?;
    let _region = enter_autocast(None);
    f(&x, more)
}

/// Runs `f` of operands, under autocast in the low precision of the region.
fn in_low<const N: usize>(
    x: &Tensor, more: [Arg; N], f: impl FnOnce(&Tensor, [Arg; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    let Some(low) = autocast_of(&current()).flatten() else { return f(x, more) };
    let (x, more) = cast(x, more, low, eligible)?;
    let _region = enter_autocast(None);
    f(&x, more)
}

/// The only dtype of the floating point tensors among operands; those without axes follow the others.
fn only_dtype(x: &Tensor, more: &[Arg]) -> Option<DType> {
    let among = |least: usize| {
        let mut dtypes =
            tensors(x, more).filter(|t| t.rank() >= least && t.dtype().is_float()).map(Tensor::dtype);
        let first = dtypes.next()?;
        Some(dtypes.all(|dtype| dtype == first).then_some(first))
    };
    among(1).or_else(|| among(0)).flatten()
}

/// The words for so many axes at least.
fn check_axes(name: &str, x: &Tensor, least: usize) -> Result<()> {
    if x.rank() >= least {
        return Ok(());
    }
    let expected = match least {
        1 => "one axis".to_string(),
        2 => "two axes".to_string(),
        n => format!("{n} axes"),
    };
    let given = if least == 1 { "a number".to_string() } else { format!("shape {}", x.shape()) };
    Err(Error::shape(format!("{name}: at least {expected} expected, got {given}")))
}

/// Raises for a tensor that is not of floating point numbers.
pub fn check_floats(name: &str, x: &Tensor) -> Result<()> {
    match x.dtype().is_float() {
        true => Ok(()),
        false => Err(Error::dtype(format!(
            "{name}: a floating point tensor expected, got wengert.{}; convert with .float() first",
            x.dtype()
        ))),
    }
}

/// Adds the functions of this folder to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    asking::register(m)?;
    joining::register(m)?;
    pointwise::register(m)?;
    products::register(m)?;
    shapes::register(m)?;
    statistics::register(m)?;
    windows::register(m)
}
