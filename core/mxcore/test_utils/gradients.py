"""Gradients against difference quotients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._core.graph import topo
from ..base import MXNetError, error
from ..testing.keys import get_state, set_state
from . import _binding as binding
from .comparing import assert_almost_equal
from .tolerances import default_numeric_eps, get_tols, host

__all__ = ["check_numeric_gradient", "numeric_grad"]

#: Steps on the way from one point to the other are so many units in the last place apart, at worst.
_ROUNDINGS = 8


def numeric_grad(
    executor: Any,
    location: Any,
    aux_states: Any = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> dict[str, Any]:
    """Gradients of the sum of an executor's first output, by central differences.

    Parameters
    ----------
    executor : Executor
        Computes in the dtypes of its arguments; float64 gives by far the better quotients.
    location : list or dict of str to numpy.ndarray
        Values of all arguments, which the executor has again afterwards.
    aux_states : list or dict of str to numpy.ndarray, optional
        Values that the auxiliary states have before every computation.
    eps : float
        The step between the two points of a quotient.
    use_forward_train : bool
        Compute in training mode.
    dtype : dtype
        Of the result.

    Returns
    -------
    dict of str to numpy.ndarray
        Zeros for arguments that are integers.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.array([1.0, 2.0], dtype="float64")
    >>> executor = mx.sym.square(mx.sym.Variable("x")).bind(mx.cpu(), {"x": x})
    >>> numeric_grad(executor, {"x": x.asnumpy()})["x"].round(3).tolist()
    [2.0, 4.0]
    """
    args = binding.named(list(executor.arg_dict), location, "location")
    aux = None if aux_states is None else binding.named(list(executor.aux_dict), aux_states, "aux_states")

    def change(right: Sequence[Any], left: Sequence[Any]) -> float:
        return float((right[0] - left[0]).sum())

    found = _differences(executor, args, aux, eps, use_forward_train, change)
    return {n: g.astype(dtype) for n, g in found.items()}


def _differences(
    executor: Any,
    args: Mapping[str, Any],
    aux: Mapping[str, Any] | None,
    eps: float,
    train: bool,
    change: Callable[[Sequence[Any], Sequence[Any]], float],
    names: Sequence[str] | None = None,
    random: bool = True,
) -> dict[str, Any]:
    """Difference quotients in float64 by argument; `change` is the difference of two lists of outputs, a number."""
    arg_dict, aux_dict = executor.arg_dict, executor.aux_dict
    keys = get_state() if random else None
    for n, v in args.items():
        arg_dict[n][:] = _like(host(v), arg_dict[n])

    def outputs() -> list[Any]:
        for n, v in (aux or {}).items():
            aux_dict[n][:] = v
        if keys is not None:  # what is drawn at random is the same at both points
            set_state(keys)
        executor.forward(is_train=train)
        return [np.array(y.asnumpy(), np.float64) for y in executor.outputs if np.dtype(y.dtype).kind != "b"]

    found = {}
    for n in names if names is not None else list(args):
        target = arg_dict[n]
        kind = np.dtype(target.dtype)
        grad = np.zeros(target.shape, np.float64)
        found[n] = grad
        if kind.kind in "biu":
            continue
        middle = host(args[n]).astype(kind)
        point, slopes = middle.copy(), grad.reshape(-1)
        moving, values = point.reshape(-1), middle.reshape(-1)
        for i, value in enumerate(values):
            ends, results = [], []
            for step in (eps / 2, -eps / 2):
                moving[i] = float(value) + step
                ends.append(float(moving[i]))
                target[:] = _like(point, target)
                results.append(outputs())
            moving[i] = value
            # The points lie where rounding to the dtype has put them.
            width = ends[0] - ends[1]
            slopes[i] = change(*results) / width if width else 0.0
        target[:] = _like(middle, target)
    return found


def _like(values: Any, target: Any) -> Any:
    """What can be assigned to an array of any storage type."""
    if target.stype == "default":
        return values
    return nd.array(values, ctx=target.context, dtype=target.dtype).tostype(target.stype)


def _in_float64(sym: Any, args: Mapping[str, Any], aux: Mapping[str, Any], ctx: Any) -> Any:
    """An executor that computes everything in float64; None if the graph does not let it."""
    wide = [
        {n: a.astype("float64") if np.dtype(a.dtype).kind == "f" else a.copy() for n, a in d.items()}
        for d in (args, aux)
    ]
    try:
        types = sym.get_internals().infer_type(**{n: np.dtype(a.dtype) for n, a in wide[0].items()})[1]
        if types is None or any(np.dtype(t).kind == "f" and np.dtype(t) != np.float64 for t in types):
            return None
        executor = sym.bind(ctx, wide[0], grad_req="null", aux_states=wide[1])
        executor.forward(is_train=False)
        for y in executor.outputs:
            y.wait_to_read()
    except (MXNetError, TypeError, ValueError):
        return None
    return executor


def check_numeric_gradient(
    sym: Any,
    location: Any,
    aux_states: Any = None,
    numeric_eps: float | None = None,
    rtol: Any = None,
    atol: Any = None,
    grad_nodes: Any = None,
    use_forward_train: bool = True,
    ctx: Any = None,
    grad_stype_dict: Mapping[str, str] | None = None,
    dtype: Any = np.float32,
) -> None:
    """Check the gradients of a symbol against difference quotients.

    The outputs are weighted with random numbers and summed up. The gradients are computed in `dtype`; the quotients in
    float64, at the same point, unless something in the graph insists on another dtype or draws random numbers. Those
    are the same in all computations.

    Parameters
    ----------
    sym : Symbol, CachedOp or HybridBlock
        Parameters of a block come from the block.
    location : list or dict of str to array_like
        Values of all arguments (of a block: of its inputs), in their order or by name; sparse arrays stay sparse.
    aux_states : list or dict of str to array_like, optional
        Values of all auxiliary states.
    numeric_eps : float, optional
        Step of the quotients; see `default_numeric_eps`.
    rtol, atol : float, or dict of dtype to float, optional
        Tolerances; see `default_rtols` and `default_atols`.
    grad_nodes : list of str, or dict of str to {'write', 'add', 'null'}, optional
        The arguments to check; all by default. Arrays of 'add' must have the gradient added, those of 'null' must stay
        as they are.
    use_forward_train : bool
        Compute the quotients in training mode.
    ctx : Context, optional
    grad_stype_dict : dict of str to str, optional
        Storage types of gradients.
    dtype : {float16, float32, float64}

    Raises
    ------
    AssertionError
        If a gradient differs: names the argument, the largest error and its place.
    MXNetError
        (also ValueError) if names do not fit the symbol; (also AssertionError) if `dtype` is no float.

    Examples
    --------
    >>> import mxcore as mx
    >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    >>> check_numeric_gradient(mx.sym.sin(x) * y, {"x": np.array([0.5, 1.5]), "y": np.array([2.0, 3.0])})
    >>> check_numeric_gradient(mx.sym.sin(x) * y, [np.ones(3), np.ones(3)], grad_nodes=["x"], dtype="float64")
    """
    dtype, ctx = binding.check_dtype(dtype, "check_numeric_gradient", asnumpy=False), binding.context(ctx)
    sym, location, aux_states = binding.as_symbol(sym, location, aux_states)
    args, aux = binding.parse(sym, location, aux_states, ctx, dtype)
    reqs = _requests(list(args), grad_nodes)

    grads = binding.start_gradients(args, reqs, grad_stype_dict)
    starts = {n: host(g).copy() for n, g in grads.items()}
    points = {n: host(a).copy() for n, a in args.items()}
    aux_points = {n: host(a).copy() for n, a in aux.items()}
    random = any(node.op is not None and node.op.random for node in topo(sym._heads))
    keys = get_state()

    executor = sym.bind(ctx, args, args_grad=grads, grad_req={**dict.fromkeys(args, "null"), **reqs}, aux_states=aux)
    executor.forward(is_train=True)
    weights = [np.random.uniform(0.5, 1.5, y.shape) * np.random.choice([-1, 1], y.shape) for y in executor.outputs]
    heads = [nd.array(w, ctx=y.context, dtype=y.dtype) for w, y in zip(weights, executor.outputs)]
    weights = [host(h).astype(np.float64) for h in heads]
    executor.backward(heads)

    set_state(keys)
    # Float64 draws other random numbers than float32 from the same key.
    wide = None if random or dtype == np.float64 else _in_float64(sym, args, aux, ctx)
    exact = wide is not None or dtype == np.float64
    eps = numeric_eps or default_numeric_eps()[np.dtype("f8") if exact else dtype]
    numbers = [w for w, y in zip(weights, executor.outputs) if np.dtype(y.dtype).kind != "b"]
    size = [0.0]

    def change(right: Sequence[Any], left: Sequence[Any]) -> float:
        size[0] = max(size[0], sum(float(np.abs(w * r).sum()) for w, r in zip(numbers, right)))
        return sum(float((w * (r - s)).sum()) for w, r, s in zip(numbers, right, left))

    wanted = [n for n, r in reqs.items() if r != "null"]
    found = _differences(wide or executor, points, aux_points, eps, use_forward_train, change, wanted, random)
    # A quotient is no better than the rounding of the values that it is made of.
    noise = _ROUNDINGS * np.finfo(np.float64).eps * size[0] / eps if exact else 0.0
    for n, req in reqs.items():
        got = host(grads[n])
        should = binding.expected_gradient(found.get(n), starts[n], req)
        if req == "null":
            tols = (0.0, 0.0)
        else:
            tols = get_tols(should.astype(dtype), got, rtol, atol)
            tols = (tols[0], max(tols[1], noise)) if atol is None else tols
        assert_almost_equal(should, got, *tols, (f"NUMERICAL_{n}", f"BACKWARD_{n}"))


def _requests(names: Sequence[str], grad_nodes: Any) -> dict[str, str]:
    """What is asked of which argument."""
    if grad_nodes is None:
        return dict.fromkeys(names, "write")
    if isinstance(grad_nodes, (list, tuple)):
        grad_nodes = dict.fromkeys(grad_nodes, "write")
    if not isinstance(grad_nodes, Mapping):
        raise error(
            ValueError,
            f"grad_nodes must be a list of names or a dict of names to 'write', 'add' or 'null', got {grad_nodes!r}",
        )
    found = binding.requests(names, grad_nodes)
    return {n: found[n] for n in grad_nodes}
