"""Symbols: what they compute, and how fast."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._core.graph import topo
from ..base import error
from . import _binding as binding
from .comparing import assert_almost_equal
from .tolerances import get_tols, host

__all__ = [
    "check_speed",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "same_symbol_structure",
    "simple_forward",
]


def simple_forward(sym: Any, ctx: Any = None, is_train: bool = False, **inputs: Any) -> Any:
    """Compute a symbol from NumPy arrays to NumPy arrays, in float32.

    Parameters
    ----------
    sym : Symbol
    ctx : Context, optional
    is_train : bool
    **inputs : array_like
        Every argument by name.

    Returns
    -------
    numpy.ndarray or list of these
        The array itself if there is one output.

    >>> import mxcore as mx
    >>> simple_forward(mx.sym.Variable("x") * 2, x=np.array([1, 2])).tolist()
    [2.0, 4.0]
    """
    ctx = binding.context(ctx)
    args = {n: nd.array(v, ctx=ctx) for n, v in binding.named(sym.list_inputs(), inputs, "simple_forward").items()}
    aux = {n: args.pop(n) for n in sym.list_auxiliary_states()}
    executor = sym.bind(ctx, args, grad_req="null", aux_states=aux)
    executor.forward(is_train=is_train)
    outputs = [y.asnumpy() for y in executor.outputs]
    return outputs[0] if len(outputs) == 1 else outputs


def _expected(names: Sequence[str], values: Any, what: str) -> list[tuple[str, Any]]:
    """(name, value) of what is given, which may be less than there is."""
    if isinstance(values, Mapping):
        strange = sorted(set(values) - set(names))
        if strange:
            raise error(KeyError, f"{what}: {strange} unknown, the symbol has {list(names)}")
        return [(n, values[n]) for n in names if n in values]
    values = list(values)
    if len(values) > len(names):
        raise error(ValueError, f"{what}: {len(values)} arrays for {len(names)} names {list(names)}")
    return [(n, v) for n, v in zip(names, values) if v is not None]


def check_symbolic_forward(
    sym: Any,
    location: Any,
    expected: Any,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Any = None,
    ctx: Any = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[Any]:
    """Check the outputs of a symbol, in predict mode.

    Parameters
    ----------
    sym : Symbol
    location : list or dict of str to array_like
        Values of all arguments, in their order or by name; sparse arrays stay sparse.
    expected : list or dict of str to array_like
        The outputs, in their order or by name; those that are not given are not compared.
    rtol, atol : float, or dict of dtype to float, optional
        Tolerances; see `default_rtols` and `default_atols`.
    aux_states : list or dict of str to array_like, optional
    ctx : Context, optional
    equal_nan : bool
        NaN equals NaN.
    dtype : {float16, float32, float64, 'asnumpy'}
        What to compute in; 'asnumpy' leaves each array its own dtype.

    Returns
    -------
    list of NDArray
        The outputs.

    Raises
    ------
    AssertionError
        If an output differs.
    MXNetError
        (also ValueError) if names do not fit the symbol; (also KeyError) if there is no such output.

    Examples
    --------
    >>> import mxcore as mx
    >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    >>> outputs = check_symbolic_forward(x * y, [np.array([1, 2]), np.array([3, 4])], [np.array([3, 8])])
    """
    dtype, ctx = binding.check_dtype(dtype, "check_symbolic_forward"), binding.context(ctx)
    args, aux = binding.parse(sym, location, aux_states, ctx, dtype)
    names = sym.list_outputs()
    pairs = _expected(names, expected, "expected")
    executor = sym.bind(ctx, args, grad_req="null", aux_states=aux)
    executor.forward(is_train=False)
    outputs = dict(zip(names, executor.outputs))
    for n, value in pairs:
        assert_almost_equal(value, outputs[n], rtol, atol, (f"EXPECTED_{n}", f"FORWARD_{n}"), equal_nan=equal_nan)
    return list(executor.outputs)


def check_symbolic_backward(
    sym: Any,
    location: Any,
    out_grads: Any,
    expected: Any,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Any = None,
    grad_req: Any = "write",
    ctx: Any = None,
    grad_stypes: Mapping[str, str] | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> dict[str, Any]:
    """Check the gradients of a symbol.

    Parameters
    ----------
    sym : Symbol
    location : list or dict of str to array_like
        Values of all arguments, in their order or by name; sparse arrays stay sparse.
    out_grads : None, NDArray, or list or dict of str to array_like
        Gradients of the outputs, in their order or by name; None for losses.
    expected : list or dict of str to array_like
        The gradients, in the order of the arguments or by name. Those that are not given, or None, are not asked for.
    rtol, atol : float, or dict of dtype to float, optional
        Tolerances; see `default_rtols` and `default_atols`.
    aux_states : list or dict of str to array_like, optional
    grad_req : {'write', 'add', 'null'}, or list or dict of str to these
        Gradient arrays hold random numbers first: 'add' must add to them, 'null' must leave them.
    ctx : Context, optional
    grad_stypes : dict of str to str, optional
        Storage types of gradients.
    equal_nan : bool
        NaN equals NaN.
    dtype : {float16, float32, float64, 'asnumpy'}
        What to compute in; 'asnumpy' leaves each array its own dtype.

    Returns
    -------
    dict of str to NDArray
        What stands in the gradient arrays then.

    Raises
    ------
    AssertionError
        If a gradient differs.
    MXNetError
        (also ValueError, KeyError) if names do not fit the symbol.

    Examples
    --------
    >>> import mxcore as mx
    >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    >>> a, b = np.array([1, 2]), np.array([3, 4])
    >>> grads = check_symbolic_backward(x * y, [a, b], [np.ones(2)], [b, a])
    """
    dtype, ctx = binding.check_dtype(dtype, "check_symbolic_backward"), binding.context(ctx)
    args, aux = binding.parse(sym, location, aux_states, ctx, dtype)
    wanted = dict(_expected(list(args), expected, "expected"))
    all_reqs = binding.requests(list(args), grad_req)
    reqs = {n: all_reqs[n] for n in wanted}
    grads = binding.start_gradients(args, wanted, grad_stypes)
    starts = {n: host(g).copy() for n, g in grads.items()}
    executor = sym.bind(ctx, args, args_grad=grads, grad_req={**dict.fromkeys(args, "null"), **reqs}, aux_states=aux)
    executor.forward(is_train=True)
    executor.backward(_heads(sym, executor, out_grads))
    for n, value in wanted.items():
        got, value = grads[n], host(value)
        should = binding.expected_gradient(value, starts[n], reqs[n])
        tols = (0, 0) if reqs[n] == "null" else get_tols(value, got, rtol, atol)
        names = (f"EXPECTED_{n}", f"BACKWARD_{n}")
        assert_almost_equal(should, got, tols[0], tols[1], names, equal_nan=equal_nan)
    return grads


def _heads(sym: Any, executor: Any, out_grads: Any) -> Any:
    """Gradients of the outputs as arrays beside them."""
    if out_grads is None:
        return None
    if isinstance(out_grads, (nd.NDArray, np.ndarray)):
        out_grads = [out_grads]
    given = binding.named(sym.list_outputs(), out_grads, "out_grads")
    return [
        None
        if g is None
        else g.astype(y.dtype).as_in_context(y.context)
        if isinstance(g, nd.NDArray)
        else nd.array(g, ctx=y.context, dtype=y.dtype)
        for g, y in zip(given.values(), executor.outputs)
    ]


def check_speed(
    sym: Any,
    location: Any = None,
    ctx: Any = None,
    N: int = 20,
    grad_req: Any = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Measure a symbol.

    Parameters
    ----------
    sym : Symbol
    location : dict of str to array_like, optional
        Values of arguments; random ones by default, for which `kwargs` has shapes.
    ctx : Context, optional
    N : int
        How often to run it; one run more, before, is not counted.
    grad_req : str, or list or dict of str to str, optional
        By default 'write'.
    typ : {'whole', 'forward'}
        Forward and backward, or forward in predict mode only.
    **kwargs : tuple of int
        Shapes of arguments.

    Returns
    -------
    float
        Seconds a run.

    >>> import mxcore as mx
    >>> check_speed(mx.sym.exp(mx.sym.Variable("x")), N=2, x=(2, 3)) > 0
    True
    """
    if typ not in ("whole", "forward"):
        raise error(ValueError, f"check_speed: typ must be 'whole' or 'forward', got {typ!r}")
    if location is not None and not isinstance(location, Mapping):
        raise error(
            AssertionError, f"check_speed: location must be a dict of names to arrays, got {type(location).__name__}"
        )
    ctx, values = binding.context(ctx), {n: host(v) for n, v in (location or {}).items()}
    executor = sym.simple_bind(ctx, grad_req=grad_req or "write", **{n: v.shape for n, v in values.items()}, **kwargs)
    for n, target in executor.arg_dict.items():
        target[:] = values[n] if n in values else np.random.normal(size=target.shape)
    whole = typ == "whole"

    def run() -> None:
        executor.forward(is_train=whole)
        if whole:
            executor.backward(heads)

    heads = None
    if whole:
        executor.forward(is_train=True)
        heads = [y.copy() for y in executor.outputs]
    run()
    nd.waitall()
    start = time.perf_counter()
    for _ in range(N):
        run()
    nd.waitall()
    return (time.perf_counter() - start) / N


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Whether two graphs have the same operators in the same order; names and parameters do not matter.

    >>> import mxcore as mx
    >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    >>> same_symbol_structure(x + x, y + y), same_symbol_structure(x + x, x * x)
    (True, False)
    """
    one, two = ([None if n.op is None else n.op.name for n in topo(s._heads)] for s in (sym1, sym2))
    return one == two
