//! The roots of a backward walk: the edges it starts from, and their cotangents.

use super::prelude::*;
use crate::autodiff::levels::edge_behind;
use crate::tensor::donated;
use crate::watch::debug;

/// Returns the edge of each output on its own tape, and its cotangent.
pub fn roots(outputs: &[Tensor], gradients: &[Option<Tensor>]) -> Result<Vec<(Edge, Tensor)>> {
    let mut roots = Vec::new();
    for (i, y) in outputs.iter().enumerate() {
        let edge = y.edge().ok_or_else(|| no_graph(y))?;
        roots.push((edge, seed(y, gradients.get(i).and_then(Option::as_ref))?));
    }
    Ok(roots)
}

/// Returns the edge of `y` on the tape `tag`, which may lie below other tapes that recorded `y` as well.
pub fn on_tape(y: &Tensor, tag: Tag) -> Option<Edge> {
    let mut at = y;
    loop {
        let traced = at.traced()?;
        match &traced.payload {
            Payload::Taped { .. } if traced.tag == tag => return at.edge(),
            Payload::Taped { primal, .. } => at = primal,
            Payload::Dual { .. }
            | Payload::Batched { .. }
            | Payload::Linearized { .. }
            | Payload::Donated { .. } => return None,
        }
    }
}

/// Raises for a complex cotangent of a real value (its imaginary part would be lost), and for a cotangent
/// with axes on another device.
pub fn check(g: &Tensor, y: &Aval) -> Result<()> {
    if g.is_donated() {
        return Err(donated("backward", &g.shape()));
    }
    if g.dtype().is_complex() && !y.dtype.is_complex() {
        return Err(Error::autodiff(format!(
            "backward: a cotangent (gradient=) is {}, and the tensor of shape {} that it belongs to is {}; \
             the cotangent of a real tensor is real: pass its .real or .imag",
            g.dtype(),
            y.shape,
            y.dtype
        )));
    }
    if g.device() != y.device && g.rank() > 0 {
        return Err(Error::value(format!(
            "backward: a cotangent (gradient=) is on {}, and the tensor of shape {} that it belongs to is \
             on {to}; move it with .to('{to}')",
            g.device(),
            y.shape,
            to = y.device
        )));
    }
    Ok(())
}

/// The checked cotangent of output `y`, 1 if a real one-element output has none.
fn seed(y: &Tensor, gradient: Option<&Tensor>) -> Result<Tensor> {
    match gradient {
        None if y.dtype().is_complex() => Err(Error::autodiff(format!(
            "backward: a {} tensor has no single gradient; make it real first, as in \
             y.abs().sum().backward(), or pass gradient= of the same shape",
            y.dtype()
        ))),
        None if y.numel() == 1 => y.ones_like(),
        None => Err(Error::autodiff(format!(
            "backward: a tensor of shape {} has no single gradient; reduce it first, as in \
             y.sum().backward(), or pass gradient= of the same shape",
            y.shape()
        ))),
        Some(g) if g.shape() != y.shape() => Err(Error::autodiff(format!(
            "backward: gradient= has shape {}, expected {} as the tensor it belongs to",
            g.shape(),
            y.shape()
        ))),
        Some(g) => {
            check(g, &y.aval())?;
            if g.dtype() == y.dtype() { Ok(g.clone()) } else { g.cast(y.dtype()) }
        }
    }
}

#[cold]
fn no_graph(y: &Tensor) -> Error {
    if edge_behind(y).is_some() {
        return Error::autodiff(format!(
            "backward: the {} tensor of shape {} is recorded by a tape around the vmap or jvp it is in, \
             where all examples are differentiated at once; return it, and go backward from what vmap or \
             jvp returns",
            y.dtype(),
            y.shape()
        ));
    }
    let left = debug::last_left().map_or_else(String::new, |l| {
        format!("; recorded values last left the tape by {}{}", l.what, crate::tape::location::at(l.location))
    });
    Error::autodiff(format!(
        "backward: the {} tensor of shape {} has no graph: no input of its computation requires a gradient, \
         it was computed under no_grad(), or it was detached; call requires_grad_() on an input before \
         computing it{left}",
        y.dtype(),
        y.shape()
    ))
}
