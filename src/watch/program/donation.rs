//! Arguments that a program owns: their memory is free after their last reader.

use super::run::Run;
use super::{Program, Source};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;

/// An argument that a program owns.
#[derive(Clone, Copy)]
pub struct Donation {
    /// Its number.
    pub argument: usize,
    /// The bytes that are free without it; none for a part of memory, of which others may hold the rest.
    pub bytes: i64,
}

impl Donation {
    /// The arguments with these numbers, but for those in whose memory an argument lies that stays.
    pub fn of(arguments: &[Array], numbers: &[usize]) -> Vec<Donation> {
        let shared = |i: usize, k: usize| arguments[i].buffer().same(arguments[k].buffer());
        let stays = |k: usize| (0..arguments.len()).any(|i| !numbers.contains(&i) && shared(i, k));
        let owned: Vec<usize> = numbers.iter().copied().filter(|&k| !stays(k)).collect();
        let whole = |k: usize| arguments[k].buffer().bytes() as i64;
        let own = |k: usize| (arguments[k].numel() * arguments[k].dtype().size()) as i64;
        let bytes = |k: usize| match own(k) < whole(k) || owned.iter().any(|&i| i < k && shared(i, k)) {
            true => 0,
            false => whole(k),
        };
        owned.iter().map(|&k| Donation { argument: k, bytes: bytes(k) }).collect()
    }
}

impl Program {
    /// Which argument a value is, if it is one that the program owns.
    pub(super) fn donation(&self, value: u32) -> Option<Donation> {
        match self.values[value as usize].source {
            Source::Argument(k) => self.donated.iter().find(|donation| donation.argument == k).copied(),
            _ => None,
        }
    }

    /// The values that the program owns before it begins, with their bytes.
    pub(super) fn given_up(&self) -> Vec<(u32, i64)> {
        let all = 0..self.values.len() as u32;
        all.filter_map(|value| Some((value, self.donation(value)?.bytes))).collect()
    }

    /// Whether a value is dropped when step `i` has read it last. What may stop the run would want its
    /// arguments back.
    pub(super) fn is_dropped(&self, i: usize, value: u32) -> bool {
        i + 1 >= self.stops || self.donated.is_empty() || self.donation(value).is_none()
    }
}

impl Run<'_> {
    /// Takes the arguments that the program owns.
    pub(super) fn take_donated(&mut self) -> Result<()> {
        if self.program.donated.is_empty() {
            return Ok(());
        }
        let nothing = Array::empty(Shape::new(&[0])?, DType::U8, Device::Cpu)?;
        for Donation { argument: k, .. } in &self.program.donated {
            let array = std::mem::replace(&mut self.arguments[*k], nothing.clone());
            let is_it = |value: &u32| self.program.donation(*value).is_some_and(|found| found.argument == *k);
            let value = (0..self.slots.len() as u32).find(is_it);
            if let Some(value) = value {
                self.slots[value as usize] = Some(array);
                continue;
            }
            // It lies in the memory of an argument before it.
            let shares =
                |slot: &Option<Array>| slot.as_ref().is_some_and(|x| x.buffer().same(array.buffer()));
            if let Some(whole) = self.slots.iter().position(shares) {
                let (shape, strides) = (array.shape(), array.strides());
                self.parts.push(Part {
                    argument: *k,
                    whole,
                    shape,
                    strides,
                    offset: array.offset(),
                    dtype: array.dtype(),
                });
            } else {
                self.arguments[*k] = array;
            }
        }
        Ok(())
    }

    /// Drops those that were kept until step `i`, which no step reads from there on.
    pub(super) fn drop_kept(&mut self, i: usize) {
        if !self.program.donated.is_empty() {
            let done = self.program.steps[..i].iter().flat_map(|step| &step.done);
            done.for_each(|&value| self.slots[value as usize] = None);
        }
    }

    /// Gives those back that are still there.
    pub(super) fn return_donated(&mut self) -> Result<()> {
        for Part { argument, whole, shape, strides, offset, dtype } in self.parts.drain(..) {
            if let Some(whole) = &self.slots[whole] {
                self.arguments[argument] =
                    Array::strided(whole.buffer().clone(), shape, &strides, offset, dtype)?;
            }
        }
        for value in 0..self.slots.len() {
            if let Some(found) = self.program.donation(value as u32)
                && let Some(array) = self.slots[value].take()
            {
                self.arguments[found.argument] = array;
            }
        }
        Ok(())
    }
}

/// How an argument lies in the memory of another one that the program owns.
pub(super) struct Part {
    argument: usize,
    /// The value that the other one is.
    whole: usize,
    shape: Shape,
    strides: Vec<isize>,
    offset: usize,
    dtype: DType,
}
