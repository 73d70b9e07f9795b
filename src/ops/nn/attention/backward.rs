//! The gradients of attention: of `<g, out>`, and of `<g, J(t)>`.

use super::{AttentionJvp, Given, NAME, Reader, Scores, Settings, Which, compose, every};
use crate::cpu::attention as kernels;
use crate::ops::prelude::*;

/// Gradients of [`Attention`](super::Attention). Inputs: the cotangent g, queries, keys, values, result,
/// log-sum-exp, and the mask if there is one; if `second`, also the tangents it names, the tangent of the
/// result and the mean of the tangents of the scores. Outputs: the wanted gradients, of `<g, out>` or, if
/// `second`, of `<g, J(t)>`.
///
/// Result and statistics are functions of the operands. The derivatives of this operation account for that,
/// so these inputs have no gradient of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttentionVjp {
    /// How scores become weights.
    pub settings: Settings,
    /// The wanted gradients.
    pub wanted: Which,
    /// For second derivatives: the operands that have tangents.
    pub second: Option<Which>,
}

/// The position of operand `i` among the inputs.
fn place(i: usize) -> usize {
    if i == 3 { 6 } else { 1 + i }
}

impl AttentionVjp {
    fn read<'a, X>(&self, x: &[&'a X]) -> Given<'a, X> {
        let mut reader = Reader(x);
        let g = reader.next();
        let given = reader.operands(&self.settings, true);
        let Some(has_tangent) = self.second else { return Given { g, ..given } };
        let t = has_tangent.spread(std::iter::from_fn(|| reader.next()).take(has_tangent.iter().count()));
        let moved = match reader.0 {
            [.., out, mean] => Some((*out, *mean)),
            _ => None,
        };
        Given { g, t, moved, ..given }
    }

    /// Returns the `wanted` gradients of `<g, J(t)>`, and `J(t)`, for the given tangents.
    fn along(
        &self, x: &[&Tensor], has_tangent: Which, t: &[&Tensor], wanted: Which,
    ) -> Result<(Tensors, Tensors)> {
        let settings = self.settings;
        let mut inputs: Vec<&Tensor> = x.iter().chain(t).copied().collect();
        let moved = bind(AttentionJvp { settings, has_tangent }, &inputs[1..])?;
        if wanted == Which::default() {
            return Ok((Tensors::new(), moved));
        }
        inputs.extend(&moved);
        let out = bind(AttentionVjp { settings, wanted, second: Some(has_tangent) }, &inputs)?;
        drop(inputs);
        Ok((out, moved))
    }
}

kernel! {
    AttentionVjp, NAME, |self, x| -> Arrays {
        let (settings, given) = (self.settings.kernel(), self.read(x));
        let moved =
            given.moved.map(|(out, mean)| kernels::OutputTangents { tangents: given.tangents(), out, mean });
        let [q, k, v, mask] = [0, 1, 2, 3].map(|i| self.wanted.has(i));
        let wanted = kernels::Wanted { q, k, v, mask };
        let (inputs, known, g) = (given.inputs(&settings)?, given.known()?, given.g()?);
        let grads = on_device!(x[0], attention::vjp(&inputs, &known, g, moved.as_ref(), wanted))?;
        Ok(grads.into_iter().flatten().collect())
    },
    random_state { self.settings.random_state() },
    /// 2 l s (3 e + 2 v) and 6 per score for all gradients; for the second order, products by its tangents.
    flops |x, _y| {
        let given = self.read(x);
        let Some(s) = Scores::of(&given) else { return 0 };
        let (wants, has_tangent) =
            (|i| u64::from(self.wanted.has(i)), |i: usize| u64::from(given.t[i].is_some()));
        let again = s.keys * (1 + has_tangent(0) + has_tangent(1)) + s.values * (1 + has_tangent(2));
        let products = s.keys * (wants(0) * (1 + has_tangent(1)) + wants(1) * (1 + has_tangent(0)))
            + s.values * wants(2);
        again + products + s.count * if self.second.is_some() { 12 } else { 6 }
    }
}

impl Composite for AttentionVjp {
    const VJP: &'static str = "J(t) for g, the gradients of <g, J(t)> for the rest, along the cotangents t";
    const JVP: &'static str = "the same of t_g, plus the gradients of <g, J(t)>";

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let given = self.read(x);
        match self.second {
            None => compose::gradients(&given, &self.settings, self.wanted),
            Some(_) => compose::second_gradients(&given, &self.settings, self.wanted),
        }
    }
    fn own(&self) -> Own {
        let first = self.second.is_none();
        Own { vjp: first, jvp: first, batch: true }
    }
    fn saves(&self, _needs: Needs, inputs: usize) -> Saves {
        every(inputs)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let x = (0..c.inputs()).map(|i| c.input(i)).collect::<Result<Vec<_>>>()?;
        // The cotangents of the gradients act as tangents of the operands.
        let t = self.wanted.spread(g.iter().map(Option::as_ref)).map(Option::flatten);
        let has_tangent = Which::of(|i| t[i].is_some());
        if has_tangent == Which::default() {
            return Ok(Grads::new());
        }
        let t: Vec<&Tensor> = t.into_iter().flatten().collect();
        let wanted = Which::of(|i| (i < 3 || self.settings.masked) && c.needs(place(i)));
        let (out, moved) = self.along(&x, has_tangent, &t, wanted)?;
        let mut grads: Grads = smallvec![None; x.len()];
        grads[0] = moved.first().filter(|_| c.needs(0)).cloned();
        wanted.iter().zip(out).for_each(|(i, y)| grads[place(i)] = Some(y));
        Ok(grads)
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        // The result is linear in the cotangent; the Hessian of `<g, out>` is symmetric.
        let mut total: Grads = smallvec![None; y.len()];
        if let Some(tg) = &t[0] {
            let mut inputs: SmallVec<[&Tensor; 7]> = SmallVec::from_slice(x);
            inputs[0] = tg;
            total = bind(*self, &inputs)?.into_iter().map(Some).collect();
        }
        let has_tangent = Which::of(|i| t.get(place(i)).is_some_and(Option::is_some));
        if has_tangent == Which::default() {
            return Ok(total);
        }
        let along: Vec<&Tensor> = has_tangent.iter().filter_map(|i| t[place(i)].as_ref()).collect();
        let (out, _) = self.along(x, has_tangent, &along, self.wanted)?;
        total.into_iter().zip(out).map(|(sum, y)| added(sum, Some(y))).collect()
    }
    batch!(in_front: |self| AttentionVjp { settings: self.settings.batched(), ..*self });
}
