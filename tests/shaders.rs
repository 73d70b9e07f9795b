//! Every shader file and every expansion of it by the host is valid WGSL, as naga sees it.
#![cfg(feature = "gpu")]

use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};
use std::error::Error;
use std::path::{Path, PathBuf};
use wengert::DType;
use wengert::internals::gpu as wgsl;
use wengert::internals::gpu::{Halves, Matrices, Template};
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
    check_with(name, text, Capabilities::SUBGROUP)
}

/// Whether a text is valid on an adapter that has no more than these capabilities.
fn check_with(name: &str, text: &str, wanted: Capabilities) -> Outcome {
    let module =
        naga::front::wgsl::parse_str(text).map_err(|e| format!("{name}: {}", e.emit_to_string(text)))?;
    let wanted = wanted | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let mut validator = Validator::new(ValidationFlags::all(), wanted);
    validator.subgroup_stages(ShaderStages::COMPUTE).subgroup_operations(SubgroupOperationSet::all());
    validator.validate(&module).map_err(|e| format!("{name}: {}", e.emit_to_string(text)))?;
    Ok(())
}

/// The names behind the marks of one kind: `//@ load x`.
fn marked<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim().strip_prefix("//@ ")?.trim().strip_prefix(kind))
        .map(str::trim)
}

/// Whether a file has a constant of this name to choose.
fn has(text: &str, constant: &str) -> bool {
    marked(text, "const ").any(|name| name == constant)
}

/// The lines of a file that no mark stands before.
fn fixed(text: &str) -> String {
    let mut lines = vec![""];
    lines.extend(text.lines());
    lines.windows(2).filter(|pair| !pair[0].trim().starts_with("//@ ")).map(|pair| pair[1]).collect()
}

#[test]
fn files_are_valid_as_they_stand() -> Outcome {
    for (name, text) in files()? {
        check(&name, text)?;
    }
    let mut count = 0;
    for entry in std::fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("shaders/lib"))? {
        let path = entry?.path();
        let read = |name: &str| std::fs::read_to_string(path.with_file_name(format!("{name}.wgsl")));
        let mut text = String::new();
        for name in marked(&std::fs::read_to_string(&path)?, "use ") {
            text += &read(name)?;
        }
        // A file that stands behind another of the folder, and those that the kernels behind them complete.
        if path.ends_with("attention_scores.wgsl") {
            text = read("philox")? + &read("attention_tiles")?;
        } else if [
            "optim", "tensors", "strided", "lines", "long", "rows", "row_out", "norm_vjp", "shuffle", "tile",
            "tile_threads", "tile_matrices", "halves", "matmul", "chain", "places",
        ]
        .iter()
        .any(|name| path.ends_with(format!("lib/{name}.wgsl")))
        {
            continue;
        }
        check(&path.to_string_lossy(), &(text + &std::fs::read_to_string(&path)?))?;
        count += 1;
    }
    assert!(count > 10, "only {count} files of the library were found");
    Ok(())
}

/// The files whose arithmetic takes integers of two words.
const LONG: [&str; 11] = [
    "dot.wgsl", "map1.wgsl", "map2.wgsl", "map3.wgsl", "map4.wgsl", "max_pool.wgsl", "reduce.wgsl",
    "scan.wgsl", "scatter.wgsl", "scatter_rows.wgsl", "scatter_sorted.wgsl",
];

#[test]
fn expansions_are_valid_for_every_dtype() -> Outcome {
    for (name, text) in files()? {
        let is_typed = marked(text, "alias ").next().is_some();
        let is_long = |dtype| matches!(dtype, DType::I64 | DType::U64);
        for dtype in [
            DType::F32,
            DType::F16,
            DType::BF16,
            DType::I32,
            DType::Bool,
            DType::I8,
            DType::U16,
            DType::I64,
            DType::U64,
        ] {
            if is_long(dtype) && !LONG.contains(&name.as_str()) {
                continue;
            }
            // Kernels of exponentials and roots are for floats alone, as are those that name the type.
            let own = fixed(text);
            let floats_only = ["exp_(", "sqrt(", "f32>"].iter().any(|of_floats| own.contains(of_floats));
            let floats_only = (floats_only && name != "scan.wgsl") || has(text, "TENSORS");
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
            marked(text, "store4 ").for_each(|output| {
                template.store_fours(output, dtype);
            });
            if has(text, "EPW") && marked(text, "store ").next().is_none() {
                template.number("EPW", if dtype == DType::F32 { 1 } else { 2 });
            }
            for flag in [
                "CONTIGUOUS", "LOG", "UPPER", "FROM_ZERO", "PAIRED", "SMALLEST", "SPREAD", "FOURS",
                "PAIRS_IN", "PHASED",
            ] {
                if has(text, flag) {
                    check(&format!("{name} as {dtype} with {flag}"), &template.flag(flag, true).build()?)?;
                }
            }
            for split in (0..3).filter(|_| has(text, "SPLIT")) {
                template.number("SPLIT", split).number("SLOTS", 3).number("SUBGROUP", 8 << split);
                check(&format!("{name} in parts {split} as {dtype}"), &template.build()?)?;
            }
            for fold in (0..4).filter(|_| has(text, "FOLD")) {
                check(&format!("{name} {fold} as {dtype}"), &template.number("FOLD", fold).build()?)?;
            }
            check(&format!("{name} as {dtype}"), &template.build()?)?;
            for (i, input) in marked(text, "load4 ").enumerate() {
                if i % 2 == 0 {
                    template.load_fours(input, dtype)
                } else {
                    template.load_ones(input, dtype)
                };
                check(&format!("{name} by fours as {dtype}"), &template.build()?)?;
            }
        }
    }
    Ok(())
}

/// A text without comments, as the library includes it.
fn stripped(text: &str) -> String {
    let code = |line: &str| match line.find("//") {
        Some(at) if !line[at..].starts_with("//@") => line[..at].trim().to_owned(),
        _ => line.trim().to_owned(),
    };
    text.lines().map(code).filter(|line| !line.is_empty()).fold(String::new(), |all, line| all + &line + "\n")
}

#[test]
fn products_of_halves_are_valid_in_every_way() -> Outcome {
    let matrices = |side, subgroup| Halves::Matrices(Matrices { side, subgroup });
    let f16 = Capabilities::SHADER_FLOAT16;
    let mut count = 0;
    for (name, text) in files()?.into_iter().filter(|(_, text)| has(text, "TILE_M")) {
        let text = &*Box::leak(stripped(text).into_boxed_str());
        for way in [Halves::Packed, Halves::Native, matrices(8, 8), matrices(8, 32), matrices(16, 32)] {
            for (fours, sums) in [(false, true), (true, false)] {
                let mut template = Template::new(text, DType::F16);
                for input in marked(text, "load ") {
                    if fours && marked(text, "load4 ").any(|name| name == input) {
                        template.load_fours(input, DType::F16);
                    } else {
                        template.load(input, DType::F16);
                    }
                }
                for output in marked(text, "store ") {
                    template.store(output, DType::F16);
                }
                let (_, [rows, columns]) = way.of_tile([128, 128]);
                template.number("TILE_M", rows as u32).number("TILE_N", columns as u32);
                let built = template.flag("SUMS_A", sums).halves(way).build()?;
                let has = [way != Halves::Packed, matches!(way, Halves::Matrices(_))];
                let wanted = match has {
                    [true, true] => f16 | Capabilities::COOPERATIVE_MATRIX,
                    [true, false] => f16,
                    _ => Capabilities::empty(),
                };
                let what = format!("{name}, {way:?}");
                check_with(&what, &built, wanted)?;
                // The text takes what it is said to take, and no operation of subgroups beside matrices.
                let words = ["f16;", "coop_mat"].map(|word| built.contains(word));
                assert_eq!((words, built.contains("subgroup")), (has, false), "{what}");
                assert!(!has[0] || check_with(&what, &built, Capabilities::empty()).is_err(), "{what}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 3 * 5 * 2);
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
            let text = Template::new(skeleton, DType::F32).op(&|| Ok(body.clone())).build()?;
            check(&format!("{} in {name}", fun.name()), &text)?;
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
    Ok(())
}

#[test]
fn kernels_of_many_tensors_are_valid() -> Outcome {
    for (name, text) in files()?.into_iter().filter(|(_, text)| has(text, "TENSORS")) {
        for (n, option) in [(1, true), (3, true), (56, false)] {
            let mut template = Template::new(text, DType::F32);
            let mut absent: &[&str] = &[];
            let roles: [(_, &[&str]); 2] = [("MOMENTUM", &["momentum"]), ("AMSGRAD", &["largest"])];
            for (flag, role) in roles {
                if has(text, flag) {
                    template.flag(flag, option);
                    absent = if option { &[] } else { role };
                }
            }
            if name == "optim_formula.wgsl" && !option {
                absent = &["second", "third"];
            }
            check(&format!("{name} for {n}"), &template.tensors(n, absent).build()?)?;
        }
    }
    Ok(())
}

#[test]
fn lists_of_inputs_and_outputs_are_valid() -> Outcome {
    let chain =
        std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("shaders/lib/chain.wgsl"))?;
    let with_chain = |(name, text): (String, &'static str)| match has(text, "INPUTS") {
        true => (name, text, false),
        false => (name, &*Box::leak((chain.clone() + text).into_boxed_str()), true),
    };
    let takes_chain = |(_, text): &(String, &str)| marked(text, "chain ").next().is_some();
    let takes = |file: &(String, &str)| has(file.1, "INPUTS") || takes_chain(file);
    let all: Vec<_> = files()?.into_iter().filter(takes).map(with_chain).collect();
    assert!(all.iter().any(|file| file.2) && all.iter().any(|file| !file.2), "{}", all.len());
    for (name, text, reads) in all {
        for (inputs, outputs) in [(1, 1), (3, 2), (11, 13)] {
            let mut template = Template::new(text, DType::F32);
            if reads {
                template.load_chain("x").store("out", DType::F32);
            }
            template.lists(inputs, outputs).number("AXES", 3).number("ATTRIBUTES", 2);
            for (k, dtype) in [DType::F32, DType::F16, DType::BF16, DType::Bool].into_iter().enumerate() {
                if k < inputs {
                    template.load(wgsl::LISTS[0][k], dtype).number(wgsl::LISTS[0][k], k as u32 % 4);
                }
                if k < outputs && !reads {
                    template.store_fours(wgsl::LISTS[1][k], dtype);
                }
            }
            if inputs > 4 {
                template.load_fours("x9", DType::F16).load_ones("x10", DType::BF16);
            }
            let outs = (0..outputs).map(|k| format!("x.x{}", k % inputs)).collect::<Vec<_>>().join(", ");
            let body = || Ok(format!("fn op(x: In) -> Out {{ return Out({outs}); }}"));
            check(&format!("{name} of {inputs} and {outputs}"), &template.op(&body).build()?)?;
        }
    }
    Ok(())
}

#[test]
fn row_kernels_are_valid_for_every_number_of_lanes() -> Outcome {
    for (name, text) in files()?.into_iter().filter(|(_, text)| has(text, "LANES")) {
        for lanes in [4, 16, 64, 256] {
            let mut template = Template::new(text, DType::F32);
            template.number("LANES", lanes);
            check(&format!("{name} with {lanes} lanes"), &template.build()?)?;
        }
    }
    Ok(())
}

/// The constants of the passes of attention, and what the host sets them to.
const ATTENTION: [(&str, Option<[u32; 2]>); 6] = [
    ("BLOCKS", Some([1, 2])),
    ("CAUSAL", None),
    ("DROPOUT", None),
    ("SECOND", None),
    ("MOVES", Some([0, 15])),
    ("WANTS", Some([2, 6])),
];

#[test]
fn attention_is_valid_in_every_specialisation() -> Outcome {
    let mut count = 0;
    for (name, text) in files()?.into_iter().filter(|(name, _)| name.starts_with("attention")) {
        let there: Vec<_> = ATTENTION.iter().filter(|row| has(text, row.0)).collect();
        let every = 1 << there.len();
        // In halves with everything on, in float32 every combination.
        let packed = |dtype| (dtype, every - 1, Halves::Packed);
        let halves = [packed(DType::F16), packed(DType::BF16), (DType::F16, every - 1, Halves::Native)];
        for (dtype, bits, way) in (0..every).map(|bits| (DType::F32, bits, Halves::Packed)).chain(halves) {
            if way == Halves::Native && marked(text, "halves ").next().is_none() {
                continue;
            }
            for (mask, of_mask) in [(0, dtype), (1, DType::Bool), (2, dtype)] {
                let mut template = Template::new(text, dtype);
                template.halves(way);
                marked(text, "load ").for_each(|input| {
                    template.load(input, if input == "mask" { of_mask } else { dtype });
                });
                marked(text, "store ").for_each(|output| {
                    template.store(output, dtype);
                });
                if has(text, "MASK") {
                    template.number("MASK", mask);
                }
                for (i, (constant, numbers)) in there.iter().enumerate() {
                    let choice = bits >> i & 1;
                    let line = match numbers {
                        Some(values) => format!("const {constant}: u32 = {}u;", values[choice]),
                        None => format!("const {constant}: bool = {};", choice == 1),
                    };
                    match numbers {
                        Some(values) => template.number(constant, values[choice]),
                        None => template.flag(constant, choice == 1),
                    };
                    assert!(template.build()?.lines().any(|l| l.starts_with(&line)), "{name}: {line}");
                }
                let f16 = Capabilities::SHADER_FLOAT16;
                let wanted = if way == Halves::Native { f16 } else { Capabilities::empty() };
                let what = format!("{name} as {dtype}, {way:?}, mask {mask}, {bits:b}");
                check_with(&what, &template.build()?, wanted)?;
                count += 1;
            }
        }
    }
    assert_eq!(count, 3 * (16 + 64 + 2 + 3 * 2 + 2));
    Ok(())
}

/// The parts of string literals that only WGSL has: declarations, statements.
const STATEMENTS: [&[&str]; 6] =
    [&["fn ", "->"], &["var<", ";"], &["let ", ";"], &["return "], &["alias ", "="], &["switch ", "{"]];
/// The writers of expressions, which put lines around them, of what merged kernels share, and the advice of
/// an error.
const WRITERS: [(&str, &str); 6] = [
    ("shader/merge.rs", "var<workgroup> shared_{k}: array<{ty}, {count}>;"),
    ("shader/merge.rs", "var<private> taken_k{i}: vec4<u32>;"),
    ("shader/merge.rs", "    let {name} = {value};"),
    ("shader/wgsl.rs", "    let v{id} = {value};"),
    ("shader/wgsl.rs", "fn {name}({parameters})"),
    ("program.rs", "the shader declares no output"),
];

/// The string literals of a Rust text without its tests and comments, one per line or more.
fn literals(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|l| !l.trim().starts_with("//")).map(|l| format!("{l}\n")).collect();
    let quoted = code.replace("'\"'", "").replace("\\\"", "'");
    quoted.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn wgsl_stands_in_shaders() -> Outcome {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/gpu");
    let (mut folders, mut wrong, mut found) = (vec![root.clone()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
            if path.is_dir() && !name.ends_with("tests") {
                folders.push(path.clone());
            }
            if !name.ends_with(".rs") || name.ends_with("tests.rs") {
                continue;
            }
            found += 1;
            for literal in literals(&std::fs::read_to_string(&path)?) {
                let is_wgsl = STATEMENTS.iter().any(|parts| parts.iter().all(|part| literal.contains(part)));
                let is_known =
                    WRITERS.iter().any(|(file, start)| *file == name && literal.starts_with(start));
                if is_wgsl && !is_known {
                    wrong.push(format!("{name}: {literal}"));
                }
            }
        }
    }
    assert!(found > 30, "{found}");
    assert!(wrong.is_empty(), "WGSL in Rust; move it to `shaders/`:\n{}", wrong.join("\n"));
    Ok(())
}
