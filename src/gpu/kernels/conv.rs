//! Convolution and its transposes on the GPU, as products of matrices (`shaders/conv.wgsl`), and max pooling
//! (`conv/pool.rs`); the counterpart of `src/cpu/conv/`.
//!
//! Which kernel computes a product, and how its sums are cut, depends only on the shapes.

mod pieces;
mod pool;

pub use pool::{max_pool, max_pool_add};

use super::matmul::{Epilogue, buffers, matmul_with, ways};
use super::pieces::{fit, in_a_piece, limit};
use super::prelude::*;
use super::reduce::sum;
use crate::array::shape::Axes;
use crate::array::window::{AXES, Window};
use pieces::Wanted;

/// Numbers of columns, or of terms of a sum: digits along the spatial axes, then one of channels or images.
struct Side {
    lengths: [usize; AXES],
    outer: usize,
    /// By how much the window moves with a digit.
    steps: [isize; AXES],
    /// Elements of `x` from one outer digit to the next.
    each: usize,
}

/// For every group, `out[row, column]` as the sum over k of `a[row, k]` times what the window of column and k
/// reads of `x`. The last numbers of the strides of `a` and of `to` are those of a row and of a group.
struct Products<'a> {
    op: &'static str,
    a: &'a Array,
    x: &'a Array,
    shape: Shape,
    rows: usize,
    groups: usize,
    /// The lengths of `x`, the position of the first window, elements of `x` from group to group.
    source: ([usize; AXES], [isize; AXES], usize),
    columns: Side,
    terms: Side,
    a_steps: [usize; AXES + 3],
    /// The lengths of the result; elements from one outer digit, row, and group to the next.
    to: ([usize; AXES], [usize; 3]),
    /// For a transpose by the input: the window, whose strides are not all 1.
    phases: Option<&'a Window>,
    /// Whether `a` has four steps of k from a multiple of four on as such four adjacent elements.
    fours: bool,
    /// Added to the rows of all groups.
    bias: Option<&'a Array>,
    flops: usize,
}

/// About as many workgroups as fill a large GPU; from this many large tiles on they pay off.
const GROUPS: usize = 96;
/// Threads that fill a large GPU.
const THREADS: usize = 1 << 15;
/// The most rows that threads compute by themselves: tiles would be empty for the most part.
const FEW_ROWS: usize = 2;
/// The most terms of a sum in one piece, for software adapters, which end long loops.
const TERMS: usize = 1 << 15;
/// The most terms of which `direct` makes a sum, in loops within loops.
const SHORT: usize = 1 << 13;

impl Products<'_> {
    /// The rows and columns of a tile.
    fn tile(&self, columns: usize, products: usize) -> [usize; 2] {
        let many = |m, n| self.rows.div_ceil(m) * columns.div_ceil(n) * products >= GROUPS;
        match (self.rows, columns) {
            (0..=32, _) => [32, 128],
            (_, 0..=32) => [128, 32],
            (65.., 65..) if many(128, 128) => [128, 128],
            (_, 65..) if many(64, 128) => [64, 128],
            _ => [64, 64],
        }
    }

    fn run(&self) -> Result<Array> {
        let dtype = self.x.dtype();
        if self.shape.numel() == 0 {
            return Array::empty(self.shape, dtype, self.x.device());
        }
        let all = |lengths: [usize; AXES]| lengths.iter().product::<usize>();
        let (mut steps, mut products) = ([1; AXES], self.groups);
        let mut terms = all(self.terms.lengths) * self.terms.outer;
        if let Some(window) = self.phases {
            // At most: a phase has a part of the window.
            terms = window.taps() * self.terms.outer;
            steps = std::array::from_fn(|i| window.stride[i].min(window.input[i]));
            products *= all(steps);
        }
        let columns = all(self.columns.lengths) * self.columns.outer;
        let by_tiles = self.rows > FEW_ROWS;
        let (way, [tile_m, tile_n]) = ways(self.x)?.of_tile(self.tile(columns, products));
        let way = if by_tiles { way } else { way.without_matrices() };
        let depth = 16;
        let tiles = [self.rows.div_ceil(tile_m), columns.div_ceil(tile_n)];
        let workers = products * if by_tiles { tiles[0] * tiles[1] } else { self.rows * columns.div_ceil(4) };
        let enough = if by_tiles { 2 * GROUPS } else { THREADS };
        let size = self.shape.numel();
        let most = (enough / workers).min(terms / (16 * depth)).min(limit(self.x)? / (4 * size));
        let parts = most.max(terms.div_ceil(TERMS)).max(1);
        let each = terms.div_ceil(parts).max(1).next_multiple_of(depth);
        let parts = if by_tiles { terms.div_ceil(each).max(1) } else { parts };
        // Elements that share a word are stored by one thread: neighbours in a row.
        let [_, row, _] = self.to.1;
        let made = if self.phases.is_some() || parts > 1 { DType::F32 } else { dtype_of_rows(dtype, &[row]) };
        let out = Array::empty(Shape::new(&[parts, size])?, made, self.x.device())?;

        let (a, x) = (contiguous(self.a)?, contiguous(self.x)?);
        let bias = self.bias.map(contiguous).transpose()?;
        let mut run = Dispatch::new(self.op, shader!("lib/tile", "lib/tile_threads", "conv"), dtype);
        run.text.halves(way);
        if self.fours && by_tiles && a.offset().is_multiple_of(4) {
            run.text.load_fours("a", dtype);
        } else {
            run.text.load("a", dtype);
        }
        run.reads(&a).input("x", &x).flag("BIAS", bias.is_some()).flag("PHASED", self.phases.is_some());
        match &bias {
            Some(bias) => run.input("bias", bias),
            None => run.fills(&x),
        };
        // A row is whole images, or all columns.
        let in_fours = self.phases.is_none() && row.is_multiple_of(4);
        run.flag("FOURS", in_fours);
        match in_fours {
            true => run.fours(&out),
            false => run.output("out", &out),
        };
        let mut eight = |first: [usize; AXES], at: usize, second: [isize; AXES], then: usize| {
            let four = |three: [isize; AXES], more: usize| three.into_iter().chain([more as isize]);
            run.eight(four(signed(first), at).chain(four(second, then)));
        };
        let (source, start, x_group) = self.source;
        eight(source, 0, start, 0);
        eight(self.columns.lengths, columns, self.columns.steps, self.columns.each);
        eight(self.terms.lengths, self.terms.outer, self.terms.steps, self.terms.each);
        let [z, y, x_step, outer, a_row, a_group] = self.a_steps;
        eight([z, y, x_step], outer, signed([a_row, a_group, self.rows]), 0);
        let (lengths, [outer, row, group]) = self.to;
        eight(lengths, outer, signed(steps), 0);
        let window = self.phases.unwrap_or(&Window::POINT);
        eight(window.kernel, 0, signed(window.dilation), 0);
        eight(window.stride, 0, [0; AXES], 0);
        run.words([products * parts, tiles[0], tiles[1], parts, each, a.offset(), x.offset(), x_group]);
        run.words([row, group, size, bias.as_ref().map_or(0, Array::offset)]).flops(self.flops);
        if by_tiles {
            run.number("TILE_M", tile_m).number("TILE_N", tile_n).number("DEPTH", depth);
            run.number("BUFFERS", buffers(way, [tile_m, tile_n]));
            run.flag("B_ALONG_K", self.op == "conv_weight");
            run.launch(workers * parts)?;
        } else {
            run.entry(if parts == 1 && terms <= SHORT { "direct" } else { "direct_parts" });
            run.launch((workers * parts).div_ceil(256))?;
        }
        let out = if parts > 1 { sum(&out, Axes::one(0), false)? } else { out };
        let strides = self.shape.strides();
        cast(&out.with_layout(self.shape, &strides[..self.shape.rank()], 0)?, dtype)
    }
}

/// The lengths that convolutions, their transposes and their weights have in common.
struct Sizes {
    images: usize,
    groups: usize,
    /// Channels of a group, of the input and of the output.
    inner: usize,
    made: usize,
    /// Elements of a window, of a plane of the input and of one of the output.
    taps: usize,
    plane: usize,
    places: usize,
}

impl Sizes {
    fn of(images: usize, groups: usize, inner: usize, made: usize, window: &Window) -> Sizes {
        let [taps, plane, places] =
            [window.kernel, window.input, window.output].map(|lengths| lengths.iter().product());
        Sizes { images, groups, inner, made, taps, plane, places }
    }
}

/// Elements from one to the next along three axes.
fn dense([_, y, x]: [usize; AXES]) -> [usize; AXES] {
    [y * x, x, 1]
}

fn signed(numbers: [usize; AXES]) -> [isize; AXES] {
    numbers.map(|n| n as isize)
}

/// Computes `y` from `x` and `w`.
pub fn forward(x: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    let shape = window.shape(&[x.dim(0), w.dim(0)], &window.output)?;
    let of_parts = |x: &Array, w: &Array, groups| forward(x, w, window, groups);
    if !is_point(window)
        && let Some(y) = Wanted::Output.in_pieces([x, w], &shape, groups, &of_parts)?
    {
        return Ok(y);
    }
    outputs(x, w, None, window, groups)
}

/// [`forward`] plus a number per output channel; nothing where one kernel does not do both.
pub fn biased(x: &Array, w: &Array, bias: &Array, window: &Window, groups: usize) -> Result<Option<Array>> {
    let (shape, most) = (window.shape(&[x.dim(0), w.dim(0)], &window.output)?, in_a_piece(x)?);
    let can = match is_point(window) {
        true => groups == 1,
        false => [x.numel(), w.numel(), shape.numel()].iter().all(|&n| n <= most) && fit([x, w])?,
    };
    can.then(|| outputs(x, w, Some(bias), window, groups)).transpose()
}

/// [`forward`] of what kernels can bind.
fn outputs(x: &Array, w: &Array, bias: Option<&Array>, window: &Window, groups: usize) -> Result<Array> {
    let s = Sizes::of(x.dim(0), groups, w.dim(1), w.dim(0) / groups.max(1), window);
    let shape = window.shape(&[s.images, groups * s.made], &window.output)?;
    if is_point(window) {
        return pointwise(x, w, bias, &s, shape, false);
    }
    let [z, y, x_step] = dense(window.kernel);
    Products {
        op: "conv",
        a: w,
        x,
        shape,
        rows: s.made,
        groups,
        source: (window.input, signed(window.padding).map(|n| -n), s.inner * s.plane),
        columns: Side {
            lengths: window.output,
            outer: s.images,
            steps: signed(window.stride),
            each: groups * s.inner * s.plane,
        },
        terms: Side { lengths: window.kernel, outer: s.inner, steps: signed(window.dilation), each: s.plane },
        a_steps: [z, y, x_step, s.taps, s.inner * s.taps, s.made * s.inner * s.taps],
        to: (window.output, [groups * s.made * s.places, s.places, s.made * s.places]),
        phases: None,
        fours: (s.inner * s.taps).is_multiple_of(4),
        bias,
        flops: 2 * shape.numel() * s.inner * s.taps,
    }
    .run()
}

/// Computes `x` from `y` and `w`.
pub fn input(y: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    let s = Sizes::of(y.dim(0), groups, w.dim(1), w.dim(0) / groups.max(1), window);
    let shape = window.shape(&[s.images, groups * s.inner], &window.input)?;
    if is_point(window) {
        return pointwise(y, w, None, &s, shape, true);
    }
    let of_parts = |y: &Array, w: &Array, groups| input(y, w, window, groups);
    if let Some(x) = Wanted::Input.in_pieces([y, w], &shape, groups, &of_parts)? {
        return Ok(x);
    }
    let phases = (window.stride != [1; AXES]).then_some(window);
    // Elements of the window that meet the same places of `y` are `every` apart, in `y` by `far`.
    let common: [usize; AXES] = std::array::from_fn(|i| gcd(window.stride[i], window.dilation[i]));
    let every: [usize; AXES] = std::array::from_fn(|i| window.stride[i] / common[i]);
    let far = std::array::from_fn(|i| -((window.dilation[i] / common[i]) as isize));
    let lengths: [usize; AXES] = std::array::from_fn(|i| window.input[i].div_ceil(window.stride[i]));
    let steps = dense(window.kernel);
    Products {
        op: "conv",
        a: w,
        x: y,
        shape,
        rows: s.inner,
        groups,
        source: (window.output, signed(window.padding), s.made * s.places),
        columns: Side { lengths, outer: s.images, steps: [1; AXES], each: groups * s.made * s.places },
        terms: Side {
            lengths: if phases.is_some() { every } else { window.kernel },
            outer: s.made,
            steps: far,
            each: s.places,
        },
        a_steps: [
            steps[0] * every[0],
            steps[1] * every[1],
            steps[2] * every[2],
            s.inner * s.taps,
            s.taps,
            s.made * s.inner * s.taps,
        ],
        to: (window.input, [groups * s.inner * s.plane, s.plane, s.inner * s.plane]),
        phases,
        fours: false,
        bias: None,
        flops: 2 * y.numel() * s.inner * s.taps,
    }
    .run()
}

/// Computes `w` from `x` and `y`.
pub fn weight(x: &Array, y: &Array, window: &Window, groups: usize) -> Result<Array> {
    let [inner, made] = [x, y].map(|x| x.dim(1) / groups.max(1));
    let s = Sizes::of(x.dim(0), groups, inner, made, window);
    let [z, y_step, x_step] = dense(window.output);
    let shape = window.shape(&[y.dim(1), inner], &window.kernel)?;
    let of_parts = |x: &Array, y: &Array, groups| weight(x, y, window, groups);
    if let Some(w) = Wanted::Weight.in_pieces([x, y], &shape, groups, &of_parts)? {
        return Ok(w);
    }
    Products {
        op: "conv_weight",
        a: y,
        x,
        shape,
        rows: made,
        groups,
        source: (window.input, signed(window.padding).map(|n| -n), inner * s.plane),
        columns: Side { lengths: window.kernel, outer: inner, steps: signed(window.dilation), each: s.plane },
        terms: Side {
            lengths: window.output,
            outer: s.images,
            steps: signed(window.stride),
            each: groups * inner * s.plane,
        },
        a_steps: [z, y_step, x_step, groups * made * s.places, s.places, made * s.places],
        to: (window.kernel, [s.taps, inner * s.taps, made * inner * s.taps]),
        phases: None,
        fours: s.places.is_multiple_of(4),
        bias: None,
        flops: 2 * y.numel() * inner * s.taps,
    }
    .run()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether every window is one element of the input, which has enough of them for tiles of one image each.
fn is_point(window: &Window) -> bool {
    let places: usize = window.output.iter().product();
    let plain = (window.kernel, window.stride, window.padding) == ([1; AXES], [1; AXES], [0; AXES]);
    plain && window.input == window.output && places >= 64 && places.is_multiple_of(4)
}

/// The convolution with windows of one element, or its transpose: products with the weights of each group; a
/// bias is for one group.
fn pointwise(
    x: &Array, w: &Array, bias: Option<&Array>, s: &Sizes, shape: Shape, transposed: bool,
) -> Result<Array> {
    let view = |x: &Array, dims: [usize; 4]| -> Result<Array> {
        let (x, shape) = (contiguous(x)?, Shape::new(&dims)?);
        x.with_layout(shape, &shape.strides()[..4], x.offset())
    };
    let w = view(w, [1, s.groups, s.made, s.inner])?;
    let (w, channels) = if transposed { (w.transposed(2, 3)?, s.made) } else { (w, s.inner) };
    let x = view(x, [s.images, s.groups, channels, s.plane])?;
    let out = contiguous(&matmul_with(&w, &x, &bias.map_or_else(Epilogue::default, Epilogue::rows))?.0)?;
    let strides = shape.strides();
    out.with_layout(shape, &strides[..shape.rank()], out.offset())
}
