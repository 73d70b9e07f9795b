//! What tells tensors apart for a program: how they lie in memory, and where, or how they lie to each other.

use crate::array::Layout;
use crate::py::prelude::*;
use crate::tape::hooks::Hooks;
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
    /// What holds wherever the tensor lies.
    #[inline]
    fn new(t: &Tensor) -> Mark {
        let array = t.concrete();
        Mark {
            array: array.map(|x| (x.layout(), x.device())),
            inference: array.is_some_and(|x| x.buffer().is_inference()),
            recorded: t.edge().is_some(),
            ..Mark::default()
        }
    }

    /// The mark of a tensor that is found again in its place, with its history and its hooks.
    pub fn in_place(object: &Bound<'_, PyTensor>) -> PyResult<Mark> {
        let t = object.get().value()?;
        let mut mark = Mark::new(&t);
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

/// The marks of arguments: which of them are the same object, or share memory and how.
pub fn marks_of<'a, 'py: 'a>(tensors: impl IntoIterator<Item = &'a Bound<'py, PyTensor>>) -> PyResult<Marks> {
    let mut marks = Marks::new();
    // Object, memory and first byte.
    let mut known: SmallVec<[(usize, usize, usize); 8]> = SmallVec::new();
    for object in tensors {
        let t = object.get().value()?;
        let mut mark = Mark::new(&t);
        let Some(x) = t.concrete() else {
            marks.push(mark);
            continue;
        };
        let (object, memory) = (object.as_ptr() as usize, x.buffer().id());
        let bytes = x.offset() * x.dtype().size();
        if let Some(at) = known.iter().position(|known| known.0 == object) {
            mark.place = [1 + at, 0];
        } else if let Some(at) = known.iter().position(|known| known.1 == memory) {
            mark.place = [usize::MAX - at, bytes.wrapping_sub(known[at].2)];
        }
        known.push((object, memory, bytes));
        marks.push(mark);
    }
    Ok(marks)
}

/// What tells arguments apart, as bytes.
#[pyfunction]
fn _stage_key<'py>(py: Python<'py>, tensors: Vec<Bound<'py, PyTensor>>) -> PyResult<Bound<'py, PyBytes>> {
    let packing = u64::from(crate::tape::saving::is_packing());
    let marks = marks_of(&tensors)?;
    let words = [packing].into_iter().chain(marks.iter().flat_map(Mark::words));
    Ok(PyBytes::new(py, &words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()))
}

exports! { functions: _stage_key }
