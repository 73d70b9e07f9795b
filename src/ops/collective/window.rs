//! Memory that the processes of one host share: there they meet, compare what they are about to do, and read
//! each other's bytes, without a call of the operating system.
//!
//! Meetings use the two halves of the memory in turn. A process that enters a meeting has left the one
//! before, which all others had entered by then; so they have left the one before that, and read this half
//! no more.

use crate::error::{Error, Result};
use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a head, and what rows are aligned to: processors fetch cache lines of 64 bytes in pairs.
const ALIGN: usize = 128;
/// So many looks follow on each other; after them, others get the processor between two looks.
const SPINS: u32 = 256;

/// A number for an operation: what it is, its kind, and the bytes that it moves, negative if ranks differ.
pub fn number(what: &str, kind: &str, bytes: i64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (what, kind, bytes).hash(&mut hasher);
    hasher.finish()
}

/// What a process says of the operation that it is about to do.
#[repr(C, align(128))]
struct Head {
    /// Written last: the meeting that the other fields are of.
    meeting: AtomicU64,
    operation: AtomicU64,
    partners: AtomicU64,
}

/// The memory as one process sees it; without memory until [`Window::open`].
pub struct Window {
    rank: usize,
    size: usize,
    memory: OnceLock<Memory>,
    /// Whether a thread of this process is in an operation.
    taken: AtomicBool,
    /// The meeting at hand, and the last one that all processes are known to have entered.
    meetings: AtomicU64,
    met: AtomicU64,
}

struct Memory {
    base: *mut u8,
    /// Bytes of a row.
    room: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: `base` is memory that the owner keeps, shared with other processes; the protocol of this file says
// who writes where.
unsafe impl Send for Memory {}
// SAFETY: as above; of the threads of a process, the one that has taken the window writes.
unsafe impl Sync for Memory {}

/// A window that this thread has taken, until it is dropped.
pub struct Turn<'a>(&'a Window);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Window {
    /// The window of process `rank` of so many.
    pub fn new(rank: usize, size: usize) -> Window {
        let (taken, meetings, met) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Window { rank, size, memory: OnceLock::new(), taken, meetings, met }
    }

    /// Gives the window its memory: `bytes` zeros that all processes share, alive as long as `owner`. Does
    /// nothing if it has some.
    ///
    /// # Safety
    /// All bytes from `base` on may be read and written, by this window and by those of the other processes.
    pub unsafe fn open(&self, base: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Result<()> {
        let room = (bytes / 2 / self.size).saturating_sub(ALIGN) / ALIGN * ALIGN;
        if room == 0 || base.align_offset(ALIGN) != 0 {
            return Err(Error::value("a window of ranks has aligned memory for each of them"));
        }
        self.memory.get_or_init(|| Memory { base, room, _owner: owner });
        Ok(())
    }

    /// How many bytes a process can show the others; none without memory.
    pub fn room(&self) -> usize {
        self.memory.get().map_or(0, |memory| memory.room)
    }

    /// Takes the window for an operation, unless another thread has.
    pub fn take(&self) -> Option<Turn<'_>> {
        self.acquire().then_some(Turn(self))
    }

    /// As [`Window::take`], until [`Window::release`].
    pub fn acquire(&self) -> bool {
        !self.taken.swap(true, Ordering::Acquire)
    }

    pub fn release(&self) {
        self.taken.store(false, Ordering::Release);
    }

    fn memory(&self) -> Result<&Memory> {
        self.memory.get().ok_or_else(|| Error::value("internal: a window of ranks without memory"))
    }

    /// The head of a process in the meeting at hand.
    fn head(&self, memory: &Memory, rank: usize) -> &Head {
        let half = self.meetings.load(Ordering::Relaxed) as usize % 2;
        // SAFETY: the heads of both halves are at the front; zeros are a head.
        unsafe { &*memory.base.add((half * self.size + rank) * ALIGN).cast::<Head>() }
    }

    /// Where the row of rank 0 in the meeting at hand begins, and the bytes from one row to the next.
    pub fn rows(&self) -> Result<(*mut u8, usize)> {
        let memory = self.memory()?;
        let half = self.meetings.load(Ordering::Relaxed) as usize % 2;
        // SAFETY: `open` left room for 2 rows of each process behind 2 heads of each.
        Ok((unsafe { memory.base.add(2 * self.size * ALIGN + half * self.size * memory.room) }, memory.room))
    }

    /// Copies what a process has shown from byte `start` on.
    pub fn read(&self, rank: usize, start: usize, into: &mut [u8]) -> Result<()> {
        let (first, room) = self.rows()?;
        if rank >= self.size || start.checked_add(into.len()).is_none_or(|end| end > room) {
            return Err(Error::value("internal: a read beyond the row of a rank"));
        }
        // SAFETY: within the row, which nobody writes before this process enters the next meeting.
        unsafe { first.add(rank * room + start).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Enters the next meeting, about to do `operation`: to send to the first of `partners` and to get from
    /// the second, if the operation has such, and showing all others these bytes, one piece after the other.
    pub fn enter(&self, operation: u64, partners: [i32; 2], shown: &[&[u8]]) -> Result<()> {
        let memory = self.memory()?;
        if shown.iter().map(|piece| piece.len()).sum::<usize>() > memory.room {
            return Err(Error::value("internal: more bytes than a row of a window has"));
        }
        if self.met.load(Ordering::Relaxed) != self.meetings.load(Ordering::Relaxed) {
            // The other half may still be read.
            return Err(Error::autodiff(
                "an operation of this group was interrupted, so its ranks no longer agree; end the program, \
                 or go on without this group",
            ));
        }
        let meeting = self.meetings.fetch_add(1, Ordering::Relaxed) + 1;
        let (first, room) = self.rows()?;
        let mut end = self.rank * room;
        for piece in shown {
            // SAFETY: within the own row of this half, which the others have left.
            unsafe { first.add(end).copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
            end += piece.len();
        }
        let head = self.head(memory, self.rank);
        head.operation.store(operation, Ordering::Relaxed);
        let [to, from] = partners.map(|rank| u64::from(rank as u32));
        head.partners.store(to << 32 | from, Ordering::Relaxed);
        head.meeting.store(meeting, Ordering::Release);
        Ok(())
    }

    /// Whether all processes have entered the meeting at hand, after waiting for them for so long.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let memory = self.memory()?;
        let meeting = self.meetings.load(Ordering::Relaxed);
        let is_here = |rank| self.head(memory, rank).meeting.load(Ordering::Acquire) >= meeting;
        let began = Instant::now();
        for look in 0_u32.. {
            if (0..self.size).all(is_here) {
                self.met.store(meeting, Ordering::Relaxed);
                return Ok(true);
            }
            if look < SPINS {
                std::hint::spin_loop();
            } else if began.elapsed() >= limit {
                break;
            } else {
                std::thread::yield_now();
            }
        }
        Ok(false)
    }

    /// Whether all processes are about to do the same, and those that send and get expect each other.
    pub fn agree(&self) -> Result<bool> {
        let memory = self.memory()?;
        let own = self.head(memory, self.rank).operation.load(Ordering::Relaxed);
        let partners = |rank: usize| {
            let both = self.head(memory, rank).partners.load(Ordering::Relaxed);
            [(both >> 32) as i32, both as i32]
        };
        // Whom the partner at place `own` of a process names at the other place.
        let is_expected = |rank: usize, own: usize| match partners(rank)[own] {
            other if other < 0 => true,
            other => (other as usize) < self.size && partners(other as usize)[1 - own] == rank as i32,
        };
        Ok((0..self.size).all(|rank| {
            let same = self.head(memory, rank).operation.load(Ordering::Relaxed) == own;
            same && is_expected(rank, 0) && is_expected(rank, 1)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// The windows of so many processes, which are threads here, with rows of `room` bytes.
    fn windows(size: usize, room: usize) -> Result<Vec<Window>> {
        let bytes = 2 * size * (ALIGN + room);
        let zeros = (0..(bytes + ALIGN) / 8).map(|_| AtomicU64::new(0));
        let owner: Arc<[AtomicU64]> = zeros.collect();
        let start = owner.as_ptr().cast_mut().cast::<u8>();
        let base = start.wrapping_add(start.align_offset(ALIGN));
        let open = |rank| {
            let window = Window::new(rank, size);
            // SAFETY: the owner has that many bytes.
            unsafe { window.open(base, bytes, Box::new(owner.clone())) }?;
            Ok(window)
        };
        (0..size).map(open).collect()
    }

    fn wait_for_all(window: &Window) -> Result<()> {
        while !window.wait(Duration::from_secs(1))? {}
        Ok(())
    }

    /// What process `rank` does: it shows bytes that grow, and reads those of all.
    fn show_and_read(window: &Window, rank: usize, size: usize) -> Result<()> {
        for round in 0..200_u8 {
            let of = |rank: usize| vec![round.wrapping_mul(rank as u8 + 1); usize::from(round)];
            let own = of(rank);
            let (front, back) = own.split_at(own.len() / 3);
            window.enter(u64::from(round), [-1, -1], &[front, back])?;
            wait_for_all(window)?;
            assert!(window.agree()?);
            for other in 0..size {
                let mut read = vec![1; own.len()];
                window.read(other, 0, &mut read)?;
                assert_eq!(read, of(other));
            }
        }
        Ok(())
    }

    #[test]
    fn everyone_reads_what_everyone_shows() -> Result<()> {
        for size in [1, 2, 3, 5] {
            let all = windows(size, 256)?;
            assert_eq!(all[0].room(), 256);
            let failed = std::thread::scope(|scope| {
                let run = |(rank, window)| scope.spawn(move || show_and_read(window, rank, size));
                let threads: Vec<_> = all.iter().enumerate().map(run).collect();
                threads.into_iter().any(|thread| !matches!(thread.join(), Ok(Ok(()))))
            });
            assert!(!failed);
        }
        Ok(())
    }

    #[test]
    fn who_disagrees_is_found() -> Result<()> {
        let cases = [
            ([1, 1], [[-1, -1], [-1, -1]], true),
            ([1, 2], [[-1, -1], [-1, -1]], false),
            ([1, 1], [[1, -1], [-1, 0]], true),
            ([1, 1], [[1, -1], [-1, -1]], false),
            ([1, 1], [[-1, 1], [-1, -1]], false),
            ([1, 1], [[2, -1], [-1, 0]], false),
        ];
        for (operations, partners, agree) in cases {
            let all = windows(2, 128)?;
            for (i, window) in all.iter().enumerate() {
                window.enter(operations[i], partners[i], &[])?;
                assert_eq!(window.wait(Duration::ZERO)?, i == 1);
            }
            for window in &all {
                wait_for_all(window)?;
                assert_eq!(window.agree()?, agree, "{operations:?} {partners:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() -> Result<()> {
        let window = &windows(2, 128)?[0];
        assert!(window.enter(0, [-1, -1], &[&[0; 100], &[0; 29]]).is_err());
        assert!(window.read(2, 0, &mut [0]).is_err() && window.read(0, 128, &mut [0]).is_err());
        assert!(Window::new(0, 2).enter(0, [-1, -1], &[]).is_err());
        // Nor may a process that has not waited for the others go on.
        window.enter(0, [-1, -1], &[])?;
        assert!(!window.wait(Duration::ZERO)? && window.enter(0, [-1, -1], &[]).is_err());
        let turn = window.take();
        assert!(turn.is_some() && window.take().is_none());
        drop(turn);
        assert!(window.take().is_some());
        Ok(())
    }
}
