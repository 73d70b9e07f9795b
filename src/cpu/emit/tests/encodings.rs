//! Encodings for AVX-512, from the GNU assembler.

use crate::cpu::emit::Target;
use crate::cpu::emit::x86::general::{FRAME, POOL, SINGLES};
use crate::cpu::emit::x86::{Last, PRESENT, Writer, mask_opcode, opcode};

fn writer(wide: usize) -> Writer {
    Writer { bytes: Vec::new(), wide, target: Target::Avx512 }
}

/// Encodings, from the GNU assembler.
#[test]
fn encodings() {
    fn check(wide: usize, text: &str, bytes: &[u8], write: impl FnOnce(&mut Writer)) {
        let mut made = writer(wide);
        write(&mut made);
        assert_eq!(made.bytes, bytes, "{text}: {:02x?}", made.bytes);
    }
    use Last::Register;
    let splat = |base, at| Last::Splat { base, at };
    #[rustfmt::skip]
    let vector = [
        (0, "vaddps zmm17, zmm9, zmm30", "62 81 34 48 58 ce", opcode::ADD, 17, 9, Register(30), None),
        (
            1,
            "vmulpd zmm3, zmm22, [rdx+0x48]{1to8}",
            "62 f1 cd 50 59 5a 09",
            opcode::MUL,
            3,
            22,
            splat(POOL, 0x48),
            None,
        ),
        (
            0,
            "vsubps zmm31, zmm0, [rsi+0x401]{1to16}",
            "62 61 7c 58 5c be 01 04 00 00",
            opcode::SUB,
            31,
            0,
            splat(SINGLES, 0x401),
            None,
        ),
        (
            0,
            "vmovups [r8+0x80], zmm6",
            "62 d1 7c 48 11 70 02",
            opcode::STORE,
            6,
            0,
            Last::At { base: FRAME, at: 0x80 },
            None,
        ),
        (0, "vrndscaleps zmm2, zmm18", "62 b3 7d 48 08 d2", opcode::ROUND, 2, 0, Register(18), None),
        (1, "vcvtqq2pd zmm8, zmm1", "62 71 fe 48 e6 c1", opcode::FROM_INT, 8, 0, Register(1), None),
        (
            0,
            "vfmadd213ps zmm10, zmm11, zmm12",
            "62 52 25 48 a8 d4",
            opcode::FMA_213,
            10,
            11,
            Register(12),
            None,
        ),
        (
            1,
            "vfnmadd231pd zmm20, zmm4, [rdx+0x28]{1to8}",
            "62 e2 dd 58 bc 62 05",
            opcode::FNMA_231,
            20,
            4,
            splat(POOL, 0x28),
            None,
        ),
        (0, "vpslld zmm7, zmm25", "62 91 45 48 72 f1", opcode::SHL, 6, 7, Register(25), None),
        (1, "vpsraq zmm16, zmm15", "62 d1 fd 40 72 e7", opcode::SHR, 4, 16, Register(15), None),
        (0, "vcmpps k5, zmm3, zmm19", "62 b1 64 48 c2 eb", opcode::COMPARE, 5, 3, Register(19), None),
        (1, "vpcmpeqq k2, zmm21, zmm6", "62 f2 d5 40 29 d6", opcode::INT_EQ, 2, 21, Register(6), None),
        (
            0,
            "vblendmps zmm9{k4}, zmm1, zmm24",
            "62 12 75 4c 65 c8",
            opcode::SELECT,
            9,
            1,
            Register(24),
            Some((4, false)),
        ),
        (
            0,
            "vpermps zmm4, zmm5, [rdx+0x40]",
            "62 f2 55 48 16 62 01",
            opcode::LOOKUP,
            4,
            5,
            Last::At { base: POOL, at: 0x40 },
            None,
        ),
        (
            1,
            "vpermi2pd zmm14, zmm13, [rdx+0x68]",
            "62 72 95 48 77 b2 68 00 00 00",
            opcode::LOOKUP,
            14,
            13,
            Last::At { base: POOL, at: 0x68 },
            None,
        ),
        (0, "vscalefps zmm1, zmm2, zmm3", "62 f2 6d 48 2c cb", opcode::SCALE, 1, 2, Register(3), None),
    ];
    for (wide, text, bytes, opcodes, reg, second, last, under) in vector {
        let bytes: Vec<u8> = bytes.split(' ').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        check(wide, text, &bytes, |w| w.vector(opcodes, reg, second, last, under));
    }
    check(1, "vbroadcastsd zmm30, [rdx+0x48]", &[0x62, 0x62, 0xfd, 0x48, 0x19, 0x72, 0x09], |w| {
        w.splat(30, splat(POOL, 0x48));
    });
    check(0, "vmovups zmm5{k1}{z}, [r13+rax*4]", &[0x62, 0xd1, 0x7c, 0xc9, 0x10, 0x6c, 0x85, 0], |w| {
        w.load_elements(5, 13);
    });
    check(1, "vmovupd [r12+rax*8]{k1}, zmm29", &[0x62, 0x41, 0xfd, 0x49, 0x11, 0x6c, 0xc4, 0], |w| {
        w.store_elements(29, 12);
    });
    let truths =
        [[0x62, 0xc1, 0x7f, 0x89, 0x6f, 0x64, 0x02, 0].as_slice(), &[0x62, 0xb2, 0x5d, 0x00, 0x26, 0xdc]];
    check(0, "vmovdqu8 xmm20{k1}{z}, [r10+rax]; vptestmb k3, xmm20, xmm20", &truths.concat(), |w| {
        w.load_truths(3, 20, 10);
    });
    let truths = [
        [0x62, 0xe1, 0x7f, 0x8b, 0x6f, 0x6a, 0x03].as_slice(),
        &[0x62, 0xc1, 0x7f, 0x09, 0x7f, 0x6c, 0x07, 0],
    ];
    check(0, "vmovdqu8 xmm21{k3}{z}, [rdx+0x30]; vmovdqu8 [r15+rax]{k1}, xmm21", &truths.concat(), |w| {
        w.store_truths(3, 21, 0x30, 15);
    });
    check(0, "kandw k2, k3, k7", &[0xc5, 0xe4, 0x41, 0xd7], |w| w.masks(mask_opcode::AND, 2, 3, 7));
    check(0, "knotw k6, k5", &[0xc5, 0xf8, 0x44, 0xf5], |w| w.not(6, 5));
    check(0, "kmovw k4, [rsi+0x10]", &[0xc5, 0xf8, 0x90, 0x66, 0x10], |w| w.move_mask(4, SINGLES, 16, false));
    check(0, "kmovw [r8+0x140], k4", &[0xc4, 0xc1, 0x78, 0x91, 0xa0, 0x40, 1, 0, 0], |w| {
        w.move_mask(4, FRAME, 0x140, true);
    });
    check(0, "ktestw k1, k6; jnz", &[0xc5, 0xf8, 0x99, 0xce, 0x0f, 0x85, 0, 0, 0, 0], |w| {
        w.leave_if(6);
    });
    check(0, "mov r13, [rdi+24]", &[0x4c, 0x8b, 0x6f, 0x18], |w| w.pointer(13, 3));
    check(0, "mov r9, [rdi+128]", &[0x4c, 0x8b, 0x8f, 0x80, 0, 0, 0], |w| w.pointer(9, 16));
    check(0, "mov rbx, [rdi+16]", &[0x48, 0x8b, 0x5f, 0x10], |w| w.pointer(3, 2));
    assert_eq!(PRESENT, 1);
}

/// The loop around nothing.
#[test]
fn encoding_of_the_loop() {
    let mut made = writer(0);
    made.enter(4);
    let begun = made.begin();
    made.end(begun, &[], 4);
    // endbr64; push rbx; push r12; xor eax, eax; 1: mov r9, rcx; sub r9, rax; jz 2; cmp r9, 16; jbe 3;
    // mov r9d, 16; 3: kmovw k1, [rdx+r9*2]; add rax, 16; cmp rax, rcx; jb 1; 2: mov rax, rcx; pop r12;
    // pop rbx; vzeroupper; ret
    let expected = [
        [0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x41, 0x54, 0x31, 0xc0, 0x49, 0x89, 0xc9, 0x49, 0x29, 0xc1].as_slice(),
        &[0x0f, 0x84, 31, 0, 0, 0, 0x49, 0x83, 0xf9, 0x10, 0x76, 6, 0x41, 0xb9, 0x10, 0, 0, 0],
        &[0xc4, 0xa1, 0x78, 0x90, 0x0c, 0x4a, 0x48, 0x83, 0xc0, 0x10, 0x48, 0x39, 0xc8],
        &[0x0f, 0x82, 0xd5, 0xff, 0xff, 0xff, 0x48, 0x89, 0xc8, 0x41, 0x5c, 0x5b, 0xc5, 0xf8, 0x77, 0xc3],
    ];
    assert_eq!(made.bytes, expected.concat(), "{:02x?}", made.bytes);
}
