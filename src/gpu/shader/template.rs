//! Shader templates: files of `shaders/` whose marked lines the host changes.
//!
//! A line `//@ KIND NAME` marks the next line. The host chooses the type of the arithmetic (`alias T`), how the
//! elements of a binding lie in its words (`load x`, `store out`: lines of `shaders/lib/elements.wgsl`), the
//! value of a constant (`const LOG`), the body of a rule (`fn op`) and the number of tensors (`tensors x`). The
//! mathematical functions (`fn exp_`) become those of the library. Other lines stay as in the file, which is the
//! float32 version. A choice for a mark that the file lacks is an error.

use super::wgsl;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use smallvec::SmallVec;

/// What the host chooses for a marked line.
#[derive(Clone, Copy)]
enum Choice {
    /// The element type of an input.
    Load(&'static str, DType),
    /// The element type of an output.
    Store(&'static str, DType),
    /// The value of a boolean constant.
    Flag(&'static str, bool),
    /// The value of a u32 constant.
    Number(&'static str, u32),
    /// The value of a float constant, which no key tells: something else in it decides on it.
    Float(&'static str, &'static str),
}

/// A shader file with choices for its marked lines.
pub struct Template<'a> {
    source: &'static str,
    /// The dtype of the arithmetic: float32, int32 or uint32.
    compute: DType,
    choices: SmallVec<[Choice; 12]>,
    op: Option<&'a dyn Fn() -> Result<String>>,
    /// The number of tensors, and the one of which there is none.
    tensors: Option<(usize, &'static str)>,
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

    fn choose(&mut self, choice: Choice) -> &mut Template<'a> {
        self.choices.push(choice);
        self
    }

    /// Makes input `name` hold elements of `dtype`.
    pub fn load(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose(Choice::Load(name, dtype))
    }

    /// Makes output `name` hold elements of `dtype`; the first output decides on the elements per word.
    pub fn store(&mut self, name: &'static str, dtype: DType) -> &mut Template<'a> {
        self.choose(Choice::Store(name, dtype))
    }

    /// Sets a boolean constant.
    pub fn flag(&mut self, name: &'static str, value: bool) -> &mut Template<'a> {
        self.choose(Choice::Flag(name, value))
    }

    /// Sets a u32 constant.
    pub fn number(&mut self, name: &'static str, value: u32) -> &mut Template<'a> {
        self.choose(Choice::Number(name, value))
    }

    /// Sets a float constant that a dtype chosen above decides on.
    pub fn float(&mut self, name: &'static str, value: &'static str) -> &mut Template<'a> {
        self.choose(Choice::Float(name, value))
    }

    /// Sets the text of `fn op`.
    pub fn op(&mut self, body: &'a dyn Fn() -> Result<String>) -> &mut Template<'a> {
        self.op = Some(body);
        self
    }

    /// Repeats the lines about a tensor for `n` of them, and drops those of the role `absent`.
    pub fn tensors(&mut self, n: usize, absent: &'static str) -> &mut Template<'a> {
        self.tensors = Some((n, absent));
        self.number("TENSORS", n as u32)
    }

    /// Numbers that tell the text from others of the file, apart from a rule's.
    pub fn key(&self) -> impl Iterator<Item = u64> + '_ {
        let choices = self.choices.iter().map(|choice| match choice {
            Choice::Load(_, dtype) | Choice::Store(_, dtype) => *dtype as u64,
            Choice::Flag(_, value) => u64::from(*value),
            Choice::Number(_, value) => u64::from(*value),
            Choice::Float(..) => 0,
        });
        choices.chain([self.compute as u64])
    }

    /// The mark of a choice, and its line in place of `line`.
    fn line(&self, choice: Choice, line: &str) -> (String, String) {
        match choice {
            Choice::Load(name, dtype) => (format!("load {name}"), element("load", "x", name_of(dtype), name)),
            Choice::Store(name, dtype) => {
                let is_truth = dtype == DType::Bool && self.compute == DType::F32;
                let row = if is_truth { "truth" } else { name_of(dtype) };
                (format!("store {name}"), element("store", "out", row, name))
            }
            Choice::Flag(name, value) => (format!("const {name}"), with_value(line, value)),
            Choice::Number(name, value) => {
                (format!("const {name}"), with_value(line, format_args!("{value}u")))
            }
            Choice::Float(name, value) => (format!("const {name}"), with_value(line, value)),
        }
    }

    /// The line in place of `line`, which `mark` marks; none if it stays. Library functions that it calls are
    /// added to `library`.
    fn replaced(&self, mark: &str, line: &str, library: &mut Vec<&'static str>) -> Result<Option<String>> {
        if let Some((_, text)) = self.choices.iter().map(|c| self.line(*c, line)).rfind(|(m, _)| m == mark) {
            return Ok(Some(text));
        }
        let output = self.choices.iter().find_map(|choice| match choice {
            Choice::Store(_, dtype) => Some(*dtype),
            _ => None,
        });
        Ok(match (mark, output, self.op) {
            ("alias T", ..) => Some(with_value(line, name_of(self.compute))),
            ("const EPW", Some(dtype), _) => Some(with_value(line, format_args!("{}u", per_word(dtype)))),
            ("fn op", _, Some(body)) => Some(body()?),
            _ => {
                let function = mark.strip_prefix("fn ").and_then(|name| name.strip_suffix('_'));
                function.and_then(wgsl::function).map(|name| {
                    library.push(name);
                    line.replace(&format!(" {name}("), &format!(" w_{name}("))
                })
            }
        })
    }

    /// Returns the complete text.
    pub fn build(&self) -> Result<String> {
        let has = |mark: &str| marked_line(self.source, mark).is_some();
        let marks = self.choices.iter().map(|choice| self.line(*choice, "").0);
        if let Some(mark) = marks.chain(self.op.map(|_| "fn op".into())).find(|mark| !has(mark)) {
            return Err(Error::value(format!("internal: a shader has no line marked //@ {mark}")));
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
                Some((n, absent)) => repeat(mark, text, n, absent, &mut bindings, &mut out),
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

/// The mark that a line is: `//@ mark`.
fn mark_of(line: &str) -> Option<&str> {
    line.trim().strip_prefix("//@ ").map(str::trim)
}

/// The line after `//@ mark`.
fn marked_line(source: &'static str, mark: &str) -> Option<&'static str> {
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
    let line = marked_line(ELEMENTS, &format!("{verb} {dtype}")).unwrap_or_default();
    line.replace(&format!("{verb}_{dtype}("), &format!("{verb}_{name}("))
        .replace(&format!("{binding}["), &format!("{name}["))
}

/// Writes a line about tensor 0, `x0` or `case 0u`, once per tensor; another one once. Numbers the bindings.
fn repeat(mark: &str, line: &str, n: usize, absent: &str, bindings: &mut usize, out: &mut String) {
    let role = mark.split_once(' ').map_or("", |(_, name)| name.trim_end_matches('0'));
    let first = format!("{role}0");
    let copies = match (role == absent, line.contains(&first)) {
        (true, _) => 0,
        (_, true) => n,
        _ => 1,
    };
    for k in 0..copies {
        let line = line.replace(&first, &format!("{role}{k}")).replace("case 0u", &format!("case {k}u"));
        match (line.split_once("@binding("), line.split_once(") var<")) {
            (Some((head, _)), Some((_, rest))) => {
                out.push_str(&format!("{head}@binding({bindings}) var<{rest}\n"));
                *bindings += 1;
            }
            _ => out.push_str(&(line + "\n")),
        }
    }
}

const ELEMENTS: &str = include_str!("../../../shaders/lib/elements.wgsl");
const TO_BF16: &str = include_str!("../../../shaders/lib/to_bf16.wgsl");
const TO_F16: &str = include_str!("../../../shaders/lib/to_f16.wgsl");
