//! Shader templates: files of `shaders/` whose marked lines the host changes.
//!
//! A line `//@ KIND NAME` marks the next line. The host chooses the type of the arithmetic (`alias T`), how
//! the elements of a binding lie in its words (`load x`, `store out`: lines of `shaders/lib/elements.wgsl`;
//! `words x`, `load4 x`, `store4 out` where they are taken by fours: `shaders/lib/quads.wgsl`), the value of
//! a constant (`const LOG`), the body of a rule (`fn op`), the number of tensors (`tensors x`), that of slots
//! (`slots 0`) and the size of a subgroup (`shuffle SUBGROUP`). The mathematical functions (`fn exp_`) become
//! those of the library. How products of float16 are multiplied (`halves S`) is chosen for a whole text:
//! lines of `shaders/lib/halves.wgsl`, and `shaders/lib/tile_matrices.wgsl` in the place of `tile_threads`.
//! Other lines stay as in the file, which is the float32 version. A choice for a mark that the file lacks is
//! an error.

use super::halves::{Halves, Matrices};
use super::wgsl;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::borrow::Cow;

/// What the host chooses for a marked line.
#[derive(Clone, Copy)]
enum Value {
    /// The element type of a binding.
    Type(DType),
    /// The same, of a binding by vectors of four elements.
    Four(DType),
    /// The same, of an input whose elements stand for four each.
    One(DType),
    /// The value of a boolean constant.
    Flag(bool),
    /// The value of a u32 constant.
    Number(u32),
}

/// The kind and the name of a mark, and what is chosen for it.
type Choice = (&'static str, &'static str, Value);

/// A shader file with choices for its marked lines.
pub struct Template<'a> {
    source: &'static str,
    /// The dtype of the arithmetic: float32, int32 or uint32.
    compute: DType,
    choices: SmallVec<[Choice; 12]>,
    op: Option<&'a dyn Fn() -> Result<String>>,
    halves: Halves,
    /// The number of tensors, and the one of which there is none.
    tensors: Option<(usize, &'static [&'static str])>,
}

/// The dtype in which a dtype is computed: float32, int32 or uint32.
pub fn arithmetic(dtype: DType) -> DType {
    match dtype {
        DType::U32 => DType::U32,
        dtype if dtype.is_float() => DType::F32,
        _ => DType::I32,
    }
}

/// The name of a dtype in WGSL and in the marks of `shaders/lib/elements.wgsl`.
fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::U32 => "u32",
        DType::Bool => "bool",
        DType::I16 => "i16",
        _ => "i32",
    }
}

/// Elements per 32-bit word. No tensor on a GPU is int16: it stands for the bits of halves, to copy them.
pub fn per_word(dtype: DType) -> usize {
    if matches!(dtype, DType::F16 | DType::BF16 | DType::I16) { 2 } else { 1 }
}

impl<'a> Template<'a> {
    /// A template whose arithmetic uses the type of `compute` (float32 for halves, int32 for bool).
    pub fn new(source: &'static str, compute: DType) -> Template<'a> {
        let compute = arithmetic(compute);
        let halves = Halves::Packed;
        Template { source, compute, choices: SmallVec::new(), op: None, halves, tensors: None }
    }

    /// Not inlined, as many kernels make many choices.
    #[inline(never)]
    fn choose(&mut self, kind: &'static str, name: &'static str, value: Value) -> &mut Template<'a> {
        self.choices.push((kind, name, value));
        self
    }

    /// Makes input `name` hold elements of `dtype`.
    pub fn load(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose("load", name, Value::Type(dtype))
    }

    /// Makes output `name` hold elements of `dtype`; the first output decides on the elements per word.
    pub fn store(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose("store", name, Value::Type(dtype))
    }

    /// Makes input `name` hold elements of `dtype`, bound by vectors of four.
    pub fn load_fours(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose("load", name, Value::Four(dtype))
    }

    /// Makes input `name` hold elements of `dtype`, each of which stands for four.
    pub fn load_ones(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose("load", name, Value::One(dtype))
    }

    /// Makes output `name` hold elements of `dtype`, bound by vectors of four.
    pub fn store_fours(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose("store", name, Value::Four(dtype))
    }

    /// Sets a boolean constant.
    pub fn flag(&mut self, name: &'static str, value: bool) -> &mut Template<'a> {
        self.choose("const", name, Value::Flag(value))
    }

    /// Sets a u32 constant.
    pub fn number(&mut self, name: &'static str, value: u32) -> &mut Template<'a> {
        self.choose("const", name, Value::Number(value))
    }

    /// Sets how a product of float16 is multiplied; inputs of float16 are loaded for that.
    pub fn halves(&mut self, halves: Halves) -> &mut Template<'a> {
        self.halves = halves;
        match halves {
            Halves::Matrices(m) => self.number("SIDE", m.side).number("SUBGROUP", m.subgroup),
            _ => self,
        }
    }

    /// Sets the text of `fn op`.
    pub fn op(&mut self, body: &'a dyn Fn() -> Result<String>) -> &mut Template<'a> {
        self.op = Some(body);
        self
    }

    /// Repeats the lines about a tensor for `n` of them, and drops those of the roles that are absent.
    pub fn tensors(&mut self, n: usize, absent: &'static [&'static str]) -> &mut Template<'a> {
        self.tensors = Some((n, absent));
        self.number("TENSORS", n as u32)
    }

    /// Numbers that tell the text from others of the file, apart from a rule's.
    pub fn key(&self) -> impl Iterator<Item = u64> + '_ {
        let choices = self.choices.iter().map(|(.., value)| match value {
            Value::Type(dtype) => *dtype as u64,
            Value::Four(dtype) => *dtype as u64 | 1 << 8,
            Value::One(dtype) => *dtype as u64 | 2 << 8,
            Value::Flag(value) => u64::from(*value),
            Value::Number(value) => u64::from(*value),
        });
        choices.chain([self.compute as u64, u64::from(self.halves != Halves::Packed)])
    }

    /// The dtypes of inputs and outputs in their order, each once.
    pub fn dtypes(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (.., value) in &self.choices {
            if let Value::Type(dtype) | Value::Four(dtype) | Value::One(dtype) = value
                && !names.contains(&dtype.name())
            {
                names.push(dtype.name());
            }
        }
        names
    }

    /// The line in place of `line`, which is marked `kind`, for a choice; none if it stays.
    fn chosen(&self, kind: &str, (verb, name, value): Choice, line: &str) -> Option<String> {
        let store = |dtype| match dtype {
            DType::Bool if self.compute == DType::F32 => "truth",
            dtype => name_of(dtype),
        };
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
            "load4" => &["load"],
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
            ("alias", "T", ..) => Some(with_value(line, name_of(self.compute))),
            ("const", "EPW", Some(dtype), _) => Some(with_value(line, format_args!("{}u", per_word(dtype)))),
            ("fn", "op", _, Some(body)) => Some(body()?),
            ("fn", ..) => name.strip_suffix('_').and_then(wgsl::function).map(|name| {
                library.push(name);
                line.replace(&format!(" {name}("), &format!(" w_{name}("))
            }),
            _ => None,
        })
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
        if let Some((kind, name)) = chosen.find(|mark| marked_line(source, *mark).is_none()) {
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
            out.push_str(line);
            out.push('\n');
            let Some(mark) = mark_of(line) else { continue };
            let Some(line) = lines.next() else { break };
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
        for (names, text) in [(["to_bf16(", "of_bf16("], TO_BF16), (["to_f16(", "of_f16("], TO_F16)] {
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
    let line = ["load", "load4", "store4", verb].iter().fold(line.to_string(), |line, verb| {
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
        match (line.split_once("@binding("), line.split_once(") var<")) {
            (Some((head, _)), Some((_, rest))) => {
                out.push_str(&format!("{head}@binding({bindings}) var<{rest}\n"));
                *bindings += 1;
            }
            _ => out.push_str(&(line + "\n")),
        }
    }
}

const ELEMENTS: &str = shader!("lib/elements");
const QUADS: &str = shader!("lib/quads");
const SHUFFLE: &str = shader!("lib/shuffle");
const HALVES: &str = shader!("lib/halves");
const TILE_THREADS: &str = shader!("lib/tile_threads");
const TILE_MATRICES: &str = shader!("lib/tile_matrices");
const TO_BF16: &str = shader!("lib/to_bf16");
const TO_F16: &str = shader!("lib/to_f16");
