"""Do names and shapes of symbols, iterators and checkpoints fit? Answered with the names that there are."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import suggest, warn
from ..base import error
from ..io import DataDesc

__all__ = ["as_list", "check_input_names", "check_names_match", "check_params", "labels_of", "parse_data_desc"]

#: Endings of names that are parameters, hence no candidates for inputs.
_PARAMETER = ("_weight", "_bias", "_gamma", "_beta")

#: Losses whose outputs do not depend on their labels.
_LOSSES = ("SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput")


def as_list(value: Any) -> list[Any]:
    """A list or tuple as a list, anything else as a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def check_input_names(symbol: Any, names: Sequence[str], typename: str, throw: bool) -> None:
    """Check that a symbol has the inputs that a module is made for.

    Parameters
    ----------
    symbol : Symbol
    names : sequence of str
    typename : str
        What they are: 'data', 'label', 'state' or 'fixed_param'.
    throw : bool
        Raise an error; else warn.

    Raises
    ------
    MXNetError
        (also ValueError) naming the inputs that there are.
    """
    args = symbol.list_arguments()
    for name in names:
        if name in args:
            continue
        inputs = [a for a in args if not a.endswith(_PARAMETER)]
        known = args if typename == "fixed_param" else inputs
        text = (
            f"Module(..., {typename}_names={list(names)}): the symbol has no input named "
            f"{name!r}{suggest(name, known)}; "
            f"it has the inputs {inputs}"
            + (f" and the parameters {[a for a in args if a not in inputs]}" if known is args else "")
        )
        if throw:
            raise error(ValueError, text)
        warn(text)


def check_names_match(names: Sequence[str], shapes: Sequence[DataDesc], what: str, throw: bool) -> None:
    """Check that the arrays of batches have the names that the module was made for; raise or warn."""
    found = [d.name for d in shapes]
    if sorted(names) == sorted(found):
        return
    if found:
        text = (
            f"{what}_shapes describes {found}, but the module was made with {what}_names={list(names)}; "
            f"give the iterator's arrays these names, or pass {what}_names={found} to Module"
        )
    else:
        text = (
            f"no {what}_shapes were given, but the module was made with {what}_names={list(names)}; give the "
            "iterator arrays of these "
            f"names. If none are needed, pass {what}_names=None to Module"
        )
    if throw:
        raise error(ValueError, text)
    warn(text)


def parse_data_desc(
    data_names: Sequence[str], label_names: Sequence[str], data_shapes: Any, label_shapes: Any
) -> tuple[list[DataDesc], list[DataDesc] | None]:
    """Descriptions of data and labels, from whatever iterators and users give.

    Parameters
    ----------
    data_names, label_names : sequence of str
    data_shapes, label_shapes : list of DataDesc or of tuples, or None

    Returns
    -------
    data_shapes, label_shapes
        `label_shapes` is None if none were given.
    """
    data = _descriptions(data_shapes, "data_shapes")
    check_names_match(data_names, data, "data", True)
    if label_shapes is None:
        check_names_match(label_names, [], "label", False)
        return data, None
    labels = _descriptions(label_shapes, "label_shapes")
    check_names_match(label_names, labels, "label", False)
    return data, labels


def labels_of(symbol: Any) -> list[str]:
    """Arguments whose values no output needs, as those of labels behind the usual losses, or that are called labels.

    Parameters
    ----------
    symbol : Symbol

    Returns
    -------
    list of str

    Examples
    --------
    >>> import mxcore as mx
    >>> labels_of(mx.sym.SoftmaxOutput(mx.sym.Variable("x"), mx.sym.Reshape(mx.sym.Variable("y"), shape=(-1,))))
    ['y']
    """
    needed, todo = set(), [node for node, _ in symbol._heads]
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            if node.op is not None:
                names = node.params._sig.inputs
                todo += [m for (m, _), n in zip(node.inputs, names) if n != "label" or node.op.name not in _LOSSES]
    counting = {node.name for node in needed}
    return [n for n in symbol.list_arguments() if n not in counting or n.endswith("label")]


def _descriptions(shapes: Any, what: str) -> list[DataDesc]:
    try:
        found = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes]
    except TypeError:
        found = None
    if found is None or not all(
        isinstance(d.name, str) and all(isinstance(n, numbers.Integral) for n in d.shape) for d in found
    ):
        raise error(TypeError, f"{what} must be a list of DataDesc or of (name, shape), got {shapes!r}")
    return found


def check_params(
    needed: Mapping[str, Any], given: Mapping[str, Any] | None, what: str, allow_missing: bool, allow_extra: bool
) -> None:
    """Compare given parameters with those of the network, all at once and before any is copied.

    Parameters
    ----------
    needed, given : dict of str to NDArray
    what : str
        'arg_params' or 'aux_params', for the error.
    allow_missing, allow_extra : bool

    Raises
    ------
    MXNetError
        (also ValueError, or RuntimeError for missing ones) with every name and shape that differs.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping) or not all(hasattr(a, "shape") for a in given.values()):
        raise error(
            TypeError,
            f"{what} must be a dict of names to NDArray, got "
            + (
                f"{type(given).__name__}; mx.model.load_params reads a checkpoint"
                if not isinstance(given, Mapping)
                else f"{next(f'{type(a).__name__} for {n!r}' for n, a in given.items() if not hasattr(a, 'shape'))}"
            ),
        )
    wrong = [
        f"{n} has shape {tuple(given[n].shape)}, the network needs {tuple(a.shape)}"
        for n, a in needed.items()
        if n in given and tuple(given[n].shape) != tuple(a.shape)
    ]
    missing = [n for n in needed if n not in given]
    extra = [n for n in given if n not in needed]
    bad_missing, bad_extra = bool(missing) and not allow_missing, bool(extra) and not allow_extra
    if not (wrong or bad_missing or bad_extra):
        return
    lines = [f"{what} do not fit the network:"]
    lines += [f"  {line}" for line in _some(wrong)]
    if bad_missing:
        lines.append(f"  missing: {_listed(missing, needed)}")
    if extra and (bad_extra or missing or wrong):
        lines.append(f"  not in the network: {_listed(extra, given)}")
    hints = [
        t
        for t, yes in (
            ("allow_missing=True initialises the missing ones", bad_missing),
            ("allow_extra=True leaves out the others", bad_extra),
        )
        if yes
    ]
    raise error(
        ValueError if wrong or bad_extra else RuntimeError,
        "\n".join(lines) + ("\n" + "; ".join(hints) if hints else ""),
    )


def _some(lines: list[str], most: int = 20) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"… and {len(lines) - most} more"]


def _listed(names: Iterable[str], arrays: Mapping[str, Any]) -> str:
    return ", ".join(_some([f"{n} {tuple(arrays[n].shape)}" for n in names]))
