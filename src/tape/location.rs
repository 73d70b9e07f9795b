//! Locations: the lines of the user's program that recorded the nodes of the tape.
//!
//! The core does not depend on Python; the extension installs a function that returns the current line. A
//! location takes eight bytes of a node; a table holds the names of files and functions.

use crate::error::{Error, Kind};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};

/// A line of the user's program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location(NonZeroU64);

/// File and function of a location.
type Site = (String, String);

/// All sites seen so far, and the index of each in the list.
#[derive(Default)]
pub struct Sites {
    list: Vec<Site>,
    position: FxHashMap<Site, u32>,
}

static SITES: LazyLock<Mutex<Sites>> = LazyLock::new(Mutex::default);
static HOST: OnceLock<Host> = OnceLock::new();

/// The functions that the Python extension provides to the core.
pub struct Host {
    /// Returns the line being executed.
    pub locate: fn() -> Option<Location>,
    /// Until it is dropped, the frame of the program that runs now stays at its line.
    pub hold: fn() -> Box<dyn Any>,
    /// Adds a note to a Python exception that passes through the core.
    pub annotate: fn(&Error, &str),
}

/// Guard of the locked table of sites, also held during a fork.
pub type SitesLock = MutexGuard<'static, Sites>;

/// Locks the table of sites.
pub fn lock_sites() -> SitesLock {
    lock(&SITES)
}

/// Returns the index of a site in the table, adding it on first use.
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
    /// Returns the location of a line of a site.
    pub fn new(site: u32, line: u32) -> Location {
        Location(NonZeroU64::MIN.saturating_add((site as u64) << 32 | (line as u64).min(u32::MAX as u64 - 1)))
    }

    /// Returns file, line and function.
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

/// Installs the functions of the extension; only the first call has an effect.
pub fn install(host: Host) {
    let _ = HOST.set(host);
}

/// Adds to an error what raised it, and where: as a prefix of its message, or a note on a Python exception.
#[cold]
pub fn within(error: Error, what: &str, location: Option<Location>) -> Error {
    if let (Kind::Foreign, Some(host), Some(_)) = (error.kind(), HOST.get(), location) {
        (host.annotate)(&error, &format!("in the {what}{}", recorded(location)));
    }
    error.context(&format!("{what}{}", recorded(location)))
}

/// The line being executed, if Python can tell.
#[cold]
pub fn now() -> Option<Location> {
    HOST.get().and_then(|host| (host.locate)())
}

/// Until it is dropped, the frame of the program that runs now stays at its line: it waits for the core.
pub fn hold() -> Option<Box<dyn Any>> {
    HOST.get().map(|host| (host.hold)())
}

/// ` recorded at FILE:LINE` for a message; empty if the line is unknown.
pub fn recorded(location: Option<Location>) -> String {
    location.map_or_else(String::new, |location| format!(" recorded at {location}"))
}

/// A hint for a message on how to learn the line; empty if it is known.
pub fn hint(location: Option<Location>) -> &'static str {
    if location.is_some() { "" } else { "; inside wengert.debug() this message names the line" }
}

/// ` at FILE:LINE` for a message; empty if the line is unknown.
pub fn at(location: Option<Location>) -> String {
    location.map_or_else(String::new, |location| format!(" at {location}"))
}
