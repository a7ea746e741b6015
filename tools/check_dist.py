#!/usr/bin/env python3
"""Build the sdist and from it the wheel; check that both are complete and that the tree gives the same wheel.

    check_dist.py

Needs the package `build`. Run from anywhere; nothing is left behind.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def package_files(root: Path, packages: list[str]) -> set[str]:
    """Names in the wheel of all files of the packages."""
    return {
        path.relative_to((root / package).parent).as_posix()
        for package in packages
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def empty_packages(root: Path, packages: list[str]) -> list[str]:
    """Complaints about packages in pyproject.toml that are not in the tree; the build passes over them."""
    return [f"{p} is not a package" for p in packages if not (root / p / "__init__.py").exists()]


def complaints(expected: set[str], wheel: set[str], from_tree: set[str], sdist: set[str]) -> list[str]:
    """What is missing or too much in the names of the distributions."""
    bad = [f"the wheel lacks {name}" for name in sorted(expected - wheel)]
    bad += [f"the wheel holds {n}" for n in sorted(wheel - expected) if ".dist-info/" not in n]
    bad += [f"only one of the wheels from tree and sdist holds {n}" for n in sorted(wheel ^ from_tree)]
    wanted = ["LICENSE", "NOTICE", "README.md", "pyproject.toml", "tests/house/test_tree.py", ".ci/run"]
    bad += [f"the sdist lacks {name}" for name in wanted if name not in sdist]
    for part in ("METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"):
        if not any(n.endswith(".dist-info/" + part) for n in wheel):
            bad.append(f"the wheel lacks {part}")
    return bad


def build(*options: str, into: str) -> None:
    """Run the build front end."""
    subprocess.run([sys.executable, "-m", "build", *options, "--outdir", into, str(ROOT)], check=True)


def main() -> int:
    """Build and check; 1 if something is wrong."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    with tempfile.TemporaryDirectory() as chain, tempfile.TemporaryDirectory() as direct:
        build(into=chain)  # the sdist, then the wheel from the sdist
        build("--wheel", into=direct)
        (sdist_file,) = Path(chain).glob("*.tar.gz")
        wheels = [next(Path(d).glob("*.whl")) for d in (chain, direct)]
        wheel, from_tree = (set(zipfile.ZipFile(w).namelist()) for w in wheels)
        with tarfile.open(sdist_file) as archive:
            sdist = {name.split("/", 1)[-1] for name in archive.getnames()}
        sizes = ", ".join(f"{p.name} {p.stat().st_size / 1e6:.1f} MB" for p in (sdist_file, wheels[0]))
    bad = empty_packages(ROOT, packages)
    bad += complaints(package_files(ROOT, packages), wheel, from_tree, sdist)
    print("\n".join(bad) or f"complete: {len(wheel)} files in the wheel; {sizes}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
