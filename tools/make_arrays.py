#!/usr/bin/env python3
"""Write the page about arrays of devices, docs/arrays.md, from the contract in `mxcore.array_api.contract`."""

from pathlib import Path

from mxcore.array_api.contract import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "arrays.md"

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
