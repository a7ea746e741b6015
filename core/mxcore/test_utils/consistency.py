"""The same computation done in several ways: contexts, dtypes, hybridised or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import autograd
from .. import ndarray as nd
from ..base import error
from ..symbol import Symbol
from ..testing.keys import get_state, set_state
from .comparing import assert_almost_equal
from .tolerances import get_tols, host

__all__ = ["check_consistency", "check_gluon_hybridize_consistency"]

#: How far sums of float64 numbers in another order may be apart, in units of the largest result.
_ORDER = 1e-12


class _Run:
    """One of the ways: an executor with what it is called in messages."""

    def __init__(self, sym: Any, entry: Mapping[str, Any], number: int, grad_req: Any) -> None:
        self.executor = sym.simple_bind(grad_req=grad_req, **entry)
        self.names = sym.list_outputs()
        self.dtype = np.dtype(
            self.executor.outputs[0].dtype
            if self.executor.outputs[0] is not None
            else next(iter(self.executor.arg_dict.values())).dtype
        )
        self.label = f"{self.dtype.name} on {self.executor._ctx} (entry {number})"

    def fill(self, args: Mapping[str, Any], aux: Mapping[str, Any]) -> None:
        e = self.executor
        for values, targets in ((args, e.arg_dict), (aux, e.aux_dict)):
            for n, target in targets.items():
                if tuple(np.shape(values[n])) != tuple(target.shape):
                    raise error(
                        ValueError,
                        f"check_consistency: '{n}' has shape {tuple(target.shape)} in {self.label}, "
                        f"{tuple(np.shape(values[n]))} elsewhere",
                    )
                value = np.asarray(values[n]).astype(target.dtype)
                target[:] = (
                    value if target.stype == "default" else nd.array(value, dtype=target.dtype).tostype(target.stype)
                )
        for g in e.grad_arrays:
            if g is not None:
                g[:] = 0

    def results(self, keys: Any, heads: Sequence[Any] | None = None, train: bool = False) -> dict[str, Any]:
        """Outputs and, in training, gradients by name, on the host."""
        set_state(keys)
        e = self.executor
        e.forward(is_train=train)
        found = {n: y.copy() for n, y in zip(self.names, e.outputs)}
        if train:
            e.backward(
                [
                    nd.array(h, ctx=y.context, dtype=y.dtype)
                    for h, y in zip(heads or [host(y) for y in e.outputs], e.outputs)
                ]
            )
            found.update({n: g.copy() for n, g in e.grad_dict.items() if g is not None})
        return found


def check_consistency(
    sym: Any,
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: Any = None,
    atol: Any = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Check that a symbol computes the same on several contexts and in several dtypes, in predict mode and in training.

    Everything is compared with the most exact of them. Gradients of the outputs are its outputs.

    Parameters
    ----------
    sym : Symbol or list of Symbol
        One for all, or one for each entry, with the same arguments and outputs.
    ctx_list : list of dict
        For each: ``ctx``, shapes of arguments by name, and, if need be, ``type_dict``; what ``Symbol.simple_bind``
        takes.
    scale : float
        Of the random arguments.
    grad_req : str, or list or dict of str to str
    arg_params, aux_params : dict of str to array_like, optional
        Values of some arguments and auxiliary states, which are random and 0 otherwise.
    rtol, atol : float, or dict of dtype to float, optional
        Tolerances; see `default_rtols` and `default_atols`.
    raise_on_err : bool
        If False, print what differs and go on.
    ground_truth : dict of str to array_like, optional
        Outputs and gradients to compare all entries with, as an earlier call has returned them.
    equal_nan : bool
        NaN equals NaN.
    use_uniform : bool
        Random arguments are uniform, not normal.
    rand_type : dtype
        Random arguments are rounded to it, so that all entries can hold the same.

    Returns
    -------
    dict of str to NDArray
        Outputs and gradients that were compared with.

    Raises
    ------
    AssertionError
        If something differs: names it, and the entry.

    Examples
    --------
    >>> import mxcore as mx
    >>> y = mx.sym.tanh(mx.sym.Variable("x"), name="y")
    >>> ways = [{"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": t}} for t in ("float64", "float32")]
    >>> sorted(check_consistency(y, ways))
    ['x', 'y_output']
    """
    if len(ctx_list) < 2 and ground_truth is None:
        raise error(AssertionError, f"check_consistency compares two entries at least, got {len(ctx_list)}")
    syms = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    if len(syms) != len(ctx_list):
        raise error(AssertionError, f"check_consistency: {len(syms)} symbols for {len(ctx_list)} entries of ctx_list")
    for s in syms[1:]:
        for what in ("list_arguments", "list_outputs"):
            one, two = getattr(syms[0], what)(), getattr(s, what)()
            if one != two:
                raise error(AssertionError, f"check_consistency: the symbols differ in {what}(): {one} and {two}")
    runs = [_Run(s, entry, i, grad_req) for i, (s, entry) in enumerate(zip(syms, ctx_list))]
    best = max(runs, key=lambda r: r.dtype.itemsize)
    args, aux = _start(best.executor, arg_params or {}, aux_params or {}, scale, use_uniform, rand_type)
    for run in runs:
        run.fill(args, aux)

    keys, truth = get_state(), ground_truth
    stages = [("predicting", False)]
    if any(g is not None for g in best.executor.grad_arrays):
        stages.append(("training", True))
    found: dict[str, Any] = {}
    for stage, train in stages:
        reference = best.results(keys, None, train)
        heads = [host(reference[n]) for n in best.names]
        found = reference if truth is None else dict(truth)
        for run in runs:
            if run is best and truth is None:
                continue
            got = reference if run is best else run.results(keys, heads, train)
            _compare(
                got,
                found,
                f"{stage}: %s of {run.label} against {best.label if truth is None else 'the ground truth'}",
                rtol,
                atol,
                equal_nan,
                raise_on_err,
            )
    return found


def _start(
    executor: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    scale: float,
    uniform: bool,
    rand_type: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values of all arguments and auxiliary states."""
    args = {}
    for n, a in executor.arg_dict.items():
        if n in arg_params:
            args[n] = host(arg_params[n])
        elif uniform:
            args[n] = (np.random.uniform(-1.0, 1.0, size=a.shape) * scale).astype(rand_type)
        else:
            args[n] = np.random.normal(size=a.shape, scale=scale).astype(rand_type)
    return args, {
        n: host(aux_params[n]) if n in aux_params else np.zeros(a.shape) for n, a in executor.aux_dict.items()
    }


def _compare(
    got: Mapping[str, Any],
    should: Mapping[str, Any],
    where: str,
    rtol: Any,
    atol: Any,
    equal_nan: bool,
    raise_on_err: bool,
) -> None:
    for n, value in got.items():
        if n not in should:
            raise error(KeyError, f"check_consistency: ground_truth lacks {n!r}, it has {sorted(should)}")
        right = host(should[n])
        tols = get_tols(value, right, rtol, atol)
        if atol is None and right.size:  # sums in another order are not equal to the last bit
            tols = (tols[0], max(tols[1], _ORDER * float(np.nan_to_num(np.abs(right), posinf=0.0).max())))
        try:
            assert_almost_equal(value, right, *tols, ("FOUND", "EXPECTED"), equal_nan=equal_nan)
        except AssertionError as e:
            text = f"{where % repr(n)}:{e}"
            if raise_on_err:
                raise AssertionError(text) from None
            print(text)


def check_gluon_hybridize_consistency(
    net_builder: Callable[..., Any],
    data_l: Sequence[Any],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Check that a block computes the same hybridised and not: outputs, and gradients of inputs and parameters.

    Parameters
    ----------
    net_builder : callable
        Makes the block, a HybridBlock with one output; called with ``prefix=`` if it takes that.
    data_l : list of NDArray
        Inputs.
    numpy_func : callable, optional
        Gives the output from the inputs as NumPy arrays, to compare with.
    test_grad : bool
        Compare gradients too.
    rtol, atol : float
        Tolerances.

    Raises
    ------
    AssertionError
        If something differs.

    Examples
    --------
    >>> import mxcore as mx
    >>> check_gluon_hybridize_consistency(lambda: mx.gluon.nn.Dense(3), [mx.nd.ones((2, 4))])
    """
    saved: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    keys = get_state()
    for hybridize in (False, True):
        net = _build(net_builder)
        net.initialize()
        if hybridize:
            net.hybridize()
        inputs = [nd.array(x, dtype=x.dtype) if not isinstance(x, nd.NDArray) else x.copy() for x in data_l]
        params = net._collect_params_with_prefix()
        if any(p._deferred_init for p in params.values()):
            net(*inputs)  # tells the shapes
        for n, p in params.items():
            if hybridize:
                p.set_data(saved[n])
            else:
                saved[n] = p.data().copy()
        found = _outcome(net, inputs, params, test_grad, keys)
        if hybridize:
            for n, value in found.items():
                assert_almost_equal(value, plain[n], rtol=rtol, atol=atol, names=(f"HYBRID_{n}", f"PLAIN_{n}"))
        plain = found
        if numpy_func is not None:
            should = numpy_func(*(host(x) for x in inputs))
            assert_almost_equal(
                found["output"], should, rtol=rtol, atol=atol, names=("HYBRID" if hybridize else "PLAIN", "NUMPY")
            )


def _build(net_builder: Callable[..., Any]) -> Any:
    try:
        takes = inspect.signature(net_builder).parameters
    except (TypeError, ValueError):
        takes = {}  # type: ignore[assignment]
    named = any(p.kind is p.VAR_KEYWORD for p in takes.values()) or "prefix" in takes
    return net_builder(prefix="net_") if named else net_builder()


def _outcome(net: Any, inputs: Sequence[Any], params: Mapping[str, Any], test_grad: bool, keys: Any) -> dict[str, Any]:
    set_state(keys)
    if not test_grad:
        return {"output": net(*inputs).asnumpy()}
    for x in inputs:
        x.attach_grad()
    with autograd.record():
        out = net(*inputs)
    out.backward()
    found = {"output": out.asnumpy(), **{f"gradient of input {i}": x.grad.asnumpy() for i, x in enumerate(inputs)}}
    found.update({f"gradient of {n}": p.grad().asnumpy() for n, p in params.items() if p.grad_req != "null"})
    return found
