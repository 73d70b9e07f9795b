//! The ways in which products of float16 are multiplied, which a template chooses for its text.

/// How products of float16 are multiplied. Sums are in float32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halves {
    /// As float32, to which they are converted when they are loaded.
    #[default]
    Packed,
    /// As float32, from tiles of float16.
    Native,
    /// By matrices of the hardware.
    Matrices(Matrices),
}

/// Square matrices that the threads of a subgroup multiply together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    /// Their rows.
    pub side: u32,
    /// The threads of a subgroup.
    pub subgroup: u32,
}

impl Matrices {
    /// The number of them of which a subgroup makes its share of a tile.
    fn count(self, [rows, columns]: [usize; 2]) -> usize {
        rows * columns * self.subgroup as usize / (256 * self.side.pow(2) as usize)
    }
}

impl Halves {
    /// How a tile is multiplied, and another tile if it is too large for that.
    pub fn of_tile(self, tile: [usize; 2]) -> (Halves, [usize; 2]) {
        let Halves::Matrices(matrices) = self else { return (self, tile) };
        let smaller = tile.map(|side| side.min(64));
        match [tile, smaller].into_iter().find(|&tile| [2, 4, 8].contains(&matrices.count(tile))) {
            Some(tile) => (self, tile),
            None => (Halves::Native, tile),
        }
    }

    /// What threads multiply by themselves.
    pub fn without_matrices(self) -> Halves {
        if let Halves::Matrices(_) = self { Halves::Native } else { self }
    }
}
