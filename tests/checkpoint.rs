//! Checkpointed regions: same gradients, same random numbers, less memory, in every composition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wengert::DType;
use wengert::Device;
use wengert::Shape;
use wengert::Tensor;
use wengert::internals::autodiff::Options;
use wengert::internals::autodiff::checkpoint;
use wengert::internals::autodiff::{batching, vmap};
use wengert::internals::interp::{self, Randomness};
use wengert::internals::tape::Node;
use wengert::{Error, Result};
use wengert::{jvp, vjp};

fn leaf(values: &[f64]) -> Result<Tensor> {
    let x = Tensor::from_slice(values, &[values.len()])?;
    Ok(Node::leaf_tensor(interp::ambient().tag, x))
}

fn grad_of(x: &Tensor) -> Result<Vec<f64>> {
    let edge = x.edge().ok_or_else(|| Error::value("no edge"))?;
    let slot = edge.node.grad().ok_or_else(|| Error::value("no leaf"))?;
    slot.as_ref().ok_or_else(|| Error::value("no gradient"))?.to_vec()
}

/// Runs `f` as a checkpointed region of `x`.
fn region<F>(f: F, x: &Tensor) -> Result<Tensor>
where
    F: Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    let f = Arc::new(f);
    let (again, kept) = (f.clone(), x.clone());
    checkpoint(|| f(x), Box::new(move || again(&kept).map(drop)), None)
}

#[test]
fn gradients_are_the_same_also_of_closed_over_leaves() -> Result<()> {
    let (x, w) = (leaf(&[0.1, 0.2])?, leaf(&[3.0, 4.0])?);
    let closed = w.clone();
    let y = region(move |x| x.mul(&closed)?.tanh()?.exp(), &x)?;
    y.sum(None, false)?.backward(None, Options::default(), None)?;
    let (x2, w2) = (leaf(&[0.1, 0.2])?, leaf(&[3.0, 4.0])?);
    let y = x2.mul(&w2)?.tanh()?.exp()?;
    y.sum(None, false)?.backward(None, Options::default(), None)?;
    assert_eq!(grad_of(&x)?, grad_of(&x2)?);
    assert_eq!(grad_of(&w)?, grad_of(&w2)?);
    Ok(())
}

#[test]
fn the_region_runs_once_more_and_keeps_nothing_meanwhile() -> Result<()> {
    let runs = Arc::new(AtomicUsize::new(0));
    let (count, x) = (runs.clone(), leaf(&[0.5; 1000])?);
    let f = move |x: &Tensor| {
        count.fetch_add(1, Ordering::Relaxed);
        x.tanh()?.tanh()?.tanh()
    };
    let y = region(f, &x)?;
    let edge = y.edge().ok_or_else(|| Error::value("no edge"))?;
    assert_eq!(edge.node.saved_bytes(), 0);
    let loss = y.sum(None, false)?;
    loss.backward(None, Options { retain_graph: true, ..Options::default() }, None)?;
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    loss.backward(None, Options::default(), None)?;
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    Ok(())
}

#[test]
fn dropout_repeats_its_mask() -> Result<()> {
    let x = leaf(&[1.0; 64])?;
    let y = region(|x| x.dropout(0.5)?.square(), &x)?;
    let after = wengert::internals::array::random::state();
    y.sum(None, false)?.backward(None, Options::default(), None)?;
    assert_eq!(wengert::internals::array::random::state(), after);
    // y is 0 or 4, its gradient 0 or 8 in the same places.
    let expected: Vec<f64> = y.to_vec()?.iter().map(|y| 2.0 * y).collect();
    assert_eq!(grad_of(&x)?, expected);
    Ok(())
}

#[test]
fn a_function_that_changes_is_found_out() -> Result<()> {
    let runs = AtomicUsize::new(0);
    let f = move |x: &Tensor| if runs.fetch_add(1, Ordering::Relaxed) == 0 { x.tanh() } else { x.sin() };
    let y = region(f, &leaf(&[1.0])?)?.sum(None, false)?;
    let error = y.backward(None, Options::default(), None);
    assert!(error.is_err_and(|e| e.to_string().contains("must do the same both times")));
    Ok(())
}

#[test]
fn inside_vjp_jvp_and_vmap() -> Result<()> {
    let x = Tensor::from_slice(&[0.3f64, 0.6], &[2])?;
    let f = |x: &[Tensor]| Ok(vec![region(|x| x.sin()?.square(), &x[0])?]);
    let d: Vec<f64> = [0.3f64, 0.6].iter().map(|x| 2.0 * x.sin() * x.cos()).collect();
    let near = |a: Vec<f64>| a.iter().zip(&d).all(|(a, b)| (a - b).abs() < 1e-14);
    let one = Tensor::full(Shape::new(&[2])?, 1.0, DType::F64, Device::Cpu)?;
    let (_, pullback) = vjp(f, std::slice::from_ref(&x))?;
    assert!(near(pullback.call(&[Some(one.clone())], false)?[0].to_vec()?));
    let (_, t) = jvp(f, std::slice::from_ref(&x), &[Some(one)])?;
    assert!(near(t[0].to_vec()?));
    let each = |x: &[Tensor]| {
        let (y, pullback) = vjp(f, x)?;
        pullback.call(&[Some(y[0].ones_like()?)], false)
    };
    assert!(near(vmap(batching(2, Randomness::Same), each, &[x], &[Some(0)])?[0].0.to_vec()?));
    Ok(())
}
