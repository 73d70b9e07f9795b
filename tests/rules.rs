//! The tables of elementwise functions and the list of operations are complete and consistent: every row has
//! a value, a derivative for each input that agrees with differences, and documentation; no name stands for
//! two things.

use std::collections::HashSet;
use wengert::Tensor;
use wengert::internals::bind;
use wengert::internals::op::{Class, Op};
use wengert::internals::ops::Binary;
use wengert::internals::ops::Map;
use wengert::internals::ops::{Fun, Visit, all};
use wengert::internals::ops::{Parametric, Unary};
use wengert::{Error, Result};
use wengert::{jvp, vjp};

/// Points at which every row is smooth: positive, off the attributes below, and no quotient is an integer.
const X: [f64; 4] = [0.37, 0.81, 1.42, 2.6];
const Y: [f64; 4] = [0.53, 1.9, 0.67, 1.45];

fn inputs(fun: Fun) -> Result<Vec<Tensor>> {
    let x = Tensor::from_slice(&X, &[4])?;
    Ok(match fun {
        Fun::Binary(_) => vec![x, Tensor::from_slice(&Y, &[4])?],
        // Those that are defined up to 1, and from 1 on.
        Fun::Unary(Unary::Asin | Unary::Acos | Unary::Atanh | Unary::Erfinv | Unary::Ndtri) => {
            vec![x.mul(0.3)?]
        }
        Fun::Parametric(Parametric::Logit) => vec![x.mul(0.3)?],
        Fun::Unary(Unary::Acosh) => vec![x.square()?.add(1.5)?],
        _ => vec![x],
    })
}

fn attributes(fun: Fun) -> [f64; 2] {
    match fun {
        Fun::Parametric(Parametric::Softplus) => [1.5, 20.0],
        Fun::Parametric(Parametric::Polygamma) => [2.0, 0.0],
        Fun::Parametric(Parametric::Logit) => [0.05, 0.95],
        Fun::Parametric(_) => [0.6, 1.7],
        _ => [0.0, 0.0],
    }
}

fn apply(fun: Fun, x: &[Tensor]) -> Result<Tensor> {
    let refs: Vec<&Tensor> = x.iter().collect();
    bind(Map { fun, p: attributes(fun).into() }, &refs)
}

/// The derivative along input `wrt`, by central differences.
fn difference(fun: Fun, x: &[Tensor], wrt: usize) -> Result<Vec<f64>> {
    const H: f64 = 1e-5;
    let at = |t: f64| -> Result<Vec<f64>> {
        let mut moved = x.to_vec();
        moved[wrt] = moved[wrt].add(t)?;
        apply(fun, &moved)?.to_vec()
    };
    let (above, below) = (at(H)?, at(-H)?);
    Ok(above.iter().zip(below).map(|(a, b)| (a - b) / (2.0 * H)).collect())
}

fn close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-7 * (1.0 + e.abs()), "{what}: {got:?} is not {expected:?}");
    }
}

#[test]
fn every_row_agrees_with_differences_in_both_modes() -> Result<()> {
    for fun in all() {
        let name = fun.name();
        let x = inputs(fun)?;
        assert!(apply(fun, &x)?.to_vec()?.iter().all(|v| v.is_finite()), "{name}");
        let (y, pullback) = vjp(|x| Ok(vec![apply(fun, x)?]), &x)?;
        let back = pullback.call(&[Some(y[0].ones_like()?)], false)?;
        for wrt in 0..x.len() {
            let expected = difference(fun, &x, wrt)?;
            close(&back[wrt].to_vec()?, &expected, &format!("vjp of {name} for input {wrt}"));
            let mut tangents = vec![None; x.len()];
            tangents[wrt] = Some(x[wrt].ones_like()?);
            let (_, moved) = jvp(|x| Ok(vec![apply(fun, x)?]), &x, &tangents)?;
            close(&moved[0].to_vec()?, &expected, &format!("jvp of {name} for input {wrt}"));
        }
    }
    Ok(())
}

#[test]
fn every_row_is_documented_and_named_once() {
    let docs = Unary::ALL.iter().map(|f| (f.name(), f.doc()));
    let docs = docs.chain(Parametric::ALL.iter().map(|f| (f.name(), f.doc())));
    let docs: Vec<_> = docs.chain(Binary::ALL.iter().map(|f| (f.name(), f.doc()))).collect();
    let names: HashSet<&str> = docs.iter().map(|d| d.0).collect();
    assert_eq!(names.len(), docs.len(), "a name appears twice");
    for (name, doc) in docs {
        assert!(
            !doc.is_empty() && doc.trim_end().ends_with('.'),
            "{name}: documentation is a sentence, got {doc:?}"
        );
    }
}

#[test]
fn every_row_declares_as_many_partials_as_it_reads() {
    struct Nothing;
    impl Visit for Nothing {
        type Out = ();
        fn visit<const N: usize, P: wengert::internals::math::Pointwise<N>>(self, _rule: P) {}
    }
    for fun in all() {
        let (rows, arity) = match fun {
            Fun::Unary(f) => (f.reads(), 1),
            Fun::Parametric(f) => (f.reads(), 1),
            Fun::Binary(f) => (f.reads(), 2),
        };
        assert!(rows.is_empty() || rows.len() == arity, "{}: all partials or none", fun.name());
        for wrt in 0..arity {
            let has = fun.partial(wrt, attributes(fun), Nothing).is_some();
            assert_eq!(has, wrt < rows.len(), "{}: input {wrt}", fun.name());
        }
    }
}

#[test]
fn the_list_of_operations_has_unique_names_and_every_class() {
    let entries = Op::entries();
    let names: HashSet<&str> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), entries.len());
    for class in [
        Class::Elementwise,
        Class::Linear,
        Class::Bilinear,
        Class::General,
        Class::Composite,
        Class::Discrete,
    ] {
        assert!(entries.iter().any(|entry| entry.class == class), "{class:?}");
    }
}

#[test]
fn errors_inside_rules_name_the_operation_and_leave_no_trace() -> Result<()> {
    let x = Tensor::from_slice(&X, &[4])?;
    let y = Tensor::from_slice(&Y[..3], &[3])?;
    let failed = |r: Result<Tensor>| r.err().ok_or_else(|| Error::value("an error was expected"));
    let plain = failed(x.mul(&y))?.to_string();
    assert_eq!(
        plain,
        "mul: shapes (4,) and (3,) do not broadcast: aligned from the last axis, each pair of lengths must \
         be equal or 1"
    );
    // The same error through a transform, and everything works afterwards.
    let traced = vjp(|x| Ok(vec![x[0].mul(&y)?]), std::slice::from_ref(&x)).err().map(|e| e.to_string());
    assert_eq!(traced.as_deref(), Some(plain.as_str()));
    assert!(wengert::internals::interp::is_plain());
    close(&x.mul(&x)?.to_vec()?, &X.map(|v| v * v), "mul");
    Ok(())
}
