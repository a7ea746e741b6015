#!/usr/bin/env python3
"""Print the set-up commands of README.md, one a line: those in the code blocks of its section "Set-up".

readme_commands.py [README]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def setup_commands(text: str) -> list[str]:
    """Commands in the fenced blocks under the heading ``## Set-up``; lines of comment are passed over."""
    section = re.search(r"^## Set-up\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section is None:
        raise ValueError("the README has no section '## Set-up'")
    blocks = re.findall(r"^```(?:bash|sh|console)?\n(.*?)^```", section.group(1), re.M | re.S)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


if __name__ == "__main__":
    readme = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "README.md"
    print("\n".join(setup_commands(readme.read_text(encoding="utf-8"))))
