"""Kernels for the host: g++ compiles the same sources, with CUDA's names from `emulate.h`."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from mxcore.codecache import CodeCache
from mxcore.plugin import error

from ..sources import FOLDER, Code, Parameter

__all__ = ["FORWARD", "BACKWARD", "SHUFFLED", "Function", "available", "build", "load", "set_order"]

_HERE = Path(__file__).parent
#: Orders in which the threads of a block run.
FORWARD, BACKWARD, SHUFFLED = range(3)

#: Further options of the compiler, for tests with sanitizers; what they make is not kept.
OPTIONS: list[str] = []
CODE = CodeCache("emulated", lambda: [*sorted(_HERE.glob("*.h")), _HERE / "compiler.py"])
_loaded: dict[str, ctypes.CDLL] = {}
_order = FORWARD


@functools.cache
def available() -> str | None:
    """Where the compiler is."""
    return shutil.which(os.environ.get("CXX", "g++"))


@functools.cache
def _version() -> str:
    compiler = available()
    if compiler is None:
        raise error(RuntimeError, "emulated kernels need g++ (or what CXX names), which is not there")
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    if done.returncode or not done.stdout.strip():
        raise error(RuntimeError, f"emulated kernels need g++ (or what CXX names), and {compiler} is none")
    return done.stdout.splitlines()[0]


def build(code: Code) -> bytes:
    """A shared library of a source.

    Raises
    ------
    MXNetError
        (also RuntimeError) with what the compiler says.
    """
    _version()
    with tempfile.TemporaryDirectory(prefix="mxcore-") as folder:
        path = Path(folder) / "kernels.cu"
        path.write_text(code.text)
        command = [
            str(available()), "-x", "c++", "-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-w",
            "-DMX_EMULATE", *(f"-D{d}" for d in code.defines), f"-I{_HERE}", f"-I{_HERE / 'include'}", f"-I{FOLDER}",
            *code.options, *OPTIONS, str(path), "-o", f"{path}.so",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise error(RuntimeError, f"{code.label}: g++ says\n{done.stderr}{code.hint}")
        return Path(f"{path}.so").read_bytes()


def load(code: Code) -> ctypes.CDLL:
    """The library of a source, compiled or from the cache."""
    name = f"{Path(code.name).stem}-{code.dtype}-{_key(code)}.code"
    found = _loaded.get(name)
    if found is None:
        found = _loaded.setdefault(name, _opened(build(code)) if OPTIONS else _kept(name, code))
        if hasattr(found, "mx_order"):  # not in what has no kernels
            found.mx_order(_order)
    return found


def _kept(name: str, code: Code) -> ctypes.CDLL:
    """The library of an entry of the cache; compiled anew where there is none that this machine can load."""
    content = CODE.load(name)
    if content is not None:
        try:
            return _opened(content)
        except OSError:  # whole, but of a machine with another processor or other libraries
            pass
    content = build(code)
    CODE.save(name, content)
    return _opened(content)


def _key(code: Code) -> str:
    return hashlib.sha256(f"{code.digest}{code.options}{_version()}{platform.machine()}".encode()).hexdigest()[:32]


def _opened(content: bytes) -> ctypes.CDLL:
    """A library from memory that has been checked, not from a file that may have changed since."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(
            "mxcore-kernels"
        )  # stays open: the loader knows libraries by name, and would take it again
        try:
            with open(fd, "wb", closefd=False) as f:
                f.write(content)
            return ctypes.CDLL(f"/proc/self/fd/{fd}")
        except OSError:
            os.close(fd)
            raise
    with tempfile.TemporaryDirectory(prefix="mxcore-") as folder:
        path = Path(folder) / "kernels.so"
        path.write_bytes(content)
        return ctypes.CDLL(str(path))


def set_order(order: int) -> None:
    """Let threads run in another order, in all kernels from now on."""
    global _order
    _order = order
    for library in _loaded.values():
        if hasattr(library, "mx_order"):
            library.mx_order(order)


class Function:
    """A kernel of a library, with its name."""

    __slots__ = ("name", "call", "parameters")

    def __init__(self, code: Code, name: str, parameters: tuple[Parameter, ...] | None = None) -> None:
        self.name, self.call = name, getattr(load(code), f"mx_run_{name}")
        self.call.restype = None
        self.parameters = code.signatures[name].parameters if parameters is None else parameters
