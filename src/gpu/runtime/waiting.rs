//! Launches that wait, so that several become one.
//!
//! While a thread is [`merging`], its launches have levels: one comes one level behind the last
//! that writes what it reads or writes, or reads what it writes. Those of a level are one dispatch, as far as
//! bindings, parameters and workgroup memory suffice and as each alone would leave most of the GPU idle. A
//! launch that reads, element by element, what another one stores so joins that one, and memory that only it
//! reads is not written. Memory that is given back meanwhile is not used anew before the launches that use it
//! have been recorded, which would put others behind them (`src/gpu/runtime/pool.rs`).

use super::device::{Gpu, settle_all};
use super::pipeline::Pipeline;
use super::pool::{WAITS, allocation, window_of};
use super::profile::Work;
use super::recorder::UNIFORM_WINDOW;
use crate::array::buffer::Buffer;
use crate::error::Result;
use crate::gpu::shader::merge::{self, Link, Member, Needs, bit};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A launch of more workgroups keeps a GPU busy alone.
const BUSY: u64 = 256;
/// So many launches wait at most.
const MOST: usize = 256;

thread_local! {
    static MERGES: Cell<bool> = const { Cell::new(false) };
    /// Whether launches of this thread wait.
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function whose launches become one where they can, and records them.
pub fn merging<T>(call: impl FnOnce() -> T) -> T {
    /// Sets the flag back, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MERGES.set(self.0);
            if !self.0 && WAITING.take() {
                settle_all();
            }
        }
    }
    let _before = Before(MERGES.replace(true));
    call()
}

/// Whether a launch of this thread waits for others, until [`merging`] ends.
#[inline]
pub(crate) fn waits() -> bool {
    let waits = MERGES.get();
    if waits {
        WAITING.set(true);
    }
    waits
}

/// Memory that a launch binds.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) raw: &'a wgpu::Buffer,
    pub(crate) id: u64,
    pub(crate) epoch: &'a Arc<AtomicU64>,
    /// Where it begins, and its bytes, if it is a part.
    pub(crate) window: Option<(u64, u64)>,
    /// The bytes of the tensor.
    bytes: u64,
}

impl Bound<'_> {
    pub(crate) fn new(buffer: &Buffer) -> Result<Bound<'_>> {
        let block = &allocation(buffer)?.block;
        let (window, bytes) = (window_of(buffer), buffer.bytes() as u64);
        Ok(Bound { raw: &block.raw, id: block.id, epoch: &block.epoch, window, bytes })
    }
}

/// The same of a launch that waits, which may outlast the tensors.
pub(crate) struct Kept {
    raw: wgpu::Buffer,
    id: u64,
    epoch: Arc<AtomicU64>,
    window: Option<(u64, u64)>,
    bytes: u64,
}

impl Kept {
    pub(crate) fn new(bound: &Bound) -> Kept {
        let Bound { id, window, bytes, .. } = *bound;
        Kept { raw: bound.raw.clone(), id, epoch: bound.epoch.clone(), window, bytes }
    }

    pub(crate) fn bound(&self) -> Bound<'_> {
        let Kept { id, window, bytes, .. } = *self;
        Bound { raw: &self.raw, id, epoch: &self.epoch, window, bytes }
    }
}

/// How a launch uses its bindings, one bit each.
#[derive(Clone, Copy, Default)]
pub struct Flow {
    /// Those that are read or written element by element.
    pub elements: u64,
    /// Those that it may write while others do.
    pub reports: u64,
    /// Those that are only read, and bound as writable, as their memory is that of one that is written.
    pub aliased: u64,
}

/// A launch.
pub(crate) struct Launch {
    pub(crate) kernel: Arc<Pipeline>,
    pub(crate) bound: SmallVec<[Kept; 8]>,
    pub(crate) params: SmallVec<[u32; 64]>,
    pub(crate) groups: u64,
    pub(crate) work: Work,
    pub(crate) flow: Flow,
}

impl Launch {
    fn writes(&self, binding: usize) -> bool {
        self.kernel.layout.writable[binding] && (self.flow.reports | self.flow.aliased) & bit(binding) == 0
    }

    fn flows(&self, binding: usize) -> bool {
        self.flow.elements & bit(binding) != 0
    }

    /// The bindings of this memory, one bit each, if it reads all of them element by element.
    fn takes(&self, id: u64) -> Option<u64> {
        let mut takes = 0;
        for (k, _) in self.bound.iter().enumerate().filter(|(_, bound)| bound.id == id) {
            if self.writes(k) || !self.flows(k) {
                return None;
            }
            takes |= bit(k);
        }
        Some(takes)
    }
}

/// A launch and those that follow it, on the elements that it or one of them stores.
#[derive(Default)]
pub(crate) struct Unit {
    launches: SmallVec<[Launch; 1]>,
    /// What all but the first follow.
    links: SmallVec<[Link; 1]>,
    /// The bindings of each that nobody reads.
    unread: SmallVec<[u64; 1]>,
}

impl Unit {
    /// The launches, each with what it follows and the bindings that nobody reads.
    fn parts(&self) -> impl Iterator<Item = (&Launch, Option<Link>, u64)> {
        let links = [None].into_iter().chain(self.links.iter().copied().map(Some));
        let unread = self.unread.iter().copied().chain(std::iter::repeat(0));
        self.launches.iter().zip(links).zip(unread).map(|((launch, link), unread)| (launch, link, unread))
    }

    fn merges(&self) -> bool {
        let merges = |launch: &Launch| launch.bound.len() <= 64 && launch.kernel.needs().is_some();
        self.launches.iter().all(merges)
    }

    /// Whether a launch alone keeps the GPU busy.
    fn is_busy(&self) -> bool {
        self.launches.first().is_none_or(|launch| launch.groups > BUSY)
    }
}

/// Where a launch stores what it makes of an element.
#[derive(Clone, Copy)]
struct Maker {
    level: usize,
    unit: usize,
    member: usize,
    binding: usize,
}

/// Launches in levels.
#[derive(Default)]
pub(crate) struct Waiting {
    levels: VecDeque<Vec<Unit>>,
    /// The number of the first level, and how many launches there are in all.
    first: usize,
    count: usize,
    bytes: u64,
    /// Of each memory that launches which wait use, the level behind the last that writes it, and behind the
    /// last that reads it.
    used: FxHashMap<u64, [usize; 2]>,
    /// The memory of launches that were taken which no others use.
    done: Vec<u64>,
    /// What the last launch that writes a memory stores there element by element.
    makers: FxHashMap<u64, Maker>,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of all that waiting launches bind.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether so many wait that the first must go.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MOST
    }

    /// The first level in which a launch may be, apart from what it reads of this memory.
    fn level(&self, launch: &Launch, but: Option<u64>) -> usize {
        let level = |(k, bound): (usize, &Kept)| {
            let [written, read] = self.used.get(&bound.id).copied().unwrap_or_default();
            if launch.writes(k) { written.max(read) } else { written }
        };
        let bound = launch.bound.iter().enumerate().filter(|(_, bound)| Some(bound.id) != but);
        bound.map(level).fold(self.first, usize::max)
    }

    /// What a launch follows, and by which link.
    fn followed(&self, gpu: &Gpu, launch: &Launch) -> Option<(Maker, Link)> {
        launch.bound.iter().find_map(|bound| {
            let maker = *self.makers.get(&bound.id)?;
            let takes = launch.takes(bound.id)?;
            let unit = self.levels.get(maker.level.checked_sub(self.first)?)?.get(maker.unit)?;
            let link = Link { member: maker.member, binding: maker.binding, takes };
            let gives = unit.launches.get(maker.member)?.kernel.needs()?.gives;
            let fits = self.level(launch, Some(bound.id)) <= maker.level
                && gives & bit(maker.binding) != 0
                && unit.merges()
                && launch.kernel.needs().is_some_and(|needs| needs.follows)
                && fit(gpu, unit.parts().chain([(launch, Some(link), 0)]));
            fits.then_some((maker, link))
        })
    }

    /// Adds a launch.
    pub(crate) fn push(&mut self, gpu: &Gpu, launch: Launch) {
        let followed = self.followed(gpu, &launch);
        let level = followed.map_or_else(|| self.level(&launch, None), |(maker, _)| maker.level);
        while self.levels.len() <= level - self.first {
            self.levels.push_back(Vec::new());
        }
        let units = &mut self.levels[level - self.first];
        let place = followed.map_or(units.len(), |(maker, _)| maker.unit);
        if followed.is_none() {
            units.push(Unit::default());
        }
        let unit = &mut units[place];
        for (k, bound) in launch.bound.iter().enumerate() {
            let used = &mut self.used.entry(bound.id).or_default()[usize::from(!launch.writes(k))];
            *used = (*used).max(level + 1);
            bound.epoch.store(WAITS, Ordering::Relaxed);
            self.bytes += bound.raw.size();
            if launch.writes(k) {
                self.makers.remove(&bound.id);
            }
        }
        // Where an array is bound again in the place of one that there is not, that is not written.
        let flows = |(k, bound): (usize, &Kept)| {
            let maker = Maker { level, unit: place, member: unit.launches.len(), binding: k };
            (launch.writes(k) && launch.flows(k)).then_some((bound.id, maker))
        };
        self.makers.extend(launch.bound.iter().enumerate().filter_map(flows));
        unit.launches.push(launch);
        unit.links.extend(followed.map(|(_, link)| link));
        self.count += 1;
    }

    /// Takes the first level, in which is noted what nobody reads: `dead` tells the memory that was given
    /// back. What only this level uses belongs to the batch of commands `epoch` from now on.
    pub(crate) fn pop(&mut self, epoch: u64, dead: impl Fn(u64) -> bool) -> Option<Vec<Unit>> {
        let mut level = self.levels.pop_front()?;
        self.first += 1;
        for bound in level.iter().flat_map(|unit| &unit.launches).flat_map(|launch| &launch.bound) {
            self.bytes -= bound.raw.size();
            if self.used.get(&bound.id).is_some_and(|used| used.iter().all(|&at| at <= self.first)) {
                bound.epoch.store(epoch, Ordering::Relaxed);
                self.used.remove(&bound.id);
                self.makers.remove(&bound.id);
                self.done.push(bound.id);
            }
        }
        for unit in &mut level {
            unit.unread.resize(unit.launches.len(), 0);
            for link in &unit.links {
                let id = unit.launches[link.member].bound[link.binding].id;
                if dead(id) && !self.used.contains_key(&id) {
                    unit.unread[link.member] |= bit(link.binding);
                }
            }
            self.count -= unit.launches.len();
        }
        Some(level)
    }

    /// Takes the memory that no launch which waits uses any more.
    pub(crate) fn done(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.done.drain(..)
    }
}

/// Whether a dispatch can be these launches.
fn fit<'a>(gpu: &Gpu, all: impl Iterator<Item = (&'a Launch, Option<Link>, u64)>) -> bool {
    let limits = &gpu.limits;
    let most = limits.max_storage_buffers_per_shader_stage.min(limits.max_bindings_per_bind_group - 1);
    let (mut bindings, mut needs) = (0, SmallVec::<[&Needs; 8]>::new());
    for (launch, link, _) in all {
        bindings += launch.bound.len() - link.map_or(0, |link| link.takes.count_ones() as usize);
        needs.extend(launch.kernel.needs());
    }
    bindings <= most as usize
        && merge::words(needs.iter().copied()) * 4 <= UNIFORM_WINDOW
        && Needs::memory(needs.into_iter()) <= limits.max_compute_workgroup_storage_size
}

/// The launches of a level as sets, each of which one dispatch can be.
pub(crate) fn sets(gpu: &Gpu, level: Vec<Unit>) -> Vec<Vec<Unit>> {
    let mut sets: Vec<Vec<Unit>> = Vec::new();
    for unit in level {
        let fits = |set: &&mut Vec<Unit>| {
            let all = || set.iter().chain([&unit]);
            all().all(|unit| unit.merges() && !unit.is_busy()) && fit(gpu, all().flat_map(Unit::parts))
        };
        match sets.iter_mut().find(fits) {
            Some(set) => set.push(unit),
            None => sets.push(vec![unit]),
        }
    }
    sets
}

/// The kernels of a set as members of one.
pub(crate) fn members(set: &[Unit]) -> Option<Vec<(&Arc<Pipeline>, Member<'_>)>> {
    let mut all = Vec::new();
    for unit in set {
        let first = all.len();
        for (launch, link, unread) in unit.parts() {
            let member =
                launch.kernel.member(link.map(|link| Link { member: first + link.member, ..link }))?;
            all.push((&launch.kernel, Member { unread, ..member }));
        }
    }
    Some(all)
}

/// A set as one launch of a kernel that stands for it.
pub(crate) fn as_one(kernel: Arc<Pipeline>, set: Vec<Unit>) -> Launch {
    let (mut params, mut ends, mut groups) = (SmallVec::<[u32; 64]>::new(), 0, 0);
    for (launch, link, _) in set.iter().flat_map(Unit::parts) {
        groups += if link.is_none() { launch.groups } else { 0 };
        params.push(groups as u32);
        ends += 1;
    }
    params.resize(merge::ends(ends), 0);
    let (mut work, mut bound) = (Work::default(), SmallVec::<[Kept; 8]>::new());
    for unit in set {
        let binds: Vec<u64> =
            unit.parts().map(|(_, link, unread)| !(unread | link.map_or(0, |link| link.takes))).collect();
        for (launch, binds) in unit.launches.into_iter().zip(binds) {
            let end = params.len() + launch.kernel.needs().map_or(0, Needs::words);
            params.extend(launch.params);
            params.resize(end, 0);
            work.add(launch.work);
            let mut spared = SmallVec::<[u64; 2]>::new();
            for (k, own) in launch.bound.into_iter().enumerate() {
                if binds & bit(k) != 0 {
                    bound.push(own);
                } else if !spared.contains(&own.id) {
                    spared.push(own.id);
                    work.bytes = work.bytes.saturating_sub(own.bytes);
                }
            }
        }
    }
    Launch { kernel, bound, params, groups, work, flow: Flow::default() }
}

impl IntoIterator for Unit {
    type Item = Launch;
    type IntoIter = smallvec::IntoIter<[Launch; 1]>;
    fn into_iter(self) -> Self::IntoIter {
        self.launches.into_iter()
    }
}
