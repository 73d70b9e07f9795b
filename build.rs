//! Tells the linker to keep one copy of functions that are the same: many kernels of equal shape are. Only
//! where the linker that comes with Rust is used by default; other linkers may not know the argument.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
    }
}
