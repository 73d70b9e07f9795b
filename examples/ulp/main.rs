//! Measures the largest error of each single-precision function over all 2^32 floats, against
//! double precision.
//!
//! `cargo run --release --example ulp [step]` prints the table; a step of n takes every n-th float.

mod measure;

use measure::{FUNCTIONS, powers, special_powers, worst};

fn main() {
    let step = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("function lane    largest error");
    for function in FUNCTIONS {
        println!("{:8} F32     {}", function.name, worst(function.separate, function.reference, step));
        println!("{:8} F32Fma  {}", function.name, worst(function.fused, function.reference, step));
    }
    let [separate, fused] = powers(2_000_000_000 / step);
    println!("{:8} F32     {separate}\n{:8} F32Fma  {fused}", "pow", "pow");
    println!("pow of {} special pairs checked", special_powers().len());
}
