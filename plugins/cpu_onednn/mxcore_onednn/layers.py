"""What layers of a region are in the library's primitives.

A convolution or fully connected layer takes what follows it along: a normalization with fixed statistics goes into its
weights and bias, a sum with another value and an activation are done where its results leave the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mxcore.layouts import channels_first
from mxcore.plugin import Params

from .convolution import Geometry, Maker
from .descs import BIAS, DST, INFERENCE, MULTIPLE_SRC, SRC, WEIGHTS, Desc
from .functions import ADD, MUL, RELU, SRC_1, SUM, Then, attributes, function_of
from .library import Library, NoMemory, Refused, library
from .normalization import scaled
from .others import PreparedLast, prepared_last
from .plan import Plan, Tensor
from .region import Failed, Layer, Region
from .rules import folds, left, lies_last, prepares
from .windows import Windows

__all__ = ["ANCHORS", "BEFORE", "READS", "build", "takes"]

Shape = tuple[int, ...]
_SUMS, _PRODUCTS = ("elemwise_add", "broadcast_add"), ("elemwise_mul", "broadcast_mul")


# -- which layers ----------------------------------------------------------------------------------------------------
def _images(shape: Shape) -> bool:
    """Whether these are images, or rows of numbers."""
    return 2 <= len(shape) <= 5


def _connects(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    """Fully, to rows of numbers."""
    lib, (data, weight) = library(), ins[:2]
    if lib is None or len(out) > 2 or not _images(data):
        return False
    return folds(lib.isa, out[0], out[1], weight[1])


def _convolves(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    return channels_first(p)


def _normalizes(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    return p.axis in (1, 1 - len(out)) and not p.output_mean_var


def _adds(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    return ins[0] == ins[1]


def _multiplies(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    """By an image of the same shape, or by one number for each channel of each image."""
    return out in ins and all(shape in (out, out[:2] + (1,) * (len(out) - 2)) for shape in ins)


def _slopes(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    if p.act_type == "prelu":
        return ins[1] == out[1:2]
    return function_of("LeakyReLU", p) is not None


def _joins(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    return len(ins) > 1 and p.dim in (1, 1 - len(out))


def _pools(p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    return channels_first(p) and Windows.of(p, ins[0], out) is not None


_TAKES: dict[str, Callable[[Params, Sequence[Shape], Shape], bool]] = {
    "Convolution": _convolves,
    "FullyConnected": _connects,
    "BatchNorm": _normalizes,
    **dict.fromkeys(_SUMS, _adds),
    **dict.fromkeys(_PRODUCTS, _multiplies),
    "LeakyReLU": _slopes,
    "Concat": _joins,
    "Pooling": _pools,
}
#: Layers that a region begins with, and that take others along.
ANCHORS = frozenset({"Convolution", "FullyConnected"})
#: Layers that are in a region only where one of another kind is behind them, which they alone are for.
BEFORE = {"FullyConnected": "BatchNorm"}
#: How many of a layer's inputs, the first ones, are images; of others all are. The rest comes from outside the region.
READS = {"Convolution": 1, "FullyConnected": 1, "BatchNorm": 1, "LeakyReLU": 1}


def takes(op: str, p: Params, ins: Sequence[Shape], out: Shape) -> bool:
    """Whether a layer may be in a region.

    Parameters
    ----------
    op : str
        Name of the operator.
    p : Params
    ins : sequence of shapes
    out : shape
        Of its first output.
    """
    if not _images(out) or 0 in out:
        return False
    rule = _TAKES.get(op)
    return rule(p, ins, out) if rule is not None else len(ins) == 1 and function_of(op, p) is not None


# -- layers together -------------------------------------------------------------------------------------------------
class _Group:
    """A layer with those that are computed together with it.

    Attributes
    ----------
    layers : list of int
        The first is the one that takes the others along.
    norm, act : int or None
    other : int or None
        The value that is added.
    owner : str
        Whose code computes it.
    """

    def __init__(self, layer: int) -> None:
        self.layers = [layer]
        self.norm: int | None = None
        self.act: int | None = None
        self.other: int | None = None
        self.owner = "cpu_onednn"

    def take(self, layer: int) -> None:
        self.layers.append(layer)


def _groups(region: Region, apart: Collection[int]) -> list[_Group]:
    """The layers in groups, in an order in which each finds what it reads; those `apart` take nothing along."""
    reads, first = region.reads, len(region.inputs)
    owner: dict[int, _Group] = {}  # value that a group ends with -> the group
    groups: list[_Group] = []
    for i, layer in enumerate(region.layers):
        group = _joined(region, layer, i, owner, reads)
        if group is None:
            group = _Group(i)
            groups.append(group)
        else:
            owner.pop(first + group.layers[-1])
            group.take(i)
        if group.layers[0] not in apart:
            owner[first + i] = group
    return sorted(groups, key=lambda g: g.layers[-1])


def _joined(
    region: Region, layer: Layer, i: int, owner: Mapping[int, _Group], reads: Mapping[int, int]
) -> _Group | None:
    """The group that a layer is computed with, noted there; None if with none."""
    alone = [(v, owner[v]) for v in layer.reads if v in owner and reads[v] == 1]
    products = [(v, g) for v, g in alone if region.layers[g.layers[0]].op in ANCHORS and g.act is None]
    if layer.op == "BatchNorm":
        if products and layer.reads[0] == products[0][0] and len(products[0][1].layers) == 1:
            products[0][1].norm = i
            return products[0][1]
    elif layer.op in _SUMS:
        free = [(v, g) for v, g in products if g.other is None]
        if free and len({*layer.reads}) == 2:
            value, group = max(free, key=lambda found: found[1].layers[-1])  # the other one is there by then
            group.other = layer.reads[layer.reads[0] == value]
            return group
    elif (_is_slope(layer) or function_of(layer.op, layer.p) is not None) and alone:
        group = alone[0][1]
        if group.act is None and region.layers[group.layers[0]].op in (*ANCHORS, "BatchNorm", *_SUMS):
            group.act = i
            return group
    return None


def _is_slope(layer: Layer) -> bool:
    """Whether a layer has a slope for the negative numbers of each channel."""
    return layer.op == "LeakyReLU" and layer.p.act_type == "prelu"


# -- primitives --------------------------------------------------------------------------------------------------------
def build(lib: Library, region: Region) -> Plan:
    """The plan of a region: of its inputs, then its outputs.

    Raises
    ------
    Failed
        Naming the layer that the library has no code for.
    """
    apart: set[int] = set()
    while True:
        try:
            return _Builder(lib, region).build(apart)
        except _Apart as e:
            apart.add(e.layer)


class _Apart(Refused):
    """The library has no code for a layer together with what it would take along."""

    def __init__(self, layer: int) -> None:
        self.layer = layer


def _folded(weight: Any, bias: Any, *arrays: Any, eps: float, plain: bool) -> None:
    """Weights and bias of a layer with the normalization behind it, into the first two arrays.

    `arrays` are the weights, the bias if there is one, gamma, beta, mean and variance; `plain`: gamma is 1.
    """
    w, *before, gamma, beta, mean, var = arrays
    scale = 1 / np.sqrt(var + np.float32(eps))
    if not plain:
        scale *= gamma
    np.multiply(w, scale.reshape(-1, *[1] * (w.ndim - 1)), out=weight.reshape(w.shape))  # which is dense
    bias[...] = beta - mean * scale
    if before:
        bias += before[0] * scale


def _prepared(made: Any, weight: Any, *, kernel: PreparedLast) -> None:
    """A weight as another plugin's kernel takes it, into the first array."""
    kernel.make(weight, made)


def _folded_and_prepared(made: Any, bias: Any, w: Any, *arrays: Any, kernel: PreparedLast, **options: Any) -> None:
    weight = np.empty_like(w)
    _folded(weight, bias, w, *arrays, **options)
    kernel.make(weight, made)


def _convolved(
    *vectors: Any, g: Geometry, kernel: PreparedLast, biased: bool, add: bool, low: float, slope: Any
) -> None:
    """A convolution by another plugin's kernel: of images, prepared weights, and a bias and slopes if there are."""
    data, made, *rest, out = vectors
    bias = rest.pop(0) if biased else None
    images, results = ((n, *size, c) for n, c, *size in (g.src, g.dst))
    kernel.run(data.reshape(images), made, bias, out.reshape(results), add, low, rest[0] if rest else slope)


def _copied(column: Any, values: Any) -> None:
    column[...] = values.reshape(column.shape)


def _windows(region: Region, layer: Layer) -> Shape:
    """The shape of a fully connected layer's weight beside images: one window for each result, which sees all."""
    data, weight, *_ = (region.shapes[v] for v in layer.reads)
    return weight[:1] + data[1:]


def _geometry(region: Region, convolution: Layer) -> Geometry:
    data, weight, *_ = (region.shapes[v] for v in convolution.reads)
    return Geometry.of(convolution.p, data, weight, convolution.p.num_group)


class _Builder:
    """One plan on its way."""

    def __init__(self, lib: Library, region: Region) -> None:
        self.lib, self.region = lib, region
        self.left = region.reads
        images = {v for layer in region.layers for v in layer.reads[: READS.get(layer.op)]}
        steady = [v for v in range(len(region.inputs)) if v not in images]
        shapes = dict(enumerate(region.inputs))
        for layer in region.layers:
            if layer.op == "Convolution" and layer.p.num_group > 1 and layer.reads[1] in shapes:
                n, *rest = region.inputs[layer.reads[1]]
                shapes[layer.reads[1]] = (layer.p.num_group, n // layer.p.num_group, *rest)
            elif layer.op == "FullyConnected":  # of layers that share it the last one: the others have it reordered
                shapes[layer.reads[1]] = _windows(region, layer)
        arrays = [*shapes.values(), *(region.shapes[v] for v in region.outs)]
        self.plan = Plan(lib, [Desc.dense(lib, shape) for shape in arrays], steady)
        self.values: dict[int, Tensor] = dict(enumerate(self.plan.arrays[: len(region.inputs)]))
        all_of = {i: _geometry(region, a) for i, a in enumerate(region.layers) if a.op == "Convolution"}
        found = {
            i: kernel
            for i, g in all_of.items()
            if left(lib.isa, "forward", g, kept=True) and (kernel := prepared_last(g, region.layers[i].p)) is not None
        }
        prepared = prepares([*all_of.values()], [all_of[i] for i in found])
        #: Layer -> another plugin's kernel that shall compute it.
        self.kernels = found if prepared else {}
        self.last = lies_last(lib.isa, [*all_of.values()], prepared)

    def build(self, apart: Collection[int]) -> Plan:
        region = self.region
        for group in _groups(region, apart):
            first = len(self.plan.steps)
            try:
                self._compute(group)
            except NoMemory:
                raise
            except Refused as e:
                raise _Apart(group.layers[0]) if len(group.layers) > 1 else Failed(group.layers[0], e) from e
            for i in group.layers:
                self.left.subtract(region.layers[i].reads)
            self.plan.groups.append((first, tuple(group.layers), group.owner))
        plan = self.plan
        for i, v in enumerate(region.outs):
            target = plan.arrays[len(region.inputs) + i]
            plan.deliver(self.values[v], target)
        return plan.done()

    def _compute(self, group: _Group) -> None:
        layer = self.region.layers[group.layers[0]]
        made = _MAKERS.get(layer.op, _Builder._function)(self, layer, group)
        self.values[self.region.number(group.layers[-1])] = made

    def _then(self, group: _Group) -> list[Then]:
        """The activation of a group."""
        if group.act is None:
            return []
        layer = self.region.layers[group.act]
        if _is_slope(layer):
            return [Then(slope=self._column(layer.reads[1], self.region.number(group.act)))]
        return [Then(function_of(layer.op, layer.p))]

    def _column(self, v: int, image: int) -> Tensor:
        """An array of a number for each channel as what can be read beside an image."""
        shape = self.region.shapes[image]
        return self.plan.make(_copied, [v], [(1, shape[1], *[1] * (len(shape) - 2))])[0]

    def _add(self, name: str, args: Sequence[Any], bound: Mapping[int, Tensor | None]) -> Tensor:
        return self.plan.add(self.lib.new(name, self.lib.engine, *args), bound)[DST]

    def _image(self, v: int) -> Tensor:
        """A value for a primitive that takes it in any layout but that of the caller's arrays.

        Some convolutions give that layout, too. There the library has slow code or, for numbers by channel beside
        images of one place, wrong code.
        """
        tensor, shape = self.values[v], self.region.shapes[v]
        if len(shape) == 2:  # rows, of which that is the layout of all
            return self.plan.laid(tensor, Desc.dense(self.lib, shape))
        if tensor.array or tensor.desc == Desc.dense(self.lib, shape):
            return self.plan.reordered(tensor, Desc.channels_last(self.lib, shape))
        return tensor

    def _by_channel(self, v: int) -> Tensor:
        """A value for a primitive with a number for each channel.

        Where images are one place the library's layouts may be any, such as with the batch innermost, and its code then
        takes the numbers of other channels.
        """
        tensor, shape = self._image(v), self.region.shapes[v]
        if len(shape) == 2 or prod(shape[2:]) > 1:
            return tensor
        return self.plan.reordered(tensor, Desc.channels_last(self.lib, shape))

    def _convolution(self, layer: Layer, group: _Group) -> Tensor:
        g = _geometry(self.region, layer)
        kernel = self.kernels.get(group.layers[0])
        if kernel is not None and (bends := self._bends(group)) is not None:
            return self._prepared(layer, group, g, kernel, *bends)
        return self._taking(layer, group, g.grouped, partial(self._convolves, g))

    def _connection(self, layer: Layer, group: _Group) -> Tensor:
        shape, out = _windows(self.region, layer), self.region.shapes[self.region.number(group.layers[0])]

        def describe(biased: bool, attr: int, source: Tensor) -> int:
            lib = self.lib
            weight, bias, made = Desc.any(lib, shape), Desc.dense(lib, out[1:]), Desc.dense(lib, out)
            args = source.desc.handle, weight.handle, bias.handle if biased else None, made.handle, attr
            return lib.new("inner_product_forward_primitive_desc_create", lib.engine, INFERENCE, *args)

        return self._taking(layer, group, shape, describe)

    def _taking(
        self, layer: Layer, group: _Group, shape: Shape, describe: Callable[[bool, int, Tensor], int]
    ) -> Tensor:
        """A layer whose primitive takes what is behind it along; its weight has that shape there."""
        lib, plan = self.lib, self.plan
        source = self.values[layer.reads[0]]
        filters, shift = self._weights(layer, group, shape)
        other = None if group.other is None else self.values[group.other]
        then = [*([] if other is None else [SUM]), *self._then(group)]
        with attributes(lib, then) as (attr, args):
            desc = describe(shift is not None, attr, source)
            if any(what.slope for what in then) and b"gemm" in plan.code(desc):
                lib.primitive_desc_destroy(desc)
                raise Refused("its products of matrices know no slopes")
            args.update({SRC: source, WEIGHTS: filters})
            if shift is not None:
                args[BIAS] = shift
            if other is None:
                args[DST] = self._place(group)
            else:
                try:
                    args[DST] = plan.result_over(desc, other, self._free(group.other))  # type: ignore[arg-type]
                except Refused:
                    lib.primitive_desc_destroy(desc)
                    raise
            return plan.add(desc, args)[DST]

    def _weights(
        self, layer: Layer, group: _Group, shape: Shape, kernel: PreparedLast | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Weight and bias of a layer with the normalization behind it, the weight as a kernel of others takes it."""
        _, weight, *bias = layer.reads
        plan = self.plan
        if group.norm is not None:
            norm = self.region.layers[group.norm]
            make = _folded if kernel is None else partial(_folded_and_prepared, kernel=kernel)
            fold = partial(make, eps=norm.p.eps, plain=norm.p.fix_gamma)
            filters, shift = plan.make(
                fold, [weight, *bias, *norm.reads[1:]], [shape, self.region.inputs[norm.reads[1]]]
            )
            return filters, shift
        filters = self.values[weight]
        if kernel is not None:
            [filters] = plan.make(partial(_prepared, kernel=kernel), [weight], [shape])
        return filters, self.values[bias[0]] if bias else None

    def _place(self, group: _Group) -> Tensor | None:
        """Where the result of a group belongs: rows that come last, and are for others, into their array at once."""
        region, v = self.region, self.region.number(group.layers[-1])
        last = group.layers[-1] == len(region.layers) - 1 and v in region.outs and len(region.shapes[v]) == 2
        return self.plan.arrays[len(region.inputs) + region.outs.index(v)] if last else None

    def _free(self, v: int) -> bool:
        """Whether a value may be written over: it lies between, and nobody else reads it."""
        return not self.values[v].array and self.left[v] == 1

    def _bends(self, group: _Group) -> tuple[float, float | Tensor | None] | None:
        """The activation of a group as its least result and the slope of negative ones; None if it is another one."""
        if group.act is None:
            return -np.inf, None
        layer = self.region.layers[group.act]
        if _is_slope(layer):
            return -np.inf, self._column(layer.reads[1], self.region.number(group.act))
        found = function_of(layer.op, layer.p)
        if found is None or found[0] != RELU:
            return None
        return (-np.inf, found[1]) if found[1] else (0.0, None)

    def _prepared(
        self, layer: Layer, group: _Group, g: Geometry, kernel: PreparedLast, low: float, slope: float | Tensor | None
    ) -> Tensor:
        """A convolution by another plugin's kernel for channels last, which takes along all that the library would."""
        plan, other = self.plan, group.other
        group.owner = kernel.owner
        source = plan.laid(self.values[layer.reads[0]], Desc.channels_last(self.lib, g.src))
        filters, shift = self._weights(layer, group, (kernel.size,), kernel)
        images = Desc.channels_last(self.lib, g.dst)
        out = plan.between(images) if other is None else plan.over(images, self.values[other], self._free(other))
        run = partial(
            _convolved,
            g=g,
            kernel=kernel,
            biased=shift is not None,
            add=other is not None,
            low=low,
            slope=np.full(g.dst[1], slope, np.float32) if isinstance(slope, float) else None,
        )
        more = [t for t in (shift, slope) if isinstance(t, Tensor)]
        plan.call("prepared", run, [source, filters, *more], out)
        return out

    def _convolves(self, g: Geometry, biased: bool, attr: int, source: Tensor) -> int:
        """The descriptor of a convolution: in the layout that its data have, if there is good code for that.

        Where layers have their channels last, it is that one.
        """
        lib, plan = self.lib, self.plan
        ways: list[tuple[Maker, Desc | None]] = []
        if self.last and g.groups == 1:
            ways.append((Maker(lib, g._replace(last=True), False), None))
        if not source.array:
            ways.append((Maker(lib, g, False), source.desc))
        for maker, given in [*ways, (Maker(lib, g, True), None)]:
            try:
                desc = maker.forward(biased, attr=attr, given=given)
            except NoMemory:
                raise
            except Refused:
                continue
            code = plan.code(desc)
            if (b"jit" in code or b"brg" in code) and b"gemm" not in code:
                return desc
            lib.primitive_desc_destroy(desc)
        return Maker(lib, g, False).forward(biased, attr=attr)

    def _norm(self, layer: Layer, group: _Group) -> Tensor:
        """A normalization of its own: a product, and a sum behind it."""
        plan = self.plan
        source = self._by_channel(layer.reads[0])
        shape = self.region.shapes[layer.reads[0]]
        column = (1, shape[1], *[1] * (len(shape) - 2))
        make = partial(scaled, eps=layer.p.eps, plain=layer.p.fix_gamma)
        scale, shift = plan.make(make, layer.reads[1:], [column, column])
        return self._binary(MUL, source, scale, group, [Then(term=shift), *self._then(group)])

    def _binary(self, kind: int, a: Tensor, b: Tensor, group: _Group, then: Sequence[Then] = ()) -> Tensor:
        with attributes(self.lib, then) as (attr, args):
            return self._add(
                "binary_primitive_desc_create",
                (kind, a.desc.handle, b.desc.handle, a.desc.handle, attr),
                {SRC: a, SRC_1: b, **args, DST: self._place(group)},
            )

    def _sum(self, layer: Layer, group: _Group) -> Tensor:
        a, b = map(self._by_channel, layer.reads)  # a slope may follow
        return self._binary(ADD, a, self.plan.laid(b, a.desc), group, self._then(group))

    def _product(self, layer: Layer, group: _Group) -> Tensor:
        shapes = self.region.shapes
        a, b = sorted(layer.reads, key=lambda v: -prod(shapes[v]))
        image, by = self._image(a), self._image(b)
        if shapes[a] == shapes[b]:
            by = self.plan.laid(by, image.desc)
        return self._binary(MUL, image, by, group)

    def _slope(self, layer: Layer, group: _Group) -> Tensor:
        if not _is_slope(layer):
            return self._function(layer, group)
        source = self._by_channel(layer.reads[0])
        slope = self._column(layer.reads[1], self.region.number(group.layers[0]))
        desc = source.desc.handle
        return self._add(
            "prelu_forward_primitive_desc_create",
            (INFERENCE, desc, slope.desc.handle, desc, self.lib.attr),
            {SRC: source, WEIGHTS: slope, DST: None},
        )

    def _function(self, layer: Layer, group: _Group) -> Tensor:
        lib, source = self.lib, self._image(layer.reads[0])
        found = function_of(layer.op, layer.p)
        assert found is not None
        kind, alpha, beta = found
        desc = source.desc.handle
        return self._add(
            "eltwise_forward_primitive_desc_create",
            (INFERENCE, kind, desc, desc, alpha, beta, lib.attr),
            {SRC: source, DST: None},
        )

    def _pool(self, layer: Layer, group: _Group) -> Tensor:
        source = self._image(layer.reads[0])
        out = self.region.shapes[self.region.number(group.layers[0])]
        windows = Windows.of(layer.p, self.region.shapes[layer.reads[0]], out)
        assert windows is not None  # it was taken
        desc = windows.desc(self.lib, source.desc, Desc.any(self.lib, out))
        return self.plan.add(desc, {SRC: source, DST: None})[DST]

    def _concat(self, layer: Layer, group: _Group) -> Tensor:
        lib = self.lib
        parts = [self._image(v) for v in layer.reads]
        made = Desc.any(lib, self.region.shapes[self.region.number(group.layers[0])])
        handles = lib.handles([t.desc.handle for t in parts])
        return self._add(
            "concat_primitive_desc_create",
            (made.handle, len(parts), 1, handles, lib.attr),
            {**{MULTIPLE_SRC + i: t for i, t in enumerate(parts)}, DST: None},
        )


_MAKERS: dict[str, Callable[[_Builder, Layer, _Group], Tensor]] = {
    "Convolution": _Builder._convolution,
    "FullyConnected": _Builder._connection,
    "BatchNorm": _Builder._norm,
    **dict.fromkeys(_SUMS, _Builder._sum),
    **dict.fromkeys(_PRODUCTS, _Builder._product),
    "LeakyReLU": _Builder._slope,
    "Concat": _Builder._concat,
    "Pooling": _Builder._pool,
}
