//! One number from each element: the tables of functions, their derivatives, and what reads the tables.

pub mod binary;
pub mod bitwise;
pub mod clamp;
pub mod compare;
pub mod cylinder;
pub mod elementwise;
pub mod formulas;
pub mod jet;
pub mod operand;
pub mod reading;
pub mod smooth;
pub mod sym;
pub mod table;
pub mod unary;
