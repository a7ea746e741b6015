"""Which functions are also methods of arrays and symbols of ``mx.np``, and the operators of ``mx.nd`` that are."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from ..._core.errors import error

__all__ = ["METHODS", "OPERATOR_METHODS", "axes_of", "method", "shape_of", "shown"]

#: Method -> function of the face, which is called with the array first; ``npx.`` and ``linalg.`` name sub-modules.
METHODS: dict[str, str] = {
    n: n
    for n in """
    abs all any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argpartition argsort cbrt ceil choose
    cos cosh cumprod cumsum degrees diag diagonal dot exp expand_dims expm1 fix flip floor log log10 log1p log2
    max mean min nanprod nansum nonzero ones_like pad prod ptp radians ravel reciprocal repeat rint
    searchsorted sign sin sinh sort split sqrt square std sum swapaxes take tan tanh tile trace trunc var zeros_like
    """.split()
}
METHODS.update({"round": "around", "norm": "linalg.norm"})
METHODS.update(
    {
        n: f"npx.{n}"
        for n in """
        arange_like log_softmax one_hot pick relu reshape_like sequence_mask shape_array sigmoid slice smooth_l1 softmax
        topk
        """.split()
    }
)
#: Method -> operator of ``mx.nd`` that nothing in ``mx.np`` stands for.
OPERATOR_METHODS: dict[str, str] = {
    "argmax_channel": "argmax_channel",
    "broadcast_axes": "broadcast_axis",
    "depth_to_space": "depth_to_space",
    "rcbrt": "rcbrt",
    "rsqrt": "rsqrt",
    "size_array": "size_array",
    "slice_axis": "slice_axis",
    "slice_like": "slice_like",
    "softmin": "softmin",
    "space_to_depth": "space_to_depth",
}


def method(name: str, function: str, functions: Callable[[], Any]) -> Any:
    """A method that calls a function with its array or symbol first.

    Parameters
    ----------
    name : str
    function : str
        As :data:`METHODS` names it.
    functions : callable
        Gives the face, which is asked when the method is first called.
    """
    find = attrgetter(function)
    found: list[Any] = []

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(find(functions()))
        return found[0](self, *args, **kwargs)

    return shown(call, name, f"Same as ``{'' if function.startswith('npx.') else 'np.'}{function}`` of this array.")


def shown(call: Any, name: str, doc: str) -> Any:
    """A method with its name and documentation."""
    call.__name__, call.__qualname__ = name, f"ndarray.{name}"
    call.__doc__ = f"{doc} The arguments follow."
    return call


def shape_of(shape: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The new shape and the order that arguments of a method ``reshape`` tell: lengths, or one shape."""
    order = kwargs.pop("order", "C")
    if kwargs.keys() & {"shape", "newshape"} and not shape:
        shape = (kwargs.pop("shape" if "shape" in kwargs else "newshape"),)
    if kwargs:
        raise error(TypeError, f"reshape has no argument '{next(iter(kwargs))}'; it takes lengths and order")
    if not shape:
        raise error(TypeError, "reshape needs a shape")
    return shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape, order


def axes_of(axes: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The permutation that arguments of a method ``transpose`` tell: axes, one sequence of them, or none."""
    if kwargs:
        axes = (kwargs.pop("axes", None),)
    one = len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list)))
    return (axes[0] if one else axes) or None
