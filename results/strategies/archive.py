"""Packs the rows of the study's first runs that no archive here holds yet.

    python results/strategies/archive.py [--budget 10000] [--seeds 1]

Writes `rows-BUDGET-K.tar.xz` with the next free K. Unpacked side by side the archives are one study, which `validate`
checks.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path

import typer

HERE = Path(__file__).parent


def packed(budget: int) -> set[str]:
    """Return the names of all files in the archives of a budget."""
    names = set[str]()
    for path in HERE.glob(f"rows-{budget}-*.tar.xz"):
        with tarfile.open(path) as archive:
            names.update(archive.getnames())
    return names


def finished(study: Path, seeds: int) -> list[Path]:
    """Return the files of the finished runs of the first seeds."""
    folders = sorted(end.parent for end in study.glob("*/end.json"))
    first = [folder for folder in folders if json.loads((folder / "run.json").read_text())["seed"] < seeds]
    return [folder / name for folder in first for name in ("run.json", "rows.csv", "end.json")]


def main(budget: int = 10_000, seeds: int = 1) -> None:
    """Write one archive more, if there is anything for it."""
    study, known = HERE.parent / f"strategies-{budget}", packed(budget)
    names = {str(path.relative_to(study.parent)): path for path in finished(study, seeds)}
    new = {name: path for name, path in names.items() if name not in known}
    if not new:
        return
    number = 1 + len(list(HERE.glob(f"rows-{budget}-*.tar.xz")))
    with lzma.open(HERE / f"rows-{budget}-{number}.tar.xz", "wb") as file, tarfile.open(fileobj=file, mode="w") as made:
        for name, path in new.items():
            made.add(path, name, filter=anonymous)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose file it was, and when: equal rows make equal archives."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    typer.run(main)
