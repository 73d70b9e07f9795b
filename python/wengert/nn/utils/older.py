"""Weights of a given norm or largest singular value by hooks, with PyTorch's older names in the state dict.

`nn.utils.parametrizations` has the same as parametrizations, which new programs should prefer.
"""

from typing import Any

import wengert as wg
from wengert._core import Tensor

from ..functional import normalize
from ..module import Module
from ..parameter import Parameter
from .parametrizations import _as_matrix, _checked_axis, _starts, _WeightNorm

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Reweighted:
    """A hook before `forward` that computes a weight anew, of parameters of other names."""

    kind = ""

    def __init__(self, name: str) -> None:
        """The name of the weight."""
        self.name = name

    def attach(self, module: Module) -> None:
        """Makes the first weight, and computes it again before each call."""
        for other in module._hooks.get("forward_pre", {}).values():
            if isinstance(other.call, _Reweighted) and other.call.name == self.name:
                raise RuntimeError(
                    f"{self.kind}: {type(module).__name__}.{self.name} has a {other.call.kind} already"
                )
        if not isinstance(getattr(module, self.name, None), Parameter):
            raise ValueError(f"{self.kind}: {type(module).__name__} has no parameter {self.name!r}")
        self.split(module)
        setattr(module, self.name, self.weight(module))
        module.register_forward_pre_hook(self)

    def split(self, module: Module) -> None:
        """Replaces the parameter by others."""
        raise NotImplementedError

    def weight(self, module: Module) -> Tensor:
        """The weight, of these."""
        raise NotImplementedError

    def join(self, module: Module) -> None:
        """Makes the weight a parameter again."""
        raise NotImplementedError

    def __call__(self, module: Module, args: Any) -> None:
        """Computes the weight."""
        setattr(module, self.name, self.weight(module))


def _remove(kind: type[_Reweighted], module: Module, name: str) -> Module:
    hooks = module._hooks.get("forward_pre", {})
    for key, hook in list(hooks.items()):
        if isinstance(hook.call, kind) and hook.call.name == name:
            hook.call.join(module)
            del hooks[key]
            if not hooks:
                del module._hooks["forward_pre"]
            return module
    raise ValueError(f"remove_{kind.kind}: {type(module).__name__}.{name} has none")


class _Lengths(_Reweighted):
    """`g v / |v|`."""

    kind = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.formula = _WeightNorm(dim)

    def split(self, module: Module) -> None:
        value = getattr(module, self.name)
        delattr(module, self.name)
        g, v = self.formula.right_inverse(value.detach())
        module.register_parameter(f"{self.name}_g", Parameter(g.clone()))
        module.register_parameter(f"{self.name}_v", Parameter(v.clone()))

    def weight(self, module: Module) -> Tensor:
        return self.formula(getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v"))

    def join(self, module: Module) -> None:
        value = self.weight(module)
        for name in (self.name, f"{self.name}_g", f"{self.name}_v"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(value))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains lengths and directions of a weight apart: `weight = g v / |v|` (T. Salimans and D. Kingma,
    2016).

    Args:
        module: the layer, which gets the parameters `weight_g` and `weight_v` in place of `weight`; it is
            returned.
        name: its parameter.
        dim: the axis along which each place has a length of its own; None: one for all.

    Raises:
        RuntimeError: the parameter has a norm already.
        ValueError: there is no such parameter.

    Example:
        >>> layer = wg.nn.utils.weight_norm(wg.nn.Linear(3, 2))
        >>> list(layer.state_dict())
        ['bias', 'weight_g', 'weight_v']
    """
    _Lengths(name, dim).attach(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight under `weight_norm` an ordinary parameter, of its value; returns `module`.

    Args:
        module: the layer.
        name: its parameter.

    Raises:
        ValueError: it has no such norm.

    Example:
        >>> layer = wg.nn.utils.remove_weight_norm(wg.nn.utils.weight_norm(wg.nn.Linear(3, 2)))
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    return _remove(_Lengths, module, name)


class _Largest(_Reweighted):
    """The weight divided by an estimate of its largest singular value."""

    kind = "spectral_norm"

    def __init__(self, name: str, iterations: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def split(self, module: Module) -> None:
        value = getattr(module, self.name)
        delattr(module, self.name)
        module.register_parameter(f"{self.name}_orig", Parameter(value.detach()))
        for end, start in zip("uv", _starts(_as_matrix(value.detach(), self.dim), self.eps)):
            module.register_buffer(f"{self.name}_{end}", start)

    def weight(self, module: Module) -> Tensor:
        return self.divided(module, module.training)

    def divided(self, module: Module, improves: bool) -> Tensor:
        """The weight, after power iterations that improve the estimate, if it is to be improved."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{end}") for end in "uv")
        matrix = _as_matrix(weight, self.dim)
        if improves:
            with wg.no_grad():
                for _ in range(self.iterations):
                    v = normalize(matrix.detach().T @ u, dim=0, eps=self.eps)
                    u = normalize(matrix.detach() @ v, dim=0, eps=self.eps)
                # New objects: a backward of before may still need the old ones.
                setattr(module, f"{self.name}_u", u)
                setattr(module, f"{self.name}_v", v)
        return weight / wg.dot(u, matrix @ v)

    def join(self, module: Module) -> None:
        value = self.divided(module, False).detach()
        for name in (self.name, *(f"{self.name}_{end}" for end in ("orig", "u", "v"))):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(value))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its largest singular value, estimated by power iteration (T. Miyato et al., 2018).

    Args:
        module: the layer, which gets the parameter `weight_orig` and the buffers `weight_u` and `weight_v` in
            place of `weight`; it is returned.
        name: its parameter.
        n_power_iterations: steps of the estimate in each training call, 1 or more.
        eps: the least length by which vectors are divided.
        dim: the axis of outputs; 0 by default, 1 for transposed convolutions.

    Raises:
        RuntimeError: the parameter has a norm already.
        ValueError: there is no such parameter, or no positive number of steps.

    Example:
        >>> layer = wg.nn.utils.spectral_norm(wg.nn.Linear(3, 2))
        >>> sorted(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    _Largest(name, n_power_iterations, eps, _checked_axis(module, n_power_iterations, dim)).attach(module)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight under `spectral_norm` an ordinary parameter, of its value; returns `module`.

    Args:
        module: the layer.
        name: its parameter.

    Raises:
        ValueError: it has no such norm.

    Example:
        >>> layer = wg.nn.utils.remove_spectral_norm(wg.nn.utils.spectral_norm(wg.nn.Linear(3, 2)))
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    return _remove(_Largest, module, name)
