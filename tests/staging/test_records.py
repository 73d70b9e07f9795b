"""Every operation as a program: the bits of the operation, of its gradients, and again with other data."""

import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import array, floats, laid_out, outputs, random_source

# Their results are random numbers, which two calls do not share.
DRAWN = {s.name for s in SAMPLES if "Random" in s.rows}


def bits(values):
    return [array(x).tobytes() for x in values]


def calls(sample: OpSample, seed: int, layout: str):
    """A case, and two sets of tensors for it."""
    source, rng = random_source(seed)
    case = sample.case(source)
    dtype = "float32" if "float32" in sample.dtypes else sample.dtypes[0]
    return case, [[laid_out(v, layout, dtype)[0] for v in case.sample(rng)] for _ in range(2)]


def value(sample, case):
    return lambda *x: outputs(sample.fn(*x, **case.kwargs))


def slopes(sample, case):
    """The gradients of all floating point inputs by `backward`."""

    def f(*x):
        x = [t.detach().requires_grad_() if t.dtype.is_floating_point or t.dtype.is_complex else t for t in x]
        out = floats(sample.fn(*x, **case.kwargs))
        total = sum((y.sum() for y in out if y.requires_grad), wg.zeros(()))
        if not total.requires_grad:
            return []
        total.backward()
        return [t.grad for t in x if t.grad is not None]

    return f


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.name not in DRAWN], ids=str)
@pytest.mark.filterwarnings("ignore:jit")
def test_a_program_has_the_bits_of_the_operation(sample: OpSample) -> None:
    for seed, layout in enumerate(("contiguous", "permuted")):
        case, data = calls(sample, seed, layout)
        for make in (value, slopes):
            f = make(sample, case)
            step = wg.jit(f)
            for x in (*data, data[0]):
                expected = f(*x)
                assert bits(step(*x)) == bits(expected)
