//! The cross product of vectors of length 3.

use super::complex::ComponentFloat;
use super::copy::contiguous;
use super::layout::{common_dtype, wrong_dtype};
use crate::arguments::complex::Gate;
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::{DType, Element};
use crate::cpu::run::isa::{PlainBody, run_plain};
use crate::cpu::run::threads::{GRAIN, Shared, parallel_for};
use crate::error::Result;

/// Computes `x` cross `y` along `axis`, of operands of one shape, whose length there is 3.
pub fn cross(x: &Array, y: &Array, axis: usize, gate: Gate) -> Result<Array> {
    match common_dtype(&[x, y])? {
        DType::F32 => typed::<f32>(x, y, axis, gate),
        DType::F64 => typed::<f64>(x, y, axis, gate),
        other => Err(wrong_dtype("cross product", other)),
    }
}

fn typed<T: ComponentFloat + Element>(x: &Array, y: &Array, axis: usize, gate: Gate) -> Result<Array> {
    let mut out = Array::empty(x.shape(), T::DTYPE, Device::Cpu)?;
    let (x, y) = (contiguous(x)?, contiguous(y)?);
    let inner: usize = (axis + 1..x.rank()).map(|i| x.dim(i)).product();
    let (x, y, to) = (x.slice::<T>()?, y.slice::<T>()?, out.slice_mut::<T>()?);
    let (size, count) = (3 * inner, x.len() / (3 * inner).max(1));
    let to = Shared::new(to.as_mut_ptr());
    parallel_for(count, (GRAIN / size.max(1)).max(1), |range| {
        let part = range.start * size..range.end * size;
        // SAFETY: ranges of blocks are disjoint parts of the output.
        let out = unsafe { to.part(part.start, part.len()) };
        run_plain(Blocks { x: &x[part.clone()], y: &y[part], out, inner, gate });
    });
    Ok(out)
}

/// Blocks of three rows of `inner` numbers, the components.
struct Blocks<'a, T> {
    x: &'a [T],
    y: &'a [T],
    out: &'a mut [T],
    inner: usize,
    gate: Gate,
}

impl<T: ComponentFloat> PlainBody for Blocks<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.gate {
            Gate::Open => self.each(|_, _, z| z),
            Gate::Left => self.each(|x, _, z| if x == T::default() { x } else { z }),
            Gate::Right => self.each(|_, y, z| if y == T::default() { y } else { z }),
        }
    }
}

impl<T: ComponentFloat> Blocks<'_, T> {
    #[inline(always)]
    fn each(self, gate: impl Fn(T, T, T) -> T) {
        // Vectors that lie one after the other need no loop within each.
        match self.inner {
            1 => self.rows(1, gate),
            n => self.rows(n, gate),
        }
    }

    #[inline(always)]
    fn rows(self, n: usize, gate: impl Fn(T, T, T) -> T) {
        let times = |x: T, y: T| gate(x, y, x * y);
        let blocks = self.x.chunks_exact(3 * n).zip(self.y.chunks_exact(3 * n));
        for ((x, y), out) in blocks.zip(self.out.chunks_exact_mut(3 * n)) {
            for i in 0..n {
                let ([a, b, c], [d, e, f]) = ([x[i], x[n + i], x[2 * n + i]], [y[i], y[n + i], y[2 * n + i]]);
                out[i] = times(b, f) - times(c, e);
                out[n + i] = times(c, d) - times(a, f);
                out[2 * n + i] = times(a, e) - times(b, d);
            }
        }
    }
}
