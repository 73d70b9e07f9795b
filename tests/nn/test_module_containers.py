"""Lists, chains and dictionaries of modules and of parameters."""

import numpy as np
import pytest
import wengert as wg
from wengert import nn


def test_lists_of_modules():
    a, b, c, d = nn.ReLU(), nn.Tanh(), nn.GELU(), nn.SiLU()
    layers = nn.ModuleList([a, b])
    assert list(layers + nn.ModuleList([c])) == list(layers.__add__((c,))) == [a, b, c]
    assert len(layers) == 2
    layers += [c, d]
    assert layers.pop() is d
    assert layers.pop(0) is a
    assert [name for name, _ in layers.named_children()] == ["0", "1"]
    layers = nn.ModuleList([a, b, c, d])
    del layers[1:3]
    assert list(layers) == [a, d]
    with pytest.raises(TypeError, match="an iterable of modules expected"):
        layers.extend(a)


def test_chains():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.GELU()
    chain = nn.Sequential(a, b)
    assert list(chain + nn.Sequential(c)) == [a, b, c]
    assert list(chain * 2) == list(2 * chain) == [a, b, a, b]
    assert type(chain * 2) is nn.Sequential
    chain += [c]
    assert chain.pop(1) is b
    chain *= 2
    assert list(chain) == [a, c, a, c]
    with pytest.raises(ValueError, match="a positive number of repetitions"):
        chain * 0
    named = nn.Sequential({"first": a, "second": b, "third": c})
    part = named[1:]
    assert [name for name, _ in part.named_children()] == ["second", "third"]
    numbered = nn.Sequential(a, b, c)[1:].append(a)
    assert [name for name, _ in numbered.named_children()] == ["1", "2", "3"]


def test_dictionaries_of_modules():
    a, b = nn.ReLU(), nn.Tanh()
    modules = nn.ModuleDict([("x", a), ["y", b]])
    assert modules.items() == [("x", a), ("y", b)]
    modules.update(nn.ModuleDict({"x": b}))
    assert modules["x"] is b
    modules.clear()
    assert len(modules) == 0
    with pytest.raises(TypeError, match="a mapping or pairs expected"):
        nn.ModuleDict(3)


def test_lists_of_parameters_hold_other_things_too():
    values = nn.ParameterList([wg.ones(1), "name", 3])
    values += [wg.zeros(2)]
    assert values[1:3] is not values
    assert (len(values), values[1], list(values.state_dict())) == (4, "name", ["0", "3"])
    assert values.pop().tolist() == [0, 0]
    assert values.pop(0).tolist() == [1]
    assert list(values) == ["name", 3]
    values[0] = wg.ones(3)
    assert [name for name, _ in values.named_parameters()] == ["0"]


def test_dictionaries_of_parameters():
    w, b = nn.Parameter(wg.ones(1)), nn.Parameter(wg.zeros(1))
    # As in PyTorch, where optimisers number the parameters by it.
    assert nn.ParameterDict({"w": w, "b": b}).keys() == ["b", "w"]
    values = nn.ParameterDict([("w", w), ("b", b)])
    assert (values.keys(), list(reversed(values))) == (["w", "b"], ["b", "w"])
    assert values.get("w") is w
    assert values.get("none", 3) == 3
    assert values.setdefault("c", wg.ones(2)) is values["c"]
    other = values.copy()
    assert other["w"] is w
    assert other.popitem()[0] == "c"
    merged = other | {"d": wg.ones(4)}
    assert (merged.keys(), len(other)) == (["w", "b", "d"], 2)
    assert ({"z": wg.ones(1)} | other).keys() == ["z", "w", "b"]
    other |= {"e": None}
    assert other["e"] is None
    assert other.fromkeys(["p", "q"], 1.0).items() == [("p", 1.0), ("q", 1.0)]
    other.clear()
    assert len(other) == 0
    with pytest.raises(KeyError, match="already exists"):
        other["training"] = w
    with pytest.raises(TypeError, match="names are strings"):
        other[3] = w


@pytest.mark.parametrize("kind", ["ModuleDict", "ParameterDict"])
def test_what_is_no_pair_is_not_read_to_its_end(kind: str) -> None:
    entry = iter(range(1000))
    with pytest.raises(ValueError, match=f"{kind}: pairs of a name and a value expected"):
        getattr(nn, kind)([entry])
    assert next(entry) == 3


def test_names_that_are_not_there_are_told_with_those_that_are() -> None:
    heads = nn.ModuleDict({"left": nn.Linear(1, 1), "right": nn.Linear(1, 1)})
    for call in (lambda: heads["middle"], lambda: heads.__delitem__("middle")):
        with pytest.raises(KeyError, match="ModuleDict: there is no 'middle'; it has: 'left', 'right'"):
            call()
    with pytest.raises(KeyError, match="ParameterDict: there is no 'a'; it has: nothing"):
        nn.ParameterDict()["a"]
    with pytest.raises(KeyError, match="Linear: there is no 'scale'; it has: 'weight', 'bias'"):
        nn.Linear(1, 1)._parameters["scale"]


def test_an_index_that_is_no_integer_is_named():
    for layers in (nn.Sequential(nn.ReLU()), nn.ModuleList([nn.ReLU()])):
        with pytest.raises(
            TypeError, match=type(layers).__name__ + ": an index is an integer or a slice, got 'a'"
        ):
            layers["a"]
        assert layers[wg.tensor(0)] is layers[np.int64(0)] is layers[-1]
    with pytest.raises(TypeError, match="ParameterList: an index is an integer or a slice, got None"):
        nn.ParameterList([nn.Parameter(wg.ones(1))])[None]
