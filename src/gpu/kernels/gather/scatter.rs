//! The transposes of reading along an axis: sums of what an index sends to a place, in its order.

use super::{Places, indices};
use crate::array::buffer::Buffer;
use crate::gpu::kernels::copy::flat;
use crate::gpu::kernels::create::arange;
use crate::gpu::kernels::map::pointwise_int;
use crate::gpu::kernels::parts::{ROUNDS, part_of, sum_of_parts};
use crate::gpu::kernels::pieces::{bound_or_copied, halves, in_a_piece, joined, outermost};
use crate::gpu::kernels::prelude::*;
use crate::gpu::kernels::search::starts;
use crate::gpu::kernels::sort::order_up_to;
use crate::gpu::{scalar, status};
use crate::math::real::{Integer, PointwiseInt};

/// The transpose of [`super::take`]: adds `g` to zeros of `shape` at `idx` along `axis`, in their order.
pub fn take_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    add_rows(g, &indices(idx)?, axis, shape, Places::all(shape.at(axis)))
}

/// [`take_add`] at some places of the axis.
fn add_rows(g: &Array, idx: &Array, axis: usize, shape: &Shape, places: Places) -> Result<Array> {
    let (length, most) = (idx.numel(), in_a_piece(g)?);
    // One more for the end of the last row.
    if let Some(at) = outermost(shape).filter(|_| shape.numel() >= most) {
        let [a, b] = halves(shape.at(at), 1).map(|part| {
            let own = &shape.with(at, part.1);
            if at == axis {
                return add_rows(g, idx, axis, own, places.part(part));
            }
            let of_g = if at < axis { at } else { at + idx.rank() - 1 };
            add_rows(&part_of(g, of_g, part)?, idx, axis, own, places)
        });
        return joined(&a?, &b?, at);
    }
    let outer: usize = shape.iter().take(axis).product();
    let inner: usize = shape.iter().skip(axis + 1).product();
    let each = ROUNDS.min(most / (outer * inner).max(1)).max(1);
    if length > each {
        let (rows, idx) = (whole(g, shape.with(axis, length))?, whole(idx, Shape::new(&[length])?)?);
        let rows = cast(&rows, arithmetic(g.dtype()))?;
        return sum_of_parts(length, each, g.dtype(), |part| {
            add_rows(&part_of(&rows, axis, part)?, &part_of(&idx, 0, part)?, axis, shape, places)
        });
    }
    let dtype = dtype_of_rows(g.dtype(), &[inner]);
    let (g, idx) = (contiguous(&bound_or_copied(g)?)?, contiguous(&bound_or_copied(idx)?)?);
    let out = Array::empty(*shape, dtype, g.device())?;
    let (index, size) = (index_of(&g)?, shape.at(axis));
    let report = status(index, "take", places.size, true)?;
    let groups = outer * size * inner.div_ceil(256 * per_word(dtype));
    if groups * length > UNSORTED {
        let at = placed(&idx, places, Place { below: false })?;
        return add_sorted(&g, &idx, &at, out, &report, [outer, length, inner], places);
    }
    let mut run = Dispatch::new("scatter_rows", shader!("lib/places", "scatter_rows"), g.dtype());
    run.reads(&idx).input("src", &g).output("out", &out).reports(&report);
    run.words([outer, length, inner, idx.offset(), g.offset()]).words(places.words());
    run.launch(groups)?;
    cast(&out, g.dtype())
}

/// The most pairs of a workgroup, or an element, and an index that it looks at for which nothing is sorted.
const UNSORTED: usize = 1 << 24;

/// Adds rows of `g`, of these outer, indexed and inner lengths, to zeros in `out`, in the order of the
/// indices; returns it in the dtype of `g`. `at` has the places of the indices here, with as many as are here
/// for one elsewhere, and one more for one outside of the axis.
fn add_sorted(
    g: &Array, idx: &Array, at: &Array, out: Array, report: &Buffer, dims: [usize; 3], places: Places,
) -> Result<Array> {
    let order = order_up_to(at, places.here + 1)?;
    let starts = starts(&super::gather(at, &order, 0)?, places.here)?;
    let mut run = Dispatch::new("scatter_sorted", shader!("lib/places", "scatter_sorted"), g.dtype());
    run.reads(idx).reads(&order).reads(&starts).input("src", g).output("out", &out).reports(report);
    run.words(dims).words([idx.offset(), g.offset()]).words(places.words());
    run.launch(words_of(&out).div_ceil(256))?;
    cast(&out, g.dtype())
}

/// Which of the places here each index names, as `place` says.
fn placed(idx: &Array, places: Places, place: Place) -> Result<Array> {
    let number = |n: usize| scalar(index_of(idx)?, n as f64, DType::I32);
    let [size, first, here] = places.words().map(number);
    pointwise_int("place", u64::from(place.below), [idx, &size?, &first?, &here?], place)
}

/// The place that an index names, from the first one here on. For one elsewhere the number of those here, and
/// one more for an index outside of the axis; `below`: -1 and -2.
#[derive(Clone, Copy)]
struct Place {
    below: bool,
}

impl PointwiseInt<4> for Place {
    fn apply<I: Integer>(&self, [x, size, first, here]: [I; 4]) -> I {
        let (one, sign) = (I::lit(1), |x: I| x.shr(I::lit(31)));
        // -1 where a number is none of 0 to n - 1, else 0.
        let is_beyond = |x: I, n: I| sign(x.or(n.sub(one).sub(x)));
        let place = x.add(size.and(sign(x)));
        let (is_outside, own) = (is_beyond(place, size), place.sub(first));
        let is_elsewhere = is_beyond(own, here);
        let found = own.and(is_elsewhere.xor(I::lit(-1)));
        if self.below {
            return found.add(is_elsewhere).add(is_outside);
        }
        found.add(here.and(is_elsewhere)).sub(is_outside)
    }
}

/// The place in an array of `count` elements that lies `own` steps of the axis behind `base`; `count`, or one
/// more, where `own` is -1 or -2.
#[derive(Clone, Copy)]
struct PlaceOf;

impl PointwiseInt<4> for PlaceOf {
    fn apply<I: Integer>(&self, [own, base, step, count]: [I; 4]) -> I {
        let is_none = own.shr(I::lit(31));
        let found = base.add(own.mul(step)).and(is_none.xor(I::lit(-1)));
        found.add(count.sub(I::lit(1)).sub(own).and(is_none))
    }
}

/// The transpose of [`super::gather`]: adds `g` to zeros of `shape`, in the order of the indices.
pub fn scatter_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    add_elements(g, &indices(idx)?, axis, shape, Places::all(shape.at(axis)))
}

/// [`scatter_add`] at some places of the axis.
fn add_elements(g: &Array, idx: &Array, axis: usize, shape: &Shape, places: Places) -> Result<Array> {
    let (length, most) = (g.dim(axis), in_a_piece(g)?);
    if let Some(at) = outermost(shape).filter(|_| shape.numel() >= most) {
        let [a, b] = halves(shape.at(at), 1).map(|part| {
            let own = &shape.with(at, part.1);
            if at == axis {
                return add_elements(g, idx, axis, own, places.part(part));
            }
            let start = part.0.min(g.dim(at));
            let part = (start, (part.0 + part.1).min(g.dim(at)) - start);
            add_elements(&part_of(g, at, part)?, &part_of(idx, at, part)?, axis, own, places)
        });
        return joined(&a?, &b?, at);
    }
    // An invocation that owns a word of two elements loops over the axis for each.
    if length * per_word(g.dtype()) > 2 * ROUNDS - 256 || g.numel() > most {
        let wide = cast(g, arithmetic(g.dtype()))?;
        let each = ROUNDS.min(most * length / g.numel()).max(1);
        return sum_of_parts(length, each, g.dtype(), |part| {
            add_elements(&part_of(&wide, axis, part)?, &part_of(idx, axis, part)?, axis, shape, places)
        });
    }
    let (g, idx) = (&bound_or_copied(g)?, &bound_or_copied(idx)?);
    let (index, count) = (index_of(g)?, shape.numel());
    let report = status(index, "gather", places.size, true)?;
    if count.saturating_mul(length) > UNSORTED && count <= i32::MAX as usize {
        let number = |n: usize| scalar(index, n as f64, DType::I32);
        let mut strides = shape.strides();
        let step = number(strides[axis] as usize)?;
        // Places on the other axes.
        strides[axis] = 0;
        let base = arange(index, 0.0, 1.0, count, DType::I32)?;
        let base = base.with_layout(g.shape(), &strides[..shape.rank()], 0)?;
        let own = placed(idx, places, Place { below: true })?;
        let at =
            flat(&pointwise_int("place_of", 0, [&own, &base, &step, &number(count)?], PlaceOf)?, DType::I32)?;
        let (all, dtype) = (at.numel(), dtype_of_rows(g.dtype(), &[1]));
        let at = at.with_layout(Shape::new(&[all])?, &[1], 0)?;
        let out = Array::empty(*shape, dtype, g.device())?;
        let (g, idx) = (contiguous(g)?, contiguous(idx)?);
        let places = Places { first: 0, here: count, ..places };
        return add_sorted(&g, &idx, &at, out, &report, [1, all, 1], places);
    }
    let out = Array::empty(*shape, g.dtype(), g.device())?;
    // `x` is not read: the result starts from zero.
    let mut run = Dispatch::new("scatter_add", shader!("lib/places", "scatter"), g.dtype());
    run.input("x", g)
        .reads(idx)
        .input("src", g)
        .output("out", &out)
        .reports(&report)
        .flag("FROM_ZERO", true)
        .lengths(shape)
        .lengths(&g.shape())
        .eight([])
        .strides(g)
        .strides(idx)
        .words([shape.rank(), out.numel(), 0, g.offset(), idx.offset(), axis, length])
        .words(places.words());
    run.launch(words_of(&out).div_ceil(256))?;
    Ok(out)
}

/// Returns the elements in row-major order as an array of this shape.
fn whole(x: &Array, shape: Shape) -> Result<Array> {
    let strides = shape.strides();
    let x = contiguous(x)?;
    x.with_layout(shape, &strides[..shape.rank()], x.offset())
}
