//! Quantiles, by sorting and weighing neighbours.

use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::operand::{Operand, binary};
use crate::ops::reduce::index_type;
use crate::py::args::extracted;
use crate::py::composed::shapes::{Axis, on_axis};
use crate::py::composed::{check_floats, composed};
use crate::py::data::convert;
use crate::py::prelude::*;
use crate::py::tensor::rearrange::moved;
use pyo3::types::PyFloat;

/// How to choose between the neighbours of a place.
const INTERPOLATIONS: [&str; 5] = ["linear", "lower", "higher", "midpoint", "nearest"];

/// The argument `interpolation`: one of these, or what was given instead.
struct How(Result<&'static str, String>);

extracted!(How, |obj| {
    let word = obj.extract::<String>().unwrap_or_default();
    match INTERPOLATIONS.into_iter().find(|known| *known == word) {
        Some(known) => Ok(How(Ok(known))),
        None => Ok(How(Err(obj.repr()?.to_string()))),
    }
});

/// What a quantile is of: an axis, which may stay, the choice between neighbours, and whether NaN counts.
#[derive(Clone, Copy)]
struct Quantile {
    name: &'static str,
    dim: Option<i64>,
    keep: bool,
    how: &'static str,
    skips_nan: bool,
}

impl Quantile {
    /// The quantiles of `x` of probability `q`.
    fn of(self, x: &Tensor, q: &Tensor) -> Result<Tensor> {
        let (name, own) = (self.name, x.shape());
        let (wide, axis) = match self.dim {
            None => (x.flatten(0, -1)?, 0),
            Some(dim) => on_axis(name, x, dim)?,
        };
        let line = moved(&wide, &[axis as i64], &[-1])?;
        let shape = line.shape();
        let (lead, length) = (shape.rank() - 1, shape.at(shape.rank() - 1));
        if length == 0 {
            return Err(Error::value(format!(
                "{name}: a quantile of no elements, the shape is {own}; pass at least one"
            )));
        }
        let (values, _) = line.sort(-1, false)?;
        let plain = line.detach();
        let nan = plain.ne(&plain)?;
        let last = if self.skips_nan {
            let count = nan.logical_not()?.sum(Some(&[-1]), true)?;
            count.sub(1i64)?.clamp(Some(Operand::Int(0)), None)?.cast(x.dtype())?
        } else {
            Tensor::full(shape.with(lead, 1), (length - 1) as f64, x.dtype(), x.device())?
        };
        let place = q.cast(x.dtype())?.flatten(0, -1)?.mul(&last)?;
        let plain = place.detach();
        let (below, above, place) = match self.how {
            "lower" => (plain.floor()?, plain.floor()?, plain.floor()?),
            "higher" => (plain.ceil()?, plain.ceil()?, plain.ceil()?),
            "nearest" => (plain.round()?, plain.round()?, plain.round()?),
            _ => (plain.floor()?, plain.ceil()?, place),
        };
        let at = |place: &Tensor| values.gather(-1, &place.cast(index_type(x.device()))?);
        let (low, high) = (at(&below)?, at(&above)?);
        let weight = if self.how == "midpoint" { above.sub(&below)?.mul(0.5)? } else { place.sub(&below)? };
        // Between equal neighbours there is nothing to weigh, infinite ones included; beside an infinite one
        // the nearer counts.
        let apart = high.sub(&low)?;
        let rest = binary(Binary::Sub, Operand::Int(1), (&weight).into())?;
        let between =
            weight.lt(0.5)?.select(&low.add(&apart.mul(&weight)?)?, &high.sub(&apart.mul(&rest)?)?)?;
        let out = below.eq(&above)?.select(&low, &between)?;
        let missing = if self.skips_nan { nan.all(Some(&[-1]), true)? } else { nan.any(Some(&[-1]), true)? };
        let out = moved(&out.masked_fill(&missing, f64::NAN)?, &[-1], &[0])?;
        let kept = match self.dim {
            None => Shape::new(&vec![1; own.rank()])?,
            Some(_) if own.rank() == 0 => own,
            Some(_) => own.with(axis, 1),
        };
        let count = q.numel();
        let out = if self.keep { out.reshape(&kept.inserted(0, count)?)? } else { out };
        if q.rank() > 0 { Ok(out) } else { out.squeeze(Some(&[0])) }
    }

    /// The method of a tensor, after a look at its arguments.
    fn method(mut self, py: Python<'_>, x: &PyTensor, q: &Bound<'_, PyAny>, how: How) -> PyResult<PyTensor> {
        let (name, x) = (self.name, &x.value()?.into_owned());
        self.how = how.0.map_err(|given| {
            let known = INTERPOLATIONS.join(", ");
            Error::value(format!("{name}: interpolation must be one of {known}, got {given}"))
        })?;
        check_floats(name, x)?;
        let is_number = q.is_instance_of::<PyInt>() || q.is_instance_of::<PyFloat>();
        if is_number && !(0.0..=1.0).contains(&q.extract::<f64>()?) {
            return Err(value_error(format!(
                "{name}: q = {q} is out of range; it is a probability between 0 and 1"
            )));
        }
        let q = match q.cast::<PyTensor>() {
            Ok(q) => value(q)?,
            Err(_) => convert::build(q, Some(x.dtype()), Some(x.device()), true)?,
        };
        if q.rank() > 1 {
            let shape = q.shape();
            return Err(
                Error::shape(format!("{name}: q must be a number or a vector, got shape {shape}")).into()
            );
        }
        composed(py, name, x, || self.of(x, &q))
    }
}

/// Methods with the signature of a quantile.
macro_rules! quantiles {
    ($($(#[$doc:meta])* $name:ident = $skips_nan:literal;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(
                    signature = (q, dim=None, keepdim=false, *, interpolation=How(Ok("linear"))),
                    text_signature = "($self, q, dim=None, keepdim=False, *, interpolation='linear')"
                )]
                fn $name(
                    &self, py: Python<'_>, q: &Bound<'_, PyAny>, dim: Option<Axis>, keepdim: bool,
                    interpolation: How,
                ) -> PyResult<PyTensor> {
                    let (name, skips_nan) = (stringify!($name), $skips_nan);
                    let dim = dim.map(|dim| dim.of(name)).transpose()?;
                    let all = Quantile { name, dim, keep: keepdim, how: "linear", skips_nan };
                    all.method(py, self, q, interpolation)
                }
            )*
        }
    };
}

quantiles! {
    /// Returns the quantiles of probability `q` along `dim`, or of all elements; NaN where there is a NaN.
    ///
    /// Args:
    ///     q: a probability, or a vector of them, whose axis then comes first in the result.
    ///     interpolation: how to choose between the neighbours `a` and `b` of a place: `"linear"`,
    ///         `"lower"`, `"higher"`, `"midpoint"` or `"nearest"`.
    ///
    /// Raises:
    ///     TypeError: integers, which have no quantiles between them.
    ///     ValueError: a probability outside of 0 to 1, no elements.
    quantile = false;
    /// Returns `quantile` of the elements that are not NaN; NaN where there are none.
    nanquantile = true;
}
