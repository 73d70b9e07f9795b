//! The innermost loops of a reduction: rows are added to sums of columns, short rows are folded side by side.
//! The order of the elements depends on the shape alone.

use super::fold::Fold;

/// Number of short rows that are folded at a time.
const TOGETHER: usize = 8;

/// Adds `count` rows, `step` apart, to sums of columns, four at a time, to access the sums less often.
///
/// # Safety
/// The rows exist and are as long as `sums`.
#[inline(always)]
pub unsafe fn fold_lines<T: Copy, F: Fold<T>>(x: *const T, step: isize, count: usize, sums: &mut [T]) {
    let mut i = 0;
    while i < count {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let a = x.offset(i as isize * step);
            if count - i >= 4 {
                let (b, c, d) = (a.offset(step), a.offset(2 * step), a.offset(3 * step));
                for (j, s) in sums.iter_mut().enumerate() {
                    let pairs = F::join(F::join(*a.add(j), *b.add(j)), F::join(*c.add(j), *d.add(j)));
                    *s = F::join(*s, pairs);
                }
                i += 4;
            } else {
                for (j, s) in sums.iter_mut().enumerate() {
                    *s = F::join(*s, *a.add(j));
                }
                i += 1;
            }
        }
    }
}

/// Adds sums of columns to their totals and resets them.
#[inline(always)]
pub fn flush<T: Copy, F: Fold<T>>(sums: &mut [T], totals: &mut [F::Wide]) {
    for (total, s) in totals.iter_mut().zip(sums) {
        *total = F::merge(*total, F::widen(*s));
        *s = F::START;
    }
}

/// Folds `rows` short rows of `n` elements, `step` apart, each in order, several side by side.
///
/// # Safety
/// The rows exist, and so do outputs for them, `out_step` apart.
#[inline(always)]
pub unsafe fn short_rows<T: Copy, F: Fold<T>>(
    x: *const T, step: isize, n: usize, rows: usize, to: *mut T, out_step: isize,
) {
    // Only for sums of floats, which are common.
    if F::BLOCK < usize::MAX && step == n as isize && out_step == 1 && (2..=4).contains(&n) {
        // SAFETY: guaranteed by the caller.
        return unsafe {
            match n {
                2 => adjacent_rows::<T, F, 2>(x, rows, to),
                3 => adjacent_rows::<T, F, 3>(x, rows, to),
                _ => adjacent_rows::<T, F, 4>(x, rows, to),
            }
        };
    }
    let mut i = 0;
    // A macro, not a closure, which might not be inlined (as in `src/cpu/reduce/sweep.rs`).
    macro_rules! together {
        ($count:expr) => {
            while rows - i >= $count {
                let at = i as isize;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let (x, to) = (x.offset(at * step), to.offset(at * out_step));
                    few_rows::<T, F, { $count }>(x, step, n, to, out_step)
                };
                i += $count;
            }
        };
    }
    together!(TOGETHER);
    together!(2);
    together!(1);
}

/// Folds adjacent rows of `N` elements: a loop that becomes shuffles of whole registers.
///
/// # Safety
/// The rows exist, and so do outputs for them.
#[inline(always)]
unsafe fn adjacent_rows<T: Copy, F: Fold<T>, const N: usize>(x: *const T, rows: usize, to: *mut T) {
    for i in 0..rows {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut all = F::START;
            for k in 0..N {
                all = F::join(all, *x.add(i * N + k));
            }
            *to.add(i) = F::finish(F::widen(all));
        }
    }
}

/// Folds `K` short rows side by side, because each step of a row waits for the previous one.
///
/// # Safety
/// The rows exist, and so do outputs for them, `out_step` apart.
#[inline(always)]
unsafe fn few_rows<T: Copy, F: Fold<T>, const K: usize>(
    x: *const T, step: isize, n: usize, to: *mut T, out_step: isize,
) {
    let mut all = [F::START; K];
    for k in 0..n {
        for (r, one) in all.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *one = F::join(*one, unsafe { *x.offset(r as isize * step + k as isize) });
        }
    }
    for (r, one) in all.into_iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { *to.offset(r as isize * out_step) = F::finish(F::widen(one)) };
    }
}
