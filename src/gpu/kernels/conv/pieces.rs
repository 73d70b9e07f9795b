//! Convolutions of tensors that kernels cannot bind, as those of parts: of the images, the channels, or the
//! groups of channels.

use crate::gpu::kernels::parts::part_of;
use crate::gpu::kernels::pieces::{bound_or_copied, fit, halves, in_a_piece, joined};
use crate::gpu::kernels::prelude::*;
use crate::gpu::kernels::reduce::Fold;

/// What is computed of which: `y` of `x` and `w`, `x` of `y` and `w`, or `w` of `x` and `y`.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Output,
    Input,
    Weight,
}

impl Wanted {
    /// Where images, channels of `x`, channels of `y` and groups lie: the axes of both operands and of the
    /// result. What the result lacks is summed.
    fn axes(self) -> [[Option<usize>; 3]; 4] {
        let (x, y, w) = ([Some(0), Some(1), None], [Some(0), None, Some(1)], [None, Some(1), Some(0)]);
        let [(a, a_groups), (b, b_groups), (out, groups)] = match self {
            Wanted::Output => [(x, 1), (w, 0), (y, 1)],
            Wanted::Input => [(y, 1), (w, 0), (x, 1)],
            Wanted::Weight => [(x, 1), (y, 1), (w, 0)],
        };
        let [images, inner, made] = std::array::from_fn(|i| [a[i], b[i], out[i]]);
        [images, inner, made, [Some(a_groups), Some(b_groups), Some(groups)]]
    }

    /// The result, of this shape, of operands that kernels cannot bind as they are; nothing for others. `run`
    /// computes that of smaller ones and as many groups.
    pub fn in_pieces(
        self, [a, b]: [&Array; 2], shape: &Shape, groups: usize,
        run: &dyn Fn(&Array, &Array, usize) -> Result<Array>,
    ) -> Result<Option<Array>> {
        let (most, shapes) = (in_a_piece(a)?, [a.shape(), b.shape(), *shape]);
        let largest = (0..3).max_by_key(|&i| shapes[i].numel()).unwrap_or(0);
        if shapes[largest].numel() <= most {
            return match fit([a, b])? {
                true => Ok(None),
                false => run(&bound_or_copied(a)?, &bound_or_copied(b)?, groups).map(Some),
            };
        }
        let length = |axes: &[Option<usize>; 3]| {
            (0..3).find_map(|i| axes[i].map(|axis| shapes[i].at(axis))).unwrap_or(1)
        };
        let [images, inner, made, grouped] = self.axes();
        let ways = match groups {
            0 | 1 => [images, inner, made].map(|axes| (axes, length(&axes))),
            _ => [(images, length(&images)), (grouped, groups), (grouped, groups)],
        };
        // What no cut makes smaller raises when it is bound.
        let found = ways.into_iter().find(|(axes, n)| axes[largest].is_some() && *n > 1);
        let Some((axes, n)) = found else { return Ok(None) };
        let [first, second] = halves(n, 1).map(|(start, count)| {
            let own = |x: &Array, axis: Option<usize>| match axis {
                Some(i) => part_of(x, i, (start * (x.dim(i) / n), count * (x.dim(i) / n))),
                None => Ok(x.clone()),
            };
            let is_grouped = groups > 1 && axes != images;
            run(&own(a, axes[0])?, &own(b, axes[1])?, if is_grouped { count } else { groups })
        });
        match axes[2] {
            Some(axis) => joined(&first?, &second?, axis).map(Some),
            None => Fold::Sum.combine(&first?, &second?).map(Some),
        }
    }
}
