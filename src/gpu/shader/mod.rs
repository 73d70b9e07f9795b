//! WGSL as text: files with marks, and rules written as expressions.

pub(crate) mod int_expr;
pub mod template;
pub mod wgsl;
