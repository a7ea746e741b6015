"""Facets: what others must know of an operator: the passes of the executor, MXNet's names for values, kernels.

They stand with the operator, as options of :func:`mxcore.plugin.op`, and anybody's operator may have them. Passes ask
for them and know no operator by name. Each is checked when it is declared.

expr : str, or callable ``p -> str or None``
    The elementwise meaning, which chains are fused by: a Python expression over inputs, parameters and `numbers`
    (see :mod:`mxcore.fusion.expr`); as a function of the parameters where they decide, which gives None where there is
    none. One without names is a constant.
numbers : dict of str to callable ``(p, ins, out) -> float``
    Numbers in `expr` that shapes decide.
aligned : callable ``(p, ins, out) -> shapes``
    In which shape each input is broadcast to the output, where NumPy's rules do not say it: each with as many elements
    as the input.
reduces : (str, callable ``(p, data, out) -> axes or None``)
    The value of `expr` is reduced at the end: 'sum', 'mean', 'max' or 'min' over axes of the first input; None: not for
    these shapes.
identity : bool or 'elements', or a function of the parameters that gives it
    The output is the first input wherever both have one shape, dtype and storage type; with 'elements' it has the first
    input's elements, in their order, wherever it has as many of one dtype.
bias : callable ``(p, ndim) -> axis``
    The input `bias`, which the parameter `no_bias` switches off, is added along that axis of the output.
recompute : bool, or a function of the parameters that gives it
    Whether it is so cheap that backward may compute it again rather than keep its result (True).
rowwise : bool, or a function of the parameters that gives it
    Each row of the output depends on the same row of the first input, and on the other inputs as a whole.
backward_of : str
    It computes the gradients of that operator, one output for each of its inputs, from those of its outputs and then
    its inputs; its parameters are those of that operator.
labels : str
    What MXNet's monitors and hooks call its values, words separated by blanks: 'inputs', its only input goes by its
    name, not ``input0``; 'gradients', its gradients go by the names of the inputs, not ``output0``; 'outputs', hooks
    are told the names of its outputs, not their numbers; 'numbers', its outputs have numbers where others have names;
    and ``-<input>``, no gradient is counted for that input.
precision_cast : bool
    It was put in for mixed precision: each output is the input of its place in another dtype. Files of graphs leave it
    out.
written_as : callable ``p -> list of (name, parameters), or None``
    Which operators of MXNet's, each over the output of the one before, mean the same as it does over its only input:
    files of graphs hold those. None: there are none.
mxnet_outputs : int or callable ``p -> int``
    How many outputs MXNet's operator has, hidden ones included, where ours has another number of them.
together : str
    It updates one weight, ``(weight, grad, *states)`` by `lr` and `wd`, and the operator of that name updates
    `num_weights` of them by `lrs` and `wds`: its inputs are those of each weight in turn, its other parameters are the
    same (but for `lazy_update`). The name has a place ``%s`` for ``mp_``: weights and gradients of that one are of low
    precision, and after the states of each comes its float32 copy. Optimizers call it where the device has a kernel for
    it.
alike : gradient rule
    That of two inputs of one shape and dtype, which need not be kept where only these matter otherwise; it stands in
    for the operator's own behind Python's operators.
quantized : callable ``p -> dict, or str``
    The operator that does the same over whole numbers of eight bits, as :class:`Quantized` has it, or why there is none
    for these parameters.
calibrates : {'input', 'output'}
    `min_calib_range` and `max_calib_range` are the range of its first input, or of its first output.
flops : True, or callable ``(p, ins, outs) -> number``
    Floating-point operations of its products of matrices, by shapes; `mxcore bench` judges its speed by them. True: its
    `cost` counts those alone, a tenth for each multiplication and addition.
zeros_stay : callable ``(p, dtype) -> bool``
    Whether the body over sparse values of that dtype keeps the storage type that its storage rule tells; if not its
    result is dense. So are operators with a number, which calls may change from time to time: graphs know it.
helpers : dict of str to function
    Parts of the body that its kernels want as well, on any device: where weights lie in a vector, which values are
    refused and with which error. A kernel finds them without knowing where the operator is declared:
    ``find_op(NAME).facet("helpers").layout``.
"""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from ._core.checks import checked
from ._core.errors import error
from ._core.op import FACETS, Op
from ._core.params import Params
from .fusion import Expr
from .looking import amount

__all__ = ["Quantized"]

_REDUCTIONS = ("sum", "mean", "max", "min")
_WORDS = ("inputs", "gradients", "outputs", "numbers")


class _Numbers(dict[str, Any]):
    """`numbers` as a function of parameters and shapes."""

    def __call__(self, p: Params, ins: Any, out: Any) -> dict[str, float]:
        return {name: number(p, ins, out) for name, number in self.items()}


class _Reduction(NamedTuple):
    """`reduces` as a function of parameters and shapes: (how, axes)."""

    how: str
    axes: Callable[..., Any]

    def __call__(self, p: Params, data: Any, out: Any) -> tuple[str, Any]:
        return self.how, self.axes(p, data, out)


class Quantized(NamedTuple):
    """What `quantized` says of an operator.

    Attributes
    ----------
    op : str
        The operator over eight bits. Its inputs are those of this one, quantised, then the least and greatest number of
        each of these; its outputs are those of this one, with their least and greatest number. Its parameters are this
        one's.
    always : bool
        It is worth it by itself. Others are quantised (in mode 'smart') between such operators only.
    floats : tuple of int
        Inputs that stay as they are, and have no range.
    shifted : tuple of int
        Inputs that are quantised by scale and shift (uint8).
    int8 : tuple of int
        Inputs that have to be int8; others may be uint8.
    sums : bool
        Its output is int32, and has to come back to eight bits.
    float_output : bool
        Its outputs are float32 already, without a range.
    """

    op: str
    always: bool = False
    floats: tuple[int, ...] = ()
    shifted: tuple[int, ...] = ()
    int8: tuple[int, ...] = ()
    sums: bool = False
    float_output: bool = False


class _Expression:
    """`expr` as a function of the parameters; a text is parsed once."""

    def __init__(self, op: Op, value: Any) -> None:
        # The inputs of a variadic operator are called as the parameters say: arg0, arg1 …
        self.value, self.allowed = (
            value,
            None if op.variadic else {*op.input_names, *op.params, *op.facets.get("numbers", ())},
        )
        self.known: dict[str, Expr] = {}

    def __call__(self, p: Params | None) -> Expr | None:
        text = self.value(p) if callable(self.value) else self.value
        if text is None:
            return None
        found = self.known.get(text)
        if found is None:
            if not isinstance(text, str):
                raise TypeError(f"a text is needed, got {text!r}")
            found = Expr(text, self.allowed)
            if len(self.known) >= 256:  # parameters may stand in the text
                self.known.clear()
            self.known[text] = found
        return found


def _expr(op: Op, value: Any) -> Any:
    made = _Expression(op, value)
    if not callable(value):
        made(None)
    return _tried(op, made)


def _tried(op: Op, value: Any) -> Any:
    """A function of the parameters, after a try with those that a call without any has, if there are such."""
    if callable(value) and not any(s.required for s in op.params.values()):
        value(op.parser({}))
    return value


def _given(op: Op, value: Any, allowed: tuple[Any, ...]) -> Any:
    """One of some values, or a function of the parameters that gives one."""

    def checked(found: Any) -> Any:
        if found not in allowed:
            raise ValueError(
                f"it must be one of {', '.join(map(repr, allowed))}, "
                f"or a function of the parameters that gives one; got {found!r}"
            )
        return found

    return _tried(op, lambda p: checked(value(p))) if callable(value) else checked(value)


def _function(n: int, what: str) -> Callable[[Op, Any], Any]:
    def check(op: Op, value: Any) -> Any:
        code = getattr(value, "__code__", None)
        if not callable(value) or code is not None and code.co_argcount - len(value.__defaults__ or ()) > n:
            raise TypeError(f"it must be a function {what}")
        return value

    return check


def _answering(rule: Callable[..., Any], fits: Callable[[Any], bool], wanted: str) -> Callable[..., Any]:
    """A function that is told if it gives something else than it should: who asks names the operator."""

    def asked(*given: Any) -> Any:
        found = rule(*given)
        if not fits(found):
            raise TypeError(f"it must give {wanted}, got {reprlib.repr(found)}")
        return found

    return asked


def _numbers(op: Op, value: Any) -> Any:
    if not isinstance(value, dict) or not all(isinstance(n, str) and callable(f) for n, f in value.items()):
        raise TypeError("it must be a dict of names to functions (p, ins, out) -> float")
    clash = sorted({*value} & {*op.input_names, *op.params})
    if clash:
        raise ValueError(f"'{clash[0]}' is an input or a parameter")
    return _Numbers(value)


def _reduces(op: Op, value: Any) -> Any:
    if not (isinstance(value, tuple) and len(value) == 2 and value[0] in _REDUCTIONS):
        raise ValueError(f"it must be a pair of one of {', '.join(_REDUCTIONS)} and a function (p, data, out) -> axes")
    return _Reduction(value[0], _function(3, "(p, data, out) -> axes")(op, value[1]))


def _bias(op: Op, value: Any) -> Any:
    if "bias" not in op.input_names or "no_bias" not in op.params:
        raise ValueError("the operator needs an input 'bias' and a parameter 'no_bias'")
    return _function(2, "(p, ndim) -> axis")(op, value)


def _backward_of(op: Op, value: Any) -> Any:
    if not isinstance(value, str) or value == op.name:
        raise ValueError("it must be the name of another operator")
    return value


def _together(op: Op, value: Any) -> Any:
    if not isinstance(value, str) or value.count("%s") != 1:
        raise ValueError("it must be the name of another operator, with a place %s for 'mp_'")
    return value


def _labels(op: Op, value: Any) -> frozenset[str]:
    for word in value.split():
        if word not in _WORDS and word[1:] not in op.input_names:
            raise ValueError(f"'{word}' is none of {', '.join(_WORDS)}, nor -<input>")
    return frozenset(value.split())


def _mxnet_outputs(op: Op, value: Any) -> Any:
    if not callable(value) and (not isinstance(value, int) or value < 1):
        raise ValueError("it must be a number above 0, or a function of the parameters")
    return _tried(op, _answering(value, _counts, "a number above 0") if callable(value) else value)


def _counts(n: Any) -> bool:
    return isinstance(n, numbers.Integral) and int(n) > 0


def _written_as(op: Op, value: Any) -> Any:
    rule = _function(1, "p -> list of (name, parameters), or None")(op, value)
    return _answering(rule, _chain, "a list of (name, dict of parameters), or None")


def _chain(found: Any) -> bool:
    return found is None or (
        isinstance(found, (list, tuple)) and all(isinstance(e, tuple) and [*map(type, e)] == [str, dict] for e in found)
    )


def _quantized(op: Op, value: Any) -> Any:
    if not callable(value):
        raise TypeError("it must be a function p -> dict, or str")

    def checked(p: Params) -> Quantized | str:
        found = value(p)
        return found if isinstance(found, str) else Quantized(**found)

    return _tried(op, checked)


def _calibrates(op: Op, value: Any) -> Any:
    if value not in ("input", "output"):
        raise ValueError("it must be 'input' or 'output'")
    for name in ("min_calib_range", "max_calib_range"):
        if name not in op.params:
            raise ValueError(f"the operator needs a parameter '{name}'")
    return value


def _flops(op: Op, value: Any) -> Any:
    """A function of parameters and shapes; True asks `cost`, which may be attached later."""
    if value is not True:
        return _answering(_function(3, "(p, ins, outs) -> number, or True")(op, value), amount, "a number, 0 or more")

    def of_cost(p: Params, ins: Any, outs: Any) -> float:
        if op.cost_rule is None:
            raise error(ValueError, f"operator {op.name}: flops=True needs a rule `cost`")
        return 20 * float(op.cost_rule(p, ins, outs))

    return of_cost


def _helpers(op: Op, value: Any) -> SimpleNamespace:
    if not isinstance(value, dict) or not all(callable(f) for f in value.values()):
        raise TypeError("it must be a dict of names to functions")
    return SimpleNamespace(**value)


# In the order in which they are checked: `expr` may use `numbers`.
FACETS.update(
    numbers=_numbers,
    expr=_expr,
    aligned=_function(3, "(p, ins, out) -> shapes"),
    reduces=_reduces,
    identity=lambda op, value: _given(op, value, (True, False, "elements")),
    bias=_bias,
    recompute=lambda op, value: _given(op, value, (True, False)),
    rowwise=lambda op, value: _given(op, value, (True, False)),
    backward_of=_backward_of,
    labels=_labels,
    precision_cast=lambda op, value: _given(op, value, (True, False)),
    written_as=_written_as,
    mxnet_outputs=_mxnet_outputs,
    together=_together,
    alike=lambda op, value: checked("gradient rule", op, value),
    quantized=_quantized,
    calibrates=_calibrates,
    flops=_flops,
    zeros_stay=_function(2, "(p, dtype) -> bool"),
    helpers=_helpers,
)
