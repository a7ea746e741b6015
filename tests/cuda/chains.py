"""Random fused chains, and where their results must agree on two devices.

Steps that are made of sums, products and the like alone have the same bits everywhere. Others differ in their last
places, and then `floor`, `>` and rounding to float16 may make a step's whole height of it: numbers that are so near to
such an edge are left out, and so is what is added up of them.
"""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from mxcore.fusion import Expr
from mxcore.plugin import Fused

__all__ = ["Case", "cases", "differences", "values"]

#: Of one value and of two, by NumPy in float64; those of INEXACT have no bits of their own.
UNARY = {
    "tanh": np.tanh,
    "exp": np.exp,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "softplus": lambda a: np.logaddexp(a, 0),
    "abs": np.abs,
    "square": np.square,
    "relu": lambda a: np.maximum(a, 0),
    "floor": np.floor,
    "-": np.negative,
}
INEXACT = {"tanh", "exp", "sigmoid", "softplus"}
BINARY = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": lambda a, b: a / (np.abs(b) + 1),
    ">": np.greater,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
#: How far values may be off, by the largest number on their way. Larger ones than LARGEST tell nothing: their errors
#: grow by products.
FAR, LARGEST = {"float16": 1e-5, "float32": 1e-5, "float64": 1e-12}, 1e3


class Step(NamedTuple):
    """A value: its name and dtype, and the function of which earlier ones it is."""

    name: str
    dtype: str
    fn: str
    args: tuple[str, ...]

    @property
    def text(self) -> str:
        a, *rest = self.args
        if not rest:
            return {"exp": f"exp(minimum({a}, 3))", "-": f"(-{a})"}.get(self.fn, f"{self.fn}({a})")
        b = f"(abs({rest[0]}) + 1)" if self.fn == "/" else rest[0]
        return f"{self.fn}({a}, {b})" if self.fn.isalpha() else f"({a} {self.fn} {b})"


class Case(NamedTuple):
    """A chain over arrays of random numbers."""

    dtype: str
    types: dict[str, str]
    inputs: list[str]
    scalars: list[str]
    steps: list[Step]
    shape: list[int]
    masks: list[list[bool]]
    reduce: list[str | None]
    kept: list[bool]

    def type_of(self, name: str) -> str:
        return self.types.get(name, self.dtype)

    @property
    def outputs(self) -> list[str]:
        return [step.name for step in self.steps[-len(self.reduce) :]]

    @property
    def axes(self) -> tuple[int, ...]:
        """Those that are reduced."""
        return tuple(i for i, k in enumerate(self.kept) if not k)

    def shapes(self) -> list[tuple[int, ...]]:
        """Of the outputs."""
        less = tuple(d if k else 1 for d, k in zip(self.shape, self.kept))
        return [tuple(self.shape) if how is None else less for how in self.reduce]

    def chain(self) -> Fused:
        known, steps = {*self.inputs, *self.scalars}, []
        for step in self.steps:
            within = "float32" if step.dtype == "float16" else step.dtype
            tree = self._read(Expr(step.text, known).tree, within)
            steps.append((step.name, ("cast", "float16", tree) if step.dtype == "float16" else tree))
            known.add(step.name)
        return Fused(
            self.inputs, self.outputs, self.dtype, scalars=self.scalars, steps=steps, reduce=self.reduce,
            types=self.types,
        )  # fmt: skip

    def _read(self, tree: Any, dtype: str) -> Any:
        """An expression whose names of other dtypes are cast."""
        if tree[0] == "name":
            return tree if self.type_of(tree[1]) == dtype else ("cast", dtype, tree)
        return tuple(self._read(t, dtype) if isinstance(t, tuple) else t for t in tree)


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(["float32", "float64"]))
    other = "float16" if dtype == "float32" else "float32"
    inputs = [f"x{i}" for i in range(draw(st.integers(1, 4)))]
    scalars = [f"s{i}" for i in range(draw(st.integers(0, 2)))]
    types = {name: other for name in inputs if draw(st.integers(0, 3)) == 0}
    names, steps = [*inputs, *scalars], []
    for i in range(draw(st.integers(1, 7))):
        functions = draw(st.sampled_from([UNARY, BINARY]))
        near = st.sampled_from([*names, *names[-2:], *names[-1:]])
        args = tuple(draw(near) for _ in range(1 + (functions is BINARY)))
        kind = draw(st.sampled_from([dtype, dtype, other]))
        step = Step(f"t{i}", kind, draw(st.sampled_from([*functions])), args)
        steps.append(step)
        names.append(step.name)
    types |= {step.name: step.dtype for step in steps if step.dtype != dtype}
    shape = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    flags = st.lists(st.booleans(), min_size=len(shape), max_size=len(shape))
    masks = [[True] * len(shape), *(draw(flags) for _ in inputs[1:])]
    hows = st.sampled_from([None, "sum", "mean", "max", "min"])
    # The CPU's code adds up float32 and float64 only.
    reduce = [draw(hows) if step.dtype != "float16" else None for step in steps[-3:]]
    kept = draw(flags)
    if all(kept):
        reduce = [None] * len(reduce)
    return Case(dtype, types, inputs, scalars, steps, shape, masks, reduce, kept)


def values(case, seed):
    """Arrays for the inputs, and numbers: such as float16 has."""
    rs = np.random.RandomState(seed)
    arrays = [
        rs.uniform(-1.5, 1.5, [d if m else 1 for d, m in zip(case.shape, mask)])
        .astype("float16")
        .astype(case.type_of(name))
        for name, mask in zip(case.inputs, case.masks)
    ]
    return arrays, [float(np.float16(rs.uniform(-1.5, 1.5))) for _ in case.scalars]


class Known(NamedTuple):
    """A step by NumPy: its value, the largest number on its way, how far it may be off, whether it has its own bits.

    Where an edge is so near that devices may be on different sides of it, it is `unsure`.
    """

    value: Any
    largest: Any
    far: float
    exact: bool
    unsure: Any


def _step(step, args):
    """A step of what is known of its arguments."""
    exact = step.fn not in INEXACT and all(a.exact for a in args)
    given = [np.minimum(a.value, 3) if step.fn == "exp" else a.value for a in args]
    y = np.asarray((UNARY if len(args) == 1 else BINARY)[step.fn](*given), "float64")
    largest = np.maximum.reduce(np.broadcast_arrays(np.abs(y), 1.0, *(a.largest for a in args)))
    far = max(FAR[step.dtype], *(a.far for a in args))
    unsure = np.logical_or.reduce(np.broadcast_arrays(np.zeros(y.shape, bool), *(a.unsure for a in args)))
    edge = np.inf
    if step.fn in (">", "floor"):
        edge = given[0] - (np.rint(given[0]) if step.fn == "floor" else given[1])
    if step.dtype == "float16":
        exactly, y = y, y.astype("float16").astype("float64")
        edge = np.minimum(np.abs(edge), _to_the_next_half(exactly))
    return Known(y, largest, far, exact, unsure if exact else unsure | (np.abs(edge) <= far * largest))


def _to_the_next_half(y):
    """How far numbers are from those between two of float16."""
    near = y.astype("float16")
    ends = (np.nextafter(near, np.float16(end)).astype("float64") for end in (-np.inf, np.inf))
    return np.minimum(*(np.abs(y - (near + end) / 2) for end in ends))


def differences(case, arrays, numbers, found, expected):
    """(how many numbers of all outputs were compared, those that differ as (name, found, expected))."""
    one = np.ones(case.shape)
    known = {
        name: Known(v * one, np.maximum(np.abs(v * one), 1), 0.0, True, np.zeros(case.shape, bool))
        for name, v in zip((*case.inputs, *case.scalars), (*arrays, *numbers))
    }
    with np.errstate(all="ignore"):
        for step in case.steps:
            known[step.name] = _step(step, [known[a] for a in step.args])
    compared, wrong = 0, []
    for name, how, a, b in zip(case.outputs, case.reduce, found, expected):
        k = known[name]
        largest, unsure = k.largest, k.unsure
        if how is not None:
            join = {"sum": np.sum, "mean": np.mean}.get(how, np.max)
            largest, unsure = join(largest, case.axes, keepdims=True), unsure.any(case.axes, keepdims=True)
        top = k.largest.max(case.axes, keepdims=True) if how is not None else k.largest
        usable = ~unsure & (top < LARGEST)
        a, b = (v.astype("float64") for v in (a, b))
        far = 0.0 if k.exact and how in (None, "max", "min") else max(k.far, FAR[case.type_of(name)])
        near = np.isclose(a, b, rtol=0, atol=far * largest)
        compared += int(usable.sum())
        if (usable & ~near).any():
            wrong.append((name, a[usable & ~near][:5], b[usable & ~near][:5]))
    return compared, wrong
