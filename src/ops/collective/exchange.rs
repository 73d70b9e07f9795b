//! Collective operations among processes. Bytes travel; sums are made here, as those of a batch are. So every
//! dtype has them, and they have the bits of the same function under `vmap`.

use super::{Collective, Exchange, batch};
use crate::arguments::group::Group;
use crate::array::buffer::Buffer;
use crate::array::shape::Axes;
use crate::interp;
use crate::op::Kernel;
use crate::ops::prelude::*;
use crate::ops::reduce::Extremum;
use crate::watch::debug::{Modes, modes};

/// So many bytes of all ranks together are sent to all, who add them up each; of more each adds up a part.
/// Between two ranks the volume is the same, in one exchange instead of two.
const SENT_WHOLE: usize = 1 << 16;

/// Runs the operation of `x` among the processes of a group.
pub(super) fn run(op: &Collective, group: &dyn Group, x: &Array) -> Result<Array> {
    let direction = if op.transposed { " in backward" } else { "" };
    let place = match &op.exchange {
        Exchange::SumScatter { axis: 0 } | Exchange::Gather { axis: 0 } => String::new(),
        Exchange::SumScatter { axis } | Exchange::Gather { axis } => format!(" along axis {axis}"),
        Exchange::AllToAll { split, concat } if split + concat > 0 => {
            format!(" from axis {split} to axis {concat}")
        }
        _ => String::new(),
    };
    on_host(group, (op.name(), &format!("{place}{direction}")), x, |call, x| call.run(&op.exchange, x))
}

/// The largest or smallest of the elements of all processes.
pub(super) fn extremum(name: &str, largest: bool, group: &dyn Group, x: &Array) -> Result<Array> {
    let axes = Axes::one(0);
    let of_rows = |rows: &Array| Extremum { axes, keepdim: false, largest }.eval_one(&[rows]);
    on_host(group, (name, ""), x, |call, x| call.reduced(x, &of_rows))
}

/// The sum among processes of tensors of one dtype as one vector; `None` where they must be joined first, or
/// somebody looks at each operation.
pub(super) fn sum_joined(group: &dyn Group, parts: &[Tensor]) -> Result<Option<Array>> {
    if modes().touches(Modes::WATCHED) || !interp::is_plain() {
        return Ok(None);
    }
    let arrays: Option<Vec<&Array>> = parts.iter().map(Tensor::concrete).collect();
    let Some(arrays) =
        arrays.filter(|all| all.iter().all(|x| x.is_contiguous() && x.device() == Device::Cpu))
    else {
        return Ok(None);
    };
    let (Some(dtype), n) = (arrays.first().map(|x| x.dtype()), arrays.iter().map(|x| x.numel()).sum()) else {
        return Ok(None);
    };
    let call = Call { group, what: &format!("psum of {dtype}[{n}]") };
    // Complex numbers travel as pairs of numbers.
    if !call.is_sent_whole(n, dtype) || dtype.is_complex() || arrays.iter().any(|x| x.dtype() != dtype) {
        return Ok(None);
    }
    let bytes = arrays.iter().map(|x| x.bytes()).collect::<Result<Vec<_>>>()?;
    let pieces = bytes.iter().map(|x| x.slice()).collect::<Result<Vec<_>>>()?;
    call.shared(&pieces, n, dtype, &add_rows)
}

/// Calls `run` with the elements of `x` in row-major order on the host; the result is where `x` is.
fn on_host(
    group: &dyn Group, (name, direction): (&str, &str), x: &Array,
    run: impl FnOnce(&Call, &Array) -> Result<Array>,
) -> Result<Array> {
    let host = contiguous(x.to_device(Device::Cpu)?)?;
    let what = format!("{name} of {}{:?}{direction}", x.dtype(), x.shape().to_vec());
    match run(&Call { group, what: &what }, &host) {
        Ok(made) => made.to_device(x.device()),
        Err(error) => {
            // Somebody may still read it.
            std::mem::forget(host);
            Err(error)
        }
    }
}

struct Call<'a> {
    group: &'a dyn Group,
    what: &'a str,
}

impl Call<'_> {
    fn run(&self, exchange: &Exchange, x: &Array) -> Result<Array> {
        let rank = self.group.rank();
        match exchange {
            Exchange::Sum => self.reduced(x, &add_rows),
            Exchange::SumAt { root } => match self.reduced(x, &add_rows)? {
                sum if *root == rank => Ok(sum),
                sum => zeros(sum.shape(), sum.dtype()),
            },
            Exchange::SumScatter { axis } => {
                let parts = self.scattered(&moved(x, *axis, 0)?)?;
                of_flat(&parts, x.shape().removed(*axis), &add_rows)
            }
            Exchange::Gather { axis } => moved(&self.gathered(x)?, 0, *axis),
            Exchange::AllToAll { split, concat } => {
                moved(&self.scattered(&moved(x, *split, 0)?)?, 0, *concat)
            }
            Exchange::Permute { pairs } => {
                let to = pairs.iter().find(|pair| pair.0 == rank).map(|pair| pair.1);
                let from = pairs.iter().find(|pair| pair.1 == rank).map(|pair| pair.0);
                if to == Some(rank) {
                    self.group.exchange(self.what, &[], None, &mut [], None)?;
                    return x.copied();
                }
                let own = x.bytes()?;
                let sent = if to.is_some() { own.slice()? } else { &[] };
                if from.is_none() {
                    self.group.exchange(self.what, sent, to, &mut [], None)?;
                    return zeros(x.shape(), x.dtype());
                }
                self.received(x.shape(), x.dtype(), |received| {
                    self.group.exchange(self.what, sent, to, received, from)
                })
            }
            Exchange::Broadcast { root } => self.received(x.shape(), x.dtype(), |bytes| {
                bytes.copy_from_slice(x.bytes()?.slice()?);
                if self.group.size() > 1 { self.group.broadcast(self.what, bytes, *root) } else { Ok(()) }
            }),
        }
    }

    /// A new array, whose bytes are filled. Where that fails, an exchange may be under way: the memory stays.
    fn received(
        &self, shape: Shape, dtype: DType, fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Array> {
        let bytes = Shape::new(&[shape.numel() * dtype.size()])?;
        let mut made = Array::empty(bytes, DType::U8, Device::Cpu)?;
        if let Err(error) = fill(made.slice_mut()?) {
            std::mem::forget(made);
            return Err(error);
        }
        Array::from_buffer(made.buffer().clone(), shape, dtype)
    }

    /// The values of all ranks along a new first axis.
    fn gathered(&self, x: &Array) -> Result<Array> {
        let (count, own) = (self.group.size(), x.bytes()?);
        self.received(x.shape().inserted(0, count)?, x.dtype(), |all| match count {
            1 => {
                all.copy_from_slice(own.slice()?);
                Ok(())
            }
            _ => self.group.all_gather(self.what, own.slice()?, all),
        })
    }

    /// Part `i` along the first axis from rank `i`.
    fn scattered(&self, x: &Array) -> Result<Array> {
        let own = x.bytes()?;
        self.received(x.shape(), x.dtype(), |all| match self.group.size() {
            1 => {
                all.copy_from_slice(own.slice()?);
                Ok(())
            }
            _ => self.group.all_to_all(self.what, own.slice()?, all),
        })
    }

    /// The elements, and zeros behind them, as a longer array of this shape.
    fn padded(&self, x: &Array, shape: Shape) -> Result<Array> {
        let own = x.bytes()?;
        self.received(shape, x.dtype(), |bytes| {
            let (filled, rest) = bytes.split_at_mut(own.numel());
            filled.copy_from_slice(own.slice()?);
            rest.fill(0);
            Ok(())
        })
    }

    /// Whether all of so many elements of each rank go to every rank.
    fn is_sent_whole(&self, n: usize, dtype: DType) -> bool {
        self.group.size() <= 2 || self.group.size() * n * dtype.size() <= SENT_WHOLE
    }

    /// What `of_rows` makes of `n` elements of each rank, which are its rows, where all ranks see them;
    /// `pieces` are those of this rank.
    fn shared(
        &self, pieces: &[&[u8]], n: usize, dtype: DType, of_rows: &dyn Fn(&Array) -> Result<Array>,
    ) -> Result<Option<Array>> {
        let count = self.group.size();
        let mut made = None;
        if count > 1 {
            self.group.share(self.what, pieces, &mut |first, step| {
                let memory = Buffer::foreign(first, count * step, Device::Cpu, Box::new(()));
                let strides = [(step / dtype.size()) as isize, 1];
                made = Some(of_rows(&Array::strided(memory, Shape::new(&[count, n])?, &strides, 0, dtype)?)?);
                Ok(())
            })?;
        }
        Ok(made)
    }

    /// What `of_rows` makes of the elements of all ranks, which are its rows; it may get a part of the
    /// columns.
    fn reduced(&self, x: &Array, of_rows: &dyn Fn(&Array) -> Result<Array>) -> Result<Array> {
        let (count, n) = (self.group.size(), x.numel());
        if self.is_sent_whole(n, x.dtype()) {
            return match self.shared(&[x.bytes()?.slice()?], n, x.dtype(), of_rows)? {
                Some(made) => made.viewed(x.shape()),
                None => of_flat(&self.gathered(x)?, x.shape(), of_rows),
            };
        }
        let flat = x.viewed(Shape::new(&[n])?)?;
        let length = n.div_ceil(count);
        let rows = Shape::new(&[count, length])?;
        let own = {
            let parts = if n == rows.numel() { flat.viewed(rows)? } else { self.padded(&flat, rows)? };
            of_rows(&self.scattered(&parts)?)?
        };
        Array::from_buffer(self.gathered(&own)?.buffer().clone(), x.shape(), x.dtype())
    }
}

fn zeros(shape: Shape, dtype: DType) -> Result<Array> {
    Array::full(shape, 0.0, dtype)
}

fn contiguous(x: Array) -> Result<Array> {
    if x.is_contiguous() { Ok(x) } else { x.copied() }
}

/// The array with an axis in another place, contiguous.
fn moved(x: &Array, from: usize, to: usize) -> Result<Array> {
    let mut order: SmallVec<[u8; 8]> = (0..x.rank() as u8).collect();
    let axis = order.remove(from);
    order.insert(to, axis);
    contiguous(x.permute(&order)?)
}

/// What `of_rows` makes of the rows along the first axis, as an array of this shape.
fn of_flat(rows: &Array, shape: Shape, of_rows: &dyn Fn(&Array) -> Result<Array>) -> Result<Array> {
    of_rows(&rows.viewed(Shape::new(&[rows.dim(0), shape.numel()])?)?)?.viewed(shape)
}

/// The sum of rows, with their dtype.
fn add_rows(rows: &Array) -> Result<Array> {
    let _guard = interp::evaluating();
    batch::add_rows(&Tensor::Array(rows.clone()))?.array("psum").cloned()
}
