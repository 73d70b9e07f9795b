"""Random einsum equations against NumPy."""

from __future__ import annotations

import numpy as np
import wengert as wg
from hypothesis import given, strategies as st
from support import examples


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """An equation of one to three operands, and the operands."""
    letters = "abcde"
    lengths = {letter: draw(st.integers(0, 4)) for letter in letters}
    rest = draw(st.lists(st.integers(1, 3), max_size=2))
    dotted = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    terms, operands, seen = [], [], ""
    for _ in range(draw(st.integers(1, 3))):
        term = "".join(draw(st.lists(st.sampled_from(letters), max_size=3)))
        shape = [lengths[letter] for letter in term]
        # A length of 1 stands for any.
        if dotted and draw(st.booleans()):
            at, own = draw(st.integers(0, len(term))), rest[draw(st.integers(0, len(rest))) :]
            shape[at:at] = [1 if rng.random() < 0.2 else n for n in own]
            term = f"{term[:at]}...{term[at:]}"
        seen += term.replace(".", "")
        terms.append(term)
        operands.append(rng.normal(size=shape))
    equation = ",".join(terms)
    if draw(st.booleans()):
        kept = draw(st.permutations(sorted(set(seen))))[: draw(st.integers(0, 4))]
        dots = "..." if "..." in equation else ""
        equation += "->" + dots + "".join(kept)
    return equation, operands


@examples(300)
@given(contractions())
def test_equations(case: tuple[str, list[np.ndarray]]) -> None:
    equation, operands = case
    try:
        expected = np.einsum(equation, *operands)
    except ValueError:
        expected = None
    try:
        found = wg.einsum(equation, *map(wg.tensor, operands))
    except ValueError:
        found = None
    assert (found is None) == (expected is None), (equation, [v.shape for v in operands])
    if expected is not None:
        assert found.shape == expected.shape, equation
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-10)
