//! The floors of the crate: `src/lib.rs` lists its modules from the ground up, and what a file imports lies
//! on its own floor or below.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Imports that go up or sideways: of which file, of what, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("op/list.rs", "ops", "the closed list of operations names them all"),
    (
        "bind.rs",
        "ops",
        "complex numbers and custom functions get their meaning before an interpreter is chosen",
    ),
    ("interp/eval.rs", "ops", "a custom function evaluates itself; derivatives of rows evaluate in parts"),
    ("interp/autocast.rs", "ops", "an autocast region is made of casts"),
    ("ops/custom/", "autodiff", "a custom function is traced again where its rule is missing"),
    (
        "gpu/kernels/create.rs",
        "cpu",
        "ranges are computed on the host, so that both devices hold the same bits",
    ),
];

/// Files that are tables of numbers, written by a program: they may be longer.
const TABLES: &[&str] = &["math/special/tables.rs"];

/// What may name both devices: the choice between them, the exception above, and the layer for Python.
const BOTH_DEVICES: &[&str] = &["lib.rs", "internals.rs", "device.rs", "gpu/kernels/create.rs", "py/"];

/// Files at the root, files in a folder, lines of a file, columns of a line.
const MOST: (usize, usize, usize, usize) = (8, 24, 400, 110);

/// The floor of each module at the root, from the groups of `mod` lines in `src/lib.rs`.
fn floors(library: &str) -> HashMap<String, usize> {
    let mut floors = HashMap::new();
    for (floor, group) in library.split("\n\n").enumerate() {
        for line in group.lines() {
            let declared = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            if let Some(name) = declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                floors.insert(name.to_string(), floor);
            }
        }
    }
    floors
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The text without comments and without the tests in it.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The modules at the root that this code names: the first words of paths that begin with `crate`.
fn named(code: &str) -> BTreeSet<String> {
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => drop(found.insert(word(rest))),
            Some(list) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && c.is_alphanumeric() => {
                            found.insert(word(&list[i..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

/// Imports that go up, or sideways between the devices, as lines.
fn upward(floors: &HashMap<String, usize>, file: &str, text: &str) -> Vec<String> {
    let own = file.split('/').next().unwrap_or("").trim_end_matches(".rs");
    let Some(floor) = floors.get(own) else { return Vec::new() };
    let is_knot = |name: &str| floors.get(name) == floors.get("bind");
    let goes_up = |name: &String| {
        floors.get(name).is_some_and(|to| to > floor || (to == floor && name != own && !is_knot(name)))
    };
    named(&code(text))
        .into_iter()
        .filter(goes_up)
        .map(|name| format!("src/{file} uses crate::{name}"))
        .collect()
}

#[test]
fn no_import_goes_up() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let floors = floors(&fs::read_to_string(root.join("lib.rs"))?);
    let mut files = Vec::new();
    rust_files(&root, &mut files)?;
    assert!(files.len() > 300, "found {} files", files.len());
    let mut used = vec![false; EXCEPTIONS.len()];
    let mut wrong = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        if file == "lib.rs" || file.contains("tests") {
            continue;
        }
        for line in upward(&floors, &file, &fs::read_to_string(&path)?) {
            let known = EXCEPTIONS
                .iter()
                .position(|(from, to, _)| file.starts_with(from) && line.ends_with(&format!("crate::{to}")));
            match known {
                Some(i) => used[i] = true,
                None => wrong.push(line),
            }
        }
    }
    let unused = EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used);
    wrong.extend(
        unused.map(|((from, to, _), _)| format!("src/{from} no longer uses crate::{to}: an exception less")),
    );
    assert!(wrong.is_empty(), "imports that go up (floors: src/lib.rs):\n{}", wrong.join("\n"));
    Ok(())
}

/// Whether this code names both devices' modules.
fn names_both(code: &str) -> bool {
    let found = named(code);
    found.contains("cpu") && found.contains("gpu")
}

#[test]
fn one_file_chooses_the_device() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files)?;
    let mut wrong = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        let may = file.contains("tests") || BOTH_DEVICES.iter().any(|start| file.starts_with(start));
        if !may && names_both(&code(&fs::read_to_string(&path)?)) {
            wrong.push(format!("src/{file} names crate::cpu and crate::gpu"));
        }
    }
    assert!(wrong.is_empty(), "the choice of a device belongs to src/device.rs:\n{}", wrong.join("\n"));
    assert!(
        names_both(&code("use crate::{cpu::a, gpu::b};"))
            && !names_both(&code("use crate::cpu; // crate::gpu"))
    );
    Ok(())
}

/// The files that comments name in backquotes and that lie neither below the root, nor in `shaders/`, nor
/// beside the file, nor in the folder of its name.
fn missing(root: &Path, file: &Path, text: &str) -> Vec<String> {
    let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    let comments = comments.collect::<Vec<_>>().join("\n");
    let quoted = comments.split('`').skip(1).step_by(2);
    let named = quoted.filter(|name| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
        plain && [".rs", ".py", ".wgsl", ".md", ".toml"].iter().any(|end| name.ends_with(end))
    });
    let folders = [root, &root.join("shaders"), file.parent().unwrap_or(root), &file.with_extension("")];
    named.filter(|name| folders.iter().all(|folder| !folder.join(name).is_file())).map(String::from).collect()
}

#[test]
fn files_that_comments_name_exist() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tests/layers.rs")) {
        for name in missing(root, file, &fs::read_to_string(file)?) {
            wrong.push(format!("{}: `{name}`", file.strip_prefix(root)?.display()));
        }
    }
    assert!(wrong.is_empty(), "comments name files that are not there:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_file_that_is_not_there_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = "//! See `mod.rs`, `src/lib.rs`, `src/none.rs` and\n/// `tests/none.py`, not `x.len()`.";
    assert_eq!(missing(root, &root.join("src/op/list.rs"), text), ["src/none.rs", "tests/none.py"]);
}

#[test]
fn folders_files_and_lines_stay_small() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files)?;
    let mut folders: HashMap<PathBuf, usize> = HashMap::new();
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let file = path.strip_prefix(&root)?;
        *folders.entry(file.parent().unwrap_or(file).to_path_buf()).or_default() += 1;
        let is_table = TABLES.iter().any(|table| Path::new(table) == file);
        wrong.extend(too_large(&Path::new("src").join(file), &text, is_table));
    }
    for shader in shaders()? {
        wrong.extend(too_large(&shader, &fs::read_to_string(&shader)?, false));
    }
    for (folder, count) in folders {
        let most = if folder == Path::new("") { MOST.0 } else { MOST.1 };
        if count > most {
            wrong.push(format!("src/{}: {count} files, at most {most}", folder.display()));
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The shaders that are written by hand; `lib/math.wgsl` is made by `examples/math_wgsl.rs`.
fn shaders() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for folder in ["shaders", "shaders/lib"] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "wgsl") && !path.ends_with("lib/math.wgsl") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "found {} shaders", found.len());
    Ok(found)
}

/// What of a file is too long, as lines.
fn too_large(file: &Path, text: &str, is_table: bool) -> Vec<String> {
    let file = file.display();
    let long = text.lines().enumerate().filter(|(_, line)| line.chars().count() > MOST.3);
    let mut wrong: Vec<String> =
        long.map(|(i, _)| format!("{file}:{}: more than {} columns", i + 1, MOST.3)).collect();
    let lines = text.lines().count();
    if lines > MOST.2 && !is_table {
        wrong.push(format!("{file}: {lines} lines, at most {}", MOST.2));
    }
    wrong
}

#[test]
fn what_is_too_large_is_found() {
    let long = "x".repeat(111);
    assert_eq!(too_large(Path::new("a.rs"), &long, true), ["a.rs:1: more than 110 columns"]);
    let many = "\n".repeat(401);
    assert_eq!(too_large(Path::new("a.rs"), &many, false), ["a.rs: 401 lines, at most 400"]);
    assert_eq!(too_large(Path::new("a.rs"), &many, true), [""; 0]);
}

#[test]
fn what_goes_up_is_found() {
    let floors = floors(
        "pub mod low;\n\n// A floor.\npub mod left;\n#[cfg(any())]\npub mod right;\n\npub mod bind;\nmod \
         core;\n",
    );
    let found = |file: &str, text: &str| upward(&floors, file, text);
    assert_eq!(found("low.rs", "use crate::left::x;"), ["src/low.rs uses crate::left"]);
    assert_eq!(
        found("left/mod.rs", "use crate::{low::{a, b}, right::c};"),
        ["src/left/mod.rs uses crate::right"]
    );
    assert_eq!(
        found("low.rs", "fn f() { crate::core::g() } // crate::bind"),
        ["src/low.rs uses crate::core"]
    );
    assert_eq!(found("core.rs", "use crate::bind::bind;\nuse crate::low;"), [""; 0]);
    assert_eq!(found("low.rs", "#[cfg(test)]\nmod tests {\n    use crate::bind;\n}"), [""; 0]);
}
