//! A small network learns two interleaved spirals: `cargo run --example train`.
//!
//! Everything here is the library's interface: tensors and their methods, `value_and_grad`, an optimiser.

use wengert::optim::{Adam, Optimizer, UpdateRule};
use wengert::{DType, Device, Result, Shape, Tensor, value_and_grad};

const POINTS: usize = 128;
const HIDDEN: usize = 32;
const STEPS: usize = 400;

/// Points of two spirals, shape `(2 * POINTS, 2)`, and their labels, 0 or 1, shape `(2 * POINTS, 1)`.
fn spirals() -> Result<(Tensor, Tensor)> {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for i in 0..2 * POINTS {
        let (arm, along) = (i % 2, (i / 2) as f32 / POINTS as f32);
        let angle = 6.0 * along + std::f32::consts::PI * arm as f32;
        points.extend([along * angle.cos(), along * angle.sin()]);
        labels.push(arm as f32);
    }
    Ok((Tensor::from_slice(&points, &[2 * POINTS, 2])?, Tensor::from_slice(&labels, &[2 * POINTS, 1])?))
}

/// Weights and biases of three layers: normal numbers over the root of the number of inputs, and zeros.
fn parameters() -> Result<Vec<Tensor>> {
    let mut params = Vec::new();
    for (inputs, outputs) in [(2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)] {
        let weight = Tensor::randn(Shape::new(&[inputs, outputs])?, DType::F32, Device::Cpu)?;
        params.push(weight.mul((1.0 / inputs as f64).sqrt())?);
        params.push(Tensor::zeros(Shape::new(&[outputs])?, DType::F32, Device::Cpu)?);
    }
    Ok(params)
}

/// The logits of the network, one for each row of `x`.
fn forward(x: &Tensor, p: &[Tensor]) -> Result<Tensor> {
    let hidden = x.matmul(&p[0])?.add(&p[1])?.tanh()?;
    let hidden = hidden.matmul(&p[2])?.add(&p[3])?.tanh()?;
    hidden.matmul(&p[4])?.add(&p[5])
}

/// The mean binary cross-entropy of logits `z`: `softplus(z) - z * label`.
fn loss(z: &Tensor, labels: &Tensor) -> Result<Tensor> {
    z.softplus(1.0, 20.0)?.sub(&z.mul(labels)?)?.mean(None, false)
}

fn main() -> Result<()> {
    let (x, labels) = spirals()?;
    let params = parameters()?;
    let rule = Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, ..Adam::default() };
    let mut optimizer = Optimizer::new(&params, UpdateRule::Adam(rule))?;
    for step in 0..=STEPS {
        let (value, gradients) = value_and_grad(|p| loss(&forward(&x, p)?, &labels), &params)?;
        optimizer.step(&gradients)?;
        if step % 100 == 0 {
            println!("step {step:4}: loss {:.4}", value.item()?);
        }
    }
    let right = forward(&x, &params)?
        .to_vec()?
        .iter()
        .zip(labels.to_vec()?)
        .filter(|(z, l)| (**z > 0.0) == (*l > 0.5))
        .count();
    println!("{right} of {} points are on the right side", 2 * POINTS);
    Ok(())
}
