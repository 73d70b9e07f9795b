//! What becomes of a matrix product before it is stored: `out = act(alpha A B + bias)`.
//!
//! Scaling, bias and activation touch a piece of the product while it is still in the first cache; as loops of their own
//! they would read and write the whole result again. Read next: `matmul.rs`, which applies it.

use super::copy::{cast, contiguous};
use super::isa::{Body, Lane, PlainBody, Single, run, run_plain};
use super::lane::F64;
use super::layout::wrong_dtype;
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::real::{Left, Pointwise};

/// What becomes of a product before it is stored.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    /// Factor of the product.
    pub alpha: f64,
    /// Added to every row if its shape is `[n]`, to every column if it is `[m, 1]`; in the dtype of the operands.
    pub bias: Option<&'a Array>,
    /// Applied last, element by element.
    pub act: Option<&'a dyn Activation>,
}

impl Default for Epilogue<'_> {
    /// The product itself.
    fn default() -> Self {
        Epilogue { alpha: 1.0, bias: None, act: None }
    }
}

impl Epilogue<'_> {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        self.alpha == 1.0 && self.bias.is_none() && self.act.is_none()
    }

    /// Applies it to a finished product `[..., m, n]` in `f32` or `f64`.
    pub(super) fn apply(&self, out: &mut Array) -> Result<()> {
        if self.is_none() {
            return Ok(());
        }
        match out.dtype() {
            DType::F32 => self.apply_as::<f32>(out, |act, x| act.single(x)),
            DType::F64 => self.apply_as::<f64>(out, |act, x| act.double(x)),
            other => Err(wrong_dtype("the epilogue of matmul", other)),
        }
    }

    fn apply_as<T: Element>(&self, out: &mut Array, act: impl Fn(&dyn Activation, &mut [T])) -> Result<()> {
        let (m, n) = (out.dim(out.rank() - 2), out.dim(out.rank() - 1));
        let bias = match self.bias {
            Some(bias) if *bias.shape().to_vec() == [n] || *bias.shape().to_vec() == [m, 1] => {
                Some((contiguous(&cast(bias, T::DTYPE)?)?, bias.rank() == 1))
            }
            Some(bias) => {
                return Err(Error::shape(format!(
                    "internal: bias {} of a product {}",
                    bias.shape(),
                    out.shape()
                )));
            }
            None => None,
        };
        for (i, row) in out.slice_mut::<T>()?.chunks_exact_mut(n.max(1)).enumerate() {
            if self.alpha != 1.0 {
                row.iter_mut().for_each(|x| *x = T::from_f64(x.to_f64() * self.alpha));
            }
            if let Some((bias, along)) = &bias {
                let bias = bias.slice::<T>()?;
                let at = |j: usize| bias[if *along { j } else { i % m }].to_f64();
                row.iter_mut().enumerate().for_each(|(j, x)| *x = T::from_f64(x.to_f64() + at(j)));
            }
            if let Some(f) = self.act {
                act(f, row);
            }
        }
        Ok(())
    }
}

/// A function of one number, over slices. Every rule of the tables is one.
pub trait Activation: Sync {
    /// Replaces the elements; halves are computed in `f32`.
    fn single(&self, x: &mut [f32]);
    /// Replaces the elements.
    fn double(&self, x: &mut [f64]);
}

struct Map<'a, P, T>(P, &'a mut [T]);

impl<P: Pointwise<1>> Body for Map<'_, P, f32> {
    type Output = ();
    #[inline(always)]
    fn run<L: Single>(self)
    where
        f64: Left<L>,
    {
        self.1.iter_mut().for_each(|x| *x = self.0.apply([L::new(*x)]).get());
    }
}

impl<P: Pointwise<1>> PlainBody for Map<'_, P, f64> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.1.iter_mut().for_each(|x| *x = self.0.apply([F64::new(*x)]).get());
    }
}

impl<P: Pointwise<1> + Sync> Activation for P {
    fn single(&self, x: &mut [f32]) {
        run(Map(*self, x));
    }
    fn double(&self, x: &mut [f64]) {
        run_plain(Map(*self, x));
    }
}
