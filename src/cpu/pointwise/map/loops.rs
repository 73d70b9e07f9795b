//! The loops over elements, one per number type.

use crate::array::dtype::DType;
use crate::cpu::pointwise::drive::Kernel;
use crate::cpu::pointwise::layout::wrong_dtype;
use crate::cpu::pointwise::vector;
use crate::cpu::run::isa::{PlainBody, run_plain};
use crate::error::Result;
use crate::math::real::{Integer, Pointwise, PointwiseInt};

/// The kernel of a rule of floats.
pub(crate) fn float_kernel<const N: usize, P: Pointwise<N>>(dtype: DType) -> Result<Kernel> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(map_float::<N, P, f32>),
        DType::F64 => Ok(map_float::<N, P, f64>),
        other => Err(wrong_dtype("map", other)),
    }
}

/// The kernel of a rule of integers.
pub(crate) fn int_kernel<const N: usize, P: PointwiseInt<N>>(dtype: DType) -> Result<Kernel> {
    match dtype.compute() {
        DType::I32 => Ok(map_int::<N, P, i32>),
        DType::I64 => Ok(map_int::<N, P, i64>),
        DType::U64 => Ok(map_int::<N, P, u64>),
        _ => Err(wrong_dtype("integer map", dtype)),
    }
}

/// Operands and output of one call of a kernel, typed.
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
    // SAFETY: the caller's promise.
    unsafe {
        let x = each(&[x.cast::<[*const T; N]>()], 0)[0];
        Span { rule: &*rule.cast(), x, out: std::slice::from_raw_parts_mut(out.cast(), n) }
    }
}

/// Element `i` of every operand. A loop and not `from_fn`: a closure that the compiler leaves outside of its
/// surroundings is compiled without their instructions, and the loop around it for none at all.
///
/// # Safety
/// Every operand has that element.
#[inline(always)]
unsafe fn each<const N: usize, T: Copy>(x: &[*const T; N], i: usize) -> [T; N] {
    // SAFETY: the caller's promise.
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
    // SAFETY: `Job` calls a kernel as its type demands.
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
    // SAFETY: `Job` calls a kernel as its type demands.
    run_plain(IntSpan(unsafe { span::<N, P, I, I>(rule, x, out, n) }))
}
