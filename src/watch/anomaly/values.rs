//! Reads values for anomaly detection, and words them for its messages.

use crate::array::Array;
use crate::array::buffer::Device;
use crate::error::Result;
use crate::op::{Class, Op};
use crate::tensor::{Payload, Tensor};
use std::fmt;

/// An element that is not finite, and the operands that it was made of.
#[derive(Clone)]
pub struct Element {
    /// Its index, batch axes included.
    pub index: Vec<usize>,
    /// The element.
    pub value: f64,
    /// The operands at that index, worded for a message.
    pub operands: String,
}

/// The index of an element that is not finite, and the element.
pub(super) type Worst = (Vec<usize>, f64);

impl Element {
    /// The element `worst` of a result of `op`, whose operands have these names.
    pub(super) fn of<'t>(
        op: &Op, (index, value): Worst, operands: impl IntoIterator<Item = (String, &'t Tensor)>,
    ) -> Result<Element> {
        let operands = operands.into_iter().map(|(name, t)| said(op, &name, t, &index));
        let operands = list(operands.collect::<Result<_>>()?);
        Ok(Element { index, value, operands })
    }
}

/// `nan at index (2, 0)`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", number(self.value), spot(&self.index))
    }
}

/// The elements of an array, copied to the host in row-major order, and its axis lengths.
pub(super) struct Host {
    pub(super) values: Vec<f64>,
    pub(super) lengths: Vec<usize>,
}

impl Host {
    pub(super) fn of(a: &Array) -> Result<Host> {
        Ok(Host { values: Tensor::from(a.clone()).to_vec()?, lengths: a.shape().iter().collect() })
    }

    /// The element at `index`, an index into a shape that this one broadcasts to.
    pub(super) fn at(&self, index: &[usize]) -> Option<f64> {
        let index = index.get(index.len().checked_sub(self.lengths.len())?..)?;
        let mut position = 0;
        for (&i, &n) in index.iter().zip(&self.lengths) {
            let i = if n == 1 { 0 } else { i };
            if i >= n {
                return None;
            }
            position = position * n + i;
        }
        self.values.get(position).copied()
    }

    pub(super) fn index(&self, position: usize) -> Vec<usize> {
        let mut rest = position;
        let mut index: Vec<usize> = self.lengths.iter().rev().map(|&n| (rest % n, rest /= n).0).collect();
        index.reverse();
        index
    }

    /// Index and value of the first NaN, or else of the first infinity.
    pub(super) fn worst(&self) -> Option<Worst> {
        let first = |bad: fn(&f64) -> bool| self.values.iter().position(bad);
        let position = first(|v| v.is_nan()).or_else(|| first(|v| v.is_infinite()))?;
        Some((self.index(position), self.values[position]))
    }
}

/// 0: all elements are finite; 1: some are infinite; 2: some are NaN.
pub(super) fn level(a: &Array) -> Result<u8> {
    if !a.dtype().is_float() {
        return Ok(0);
    }
    let host = crate::cpu::pointwise::copy::contiguous(&a.to_device(Device::Cpu)?)?;
    Ok(crate::dispatch!(host.dtype(), T => {
        let worse = |worst: u8, v: &T| {
            let v = crate::array::dtype::Element::to_f64(*v);
            worst.max(if v.is_finite() { 0 } else { 1 + v.is_nan() as u8 })
        };
        host.slice::<T>()?.iter().fold(0, worse)
    }))
}

/// Appends the concrete arrays of a tensor: one, or those of a primal and its tangent.
fn arrays<'a>(t: &'a Tensor, out: &mut Vec<&'a Array>) {
    match t {
        Tensor::Array(a) => out.push(a),
        Tensor::Traced(t) => {
            arrays(t.inner(), out);
            if let Payload::Dual { tangent: Some(tangent), .. } = &t.payload {
                arrays(tangent, out);
            }
        }
    }
}

/// The worst element of the first array of `t` that is not finite.
pub(super) fn worst(t: &Tensor) -> Result<Option<Worst>> {
    let mut all = Vec::new();
    arrays(t, &mut all);
    for a in all {
        if level(a)? > 0 {
            return Ok(Host::of(a)?.worst());
        }
    }
    Ok(None)
}

pub(super) fn is_finite(t: &Tensor) -> Result<bool> {
    Ok(worst(t)?.is_none())
}

/// ` at index (2, 0)` for a message; empty for a scalar.
fn spot(index: &[usize]) -> String {
    match index {
        [] => String::new(),
        [i] => format!(" at index ({i},)"),
        many => format!(" at index ({})", many.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// `nan`, `inf` and numbers as Python writes them.
fn number(v: f64) -> String {
    if v.is_nan() { "nan".into() } else { format!("{v}") }
}

/// `a`, `a and b`, `a, b and c`.
fn list(mut parts: Vec<String>) -> String {
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} and {last}", parts.join(", ")),
    }
}

/// Words the element of `t` at `index`, or `t`'s shape and worst element if the operation is not elementwise.
fn said(op: &Op, name: &str, t: &Tensor, index: &[usize]) -> Result<String> {
    let mut all = Vec::new();
    arrays(t, &mut all);
    let Some(host) = all.first().map(|a| Host::of(a)).transpose()? else { return Ok(name.to_string()) };
    let alike = host.lengths.len() == index.len() && op.class() != Class::Bilinear;
    let element = if op.class() == Class::Elementwise || alike { host.at(index) } else { None };
    Ok(match (element, host.worst()) {
        (Some(v), _) => format!("{name} is {}", number(v)),
        (None, Some((at, v))) => format!("{name} of shape {} is {}{}", t.shape(), number(v), spot(&at)),
        (None, None) => format!("{name} of shape {} is finite", t.shape()),
    })
}
