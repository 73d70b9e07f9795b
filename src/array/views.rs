//! Views: arrays that share a buffer and differ in shape, strides and offset.

use super::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::{Axes, MAX_RANK, Shape};
use crate::error::{Error, Result};

impl Array {
    /// [`Array::with_layout`] where the view is known to stay inside the buffer.
    fn view(&self, shape: Shape, strides: &[isize], offset: usize) -> Result<Array> {
        // SAFETY: the callers' views are of elements of this one.
        unsafe { Array::strided_unchecked(self.buf.clone(), shape, strides, offset, self.dtype) }
    }

    /// Returns a view of the same buffer with this layout; an internal error if it reaches beyond it.
    pub fn with_layout(&self, shape: Shape, strides: &[isize], offset: usize) -> Result<Array> {
        Array::strided(self.buf.clone(), shape, strides, offset, self.dtype)
    }

    /// Returns the view with its axes in the order `perm`.
    pub fn permute(&self, perm: &[u8]) -> Result<Array> {
        let mut out = self.clone();
        for (i, &p) in perm.iter().enumerate() {
            out.dims[i] = self.dims[p as usize];
            out.strides[i] = self.strides[p as usize];
        }
        Ok(out)
    }

    /// Returns the view with axes `i` and `j` exchanged.
    pub fn transposed(&self, i: usize, j: usize) -> Result<Array> {
        let mut out = self.clone();
        out.dims.swap(i, j);
        out.strides.swap(i, j);
        Ok(out)
    }

    /// Returns the view with a new axis of length 1 before axis `i`.
    pub fn with_axis(&self, i: usize) -> Result<Array> {
        // Raises if the array already has `MAX_RANK` axes.
        let shape = self.shape().inserted(i, 1)?;
        let mut out = self.clone();
        out.dims = *shape.raw();
        out.strides.copy_within(i..MAX_RANK - 1, i + 1);
        out.strides[i] = 0;
        out.rank += 1;
        Ok(out)
    }

    /// Returns the view without `axes`, each of length 1.
    pub fn without(mut self, axes: Axes) -> Array {
        let mut rank = 0;
        for i in (0..self.rank()).filter(|&i| !axes.contains(i)) {
            self.dims[rank] = self.dims[i];
            self.strides[rank] = self.strides[i];
            rank += 1;
        }
        self.dims[rank..].fill(0);
        self.strides[rank..].fill(0);
        self.rank = rank as u8;
        self
    }

    /// Broadcasts to `shape`, with stride 0 on new and stretched axes; raises if the shapes are incompatible.
    pub fn expand(&self, shape: &Shape) -> Result<Array> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        let lead = shape.rank().checked_sub(self.rank()).ok_or_else(|| self.bad_expand(shape))?;
        let mut strides = [0isize; MAX_RANK];
        for i in 0..self.rank() {
            if self.dim(i) == shape.at(lead + i) {
                strides[lead + i] = self.stride(i);
            } else if self.dim(i) != 1 {
                return Err(self.bad_expand(shape));
            }
        }
        self.view(*shape, &strides[..shape.rank()], self.offset())
    }

    #[cold]
    fn bad_expand(&self, shape: &Shape) -> Error {
        Error::shape(format!("expand: shape {} cannot be broadcast to {shape}", self.shape()))
    }

    #[cold]
    fn outside(&self, lengths: &Shape) -> Error {
        let own = self.shape();
        Error::shape(format!("internal: a slice of shape {lengths} reaches beyond a tensor of shape {own}"))
    }

    /// Returns the view of indices `start + step * i`, for `i < length`, on every axis.
    pub fn slice_view(&self, starts: &[usize], steps: &[isize], lengths: &Shape) -> Result<Array> {
        let mut inside = lengths.rank() == self.rank();
        let mut offset = self.offset() as isize;
        let mut strides = [0isize; MAX_RANK];
        for i in 0..self.rank().min(lengths.rank()) {
            if lengths.at(i) > 0 {
                let last = starts[i] as isize + steps[i] * (lengths.at(i) as isize - 1);
                inside &= starts[i] < self.dim(i) && (0..self.dim(i) as isize).contains(&last);
                offset += starts[i] as isize * self.stride(i);
            }
            strides[i] = self.stride(i) * steps[i];
        }
        if !inside {
            return Err(self.outside(lengths));
        }
        self.view(*lengths, &strides[..self.rank()], offset as usize)
    }

    /// Returns the view of the same bytes as another dtype. Where its size differs, the last axis becomes
    /// longer or shorter; `None` if shape, strides or alignment prevent it.
    pub fn bitcast(&self, dtype: DType) -> Result<Option<Array>> {
        let (from, to) = (self.dtype.size(), dtype.size());
        let address = self.buf.ptr() as usize + self.offset() * from;
        if self.device() == Device::Cpu && !address.is_multiple_of(dtype.align()) {
            return Ok(None);
        }
        if from == to {
            let (shape, strides) = (self.shape(), self.strides());
            return Array::strided(self.buf.clone(), shape, &strides, self.offset(), dtype).map(Some);
        }
        let Some(last) = self.rank().checked_sub(1) else { return Ok(None) };
        let scaled = |n: usize| (n * from).is_multiple_of(to).then_some(n * from / to);
        let mut strides = Vec::with_capacity(last + 1);
        for i in 0..last {
            let Some(size) = scaled(self.stride(i).unsigned_abs()) else { return Ok(None) };
            strides.push(if self.stride(i) < 0 { -(size as isize) } else { size as isize });
        }
        strides.push(1);
        match (scaled(self.dim(last)), scaled(self.offset())) {
            (Some(length), Some(offset)) if self.stride(last) == 1 || self.dim(last) < 2 => {
                let shape = self.shape().removed(last).inserted(last, length)?;
                Array::strided(self.buf.clone(), shape, &strides, offset, dtype).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the elements of a contiguous array with another shape of as many; an internal error for any
    /// other array.
    pub fn viewed(&self, shape: Shape) -> Result<Array> {
        let view = if shape.numel() == self.numel() { self.reshape_view(&shape) } else { None };
        view.ok_or_else(|| Error::shape(format!("internal: {self:?} viewed as {shape}")))
    }

    /// Returns the elements of a contiguous array as bytes; an internal error for any other array.
    pub fn bytes(&self) -> Result<Array> {
        if !self.is_contiguous() {
            return Err(Error::value(format!("internal: contiguous memory expected, got {self:?}")));
        }
        let size = self.dtype().size();
        let bytes = Shape::new(&[self.numel() * size])?;
        Array::strided(self.buffer().clone(), bytes, &[1], self.offset() * size, DType::U8)
    }

    /// Returns the same elements with another shape, without a copy; `None` if the layout does not allow it.
    pub fn reshape_view(&self, shape: &Shape) -> Option<Array> {
        let strides = if self.is_contiguous() { shape.strides() } else { reshape_strides(self, shape)? };
        self.view(*shape, &strides[..shape.rank()], self.offset()).ok()
    }
}

/// Returns strides under which `array` has this shape: from the left, groups of axes merge or split.
fn reshape_strides(array: &Array, shape: &Shape) -> Option<[isize; MAX_RANK]> {
    let mut out = [0isize; MAX_RANK];
    if array.numel() == 0 {
        return Some(shape.strides());
    }
    let old: Vec<(usize, isize)> =
        (0..array.rank()).map(|i| (array.dim(i), array.stride(i))).filter(|&(d, _)| d != 1).collect();
    let (mut i, mut j) = (0, 0);
    while j < shape.rank() {
        if shape.at(j) == 1 {
            j += 1;
            continue;
        }
        let (mut have, mut want) = (old.get(i)?.0, shape.at(j));
        let (first_old, first_new) = (i, j);
        while have != want {
            if have < want {
                i += 1;
                have *= old.get(i)?.0;
            } else {
                j += 1;
                want *= shape.iter().nth(j)?;
            }
        }
        for k in first_old..i {
            if old[k].1 != old[k + 1].1 * old[k + 1].0 as isize {
                return None;
            }
        }
        let mut stride = old[i].1;
        for k in (first_new..=j).rev() {
            out[k] = stride;
            stride *= shape.at(k) as isize;
        }
        i += 1;
        j += 1;
    }
    Some(out)
}
