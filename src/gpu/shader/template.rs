//! Shader templates: files of `shaders/` whose marked lines the host changes.
//!
//! A line `//@ KIND NAME` marks the next line. The host chooses the type of the arithmetic (`alias T`), how
//! the elements of a binding lie in its words (`load x`, `store out`: lines of `shaders/lib/elements.wgsl`),
//! the value of a constant (`const LOG`), the body of a rule (`fn op`) and the number of tensors (`tensors
//! x`). The mathematical functions (`fn exp_`) become those of the library. Other lines stay as in the file,
//! which is the float32 version. A choice for a mark that the file lacks is an error.

use super::wgsl;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use smallvec::SmallVec;

/// What the host chooses for a marked line.
#[derive(Clone, Copy)]
enum Value {
    /// The element type of a binding.
    Type(DType),
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
        _ => "i32",
    }
}

/// Elements per 32-bit word.
pub fn per_word(dtype: DType) -> usize {
    if matches!(dtype, DType::F16 | DType::BF16) { 2 } else { 1 }
}

impl<'a> Template<'a> {
    /// A template whose arithmetic uses the type of `compute` (float32 for halves, int32 for bool).
    pub fn new(source: &'static str, compute: DType) -> Template<'a> {
        let compute = arithmetic(compute);
        Template { source, compute, choices: SmallVec::new(), op: None, tensors: None }
    }

    /// Makes input `name` hold elements of `dtype`.
    pub fn load(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choices.push(("load", name, Value::Type(dtype)));
        self
    }

    /// Makes output `name` hold elements of `dtype`; the first output decides on the elements per word.
    pub fn store(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choices.push(("store", name, Value::Type(dtype)));
        self
    }

    /// Sets a boolean constant.
    pub fn flag(&mut self, name: &'static str, value: bool) -> &mut Template<'a> {
        self.choices.push(("const", name, Value::Flag(value)));
        self
    }

    /// Sets a u32 constant.
    pub fn number(&mut self, name: &'static str, value: u32) -> &mut Template<'a> {
        self.choices.push(("const", name, Value::Number(value)));
        self
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
            Value::Flag(value) => u64::from(*value),
            Value::Number(value) => u64::from(*value),
        });
        choices.chain([self.compute as u64])
    }

    /// The dtypes of inputs and outputs in their order, each once.
    pub fn dtypes(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (.., value) in &self.choices {
            if let Value::Type(dtype) = value
                && !names.contains(&dtype.name())
            {
                names.push(dtype.name());
            }
        }
        names
    }

    /// The line in place of `line` for a choice.
    fn chosen(&self, (kind, name, value): Choice, line: &str) -> String {
        match value {
            Value::Flag(value) => with_value(line, value),
            Value::Number(value) => with_value(line, format_args!("{value}u")),
            Value::Type(dtype) if kind == "load" => element("load", "x", name_of(dtype), name),
            Value::Type(DType::Bool) if self.compute == DType::F32 => element("store", "out", "truth", name),
            Value::Type(dtype) => element("store", "out", name_of(dtype), name),
        }
    }

    /// The line in place of `line`, which is marked `kind name`; none if it stays. A library function that it
    /// calls is added to `library`.
    fn replaced(
        &self, (kind, name): (&str, &str), line: &str, library: &mut Vec<&'static str>,
    ) -> Result<Option<String>> {
        if let Some(choice) = self.choices.iter().rfind(|choice| (choice.0, choice.1) == (kind, name)) {
            return Ok(Some(self.chosen(*choice, line)));
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

    /// Returns the complete text.
    pub fn build(&self) -> Result<String> {
        let mut chosen =
            self.choices.iter().map(|choice| (choice.0, choice.1)).chain(self.op.map(|_| ("fn", "op")));
        if let Some((kind, name)) = chosen.find(|mark| marked_line(self.source, *mark).is_none()) {
            return Err(Error::value(format!("internal: a shader has no line marked //@ {kind} {name}")));
        }
        let mut out = String::with_capacity(self.source.len() + 256);
        let (mut lines, mut functions, mut bindings) = (self.source.lines(), Vec::new(), 0);
        while let Some(line) = lines.next() {
            out.push_str(line);
            out.push('\n');
            let Some(mark) = mark_of(line) else { continue };
            let Some(line) = lines.next() else { break };
            let text = self.replaced(mark, line, &mut functions)?;
            let text = text.as_deref().unwrap_or(line);
            match self.tensors {
                Some((n, absent)) => repeat(mark.1, text, n, absent, &mut bindings, &mut out),
                None => out.push_str(text),
            }
            out.push('\n');
        }
        for (name, text) in [("to_bf16(", TO_BF16), ("to_f16(", TO_F16)] {
            if out.contains(name) {
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
fn marked_line(source: &'static str, mark: (&str, &str)) -> Option<&'static str> {
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

/// The function that loads or stores elements of `dtype` for the binding `name`.
fn element(verb: &str, binding: &str, dtype: &str, name: &str) -> String {
    let line = marked_line(ELEMENTS, (verb, dtype)).unwrap_or_default();
    line.replace(&format!("{verb}_{dtype}("), &format!("{verb}_{name}("))
        .replace(&format!("{binding}["), &format!("{name}["))
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
const TO_BF16: &str = shader!("lib/to_bf16");
const TO_F16: &str = shader!("lib/to_f16");
