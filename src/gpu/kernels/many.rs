//! One dispatch over many tensors, each with its own bindings. A workgroup finds its own in a table.
//!
//! WGSL cannot index bindings. So a shader file for one tensor (`g0`, `x0`, ...) is expanded to the number of
//! tensors: one binding per tensor and role, and one case in the functions that read and write elements. A
//! whole workgroup takes the same case. Too few bindings make several dispatches.

use super::pieces::{fit, in_a_piece, piece};
use super::prelude::*;
use crate::gpu::max_buffers;
use smallvec::SmallVec;

/// The most tensors per dispatch: the size of the table in the window of parameters.
const MOST: usize = 56;
/// Elements per workgroup.
const PER_GROUP: usize = 1024;

/// One tensor: a flat array per role.
pub struct ManyItem<'a> {
    /// The arrays, in the order of the roles.
    pub arrays: SmallVec<[&'a Array; 5]>,
    /// Two words specific to the tensor.
    pub words: [u32; 2],
}

impl ManyItem<'_> {
    /// The number of elements of each array.
    pub fn count(&self) -> usize {
        self.arrays.first().map_or(0, |x| x.numel())
    }

    /// The number of its workgroups.
    pub fn groups(&self) -> usize {
        self.count().div_ceil(PER_GROUP)
    }
}

/// A shader file for one tensor, and its bindings.
#[derive(Clone, Copy, Default)]
pub struct Family<'a> {
    /// Name of the kernel.
    pub name: &'static str,
    /// The file.
    pub source: &'static str,
    /// The element type of `g`, where that is a role.
    pub gradient: Option<DType>,
    /// A boolean constant of the file that tells whether there is an optional role.
    pub option: Option<(&'static str, bool)>,
    /// The roles of the file that the tensors lack.
    pub absent: &'static [&'static str],
    /// What the text of `fn op` is, and what tells it from others.
    pub rule: Option<(&'a dyn Fn() -> Result<String>, u64)>,
    /// Bound once, before the arrays of the tensors: one that is read, and one that is written.
    pub before: (Option<&'a Array>, Option<&'a Array>),
    /// Bound once, after those of the tensors: one that is written.
    pub after: Option<&'a Array>,
}

/// Arrays of a tensor and its words.
type Owned = (SmallVec<[Array; 5]>, [u32; 2]);

/// The tensors in pieces that can be bound, of whole workgroups, so that their number is the same.
fn pieces_of(entries: &[ManyItem]) -> Result<Vec<Owned>> {
    let mut out = Vec::new();
    for entry in entries {
        let (count, each) = (entry.count(), in_a_piece(entry.arrays[0])? / PER_GROUP * PER_GROUP);
        for start in (0..count).step_by(each) {
            let arrays = entry.arrays.iter().map(|x| piece(x, start, each.min(count - start)));
            out.push((arrays.collect::<Result<_>>()?, entry.words));
        }
    }
    Ok(out)
}

impl Family<'_> {
    /// Runs the kernel over all `entries`, as many per dispatch as the GPU can bind and `most` allows.
    /// `header` adds parameters before the table, given the numbers of the first workgroup and of all.
    pub fn launch(
        &self, entries: &[ManyItem], most: usize, header: impl Fn(&mut Dispatch, usize, usize),
    ) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        if !fit(entries.iter().flat_map(|entry| entry.arrays.iter().copied()))? {
            let cut = pieces_of(entries)?;
            fn item((arrays, words): &Owned) -> ManyItem<'_> {
                ManyItem { arrays: arrays.iter().collect(), words: *words }
            }
            // What stands for an array that is not read must fit, too.
            let mut read = self.before.0;
            if !fit(read)? {
                read = Some(&cut[0].0[0]);
            }
            let family = Family { before: (read, self.before.1), ..*self };
            return family.launch(&cut.iter().map(item).collect::<Vec<_>>(), most, header);
        }
        let roles = first.arrays.len();
        let shared = [self.before.0, self.before.1, self.after].iter().flatten().count();
        let free = max_buffers(index_of(first.arrays[0])?)?.saturating_sub(shared);
        let mut base = 0;
        for chunk in entries.chunks((free / roles).min(most).clamp(1, MOST)) {
            let groups = chunk.iter().map(ManyItem::groups).sum();
            let mut run = Dispatch::new(self.name, self.source, DType::F32);
            run.text.tensors(chunk.len(), self.absent);
            if let Some((flag, there)) = self.option {
                run.flag(flag, there);
            }
            if let Some((text, key)) = self.rule {
                run.op(text, [key, 0]);
            }
            if let Some(dtype) = self.gradient {
                run.text.load_fours("g0", dtype);
            }
            if let Some(read) = self.before.0 {
                run.reads(read);
            }
            if let Some(written) = self.before.1 {
                run.writes(written);
            }
            for role in 0..roles {
                for entry in chunk {
                    // The gradient comes first.
                    match self.gradient {
                        Some(_) if role == 0 => run.reads(entry.arrays[role]),
                        _ => run.writes(entry.arrays[role]),
                    };
                }
            }
            if let Some(written) = self.after {
                run.writes(written);
            }
            header(&mut run, base, groups);
            let mut start = 0;
            for entry in chunk {
                run.words([start, entry.count()]).words(entry.words.map(|w| w as usize));
                start += entry.groups();
            }
            run.launch(groups)?;
            base += groups;
        }
        Ok(())
    }
}
