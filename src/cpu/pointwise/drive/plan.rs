//! Elementwise loops whose operands are not all dense: they run in segments.
//! Read next: `src/cpu/pointwise/drive/tiles.rs`, how elements get into tiles and out of them.

use super::permute::Permutation;
use super::tiles::{copy_tile, fill};
use super::*;

/// How an operand is passed to the kernel.
#[derive(Clone, Copy, PartialEq)]
enum Feed {
    /// Row-major: its memory is passed directly.
    Flat,
    /// One element: it fills a tile once.
    Single,
    /// A short row that repeats: its repetitions fill a tile once.
    Repeated,
    /// Any other layout.
    Strided,
}

/// Whether operand `k` repeats its innermost row over all other axes.
fn repeats(nest: &Nest, k: usize) -> bool {
    let last = nest.rank - 1;
    nest.strides[k][last] == 1 && nest.strides[k][..last].iter().all(|&stride| stride == 0)
}

struct FedOperand {
    feed: Feed,
    base: Shared<u8>,
    size: usize,
    /// The dtype to widen from, if the kernel computes in a wider one.
    narrow: Option<DType>,
    /// How short rows get into a tile.
    permutation: Option<Box<Permutation>>,
}

/// How a loop over operands of any layout runs: in segments, each operand fed according to its layout.
pub(super) struct SegmentPlan {
    kernel: LoopFn,
    rule: Shared<u8>,
    out: Shared<u8>,
    out_size: usize,
    out_narrow: Option<DType>,
    out_feed: Feed,
    /// The axes, with the strides of the operands and, last, of the output.
    nest: Nest,
    operands: SmallVec<[FedOperand; MAX_OPERANDS]>,
    count: usize,
    /// Whether segments end where a row ends.
    by_row: bool,
    /// Maximum number of elements of a segment.
    segment: usize,
    /// Whether the output is written past the cache.
    streamed: bool,
}

impl SegmentPlan {
    pub(super) fn new(run: &ElementLoop, in_place: bool) -> SegmentPlan {
        let mut all: SmallVec<[&Array; MAX_OPERANDS]> = SmallVec::from_slice(run.x);
        all.push(run.out);
        let nest = Nest::new(&run.out.shape(), &all);
        let out_feed = if nest.is_flat(run.x.len()) { Feed::Flat } else { Feed::Strided };
        let wide = |dtype| Some(dtype).filter(|&d| run.computes && is_narrow(d));
        let mut operands = SmallVec::<[FedOperand; MAX_OPERANDS]>::new();
        for (k, a) in run.x.iter().enumerate() {
            let feed = match () {
                _ if nest.is_flat(k) => Feed::Flat,
                _ if nest.is_single(k) => Feed::Single,
                _ if nest.inner() < LONG_ROW && repeats(&nest, k) => Feed::Repeated,
                _ => Feed::Strided,
            };
            let (base, size) = (Shared::new(start(a)), a.dtype().size());
            let pays = feed == Feed::Strided && run.out.numel() >= TILE;
            let permutation = pays.then(|| Permutation::new(&nest, k, size)).flatten().map(Box::new);
            operands.push(FedOperand { feed, base, size, narrow: wide(a.dtype()), permutation });
        }
        let used = &operands;
        let out_narrow = wide(run.out.dtype());
        let direct = out_narrow.is_none()
            && out_feed == Feed::Flat
            && used.iter().all(|s| s.feed == Feed::Flat && s.narrow.is_none());
        let repeated = used.iter().any(|s| s.feed == Feed::Repeated);
        let bytes = |s: &FedOperand, a: &Array| if s.feed == Feed::Flat { a.numel() * s.size } else { 0 };
        let read: usize = used.iter().zip(run.x).map(|(s, a)| bytes(s, a)).sum();
        // An output that is an operand was just read, so its lines are in the cache already. Narrowed results
        // are streamed from the upper half of a tile, which eight-byte elements do not leave free.
        let streamed = !in_place
            && out_feed == Feed::Flat
            && out_narrow.is_none_or(|d| d.compute().size() == 4)
            && stream::pays(read + run.out.numel() * run.out.dtype().size());
        let by_row = nest.inner() >= LONG_ROW
            && (out_feed == Feed::Strided || used.iter().any(|s| s.feed == Feed::Strided));
        SegmentPlan {
            kernel: run.kernel,
            rule: Shared::new(run.rule.cast_mut()),
            out: Shared::new(start(run.out)),
            out_size: run.out.dtype().size(),
            out_narrow,
            out_feed,
            nest,
            operands,
            count: run.x.len(),
            by_row,
            segment: match () {
                _ if repeated => TILE - LONG_ROW,
                _ if direct && !streamed => usize::MAX,
                _ => TILE,
            },
            streamed,
        }
    }

    /// Computes the elements `from..to`, in segments.
    pub(super) fn chunk(&self, from: usize, to: usize) {
        let mut tiles = [const { Tile::new() }; MAX_OPERANDS];
        let mut result = Tile::new();
        let mut pointers = [std::ptr::null::<u8>(); MAX_OPERANDS];
        for k in (0..self.count).filter(|&k| self.operands[k].feed == Feed::Single) {
            pointers[k] = self.gather(k, 0, TILE.min(to - from), &mut tiles[k]);
        }
        let all = self.nest.dims[..self.nest.rank].iter().product();
        for k in (0..self.count).filter(|&k| self.operands[k].feed == Feed::Repeated) {
            self.gather(k, 0, TILE.min(all), &mut tiles[k]);
        }
        let mut at = from;
        while at < to {
            let mut n = self.segment.min(to - at);
            if self.by_row {
                n = n.min(self.nest.inner() - at % self.nest.inner());
            }
            for k in (0..self.count).filter(|&k| self.operands[k].feed != Feed::Single) {
                pointers[k] = self.feed(k, at, n, &mut tiles[k]);
            }
            // SAFETY: every pointer holds `n` elements of the kernel's types; the output has `n` from `at`
            // on, and is one of them or overlaps none.
            unsafe { self.segment(&pointers, at, n, &mut result) };
            at += n;
        }
        if self.streamed {
            stream::fence();
        }
    }

    /// Runs the kernel over one segment, from row-major index `at` on.
    ///
    /// # Safety
    /// Every pointer holds `n` elements of the kernel's types; the output is writable for `n` from `at` on,
    /// and is one of them or overlaps none.
    unsafe fn segment(&self, x: &[*const u8; MAX_OPERANDS], at: usize, n: usize, tile: &mut Tile) {
        let offset = match self.out_feed {
            Feed::Flat => Some(at as isize),
            _ => self.row(self.count, at),
        };
        let out = offset.map(|offset| self.out.get().wrapping_offset(offset * self.out_size as isize));
        // The output itself, unless its elements are moved there afterwards.
        let direct = out.filter(|_| !self.streamed);
        // SAFETY: guaranteed by the caller; a tile can hold `n <= TILE` elements, and narrow ones in its
        // upper half while their wide ones are in the lower one.
        unsafe {
            let to = direct.filter(|_| self.out_narrow.is_none()).unwrap_or(tile.ptr());
            (self.kernel)(self.rule.get(), x.as_ptr(), to, n);
            let mut done = to;
            if let Some(dtype) = self.out_narrow {
                done = direct.unwrap_or(tile.upper());
                narrow(dtype, to, done, n);
            }
            match out {
                Some(out) if self.streamed => stream::stream(out, done, n * self.out_size),
                Some(_) => {}
                None => {
                    let out = self.out.get();
                    dispatch_width!(self.out_size, T => {
                        copy_tile::<T, false>(&self.nest, self.count, at, n, out.cast(), done.cast())
                    });
                }
            }
        }
    }

    /// The offset of the row-major element `at` of operand `k`, if segments are parts of its dense rows.
    fn row(&self, k: usize, at: usize) -> Option<isize> {
        (self.by_row && self.nest.strides[k][self.nest.rank - 1] == 1)
            .then(|| self.nest.position(k, &self.nest.coordinates(at)))
    }

    /// Returns a pointer to `n` elements of operand `k` from row-major index `at` on, as the kernel wants.
    fn feed(&self, k: usize, at: usize, n: usize, tile: &mut Tile) -> *const u8 {
        let s = &self.operands[k];
        let offset = match s.feed {
            Feed::Flat => at as isize,
            Feed::Repeated => {
                let size = s.narrow.map_or(s.size, |dtype| dtype.compute().size());
                return tile.ptr().wrapping_add(at % self.nest.inner() * size);
            }
            _ => match self.row(k, at) {
                Some(offset) => offset,
                None => return self.gather(k, at, n, tile),
            },
        };
        let from = s.base.get().wrapping_offset(offset * s.size as isize);
        // SAFETY: the operand has `n` elements in order from here on, and a tile can hold them.
        unsafe {
            if let Some(dtype) = s.narrow {
                widen(dtype, from, tile.ptr(), n);
                return tile.ptr();
            }
        }
        from
    }

    /// Copies `n` elements of operand `k` into its tile, or one of them `n` times if all are the same.
    fn gather(&self, k: usize, at: usize, n: usize, tile: &mut Tile) -> *const u8 {
        let s = &self.operands[k];
        let one = match s.feed {
            Feed::Single => Some(0),
            _ if self.by_row && self.nest.strides[k][self.nest.rank - 1] == 0 => {
                Some(self.nest.position(k, &self.nest.coordinates(at)))
            }
            _ => None,
        };
        let into = if s.narrow.is_some() { tile.upper() } else { tile.ptr() };
        // SAFETY: positions come from the operand's own layout; a tile can hold `n <= TILE` elements, and
        // that many narrow ones in its upper half.
        unsafe {
            dispatch_width!(s.size, T => {
                let (from, to) = (s.base.get().cast::<T>(), into.cast::<T>());
                match (one, &s.permutation) {
                    (Some(offset), _) => fill(to, n, *from.offset(offset)),
                    (None, Some(permutation)) => permutation.copy_tile(&self.nest, k, at, n, from, to),
                    (None, None) => copy_tile::<T, true>(&self.nest, k, at, n, from, to),
                }
            });
            if let Some(dtype) = s.narrow {
                widen(dtype, into, tile.ptr(), n);
            }
            tile.ptr()
        }
    }
}
