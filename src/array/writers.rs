//! Names of in-place operations as small numbers, so that a buffer can say who wrote it last.

use std::sync::atomic::{AtomicPtr, Ordering};

/// More names than the library has; what does not fit stays nameless.
const MOST: usize = 512;

/// Filled from the front and never changed again, without a lock: a fork must not inherit one.
static NAMES: [AtomicPtr<String>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];

fn at(slot: &AtomicPtr<String>) -> Option<&'static str> {
    // SAFETY: what is not null was leaked by `number` and is never freed.
    unsafe { slot.load(Ordering::Acquire).as_ref() }.map(|s| s.as_str())
}

/// The number of a name; 0 if there is no room for it.
pub fn number(name: &str) -> u16 {
    for (i, slot) in NAMES.iter().enumerate() {
        if at(slot).is_none() {
            let new = Box::into_raw(Box::new(name.to_owned()));
            let swapped =
                slot.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
            if swapped.is_err() {
                // SAFETY: another thread was faster, so nobody else has seen `new`.
                drop(unsafe { Box::from_raw(new) });
            }
        }
        if at(slot) == Some(name) {
            return i as u16 + 1;
        }
    }
    0
}

/// The name with this number.
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
