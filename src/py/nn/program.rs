//! `wengert.gpu.kernel`: a user's WGSL shader as a callable object. The Python side,
//! `python/wengert/_gpu_kernel.py`, handles shapes of the outputs, workgroups and derivatives.

use crate::gpu::program::{Binding, Program};
use crate::interp::{Interp, batch};
use crate::op::Batched;
use crate::py::prelude::*;

/// A shader that was parsed and validated.
#[pyclass(name = "_GpuProgram", module = "wengert._core", frozen)]
pub struct PyProgram(Program);

/// Name and dtype of each binding.
fn described(bindings: &[Binding]) -> Vec<(String, String)> {
    bindings.iter().map(|b| (b.name.clone(), b.dtype.to_string())).collect()
}

#[pymethods]
impl PyProgram {
    /// Parses and validates a shader; `constants` are values of its `override` declarations.
    #[new]
    fn new(
        name: &str, source: &str, entry: Option<&str>, constants: Vec<(String, f64)>,
    ) -> PyResult<PyProgram> {
        Ok(PyProgram(Program::new(name, source, entry, &constants)?))
    }

    /// Runs the shader: an output of each of `shapes`. Inside `vmap` it runs once for each example.
    fn run(
        &self, py: Python<'_>, inputs: Vec<Tensor>, shapes: Vec<Vec<usize>>, groups: (u32, u32, u32),
    ) -> Result<Vec<Tensor>> {
        let shapes = shapes.iter().map(|s| Shape::new(s)).collect::<Result<Vec<_>>>()?;
        py.detached(|| each(&self.0, &inputs, &shapes, groups.into()))
    }
}

readings! { PyProgram, |object| object.0;
    /// Name and dtype of each read-only buffer, in the order of their bindings.
    #[getter]
    inputs -> Vec<(String, String)> = |program| described(&program.inputs);
    /// Name and dtype of each writable buffer, in the order of their bindings.
    #[getter]
    outputs -> Vec<(String, String)> = |program| described(&program.outputs);
    /// Invocations of a workgroup along x, y and z.
    #[getter]
    workgroup_size -> (u32, u32, u32) = |program| program.workgroup.into();
}

/// Returns the innermost batch that any input is in, and its size.
fn innermost(inputs: &[Tensor]) -> Option<(Arc<Interp>, usize)> {
    let tag = inputs.iter().filter_map(Tensor::traced).map(|t| t.tag).max()?;
    interp::batches().into_iter().find(|(at, ..)| at.tag == tag).map(|(at, size, _)| (at, size))
}

/// Runs the shader on values inside any number of batches, example by example.
fn each(program: &Program, inputs: &[Tensor], shapes: &[Shape], groups: [u32; 3]) -> Result<Vec<Tensor>> {
    let Some((at, size)) = innermost(inputs) else {
        let arrays = inputs.iter().map(|x| x.array(&program.name)).collect::<Result<Vec<&Array>>>()?;
        return Ok(program.run(&arrays, shapes, groups)?.into_iter().map(Tensor::Array).collect());
    };
    let operands: Vec<Batched> = inputs.iter().map(|x| batch::batched(&at, x)).collect();
    let _guard = interp::enter(at.below().clone());
    let fronts = operands.iter().map(Batched::front).collect::<Result<Vec<_>>>()?;
    if size == 0 {
        let nothing = |(shape, b): (&Shape, &Binding)| {
            let device = inputs.first().map_or(Device::Gpu(0), Tensor::device);
            Ok(batch::wrap(&at, Tensor::zeros(shape.inserted(0, 0)?, b.dtype, device)?, Some(0)))
        };
        return shapes.iter().zip(&program.outputs).map(nothing).collect();
    }
    let mut columns: Vec<Vec<Tensor>> = shapes.iter().map(|_| Vec::with_capacity(size)).collect();
    for i in 0..size {
        let one = |(operand, x): (&Batched, &Tensor)| match operand.axis {
            Some(_) => x.narrow(0, i, 1)?.reshape(&x.shape().removed(0)),
            None => Ok(x.clone()),
        };
        let example = operands.iter().zip(&fronts).map(one).collect::<Result<Vec<_>>>()?;
        for (column, y) in columns.iter_mut().zip(each(program, &example, shapes, groups)?) {
            column.push(y);
        }
    }
    columns.iter().map(|ys| Ok(batch::wrap(&at, crate::ops::views::join::stack(ys, 0)?, Some(0)))).collect()
}

exports! { classes: PyProgram; }
