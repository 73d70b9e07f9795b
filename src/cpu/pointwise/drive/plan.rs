//! Elementwise loops whose operands are not all dense: they run in segments.

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

#[derive(Clone, Copy)]
struct FedOperand {
    feed: Feed,
    base: Shared<u8>,
    size: usize,
    /// The dtype to widen from, if the kernel computes in a wider one.
    narrow: Option<DType>,
}

/// How a job over operands of any layout runs: in segments, each operand fed according to its layout.
pub(super) struct SegmentPlan {
    kernel: LoopFn,
    rule: Shared<u8>,
    out: Shared<u8>,
    out_size: usize,
    out_narrow: Option<DType>,
    nest: Nest,
    sources: [FedOperand; MAX_OPERANDS],
    count: usize,
    /// Whether segments end where a row ends.
    by_row: bool,
    /// Maximum number of elements of a segment.
    segment: usize,
    /// Whether the output is written past the cache.
    streamed: bool,
}

impl SegmentPlan {
    pub(super) fn new(job: &ElementLoop, in_place: bool) -> SegmentPlan {
        let nest = Nest::new(&job.out.shape(), job.x);
        let wide = |dtype| Some(dtype).filter(|&d| job.computes && is_narrow(d));
        let unused =
            FedOperand { feed: Feed::Flat, base: Shared::new(std::ptr::null_mut()), size: 0, narrow: None };
        let mut sources = [unused; MAX_OPERANDS];
        for (k, a) in job.x.iter().enumerate() {
            let feed = match () {
                _ if nest.is_flat(k) => Feed::Flat,
                _ if nest.is_single(k) => Feed::Single,
                _ if nest.inner() < LONG_ROW && repeats(&nest, k) => Feed::Repeated,
                _ => Feed::Strided,
            };
            let (base, size) = (Shared::new(start(a)), a.dtype().size());
            sources[k] = FedOperand { feed, base, size, narrow: wide(a.dtype()) };
        }
        let used = &sources[..job.x.len()];
        let out_narrow = wide(job.out.dtype());
        let direct = out_narrow.is_none() && used.iter().all(|s| s.feed == Feed::Flat && s.narrow.is_none());
        let repeated = used.iter().any(|s| s.feed == Feed::Repeated);
        let bytes = |s: &FedOperand, a: &Array| if s.feed == Feed::Flat { a.numel() * s.size } else { 0 };
        let read: usize = used.iter().zip(job.x).map(|(s, a)| bytes(s, a)).sum();
        // An output that is an operand was just read, so its lines are in the cache already. Narrowed results
        // are streamed from the upper half of a tile, which eight-byte elements do not leave free.
        let streamed = !in_place
            && out_narrow.is_none_or(|d| d.compute().size() == 4)
            && stream::pays(read + job.out.numel() * job.out.dtype().size());
        SegmentPlan {
            kernel: job.kernel,
            rule: Shared::new(job.rule.cast_mut()),
            out: Shared::new(start(job.out)),
            out_size: job.out.dtype().size(),
            out_narrow,
            nest,
            sources,
            count: job.x.len(),
            by_row: nest.inner() >= LONG_ROW && used.iter().any(|s| s.feed == Feed::Strided),
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
        for k in (0..self.count).filter(|&k| self.sources[k].feed == Feed::Single) {
            pointers[k] = self.gather(k, 0, TILE.min(to - from), true, &mut tiles[k]);
        }
        let all = self.nest.dims[..self.nest.rank].iter().product();
        for k in (0..self.count).filter(|&k| self.sources[k].feed == Feed::Repeated) {
            self.gather(k, 0, TILE.min(all), false, &mut tiles[k]);
        }
        let mut at = from;
        while at < to {
            let mut n = self.segment.min(to - at);
            if self.by_row {
                n = n.min(self.nest.inner() - at % self.nest.inner());
            }
            for k in (0..self.count).filter(|&k| self.sources[k].feed != Feed::Single) {
                pointers[k] = self.feed(k, at, n, &mut tiles[k]);
            }
            // SAFETY: every pointer holds `n` elements of the kernel's types; the output has `n` from `at`
            // on, and is one of them or overlaps none.
            unsafe {
                self.segment(&pointers, self.out.get().wrapping_add(at * self.out_size), n, &mut result)
            };
            at += n;
        }
        if self.streamed {
            stream::fence();
        }
    }

    /// Runs the kernel over one segment.
    ///
    /// # Safety
    /// Every pointer holds `n` elements of the kernel's types; `out` is writable for `n`, and is one of
    /// them or overlaps none.
    unsafe fn segment(&self, x: &[*const u8; MAX_OPERANDS], out: *mut u8, n: usize, tile: &mut Tile) {
        // SAFETY: guaranteed by the caller; a tile can hold `n <= TILE` elements, and narrow ones in its
        // upper half while their wide ones are in the lower one.
        unsafe {
            let to = if self.streamed || self.out_narrow.is_some() { tile.ptr() } else { out };
            (self.kernel)(self.rule.get(), x.as_ptr(), to, n);
            let mut done = to;
            if let Some(dtype) = self.out_narrow {
                done = if self.streamed { tile.upper() } else { out };
                narrow(dtype, to, done, n);
            }
            if self.streamed {
                stream::stream(out, done, n * self.out_size);
            }
        }
    }

    /// Returns a pointer to `n` elements of operand `k` from row-major index `at` on, as the kernel wants.
    fn feed(&self, k: usize, at: usize, n: usize, tile: &mut Tile) -> *const u8 {
        let s = &self.sources[k];
        let offset = match s.feed {
            Feed::Flat => at as isize,
            Feed::Repeated => {
                let size = s.narrow.map_or(s.size, |dtype| dtype.compute().size());
                return tile.ptr().wrapping_add(at % self.nest.inner() * size);
            }
            _ if self.by_row && self.nest.strides[k][self.nest.rank - 1] == 1 => {
                self.nest.position(k, &self.nest.coordinates(at))
            }
            _ => return self.gather(k, at, n, false, tile),
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

    /// Copies `n` elements of operand `k` into its tile; with `single`, repeats the first one.
    fn gather(&self, k: usize, at: usize, n: usize, single: bool, tile: &mut Tile) -> *const u8 {
        let s = &self.sources[k];
        let into = if s.narrow.is_some() { tile.upper() } else { tile.ptr() };
        // SAFETY: positions come from the operand's own layout; a tile can hold `n <= TILE` elements, and
        // that many narrow ones in its upper half.
        unsafe {
            dispatch_width!(s.size, T => gather_run::<T>(self, k, at, n, single, into));
            if let Some(dtype) = s.narrow {
                widen(dtype, into, tile.ptr(), n);
            }
            tile.ptr()
        }
    }
}

/// # Safety
/// Operand `k` has elements of `T`'s size and covers `at..at + n`; `to` is writable for `n` of them.
unsafe fn gather_run<T: Copy>(plan: &SegmentPlan, k: usize, at: usize, n: usize, single: bool, to: *mut u8) {
    let (from, to) = (plan.sources[k].base.get().cast::<T>().cast_const(), to.cast::<T>());
    if single {
        // SAFETY: guaranteed by the caller.
        return unsafe { std::slice::from_raw_parts_mut(to, n).fill(*from) };
    }
    let stride = plan.nest.strides[k][plan.nest.rank - 1];
    plan.nest.runs([k], at, n, |&[position], done, length| {
        // SAFETY: the run lies inside the operand, its target inside the tile.
        unsafe {
            let (from, to) = (from.offset(position), to.add(done));
            match stride {
                1 => std::ptr::copy_nonoverlapping(from, to, length),
                0 => std::slice::from_raw_parts_mut(to, length).fill(*from),
                _ => (0..length).for_each(|i| *to.add(i) = *from.offset(i as isize * stride)),
            }
        }
    });
}
