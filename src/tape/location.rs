//! Locations: the lines of the user's program that recorded the entries of the tape.
//!
//! The core knows no Python; the host language installs a function that tells where it is. A location is
//! eight bytes in an entry, a table holds the names of files and functions.

use crate::error::{Error, Kind};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};

/// A line of the user's program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location(NonZeroU64);

/// File and function of a location.
type Site = (String, String);

/// Every site that was ever seen, and where each stands in the list.
#[derive(Default)]
pub struct Sites {
    list: Vec<Site>,
    position: FxHashMap<Site, u32>,
}

static SITES: LazyLock<Mutex<Sites>> = LazyLock::new(Mutex::default);
static HOST: OnceLock<Host> = OnceLock::new();

/// What the host language does for the core.
pub struct Host {
    /// Tells the line that runs now.
    pub locate: fn() -> Option<Location>,
    /// Adds a note to an exception of its own that passes through the core.
    pub annotate: fn(&Error, &str),
}

/// The table, locked for a fork.
pub type SitesLock = MutexGuard<'static, Sites>;

/// Locks the table of sites.
pub fn lock_sites() -> SitesLock {
    lock(&SITES)
}

/// The number of a site, the same for the same file and function.
pub fn site(file: &str, function: &str) -> u32 {
    let mut sites = lock_sites();
    let site = (file.to_string(), function.to_string());
    if let Some(&known) = sites.position.get(&site) {
        return known;
    }
    let next = sites.list.len() as u32;
    sites.list.push(site.clone());
    sites.position.insert(site, next);
    next
}

impl Location {
    /// A line of a site.
    pub fn new(site: u32, line: u32) -> Location {
        Location(NonZeroU64::MIN.saturating_add((site as u64) << 32 | (line as u64).min(u32::MAX as u64 - 1)))
    }

    /// File, line and function.
    pub fn parts(self) -> (String, u32, String) {
        let packed = self.0.get() - 1;
        let sites = lock_sites();
        let (file, function) = sites.list.get((packed >> 32) as usize).cloned().unwrap_or_default();
        (file, packed as u32, function)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line, _) = self.parts();
        write!(f, "{file}:{line}")
    }
}

/// Installs what the host language does; the first stays.
pub fn install(host: Host) {
    let _ = HOST.set(host);
}

/// The error with the entry that it happened in: before its message, or as a note on an exception of the
/// host.
#[cold]
pub fn within(error: Error, what: &str, location: Option<Location>) -> Error {
    if let (Kind::Foreign, Some(host), Some(_)) = (error.kind(), HOST.get(), location) {
        (host.annotate)(&error, &format!("in the {what}{}", recorded(location)));
    }
    error.context(&format!("{what}{}", recorded(location)))
}

/// The line that runs now, if the host language knows.
#[cold]
pub fn now() -> Option<Location> {
    HOST.get().and_then(|host| (host.locate)())
}

/// ` recorded at FILE:LINE` for a message; nothing where no line is known.
pub fn recorded(location: Option<Location>) -> String {
    location.map_or_else(String::new, |location| format!(" recorded at {location}"))
}

/// How to be told the line, where it is not known.
pub fn hint(location: Option<Location>) -> &'static str {
    if location.is_some() { "" } else { "; inside wengert.debug() this message names the line" }
}

/// ` at FILE:LINE` for a message; nothing where no line is known.
pub fn at(location: Option<Location>) -> String {
    location.map_or_else(String::new, |location| format!(" at {location}"))
}
