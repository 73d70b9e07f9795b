//! Encodings for AVX2, from the GNU assembler.

use crate::cpu::emit::Target;
use crate::cpu::emit::x86::general::{FRAME, POOL, SINGLES};
use crate::cpu::emit::x86::{Last, Writer, opcode};

fn check(wide: usize, text: &str, bytes: &str, write: impl FnOnce(&mut Writer)) {
    let mut made = Writer { bytes: Vec::new(), wide, target: Target::Avx2 };
    write(&mut made);
    let bytes: Vec<u8> = bytes.split(' ').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    assert_eq!(made.bytes, bytes, "{text}: {:02x?}", made.bytes);
}

#[test]
fn encodings_of_vectors() {
    use Last::Register;
    let at = |base, at| Last::At { base, at };
    #[rustfmt::skip]
    let vector = [
        (0, "vaddps ymm3, ymm9, ymm14", "c4 c1 34 58 de", opcode::ADD, 3, 9, Register(14)),
        (1, "vmulpd ymm3, ymm12, [rdx+0x48]", "c5 9d 59 5a 48", opcode::MUL, 3, 12, at(POOL, 0x48)),
        (0, "vsubps ymm15, ymm0, [rdx+1]", "c5 7c 5c 7a 01", opcode::SUB, 15, 0, at(POOL, 1)),
        (0, "vmovups [r8+0x80], ymm6", "c4 c1 7c 11 b0 80 00 00 00", opcode::STORE, 6, 0, at(FRAME, 0x80)),
        (0, "vmovups ymm6, [r8+0x80]", "c4 c1 7c 10 b0 80 00 00 00", opcode::LOAD, 6, 0, at(FRAME, 0x80)),
        (0, "vmovaps ymm9, ymm1", "c5 7c 28 c9", opcode::MOVE, 9, 0, Register(1)),
        (0, "vroundps ymm2, ymm8", "c4 c3 7d 08 d0", opcode::ROUND, 2, 0, Register(8)),
        (1, "vroundpd ymm12, ymm3", "c4 63 7d 09 e3", opcode::ROUND, 12, 0, Register(3)),
        (1, "vsqrtpd ymm10, ymm5", "c5 7d 51 d5", opcode::SQRT, 10, 0, Register(5)),
        (0, "vcvtdq2ps ymm8, ymm1", "c5 7c 5b c1", opcode::FROM_INT, 8, 0, Register(1)),
        (0, "vfmadd213ps ymm10, ymm11, ymm12", "c4 42 25 a8 d4", opcode::FMA_213, 10, 11, Register(12)),
        (1, "vfnmadd231pd ymm5, ymm4, [rdx+32]", "c4 e2 dd bc 6a 20", opcode::FNMA_231, 5, 4, at(POOL, 32)),
        (0, "vpslld ymm7, ymm12", "c4 c1 45 72 f4", opcode::SHL, 6, 7, Register(12)),
        (1, "vpsllq ymm1, ymm2", "c5 f5 73 f2", opcode::SHL, 6, 1, Register(2)),
        (0, "vpsrad ymm7, ymm3", "c5 c5 72 e3", opcode::SHR, 4, 7, Register(3)),
        (1, "vpsrlq ymm11, ymm15", "c4 c1 25 73 d7", opcode::SHR_ZEROS, 2, 11, Register(15)),
        (0, "vcmpps ymm5, ymm3, ymm9", "c4 c1 64 c2 e9", opcode::COMPARE, 5, 3, Register(9)),
        (0, "vpcmpeqd ymm5, ymm3, ymm9", "c4 c1 65 76 e9", opcode::INT_EQ, 5, 3, Register(9)),
        (1, "vpcmpeqq ymm2, ymm11, ymm6", "c4 e2 25 29 d6", opcode::INT_EQ, 2, 11, Register(6)),
        (1, "vpand ymm2, ymm11, ymm6", "c5 a5 db d6", opcode::INT_AND, 2, 11, Register(6)),
        (0, "vblendvps ymm9, ymm1, ymm14", "c4 43 75 4a ce", opcode::SELECT_BY_SIGN, 9, 1, Register(14)),
        (1, "vblendvpd ymm9, ymm1, [rdx+9]", "c4 63 75 4b 4a 09", opcode::SELECT_BY_SIGN, 9, 1, at(POOL, 9)),
        (0, "vpermps ymm4, ymm5, [rdx+0x40]", "c4 e2 55 16 62 40", opcode::LOOKUP, 4, 5, at(POOL, 0x40)),
    ];
    for (wide, text, bytes, opcodes, reg, second, last) in vector {
        check(wide, text, bytes, |w| w.vector(opcodes, reg, second, last, None));
    }
    check(1, "vbroadcastsd ymm14, [rsi+0x48]", "c4 62 7d 19 76 48", |w| {
        w.splat(14, Last::Splat { base: SINGLES, at: 0x48 });
    });
    check(0, "vbroadcastss ymm4, [rsi+0x8]", "c4 e2 7d 18 66 08", |w| {
        w.splat(4, Last::Splat { base: SINGLES, at: 8 });
    });
    check(0, "vmovups ymm3, [rdx+0x20]", "c5 fc 10 5a 20", |w| w.splat(3, at(POOL, 0x20)));
    check(0, "vmovups ymm5, [r13+rax*4]", "c4 c1 7c 10 6c 85 00", |w| w.load_elements(5, 13));
    check(1, "vmovupd [r12+rax*8], ymm9", "c4 41 7d 11 4c c4 00", |w| w.store_elements(9, 12));
}

#[test]
fn encodings_of_masks() {
    let text = "vpmovzxbd ymm11, [r10+rax]; vpxor ymm4, ymm4, ymm4; vpcmpgtd ymm11, ymm11, ymm4";
    check(0, text, "c4 42 7d 31 5c 02 00 c5 dd ef e4 c5 25 66 dc", |w| w.load_truths(11, 4, 10));
    let text = "vpmovzxbq ymm1, [rbx+rax]; vpxor ymm4, ymm4, ymm4; vpcmpgtq ymm1, ymm1, ymm4";
    check(1, text, "c4 e2 7d 32 4c 03 00 c5 dd ef e4 c4 e2 75 37 cc", |w| w.load_truths(1, 4, 3));
    let text = "vextracti128 xmm11, ymm3, 1; vpackssdw xmm11, xmm3, xmm11; vpacksswb xmm11, xmm11, xmm11; \
        vpand xmm11, xmm11, [rdx+0x60]; vmovq [r15+rax], xmm11";
    let bytes = "c4 c3 7d 39 db 01 c4 41 61 6b db c4 41 21 63 db c5 21 db 5a 60 c4 41 79 d6 5c 07 00";
    check(0, text, bytes, |w| w.store_truths(3, 11, 0x60, 15));
    let text = "vextracti128 xmm4, ymm3, 1; vpackssdw xmm4, xmm3, xmm4; vpacksswb xmm4, xmm4, xmm4, twice; \
        vpand xmm4, xmm4, [rdx+0x60]; vmovd [r15+rax], xmm4";
    let bytes = "c4 e3 7d 39 dc 01 c5 e1 6b e4 c5 d9 63 e4 c5 d9 63 e4 c5 d9 db 62 60 c4 c1 79 7e 64 07 00";
    check(1, text, bytes, |w| w.store_truths(3, 4, 0x60, 15));
    check(0, "vtestps ymm9, ymm9; jnz", "c4 42 7d 0e c9 0f 85 00 00 00 00", |w| {
        w.leave_if(9);
    });
    check(1, "vtestpd ymm1, ymm1; jnz", "c4 e2 7d 0f c9 0f 85 00 00 00 00", |w| {
        w.leave_if(1);
    });
}

/// The loop around nothing.
#[test]
fn encoding_of_the_loop() {
    // endbr64; push rbx; sub rcx, 8; xor eax, eax; 1: add rax, 8; cmp rax, rcx; jbe 1; lea r9, [rcx+8];
    // cmp rax, r9; mov rax, rcx; jb 1; mov rax, r9; pop rbx; vzeroupper; ret
    let bytes = "f3 0f 1e fa 53 48 83 e9 08 31 c0 48 83 c0 08 48 39 c8 0f 86 f3 ff ff ff 4c 8d 49 08 \
        4c 39 c8 48 89 c8 0f 82 e3 ff ff ff 4c 89 c8 5b c5 f8 77 c3";
    check(0, "the loop", bytes, |w| {
        w.enter(3);
        let begun = w.begin();
        w.end(begun, &[], 3);
    });
}
