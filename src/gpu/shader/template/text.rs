//! From a file and the choices for it to the text of a shader.

use super::{Choice, LISTS, Template, Value, is_long, name_of, per_word};
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::shader::halves::{Halves, Matrices};
use crate::gpu::shader::wgsl;
use std::borrow::Cow;

impl Template<'_> {
    /// The line in place of `line`, which is marked `kind`, for a choice; none if it stays.
    fn chosen(&self, kind: &str, (verb, name, value): Choice, line: &str) -> Option<String> {
        let store = |dtype| match dtype {
            DType::Bool if self.compute == DType::F32 => "truth",
            DType::I32 if self.compute == DType::F32 => "whole",
            dtype => name_of(dtype),
        };
        if is_long(self.compute) {
            return self.chosen_long(kind, (name, value), line);
        }
        let four = |dtype| (QUADS, if per_word(dtype) == 2 { ["h", "o"] } else { ["x", "out"] });
        if self.halves != Halves::Packed
            && verb == "load"
            && let Value::Type(DType::F16) | Value::Four(DType::F16) = value
        {
            let is_four = matches!(value, Value::Four(_));
            return match (kind, is_four) {
                ("words", true) => Some(line.replace("vec4<u32>", "u32").replace("<u32>", "<vec4<f16>>")),
                ("words", false) => Some(line.replace("<u32>", "<f16>")),
                ("load", true) => Some(element(HALVES, kind, "h", "any", name)),
                ("load", false) => Some(element(HALVES, kind, "x", "f16", name)),
                (_, true) => Some(element(HALVES, kind, "h", "f16", name)),
                (_, false) => None,
            };
        }
        let ((file, [x, out]), dtype) = match (kind, value) {
            ("shuffle", Value::Number(2..)) => return marked_line(SHUFFLE, (kind, name)).map(str::to_string),
            ("shuffle", _) => return None,
            (_, Value::Flag(value)) => return Some(with_value(line, value)),
            (_, Value::Number(value)) => return Some(with_value(line, format_args!("{value}u"))),
            ("words", Value::Four(dtype)) => {
                let words = 4 / per_word(dtype);
                return Some(
                    line.replace("vec4<u32>", "u32").replace("<u32>", &format!("<vec{words}<u32>>")),
                );
            }
            ("chain", Value::Chain) => return Some(format!("{line} chain: Chain,")),
            ("words" | "load", Value::Chain) => return Some(String::new()),
            ("load4", Value::Chain) => ((CHAIN, ["x", "out"]), "chain"),
            ("load" | "store", Value::Four(_)) => ((QUADS, ["x", "out"]), "any"),
            ("load4", Value::Four(dtype)) => (four(dtype), name_of(dtype)),
            ("load4", Value::One(_)) => ((QUADS, ["x", "out"]), "one"),
            ("store4", Value::Four(dtype)) => (four(dtype), store(dtype)),
            ("load", Value::Type(dtype) | Value::One(dtype)) => ((ELEMENTS, ["x", "out"]), name_of(dtype)),
            ("store", Value::Type(dtype)) => ((ELEMENTS, ["x", "out"]), store(dtype)),
            _ => return None,
        };
        Some(element(file, kind, if verb == "load" { x } else { out }, dtype, name))
    }

    /// [`Template::chosen`] for numbers of two words, which are loaded and stored one by one.
    fn chosen_long(&self, kind: &str, (name, value): (&str, Value), line: &str) -> Option<String> {
        let lines = |kind, binding, dtype| element(ELEMENTS_LONG, kind, binding, dtype, name);
        Some(match (kind, value) {
            (_, Value::Flag(value)) => with_value(line, value),
            (_, Value::Number(value)) => with_value(line, format_args!("{value}u")),
            ("words", _) => line.replace("vec4<u32>", "u32"),
            ("load4", Value::One(_)) => lines("load4", "x", "one"),
            ("load", Value::Type(dtype) | Value::Four(dtype) | Value::One(dtype)) => {
                // Narrow integers are words in their range.
                let dtype = match dtype {
                    DType::I8 | DType::I16 => "i32",
                    DType::U8 | DType::U16 | DType::Bool => "u32",
                    dtype => name_of(dtype),
                };
                lines("load", "x", dtype)
            }
            ("store", Value::Type(dtype)) => lines("store", "out", name_of(dtype)),
            ("store4", Value::Four(dtype)) => {
                let four = if per_word(dtype) == 2 { "pairs" } else { "words" };
                lines("store", "out", name_of(dtype)) + "\n" + &lines("store4", "out", four)
            }
            _ => return None,
        })
    }

    /// The line in place of `line`, which is marked `kind name`; none if it stays. A library function that it
    /// calls is added to `library`.
    fn replaced(
        &self, (kind, name): (&str, &str), line: &str, library: &mut Vec<&'static str>,
    ) -> Result<Option<String>> {
        if kind == "halves" {
            let own = self.halves != Halves::Packed;
            return Ok(own.then(|| marked_line(HALVES, (kind, name)).unwrap_or_default().to_string()));
        }
        let verbs: &[_] = match kind {
            "words" => &["load", "store"],
            "load4" | "chain" => &["load"],
            "store4" => &["store"],
            "shuffle" => &["const"],
            kind => &[kind],
        };
        if let Some(choice) = self.choices.iter().rfind(|(verb, n, _)| *n == name && verbs.contains(verb)) {
            return Ok(self.chosen(kind, *choice, line));
        }
        let output = self.choices.iter().find_map(|choice| match choice {
            ("store", _, Value::Type(dtype)) => Some(*dtype),
            _ => None,
        });
        Ok(match (kind, name, output, self.op) {
            ("alias", "T", ..) if is_long(self.compute) => Some(with_value(line, "vec2<u32>")),
            ("alias", "T", ..) => Some(with_value(line, name_of(self.compute))),
            ("const", "EPW", Some(dtype), _) => Some(with_value(line, format_args!("{}u", per_word(dtype)))),
            ("fn", "op", _, Some(body)) => Some(body()?),
            ("fn", ..) if is_long(self.compute) && LONG.contains(&format!("fn {name}(")) => {
                Some(String::new())
            }
            ("fn", ..) => name.strip_suffix('_').and_then(wgsl::function).map(|name| {
                library.push(name);
                line.replace(&format!(" {name}("), &format!(" w_{name}("))
            }),
            _ => None,
        })
    }

    /// Writes a marked line: one about `x0` or `y0` for each of them. Numbers the bindings.
    fn list(
        &self, (kind, name): (&str, &str), line: &str, lists: [usize; 2], functions: &mut Vec<&'static str>,
        bindings: &mut usize, out: &mut String,
    ) -> Result<()> {
        let (own, alone) = (LISTS.iter().zip(lists).find(|(names, _)| names[0] == name), [name]);
        let names = own.map_or(&alone[..], |(names, n)| &names[..n]);
        for (k, own) in names.iter().enumerate() {
            let line = line.replace(name, own).replace("(0u", &format!("({k}u"));
            let text = self.replaced((kind, own), &line, functions)?.unwrap_or(line);
            push_numbered(&text, bindings, out);
        }
        Ok(())
    }

    /// The number of times that a line marked `slots` is there.
    fn slots(&self) -> u32 {
        let is_slots = |choice: &&Choice| choice.1 == "SLOTS";
        match self.choices.iter().find(is_slots) {
            Some((.., Value::Number(n))) => *n,
            _ => 1,
        }
    }

    /// The text with its marks.
    fn marked(&self) -> Cow<'static, str> {
        match self.halves {
            Halves::Matrices(Matrices { side, .. }) => {
                let text = self.source.replace(TILE_THREADS, TILE_MATRICES);
                text.replace("mat8x8", &format!("mat{side}x{side}")).into()
            }
            _ => self.source.into(),
        }
    }

    /// Returns the complete text.
    pub fn build(&self) -> Result<String> {
        let source = &*self.marked();
        let mark_of_choice = |(kind, name, value): &Choice| match (*kind, value) {
            ("load", Value::Four(_)) => ("load4", *name),
            ("store", Value::Four(_)) => ("store4", *name),
            (kind, _) => (kind, *name),
        };
        let mut chosen = self.choices.iter().map(mark_of_choice).chain(self.op.map(|_| ("fn", "op")));
        // Of inputs and outputs in lists, the first stands for all.
        let is_there = |(kind, name): (&str, &str)| {
            let first = LISTS.iter().find(|names| names.contains(&name)).map_or(name, |names| names[0]);
            marked_line(source, (kind, if self.lists.is_some() { first } else { name })).is_some()
        };
        if let Some((kind, name)) = chosen.find(|mark| !is_there(*mark)) {
            return Err(Error::value(format!("internal: a shader has no line marked //@ {kind} {name}")));
        }
        let mut out = String::with_capacity(source.len() + 256);
        out.push_str(match self.halves {
            Halves::Packed => "",
            Halves::Native => "enable f16;\n",
            Halves::Matrices(_) => "enable f16;\nenable wgpu_cooperative_matrix;\n",
        });
        let (mut lines, mut functions, mut bindings) = (source.lines(), Vec::new(), 0);
        while let Some(line) = lines.next() {
            match self.lists {
                Some(_) => push_numbered(line, &mut bindings, &mut out),
                None => out.extend([line, "\n"]),
            }
            let Some(mark) = mark_of(line) else { continue };
            let Some(line) = lines.next() else { break };
            if let Some(lists) = self.lists {
                self.list(mark, line, lists, &mut functions, &mut bindings, &mut out)?;
                continue;
            }
            let text = self.replaced(mark, line, &mut functions)?;
            let text = text.as_deref().unwrap_or(line);
            match self.tensors {
                Some((n, absent)) => repeat(mark.1, text, n, absent, &mut bindings, &mut out),
                None if mark.0 == "slots" => (0..self.slots()).for_each(|k| {
                    out.push_str(&text.replace("_0", &format!("_{k}")).replace("(0u", &format!("({k}u")));
                    out.push('\n');
                }),
                None => out.push_str(text),
            }
            out.push('\n');
        }
        if is_long(self.compute) {
            // A vector has numbers of one word.
            out = out.replace("vec4<T>", "Four").replace("vec2<T>", "Two") + LONG;
            out.push_str(&format!("const SIGNED: bool = {};\n", self.compute == DType::I64));
        }
        let used = [
            (["to_bf16(", "of_bf16("], TO_BF16),
            (["to_f16(", "of_f16("], TO_F16),
            (["= whole(", "= four_whole("], WHOLE),
        ];
        for (names, text) in used {
            if names.iter().any(|name| out.contains(name)) {
                out.push_str(text);
            }
        }
        Ok(out + &wgsl::library(&functions))
    }
}

/// The kind and the name of the mark that a line is: `//@ KIND NAME`. A line of kind `use` marks no other.
fn mark_of(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix("//@ ")?.trim().split_once(' ').filter(|(kind, _)| *kind != "use")
}

/// The line after a mark.
fn marked_line<'s>(source: &'s str, mark: (&str, &str)) -> Option<&'s str> {
    let mut lines = source.lines();
    lines.find(|line| mark_of(line) == Some(mark))?;
    lines.next()
}

/// `line` with another value of what it declares.
fn with_value(line: &str, value: impl std::fmt::Display) -> String {
    match (line.split_once(" = "), line.split_once(';')) {
        (Some((head, _)), Some((_, rest))) => format!("{head} = {value};{rest}"),
        _ => line.to_string(),
    }
}

/// The function of `file` that loads or stores elements of `dtype`, for the binding `name`.
fn element(file: &'static str, verb: &str, binding: &str, dtype: &str, name: &str) -> String {
    let line = marked_line(file, (verb, dtype)).unwrap_or_default();
    // The function itself, and the one that it calls.
    let line = ["load", "store", "load4", "store4"].iter().fold(line.to_string(), |line, verb| {
        line.replace(&format!("{verb}_{dtype}("), &format!("{verb}_{name}("))
    });
    line.replace(&format!("{binding}["), &format!("{name}["))
}

/// Writes a line about tensor 0, `x0` or `case 0u`, once per tensor; another one once. Numbers the bindings.
fn repeat(name: &str, line: &str, n: usize, absent: &[&str], bindings: &mut usize, out: &mut String) {
    let role = name.trim_end_matches('0');
    let first = format!("{role}0");
    let copies = match (absent.contains(&role), line.contains(&first)) {
        (true, _) => 0,
        (_, true) => n,
        _ => 1,
    };
    for k in 0..copies {
        let line = line.replace(&first, &format!("{role}{k}"));
        let line = match k {
            0 => line,
            _ => line.replace(", default", "").replace("case 0u", &format!("case {k}u")),
        };
        push_numbered(&line, bindings, out);
    }
}

/// Writes a line, with the number of the next binding if it declares one.
fn push_numbered(line: &str, bindings: &mut usize, out: &mut String) {
    match (line.split_once("@binding("), line.split_once(") var<")) {
        (Some((head, _)), Some((_, rest))) => {
            out.push_str(&format!("{head}@binding({bindings}) var<{rest}\n"));
            *bindings += 1;
        }
        _ => {
            out.push_str(line);
            out.push('\n');
        }
    }
}

const ELEMENTS: &str = shader!("lib/elements");
const ELEMENTS_LONG: &str = shader!("lib/elements_long");
const LONG: &str = shader!("lib/long");
const QUADS: &str = shader!("lib/quads");
const CHAIN: &str = shader!("lib/chain");
const SHUFFLE: &str = shader!("lib/shuffle");
const HALVES: &str = shader!("lib/halves");
const TILE_THREADS: &str = shader!("lib/tile_threads");
const TILE_MATRICES: &str = shader!("lib/tile_matrices");
const TO_BF16: &str = shader!("lib/to_bf16");
const TO_F16: &str = shader!("lib/to_f16");
const WHOLE: &str = shader!("lib/whole");
