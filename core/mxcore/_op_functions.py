"""The public views of operators: functions, their signatures for ``help()``, and the modules that show them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ._core import tables
from ._core.array import Array
from ._core.errors import MXNetError, error, suggest
from ._core.op import Op
from ._locks import writing
from ._reexports import reexports

__all__ = [
    "FACES",
    "LAST",
    "LAST_OF_SYMBOLS",
    "PREFIXES",
    "docstring",
    "eager_function",
    "mixed_faces",
    "namespace",
    "signature",
    "take_last",
]

#: Classes of arrays that are not ``mx.nd``'s.
FACES: set[type] = set()
#: What MXNet's functions take last: those over arrays, those over symbols.
LAST, LAST_OF_SYMBOLS = ("out", "name"), ("name", "attr", "out")
#: Namespace below ``mx.nd`` and ``mx.sym`` -> prefixes of operator names that it drops.
PREFIXES: dict[str, tuple[str, ...]] = {
    "op": ("",),
    "_internal": ("_", ""),
    "contrib": ("_contrib_",),
    "linalg": ("_linalg_", "linalg_"),
    "image": ("_image_",),
    "random": ("_random_", "_sample_", "random_", "sample_"),
    "sparse": ("_sparse_", ""),
}


def signature(op: Op, last: Sequence[str]) -> inspect.Signature:
    """The Python signature of an operator's function: inputs, parameters, and what comes last (``out``, ``name``)."""
    P = inspect.Parameter
    items: dict[str, inspect.Parameter] = {}
    for s in op.input_slots:
        if s.variadic:
            items[s.name] = P(s.name, P.VAR_POSITIONAL)
        else:
            items[s.name] = P(s.name, P.POSITIONAL_OR_KEYWORD, default=None)
    kind = P.KEYWORD_ONLY if op.variadic else P.POSITIONAL_OR_KEYWORD
    for n, spec in op.params.items():
        if n not in items:
            items[n] = P(n, kind, default=None if spec.required else spec.default)
    for n in last:
        items.setdefault(n, P(n, kind, default=None))
    items["kwargs"] = P("kwargs", P.VAR_KEYWORD)
    return inspect.Signature(list(items.values()))


def docstring(op: Op) -> str:
    """The documentation of an operator's function; parameters that it leaves out follow, with type and default."""
    doc = inspect.cleandoc(op.doc)
    told = {name for line in doc.splitlines() for name in line.partition(" : ")[0].split(", ")}
    lines = [
        f"{n} : {spec!r}" + (f"  {spec.doc}" if spec.doc else "") for n, spec in op.params.items() if n not in told
    ]
    return "\n".join([doc, *(["", "Operator parameters", "-------------------", *lines] if lines else [])])


def places(op: Op) -> int:
    """How many arguments of an operator's function come before its last; endless with any number of inputs."""
    return sys.maxsize if op.variadic else len({*op.input_names, *op.params})


def take_last(op: Op, args: Sequence[Any], kwargs: dict[str, Any], last: Sequence[str] = LAST) -> Sequence[Any]:
    """Move arguments behind inputs and parameters, as ``out`` in ``nd.clip(x, 0, 1, out)``, to `kwargs`."""
    n = places(op)
    if len(args) <= n:
        return args
    if len(args) > n + len(last):
        raise error(
            TypeError,
            f"operator {op.name} takes at most {n + len(last)} arguments "
            f"({', '.join([*signature(op, last).parameters][:-1])}), got {len(args)}",
        )
    for name, value in zip(last, args[n:]):
        if name in kwargs:
            raise error(TypeError, f"operator {op.name}: '{name}' is given twice")
        kwargs[name] = value
    return args[:n]


def eager_function(name: str, op: Op) -> Callable[..., Any]:
    """The function ``mx.nd.<name>``: inputs and parameters by position or name, ``out=`` to write into arrays."""
    call, most = Op.run, places(op)

    def fn(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if x.__class__ in FACES:
                _one_face(name, args, kwargs)
                break
        if len(args) > most:
            args = tuple(take_last(op, args, kwargs))
        if kwargs and (out := kwargs.get("out")) is not None:
            return writing(out, call, op, args, kwargs)
        return call(op, args, kwargs)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = docstring(op)
    fn.__signature__ = signature(op, LAST)  # type: ignore[attr-defined]
    return fn


def _one_face(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Refuse arrays of ``mx.nd`` beside those of another face; these alone give results of their face."""
    given = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (list, tuple)) else (a,))]
    found = [x for x in given if isinstance(x, Array)]
    if len({x.rules for x in found}) > 1:
        raise mixed_faces(name, *found)


def mixed_faces(what: str, *given: Any) -> MXNetError:
    """The error for arrays of ``mx.nd`` where those of ``mx.np`` are needed, or the other way round."""
    kinds = " and ".join(dict.fromkeys(f"mx.{'nd' if x.rules is None else 'np'}.{type(x).__name__}" for x in given))
    rest = "which do not go together" if " and " in kinds else "where arrays of the other kind are needed"
    return error(
        TypeError,
        f"{what}: got {kinds}, {rest}; x.as_np_ndarray() and x.as_nd_ndarray() give the same "
        "memory as an array of the other kind",
    )


def namespace(
    where: dict[str, Any], sub: str, make: Callable[[str, Op], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that shows operators.

    Parameters
    ----------
    where : dict
        The module's globals; functions are cached there until the set of plugins changes.
    sub : str
        A key of :data:`PREFIXES`.
    make : callable
        (name, op) -> function.
    """
    cached: set[str] = set()
    others = reexports(where["__name__"])

    def forget() -> None:
        for n in tuple(cached):  # other threads may be adding to it
            cached.discard(n)  # first: who asks for it in between enters it in both again
            where.pop(n, None)

    tables.on_change.append(forget)

    def getattr_(name: str) -> Any:
        if not name.startswith("__"):
            for prefix in PREFIXES[sub]:
                op = tables.ops.find(prefix + name)
                if op is not None:
                    before, fn = tables.generation[0], make(name, op)
                    fn.__module__ = where["__name__"]  # where pickles find it
                    where[name] = fn
                    cached.add(name)
                    if before != tables.generation[0]:  # it is that of a plugin that may be gone
                        cached.discard(name)
                        where.pop(name, None)
                    return fn
        try:
            return others(name)
        except AttributeError:
            if name.startswith("__"):  # what inspection asks for
                raise
        raise AttributeError(
            f"module {where['__name__']!r} has no attribute {name!r}{suggest(name, dir_())}{tables.why()}"
        )

    def dir_() -> list[str]:
        shown = {*where.get("__all__", ()), *cached}
        for prefix in PREFIXES[sub]:
            for n in tables.ops.names():
                if n.startswith(prefix) and not (prefix == "" and n.startswith("_")):
                    shown.add(n[len(prefix) :])
        return sorted(n for n in shown if n.isidentifier())

    return getattr_, dir_
