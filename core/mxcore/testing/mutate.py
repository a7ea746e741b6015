"""Uses of operators that nobody meant: a sample with an input, a size, a dtype, a value or a parameter changed.

What is chosen comes from a random generator: a `random.Random`, or hypothesis' ``randoms(use_true_random=False)``,
which makes a failing use small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.op import Op
from .sample import Sample

__all__ = ["Use", "mutated"]

#: Results of a mutation stay smaller than this.
_MOST = 4096
_DTYPES = ("int8", "uint8", "int32", "int64", "bool", "float16", "float32", "float64")
#: What a parameter may be given instead: out of any range, of another type, or nothing that a parameter can be.
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    -7,
    100,
    2**31 - 1,
    -(2**31),
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    0.0,
    0.5,
    -0.5,
    1.5,
    1e-30,
    1e30,
    -1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    "None",
    "nan",
    "1",
    "-1",
    "1.5",
    "True",
    "(1, 2)",
    "(1,",
    "[2]",
    "1e400",
    "0x10",
    "None,",
    "\0",
    "é",
    (),
    (0,),
    (1,),
    (-1,),
    (-2,),
    (2,),
    (0, 0),
    (1, 1),
    (2, 2),
    (0, 1),
    (-1, 2),
    (1, 2, 3),
    (1,) * 33,
    (2**31,),
    (2**63,),
    (10**30,),
    (1.5,),
    (None,),
    (None, 1),
    ("a",),
    ((1,), (2,)),
    (float("nan"), float("inf")),
    [1, 2],
    [],
    {},
    {"a": 1},
    b"x",
    1j,
    np.int64(2),
    np.float32(1.5),
    np.bool_(True),
    np.array([1, 2]),
    np.array(3),
    np.zeros((0,)),
    object,
    "float32",
    "int32",
    "bool",
    "float128",
    "complex64",
    "cpu(0)",
    "cpu(99)",
    "gpu(0)",
)
#: What an input may be given instead of an array.
_FOREIGN: tuple[Any, ...] = (
    None,
    1,
    1.5,
    "x",
    [1, 2],
    (1, 2),
    {},
    np.ones((2, 3), np.float32),
    np.float32(1),
    object(),
)
_ELEMENTS = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e9, -1e9, 1e38, 0.5, 1e-40)


class Use:
    """One use of an operator.

    Attributes
    ----------
    op : Op
    inputs : list
        NumPy arrays, and what is given in the place of one.
    kwargs : dict
    train : bool
    notes : list of str
        What was changed.
    """

    def __init__(self, op: Op, sample: Sample, dtype: str) -> None:
        self.op, self.train = op, sample.train
        self.inputs: list[Any] = sample.arrays(dtype)
        self.kwargs: dict[str, Any] = dict(sample.params)
        if op.variadic and not op.arg_names:
            self.kwargs.setdefault(op.count, len(self.inputs))
        self.notes: list[str] = []

    def arrays_only(self) -> bool:
        """Whether every input is an array."""
        return all(isinstance(a, np.ndarray) for a in self.inputs) and not any(
            n.startswith("foreign") for n in self.notes
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in self.inputs)
        return (
            f"{self.op.name}({shown}; {', '.join(f'{k}={v!r}' for k, v in self.kwargs.items())}) "
            f"[{'; '.join(self.notes)}]"
        )


def mutated(op: Op, rnd: Any, most: int = 2) -> Use:
    """A use of an operator with one to `most` changes.

    Parameters
    ----------
    op : Op
        With samples.
    rnd : random.Random or the like
        Makes the choices.
    most : int
    """
    sample = rnd.choice(op.samples)
    use = Use(op, sample, rnd.choice(sample.dtypes))
    kinds = [k for k in _KINDS if use.op.params or k not in (_parameter, _missing)]
    for _ in range(rnd.choice(range(1, most + 1))):
        rnd.choice(kinds if use.inputs else [k for k in kinds if k in (_parameter, _missing, _unknown, _add)])(use, rnd)
    return use


def _array(use: Use, rnd: Any) -> int | None:
    """The place of some array among the inputs."""
    places = [i for i, a in enumerate(use.inputs) if isinstance(a, np.ndarray)]
    return rnd.choice(places) if places else None


def _change(use: Use, rnd: Any, fn: Callable[[Any], Any], what: str) -> None:
    """Put another array in the place of one."""
    i = _array(use, rnd)
    if i is not None:
        with np.errstate(all="ignore"):
            new = fn(use.inputs[i])
        if new is not None and new.size <= _MOST:
            use.inputs[i] = np.ascontiguousarray(new) if new.ndim else new
            use.notes.append(f"{what} of input {i}")


def _drop(use: Use, rnd: Any) -> None:
    i = rnd.choice(range(len(use.inputs)))
    del use.inputs[i]
    use.notes.append(f"dropped input {i}")


def _add(use: Use, rnd: Any) -> None:
    use.inputs.insert(
        rnd.choice(range(len(use.inputs) + 1)), np.ones(rnd.choice(((), (1,), (2, 3), (0,))), rnd.choice(_DTYPES))
    )
    use.notes.append("added input")


def _double(use: Use, rnd: Any) -> None:
    i = rnd.choice(range(len(use.inputs)))
    use.inputs.append(use.inputs[i])
    use.notes.append(f"input {i} twice")


def _swap(use: Use, rnd: Any) -> None:
    i, j = rnd.choice(range(len(use.inputs))), rnd.choice(range(len(use.inputs)))
    use.inputs[i], use.inputs[j] = use.inputs[j], use.inputs[i]
    use.notes.append(f"exchanged inputs {i} and {j}")


def _foreign(use: Use, rnd: Any) -> None:
    i = rnd.choice(range(len(use.inputs)))
    use.inputs[i] = rnd.choice(_FOREIGN)
    use.notes.append(f"foreign input {i}")


def _rank(use: Use, rnd: Any) -> None:
    how = rnd.choice(("more", "last", "less", "flat", "none", "many"))
    _change(
        use,
        rnd,
        {
            "more": lambda a: a[None],
            "last": lambda a: a[..., None],
            "less": lambda a: a[0] if a.ndim and len(a) else None,
            "flat": lambda a: a.reshape(-1),
            "none": lambda a: a.reshape(-1)[0].reshape(()) if a.size else None,
            "many": lambda a: a.reshape((1,) * 6 + a.shape),
        }[how],
        f"rank ({how})",
    )


def _size(use: Use, rnd: Any) -> None:
    n, part = rnd.choice((0, 1, "+1", "-1", "x2")), rnd.choice(range(8))

    def resized(a: Any) -> Any:
        if not a.ndim:
            return None
        axis = part % a.ndim
        d = a.shape[axis]
        length = {"+1": d + 1, "-1": d - 1, "x2": 2 * d}.get(n, n) if isinstance(n, str) else n
        return np.take(a, np.arange(max(length, 0)) % d, axis) if d and length >= 0 else None

    _change(use, rnd, resized, f"size ({n})")


def _dtype(use: Use, rnd: Any) -> None:
    t = rnd.choice(_DTYPES)
    _change(use, rnd, lambda a: a.astype(t), f"dtype {t}")


def _all_dtypes(use: Use, rnd: Any) -> None:
    t = rnd.choice(_DTYPES)
    with np.errstate(all="ignore"):
        use.inputs = [a.astype(t) if isinstance(a, np.ndarray) else a for a in use.inputs]
    use.notes.append(f"dtype {t} of all")


def _value(use: Use, rnd: Any) -> None:
    v, all_ = rnd.choice(_ELEMENTS), rnd.choice((False, True))

    def filled(a: Any) -> Any:
        new = a.copy()
        if new.size:
            new.reshape(-1)[slice(None) if all_ else slice(-1, None)] = np.asarray(v).astype(new.dtype)
        return new

    _change(use, rnd, filled, f"{'values' if all_ else 'last value'} {v}")


def _parameter(use: Use, rnd: Any) -> None:
    name = rnd.choice(sorted(use.op.params))
    use.kwargs[name] = rnd.choice(_VALUES)
    use.notes.append(f"parameter {name}")


def _missing(use: Use, rnd: Any) -> None:
    if use.kwargs:
        name = rnd.choice(sorted(use.kwargs))
        del use.kwargs[name]
        use.notes.append(f"no parameter {name}")


def _unknown(use: Use, rnd: Any) -> None:
    name = rnd.choice(("no_such", "axis_", "Data", "ctx", "dtype", "kernel", "arg0"))
    if name not in use.op.params:
        use.kwargs[name] = rnd.choice(_VALUES)
        use.notes.append(f"parameter {name}")


#: Half of the changes are to parameters and sizes, where most mistakes are made.
_KINDS = (
    _parameter,
    _parameter,
    _parameter,
    _missing,
    _unknown,
    _rank,
    _rank,
    _size,
    _size,
    _size,
    _dtype,
    _all_dtypes,
    _value,
    _drop,
    _add,
    _double,
    _swap,
    _foreign,
)
