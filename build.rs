//! Tells the linker to keep one copy of functions that are the same: many kernels of equal shape are. Only
//! where the linker that comes with Rust is used by default; other linkers may not know the argument.
//!
//! Copies the shaders without comments and indentation, which are a third of their text, for the library to
//! include.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shaders");
    if env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("shaders");
    fs::create_dir_all(out.join("lib"))?;
    for folder in ["", "lib"] {
        for entry in fs::read_dir(Path::new("shaders").join(folder))? {
            let path = entry?.path();
            if let (Some("wgsl"), Some(name)) = (path.extension().and_then(|e| e.to_str()), path.file_name())
            {
                let code = without_comments(&fs::read_to_string(&path)?);
                fs::write(out.join(folder).join(name), code)?;
            }
        }
    }
    Ok(())
}

/// The code of a shader, with the marks `//@` that the library looks for.
fn without_comments(text: &str) -> String {
    let code = |line: &str| match line.find("//") {
        Some(at) if !line[at..].starts_with("//@") => line[..at].trim().to_owned(),
        _ => line.trim().to_owned(),
    };
    text.lines().map(code).filter(|line| !line.is_empty()).fold(String::new(), |all, line| all + &line + "\n")
}
