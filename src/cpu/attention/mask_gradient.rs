//! The gradient of an added mask: the cotangents of the scores, summed over everything that shares the mask.
//!
//! A task owns rows of the mask and walks the batch elements that share them, in order. This needs its own
//! pass: tasks of `src/cpu/attention/backward.rs` own keys and values.

use super::backward::Pass;
use super::operand::{Operand, View};
use super::product::Number;
use super::{Tile, WORK, coordinates};
use crate::array::Array;
use crate::cpu::run::threads::try_parallel_for;
use crate::error::Result;

/// Returns the gradient in the shape of `like`.
pub fn gradient<T: Number>(pass: &Pass<T>, like: &Array) -> Result<Array> {
    let p = &pass.p;
    let out = Array::full(like.shape(), 0.0, T::DTYPE)?;
    let owners = p.owners(like);
    // A mask with one row for all queries is one task; otherwise each block of queries owns its rows.
    let one_row = like.dim(like.rank() - 2) == 1;
    let (tasks, walked) = if one_row { (1, p.blocks()) } else { (p.blocks(), 1) };
    let to = Operand::<T>::new(&out);
    let numbers = owners.sharing.numel() * walked;
    try_parallel_for(owners.own.numel() * tasks, WORK.div_ceil((p.work() * numbers).max(1)), |range| {
        let buffers = pass.buffers()?;
        let from = if pass.second.is_some() { buffers.scores } else { buffers.adjoint };
        for task in range {
            let owner = coordinates(&owners.own, task / tasks);
            for number in 0..numbers {
                let block = p.block(owners.at(&owner, number / walked), task % tasks + number % walked);
                // SAFETY: the operands cover the problem; the rows of the mask belong to this task.
                unsafe {
                    pass.enter(&block, &buffers);
                    for tile in p.tiles(&block) {
                        pass.derive(&tile, &buffers);
                        add_transposed(&tile, from, to.queries(&block));
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Adds a transposed tile to the rows of a matrix of gradients: `to[query, key] += tile[key, query]`. Where
/// `to` has stride 0 this sums over the axis.
///
/// # Safety
/// `from` has the size of the tile; the matrix covers it, and only the caller accesses it.
unsafe fn add_transposed<T: Number>(tile: &Tile, from: *const T, to: View<T>) {
    for i in 0..tile.block.queries {
        for j in 0..tile.keys {
            // SAFETY: the caller guarantees the tile and sole access to the matrix (`# Safety`).
            unsafe {
                let sum = to.place(i, tile.key + j);
                *sum = T::from_f64(1.0).multiply_add::<false>(*from.add(j * tile.block.width + i), *sum);
            }
        }
    }
}
