//! Copies between layouts.
//!
//! Read next: `src/cpu/pointwise/cast.rs` for conversions between dtypes, `src/cpu/create.rs` for new arrays.

pub use super::cast::{cast, computed};
use super::drive::{copy_tile, is_short};
use super::layout::{overlaps, wrong_dtype};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::nest::Nest;
use crate::cpu::run::isa::{PlainBody, run_widest};
use crate::cpu::run::stream;
use crate::cpu::run::threads::{GRAIN, Shared, parallel_for};
use crate::dispatch_width;
use crate::error::{Error, Result};

/// Returns the same elements in row-major order: the array itself if it is contiguous.
pub fn contiguous(x: &Array) -> Result<Array> {
    if x.is_contiguous() { Ok(x.clone()) } else { duplicate(x) }
}

/// Returns a fresh contiguous copy.
pub fn duplicate(x: &Array) -> Result<Array> {
    let out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    transfer(&out, x);
    Ok(out)
}

/// Writes `from`, broadcast to the shape of `to`, through the strides of `to`. They may overlap.
pub fn copy_into(to: &Array, from: &Array) -> Result<()> {
    if to.dtype() != from.dtype() {
        return Err(wrong_dtype("copy", from.dtype()));
    }
    if from.shape().broadcast(&to.shape()) != Some(to.shape()) {
        let (from, to) = (from.shape(), to.shape());
        return Err(Error::shape(format!("internal: shape {from} cannot be copied into shape {to}")));
    }
    if overlaps(to, from) {
        transfer(to, &duplicate(from)?)
    } else {
        transfer(to, from)
    }
    Ok(())
}

/// Copies `from` into `to`; they do not overlap.
fn transfer(to: &Array, from: &Array) {
    let mut nest = Nest::in_memory_order(&to.shape(), &[to, from]);
    // Short rows, such as coordinates of points, where one of the arrays is contiguous.
    let crosses = nest.strides[1][..nest.rank - 1].contains(&1);
    if is_short(&nest, to.dtype().size()) && !crosses && (nest.is_flat(0) || nest.is_flat(1)) {
        return dispatch_width!(to.dtype().size(), T => transfer_rows::<T>(&nest, to, from));
    }
    // If the inner axis is short, such as the channels of an image, a loop along the next one is faster.
    if nest.rank > 1 && nest.inner() < 8 && nest.dims[nest.rank - 2] >= 4 * nest.inner() {
        nest.swap_inner();
    }
    dispatch_width!(to.dtype().size(), T => transfer_as::<T>(&nest, to, from));
}

/// Copies short rows; `to` or `from` is contiguous.
fn transfer_rows<T: Copy>(nest: &Nest, to: &Array, from: &Array) {
    let start = |a: &Array| Shared::new(a.buffer().ptr().cast::<T>().wrapping_add(a.offset()));
    let (to, from, into_flat) = (start(to), start(from), nest.is_flat(0));
    parallel_for(nest.numel(), GRAIN, |range| {
        // SAFETY: both have the elements of the nest, and ranges write disjoint ones.
        unsafe {
            if into_flat {
                copy_tile::<T, true>(
                    nest,
                    1,
                    range.start,
                    range.len(),
                    from.get(),
                    to.get().add(range.start),
                );
            } else {
                copy_tile::<T, false>(
                    nest,
                    0,
                    range.start,
                    range.len(),
                    to.get(),
                    from.get().add(range.start),
                );
            }
        }
    });
}

fn transfer_as<T: Copy>(nest: &Nest, to: &Array, from: &Array) {
    let start = |a: &Array| Shared::new(a.buffer().ptr().cast::<T>().wrapping_add(a.offset()));
    // Copies larger than the cache write long runs past it.
    let streamed = stream::pays((to.numel() + from.numel()) * size_of::<T>());
    let (to, from, n) = (start(to), start(from), to.numel());
    let last = nest.rank - 1;
    let (to_stride, from_stride) = (nest.strides[0][last], nest.strides[1][last]);
    // A constant is read from a register.
    let constant = from_stride == 0 && stream::pays(n * size_of::<T>());
    let crossing = (0..last).find(|&k| nest.strides[1][k] == 1 && nest.dims[k] >= 4);
    if let (Some(k), 1, true) = (crossing, to_stride, from_stride != 0 && nest.inner() >= 4 && n > 0) {
        return transpose::<T>(nest, k, to, from);
    }
    parallel_for(n, GRAIN, |range| {
        nest.runs([0, 1], range.start, range.len(), |&[t, f], _, run| {
            // SAFETY: runs stay inside both arrays, and ranges write disjoint elements.
            unsafe {
                let (to, from) = (to.get().offset(t), from.get().cast_const().offset(f));
                match (to_stride, from_stride) {
                    (1, 1) if streamed && run * size_of::<T>() >= 4096 => {
                        stream::stream(to.cast(), from.cast(), run * size_of::<T>());
                    }
                    (1, 1) => std::ptr::copy_nonoverlapping(from, to, run),
                    (1, 0) if constant && run * size_of::<T>() >= 4096 => stream::fill(to, *from, run),
                    (1, 0) => std::slice::from_raw_parts_mut(to, run).fill(*from),
                    _ => strided(to, to_stride, from, from_stride, run),
                }
            }
        });
        if streamed || constant {
            stream::fence();
        }
    });
}

/// Copies `to[i * to_stride] = from[i * from_stride]` for `i < run`.
///
/// # Safety
/// These elements exist and do not overlap.
#[inline(never)]
pub(super) unsafe fn strided<T: Copy>(
    to: *mut T, to_stride: isize, from: *const T, from_stride: isize, run: usize,
) {
    run_widest(Strided { to, to_stride, from, from_stride, run });
}

struct Strided<T> {
    to: *mut T,
    to_stride: isize,
    from: *const T,
    from_stride: isize,
    run: usize,
}

impl<T: Copy> PlainBody for Strided<T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        macro_rules! copy {
            ($to:expr, $from:expr) => {
                for i in 0..self.run as isize {
                    // SAFETY: both pointers are valid for `run` elements with these strides.
                    unsafe { *self.to.offset(i * $to) = *self.from.offset(i * $from) };
                }
            };
        }
        const BACKWARDS: isize = -1;
        // Strides known at compile time become shuffles of whole registers.
        match (self.to_stride, self.from_stride) {
            (1, 2) => copy!(1, 2),
            (1, 3) => copy!(1, 3),
            (1, 4) => copy!(1, 4),
            (1, BACKWARDS) => copy!(1, BACKWARDS),
            (2, 1) => copy!(2, 1),
            (3, 1) => copy!(3, 1),
            (4, 1) => copy!(4, 1),
            (a, b) => copy!(a, b),
        }
    }
}

/// Side of the blocks that are transposed in registers.
const BLOCK: usize = 8;

/// Copies a nest whose target is contiguous along the last axis and whose source is along axis `k`.
///
/// It walks panels as high as a cache line of source along the last axis, so that both sides use whole lines.
fn transpose<T: Copy>(nest: &Nest, k: usize, to: Shared<T>, from: Shared<T>) {
    let last = nest.rank - 1;
    let panel = (64 / size_of::<T>()).clamp(BLOCK, 32);
    let (width, height) = (nest.dims[last], nest.dims[k]);
    let panels = height.div_ceil(panel);
    let mut outer = *nest;
    outer.dims[k] = panels;
    outer.dims[last] = 1;
    let items: usize = outer.dims[..outer.rank].iter().product();
    parallel_for(items, GRAIN.div_ceil(width * panel), |range| {
        for item in range {
            let mut at = outer.coordinates(item);
            at[k] *= panel;
            let rows = panel.min(height - at[k]);
            let (t, f) = (nest.position(0, &at), nest.position(1, &at));
            // SAFETY: the panel lies inside both arrays; items write disjoint panels.
            unsafe {
                let (to, from) = (to.get().offset(t), from.get().offset(f));
                transpose_panel(to, nest.strides[0][k], from, nest.strides[1][last], rows, width);
            }
        }
    });
}

/// Copies `to[r * to_stride + c] = from[r + c * from_stride]` for `r < rows`, `c < width`.
///
/// # Safety
/// All these elements exist and do not overlap.
pub(crate) unsafe fn transpose_panel<T: Copy>(
    to: *mut T, to_stride: isize, from: *const T, from_stride: isize, rows: usize, width: usize,
) {
    let (whole_rows, whole_width) = (rows / BLOCK * BLOCK, width / BLOCK * BLOCK);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let one = |r: usize, c: usize| {
            *to.offset(r as isize * to_stride + c as isize) =
                *from.offset(r as isize + c as isize * from_stride);
        };
        for c in (0..whole_width).step_by(BLOCK) {
            for r in (0..whole_rows).step_by(BLOCK) {
                let mut block = [[*from; BLOCK]; BLOCK];
                for (j, line) in block.iter_mut().enumerate() {
                    *line =
                        from.offset((c + j) as isize * from_stride + r as isize).cast::<[T; BLOCK]>().read();
                }
                for i in 0..BLOCK {
                    let mut line = [*from; BLOCK];
                    for (to, from) in line.iter_mut().zip(&block) {
                        *to = from[i];
                    }
                    to.offset((r + i) as isize * to_stride + c as isize).cast::<[T; BLOCK]>().write(line);
                }
            }
            (whole_rows..rows).for_each(|r| (c..c + BLOCK).for_each(|c| one(r, c)));
        }
        (whole_width..width).for_each(|c| (0..rows).for_each(|r| one(r, c)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::dtype::DType;
    use crate::cpu::run::testing::{all_layouts, layouts, same_for_any_threads, sample, values};

    #[test]
    fn copies_of_every_layout() -> Result<()> {
        let shapes = [&[][..], &[0, 2], &[9], &[17, 33], &[3, 20, 41], &[2, 9, 8, 10], &[70, 3]];
        for x in all_layouts(DType::ALL, &shapes)? {
            let out = contiguous(&x)?;
            assert!(out.is_contiguous());
            assert_eq!(values(&out), values(&x), "{x:?}");
            for to in layouts(&x.shape().to_vec(), x.dtype())?.into_iter().take(3) {
                copy_into(&to, &x)?;
                assert_eq!(values(&to), values(&x), "{x:?} into {to:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn large_transposes_and_overlaps() -> Result<()> {
        for perm in [[1u8, 0, 2], [2, 1, 0], [0, 2, 1], [2, 0, 1]] {
            let x = sample(&[41, 70, 53], DType::F32)?.permute(&perm)?;
            assert_eq!(values(&same_for_any_threads(|| contiguous(&x))?), values(&x));
        }
        let x = sample(&[50, 50], DType::I32)?;
        let expected = values(&x.permute(&[1, 0])?);
        copy_into(&x, &x.permute(&[1, 0])?)?;
        assert_eq!(values(&x), expected);
        Ok(())
    }
}
