//! The derivative machinery against closed forms: every mode, nested, deep, and in each other.

use wengert::Result;
use wengert::Tensor;
use wengert::internals::autodiff::{Options, backward};
use wengert::internals::autodiff::{batching, vmap};
use wengert::internals::interp::{self, Randomness};
use wengert::internals::tape::Node;
use wengert::{jvp, vjp};

fn scalar(v: f64) -> Result<Tensor> {
    Tensor::from_slice(&[v], &[])
}

fn leaf(x: Tensor) -> Tensor {
    Node::leaf_tensor(interp::ambient().tag, x)
}

fn grad_of(x: &Tensor) -> Result<Vec<f64>> {
    let edge = x.edge().ok_or_else(|| wengert::Error::value("no edge"))?;
    let slot = edge.node.grad().ok_or_else(|| wengert::Error::value("no leaf"))?;
    slot.as_ref().map_or(Ok(vec![]), Tensor::to_vec)
}

/// The gradient of a scalar function as a function.
fn grad(f: impl Fn(&Tensor) -> Result<Tensor>) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |x| {
        let (y, pullback) = vjp(|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x))?;
        Ok(pullback.call(&[Some(y[0].ones_like()?)], false)?.remove(0))
    }
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} is not {b}");
}

#[test]
fn backward_of_a_hand_worked_expression() -> Result<()> {
    // y = (x w + b)^2 at x = 2, w = 3, b = 1.
    let (x, w, b) = (leaf(scalar(2.0)?), leaf(scalar(3.0)?), leaf(scalar(1.0)?));
    let y = x.mul(&w)?.add(&b)?.square()?;
    close(y.item()?, 49.0);
    y.backward(None, Options::default(), None)?;
    close(grad_of(&x)?[0], 42.0);
    close(grad_of(&w)?[0], 28.0);
    close(grad_of(&b)?[0], 14.0);
    let again = y.backward(None, Options::default(), None);
    assert!(again.is_err_and(|e| e.to_string().contains("retain_graph=True")));
    Ok(())
}

#[test]
fn the_interface_of_programs_names_what_is_wrong() -> Result<()> {
    use wengert::optim::{Adam, Optimizer, UpdateRule};
    let w = Tensor::from_slice(&[1.0f32, -2.0], &[2])?;
    let (value, g) = wengert::value_and_grad(|w| w[0].square()?.sum(None, false), std::slice::from_ref(&w))?;
    close(value.item()?, 5.0);
    assert_eq!(g[0].to_vec()?, [2.0, -4.0]);
    // The first step of Adam moves every element by the learning rate; without a gradient, not at all.
    let mut optimizer = Optimizer::new(std::slice::from_ref(&w), UpdateRule::Adam(Adam::default()))?;
    optimizer.step(&[Tensor::from_slice(&[3.0f32, 0.0], &[2])?])?;
    assert!((w.to_vec()?[0] - 0.999).abs() < 1e-6 && w.to_vec()?[1] == -2.0);
    let text = |r: Result<Optimizer>| r.err().map_or(String::new(), |e| e.to_string());
    let integers = Tensor::from_slice(&[1i64, 2], &[2])?;
    let rule = UpdateRule::Adam(Adam::default());
    assert!(text(Optimizer::new(&[w.clone(), integers], rule.clone())).contains("parameter 1 is int64"));
    assert!(text(Optimizer::new(&[leaf(w.clone())], rule)).contains("parameter 0 is recorded"));
    let squares = wengert::vmap(|x| Ok(vec![x[0].square()?]), std::slice::from_ref(&w), &[Some(0)])?;
    assert_eq!(squares[0].shape(), w.shape());
    let error = |r: Result<Vec<Tensor>>| r.err().map_or(String::new(), |e| e.to_string());
    assert!(
        error(wengert::vmap(|x| Ok(x.to_vec()), std::slice::from_ref(&w), &[None]))
            .contains("no input has a batch")
    );
    assert!(
        error(wengert::vmap(|x| Ok(x.to_vec()), std::slice::from_ref(&w), &[Some(1)])).contains("no axis 1")
    );
    assert!(error(wengert::grad(|w| w[0].square(), &[w])).contains("expected one element"));
    Ok(())
}

#[test]
fn any_order_by_nesting() -> Result<()> {
    let f = |x: &Tensor| x.tanh();
    let x = scalar(0.3)?;
    let t = 0.3f64.tanh();
    let (d1, d2) = (1.0 - t * t, -2.0 * t * (1.0 - t * t));
    let d3 = (1.0 - t * t) * (6.0 * t * t - 2.0);
    close(grad(f)(&x)?.item()?, d1);
    close(grad(grad(f))(&x)?.item()?, d2);
    close(grad(grad(grad(f)))(&x)?.item()?, d3);
    let forward = |x: &Tensor| {
        let (_, t) = jvp(|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x), &[Some(x.ones_like()?)])?;
        Ok(t[0].clone())
    };
    close(grad(forward)(&x)?.item()?, d2);
    let (_, t) = jvp(|x| Ok(vec![grad(forward)(&x[0])?]), std::slice::from_ref(&x), &[Some(scalar(1.0)?)])?;
    close(t[0].item()?, d3);
    Ok(())
}

#[test]
fn perturbations_are_not_confused() -> Result<()> {
    // d/dx (x * d/dy (x + y)) at x = 1 is 1, not 2.
    let f = |x: &Tensor| x.mul(&grad(|y: &Tensor| x.add(y))(&scalar(1.0)?)?);
    close(grad(f)(&scalar(1.0)?)?.item()?, 1.0);
    Ok(())
}

#[test]
fn vmap_of_grad_is_a_loop() -> Result<()> {
    let x = Tensor::from_slice(&[0.1, 0.2, 0.3], &[3])?;
    let out = vmap(
        batching(3, Randomness::Same),
        |x| Ok(vec![grad(|x: &Tensor| x.sin()?.mul(x))(&x[0])?]),
        &[x],
        &[Some(0)],
    )?;
    assert_eq!(out[0].1, Some(0));
    for (got, x) in out[0].0.to_vec()?.into_iter().zip([0.1f64, 0.2, 0.3]) {
        close(got, x.cos() * x + x.sin());
    }
    Ok(())
}

#[test]
fn backward_works_inside_transforms() -> Result<()> {
    // Inside vmap, a leaf of the ambient tape and its own backward.
    let x = Tensor::from_slice(&[1.0, 2.0], &[2])?;
    let inner = |x: &[Tensor]| -> Result<Vec<Tensor>> {
        let w = leaf(scalar(3.0)?.mul(&x[0])?);
        w.square()?.backward(None, Options::default(), None)?;
        let edge = w.edge().ok_or_else(|| wengert::Error::value("no edge"))?;
        let g = edge.node.grad().and_then(|g| g.clone());
        Ok(vec![g.ok_or_else(|| wengert::Error::value("no gradient"))?])
    };
    let out = vmap(batching(2, Randomness::Same), inner, &[x], &[Some(0)])?;
    assert_eq!(out[0].0.to_vec()?, vec![6.0, 12.0]);
    Ok(())
}

#[test]
fn create_graph_gives_second_derivatives() -> Result<()> {
    let x = leaf(scalar(1.5)?);
    let y = x.square()?.sin()?;
    let options = Options { create_graph: true, ..Options::default() };
    let g = backward::grad(std::slice::from_ref(&y), std::slice::from_ref(&x), &[], options)?;
    let g = g[0].clone().ok_or_else(|| wengert::Error::value("no gradient"))?;
    close(g.item()?, 2.0 * 1.5 * 2.25f64.cos());
    let h = backward::grad(&[g], &[x], &[], Options::default())?;
    let h = h[0].clone().ok_or_else(|| wengert::Error::value("no gradient"))?;
    close(h.item()?, 2.0 * 2.25f64.cos() - 4.0 * 2.25 * 2.25f64.sin());
    Ok(())
}

#[test]
fn a_million_operations_deep() -> Result<()> {
    let x = leaf(scalar(1.0)?);
    let mut y = x.clone();
    for _ in 0..1_000_000 {
        y = y.add(&x)?;
    }
    y.backward(None, Options { retain_graph: true, ..Options::default() }, None)?;
    assert_eq!(grad_of(&x)?, vec![1_000_001.0]);
    drop(y);
    Ok(())
}

#[test]
fn recording_can_be_turned_off() -> Result<()> {
    let x = leaf(scalar(2.0)?);
    let y = interp::no_grad(|| x.square())?;
    assert!(y.edge().is_none());
    // A transform entered inside records all the same.
    close(interp::no_grad(|| grad(|x: &Tensor| x.square())(&x))?.item()?, 4.0);
    Ok(())
}

#[test]
fn escaped_values_raise() -> Result<()> {
    let mut kept = None;
    jvp(
        |x| {
            kept = Some(x[0].clone());
            Ok(vec![x[0].clone()])
        },
        &[scalar(1.0)?],
        &[Some(scalar(1.0)?)],
    )?;
    let kept = kept.ok_or_else(|| wengert::Error::value("nothing kept"))?;
    assert!(kept.exp().is_err_and(|e| e.to_string().contains("has ended")));
    Ok(())
}

#[test]
fn products_are_exact_at_zeros_to_second_order() -> Result<()> {
    // f = a b c at (0, 2, 3): grad (6, 0, 0), and d2f / da db = c.
    let x = Tensor::from_slice(&[0.0, 2.0, 3.0], &[3])?;
    let f = |x: &Tensor| x.prod(None, false);
    assert_eq!(grad(f)(&x)?.to_vec()?, vec![6.0, 0.0, 0.0]);
    let row = |x: &Tensor| grad(f)(x)?.select_index(0, 0);
    assert_eq!(grad(row)(&x)?.to_vec()?, vec![0.0, 3.0, 2.0]);
    Ok(())
}

#[test]
fn an_index_of_one_batch_element_cannot_reach_into_another() -> Result<()> {
    let x = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    let index = Tensor::from_slice(&[2i64, 0], &[2])?;
    let out = vmap(
        batching(2, Randomness::Same),
        |x| Ok(vec![x[0].take(&x[1], 0)?]),
        &[x, index],
        &[Some(0), Some(0)],
    );
    assert!(out.is_err_and(|e| e.to_string().contains("out of range")));
    Ok(())
}
