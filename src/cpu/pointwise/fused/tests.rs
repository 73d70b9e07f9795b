use super::*;
use crate::arguments::logic::Relation;
use crate::array::buffer::Device;
use crate::cpu::pointwise::logic::{compare, compare_fn, select, select_fn};
use crate::cpu::pointwise::map::{element_fn, pointwise};
use crate::cpu::run::testing::{Affine, same_for_any_threads, sample, shape, values};
use smallvec::smallvec;

/// `b = 2 x + y; c = 3 b + b; where(c < y, c, x)`, with `b` for a result, too.
#[test]
fn a_chain_is_its_loops() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        for n in [1, 7, TILE - 1, TILE, TILE + 1, 3 * GRAIN + 5] {
            let (x, y) = (sample(&[n], dtype)?, sample(&[1], dtype)?);
            let affine = |factor| element_fn::<2, _>(Affine(factor), dtype, true);
            let (Some(twice), Some(thrice)) = (affine(2.0), affine(3.0)) else { continue };
            let (Some(below), Some(choose)) = (compare_fn(dtype, Relation::Lt), select_fn(dtype)) else {
                continue;
            };
            let feed = if n == 1 { Feed::Dense } else { Feed::Single };
            let mut chain =
                Chain::new(n, vec![(Feed::Dense, dtype), (feed, dtype)], vec![], vec![dtype; 2], false);
            let (b, out, c, mask) = (chain.output(0), chain.output(1), chain.tile(0), chain.tile(1));
            // SAFETY: the loops are for these dtypes, and what they read was made before.
            unsafe {
                chain.push(twice, smallvec![0, 1], b);
                chain.push(thrice, smallvec![b, b], c);
                chain.push(below, smallvec![c, 1], mask);
                chain.push(choose, smallvec![mask, c, 0], out);
            }
            let chained = || -> Result<Array> {
                let made = Array::empty(shape(&[2, n]), dtype, Device::Cpu)?;
                let row = |i| made.slice_view(&[i, 0], &[1, 1], &shape(&[1, n]));
                // SAFETY: both are rows of `made`, contiguous, and apart.
                unsafe { chain.run(&[&x, &y], &[&row(0)?, &row(1)?])? };
                Ok(made)
            };
            let alone = pointwise([&x, &y], Affine(2.0))?;
            let c_alone = pointwise([&alone, &alone], Affine(3.0))?;
            let mut expected = values(&alone);
            expected.extend(values(&select(&compare(&c_alone, &y, Relation::Lt)?, &c_alone, &x)?));
            assert_eq!(values(&same_for_any_threads(chained)?), expected, "{n} {dtype}");
        }
    }
    Ok(())
}
