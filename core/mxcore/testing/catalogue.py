"""The catalogue of samples: every operator's uses with inputs and parameters, for programs that cannot import mxcore.

``python -m mxcore.testing.catalogue --out samples.npz`` writes it (`--families pooling loss` leaves out all others);
another program, such as the real MXNet with its old NumPy, reads it with :class:`Pack`, runs the same calls and packs
what it got. :func:`stale` says which answers no longer fit.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from ..parameters import strings
from .pack import ASKED, GRAIN, Pack
from .sample import Distinct, Ints, Sample, Values

__all__ = ["PARTLY", "catalogue", "main", "stale", "stock_operators"]

#: What `Sample(mxnet=)` begins with where MXNet's numbers are comparable but for its gradients, or for gradients and
#: written inputs.
PARTLY = ("forward only: ", "outputs only: ")


def stock_operators() -> Iterator[tuple[str, Any]]:
    """(family, operator) of all stock operators."""
    from .._core import tables
    from .._core.manager import manager
    from ..builtin import OWNER
    from ..ops import FAMILIES, declared

    manager.load()
    seen: set[int] = set()
    for name in FAMILIES:
        for op in declared(name):
            if id(op) not in seen and tables.ops.items.get(op.name) is op:
                seen.add(id(op))
                yield name, op
    for name, op in tables.ops.items.items():
        if tables.ops.owners[name] == OWNER and name == op.name:
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


def _skip(sample: Sample) -> str:
    """Why MXNet cannot run this sample; an empty string if it can."""
    if isinstance(sample.mxnet, str):
        return "" if sample.mxnet.startswith(PARTLY) else sample.mxnet
    return "" if sample.mxnet else "not the same in MXNet"


def catalogue(only: Collection[str] = ()) -> Pack:
    """All samples of the stock operators.

    Parameters
    ----------
    only : collection of str
        Families of operators (``'pooling'``); all if empty.

    Returns
    -------
    Pack
        Entries with the keys ``family op number skip`` and, where there is nothing to skip, ``inputs outs shapes
        in_place`` and those of `ASKED`.
    """
    pack = Pack()
    for family, op in stock_operators():
        for number, sample in enumerate(op.samples if not only or family in only else ()):
            entry: dict[str, Any] = {"family": family, "op": op.name, "number": number, "skip": _skip(sample)}
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
    differentiable = (op.grad_rule or op.backward_rule is not None) and sample.mxnet is True
    return {
        "params": strings(op, p),
        "inputs": [pack.add(a) for a in first],
        "dtypes": {t: [str(a.dtype) for a in arrays] for t, arrays in runs.items()},
        "outs": {
            t: [str(np.dtype(d)) for d in infer.op_dtypes(op, p, [a.dtype for a in arrays])[1]]
            for t, arrays in runs.items()
        },
        "shapes": [list(s) if infer.known(s) else None for s in shapes],
        # MXNet can have arrays without elements, and without dimensions, in this mode only.
        "np_shape": any(0 in a.shape or not a.shape for a in first) or any(s == () or 0 in (s or ()) for s in shapes),
        # Without workspaces of a training forward, some of MXNet's backwards read what is not there.
        "train": sample.train,
        "grad_train": sample.train or not op.random,
        "random": sample.check is not None,
        "mutates": [] if str(sample.mxnet).startswith(PARTLY[1]) else list(p._sig.mutates),
        # Inputs that may be variables; the second choice leaves out those that some operator of MXNet's will not have.
        "variables": [
            v
            for v in (
                [a.dtype.kind == "f" and not isinstance(s, Ints) for a, s in zip(first, sample.inputs)],
                sample.wants_grad(first, p._sig.inputs),
            )
            if differentiable and any(v)
        ],
        "in_place": p._sig.index["weight"] if op.alias.get("weight") and not op.grad_rule else None,
    }


def stale(asked: Pack, answers: Mapping[str, Pack]) -> dict[str, list[str]]:
    """Where answers of another program do not fit the catalogue.

    Parameters
    ----------
    asked : Pack
        A catalogue.
    answers : mapping
        Family -> what the other program said about its samples.

    Returns
    -------
    dict
        Family -> ``["<operator> #<number of its sample>: <what differs>", ...]``, for those that do not fit.
    """
    left = {(f, e["op"], e["number"]): (pack, e) for f, pack in answers.items() for e in pack.entries}
    found: dict[str, list[str]] = {}
    for e in asked.entries:
        pack, answer = left.pop((e["family"], e["op"], e["number"]), (asked, {}))
        why = "has no answer" if not answer else _change(asked, e, pack, answer)
        if why:
            found.setdefault(e["family"], []).append(f"{e['op']} #{e['number']}: {why}")
    for family, op, number in left:
        found.setdefault(family, []).append(f"{op} #{number}: there is no such sample")
    return found


def _change(asked: Pack, e: dict[str, Any], pack: Pack, answer: dict[str, Any]) -> str:
    """What differs between a question and the one that was answered."""
    keys = [k for k in ("skip", *(() if e["skip"] else ASKED)) if e[k] != answer.get(k)]
    if keys:
        return f"{keys[0]} is {e[keys[0]]!r}, was {answer.get(keys[0])!r}"
    if not e["skip"]:
        now, then = ([p.get(i) for i in x["inputs"]] for p, x in ((asked, e), (pack, answer)))
        if len(now) != len(then) or not all(
            a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in zip(now, then)
        ):
            return "its inputs are others"
    return ""


def main(args: list[str] | None = None) -> None:
    """Write the catalogue to a file."""
    about = (catalogue.__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m mxcore.testing.catalogue", description=about)
    parser.add_argument("--out", required=True, help="the file to write, .npz")
    parser.add_argument("--families", nargs="*", default=(), help="families of operators, all if left out")
    options = parser.parse_args(args)
    pack = catalogue(options.families)
    pack.save(options.out)
    print(f"{len(pack.entries)} samples of {len({e['op'] for e in pack.entries})} operators in {options.out}")


if __name__ == "__main__":
    main()
