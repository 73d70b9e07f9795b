//! Loops that carry a state along one axis, of arrays viewed as contiguous `[before, length, after]`:
//! recurrences and running extremes. Cumulative sums and products: `src/cpu/reduce/scan.rs`.

use super::axis::around;
use crate::cpu::prelude::*;

/// Computes `s[i] = decay[i] * s[i-1] + x[i]` along `axis`, accumulated in `f64`, for operands of one shape.
pub fn recurrence(decay: &Array, x: &Array, axis: usize) -> Result<Array> {
    let dtype = common_dtype(&[decay, x])?;
    let (decay, x) = (computed(decay)?, computed(x)?);
    let mut out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    let sizes = around(&x.shape(), axis);
    dispatch_computed!(dtype, T => {
        let (decay, x) = (decay.slice::<T>()?, x.slice::<T>()?);
        lines(out.slice_mut::<T>()?, sizes, None::<f64>, |at, total| {
            // Nothing is before the first, whose decay may be infinite.
            let before = total.map_or(0.0, |total| decay[at].to_f64() * total);
            let now = before + x[at].to_f64();
            *total = Some(now);
            T::from_f64(now)
        })?;
    });
    cast(&out, dtype)
}

/// Returns the position of the largest or smallest element so far along `axis`, as int64: the last of equal
/// ones. NaN counts as the extreme, and its last occurrence wins.
pub fn running_extreme(x: &Array, axis: usize, largest: bool) -> Result<Array> {
    let x = computed(x)?;
    let mut out = Array::empty(x.shape(), DType::I64, Device::Cpu)?;
    let sizes = around(&x.shape(), axis);
    dispatch_computed!(x.dtype(), T => {
        let x = x.slice::<T>()?;
        // The index of the best element, the step at which it was found, and the current step.
        lines(out.slice_mut::<i64>()?, sizes, None::<(usize, i64, i64)>, |at, state| {
            let (best, found, step) = state.unwrap_or((at, 0, 0));
            let (old, new) = (x[best], x[at]);
            let better = if largest { new >= old } else { new <= old };
            #[allow(clippy::eq_op)]
            let here = new != new || (old == old && better);
            let (best, found) = if here { (at, step) } else { (best, found) };
            *state = Some((best, found, step + 1));
            found
        })?;
    });
    Ok(out)
}

/// Traverses all lines of an axis: `step(index, state)` returns the output element there.
fn lines<T: Element, S: Copy + Send + Sync>(
    out: &mut [T], (before, length, after): (usize, usize, usize), start: S,
    step: impl Fn(usize, &mut S) -> T + Sync,
) -> Result<()> {
    let to = Shared::new(out.as_mut_ptr());
    try_parallel_for(before, GRAIN.div_ceil((length * after).max(1)), |range| {
        let mut states = filled(start, after)?;
        for i in range {
            states.fill(start);
            let first = i * length * after;
            // SAFETY: every `i` has its own part of the output.
            let out = unsafe { to.part(first, length * after) };
            for (k, row) in out.chunks_exact_mut(after.max(1)).enumerate() {
                for (j, (y, state)) in row.iter_mut().zip(&mut states).enumerate() {
                    *y = step(first + k * after + j, state);
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recurrences_in_any_layout() -> Result<()> {
        for d in all_layouts([DType::F32, DType::F64, DType::BF16], &[&[2, 5, 3]])? {
            let (dtype, x) = (d.dtype(), sample(&[2, 5, 3], d.dtype())?);
            let tolerance = if dtype == DType::BF16 { 0.3 } else { 1e-4 };
            for axis in 0..3 {
                let (_, length, after) = around(&x.shape(), axis);
                let s = values(&recurrence(&d, &x, axis)?);
                let (d, x) = (values(&d), values(&x));
                for i in 0..s.len() {
                    let before = if i / after % length == 0 { 0.0 } else { s[i - after] };
                    assert!((s[i] - d[i] * before - x[i]).abs() < tolerance, "{dtype} {axis} {i}");
                }
            }
        }
        let (d, x) = (sample(&[40, 3000], DType::F32)?, sample(&[40, 3000], DType::F32)?);
        same_for_any_threads(|| recurrence(&d, &x, 0))?;
        assert_eq!(recurrence(&sample(&[3, 0], DType::F32)?, &sample(&[3, 0], DType::F32)?, 1)?.numel(), 0);
        Ok(())
    }

    #[test]
    fn the_extreme_so_far() -> Result<()> {
        let x = Array::from_slice(&[1.0f32, 3.0, 2.0, 3.0, f32::NAN, 9.0], shape(&[6]))?;
        assert_eq!(values(&running_extreme(&x, 0, true)?), [0.0, 1.0, 1.0, 3.0, 4.0, 4.0]);
        assert_eq!(values(&running_extreme(&x, 0, false)?), [0.0, 0.0, 0.0, 0.0, 4.0, 4.0]);
        for x in layouts(&[3, 7, 2], DType::I64)? {
            let (v, top) = (values(&x), values(&running_extreme(&x, 1, true)?));
            for (i, &at) in top.iter().enumerate() {
                let (b, k, c) = (i / 14, i / 2 % 7, i % 2);
                let line: Vec<f64> = (0..=k).map(|k| v[(b * 7 + k) * 2 + c]).collect();
                assert!(line.iter().all(|&other| line[at as usize] >= other));
            }
        }
        Ok(())
    }
}
