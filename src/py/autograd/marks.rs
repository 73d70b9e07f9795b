//! What tells tensors apart for a program: how they lie in memory, and where, or how they lie to each other.

use crate::array::Layout;
use crate::interp::{ROOT_TAG, Tag};
use crate::py::autograd::staging::plain;
use crate::py::prelude::*;
use crate::tape::hooks::Hooks;
use crate::tape::node::Edge;
use crate::tensor::{Payload, donated};
use pyo3::types::PyBytes;
use smallvec::SmallVec;

/// What tells a tensor apart.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The layout of its array and the array's device; `None` for a tensor inside a transform.
    array: Option<(Layout, Device)>,
    /// Whether the memory was made in inference mode.
    inference: bool,
    /// Whether it requires gradients.
    recorded: bool,
    /// Its memory and first element; or, of arguments, two zeros, 1 + the number of the earlier argument that
    /// is the same object, or the largest number - that of the earlier one in the same memory, and how many
    /// bytes are between the two.
    place: [usize; 2],
    /// The number of its node.
    node: u64,
    /// The stamp of its hooks.
    hooks: (u64, usize),
}

/// The marks of several tensors.
pub type Marks = SmallVec<[Mark; 4]>;

impl Mark {
    /// What holds wherever the tensor lies, in this array.
    #[inline]
    fn new(t: &Tensor, array: Option<&Array>) -> Mark {
        Mark {
            array: array.map(|x| (x.layout(), x.device())),
            inference: array.is_some_and(|x| x.buffer().is_inference()),
            recorded: t.node().is_some(),
            ..Mark::default()
        }
    }

    /// Whether an array is such wherever it lies.
    #[inline]
    fn holds(&self, x: &Array) -> bool {
        self.array.as_ref().is_some_and(|(layout, device)| {
            x.has_layout(layout) && x.device() == *device && x.buffer().is_inference() == self.inference
        })
    }

    /// Whether a tensor has this mark of one in its place.
    pub fn is_in_place(&self, object: &Bound<'_, PyTensor>) -> PyResult<bool> {
        let t = object.get().value()?;
        let lies = t.concrete().map_or([0; 2], |x| [x.buffer().id(), x.offset()]) == self.place;
        let (node, hooks) = match t.node() {
            Some(node) => (node.seq, node.hooks().map_or((0, 0), Hooks::stamp)),
            None => (0, (0, 0)),
        };
        let is_such = t.concrete().map_or(self.array.is_none(), |x| self.holds(x));
        let is_recorded = t.node().is_some() == self.recorded;
        Ok(lies && node == self.node && hooks == self.hooks && is_such && is_recorded)
    }

    /// The mark of a tensor that is found again in its place, with its history and its hooks.
    pub fn in_place(object: &Bound<'_, PyTensor>) -> PyResult<Mark> {
        let t = object.get().value()?;
        let mut mark = Mark::new(&t, t.concrete());
        if let Some(x) = t.concrete() {
            mark.place = [x.buffer().id(), x.offset()];
        }
        if let Some(edge) = t.edge() {
            mark.node = edge.node.seq;
            mark.hooks = edge.node.hooks().map_or((0, 0), Hooks::stamp);
        }
        Ok(mark)
    }

    /// The numbers that the mark of an argument consists of.
    fn words(&self) -> impl Iterator<Item = u64> {
        let flags = u64::from(self.inference) | u64::from(self.recorded) << 1;
        let layout = self.array.map(|(layout, device)| {
            let device = match device {
                Device::Cpu => 0,
                Device::Gpu(number) => 1 + u64::from(number),
            };
            let lengths = layout.dims.iter().zip(&layout.strides);
            let lengths =
                lengths.map(|(&length, &stride)| u64::from(length) << 32 | u64::from(stride as u32));
            let kind = u64::from(layout.rank) << 16 | u64::from(layout.dtype as u8) << 8 | device;
            lengths.chain([kind]).collect::<SmallVec<[u64; 10]>>()
        });
        let place = self.place.map(|word| word as u64);
        [flags].into_iter().chain(layout.unwrap_or_default()).chain(place)
    }
}

/// The arguments that were seen so far: object, memory and first byte of each.
type Seen = SmallVec<[(usize, usize, usize); 8]>;

/// The place of one more argument, this object, among those before.
#[inline]
fn place_among(seen: &mut Seen, object: usize, x: &Array) -> [usize; 2] {
    let memory = x.buffer().id();
    let bytes = x.offset() * x.dtype().size();
    let mut place = [0; 2];
    if let Some(at) = seen.iter().position(|seen| seen.0 == object) {
        place = [1 + at, 0];
    } else if let Some(at) = seen.iter().position(|seen| seen.1 == memory) {
        place = [usize::MAX - at, bytes.wrapping_sub(seen[at].2)];
    }
    seen.push((object, memory, bytes));
    place
}

/// The marks of arguments: which of them are the same object, or share memory and how.
pub fn marks_of<'a, 'py: 'a>(tensors: impl IntoIterator<Item = &'a Bound<'py, PyTensor>>) -> PyResult<Marks> {
    let mut seen = Seen::new();
    let mark = |object: &Bound<'py, PyTensor>| {
        let t = object.get().value()?;
        let object = object.as_ptr() as usize;
        let value = t.detach();
        let place = value.concrete().map_or([0; 2], |x| place_among(&mut seen, object, x));
        Ok(Mark { place, ..Mark::new(&t, value.concrete()) })
    };
    tensors.into_iter().map(mark).collect()
}

/// Whether arguments have these marks; each is an object, its array and whether it requires gradients.
pub fn are_such<'a>(
    marks: &Marks, arguments: impl ExactSizeIterator<Item = (usize, &'a Array, bool)>,
) -> bool {
    let mut seen = Seen::new();
    marks.len() == arguments.len()
        && marks.iter().zip(arguments).all(|(mark, (object, x, recorded))| {
            mark.recorded == recorded && mark.holds(x) && mark.place == place_among(&mut seen, object, x)
        })
}

/// Whether no graph of before has a part in the derivatives with respect to a tensor: it is a leaf that no
/// hook belongs to, or has none.
pub fn is_independent(t: &Tensor) -> bool {
    t.edge().is_none_or(|Edge { node, .. }| node.is_leaf() && node.hooks().is_none_or(|h| h.stamp().1 == 0))
}

/// Whether a tensor is an array, or recorded by this tape and no other.
pub fn is_of(t: &Tensor, tape: Tag) -> bool {
    t.traced()
        .is_none_or(|t| t.tag == tape && matches!(t.payload, Payload::Taped { primal: Tensor::Array(_), .. }))
}

/// Arrays, and which of them are recorded.
type Arrays = (SmallVec<[Array; 8]>, SmallVec<[bool; 8]>);

/// The arrays of tensors; `None` if one of them is a value of a transform, other than of its tape.
pub fn arrays_of(tensors: &[Bound<'_, PyTensor>]) -> PyResult<Option<Arrays>> {
    let mut arrays = Arrays::default();
    let Some(tape) = interp::program_tape() else { return Ok(None) };
    for object in tensors {
        let x = object.get().value()?;
        match &*x {
            Tensor::Array(array) => arrays.0.push(array.clone()),
            recorded => match plain(&recorded.detach()) {
                Some(array) if tape == ROOT_TAG || is_of(recorded, tape) => arrays.0.push(array.clone()),
                _ => return Ok(None),
            },
        }
        arrays.1.push(x.node().is_some());
    }
    Ok(Some(arrays))
}

/// What tells arguments apart, as bytes.
#[pyfunction]
fn _stage_key<'py>(py: Python<'py>, tensors: Vec<Bound<'py, PyTensor>>) -> PyResult<Bound<'py, PyBytes>> {
    for object in &tensors {
        if object.read().t.is_donated() {
            return Err(donated("jit", &object.read().t.shape()).into());
        }
    }
    let around = u64::from(crate::tape::saving::is_packing()) | u64::from(!interp::is_plain()) << 1;
    let marks = marks_of(&tensors)?;
    // Programs keep memory of a GPU, which a reset ends.
    let words = [around, crate::device::resets()].into_iter().chain(marks.iter().flat_map(Mark::words));
    Ok(PyBytes::new(py, &words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()))
}

exports! { functions: _stage_key }
