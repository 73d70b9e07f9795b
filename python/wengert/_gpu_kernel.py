"""`wengert.gpu.kernel`: a WGSL shader as a function of tensors, with a derivative of its own."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.custom import custom_vjp

__all__ = ["Kernel", "kernel"]

Shape = Sequence[int]
#: A shape, the name of the input whose shape it is, or a function of the inputs that returns a shape.
Spec = str | Shape | Callable[..., Shape]
#: Workgroups along x (or x, y, z), or a function of the inputs that returns them.
Groups = int | Sequence[int] | Callable[..., Any]


class Kernel:
    """A WGSL shader that can be called with tensors; `wengert.gpu.kernel` makes them.

    Attributes:
        name: what errors and tape entries call it.
        inputs: name and dtype of each read-only buffer, in the order of their bindings.
        outputs: name and dtype of each writable buffer, in the order of theirs.
        workgroup_size: invocations of a workgroup along x, y and z.
    """

    def __init__(
        self,
        source: str,
        outputs: Spec | Mapping[str, Spec] | None = None,
        *,
        groups: Groups | None = None,
        constants: Mapping[str, float] | None = None,
        entry: str | None = None,
        name: str | None = None,
    ) -> None:
        """See `wengert.gpu.kernel`."""
        if not hasattr(_core, "_GpuProgram"):
            raise _core.DeviceError("gpu.kernel: this build of wengert has no GPU support")
        self.name = name or entry or "kernel"
        self._program = _parsed(self.name, source, entry, constants or {})
        self.inputs: list[tuple[str, str]] = self._program.inputs
        self.outputs: list[tuple[str, str]] = self._program.outputs
        self.workgroup_size: tuple[int, int, int] = self._program.workgroup_size
        self._specs = self._output_specs(outputs)
        self._groups = groups
        self._custom = custom_vjp(self._named())

    def _named(self) -> Callable[..., Any]:
        """What runs the shader, under the kernel's name."""

        def run(*args: Tensor) -> Any:
            return self._run(args)

        run.__name__ = self.name
        return run

    def _output_specs(self, given: Spec | Mapping[str, Spec] | None) -> list[Spec]:
        """One specification per output, in the order of their bindings."""
        names = [name for name, _ in self.outputs]
        if given is None:
            if not self.inputs:
                raise TypeError(
                    f"gpu.kernel {self.name}: it has no input to take a shape from; pass outputs="
                )
            return [self.inputs[0][0]] * len(names)
        if not isinstance(given, Mapping):
            if len(names) > 1 and not isinstance(given, str):
                raise TypeError(
                    f"gpu.kernel {self.name}: it has {len(names)} outputs ({', '.join(names)}); pass "
                    "outputs= as a dict with the shape of each"
                )
            return [given] * len(names)
        if set(given) != set(names):
            raise TypeError(
                f"gpu.kernel {self.name}: outputs= names {sorted(given)}, but the writable buffers of the "
                f"shader are {sorted(names)}"
            )
        return [given[name] for name in names]

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Gives the kernel a reverse rule, as that of `custom_vjp`.

        Args:
            fwd: of the kernel's arguments; returns `(output, residuals)`, for which it calls the kernel.
            bwd: of the residuals and the cotangent of the output; returns a tuple of cotangents, one per
                argument, None for zeros. It may call other kernels.
        """
        self._custom.defvjp(fwd, bwd)

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the kernel a forward rule, as that of `custom_jvp`.

        Args:
            jvp: of the tuple of primals and that of the tangents; returns `(output, tangent of the output)`.
        """
        return self._custom.defjvp(jvp)

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> Any:
        """Runs the shader.

        Args:
            args: a tensor on the GPU for each input, in the order of the bindings.
            kwargs: the same by name.

        Returns:
            The output, or a tuple of them.

        Raises:
            TypeError: if an input is missing, is no tensor, or has another dtype than the shader says.
            DeviceError: if an input is on the CPU.
            NotImplementedError: in backward or forward mode, if the kernel has no rule for it.
        """
        inputs = self._bound(args, kwargs)
        if self._custom.bwd is None and self._custom.push is None:
            return _Underivable(self).apply(inputs)
        return self._custom(*inputs)

    def _bound(self, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> list[Tensor]:
        """The inputs in the order of their bindings."""
        names = [name for name, _ in self.inputs]
        given = dict(zip(names, args)) | kwargs
        if len(args) > len(names) or set(given) != set(names) or len(given) != len(args) + len(kwargs):
            raise TypeError(
                f"gpu.kernel {self.name}: it takes {len(names)} inputs ({', '.join(names) or 'none'}), got "
                f"{len(args)} by position and {sorted(kwargs)} by name"
            )
        for name, value in given.items():
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"gpu.kernel {self.name}: input {name} is {type(value).__name__}, expected a tensor; "
                    "numbers go to constants="
                )
        return [given[name] for name in names]

    def _run(self, inputs: Sequence[Tensor]) -> Any:
        """The outputs of the shader, without derivatives."""
        by_name = {name: x for (name, _), x in zip(self.inputs, inputs)}
        shapes = [self._shape(spec, by_name, inputs) for spec in self._specs]
        found = self._program.run(list(inputs), shapes, self._grid(inputs, shapes))
        return found[0] if len(found) == 1 else tuple(found)

    def _shape(self, spec: Spec, by_name: dict[str, Tensor], inputs: Sequence[Tensor]) -> list[int]:
        """The shape that a specification says."""
        if isinstance(spec, str):
            if spec not in by_name:
                raise TypeError(
                    f"gpu.kernel {self.name}: outputs= says the shape of input '{spec}'; the inputs are "
                    f"{', '.join(by_name)}"
                )
            return list(by_name[spec].shape)
        return [int(n) for n in (spec(*inputs) if callable(spec) else spec)]

    def _grid(self, inputs: Sequence[Tensor], shapes: list[list[int]]) -> tuple[int, int, int]:
        """Workgroups along x, y and z."""
        groups = self._groups(*inputs) if callable(self._groups) else self._groups
        if groups is None:
            groups = -(-prod(shapes[0]) // prod(self.workgroup_size))
        listed = [groups] if isinstance(groups, int) else [int(n) for n in groups]
        if not 1 <= len(listed) <= 3 or min(listed) < 0:
            raise ValueError(
                f"gpu.kernel {self.name}: groups= gave {listed}, expected the number of workgroups along one "
                "to three axes"
            )
        x, y, z = (*listed, 1, 1)[:3]
        return x, y, z

    def __repr__(self) -> str:
        """Name, inputs and outputs."""
        takes = ", ".join(f"{name}: {dtype}" for name, dtype in self.inputs)
        gives = ", ".join(f"{name}: {dtype}" for name, dtype in self.outputs)
        return f"<gpu.kernel {self.name}({takes}) -> {gives}>"


def _parsed(name: str, source: str, entry: str | None, constants: Mapping[str, float]) -> Any:
    """The shader, parsed and validated by the core."""
    values = [(key, float(value)) for key, value in constants.items()]
    return _core._GpuProgram(name, source, entry, values)


class _Underivable:
    """A call of a kernel without rules."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def apply(self, inputs: list[Tensor]) -> Any:
        """Runs the kernel; a derivative says which rule is missing."""
        kernel = self.kernel
        bare = custom_vjp(kernel._named())

        def bwd(*_: Any) -> Any:
            raise NotImplementedError(
                f"gpu.kernel {kernel.name} has no derivative; define one with its defvjp(fwd, bwd) or "
                "defjvp(jvp), or detach() its inputs"
            )

        bare.defvjp(lambda *args: (kernel._run(args), None), bwd)
        return bare(*inputs)


def kernel(
    source: str,
    outputs: Spec | Mapping[str, Spec] | None = None,
    *,
    groups: Groups | None = None,
    constants: Mapping[str, float] | None = None,
    entry: str | None = None,
    name: str | None = None,
) -> Kernel:
    """Returns a WGSL compute shader as a function of tensors.

    The shader says how it is called. Its `var<storage, read>` buffers in group 0 are the inputs, its
    `var<storage, read_write>` buffers the outputs, in the order of their bindings; tensors are passed in this
    order or by name. `array<f32>` holds float32, `array<i32>` int32, `array<f16>` float16 (where the GPU has
    it), and an input of `array<u32>` bool, one word each; arrays of vec2 and vec4 of these are the same
    memory. Inputs arrive contiguous, in row-major order, outputs begin as zeros, and `arrayLength` is the
    number of elements.

    The text is parsed and validated at once, and runs with bounds checks, always. Under `vmap` it runs once
    for each example. It has no derivative until it gets one: by `defvjp` or `defjvp`, or inside a function
    that brings its own (`custom_vjp`, `custom_jvp`, `autograd.Function`, whose `vmap` method is also the
    place for a better batching rule).

    Args:
        source: the WGSL text.
        outputs: the shape of the output: a tuple, the name of the input whose shape it has, or a function of
            the inputs; a dict of these by name where there are several. Without, that of the first input.
        groups: how many workgroups run along x, or along x, y and z; a function of the inputs may say it.
            Without, enough for one invocation per element of the first output.
        constants: values of the shader's `override` declarations.
        entry: the entry point, where there are several.
        name: what errors, tape entries and profiles call it; the `entry` that is passed, or `kernel`,
            otherwise.

    Raises:
        ValueError: if the shader does not parse or is not valid (the message shows the line), declares what
            cannot be bound, or has no output.

    Example:
        >>> scale = wg.gpu.kernel('''
        ...     override factor: f32;
        ...     @group(0) @binding(0) var<storage, read> x: array<f32>;
        ...     @group(0) @binding(1) var<storage, read_write> out: array<f32>;
        ...     @compute @workgroup_size(64)
        ...     fn main(@builtin(global_invocation_id) id: vec3u) {
        ...         if (id.x < arrayLength(&out)) { out[id.x] = factor * x[id.x]; }
        ...     }
        ... ''', constants={"factor": 3.0}, name="scale")
        >>> scale
        <gpu.kernel scale(x: float32) -> out: float32>
    """
    return Kernel(source, outputs, groups=groups, constants=constants, entry=entry, name=name)
