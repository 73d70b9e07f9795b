//! Cross-entropy of logits with class indices, fused with the terms of the logsumexp that its backward
//! kernel needs.

use super::norm::{fresh, start, wide, with_float};
use crate::cpu::prelude::*;
use crate::cpu::rows::{Access, RowFloat, RowOp, across, all_of, each_row, first_of, sum_of};
use crate::math::wide::Wide;

/// Returns the targets as int64, checked against the number of classes.
fn targets(target: &Array, classes: usize, ignore: i64) -> Result<Array> {
    let target = cast(target, DType::I64)?;
    let wrong = |&(_, &t): &(usize, &i64)| t != ignore && !(0..classes as i64).contains(&t);
    match target.slice::<i64>()?.iter().enumerate().find(wrong) {
        None => Ok(target),
        Some((row, t)) => Err(Error::index(format!(
            "cross_entropy: target {t} in row {row} is out of range for {classes} classes, \
             expected 0..{} (or {ignore}, which is ignored)",
            classes as i64 - 1
        ))),
    }
}

struct CrossEntropy<T> {
    x: Shared<T>,
    target: Shared<i64>,
    loss: Shared<T>,
    terms: Shared<T>,
    n: usize,
    ignore: i64,
}

impl<T: RowFloat> RowOp<T> for CrossEntropy<T> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        // SAFETY: all arrays have this row, targets were checked, and only this call has the row.
        unsafe {
            let x = self.x.get().add(row * self.n).cast_const();
            let top: L = L::lit(T::largest(std::slice::from_raw_parts(x, self.n)).to_f64());
            let mut sum = L::lit(0.0);
            across!(L, self.n, i, v => sum = sum + v.keep((v.load::<L>(x.add(i)) - top).exp()));
            let spread = L::lit(sum_of(sum)).log();
            let target = *self.target.get().add(row);
            let counted = target != self.ignore;
            let loss = if counted { spread - (all_of::<L>(x, target as usize) - top) } else { L::lit(0.0) };
            *self.loss.get().add(row) = first_of(loss);
            *self.terms.get().add(2 * row) = first_of(top);
            *self.terms.get().add(2 * row + 1) = first_of(spread);
        }
    }
}

/// Returns `logsumexp(x) - x[target]` per row of logits `[n, c]`, 0 where the target is `ignore`, and the
/// terms of the logsumexp `[n, 2]`. Both are `f32` for halves.
pub fn cross_entropy(logits: &Array, target: &Array, ignore: i64) -> Result<(Array, Array)> {
    let x = wide(logits)?;
    let (rows, n) = (x.dim(0), x.dim(1));
    let target = targets(target, n, ignore)?;
    let (loss, terms) = (fresh(target.shape(), x.dtype())?, fresh(Shape::new(&[rows, 2])?, x.dtype())?);
    with_float!(x.dtype(), T => {
        let (loss, terms) = (start(&loss), start(&terms));
        let op = CrossEntropy::<T> { x: start(&x), target: start(&target), loss, terms, n, ignore };
        each_row::<T, _>(&op, rows, n)
    });
    Ok((loss, terms))
}

struct CrossEntropyVjp<T> {
    g: Shared<T>,
    x: Shared<T>,
    target: Shared<i64>,
    terms: Shared<T>,
    dx: Shared<T>,
    n: usize,
    ignore: i64,
}

impl<T: RowFloat> RowOp<T> for CrossEntropyVjp<T> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let n = self.n;
        // SAFETY: all arrays have this row, targets were checked, and only this call has the row.
        unsafe {
            let (x, dx) = (self.x.get().add(row * n).cast_const(), self.dx.get().add(row * n));
            let target = *self.target.get().add(row);
            if target == self.ignore {
                std::slice::from_raw_parts_mut(dx, n).fill(T::from_f64(0.0));
                return;
            }
            let g: L = all_of(self.g.get(), row);
            let (top, spread): (L, L) =
                (all_of(self.terms.get(), 2 * row), all_of(self.terms.get(), 2 * row + 1));
            across!(L, n, i, v => v.store(((v.load::<L>(x.add(i)) - top) - spread).exp() * g, dx.add(i)));
            let hit = dx.add(target as usize);
            *hit = first_of(all_of::<L>(hit, 0) - g);
        }
    }
}

/// The VJP of [`cross_entropy`]: `(softmax(x) - onehot(target)) * g` per row, in the dtype of the logits.
pub fn cross_entropy_vjp(
    g: &Array, logits: &Array, target: &Array, terms: &Array, ignore: i64,
) -> Result<Array> {
    let x = wide(logits)?;
    let (g, terms) = (cast(&g.expand(&target.shape())?, x.dtype())?, cast(terms, x.dtype())?);
    let (rows, n) = (x.dim(0), x.dim(1));
    let target = targets(target, n, ignore)?;
    let dx = fresh(x.shape(), x.dtype())?;
    with_float!(x.dtype(), T => {
        let (g, terms, dx) = (start(&g), start(&terms), start(&dx));
        let op = CrossEntropyVjp::<T> { g, x: start(&x), target: start(&target), terms, dx, n, ignore };
        each_row::<T, _>(&op, rows, n)
    });
    cast(&dx, logits.dtype())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_gradient_by_definition() -> Result<()> {
        for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::BF16, 2e-2)] {
            for x in layouts(&[4, 37], dtype)? {
                let target = Array::from_slice(&[3i32, -100, 0, 36], Shape::new(&[4])?)?;
                let g = sample(&[4], dtype.compute())?;
                let (loss, terms) = cross_entropy(&x, &target, -100)?;
                let dx = values(&cross_entropy_vjp(&g, &x, &target, &terms, -100)?);
                for (r, row) in values(&x).chunks(37).enumerate() {
                    let t = values(&target)[r];
                    let want = row.iter().map(|v| v.exp()).sum::<f64>().ln();
                    assert!((values(&terms)[2 * r] + values(&terms)[2 * r + 1] - want).abs() <= 1e-5);
                    let hit = if t < 0.0 { 0.0 } else { want - row[t as usize] };
                    assert!((values(&loss)[r] - hit).abs() <= tolerance * 10.0);
                    for (i, v) in row.iter().enumerate() {
                        let p = (v - want).exp() - (i as f64 == t) as u8 as f64;
                        let want = if t < 0.0 { 0.0 } else { p * values(&g)[r] };
                        assert!((dx[r * 37 + i] - want).abs() <= tolerance * 4.0);
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_target_out_of_range_is_named() -> Result<()> {
        let x = sample(&[2, 5], DType::F32)?;
        let target = Array::from_slice(&[4i64, 5], Shape::new(&[2])?)?;
        let text = cross_entropy(&x, &target, -100).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(
            text,
            "cross_entropy: target 5 in row 1 is out of range for 5 classes, \
             expected 0..4 (or -100, which is ignored)"
        );
        Ok(())
    }
}
