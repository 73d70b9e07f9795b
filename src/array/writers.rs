//! Interns names of in-place operations as 16-bit numbers, which buffer headers store as their last writer.

use std::sync::atomic::{AtomicPtr, Ordering};

/// More names than the library has; further names get number 0.
const MOST: usize = 512;

/// Filled from the front; a slot never changes once set. Lock-free, since a forked child inherits held locks.
static NAMES: [AtomicPtr<String>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];

fn at(slot: &AtomicPtr<String>) -> Option<&'static str> {
    // SAFETY: a non-null slot points to a `String` that `number` leaked and nobody frees.
    unsafe { slot.load(Ordering::Acquire).as_ref() }.map(|s| s.as_str())
}

/// Returns the number of `name`, assigned on first use; 0 if the table is full.
pub fn number(name: &str) -> u16 {
    for (i, slot) in NAMES.iter().enumerate() {
        if at(slot).is_none() {
            let new = Box::into_raw(Box::new(name.to_owned()));
            let swapped =
                slot.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
            if swapped.is_err() {
                // SAFETY: the exchange failed, so `new` was never published and is owned here alone.
                drop(unsafe { Box::from_raw(new) });
            }
        }
        if at(slot) == Some(name) {
            return i as u16 + 1;
        }
    }
    0
}

/// Returns the name with this number; `None` for 0.
pub fn name(number: u16) -> Option<&'static str> {
    NAMES.get((number as usize).checked_sub(1)?).and_then(at)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_have_one_number_each() {
        let (a, b) = (super::number("first name"), super::number("second name"));
        assert_ne!(a, b);
        assert_eq!(super::number("first name"), a);
        assert_eq!(super::name(b), Some("second name"));
        assert_eq!(super::name(0), None);
    }
}
