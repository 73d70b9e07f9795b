//! Custom operations of the core: their rules are used at every level, and hidden outputs have derivatives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use wengert::Tensor;
use wengert::internals::Tensors;
use wengert::internals::autodiff::{Options, backward};
use wengert::internals::autodiff::{batching, vmap};
use wengert::internals::interp::{self, Randomness};
use wengert::internals::op::Grads;
use wengert::internals::op::{CustomRule, ForwardFacts, RuleInput, call};
use wengert::internals::tape::Holder;
use wengert::internals::tape::Node;
use wengert::{Error, Result};
use wengert::{jvp, vjp};

/// `exp(-x)` as a hidden output, `1 / (1 + exp(-x))` as the output. The rules are scaled by `factor`, so that
/// a test can tell them from derivatives by tracing.
struct Sigmoid {
    factor: f64,
    plan: OnceLock<Arc<ForwardFacts>>,
    forwards: AtomicUsize,
}

impl Holder for Sigmoid {}

impl CustomRule for Sigmoid {
    fn name(&self) -> &'static str {
        "own_sigmoid"
    }
    fn forward(&self, x: &[Tensor], hidden: bool) -> Result<Tensors> {
        self.forwards.fetch_add(1, Ordering::Relaxed);
        let mut out = self.retrace(x)?;
        out.truncate(if hidden { 2 } else { 1 });
        let plan = ForwardFacts {
            visible: 1,
            saved: vec![RuleInput::Hidden(0)],
            constant: vec![false],
            traceable: true,
            shared: vec![],
        };
        self.plan.get_or_init(|| Arc::new(plan));
        Ok(out)
    }
    fn retrace(&self, x: &[Tensor]) -> Result<Tensors> {
        let e = x[0].neg()?.exp()?;
        Ok(Tensors::from_vec(vec![e.add(1.0)?.reciprocal()?, e]))
    }
    fn plan(&self) -> Result<Arc<ForwardFacts>> {
        self.plan.get().cloned().ok_or_else(|| Error::value("no forward yet"))
    }
    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], _needs: &[bool]) -> Result<Grads> {
        self.jvp(&[], saved, g)
    }
    fn jvp(&self, _x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let slope = saved[0].div(&saved[0].add(1.0)?.square()?)?.mul(self.factor)?;
        t.iter().map(|t| t.as_ref().map(|t| t.mul(&slope)).transpose()).collect()
    }
}

fn rule(factor: f64) -> Arc<Sigmoid> {
    Arc::new(Sigmoid { factor, plan: OnceLock::new(), forwards: AtomicUsize::new(0) })
}

fn sigmoid(factor: f64) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |x| {
        let mut out = call(rule(factor), std::slice::from_ref(x))?;
        out.pop().ok_or_else(|| Error::value("no output"))
    }
}

fn scalar(v: f64) -> Result<Tensor> {
    Tensor::from_slice(&[v], &[])
}

fn grad(f: impl Fn(&Tensor) -> Result<Tensor>) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |x| {
        let (y, pullback) = vjp(|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x))?;
        Ok(pullback.call(&[Some(y[0].ones_like()?)], false)?.remove(0))
    }
}

fn push(f: impl Fn(&Tensor) -> Result<Tensor>) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |x| Ok(jvp(|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x), &[Some(x.ones_like()?)])?.1.remove(0))
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} is not {b}");
}

/// Sigmoid and its first three derivatives.
fn known(x: f64) -> [f64; 4] {
    let y = 1.0 / (1.0 + (-x).exp());
    let d = y * (1.0 - y);
    [y, d, d * (1.0 - 2.0 * y), d * (1.0 - 6.0 * d)]
}

#[test]
fn derivatives_of_any_order_in_any_mode() -> Result<()> {
    let (f, x, k) = (sigmoid(1.0), scalar(0.4)?, known(0.4));
    close(f(&x)?.item()?, k[0]);
    close(grad(&f)(&x)?.item()?, k[1]);
    close(push(&f)(&x)?.item()?, k[1]);
    close(grad(grad(&f))(&x)?.item()?, k[2]);
    close(push(push(&f))(&x)?.item()?, k[2]);
    close(grad(push(&f))(&x)?.item()?, k[2]);
    close(push(grad(&f))(&x)?.item()?, k[2]);
    close(grad(grad(grad(&f)))(&x)?.item()?, k[3]);
    close(push(grad(push(&f)))(&x)?.item()?, k[3]);
    Ok(())
}

#[test]
fn the_custom_rule_is_used_at_every_level() -> Result<()> {
    let (f, x, k) = (sigmoid(3.0), Tensor::from_slice(&[0.4, -1.0], &[2])?, [known(0.4), known(-1.0)]);
    let batched = |x: &Tensor| -> Result<Tensor> {
        Ok(vmap(batching(2, Randomness::Same), |x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x), &[Some(0)])?
            .remove(0)
            .0)
    };
    let inside = |x: &Tensor| -> Result<Tensor> {
        Ok(vmap(
            batching(2, Randomness::Same),
            |x| Ok(vec![grad(&f)(&x[0])?]),
            std::slice::from_ref(x),
            &[Some(0)],
        )?
        .remove(0)
        .0)
    };
    let total = |x: &Tensor| batched(x)?.sum(None, false);
    for found in [grad(total)(&x)?, inside(&x)?, push(batched)(&x)?] {
        let found = found.to_vec()?;
        close(found[0], 3.0 * k[0][1]);
        close(found[1], 3.0 * k[1][1]);
    }
    Ok(())
}

#[test]
fn the_forward_runs_once_and_again_only_for_hidden_derivatives() -> Result<()> {
    let rule = rule(1.0);
    let x = Node::leaf_tensor(interp::ambient().tag, scalar(0.4)?);
    let y = call(rule.clone(), std::slice::from_ref(&x))?.remove(0);
    let options = Options { create_graph: true, ..Options::default() };
    let first = backward::grad(std::slice::from_ref(&y), std::slice::from_ref(&x), &[None], options)?;
    assert_eq!(rule.forwards.load(Ordering::Relaxed), 1);
    let first = first[0].clone().ok_or_else(|| Error::value("no gradient"))?;
    close(first.item()?, known(0.4)[1]);
    let second = backward::grad(&[first], std::slice::from_ref(&x), &[None], Options::default())?;
    close(second[0].as_ref().ok_or_else(|| Error::value("no gradient"))?.item()?, known(0.4)[2]);
    Ok(())
}

#[test]
fn an_input_in_reserve_may_be_written_to_unless_it_is_needed() -> Result<()> {
    let x = Node::leaf_tensor(interp::ambient().tag, Tensor::from_slice(&[0.4], &[1])?);
    let run = |create_graph: bool| -> Result<Vec<Option<Tensor>>> {
        let held = x.mul(1.0)?;
        let y = sigmoid(1.0)(&held)?;
        held.array("write")?.buffer().bump_version();
        let options = Options { create_graph, ..Options::default() };
        let first = backward::grad(&[y], std::slice::from_ref(&x), &[None], options)?;
        if !create_graph {
            return Ok(first);
        }
        let first = first[0].clone().ok_or_else(|| Error::value("no gradient"))?;
        backward::grad(&[first], std::slice::from_ref(&x), &[None], Options::default())
    };
    close(run(false)?[0].as_ref().ok_or_else(|| Error::value("no gradient"))?.item()?, known(0.4)[1]);
    let failed = run(true).map(drop).map_err(|e| e.to_string());
    assert!(
        failed.is_err_and(|text| text.contains("own_sigmoid: its saved input 0") && text.contains("version"))
    );
    Ok(())
}
