//! Prints the GPU adapters that `gpu:0`, `gpu:1`, … stand for; exit code 1 where there is none:
//! `cargo run --example adapters`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let found = wengert::internals::gpu::describe_adapters();
    found.iter().for_each(|adapter| println!("adapter: {adapter}"));
    if found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
