//! Windows, which fade out a signal at both ends, computed in float64 and rounded once.

use crate::array::defaults;
use crate::py::args::{count, integer};
use crate::py::data::create::{Any, made};
use crate::py::data::dtype::{device_or_default, optional_dtype};
use crate::py::prelude::*;
use std::f64::consts::PI;

/// `formula` of `k / n` for every place `k`, where a periodic window has `n = length`, a symmetric one less
/// by one.
fn window(
    name: &str, length: &Bound<'_, PyAny>, periodic: bool, (dtype, device, grad): (Any, Any, bool),
    formula: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> PyResult<PyTensor> {
    if !length.is_instance_of::<PyInt>() {
        let class = length.get_type().name()?;
        return Err(type_error(format!("{name}: window_length must be an integer, got {class}")));
    }
    let length = integer(length)?;
    if length < 0 {
        return Err(value_error(format!("{name}: window_length must not be negative, got {length}")));
    }
    let n = count(name, length)?;
    let dtype = optional_dtype(dtype)?.unwrap_or_else(defaults::float);
    if !dtype.is_float() {
        return Err(type_error(format!("{name}: a floating point dtype expected, got wengert.{dtype}")));
    }
    let out = if n < 2 {
        Tensor::full(Shape::new(&[n])?, 1.0, dtype, Device::Cpu)?
    } else {
        let steps = if periodic { n } else { n - 1 };
        let places = Tensor::arange(0.0, 1.0, n, DType::F64, Device::Cpu)?;
        formula(&places.div(steps as f64)?)?.cast(dtype)?
    };
    made(out.to_device(device_or_default(device)?)?, grad)
}

/// Functions that make a window of its length and of numbers.
macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident($($more:ident = $default:tt),*) = |$x:ident| $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (
                window_length, periodic=true $(, $more=$default)*, *, dtype=None, device=None,
                requires_grad=false
            ))]
            #[allow(clippy::too_many_arguments)]
            fn $name(
                window_length: &Bound<'_, PyAny>,
                periodic: bool,
                $($more: f64,)*
                dtype: Any,
                device: Any,
                requires_grad: bool,
            ) -> PyResult<PyTensor> {
                let made = (dtype, device, requires_grad);
                window(stringify!($name), window_length, periodic, made, |$x| $value)
            }
        )*
    };
}

/// `center - width * cos(2 pi x)`.
fn cosine(x: &Tensor, center: f64, width: f64) -> Result<Tensor> {
    x.mul(2.0 * PI)?.cos()?.mul(-width)?.add(center)
}

windows! {
    /// Returns the window `1/2 - cos(2 pi k / n) / 2`; of the default dtype unless told
    /// otherwise.
    ///
    /// Args:
    ///     window_length: the number of elements.
    ///     periodic: `n` is the length, as transforms want it; without, one less, and the window is
    ///         symmetric.
    hann_window() = |x| cosine(x, 0.5, 0.5);
    /// Returns the window `alpha - beta * cos(2 pi k / n)`; see `hann_window`.
    hamming_window(alpha = 0.54, beta = 0.46) = |x| cosine(x, alpha, beta);
    /// Returns the window `0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)`; see `hann_window`.
    blackman_window() = |x| cosine(x, 0.42, 0.5)?.add(&x.mul(4.0 * PI)?.cos()?.mul(0.08)?);
    /// Returns the triangle `1 - abs(2 k / n - 1)`; see `hann_window`.
    bartlett_window() = |x| x.mul(2.0)?.sub(1.0)?.abs()?.mul(-1.0)?.add(1.0);
    /// Returns the window `i0(beta * sqrt(1 - (2 k / n - 1)^2)) / i0(beta)`; see `hann_window`.
    kaiser_window(beta = 12.0) = |x| {
        // Scaled Bessel functions, which do not overflow: i0e(x) is i0(x) exp(-x).
        let top = Tensor::scalar(beta.abs(), DType::F64, Device::Cpu)?;
        let height = x.mul(2.0)?.sub(1.0)?.square()?.mul(-1.0)?.add(1.0)?;
        let x = height.clamp(Some(0.0.into()), None)?.sqrt()?.mul(&top)?;
        x.i0e()?.mul(&x.sub(&top)?.exp()?)?.div(&top.i0e()?)
    };
}

exports! { functions: hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window }
