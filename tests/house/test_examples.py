"""The examples in the pages and docstrings run."""

import re
import subprocess
import sys

import pytest

from .files import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(text):
    """The fenced blocks of Python in a page."""
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def run(*args, cwd):
    return subprocess.run([sys.executable, *args], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_blocks_are_found():
    text = "a\n```python\nx = 1\n```\nb\n```bash\nls\n```\n```python\ny\n```\n"
    assert python_blocks(text) == ["x = 1\n", "y\n"]
    assert sum(len(python_blocks(p.read_text(encoding="utf-8"))) for p in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_blocks_of_pages_run(page, tmp_path):
    for block in python_blocks(page.read_text(encoding="utf-8")):
        out = run("-W", "error", "-c", block, cwd=tmp_path)
        assert out.returncode == 0, f"{block}\n{out.stderr}"


def test_docstring_examples_run(tmp_path):
    options = [
        "-q",
        "--doctest-modules",
        "--ignore-glob=*/compat/path/*",
        f"--ignore={ROOT / 'plugins' / 'cuda_cupy' / 'mxcore_cuda' / 'cupy_driver.py'}",  # CuPy is optional
        "-p",
        "no:cacheprovider",
    ]
    out = run(
        "-m",
        "pytest",
        *options,
        f"--rootdir={ROOT}",
        "-c",
        str(ROOT / "pyproject.toml"),
        str(ROOT / "core"),
        str(ROOT / "plugins"),
        cwd=tmp_path,
    )
    assert out.returncode == 0, out.stdout[-5000:] + out.stderr[-2000:]
