//! The epilogue of a matrix product, `out = act(alpha A B + bias)`, applied before the result is stored.
//!
//! Factor, bias, activation and rounding to halves process a piece of the product while it is in the
//! first-level cache; separate loops would read and write the whole result again. Read next:
//! `src/cpu/product/matmul.rs`, which applies it.

use crate::cpu::pointwise::half_float::narrow;
use crate::cpu::pointwise::vector;
use crate::cpu::prelude::*;
use crate::cpu::product::{Multiply, Piece, Sink};
use crate::math::real::Pointwise;
use std::ops::{Add, Mul};

/// Applied to a product of floats before it is stored. Halves are finished in `f32` and rounded once.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    /// Factor of the product.
    pub alpha: f64,
    /// Added to every row if its shape is `[n]`, to every column if it is `[m, 1]`.
    pub bias: Option<&'a Array>,
    /// Applied last, element by element.
    pub act: Option<&'a dyn Activation>,
}

impl Default for Epilogue<'_> {
    /// Leaves the product unchanged.
    fn default() -> Self {
        Epilogue { alpha: 1.0, bias: None, act: None }
    }
}

impl Epilogue<'_> {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        self.alpha == 1.0 && self.bias.is_none() && self.act.is_none()
    }
}

/// A function of one number, over slices. Every pointwise rule of one input implements it.
pub trait Activation: Sync {
    /// Replaces `f32` elements.
    fn single(&self, x: &mut [f32]);
    /// Replaces `f64` elements.
    fn double(&self, x: &mut [f64]);
}

impl<P: Pointwise<1>> Activation for P {
    fn single(&self, x: &mut [f32]) {
        vector::map_in_place(*self, x);
    }
    fn double(&self, x: &mut [f64]) {
        vector::map_in_place(*self, x);
    }
}

/// The update `x = alpha x + bias` of a piece, with one bias per column, one per row, or none.
struct Affine<'a, T> {
    piece: Piece<T>,
    alpha: T,
    /// The bias of the whole product, and whether it has an element per column.
    bias: Option<(&'a [T], bool)>,
}

impl<T: Finishing> PlainBody for Affine<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Affine { piece, alpha, bias } = self;
        for i in 0..piece.rows {
            // SAFETY: only `take` makes this, whose caller guarantees sole access to the piece.
            let row = unsafe { piece.row(i) };
            match bias {
                None => row.iter_mut().for_each(|x| *x = *x * alpha),
                Some((bias, true)) => {
                    row.iter_mut().zip(&bias[piece.j..]).for_each(|(x, &bias)| *x = alpha * *x + bias)
                }
                Some((bias, false)) => {
                    let bias = bias[piece.i + i];
                    row.iter_mut().for_each(|x| *x = alpha * *x + bias);
                }
            }
        }
    }
}

/// A float type in which products are finished.
pub trait Finishing: Multiply + Mul<Output = Self> + Add<Output = Self> {
    /// Applies `act`.
    fn activate(act: &dyn Activation, x: &mut [Self]);
    /// Writes `x` to `to`, rounded to a half dtype; implemented for `f32` alone.
    fn narrow(_dtype: DType, _x: &[Self], _to: &mut [u16]) {}
}

impl Finishing for f32 {
    fn activate(act: &dyn Activation, x: &mut [f32]) {
        act.single(x);
    }
    fn narrow(dtype: DType, x: &[f32], to: &mut [u16]) {
        narrow(dtype, x, to);
    }
}

impl Finishing for f64 {
    fn activate(act: &dyn Activation, x: &mut [f64]) {
        act.double(x);
    }
}

/// An epilogue ready to be applied to pieces of a product.
pub struct Finish<'a, T> {
    alpha: T,
    act: Option<&'a dyn Activation>,
    /// The bias in the dtype of the sums, and whether it has an element per column (not per row).
    bias: Option<(Array, bool)>,
    /// The destination of halves: their dtype and the first element of the product.
    halves: Option<(DType, Shared<u16>)>,
    /// Columns of the whole product.
    n: usize,
}

impl<'a, T: Finishing> Finish<'a, T> {
    /// Returns the epilogue of an `m x n` product in the dtype `T`.
    pub fn new(epilogue: &Epilogue<'a>, m: usize, n: usize) -> Result<Finish<'a, T>> {
        let bias = match epilogue.bias {
            None => None,
            Some(bias) => {
                let shape = bias.shape().to_vec();
                if shape != [n] && shape != [m, 1] {
                    return Err(Error::shape(format!("internal: bias {bias:?} of a product [{m}, {n}]")));
                }
                Some((cast(bias, T::DTYPE)?, shape.len() == 1))
            }
        };
        Ok(Finish { alpha: T::from_f64(epilogue.alpha), act: epilogue.act, bias, halves: None, n })
    }

    /// Returns the epilogue for a product that is rounded to a half dtype, with first element at `to`.
    pub fn rounding(self, dtype: DType, to: Shared<u16>) -> Finish<'a, T> {
        Finish { halves: Some((dtype, to)), ..self }
    }

    /// Returns the epilogue for matrix `item` of a batch of `m x n` products.
    pub fn item(&self, item: usize, m: usize) -> Finish<'a, T> {
        let halves =
            self.halves.map(|(dtype, to)| (dtype, Shared::new(to.get().wrapping_add(item * m * self.n))));
        Finish { bias: self.bias.clone(), halves, ..*self }
    }
}

impl<T: Finishing> Sink<T> for Finish<'_, T> {
    unsafe fn take(&self, piece: Piece<T>) {
        let bias = self.bias.as_ref().and_then(|(bias, along)| Some((bias.slice::<T>().ok()?, *along)));
        if self.alpha != T::from_f64(1.0) || bias.is_some() {
            run_plain(Affine { piece, alpha: self.alpha, bias });
        }
        // SAFETY: the caller guarantees sole access to the piece.
        let rows = || (0..piece.rows).map(|i| unsafe { piece.row(i) });
        match self.act {
            // Rows without a gap between them are one.
            Some(act) if piece.stride == piece.columns as isize => {
                // SAFETY: as above.
                T::activate(act, unsafe {
                    std::slice::from_raw_parts_mut(piece.at, piece.rows * piece.columns)
                });
            }
            Some(act) => rows().for_each(|row| T::activate(act, row)),
            None => {}
        }
        if let Some((dtype, to)) = self.halves {
            for (i, row) in rows().enumerate() {
                // SAFETY: this part of the result belongs to the piece.
                let to = unsafe { to.part((piece.i + i) * self.n + piece.j, piece.columns) };
                T::narrow(dtype, row, to);
            }
        }
    }
}
