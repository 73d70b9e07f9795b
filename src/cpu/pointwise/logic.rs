//! Comparison, selection and logic: kernels with bool operands or results.

use super::drive::{LoopFn, kernel};
use super::fused::ElementFn;
use super::layout::broadcast;
use super::map::into_fresh;
use crate::arguments::chain::ElementRule;
use crate::arguments::logic::{Logic, Relation};
use crate::cpu::prelude::*;

pub use super::neighbour::next_after;

/// Returns where `x` stands in `relation` to `y`, for operands of one dtype (any); NaN as in IEEE 754.
pub fn compare(x: &Array, y: &Array, relation: Relation) -> Result<Array> {
    let kernel = compare_kernel_of(common_dtype(&[x, y])?)?;
    // SAFETY: the kernel was chosen by the common dtype, and its rule is a relation.
    unsafe { into_fresh(&[x, y], DType::Bool, kernel, (&raw const relation).cast(), true) }
}

/// The kernel of [`compare`].
fn compare_kernel_of(dtype: DType) -> Result<LoopFn> {
    Ok(dispatch_computed!(dtype, T => compare_kernel::<T>))
}

/// The loop of [`compare`] for operands of this dtype.
pub fn compare_fn(dtype: DType, relation: Relation) -> Option<ElementFn> {
    let kernel = compare_kernel_of(dtype).ok()?;
    /// # Safety
    /// The rule is a relation.
    unsafe fn read(rule: *const u8) -> ElementRule {
        // SAFETY: guaranteed by the caller.
        ElementRule::Compare(unsafe { *rule.cast() })
    }
    // SAFETY: the kernel was chosen by the dtype, its rule is a relation, and its results are bool.
    let found = unsafe { ElementFn::new(kernel, relation, DType::Bool) };
    // SAFETY: the reading is for relations.
    Some(if is_read(dtype) { unsafe { found.read_by(read, true) } } else { found.computing() })
}

/// The loop of [`select`] for operands of this dtype.
pub fn select_fn(dtype: DType) -> Option<ElementFn> {
    let kernel = select_kernel_of(dtype)?;
    /// # Safety
    /// None: there is no rule.
    unsafe fn read(_rule: *const u8) -> ElementRule {
        ElementRule::Select
    }
    // SAFETY: the kernel was chosen by the size of the elements and reads no rule.
    let found = unsafe { ElementFn::new(kernel, (), dtype) };
    // SAFETY: the reading reads no rule either.
    Some(if is_read(dtype) || dtype == DType::Bool { unsafe { found.read_by(read, true) } } else { found })
}

/// Whether chains have operations on this dtype that can be read.
fn is_read(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

/// The loop of [`logical`].
pub fn logical_fn(logic: Logic) -> ElementFn {
    /// # Safety
    /// The rule is a function of truth values.
    unsafe fn read(rule: *const u8) -> ElementRule {
        // SAFETY: guaranteed by the caller.
        ElementRule::Logical(unsafe { *rule.cast() })
    }
    // SAFETY: operands and results are bool, and the rule is a function of these.
    unsafe { ElementFn::new(logical_kernel, logic, DType::Bool).read_by(read, true) }
}

/// The kernel of [`select`] for elements that fit into a tile.
fn select_kernel_of(dtype: DType) -> Option<LoopFn> {
    Some(match dtype.size() {
        1 => select_kernel::<u8>,
        2 => select_kernel::<u16>,
        4 => select_kernel::<u32>,
        8 => select_kernel::<u64>,
        _ => return None,
    })
}

/// Returns `x` where `mask` is true, else `y`; `x` and `y` have one dtype (any), all three broadcast.
pub fn select(mask: &Array, x: &Array, y: &Array) -> Result<Array> {
    if mask.dtype() != DType::Bool {
        return Err(wrong_dtype("select", mask.dtype()));
    }
    let dtype = common_dtype(&[x, y])?;
    let kernel = select_kernel_of(dtype).ok_or_else(|| wrong_dtype("select", dtype))?;
    // SAFETY: the kernel was chosen by the size of the elements and has no rule.
    unsafe { into_fresh(&[mask, x, y], dtype, kernel, std::ptr::null(), false) }
}

/// Returns a function of bool arrays: of two, `not` of one.
pub fn logical(logic: Logic, x: &[&Array]) -> Result<Array> {
    match (common_dtype(x)?, logic, x) {
        (DType::Bool, Logic::Not, [x]) => {
            let all = Array::full(broadcast(&[])?, 1.0, DType::Bool)?;
            logical(Logic::Xor, &[x, &all])
        }
        (DType::Bool, Logic::And | Logic::Or | Logic::Xor, [x, y]) => {
            // SAFETY: the operands are bool, and the rule is a function of these.
            unsafe { into_fresh(&[x, y], DType::Bool, logical_kernel, (&raw const logic).cast(), false) }
        }
        (other, ..) => Err(wrong_dtype("logic", other)),
    }
}

kernel! {
    fn compare_kernel<T: Element>(relation: Relation; x: T, y: T; out: bool) by run_plain {
        macro_rules! each {
            ($op:tt) => {
                for ((o, a), b) in out.iter_mut().zip(x).zip(y) {
                    *o = *a $op *b;
                }
            };
        }
        match relation {
            Relation::Lt => each!(<),
            Relation::Le => each!(<=),
            Relation::Eq => each!(==),
            Relation::Ne => each!(!=),
            Relation::Gt => each!(>),
            Relation::Ge => each!(>=),
        }
    }
}

/// An element as plain bits, for selection without branches.
trait Bits: Copy {
    /// Returns `a` unless `mask` is 0, where it returns `b`.
    fn blend(mask: u8, a: Self, b: Self) -> Self;
}

macro_rules! bits {
    ($($t:ty)*) => {
        $(impl Bits for $t {
            #[inline(always)]
            fn blend(mask: u8, a: $t, b: $t) -> $t {
                let all = <$t>::from(mask != 0).wrapping_neg();
                (a & all) | (b & !all)
            }
        })*
    };
}

bits!(u8 u16 u32 u64);

kernel! {
    fn select_kernel<T: Bits>(; mask: u8, x: T, y: T; out: T) by run_plain {
        for (((o, &m), &a), &b) in out.iter_mut().zip(mask).zip(x).zip(y) {
            *o = T::blend(m, a, b);
        }
    }
}

kernel! {
    fn logical_kernel(logic: Logic; x: u8, y: u8; out: u8) by run_plain {
        let each = out.iter_mut().zip(x).zip(y).map(|((o, &a), &b)| (o, u8::from(a != 0), u8::from(b != 0)));
        match logic {
            Logic::And => each.for_each(|(o, a, b)| *o = a & b),
            Logic::Or => each.for_each(|(o, a, b)| *o = a | b),
            Logic::Xor | Logic::Not => each.for_each(|(o, a, b)| *o = a ^ b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::dtype::Truth;

    #[test]
    fn comparison_of_every_dtype() -> Result<()> {
        type Test = fn(&f64, &f64) -> bool;
        let table: [(Relation, Test); 6] = [
            (Relation::Lt, f64::lt),
            (Relation::Le, f64::le),
            (Relation::Eq, f64::eq),
            (Relation::Ne, f64::ne),
            (Relation::Gt, f64::gt),
            (Relation::Ge, f64::ge),
        ];
        for x in all_layouts(parts(), &[&[5, 7]])? {
            let y = sample(&[7], x.dtype())?;
            for (relation, test) in table {
                let got = values(&compare(&x, &y, relation)?);
                for (i, a) in values(&x).iter().enumerate() {
                    assert_eq!(got[i] == 1.0, test(a, &values(&y)[i % 7]), "{x:?} {relation:?}");
                }
            }
        }
        let nan = Array::full(Shape::SCALAR, f64::NAN, DType::F16)?;
        assert_eq!(values(&compare(&nan, &nan, Relation::Ne)?), [1.0]);
        assert_eq!(values(&compare(&nan, &nan, Relation::Ge)?), [0.0]);
        Ok(())
    }

    #[test]
    fn selection_and_logic() -> Result<()> {
        let mask = Array::from_slice(&[true, false, true, true].map(Truth::from), Shape::new(&[4, 1])?)?;
        for dtype in parts() {
            let (x, y) = (sample(&[4, 300], dtype)?, sample(&[], dtype)?);
            let got = values(&select(&mask, &x, &y)?);
            for (i, a) in values(&x).iter().enumerate() {
                assert_eq!(got[i], if i / 300 == 1 { values(&y)[0] } else { *a });
            }
        }
        let x = Array::from_slice(&[true, false].map(Truth::from), Shape::new(&[2])?)?;
        let y = Array::from_slice(&[true, true, false].map(Truth::from), Shape::new(&[3, 1])?)?;
        assert_eq!(values(&logical(Logic::And, &[&x, &y])?), [1., 0., 1., 0., 0., 0.]);
        assert_eq!(values(&logical(Logic::Or, &[&x, &y])?), [1., 1., 1., 1., 1., 0.]);
        assert_eq!(values(&logical(Logic::Xor, &[&x, &y])?), [0., 1., 0., 1., 1., 0.]);
        assert_eq!(values(&logical(Logic::Not, &[&x])?), [0., 1.]);
        Ok(())
    }
}
