"""What the checks of symbols share: reading their arguments, and binding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import error
from ..context import Context, current_context
from ..symbol import Group, Symbol
from .tolerances import host

FLOATS = ("float16", "float32", "float64")


def context(ctx: Any) -> Context:
    """The context given, or the default one."""
    return current_context() if ctx is None else Context(ctx)


def check_dtype(dtype: Any, what: str, asnumpy: bool = True) -> Any:
    """``"asnumpy"`` or a NumPy dtype that computations are made in."""
    if asnumpy and isinstance(dtype, str) and dtype == "asnumpy":
        return dtype
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.name not in FLOATS:
        raise error(
            AssertionError,
            f"{what}: dtype must be {', '.join(FLOATS)}{' or asnumpy' if asnumpy else ''}, got {dtype!r}",
        )
    return found


def to_array(value: Any, ctx: Any, dtype: Any) -> Any:
    """An NDArray of a location: sparse arrays stay sparse; with "asnumpy" dtypes stay too."""
    if isinstance(value, nd.NDArray):
        made = value if dtype == "asnumpy" else value.astype(dtype)
        return made.as_in_context(ctx).copy()
    value = np.asarray(value)
    return nd.array(value, ctx=ctx, dtype=value.dtype if dtype == "asnumpy" else dtype)


def named(names: Sequence[str], values: Any, what: str) -> dict[str, Any]:
    """Values by name, from a list in the order of the names or a dict that has all of them."""
    if isinstance(values, Mapping):
        if set(values) != set(names):
            missing, strange = sorted(set(names) - set(values)), sorted(set(values) - set(names))
            raise error(
                ValueError,
                f"{what}: names do not match the symbol's {list(names)}:"
                + (f" {missing} missing" if missing else "")
                + (f" {strange} unknown" if strange else ""),
            )
        return {n: values[n] for n in names}
    if isinstance(values, (nd.NDArray, np.ndarray)) or not isinstance(values, Iterable):
        raise error(ValueError, f"{what}: a list or dict of arrays is needed, got {type(values).__name__}")
    values = list(values)
    if len(values) != len(names):
        raise error(ValueError, f"{what}: {len(values)} arrays for {len(names)} names {list(names)}")
    return dict(zip(names, values))


def parse(sym: Symbol, location: Any, aux_states: Any, ctx: Any, dtype: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments, auxiliary states) of a symbol as new NDArrays by name."""
    args = named(sym.list_arguments(), location, "location")
    aux_names = sym.list_auxiliary_states()
    aux = named(aux_names, {} if aux_states is None and not aux_names else aux_states or {}, "aux_states")
    return tuple({n: to_array(v, ctx, dtype) for n, v in d.items()} for d in (args, aux))  # type: ignore[return-value]


def requests(names: Sequence[str], grad_req: Any) -> dict[str, str]:
    """'write', 'add' or 'null' by name, from one for all, a list or a dict."""
    if isinstance(grad_req, str):
        found = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, Mapping):
        strange = sorted(set(grad_req) - set(names))
        if strange:
            raise error(KeyError, f"grad_req: the symbol has no arguments {strange}, only {list(names)}")
        found = {n: grad_req.get(n, "null") for n in names}
    else:
        found = named(names, grad_req, "grad_req")
    wrong = {n: r for n, r in found.items() if r not in ("write", "add", "null")}
    if wrong:
        raise error(ValueError, f"grad_req must be 'write', 'add' or 'null', got {wrong}")
    return found


def start_gradients(args: Mapping[str, Any], names: Iterable[str], stypes: Mapping[str, str] | None) -> dict[str, Any]:
    """Gradient arrays that hold random numbers, so that what is not written, or written instead of added, shows."""
    made = {}
    for n in names:
        a = args[n]
        grad = nd.array(np.random.normal(size=a.shape), ctx=a.context, dtype=a.dtype)
        stype = (stypes or {}).get(n, "default")
        made[n] = grad if stype == "default" else grad.tostype(stype)
    return made


def expected_gradient(value: Any, start: np.ndarray[Any, Any], req: str) -> Any:
    """What must stand in a gradient array that held `start`, if the gradient is `value`."""
    return {"write": value, "add": start + value if req == "add" else None, "null": start}[req]


def as_symbol(what: Any, location: Any, aux_states: Any) -> tuple[Symbol, Any, Any]:
    """(symbol, location, aux_states) of a symbol, a CachedOp or a HybridBlock.

    The parameters of a block come from the block, its inputs from `location`, where parameters may be given anew.
    """
    if isinstance(what, Symbol):
        return what, location, aux_states
    if isinstance(getattr(what, "symbol", None), Symbol):
        return what.symbol, location, aux_states
    from ..gluon import HybridBlock

    if not isinstance(what, HybridBlock):
        raise error(TypeError, f"a Symbol, CachedOp or HybridBlock is needed, got {type(what).__name__}")
    return _of_block(what, location, aux_states)


def _of_block(block: Any, location: Any, aux_states: Any) -> tuple[Symbol, Any, Any]:
    from .. import symbol

    params = block.collect_params()
    if isinstance(location, Mapping):
        inputs = {n: v for n, v in location.items() if n not in params}
    else:
        values = list(location)
        inputs = dict(zip(["data"] if len(values) == 1 else [f"data{i}" for i in range(len(values))], values))
    waiting = any(p._data is None for p in params.values())
    if waiting:  # the first call tells the shapes of deferred parameters
        block(*(nd.array(host(v)) for v in inputs.values()))
    out = block(*(symbol.var(n) for n in inputs))
    sym = Group(list(out)) if isinstance(out, (list, tuple)) else out
    have = {n: p.data() for n, p in params.items()}
    given = {**have, **inputs, **(location if isinstance(location, Mapping) else {})}
    aux = {n: have[n] for n in sym.list_auxiliary_states()}
    aux.update(
        aux_states
        if isinstance(aux_states, Mapping)
        else named(list(aux), aux_states, "aux_states")
        if aux_states
        else {}
    )
    return sym, {n: given[n] for n in sym.list_arguments() if n in given}, aux
