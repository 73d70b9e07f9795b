"""Powers whose exponents are so large that nothing but 0, 1 and infinity is left,
in kernels of whole registers.
"""

import numpy as np
import pytest
import wengert as wg

BASES = [2.5, 0.4, 1.3, 0.7, 1e-5, 3e7, 0.9999, 1.0001, 1.0, 0.72, 1.39, 1.05, 0.5, 2.0, 0.0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sign", [1, -1])
def test_powers_of_every_size(sign: int, dtype: str) -> None:
    info = np.finfo(dtype)
    bases = np.array([*BASES, 9 * info.smallest_subnormal, info.max / 3], dtype).astype(np.float64)
    for k in range(8, 8 * int(np.log10(info.max))):
        exponent = float(np.dtype(dtype).type(sign * 10.0 ** (k / 8)))
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            exact = np.power(bases, exponent).astype(dtype)
        found = (wg.tensor(bases, dtype=getattr(wg, dtype)) ** exponent).numpy()
        np.testing.assert_allclose(found, exact, rtol=2 * info.eps, atol=info.smallest_subnormal)
