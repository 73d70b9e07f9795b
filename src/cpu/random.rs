//! Random numbers by Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), a counter-based generator.
//!
//! Word `i` of a stream is word `i % 4` of the block with counter `offset + i / 4` and the seed as key. So
//! any part of a tensor can be generated separately and repeatedly, by any thread, on any device.
//! `shaders/random.wgsl` generates the same stream.

use crate::cpu::prelude::*;
use crate::cpu::run::isa::{Body, LoopFloat, Scalar};

/// Minimum number of blocks per thread.
const GRAIN: usize = 1 << 12;

/// Returns one block: four random words from a counter and a key.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let a = c[0] as u64 * 0xD251_1F53;
        let b = c[2] as u64 * 0xCD9E_8D57;
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Returns block `counter` of the stream of `seed`.
#[inline(always)]
fn block(seed: u64, counter: u64) -> [u32; 4] {
    philox([counter as u32, (counter >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])
}

/// Fills `out` block by block: `make` converts the words of one block to `N` elements.
fn fill<T: Element, const N: usize>(
    out: &mut Array, seed: u64, offset: u64, make: impl Fn([u32; 4]) -> [T; N] + Sync,
) -> Result<()> {
    let slice = out.slice_mut::<T>()?;
    let total = slice.len();
    let to = Shared::new(slice.as_mut_ptr());
    parallel_for(total.div_ceil(N), GRAIN, |range| {
        for b in range {
            let values = make(block(seed, offset.wrapping_add(b as u64)));
            for (k, &v) in values.iter().enumerate().take(total - b * N) {
                // SAFETY: inside `out`, and only this block writes the element.
                unsafe { to.get().add(b * N + k).write(v) };
            }
        }
    });
    Ok(())
}

/// Converts a word to a float32 in `(0, 1]` with 24 random bits.
#[inline(always)]
fn unit_above_zero(word: u32) -> f32 {
    ((word >> 8) + 1) as f32 * (1.0 / 16_777_216.0)
}

/// Converts a word to a float32 in `[0, 1)` with 24 random bits.
#[inline(always)]
fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Converts two words to a float64 in `[0, 1)` with 53 random bits.
#[inline(always)]
fn unit_double(a: u32, b: u32) -> f64 {
    ((a >> 5) as f64 * 67_108_864.0 + (b >> 6) as f64) * (1.0 / 9_007_199_254_740_992.0)
}

/// Returns uniform numbers in `[0, 1)`. Halves are rounded float32 numbers, rounded down if they would be 1.
pub fn uniform(shape: Shape, dtype: DType, seed: u64, offset: u64) -> Result<Array> {
    let wide = dtype.compute();
    let mut out = Array::empty(shape, wide, Device::Cpu)?;
    if wide == DType::F64 {
        fill(&mut out, seed, offset, |w| [unit_double(w[0], w[1]), unit_double(w[2], w[3])])?;
        return Ok(out);
    }
    let top = match dtype {
        DType::F16 => 1.0 - 1.0 / 2048.0,
        DType::BF16 => 1.0 - 1.0 / 256.0,
        _ => 1.0,
    };
    fill(&mut out, seed, offset, |w| w.map(|w| unit(w).min(top)))?;
    cast(&out, dtype)
}

/// The Box-Muller transform of consecutive blocks, in float32.
struct BoxMuller<'a> {
    out: &'a mut [f32],
    seed: u64,
    counter: u64,
}

/// Pairs per pass: their radii and angles stay in the L1 cache.
const PASS: usize = 128;

impl Body<f32> for BoxMuller<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: LoopFloat<Float = f32>>(self) {
        let (mut first, mut second) = ([0.0f32; PASS], [0.0f32; PASS]);
        for (pass, part) in self.out.chunks_mut(2 * PASS).enumerate() {
            for b in 0..part.len().div_ceil(4) {
                let w = block(self.seed, self.counter.wrapping_add((pass * PASS / 2 + b) as u64));
                first[2 * b] = unit_above_zero(w[0]);
                second[2 * b] = unit(w[1]);
                first[2 * b + 1] = unit_above_zero(w[2]);
                second[2 * b + 1] = unit(w[3]);
            }
            let pairs = part.len().div_ceil(2);
            for i in 0..pairs {
                let radius = (-2.0 * L::new(first[i]).log()).sqrt();
                let angle = std::f64::consts::TAU * L::new(second[i]);
                first[i] = (radius * angle.cos()).get();
                second[i] = (radius * angle.sin()).get();
            }
            for (i, pair) in part.chunks_mut(2).enumerate() {
                pair[0] = first[i];
                if let Some(z) = pair.get_mut(1) {
                    *z = second[i];
                }
            }
        }
    }
}

/// Returns standard normal numbers by the Box-Muller transform.
pub fn normal(shape: Shape, dtype: DType, seed: u64, offset: u64) -> Result<Array> {
    let mut out = Array::empty(shape, dtype.compute(), Device::Cpu)?;
    if dtype == DType::F64 {
        fill(&mut out, seed, offset, |w| {
            let (u, v) = (1.0 - unit_double(w[0], w[1]), unit_double(w[2], w[3]));
            let (radius, angle) = ((-2.0 * u.ln()).sqrt(), std::f64::consts::TAU * v);
            [radius * angle.cos(), radius * angle.sin()]
        })?;
        return Ok(out);
    }
    let slice = out.slice_mut::<f32>()?;
    let total = slice.len();
    let to = Shared::new(slice.as_mut_ptr());
    // Chunks start at multiples of the grain in blocks, so the passes are the same for any number of threads.
    parallel_for(total.div_ceil(4), GRAIN, |range| {
        let (start, end) = (range.start * 4, (range.end * 4).min(total));
        // SAFETY: inside `out`, and only this chunk writes these elements.
        let part = unsafe { std::slice::from_raw_parts_mut(to.get().add(start), end - start) };
        f32::run(BoxMuller { out: part, seed, counter: offset.wrapping_add(range.start as u64) });
    });
    cast(&out, dtype)
}

/// Returns uniform integers in `[low, high)`, by multiplication and shift: one word each, two for ranges
/// above 2^32. The bias is below 2^-32 of the range.
pub fn randint(shape: Shape, dtype: DType, low: i64, high: i64, seed: u64, offset: u64) -> Result<Array> {
    let span = high.wrapping_sub(low) as u64;
    let mut out = Array::empty(shape, DType::I64, Device::Cpu)?;
    if span > 1 << 32 {
        let wide = |a: u32, b: u32| {
            let word = (a as u64) << 32 | b as u64;
            low.wrapping_add(((word as u128 * span as u128) >> 64) as i64)
        };
        fill(&mut out, seed, offset, |w| [wide(w[0], w[1]), wide(w[2], w[3])])?;
    } else {
        fill(&mut out, seed, offset, |w| w.map(|w| low.wrapping_add(((w as u64 * span) >> 32) as i64)))?;
    }
    cast(&out, dtype)
}

/// Returns `0..n` in random order as int64, by the Fisher-Yates shuffle with two words per step.
pub fn permutation(n: usize, seed: u64, offset: u64) -> Result<Array> {
    let mut out = Array::empty(Shape::new(&[n])?, DType::I64, Device::Cpu)?;
    let order = out.slice_mut::<i64>()?;
    order.iter_mut().zip(0..).for_each(|(slot, i)| *slot = i);
    for i in (1..n).rev() {
        let step = n - 1 - i;
        let w = block(seed, offset.wrapping_add(step as u64 / 2));
        let pair = if step.is_multiple_of(2) { [w[0], w[1]] } else { [w[2], w[3]] };
        let word = (pair[0] as u64) << 32 | pair[1] as u64;
        order.swap(i, ((word as u128 * (i as u128 + 1)) >> 64) as usize);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    }

    #[test]
    fn moments_and_ranges() -> Result<()> {
        let n = 100_000;
        let shape = Shape::new(&[n])?;
        let u = uniform(shape, DType::F32, 1, 0)?;
        let mean = u.slice::<f32>()?.iter().map(|&v| v as f64).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005 && u.slice::<f32>()?.iter().all(|v| (0.0..1.0).contains(v)));
        for dtype in [DType::F32, DType::F64] {
            let z = cast(&normal(shape, dtype, 2, 7)?, DType::F64)?;
            let z = z.slice::<f64>()?;
            let mean = z.iter().sum::<f64>() / n as f64;
            let variance = z.iter().map(|v| v * v).sum::<f64>() / n as f64;
            assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        }
        let r = randint(shape, DType::I64, -3, 4, 5, 0)?;
        assert!(r.slice::<i64>()?.iter().all(|v| (-3..4).contains(v)));
        let mut p = permutation(1000, 3, 0)?.slice::<i64>()?.to_vec();
        assert_ne!(p[..5], [0, 1, 2, 3, 4]);
        p.sort_unstable();
        assert_eq!(p, (0..1000).collect::<Vec<i64>>());
        Ok(())
    }

    #[test]
    fn a_stream_continues_where_it_was_left() -> Result<()> {
        let whole = normal(Shape::new(&[4096 * 12])?, DType::F32, 9, 5)?;
        let rest = normal(Shape::new(&[4096 * 8])?, DType::F32, 9, 5 + 4096)?;
        assert_eq!(whole.slice::<f32>()?[4096 * 4..], *rest.slice::<f32>()?);
        Ok(())
    }
}
