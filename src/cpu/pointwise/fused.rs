//! Several elementwise loops as one: a chain of them runs tile by tile, so that what only the chain reads
//! never leaves the cache. Where machine code can be emitted, they are one loop (`fused/emitted.rs`).
//!
//! Each loop is the compiled one that runs alone otherwise ([`LoopFn`]), on the same elements; so the results
//! have the same bits.

#[cfg(all(unix, target_arch = "x86_64"))]
mod emitted;

use super::drive::{LoopFn, TILE, repeat, start};
use crate::arguments::chain::{self, ElementRule, Feed, Folding};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::nest::{MAX_OPERANDS, Nest};
use crate::array::shape::Shape;
#[cfg(all(unix, target_arch = "x86_64"))]
use crate::cpu::emit::Emitted;
use crate::cpu::pointwise::layout::wrong_dtype;
use crate::cpu::reduce::plan::Fill;
use crate::cpu::run::scratch::Scratch;
use crate::cpu::run::stream;
use crate::cpu::run::threads::{GRAIN, Shared, try_parallel_for};
use crate::dispatch_width;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// Words of a rule.
const RULE: usize = 4;

/// A loop over elements with its rule, as a value: what an elementwise operation runs on dense operands.
#[derive(Clone, Copy)]
pub struct ElementFn {
    kernel: LoopFn,
    rule: [u64; RULE],
    /// The dtype of the result.
    pub out: DType,
    /// Whether it computes in the dtypes of [`DType::compute`], to which a chain widens narrow operands, and
    /// from which it narrows the result.
    pub computes: bool,
    /// What its rule is, for other machines.
    read: Option<Reading>,
    /// Whether machine code is made of it.
    #[cfg_attr(not(all(unix, target_arch = "x86_64")), allow(dead_code))]
    emits: bool,
}

/// The rule of a loop as what it computes.
type Reading = unsafe fn(rule: *const u8) -> ElementRule;

impl ElementFn {
    /// A loop with its rule.
    ///
    /// # Safety
    /// The kernel is for rules of this type and makes elements of dtype `out`.
    pub unsafe fn new<R: Copy>(kernel: LoopFn, rule: R, out: DType) -> ElementFn {
        const { assert!(size_of::<R>() <= RULE * 8 && align_of::<R>() <= 8) };
        let mut words = [0; RULE];
        // SAFETY: the words are as large and as aligned as the rule, which is copied bit by bit.
        unsafe { words.as_mut_ptr().cast::<R>().write(rule) };
        ElementFn { kernel, rule: words, out, computes: false, read: None, emits: false }
    }

    /// Says that it computes in the dtypes of [`DType::compute`].
    pub fn computing(mut self) -> ElementFn {
        self.computes = true;
        self
    }

    /// Adds a way to read its rule, of which machine code is made if it `emits`.
    ///
    /// # Safety
    /// The reading is for rules of this type and tells what the loop computes.
    pub unsafe fn read_by(mut self, read: Reading, emits: bool) -> ElementFn {
        self.read = Some(read);
        self.emits = emits;
        self
    }

    /// What the host has no loop of, with results of this dtype.
    pub fn elsewhere(read: fn() -> ElementRule, out: DType) -> ElementFn {
        unsafe fn nothing(_rule: *const u8, _x: *const *const u8, _out: *mut u8, _n: usize) {}
        /// # Safety
        /// The rule is a function that makes what is read.
        unsafe fn made(rule: *const u8) -> ElementRule {
            // SAFETY: guaranteed by the caller.
            unsafe { (*rule.cast::<fn() -> ElementRule>())() }
        }
        // SAFETY: the loop does nothing, and the reading is for this rule.
        unsafe { ElementFn::new(nothing, read, out).read_by(made, false) }
    }

    /// Whether it can be read.
    pub fn is_read(&self) -> bool {
        self.read.is_some()
    }

    /// What it computes, if that can be read.
    pub fn read(&self) -> Option<ElementRule> {
        // SAFETY: the reading is for rules of this type.
        self.read.map(|read| unsafe { read(self.rule.as_ptr().cast()) })
    }
}

/// One loop of a chain: it reads and writes slots.
#[derive(Clone)]
struct Link {
    run: ElementFn,
    from: SmallVec<[u32; 4]>,
    to: u32,
}

/// A chain with the places of its operands and outputs.
struct Places<'a> {
    chain: &'a Chain,
    from: SmallVec<[Shared<u8>; 16]>,
    to: SmallVec<[Shared<u8>; 8]>,
    streamed: bool,
}

impl<'a> Places<'a> {
    fn new(chain: &'a Chain, operands: &[&Array], outputs: &[&Array]) -> Places<'a> {
        let at = |a: &&Array| Shared::new(start(a));
        let bytes = |a: &&Array| a.numel() * a.dtype().size();
        Places {
            chain,
            from: operands.iter().map(at).collect(),
            to: outputs.iter().map(at).collect(),
            streamed: stream::pays(operands.iter().chain(outputs).map(bytes).sum()),
        }
    }

    /// Computes the elements `start..end`.
    ///
    /// # Safety
    /// As for [`Chain::run`]; nobody else computes these elements.
    unsafe fn part(&self, start: usize, end: usize) -> Result<()> {
        let Places { chain, from, to, streamed } = self;
        // SAFETY: guaranteed by the caller.
        unsafe {
            #[cfg(all(unix, target_arch = "x86_64"))]
            if let Some(code) =
                chain.emitted().filter(|code| !code.is_slower_than_tiles(end - start, chain.links.len()))
            {
                return chain.looped(code, from, to, start, end, *streamed);
            }
            chain.tiled(from, to, start, end, *streamed)
        }
    }
}

/// The last output of a chain, computed as it is read.
struct Folded<'a> {
    places: Places<'a>,
    /// Bytes of an element.
    size: usize,
    failed: &'a Mutex<Option<Error>>,
}

impl Fill for Folded<'_> {
    unsafe fn fill(&self, from: usize, n: usize, to: *mut u8) {
        let mut places = Places { to: self.places.to.clone(), from: self.places.from.clone(), ..self.places };
        // Where the first element of all would be.
        places.to.push(Shared::new(to.wrapping_sub(from * self.size)));
        // SAFETY: guaranteed by the caller; each element is computed once.
        if let Err(error) = unsafe { places.part(from, from + n) } {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

/// A chain of loops over the same elements.
///
/// Its slots are numbered: operands first, then outputs, then the tiles of values between.
#[derive(Clone)]
pub struct Chain {
    /// How many elements each value has.
    n: usize,
    operands: Vec<(Feed, DType)>,
    nests: Vec<Nest>,
    outputs: Vec<DType>,
    /// How many of the outputs are stored; the last one is not if it is folded.
    stored: usize,
    tiles: usize,
    links: Vec<Link>,
    /// The emitted loop, once it was asked for; `None` if there is none.
    #[cfg(all(unix, target_arch = "x86_64"))]
    code: std::sync::OnceLock<Option<std::sync::Arc<Emitted>>>,
}

impl Chain {
    /// A chain over `n` elements without loops, with these operands (and `nests` of those that broadcast)
    /// and outputs, the last of which is folded instead of stored if that `folds`.
    pub fn new(
        n: usize, operands: Vec<(Feed, DType)>, nests: Vec<Nest>, outputs: Vec<DType>, folds: bool,
    ) -> Chain {
        Chain {
            n,
            operands,
            nests,
            stored: outputs.len() - usize::from(folds),
            outputs,
            tiles: 0,
            links: Vec::new(),
            #[cfg(all(unix, target_arch = "x86_64"))]
            code: std::sync::OnceLock::new(),
        }
    }

    /// The slot of an output.
    pub fn output(&self, i: usize) -> u32 {
        (self.operands.len() + i) as u32
    }

    /// The slot of a tile.
    pub fn tile(&self, i: usize) -> u32 {
        (self.operands.len() + self.outputs.len() + i) as u32
    }

    /// Adds a loop that reads the slots `from` and writes the slot `to`, which is one of them, with elements
    /// of the same size, or none.
    ///
    /// # Safety
    /// The loop is for operands of the dtypes of `from`, and as many; those slots were written before, or are
    /// operands; `to` is an output of its dtype or a tile.
    pub unsafe fn push(&mut self, run: ElementFn, from: SmallVec<[u32; 4]>, to: u32) {
        debug_assert!(from.len() <= MAX_OPERANDS);
        let first = self.tile(0);
        self.tiles = self.tiles.max((to + 1).saturating_sub(first) as usize);
        self.links.push(Link { run, from, to });
    }

    /// What it computes, for a kernel of another machine, of operands with these parts; `None` if that
    /// cannot be read.
    pub fn described(&self, parts: Vec<chain::Part>) -> Option<chain::Chain> {
        let link = |link: &Link| {
            Some(chain::Link {
                rule: link.run.read()?,
                out: link.run.out,
                from: link.from.clone(),
                to: link.to,
            })
        };
        Some(chain::Chain {
            n: self.n,
            operands: self.operands.clone(),
            nests: self.nests.clone(),
            parts,
            outputs: self.outputs.clone(),
            links: self.links.iter().map(link).collect::<Option<_>>()?,
        })
    }

    /// Makes its machine code, if there can be any: no thread waits for another that makes it.
    pub fn prepare(&self) {
        #[cfg(all(unix, target_arch = "x86_64"))]
        self.emitted();
    }

    /// Runs it.
    ///
    /// # Safety
    /// The operands and stored outputs have the dtypes and layouts of this chain, on the host; outputs are
    /// contiguous, and overlap neither each other nor an operand. None is folded, no operand is a part.
    pub unsafe fn run(&self, operands: &[&Array], outputs: &[&Array]) -> Result<()> {
        let places = Places::new(self, operands, outputs);
        let grain = (GRAIN / self.links.len().max(1)).next_multiple_of(TILE);
        // SAFETY: guaranteed by the caller; ranges are disjoint.
        try_parallel_for(self.n, grain, |range| unsafe { places.part(range.start, range.end) })
    }

    /// Runs it, and folds the last output, of this shape.
    ///
    /// # Safety
    /// As for [`Chain::run`], but that the last output is folded.
    pub unsafe fn fold(
        &self, operands: &[&Array], outputs: &[&Array], folding: &Folding, shape: &Shape,
    ) -> Result<Array> {
        let (places, failed) = (Places::new(self, operands, outputs), Mutex::new(None));
        let Some(&dtype) = self.outputs.last() else { return Err(wrong_dtype("reduction", DType::Bool)) };
        let folded = folding.fill(&Folded { places, size: dtype.size(), failed: &failed }, shape, dtype)?;
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(folded), Err)
    }

    /// Copies the elements `at..at + n` of an operand that broadcasts to a tile.
    ///
    /// # Safety
    /// The operand at `from` has the elements of this nest, and the tile has room.
    unsafe fn copy(&self, nest: u32, dtype: DType, from: *const u8, at: usize, n: usize, tile: *mut u8) {
        let nest = &self.nests[nest as usize];
        let step = nest.strides[0][nest.rank - 1];
        dispatch_width!(dtype.size(), T => {
            nest.runs([0], at, n, |&[position], done, run| {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let (from, to) = (from.cast::<T>().offset(position), tile.cast::<T>().add(done));
                    match step {
                        0 => repeat::<T>(from.cast(), to.cast(), run),
                        _ => std::ptr::copy_nonoverlapping(from, to, run),
                    }
                }
            });
        });
    }

    /// Computes the elements `start..end` tile by tile.
    ///
    /// # Safety
    /// `from` and `to` are the operands and outputs, as [`Chain::run`] demands.
    unsafe fn tiled(
        &self, from: &[Shared<u8>], to: &[Shared<u8>], start: usize, end: usize, streamed: bool,
    ) -> Result<()> {
        let n = TILE.min(end - start);
        // Tiles begin at cache lines.
        let size = (n * 8).next_multiple_of(64);
        let count = from.len() + to.len() + self.tiles;
        let mut memory = Scratch::<u8>::new(count * size)?;
        let base = memory.ptr();
        let tile = |slot: usize| base.wrapping_add(slot * size);
        let mut slots: SmallVec<[*mut u8; 64]> = (0..count).map(tile).collect();
        for (k, (&(feed, dtype), from)) in self.operands.iter().zip(from).enumerate() {
            if feed == Feed::Single {
                // SAFETY: the operand has one element, the tile room for `n`.
                unsafe {
                    dispatch_width!(dtype.size(), T => {
                        repeat::<T>(from.get(), slots[k], n)
                    });
                }
            }
        }
        for at in (start..end).step_by(TILE) {
            let n = TILE.min(end - at);
            for (k, (&(feed, dtype), from)) in self.operands.iter().zip(from).enumerate() {
                match feed {
                    Feed::Dense => slots[k] = from.get().wrapping_add(at * dtype.size()),
                    // SAFETY: the operand has the elements of its nest, the tile room for `n`.
                    Feed::Nest(nest) => unsafe { self.copy(nest, dtype, from.get(), at, n, slots[k]) },
                    Feed::Single | Feed::Part(_) => {}
                }
            }
            let places = || self.outputs.iter().zip(to).map(|(d, to)| to.get().wrapping_add(at * d.size()));
            let in_place = |&(i, _): &(usize, _)| !streamed || i >= self.stored;
            places().enumerate().filter(in_place).for_each(|(i, place)| slots[from.len() + i] = place);
            for link in &self.links {
                let mut x = [std::ptr::null::<u8>(); MAX_OPERANDS];
                link.from.iter().zip(&mut x).for_each(|(&slot, x)| *x = slots[slot as usize]);
                // SAFETY: every slot that is read holds `n` elements of the loop's dtypes, the one that is
                // written has room for them, and is one of the others or overlaps none.
                unsafe {
                    let rule = link.run.rule.as_ptr().cast();
                    (link.run.kernel)(rule, x.as_ptr(), slots[link.to as usize], n);
                }
            }
            if streamed {
                for ((i, place), dtype) in places().enumerate().zip(&self.outputs).take(self.stored) {
                    // SAFETY: the output has `n` elements from `at` on, and so has its tile.
                    unsafe { stream::stream(place, slots[from.len() + i], n * dtype.size()) };
                }
            }
        }
        if streamed {
            stream::fence();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
