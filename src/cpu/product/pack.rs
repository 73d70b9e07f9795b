//! Packing: copies a strip of an operand in the order in which tiles read it, step by step of the depth.
//!
//! It pays where tiles would otherwise jump through memory: rows whose stride is a power of two compete for
//! the same few sets of a cache, and vectors cannot load a right operand with columns apart.

use super::mac::Mac;
use super::vector::{Square, Vector};

/// A strip of an operand, and the destination of its copy.
pub struct Strip<M: Mac> {
    /// The first element.
    pub from: *const M::Stored,
    /// Stride from one lane (a row of the left operand, a column of the right one) to the next.
    pub lane: isize,
    /// Stride from one step of the depth to the next.
    pub step: isize,
    /// Lanes, at least 1.
    pub lanes: usize,
    /// Steps of the depth, in stored elements.
    pub k: usize,
    /// The copy: lane `i` of packed step `l` goes to `l * width + i`. Up to [`Mac::LANES`] elements behind it
    /// are overwritten, unless `width` is a multiple of that; those from `lanes` to `width` are undefined.
    pub to: *mut M::In,
    /// Elements per step of the copy.
    pub width: usize,
}

/// A function that packs a strip.
pub type PackFn<M> = unsafe fn(&Strip<M>);

/// Packs a strip.
///
/// # Safety
/// As for [`Mac`]; the pointers of [`Strip`] are valid for its sizes.
#[inline(always)]
pub unsafe fn pack<M: Mac>(s: &Strip<M>) {
    let steps = s.k / M::STEP;
    // SAFETY: the caller guarantees the strip and the instructions of `M`.
    unsafe {
        if s.step == 1 {
            // Lanes that are contiguous along the depth are transposed square by square.
            let stride = s.lane * size_of::<M::Stored>() as isize;
            for l in (0..steps).step_by(M::LANES) {
                // The last lanes first: stores overwrite what the one before wrote behind its lanes.
                for i in (0..s.lanes).step_by(M::LANES).rev() {
                    let (lanes, deep) = ((s.lanes - i).min(M::LANES), (steps - l).min(M::LANES));
                    let square = Square { from: at(s, i, l * M::STEP).cast(), stride, lanes, steps: deep };
                    M::Operands::transpose(square, s.to.add(l * s.width + i), s.width);
                }
            }
        } else if s.lane == 1 {
            for l in 0..steps {
                for i in (0..s.lanes).step_by(M::LANES) {
                    let x = M::beside(at(s, i, l * M::STEP), s.step, (s.lanes - i).min(M::LANES));
                    M::Operands::store(s.to.add(l * s.width + i), x);
                }
            }
        } else {
            for l in 0..steps {
                for i in 0..s.lanes {
                    *s.to.add(l * s.width + i) = M::one(at(s, i, l * M::STEP), s.step, false);
                }
            }
        }
        if !s.k.is_multiple_of(M::STEP) {
            for i in 0..s.lanes {
                *s.to.add(steps * s.width + i) = M::one(at(s, i, s.k - 1), s.step, true);
            }
        }
    }
}

/// Returns the address of lane `i` at step `l`.
#[inline(always)]
fn at<M: Mac>(s: &Strip<M>, i: usize, l: usize) -> *const M::Stored {
    s.from.wrapping_offset(i as isize * s.lane + l as isize * s.step)
}
