//! The list of primitive operations that a rule makes when it is read, each value assigned once.
//!
//! A row is an operation with the numbers of the rows it reads. Equal rows are one row, and what no result
//! needs is left out. Read next: `src/cpu/emit/lane.rs`, which writes the list; `src/cpu/emit/allocate.rs`,
//! which makes machine code of it.

use super::target::Target;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// No row.
pub const NONE: u32 = u32::MAX;

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The number with the bits `n`.
    Constant,
    /// Operand `n`, one number for all elements.
    Single,
    /// Operand `n`, a number per element.
    Dense,
    /// Operand `n`, one truth value for all elements.
    SingleTruth,
    /// Operand `n`, a truth value per element.
    DenseTruth,
    /// Square root.
    Sqrt,
    /// The largest integer that is not above `x`.
    Floor,
    /// The nearest integer.
    Round,
    /// An integer as a number.
    FromInt,
    /// `x + y`.
    Add,
    /// `x - y`.
    Sub,
    /// `x * y`.
    Mul,
    /// `x / y`.
    Div,
    /// The smaller; `y` if one is NaN.
    Min,
    /// The larger; `y` if one is NaN.
    Max,
    /// `x * 2^y`.
    Scale,
    /// `x + y` of integers.
    IntAdd,
    /// `x - y` of integers.
    IntSub,
    /// The bits that both have.
    IntAnd,
    /// The bits that one has.
    IntOr,
    /// The bits that only one has.
    IntXor,
    /// `x << n`.
    Shl,
    /// `x >> n`, with the sign.
    Shr,
    /// `x >> n`, with zeros.
    ShrZeros,
    /// `x * y + z`.
    Fma,
    /// `z - x * y`.
    Fnma,
    /// The element of table `n` at the last four bits of `x`. AVX2: of the 32 bytes number `n` of all tables,
    /// the 4 at the last three bits of each 32 bits of `x`.
    Lookup,
    /// `y` where the mask `x` holds, else `z`.
    Select,
    /// `x < y`.
    Lt,
    /// `x <= y`.
    Le,
    /// `x == y`.
    Eq,
    /// `x != y`.
    Ne,
    /// `x == y` of integers.
    IntEq,
    /// Both masks.
    Both,
    /// One of the masks.
    Either,
    /// Only one of the masks.
    Differ,
    /// Not the mask.
    Not,
    /// Leaves the loop before these elements if the mask holds for one of them.
    Leave,
    /// Stores the numbers `x` as result `n`.
    Store,
    /// Stores the mask `x` as result `n`.
    StoreTruth,
}

impl Code {
    /// Whether the value is a mask.
    pub fn is_mask(self) -> bool {
        use Code::*;
        matches!(self, SingleTruth | DenseTruth | Lt | Le | Eq | Ne | IntEq | Both | Either | Differ | Not)
    }
    /// Whether it can be loaded again wherever it is needed.
    pub fn is_source(self) -> bool {
        use Code::*;
        matches!(self, Constant | Single | Dense | SingleTruth | DenseTruth)
    }
    /// Whether it is one number for all elements.
    pub fn is_splat(self) -> bool {
        matches!(self, Code::Constant | Code::Single)
    }
    /// Whether it does something instead of making a value.
    pub fn is_effect(self) -> bool {
        matches!(self, Code::Leave | Code::Store | Code::StoreTruth)
    }
}

/// A row of the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// What it is.
    pub code: Code,
    /// The rows that it reads, then [`NONE`].
    pub x: [u32; 3],
    /// Its number: bits, an operand, a table, a shift.
    pub n: u64,
}

/// The operations of some rules, in order.
#[derive(Default, Debug)]
pub struct List {
    /// What it is written for.
    pub target: Target,
    /// Whether numbers have 64 bits.
    pub is_wide: bool,
    /// The rows.
    pub rows: Vec<Row>,
    /// The bits of tables.
    pub tables: Vec<[u64; 16]>,
    known: FxHashMap<Row, u32>,
    /// Whether rare arguments are computed here, rather than that the loop is left.
    is_whole: bool,
    /// Whether there is something that no row stands for.
    is_refused: bool,
}

thread_local! {
    /// The list that is being written by this thread.
    static LIST: RefCell<Option<List>> = const { RefCell::new(None) };
}

/// The list that `read` writes; `None` if it cannot be written.
pub fn list(target: Target, is_wide: bool, read: impl FnOnce() -> Option<()>) -> Option<List> {
    let new = List { target, is_wide, ..List::default() };
    let outer = LIST.with_borrow_mut(|list| list.replace(new));
    let done = read();
    let list = LIST.with_borrow_mut(|list| std::mem::replace(list, outer));
    done.and(list).filter(|list| !list.is_refused).map(List::live)
}

/// Does something with the list being written; the default outside of [`list`].
fn with<T: Default>(f: impl FnOnce(&mut List) -> T) -> T {
    LIST.with_borrow_mut(|list| list.as_mut().map(f)).unwrap_or_default()
}

/// Appends a row, or finds the same one.
#[inline(never)]
pub fn push(code: Code, x: [u32; 3], n: u64) -> u32 {
    with(|list| {
        let row = Row { code, x, n };
        let next = list.rows.len() as u32;
        let at = *list.known.entry(row).or_insert(next);
        if at == next {
            list.rows.push(row);
        }
        at
    })
}

/// The constant `value`.
pub fn constant(value: f64) -> u32 {
    push(Code::Constant, [NONE; 3], if is_wide() { value.to_bits() } else { (value as f32).to_bits().into() })
}

/// The integer `value`, or its lower half.
pub fn int(value: i64) -> u32 {
    push(Code::Constant, [NONE; 3], if is_wide() { value as u64 } else { (value as u32).into() })
}

/// A table of these bits.
pub fn table(bits: [u64; 16]) -> u64 {
    with(|list| match list.tables.iter().position(|known| *known == bits) {
        Some(at) => at as u64,
        None => {
            list.tables.push(bits);
            list.tables.len() as u64 - 1
        }
    })
}

/// Whether numbers have 64 bits.
pub fn is_wide() -> bool {
    with(|list| list.is_wide)
}

/// Whether the list is for AVX2.
pub fn is_avx2() -> bool {
    with(|list| list.target == Target::Avx2)
}

/// Gives up: there is something that no row stands for.
pub fn refuse() {
    with(|list| list.is_refused = true);
}

/// Whether the mask may hold for some elements. If rare arguments are not computed here, the loop is left
/// where it does.
pub fn may_hold(mask: u32) -> bool {
    let is_whole = with(|list| list.is_whole);
    if !is_whole {
        push(Code::Leave, [mask, NONE, NONE], 0);
    }
    is_whole
}

/// Computes arguments of all kinds while `read` runs: for functions with two kinds that are both frequent.
pub fn whole<T>(read: impl FnOnce() -> T) -> T {
    let outer = with(|list| std::mem::replace(&mut list.is_whole, true));
    let out = read();
    with(|list| list.is_whole = outer);
    out
}

impl List {
    /// Without the rows that no effect needs.
    fn live(mut self) -> List {
        let mut is_live: Vec<bool> = self.rows.iter().map(|row| row.code.is_effect()).collect();
        for i in (0..self.rows.len()).rev() {
            if is_live[i] {
                let reads = self.rows[i].x;
                reads.iter().filter(|&&x| x != NONE).for_each(|&x| is_live[x as usize] = true);
            }
        }
        let mut at = vec![NONE; self.rows.len()];
        let mut rows = Vec::with_capacity(self.rows.len());
        for (i, row) in self.rows.iter().enumerate().filter(|&(i, _)| is_live[i]) {
            at[i] = rows.len() as u32;
            rows.push(Row { x: row.x.map(|x| if x == NONE { NONE } else { at[x as usize] }), ..*row });
        }
        self.rows = rows;
        self
    }
}
