//! One parallel loop over the elements of many arrays, concatenated to a row that is cut into chunks.

use super::threads::{Shared, parallel_for};
use std::ops::Range;

/// Minimum number of elements per thread.
const GRAIN: usize = 1 << 16;

/// Concatenated arrays, given by the end of each.
pub struct Row(Vec<usize>);

impl Row {
    /// Returns the row of arrays of these lengths.
    pub fn new(lengths: impl Iterator<Item = usize>) -> Row {
        let mut end = 0;
        Row(lengths
            .map(|n| {
                end += n;
                end
            })
            .collect())
    }

    /// Returns the number of elements of all arrays.
    fn len(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    /// Calls `body(array, range)` for the parts of arrays that make up `range` of the row.
    fn parts(&self, range: Range<usize>, mut body: impl FnMut(usize, Range<usize>)) {
        let mut at = range.start;
        let mut i = self.0.partition_point(|&end| end <= at);
        while at < range.end {
            let start = if i == 0 { 0 } else { self.0[i - 1] };
            let end = self.0[i].min(range.end);
            if at < end {
                body(i, at - start..end - start);
            }
            (at, i) = (end, i + 1);
        }
    }

    /// Calls `body(array, range)` for disjoint parts that cover all arrays, in parallel.
    pub fn for_each(&self, body: impl Fn(usize, Range<usize>) + Sync) {
        parallel_for(self.len(), GRAIN, |range| self.parts(range, &body));
    }

    /// Returns the sum of `part(array, range)` over parts that cover all arrays, in parallel. The bounds of
    /// the parts and the order of additions depend on the lengths alone.
    pub fn sum(&self, part: impl Fn(usize, Range<usize>) -> f64 + Sync) -> f64 {
        let mut blocks = vec![0.0; self.len().div_ceil(GRAIN)];
        let out = Shared::new(blocks.as_mut_ptr());
        parallel_for(self.len(), GRAIN, |range| {
            for start in range.clone().step_by(GRAIN) {
                let mut sum = 0.0;
                self.parts(start..range.end.min(start + GRAIN), |i, r| sum += part(i, r));
                // SAFETY: chunks start at multiples of the grain, so each block is written once.
                unsafe { out.get().add(start / GRAIN).write(sum) };
            }
        });
        blocks.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn parts_cover_every_array_once() {
        let lengths = [0, 3, 0, 140_000, 1, 65_535, 0, 270_000, 0];
        let row = Row::new(lengths.into_iter());
        let seen: Vec<AtomicUsize> = lengths.iter().map(|_| AtomicUsize::new(0)).collect();
        row.for_each(|i, range| {
            assert!(!range.is_empty() && range.end <= lengths[i]);
            seen[i].fetch_add(range.len(), Ordering::Relaxed);
        });
        assert!(seen.iter().zip(lengths).all(|(n, length)| n.load(Ordering::Relaxed) == length));
        assert_eq!(row.sum(|i, range| if i == 7 { range.len() as f64 } else { 0.0 }), 270_000.0);
        assert_eq!(Row::new([].into_iter()).sum(|_, _| 1.0), 0.0);
    }
}
