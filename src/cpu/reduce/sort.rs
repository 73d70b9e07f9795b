//! `argsort` along an axis, of all elements or of the first few.
//!
//! The axis is moved to the end, and each line is sorted separately. An element and its position become one
//! integer: a key with the order of the elements in the upper bits, the position in the lower ones. Sorting
//! those is stable with any algorithm, and compares only integers.

use crate::array::buffer::with_capacity;
use crate::cpu::prelude::*;

/// Returns the positions of the first `count` elements along `axis` in ascending or descending order, as
/// int64. Equal elements keep their order; NaN counts as the largest.
pub fn argsort(x: &Array, axis: usize, descending: bool, count: usize) -> Result<Array> {
    let x = match x.dtype() {
        DType::Bool => cast(x, DType::I32)?,
        dtype if dtype.compute() != dtype => computed(x)?,
        _ => x.clone(),
    };
    if u32::try_from(x.dim(axis)).is_err() {
        return Err(Error::value(format!(
            "sort: an axis of {} elements is too long; at most 2^32 - 1 can be sorted",
            x.dim(axis)
        )));
    }
    let lines = contiguous(&moved(&x, axis, false)?)?;
    let shape = lines.shape().with(x.rank() - 1, count);
    let mut out = Array::empty(shape, DType::I64, Device::Cpu)?;
    let to = out.slice_mut::<i64>()?;
    dispatch!(@ x.dtype(), T, sort_lines::<T>(&lines, to, count, descending)?;
        DType::I32 => i32, DType::I64 => i64, DType::U64 => u64, DType::F32 => f32, _ => f64);
    contiguous(&moved(&out, axis, true)?)
}

/// Moves `axis` to the end, or `back` from there.
fn moved(x: &Array, axis: usize, back: bool) -> Result<Array> {
    let mut order: [u8; MAX_RANK] = std::array::from_fn(|i| i as u8);
    let part = &mut order[axis..x.rank()];
    if back {
        part.rotate_right(1)
    } else {
        part.rotate_left(1)
    }
    x.permute(&order[..x.rank()])
}

/// An element that can be packed into one integer with its position.
trait Sortable: Element {
    /// Key and position, as integers with the order of the pairs.
    type Packed: Copy + Ord;
    /// Packs the pair; a descending order inverts the keys, not the positions.
    fn pack(self, descending: bool, at: u32) -> Self::Packed;
    /// Returns the position.
    fn position(packed: Self::Packed) -> i64;
}

macro_rules! sortable {
    ($($t:ty: $key:ty => $packed:ty, |$x:ident| $to_key:expr;)*) => {
        $(impl Sortable for $t {
            type Packed = $packed;
            #[inline(always)]
            fn pack(self, descending: bool, at: u32) -> $packed {
                let $x = self;
                let key: $key = $to_key;
                ((if descending { !key } else { key }) as $packed) << 32 | at as $packed
            }
            #[inline(always)]
            fn position(packed: $packed) -> i64 {
                (packed as u32) as i64
            }
        })*
    };
}

// The bits of floats are sign and magnitude: a positive number's sign bit is set, a negative one's bits are
// inverted. Adding 0 makes the two zeros equal. No number has the key of NaN.
sortable! {
    i32: u32 => u64, |x| x as u32 ^ 1 << 31;
    i64: u64 => u128, |x| x as u64 ^ 1 << 63;
    u64: u64 => u128, |x| x;
    f32: u32 => u64, |x| match (x + 0.0).to_bits() {
        _ if x.is_nan() => u32::MAX,
        bits if bits >> 31 == 1 => !bits,
        bits => bits | 1 << 31,
    };
    f64: u64 => u128, |x| match (x + 0.0).to_bits() {
        _ if x.is_nan() => u64::MAX,
        bits if bits >> 63 == 1 => !bits,
        bits => bits | 1 << 63,
    };
}

fn sort_lines<T: Sortable>(lines: &Array, out: &mut [i64], count: usize, descending: bool) -> Result<()> {
    let length = lines.dim(lines.rank() - 1);
    if count == 0 || out.is_empty() {
        return Ok(());
    }
    let (x, to) = (lines.slice::<T>()?, Shared::new(out.as_mut_ptr()));
    // Sorting compares each element about log2(length) times.
    let work = length * (usize::BITS - length.leading_zeros()) as usize;
    try_parallel_for(out.len() / count, GRAIN.div_ceil(work.max(1)), |range| {
        let mut pairs: Vec<T::Packed> = with_capacity(length)?;
        for i in range {
            // SAFETY: every `i` has its own part of the output.
            let out = unsafe { to.part(i * count, count) };
            pairs.clear();
            pairs.extend(
                (0u32..).zip(&x[i * length..(i + 1) * length]).map(|(at, &v)| v.pack(descending, at)),
            );
            if count < length {
                pairs.select_nth_unstable(count - 1);
            }
            pairs[..count].sort_unstable();
            out.iter_mut().zip(&pairs).for_each(|(to, &from)| *to = T::position(from));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::axis::around;
    use super::*;

    #[test]
    fn every_line_is_in_order() -> Result<()> {
        for x in all_layouts(parts(), &[&[3, 8, 5]])? {
            for (axis, descending) in [(0, false), (1, true), (2, false), (2, true)] {
                let (_, length, after) = around(&x.shape(), axis);
                let (v, at) = (values(&x), values(&argsort(&x, axis, descending, length)?));
                let line = |i: usize, k: usize| (i / after * length + k) * after + i % after;
                for i in 0..v.len() / length {
                    let mut expected: Vec<usize> = (0..length).collect();
                    let key = |k: usize| v[line(i, k)] * if descending { -1.0 } else { 1.0 };
                    expected.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
                    let found: Vec<usize> = (0..length).map(|k| at[line(i, k)] as usize).collect();
                    assert_eq!(found, expected, "{x:?} axis {axis}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_first_few_are_those_of_the_whole_order() -> Result<()> {
        let x = sample(&[7, 100], DType::F32)?;
        for descending in [false, true] {
            let whole = values(&argsort(&x, 1, descending, 100)?);
            for count in [0, 1, 9, 99] {
                let few = values(&argsort(&x, 1, descending, count)?);
                let expected: Vec<f64> = (0..7 * count).map(|i| whole[i / count * 100 + i % count]).collect();
                assert_eq!(few, expected);
            }
        }
        same_for_any_threads(|| argsort(&sample(&[64, 3000], DType::F32)?, 1, true, 3000))?;
        Ok(())
    }

    #[test]
    fn nan_is_the_largest_and_equals_keep_their_order() -> Result<()> {
        let x = Array::from_slice(&[2.0f32, f32::NAN, 1.0, 2.0, f32::NAN, f32::INFINITY], Shape::new(&[6])?)?;
        assert_eq!(argsort(&x, 0, false, 6)?.slice::<i64>()?, [2, 0, 3, 5, 1, 4]);
        assert_eq!(argsort(&x, 0, true, 6)?.slice::<i64>()?, [1, 4, 5, 0, 3, 2]);
        let x = Array::from_slice(&[0.0f64, -0.0, -1.0, -f64::NAN, f64::MIN, 5e-324], Shape::new(&[6])?)?;
        assert_eq!(argsort(&x, 0, false, 6)?.slice::<i64>()?, [4, 2, 0, 1, 5, 3]);
        assert_eq!(argsort(&x, 0, true, 6)?.slice::<i64>()?, [3, 5, 0, 1, 2, 4]);
        let x = Array::from_slice(&[0i64, i64::MIN, -1, i64::MAX, 0], Shape::new(&[5])?)?;
        assert_eq!(argsort(&x, 0, false, 5)?.slice::<i64>()?, [1, 2, 0, 4, 3]);
        Ok(())
    }
}
