//! The encoder: the instructions that rows become, and those of the loop around them.
//!
//! The instructions of rows are lines of a table: the opcode for 32 and for 64 bits. Those of the loop, and
//! of truth values in memory, are written out. The formats are in Intel's manual, volume 2, sections 2.3
//! (VEX) and 2.7 (EVEX).
//!
//! Read next: `src/cpu/emit/vex.rs`, what is different with AVX2.

use super::target::Target;

/// A vector register, 0 to 31; 0 to 15 with AVX2.
pub type Zmm = u8;
/// A mask register, 0 to 7.
pub type Mask = u8;
/// A general register, 0 to 15.
pub type General = u8;

/// The general registers of a loop: the element it is at, its arguments as in the System V convention (the
/// fourth, `rcx`, is how many elements there are), and others.
pub mod general {
    use super::General;
    /// The element that the loop is at.
    pub const AT: General = 0;
    /// The constants.
    pub const POOL: General = 2;
    /// The operands that are one number.
    pub const SINGLES: General = 6;
    /// Where the operands and results lie.
    pub const POINTERS: General = 7;
    /// Memory for values that have no register.
    pub const FRAME: General = 8;
    /// For what is needed at once.
    pub const SPARE: General = 9;
    /// Pointers of operands and results; the called function saves those from the third on.
    pub const HELD: [General; 7] = [10, 11, 3, 12, 13, 14, 15];
}
use general::*;

/// The mask of the elements that are there.
pub const PRESENT: Mask = 1;

/// The last operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// A register.
    Register(Zmm),
    /// As many elements as a register holds, at `[base + at]`.
    At { base: General, at: i32 },
    /// One element at `[base + at]`, repeated.
    Splat { base: General, at: i32 },
    /// One element at `[base + at]`.
    One { base: General, at: i32 },
    /// The elements from the one that the loop is at, of so many bytes each.
    Elements { base: General, size: u8 },
}

/// An opcode: the map (1 is `0F`, 2 is `0F38`, 3 is `0F3A`), the prefix (1 is `66`, 2 is `F3`, 3 is `F2`),
/// the bit W, and the byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opcode(pub u8, pub u8, pub u8, pub u8);

/// Declares opcodes for 32 and for 64 bits.
macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident: $f:expr, $g:expr;)*) => {
        /// The opcodes of vectors, for elements of 32 and of 64 bits.
        pub mod opcode {
            use super::Opcode;
            $($(#[$doc])* pub const $name: [Opcode; 2] = [$f, $g];)*
        }
    };
}

opcodes! {
    /// `vmovaps`, from one register to another.
    MOVE: Opcode(1, 0, 0, 0x28), Opcode(1, 1, 1, 0x28);
    /// `vmovups` from memory.
    LOAD: Opcode(1, 0, 0, 0x10), Opcode(1, 1, 1, 0x10);
    /// `vmovups` to memory.
    STORE: Opcode(1, 0, 0, 0x11), Opcode(1, 1, 1, 0x11);
    /// `vbroadcastss` and `vbroadcastsd`.
    SPLAT: Opcode(2, 1, 0, 0x18), Opcode(2, 1, 1, 0x19);
    /// `vaddps`
    ADD: Opcode(1, 0, 0, 0x58), Opcode(1, 1, 1, 0x58);
    /// `vmulps`
    MUL: Opcode(1, 0, 0, 0x59), Opcode(1, 1, 1, 0x59);
    /// `vsubps`
    SUB: Opcode(1, 0, 0, 0x5c), Opcode(1, 1, 1, 0x5c);
    /// `vminps`
    MIN: Opcode(1, 0, 0, 0x5d), Opcode(1, 1, 1, 0x5d);
    /// `vdivps`
    DIV: Opcode(1, 0, 0, 0x5e), Opcode(1, 1, 1, 0x5e);
    /// `vmaxps`
    MAX: Opcode(1, 0, 0, 0x5f), Opcode(1, 1, 1, 0x5f);
    /// `vsqrtps`
    SQRT: Opcode(1, 0, 0, 0x51), Opcode(1, 1, 1, 0x51);
    /// `vscalefps`
    SCALE: Opcode(2, 1, 0, 0x2c), Opcode(2, 1, 1, 0x2c);
    /// `vrndscaleps`, with a rounding mode.
    ROUND: Opcode(3, 1, 0, 0x08), Opcode(3, 1, 1, 0x09);
    /// `vcvtdq2ps` and `vcvtqq2pd`.
    FROM_INT: Opcode(1, 0, 0, 0x5b), Opcode(1, 2, 1, 0xe6);
    /// `vfmadd213ps`: `to = x * to + last`.
    FMA_213: Opcode(2, 1, 0, 0xa8), Opcode(2, 1, 1, 0xa8);
    /// `vfmadd231ps`: `to = x * last + to`.
    FMA_231: Opcode(2, 1, 0, 0xb8), Opcode(2, 1, 1, 0xb8);
    /// `vfnmadd213ps`: `to = last - x * to`.
    FNMA_213: Opcode(2, 1, 0, 0xac), Opcode(2, 1, 1, 0xac);
    /// `vfnmadd231ps`: `to = to - x * last`.
    FNMA_231: Opcode(2, 1, 0, 0xbc), Opcode(2, 1, 1, 0xbc);
    /// `vpaddd`
    INT_ADD: Opcode(1, 1, 0, 0xfe), Opcode(1, 1, 1, 0xd4);
    /// `vpsubd`
    INT_SUB: Opcode(1, 1, 0, 0xfa), Opcode(1, 1, 1, 0xfb);
    /// `vpandd`
    INT_AND: Opcode(1, 1, 0, 0xdb), Opcode(1, 1, 1, 0xdb);
    /// `vpord`
    INT_OR: Opcode(1, 1, 0, 0xeb), Opcode(1, 1, 1, 0xeb);
    /// `vpxord`
    INT_XOR: Opcode(1, 1, 0, 0xef), Opcode(1, 1, 1, 0xef);
    /// `vpslld`, digit 6, by a number.
    SHL: Opcode(1, 1, 0, 0x72), Opcode(1, 1, 1, 0x73);
    /// `vpsrad`, digit 4, by a number.
    SHR: Opcode(1, 1, 0, 0x72), Opcode(1, 1, 1, 0x72);
    /// `vpsrld`, digit 2, by a number.
    SHR_ZEROS: Opcode(1, 1, 0, 0x72), Opcode(1, 1, 1, 0x73);
    /// `vcmpps`, with a relation.
    COMPARE: Opcode(1, 0, 0, 0xc2), Opcode(1, 1, 1, 0xc2);
    /// `vpcmpeqd`
    INT_EQ: Opcode(1, 1, 0, 0x76), Opcode(2, 1, 1, 0x29);
    /// `vblendmps`: the last operand where the mask holds.
    SELECT: Opcode(2, 1, 0, 0x65), Opcode(2, 1, 1, 0x65);
    /// `vblendvps`, and the register of a mask, of which the signs count: the last operand where it is 1.
    SELECT_BY_SIGN: Opcode(3, 1, 0, 0x4a), Opcode(3, 1, 0, 0x4b);
    /// `vpermps` of a table of 16; `vpermi2pd` of two halves, which replaces the index.
    LOOKUP: Opcode(2, 1, 0, 0x16), Opcode(2, 1, 1, 0x77);
}

/// The opcodes of masks.
pub mod mask_opcode {
    /// `kandw`
    pub const AND: u8 = 0x41;
    /// `korw`
    pub const OR: u8 = 0x45;
    /// `kxorw`
    pub const XOR: u8 = 0x47;
}

/// Machine code that is being written.
pub struct Writer {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// 1 if elements have 64 bits.
    pub wide: usize,
    /// What it is for.
    pub target: Target,
}

impl Writer {
    /// Elements of a register.
    pub fn width(&self) -> u8 {
        self.target.bytes() as u8 / self.size()
    }

    /// Bytes of an element.
    pub fn size(&self) -> u8 {
        4 << self.wide
    }

    /// An instruction of vectors with three operands: `reg`, `second` (0 where there is none), `last`; under
    /// a mask, with zeros elsewhere if `zeroes`.
    pub fn vector(
        &mut self, opcodes: [Opcode; 2], reg: u8, second: u8, last: Last, under: Option<(Mask, bool)>,
    ) {
        match self.target {
            Target::Avx2 => self.vex(opcodes[self.wide], 1, reg, second, last),
            Target::Avx512 => self.evex(opcodes[self.wide], 2, reg, second, last, under),
        }
    }

    /// The EVEX encoding; `length` is 2 for 64 bytes and 0 for 16.
    fn evex(
        &mut self, Opcode(map, prefix, w, byte): Opcode, length: u8, reg: u8, second: u8, last: Last,
        under: Option<(Mask, bool)>,
    ) {
        let (mask, zeroes) = under.unwrap_or((0, false));
        let (x, b, splat) = match last {
            Last::Register(r) => (r >> 4 & 1, r >> 3 & 1, false),
            Last::At { base, .. } | Last::One { base, .. } => (0, base >> 3 & 1, false),
            Last::Splat { base, .. } => (0, base >> 3 & 1, true),
            Last::Elements { base, .. } => (AT >> 3, base >> 3 & 1, false),
        };
        self.bytes.extend([
            0x62,
            ((reg >> 3 & 1) ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | ((reg >> 4 & 1) ^ 1) << 4 | map,
            w << 7 | (!second & 15) << 3 | 4 | prefix,
            u8::from(zeroes) << 7 | length << 5 | u8::from(splat) << 4 | ((second >> 4 & 1) ^ 1) << 3 | mask,
            byte,
        ]);
        self.operands(reg, last, [16 << length, self.size().into()]);
    }

    /// The part of an instruction that names `reg` and `last`; short distances are multiples of a unit for
    /// whole registers, and of one for single elements.
    pub fn operands(&mut self, reg: u8, last: Last, [whole, single]: [i32; 2]) {
        let reg = (reg & 7) << 3;
        match last {
            Last::Register(r) => self.bytes.push(0xc0 | reg | r & 7),
            Last::At { base, at } => self.displaced(reg, base, at, whole),
            Last::Splat { base, at } | Last::One { base, at } => self.displaced(reg, base, at, single),
            // A displacement of 0: without one, two of the bases would mean something else.
            Last::Elements { base, size } => {
                let scale = size.trailing_zeros() as u8;
                self.bytes.extend([0x44 | reg, (scale << 6) | (AT << 3) | (base & 7), 0]);
            }
        }
    }

    /// `[base + at]`, in one byte where `at` is a small multiple of `unit`.
    fn displaced(&mut self, reg: u8, base: General, at: i32, unit: i32) {
        let short = i8::try_from(at / unit).ok().filter(|_| at % unit == 0);
        self.bytes.push(if short.is_some() { 0x40 } else { 0x80 } | reg | base & 7);
        if base & 7 == 4 {
            self.bytes.push(0x24);
        }
        match short {
            Some(at) => self.bytes.push(at as u8),
            None => self.bytes.extend(at.to_le_bytes()),
        }
    }

    /// Repeats one element of memory, or loads one that is repeated there.
    pub fn splat(&mut self, to: Zmm, from: Last) {
        match from {
            Last::Splat { base, at } => self.vector(opcode::SPLAT, to, 0, Last::One { base, at }, None),
            from => self.vector(opcode::LOAD, to, 0, from, None),
        }
    }

    /// Loads the elements of an operand that are there, then zeros; with AVX2 a whole register.
    pub fn load_elements(&mut self, to: Zmm, base: General) {
        let last = Last::Elements { base, size: self.size() };
        self.vector(opcode::LOAD, to, 0, last, Some((PRESENT, true)));
    }

    /// Stores the elements of a result that are there; with AVX2 a whole register.
    pub fn store_elements(&mut self, from: Zmm, base: General) {
        let last = Last::Elements { base, size: self.size() };
        self.vector(opcode::STORE, from, 0, last, Some((PRESENT, false)));
    }

    /// Sets the mask `to` where the bytes at the element that the loop is at are not 0.
    pub fn load_truths(&mut self, to: Mask, through: Zmm, base: General) {
        let last = Last::Elements { base, size: 1 };
        if self.target == Target::Avx2 {
            return self.widen_truths(to, through, last);
        }
        self.evex(Opcode(1, 3, 0, 0x6f), 0, through, 0, last, Some((PRESENT, true)));
        self.evex(Opcode(2, 1, 0, 0x26), 0, to, through, Last::Register(through), None);
    }

    /// Stores a byte per element, 1 where the mask holds; `ones` are 16 bytes of the constants.
    pub fn store_truths(&mut self, from: Mask, through: Zmm, ones: i32, base: General) {
        let (ones, last) = (Last::At { base: POOL, at: ones }, Last::Elements { base, size: 1 });
        if self.target == Target::Avx2 {
            return self.narrow_truths(from, through, ones, last);
        }
        self.evex(Opcode(1, 3, 0, 0x6f), 0, through, 0, ones, Some((from, true)));
        self.evex(Opcode(1, 3, 0, 0x7f), 0, through, 0, last, Some((PRESENT, false)));
    }

    /// `to = x op y` of masks.
    pub fn masks(&mut self, opcode: u8, to: Mask, x: Mask, y: Mask) {
        self.bytes.extend([0xc5, 0x80 | (!x & 15) << 3 | 4, opcode, 0xc0 | to << 3 | y]);
    }

    /// `to = !x` of masks.
    pub fn not(&mut self, to: Mask, x: Mask) {
        self.bytes.extend([0xc5, 0xf8, 0x44, 0xc0 | to << 3 | x]);
    }

    /// `kmovw` from 16 bits at `[base + at]`, or to them.
    pub fn move_mask(&mut self, mask: Mask, base: General, at: i32, stores: bool) {
        let opcode = 0x90 | u8::from(stores);
        if base < 8 {
            self.bytes.extend([0xc5, 0xf8, opcode]);
        } else {
            self.bytes.extend([0xc4, 0xc1, 0x78, opcode]);
        }
        self.displaced(mask << 3, base, at, 1);
    }

    /// Jumps out of the loop, which returns the element it is at, if the mask holds for one that is there.
    /// Returns the place of the distance.
    pub fn leave_if(&mut self, mask: Mask) -> usize {
        match self.target {
            Target::Avx2 => self.test(mask),
            // ktestw k1, mask
            Target::Avx512 => self.bytes.extend([0xc5, 0xf8, 0x99, 0xc0 | PRESENT << 3 | mask]),
        }
        // jnz
        self.bytes.extend([0x0f, 0x85]);
        self.distance()
    }

    /// Four bytes for the distance of a jump.
    fn distance(&mut self) -> usize {
        self.bytes.extend([0; 4]);
        self.bytes.len() - 4
    }

    /// The distance of a jump that leads back.
    pub fn back(&mut self, top: usize) {
        let distance = top as i32 - self.bytes.len() as i32 - 4;
        self.bytes.extend(distance.to_le_bytes());
    }

    /// Lets a jump lead here.
    pub fn land(&mut self, jump: usize) {
        let distance = (self.bytes.len() - jump - 4) as i32;
        self.bytes[jump..jump + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Loads pointer `k`.
    pub fn pointer(&mut self, to: General, k: usize) {
        self.bytes.extend([0x48 | (to >> 3) << 2, 0x8b]);
        self.displaced((to & 7) << 3, POINTERS, 8 * k as i32, 1);
    }

    /// Begins the function: `held` of the registers of pointers are used.
    pub fn enter(&mut self, held: usize) {
        // endbr64
        self.bytes.extend([0xf3, 0x0f, 0x1e, 0xfa]);
        for &register in HELD.iter().take(held).skip(2) {
            self.push_or_pop(register, 0x50);
        }
    }

    fn push_or_pop(&mut self, register: General, opcode: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(opcode | register & 7);
    }

    /// Begins the loop: sets the mask of the elements that are there, and returns where the loop begins and
    /// the jump to where it ends. Masks of the first elements lie at the start of the constants.
    pub fn begin(&mut self) -> (usize, Option<usize>) {
        if self.target == Target::Avx2 {
            return (self.begin_whole(), None);
        }
        // xor eax, eax
        self.bytes.extend([0x31, 0xc0]);
        let top = self.bytes.len();
        // mov r9, rcx; sub r9, rax
        self.bytes.extend([0x49, 0x89, 0xc9, 0x49, 0x29, 0xc1]);
        // jz end
        self.bytes.extend([0x0f, 0x84]);
        let end = self.distance();
        // A whole register, or what is left.
        let width = self.width();
        // cmp r9, width; jbe +6; mov r9d, width
        self.bytes.extend([0x49, 0x83, 0xf9, width, 0x76, 6, 0x41, 0xb9, width, 0, 0, 0]);
        // kmovw k1, [rdx + 2 * r9]
        self.bytes.extend([0xc4, 0xa1, 0x78, 0x90, 0x0c, 0x4a]);
        (top, Some(end))
    }

    /// Ends the loop and the function, which returns the element that the loop is at.
    pub fn end(&mut self, (top, end): (usize, Option<usize>), leaves: &[usize], held: usize) {
        match end {
            None => self.end_whole(top),
            Some(end) => {
                // add rax, width; cmp rax, rcx; jb top
                self.bytes.extend([0x48, 0x83, 0xc0, self.width(), 0x48, 0x39, 0xc8, 0x0f, 0x82]);
                self.back(top);
                // mov rax, rcx
                self.land(end);
                self.bytes.extend([0x48, 0x89, 0xc8]);
            }
        }
        leaves.iter().for_each(|&jump| self.land(jump));
        for &register in HELD.iter().take(held).skip(2).rev() {
            self.push_or_pop(register, 0x58);
        }
        // vzeroupper; ret
        self.bytes.extend([0xc5, 0xf8, 0x77, 0xc3]);
    }
}
