//! Instruction selection: the machine instructions of each row of the list.

use super::allocate::{Allocation, pool};
use super::ssa::{Code, Row};
use super::target::Target;
use super::x86::{Last, Opcode, mask_opcode, opcode};

/// Rounding modes of `vrndscaleps` and `vroundps`: down, and to nearest; no exceptions.
const DOWN: u8 = 9;
const NEAREST: u8 = 8;

/// Relations of `vcmpps`, and those of exchanged operands. NaN makes all false but `!=`.
const LT: [u8; 2] = [0x11, 0x1e];
const LE: [u8; 2] = [0x12, 0x1d];
const EQ: [u8; 2] = [0; 2];
const NE: [u8; 2] = [4; 2];

impl Allocation<'_> {
    /// Writes the instructions of row `i`.
    pub fn row(&mut self, i: u32, row: Row) {
        match row.code {
            Code::Constant | Code::Single | Code::Dense | Code::SingleTruth | Code::DenseTruth => {}
            Code::Sqrt => self.unary(i, row, opcode::SQRT, None),
            Code::Floor => self.unary(i, row, opcode::ROUND, Some(DOWN)),
            Code::Round => self.unary(i, row, opcode::ROUND, Some(NEAREST)),
            Code::FromInt => self.unary(i, row, opcode::FROM_INT, None),
            Code::Add => self.binary(i, row, opcode::ADD, true),
            Code::Sub => self.binary(i, row, opcode::SUB, false),
            Code::Mul => self.binary(i, row, opcode::MUL, true),
            Code::Div => self.binary(i, row, opcode::DIV, false),
            Code::Min => self.binary(i, row, opcode::MIN, false),
            Code::Max => self.binary(i, row, opcode::MAX, false),
            Code::Scale => self.binary(i, row, opcode::SCALE, false),
            Code::IntAdd => self.binary(i, row, opcode::INT_ADD, true),
            Code::IntSub => self.binary(i, row, opcode::INT_SUB, false),
            Code::IntAnd => self.binary(i, row, opcode::INT_AND, true),
            Code::IntOr => self.binary(i, row, opcode::INT_OR, true),
            Code::IntXor => self.binary(i, row, opcode::INT_XOR, true),
            Code::IntEq => self.binary(i, row, opcode::INT_EQ, true),
            Code::Shl => self.shift(i, row, opcode::SHL, 6),
            Code::Shr => self.shift(i, row, opcode::SHR, 4),
            Code::ShrZeros => self.shift(i, row, opcode::SHR_ZEROS, 2),
            Code::Fma => self.fused(i, row, opcode::FMA_213, opcode::FMA_231),
            Code::Fnma => self.fused(i, row, opcode::FNMA_213, opcode::FNMA_231),
            Code::Lookup => self.lookup(i, row),
            Code::Select => self.select(i, row),
            Code::Lt => self.compare(i, row, LT),
            Code::Le => self.compare(i, row, LE),
            Code::Eq => self.compare(i, row, EQ),
            Code::Ne => self.compare(i, row, NE),
            Code::Both => self.masks(i, row, mask_opcode::AND, opcode::INT_AND),
            Code::Either => self.masks(i, row, mask_opcode::OR, opcode::INT_OR),
            Code::Differ => self.masks(i, row, mask_opcode::XOR, opcode::INT_XOR),
            Code::Not => {
                let mask = self.get(row.x[0]);
                let to = self.result(i, row);
                self.write.not(to, mask);
            }
            Code::Leave => {
                let mask = self.get(row.x[0]);
                let jump = self.write.leave_if(mask);
                self.leaves.push(jump);
                self.bury(row);
            }
            Code::Store => {
                let from = self.get(row.x[0]);
                let base = self.pointer(row.n);
                self.write.store_elements(from, base);
                self.bury(row);
            }
            Code::StoreTruth => {
                let from = self.get(row.x[0]);
                let through = self.spare();
                let base = self.pointer(row.n);
                self.write.store_truths(from, through, self.ones, base);
                self.bury(row);
            }
        }
    }

    fn unary(&mut self, i: u32, row: Row, opcodes: [Opcode; 2], number: Option<u8>) {
        let last = self.last(row.x[0]);
        let to = self.result(i, row);
        self.write.vector(opcodes, to, 0, last, None);
        self.write.bytes.extend(number);
    }

    fn binary(&mut self, i: u32, row: Row, opcodes: [Opcode; 2], commutes: bool) {
        let [mut x, mut y, _] = row.x;
        if commutes && self.is_plain(x) && !self.is_loose(y) {
            std::mem::swap(&mut x, &mut y);
        }
        let first = self.get(x);
        let last = self.last(y);
        let to = self.result(i, row);
        self.write.vector(opcodes, to, first, last, None);
    }

    /// The destination is the second operand here, and the first a part of the opcode. AVX2 shifts registers.
    fn shift(&mut self, i: u32, row: Row, opcodes: [Opcode; 2], digit: u8) {
        let last = match self.write.target {
            Target::Avx2 => Last::Register(self.get(row.x[0])),
            Target::Avx512 => self.last(row.x[0]),
        };
        let to = self.result(i, row);
        self.write.vector(opcodes, digit, to, last, None);
        self.write.bytes.push(row.n.min(255) as u8);
    }

    fn compare(&mut self, i: u32, row: Row, [relation, exchanged]: [u8; 2]) {
        let [mut x, mut y, _] = row.x;
        let exchanges = self.is_loose(x) && !self.is_loose(y);
        if exchanges {
            std::mem::swap(&mut x, &mut y);
        }
        let first = self.get(x);
        let last = self.last(y);
        let to = self.result(i, row);
        self.write.vector(opcode::COMPARE, to, first, last, None);
        self.write.bytes.push(if exchanges { exchanged } else { relation });
    }

    /// `opcodes` are for masks in vector registers.
    fn masks(&mut self, i: u32, row: Row, opcode: u8, opcodes: [Opcode; 2]) {
        if self.write.target == Target::Avx2 {
            return self.binary(i, row, opcodes, true);
        }
        let (x, y) = (self.get(row.x[0]), self.get(row.x[1]));
        let to = self.result(i, row);
        self.write.masks(opcode, to, x, y);
    }

    fn select(&mut self, i: u32, row: Row) {
        let [mask, yes, no] = row.x;
        let mask = self.get(mask);
        let no = self.get(no);
        let yes = self.last(yes);
        let to = self.result(i, row);
        if self.write.target == Target::Avx2 {
            self.write.vector(opcode::SELECT_BY_SIGN, to, no, yes, None);
            self.write.bytes.push(mask << 4);
            return;
        }
        self.write.vector(opcode::SELECT, to, no, yes, Some((mask, false)));
    }

    fn lookup(&mut self, i: u32, row: Row) {
        let index = self.get(row.x[0]);
        let to = self.result(i, row);
        let table = self.pooled[i as usize];
        if self.write.wide == 0 || self.write.target == Target::Avx2 {
            self.write.vector([opcode::LOOKUP[0]; 2], to, index, pool(table), None);
            return;
        }
        // The index is replaced by what is found.
        if to != index {
            self.write.vector(opcode::MOVE, to, 0, Last::Register(index), None);
        }
        self.kept[3] = i;
        let low = self.spare();
        self.write.vector(opcode::LOAD, low, 0, pool(table), None);
        self.write.vector(opcode::LOOKUP, to, low, pool(table + 64), None);
    }

    /// `x * y + z` or `z - x * y`, over one of the operands that nobody reads any more, or over a copy.
    fn fused(&mut self, i: u32, row: Row, over_factor: [Opcode; 2], over_term: [Opcode; 2]) {
        let [mut x, mut y, z] = row.x;
        if self.is_plain(x) && !self.is_loose(y) {
            std::mem::swap(&mut x, &mut y);
        }
        let first = self.get(x);
        if self.is_loose(z) {
            let (term, second) = (self.splat(z), self.get(y));
            let (to, factor) = match (self.dies(y), self.dies(x)) {
                (true, _) => (self.over(i, y, row), first),
                (_, true) => (self.over(i, x, row), second),
                _ => (self.over_copy(i, second, row), first),
            };
            self.write.vector(over_factor, to, factor, term, None);
            return;
        }
        let (last, term) = (self.last(y), self.get(z));
        match last {
            Last::Register(second) if !self.dies(z) && (self.dies(x) || self.dies(y)) => {
                let (gone, factor) = if self.dies(y) { (y, first) } else { (x, second) };
                let to = self.over(i, gone, row);
                self.write.vector(over_factor, to, factor, Last::Register(term), None);
            }
            last => {
                let to = if self.dies(z) { self.over(i, z, row) } else { self.over_copy(i, term, row) };
                self.write.vector(over_term, to, first, last, None);
            }
        }
    }
}
