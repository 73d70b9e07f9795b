//! Measures the largest error of every function of the tables in single precision over all 2^32 floats,
//! against double precision.
//!
//! `cargo run --release --example ulp [step]` prints the table; a step of n takes every n-th float.

mod measure;

use measure::{functions, powers, special_powers, worst};
use wengert::internals::cpu as isa;

fn main() {
    let step = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let best = isa::isa();
    println!("| function | largest error | at |\n|---|---|---|");
    for row in functions() {
        println!("| {} | {}", row.name(), worst(row, best, step));
    }
    println!("| pow | {}", powers(best, (2_000_000_000 / step) as usize));
    println!("\npow of {} special pairs checked", special_powers(best).len());
}
