//! Kernels of rules: the loops over elements, one per number type.

use crate::array::dtype::DType;
use crate::cpu::pointwise::drive::Kernel;
use crate::cpu::pointwise::layout::wrong_dtype;
use crate::cpu::pointwise::vector;
use crate::cpu::run::isa::{PlainBody, run_plain};
use crate::error::Result;
use crate::math::real::{Integer, Pointwise, PointwiseInt};

/// Returns the kernel of a float rule.
pub(crate) fn float_kernel<const N: usize, P: Pointwise<N>>(dtype: DType) -> Result<Kernel> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(map_float::<N, P, f32>),
        DType::F64 => Ok(map_float::<N, P, f64>),
        other => Err(wrong_dtype("map", other)),
    }
}

/// Returns the kernel of an integer rule.
pub(crate) fn int_kernel<const N: usize, P: PointwiseInt<N>>(dtype: DType) -> Result<Kernel> {
    match dtype.compute() {
        DType::I32 => Ok(map_int::<N, P, i32>),
        DType::I64 => Ok(map_int::<N, P, i64>),
        DType::U64 => Ok(map_int::<N, P, u64>),
        _ => Err(wrong_dtype("integer map", dtype)),
    }
}

/// Typed operands and output of one kernel call.
struct Span<'a, const N: usize, P, T, U> {
    rule: &'a P,
    x: [*const T; N],
    out: &'a mut [U],
}

/// # Safety
/// The pointers are those of a [`Kernel`] call for rule `P`, operands of `T` and an output of `U`.
#[inline(always)]
unsafe fn span<'a, const N: usize, P, T, U>(
    rule: *const u8,
    x: *const *const u8,
    out: *mut u8,
    n: usize,
) -> Span<'a, N, P, T, U> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let x = each(&[x.cast::<[*const T; N]>()], 0)[0];
        Span { rule: &*rule.cast(), x, out: std::slice::from_raw_parts_mut(out.cast(), n) }
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

/// The loop of an integer rule; a type of its own because the element type is generic.
struct IntSpan<'a, const N: usize, P, I>(Span<'a, N, P, I, I>);

impl<const N: usize, P: PointwiseInt<N>, I: Integer> PlainBody for IntSpan<'_, N, P, I> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let span = self.0;
        for i in 0..span.out.len() {
            // SAFETY: every operand has as many elements as the output.
            span.out[i] = span.rule.apply(unsafe { each(&span.x, i) });
        }
    }
}

unsafe fn map_float<const N: usize, P: Pointwise<N>, T: vector::Number>(
    rule: *const u8,
    x: *const *const u8,
    out: *mut u8,
    n: usize,
) {
    // SAFETY: `Job` calls a kernel with the rule and operands it was made for.
    unsafe {
        let x = std::array::from_fn(|k| (*x.add(k)).cast());
        vector::map(*rule.cast::<P>(), x, out.cast::<T>(), n);
    }
}

unsafe fn map_int<const N: usize, P: PointwiseInt<N>, I: Integer>(
    rule: *const u8,
    x: *const *const u8,
    out: *mut u8,
    n: usize,
) {
    // SAFETY: `Job` calls a kernel with the rule and operands it was made for.
    run_plain(IntSpan(unsafe { span::<N, P, I, I>(rule, x, out, n) }))
}
