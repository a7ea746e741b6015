"""Many keys at once, for types of store in any plugin: sums, copies and updates by few launches.

Each does what is done for one key after the other, bit for bit. What a device does not serve together is done so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._core.call import ended, observed
from .._core.engine import engine
from .._core.stream import begin, commit, ordered
from .._core.transfer import wrap
from ..context import Context
from ..crossing import across_each
from ..ndarray import NDArray
from ..optimizer import Updater
from .keys import Key
from .values import add, write

__all__ = ["add_each", "launch", "move_each", "serves", "shares", "take_each", "write_each"]

#: A key, what was pushed, and its value, which an updater moves.
Move: TypeAlias = tuple[Key, NDArray, NDArray]

#: Bytes of what is added up together: sums of more take long enough by themselves, and their memory is used again.
MOST_BYTES = 64 << 20


def shares(items: Iterable[tuple[Key, Sequence[NDArray]]]) -> Iterator[list[tuple[Key, Sequence[NDArray]]]]:
    """Keys and their arrays, in their order, as many together as sums should need memory for at once.

    Parameters
    ----------
    items : iterable of (key, sequence of NDArray)

    Examples
    --------
    >>> import mxcore as mx
    >>> [len(some) for some in shares([(k, [mx.nd.empty(2)]) for k in range(3)])]
    [3]
    """
    found: list[tuple[Key, Sequence[NDArray]]] = []
    size = 0
    for key, arrays in items:
        found.append((key, arrays))
        size += arrays[0].size * np.dtype(arrays[0].dtype).itemsize
        if size >= MOST_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def serves(ctx: Context) -> bool:
    """Whether the device of a context adds up, and copies, many arrays together.

    Parameters
    ----------
    ctx : Context

    Examples
    --------
    >>> import mxcore as mx
    >>> serves(mx.cpu())
    False
    """
    device = ctx.device
    return device.add_each is not None and device.copy_each is not None


def launch(
    fn: Callable[[], Any], reads: Sequence[NDArray], writes: Sequence[NDArray], contexts: Sequence[Context]
) -> None:
    """Call what launches on the queues of several devices, in the order of what else is done with the arrays.

    Parameters
    ----------
    fn : callable
        Without arguments. What it launches for an array lies on the queue of the array's context.
    reads, writes : sequence of NDArray
        What it reads, and what it writes.
    contexts : sequence of Context
        On whose queues it launches.

    Examples
    --------
    >>> import mxcore as mx
    >>> a, b = mx.nd.ones(2), mx.nd.zeros(2)
    >>> launch(lambda: a.context.device.copy(a._data, b._data), [a], [b], [a.context])
    >>> b.asnumpy()
    array([1., 1.], dtype=float32)
    """
    written = [a._st for a in writes]
    begin([a._st for a in reads], written, now=True)
    commit(written)
    fn()
    if engine.it.naive:
        for ctx in contexts:
            ctx.device.synchronize(ctx.device_id)
    commit(written)


def add_each(groups: Sequence[Sequence[NDArray]], contexts: Sequence[Context]) -> list[NDArray]:
    """Add up several groups of arrays, as `mxcore.kvstore.values.add` adds up one.

    Parameters
    ----------
    groups : sequence of sequences of NDArray
        Those of a group have one shape.
    contexts : sequence of Context
        Where to add each group up.

    Returns
    -------
    list of NDArray

    Examples
    --------
    >>> import mxcore as mx
    >>> [a.asnumpy().tolist() for a in add_each([[mx.nd.ones(2)] * 2, [mx.nd.ones(1)] * 3], [mx.cpu(), mx.cpu()])]
    [[2.0, 2.0], [3.0]]
    """
    sums: list[Any] = [None] * len(groups)
    near: dict[int, list[NDArray]] = {}  # by group, all on its context
    crossing: dict[tuple[Context, Context], list[tuple[int, int]]] = {}
    for i, (arrays, ctx) in enumerate(zip(groups, contexts)):
        if not _alike(arrays, ctx):
            sums[i] = add(arrays, ctx)
            continue
        near[i] = [*arrays]
        for j, a in enumerate(arrays):
            if a.context is not ctx:
                crossing.setdefault((a.context, ctx), []).append((i, j))
    for (source, ctx), places in crossing.items():
        arrays = [near[i][j] for i, j in places]
        copies = [_empty_like(a, ctx) for a in arrays]
        _copy_each(arrays, source, copies, ctx)
        for (i, j), copied in zip(places, copies):
            near[i][j] = copied
    by_home: dict[Context, list[int]] = {}
    for i, arrays in near.items():
        if len(arrays) == 1:
            sums[i] = arrays[0]
        else:
            by_home.setdefault(contexts[i], []).append(i)
    for ctx, numbers in by_home.items():
        for i in numbers:
            sums[i] = _empty_like(near[i][0], ctx)
        run = observed(_ending(ctx.device.add_each, ctx), "add_n", ctx, None, None)
        parts, outs = [near[i] for i in numbers], [sums[i] for i in numbers]
        ordered(
            ctx,
            run,
            ([[a._data for a in some] for some in parts], [out._data for out in outs]),
            [a._st for some in parts for a in some],
            [out._st for out in outs],
            "add_n",
        )
    return sums


def _alike(arrays: Sequence[NDArray], ctx: Context) -> bool:
    """Whether arrays are such as a device adds up together with others."""
    device, first = ctx.device, arrays[0]
    return serves(ctx) and all(
        a.stype == "default" and a.context.device is device and a.shape == first.shape and a.dtype == first.dtype
        for a in arrays
    )


def _ending(fn: Callable[..., Any], ctx: Context) -> Callable[..., Any]:
    """A function that ends before the next begins where all operators do."""
    return ended(fn, ctx) if engine.it.naive else fn


def _empty_like(a: NDArray, ctx: Context) -> NDArray:
    return wrap(ctx.device.empty(a.shape, a.dtype, ctx.device_id), ctx, a.dense)  # type: ignore[return-value]


def _copy_each(arrays: Sequence[NDArray], source: Context, outs: Sequence[NDArray], ctx: Context) -> None:
    ordered(
        ctx,
        _ending(across_each, ctx),
        (ctx.device, [a._data for a in arrays], source.device_id, [a._data for a in outs], ctx.device_id),
        [a._st for a in arrays],
        [a._st for a in outs],
        "copy",
    )


def write_each(pairs: Sequence[tuple[NDArray, NDArray]]) -> None:
    """Write several values into arrays, as `mxcore.kvstore.values.write` writes one.

    Parameters
    ----------
    pairs : sequence of (NDArray, NDArray)
        Value and array, of one shape.

    Examples
    --------
    >>> import mxcore as mx
    >>> a, b = mx.nd.ones(2), mx.nd.zeros(2)
    >>> write_each([(a, b)])
    >>> b.asnumpy()
    array([1., 1.], dtype=float32)
    """
    outs = {id(out._st) for _, out in pairs}
    apart = len(outs) == len(pairs) and outs.isdisjoint([id(value._st) for value, _ in pairs])
    together: dict[tuple[Context, Context], tuple[list[NDArray], list[NDArray]]] = {}
    for value, out in pairs:
        source, ctx = value.context, out.context
        if apart and serves(ctx) and source.device is ctx.device and value.stype == out.stype == "default":
            values, places = together.setdefault((source, ctx), ([], []))
            values.append(value)
            places.append(out)
        else:
            write(value, out)
    for (source, ctx), (values, places) in together.items():
        _copy_each(values, source, places, ctx)


def move_each(updater: Callable[..., Any], moves: Sequence[Move]) -> None:
    """Let an updater move values, those of one context by one call where the results are the same.

    Parameters
    ----------
    updater : callable
        Of key, pushed and stored array, or of lists if it is an optimizer's that moves several.
    moves : sequence of (key, NDArray, NDArray)
        What it is called with.

    Examples
    --------
    >>> import mxcore as mx
    >>> weights, sgd = [mx.nd.ones(1), mx.nd.ones(2)], mx.optimizer.SGD(learning_rate=1.0)
    >>> move_each(mx.optimizer.get_updater(sgd), [(i, w, w) for i, w in enumerate(weights)])
    >>> weights[1].asnumpy()
    array([0., 0.], dtype=float32)
    """
    some: list[Move] = []
    if isinstance(updater, Updater):
        if len(moves) > 1 and updater.in_any_order([key for key, _, _ in moves]):
            homes: dict[Context, list[Move]] = {}
            for move in moves:
                homes.setdefault(move[2].context, []).append(move)
            moves = [move for group in homes.values() for move in group]
        for move in moves:
            ctx = move[2].context
            if some and (some[-1][2].context is not ctx or len(some) >= updater.together(ctx)):
                _move(updater, some)
                some = []
            some.append(move)
        if some:
            _move(updater, some)
    else:
        for move in moves:
            updater(*move)


def take_each(
    stored: MutableMapping[Key, NDArray],
    updater: Callable[..., Any] | None,
    items: Sequence[tuple[Key, Sequence[NDArray]]],
    totals: Sequence[NDArray],
) -> None:
    """Let sums replace the values of keys, or an updater move these.

    Parameters
    ----------
    stored : dict of key to NDArray
        The values; they go to where their sums are.
    updater : callable or None
    items : sequence of (key, sequence of NDArray)
        What was pushed. An array of it that is a sum by itself is copied where it would be kept.
    totals : sequence of NDArray
        The sums.

    Examples
    --------
    >>> import mxcore as mx
    >>> pushed, values = mx.nd.ones(2), {"a": mx.nd.zeros(2)}
    >>> take_each(values, None, [("a", [pushed])], [pushed])
    >>> values["a"].asnumpy(), values["a"] is pushed
    (array([1., 1.], dtype=float32), False)
    """
    if updater is None:
        for (key, arrays), total in zip(items, totals):
            stored[key] = total.copy() if total is arrays[0] else total
        return
    moves = []
    for (key, _), total in zip(items, totals):
        value = stored[key] = stored[key].as_in_context(total.context)
        moves.append((key, total, value))
    move_each(updater, moves)


def _move(updater: Callable[..., Any], moves: Sequence[Move]) -> None:
    if len(moves) == 1:
        updater(*moves[0])
    else:
        updater(*map(list, zip(*moves)))
