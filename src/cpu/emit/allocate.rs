//! From a list of rows to machine code: which value is in which register, and when.
//!
//! The body of the loop is a straight line, so the value whose next use is farthest gives up its register.
//! What can be loaded again is dropped, other values go to the frame once. Constants are read from memory by
//! the instructions that need them, and the most used ones keep a register for the whole loop. With AVX2 they
//! are repeated in memory, and masks share the registers of numbers.

use super::ssa::{Code, List, NONE, Row};
use super::target::Target;
use super::uses::{Uses, uses};
use super::x86::general::{FRAME, HELD, POOL, SINGLES, SPARE};
use super::x86::{General, Last, PRESENT, Writer, Zmm, opcode};

/// Registers that constants do not keep for the whole loop, beyond those that the values need.
const SPARES: usize = 3;
/// What lies at a place of the pool.
pub fn pool(at: i32) -> Last {
    Last::At { base: POOL, at }
}

/// No register.
const NOWHERE: u8 = u8::MAX;

/// A function that is ready to be put into memory.
pub struct Made {
    /// The machine code.
    pub bytes: Vec<u8>,
    /// What it finds at the pointer to its constants.
    pub pool: Vec<u64>,
    /// Bytes of its frame.
    pub frame: usize,
}

/// The registers of one kind.
struct Bank {
    /// The value in each, or [`NONE`].
    holds: Vec<u32>,
    /// Which may be used.
    is_open: Vec<bool>,
}

impl Bank {
    fn new(registers: impl Iterator<Item = bool>) -> Bank {
        let is_open: Vec<bool> = registers.collect();
        Bank { holds: vec![NONE; is_open.len()], is_open }
    }
}

/// The state of the allocation at one row.
pub struct Allocation<'a> {
    list: &'a List,
    /// The code so far.
    pub write: Writer,
    pool: Vec<u64>,
    /// The place of each constant or table in the pool.
    pub pooled: Vec<i32>,
    /// The next row that reads a value, or [`NONE`].
    next: Vec<u32>,
    /// The register of each value.
    register: Vec<u8>,
    /// Where each value lies in the frame, or [`NONE`].
    slot: Vec<u32>,
    free_slots: Vec<u32>,
    slots: u32,
    /// Values whose registers the present row reads or writes.
    pub kept: [u32; 4],
    banks: [Bank; 2],
    /// The values that keep a register for the whole loop.
    is_pinned: Vec<bool>,
    /// Jumps out of the loop.
    pub leaves: Vec<usize>,
    /// Where bytes of 1 lie in the pool.
    pub ones: i32,
}

/// The function of a list with so many pointers of operands and results.
pub fn function(list: &List, pointers: usize) -> Made {
    let n = list.rows.len();
    let uses = uses(list);
    let mut all = Allocation {
        list,
        write: Writer {
            bytes: Vec::with_capacity(64 + 10 * n),
            wide: list.is_wide.into(),
            target: list.target,
        },
        pool: Vec::new(),
        pooled: vec![0; n],
        next: vec![NONE; n],
        register: vec![NOWHERE; n],
        slot: vec![NONE; n],
        free_slots: Vec::new(),
        slots: 0,
        kept: [NONE; 4],
        banks: [
            Bank::new((0..list.target.registers()).map(|_| true)),
            Bank::new((0..8).map(|k| k > PRESENT)),
        ],
        is_pinned: vec![false; n],
        leaves: Vec::new(),
        ones: 0,
    };
    all.fill_pool();
    let held = pointers.min(HELD.len());
    all.write.enter(held);
    for (k, &register) in HELD.iter().enumerate().take(held) {
        all.write.pointer(register, k);
    }
    all.pin(&uses);
    let begun = all.write.begin();
    for (i, row) in list.rows.iter().enumerate() {
        all.next[i] = uses.first[i];
        for (&x, &next) in row.x.iter().zip(&uses.after[i]).filter(|&(&x, _)| x != NONE) {
            all.next[x as usize] = next;
        }
        all.kept = [row.x[0], row.x[1], row.x[2], NONE];
        all.row(i as u32, *row);
    }
    let leaves = std::mem::take(&mut all.leaves);
    all.write.end(begun, &leaves, held);
    Made { bytes: all.write.bytes, pool: all.pool, frame: all.slots as usize * list.target.bytes() }
}

/// The mask of the first `n` of 16 elements.
fn mask_of(n: u64) -> u64 {
    (1 << n.min(16)) - 1
}

impl Allocation<'_> {
    /// Writes constants and tables into the pool.
    fn fill_pool(&mut self) {
        let (is_wide, is_avx2) = (self.list.is_wide, self.is_avx2());
        if !is_avx2 {
            // The masks of the first elements.
            let masks = (0..5).map(|i| (0..4).fold(0, |all, k| all | mask_of(4 * i + k) << (16 * k)));
            self.pool.extend(masks);
        }
        let tables = 8 * self.pool.len() as i32;
        for table in &self.list.tables {
            if is_wide {
                self.pool.extend(table);
            } else {
                self.pool.extend(table.chunks(2).map(|pair| pair[0] | pair[1] << 32));
            }
        }
        // Bytes that one row looks up.
        let part = if is_avx2 { 32 } else { 16 * i32::from(self.write.size()) };
        if self.list.rows.iter().any(|row| row.code == Code::StoreTruth) {
            self.ones = 8 * self.pool.len() as i32;
            let words = if is_avx2 { 4 } else { 2 };
            self.pool.resize(self.pool.len() + words, 0x0101_0101_0101_0101);
        }
        let mut half = None;
        for (i, row) in self.list.rows.iter().enumerate() {
            self.pooled[i] = match row.code {
                Code::Lookup => tables + part * row.n as i32,
                Code::Constant if is_avx2 => {
                    let twice = if is_wide { row.n } else { row.n | row.n << 32 };
                    self.pool.extend([twice; 4]);
                    8 * self.pool.len() as i32 - 32
                }
                Code::Constant if is_wide => {
                    self.pool.push(row.n);
                    8 * self.pool.len() as i32 - 8
                }
                Code::Constant => match half.take() {
                    Some(at) => {
                        self.pool[at] |= row.n << 32;
                        8 * at as i32 + 4
                    }
                    None => {
                        half = Some(self.pool.len());
                        self.pool.push(row.n);
                        8 * self.pool.len() as i32 - 8
                    }
                },
                _ => 0,
            };
        }
    }

    /// Gives registers for the whole loop to the constants that are worth most.
    fn pin(&mut self, uses: &Uses) {
        let registers = self.list.target.registers();
        let room = usize::from(registers).saturating_sub(uses.most + SPARES);
        let is_splat = |&v: &u32| self.list.rows[v as usize].code.is_splat();
        let mut splats: Vec<u32> = (0..self.list.rows.len() as u32).filter(is_splat).collect();
        splats.sort_by_key(|&v| std::cmp::Reverse(uses.worth[v as usize]));
        for (&v, register) in splats.iter().take(room).zip((0..registers).rev()) {
            let last = self.splat(v);
            self.write.splat(register, last);
            self.register[v as usize] = register;
            self.is_pinned[v as usize] = true;
            self.banks[0].is_open[register as usize] = false;
        }
    }

    fn is_avx2(&self) -> bool {
        self.list.target == Target::Avx2
    }

    /// The bank of the values of a row.
    fn bank(&self, code: Code) -> usize {
        usize::from(code.is_mask() && !self.is_avx2())
    }

    fn code(&self, v: u32) -> Code {
        self.list.rows[v as usize].code
    }

    /// A constant or the like in memory.
    pub fn splat(&self, v: u32) -> Last {
        let row = self.list.rows[v as usize];
        match row.code {
            Code::Single | Code::SingleTruth => Last::Splat { base: SINGLES, at: 8 * row.n as i32 },
            _ if self.is_avx2() => pool(self.pooled[v as usize]),
            _ => Last::Splat { base: POOL, at: self.pooled[v as usize] },
        }
    }

    fn is_in_register(&self, v: u32) -> bool {
        self.register[v as usize] != NOWHERE
    }

    /// Whether nothing reads a value after this row.
    pub fn dies(&self, v: u32) -> bool {
        self.next[v as usize] == NONE && !self.is_pinned[v as usize]
    }

    /// A register that may be written, for the value `v`; that of the value which is needed last, if all are
    /// in use.
    fn take(&mut self, v: u32, bank: usize) -> u8 {
        let mut best = (0, 0);
        let Bank { holds, is_open } = &self.banks[bank];
        for (r, &held) in holds.iter().enumerate().filter(|&(r, _)| is_open[r]) {
            let until = match held {
                NONE => u64::MAX,
                held if self.kept.contains(&held) => continue,
                // Of two that are read together, the one that need not be stored.
                held => 2 * u64::from(self.next[held as usize]) + 1 + u64::from(self.code(held).is_source()),
            };
            if until > best.0 {
                best = (until, r);
            }
        }
        let r = best.1 as u8;
        let held = self.banks[bank].holds[best.1];
        if held != NONE {
            self.evict(held);
        }
        self.banks[bank].holds[best.1] = v;
        self.register[v as usize] = r;
        r
    }

    /// Takes its register from a value, which can be loaded again from the frame or from where it was.
    fn evict(&mut self, v: u32) {
        let r = self.register[v as usize];
        let code = self.code(v);
        if !code.is_source() && self.slot[v as usize] == NONE {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            self.slot[v as usize] = slot;
            let at = self.in_frame(v);
            if self.bank(code) == 1 {
                self.write.move_mask(r, FRAME, at, true);
            } else {
                self.write.vector(opcode::STORE, r, 0, Last::At { base: FRAME, at }, None);
            }
        }
        self.release(v);
    }

    /// Where a value lies in the frame.
    fn in_frame(&self, v: u32) -> i32 {
        (self.slot[v as usize] as usize * self.list.target.bytes()) as i32
    }

    /// Frees the register of a value.
    fn release(&mut self, v: u32) {
        let r = std::mem::replace(&mut self.register[v as usize], NOWHERE);
        if r != NOWHERE {
            let bank = self.bank(self.code(v));
            self.banks[bank].holds[r as usize] = NONE;
        }
    }

    /// The pointer of an operand or result, in a register.
    pub fn pointer(&mut self, k: u64) -> General {
        match HELD.get(k as usize) {
            Some(&register) => register,
            None => {
                self.write.pointer(SPARE, k as usize);
                SPARE
            }
        }
    }

    /// The register of a value, which is loaded if it has none.
    pub fn get(&mut self, v: u32) -> u8 {
        if self.is_in_register(v) {
            return self.register[v as usize];
        }
        let row = self.list.rows[v as usize];
        let (at, bank) = (self.in_frame(v), self.bank(row.code));
        let r = self.take(v, bank);
        match row.code {
            Code::SingleTruth if bank == 1 => self.write.move_mask(r, SINGLES, 8 * row.n as i32, false),
            Code::Constant | Code::Single | Code::SingleTruth => {
                let last = self.splat(v);
                self.write.splat(r, last);
            }
            Code::Dense => {
                let base = self.pointer(row.n);
                self.write.load_elements(r, base);
            }
            Code::DenseTruth => {
                let through = self.spare();
                let base = self.pointer(row.n);
                self.write.load_truths(r, through, base);
            }
            _ if bank == 1 => self.write.move_mask(r, FRAME, at, false),
            _ => self.write.vector(opcode::LOAD, r, 0, Last::At { base: FRAME, at }, None),
        }
        r
    }

    /// A register that is free for the present row; no value gets it.
    pub fn spare(&mut self) -> Zmm {
        let holds = &self.banks[0].holds;
        if let Some(r) = (0..holds.len()).find(|&r| self.banks[0].is_open[r] && holds[r] == NONE) {
            return r as Zmm;
        }
        let farthest = (0..holds.len())
            .filter(|&r| self.banks[0].is_open[r] && !self.kept.contains(&holds[r]))
            .max_by_key(|&r| self.next[holds[r] as usize]);
        let r = farthest.unwrap_or(0);
        self.evict(holds[r]);
        r as Zmm
    }

    /// A value as the last operand: in memory, if it is a constant without a register.
    pub fn last(&mut self, v: u32) -> Last {
        if self.is_loose(v) { self.splat(v) } else { Last::Register(self.get(v)) }
    }

    /// Whether a value is a constant without a register, which instructions read from memory.
    pub fn is_loose(&self, v: u32) -> bool {
        let code = self.code(v);
        let is_repeated = code == Code::Constant || (code == Code::Single && !self.is_avx2());
        is_repeated && !self.is_in_register(v)
    }

    /// Whether a value is a constant without a register, and not NaN: then the order of operands that may be
    /// exchanged does not matter.
    pub fn is_plain(&self, v: u32) -> bool {
        let row = self.list.rows[v as usize];
        let number =
            if self.list.is_wide { f64::from_bits(row.n) } else { f32::from_bits(row.n as u32).into() };
        row.code == Code::Constant && !self.is_in_register(v) && !number.is_nan()
    }

    /// Frees the registers and slots of what the present row read for the last time.
    pub fn bury(&mut self, row: Row) {
        for &x in row.x.iter().filter(|&&x| x != NONE) {
            if self.dies(x) {
                self.release(x);
                let slot = std::mem::replace(&mut self.slot[x as usize], NONE);
                if slot != NONE {
                    self.free_slots.push(slot);
                }
            }
        }
    }

    /// Gives the register of `gone`, which dies, to the result of the present row.
    pub fn over(&mut self, v: u32, gone: u32, row: Row) -> u8 {
        let r = self.register[gone as usize];
        self.bury(row);
        self.banks[0].holds[r as usize] = v;
        self.register[v as usize] = r;
        r
    }

    /// Copies a register for the result of the present row, whose other operands stay where they are.
    pub fn over_copy(&mut self, v: u32, from: Zmm, row: Row) -> u8 {
        let to = self.take(v, 0);
        self.write.vector(opcode::MOVE, to, 0, Last::Register(from), None);
        self.bury(row);
        to
    }

    /// The register of the result of the present row, whose operands are in registers.
    pub fn result(&mut self, v: u32, row: Row) -> u8 {
        self.bury(row);
        self.take(v, self.bank(row.code))
    }
}
