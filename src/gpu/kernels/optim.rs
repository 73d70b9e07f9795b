//! Optimiser steps and gradient scaling on the GPU, fused, in place; the counterpart of `src/cpu/optim.rs`.
//!
//! One dispatch updates all parameters of a group (`src/gpu/kernels/many.rs`). The kernels compute in
//! float32; parameters of 16 bits are rounded once.

use super::copy::{copy_into, flat, is_flat};
use super::many::{Family, ManyItem};
use super::map;
use super::prelude::*;
use super::reduce;
use crate::arguments::optim::{Adam, Elementwise, Sgd, Slot, UpdateRule, slots as all_slots};
use crate::array::shape::Axes;
use crate::gpu::scalar;
use crate::gpu::shader::wgsl;
use crate::math::real::{Pointwise, Real};
use crate::math::updates::{Move, Visit};
use smallvec::SmallVec;

/// Converts a gradient to the form that kernels read: contiguous, in a float dtype.
fn flat_gradient(g: &Array) -> Result<Array> {
    flat(g, if g.dtype().is_float() { g.dtype() } else { DType::F32 })
}

/// Writes back the parameters of which kernels have changed a copy.
fn write_back<'a>(pairs: impl Iterator<Item = (&'a Array, &'a Array)>) -> Result<()> {
    pairs
        .filter(|(x, _)| !is_flat(x, DType::F32))
        .try_for_each(|(x, moved)| copy_into(x, &cast(moved, x.dtype())?))
}

/// Performs one step of `rule`, in place, on parameters that share no memory: one dispatch per dtype of
/// gradients, or more if bindings are short. Nothing changes if `found`, an int32 on the GPU, is not 0.
pub fn step(slots: &[Slot], rule: &UpdateRule, found: Option<&Array>) -> Result<()> {
    step_by(slots, rule, found, usize::MAX)
}

/// [`step`] with at most `most` parameters per dispatch.
pub(super) fn step_by(slots: &[Slot], rule: &UpdateRule, found: Option<&Array>, most: usize) -> Result<()> {
    let width = slots.first().map_or(1, |slot| slot.state.len() + 1);
    // Copies of what kernels cannot take as it is.
    let mut arrays: Vec<Array> = Vec::new();
    for slot in slots {
        for x in slot.state {
            arrays.push(flat(x, DType::F32)?);
        }
        arrays.push(flat_gradient(slot.grad)?);
    }
    let (arrays, steps): (Vec<&Array>, Vec<i32>) =
        (arrays.iter().collect(), slots.iter().map(|s| s.step).collect());
    let moved: Vec<Slot> = all_slots(&arrays, width, &steps).collect();
    let mut rest: SmallVec<[&Slot; 32]> = moved.iter().filter(|s| s.param().numel() > 0).collect();
    while let Some(dtype) = rest.first().map(|s| s.grad.dtype()) {
        let together: SmallVec<[&Slot; 32]> =
            rest.iter().copied().filter(|s| s.grad.dtype() == dtype).collect();
        rest.retain(|s| s.grad.dtype() != dtype);
        match rule {
            UpdateRule::Sgd(s) => sgd(&together, dtype, s, found, most)?,
            UpdateRule::Adam(a) => adam(&together, dtype, a, found, most)?,
            UpdateRule::Elementwise(e) => elementwise(&together, dtype, e, found, most)?,
        }
    }
    let pairs = slots.iter().zip(&moved).flat_map(|(slot, moved)| slot.state.iter().zip(moved.state));
    write_back(pairs.map(|(x, moved)| (*x, *moved)))
}

/// The entries of slots, whose arrays are the gradient, then the state; `words` are those of a slot.
fn entries_of<'a>(slots: &[&Slot<'a>], words: impl Fn(&Slot) -> [u32; 2]) -> Vec<ManyItem<'a>> {
    let entry = |slot: &&Slot<'a>| ManyItem {
        arrays: [slot.grad].into_iter().chain(slot.state.iter().copied()).collect(),
        words: words(slot),
    };
    slots.iter().map(entry).collect()
}

/// What is bound as `found`: any array if none is given.
fn guard<'a>(found: Option<&'a Array>, entries: &[ManyItem<'a>]) -> (Option<&'a Array>, Option<&'a Array>) {
    (found.or_else(|| entries.first().map(|entry| entry.arrays[0])), None)
}

/// The flags of both rules.
fn flags(maximize: bool, found: Option<&Array>) -> usize {
    usize::from(maximize) << 1 | usize::from(found.is_some()) << 2
}

fn sgd(slots: &[&Slot], dtype: DType, s: &Sgd, found: Option<&Array>, most: usize) -> Result<()> {
    let entries = entries_of(slots, |slot| [u32::from(slot.step == 1), 0]);
    let has_momentum = entries.iter().all(|e| e.arrays.len() == 3);
    let family = Family {
        name: "sgd",
        source: shader!("lib/tensors", "lib/optim", "optim_sgd"),
        gradient: Some(dtype),
        option: Some(("MOMENTUM", has_momentum)),
        absent: if has_momentum { &[] } else { &["momentum"] },
        before: guard(found, &entries),
        ..Family::default()
    };
    family.launch(&entries, most, |run, _, _| {
        run.words([usize::from(s.nesterov) | flags(s.maximize, found)]);
        run.floats([s.lr, s.weight_decay, s.momentum, 1.0 - s.dampening]).words([0; 3]);
    })
}

fn adam(slots: &[&Slot], dtype: DType, a: &Adam, found: Option<&Array>, most: usize) -> Result<()> {
    let entries = entries_of(slots, |slot| {
        let (size, root) = a.corrections(slot.step);
        [(size as f32).to_bits(), (root as f32).to_bits()]
    });
    let has_largest = entries.iter().all(|e| e.arrays.len() == 5);
    let family = Family {
        name: "adam",
        source: shader!("lib/tensors", "lib/optim", "optim_adam"),
        gradient: Some(dtype),
        option: Some(("AMSGRAD", has_largest)),
        absent: if has_largest { &[] } else { &["largest"] },
        before: guard(found, &entries),
        ..Family::default()
    };
    let (shrink, decay) = a.decay();
    family.launch(&entries, most, |run, _, _| {
        run.words([flags(a.maximize, found)]).floats([decay, shrink]);
        run.floats([a.beta1, 1.0 - a.beta1, a.beta2, 1.0 - a.beta2, a.eps]);
    })
}

/// The text of a formula: parameter and state, gradient, numbers, in the order of `fn op`.
struct Text<'a>(&'a std::cell::RefCell<String>);

impl Visit for Text<'_> {
    fn visit<const STATE: usize, F: Move>(self, formula: F) {
        let head = "fn op(s: vec4<f32>, g: f32, a: vec4<f32>, b: vec2<f32>)";
        let parts = ["s.x", "s.y", "s.z", "s.w", "g", "a.x", "a.y", "a.z", "a.w", "b.x", "b.y"];
        self.0.replace(wgsl::of_four(head, &parts, &|v| {
            formula.apply(std::array::from_fn(|i| v[5 + i]), std::array::from_fn(|i| v[i]), v[4])
        }));
    }
}

fn elementwise(
    slots: &[&Slot], dtype: DType, e: &Elementwise, found: Option<&Array>, most: usize,
) -> Result<()> {
    let entries = entries_of(slots, |_| [0; 2]);
    let text = || {
        let text = std::cell::RefCell::default();
        e.formula.visit(Text(&text));
        Ok(text.into_inner())
    };
    let roles: &[&str] = &["first", "second", "third"];
    let family = Family {
        name: e.formula.class(),
        source: shader!("lib/tensors", "lib/optim", "optim_formula"),
        gradient: Some(dtype),
        absent: &roles[e.formula.states()..],
        rule: Some((&text, e.formula as u64)),
        before: guard(found, &entries),
        ..Family::default()
    };
    family.launch(&entries, most, |run, _, _| {
        run.words([flags(false, found)]).floats(e.preparation()).floats(e.numbers).words([0; 2]);
    })
}

/// The entries of arrays that are not empty.
fn entries(arrays: &[Array]) -> Vec<ManyItem<'_>> {
    let entry = |x| ManyItem { arrays: SmallVec::from_slice(&[x]), words: [0; 2] };
    arrays.iter().filter(|x| x.numel() > 0).map(entry).collect()
}

/// The square root of the sum of squares of all elements of all arrays, a 0-d float32 array on the GPU. One
/// dispatch reads the arrays (more for several dtypes or few bindings), one adds sums, one takes the root.
pub fn norm(arrays: &[&Array]) -> Result<Array> {
    let mut flat: Vec<Array> = arrays.iter().map(|g| flat_gradient(g)).collect::<Result<_>>()?;
    flat.sort_by_key(|g| g.dtype() as u8);
    let groups: usize = entries(&flat).iter().map(ManyItem::groups).sum();
    if groups == 0 {
        return super::create::full(index_of(arrays[0])?, Shape::SCALAR, 0.0, DType::F32);
    }
    let sums = Array::empty(Shape::new(&[groups])?, DType::F32, arrays[0].device())?;
    let mut written = 0;
    for same in flat.chunk_by(|a, b| a.dtype() == b.dtype()) {
        let family = Family {
            name: "squares",
            source: shader!("lib/tensors", "optim_squares"),
            gradient: Some(same[0].dtype()),
            after: Some(&sums),
            ..Family::default()
        };
        let entries = entries(same);
        family.launch(&entries, usize::MAX, |run, base, groups| {
            run.words([written + base, groups, 0, 0]);
        })?;
        written += entries.iter().map(ManyItem::groups).sum::<usize>();
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
    let factor = flat(factor, DType::F32)?;
    let moved: Vec<Array> = arrays.iter().map(|x| flat(x, DType::F32)).collect::<Result<_>>()?;
    let family = Family {
        name: "scale",
        source: shader!("lib/tensors", "optim_scale"),
        before: (Some(&factor), Some(found)),
        ..Family::default()
    };
    family.launch(&entries(&moved), usize::MAX, |_, _, _| ())?;
    write_back(arrays.iter().copied().zip(&moved))
}

/// Multiplies every array by the scalar `factor`, in place, without waiting for the GPU.
pub fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    let unread = Array::empty(Shape::new(&[1])?, DType::I32, factor.device())?;
    scale_by(arrays, factor, &unread)
}

/// Multiplies every array by `factor`, in place; writes to `found`, int32, whether one was infinite or NaN.
pub fn unscale(arrays: &[&Array], factor: f64, found: &Array) -> Result<()> {
    super::create::fill(found, 0.0)?;
    // The factor is passed as data: as text, each new value would compile a kernel.
    scale_by(arrays, &scalar(index_of(found)?, factor, DType::F32)?, found)
}
