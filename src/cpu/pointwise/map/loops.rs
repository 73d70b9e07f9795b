//! Kernels of rules: the loops over elements, one per number type.

use crate::cpu::pointwise::drive::LoopFn;
use crate::cpu::pointwise::vector;
use crate::cpu::prelude::*;
use crate::math::real::{Integer, Pointwise, PointwiseInt};

/// Returns the kernel of a float rule.
pub(crate) fn float_kernel<const N: usize, P: Pointwise<N>>(dtype: DType) -> Result<LoopFn> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(map_float::<N, P, f32>),
        DType::F64 => Ok(map_float::<N, P, f64>),
        other => Err(wrong_dtype("map", other)),
    }
}

/// Returns the kernel of an integer rule.
pub(crate) fn int_kernel<const N: usize, P: PointwiseInt<N>>(dtype: DType) -> Result<LoopFn> {
    match dtype.compute() {
        DType::I32 => Ok(map_int::<N, P, i32>),
        DType::I64 => Ok(map_int::<N, P, i64>),
        DType::U64 => Ok(map_int::<N, P, u64>),
        _ => Err(wrong_dtype("integer map", dtype)),
    }
}

/// Returns element `i` of every operand. A loop, not `from_fn`: a closure that is not inlined is compiled
/// without its caller's instruction set, and then the loop around it is not vectorised.
///
/// # Safety
/// Every operand has element `i`.
#[inline(always)]
unsafe fn each<const N: usize, T: Copy>(x: &[*const T; N], i: usize) -> [T; N] {
    // SAFETY: guaranteed by the caller.
    let mut all = [unsafe { *x[0].add(i) }; N];
    let mut k = 1;
    while k < N {
        // SAFETY: as above.
        all[k] = unsafe { *x[k].add(i) };
        k += 1;
    }
    all
}

/// The loop of an integer rule over operands as long as the output.
struct IntLoop<'a, const N: usize, P, I> {
    rule: &'a P,
    x: [*const I; N],
    out: &'a mut [I],
}

impl<const N: usize, P: PointwiseInt<N>, I: Integer> PlainBody for IntLoop<'_, N, P, I> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for i in 0..self.out.len() {
            // SAFETY: every operand has as many elements as the output.
            self.out[i] = self.rule.apply(unsafe { each(&self.x, i) });
        }
    }
}

unsafe fn map_float<const N: usize, P: Pointwise<N>, T: vector::Number>(
    rule: *const u8, x: *const *const u8, out: *mut u8, n: usize,
) {
    // SAFETY: `ElementLoop` calls a kernel with the rule and operands it was made for.
    unsafe {
        let x = std::array::from_fn(|k| (*x.add(k)).cast());
        vector::map(*rule.cast::<P>(), x, out.cast::<T>(), n);
    }
}

unsafe fn map_int<const N: usize, P: PointwiseInt<N>, I: Integer>(
    rule: *const u8, x: *const *const u8, out: *mut u8, n: usize,
) {
    // SAFETY: `ElementLoop` calls a kernel with the rule and operands it was made for.
    run_plain(unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast::<I>(), n);
        IntLoop { rule: &*rule.cast::<P>(), x: *x.cast::<[*const I; N]>(), out }
    });
}
