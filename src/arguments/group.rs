//! Processes that exchange bytes, for collective operations. Who they are and how bytes travel is the host
//! language's affair.

use crate::error::Result;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What [`Group::share`] calls.
pub type Read<'a> = &'a mut dyn FnMut(*mut u8, usize) -> Result<()>;

/// The processes of a group, which number themselves by rank. All of them call the same methods in the same
/// order; `what` describes the operation that calls, for errors.
pub trait Group: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;
    /// The number of processes.
    fn size(&self) -> usize;
    /// Fills `received` with the bytes `sent` by all ranks, one after the other.
    fn all_gather(&self, what: &str, sent: &[u8], received: &mut [u8]) -> Result<()>;
    /// As `all_gather`, for few bytes, in pieces, of ranks that share memory: calls `read` with where those
    /// of rank 0 begin and the bytes from one rank's to the next's, which stay until it returns. Does nothing
    /// where bytes have to travel.
    fn share(&self, what: &str, sent: &[&[u8]], read: Read) -> Result<()>;
    /// Sends part `i` of `sent` to rank `i`, and fills part `i` of `received` from there; parts are equal.
    fn all_to_all(&self, what: &str, sent: &[u8], received: &mut [u8]) -> Result<()>;
    /// Sends `sent` to the rank `to`, and fills `received` from the rank `from`, where there are such.
    fn exchange(
        &self, what: &str, sent: &[u8], to: Option<usize>, received: &mut [u8], from: Option<usize>,
    ) -> Result<()>;
    /// Fills `bytes` with those of the rank `root`.
    fn broadcast(&self, what: &str, bytes: &mut [u8], root: usize) -> Result<()>;
}

/// A group as an attribute of an operation: equal to itself alone.
#[derive(Clone)]
pub struct SharedGroup(pub Arc<dyn Group>);

impl PartialEq for SharedGroup {
    fn eq(&self, other: &SharedGroup) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for SharedGroup {}
impl Hash for SharedGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}
impl std::fmt::Debug for SharedGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.0.rank(), self.0.size())
    }
}
