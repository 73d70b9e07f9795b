//! Tests of optimiser steps against float64 loops and the CPU, and of the number of dispatches.

use super::super::{create, optim};
use super::families::{assert_close, floats, noise, on_gpu};
use super::host;
use crate::arguments::optim::{Adam, Sgd, Slot, UpdateRule, slots};
use crate::cpu;
use crate::gpu;
use crate::gpu::kernels::prelude::*;

gpu_test!(optimiser_steps, {
    let start = noise(1500, 14);
    let slope = noise(1500, 15);
    let (x, g) = (on_gpu(&start, &[1500], DType::F32)?, on_gpu(&slope, &[1500], DType::F16)?);
    let gs = floats(&g)?;
    let zeros = || create::full(0, Shape::new(&[1500])?, 0.0, DType::F32);
    let a = Adam {
        lr: 0.1,
        beta1: 0.9,
        beta2: 0.99,
        eps: 1e-8,
        weight_decay: 0.01,
        decoupled: true,
        ..Default::default()
    };
    optim::step(
        &[Slot { state: &[&x, &zeros()?, &zeros()?], grad: &g, step: 1 }],
        &UpdateRule::Adam(a),
        None,
    )?;
    let expected: Vec<f64> = start
        .iter()
        .zip(&gs)
        .map(|(x, g)| f64::from(*x) * (1.0 - 0.001) - 0.1 * g / (g.abs() + 1e-8))
        .collect();
    assert_close(&floats(&x)?, &expected, 1e-5, "adam");
    let h = on_gpu(&start, &[1500], DType::BF16)?;
    let s = Sgd { lr: 0.5, momentum: 0.9, ..Default::default() };
    let before = floats(&h)?;
    let buffer = zeros()?;
    optim::step(&[Slot { state: &[&h, &buffer], grad: &g, step: 1 }], &UpdateRule::Sgd(s), None)?;
    let expected: Vec<f64> = before.iter().zip(&gs).map(|(x, g)| x - 0.5 * g).collect();
    assert_close(&floats(&h)?, &expected, 5e-3, "sgd");
    assert_close(&floats(&buffer)?, &gs, 1e-6, "momentum");
});

gpu_test!(norms_and_factors, {
    let values = noise(1500, 14);
    let (x, g) = (on_gpu(&values, &[1500], DType::F32)?, on_gpu(&noise(1500, 15), &[1500], DType::F16)?);
    let gs = floats(&g)?;
    let squares = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>();
    let exact = (2.0 * squares(&gs) + squares(&floats(&x)?)).sqrt();
    let found = floats(&optim::norm(&[&g, &x, &g])?)?[0];
    assert!((found - exact).abs() < 1e-5 * exact, "{found} {exact}");
    let found = create::full(0, Shape::SCALAR, 9.0, DType::I32)?;
    optim::unscale(&[&g, &x], 0.5, &found)?;
    assert_eq!(gpu::download(&found)?.item()?, 0.0);
    assert_close(&floats(&g)?, &gs.iter().map(|v| v * 0.5).collect::<Vec<_>>(), 1e-3, "unscaled");
    optim::scale(&[&x], &create::full(0, Shape::SCALAR, 4.0, DType::F32)?)?;
    assert_close(&floats(&x)?, &values.iter().map(|v| f64::from(v * 2.0)).collect::<Vec<_>>(), 0.0, "scaled");
    let infinite = create::full(0, Shape::SCALAR, f64::INFINITY, DType::F32)?;
    optim::unscale(&[&g, &infinite], 1.0, &found)?;
    assert_eq!(gpu::download(&found)?.item()?, 1.0);
});

/// Lengths below and above a workgroup's, and 0.
const LENGTHS: [usize; 6] = [5, 1024, 0, 3000, 1, 1025];
/// The number of the step of each.
const STEPS: [i32; 6] = [1, 2, 3, 4, 5, 6];

/// The arrays of one parameter per length with `states` states; on the GPU or the CPU.
fn arrays(states: usize, on_gpu: bool) -> Result<Vec<Array>> {
    let mut all = Vec::new();
    for (k, n) in LENGTHS.into_iter().enumerate() {
        for seed in (0..=states).chain([9]) {
            // The state is not negative, as second moments are.
            let values: Vec<f32> = noise(n, (seed * 100 + k) as u32).iter().map(|v| v.abs()).collect();
            let x = host(&values, &[n])?;
            all.push(if on_gpu { gpu::upload(&x, 0)? } else { x });
        }
    }
    Ok(all)
}

gpu_test!(many_parameters_take_one_dispatch, {
    let adam = Adam { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-3, weight_decay: 0.1, ..Default::default() };
    let sgd = Sgd { lr: 0.1, momentum: 0.9, weight_decay: 0.1, ..Default::default() };
    let rules = [
        (0, UpdateRule::Sgd(Sgd { momentum: 0.0, ..sgd })),
        (1, UpdateRule::Sgd(Sgd { nesterov: true, maximize: true, ..sgd })),
        (2, UpdateRule::Adam(Adam { maximize: true, ..adam })),
        (3, UpdateRule::Adam(Adam { decoupled: true, ..adam })),
    ];
    for (states, rule) in rules {
        let expected = arrays(states, false)?;
        let expected: Vec<&Array> = expected.iter().collect();
        cpu::optim::step(&slots(&expected, states + 2, &STEPS).collect::<Vec<_>>(), &rule, None)?;
        // Five parameters are not empty.
        for (most, dispatches) in [(usize::MAX, 1), (2, 3), (1, 5)] {
            let found = arrays(states, true)?;
            let found: Vec<&Array> = found.iter().collect();
            let before = gpu::stats(0)?.dispatches;
            optim::step_by(&slots(&found, states + 2, &STEPS).collect::<Vec<_>>(), &rule, None, most)?;
            assert_eq!(gpu::stats(0)?.dispatches - before, dispatches, "{rule:?} by {most}");
            for (x, y) in found.iter().zip(&expected) {
                let y: Vec<f64> = y.slice::<f32>()?.iter().map(|&v| f64::from(v)).collect();
                assert_close(&floats(x)?, &y, 1e-5, &format!("{rule:?} by {most}"));
            }
        }
    }
});
