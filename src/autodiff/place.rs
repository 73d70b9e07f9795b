//! Places: the lines of the user's program that recorded the entries of the tape.
//!
//! The core knows no Python; the host language installs a function that tells where it is. A place is eight
//! bytes in an entry, a table holds the names of files and functions.

use crate::autodiff::node::lock;
use rustc_hash::FxHashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Mutex, OnceLock};

/// A line of the user's program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place(NonZeroU64);

/// File and function of a place.
type Site = (String, String);

/// Every site that was ever seen, and where each stands in the list.
#[derive(Default)]
struct Sites {
    list: Vec<Site>,
    position: FxHashMap<Site, u32>,
}

static SITES: OnceLock<Mutex<Sites>> = OnceLock::new();
static LOCATE: OnceLock<fn() -> Option<Place>> = OnceLock::new();

/// The number of a site, the same for the same file and function.
pub fn site(file: &str, function: &str) -> u32 {
    let mut sites = lock(SITES.get_or_init(Mutex::default));
    let site = (file.to_string(), function.to_string());
    if let Some(&known) = sites.position.get(&site) {
        return known;
    }
    let next = sites.list.len() as u32;
    sites.list.push(site.clone());
    sites.position.insert(site, next);
    next
}

impl Place {
    /// A line of a site.
    pub fn new(site: u32, line: u32) -> Place {
        Place(NonZeroU64::MIN.saturating_add((site as u64) << 32 | (line as u64).min(u32::MAX as u64 - 1)))
    }

    /// File, line and function.
    pub fn parts(self) -> (String, u32, String) {
        let packed = self.0.get() - 1;
        let sites = lock(SITES.get_or_init(Mutex::default));
        let (file, function) = sites.list.get((packed >> 32) as usize).cloned().unwrap_or_default();
        (file, packed as u32, function)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line, _) = self.parts();
        write!(f, "{file}:{line}")
    }
}

/// Installs the function that tells where the host language is; the first one stays.
pub fn install(locate: fn() -> Option<Place>) {
    let _ = LOCATE.set(locate);
}

/// The line that runs now, if the host language knows.
#[cold]
pub fn now() -> Option<Place> {
    LOCATE.get().and_then(|locate| locate())
}

/// ` recorded at FILE:LINE` for a message; nothing where no line is known.
pub fn recorded(place: Option<Place>) -> String {
    place.map_or_else(String::new, |place| format!(" recorded at {place}"))
}

/// How to be told the line, where it is not known.
pub fn hint(place: Option<Place>) -> &'static str {
    if place.is_some() { "" } else { "; inside wengert.debug() this message names the line" }
}

/// ` at FILE:LINE` for a message; nothing where no line is known.
pub fn at(place: Option<Place>) -> String {
    place.map_or_else(String::new, |place| format!(" at {place}"))
}
