//! Arguments that a program owns: their memory is free after their last reader.

use super::run::Run;
use super::{Program, Source};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;

impl Program {
    /// Which argument a value is, if it is one that the program owns.
    pub(super) fn donation(&self, value: u32) -> Option<usize> {
        match self.values[value as usize].source {
            Source::Argument(k) if self.donated.contains(&k) => Some(k),
            _ => None,
        }
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
        for value in 0..self.slots.len() {
            if let Some(k) = self.program.donation(value as u32) {
                self.slots[value] = Some(std::mem::replace(&mut self.arguments[k], nothing.clone()));
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
    pub(super) fn return_donated(&mut self) {
        for value in 0..self.slots.len() {
            if let Some(k) = self.program.donation(value as u32)
                && let Some(array) = self.slots[value].take()
            {
                self.arguments[k] = array;
            }
        }
    }
}
