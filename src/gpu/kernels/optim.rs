//! Optimiser steps and gradient scaling on the GPU, fused, in place; the counterpart of `src/cpu/optim.rs`.
//!
//! One dispatch updates all parameters of a group (`src/gpu/kernels/many.rs`). The kernels compute in
//! float32; parameters of 16 bits are rounded once.

use super::copy::{cast, convert, copy_into, index_of};
use super::many::{Entry, Family, Role, reads, writes};
use super::map;
use super::params::Params;
use super::reduce;
use crate::arguments::optim::{Adam, Rule, Sgd, Slot, slots as all_slots};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::{Axes, Shape};
use crate::error::Result;
use crate::gpu::scalar;
use crate::math::real::{Pointwise, Real};
use smallvec::SmallVec;

/// Whether kernels can update `x` in place: contiguous float32 from the start of its buffer.
fn is_flat(x: &Array) -> bool {
    x.dtype() == DType::F32 && x.is_contiguous() && x.offset() == 0
}

/// Converts a gradient to the form that kernels read: contiguous, in a float dtype.
fn flat_gradient(g: &Array) -> Result<Array> {
    let dtype = if g.dtype().is_float() { g.dtype() } else { DType::F32 };
    if g.dtype() == dtype && g.is_contiguous() && g.offset() == 0 { Ok(g.clone()) } else { convert(g, dtype) }
}

/// Performs one step of `rule`, in place, on parameters that share no memory: one dispatch per dtype of
/// gradients, or more if the GPU has too few bindings for all parameters.
pub fn step(slots: &[Slot], rule: &Rule, found: Option<&Array>) -> Result<()> {
    if let Some(found) = found
        && found.item()? != 0.0
    {
        return Ok(());
    }
    step_by(slots, rule, usize::MAX)
}

/// [`step`] with at most `most` parameters per dispatch.
pub(super) fn step_by(slots: &[Slot], rule: &Rule, most: usize) -> Result<()> {
    let width = slots.first().map_or(1, |slot| slot.state.len() + 1);
    // Copies of what kernels cannot take as it is.
    let mut arrays: Vec<Array> = Vec::new();
    for slot in slots {
        for x in slot.state {
            arrays.push(if is_flat(x) { (*x).clone() } else { convert(x, DType::F32)? });
        }
        arrays.push(flat_gradient(slot.grad)?);
    }
    let (arrays, steps): (Vec<&Array>, Vec<i32>) =
        (arrays.iter().collect(), slots.iter().map(|s| s.step).collect());
    let flat: Vec<Slot> = all_slots(&arrays, width, &steps).collect();
    let mut rest: SmallVec<[&Slot; 32]> = flat.iter().filter(|s| s.param().numel() > 0).collect();
    while let Some(dtype) = rest.first().map(|s| s.grad.dtype()) {
        let together: SmallVec<[&Slot; 32]> =
            rest.iter().copied().filter(|s| s.grad.dtype() == dtype).collect();
        rest.retain(|s| s.grad.dtype() != dtype);
        match rule {
            Rule::Sgd(s) => sgd(&together, dtype, s, most)?,
            Rule::Adam(a) => adam(&together, dtype, a, most)?,
        }
    }
    let pairs = slots.iter().zip(&flat).flat_map(|(slot, flat)| slot.state.iter().zip(flat.state));
    for (&x, &moved) in pairs.filter(|(x, _)| !is_flat(x)) {
        copy_into(x, &cast(moved, x.dtype())?)?;
    }
    Ok(())
}

/// The entry of a slot: its gradient, then its state.
fn entry<'a>(slot: &Slot<'a>, words: [u32; 2]) -> Entry<'a> {
    let buffers = [slot.grad].iter().chain(slot.state).map(|x| x.buffer()).collect();
    Entry { buffers, count: slot.param().numel(), words }
}

fn sgd(slots: &[&Slot], dtype: DType, s: &Sgd, most: usize) -> Result<()> {
    const ROLES: [Role; 3] = [reads("g"), writes("x"), writes("momentum")];
    let Some(first) = slots.first() else { return Ok(()) };
    let bound = first.state.len() + 1;
    let family = Family {
        name: "sgd",
        source: include_str!("../../../shaders/optim_sgd.wgsl"),
        dtype,
        without: (bound < ROLES.len()).then_some(("MOMENTUM", "momentum")),
        before: &[],
        roles: &ROLES[..bound],
        after: &[],
    };
    let mut header = Params::default();
    header.word(usize::from(s.nesterov) | usize::from(s.maximize) << 1);
    header
        .float(s.lr)
        .float(s.weight_decay)
        .float(s.momentum)
        .float(1.0 - s.dampening)
        .word(0)
        .word(0)
        .word(0);
    let entries: Vec<Entry> = slots.iter().map(|slot| entry(slot, [u32::from(slot.step == 1), 0])).collect();
    launch_all(&family, index_of(first.param())?, &entries, &header, most)
}

fn adam(slots: &[&Slot], dtype: DType, a: &Adam, most: usize) -> Result<()> {
    const ROLES: [Role; 5] = [reads("g"), writes("x"), writes("first"), writes("second"), writes("largest")];
    let Some(first) = slots.first() else { return Ok(()) };
    let bound = first.state.len() + 1;
    let family = Family {
        name: "adam",
        source: include_str!("../../../shaders/optim_adam.wgsl"),
        dtype,
        without: (bound < ROLES.len()).then_some(("AMSGRAD", "largest")),
        before: &[],
        roles: &ROLES[..bound],
        after: &[],
    };
    let (shrink, decay) = a.decay();
    let mut header = Params::default();
    header.word(usize::from(a.maximize) << 1).float(decay).float(shrink);
    header.float(a.beta1).float(1.0 - a.beta1).float(a.beta2).float(1.0 - a.beta2).float(a.eps);
    let own = |slot: &Slot| {
        let (size, root) = a.corrections(slot.step);
        [(size as f32).to_bits(), (root as f32).to_bits()]
    };
    let entries: Vec<Entry> = slots.iter().map(|slot| entry(slot, own(slot))).collect();
    launch_all(&family, index_of(first.param())?, &entries, &header, most)
}

/// Runs a kernel over all entries, as many per dispatch as the GPU can bind and `most` allows.
fn launch_all(family: &Family, index: u8, entries: &[Entry], header: &Params, most: usize) -> Result<()> {
    let at_once = family.most(index)?.min(most.max(1));
    entries.chunks(at_once).try_for_each(|chunk| family.launch(index, chunk, header))
}

/// The entries of arrays that are not empty.
fn entries(arrays: &[Array]) -> Vec<Entry<'_>> {
    arrays
        .iter()
        .filter(|x| x.numel() > 0)
        .map(|x| Entry { buffers: SmallVec::from_slice(&[x.buffer()]), count: x.numel(), words: [0; 2] })
        .collect()
}

/// The square root of the sum of squares of all elements of all arrays, a 0-d float32 array on the GPU. One
/// dispatch reads the arrays (more for several dtypes or too few bindings), one adds partial sums, one takes
/// the root.
pub fn norm(arrays: &[&Array]) -> Result<Array> {
    let index = index_of(arrays[0])?;
    let mut flat: Vec<Array> = arrays.iter().map(|g| flat_gradient(g)).collect::<Result<_>>()?;
    flat.sort_by_key(|g| g.dtype() as u8);
    let all = entries(&flat);
    let groups: u64 = all.iter().map(Entry::groups).sum();
    if groups == 0 {
        return super::create::full(index, Shape::SCALAR, 0.0, DType::F32);
    }
    let sums = Array::empty(Shape::new(&[groups as usize])?, DType::F32, arrays[0].device())?;
    let mut base = 0;
    for same in flat.chunk_by(|a, b| a.dtype() == b.dtype()) {
        let after = [("sums", sums.buffer())];
        let family = Family {
            name: "squares",
            source: include_str!("../../../shaders/optim_squares.wgsl"),
            dtype: same[0].dtype(),
            without: None,
            before: &[],
            roles: &[reads("g")],
            after: &after,
        };
        for chunk in entries(same).chunks(family.most(index)?) {
            let groups: u64 = chunk.iter().map(Entry::groups).sum();
            let mut header = Params::default();
            header.word(base as usize).word(groups as usize).word(0).word(0);
            family.launch(index, chunk, &header)?;
            base += groups;
        }
    }
    map::pointwise("root", [0; 2], [&reduce::sum(&sums, Axes::first(1), false)?], Root)
}

#[derive(Clone, Copy)]
struct Root;

impl Pointwise<1> for Root {
    fn apply<R: Real>(&self, [x]: [R; 1]) -> R {
        x.sqrt()
    }
}

/// Multiplies arrays on the GPU by the scalar `factor`, in place; sets `found` to 1 if any is not finite.
fn scale_by(arrays: &[&Array], factor: &Array, found: &Array) -> Result<()> {
    let factor = if is_flat(factor) { factor.clone() } else { convert(factor, DType::F32)? };
    let flat = |x: &Array| if is_flat(x) { Ok(x.clone()) } else { convert(x, DType::F32) };
    let flat: Vec<Array> = arrays.iter().map(|x| flat(x)).collect::<Result<_>>()?;
    let (before, after) = ([("factor", factor.buffer()), ("found", found.buffer())], []);
    let family = Family {
        name: "scale",
        source: include_str!("../../../shaders/optim_scale.wgsl"),
        dtype: DType::F32,
        without: None,
        before: &before,
        roles: &[writes("x")],
        after: &after,
    };
    launch_all(&family, index_of(found)?, &entries(&flat), &Params::default(), usize::MAX)?;
    for (x, moved) in arrays.iter().zip(&flat).filter(|(x, _)| !is_flat(x)) {
        copy_into(x, &cast(moved, x.dtype())?)?;
    }
    Ok(())
}

/// Multiplies every array by the scalar `factor`, in place, without waiting for the GPU.
pub fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    let unread = Array::empty(Shape::new(&[1])?, DType::I32, factor.device())?;
    scale_by(arrays, factor, &unread)
}

/// Multiplies every array by `factor`, in place; writes to `found`, an int32, whether any element was
/// infinite or NaN.
pub fn unscale(arrays: &[&Array], factor: f64, found: &Array) -> Result<()> {
    super::create::fill(found, 0.0)?;
    // The factor is passed as data: as text, each new value would compile a kernel.
    scale_by(arrays, &scalar(index_of(found)?, factor, DType::F32)?, found)
}
