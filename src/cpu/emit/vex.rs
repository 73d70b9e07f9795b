//! What is different with AVX2: VEX instead of EVEX, masks in vector registers, and a loop that computes
//! whole registers only.

use super::target::Target;
use super::x86::{Last, Opcode, Writer, Zmm, opcode};

impl Writer {
    /// The VEX encoding; `length` is 1 for 32 bytes and 0 for 16. A prefix of two bytes stands for most of
    /// those of three.
    pub fn vex(&mut self, opcode: Opcode, length: u8, reg: u8, second: u8, last: Last) {
        debug_assert_eq!(self.target, Target::Avx2);
        let Opcode(map, prefix, w, byte) = opcode;
        // Fused products are the only ones where W tells 64 from 32 bits.
        let w = if map == 2 && byte > 0x90 { w } else { 0 };
        let b = match last {
            Last::Register(r) => r >> 3,
            Last::At { base, .. } | Last::Splat { base, .. } => base >> 3,
            Last::One { base, .. } | Last::Elements { base, .. } => base >> 3,
        };
        let high = (reg >> 3 ^ 1) << 7;
        let low = w << 7 | (!second & 15) << 3 | length << 2 | prefix;
        if map == 1 && w == 0 && b == 0 {
            self.bytes.extend([0xc5, high | low, byte]);
        } else {
            self.bytes.extend([0xc4, high | 0x40 | (b ^ 1) << 5 | map, low, byte]);
        }
        self.operands(reg, last, [1; 2]);
    }

    /// Makes a mask `to` of a byte per element: true where it is not 0.
    pub fn widen_truths(&mut self, to: Zmm, through: Zmm, bytes: Last) {
        // vpmovzxbd or vpmovzxbq
        self.vector([Opcode(2, 1, 0, 0x31), Opcode(2, 1, 0, 0x32)], to, 0, bytes, None);
        self.vector(opcode::INT_XOR, through, through, Last::Register(through), None);
        // vpcmpgtd or vpcmpgtq
        let more = [Opcode(1, 1, 0, 0x66), Opcode(2, 1, 0, 0x37)];
        self.vector(more, to, to, Last::Register(through), None);
    }

    /// Stores a byte per element: 1 where the mask `from` is true.
    pub fn narrow_truths(&mut self, from: Zmm, through: Zmm, ones: Last, bytes: Last) {
        let half = Last::Register(through);
        // vextracti128 through, from, 1
        self.vex(Opcode(3, 1, 0, 0x39), 1, from, 0, half);
        self.bytes.push(1);
        // vpackssdw: elements of 32 bits become elements of 16, and by vpacksswb of 8 bits; those of 64 bits
        // are two each until then.
        self.vex(Opcode(1, 1, 0, 0x6b), 0, through, from, half);
        for _ in 0..=self.wide {
            self.vex(Opcode(1, 1, 0, 0x63), 0, through, through, half);
        }
        self.vex(opcode::INT_AND[0], 0, through, through, ones);
        // vmovq or vmovd
        let byte = if self.wide == 0 { 0xd6 } else { 0x7e };
        self.vex(Opcode(1, 1, 0, byte), 0, through, 0, bytes);
    }

    /// Asks whether a mask is true anywhere.
    pub fn test(&mut self, mask: Zmm) {
        // vtestps or vtestpd
        self.vector([Opcode(2, 1, 0, 0x0e), Opcode(2, 1, 0, 0x0f)], mask, 0, Last::Register(mask), None);
    }

    /// Begins a loop of whole registers, of which there is at least one; returns where it begins.
    pub fn begin_whole(&mut self) -> usize {
        // sub rcx, width: where the last register begins
        self.bytes.extend([0x48, 0x83, 0xe9, self.width()]);
        // xor eax, eax
        self.bytes.extend([0x31, 0xc0]);
        self.bytes.len()
    }

    /// Ends that loop. The last register may overlap the one before: its elements are computed once more.
    pub fn end_whole(&mut self, top: usize) {
        let width = self.width();
        // add rax, width; cmp rax, rcx; jbe top
        self.bytes.extend([0x48, 0x83, 0xc0, width, 0x48, 0x39, 0xc8, 0x0f, 0x86]);
        self.back(top);
        // lea r9, [rcx + width]; cmp rax, r9; mov rax, rcx; jb top
        self.bytes.extend([0x4c, 0x8d, 0x49, width, 0x4c, 0x39, 0xc8, 0x48, 0x89, 0xc8, 0x0f, 0x82]);
        self.back(top);
        // mov rax, r9
        self.bytes.extend([0x4c, 0x89, 0xc8]);
    }
}
