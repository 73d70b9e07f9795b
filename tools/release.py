"""What a release needs besides its files: the notes of one version, and a folder for it on the site.

python tools/release.py notes 0.1.0                      the section of CHANGELOG.md on this version
python tools/release.py site HTML PAGES v0.1.0           the site HTML as the folder 0.1.0 of PAGES
python tools/release.py site HTML PAGES dev              that of the main branch
"""

import argparse
import html
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="3; url={newest}/">
<title>wengert</title>
<h1>wengert</h1>
<ul>
{rows}
</ul>
</html>
"""


def version() -> str:
    """The version in Cargo.toml, which is the only place that has it."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)
    assert found, "Cargo.toml has no version"
    return found[1]


def notes(changelog: str, wanted: str) -> str:
    """The text below the heading of a version, up to the next one; its headings one level higher."""
    sections = re.split(r"^## (.+)$", changelog, flags=re.M)
    found = {heading.split()[0].strip("[]"): text for heading, text in zip(sections[1::2], sections[2::2])}
    if wanted not in found or not found[wanted].strip():
        raise SystemExit(f"CHANGELOG.md says nothing of {wanted}; it has {', '.join(found) or 'no sections'}")
    return re.sub(r"^#(#+) ", r"\1 ", found[wanted].strip(), flags=re.M) + "\n"


def order(name: str) -> tuple[int, ...]:
    """What sorts the folders of the site: versions by their numbers, `dev` before all of them."""
    return tuple(int(part) for part in re.findall(r"\d+", name))


def site(built: Path, pages: Path, name: str) -> None:
    """Copies a built site into its folder, and writes the page that lists the folders and opens the
    newest."""
    name = name.removeprefix("v")
    if not re.fullmatch(r"dev|\d+\.\d+\.\d+", name):
        raise SystemExit(f"a version as 0.1.0 or `dev` expected, got {name!r}")
    if not (built / "index.html").is_file():
        raise SystemExit(f"{built} holds no index.html: build the site with `make docs`")
    shutil.rmtree(pages / name, ignore_errors=True)
    shutil.copytree(built, pages / name)
    names = sorted((path.parent.name for path in pages.glob("*/index.html")), key=order, reverse=True)
    rows = "\n".join(f'<li><a href="{html.escape(one)}/">{html.escape(one)}</a>' for one in names)
    (pages / "index.html").write_text(PAGE.format(newest=names[0], rows=rows), encoding="utf-8")
    (pages / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    (pages / ".nojekyll").touch()  # folders that begin with an underscore are served, too


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("notes", help="print the notes of a version")
    one.add_argument("version")
    other = commands.add_parser("site", help="add a built site to the pages")
    other.add_argument("html", type=Path)
    other.add_argument("pages", type=Path)
    other.add_argument("version")
    args = parser.parse_args()
    if args.command == "site":
        return site(args.html, args.pages, args.version)
    if args.version != version():
        raise SystemExit(f"Cargo.toml has version {version()}, not {args.version}")
    sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), args.version))


if __name__ == "__main__":
    main()
