//! CPU kernels: loops over slices that know no operation by name.
pub mod lane;
