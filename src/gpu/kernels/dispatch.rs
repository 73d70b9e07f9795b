//! One dispatch in the making: a shader and the choices for it, its buffers and its parameters.

use super::copy::is_whole;
use super::prelude::*;
use crate::array::buffer::Buffer;
use crate::array::shape::MAX_RANK;
use crate::gpu::runtime::pipeline::Signature;
use crate::gpu::runtime::pool::{allocation, gpu_of};
use crate::gpu::runtime::profile::{self, Work};
use crate::gpu::shader::merge::bit;
use crate::gpu::shader::template::Template;
use crate::gpu::{Flow, Variant, kernel, launch};
use smallvec::SmallVec;

/// A dispatch. Operands are added in the order of the shader's bindings, parameters in that of its `Params`:
/// shapes and strides as arrays of eight words, then scalars.
///
/// Kernels of one name differ by entry point, element types, constants, and what [`Dispatch::op`] adds.
pub struct Dispatch<'a> {
    name: &'a str,
    entry: &'static str,
    /// The shader.
    pub text: Template<'a>,
    key: [u64; 2],
    /// The arrays that are bound; the GPU of the first one runs the kernel.
    operands: SmallVec<[&'a Array; 8]>,
    buffers: SmallVec<[&'a Buffer; 8]>,
    /// Which of the buffers are written.
    writable: SmallVec<[bool; 8]>,
    params: SmallVec<[u32; 64]>,
    flow: Flow,
    flops: Option<u64>,
    picked: Option<&'a Array>,
}

impl<'a> Dispatch<'a> {
    /// A dispatch of the file `source`, whose arithmetic uses the type of `compute`.
    pub fn new(name: &'a str, source: &'static str, compute: DType) -> Dispatch<'a> {
        Dispatch {
            name,
            entry: "main",
            text: Template::new(source, compute),
            key: [0; 2],
            operands: SmallVec::new(),
            buffers: SmallVec::new(),
            writable: SmallVec::new(),
            params: SmallVec::new(),
            flow: Flow::default(),
            flops: None,
            picked: None,
        }
    }

    /// Sets the entry point, `main` without.
    pub fn entry(&mut self, entry: &'static str) -> &mut Self {
        self.entry = entry;
        self
    }

    /// Binds `x` as input `name`.
    #[inline(never)]
    pub fn input(&mut self, name: &'static str, x: &'a Array) -> &mut Self {
        self.text.load(name, x.dtype());
        self.reads(x)
    }

    /// Binds `x` as output `name`.
    #[inline(never)]
    pub fn output(&mut self, name: &'static str, x: &'a Array) -> &mut Self {
        self.text.store(name, x.dtype());
        self.writes(x)
    }

    /// Binds `x` as input `x` of a kernel that goes through lines of length `inner` by fours: by vectors if
    /// lines of these strides allow it, and `may` says that the kernel does. FOURS: lines consist of fours.
    pub fn lines(&mut self, x: &'a Array, inner: usize, strides: &[isize], may: bool) -> &mut Self {
        let is_whole = inner.is_multiple_of(4);
        let is_dense = matches!(strides, [outer @ .., 1] if outer.iter().all(|s| s % 4 == 0));
        match may && is_whole && is_dense && x.offset().is_multiple_of(4) {
            true => self.text.load_fours("x", x.dtype()),
            false => self.text.load("x", x.dtype()),
        };
        self.reads(x).flag("FOURS", is_whole)
    }

    /// Binds `x` as output `out`, by vectors of four elements.
    pub fn fours(&mut self, x: &'a Array) -> &mut Self {
        self.text.store_fours("out", x.dtype());
        self.writes(x).flows()
    }

    /// Binds `x`, whose words the shader reads as they are.
    #[inline(never)]
    pub fn reads(&mut self, x: &'a Array) -> &mut Self {
        self.bind(x.buffer(), false, Some(x))
    }

    /// Binds `x`, whose words the shader writes as they are, and may read.
    #[inline(never)]
    pub fn writes(&mut self, x: &'a Array) -> &mut Self {
        self.bind(x.buffer(), true, Some(x))
    }

    /// Says of the array that was bound last that the kernel reads or writes the whole of it by fours: the
    /// function `make_four` of the text makes of each four read by `load4_` those of the same place of what
    /// it writes, or each four is written once by `store4_`. Such kernels can be one launch.
    pub fn flows(&mut self) -> &mut Self {
        let is_it = self.operands.last().is_some_and(|x| per_word(x.dtype()) == 1 && is_whole(x));
        self.flow.elements |= if is_it { bit(self.buffers.len() - 1) } else { 0 };
        self
    }

    /// [`Dispatch::flows`] of a single element, which is written by `store_`.
    pub fn flows_alone(&mut self) -> &mut Self {
        match self.operands.last() {
            Some(x) if x.numel() == 1 => self.flows(),
            _ => self,
        }
    }

    /// Binds `x` where the shader has a binding that the entry point does not use.
    pub fn fills(&mut self, x: &'a Array) -> &mut Self {
        self.bind(x.buffer(), false, None)
    }

    /// Binds the buffer of [`crate::gpu::status`], to which the shader reports.
    pub fn reports(&mut self, buffer: &'a Buffer) -> &mut Self {
        self.flow.reports |= bit(self.buffers.len());
        self.bind(buffer, true, None)
    }

    #[inline(never)]
    fn bind(&mut self, buffer: &'a Buffer, writable: bool, x: Option<&'a Array>) -> &mut Self {
        self.operands.extend(x);
        self.buffers.push(buffer);
        self.writable.push(writable);
        self
    }

    /// Sets a boolean constant.
    #[inline(never)]
    pub fn flag(&mut self, name: &'static str, value: bool) -> &mut Self {
        self.text.flag(name, value);
        self
    }

    /// Sets a u32 constant.
    #[inline(never)]
    pub fn number(&mut self, name: &'static str, value: usize) -> &mut Self {
        self.text.number(name, value as u32);
        self
    }

    /// Sets the text of `fn op`. `key` tells it from others under the name of the kernel.
    pub fn op(&mut self, body: &'a dyn Fn() -> Result<String>, key: [u64; 2]) -> &mut Self {
        self.text.op(body);
        self.key = key;
        self
    }

    /// Adds a parameter. Not inlined, as many kernels have many.
    #[inline(never)]
    fn word(&mut self, value: u32) {
        self.params.push(value);
    }

    /// Adds scalar parameters.
    pub fn words(&mut self, values: impl IntoIterator<Item = usize>) -> &mut Self {
        values.into_iter().for_each(|v| self.word(v as u32));
        self
    }

    /// Adds float parameters.
    pub fn floats(&mut self, values: impl IntoIterator<Item = f64>) -> &mut Self {
        values.into_iter().for_each(|v| self.word((v as f32).to_bits()));
        self
    }

    /// Adds eight words: `values`, then zeros.
    pub fn eight(&mut self, values: impl IntoIterator<Item = isize>) -> &mut Self {
        let end = self.params.len() + MAX_RANK;
        values.into_iter().take(MAX_RANK).for_each(|v| self.word(v as u32));
        self.params.resize(end, 0);
        self
    }

    /// Adds the lengths of axes.
    #[inline(never)]
    pub fn lengths(&mut self, shape: &Shape) -> &mut Self {
        self.eight(shape.iter().map(|d| d as isize))
    }

    /// Adds the strides of `x`.
    #[inline(never)]
    pub fn strides(&mut self, x: &Array) -> &mut Self {
        self.eight(x.strides().iter().copied())
    }

    /// Adds the lengths of the axes of a nest and the strides of its first `operands`.
    #[inline(never)]
    pub fn nest(&mut self, nest: &Nest, operands: usize) -> &mut Self {
        self.eight(nest.dims[..nest.rank].iter().map(|&d| d as isize));
        for strides in &nest.strides[..operands] {
            self.eight(strides[..nest.rank].iter().copied());
        }
        self
    }

    /// Tells profiles the floating point operations of the kernel.
    pub fn flops(&mut self, flops: usize) -> &mut Self {
        self.flops = Some(flops as u64);
        self
    }

    /// Tells profiles that the first operand is read by index, once for each element of `out`.
    pub fn picks(&mut self, out: &'a Array) -> &mut Self {
        self.picked = Some(out);
        self
    }

    /// What a profile says about this dispatch.
    #[cold]
    fn work(&self, index: u8) -> Work {
        let own = (self.entry != "main" && self.entry != self.name).then_some(self.entry);
        let bytes = match self.picked {
            Some(out) => profile::bytes_of(index, &self.operands[1..]) + profile::bytes_of(index, &[out]),
            None => profile::bytes_of(index, &self.operands),
        };
        Work {
            kernel: self.name.into(),
            variant: own.into_iter().chain(self.text.dtypes()).collect::<Vec<_>>().join(", "),
            bytes,
            flops: self.flops,
        }
    }

    /// The buffers that are read, and written by another binding: these are bound as writable too, since no
    /// buffer can be both in one dispatch.
    fn aliased(&self) -> Result<SmallVec<[usize; 2]>> {
        let id = |buffer: &&Buffer| Ok(allocation(buffer)?.block.id);
        let ids: SmallVec<[u64; 16]> = self.buffers.iter().map(id).collect::<Result<_>>()?;
        let is_written =
            |id| ids.iter().zip(&self.writable).any(|(other, &writable)| writable && *other == id);
        Ok((0..ids.len()).filter(|&k| !self.writable[k] && is_written(ids[k])).collect())
    }

    /// Records the dispatch of `groups` workgroups. An output may be one of the inputs only if every
    /// invocation reads only the elements that it writes.
    pub fn launch(mut self, groups: usize) -> Result<()> {
        let Some(first) = self.operands.first() else {
            return Err(Error::device("internal: a gpu kernel without operands"));
        };
        let gpu = gpu_of(first)?;
        if groups == 0 {
            return Ok(());
        }
        let (parts, aliased) = (self.text.key().chain(self.key).collect(), self.aliased()?);
        for &k in &aliased {
            self.writable[k] = true;
            self.flow.aliased |= bit(k);
        }
        let build = || aliased.iter().try_fold(self.text.build()?, |text, &k| writable(&text, k));
        let variant = Variant { entry: self.entry, parts, aliased: aliased.clone() };
        let signature = Signature { writable: &self.writable, words: self.params.len() };
        let kernel = kernel(gpu, self.name, variant, signature, build)?;
        if self.text.has_matrices() && gpu.halves.get().is_none() {
            // A text that the driver refuses is an answer while matrices are tested.
            kernel.compiled().map_err(Error::clone)?;
        }
        let work = if profile::is_on() { self.work(gpu.index) } else { Work::default() };
        launch(gpu, &kernel, &self.buffers, &self.params, groups as u64, self.flow, work)
    }
}

/// A text whose binding `k` is writable.
fn writable(text: &str, k: usize) -> Result<String> {
    let binding = |access| format!("@binding({k}) var<storage, {access}>");
    let (read, write) = (binding("read"), binding("read_write"));
    match text.contains(&read) {
        true => Ok(text.replacen(&read, &write, 1)),
        false => Err(Error::value(format!("internal: a shader does not read a binding {k}"))),
    }
}

/// A new contiguous array of the shape of `x` on its device.
pub fn like(x: &Array, dtype: DType) -> Result<Array> {
    Array::empty(x.shape(), dtype, x.device())
}

/// The dtype in which rows of these lengths are written: float32 for halves not all of which start on words.
pub fn dtype_of_rows(dtype: DType, lengths: &[usize]) -> DType {
    if lengths.iter().all(|n| n.is_multiple_of(per_word(dtype))) { dtype } else { DType::F32 }
}

/// The number of words of a contiguous array.
pub fn words_of(x: &Array) -> usize {
    x.numel().div_ceil(per_word(x.dtype()))
}
