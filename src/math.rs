//! Vector mathematics written once for CPU lanes and WGSL.
