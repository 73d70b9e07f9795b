//! Conversion of data in and out: numbers, lists, arrays of other libraries, pickles, text.

pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod device;
pub(crate) mod dlpack;
pub(crate) mod dtype;
pub(crate) mod format;
pub(crate) mod generator;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod nested;
pub(crate) mod numpy;
pub(crate) mod out;
pub(crate) mod pickle;
pub(crate) mod random;
pub(crate) mod ranges;
pub(crate) mod reading;
