//! The gradient of an added mask: the cotangents of the scores, summed over everything that shares the mask.
//!
//! A task owns rows of the mask and walks the batch elements that share them, in order. This needs its own
//! pass: tasks of `src/cpu/attention/backward.rs` own keys and values.

use super::backward::{Buffers, Pass};
use super::operand::Operand;
use super::product::Number;
use super::{WORK, coordinates, mask};
use crate::array::Array;
use crate::cpu::run::threads::{Shared, try_parallel_for};
use crate::error::Result;

/// Returns the gradient in the shape of `like`.
pub fn gradient<T: Number>(pass: &Pass<T>, like: &Array) -> Result<Array> {
    let p = pass.p;
    let out = Array::full(like.shape(), 0.0, T::DTYPE)?;
    let rank = like.rank();
    let owners = like.shape().part(0, rank - 2);
    let mut sharing = p.batch;
    for i in 0..owners.rank() {
        if owners.at(i) != 1 {
            sharing = sharing.with(i, 1);
        }
    }
    // A mask with one row for all queries is one task; otherwise each block of queries owns its rows.
    let one_row = like.dim(rank - 2) == 1;
    let (tasks, walked) = if one_row { (1, p.blocks()) } else { (p.blocks(), 1) };
    let to = Operand::<T>::new(&out);
    let work = p.work() * sharing.numel() * walked;
    try_parallel_for(owners.numel() * tasks, WORK.div_ceil(work.max(1)), |range| {
        let mut buffers = Buffers::new(pass)?;
        for task in range {
            let owner = coordinates(&owners, task / tasks);
            for number in 0..sharing.numel() * walked {
                let mut at = coordinates(&sharing, number / walked);
                at.iter_mut().zip(&owner).for_each(|(at, &own)| *at += own);
                let block = p.block(at, task % tasks + number % walked);
                // SAFETY: the operands cover the problem; the rows of the mask belong to this task.
                unsafe {
                    pass.enter(&block, &mut buffers);
                    for tile in p.tiles(&block) {
                        pass.derive(&block, &tile, &mut buffers);
                        let from =
                            if pass.second.is_some() { buffers.scores.ptr() } else { buffers.adjoint.ptr() };
                        mask::add_transposed(&tile, Shared::new(from), to.at(&block.at));
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}
