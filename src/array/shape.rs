//! Shapes of up to eight axes, stored inline: broadcasting, axis normalisation, strides.

use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::fmt;

/// The largest number of axes of an array. A batching transform adds one axis per level.
pub const MAX_RANK: usize = 8;

/// The lengths of up to [`MAX_RANK`] axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: [u32; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], rank: 0 };

    /// Returns a shape; raises beyond [`MAX_RANK`] axes, 2^32 - 1 elements in one axis, or 2^63 elements.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(Error::shape(format!(
                "a tensor has at most {MAX_RANK} axes, got {} (shape {dims:?}); merge axes with reshape",
                dims.len()
            )));
        }
        let mut shape = Shape { dims: [0; MAX_RANK], rank: dims.len() as u8 };
        for (slot, &d) in shape.dims.iter_mut().zip(dims) {
            *slot = u32::try_from(d)
                .map_err(|_| Error::shape(format!("an axis holds at most 2^32 - 1 elements, got {d}")))?;
        }
        let extent = shape.iter().map(|d| d.max(1)).fold(1, usize::saturating_mul);
        if extent > isize::MAX as usize {
            return Err(Error::shape(format!("a tensor has fewer than 2^63 elements, got shape {shape}")));
        }
        Ok(shape)
    }

    /// Copies raw lengths, which are zero beyond the rank. Unchecked, because every operation calls it.
    #[inline(always)]
    pub(crate) fn from_raw(dims: &[u32; MAX_RANK], rank: u8) -> Shape {
        debug_assert!(dims[rank as usize..].iter().all(|&d| d == 0), "lengths beyond rank {rank}: {dims:?}");
        Shape { dims: *dims, rank }
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> &[u32; MAX_RANK] {
        &self.dims
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Length of axis `i` (which must be below the rank).
    #[inline]
    pub fn at(&self, i: usize) -> usize {
        debug_assert!(i < self.rank());
        self.dims[i] as usize
    }

    /// Number of elements: the product of all axes, 1 for a scalar.
    #[inline]
    pub fn numel(&self) -> usize {
        // Saturates: the common shape of two broadcast views can exceed any memory.
        self.iter().fold(1, usize::saturating_mul)
    }

    /// The axis lengths in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.dims[..self.rank as usize].iter().map(|&d| d as usize)
    }

    /// The axis lengths as a vector.
    pub fn to_vec(&self) -> Vec<usize> {
        self.iter().collect()
    }

    /// This shape with axis `i` set to `length`.
    pub fn with(mut self, i: usize, length: usize) -> Shape {
        debug_assert!(i < self.rank() && length <= u32::MAX as usize);
        self.dims[i] = length as u32;
        self
    }

    /// This shape with a new axis of `length` before axis `i`.
    pub fn inserted(&self, i: usize, length: usize) -> Result<Shape> {
        let mut dims = [0; MAX_RANK + 1];
        self.iter().enumerate().for_each(|(k, d)| dims[k + (k >= i) as usize] = d);
        dims[i] = length;
        Shape::new(&dims[..self.rank() + 1])
    }

    /// This shape without axis `i`.
    pub fn removed(&self, i: usize) -> Shape {
        let mut out = *self;
        out.dims.copy_within(i + 1.., i);
        out.dims[MAX_RANK - 1] = 0;
        out.rank -= 1;
        out
    }

    /// The shape of the axes `from..to`.
    pub fn part(&self, from: usize, to: usize) -> Shape {
        let mut out = Shape { dims: [0; MAX_RANK], rank: (to - from) as u8 };
        out.dims[..to - from].copy_from_slice(&self.dims[from..to]);
        out
    }

    /// The shape after reducing `axes`; with `keepdim` they stay, with length 1.
    pub fn reduced(&self, axes: Axes, keepdim: bool) -> Shape {
        let mut out = Shape { dims: [0; MAX_RANK], rank: 0 };
        for (i, d) in self.iter().enumerate() {
            if !axes.contains(i) || keepdim {
                out.dims[out.rank as usize] = if axes.contains(i) { 1 } else { d as u32 };
                out.rank += 1;
            }
        }
        out
    }

    /// The common shape of two operands under NumPy's broadcasting rules.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        if self == other {
            return Some(*self);
        }
        let rank = self.rank().max(other.rank());
        let mut out = Shape { dims: [0; MAX_RANK], rank: rank as u8 };
        for i in 0..rank {
            let a = (i + self.rank()).checked_sub(rank).map_or(1, |k| self.dims[k]);
            let b = (i + other.rank()).checked_sub(rank).map_or(1, |k| other.dims[k]);
            out.dims[i] = match (a, b) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return None,
            };
        }
        Some(out)
    }

    /// The coordinates of the element with row-major index `flat`.
    pub fn coordinates(&self, mut flat: usize) -> [usize; MAX_RANK] {
        let mut at = [0; MAX_RANK];
        for i in (1..self.rank()).rev() {
            at[i] = flat % self.at(i);
            flat /= self.at(i);
        }
        at[0] = flat;
        at
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> [isize; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut next = 1isize;
        for i in (0..self.rank()).rev() {
            strides[i] = next;
            next = next.saturating_mul(self.dims[i].max(1) as isize);
        }
        strides
    }

    /// Resolves an axis that may count from the end.
    pub fn axis(&self, axis: i64, op: &str) -> Result<usize> {
        normalize_axis(axis, self.rank(), op)
    }

    /// Resolves a list of axes to a set; duplicates raise. `None` means every axis.
    pub fn axes(&self, axes: Option<&[i64]>, op: &str) -> Result<Axes> {
        let Some(axes) = axes else {
            return Ok(Axes::first(self.rank()));
        };
        let mut set = Axes::default();
        for &axis in axes {
            // A scalar accepts axis 0 and -1, as PyTorch does.
            if self.rank() == 0 && (axis == 0 || axis == -1) {
                continue;
            }
            let i = self.axis(axis, op)?;
            if set.contains(i) {
                return Err(Error::value(format!("{op}: axis {axis} appears twice in {axes:?}")));
            }
            set.insert(i);
        }
        Ok(set)
    }
}

/// Resolves an axis that may count from the end, among `rank` axes.
pub fn normalize_axis(axis: i64, rank: usize, op: &str) -> Result<usize> {
    let r = rank as i64;
    if axis >= -r && axis < r {
        return Ok(if axis < 0 { axis + r } else { axis } as usize);
    }
    Err(Error::index(if rank == 0 {
        format!("{op}: axis {axis} given for a tensor with no axes")
    } else {
        format!("{op}: axis {axis} is out of range for a tensor with {rank} axes, expected {}..{}", -r, r - 1)
    }))
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.rank == 1 { ",)" } else { ")" })
    }
}

/// A set of axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Axes(u8);

impl Axes {
    /// The set {axis}.
    pub fn one(axis: usize) -> Axes {
        Axes(1 << axis)
    }
    /// The first `n` axes.
    pub fn first(n: usize) -> Axes {
        Axes(((1u16 << n) - 1) as u8)
    }
    /// Whether `axis` is in the set.
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }
    /// Adds `axis`.
    pub fn insert(&mut self, axis: usize) {
        self.0 |= 1 << axis;
    }
    /// Number of axes in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The axes in increasing order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_RANK).filter(move |&i| self.contains(i))
    }
    /// The set with every axis shifted up by one, as after inserting a new axis 0.
    pub fn shifted(self) -> Axes {
        Axes(self.0 << 1)
    }
}

impl FromIterator<usize> for Axes {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> Axes {
        Axes(axes.into_iter().fold(0, |set, axis| set | 1 << axis))
    }
}

/// Whether two elements of a layout may be one element of the memory: unless each stride reaches beyond all
/// elements of the axes with smaller ones.
pub fn overlaps_itself(shape: &Shape, stride: impl Fn(usize) -> isize) -> bool {
    let used = (0..shape.rank()).filter(|&i| shape.at(i) > 1);
    let mut axes: SmallVec<[(usize, usize); MAX_RANK]> =
        used.map(|i| (stride(i).unsigned_abs(), shape.at(i) - 1)).collect();
    axes.sort_unstable();
    let mut reach = 0usize;
    shape.numel() > 0
        && axes.into_iter().any(|(stride, steps)| {
            let is_inside = stride <= reach;
            reach = reach.saturating_add(stride.saturating_mul(steps));
            is_inside
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap_or_default()
    }

    #[test]
    fn broadcasting() {
        assert_eq!(s(&[3, 1]).broadcast(&s(&[4])), Some(s(&[3, 4])));
        assert_eq!(s(&[]).broadcast(&s(&[0])), Some(s(&[0])));
        assert_eq!(s(&[2]).broadcast(&s(&[3])), None);
    }

    #[test]
    fn reduction_and_axes() {
        let x = s(&[2, 3, 4]);
        let axes = x.axes(Some(&[-1, 0]), "sum").unwrap_or_default();
        assert_eq!(x.reduced(axes, false), s(&[3]));
        assert_eq!(x.reduced(axes, true), s(&[1, 3, 1]));
        assert_eq!(x.removed(1), s(&[2, 4]));
        assert!(x.axis(3, "sum").is_err());
        assert!(Shape::new(&[1; 9]).is_err());
    }
}
