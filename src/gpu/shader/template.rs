//! Shader templates: files of `shaders/` whose marked lines the host changes.
//!
//! A line `//@ KIND NAME` marks the next line. The host chooses the type of the arithmetic (`alias T`), how
//! the elements of a binding lie in its words (`load x`, `store out`: lines of `shaders/lib/elements.wgsl`;
//! `words x`, `load4 x`, `store4 out` where they are taken by fours: `shaders/lib/quads.wgsl`), the value
//! of a constant (`const LOG`), the body of a rule (`fn op`), the number of tensors (`tensors x`), that of
//! inputs and outputs (`lists x0`, `lists y0`), that of slots (`slots 0`), the parameters of an input that
//! is computed (`chain x`) and the size of a subgroup (`shuffle SUBGROUP`). The mathematical functions (`fn
//! exp_`) become those of the library. Integers of two words have functions of their own for marked ones of
//! one word (`fn plus`, `shaders/lib/long.wgsl`) and structs for vectors of them. How products of float16
//! are multiplied (`halves S`) is chosen for a whole text: lines of `shaders/lib/halves.wgsl`, and
//! `shaders/lib/tile_matrices.wgsl` in the place of `tile_threads`. Other lines stay as in the file, which
//! is the float32 version. A choice for a mark that the file lacks is an error.

mod text;

use super::halves::Halves;
use crate::array::dtype::DType;
use crate::error::Result;
use smallvec::SmallVec;

/// What the host chooses for a marked line.
#[derive(Clone, Copy)]
enum Value {
    /// The element type of a binding.
    Type(DType),
    /// The same, of a binding by vectors of four elements.
    Four(DType),
    /// The same, of an input whose elements stand for four each.
    One(DType),
    /// An input that is computed as it is read.
    Chain,
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
    /// The dtype of the arithmetic: see [`arithmetic`].
    compute: DType,
    choices: SmallVec<[Choice; 12]>,
    op: Option<&'a dyn Fn() -> Result<String>>,
    halves: Halves,
    /// The number of tensors, and the one of which there is none.
    tensors: Option<(usize, &'static [&'static str])>,
    /// The numbers of inputs `x0` and outputs `y0`.
    lists: Option<[usize; 2]>,
}

/// The dtype in which a dtype is computed: float32, int32, uint32, or one of two words.
pub fn arithmetic(dtype: DType) -> DType {
    match dtype {
        DType::U32 => DType::U32,
        dtype if is_long(dtype) => dtype,
        dtype if dtype.is_float() => DType::F32,
        _ => DType::I32,
    }
}

/// Whether elements are integers of two words, with the arithmetic of `shaders/lib/long.wgsl`.
pub fn is_long(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::U64)
}

/// The name of a dtype in WGSL and in the marks of `shaders/lib/elements.wgsl`.
fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::U32 => "u32",
        DType::Bool => "bool",
        DType::U8 => "u8",
        DType::I8 => "i8",
        DType::U16 => "u16",
        DType::I16 => "i16",
        DType::U64 => "u64",
        DType::I64 => "i64",
        HALF => "half",
        _ => "i32",
    }
}

/// The bits of a half, to copy them: a dtype that no tensor on a GPU has.
pub const HALF: DType = DType::C128;

/// Elements per 32-bit word; those of two words are taken as one here.
pub fn per_word(dtype: DType) -> usize {
    if matches!(dtype, DType::F16 | DType::BF16 | HALF) { 2 } else { 1 }
}

impl<'a> Template<'a> {
    /// A template whose arithmetic uses the type of `compute` (float32 for halves, int32 for bool and narrow
    /// integers).
    pub fn new(source: &'static str, compute: DType) -> Template<'a> {
        let compute = arithmetic(compute);
        let halves = Halves::Packed;
        Template { source, compute, choices: SmallVec::new(), op: None, halves, tensors: None, lists: None }
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

    /// Whether products of float16 are multiplied by matrices of the hardware.
    pub fn has_matrices(&self) -> bool {
        matches!(self.halves, Halves::Matrices(_))
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

    /// Makes input `name` what a chain makes whose text stands before that of the file.
    pub fn load_chain(&mut self, name: &'static str) -> &mut Template<'a> {
        self.choose("load", name, Value::Chain)
    }

    /// Repeats the lines about input `x0` and output `y0` for so many of each; each has choices of its own.
    pub fn lists(&mut self, inputs: usize, outputs: usize) -> &mut Template<'a> {
        self.lists = Some([inputs, outputs]);
        self.number("INPUTS", inputs as u32)
    }

    /// Numbers that tell the text from others of the file, apart from a rule's.
    pub fn key(&self) -> impl Iterator<Item = u64> + '_ {
        let choices = self.choices.iter().map(|(.., value)| match value {
            Value::Type(dtype) => *dtype as u64,
            Value::Four(dtype) => *dtype as u64 | 1 << 8,
            Value::One(dtype) => *dtype as u64 | 2 << 8,
            Value::Chain => 3 << 8,
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
}

/// The names of inputs and outputs in lists.
pub const LISTS: [[&str; 16]; 2] = [
    ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15"],
    ["y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8", "y9", "y10", "y11", "y12", "y13", "y14", "y15"],
];
