"""What no file of the project may hold, and facts that must agree between files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# One letter stands in brackets, so that this file does not hold what it forbids.
FORBIDDEN = {
    "the address of a package registry": r"pypi\.or[g]|pythonhosted\.or[g]|registry\.npmjs\.or[g]|"
    r"deb\.debian\.or[g]|proxy\.golang\.or[g]|--(?:extra-)?inde[x]-url",
    "a path of one machine": r"(?<![\w.~$}])/(?:wor[k]|far[m]|roo[t]|home/\w+|Users/\w+)/|"
    r"/tmp/(?:de[v]|oracl[e])\b|bash[_]jobs",
    "unfinished work": r"\bTOD[O]\b|\bFIXM[E]\b",
}


def tracked() -> list[Path]:
    """Files that git tracks or does not ignore, outside of environments; without git all that are no build product."""
    git = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"]
    try:
        names = subprocess.run(git, capture_output=True, text=True, check=True).stdout.splitlines()
        found = [ROOT / n for n in names]
    except (OSError, subprocess.CalledProcessError):
        made = {
            ".git",
            "build",
            "dist",
            "__pycache__",
            ".pytest_cache",
            ".mypy_cache",
            ".ruff_cache",
            ".hypothesis",
            "mxcore-train",
        }
        found = [p for p in ROOT.rglob("*") if not made & set(p.parts)]
    environments = {p.parent for p in found if p.name == "pyvenv.cfg"}  # which somebody has made here
    return [p for p in found if p.is_file() and not environments & {*p.parents}]


def check_words(text: str, name: str) -> list[str]:
    """Complaints about words that no file may hold."""
    bad = []
    for what, pattern in FORBIDDEN.items():
        for match in re.finditer(pattern, text):
            bad.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1} holds {what}: {match.group()}")
    return bad


def check_versions(versions: dict[str, str]) -> list[str]:
    """Complaints about places that give another version than the first."""
    places = iter(versions.items())
    first, version = next(places)
    return [f"{place} says {v!r}, {first} says {version!r}" for place, v in places if v != version]
