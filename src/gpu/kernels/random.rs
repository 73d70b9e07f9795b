//! Random numbers on the GPU; the counterpart of `src/cpu/random.rs`, with the same streams.

use super::create::drawn;
use super::pieces::in_line;
use super::prelude::*;
use crate::array::buffer::Device;

/// Uniform numbers in `[0, 1)`: element `i` depends only on the seed and on `offset + i / 4`.
pub fn uniform(index: u8, shape: Shape, dtype: DType, seed: u64, offset: u64) -> Result<Array> {
    draw(index, "draw_uniform", shape, dtype, seed, offset, (0, 1))
}

/// Standard normal numbers (Box and Muller).
pub fn normal(index: u8, shape: Shape, dtype: DType, seed: u64, offset: u64) -> Result<Array> {
    draw(index, "draw_normal", shape, dtype, seed, offset, (0, 1))
}

/// Uniform integers in `low..high`; the host draws those that do not fit into int32.
pub fn randint(
    index: u8, shape: Shape, dtype: DType, low: i64, high: i64, seed: u64, offset: u64,
) -> Result<Array> {
    let (Ok(first), Ok(span)) = (i32::try_from(low), u32::try_from(i128::from(high) - i128::from(low)))
    else {
        return drawn(index, shape, dtype, [low, high], seed, offset);
    };
    cast(&draw(index, "draw_randint", shape, DType::I32, seed, offset, (first, span))?, dtype)
}

fn draw(
    index: u8, entry: &'static str, shape: Shape, dtype: DType, seed: u64, offset: u64,
    (low, span): (i32, u32),
) -> Result<Array> {
    let out = Array::empty(shape, dtype, Device::Gpu(index))?;
    // Of the mantissa.
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    in_line(&out, &|first, piece| {
        // Four numbers belong to each step of the stream.
        let offset = offset.wrapping_add(first as u64 / 4);
        let mut run = Dispatch::new(entry, shader!("lib/philox", "random"), DType::F32);
        run.entry(entry).output("out", piece).number("DIGITS", digits);
        run.words([piece.numel()]).words([seed, seed >> 32, offset, offset >> 32].map(|n| n as usize));
        run.words([0; 2]).floats([0.0, 1.0]).words([low as usize, span as usize]);
        run.launch(piece.numel().div_ceil(1024))
    })?;
    Ok(out)
}
