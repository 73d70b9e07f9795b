//! Shapes without values (`wengert.eval_shape`): in this mode of a thread, operations make arrays that have a
//! shape and a dtype and no memory but one zero, which all their elements are. No kernel runs where a rule
//! says the shape (`src/ops/shapes.rs`), and nothing is written.

use crate::array::Array;
use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::DType;
use crate::array::shape::{MAX_RANK, Shape};
use crate::error::{Error, Result};
use crate::tape::location;
use crate::watch::debug::{Modes, modes, set_modes};

/// The owner of the one element.
struct Absent {
    /// The element, of any dtype.
    _zero: Box<[u64; 2]>,
}

/// An array without values.
pub fn absent(shape: Shape, dtype: DType) -> Result<Array> {
    let mut zero = Box::new([0; 2]);
    let data = zero.as_mut_ptr().cast();
    let buffer = Buffer::foreign(data, size_of_val(&*zero), Device::Cpu, Box::new(Absent { _zero: zero }));
    Array::strided(buffer, shape, &[0; MAX_RANK][..shape.rank()], 0, dtype)
}

/// Whether this is an array without values, in this mode.
#[inline]
pub fn is_absent(x: &Array) -> bool {
    modes().has(Modes::SHAPES) && x.buffer().owner::<Absent>().is_some()
}

/// Raises if the values of an array, which `what` needs, are not there.
#[inline]
pub fn check(what: &str, x: &Array) -> Result<()> {
    if is_absent(x) { Err(unknown(what)) } else { Ok(()) }
}

#[cold]
fn unknown(what: &str) -> Error {
    Error::dtype(format!(
        "eval_shape: {what} needs the values of a tensor{}, and there are none; decide by shapes, or use \
         where() or cond()",
        location::at(location::now())
    ))
}

/// Runs `f` in this mode.
pub fn without_values<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(Modes);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_modes(self.0);
        }
    }
    let _restore = Restore(set_modes(modes().and(Modes::SHAPES)));
    f()
}
