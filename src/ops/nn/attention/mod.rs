//! Attention, `softmax(scale Q K' + mask) V`, as one operation whose memory is linear in the lengths, forward
//! and backward, up to second order.
//!
//! Three operations are closed under differentiation up to second order. Let `J(t)` be the tangent of the
//! result along `t`. The VJP is the gradient of `<g, out>`; its own derivatives need only `J(t)` and the
//! gradient of `<g, J(t)>`:
//!
//! | operation              | VJP                                     | JVP                       |
//! |------------------------|-----------------------------------------|---------------------------|
//! | attention              | gradient of `<g, out>`                  | `J(t)`                    |
//! | gradient of `<g, out>` | `J(t)` for `g`, gradient of `<g, J(t)>` | both of them, at tangents |
//! | `J(t)`                 | both gradients                          | by its composition        |
//! | gradient of `<g, J>`   | by its composition                      | by its composition        |
//!
//! Derivatives beyond the second order use the compositions in `src/ops/nn/attention/compose.rs`, which
//! materialise the scores. Read next: `src/ops/nn/attention/call.rs`, the function that users call; then the
//! kernels, `src/cpu/attention/` and `src/gpu/kernels/attention.rs`.

mod backward;
mod call;
mod compose;
mod tangent;

pub use backward::AttentionVjp;
pub use call::AttentionOptions;
pub use tangent::AttentionJvp;

use crate::array::random::State;
use crate::cpu::attention as kernels;
use crate::interp::Tag;
use crate::op::AtCall;
use crate::ops::pointwise::table::Params;
use crate::ops::prelude::*;
use crate::ops::random;

/// The name of all three operations.
const NAME: &str = "attention";

/// How scores become weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// The factor of the scores, then the probability of dropout.
    pub numbers: Params,
    /// Whether query `i` sees only the keys up to `i`.
    pub causal: bool,
    /// Whether the inputs include a mask.
    pub masked: bool,
    /// Dropout of the weights.
    pub dropout: Option<Dropout>,
}

/// The random numbers of dropout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dropout {
    /// The stream and the position in it.
    pub state: AtCall<State>,
    /// The batch axes (bit `i` for axis `i`) along which all elements share their numbers.
    pub shared: u16,
    /// The youngest batch level when the numbers were reserved; levels that begin later share the numbers.
    pub since: AtCall<Tag>,
    /// How many levels up to `since`, not yet among the axes, have separate numbers per example.
    pub own: usize,
}

impl Settings {
    /// Where the random numbers of dropout begin.
    fn random_state(&mut self) -> Option<&mut State> {
        Some(&mut self.dropout.as_mut()?.state.0)
    }

    fn scale(&self) -> f64 {
        self.numbers.get()[0]
    }

    /// Converts to the kernels' settings.
    fn kernel(&self) -> kernels::Settings {
        let dropout = self.dropout.map(|d| kernels::Dropout {
            p: self.numbers.get()[1],
            state: d.state.0,
            shared: d.shared,
        });
        kernels::Settings { scale: self.scale(), causal: self.causal, dropout }
    }

    /// Returns the settings one batch level further out, with that level's axis in front. The level has left
    /// the chain: if one fewer level with separate numbers remains, it was one of those. Levels over
    /// cotangents and tangents began after the numbers were reserved, and share them.
    fn batched(mut self) -> Settings {
        if let Some(dropout) = &mut self.dropout {
            let left = random::own_levels(dropout.since.0).len();
            dropout.shared = dropout.shared << 1 | u16::from(left == dropout.own);
            dropout.own = left;
        }
        self
    }
}

/// A subset of queries, keys, values and mask: bit `i` for operand `i`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Which(pub u8);

impl Which {
    /// The operands `i` for which `f(i)` holds.
    fn of(f: impl Fn(usize) -> bool) -> Which {
        Which((0..4).filter(|&i| f(i)).fold(0, |bits, i| bits | 1 << i))
    }
    fn has(self, i: usize) -> bool {
        self.0 >> i & 1 == 1
    }
    fn iter(self) -> impl Iterator<Item = usize> {
        (0..4).filter(move |&i| self.has(i))
    }
    /// Assigns one value to each operand in the set; `None` to the others.
    fn spread<X>(self, values: impl IntoIterator<Item = X>) -> [Option<X>; 4] {
        let mut values = values.into_iter();
        [0, 1, 2, 3].map(|i| if self.has(i) { values.next() } else { None })
    }
}

/// The inputs of one of the operations, by meaning.
struct Given<'a, X> {
    /// Queries, keys, values, mask.
    x: [Option<&'a X>; 4],
    /// The cotangent of the result.
    g: Option<&'a X>,
    /// The result and the log-sum-exp of each query's scores.
    known: Option<(&'a X, &'a X)>,
    /// Tangents of the operands.
    t: [Option<&'a X>; 4],
    /// The tangent of the result, and the weighted mean of the tangents of the scores.
    moved: Option<(&'a X, &'a X)>,
}

/// Takes inputs off a list, in the order that all three operations share.
struct Reader<'a, 'b, X>(&'b [&'a X]);

impl<'a, X> Reader<'a, '_, X> {
    fn next(&mut self) -> Option<&'a X> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
    /// Reads queries, keys and values, the results of the forward pass if `known`, and the mask.
    fn operands(&mut self, settings: &Settings, known: bool) -> Given<'a, X> {
        let [q, k, v] = [(); 3].map(|()| self.next());
        let known = if known { self.next().zip(self.next()) } else { None };
        let mask = if settings.masked { self.next() } else { None };
        Given { x: [q, k, v, mask], g: None, known, t: [None; 4], moved: None }
    }
}

#[cold]
fn missing_input() -> Error {
    Error::value("internal: attention got too few inputs")
}

impl<'a, X> Given<'a, X> {
    /// Operand `i`; an error if the call lacks it.
    fn operand(&self, i: usize) -> Result<&'a X> {
        self.x[i].ok_or_else(missing_input)
    }
    fn g(&self) -> Result<&'a X> {
        self.g.ok_or_else(missing_input)
    }
}

impl<'a> Given<'a, Array> {
    fn inputs(&self, settings: &'a kernels::Settings) -> Result<kernels::Inputs<'a>> {
        let [q, k, v] = [self.operand(0)?, self.operand(1)?, self.operand(2)?];
        Ok(kernels::Inputs { q, k, v, mask: self.x[3], settings })
    }
    fn known(&self) -> Result<kernels::Known<'a>> {
        let (out, log_sum) = self.known.ok_or_else(missing_input)?;
        Ok(kernels::Known { out, log_sum })
    }
    fn tangents(&self) -> kernels::Tangents<'a> {
        let [q, k, v, mask] = self.t;
        kernels::Tangents { q, k, v, mask }
    }
}

/// The work of one matrix of scores, batch included.
struct Scores {
    /// The number of scores.
    count: u64,
    /// Operations of a product with the queries or keys.
    keys: u64,
    /// Operations of a product with the values.
    values: u64,
}

impl Scores {
    fn of(given: &Given<'_, Array>) -> Option<Scores> {
        let [q, k, v] = [given.x[0]?, given.x[1]?, given.x[2]?];
        let (features, keys) = (q.dim(q.rank() - 1), k.dim(k.rank() - 2));
        let count = q.numel() / features.max(1) * keys;
        let product = |terms| cost::product(count, terms);
        Some(Scores { count: count as u64, keys: product(features), values: product(v.dim(v.rank() - 1)) })
    }
}

/// Saves all inputs.
fn every(inputs: usize) -> Saves {
    (0..inputs).map(Saves::input).fold(Saves::NONE, Saves::and)
}

/// `softmax(scale Q K' + mask) V` over the last two axes. Inputs: queries `[..., L, E]`, keys `[..., S, E]`,
/// values `[..., S, V]`, and a mask if `masked`, all of one rank. The queries have the whole batch shape;
/// keys and values share one batch shape, whose axes may have length 1; the mask broadcasts. Outputs: the
/// result `[..., L, V]` and, only for derivatives, the log-sum-exp of the scores `[..., L, 1]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attention {
    /// How scores become weights.
    pub settings: Settings,
}

kernel! {
    Attention, NAME, |self, x| -> Arrays {
        let settings = self.settings.kernel();
        let given = Reader(x).operands(&self.settings, false);
        let (y, log_sum) = on_device!(x[0], attention::forward(&given.inputs(&settings)?))?;
        Ok(smallvec![y, log_sum])
    },
    random_state { self.settings.random_state() },
    /// 2 l s (e + v) and 5 per score, 6 with a mask: l queries, s keys, of e and v features.
    flops |x, _y| {
        let given = Reader(x).operands(&self.settings, false);
        Scores::of(&given).map_or(0, |s| s.keys + s.values + (5 + u64::from(self.settings.masked)) * s.count)
    }
}

impl Composite for Attention {
    const VJP: &'static str = "with p = softmax(scale q k'), s = p * (g v' - rowsum(g * o)) * scale: \
                               s k for q, s' q for k, p' g for v";
    const JVP: &'static str =
        "p v moved: p * (t_s - rowsum(p * t_s)) v + p t_v with t_s = scale (t_q k' + q t_k')";
    const OWN: Own = Own::ALL;

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        compose::attention(&Reader(x).operands(&self.settings, false), &self.settings)
    }
    fn saves(&self, _needs: Needs, inputs: usize) -> Saves {
        every(inputs).and(Saves::OUTPUTS)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let wanted = Which::of(|i| i < c.inputs() && c.needs(i));
        let op = AttentionVjp { settings: self.settings, wanted, second: None };
        let mut x = vec![g, c.input(0)?, c.input(1)?, c.input(2)?, c.output(0)?, c.output(1)?];
        if self.settings.masked {
            x.push(c.input(3)?);
        }
        let grads = wanted.spread(bind(op, &x)?);
        Ok(grads.into_iter().take(c.inputs()).collect())
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let has_tangent = Which::of(|i| t.get(i).is_some_and(Option::is_some));
        let op = AttentionJvp { settings: self.settings, has_tangent };
        let mut inputs: SmallVec<[&Tensor; 10]> = smallvec![x[0], x[1], x[2], &y[0], &y[1]];
        inputs.extend(x.get(3).copied());
        inputs.extend(t.iter().flatten());
        let out = bind(op, &inputs)?;
        Ok(smallvec![out.first().cloned(), None])
    }
    batch!(in_front: |self| Attention { settings: self.settings.batched() });
}
