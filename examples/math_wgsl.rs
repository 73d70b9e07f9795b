//! Prints the WGSL library, the text of `shaders/lib/math.wgsl`:
//! `cargo run --example math_wgsl > shaders/lib/math.wgsl`.

fn main() {
    print!("{}", wengert::internals::gpu::library_file());
}
