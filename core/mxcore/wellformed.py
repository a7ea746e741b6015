"""What is wrong with a declaration as it is made: names that nobody could use, rules that cannot be called.

The core asks by :func:`mxcore._core.checks.checked`, which this module answers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from functools import partial
from importlib import import_module
from inspect import getattr_static, isroutine
from keyword import iskeyword
from types import FunctionType
from typing import Any

import numpy as np

from ._core.checks import CHECKS
from ._core.device import Device
from ._core.errors import REFERENCE, error, in_a_line, suggest
from ._core.gradplan import GradPlan
from ._core.graph import GraphPass
from ._core.kernels import Kernel, KernelSet
from ._core.op import Op
from ._core.tables import USER
from ._op_functions import PREFIXES
from .testing.sample import Sample

__all__ = ["misfit"]

#: What a gradient rule may ask for beside inputs and outputs -> what it gets.
_WORDS = {
    "F": "the operators",
    "p": "the parameters",
    "needs": "which inputs want a gradient",
    "dy": "the gradient of the first output",
    "dys": "the gradients of all outputs",
    "y": "the first output",
}
#: Keywords of every call, whose values no operator gets.
_RESERVED = frozenset({"name", "out", "attr", "share", "wanted", "cls"})

#: Rule -> how many arguments it may take, and how it is written.
_FORMS = {
    "shape rule": ((2, 3), "(p, ins) -> outs, or (p, ins, outs) -> (ins, outs)"),
    "dtype rule": ((2, 3), "(p, ins) -> outs, or (p, ins, outs) -> (ins, outs)"),
    "storage rule": ((2,), "(p, stypes) -> stypes of the outputs"),
    "cost rule": ((3,), "(p, ins, outs) -> number"),
    "backward rule": ((6,), "(k, p, state, dys, ins, outs) -> gradients of the inputs"),
}


def _takes(fn: Any, numbers: Iterable[int]) -> bool:
    """Whether something can be called with one of these numbers of arguments; what is not Python's is believed."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return callable(fn)
    own = hasattr(fn, "__self__")
    most = math.inf if code.co_flags & 0x04 else code.co_argcount - own
    least = code.co_argcount - own - len(fn.__defaults__ or ())
    return code.co_kwonlyargcount == len(fn.__kwdefaults__ or ()) and any(least <= n <= most for n in numbers)


def _shown(fn: Any) -> str:
    code = getattr(fn, "__code__", None)
    return repr(fn) if code is None else f"({', '.join(code.co_varnames[: code.co_argcount])})"


def _operator(op: Op) -> None:
    where = f"operator {op.name}"
    outs = [] if callable(op.outputs) else [s.name for s in op.outputs]
    for name in (op.name, *op.aliases):
        if not str(name).isidentifier() or iskeyword(name):
            raise error(ValueError, f"{where}: {name!r} is no name that Python could call; one like 'my_op' is needed")
    for what, names in (("inputs", op.input_names), ("outputs", outs)):
        if twice := [n for i, n in enumerate(names) if n in names[:i]]:
            raise error(ValueError, f"{where}: two of its {what} are named '{twice[0]}'; each needs a name of its own")
    _declared(op, where)
    if clash := sorted({*op.params} & {*op.input_names}):
        raise error(ValueError, f"{where}: '{clash[0]}' is both an input and a parameter")
    # Inputs of operators that users do not call, as backward ones, are given by position only.
    for what, names in (("parameter", [*op.params]), ("input", () if op.name[0] == "_" else op.input_names)):
        for name in names:
            if name in _RESERVED:
                raise error(
                    ValueError,
                    f"{where}: its {what} cannot be named '{name}', which is a keyword of every operator's call "
                    f"({', '.join(sorted(_RESERVED))}); choose another name",
                )
            if what == "parameter" and (name[0] == "_" or not name.isidentifier()):
                raise error(ValueError, f"{where}: its parameter {name!r} needs a name that begins with a letter")
    if "ctx" in op.params and op.params["ctx"].kind != "str":
        raise error(
            ValueError, f"{where}: its parameter 'ctx' says where it runs, and so is a Str; choose another name"
        )
    if not callable(op.sampled) and (wrong := [s for s in op.sampled if not isinstance(s, Sample)]):
        raise error(TypeError, f"{where}: its samples must be Sample objects, such as Sample((2, 3)), got {wrong[0]!r}")
    if not callable(op.sampled) and not op.variadic:
        for named in (s.grad.split() for s in op.sampled if isinstance(s.grad, str)):
            if lost := [n for n in named if n not in op.input_names or n in op.aux]:
                what = (
                    "an auxiliary state, which has no gradient" if lost[0] in op.input_names else "none of its inputs"
                )
                raise error(
                    ValueError, f"{where}: a sample differentiates by grad={' '.join(named)!r}: {lost[0]!r} is {what}"
                )
    if op.body is not None and (text := _misfit(op.body, op, 2)):
        raise error(TypeError, f"{where}: its body {text.format('(k, p')}")


def _declared(op: Op, where: str) -> None:
    """Look at what stands for many arrays, and at defaults, which are what their texts say."""
    for what, slots in (("input", op.input_slots), ("output", [] if callable(op.outputs) else op.outputs)):
        if many := [s.name for s in slots[:-1] if s.variadic]:
            raise error(ValueError, f"{where}: {what} '{many[0]}*', of any number of arrays, must be the last one")
    for name, param in op.params.items():
        if not param.required and param.default is not None:
            try:
                default = param.parse(param.default)
            except Exception as e:
                plain = isinstance(e, (TypeError, ValueError))
                text = str(e) if plain else f"cannot be read: {in_a_line(e)}"
                kind = type(e) if plain else ValueError
                raise error(kind, f"{where}: the default of its parameter '{name}' {text}") from None
            if default is not param.default:  # the object is its author's, who may declare others with it
                op.params[name] = param = copy(param)
                param.default = default


def _misfit(fn: Any, op: Op, leading: int) -> str:
    """Why a function cannot be called with the inputs of an operator behind so many other arguments, if so."""
    always = sum(s.condition is None and not s.variadic for s in op.input_slots)
    most = always + 64 if op.variadic else len(op.input_slots)
    if _takes(fn, range(leading + always, leading + most + 1)):
        return ""
    inputs = "".join(f", {'*' * s.variadic}{s.name}" for s in op.input_slots)
    return f"takes {_shown(fn)}; {{}}{inputs}) is needed"


def misfit(kernel: Kernel, op: Op) -> str:
    """Why a kernel cannot be called as the operator's are; an empty text if it can."""
    leading = ("(k, p, outs", 3) if kernel.out else ("(k, p", 2)
    if text := _misfit(kernel.fn, op, leading[1]):
        return f"it {text.format(leading[0])}"
    if kernel.when is not None and (text := _misfit(kernel.when, op, 1)):
        return f"its `when` {text.format('(p')}"
    return ""


def _kernel(kernel: Kernel) -> None:
    where = f"kernel of operator {kernel.op}"
    code = getattr(kernel.fn, "__code__", None)
    if not kernel.out and code is not None and "outs" in code.co_varnames[2 : code.co_argcount]:
        raise error(TypeError, f"{where}: it takes `outs`, as those do that are declared with out=True")
    form, least = ("(k, p, outs, *inputs)", 3) if kernel.out else ("(k, p, *inputs)", 2)
    if not _takes(kernel.fn, range(least, 64)):
        raise error(TypeError, f"{where}: it takes {_shown(kernel.fn)}; {form} is needed")
    if kernel.when is not None and not _takes(kernel.when, range(1, 64)):
        raise error(TypeError, f"{where}: `when` takes {_shown(kernel.when)}; a function (p, *specs) -> bool is needed")


def _rule(what: str, op: Op, rule: Any) -> None:
    numbers, form = _FORMS[what]
    if not isinstance(rule, FunctionType) or not _takes(rule, numbers):
        takes = f"it takes {_shown(rule)}" if isinstance(rule, FunctionType) else f"{rule!r} is no Python function"
        raise error(TypeError, f"{what} of operator {op.name}: {takes}; {form} is needed")


def _gradient(op: Op, rule: Any) -> None:
    if not rule:  # None: zero; missing
        return
    where = f"gradient rule of operator {op.name}"
    if not isinstance(rule, FunctionType):
        raise error(TypeError, f"{where}: {rule!r} is no Python function, whose arguments say what it needs")
    code = rule.__code__
    names = code.co_varnames[: code.co_argcount]
    if code.co_kwonlyargcount or code.co_flags & 0x0C:
        raise error(TypeError, f"{where}: its arguments say what it needs, by position; no *, *args or **kwargs")
    for name in names:
        if name in _WORDS and name in op.input_names and not {f"{name}_", f"like_{name}"} & {*names}:
            output = 0 if callable(op.outputs) else op.outputs[0].name
            other = {"y": f", out_{output} for the output", "dy": f", d_{output} for that gradient"}.get(name, "")
            raise error(
                TypeError,
                f"{where}: '{name}' is {_WORDS[name]} there, and the operator has an input of that name; "
                f"write {name}_ for the input (or like_{name} for its shape){other}",
            )
        GradPlan.source(op, True, name)


def _answers(dist: str, owner: str, answers: Mapping[str, Any]) -> None:
    """Look at what hooks have returned, where that needs more than a look at each item."""
    brought = answers.get("mxcore_ops")
    if dist != __package__ and isinstance(brought, Iterable):
        for op in brought:
            if isinstance(op, Op):
                _brought(owner, op)


def _brought(owner: str, op: Op) -> None:
    """Refuse an operator of an author who is not mxcore's where a face shows something else by its name."""
    for name in (op.name, *op.aliases):
        for sub, prefixes in PREFIXES.items():
            for prefix in (p for p in prefixes if name.startswith(p) and (p or sub == "op")):
                inner = "" if sub == "op" else f".{sub}"
                for short, face in (("nd", "ndarray"), ("sym", "symbol")):
                    shown = vars(import_module(f".{face}{inner}", __package__)).get(name[len(prefix) :])
                    if shown is not None and not hasattr(shown, "__signature__"):  # operators' functions have one
                        raise error(
                            ValueError,
                            f"operator '{name}' of {owner}: mx.{short}{inner}.{name[len(prefix) :]} is something else, "
                            "behind which nobody would find it; choose another name",
                        )


def _graph_pass(graph_pass: GraphPass) -> None:
    if not _takes(graph_pass.fn, (1,)):
        raise error(
            TypeError,
            f"graph pass '{graph_pass.name}': it takes {_shown(graph_pass.fn)}; a function (graph) -> Graph is needed",
        )


def _list(kind_of: type, result: Any) -> None:
    if not isinstance(result, Iterable) or isinstance(result, (str, bytes, Mapping)):
        raise TypeError("a list is needed")
    for item in result:
        if not isinstance(item, kind_of):
            raise TypeError(f"{item!r} is no {kind_of.__name__} object")
        if isinstance(item, Device):
            _device(item)


def _dict(kind: str, result: Any) -> None:
    if not isinstance(result, Mapping):
        raise TypeError('a dict is needed, name -> class or "module:attr"')
    for name, value in result.items():
        if value is None:
            raise TypeError(f"{name!r}: None stands in the place of what it names")
        if not (name and isinstance(name, str) and (isinstance(value, str) or callable(value) or kind == "cli")):
            raise TypeError(f"{name!r}: {value!r} is not a name with a class or 'module:attr'")
        if kind != "cli" and callable(value) and not (isinstance(value, (type, partial)) or isroutine(value)):
            raise TypeError(f"{name!r}: {value!r} is an object; its class is needed")


def _kernels(owner: str, result: Any) -> None:
    if not isinstance(result, Mapping):
        raise TypeError('a dict is needed, device type -> KernelSet or "module:attr"')
    for device, kernels in result.items():
        if not (device and isinstance(device, str)):
            raise error(TypeError, f"hook mxcore_kernels of {owner}: {device!r} is not the name of a device type")
        if isinstance(kernels, KernelSet) and kernels.device not in result:
            raise error(
                ValueError,
                f"hook mxcore_kernels of {owner}: under {device!r} stands a KernelSet for {kernels.device!r}",
            )


def _odd(device: Device, method: str, found: Any, wanted: str) -> Exception:
    """The error of a device whose method returned something else than what is wanted."""
    what = f"an array of {found.dtype} {tuple(found.shape)}" if hasattr(found, "dtype") else f"{found!r}"
    return error(
        TypeError,
        f"device {device.type!r} of {type(device).__module__}: {method}() returned {what[:80]}; {wanted} is needed",
    )


def _device(device: Device) -> None:
    """Refuse values of attributes that operators would stumble over; what is computed later is looked at then."""
    dtypes, least = (getattr_static(device, name) for name in ("dtypes", "fused_from"))
    if not hasattr(dtypes, "__get__"):
        _dtypes(device, (), dtypes)
    if not (isinstance(least, (int, float)) or hasattr(least, "__get__")):
        raise TypeError(f"fused_from of device {device.type!r} is {least!r}; a number of elements is needed")


def _dtypes(device: Device, args: Any, found: Any) -> Any:
    if found is not None and (
        isinstance(found, (str, bytes))
        or not isinstance(found, Collection)
        or not all(isinstance(t, np.dtype) for t in found)
    ):
        raise TypeError(
            f"dtypes of device {device.type!r} is {found!r}; None or a collection of numpy.dtype is needed, such as "
            "{numpy.dtype('float32')}"
        )
    return found


def _count(device: Device, args: Any, found: Any) -> Any:
    if not isinstance(found, (int, np.integer)) or isinstance(found, bool) or found < 0:
        raise _odd(device, "count", found, "a number of devices, 0 or more,")
    return found


def _memory(device: Device, args: Any, found: Any) -> Any:
    try:
        free, total = map(operator.index, found)
    except (TypeError, ValueError):
        raise _odd(device, "memory", found, "two whole numbers, (free, total) bytes,") from None
    return free, total


def _filled(device: Device, args: Any, found: Any) -> Any:
    if len(args) < 3:
        return found
    return _of(device, "full", found, args[0], args[2])


def _of(device: Device, method: str, found: Any, shape: Any, dtype: Any) -> Any:
    """What a method made, which shall be of a shape and dtype."""
    shape, dtype = tuple(shape) if isinstance(shape, Iterable) else (shape,), np.dtype(dtype)
    given = getattr(found, "dtype", None)
    # One that NumPy does not know is equal to none of its own.
    if getattr(found, "shape", None) != shape or given is None or not (given == dtype):
        raise _odd(device, method, found, f"an array of {dtype} {shape}")
    return found


def _emptied(device: Device, args: Any, found: Any) -> Any:
    """Asked often: what is right is seen at once."""
    if len(args) < 2 or getattr(found, "shape", None) == args[0] and getattr(found, "dtype", None) == args[1]:
        return found
    return _of(device, "empty", found, *args[:2])


def _copied(method: str, device: Device, args: Any, found: Any) -> Any:
    """A copy is an array of its own, of the shape and dtype of what was copied."""
    a = args[0]
    if method == "to_host" and not isinstance(found, np.ndarray):
        raise _odd(device, method, found, f"a NumPy array of {a.dtype} {tuple(a.shape)}")
    if (
        getattr(found, "shape", None) != a.shape
        or (dtype := getattr(found, "dtype", None)) != a.dtype
        and dtype != np.dtype(a.dtype).newbyteorder("=")
    ):
        raise _odd(device, method, found, f"an array of {a.dtype} {tuple(a.shape)}, as the one it was given,")
    if found is a or isinstance(found, np.ndarray) and isinstance(a, np.ndarray) and np.may_share_memory(found, a):
        raise _odd(device, method, found, "a copy, which shares no memory with the array that it was given,")
    return found


#: Names that tables, errors and measurements give to what no plugin brings, which would replace or hide it.
_NOT_PLUGINS = (USER, REFERENCE, "compiled chain")


def _plugin(version: int, hooks: Collection[str], name: str, plugin: Any) -> None:
    if name in _NOT_PLUGINS:
        raise error(
            ValueError,
            f"a plugin cannot be named '{name}', which stands for what no plugin brings; "
            "rename its file or entry point",
        )
    if getattr(plugin, "__file__", plugin) is None:
        raise error(
            ImportError,
            f"plugin '{name}' has no code: the folder {plugin.__path__[0]!r} without an __init__.py hides the "
            "installed module; start in another folder",
        )
    spoken = getattr(plugin, "API_VERSION", None)
    if type(spoken) is not int or spoken != version:  # "1", 1.0 and True are no versions
        says = (
            f"speaks plugin API {spoken}"
            if type(spoken) is int
            else f"states API_VERSION = {spoken!r}, where an int is needed"
            if hasattr(plugin, "API_VERSION")
            else "states no API_VERSION"
        )
        raise error(
            RuntimeError,
            f"plugin '{name}' {says}; this mxcore speaks {version} "
            f"(set API_VERSION = {version} in the plugin, or install a release that fits)",
        )
    marked = {n: f for n in dir(plugin) if isroutine(f := getattr(plugin, n)) and hasattr(f, "mxcore_impl")}
    for written, fn in marked.items():
        hook = fn.mxcore_impl.get("specname") or written
        if hook not in hooks:
            raise error(RuntimeError, f"plugin '{name}' implements unknown hook {hook}{suggest(hook, hooks)}")
        if not _takes(fn, (0,)):
            raise error(TypeError, f"hook {hook} of plugin '{name}' takes {_shown(fn)}; hooks take no arguments")
    for hook in hooks:
        if hasattr(plugin, hook) and hook not in marked:
            raise error(TypeError, f"{hook} of plugin '{name}' is not marked as a hook: @hookimpl is missing")


_checks: dict[str, Callable[..., None]] = {
    "operator": _operator,
    "answers": _answers,
    "kernel": _kernel,
    "graph pass": _graph_pass,
    "kernels": _kernels,
    "list of a hook": _list,
    "names of a hook": _dict,
    "plugin": _plugin,
    "gradient rule": _gradient,
    "count of a device": _count,
    "dtypes of a device": _dtypes,
    "memory of a device": _memory,
    "full of a device": _filled,
    "empty of a device": _emptied,
    **{f"{method} of a device": partial(_copied, method) for method in ("to_host", "from_host")},
    **{what: partial(_rule, what) for what in _FORMS},
}
CHECKS.update(_checks)
