//! A cache of plans: the data of `rustfft` and `realfft` for transforms of one kind and length.
//!
//! A plan holds about one complex number per element of its length. The plans used last stay, up to a number
//! and a total length. They are immutable, so all threads share them.

use crate::array::buffer::with_reserve;
use crate::cpu::prelude::*;
use crate::process::sync::lock;
use bytemuck::Pod;
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximal number of plans kept per dtype.
const KEPT: usize = 64;
/// Maximal sum of their lengths; a plan that is longer by itself is not kept.
const KEPT_LENGTH: usize = 1 << 22;

/// Complex numbers per element of the length that making a plan takes at most; prime lengths take most.
const MADE: usize = 12;

/// The kinds of transforms, each of which needs its own plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of complex numbers, with `exp(-2 pi i t k / n)`.
    Forward,
    /// Of complex numbers, with `exp(2 pi i t k / n)`.
    Inverse,
    /// From real numbers to the first half of their transform.
    FromReal,
    /// From the first half to real numbers.
    ToReal,
}

/// A plan.
#[derive(Clone)]
pub enum FftPlan<T> {
    /// Of complex numbers.
    Complex(Arc<dyn Fft<T>>),
    /// From real numbers.
    FromReal(Arc<dyn RealToComplex<T>>),
    /// To real numbers.
    ToReal(Arc<dyn ComplexToReal<T>>),
}

impl<T: FftNum> FftPlan<T> {
    /// Makes a plan for a length of at least 1.
    fn new(kind: Kind, n: usize) -> FftPlan<T> {
        match kind {
            Kind::Forward => FftPlan::Complex(FftPlanner::new().plan_fft_forward(n)),
            Kind::Inverse => FftPlan::Complex(FftPlanner::new().plan_fft_inverse(n)),
            Kind::FromReal => FftPlan::FromReal(RealFftPlanner::new().plan_fft_forward(n)),
            Kind::ToReal => FftPlan::ToReal(RealFftPlanner::new().plan_fft_inverse(n)),
        }
    }

    /// Returns the length of the scratch buffer that it needs.
    pub fn scratch(&self) -> usize {
        match self {
            FftPlan::Complex(plan) => plan.get_immutable_scratch_len(),
            FftPlan::FromReal(plan) => plan.get_scratch_len(),
            FftPlan::ToReal(plan) => plan.get_scratch_len(),
        }
    }
}

/// Plans of one dtype, the most recently used first.
pub struct PlanCache<T>(Vec<(Kind, usize, FftPlan<T>)>);

impl<T: FftNum> PlanCache<T> {
    fn find(&mut self, kind: Kind, n: usize) -> Option<FftPlan<T>> {
        let at = self.0.iter().position(|kept| (kept.0, kept.1) == (kind, n))?;
        self.0[..=at].rotate_right(1);
        Some(self.0[0].2.clone())
    }

    /// Keeps a plan, and drops the least recently used ones.
    fn keep(&mut self, kind: Kind, n: usize, plan: &FftPlan<T>) {
        if n > KEPT_LENGTH || self.find(kind, n).is_some() {
            return;
        }
        self.0.insert(0, (kind, n, plan.clone()));
        let mut total = 0;
        let fitting = self.0.iter().take(KEPT).take_while(|kept| {
            total += kept.1;
            total <= KEPT_LENGTH
        });
        let fitting = fitting.count();
        self.0.truncate(fitting);
    }
}

static SINGLE: Mutex<PlanCache<f32>> = Mutex::new(PlanCache(Vec::new()));
static DOUBLE: Mutex<PlanCache<f64>> = Mutex::new(PlanCache(Vec::new()));

/// The real and imaginary parts of the complex numbers that have transforms.
pub trait FftFloat: FftNum + Element + Pod {
    /// Returns the plans for this dtype.
    fn kept() -> &'static Mutex<PlanCache<Self>>;
}

macro_rules! part {
    ($($t:ty: $kept:ident),*) => {
        $(impl FftFloat for $t {
            fn kept() -> &'static Mutex<PlanCache<$t>> {
                &$kept
            }
        })*
    };
}
part!(f32: SINGLE, f64: DOUBLE);

/// Returns the plan for length `n`, at least 1. Makes it outside the lock, so no thread waits for another's.
pub fn plan<T: FftFloat>(kind: Kind, n: usize) -> Result<FftPlan<T>> {
    if let Some(plan) = lock(T::kept()).find(kind, n) {
        return Ok(plan);
    }
    let bytes = n.saturating_mul(MADE * size_of::<Complex<T>>());
    let plan = with_reserve(bytes, || FftPlan::new(kind, n))?;
    lock(T::kept()).keep(kind, n, &plan);
    Ok(plan)
}

/// The locks of the plans, held during a fork.
pub(crate) struct PlansLock(
    #[allow(dead_code)] (MutexGuard<'static, PlanCache<f32>>, MutexGuard<'static, PlanCache<f64>>),
);

/// Locks the plans.
pub(crate) fn lock_plans() -> PlansLock {
    PlansLock((lock(&SINGLE), lock(&DOUBLE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_used_last_are_kept() {
        let mut kept: PlanCache<f32> = PlanCache(Vec::new());
        for n in 1..=KEPT + 5 {
            kept.keep(Kind::Forward, n, &FftPlan::new(Kind::Forward, n));
            assert!(kept.find(Kind::Forward, 1).is_some(), "used again and again");
        }
        assert_eq!(kept.0.len(), KEPT);
        assert!(kept.find(Kind::Forward, 2).is_none() && kept.find(Kind::Inverse, 1).is_none());
        // Only lengths count here, so any plan will do.
        let any = FftPlan::new(Kind::Forward, 1);
        kept.keep(Kind::Forward, KEPT_LENGTH - 1, &any);
        assert_eq!(kept.0.len(), 2, "and the one used last, of length 1");
        kept.keep(Kind::Forward, KEPT_LENGTH + 1, &any);
        assert_eq!(kept.0.len(), 2, "too long to be kept");
    }
}
