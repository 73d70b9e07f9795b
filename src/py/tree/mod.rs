//! Pytrees: nested containers, taken apart into their leaves and put together again.
//!
//! A structure is a list of nodes, children before their parent, so that building it needs a stack and no
//! recursion. Classes that are no containers of Python's own are known to `wengert.tree`: those registered
//! there or with `optree`, and dataclasses.

mod level;

use crate::py::prelude::*;
use level::{Any, Depth, Kind, Node, level, same};
use pyo3::gc::{PyTraverseError, PyVisit};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Leaves and nodes of a tree that is taken apart.
struct Parts<'a, 'py> {
    is_leaf: Option<&'a Any<'py>>,
    leaves: Vec<Any<'py>>,
    nodes: Vec<Node>,
}

impl<'py> Parts<'_, 'py> {
    fn visit(&mut self, tree: &Any<'py>) -> PyResult<()> {
        let (first, before) = (self.nodes.len(), self.leaves.len());
        let stops = self.is_leaf.map_or(Ok(false), |is_leaf| is_leaf.call1((tree,))?.is_truthy())?;
        let found = if stops || tree.is_none() { None } else { level(tree)? };
        let Some((kind, fixed, order, below)) = found else {
            let kind = if tree.is_none() && !stops { Kind::None } else { Kind::Leaf };
            let leaves = usize::from(matches!(kind, Kind::Leaf));
            if leaves == 1 {
                self.leaves.push(tree.clone());
            }
            self.nodes.push(Node { kind, fixed: None, order: None, children: 0, leaves, nodes: 1 });
            return Ok(());
        };
        let _depth = Depth::new(tree.py())?;
        let mut children = 0;
        for child in below.try_iter()? {
            self.visit(&child?)?;
            children += 1;
        }
        self.nodes.push(Node {
            kind,
            fixed: fixed.map(Bound::unbind),
            order: order.map(Bound::unbind),
            children,
            leaves: self.leaves.len() - before,
            nodes: self.nodes.len() - first + 1,
        });
        Ok(())
    }
}

/// The structure of a tree, without its leaves.
#[pyclass(name = "TreeDef", module = "wengert.tree", frozen)]
pub struct TreeDef {
    nodes: Vec<Node>,
}

impl TreeDef {
    /// Takes a tree apart into its leaves, from left to right, and its structure.
    pub fn of<'py>(tree: &Any<'py>, is_leaf: Option<&Any<'py>>) -> PyResult<(Vec<Any<'py>>, TreeDef)> {
        let mut parts = Parts { is_leaf, leaves: Vec::new(), nodes: Vec::new() };
        parts.visit(tree)?;
        Ok((parts.leaves, TreeDef { nodes: parts.nodes }))
    }

    /// The number of leaves.
    pub fn leaves(&self) -> usize {
        self.nodes.last().map_or(0, |root| root.leaves)
    }

    /// The tree of this structure with these leaves, which are as many as it has.
    pub fn build<'py>(
        &self, py: Python<'py>, mut leaves: impl Iterator<Item = PyResult<Any<'py>>>,
    ) -> PyResult<Any<'py>> {
        let mut made: Vec<Any<'py>> = Vec::new();
        for node in &self.nodes {
            let children = made.split_off(made.len() - node.children);
            made.push(match &node.kind {
                Kind::Leaf => leaves.next().ok_or_else(|| value_error("a tree has lost a leaf"))??,
                _ => node.make(py, children)?,
            });
        }
        made.pop().ok_or_else(|| value_error("a tree without nodes"))
    }

    /// The places of the children of node `at`, from left to right.
    fn places(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::with_capacity(self.nodes[at].children);
        let mut end = at;
        for _ in 0..self.nodes[at].children {
            found.push(end - 1);
            end -= self.nodes[end - 1].nodes;
        }
        found.reverse();
        found
    }

    /// Adds an entry of `prefix` for each leaf below node `at`; false if they do not fit.
    fn spread<'py>(&self, prefix: &Any<'py>, at: usize, out: &mut Vec<Any<'py>>) -> PyResult<bool> {
        let (py, node) = (prefix.py(), &self.nodes[at]);
        if prefix.is_none() || prefix.is_instance_of::<PyInt>() || matches!(node.kind, Kind::Leaf) {
            out.extend(std::iter::repeat_n(prefix.clone(), node.leaves));
            return Ok(true);
        }
        let Some((kind, fixed, _, mut below)) = level(prefix)? else { return Ok(false) };
        if kind.is_dict() && node.kind.is_dict() {
            let (keys, dict) = (node.keys(py)?, prefix.cast::<PyDict>()?);
            if keys.len() != dict.len() {
                return Ok(false);
            }
            let mut values = Vec::with_capacity(keys.len());
            for key in &keys {
                let Some(value) = dict.get_item(key)? else { return Ok(false) };
                values.push(value);
            }
            below = PyTuple::new(py, values)?.into_any();
        } else if !kind.is(&node.kind) || !same(py, fixed.as_ref(), node.fixed.as_ref())? {
            return Ok(false);
        }
        let (given, children) = (below.try_iter()?.collect::<PyResult<Vec<_>>>()?, self.places(at));
        if given.len() != children.len() {
            return Ok(false);
        }
        let _depth = Depth::new(py)?;
        for (given, child) in given.iter().zip(children) {
            if !self.spread(given, child, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds where the leaves below node `at` are: `["w"][0].scale`.
    fn name(&self, py: Python<'_>, at: usize, here: &str, out: &mut Vec<String>) -> PyResult<()> {
        let node = &self.nodes[at];
        if let Kind::Leaf = node.kind {
            out.push(here.to_string());
        }
        let steps: Vec<String> = match &node.kind {
            Kind::Dict | Kind::Ordered | Kind::Default => {
                node.keys(py)?.iter().map(|key| Ok(format!("[{}]", key.repr()?))).collect::<PyResult<_>>()?
            }
            Kind::Named(class) => {
                let fields: Vec<String> = class.bind(py).getattr("_fields")?.extract()?;
                fields.iter().map(|field| format!(".{field}")).collect()
            }
            Kind::Other(class, _) => {
                let names = py.import("wengert.tree")?.getattr("_names")?.call1((class,))?;
                let names: Option<Vec<String>> = names.extract()?;
                names.unwrap_or_else(|| (0..node.children).map(|i| format!("[{i}]")).collect())
            }
            _ => (0..node.children).map(|i| format!("[{i}]")).collect(),
        };
        let _depth = Depth::new(py)?;
        for (step, child) in steps.iter().zip(self.places(at)) {
            self.name(py, child, &format!("{here}{step}"), out)?;
        }
        Ok(())
    }
}

#[pymethods]
impl TreeDef {
    /// The number of leaves of the tree.
    #[getter]
    fn num_leaves(&self) -> usize {
        self.leaves()
    }

    /// Returns the structures of the children of the root, from left to right.
    fn children(&self, py: Python<'_>) -> Vec<TreeDef> {
        let below = |at: usize| {
            let nodes = &self.nodes[at + 1 - self.nodes[at].nodes..=at];
            TreeDef { nodes: nodes.iter().map(|node| node.shared(py)).collect() }
        };
        self.places(self.nodes.len() - 1).into_iter().map(below).collect()
    }

    /// Whether the tree is one leaf.
    #[getter]
    fn _is_leaf(&self) -> bool {
        matches!(self.nodes.last(), Some(Node { kind: Kind::Leaf, .. }))
    }

    /// Where the leaves are, from left to right: `["w"][0].scale`; "" for a leaf alone.
    fn _paths(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut out = Vec::with_capacity(self.leaves());
        self.name(py, self.nodes.len() - 1, "", &mut out)?;
        Ok(out)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<TreeDef>() else { return Ok(false) };
        let other = other.get();
        if self.nodes.len() != other.nodes.len() {
            return Ok(false);
        }
        for (a, b) in self.nodes.iter().zip(&other.nodes) {
            let fixed = a.fixed.as_ref().map(|fixed| fixed.bind(py));
            if !a.kind.is(&b.kind) || a.children != b.children || !same(py, fixed, b.fixed.as_ref())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __hash__(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.nodes.iter().for_each(|node| (node.children, node.leaves).hash(&mut state));
        state.finish()
    }

    /// The tree with `*` for leaves.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let star = py.import("wengert.tree")?.getattr("_STAR")?;
        let tree = self.build(py, std::iter::repeat_with(|| Ok(star.clone())))?;
        Ok(format!("TreeDef({})", tree.repr()?))
    }

    /// A structure is written as a tree of it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Any<'py>, (Any<'py>,))> {
        let tree = self.build(py, std::iter::repeat_with(|| Ok(0_i32.into_pyobject(py)?.into_any())))?;
        Ok((py.import("wengert.tree")?.getattr("tree_structure")?, (tree,)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for node in &self.nodes {
            visit.call(&node.fixed)?;
            if let Kind::Other(_, unflatten) = &node.kind {
                visit.call(unflatten)?;
            }
        }
        Ok(())
    }
}

/// Returns the leaves of a tree from left to right (dicts by key, rebuilt in the order that they have), and
/// its structure. A part for which `is_leaf` returns true is a leaf.
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
fn tree_flatten<'py>(tree: &Any<'py>, is_leaf: Option<&Any<'py>>) -> PyResult<(Bound<'py, PyList>, TreeDef)> {
    let (leaves, structure) = TreeDef::of(tree, is_leaf)?;
    Ok((PyList::new(tree.py(), leaves)?, structure))
}

/// Returns the leaves of a tree from left to right; see `tree_flatten`.
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
fn tree_leaves<'py>(tree: &Any<'py>, is_leaf: Option<&Any<'py>>) -> PyResult<Vec<Any<'py>>> {
    Ok(TreeDef::of(tree, is_leaf)?.0)
}

/// Returns the structure of a tree; see `tree_flatten`.
#[pyfunction]
#[pyo3(signature = (tree, is_leaf=None))]
fn tree_structure<'py>(tree: &Any<'py>, is_leaf: Option<&Any<'py>>) -> PyResult<TreeDef> {
    Ok(TreeDef::of(tree, is_leaf)?.1)
}

/// Builds the tree of this structure with these leaves. Raises ValueError for another number of them.
#[pyfunction]
fn tree_unflatten<'py>(structure: &Bound<'py, TreeDef>, leaves: &Any<'py>) -> PyResult<Any<'py>> {
    let py = leaves.py();
    let leaves = leaves.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let structure = structure.get();
    if leaves.len() != structure.leaves() {
        let (given, wanted) = (leaves.len(), structure.leaves());
        return Err(value_error(format!("tree_unflatten: {given} leaves given for a structure of {wanted}")));
    }
    structure.build(py, leaves.into_iter().map(Ok))
}

/// Applies `function` to corresponding leaves of trees of one structure, as a tree. Raises ValueError where
/// structures differ.
#[pyfunction]
#[pyo3(signature = (function, tree, *rest, is_leaf=None))]
fn tree_map<'py>(
    function: &Any<'py>, tree: &Any<'py>, rest: &Bound<'py, PyTuple>, is_leaf: Option<&Any<'py>>,
) -> PyResult<Any<'py>> {
    let py = tree.py();
    let (first, structure) = TreeDef::of(tree, is_leaf)?;
    let mut columns = vec![first];
    for other in rest {
        let (leaves, shape) = TreeDef::of(&other, is_leaf)?;
        let shape = Bound::new(py, shape)?;
        if !structure.__eq__(py, shape.as_any())? {
            let (one, other) = (structure.__repr__(py)?, shape.repr()?);
            return Err(value_error(format!("tree_map: structures differ: {one} and {other}")));
        }
        columns.push(leaves);
    }
    let row = |i: usize| function.call1(PyTuple::new(py, columns.iter().map(|leaves| &leaves[i]))?);
    structure.build(py, (0..structure.leaves()).map(row))
}

/// One entry per leaf of `structure`, from a tree that may stop early: an entry covers all leaves below it.
/// Containers of both must be of one class and have the same keys; dicts of any class correspond by their
/// keys. Raises ValueError, which begins with `name`, for a tree that does not fit.
#[pyfunction]
fn _flatten_prefix<'py>(
    prefix: &Any<'py>, structure: &Bound<'py, TreeDef>, name: &str,
) -> PyResult<Vec<Any<'py>>> {
    let (mut out, structure) = (Vec::new(), structure.get());
    if structure.spread(prefix, structure.nodes.len() - 1, &mut out)? {
        return Ok(out);
    }
    Err(value_error(format!(
        "{name}: {} does not fit the structure {}; give one entry for all of it, or containers of the same \
         classes with the same keys",
        prefix.repr()?,
        structure.__repr__(prefix.py())?
    )))
}

exports! {
    classes: TreeDef;
    functions: tree_flatten, tree_leaves, tree_structure, tree_unflatten, tree_map, _flatten_prefix
}
