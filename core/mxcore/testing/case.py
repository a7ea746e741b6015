"""One sample of an operator in one dtype on one device: its inputs, its reference results and its runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import autograd
from .._core import dispatch, infer, rng
from .._core.array import Storage
from .._core.context import Context
from .._core.device import Device
from .._core.errors import MXNetError
from .._core.op import Op
from ..ndarray import NDArray
from ..philox import Rng
from .sample import Sample

__all__ = ["Case", "cases", "Host"]


class Host(Device):
    """NumPy as it is: where reference bodies run, apart from all plugins."""

    type, type_id, xp = "host", 998, np

    def count(self) -> int:
        """One."""
        return 1

    def to_host(self, a: Any) -> Any:
        return np.array(a)

    def from_host(self, a: Any, index: int) -> Any:
        return np.array(a)


class Call:
    """What a body knows of its call, on any device object, registered or not."""

    def __init__(self, device: Device, is_train: bool, key: Any = (0, 0, 0), shapes: Any = None) -> None:
        self.device, self.xp, self.is_train, self.key, self.shapes = device, device.xp, is_train, key, shapes
        self.wanted: Any = None
        self.ctx: Any = None

    @property
    def rng(self) -> Rng:
        """The numbers of the key."""
        rng: Rng = self.device.rng(self.key, 0)
        return rng


def _wide(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype(np.float64) if a.dtype.kind in "fV" else a


class Case:
    """A sample, ready to run.

    Parameters
    ----------
    op : Op
    sample : Sample
    dtype : str
    ctx : Context
    """

    def __init__(self, op: Op, sample: Sample, dtype: str, ctx: Context) -> None:
        self.op, self.sample, self.dtype, self.ctx = op, sample, dtype, ctx
        self.device = ctx.device
        self.host = sample.arrays(dtype)
        self.p = op.parse(self.kwargs)
        self.sig = self.p._sig
        #: Factor on all tolerances.
        self.widen = 1.0
        self._reference: list[Any] | None = None

    def __repr__(self) -> str:
        return f"{self.op.name} {self.sample!r} {self.dtype}"

    # -- declared ----------------------------------------------------------------------------------------------
    def declared(self) -> tuple[list[Any], list[Any]]:
        """Shapes and dtypes of the outputs, as the rules say."""
        shapes = infer.op_shapes(self.op, self.p, [a.shape for a in self.host])[1]
        dtypes = infer.op_dtypes(self.op, self.p, [a.dtype for a in self.host])[1]
        return [s if infer.known(s) else None for s in shapes], [np.dtype(t) for t in dtypes]

    def missing(self) -> list[np.dtype[Any]]:
        """Dtypes of inputs and outputs that the device says it does not have."""
        has = self.device.dtypes
        dtypes = [a.dtype for a in self.host]
        try:
            dtypes += self.declared()[1]
        except MXNetError:  # the checks will say
            pass
        return [] if has is None else [t for t in dtypes if t not in has]

    def body(self, device: Device, inputs: Sequence[Any]) -> list[Any]:
        """Run the reference body on arrays of a device; outputs, then mutated values."""
        k = Call(device, self.sample.train)
        with np.errstate(all="ignore"):
            r = self.op.body(k, self.p, *inputs)  # type: ignore[misc]
        if self.op.stateful:
            r = r[0]
        if self.sig.n_all == 1 and not isinstance(r, (tuple, list)):
            return [r]
        outs: list[Any] = list(r)
        return outs

    def reference(self) -> list[Any]:
        """Results of the reference body in float64 on NumPy: outputs, then mutated values; None where there is none."""
        if self._reference is None:
            shapes, dtypes = self.declared()
            shapes = [*shapes, *[self.host[i].shape for i in self.sig.mutates]]
            dtypes = [*dtypes, *[self.host[i].dtype for i in self.sig.mutates]]
            found = self.body(Host(), [_wide(a.copy()) for a in self.host])
            self._reference = [None if v is None else _as(v, s, t) for v, s, t in zip(found, shapes, dtypes)]
        return self._reference

    # -- run ---------------------------------------------------------------------------------------------------
    def arrays(self, host: Sequence[Any] | None = None) -> list[NDArray]:
        """New device arrays of the inputs."""
        return [self.array(a) for a in (self.host if host is None else host)]

    def array(self, a: Any) -> NDArray:
        """A new device array."""
        return NDArray(self.device.from_host(np.asarray(a), self.ctx.device_id), Storage(self.ctx))

    def view(self, a: np.ndarray[Any, Any]) -> tuple[NDArray, NDArray]:
        """(array, frame): an array of these values that is every other element of a frame."""
        frame = np.zeros((*a.shape[:-1], 2 * a.shape[-1] + 1), a.dtype)
        frame[..., 1::2] = a
        whole = self.array(frame)
        return NDArray(whole._data[..., 1::2], whole._st), whole

    def two_over_one(self, a: np.ndarray[Any, Any], shape: tuple[int, ...], first: int) -> tuple[NDArray, NDArray]:
        """An array of values, and one of a shape from element `first` on, in one memory, as only the device knows."""
        n = math.prod(shape)
        whole = self.device.from_host(
            np.concatenate([a.reshape(-1), np.zeros(max(first + n - a.size, 0), a.dtype)]), self.ctx.device_id
        )
        one, two = (
            NDArray(part.reshape(s), Storage(self.ctx))
            for part, s in ((whole[: a.size], a.shape), (whole[first : first + n], shape))
        )
        return one, two

    def run(self, inputs: Sequence[NDArray], train: bool | None = None, **more: Any) -> list[NDArray]:
        """Call the operator; its visible outputs. Random keys are the same in every call."""
        rng.seed(7)
        with (
            self.ctx,
            autograd.train_mode() if (self.sample.train if train is None else train) else autograd.predict_mode(),
        ):
            r = dispatch.call(self.op, inputs, {**self.kwargs, **more}, cls=NDArray)
        outs = r if isinstance(r, list) else [r]
        for x in (*outs, *inputs):
            x.wait_to_read()
        return outs

    def run_wanted(self, inputs: Sequence[NDArray], wanted: tuple[bool, ...]) -> list[Any]:
        """Call the operator for some outputs only."""
        with self.ctx, autograd.train_mode() if self.sample.train else autograd.predict_mode():
            return list(dispatch.invoke(self.op, inputs, self.p, None, wanted, cls=NDArray))

    def call(self, inputs: Sequence[NDArray]) -> list[NDArray]:
        """Call the operator in the mode of the caller."""
        r = dispatch.call(self.op, inputs, self.kwargs, cls=NDArray)
        return r if isinstance(r, list) else [r]

    def record(self, inputs: Sequence[NDArray], reqs: Sequence[str], train: bool | None = None) -> list[NDArray]:
        """Call the operator on variables (grad_req per input; 'none' for plain inputs) and record it."""
        for x, req in zip(inputs, reqs):
            if req != "none":
                x.attach_grad(req)
        rng.seed(7)
        with self.ctx, autograd.record(self.sample.train if train is None else train):
            return self.call(inputs)

    def backward(self, outs: Sequence[NDArray], train: bool | None = None) -> None:
        """Differentiate what was recorded, with `head_grads`; nothing happens where no gradient flows."""
        pairs = [(y, g) for y, g in zip(outs, self.head_grads(outs)) if y._entry is not None and y._entry[0].flows]
        if pairs:
            autograd.backward(
                [y for y, _ in pairs], [g for _, g in pairs], train_mode=self.sample.train if train is None else train
            )

    @property
    def kwargs(self) -> dict[str, Any]:
        """The sample's parameters, to be consumed."""
        found = dict(self.sample.params)
        if self.op.variadic and not self.op.arg_names:
            alone = sum(not s.variadic for s in self.op.input_slots)
            found.setdefault(self.op.count, len(self.host) - alone)
        return found

    def head_grads(self, outs: Sequence[NDArray]) -> list[NDArray]:
        """Random head gradients, the same in every call."""
        rs = np.random.RandomState(11)
        return [self.array(rs.uniform(-1, 1, y.shape).astype(y.dtype)) for y in outs]

    def wants(self) -> list[bool]:
        """Which inputs take part in gradient checks: those of the sample but states, which no gradient reaches."""
        states = {*self.sig.aux, *self.sig.mutates}
        wants = self.sample.wants_grad(self.host, self.sig.inputs)
        if isinstance(self.sample.grad, str) and (lost := [self.sig.inputs[i] for i in states if wants[i]]):
            raise ValueError(f"{self.sample!r}: its grad names {lost[0]!r}, which is a state and has no gradient")
        return [w and i not in states for i, w in enumerate(wants)]

    def has_gradient(self) -> bool:
        """Whether the operator has a gradient rule that is not zero."""
        return bool(self.op.grad_rule) or self.op.backward_rule is not None


def _as(value: Any, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """A reference value in the declared shape; truncated like the declared dtype, if that is an integer."""
    v: np.ndarray[Any, Any] = np.asarray(value.todense(np) if hasattr(value, "todense") else value)
    if dtype.kind in "iub" and v.dtype != dtype:
        with np.errstate(all="ignore"):
            v = v.astype(dtype)
    return v.reshape(shape) if shape is not None and v.size == int(np.prod(shape)) and v.ndim == 0 else v


@functools.lru_cache(maxsize=2)  # the checks of an operator come one after the other
def cases(op: Op, ctx: Context) -> Sequence[Case]:
    """All samples of an operator in all their dtypes, less those that the device does not have."""
    found = [Case(op, s, t, ctx) for s in op.samples for t in s.dtypes]
    for case in found:
        for a in case.host:
            a.setflags(write=False)  # all checks share them
    return [c for c in found if not c.missing()] if ctx.device.dtypes is not None else found
