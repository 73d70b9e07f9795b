//! Printing of tensors: NumPy's layout, four digits, large tensors summarised, unless `set_printoptions` says
//! otherwise.

use crate::array::defaults;
use crate::error::Kind;
use crate::py::data::dtype::name_of;
use crate::py::prelude::*;
use crate::py::tensor::{leaf, tracer};
use crate::tensor::Payload;
use crate::watch::script;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How tensors are printed.
#[derive(Clone, Copy)]
struct Options {
    /// Digits after the point.
    precision: usize,
    /// Tensors with more elements are summarised by the edges of their axes.
    threshold: usize,
    /// Elements per edge.
    edge: usize,
    /// Characters per line.
    width: usize,
    /// Whether powers of ten are shown; where `None`, the numbers decide.
    scientific: Option<bool>,
}

/// The options of the process in the order of [`Options`]; the last is 0 for `None`, 1 for false, 2 for true.
static OPTIONS: [AtomicUsize; 5] = [
    AtomicUsize::new(4),
    AtomicUsize::new(1000),
    AtomicUsize::new(3),
    AtomicUsize::new(80),
    AtomicUsize::new(0),
];

impl Options {
    /// Those in force.
    fn now() -> Options {
        let [precision, threshold, edge, width, scientific] =
            [0, 1, 2, 3, 4].map(|i| OPTIONS[i].load(Relaxed));
        let scientific = [None, Some(false), Some(true)][scientific.min(2)];
        Options { precision, threshold, edge, width, scientific }
    }
}

/// Returns how tensors are printed: precision, threshold, elements per edge, characters per line, and whether
/// powers of ten are shown.
#[pyfunction]
fn _print_options() -> (usize, usize, usize, usize, Option<bool>) {
    let o = Options::now();
    (o.precision, o.threshold, o.edge, o.width, o.scientific)
}

/// Sets what [`_print_options`] returns.
#[pyfunction]
#[pyo3(signature = (precision, threshold, edge, width, scientific))]
fn _set_print_options(
    precision: usize, threshold: usize, edge: usize, width: usize, scientific: Option<bool>,
) {
    let scientific = scientific.map_or(0, |on| 1 + usize::from(on));
    for (place, value) in OPTIONS.iter().zip([precision, threshold, edge, width, scientific]) {
        place.store(value, Relaxed);
    }
}

exports! { functions: _print_options, _set_print_options }

/// Formats a tensor, as in `tensor([1., 2.], requires_grad=True)`.
pub fn tensor(t: &Tensor) -> Result<String> {
    const OPENING: &str = "tensor(";
    let mut notes = Vec::new();
    let body = match traced_body(t) {
        Some(text) => text,
        None => match values(&t.detach(), OPENING.len()) {
            // What printed it must go on where its device is lost.
            Err(e) if e.kind() == Kind::Device => {
                notes.push(format!("shape={}", t.shape()));
                format!("{OPENING}<lost>")
            }
            values => OPENING.to_string() + &values?,
        },
    };
    if !matches!(t.dtype(), DType::I64 | DType::Bool) && !defaults::is_natural(t.dtype()) {
        notes.push(format!("dtype={}", t.dtype()));
    }
    if t.numel() == 0 && t.rank() != 1 && tracer(t).is_none() {
        notes.push(format!("shape={}", t.shape()));
    }
    if t.device() != Device::Cpu {
        notes.push(format!("device='{}'", name_of(t.device())));
    }
    if leaf(t).is_some() {
        notes.push("requires_grad=True".into());
    } else if let Some(edge) = t.edge() {
        notes.push(format!("grad_fn=<{}>", node_name(edge.node.name())));
    }
    notes.insert(0, body);
    Ok(notes.join(", ") + ")")
}

/// Returns the class name of a node: `log_softmax` becomes `LogSoftmaxBackward`.
pub fn node_name(op: &str) -> String {
    let mut out = String::new();
    for word in op.split('_') {
        let mut letters = word.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out.push_str("Backward");
    out
}

/// Formats a tensor without one concrete value (inside a transform): its kind, shape and batch size.
fn traced_body(t: &Tensor) -> Option<String> {
    let kind = tracer(t)?;
    let mut at = t;
    while let Some(traced) = at.traced() {
        if let Payload::Batched { value, axis, .. } = &traced.payload {
            return Some(format!("{kind}(shape={}, of a batch of {}", t.shape(), value.shape().at(*axis)));
        }
        at = traced.inner();
    }
    Some(format!("{kind}(shape={}", t.shape()))
}

/// The number format shared by all elements of a tensor.
enum Style {
    Text,
    Int,
    Fixed(usize),
    Scientific(usize),
}

fn style(t: &Tensor, shown: &[f64], options: Options) -> Style {
    match t.dtype() {
        DType::Bool => return Style::Text,
        dtype if dtype.is_integer() => return Style::Int,
        _ => {}
    }
    let finite: Vec<f64> =
        shown.iter().copied().filter(|v| v.is_finite() && *v != 0.0).map(f64::abs).collect();
    let largest = finite.iter().copied().fold(0.0, f64::max);
    let smallest = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let by_numbers = largest >= 1e8
        || smallest < 1e-4
        || (smallest.is_finite() && largest / smallest > 1e5 && largest >= 1e3);
    if options.scientific.unwrap_or(by_numbers) {
        return Style::Scientific(options.precision);
    }
    Style::Fixed(finite.iter().map(|v| digits(*v, options.precision)).max().unwrap_or(0))
}

/// Digits after the point that show `v` to so many decimals, without trailing zeros.
fn digits(v: f64, precision: usize) -> usize {
    let text = format!("{v:.precision$}");
    if precision == 0 {
        return 0;
    }
    let kept = text.trim_end_matches('0');
    kept.len() - kept.find('.').map_or(kept.len(), |p| p + 1)
}

fn number(v: f64, style: &Style) -> String {
    match *style {
        Style::Text => if v != 0.0 { "True" } else { "False" }.into(),
        Style::Int => format!("{v:.0}"),
        _ if v.is_nan() => "nan".into(),
        _ if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.into(),
        Style::Fixed(0) => format!("{v:.0}."),
        Style::Fixed(n) => format!("{v:.n$}"),
        Style::Scientific(n) => {
            let text = format!("{v:.n$e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
            format!("{digits}e{sign}{power:0>2}")
        }
    }
}

/// Formats the elements of a concrete tensor in brackets; `indent` is the column of the first bracket.
fn values(t: &Tensor, indent: usize) -> Result<String> {
    script::refuse(|| "a tensor as a string; return it and print it after the call".into());
    let t = Tensor::Array(t.array("print")?.to_device(Device::Cpu)?);
    if t.numel() == 0 {
        return Ok("[]".into());
    }
    let options = Options::now();
    let edge = (t.numel() > options.threshold).then_some(options.edge);
    let mut picked = Vec::new();
    let shape = t.shape();
    let mut part = t.clone();
    // Select the edges of every summarised axis by index.
    for (i, d) in shape.iter().enumerate() {
        let rows = rows(d, edge);
        let shown: Vec<i64> = rows.iter().flatten().map(|&r| r as i64).collect();
        if shown.len() < d {
            part = part.take(&Tensor::from_slice(&shown, &[shown.len()])?, i as i64)?;
        }
        picked.push(rows.iter().map(Option::is_some).collect());
    }
    let mut texts = exact(&part, options)?;
    if shape.rank() == 0 {
        return Ok(texts.pop().unwrap_or_default());
    }
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    let mut page = Page { texts, width, picked, next: 0, indent, line: options.width };
    let mut out = String::new();
    page.write(0, &mut out);
    Ok(out)
}

/// Formats every element; integers without rounding.
fn exact(t: &Tensor, options: Options) -> Result<Vec<String>> {
    if t.dtype().is_integer() && t.dtype().size() == 8 {
        let host = crate::cpu::pointwise::copy::contiguous(t.array("print")?)?;
        return Ok(match t.dtype() {
            DType::U64 => host.slice::<u64>()?.iter().map(u64::to_string).collect(),
            _ => host.slice::<i64>()?.iter().map(i64::to_string).collect(),
        });
    }
    if !t.dtype().is_complex() {
        let numbers = t.to_vec()?;
        let style = style(t, &numbers, options);
        return Ok(numbers.iter().map(|&v| number(v, &style)).collect());
    }
    // As Python does, each part in its own style.
    let (re, im) = (exact(&t.real()?, options)?, exact(&t.imag()?, options)?);
    let sign = |im: &str| if im.starts_with('-') { "" } else { "+" };
    Ok(re.iter().zip(&im).map(|(re, im)| format!("{re}{}{im}j", sign(im))).collect())
}

/// Returns the rows to print; `None` is the gap of a summary, which shows so many at either edge.
fn rows(length: usize, edge: Option<usize>) -> Vec<Option<usize>> {
    match edge.filter(|edge| length > edge.saturating_mul(2).saturating_add(1)) {
        Some(edge) => {
            let tail = (length - edge..length).map(Some);
            (0..edge).map(Some).chain([None]).chain(tail).collect()
        }
        None => (0..length).map(Some).collect(),
    }
}

struct Page {
    texts: Vec<String>,
    width: usize,
    picked: Vec<Vec<bool>>,
    next: usize,
    indent: usize,
    /// Characters per line.
    line: usize,
}

impl Page {
    fn write(&mut self, axis: usize, out: &mut String) {
        let rows = self.picked[axis].clone();
        let rank = self.picked.len();
        out.push('[');
        let mut column = self.indent + axis + 1;
        for (i, &shown) in rows.iter().enumerate() {
            if i > 0 {
                out.push(',');
                // Newlines separate blocks, one for each axis in between.
                let blocks = rank - axis - 1;
                if blocks > 0 || column + self.width + 3 > self.line {
                    column = self.indent + axis + 1;
                    out.push_str(&"\n".repeat(blocks.max(1)));
                    out.push_str(&" ".repeat(column));
                } else {
                    out.push(' ');
                }
            }
            if !shown {
                out.push_str("...");
                column += 5;
            } else if axis + 1 < rank {
                self.write(axis + 1, out);
            } else {
                let text = &self.texts[self.next];
                out.push_str(&" ".repeat(self.width - text.len()));
                out.push_str(text);
                self.next += 1;
                column += self.width + 2;
            }
        }
        out.push(']');
    }
}
