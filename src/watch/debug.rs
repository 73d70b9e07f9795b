//! The debugging modes of a thread: keeping locations, a log of what is recorded, a listener to backward,
//! anomaly detection (`src/watch/anomaly.rs`), the count of floating point operations (`src/watch/cost.rs`),
//! strict gradients, shapes without values (`src/watch/absent.rs`), and traces of `jit`. With all modes off,
//! an operation pays one load of a counter.

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
    /// No mode.
    pub const NONE: Modes = Modes(0);
    /// Every node keeps the location that recorded it.
    pub const LOCATIONS: Modes = Modes(1);
    /// Operations and backward walks are reported to the thread's log.
    pub const LOG: Modes = Modes(2);
    /// Gradients and tangents that are not finite raise; forward values that are not finite are noted.
    pub const ANOMALY: Modes = Modes(4);
    /// Forward values that are not finite raise.
    pub const FORWARD: Modes = Modes(8);
    /// Derivatives follow IEEE arithmetic: a zero cotangent times a non-finite slope is NaN.
    pub const STRICT: Modes = Modes(32);
    /// Floating point operations are counted (`src/watch/cost.rs`).
    pub const COUNT: Modes = Modes(64);

    /// What runs is written down, to be run again (`src/watch/script.rs`).
    pub const SCRIPT: Modes = Modes(128);

    /// Operations make shapes without values (`src/ops/shapes.rs`).
    pub const SHAPES: Modes = Modes(256);

    /// The modes that check forward values.
    pub const VALUES: Modes = Modes(Modes::ANOMALY.0 | Modes::FORWARD.0);
    /// The modes that take an operation off the fast path, to the path where kernels are watched.
    pub const WATCHED: Modes =
        Modes(Modes::ANOMALY.0 | Modes::STRICT.0 | Modes::COUNT.0 | Modes::SCRIPT.0 | Modes::SHAPES.0);

    /// Whether all modes of `other` are on.
    pub const fn has(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any mode of `other` is on.
    pub const fn touches(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }
    /// The union of both sets.
    pub const fn and(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }
    /// The set without the modes of `other`.
    pub const fn without(self, other: Modes) -> Modes {
        Modes(self.0 & !other.0)
    }
}

/// Number of threads with a mode on. A thread that ends inside a region stays counted, which only costs time.
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

/// Sets the modes of this thread and returns the previous ones.
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

/// Turns the modes `off` off until the guard is dropped; `None` if they are off already.
pub fn suspend(off: Modes) -> Option<Restore> {
    let now = modes();
    (now.without(off) != now).then(|| Restore(set_modes(now.without(off))))
}

/// One line of a log: a node, or a value that left the tape.
#[derive(Clone)]
pub struct Line {
    /// Sequence number of the node; `None` for a value that left the tape.
    pub seq: Option<u64>,
    /// The operation, or how the value left the tape.
    pub what: String,
    /// The location.
    pub location: Option<Location>,
    /// The nodes that it read: sequence number, and which of the outputs.
    pub inputs: SmallVec<[(u64, u32); 2]>,
}

/// Is told of backward walks.
pub trait Listener: Send + Sync {
    /// Called when a walk begins at `roots`; with `accumulate` it adds to `.grad`.
    fn began(&self, roots: &[(Edge, Tensor)], accumulate: bool) -> Result<()>;
    /// Called when the reverse rule of `node` has mapped the cotangents `g` to `grads`, one per input.
    fn pulled(&self, node: &Arc<Node>, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()>;
}

/// What a thread recorded while its log was on, and the listener to its backward walks.
pub struct Log {
    pages: Mutex<Pages>,
    limit: usize,
    listener: Box<dyn Listener>,
}

/// The lines of a log, and the number of older lines dropped.
#[derive(Clone, Default)]
struct Pages {
    lines: VecDeque<Line>,
    dropped: usize,
}

impl Log {
    /// Returns a log of at most `limit` lines, which drops the oldest.
    pub fn new(limit: usize, listener: Box<dyn Listener>) -> Log {
        Log { pages: Mutex::default(), limit: limit.max(1), listener }
    }

    /// Returns the lines, and the number of older lines dropped.
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

/// Sets the log of this thread and returns the previous one.
pub fn set_log(log: Option<Arc<Log>>) -> Option<Arc<Log>> {
    LOG.replace(log)
}

fn log() -> Option<Arc<Log>> {
    LOG.with_borrow(Option::clone)
}

/// The location being executed, if locations are kept.
#[inline(always)]
pub fn location() -> Option<Location> {
    if modes().has(Modes::LOCATIONS) { location::now() } else { None }
}

/// Called for every new node of an operation. `mark` is [`anomaly::mark`] from before the operation ran.
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
    if modes.touches(Modes::COUNT.and(Modes::SCRIPT)) {
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

/// Logs that values left the tape, as by `detach` or an operation that is not recorded.
#[inline(always)]
pub fn left(what: &str, values: &[&Tensor]) {
    if modes().has(Modes::LOG) {
        note_left(what, values);
    }
}

/// Logs an operation on recorded values whose result is not recorded.
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

/// The last logged value that left the tape, for the error of a backward without a graph.
pub fn last_left() -> Option<Line> {
    log().and_then(|d| lock(&d.pages).lines.iter().rev().find(|l| l.seq.is_none()).cloned())
}

/// The debugging tools that take part in one backward walk.
pub struct Backward {
    anomaly: Option<anomaly::Search>,
    log: Option<Arc<Log>>,
    counting: Option<cost::Backward>,
    _suspended: Option<Restore>,
}

impl Backward {
    /// Called when a walk begins. `accumulate`: it adds to `.grad`; `recorded`: it is recorded itself. `None`
    /// if no mode is on.
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
        // The intermediate values of a rule may be non-finite although its gradient is finite.
        let quiet = if recorded { Modes::FORWARD } else { Modes::VALUES };
        let suspended = suspend(quiet);
        let anomaly = modes.has(Modes::ANOMALY).then(anomaly::Search::default);
        let counting = modes.has(Modes::COUNT).then(cost::Backward::begin);
        Ok(Some(Backward { anomaly, log, counting, _suspended: suspended }))
    }

    /// Whether a tool is told of every rule.
    pub fn is_told(&self) -> bool {
        self.anomaly.is_some() || self.counting.is_some() || self.log.is_some()
    }

    /// Applies a reverse rule and reports it to the tools.
    pub fn pull(&mut self, op: &Op, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if let Some(counting) = &self.counting {
            counting.at(c.node.seq);
        }
        let grads = tape::pull_back(op, c, g)?;
        let _quiet = suspend(modes());
        if let Some(search) = &mut self.anomaly {
            search.check(c, g, &grads)?;
        }
        if let Some(log) = &self.log {
            log.listener.pulled(c.node, g, &grads)?;
        }
        Ok(grads)
    }
}
