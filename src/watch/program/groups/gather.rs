//! Operands that broadcast to the loop of a group, such as a row to a matrix: they are read tile by tile.

use super::Fusion;
use crate::array::buffer::Device;
use crate::array::nest::Nest;
use crate::array::shape::Shape;
use crate::watch::script::View;

/// What broadcasts is gathered on the host where its runs are at least so long.
const RUN: usize = 16;

/// The loop over a shape that an array broadcasts to, if it does.
pub fn broadcast(view: &View, shape: &Shape) -> Option<Nest> {
    let (rank, added) = (shape.rank(), shape.rank().checked_sub(view.shape.rank())?);
    let mut nest = Nest::empty();
    for i in (0..rank).filter(|&i| shape.at(i) != 1) {
        let stride = match i.checked_sub(added).map(|k| (view.shape.at(k), view.strides[k])) {
            None | Some((1, _)) => 0,
            Some((length, stride)) => (length == shape.at(i)).then_some(stride)?,
        };
        nest.push(shape.at(i), &[stride]);
    }
    nest.rank = nest.rank.max(1);
    Some(nest)
}

impl Fusion<'_> {
    /// The value that a number behind those of values stands for, and the shape that it broadcasts to.
    pub fn gathered(&self, number: u32) -> Option<(u32, Shape)> {
        let behind = (number as usize).checked_sub(self.values.len())?;
        self.gathers.borrow().get(behind).copied()
    }

    /// The number of a value as a loop of this shape reads it, if it broadcasts in runs.
    pub fn gather(&self, value: u32, shape: &Shape) -> Option<u32> {
        let nest = broadcast(self.view(value), shape)?;
        let last = nest.rank - 1;
        let in_runs = nest.dims[last] >= RUN && matches!(nest.strides[0][last], 0 | 1);
        if !in_runs && self.device(value) == Device::Cpu {
            return None;
        }
        let mut all = self.gathers.borrow_mut();
        let known = all.iter().position(|one| *one == (value, *shape)).unwrap_or(all.len());
        if known == all.len() {
            all.push((value, *shape));
        }
        Some((self.values.len() + known) as u32)
    }
}
