//! The debugging modes of the core without Python: lines, diaries, anomalies.

use std::sync::{Arc, Mutex};
use wengert as transform;
use wengert::Tensor;
use wengert::internals::autodiff::Options;
use wengert::internals::interp;
use wengert::internals::tape::location::{self, Host, Location};
use wengert::internals::tape::{Edge, Node};
use wengert::internals::watch::anomaly;
use wengert::internals::watch::debug::{self, Listener, Log, Modes};
use wengert::{Kind, Result};

fn leaf(values: &[f64]) -> Result<Tensor> {
    Ok(Node::leaf_tensor(interp::ambient().tag, Tensor::from_slice(values, &[values.len()])?))
}

/// A host whose program always is at line 7 of `program`.
fn host() {
    location::install(Host {
        locate: || Some(Location::new(location::site("program", "main"), 7)),
        hold: || Box::new(()),
        annotate: |_, _| {},
    });
}

/// Modes until the end of a scope.
struct On(Modes);

impl On {
    fn new(modes: Modes) -> On {
        On(debug::set_modes(modes))
    }
}

impl Drop for On {
    fn drop(&mut self) {
        debug::set_modes(self.0);
    }
}

fn message<T>(result: Result<T>) -> (Option<Kind>, String) {
    result.map_or_else(|e| (Some(e.kind()), e.to_string()), |_| (None, String::new()))
}

#[test]
fn places_name_file_line_and_function() {
    let place = Location::new(location::site("a.py", "f"), 12);
    assert_eq!(place.parts(), ("a.py".to_string(), 12, "f".to_string()));
    assert_eq!(place.to_string(), "a.py:12");
    assert_eq!(location::site("a.py", "f"), location::site("a.py", "f"));
    assert_ne!(location::site("a.py", "f"), location::site("a.py", "g"));
    assert_eq!(size_of::<Option<Location>>(), 8);
}

#[test]
fn lines_are_kept_on_request() -> Result<()> {
    host();
    let x = leaf(&[1.0])?;
    let line = |y: &Tensor| y.edge().and_then(|e| e.node.location).map(|p| p.to_string());
    assert_eq!(line(&x.exp()?), None);
    let on = On::new(Modes::LOCATIONS);
    assert_eq!(line(&x.exp()?), Some("program:7".to_string()));
    drop(on);
    assert_eq!(line(&x.exp()?), None);
    Ok(())
}

#[test]
fn the_first_gradient_that_is_not_finite_raises() -> Result<()> {
    let y = leaf(&[1.0, 0.0])?.sqrt()?.sum(None, false)?;
    let on = On::new(Modes::ANOMALY);
    let (kind, text) = message(y.backward(None, Options::default(), None));
    assert_eq!(kind, Some(Kind::Anomaly));
    assert!(
        text.starts_with("anomaly in the backward of sqrt: the gradient of input 0 is inf at index (1,)"),
        "{text}"
    );
    drop(on);
    leaf(&[0.0])?.sqrt()?.backward(None, Options::default(), None)
}

#[test]
fn forward_values_are_noted_or_raise() -> Result<()> {
    let x = Tensor::from_slice(&[1.0, 0.0], &[2])?;
    let on = On::new(Modes::ANOMALY);
    anomaly::clear();
    // The second operation only hands the infinity on.
    x.log()?.neg()?;
    let made: Vec<(String, Vec<usize>, f64)> =
        anomaly::made().into_iter().map(|m| (m.op, m.element.index, m.element.value)).collect();
    assert_eq!(made, [("log".to_string(), vec![1], f64::NEG_INFINITY)]);
    debug::set_modes(Modes::VALUES);
    assert_eq!(message(x.log()).0, Some(Kind::Anomaly));
    drop(on);
    x.log().map(|_| ())
}

#[test]
fn tangents_raise_too() -> Result<()> {
    let (x, t) = (Tensor::from_slice(&[0.0], &[1])?, Tensor::from_slice(&[1.0], &[1])?);
    let _on = On::new(Modes::ANOMALY);
    let pushed = transform::jvp(|x| Ok(vec![x[0].sqrt()?]), &[x], &[Some(t)]);
    assert!(message(pushed).1.starts_with("anomaly in the jvp of sqrt"));
    Ok(())
}

/// Remembers the names of the rules.
struct Names(Arc<Mutex<Vec<String>>>);

impl Listener for Names {
    fn began(&self, roots: &[(Edge, Tensor)], accumulate: bool) -> Result<()> {
        self.push(format!("{} roots, {accumulate}", roots.len()));
        Ok(())
    }
    fn pulled(&self, node: &Arc<Node>, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()> {
        self.push(format!("{} {} {}", node.name(), g.len(), grads.len()));
        Ok(())
    }
}

impl Names {
    fn push(&self, text: String) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push(text);
    }
}

#[test]
fn a_diary_tells_what_was_recorded_what_left_and_the_walk() -> Result<()> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::new(Log::new(3, Box::new(Names(heard.clone()))));
    let x = leaf(&[1.0, 2.0])?;
    let _on = On::new(Modes::LOG);
    let before = debug::set_log(Some(log.clone()));
    let y = x.exp()?;
    interp::no_grad(|| x.tanh())?;
    debug::left("detach()", &[&y]);
    y.mul(&x)?.sum(None, false)?.backward(None, Options::default(), None)?;
    debug::set_log(before);
    let (lines, dropped) = log.read();
    let what: Vec<&str> = lines.iter().map(|l| l.what.as_str()).collect();
    // The limit is three lines.
    assert_eq!((what, dropped), (vec!["detach()", "mul", "sum"], 2));
    assert_eq!(lines[0].seq, None);
    assert_eq!(lines[1].inputs.len(), 2);
    let heard = heard.lock().unwrap_or_else(|e| e.into_inner()).clone();
    assert_eq!(heard, ["1 roots, true", "sum 1 1", "mul 1 2", "exp 1 1"]);
    Ok(())
}
