"""Of what commit a report is."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["commit"]


def commit() -> str | None:
    """The commit of this checkout, and whether files differ from it; None where this is no checkout."""
    found = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no") if found else None
    return f"{found}, with changes" if changed else found


def _git(*args: str) -> str | None:
    try:
        done = subprocess.run(["git", *args], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
