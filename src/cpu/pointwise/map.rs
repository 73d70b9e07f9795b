//! Elementwise rules over arrays: [`pointwise`] for floats, [`pointwise_int`] for integers.
//!
//! Only one loop per number type is generic over the rule (`src/cpu/pointwise/map/loops.rs`);
//! `src/cpu/pointwise/drive.rs` does the rest. All operands have the same dtype and broadcast by NumPy's
//! rules. Halves may be mixed with float32, in which they are computed: the result is half.

mod loops;

use super::drive::{ElementLoop, LoopFn};
use super::fused::ElementFn;
use super::layout::{broadcast, rule_dtype};
use crate::arguments::chain::ElementRule;
use crate::cpu::prelude::*;
use crate::math::real::{Pointwise, PointwiseInt};
use loops::{float_kernel, int_kernel};
use smallvec::SmallVec;

/// Applies `rule` to float operands, elementwise. Halves are computed in `f32`.
#[inline]
pub fn pointwise<const N: usize, P: Pointwise<N>>(x: [&Array; N], rule: P) -> Result<Array> {
    on_cpu(&x)?;
    let dtype = rule_dtype(&x)?;
    let kernel = float_kernel::<N, P>(dtype)?;
    // SAFETY: the kernel was chosen by the dtype, for a rule of this type.
    unsafe { into_fresh(&x, dtype, kernel, (&raw const rule).cast(), true) }
}

/// The loop of a float rule for operands of this dtype. Where it is computed in itself, the rule can be read,
/// and machine code is made of it if it `emits`.
pub fn element_fn<const N: usize, P: Pointwise<N>>(rule: P, dtype: DType, emits: bool) -> Option<ElementFn> {
    // SAFETY: the kernel was chosen by the dtype, for a rule of this type.
    let found = unsafe { ElementFn::new(float_kernel::<N, P>(dtype).ok()?, rule, dtype) };
    Some(match dtype.compute() == dtype {
        // SAFETY: the reading is for a rule of this type.
        true => unsafe { found.read_by(read::<N, P>, emits) },
        false => found.computing(),
    })
}

/// The loop of an integer rule for operands of this dtype.
pub fn int_element_fn<const N: usize, P: PointwiseInt<N>>(rule: P, dtype: DType) -> Option<ElementFn> {
    // SAFETY: the kernel was chosen by the dtype, for a rule of this type.
    Some(unsafe { ElementFn::new(int_kernel::<N, P>(dtype).ok()?, rule, dtype) }.computing())
}

/// Reads a rule.
///
/// # Safety
/// The rule is of this type.
unsafe fn read<const N: usize, P: Pointwise<N>>(rule: *const u8) -> ElementRule {
    // SAFETY: guaranteed by the caller.
    ElementRule::Terms(unsafe { (*rule.cast::<P>()).terms(true) })
}

/// Raises unless all operands are on the CPU.
#[inline(always)]
fn on_cpu(x: &[&Array]) -> Result<()> {
    for a in x {
        if a.device() != Device::Cpu {
            return Err(elsewhere(a));
        }
    }
    Ok(())
}

#[cold]
fn elsewhere(a: &Array) -> Error {
    Error::device(format!("internal: {a:?} given to a loop on the cpu"))
}

/// Computes `out = rule(x)` in place; `out` may be an operand or overlap them; they broadcast to it.
///
/// # Safety
/// Nobody reads or writes the memory of `out` meanwhile, nor holds a slice of it.
pub unsafe fn pointwise_into<const N: usize, P: Pointwise<N>>(
    out: &Array, x: [&Array; N], rule: P,
) -> Result<()> {
    on_cpu(&[out])?;
    on_cpu(&x)?;
    let kernel = float_kernel::<N, P>(rule_dtype(&x)?)?;
    // SAFETY: the kernel is for the rule's dtype, which `into_existing` compares with that of `out`.
    unsafe { into_existing(out, &x, kernel, (&raw const rule).cast()) }
}

/// Computes `total += g` if both are dense, of one shape and dtype, and small enough for one thread; returns
/// whether it did. Gradients are summed this way, so a loop without a plan pays.
///
/// # Safety
/// As for [`pointwise_into`].
pub unsafe fn add_small(total: &Array, g: &Array) -> Result<bool> {
    let n = total.numel();
    let fits = n < 2 * GRAIN && total.same_shape(g) && total.is_contiguous() && g.is_contiguous();
    let here = total.device() == Device::Cpu && g.device() == Device::Cpu;
    if !fits || !here || total.dtype() != g.dtype() {
        return Ok(false);
    }
    let ((start, end), (from, to)) = (total.buffer().span(), g.buffer().span());
    if start < to && from < end {
        return Ok(false);
    }
    match total.dtype() {
        DType::F32 => run_plain(AddTo::<f32> { total: total.ptr(), g: g.ptr(), n }),
        DType::F64 => run_plain(AddTo::<f64> { total: total.ptr(), g: g.ptr(), n }),
        _ => return Ok(false),
    }
    Ok(true)
}

/// The operands of `total += g`: `n` elements each, in different memory. A loop of scalars for its few
/// elements: what a masked store wrote is read late by the next sum.
struct AddTo<T> {
    total: *mut T,
    g: *const T,
    n: usize,
}

impl<T: Copy + std::ops::Add<Output = T>> PlainBody for AddTo<T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: `add_small` found both dense, of this type and length, and in different memory.
        let (total, g) = unsafe {
            (std::slice::from_raw_parts_mut(self.total, self.n), std::slice::from_raw_parts(self.g, self.n))
        };
        for (total, &g) in total.iter_mut().zip(g) {
            *total = *total + g;
        }
    }
}

/// Applies `rule` to integer operands, elementwise, wrapping. Narrow ones are computed in [`DType::compute`].
pub fn pointwise_int<const N: usize, P: PointwiseInt<N>>(x: [&Array; N], rule: P) -> Result<Array> {
    let dtype = common_dtype(&x)?;
    let kernel = int_kernel::<N, P>(dtype)?;
    // SAFETY: the kernel was chosen by the dtype, for a rule of this type.
    unsafe { into_fresh(&x, dtype, kernel, (&raw const rule).cast(), true) }
}

/// Runs a kernel into a fresh array of the operands' common shape.
///
/// # Safety The kernel is for `rule`, and for operands and a result of these dtypes, or what they compute in.
pub(crate) unsafe fn into_fresh(
    x: &[&Array], dtype: DType, kernel: LoopFn, rule: *const u8, computes: bool,
) -> Result<Array> {
    if let Some((first, others)) = x.split_first()
        && let Some(out) = first.matching(others, dtype)
    {
        let out = out?;
        // SAFETY: guaranteed by the caller.
        unsafe { ElementLoop::new(kernel, rule, x, &out, computes) }.run_dense();
        return Ok(out);
    }
    if let Some(whole) = beside_single(x)
        && let Some(out) = whole.matching(&[], dtype)
    {
        let out = out?;
        // SAFETY: as above.
        let run = unsafe { ElementLoop::new(kernel, rule, x, &out, computes) };
        return if run.run_small() { Ok(out) } else { run.run().map(|()| out) };
    }
    let shape = broadcast(x)?;
    if let Some(order) = permuted(x, &shape) {
        let x = x.iter().map(|a| a.expand(&shape)?.permute(&order)).collect::<Result<Vec<Array>>>()?;
        let x: Vec<&Array> = x.iter().collect();
        // SAFETY: as above.
        return unsafe { into_fresh(&x, dtype, kernel, rule, computes) }?.permute(&inverse(&order));
    }
    let out = Array::empty(shape, dtype, Device::Cpu)?;
    // SAFETY: as above.
    unsafe { ElementLoop::new(kernel, rule, x, &out, computes) }.run()?;
    Ok(out)
}

/// Returns the axes in memory order, if the operands of the full shape are all dense in one order that is not
/// row-major. The result then has their layout, as in NumPy: a function of a transposed tensor is transposed.
fn permuted(x: &[&Array], shape: &Shape) -> Option<SmallVec<[u8; MAX_RANK]>> {
    let mut full = x.iter().filter(|a| a.shape() == *shape);
    let first = full.next()?;
    if first.is_contiguous() || !full.all(|a| a.same_layout(first)) {
        return None;
    }
    let mut order: SmallVec<[u8; MAX_RANK]> = (0..first.rank() as u8).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(first.stride(axis as usize)));
    first.permute(&order).is_ok_and(|a| a.is_contiguous()).then_some(order)
}

/// Returns the permutation that undoes `order`.
fn inverse(order: &[u8]) -> SmallVec<[u8; MAX_RANK]> {
    let mut back = SmallVec::from_elem(0, order.len());
    for (to, &from) in order.iter().enumerate() {
        back[from as usize] = to as u8;
    }
    back
}

/// Returns the operand whose layout the result has, if each other one has it too or is a single element of no
/// higher rank: a tensor and a number.
fn beside_single<'a>(x: &[&'a Array]) -> Option<&'a Array> {
    let whole = x.iter().copied().max_by_key(|a| (a.rank(), a.numel()))?;
    let single = |a: &Array| a.numel() == 1 && a.rank() <= whole.rank();
    x.iter().all(|a| single(a) || a.same_layout(whole)).then_some(whole)
}

/// Runs a kernel that computes into an existing array of any layout.
///
/// # Safety
/// As for [`into_fresh`].
unsafe fn into_existing(out: &Array, x: &[&Array], kernel: LoopFn, rule: *const u8) -> Result<()> {
    if out.dtype() != rule_dtype(x)? {
        return Err(wrong_dtype("in-place map", out.dtype()));
    }
    let shape = out.shape();
    let fits = broadcast(x)?.broadcast(&shape) == Some(shape);
    if fits && let Some(order) = permuted(&[out], &shape) {
        let x = x.iter().map(|a| a.expand(&shape)?.permute(&order)).collect::<Result<Vec<Array>>>()?;
        let x: Vec<&Array> = x.iter().collect();
        // SAFETY: as above.
        return unsafe { into_existing(&out.permute(&order)?, &x, kernel, rule) };
    }
    if fits {
        // SAFETY: as above.
        return unsafe { ElementLoop::new(kernel, rule, x, out, true) }.run_in_place();
    }
    // SAFETY: as above.
    super::copy::copy_into(out, &unsafe { into_fresh(x, out.dtype(), kernel, rule, true) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [&[usize]; 9] =
        [&[], &[0, 3], &[5], &[3, 4], &[2, 3, 5], &[3, 200], &[700, 3], &[90, 5, 3], &[60, 7, 2, 8]];
    const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

    #[test]
    fn every_layout_agrees_with_a_naive_loop() -> Result<()> {
        for x in all_layouts(FLOATS, &SHAPES)? {
            for y in layouts(&x.shape().to_vec(), x.dtype())? {
                let both = values(&x).into_iter().zip(values(&y));
                let expected: Vec<f64> = both.map(|(a, b)| rounded(a * 4.0 + b, x.dtype())).collect();
                let out = pointwise([&x, &y], Affine(4.0))?;
                assert!(out.shape() == x.shape() && (out.is_contiguous() || out.same_layout(&x)));
                assert_eq!(values(&out), expected, "{x:?} {y:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn outputs_of_every_layout() -> Result<()> {
        let apart = |a: &Array| (0..a.rank()).all(|i| a.stride(i) != 0);
        for out in all_layouts(FLOATS, &SHAPES)?.into_iter().filter(apart) {
            let (before, x) = (values(&out), sample(&out.shape().to_vec(), out.dtype())?);
            // SAFETY: nobody else knows this memory.
            unsafe { pointwise_into(&out, [&out, &x], Affine(2.0))? };
            for ((got, a), b) in values(&out).iter().zip(before).zip(values(&x)) {
                assert_eq!(*got, rounded(a * 2.0 + b, out.dtype()), "{out:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn integers_wrap() -> Result<()> {
        for x in all_layouts(DType::ALL.into_iter().filter(|d| d.is_integer()), &[&[4, 150]])? {
            let y = sample(&[150], x.dtype())?;
            let out = pointwise_int([&x, &y], Affine(3.0))?;
            for (i, (got, a)) in values(&out).iter().zip(values(&x)).enumerate() {
                assert_eq!(*got, rounded(a * 3.0 + values(&y)[i % 150], x.dtype()));
            }
        }
        Ok(())
    }

    #[test]
    fn operands_broadcast_and_threads_do_not_matter() -> Result<()> {
        let (x, y) = (sample(&[300, 1, 70], DType::F32)?, sample(&[11, 1], DType::F32)?);
        let out = same_for_any_threads(|| pointwise([&x, &y], Affine(0.5)))?;
        assert_eq!(out.shape().to_vec(), [300, 11, 70]);
        let (a, b, got) = (values(&x), values(&y), values(&out));
        for (i, got) in got.iter().enumerate() {
            let want = a[i / 770 * 70 + i % 70] as f32 * 0.5 + b[i / 70 % 11] as f32;
            assert!((*got as f32 - want).abs() < 1e-6);
        }
        Ok(())
    }

    #[test]
    fn in_place_may_alias_or_overlap() -> Result<()> {
        for dtype in FLOATS {
            let x = sample(&[40, 40], dtype)?;
            let (before, permuted) = (values(&x), x.permute(&[1, 0])?);
            // SAFETY: nobody else knows this memory.
            unsafe { pointwise_into(&x, [&x, &permuted], Affine(1.0))? };
            for (i, got) in values(&x).iter().enumerate() {
                assert_eq!(*got, rounded(before[i] + before[i % 40 * 40 + i / 40], dtype));
            }
            let before = values(&permuted);
            // SAFETY: as above.
            unsafe { pointwise_into(&permuted, [&permuted, &permuted], Affine(1.0))? };
            let doubled: Vec<f64> = before.iter().map(|v| 2.0 * v).collect();
            assert_eq!(values(&permuted), doubled);
        }
        Ok(())
    }

    #[test]
    fn wrong_dtypes_are_errors() -> Result<()> {
        let (x, y) = (sample(&[2], DType::F32)?, sample(&[2], DType::F64)?);
        assert!(pointwise([&x, &y], Affine(1.0)).is_err());
        assert!(pointwise_int([&x, &x], Affine(1.0)).is_err());
        Ok(())
    }
}
