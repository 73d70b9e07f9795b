//! `J(t)`: the tangent of attention's result.

use super::{AttentionVjp, Given, NAME, Reader, Scores, Settings, Which, compose, every};
use crate::ops::prelude::*;

/// The tangent of [`Attention`](super::Attention). Inputs: queries, keys, values, result, logarithm of the
/// sum of exponentials, the mask if there is one, and the tangents that `has_tangent` says. Outputs: the
/// tangent of the result and, for derivatives alone, the mean of the tangents of the scores `[..., L, 1]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttentionJvp {
    /// How scores become weights.
    pub settings: Settings,
    /// The operands that have tangents.
    pub has_tangent: Which,
}

impl AttentionJvp {
    fn read<'a, X>(&self, x: &[&'a X]) -> Given<'a, X> {
        let mut reader = Reader(x);
        let given = reader.operands(&self.settings, true);
        Given { t: self.has_tangent.spread(std::iter::from_fn(|| reader.next())), ..given }
    }
}

kernel! {
    AttentionJvp, NAME, |self, x| -> Arrays {
        let (settings, given) = (self.settings.kernel(), self.read(x));
        let (inputs, known) = (given.inputs(&settings)?, given.known()?);
        let (y, mean) = on_device!(x[0], attention::jvp(&inputs, &known, &given.tangents()))?;
        Ok(smallvec![y, mean])
    },
    random_state { self.settings.random_state() },
    /// 2 l s (3 e + 2 v) and 6 per score for all tangents.
    flops |x, _y| {
        let given = self.read(x);
        let Some(s) = Scores::of(&given) else { return 0 };
        let has_tangent = |i: usize| u64::from(given.t[i].is_some());
        let changed = u64::from([0, 1, 3].into_iter().any(|i| given.t[i].is_some()));
        s.keys * (1 + has_tangent(0) + has_tangent(1)) + s.values * (changed + has_tangent(2)) + 6 * s.count
    }
}

impl Composite for AttentionJvp {
    const VJP: &'static str = "the gradients of <g, J(t)>";
    const OWN: Own = Own { vjp: true, batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        compose::tangent(&self.read(x), &self.settings)
    }
    fn saves(&self, _needs: Needs, inputs: usize) -> Saves {
        every(inputs).and(Saves::OUTPUTS)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let settings = self.settings;
        let inputs = (0..c.inputs()).map(|i| c.input(i)).collect::<Result<Vec<_>>>()?;
        let mut grads: Grads = smallvec![None; inputs.len()];
        let first = 5 + usize::from(settings.masked);
        // `J(t)` is linear in the tangents: their gradients are those of `<g, out>`.
        let at = |i: usize| first + self.has_tangent.iter().take_while(|&k| k < i).count();
        let wanted = Which::of(|i| self.has_tangent.has(i) && c.needs(at(i)));
        if wanted != Which::default() {
            let mut x = vec![g];
            x.extend(&inputs[..first]);
            let out = bind(AttentionVjp { settings, wanted, second: None }, &x)?;
            wanted.iter().zip(out).for_each(|(i, y)| grads[at(i)] = Some(y));
        }
        // The mask follows the two outputs.
        let place = |i: usize| if i == 3 { 5 } else { i };
        let wanted = Which::of(|i| (i < 3 || settings.masked) && c.needs(place(i)));
        if wanted != Which::default() {
            let mut x = vec![g];
            x.extend(&inputs);
            x.extend([c.output(0)?, c.output(1)?]);
            let out = bind(AttentionVjp { settings, wanted, second: Some(self.has_tangent) }, &x)?;
            wanted.iter().zip(out).for_each(|(i, y)| grads[place(i)] = Some(y));
        }
        Ok(grads)
    }
    batch!(in_front: |self| AttentionJvp { settings: self.settings.batched(), ..*self });
}
