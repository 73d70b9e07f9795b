//! Binary search in sorted lines, and scatters that keep the last or the extreme element.

use crate::cpu::indexing::gather::positions;
use crate::cpu::prelude::*;

/// Returns the positions of `values` in the ascending lines of `sorted`, both along the last axis: before
/// equal elements, or after them with `right`. int64; NaN counts as the largest.
pub fn search_sorted(sorted: &Array, values: &Array, right: bool) -> Result<Array> {
    let dtype = common_dtype(&[sorted, values])?;
    let (sorted, values) = (computed(sorted)?, computed(values)?);
    let mut out = Array::empty(values.shape(), DType::I64, Device::Cpu)?;
    let (length, count) = (sorted.dim(sorted.rank() - 1), values.dim(values.rank() - 1));
    let to = Shared::new(out.slice_mut::<i64>()?.as_mut_ptr());
    let steps = (usize::BITS - length.leading_zeros()) as usize + 1;
    dispatch_computed!(dtype, T => {
        let (sorted, values) = (sorted.slice::<T>()?, values.slice::<T>()?);
        parallel_for(values.len(), GRAIN.div_ceil(4 * steps), |range| {
            for i in range {
                let v = values[i];
                let line = &sorted[i / count.max(1) * length..][..length];
                #[allow(clippy::eq_op, clippy::bool_comparison)]
                let less = |a: T, b: T| a < b || (a == a && b != b);
                let at = line.partition_point(|&s| if right { !less(v, s) } else { less(s, v) });
                // SAFETY: every `i` has its own element of the output.
                unsafe { *to.get().add(i) = at as i64 };
            }
        });
    });
    Ok(out)
}

/// Returns, for each of `length` positions along `axis`, the last position of `index` that selects it, or -1.
pub fn scatter_last(index: &Array, axis: usize, length: usize) -> Result<Array> {
    let places = positions(index, length)?;
    let mut out = Array::full(index.shape().with(axis, length), -1.0, DType::I64)?;
    let (count, after) = (index.dim(axis), index.shape().part(axis + 1, index.rank()).numel());
    let to = out.slice_mut::<i64>()?;
    for (i, &place) in places.iter().enumerate() {
        let (block, step, column) = (i / after / count, i / after % count, i % after);
        to[(block * length + place) * after + column] = step as i64;
    }
    Ok(out)
}

/// Returns `init` with each element replaced by the extreme of it and the elements of `x` that `index` sends
/// there along `axis`; NaN wins. `x` has the shape of `index`, at most that of `init` on other axes.
pub fn scatter_extreme(init: &Array, index: &Array, x: &Array, axis: usize, largest: bool) -> Result<Array> {
    let dtype = common_dtype(&[init, x])?;
    let shape = init.shape();
    let places = positions(index, shape.at(axis))?;
    let (x, mut out) = (computed(x)?, computed(&init.copied()?)?);
    let (strides, index) = (shape.strides(), index.shape());
    dispatch_computed!(dtype, T => {
        let (x, to) = (x.slice::<T>()?, out.slice_mut::<T>()?);
        for (i, (&place, &new)) in places.iter().zip(x).enumerate() {
            let mut at = index.coordinates(i);
            at[axis] = place;
            let at = at.iter().zip(&strides).map(|(&i, &stride)| i * stride as usize).sum::<usize>();
            let old = &mut to[at];
            #[allow(clippy::bool_comparison)]
            let better = if largest { new > *old } else { new < *old };
            #[allow(clippy::eq_op)]
            if better || new != new {
                *old = new;
            }
        }
    });
    cast(&out, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searching() -> Result<()> {
        let sorted =
            Array::from_slice(&[1.0f32, 2.0, 2.0, 5.0, f32::NAN, -1.0, 0.0, 0.0, 0.0, 9.0], shape(&[2, 5]))?;
        let values_ = Array::from_slice(&[2.0f32, 0.0, f32::NAN, 0.0, 10.0, -3.0], shape(&[2, 3]))?;
        assert_eq!(values(&search_sorted(&sorted, &values_, false)?), [1.0, 0.0, 4.0, 1.0, 5.0, 0.0]);
        assert_eq!(values(&search_sorted(&sorted, &values_, true)?), [3.0, 0.0, 5.0, 4.0, 5.0, 0.0]);
        Ok(())
    }

    #[test]
    fn what_meets() -> Result<()> {
        let index = Array::from_slice(&[0i64, 2, 2, -1, 0, 1], shape(&[3, 2]))?;
        let last = scatter_last(&index, 0, 3)?;
        // Columns: 0, 2, 0 and 2, 2, 1.
        assert_eq!(values(&last), [2.0, -1.0, -1.0, 2.0, 1.0, 1.0]);
        let x = Array::from_slice(&[1.0f32, 4.0, 7.0, 3.0, 2.0, f32::NAN], shape(&[3, 2]))?;
        let init = Array::from_slice(&[1.5f32, 0.0, 0.0, 0.0, 0.0, 3.5, 9.0, 9.0], shape(&[4, 2]))?;
        let index = Array::from_slice(&[0i64, 2, 2, 2, 0, 1], shape(&[3, 2]))?;
        let top = values(&scatter_extreme(&init, &index, &x, 0, true)?);
        assert_eq!(top[..3], [2.0, 0.0, 0.0]);
        assert!(top[3].is_nan());
        assert_eq!(top[4..], [7.0, 4.0, 9.0, 9.0]);
        assert!(scatter_last(&index, 0, 2).is_err());
        Ok(())
    }
}
