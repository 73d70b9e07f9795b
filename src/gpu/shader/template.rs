//! Shader templates: files of `shaders/` whose marked lines are replaced.
//!
//! A line `//@ KIND NAME` marks the next line as replaceable: `alias T` (the type of the arithmetic),
//! `const EPW` (elements per word of the output), `load x`, `store out` (conversion between words and
//! values), `fn op` (a rule's body). Lines that are not replaced stay as in the file, which is the float32
//! version. Replacing a mark that the file lacks is an error.

use super::wgsl;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use std::fmt::Write;

/// A shader file with replacements of its marked lines.
pub struct Template {
    source: &'static str,
    lines: Vec<(String, String)>,
    appendix: String,
    /// The WGSL type of the arithmetic: `f32`, `i32` or `u32`.
    compute: &'static str,
}

/// The dtype in which a dtype is computed: float32, int32 or uint32.
pub fn arithmetic(dtype: DType) -> DType {
    match dtype {
        DType::U32 => DType::U32,
        dtype if dtype.is_float() => DType::F32,
        _ => DType::I32,
    }
}

/// The WGSL type in which a dtype is computed.
pub fn compute_type(dtype: DType) -> &'static str {
    match arithmetic(dtype) {
        DType::U32 => "u32",
        DType::F32 => "f32",
        _ => "i32",
    }
}

/// Elements per 32-bit word.
pub fn per_word(dtype: DType) -> u32 {
    if matches!(dtype, DType::F16 | DType::BF16) { 2 } else { 1 }
}

impl Template {
    /// A template whose arithmetic uses the type of `compute` (float32 for halves, int32 for bool).
    pub fn new(source: &'static str, compute: DType) -> Template {
        let compute = compute_type(compute);
        let mut out = Template { source, lines: Vec::new(), appendix: String::new(), compute };
        // A shader without arithmetic has no alias.
        if out.line("alias T").is_some() {
            out.set("alias T", format!("alias T = {compute};"));
        }
        out
    }

    /// Replaces the line after `//@ mark`.
    pub fn set(&mut self, mark: &str, line: impl Into<String>) -> &mut Template {
        self.lines.push((mark.to_string(), line.into()));
        self
    }

    /// The line after `//@ mark` in the file.
    pub fn line(&self, mark: &str) -> Option<&'static str> {
        let mut lines = self.source.lines();
        lines.find(|line| line.trim().strip_prefix("//@ ").is_some_and(|m| m.trim() == mark))?;
        lines.next()
    }

    /// Makes input `name` hold elements of `dtype`.
    pub fn load(&mut self, name: &str, dtype: DType) -> &mut Template {
        let text = load_text(name, dtype, self.compute);
        self.set(&format!("load {name}"), text)
    }

    /// Makes output `name` hold elements of `dtype`.
    pub fn store(&mut self, name: &str, dtype: DType) -> &mut Template {
        let text = store_text(name, dtype, self.compute);
        self.set(&format!("store {name}"), text)
    }

    /// Sets the number of elements per word of the outputs, which hold `dtype`.
    pub fn elements_per_word(&mut self, dtype: DType) -> &mut Template {
        self.set("const EPW", format!("const EPW: u32 = {}u;", per_word(dtype)))
    }

    /// Sets a boolean constant.
    pub fn flag(&mut self, name: &str, value: bool) -> &mut Template {
        self.set(&format!("const {name}"), format!("const {name}: bool = {value};"))
    }

    /// Replaces the mathematical functions `NAME_` of a shader by the library functions.
    pub fn math(&mut self, names: &[&'static str]) -> &mut Template {
        for name in names {
            self.set(&format!("fn {name}_"), format!("fn {name}_(x: f32) -> f32 {{ return w_{name}(x); }}"));
        }
        let library = wgsl::library(names);
        self.append(&library)
    }

    /// Appends text, such as functions that replaced lines call; the same text only once.
    pub fn append(&mut self, text: &str) -> &mut Template {
        if !self.appendix.contains(text) {
            self.appendix.push_str(text);
        }
        self
    }

    /// Returns the complete text.
    pub fn build(&self) -> Result<String> {
        if let Some((mark, _)) = self.lines.iter().find(|(mark, _)| self.line(mark).is_none()) {
            return Err(Error::value(format!("internal: a shader has no line marked //@ {mark}")));
        }
        let mut out = String::with_capacity(self.source.len() + self.appendix.len() + 256);
        let mut lines = self.source.lines();
        while let Some(line) = lines.next() {
            let mark = line.trim().strip_prefix("//@ ").map(str::trim);
            let replaced = mark.and_then(|m| self.lines.iter().rev().find(|(key, _)| key == m));
            match replaced {
                Some((_, text)) => {
                    lines.next();
                    out.push_str(text);
                }
                None => out.push_str(line),
            }
            out.push('\n');
        }
        let needs = |name: &str| out.contains(&format!("{name}("));
        let mut library = String::new();
        for (name, text) in [("to_bf16", TO_BF16), ("to_f16", TO_F16)] {
            if needs(name) {
                library.push_str(text);
            }
        }
        out.push_str(&library);
        out.push_str(&self.appendix);
        Ok(out)
    }
}

const TO_BF16: &str = include_str!("../../../shaders/lib/to_bf16.wgsl");
const TO_F16: &str = include_str!("../../../shaders/lib/to_f16.wgsl");

/// The text of the function that reads element `i` of binding `name` in the type `compute`.
pub fn load_text(name: &str, dtype: DType, compute: &str) -> String {
    let word = format!("{name}[i]");
    let half = format!("(({name}[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu)");
    let value = match (dtype, compute) {
        (DType::F32, "f32") => format!("bitcast<f32>({word})"),
        (DType::F32, t) => format!("{t}(bitcast<f32>({word}))"),
        (DType::I32, "f32") => format!("f32(bitcast<i32>({word}))"),
        (DType::U32, "f32") => format!("f32({word})"),
        (DType::I32 | DType::U32, t) => format!("bitcast<{t}>({word})"),
        (DType::Bool, t) => format!("{t}({word})"),
        (DType::F16, "f32") => format!("unpack2x16float({half}).x"),
        (DType::F16, t) => format!("{t}(unpack2x16float({half}).x)"),
        (DType::BF16, "f32") => format!("bitcast<f32>({half} << 16u)"),
        (_, t) => format!("{t}(bitcast<f32>({half} << 16u))"),
    };
    format!("fn load_{name}(i: u32) -> T {{ return {value}; }}")
}

fn store_text(name: &str, dtype: DType, compute: &str) -> String {
    let is_float = compute == "f32";
    let mut text = format!("fn store_{name}(w: u32, v: vec2<T>) {{ {name}[w] = ");
    let pair = |f: &str| format!("{f}(f32(v.x)) | ({f}(f32(v.y)) << 16u)");
    let value = match dtype {
        DType::F32 => "bitcast<u32>(f32(v.x))".to_string(),
        DType::F16 => pair("to_f16"),
        DType::BF16 => pair("to_bf16"),
        // Tests the bits for zero: float comparisons may assume that there is no NaN.
        DType::Bool if is_float => "select(0u, 1u, (bitcast<u32>(v.x) & 0x7fffffffu) != 0u)".to_string(),
        DType::Bool => "select(0u, 1u, v.x != 0)".to_string(),
        // Negative numbers wrap, as on the CPU.
        DType::U32 if is_float => "select(u32(v.x), bitcast<u32>(i32(v.x)), v.x < 0.0)".to_string(),
        DType::U32 => "u32(v.x)".to_string(),
        _ => "bitcast<u32>(i32(v.x))".to_string(),
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "{value}; }}");
    text
}
