"""From LLVM's language to object files, and from those to addresses."""

from __future__ import annotations

import contextlib
import functools
import json
import platform
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Uncollected, Uninterrupted

from ..loading import numba
from ..locks import once

__all__ = ["Object", "early_passes", "identity", "load", "machine", "optimise", "parsed"]


class Object(NamedTuple):
    """Code that can be loaded: what it is called by, what it asks for by name, and the file that a linker takes."""

    entry: str
    needs: tuple[str, ...]
    code: bytes

    def packed(self) -> bytes:
        """As one row of bytes."""
        return json.dumps([self.entry, self.needs]).encode() + b"\n" + self.code

    @classmethod
    def unpacked(cls, content: bytes) -> Object | None:
        """From what :meth:`packed` gave; None of anything else."""
        head, _, code = content.partition(b"\n")
        try:
            entry, needs = json.loads(head)
            return cls(entry, tuple(needs), code)
        except (ValueError, TypeError):
            return None


@functools.cache
@once
def binding() -> Any:
    """llvmlite, ready for this machine."""
    with Uninterrupted(), Uncollected():  # as for Numba
        import llvmlite.binding as llvm

    with contextlib.suppress(RuntimeError):  # newer ones do it themselves, and say so
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # What code asks for that is no function of the process.
    for kind in (np.ndarray, np.int64, np.float64, np.float32):
        llvm.add_symbol(f"mxcore_type_{kind.__name__}", id(kind))
    return llvm


@functools.cache
def identity() -> str:
    """What code is made for: kind of system, processor and its abilities, version of LLVM."""
    llvm = binding()
    return "|".join((llvm.get_process_triple(), llvm.get_host_cpu_name(), _features(), str(llvm.llvm_version_info)))


def _features() -> str:
    try:
        features: str = binding().get_host_cpu_features().flatten()
    except RuntimeError:
        return ""
    return features


@functools.cache
def machine() -> Any:
    """The processor of this machine as LLVM knows it; the choices are Numba's, so that code is the same."""
    return _machine(binding().get_host_cpu_name(), _features())


def _machine(cpu: str, features: str) -> Any:
    llvm = binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    reloc = "static" if target.name.startswith("x86") else "pic" if target.name.startswith("ppc") else "default"
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
    )


@functools.cache
def _any_machine() -> Any:
    """What all processors of this kind have."""
    return _machine("", "")


def early_passes() -> Any:
    """A builder of passes that leave to :func:`optimise` whatever depends on the processor.

    How many numbers a vector holds decides in which order a sum is added up: code that was brought as far as this on
    one machine computes, on any other, what is compiled there.
    """
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    return llvm.create_pass_builder(_any_machine(), options)


@functools.cache
def _engine() -> Any:
    llvm = binding()
    # Code lies in one piece of memory on processors whose calls do not reach far.
    piecewise = platform.machine().lower() in ("aarch64", "arm64")
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine(), use_lmm=piecewise)


def optimise(module: Any, entry: str, level: int = 3) -> Object:
    """The code of a parsed module, of which nothing but the entry can be called from outside.

    Parameters
    ----------
    module : llvmlite.binding.ModuleRef
    entry : str
        The name of a function; no other code may have it.
    level : int
        3 for loops over data, 1 for what is called around them.
    """
    llvm, tm = binding(), machine()
    for f in (*module.functions, *module.global_variables):
        if not f.is_declaration and f.name != entry and not f.name.startswith("llvm."):
            f.linkage = "internal"
    module.triple, module.data_layout = llvm.get_process_triple(), str(tm.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization, options.slp_vectorization = level > 1, False
    builder = llvm.create_pass_builder(tm, options)
    builder.getModulePassManager().run(module, builder)
    needs = {f.name for f in (*module.functions, *module.global_variables) if f.is_declaration}
    return Object(entry, tuple(sorted(n for n in needs if not n.startswith("llvm."))), tm.emit_object(module))


def parsed(module: Any, *libraries: bytes) -> Any:
    """What llvmlite's builders wrote, together with what it calls (bitcode), as LLVM has it."""
    llvm = binding()
    found = llvm.parse_assembly(str(module))
    for library in libraries:
        found.link_in(llvm.parse_bitcode(library))
    found.verify()
    return found


@functools.cache
def _bring_numbas_functions() -> None:
    """Let code call what Numba brings along, as the gamma function."""
    with contextlib.suppress(ImportError, AttributeError):
        numba()
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()


_loaded: dict[str, int] = {}


@once
def load(found: Object) -> int | None:
    """The address of the entry; None where this process lacks what the code asks for."""
    if found.entry in _loaded:
        return _loaded[found.entry]
    llvm, engine = binding(), _engine()  # which shows it the functions of this process
    if any(llvm.address_of_symbol(n) is None for n in found.needs):
        _bring_numbas_functions()
        if any(llvm.address_of_symbol(n) is None for n in found.needs):
            return None
    engine.add_object_file(llvm.ObjectFileRef.from_data(found.code))
    engine.finalize_object()
    address: int = engine.get_function_address(found.entry)
    _loaded[found.entry] = address
    return address
