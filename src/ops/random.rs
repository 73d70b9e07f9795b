//! Random tensors, as operations without inputs: seed and position determine their numbers.

use crate::array::random::{self, State};
use crate::device::create_on;
use crate::interp::{self, Interp, Randomness, Tag, batch};
use crate::op::AtCall;
use crate::ops::prelude::*;
use crate::watch::script;
use std::sync::Arc;

/// The distribution drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Distribution {
    /// Uniform on `[0, 1)`.
    Uniform,
    /// Standard normal.
    Normal,
    /// Uniform integers in `[low, high)`.
    Integer {
        /// Smallest value.
        low: i64,
        /// One above the largest value.
        high: i64,
    },
    /// The integers below the length in random order, on the CPU.
    Permutation,
}

impl Distribution {
    /// The name of the public function that draws from it.
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Uniform => "rand",
            Distribution::Normal => "randn",
            Distribution::Integer { .. } => "randint",
            Distribution::Permutation => "randperm",
        }
    }
}

/// A tensor of random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Random {
    /// The distribution drawn from.
    pub distribution: Distribution,
    /// Shape of the result.
    pub shape: Shape,
    /// Dtype of the result.
    pub dtype: DType,
    /// Device of the result.
    pub device: Device,
    /// The stream and the position in it.
    pub state: AtCall<State>,
}

kernel! {
    Random, self.distribution.name(), |self, _x| {
        let Random { distribution, shape, dtype, state: AtCall(State { seed, offset }), device } = *self;
        match distribution {
            Distribution::Uniform => create_on!(device, random::uniform(shape, dtype, seed, offset)),
            Distribution::Normal => create_on!(device, random::normal(shape, dtype, seed, offset)),
            Distribution::Integer { low, high } =>
                create_on!(device, random::randint(shape, dtype, low, high, seed, offset)),
            Distribution::Permutation => crate::cpu::random::permutation(shape.numel(), seed, offset),
        }
    },
    random_state { Some(&mut self.state.0) }
}

impl Discrete for Random {
    fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(bind(*self, &[])?, None)])
    }
}

fn draw(distribution: Distribution, shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
    // Four 32-bit words per counter; float64 and wide ranges of integers take two words each.
    let wide = match distribution {
        Distribution::Integer { low, high } => high.wrapping_sub(low) as u64 > 1 << 32,
        _ => dtype == DType::F64,
    };
    let levels = own_numbers(distribution.name())?;
    let shape = batched(&shape, &levels)?;
    let words = shape.numel() as u64 * if wide { 2 } else { 1 };
    drawn(distribution, shape, dtype, device, random::take(words.div_ceil(4)), &levels)
}

/// The numbers from `state` on, of a shape with an axis for each of `levels`.
fn drawn(
    distribution: Distribution, shape: Shape, dtype: DType, device: Device, state: State, levels: &Levels,
) -> Result<Tensor> {
    let state = AtCall(state);
    Ok(spread(bind(Random { distribution, shape, dtype, device, state }, &[])?, levels))
}

/// Uniform float32 numbers on `[0, 1)` of this shape, from `state` on: those that [`reserve`] reserved with
/// the youngest level `since`.
pub fn uniform_at(shape: Shape, state: State, since: Tag, device: Device) -> Result<Tensor> {
    let levels = own_levels(since);
    drawn(Distribution::Uniform, batched(&shape, &levels)?, DType::F32, device, state, &levels)
}

/// Reserves `count` float32 numbers, per example for batch levels that want separate numbers. Returns their
/// start and the youngest such level: later levels, such as one over cotangents, share the numbers.
pub fn reserve(op: &str, count: u64) -> Result<(State, Tag)> {
    let levels = own_numbers(op)?;
    let words = levels.iter().fold(count, |n, (_, size)| n.saturating_mul(*size as u64));
    let youngest = levels.iter().map(|(level, _)| level.tag).max();
    Ok((random::take(words.div_ceil(4)), youngest.unwrap_or(0)))
}

/// The enclosing batch levels up to `since` whose examples have separate numbers, innermost first.
pub fn own_levels(since: Tag) -> Levels {
    if since == 0 || interp::is_plain() {
        return Levels::new();
    }
    let batches = interp::batches().into_iter().filter(|(level, ..)| level.tag <= since);
    let own = batches.filter(|(.., randomness)| *randomness == Randomness::Different);
    own.map(|(level, size, _)| (level, size)).collect()
}

/// Makes `x` a batched value of every enclosing level whose examples have separate numbers, even of levels it
/// does not depend on, so that random results are computed per example.
pub fn in_own_batches(x: &Tensor) -> Result<Tensor> {
    let levels = own_levels(Tag::MAX);
    if levels.is_empty() {
        return Ok(x.clone());
    }
    let ones = Shape::new(&vec![1; x.rank()])?;
    let zero = Tensor::zeros(batched(&ones, &levels)?, x.dtype(), x.device())?;
    x.add(&spread(zero, &levels))
}

/// The enclosing batch levels whose examples have separate numbers, innermost first; an error if unspecified.
fn own_numbers(op: &str) -> Result<Levels> {
    let mut levels = Levels::new();
    if interp::is_plain() {
        return Ok(levels);
    }
    for (level, size, randomness) in interp::batches() {
        match randomness {
            Randomness::Same => {}
            Randomness::Different => levels.push((level, size)),
            Randomness::Error => {
                return Err(Error::autodiff(format!(
                    "{op}: random numbers are drawn inside vmap, which does not know whether its {size} \
                     examples should share them; pass vmap(..., randomness='different') for numbers of \
                     their own, or 'same' for equal ones"
                )));
            }
        }
    }
    Ok(levels)
}

/// Batch levels and their sizes, innermost first.
pub type Levels = SmallVec<[(Arc<Interp>, usize); 2]>;

/// Prepends one axis per batch level to the shape, outermost first.
fn batched(shape: &Shape, levels: &Levels) -> Result<Shape> {
    levels.iter().try_fold(*shape, |shape, (_, size)| shape.inserted(0, *size))
}

/// Wraps numbers with the axes of `levels` in front as a batched value with the shape of one example.
fn spread(numbers: Tensor, levels: &Levels) -> Tensor {
    levels.iter().rev().fold(numbers, |x, (level, _)| batch::wrap(level, x, Some(0)))
}

impl Tensor {
    /// Uniform numbers on `[0, 1)`; complex ones have two such parts.
    pub fn rand(shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
        if dtype.is_complex() {
            return of_parts(|| Tensor::rand(shape, dtype.real(), device));
        }
        float_only("rand", dtype)?;
        draw(Distribution::Uniform, shape, dtype, device)
    }

    /// Standard normal numbers (Box and Muller 1958). The parts of complex ones have a variance of one half.
    pub fn randn(shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
        if dtype.is_complex() {
            let half = std::f64::consts::FRAC_1_SQRT_2;
            return of_parts(|| Tensor::randn(shape, dtype.real(), device)?.mul(half));
        }
        float_only("randn", dtype)?;
        draw(Distribution::Normal, shape, dtype, device)
    }

    /// Uniform integers in `[low, high)`.
    pub fn randint(low: i64, high: i64, shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
        if low >= high {
            return Err(Error::value(format!("randint: low must be below high, got {low} and {high}")));
        }
        if dtype.is_complex() {
            return Err(Error::dtype(format!("randint: a dtype of real numbers expected, got {dtype}")));
        }
        check_range("randint", low, high, dtype)?;
        draw(Distribution::Integer { low, high }, shape, dtype, device)
    }

    /// 1 with the probability given by each element, else 0, in the dtype of `self`.
    pub fn bernoulli(&self) -> Result<Tensor> {
        float_only("bernoulli", self.dtype())?;
        self.check_probabilities()?;
        let uniform = Tensor::rand(self.shape(), DType::F32, self.device())?;
        uniform.lt(&self.detach().cast(DType::F32)?)?.cast(self.dtype())?.depending_on(self)
    }

    /// The values, if they can be read without a transfer.
    fn readable(&self) -> Option<Tensor> {
        let x = self.concrete().filter(|x| x.device() == Device::Cpu && x.numel() > 0);
        x.map(|x| Tensor::from(x.clone()))
    }

    /// A value below 0 or, as `fits` tells of the largest, too large. That there is none is a truth value,
    /// which a program can look at.
    fn outside(&self, fits: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Option<f64>> {
        let (low, high) = (self.amin(None, false)?, self.amax(None, false)?);
        if low.ge(0.0)?.item()? != 0.0 && fits(&high)?.item()? != 0.0 {
            return Ok(None);
        }
        let low = low.item()?;
        Ok(Some(if low >= 0.0 { high.item()? } else { low }))
    }

    /// Raises for a value outside `[0, 1]`, if the values can be read without a transfer.
    fn check_probabilities(&self) -> Result<()> {
        let Some(x) = self.readable() else { return Ok(()) };
        let Some(bad) = x.outside(|x| x.le(1.0))? else { return Ok(()) };
        Err(Error::value(format!("bernoulli: probabilities between 0 and 1 expected, got {bad}")))
    }

    /// Draws `count` indices along the last axis of a vector or matrix, with probabilities proportional to
    /// the elements: int64 on the CPU, int32 on GPUs. Without replacement the indices of a row differ.
    pub fn multinomial(&self, count: usize, replacement: bool) -> Result<Tensor> {
        float_only("multinomial", self.dtype())?;
        if !matches!(self.rank(), 1 | 2) {
            return Err(Error::shape(format!(
                "multinomial: weights of shape (n,) or (rows, n) expected, got {}",
                self.shape()
            )));
        }
        let n = self.shape().at(self.rank() - 1);
        if count == 0 || n == 0 || (count > n && !replacement) {
            return Err(Error::value(format!(
                "multinomial: {count} draws from {n} categories are not possible; draw at least one, and \
                 without replacement at most as many as there are categories"
            )));
        }
        let wide = if self.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let weights = self.detach().cast(wide)?;
        weights.check_weights(if replacement { 1 } else { count })?;
        if replacement && count > 1 {
            return weights.draw_with_replacement(count);
        }
        // The first arrivals of exponential clocks with these rates (Efraimidis and Spirakis 2006).
        let uniform = Tensor::rand(self.shape(), wide, self.device())?;
        let arrival = uniform.neg()?.log1p()?.neg()?.maximum(1e-30)?;
        let keys = weights.div(&arrival)?;
        if count == 1 { keys.argmax(Some(-1), true) } else { Ok(keys.topk(count, -1, true)?.1) }
    }

    /// Draws by the inverse cumulative distribution: counts the categories that end before a uniform number.
    fn draw_with_replacement(&self, count: usize) -> Result<Tensor> {
        let sums = self.cumsum(-1)?;
        let ends = sums.div(&sums.narrow(-1, self.shape().at(self.rank() - 1) - 1, 1)?)?;
        let last = self.rank() - 1;
        let shape = self.shape().removed(last).inserted(last, count)?;
        let uniform = Tensor::rand(shape, self.dtype(), self.device())?;
        ends.unsqueeze(-2)?.le(&uniform.unsqueeze(-1)?)?.sum(Some(&[-1]), false)
    }

    /// Raises unless every row has only finite weights of at least 0, `least` of them above 0. Skips the
    /// check if it would cost a transfer.
    fn check_weights(&self, least: usize) -> Result<()> {
        let Some(weights) = self.readable() else { return Ok(()) };
        if let Some(bad) = weights.outside(|x| x.lt(f64::INFINITY))? {
            return Err(Error::value(format!(
                "multinomial: finite weights of at least 0 expected, got {bad}; softmax makes weights of \
                 any scores"
            )));
        }
        let fewest = weights.gt(0.0)?.sum(Some(&[-1]), false)?.amin(None, false)?;
        if fewest.ge(least as i64)?.item()? != 0.0 {
            return Ok(());
        }
        let fewest = fewest.item()?;
        Err(Error::value(format!(
            "multinomial: {least} categories with a weight above 0 needed in every row, got {fewest}"
        )))
    }

    /// The numbers `0..n` in random order, from the default generator: int64 on the CPU, int32 on GPUs.
    pub fn permutation(n: usize, device: Device) -> Result<Tensor> {
        if device != Device::Cpu {
            script::refuse(|| "randperm on a GPU, whose numbers the host makes; draw them on the CPU".into());
        }
        let levels = own_numbers("randperm")?;
        let (distribution, own) = (Distribution::Permutation, Shape::new(&[n])?);
        let shape = batched(&own, &levels)?;
        let count: usize = levels.iter().map(|(_, size)| size).product();
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let state = random::take((n as u64 * 2).div_ceil(4));
            rows.push(drawn(distribution, own, DType::I64, Device::Cpu, state, &Levels::new())?);
        }
        let order = match &rows[..] {
            [only] if levels.is_empty() => only.clone(),
            [] => Tensor::zeros(shape, DType::I64, Device::Cpu)?,
            rows => crate::ops::views::join::cat(rows, 0)?.reshape(&shape)?,
        };
        let order = match device {
            Device::Cpu => order,
            device => order.cast(DType::I32)?.to_device(device)?,
        };
        Ok(spread(order, &levels))
    }

    /// Zeros each element with probability `p` and scales the rest by `1 / (1 - p)`.
    pub fn dropout(&self, p: f64) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value(format!("dropout: the probability must lie in [0, 1], got {p}")));
        }
        if p == 0.0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul(0.0);
        }
        let uniform = Tensor::rand(self.shape(), DType::F32, self.device())?;
        let scale = uniform.ge(p)?.cast(self.dtype())?.div(1.0 - p)?;
        self.mul(&scale)
    }
}

/// Complex numbers whose parts are drawn one after the other.
fn of_parts(draw: impl Fn() -> Result<Tensor>) -> Result<Tensor> {
    let (real, imaginary) = (draw()?, draw()?);
    crate::ops::complex::join(&real, &imaginary)
}

/// Raises unless integers in `[low, high)` are numbers of this dtype.
pub fn check_range(name: &str, low: i64, high: i64, dtype: DType) -> Result<()> {
    let (least, most) = if dtype == DType::F16 { (-65504, 65504) } else { dtype.range() };
    if i128::from(low) >= least && i128::from(high) - 1 <= most {
        return Ok(());
    }
    Err(Error::value(format!(
        "{name}: numbers from {low} to {} do not fit into {dtype}, which holds {least} to {most}",
        high.saturating_sub(1)
    )))
}

fn float_only(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!("{op}: a floating point dtype expected, got {dtype}; use randint for integers")))
}
