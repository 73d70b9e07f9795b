//! When the values of a list are used: what decides which of them have registers.

use super::ssa::{Code, List, NONE, Row};
use super::target::Target;

/// Which rows read what.
pub struct Uses {
    /// The first row that reads each value.
    pub first: Vec<u32>,
    /// For each operand of a row, the next row that reads it.
    pub after: Vec<[u32; 3]>,
    /// How much each value is worth in a register: its uses, more where an instruction needs one.
    pub worth: Vec<u32>,
    /// How many values of vector registers other than constants live at once, at most.
    pub most: usize,
}

/// Walks back through a list, from the last uses to the first.
pub fn uses(list: &List) -> Uses {
    let n = list.rows.len();
    let is_avx2 = list.target == Target::Avx2;
    let (mut first, mut after, mut worth) = (vec![NONE; n], vec![[NONE; 3]; n], vec![0; n]);
    let (mut live, mut most) = (0_usize, 0);
    for (i, row) in list.rows.iter().enumerate().rev() {
        let counts = |x: u32| {
            let code = list.rows[x as usize].code;
            !code.is_splat() && (is_avx2 || !code.is_mask())
        };
        let reads = || row.x.iter().copied().enumerate().filter(|&(_, x)| x != NONE);
        if first[i] != NONE && counts(i as u32) {
            live -= 1;
        }
        for (k, x) in reads() {
            after[i][k] = first[x as usize];
        }
        for (k, x) in reads() {
            if first[x as usize] == NONE && counts(x) {
                live += 1;
            }
            first[x as usize] = i as u32;
            let in_memory = !is_avx2 || list.rows[x as usize].code == Code::Constant;
            worth[x as usize] += if in_memory && fits_last(row, k, is_avx2) { 1 } else { 4 };
        }
        most = most.max(live);
    }
    // After this walk `first` is the first use of all.
    Uses { first, after, worth, most }
}

/// Whether operand `k` of a row may be read from memory by its instruction.
fn fits_last(row: &Row, k: usize, is_avx2: bool) -> bool {
    use Code::*;
    match row.code {
        Sqrt | Floor | Round | FromInt => k == 0,
        Shl | Shr | ShrZeros => k == 0 && !is_avx2,
        Fma | Fnma => true,
        Add | Mul | IntAdd | IntAnd | IntOr | IntXor | Lt | Le | Eq | Ne | IntEq => true,
        Sub | Div | Min | Max | Scale | IntSub | Select => k == 1,
        _ => false,
    }
}
