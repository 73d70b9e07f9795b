//! Every shader file and every expansion of it by the host is valid WGSL, as naga sees it.
#![cfg(feature = "gpu")]

use naga::valid::{Capabilities, ValidationFlags, Validator};
use std::error::Error;
use std::path::{Path, PathBuf};
use wengert::DType;
use wengert::internals::gpu as wgsl;
use wengert::internals::gpu::Template;
use wengert::internals::math::Pointwise;
use wengert::internals::ops::{self as table, Visit};

type Outcome = Result<(), Box<dyn Error>>;

/// The text of a file behind the files of `lib/` that it uses.
fn complete(path: &Path) -> Result<String, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut whole = String::new();
    for name in marked(&text, "use ") {
        whole.push_str(&std::fs::read_to_string(path.with_file_name(format!("lib/{name}.wgsl")))?);
    }
    Ok(whole + &text)
}

/// The files of `shaders/` that hold a kernel, with their texts.
fn files() -> Result<Vec<(String, &'static str)>, Box<dyn Error>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "wgsl") {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let text = complete(&path)?;
            found.push((name, &*Box::leak(text.into_boxed_str())));
        }
    }
    found.sort();
    assert!(found.len() > 20, "only {} shaders were found", found.len());
    Ok(found)
}

fn check(name: &str, text: &str) -> Outcome {
    let module =
        naga::front::wgsl::parse_str(text).map_err(|e| format!("{name}: {}", e.emit_to_string(text)))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32);
    validator.validate(&module).map_err(|e| format!("{name}: {}", e.emit_to_string(text)))?;
    Ok(())
}

/// The names behind the marks of one kind: `//@ load x`.
fn marked<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim().strip_prefix("//@ ")?.trim().strip_prefix(kind))
        .map(str::trim)
}

/// Sets the width of an output and the mathematical functions where the file has marks for them.
fn common(template: &mut Template, text: &str, dtype: DType, functions: &[&'static str]) {
    if marked(text, "const ").any(|name| name == "EPW") {
        template.elements_per_word(dtype);
    }
    let has = |function: &str| marked(text, "fn ").any(|name| name.strip_suffix('_') == Some(function));
    template.math(&functions.iter().copied().filter(|f| has(f)).collect::<Vec<_>>());
}

#[test]
fn files_are_valid_as_they_stand() -> Outcome {
    for (name, text) in files()? {
        check(&name, text)?;
    }
    Ok(())
}

#[test]
fn expansions_are_valid_for_every_dtype() -> Outcome {
    for (name, text) in files()? {
        let is_typed = marked(text, "alias ").next().is_some();
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::Bool] {
            // Kernels of exponentials and roots are for floats alone.
            let floats_only = text.contains("exp_(") || text.contains("sqrt(") || text.contains("f32>");
            if !is_typed || (floats_only && !dtype.is_float()) {
                continue;
            }
            let mut template = Template::new(text, dtype);
            marked(text, "load ").for_each(|input| {
                template.load(input, dtype);
            });
            marked(text, "store ").for_each(|output| {
                template.store(output, dtype);
            });
            common(&mut template, text, dtype, &["exp", "log", "sin", "cos"]);
            if !dtype.is_float() && marked(text, "fn ").any(|f| f == "is_nan") {
                template.set("fn is_nan", "fn is_nan(v: T) -> bool { return false; }");
            }
            if marked(text, "const ").any(|c| c == "INIT") {
                template.set("const INIT", "const INIT: T = T(0);");
            }
            for flag in ["CONTIGUOUS", "LOG", "UPPER", "FROM_ZERO"] {
                if marked(text, "const ").any(|c| c == flag) {
                    check(&format!("{name} as {dtype} with {flag}"), &template.flag(flag, true).build()?)?;
                }
            }
            check(&format!("{name} as {dtype}"), &template.build()?)?;
        }
    }
    Ok(())
}

/// Writes a rule as the body of the skeleton for its number of inputs.
struct Expand;

impl Visit for Expand {
    type Out = (usize, String);
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> (usize, String) {
        let body = wgsl::with_library("op", &["x", "y", "z", "w"][..N], &|x| {
            rule.apply(std::array::from_fn(|i| x[i]))
        });
        (N, body)
    }
}

#[test]
fn every_elementwise_rule_and_derivative_is_valid() -> Outcome {
    let files = files()?;
    let mut count = 0;
    for fun in table::all() {
        let p = [0.5, 2.0];
        let mut bodies = vec![fun.value(p, Expand)];
        bodies.extend((0..2).filter_map(|wrt| fun.partial(wrt, p, Expand)));
        for (inputs, body) in bodies {
            let name = format!("map{inputs}.wgsl");
            let skeleton = files.iter().find(|f| f.0 == name).ok_or("no skeleton")?.1;
            let text = Template::new(skeleton, DType::F32).set("fn op", body).build()?;
            check(&format!("{} in {name}", fun.name()), &text)?;
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
    Ok(())
}

#[test]
fn row_kernels_are_valid_for_every_number_of_lanes() -> Outcome {
    for (name, text) in files()?.into_iter().filter(|(_, text)| marked(text, "const ").any(|c| c == "LANES"))
    {
        for (lanes, radix) in [(16, 4), (64, 8), (256, 16)] {
            let mut template = Template::new(text, DType::F32);
            template.set("const LANES", format!("const LANES: u32 = {lanes}u;"));
            template.set("const RADIX", format!("const RADIX: u32 = {radix}u;"));
            check(&format!("{name} with {lanes} lanes"), &template.build()?)?;
        }
    }
    Ok(())
}

/// The constants of the passes of attention, and what the host sets them to.
const ATTENTION: [(&str, &str, [&str; 2]); 6] = [
    ("BLOCKS", "u32", ["1u", "2u"]),
    ("CAUSAL", "bool", ["false", "true"]),
    ("DROPOUT", "bool", ["false", "true"]),
    ("SECOND", "bool", ["false", "true"]),
    ("MOVES", "u32", ["0u", "15u"]),
    ("WANTS", "u32", ["2u", "6u"]),
];

#[test]
fn attention_is_valid_in_every_specialisation() -> Outcome {
    let mut count = 0;
    for (name, text) in files()?.into_iter().filter(|(name, _)| name.starts_with("attention")) {
        let there: Vec<_> =
            ATTENTION.iter().filter(|row| marked(text, "const ").any(|mark| mark == row.0)).collect();
        let every = 1 << there.len();
        // In halves with everything on, in float32 every combination.
        let halves = [(DType::F16, every - 1), (DType::BF16, every - 1)];
        for (dtype, bits) in (0..every).map(|bits| (DType::F32, bits)).chain(halves) {
            for (mask, of_mask) in [("0u", dtype), ("1u", DType::Bool), ("2u", dtype)] {
                let mut template = Template::new(text, dtype);
                marked(text, "load ").for_each(|input| {
                    template.load(input, if input == "mask" { of_mask } else { dtype });
                });
                marked(text, "store ").for_each(|output| {
                    template.store(output, dtype);
                });
                common(&mut template, text, dtype, &["exp", "log"]);
                if marked(text, "const ").any(|name| name == "MASK") {
                    template.set("const MASK", format!("const MASK: u32 = {mask};"));
                }
                for (i, (constant, kind, values)) in there.iter().enumerate() {
                    let value = values[bits >> i & 1];
                    template
                        .set(&format!("const {constant}"), format!("const {constant}: {kind} = {value};"));
                }
                check(&format!("{name} as {dtype}, mask {mask}, {bits:b}"), &template.build()?)?;
                count += 1;
            }
        }
    }
    assert_eq!(count, 3 * (16 + 64 + 2 + 3 * 2));
    Ok(())
}
