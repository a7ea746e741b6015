"""From a Python call to inputs and parameters, for the eager and the symbolic face alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from .errors import MXNetError, error, warn
from .op import Op
from .params import Params

__all__ = ["bind", "ignored", "not_an_array"]


def bind(
    op: Op, args: Sequence[Any], kwargs: dict[str, Any], is_input: Any, need_all: bool = True
) -> tuple[list[Any], Params]:
    """Split a call into inputs, in declaration order, and parsed parameters.

    Positional arguments bind to inputs first; those left over, and anything that cannot be an input, bind to the
    parameters in declaration order, as in MXNet's generated functions. Inputs left out are None, if `need_all` is off.
    """
    if op.variadic:
        return _variadic(op, args, kwargs, is_input, need_all)
    if kwargs and not op.params:
        ignored(op, kwargs, is_input)
    names = op.input_names
    given, rest = _leading(op, args, kwargs, is_input)
    by = {}
    for name in names if kwargs else ():
        if name in kwargs and (kwargs[name] is None or is_input(kwargs[name]) or name not in op.params):
            by[name] = kwargs.pop(name)
    if rest:
        if any(map(is_input, rest)):
            raise error(
                TypeError,
                f"operator {op.name} takes {len(names)} input(s) ({', '.join(names) or 'none'}), got "
                f"{sum(map(is_input, args))}; "
                f"its parameters ({', '.join(op.params) or 'none'}) take no arrays",
            )
        _positional_params(op, rest, kwargs)
    p = op.parser(kwargs)
    sig = p._sig
    # Positional inputs bind to all declared names, those that the parameters switch off included only if None.
    return (
        given
        if not by and len(given) == len(sig.inputs) and all(v is not None for v in given)
        else _matched(op, sig.inputs, [v for v in given if v is not None], by, is_input, need_all)
    ), p


def _leading(op: Op, args: Sequence[Any], kwargs: dict[str, Any], is_input: Any) -> tuple[list[Any], Sequence[Any]]:
    """Positional arguments as inputs, up to the first that is none, and the rest."""
    names = op.input_names
    n = len(names)
    for i, a in enumerate(args[:n]):
        if a is not None and not is_input(a):
            if getattr(a, "ndim", False) or op.input_slots[i].condition is None and names[i] not in kwargs:
                raise not_an_array(op.name, names[i], a)  # which would be taken for a parameter
            return list(args[:i]), args[i:]
    return list(args[:n]), args[n:]


def _matched(
    op: Op, names: Sequence[str], given: Sequence[Any], by: dict[str, Any], is_input: Any, need_all: bool
) -> list[Any]:
    """The inputs that parameters select, from those given by position and `by` name."""
    if len(given) > len(names):
        raise error(
            TypeError,
            f"operator {op.name} takes {len(names)} inputs "
            f"({', '.join(names)}) with these parameters, got {len(given)}",
        )
    for name, v in zip(names, given):
        if by.get(name) is not None:
            raise error(TypeError, f"operator {op.name}: input '{name}' is given twice")
        by[name] = v
    values = [by.pop(name, None) for name in names]
    for name in sorted(n for n, v in by.items() if v is not None):  # None for an input that is switched off is fine
        raise error(
            TypeError,
            f"operator {op.name} takes no input '{name}' with these parameters; its inputs: {', '.join(names)}",
        )
    for name, v in zip(names, values):
        if v is None and need_all:
            listed = f"{', '.join(names[:8])}{f', … {len(names)} in all' if len(names) > 8 else ''}"
            raise error(TypeError, f"operator {op.name} needs input '{name}' ({listed})")
        if v is not None and not is_input(v):
            raise not_an_array(op.name, name, v)
    return values


def ignored(op: Op, kwargs: dict[str, Any], is_input: Any) -> dict[str, Any]:
    """Take out, with a warning, what an operator without parameters ignores, as in MXNet: all but inputs."""
    found = {
        k: kwargs.pop(k) for k in [*kwargs] if not op.params and k not in op.input_names and not is_input(kwargs[k])
    }
    if found:
        warn(f"operator {op.name} has no parameters; ignored: {', '.join(map(repr, found))}")
    return found


def not_an_array(op: str, name: str, value: Any) -> MXNetError:
    """The error for an input that is no array of ours."""
    return error(
        TypeError,
        f"operator {op}: input '{name}' must be an array: an NDArray (mx.nd.array makes one), or a Symbol in a "
        f"graph; got {type(value).__module__}.{type(value).__name__}".replace("builtins.", ""),
    )


def _variadic(
    op: Op, args: Sequence[Any], kwargs: dict[str, Any], is_input: Any, need_all: bool
) -> tuple[list[Any], Params]:
    """`bind` for an operator that takes any number of inputs."""
    names = op.input_names
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    cut = next((i for i, a in enumerate(args) if not is_input(a)), len(args))
    if op.arg_names is not None:  # parameters name its inputs (``Custom``)
        if op.count in op.params and op.params[op.count].required and cut:
            kwargs.setdefault(op.count, cut)
        by = {k: kwargs.pop(k) for k in list(kwargs) if is_input(kwargs[k])}
        p = op.parser(kwargs)
        return _matched(op, p._sig.inputs, args, by, is_input, need_all), p
    ins = [kwargs.pop(n) for n in names if is_input(kwargs.get(n))] + list(args[:cut])
    numbers = count()
    while is_input(kwargs.get(number := f"arg{next(numbers)}")):
        ins.append(kwargs.pop(number))
    if len(args) > cut and (getattr(args[cut], "ndim", False) or not ins):
        raise not_an_array(op.name, names[-1], args[cut])
    if not ins and need_all and getattr(op.params[op.count], "ge", None):
        raise error(TypeError, f"operator {op.name} needs at least one input ({names[-1]})")
    if not ins or (op.count not in kwargs and op.params[op.count].required):
        kwargs.setdefault(op.count, max(len(ins) - len(names) + 1, 0))
    _positional_params(op, args[cut:], kwargs)
    p = op.parser(kwargs)
    want = len(p._sig.inputs)
    if len(ins) > want or (need_all and len(ins) != want):
        raise error(
            TypeError, f"operator {op.name} takes {want} inputs with {op.count}={getattr(p, op.count)}, got {len(ins)}"
        )
    return ins + [None] * (want - len(ins)), p


def _positional_params(op: Op, values: Sequence[Any], kwargs: dict[str, Any]) -> None:
    names = [n for n in op.params if n != op.count or not op.variadic]
    if len(values) > len(names):
        raise error(
            TypeError,
            f"operator {op.name} takes inputs ({', '.join(op.input_names) or 'none'}), which are arrays, and then "
            f"parameters ({', '.join(names) or 'none'}); there is no place for {values[len(names)]!r}",
        )
    for name, v in zip(names, values):
        if name in kwargs:
            raise error(TypeError, f"operator {op.name}: parameter '{name}' is given twice")
        kwargs[name] = v
