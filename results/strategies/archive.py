"""Packs the rows of the study's first runs that no archive here holds as they are.

    python results/strategies/archive.py [--budget 10000] [--seeds 1]

Writes `rows-BUDGET-K.tar.xz` with the next free K. Unpacked one after another the archives are one study, which
`validate` checks; a run that was made again is in the later one.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import typer

HERE = Path(__file__).parent


def packed(archives: list[Path]) -> dict[str, bytes]:
    """Return the hash of each file in the archives, of the last one that has it."""
    hashes = dict[str, bytes]()
    for path in archives:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member)
                assert content is not None  # folders are not packed
                hashes[member.name] = hashlib.sha256(content.read()).digest()
    return hashes


def finished(study: Path, seeds: int) -> list[Path]:
    """Return the files of the finished runs of the first seeds."""
    folders = sorted(end.parent for end in study.glob("*/end.json"))
    first = [folder for folder in folders if json.loads((folder / "run.json").read_text())["seed"] < seeds]
    return [folder / name for folder in first for name in ("run.json", "rows.csv", "end.json")]


def main(budget: int = 10_000, seeds: int = 1) -> None:
    """Write one archive more, if there is anything for it."""
    study, archives = HERE.parent / f"strategies-{budget}", sorted(HERE.glob(f"rows-{budget}-*.tar.xz"))
    known, files = packed(archives), finished(study, seeds)
    names = {str(path.relative_to(study.parent)): path for path in files}
    new = [name for name, path in names.items() if known.get(name) != hashlib.sha256(path.read_bytes()).digest()]
    if new:
        with tarfile.open(HERE / f"rows-{budget}-{len(archives) + 1}.tar.xz", "w:xz") as archive:
            for name in new:
                archive.add(names[name], name, filter=anonymous)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose file it was, and when: equal rows make equal archives."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    typer.run(main)
