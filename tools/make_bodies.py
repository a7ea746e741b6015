"""Bring the bodies of everyday kernels as far as LLVM's language: mxcore_cpu/native/bodies.x86_64-linux.

    python tools/make_bodies.py          anew, by this Python and its Numba
    python tools/make_bodies.py --add    keys of this Python for bodies that are there, whose sources are the same

Numba reads Python's own code, which each version of Python writes otherwise, and so do the stamps of sources: run it by
one version, then with ``--add`` by the others that are supported. Whoever changes a kernel runs it again; a body whose
source has changed since is of no use, and Numba compiles that kernel as it does all others. A test tells.

Which kernels everyday use needs is the processor's affair as well: what oneDNN is left with AVX2 and with AVX-512 is
asked for, whichever of them this machine has.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from typing import Any

os.environ["MXCORE_CACHE_DIR"] = tempfile.mkdtemp()  # nothing is compiled yet
os.environ["MXCORE_BODIES"] = "0"
os.environ["MXCORE_COMPILE"] = "wait"

from mxcore.cli import warm
from mxcore_cpu import jit
from mxcore_cpu.fused import scalars
from mxcore_cpu.native import kernels, shipped
from mxcore_cpu.native.code import binding, machine
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, library


class Recorder:
    """What was asked for, and what Numba made of it."""

    def __init__(self) -> None:
        self.asked: tuple[str, str] | None = None
        #: What a body is of -> its keys (there should be one), and the body.
        self.found: dict[str, tuple[set[str], bytes]] = {}

    def find(self, parts: Any, stamp: str | None) -> None:
        """In the place of `shipped.find`: what is asked for will be made next."""
        self.asked = None if stamp is None else (json.dumps(list(parts)), shipped.key_of(parts, stamp))

    def keep(self, body: bytes) -> None:
        """Keep what was made."""
        if self.asked is not None:
            label, key = self.asked
            self.found.setdefault(label, (set(), body))[0].add(key)

    def module(self, make: Any, words: Any, name: str) -> Any:
        """In the place of `kernels.kernel_module`."""
        module = kernels.kernel_module(make, words, name)
        if module is not None:
            self.keep(stripped(binding().parse_bitcode(module.as_bitcode()), name))
        return module

    def scalar(self, fn: str, types: Any) -> bytes:
        """In the place of what compiles a function of one or two numbers."""
        body = self.compile(fn, types)
        self.keep(body)
        return body

    def __enter__(self) -> Recorder:
        self.compile = scalars._compile
        shipped.find, jit.kernel_module, scalars._compile = self.find, self.module, self.scalar
        return self

    def __exit__(self, *exc: Any) -> None:
        pass  # the process ends with it


def stripped(module: Any, name: str) -> bytes:
    """A module without what its entry does not reach."""
    llvm = binding()
    module.get_function(name).name = shipped.ENTRY
    for f in (*module.functions, *module.global_variables):
        if not f.is_declaration and f.name != shipped.ENTRY and not f.name.startswith("llvm."):
            f.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes.run(module, llvm.create_pass_builder(machine(), options))
    return module.as_bitcode()


#: What oneDNN says of a processor; to it much of what it could do is left.
PROCESSORS = {"AVX2": ISA_AVX2, "AVX-512": ISA_AVX512}


def needed(processor: str) -> dict[str, tuple[set[str], bytes]]:
    """What everyday use needs there: labels with keys and body."""
    lib = library()
    if lib is None:
        raise SystemExit("oneDNN, which everyday use leaves much to, is not there: see `mxcore info`")
    lib.isa = PROCESSORS[processor]
    with Recorder() as recorder:
        warm.main(argparse.Namespace(model=None, shape=(), train=True, dtype="float32"))
    return recorder.found


def apart(processor: str) -> dict[str, tuple[set[str], bytes]]:
    """The same by a process of its own: this one would not ask again for what it has."""
    done = subprocess.run([sys.executable, __file__, "--processor", processor], stdout=subprocess.PIPE, check=True)
    found: dict[str, tuple[set[str], bytes]] = pickle.loads(done.stdout)
    return found


def main() -> int:
    """Compile what everyday use needs, and write its bodies."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--add", action="store_true", help="add this Python's keys to the bodies that are there")
    parser.add_argument("--processor", choices=PROCESSORS, help="print what it needs, for the tool itself")
    args = parser.parse_args()
    if args.processor:
        out = sys.stdout.buffer
        sys.stdout = sys.stderr
        out.write(pickle.dumps(needed(args.processor)))
        return 0
    add, merged = args.add, dict[str, tuple[set[str], bytes]]()
    for processor in PROCESSORS:
        for label, (made, body) in apart(processor).items():
            merged.setdefault(label, (set(), body))[0].update(made)
    keys: dict[str, int] = {}
    labels: list[str] = []
    bodies: list[bytes] = []
    if add:
        head, bodies = shipped.unpacked(shipped.FILE.read_bytes())
        keys, labels = head["keys"], head["labels"]
    missed = []
    for label, (made, body) in sorted(merged.items()):
        if len(made) > 1:
            print(f"several kernels are called {label}; none is kept", file=sys.stderr)
            continue
        if label not in labels:
            if add:
                missed.append(label)
                continue
            labels.append(label)
            bodies.append(body)
        keys[made.pop()] = labels.index(label)
    content = shipped.packed({"keys": keys, "labels": labels}, bodies)
    shipped.FILE.write_bytes(content)
    print(f"{len(bodies)} bodies, {len(keys)} keys, {len(content) >> 10} KB")
    for label in missed:
        print(f"no body is there for {label}", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
