"""A call for every public function that takes a keyword: from a sample where there is one,
written down otherwise.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import programs
import wengert as wg
from samples.op_samples import SAMPLES
from support import random_source, tensor

reference = programs.module("reference", "docs/_ext")
BY_NAME = {sample.name: sample for sample in SAMPLES}

# Names of one function: the sample stands under the right one.
OTHER_NAMES = {
    **{f"arc{f}": f"a{f}" for f in "cos cosh sin sinh tan tanh tan2".split()},
    **dict(absolute="abs", negative="neg", multiply="mul", divide="div", true_divide="div", subtract="sub"),
    **dict(greater="gt", greater_equal="ge", less="lt", less_equal="le", not_equal="ne", equal="eq"),
    **dict(power="pow", float_power="pow", clip="clamp", fix="trunc", bitwise_invert="bitwise_not"),
    **dict(concat="cat", concatenate="cat", inverse="inv", pinverse="pinv", moveaxis="movedim"),
    **dict(gammaln="lgamma", psi="digamma", multigammaln="mvlgamma", orgqr="householder_product"),
    **dict(modified_bessel_i0="i0", modified_bessel_i1="i1"),
    **dict(ravel="flatten", swapaxes="transpose", swapdims="transpose", sgn="sign", gelu_exact="gelu"),
}


def floats(*shape: int) -> wg.Tensor:
    """Numbers between 0.5 and 1.5, which every function takes."""
    return wg.linspace(
        0.5, 1.5, max(1, int(wg.tensor(shape).prod()) if shape else 1), dtype=wg.float64
    ).reshape(shape)


X, M, V, I = floats(2, 3), floats(3, 3), floats(3), wg.tensor([0, 2])
AT = wg.tensor([[0, 2, 1], [1, 0, 2]])
POSITIVE_DEFINITE = M @ M.T + 3 * wg.eye(3, dtype=wg.float64)
# Calls that no sample has, or whose sample calls something else.
WRITTEN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("angle argwhere conj count_nonzero detach flatten gelu_exact gelu_tanh".split(), (X,)),
    **dict.fromkeys("is_inference is_signed isfinite isinf isnan nonzero positive ravel t".split(), (X,)),
    **dict.fromkeys("allclose is_same_size isclose".split(), (X, X)),
    **dict.fromkeys("swapaxes swapdims transpose".split(), (X, 0, 1)),
    **dict.fromkeys("index_select".split(), (X, 1, I)),
    **{name: (X, 1, I, floats(2, 2)) for name in "index_add index_copy".split()},
    **dict.fromkeys("scatter scatter_add".split(), (X, 1, AT, X)),
    **dict.fromkeys("chunk".split(), (V, 3)),
    **{name: (floats(4, 4, 4), 2) for name in "dsplit hsplit vsplit".split()},
    **dict.fromkeys(
        "empty_like ones_like rand_like randn_like zeros_like as_tensor asarray tensor".split(), (X,)
    ),
    **dict.fromkeys("arange bartlett_window blackman_window hamming_window hann_window".split(), (5,)),
    **dict.fromkeys("kaiser_window empty ones rand randn zeros randperm eye".split(), (5,)),
    **dict.fromkeys("fft.fftfreq fft.rfftfreq numpy.fft.fftfreq numpy.fft.rfftfreq".split(), (5,)),
    **{f"numpy.{name}": (5,) for name in "arange empty eye ones zeros".split()},
    **{f"numpy.{name}": (X,) for name in "asarray from_dlpack empty_like ones_like zeros_like".split()},
    **{f"numpy.{name}": (X,) for name in "array asanyarray ascontiguousarray argwhere".split()},
    **{
        f"numpy.{name}": (V,)
        for name in "cumprod cumsum cumulative_prod cumulative_sum mean prod sum".split()
    },
    **{f"numpy.{name}": (V,) for name in "nancumprod nancumsum nanmean nanprod nansum std var".split()},
    **{f"numpy.{name}": (5,) for name in "identity tri".split()},
    **{f"numpy.{name}": (1.0, 2.0, 5) for name in "geomspace logspace".split()},
    "numpy.fromfunction": (lambda i, j: i + j, (2, 3)),
    "numpy.indices": ((2, 3),),
    "numpy.isclose": (X, X),
    "scipy.special.multigammaln": (X + 2, 2),
    **{f"scipy.special.{name}": (X,) for name in "expit gammaln psi".split()},
    **{f"special.{name}": (X,) for name in "expit gammaln modified_bessel_i0 modified_bessel_i1 psi".split()},
    **{f"special.{name}": (X + 2, 2) for name in "multigammaln mvlgamma".split()},
    **{
        f"signal.windows.{name}": (5,)
        for name in "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser nuttall".split()
    },
    "signal.windows.general_cosine": (5,),
    "masked.normalize": (X, 2.0, 1),
    "masked.softmin": (X, 1),
    "empty_strided": ((2, 3), (3, 1)),
    "fill": (X, 2.0),
    "frombuffer": (bytes(8),),
    "geqrf": (M,),
    "lu_solve": (floats(3, 2), *wg.linalg.lu_factor(POSITIVE_DEFINITE)),
    "orgqr": tuple(wg.geqrf(M)),
    "ormqr": (*wg.geqrf(M), floats(3, 2)),
    "range": (1, 4),
    "triangular_solve": (floats(3, 2), POSITIVE_DEFINITE),
    **dict.fromkeys(("full", "numpy.full"), ((2, 3), 2.0)),
    **dict.fromkeys(("full_like", "numpy.full_like"), (X, 2.0)),
    **dict.fromkeys(("linspace", "logspace", "numpy.linspace"), (1.0, 2.0, 5)),
    "normal": (0.0, 1.0, (3,)),
    "numpy.astype": (X, wg.float32),
    "nn.functional.softmin": (X, 1),
    "randint": (3, 9, (4,)),
    "randint_like": (X, 3, 9),
    "scalar_tensor": (2.0,),
    "addmm": (floats(2, 4), X, floats(3, 4)),
    "as_strided": (X, (2, 2), (1, 1)),
    "bmm": (floats(2, 3, 4), floats(2, 4, 5)),
    "broadcast_to": (V, (2, 3)),
    "cholesky": (POSITIVE_DEFINITE,),
    "clamp_max": (X, 1.0),
    "clamp_min": (X, 1.0),
    "diagonal_scatter": (M, floats(3)),
    "dot": (V, V),
    "gather": (X, 1, AT),
    "ger": (V, V),
    "index_fill": (X, 1, I, 2.0),
    "index_put": (X, (wg.tensor([0]), wg.tensor([1])), wg.tensor(5.0, dtype=wg.float64)),
    "index_reduce": (X, 1, I, floats(2, 2), "prod"),
    "is_nonzero": (wg.tensor(2.0),),
    "istft": (wg.stft(floats(64), 16, return_complex=True, window=wg.hann_window(16, dtype=wg.float64)), 16),
    "masked_select": (X, X > 1),
    "mm": (X, floats(3, 4)),
    "multinomial": (V, 2),
    "mv": (X, V),
    "mvlgamma": (X + 2, 2),
    "narrow": (X, 1, 1, 2),
    "prelu": (X - 1, wg.tensor([0.25], dtype=wg.float64)),
    "renorm": (X, 2, 0, 1.0),
    "scatter_reduce": (X, 1, AT, X, "sum"),
    "select": (X, 1, 2),
    "select_scatter": (X, floats(2), 1, 0),
    "slice_scatter": (X, floats(2, 2), 1, 0, 2),
    "split": (V, 2),
    "split_with_sizes": (V, [1, 2]),
    "stft": (floats(64), 16, None, None, None, True, "reflect", False, True, True),
    "svd": (X,),
    "take": (X, I),
    "tile": (X, (2, 1)),
    "to_device": (X, "cpu"),
    **dict.fromkeys("tril_indices triu_indices".split(), (4, 5)),
    "unflatten": (floats(6), 0, (2, 3)),
    "unfold": (floats(6), 0, 2, 2),
}
# What such a call takes by name alone.
NAMED: dict[str, dict[str, Any]] = {"signal.windows.general_cosine": {"a": [0.5, 0.25, 0.25]}}


def parameters(function: Any) -> set[str]:
    """The names of the parameters; none where the signature does not tell."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def functions_with(keyword: str) -> dict[str, Any]:
    """The public functions (no classes, no methods) that take a keyword, by their full names."""
    found = {}
    for page in reference.pages():
        for full in page.names:
            value = reference.resolve(full)
            if callable(value) and not inspect.isclass(value) and keyword in parameters(value):
                found[full.removeprefix("wengert.")] = value
    return found


def calls(full: str, function: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments with which a function can be called."""
    name = full.rpartition(".")[2]
    if full in WRITTEN:
        yield WRITTEN[full], NAMED.get(full, {})
        return
    sample = BY_NAME.get(OTHER_NAMES.get(name, name))
    if sample is None:
        return
    for seed in range(4):
        source, rng = random_source(seed, most=3)
        case = sample.case(source)
        args = tuple(tensor(v) for v in case.sample(rng))
        try:
            function(*args, **case.kwargs)
        except (TypeError, ValueError, RuntimeError, IndexError):
            continue
        yield args, case.kwargs
