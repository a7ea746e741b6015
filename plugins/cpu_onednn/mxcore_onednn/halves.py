"""bfloat16 by other plugins' kernels of float32: widened, computed, and rounded once, piece by piece.

Reference bodies over bfloat16 take NumPy's loops, of which each converts element by element, and rounds. Here inputs
become float32 in pieces that stay in the caches, whoever is best at float32 computes, and the library rounds.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_float
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from mxcore.layouts import channels_first
from mxcore.plugin import Call, Context, Params, Spec, find_op, given_params, kernel_without

from .calls import MOST, PRIORITY, dtype_name, is_dense, kernels
from .library import NoMemory
from .pointwise import narrow
from .rooms import MUCH, Room

__all__ = ["FORMS", "Form", "compute"]

Arrays = Sequence[Any]
_FLOAT32 = np.dtype(np.float32)
#: Elements of a piece: what is read and written stays in caches, and threads wait for each other seldom.
_PIECE = 1 << 19
#: Elements from which most operators are faster so; from which those are whose bodies take many passes.
_FAR, _NEAR = 1 << 17, 1 << 15


class Form(NamedTuple):
    """Which parts of its arrays an operator may compute one after the other.

    Attributes
    ----------
    ins, outs : tuple of int
        The inputs and outputs that are cut along the first axis, so that a piece of these outputs needs the same piece
        of these inputs, and the other inputs whole; other outputs are the same for each piece. Without any it is
        computed as a whole.
    summed : tuple of int
        The outputs that are sums over pieces.
    flat : bool
        It is computed element by element, of arrays of one shape, which are one long axis then; all are cut.
    when : callable, optional
        ``(k, p, data) -> bool``: whether it may be cut. Without it: always.
    least : int or mapping of str to int
        Of fewer elements the reference body is the faster one; for each `act_type` that is served.
    fits : callable, optional
        ``p -> bool``: whether it is served. Without it: always.
    again : str
        The operator of which inputs 3 and 4 are the second and the third output: they are computed anew from inputs 1
        and 2, for those that were handed out are rounded.
    """

    ins: tuple[int, ...] = (0,)
    outs: tuple[int, ...] = (0,)
    summed: tuple[int, ...] = ()
    flat: bool = False
    when: Callable[[Call, Params, Any], bool] | None = None
    least: int | Mapping[str, int] = _FAR
    fits: Callable[[Params], bool] | None = None
    again: str = ""

    def cuts(self, k: Call, p: Params, ins: Arrays) -> bool:
        """Whether these arrays may be cut."""
        return bool(self.ins) and (self.when is None or self.when(k, p, ins[self.ins[-1]]))


def _behind(k: Call, p: Params, data: Any) -> bool:
    """Whether the axis of a layer is not the first one."""
    return bool(p.axis % data.ndim)


def _predicts(k: Call, p: Params, data: Any) -> bool:
    return _behind(k, p, data) and (not k.is_train or p.use_global_stats)


def _largest(p: Params) -> bool:
    """Pooling that others have kernels for: channels first, and of averages the body is fast."""
    return channels_first(p) and p.pool_type == "max"


def _alike(p: Params) -> bool:
    """Whether the output has the dtype of the data."""
    return p.dtype is None


_ELEMENTS, _WHOLE, _NORMS = Form(flat=True), Form((), ()), Form(outs=(0, 1, 2))
#: Of the gradient that comes in, data, gamma, mean and standard deviation, to those of data, gamma and beta.
_NORM_GRADIENTS = Form((0, 3, 4, 1), summed=(1, 2))
_SOON = {"sigmoid": 1 << 13, "tanh": 1 << 13, "softrelu": 1 << 13, "softsign": 1 << 14}
_BENT = {"gelu": 1 << 10, "elu": _NEAR, "selu": _NEAR}

#: What is served -> how. ``docs/onednn.md`` has the figures.
FORMS: dict[str, Form] = {
    "Activation": _ELEMENTS._replace(least={"relu": _FAR, **_SOON}),
    "_backward_Activation": _ELEMENTS._replace(least=dict.fromkeys(["relu", *_SOON], _NEAR)),
    "LeakyReLU": _ELEMENTS._replace(least=_BENT),
    "_backward_LeakyReLU": _ELEMENTS._replace(least={"leaky": _NEAR, **_BENT}),
    **dict.fromkeys("sigmoid tanh exp log erf".split(), _ELEMENTS._replace(least=_NEAR)),
    **dict.fromkeys("relu sqrt square".split(), _ELEMENTS),
    **{f"{how}_{f}": _ELEMENTS for how in ("elemwise", "broadcast") for f in "add sub mul div".split()},
    "_grad_add": _ELEMENTS,
    **dict.fromkeys("softmax log_softmax".split(), Form(when=_behind, least=1 << 16, fits=_alike)),
    "_backward_log_softmax": Form((0, 1), when=_behind, least=1 << 16),
    "LayerNorm": _NORMS._replace(when=_behind),
    **dict.fromkeys("GroupNorm InstanceNorm".split(), _NORMS),
    "_backward_LayerNorm": _NORM_GRADIENTS._replace(when=_behind, again="LayerNorm"),
    **{f"_backward_{name}": _NORM_GRADIENTS._replace(again=name) for name in ("GroupNorm", "InstanceNorm")},
    **dict.fromkeys("BatchNorm _contrib_BatchNormWithReLU".split(), Form(when=_predicts)),
    **dict.fromkeys("_backward_BatchNorm _backward_contrib_BatchNormWithReLU SoftmaxOutput".split(), _WHOLE),
    "Pooling": Form(least=_NEAR, fits=_largest),
    "_backward_Pooling": Form((0, 1, 2), least=1 << 16, fits=_largest),
    "LRN": Form(),
    "_backward_LRN": Form((0, 1)),
}


# -- casts ----------------------------------------------------------------------------------------------------------
def _narrow(dtype: Any) -> bool:
    return dtype_name(dtype) == "bfloat16"


class _Scratch(threading.local):
    """A thread's memory for what is widened: what is asked for anew the system fills with zeros first."""

    def __init__(self) -> None:
        self.room = Room()

    @contextlib.contextmanager
    def lent(self, shapes: Sequence[Sequence[int]]) -> Iterator[list[Any]]:
        """Arrays of float32 for a call; much of it is the device's, which keeps some for whoever comes next."""
        ends = [*itertools.accumulate(-(-prod(shape) // _LINE) * _LINE for shape in shapes)]
        size = ends[-1] if ends else 0
        if 4 * size >= MUCH:
            yield [_device().empty(tuple(shape), _FLOAT32, 0) for shape in shapes]
            return
        with self.room.lent() as room:
            try:
                place = room.at(4 * size)
            except NoMemory as e:
                raise MemoryError(str(e)) from e
            numbers = np.ctypeslib.as_array((c_float * size).from_address(place))
            yield [numbers[at : at + prod(s)].reshape(s) for at, s in zip([0, *ends], shapes)]


_scratch = _Scratch()
#: Numbers of float32 in a line of the cache.
_LINE = 16


@cache
def _device() -> Any:
    return Context("cpu", 0).device


# -- pieces ---------------------------------------------------------------------------------------------------------
class _Float32:
    """An operator over float32, for arrays of the same shapes again and again."""

    def __init__(self, name: str, k: Call, p: Params) -> None:
        self.op, self.k, self.p = find_op(name), k, p
        self.shapes: Any = None
        self.kernel: Any = None

    def __call__(self, outs: Arrays, ins: Arrays) -> Arrays:
        """The outputs: those that were given and are not None, or others."""
        shapes = [a.shape for a in ins]
        if shapes != self.shapes:
            specs = [Spec(a.shape, a.dtype) for a in ins]
            self.kernel = kernel_without("cpu_onednn", self.op.name, self.k.device.type, self.p, *specs)
            self.shapes = shapes
        if self.kernel is not None:
            self.kernel(self.k, self.p, [*outs], *ins)
            return outs
        found = self.op.body(self.k, self.p, *ins)  # type: ignore[misc]
        return found if isinstance(found, (list, tuple)) else [found]


class _Again(_Float32):
    """The gradient of a layer that normalizes, with statistics made anew."""

    def __init__(self, name: str, k: Call, p: Params, forward: str) -> None:
        super().__init__(name, k, p)
        self.forward = _Float32(forward, k, find_op(forward).parse(given_params(p)))

    def __call__(self, outs: Arrays, ins: Arrays) -> Arrays:
        dy, data, gamma, *stats = ins
        places = [None, *(np.empty(a.shape, _FLOAT32) for a in stats)]
        found = self.forward(places, [data, gamma, self.k.xp.zeros_like(gamma)])
        return super().__call__(outs, [dy, data, gamma, *found[1:]])


class _Wide:
    """An array of the operator as float32: a piece of it, in memory that all pieces share, or all of it."""

    def __init__(self, a: Any, rows: int) -> None:
        self.array, self.cut, self.place = a, bool(rows), None
        #: That of its memory, if it needs some.
        self.shape: Any = None
        if _narrow(a.dtype):
            self.shape = (min(rows, len(a)), *a.shape[1:]) if rows else a.shape

    def piece(self, at: int, rows: int) -> Any:
        """The array's own."""
        return self.array[at : at + rows] if self.cut else self.array

    def there(self, at: int, rows: int) -> Any:
        """Where it is as float32."""
        mine = self.piece(at, rows)
        return mine if self.place is None else self.place[: len(mine)] if self.cut else self.place

    def read(self, at: int, rows: int) -> Any:
        """Widen it."""
        there = self.there(at, rows)
        if self.place is not None and (self.cut or not at):
            np.copyto(there, self.piece(at, rows))
        return there

    def write(self, found: Any, at: int, rows: int) -> None:
        """Put a value that was found into the array."""
        mine = self.piece(at, rows)
        if self.place is not None:
            narrow(found, mine)
        elif found is not mine:
            mine[...] = found


def compute(name: str, k: Call, p: Params, outs: Arrays, *ins: Any) -> None:
    """Compute an operator of :data:`FORMS`, as a kernel."""
    form = FORMS[name]
    n = rows = 0
    if form.flat:
        form = form._replace(ins=tuple(range(len(ins))), outs=(0,))
    if form.cuts(k, p, ins):
        n = len(ins[form.ins[0]])
        rows = max(1, _PIECE // max(ins[i].size // n for i in form.ins))
    float32 = _Again(name, k, p, form.again) if form.again else _Float32(name, k, p)
    reads = [_Wide(a, rows if i in form.ins else 0) for i, a in enumerate(ins)]
    writes = [None if o is None else _Wide(o, rows if i in form.outs else 0) for i, o in enumerate(outs)]
    wide = [w for w in (*reads, *writes) if w is not None and w.shape is not None]
    with _scratch.lent([w.shape for w in wide]) as places:
        for w, place in zip(wide, places):
            w.place = place
        _in_pieces(float32, form, reads, writes, n, rows)


def _in_pieces(
    float32: _Float32, form: Form, reads: Sequence[_Wide], writes: Sequence[_Wide | None], n: int, rows: int
) -> None:
    totals: dict[int, Any] = {}
    for at in range(0, n, rows) if rows else (0,):
        given = [a.read(at, rows) for a in reads]
        places = [o and o.there(at, rows) for o in writes]
        last = at + rows >= n
        for i, (value, o) in enumerate(zip(float32(places, given), writes)):
            if o is None or value is None:  # a state that stays
                continue
            if rows and i in form.summed:
                totals[i] = value = totals[i] + value if at else value.copy()
            if o.cut or last:
                o.write(value, at, rows)


def _serves(form: Form, p: Params, *specs: Spec) -> bool:
    """Whether an operator computes over bfloat16 alone, or with parameters and statistics of float32."""
    kinds = {s.stype if s.stype != "default" else dtype_name(s.dtype) for s in specs}
    if "bfloat16" not in kinds or not kinds <= {"bfloat16", "float32"} or form.fits and not form.fits(p):
        return False
    sizes = [s.size for s in specs]
    least = form.least if isinstance(form.least, int) else form.least.get(p.act_type, MOST + 1)
    return min(sizes) > 0 and least <= max(sizes) <= MOST and not (form.flat and len({s.shape for s in specs}) > 1)


def _flat(name: str, k: Call, p: Params, outs: Arrays, *ins: Any) -> None:
    out = outs[0]
    place = out if is_dense(out) else np.empty(out.shape, out.dtype)
    compute(name, k, p, [place.reshape(-1)], *[a.reshape(-1) for a in ins])
    if place is not out:
        out[...] = place


for _name, _form in FORMS.items():
    kernels.kernel(_name, when=partial(_serves, _form), priority=PRIORITY - 1, out=True)(
        partial(_flat if _form.flat else compute, _name)
    )
