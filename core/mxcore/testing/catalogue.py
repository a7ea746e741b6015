"""The catalogue of samples: every operator's uses with inputs and parameters, for programs that cannot import mxcore.

``python -m mxcore.testing.catalogue --out samples.npz`` writes it (`--modules norm rnn` leaves out all others); another program, such as the real MXNet with its old
NumPy, reads it with :class:`Pack`, runs the same calls and packs what it got.
"""
from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from .pack import Pack
from .sample import Distinct, Ints, Sample, Values

__all__ = ["catalogue", "main", "modules"]

#: Drawn inputs are multiples of this, so that they compress, and are the same in every dtype.
GRAIN = 256


def modules() -> Iterator[tuple[str, Any]]:
    """(short name of the module, operator) of all stock operators."""
    from .._core import registry
    from .._core.builtin import OWNER
    from .._core.manager import manager
    from .._core.op import declarations
    from ..ops import MODULES

    manager.load()
    seen: set[int] = set()
    for name in MODULES:
        for op in declarations(import_module(f"mxcore.ops.{name}")):
            if id(op) not in seen and registry.ops.items.get(op.name) is op:
                seen.add(id(op))
                yield name, op
    for name, op in registry.ops.items.items():
        if registry.ops.owners[name] == OWNER and name == op.name:
            yield "builtin", op


def _inputs(sample: Sample, dtype: str) -> list[np.ndarray[Any, Any]]:
    """The sample's inputs; drawn ones rounded to the grain."""
    found = []
    for spec, a in zip(sample.inputs, sample.arrays(dtype)):
        drawn = isinstance(spec, (tuple, Values)) and not isinstance(spec, (Ints, Distinct))
        if drawn and a.dtype.kind == "f":
            a = (np.round(a.astype(np.float64) * GRAIN) / GRAIN).astype(a.dtype)
        found.append(a)
    return found


def _skip(op: Any, sample: Sample) -> str:
    """Why MXNet cannot run this sample; an empty string if it can."""
    if sample.mxnet is True:
        return ""
    return sample.mxnet if isinstance(sample.mxnet, str) else "not the same in MXNet"


def catalogue(only: Collection[str] = ()) -> Pack:
    """All samples of the stock operators.

    Parameters
    ----------
    only : collection of str
        Short names of modules of operators (``'norm'``); all if empty.

    Returns
    -------
    Pack
        Entries with the keys ``module op number skip`` and, where there is nothing to skip, ``params inputs dtypes outs
        shapes train grad_train random tol mutates variables in_place gradient``.
    """
    pack = Pack()
    for module, op in modules():
        for number, sample in enumerate(op.samples if not only or module in only else ()):
            entry: dict[str, Any] = {"module": module, "op": op.name, "number": number, "skip": _skip(op, sample)}
            if not entry["skip"]:
                entry.update(_call(op, sample, pack))
            pack.entries.append(entry)
    return pack


def _call(op: Any, sample: Sample, pack: Pack) -> dict[str, Any]:
    runs = {t: _inputs(sample, t) for t in sample.dtypes}
    first = runs[sample.dtypes[-1]]
    kwargs = dict(sample.params)
    if op.variadic and not op.arg_names:
        kwargs.setdefault(op.count, len(first))
    p = op.parse(kwargs)
    from .._core import infer

    shapes = infer.op_shapes(op, p, [a.shape for a in first])[1]
    return {
        "params": op.parser.strings(p), "inputs": [pack.add(a) for a in first],
        "dtypes": {t: [str(a.dtype) for a in arrays] for t, arrays in runs.items()},
        "outs": {t: [str(np.dtype(d)) for d in infer.op_dtypes(op, p, [a.dtype for a in arrays])[1]] for t, arrays in runs.items()},
        "shapes": [list(s) if infer.known(s) else None for s in shapes],
        # Without workspaces of a training forward, some of MXNet's backwards read what is not there.
        "train": sample.train, "grad_train": sample.train or not op.random, "random": sample.check is not None, "tol": sample.tol, "mutates": list(p._sig.mutates),
        # Inputs that may be variables; the second choice leaves out those that some operator of MXNet's will not have.
        "variables": [[a.dtype.kind == "f" and not isinstance(s, Ints) for a, s in zip(first, sample.inputs)], sample.wants_grad(first)],
        "in_place": p._sig.index["weight"] if op.alias.get("weight") and not op.grad_rule else None, "gradient": bool(op.grad_rule) or op.backward_rule is not None,
    }


def main(args: list[str] | None = None) -> None:
    """Write the catalogue to a file."""
    parser = argparse.ArgumentParser(prog="python -m mxcore.testing.catalogue", description=catalogue.__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--out", required=True, help="the file to write, .npz")
    parser.add_argument("--modules", nargs="*", default=(), help="short names of modules of operators, all if left out")
    options = parser.parse_args(args)
    pack = catalogue(options.modules)
    pack.save(options.out)
    print(f"{len(pack.entries)} samples of {len({e['op'] for e in pack.entries})} operators in {options.out}")


if __name__ == "__main__":
    main()
