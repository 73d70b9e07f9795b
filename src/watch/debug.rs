//! What the debugging tools switch on, per thread: keeping lines, a log of what is recorded, a listener to
//! backward, the search for values that are not finite (`src/watch/anomaly.rs`), the count of floating point
//! operations (`src/watch/cost.rs`), and strict gradients.
//!
//! With everything off, an operation pays for one load of a process-wide counter.

use crate::error::Result;
use crate::interp::tape;
use crate::op::{Grads, Op};
use crate::process::sync::lock;
use crate::tape::location::{self, Location};
use crate::tape::node::{Edge, Node, Vjp};
use crate::tensor::Tensor;
use crate::watch::anomaly;
use crate::watch::cost;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A set of modes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Modes(pub u32);

impl Modes {
    /// Every entry of the tape keeps the line that recorded it.
    pub const LOCATIONS: Modes = Modes(1);
    /// Operations and backward walks are told to the thread's log.
    pub const LOG: Modes = Modes(2);
    /// Gradients and tangents that are not finite raise; forward values that are not finite are noted.
    pub const ANOMALY: Modes = Modes(4);
    /// Forward values that are not finite raise.
    pub const FORWARD: Modes = Modes(8);
    /// Derivatives follow IEEE arithmetic: a cotangent of zero times a slope that is not finite is NaN.
    pub const STRICT: Modes = Modes(32);
    /// Floating point operations are counted (`src/watch/cost.rs`).
    pub const COUNT: Modes = Modes(64);

    /// Both looks at forward values.
    pub const VALUES: Modes = Modes(Modes::ANOMALY.0 | Modes::FORWARD.0);
    /// What takes an operation off the plain path, to where kernels are watched.
    pub const WATCHED: Modes = Modes(Modes::ANOMALY.0 | Modes::STRICT.0 | Modes::COUNT.0);

    /// Whether all of `other` is on.
    pub const fn has(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is on.
    pub const fn touches(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }
    /// Both.
    pub const fn and(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }
    /// Without `other`.
    pub const fn without(self, other: Modes) -> Modes {
        Modes(self.0 & !other.0)
    }
}

/// Threads with a mode on; a thread that ends inside a region stays counted, which costs time and nothing
/// else.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MODES: Cell<Modes> = const { Cell::new(Modes(0)) };
    static LOG: RefCell<Option<Arc<Log>>> = const { RefCell::new(None) };
}

/// The modes of this thread.
#[inline(always)]
pub fn modes() -> Modes {
    if THREADS.load(Ordering::Relaxed) == 0 { Modes(0) } else { MODES.get() }
}

/// Sets the modes of this thread and returns those before.
pub fn set_modes(modes: Modes) -> Modes {
    let before = MODES.replace(modes);
    match (before == Modes(0), modes == Modes(0)) {
        (true, false) => drop(THREADS.fetch_add(1, Ordering::Relaxed)),
        (false, true) => drop(THREADS.fetch_sub(1, Ordering::Relaxed)),
        _ => {}
    }
    before
}

/// Restores the modes when dropped.
pub struct Restore(Modes);

impl Drop for Restore {
    fn drop(&mut self) {
        set_modes(self.0);
    }
}

/// Turns `off` off until the result is dropped; `None` if it is off already.
pub fn suspend(off: Modes) -> Option<Restore> {
    let now = modes();
    (now.without(off) != now).then(|| Restore(set_modes(now.without(off))))
}

/// One line of a log: an entry of the tape, or a value that left the tape.
#[derive(Clone)]
pub struct Line {
    /// Position in the order of recording; `None` for a value that left the tape.
    pub seq: Option<u64>,
    /// The operation, or how the value left the tape.
    pub what: String,
    /// The line of the program.
    pub location: Option<Location>,
    /// The entries that it read: their positions, and which of their outputs.
    pub inputs: SmallVec<[(u64, u32); 2]>,
}

/// What hears of backward walks.
pub trait Listener: Send + Sync {
    /// A walk begins at `roots`; `accumulate` says that it adds to `.grad`.
    fn began(&self, roots: &[(Edge, Tensor)], accumulate: bool) -> Result<()>;
    /// The reverse rule of `node` turned the cotangents `g` into `grads`, one per input.
    fn pulled(&self, node: &Arc<Node>, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()>;
}

/// What a thread did while it was watched.
pub struct Log {
    pages: Mutex<Pages>,
    limit: usize,
    listener: Box<dyn Listener>,
}

/// The lines of a log, and how many older ones were dropped.
#[derive(Clone, Default)]
struct Pages {
    lines: VecDeque<Line>,
    dropped: usize,
}

impl Log {
    /// A log of at most `limit` lines; older ones give way.
    pub fn new(limit: usize, listener: Box<dyn Listener>) -> Log {
        Log { pages: Mutex::default(), limit: limit.max(1), listener }
    }

    /// The lines, and how many older ones were dropped.
    pub fn read(&self) -> (Vec<Line>, usize) {
        let pages = lock(&self.pages).clone();
        (pages.lines.into(), pages.dropped)
    }

    fn write(&self, line: Line) {
        let mut pages = lock(&self.pages);
        if pages.lines.len() >= self.limit {
            pages.lines.pop_front();
            pages.dropped += 1;
        }
        pages.lines.push_back(line);
    }
}

/// Makes `log` the log of this thread and returns the one before.
pub fn set_log(log: Option<Arc<Log>>) -> Option<Arc<Log>> {
    LOG.replace(log)
}

fn log() -> Option<Arc<Log>> {
    LOG.with_borrow(Option::clone)
}

/// The line that runs now, if lines are kept.
#[inline(always)]
pub fn location() -> Option<Location> {
    if modes().has(Modes::LOCATIONS) { location::now() } else { None }
}

/// Called for every new entry that stands for an operation, which began at `mark` of the forward values that
/// are not finite.
#[inline(always)]
pub fn recorded(node: &Node, mark: usize) {
    if modes() != Modes(0) {
        note_recorded(node, mark);
    }
}

#[cold]
fn note_recorded(node: &Node, mark: usize) {
    let modes = modes();
    if modes.has(Modes::ANOMALY) {
        anomaly::attach(node.seq, mark);
    }
    if modes.has(Modes::COUNT) {
        cost::recorded(node.seq);
    }
    if let Some(log) = log().filter(|_| modes.has(Modes::LOG)) {
        let inputs = node.edges.iter().flatten().map(|e| (e.node.seq, e.index)).collect();
        log.write(Line {
            seq: Some(node.seq),
            what: node.name().to_string(),
            location: node.location,
            inputs,
        });
    }
}

/// Notes that values left the tape, as by `detach` or an operation that is not recorded.
#[inline(always)]
pub fn left(what: &str, values: &[&Tensor]) {
    if modes().has(Modes::LOG) {
        note_left(what, values);
    }
}

/// Notes an operation on recorded values whose result is not recorded.
#[inline(always)]
pub fn not_recorded(op: &Op, recording: bool, inputs: &[&Tensor]) {
    if modes().has(Modes::LOG) {
        let why = if recording { " (no derivative)" } else { " (recording was off)" };
        note_left(&format!("{}{why}", op.name()), inputs);
    }
}

#[cold]
fn note_left(what: &str, values: &[&Tensor]) {
    let inputs: SmallVec<[(u64, u32); 2]> =
        values.iter().filter_map(|t| t.edge()).map(|e| (e.node.seq, e.index)).collect();
    if let Some(log) = log().filter(|_| !inputs.is_empty()) {
        log.write(Line { seq: None, what: what.to_string(), location: location::now(), inputs });
    }
}

/// The last value that left the tape, for the error of a backward without a graph.
pub fn last_left() -> Option<Line> {
    log().and_then(|d| lock(&d.pages).lines.iter().rev().find(|l| l.seq.is_none()).cloned())
}

/// What a backward walk does for the tools.
pub struct Backward {
    anomaly: Option<anomaly::Search>,
    log: Option<Arc<Log>>,
    counting: Option<cost::Backward>,
    _suspended: Option<Restore>,
}

impl Backward {
    /// Called where a walk begins that adds to `.grad` or not, and is recorded itself or not; `None` if no
    /// tool listens.
    pub fn begin(roots: &[(Edge, Tensor)], accumulate: bool, recorded: bool) -> Result<Option<Backward>> {
        let modes = modes();
        if modes == Modes(0) {
            return Ok(None);
        }
        let log = log().filter(|_| modes.has(Modes::LOG));
        if let Some(log) = &log {
            let _quiet = suspend(modes);
            log.listener.began(roots, accumulate)?;
        }
        // Rules may pass through values that are not finite on their way to a finite gradient.
        let quiet = if recorded { Modes::FORWARD } else { Modes::VALUES };
        let suspended = suspend(quiet);
        let anomaly = modes.has(Modes::ANOMALY).then(anomaly::Search::default);
        let counting = modes.has(Modes::COUNT).then(cost::Backward::begin);
        Ok(Some(Backward { anomaly, log, counting, _suspended: suspended }))
    }

    /// Applies a reverse rule, and tells the tools.
    pub fn pull(&mut self, op: &Op, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if let Some(counting) = &self.counting {
            counting.at(c.node.seq);
        }
        let grads = tape::pull_back(op, c, g)?;
        self.pulled(c, g, &grads)?;
        Ok(grads)
    }

    fn pulled(&mut self, c: &Vjp, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()> {
        let _quiet = suspend(modes());
        if let Some(search) = &mut self.anomaly {
            search.check(c, g, grads)?;
        }
        match &self.log {
            Some(log) => log.listener.pulled(c.node, g, grads),
            None => Ok(()),
        }
    }
}
