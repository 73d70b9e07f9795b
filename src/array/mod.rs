//! `Array`: a strided view of a buffer, with dtype and layout and without differentiation. The struct is kept
//! at 80 bytes (asserted below), because small operations pay for its size.
//! Read next: `src/tensor.rs`, which adds the derivative machinery.

pub mod buffer;
pub mod complex;
pub mod defaults;
pub mod dtype;
pub mod nest;
pub mod random;
pub mod shape;
mod views;
pub mod window;
pub(crate) mod writers;

use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::{DType, Element};
use crate::array::shape::{MAX_RANK, Shape, overlaps_itself};
use crate::error::{Error, Result};

/// A strided view: element `(i, j, ...)` lies at `offset + i * stride[0] + j * stride[1] + ...`, in elements.
#[derive(Clone)]
#[repr(C)]
pub struct Array {
    buf: Buffer,
    dims: [u32; MAX_RANK],
    strides: [i32; MAX_RANK],
    offset_low: u32,
    offset_high: u16,
    rank: u8,
    dtype: DType,
}

const _: () = assert!(std::mem::size_of::<Array>() <= 80);

/// How the elements of an array lie to each other; axes beyond the rank have zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub dims: [u32; MAX_RANK],
    pub strides: [i32; MAX_RANK],
    pub rank: u8,
    pub dtype: DType,
}

impl Array {
    /// Returns the same elements with a separate version: neither notices in-place writes through the other.
    pub fn alias(&self) -> Array {
        Array { buf: self.buf.alias(), ..self.clone() }
    }

    /// Allocates uninitialised contiguous host memory of this array's shape, if this array and all `others`
    /// are contiguous and of one shape. The fast path of elementwise operations: no shape is computed.
    #[inline]
    pub fn matching(&self, others: &[&Array], dtype: DType) -> Option<Result<Array>> {
        if !others.iter().all(|other| other.same_layout(self)) || !self.is_contiguous() {
            return None;
        }
        let (dims, strides, rank) = (self.dims, self.strides, self.rank);
        let buf = Buffer::alloc(self.numel() * dtype.size());
        Some(buf.map(|buf| Array { buf, dims, strides, offset_low: 0, offset_high: 0, rank, dtype }))
    }

    /// Returns a contiguous view of the whole of `buf`.
    pub fn from_buffer(buf: Buffer, shape: Shape, dtype: DType) -> Result<Array> {
        if checked_bytes(&shape, dtype)? > buf.bytes() {
            return Err(Error::shape(format!(
                "internal: shape {shape} in a buffer of {} bytes",
                buf.bytes()
            )));
        }
        let strides = shape.strides();
        // SAFETY: row-major, from the start, and not longer than the buffer.
        unsafe { Array::strided_unchecked(buf, shape, &strides[..shape.rank()], 0, dtype) }
    }

    /// Returns a view with strides and offset in elements; an internal error if it reaches beyond `buf`.
    pub fn strided(
        buf: Buffer, shape: Shape, strides: &[isize], offset: usize, dtype: DType,
    ) -> Result<Array> {
        let (mut low, mut high) = (offset as isize, offset as isize);
        for (d, &stride) in shape.iter().zip(strides) {
            let reach = (d as isize - 1).saturating_mul(stride);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        let end = high.saturating_add(1).saturating_mul(dtype.size() as isize);
        if shape.numel() > 0 && (low < 0 || end > buf.bytes() as isize) {
            return Err(Error::shape(format!(
                "internal: {dtype} elements {low} to {high} of a buffer of {} bytes",
                buf.bytes()
            )));
        }
        // SAFETY: checked just now.
        unsafe { Array::strided_unchecked(buf, shape, strides, offset, dtype) }
    }

    /// [`Array::strided`] without the check.
    ///
    /// # Safety
    /// The view stays inside `buf`, or nobody reads or writes its elements.
    pub unsafe fn strided_unchecked(
        buf: Buffer, shape: Shape, strides: &[isize], offset: usize, dtype: DType,
    ) -> Result<Array> {
        let mut packed = [0i32; MAX_RANK];
        for (slot, &s) in packed.iter_mut().zip(strides) {
            *slot = i32::try_from(s).map_err(|_| {
                Error::shape(format!(
                    "strides of shape {shape} exceed 2^31 elements; split the tensor along axis 0"
                ))
            })?;
        }
        Ok(Array {
            buf,
            dims: *shape.raw(),
            strides: packed,
            offset_low: offset as u32,
            offset_high: (offset >> 32) as u16,
            rank: shape.rank() as u8,
            dtype,
        })
    }

    /// Returns a contiguous CPU array holding a copy of `values`.
    pub fn from_slice<T: Element>(values: &[T], shape: Shape) -> Result<Array> {
        if values.len() != shape.numel() {
            return Err(Error::shape(format!("{} values do not fill shape {shape}", values.len())));
        }
        let mut out = Array::empty(shape, T::DTYPE, Device::Cpu)?;
        out.slice_mut::<T>()?.copy_from_slice(values);
        Ok(out)
    }

    /// Returns a CPU array filled with `value`, converted to `dtype`.
    pub fn full(shape: Shape, value: f64, dtype: DType) -> Result<Array> {
        let mut out = Array::empty(shape, dtype, Device::Cpu)?;
        crate::dispatch!(dtype, T => fill(out.slice_mut::<T>()?, T::from_f64(value)));
        Ok(out)
    }

    /// Whether both have the same shape; copies no shape.
    #[inline(always)]
    pub fn same_shape(&self, other: &Array) -> bool {
        self.dims == other.dims && self.rank == other.rank
    }

    /// Whether both have the same shape and strides.
    #[inline(always)]
    pub fn same_layout(&self, other: &Array) -> bool {
        self.same_shape(other) && self.strides == other.strides
    }

    /// How the elements lie, without where.
    #[inline]
    pub(crate) fn layout(&self) -> Layout {
        Layout { dims: self.dims, strides: self.strides, rank: self.rank, dtype: self.dtype }
    }

    /// Whether the elements lie so.
    #[inline]
    pub(crate) fn has_layout(&self, layout: &Layout) -> bool {
        self.dims == layout.dims
            && self.strides == layout.strides
            && self.rank == layout.rank
            && self.dtype == layout.dtype
    }

    /// The shape.
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        Shape::from_raw(&self.dims, self.rank)
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Length of axis `i`.
    #[inline]
    pub fn dim(&self, i: usize) -> usize {
        self.dims[i] as usize
    }

    /// Stride of axis `i` in elements.
    #[inline]
    pub fn stride(&self, i: usize) -> isize {
        self.strides[i] as isize
    }

    /// The strides in elements.
    pub fn strides(&self) -> Vec<isize> {
        self.strides[..self.rank()].iter().map(|&s| s as isize).collect()
    }

    /// Position of the first element in the buffer, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        (self.offset_high as usize) << 32 | self.offset_low as usize
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.dims[..self.rank()].iter().map(|&d| d as usize).fold(1, usize::saturating_mul)
    }

    /// The element type.
    #[inline(always)]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device of the buffer.
    #[inline(always)]
    pub fn device(&self) -> Device {
        self.buf.device()
    }

    /// The memory behind this view.
    #[inline(always)]
    pub fn buffer(&self) -> &Buffer {
        &self.buf
    }

    /// Whether the elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1i64;
        for i in (0..self.rank()).rev() {
            let d = self.dims[i] as i64;
            if d == 0 {
                return true;
            }
            if d != 1 && self.strides[i] as i64 != expected {
                return false;
            }
            expected *= d;
        }
        true
    }

    /// Whether both are the same elements of the same memory, in the same order.
    #[inline]
    pub fn is(&self, other: &Array) -> bool {
        std::ptr::eq(self, other)
            || (self.buf.same(&other.buf)
                && self.offset() == other.offset()
                && self.dtype == other.dtype
                && self.same_layout(other))
    }

    /// Whether two elements may occupy the same memory.
    #[inline]
    pub fn overlaps_itself(&self) -> bool {
        #[cold]
        fn of_strides(x: &Array) -> bool {
            overlaps_itself(&x.shape(), |i| x.stride(i))
        }
        !self.is_contiguous() && of_strides(self)
    }

    /// Whether this handle is the only one to its memory, and no outside owner shares it.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.buf.is_unique() && !self.buf.is_borrowed()
    }

    /// Whether this view is contiguous and the only handle to its memory, so that it may be overwritten.
    #[inline]
    pub fn is_exclusive(&self) -> bool {
        self.is_alone() && self.is_contiguous()
    }

    /// Address of the first element.
    #[inline(always)]
    pub fn ptr<T: Element>(&self) -> *mut T {
        debug_assert_eq!(T::DTYPE, self.dtype);
        self.buf.ptr().cast::<T>().wrapping_add(self.offset())
    }

    /// Returns the elements of a contiguous CPU array; an internal error for any other array.
    #[inline]
    pub fn slice<T: Element>(&self) -> Result<&[T]> {
        self.check_slice::<T>()?;
        if self.numel() == 0 {
            return Ok(&[]);
        }
        // SAFETY: `check_slice` found host memory, contiguous and of type T; views lie inside their buffer.
        Ok(unsafe { std::slice::from_raw_parts(self.ptr::<T>(), self.numel()) })
    }

    /// Returns the elements of a contiguous CPU array for writing; an internal error for any other array, and
    /// for one whose memory has another handle.
    #[inline]
    pub fn slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_slice::<T>()?;
        if !self.is_alone() {
            return Err(self.shared());
        }
        if self.numel() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `slice`; this is the only handle to the memory, and it is borrowed.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr::<T>(), self.numel()) })
    }

    #[inline]
    fn check_slice<T: Element>(&self) -> Result<()> {
        if self.dtype == T::DTYPE && self.device() == Device::Cpu && self.is_contiguous() {
            return Ok(());
        }
        Err(self.bad_slice(T::DTYPE))
    }

    #[cold]
    fn shared(&self) -> Error {
        Error::value(format!("internal: the memory of {self:?} is to be written, and is shared"))
    }

    #[cold]
    fn bad_slice(&self, wanted: DType) -> Error {
        Error::dtype(format!("internal: contiguous cpu {wanted} expected, got {self:?}"))
    }

    /// Returns the value of a one-element CPU array as `f64`.
    pub fn item(&self) -> Result<f64> {
        if self.numel() != 1 || self.device() != Device::Cpu {
            return Err(Error::value(format!("item: one element on the cpu expected, got {self:?}")));
        }
        // SAFETY: the array has one element, on the host, at its offset.
        Ok(crate::dispatch!(self.dtype, T => unsafe { self.ptr::<T>().read() }.to_f64()))
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{} on {} with strides {:?}", self.dtype, self.shape(), self.device(), self.strides())
    }
}

/// Writes `value` everywhere: the first elements one by one, and then copies of them, which the C library
/// makes with the widest stores of the processor.
fn fill<T: Copy>(to: &mut [T], value: T) {
    const BLOCK: usize = 2048;
    let (block, rest) = to.split_at_mut(BLOCK.min(to.len()));
    block.fill(value);
    rest.chunks_mut(BLOCK).for_each(|chunk| chunk.copy_from_slice(&block[..chunk.len()]));
}

/// Returns the bytes of a contiguous array, or an error if they overflow or exceed 2^47 (address space).
pub fn checked_bytes(shape: &Shape, dtype: DType) -> Result<usize> {
    shape
        .iter()
        .try_fold(dtype.size(), |n, d| n.checked_mul(d))
        .filter(|&n| n <= isize::MAX as usize && n < 1 << 47)
        .ok_or_else(|| Error::memory(format!("a {dtype} tensor of shape {shape} exceeds the address space")))
}
