"""What a release is made of: notes of one version, a folder of the site, one version number, actions that
stay put."""

import json
import re
from pathlib import Path

import programs
import pytest

ROOT = programs.ROOT
release = programs.module("release", "tools")
CHANGELOG = """# Changelog

## Unreleased

The next.

## 0.2.0

### New

- A second.

#### Below

- B.

## 0.1.0

- A first.
"""


def test_the_notes_are_those_of_one_version() -> None:
    assert release.notes(CHANGELOG, "0.2.0") == "## New\n\n- A second.\n\n### Below\n\n- B.\n"
    assert release.notes(CHANGELOG, "0.1.0") == "- A first.\n"
    with pytest.raises(SystemExit, match=r"says nothing of 0\.3\.0; it has Unreleased, 0\.2\.0, 0\.1\.0"):
        release.notes(CHANGELOG, "0.3.0")


def test_our_changelog_has_notes() -> None:
    assert "Tape and transforms" in release.notes(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "Unreleased"
    )


def test_each_version_of_the_site_has_a_folder(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("dev", "v0.2.0", "v0.10.0", "v0.9.0", "v0.2.0"):
        built = tmp_path / f"built-{name}"
        built.mkdir(exist_ok=True)
        (built / "index.html").write_text(f"<p>{name}</p>")
        release.site(built, pages, name)
    assert json.loads((pages / "versions.json").read_text()) == ["0.10.0", "0.9.0", "0.2.0", "dev"]
    start = (pages / "index.html").read_text()
    assert "url=0.10.0/" in start
    assert re.findall(r'href="(.*?)"', start) == ["0.10.0/", "0.9.0/", "0.2.0/", "dev/"]
    assert (pages / "0.9.0" / "index.html").read_text() == "<p>v0.9.0</p>"


@pytest.mark.parametrize("name", ["main", "../0.1.0", "0.1", "v0.1.0rc1"])
def test_other_folders_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    with pytest.raises(SystemExit, match=r"a version as 0\.1\.0 or `dev` expected"):
        release.site(tmp_path, tmp_path / "pages", name)


def test_a_folder_without_a_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"holds no index\.html"):
        release.site(tmp_path, tmp_path / "pages", "dev")


def test_there_is_one_version() -> None:
    import wengert as wg

    recipe = (ROOT / "tools" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    found = re.search(r"^  version: (.+)$", recipe, re.M)
    assert found
    assert found[1] == release.version() == wg.__version__


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_actions_are_pinned_and_jobs_end(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"^\s*(?:- )?uses: (.+)$", text, re.M)
    assert used
    pinned = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [one for one in used if not pinned.fullmatch(one) and not one.startswith("./")] == []
    runners, limits = text.count("runs-on:"), text.count("timeout-minutes:")
    assert runners == limits > 0
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
