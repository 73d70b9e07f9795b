//! Several tensors as the outputs of one node of the tape, so that a hook sees all their gradients together.
//! `nn.Module` puts one bundle before and one after a layer that has backward hooks.

use crate::ops::prelude::*;

/// The identity of several tensors. It copies: an in-place write to an output must not bypass the hook.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bundle;

kernel! {
    Bundle, "bundle", |self, x| -> Arrays {
        x.iter().map(|x| x.copied()).collect()
    },
    flops |_x, _y| 0
}

impl General for Bundle {
    const VJP: &'static str = "g";
    const JVP: &'static str = "t";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::NONE
    }
    fn vjp(&self, _c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(g.iter().cloned().collect())
    }
    fn jvp(&self, _x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        Ok(t.iter().cloned().collect())
    }
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        let values: Vec<&Tensor> = x.iter().map(|operand| &operand.value).collect();
        let out = bind(*self, &values)?;
        Ok(out.into_iter().zip(x).map(|(y, operand)| (y, operand.axis)).collect())
    }
}

impl Tensor {
    /// Returns copies of these tensors, recorded as the outputs of one operation.
    pub fn bundle(tensors: &[Tensor]) -> Result<Tensors> {
        let refs: Vec<&Tensor> = tensors.iter().collect();
        bind(Bundle, &refs)
    }
}
