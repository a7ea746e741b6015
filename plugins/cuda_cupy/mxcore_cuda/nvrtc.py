"""NVRTC, by its C interface: kernels compiled to cubins, on any machine, for any architecture.

Always to cubins: the intermediate code of an NVRTC that is newer than the driver would be refused. Nothing is
approximated: no fast math, and denormals stay.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mxcore.codecache import CodeCache
from mxcore.plugin import error

from .libraries import library
from .sources import FOLDER, Code
from .user_sources import UserCode

__all__ = ["Usage", "available", "compile_code", "compile_user", "cubin", "options", "usage", "version"]

CODE = CodeCache("cuda", lambda: [Path(__file__)])


@cache
def _library() -> ctypes.CDLL:
    return library("nvrtc", "NVRTC, which compiles kernels")


def available() -> bool:
    """Whether there is an NVRTC."""
    try:
        _library()
    except RuntimeError:
        return False
    return True


@cache
def version() -> tuple[int, int]:
    """The version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return major.value, minor.value


@cache
def _headers() -> str | None:
    """Where CUDA's own headers are, which half precision needs."""
    from cuda.pathfinder import find_nvidia_header_directory

    found: str | None = find_nvidia_header_directory("cudart")
    return found


def options(code: Code, architecture: str) -> list[str]:
    """What NVRTC is told, for an architecture such as ``'sm_90'``."""
    headers = _headers()
    include = [f"-I{headers}"] if headers else []
    if isinstance(code, UserCode):
        standard = () if any("-std" in o for o in code.options) else ("-std=c++17",)
        return [f"-arch={architecture}", *standard, *code.options, *include]
    found = [f"-arch={architecture}", "-std=c++17", "-default-device", "--ptxas-options=-v", f"-I{FOLDER}"]
    return [*found, *include, *(f"-D{d}" for d in code.defines)]


def cubin(code: Code, architecture: str) -> bytes:
    """The compiled code of a source, from the cache if it is there.

    Raises
    ------
    MXNetError
        (also RuntimeError) if NVRTC refuses the source, with what it says, line by line.
    """
    told = [o for o in options(code, architecture) if not o.startswith("-I")]
    key = hashlib.sha256("\0".join((code.digest, *told, str(version()))).encode()).hexdigest()[:32]
    name = f"{Path(code.name).stem}-{code.dtype}-{architecture}-{key}.code"
    return CODE.made(name, lambda: compile_code(code, architecture)[0])


def compile_code(code: Code, architecture: str) -> tuple[bytes, str]:
    """The compiled code of a source, and the log of the compiler."""
    return _compiled(code, architecture, ())[:2]


def compile_user(code: UserCode, architecture: str) -> tuple[bytes, dict[str, str]]:
    """The compiled code of a user's source, and the names in it of what it exports."""
    binary, _, names = _compiled(code, architecture, code.exports)
    return binary, names


def _compiled(code: Code, architecture: str, exports: Sequence[str]) -> tuple[bytes, str, dict[str, str]]:
    nvrtc, program = _library(), ctypes.c_void_p()
    _check(
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.text.encode(), f"{code.name}".encode(), 0, None, None),
        "nvrtcCreateProgram",
    )
    try:
        for name in exports:
            _check(nvrtc.nvrtcAddNameExpression(program, name.encode()), f"nvrtcAddNameExpression({name!r})")
        told = [o.encode() for o in options(code, architecture)]
        status = nvrtc.nvrtcCompileProgram(program, len(told), (ctypes.c_char_p * len(told))(*told))
        log = _fetched(nvrtc, "ProgramLog", program).rstrip(b"\0").decode(errors="replace")
        if status:
            raise error(RuntimeError, f"{code.label}, {architecture}: NVRTC says\n{log}")
        names = {name: _lowered(nvrtc, program, name) for name in exports}
        return _fetched(nvrtc, "CUBIN", program), log, names
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _lowered(nvrtc: Any, program: Any, name: str) -> str:
    found = ctypes.c_char_p()
    _check(nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found)), f"nvrtcGetLoweredName({name!r})")
    return str((found.value or b"").decode())


def _fetched(nvrtc: Any, what: str, program: Any) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"nvrtcGet{what}Size")
    memory = ctypes.create_string_buffer(max(size.value, 1))
    _check(getattr(nvrtc, f"nvrtcGet{what}")(program, memory), f"nvrtcGet{what}")
    return memory.raw[: size.value]


def _check(status: int, name: str) -> None:
    if status:
        said = _library().nvrtcGetErrorString
        said.restype = ctypes.c_char_p
        raise error(RuntimeError, f"{name}: {said(status).decode()}")


class Usage(NamedTuple):
    """What a compiled kernel takes: registers, bytes spilled, bytes of shared memory."""

    registers: int
    spilled: int
    shared: int


def usage(log: str) -> dict[str, Usage]:
    """What the kernels of a log take, by name."""
    found = {}
    for name, text in re.findall(r"Compiling entry function '(\w+)'.*?\n(.*?)(?=Compiling entry|\Z)", log, re.S):
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", text)]
        shared = re.search(r"(\d+) bytes smem", text)
        registers = re.search(r"Used (\d+) registers", text)
        found[name] = Usage(int(registers[1]) if registers else 0, sum(spills), int(shared[1]) if shared else 0)
    return found
