#!/usr/bin/env python3
"""Build the sdist and from it the wheel; check that both are complete and that the tree gives the same wheel.

    check_dist.py [--install]

With --install the wheel, and that of mxcore-cuda, are installed in a new environment without CuPy, where there must be
no GPU, and a reason for that. Needs the package `build`. Run from anywhere; nothing is left behind.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
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


def build(*options: str, into: str, source: Path = ROOT) -> None:
    """Run the build front end."""
    subprocess.run([sys.executable, "-m", "build", *options, "--outdir", into, str(source)], check=True)


#: Said by an environment with mxcore-cuda and without CuPy.
WITHOUT_GPU = """
import importlib.util, subprocess, sys
import mxcore as mx, mxcore_cuda
assert "site-packages" in mxcore_cuda.__file__ and importlib.util.find_spec("cupy") is None
assert mx.num_gpus() == 0
said = subprocess.run([sys.executable, "-m", "mxcore", "info"], capture_output=True, text=True, check=True).stdout
print(*(line.strip() for line in said.splitlines() if "no GPU: " in line) or sys.exit("mxcore info gives no reason"))
try:
    mx.nd.ones(1, ctx=mx.gpu(0))
except mx.MXNetError as e:
    print(e)
else:
    sys.exit("there is a GPU without CuPy")
"""


def install(wheels: list[Path], folder: Path) -> bool:
    """Whether wheels work in a new environment without a GPU."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *wheels], check=True)
    return not subprocess.run([python, "-c", WITHOUT_GPU], cwd=folder).returncode


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
        bad = []
        if "--install" in sys.argv[1:]:
            plugin = ROOT / "plugins" / "cuda_cupy"
            build("--wheel", into=f"{direct}/cuda", source=plugin)
            (cuda,) = Path(direct, "cuda").glob("*.whl")
            files = package_files(plugin, ["mxcore_cuda"])
            bad += [f"the wheel of mxcore-cuda lacks {n}" for n in sorted(files - {*zipfile.ZipFile(cuda).namelist()})]
            if not install([wheels[0], cuda], Path(direct, "env")):
                bad.append("the wheels of mxcore and mxcore-cuda do not work without a GPU")
        sizes = ", ".join(f"{p.name} {p.stat().st_size / 1e6:.1f} MB" for p in (sdist_file, wheels[0]))
    bad += empty_packages(ROOT, packages)
    bad += complaints(package_files(ROOT, packages), wheel, from_tree, sdist)
    print("\n".join(bad) or f"complete: {len(wheel)} files in the wheel; {sizes}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
