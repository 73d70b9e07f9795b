"""What an editor completes without running the code: every public name, with its signature."""

from collections.abc import Iterator

import jedi
import pytest

# A prefix, and what must be among its completions. The first half are functions that follow from methods.
FUNCTIONS = """
    abs ac add al am ar at bit cat ce cl cos cum det dia div ei er ex fl fm ga gc hyp is_ le lg log lo mat max me mi mul
    nan ne no pe po qu re ro rs sc si so sq st su ta to tri un va wh xl ze
""".split()
MODULES = "amp debugging fft graph linalg nn numpy optim special testing utils".split()
DEEP = {
    "wg.nn.Lin": "Linear",
    "wg.nn.ReL": "ReLU",
    "wg.nn.functional.gel": "gelu",
    "wg.optim.Ad": "AdamW",
    "wg.linalg.so": "solve",
    "wg.fft.rf": "rfft",
    "wg.ones(2).su": "sum",
    "wg.exp(wg.ones(2)).requires": "requires_grad",
    "wg.ones(2).max(0).ind": "indices",
}


@pytest.fixture(autouse=True, scope="module")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what jedi parsed from other processes: one that reads while another writes finds half a file."""
    shared, jedi.settings.cache_directory = (
        jedi.settings.cache_directory,
        str(tmp_path_factory.mktemp("jedi")),
    )
    yield
    jedi.settings.cache_directory = shared


def completions(text: str) -> set[str]:
    """The names that jedi offers behind `text`."""
    return {found.name for found in jedi.Script(f"import wengert as wg\n{text}").complete()}


@pytest.mark.parametrize("prefix", FUNCTIONS)
def test_functions_complete(prefix: str) -> None:
    import wengert as wg

    public = {name for name in wg.__all__ if name.startswith(prefix)}
    assert public
    assert public <= completions(f"wg.{prefix}")


@pytest.mark.parametrize("name", MODULES)
def test_submodules_complete(name: str) -> None:
    assert name in completions(f"wg.{name[:3]}")


@pytest.mark.parametrize("text", DEEP)
def test_what_lies_deeper_completes(text: str) -> None:
    assert DEEP[text] in completions(text)


def test_signatures_show() -> None:
    [shown] = jedi.Script("import wengert as wg\nwg.cumsum(").get_signatures(2, 10)
    assert [parameter.name for parameter in shown.params] == ["input", "dim", "dtype", "axis", "out"]
