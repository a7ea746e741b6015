"""Regions: neighbouring layers at once give what they give one by one, whatever the graph around them."""

import gc
import json
import os
import select
import signal
import threading
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core.graph import topo
from mxcore.executor import CachedOp, passes_off
from mxcore.executor import compile as compiling
from mxcore.executor.describe import describe
from mxcore_onednn import calls, convolution, keeping, layers, mxcore_report, plan, plans, region, rooms
from mxcore_onednn.bound import Bound
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import Refused
from tests.cpu_onednn.support import check_close, forget, numbers
from tests.executor.training import arrays_of

pytestmark = pytest.mark.usefixtures("no_plans_are_left")
PASS = "onednn_layers"
F = mx.sym


class Net:
    """A random network over one input; values of equal size can be added, joined and multiplied."""

    def __init__(self, draw, shape):
        self.draw, self.data = draw, mx.sym.Variable("data")
        self.values, self.shapes, self.count = [self.data], [shape], 0

    def pick(self, which=lambda shape: True):
        """Any value, the last ones rather."""
        return self.draw(st.sampled_from([i for i, s in enumerate(self.shapes) if which(s)][::-1]))

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def put(self, value, shape):
        self.values.append(value)
        self.shapes.append(shape)

    def convolution(self):
        i, draw = self.pick(lambda s: len(s) > 2), self.draw
        n, c, *size = self.shapes[i]
        groups = draw(st.sampled_from([1, 1, 1, c])) if c <= 32 else 1
        filters = groups * draw(st.sampled_from([1, 2])) if groups > 1 else draw(st.sampled_from([3, 8, 16, 24]))
        kernel = tuple(draw(st.sampled_from([1, 1, 3, 3, 2, 5])) for _ in size)
        stride = tuple(draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in size)
        dilate = tuple(draw(st.sampled_from([1, 1, 2])) for _ in size)
        least = [max(0, d * (k - 1) + 1 - m) for m, k, d in zip(size, kernel, dilate)]
        pad = tuple(-(-low // 2) + draw(st.sampled_from([0, 0, 1, k // 2])) for low, k in zip(least, kernel))
        args = dict(kernel=kernel, stride=stride, pad=pad, dilate=dilate)
        y = F.Convolution(
            self.values[i],
            num_filter=filters,
            num_group=groups,
            no_bias=draw(st.booleans()),
            name=self.name("conv"),
            **args,
        )
        steps = zip(size, kernel, stride, pad, dilate)
        self.put(y, (n, filters, *((m + 2 * b - d * (k - 1) - 1) // s + 1 for m, k, s, b, d in steps)))

    def dense(self):
        i, draw = self.pick(), self.draw
        units, named = draw(st.sampled_from([3, 8, 16, 24])), self.name("dense")
        y = F.FullyConnected(self.values[i], num_hidden=units, no_bias=draw(st.booleans()), name=named)
        self.put(y, (self.shapes[i][0], units))
        if draw(st.sampled_from([True, True, False])):
            self.norm(len(self.values) - 1)

    def norm(self, i=None):
        i = self.pick() if i is None else i
        args = dict(eps=1e-3, fix_gamma=self.draw(st.booleans()), use_global_stats=self.draw(st.booleans()))
        self.put(F.BatchNorm(self.values[i], name=self.name("norm"), **args), self.shapes[i])

    def act(self):
        i, draw = self.pick(), self.draw
        kind = draw(st.sampled_from(["relu", "sigmoid", "tanh", "clip", "leaky", "elu", "gelu", "prelu", "softsign"]))
        x = self.values[i]
        if kind == "clip":
            y = F.clip(x, 0, 6)
        elif kind in ("leaky", "elu", "gelu", "prelu"):
            y = F.LeakyReLU(x, act_type=kind, slope=0.3, name=self.name("slope"))
        else:
            y = F.Activation(x, act_type=kind)
        self.put(y, self.shapes[i])

    def pool(self):
        large = [i for i, s in enumerate(self.shapes) if min(s[2:], default=0) >= 2]
        i, draw = self.draw(st.sampled_from(large)), self.draw
        n, c, *size = self.shapes[i]
        kind, convention = draw(st.sampled_from(["max", "avg"])), draw(st.sampled_from(["valid", "full"]))
        pad = draw(st.sampled_from([0, 1]))
        y = F.Pooling(
            self.values[i],
            kernel=(2,) * len(size),
            stride=(2,) * len(size),
            pad=(pad,) * len(size),
            pool_type=kind,
            pooling_convention=convention,
            count_include_pad=draw(st.booleans()),
        )
        _, (shape,), _ = y.infer_shape(data=self.shapes[0])
        self.put(y, shape)

    def whole(self):
        i = self.pick(lambda s: len(s) > 2)
        y = F.Pooling(self.values[i], global_pool=True, kernel=(1,) * (len(self.shapes[i]) - 2), pool_type="avg")
        gate = self.shapes[i][:2] + (1,) * (len(self.shapes[i]) - 2)
        self.put(y, gate)
        if self.draw(st.booleans()):
            self.put(F.broadcast_mul(self.values[i], F.sigmoid(y)), self.shapes[i])

    def together(self):
        i, draw = self.pick(), self.draw
        j = self.pick(lambda s: s == self.shapes[i])
        a, b = self.values[i], self.values[j]
        kind = draw(st.sampled_from([F.elemwise_add, F.broadcast_add, F.elemwise_mul]))
        self.put(kind(a, b), self.shapes[i])

    def join(self):
        i = self.pick()
        same = [j for j, s in enumerate(self.shapes) if s[0] == self.shapes[i][0] and s[2:] == self.shapes[i][2:]]
        parts = self.draw(st.lists(st.sampled_from(same), min_size=1, max_size=3)) + [i]
        n, _, *size = self.shapes[i]
        channels = sum(self.shapes[j][1] for j in parts)
        if channels <= 96:
            self.put(F.Concat(*[self.values[j] for j in parts], dim=1), (n, channels, *size))

    def other(self):
        i = self.pick()
        self.put(F.square(F.tanh(self.values[i])) * 0.5, self.shapes[i])  # which does not grow

    KINDS = (
        *(convolution, convolution, convolution, dense, dense, norm, norm, act, act, act),
        *(pool, whole, together, together, join, other),
    )


@st.composite
def nets(draw):
    shape = draw(st.sampled_from([(2, 3, 9, 8), (1, 16, 6, 7), (2, 4, 11), (1, 2, 5, 4, 6)]))
    net = Net(draw, shape)
    draw(st.sampled_from([Net.convolution, Net.convolution, Net.dense]))(net)
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(Net.KINDS))
        if kind is not Net.pool or any(min(s[2:], default=0) >= 2 for s in net.shapes):
            kind(net)
    heads = draw(st.lists(st.sampled_from(net.values[1:]), min_size=1, max_size=3)) + [net.values[-1]]
    return mx.sym.Group(heads), shape


def bound(symbol, arrays):
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    return symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, aux_states=aux, grad_req="null")


def results(symbol, arrays):
    return [y.asnumpy() for y in bound(symbol, arrays).forward(is_train=False)]


def regions(symbol, arrays):
    """The regions of the program that infers."""
    executor = bound(symbol, arrays)
    executor.forward(is_train=False)
    program = executor._instance(False, False)[0].program
    return [step for step in program.steps if step.head < 0 and step.op.name == region.NAME]


def check(symbol, arrays, number=None):
    """The same with and without regions, of which there are so many, if that is told."""
    with passes_off(PASS):
        want = results(symbol, arrays)
    check_close(results(symbol, arrays), want)
    if number is not None:
        assert len(regions(symbol, arrays)) == number


@pytest.mark.usefixtures("provider")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nets(), st.booleans())
def test_networks(net, last):
    symbol, shape = net
    with pytest.MonkeyPatch.context() as patch:  # images lie either way, whatever processor this is
        patch.setattr(layers, "lies_last", lambda *args: last)
        patch.setattr(layers, "folds", lambda *args: True)
        forget()
        check(symbol, arrays_of(symbol, data=shape))


def block(x, filters, name, act="relu"):
    y = F.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=filters, no_bias=True, name=f"{name}_conv")
    return F.Activation(F.BatchNorm(y, fix_gamma=False, name=f"{name}_norm"), act_type=act)


def residual(filters=16):
    x = block(mx.sym.Variable("data"), filters, "a")
    y = F.Convolution(block(x, filters, "b"), kernel=(1, 1), num_filter=filters, name="c")
    y = F.Activation(F.BatchNorm(y, name="d") + x, act_type="relu")
    return F.Pooling(y, global_pool=True, pool_type="avg", kernel=(1, 1))


def test_what_a_region_consists_of(arrays, provider):
    executor = bound(residual(), arrays)
    executor.forward(is_train=False)[0].wait_to_read()
    [step] = regions(residual(), arrays)
    calls = []
    instance = executor._instance(False, False)[1]

    def call():
        calls.append(0)
        instance.run(0, instance.keys(0))

    pieces = step.op.pieces(call)
    assert len(calls) == 1
    norm = "Convolution", "BatchNorm"
    assert [p.operators for p in pieces] == [
        (*norm, "relu"),
        (*norm, "relu"),
        (*norm, "elemwise_add", "relu"),
        ("Pooling",),
    ]
    assert [p.node for p in pieces[:3]] == ["a_conv", "b_conv", "c"] and all(p.seconds > 0 for p in pieces)
    n, c, *size = DATA
    assert pieces[0].flops == 2 * (n * 16 * size[0] * size[1]) * (c * 9) and pieces[0].shapes[0] == DATA
    assert {p.owner for p in pieces} <= {"cpu_onednn", "cpu_numba"} and plan_of(step).tick is None
    assert sum(pieces[0].operators == step.op.consists[i : i + 3] for i in range(9)) == 2


DATA = (2, 8, 9, 9)


@pytest.fixture
def arrays():
    return arrays_of(residual(), data=DATA)


@pytest.mark.usefixtures("provider")
class TestResidual:
    """A block with a path around it."""

    def test_one_region_takes_it_all(self, arrays):
        forget()
        mx.executor.compile._cache.clear()
        check(residual(), arrays)
        (step,) = regions(residual(), arrays)
        assert "Convolution, BatchNorm, Activation" in step.op.doc
        made = plan_of(step)
        # Three convolutions and the mean; images are turned once at each end; weights are reordered, or made and
        # reordered.
        assert len([s for i, s in enumerate(made.steps) if i not in made.keeps and s.primitive]) == 4 + 2

    def test_training_is_as_ever(self, arrays):
        symbol = residual()
        executor = symbol.simple_bind(mx.cpu(), data=DATA)
        executor.forward(is_train=True)
        program = executor._instance(True, True)[0].program
        assert all(step.op is None or step.op.name != region.NAME for step in program.steps)

    def test_weights_are_kept_until_somebody_writes(self, arrays, monkeypatch):
        made = []
        folded = layers._folded
        monkeypatch.setattr(layers, "_folded", lambda *a, **k: [made.append(1), folded(*a, **k)])
        forget()
        executor = bound(residual(), arrays)
        for _ in range(4):
            executor.forward(is_train=False)[0].wait_to_read()
        before = len(made)
        assert before == 6  # two rounds of three
        for name in ("a_norm_moving_mean", "b_norm_gamma", "c_weight", "c_bias", "d_moving_var"):
            arrays[name][:] = arrays[name] * 1.5 + 0.1
            with passes_off(PASS):
                want = results(residual(), arrays)
            check_close([executor.forward(is_train=False)[0].asnumpy()], want)
        assert len(made) == before + 5

    def test_only_what_calls_read_is_kept(self, arrays):
        """Weights that are folded and then put in another layout take the place of weights once."""
        forget()
        made = plan_of(*regions(residual(), arrays))
        sizes = [a.size * 4 for name, a in arrays.items() if name.endswith("weight")]
        kept = [t.desc.size for part in made.parts for t in part.tensors]
        assert sorted(size for size in kept if size >= min(sizes)) == sorted(sizes)

    def test_large_rooms_are_shared(self, arrays, monkeypatch):
        """By programs that do not run at the same time; the last one takes it along."""
        monkeypatch.setattr(plan, "MUCH", 0)
        gc.collect()
        before = len(rooms.LargeRoom._all)
        many = [bound(residual(), {**arrays, "data": mx.nd.ones((n, *DATA[1:]))}) for n in (1, 2, 4)]
        for executor in many * 2:
            executor.forward(is_train=False)[0].wait_to_read()
        assert len(rooms.LargeRoom._all) == max(before, 1)
        one, other = rooms.LargeRoom(), rooms.LargeRoom()
        with one.lent() as a, other.lent() as b, one.lent() as c:
            assert len({a.at(100), b.at(100), c.at(100)}) == 3
        assert not (a.busy or b.busy or c.busy)
        del executor, many, one, other, a, b, c
        gc.collect()
        assert len(rooms.LargeRoom._all) == before

    def test_arrays_that_lie_open_are_read_every_time(self, arrays):
        opened = {n: mx.nd.from_numpy(a.asnumpy().copy(), zero_copy=False) for n, a in arrays.items()}
        views = {n: a.to_dlpack_for_write() for n, a in opened.items()}
        executor = bound(residual(), opened)
        for _ in range(3):
            executor.forward(is_train=False)[0].wait_to_read()
        mx.nd.from_dlpack(views["a_conv_weight"])[:] = 0.25
        with passes_off(PASS):
            want = results(residual(), opened)
        check_close([executor.forward(is_train=False)[0].asnumpy()], want)

    def test_programs_in_turn_that_share_a_plan(self, arrays):
        """Other weights, other data in other places: each call sees its own, however little it looks at."""
        rng = np.random.default_rng(5)
        op, names = CachedOp(residual()), [n.name for n in topo(residual()._heads) if n.op is None]
        sets = [arrays_of(residual(), seed, data=DATA) for seed in (1, 2)]
        executors = [bound(residual(), given) for given in sets]
        for turn in range(12):
            which = rng.integers(2)
            given = sets[which]
            if turn % 4 == 3:
                given["b_conv_weight"][:] = given["b_conv_weight"] * -1.5
            given["data"][:] = mx.nd.array(rng.standard_normal(DATA))
            moved = {**given, "data": mx.nd.array(rng.standard_normal(DATA))}
            with passes_off(PASS):
                want = [*results(residual(), given), *results(residual(), moved)]
            found = [executors[which].forward(is_train=False)[0], op(*[moved[n] for n in names])]
            check_close([y.asnumpy() for y in found], want)

    def test_threads(self, arrays):
        op = CachedOp(residual())
        names = [n.name for n in topo(residual()._heads) if n.op is None]
        with passes_off(PASS):
            want = CachedOp(residual())(*[arrays[n] for n in names]).asnumpy()
        wrong = []

        def work(op):
            for _ in range(20):
                y = op(*[arrays[n] for n in names]).asnumpy()
                if not np.allclose(y, want, rtol=1e-4, atol=1e-5):
                    wrong.append(y)

        threads = [threading.Thread(target=work, args=(o,)) for o in (op, op, CachedOp(residual()))]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong

    def test_results_belong_to_who_gets_them(self, arrays):
        op = CachedOp(residual())
        names = [n.name for n in topo(residual()._heads) if n.op is None]
        first = op(*[arrays[n] for n in names])
        before = first.asnumpy()
        other = {**arrays, "data": arrays["data"] * 2}
        second = op(*[other[n] for n in names])
        assert (first.asnumpy() == before).all() and not (second.asnumpy() == before).all()

    def test_where_the_library_fails_the_layers_run_one_by_one(self, arrays, monkeypatch, caplog):
        executor = bound(residual(), arrays)
        executor.forward(is_train=False)[0].wait_to_read()
        with passes_off(PASS):
            want = results(residual(), arrays)

        def fail(*args, **kwargs):
            raise Refused("oneDNN: a test")

        monkeypatch.setattr(Bound, "run", fail)
        calls._told.clear()
        check_close([executor.forward(is_train=False)[0].asnumpy()], want)
        assert "runs without oneDNN: oneDNN: a test" in caplog.text

    def test_one_by_one_takes_no_more_memory_than_needed(self, arrays, monkeypatch):
        """That is where there was no memory for the plan."""
        executor = bound(residual(), arrays)
        executor.forward(is_train=False)[0].wait_to_read()
        made, most = [], []

        def computed(*args):
            found = compute(*args)
            made.append(weakref.ref(found[0]))
            most.append(sum(m() is not None for m in made))
            return found

        def fail(*args, **kwargs):
            raise Refused("a test")

        compute = region.compute
        monkeypatch.setattr(region, "compute", computed)
        monkeypatch.setattr(Bound, "run", fail)
        executor.forward(is_train=False)[0].wait_to_read()
        assert len(most) == 11 and max(most) <= 3

    def test_a_layer_without_code_stays_outside(self, arrays, monkeypatch):
        """Whether it is refused alone, or only together with what it would take along."""
        attributes, binary = layers.attributes, layers._Builder._pool

        def none(self, layer, group):
            raise Refused("a test")

        monkeypatch.setitem(layers._MAKERS, "Pooling", none)
        forget()
        check(residual(), arrays)
        (step,) = regions(residual(), arrays)
        assert "Pooling" not in step.op.doc

        def plain(lib, then):
            if any(what.term is None for what in then):
                raise Refused("a test")
            return attributes(lib, then)

        monkeypatch.setattr(layers, "attributes", plain)
        monkeypatch.setitem(layers._MAKERS, "Pooling", binary)
        mx.executor.compile._cache.clear()
        forget()
        check(residual(), arrays)
        assert len(regions(residual(), arrays)) == 1
        forget()

    def test_it_can_be_switched_off(self, arrays, monkeypatch):
        monkeypatch.setenv("MXCORE_DISABLE_PASSES", PASS)
        assert regions(residual(), arrays) == []

    def test_monitors_see_every_layer(self, arrays):
        executor = bound(residual(), arrays)
        seen = []
        executor.set_monitor_callback(lambda name, a: seen.append(name))
        executor.forward(is_train=False)
        assert "a_norm_output" in seen and "c_output" in seen


@pytest.mark.usefixtures("provider")
def test_what_is_written_between_two_layers():
    """Who reads a variable before a node writes to it, and who behind that, shall read what they ought to."""
    w, x, m = (mx.sym.Variable(n) for n in ("w", "data", "m"))
    first = F.Activation(F.Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True), act_type="relu")
    moved = F.sgd_mom_update(mx.sym.Variable("v"), F.ones((8, 8, 3, 3)), w, lr=0.5, momentum=0.5)
    second = F.Activation(F.Convolution(first, w, kernel=(3, 3), num_filter=8, no_bias=True), act_type="relu")
    symbol = mx.sym.Group([first, moved, second])

    def run():
        given = arrays_of(symbol, data=(1, 8, 9, 9), w=(8, 8, 3, 3), v=(8, 8, 3, 3))
        return [*results(symbol, given), given["w"].asnumpy()]

    with passes_off(PASS):
        want = run()
    check_close(run(), want)


@pytest.mark.usefixtures("provider")
def test_a_hidden_output_as_a_head():
    """A file may name the statistics of a normalization as outputs."""
    x = F.Convolution(mx.sym.Variable("data"), kernel=(1, 1), num_filter=8, name="c")
    y = F.Activation(F.BatchNorm(x, name="n"), act_type="relu", name="r")
    graph = json.loads(y.tojson())
    node = next(i for i, n in enumerate(graph["nodes"]) if n["name"] == "n")
    graph["heads"] = [*graph["heads"], [node, 1, 0]]
    symbol = mx.sym.load_json(json.dumps(graph))
    check(symbol, arrays_of(symbol, data=(2, 3, 5, 5)))


@pytest.mark.usefixtures("provider")
class TestRooms:
    """Memory for what lies between the layers."""

    @pytest.mark.parametrize("size", [4, 40])
    @pytest.mark.parametrize("most", [rooms.MUCH, 0])
    def test_a_call_in_the_middle_of_another(self, arrays, monkeypatch, size, most):
        """As by a signal handler or a finalizer: of another plan, with less or more memory."""
        monkeypatch.setattr(plan, "MUCH", most)
        with passes_off(PASS):
            want = results(residual(), arrays)
        g = Geometry((2, 8, size, size), (8, 8, 3, 3), (2, 8, size - 2, size - 2), (1, 1), (0, 0), (1, 1), 1)
        inner = plans.plan_for(("a test", g), lambda lib: convolution.forward(lib, g, False), g.work)
        ins, room = numbers(3, g.src, g.weight), rooms.LargeRoom()
        found = [np.zeros(g.dst, np.float32) for _ in range(2)]
        inner.run(*ins, found[0], room=room)
        reached, folded = [], layers._folded

        def interrupted(*args, **kwargs):
            folded(*args, **kwargs)
            inner.run(*ins, found[1], room=room)
            reached.append((found[0] == found[1]).all())

        monkeypatch.setattr(layers, "_folded", interrupted)
        forget()
        executor = bound(residual(), arrays)
        for _ in range(3):
            check_close([executor.forward(is_train=False)[0].asnumpy()], want)
        assert reached and all(reached) and found[0].any()

    def test_much_memory_is_not_the_threads(self, arrays, monkeypatch):
        monkeypatch.setattr(plan, "MUCH", 0)
        taken = []
        at = rooms.Room.at
        monkeypatch.setattr(rooms.Room, "at", lambda self, size: [taken.append(self), at(self, size)][1])
        executors = [bound(residual(), arrays) for _ in range(2)]
        found = [e.forward(is_train=False)[0].asnumpy() for e in (*executors, *executors)]
        for y in found:
            np.testing.assert_array_equal(y, found[0])
        assert taken and rooms.own.room not in taken

    def test_what_is_held_is_told(self, arrays):
        for kept in (plans._plans, compiling._cache):  # of others' regions, and for another number of threads
            kept.clear()
        executor = bound(residual(), arrays)
        for _ in range(3):
            executor.forward(is_train=False)[0].wait_to_read()
        program = executor._instance(False, False)[0].program
        (step,) = regions(residual(), arrays)
        made = next(p for p in plans_of(step) if p.scratch == program.scratch)  # that for as many threads
        planned = sum(n * dtype.itemsize for (_, dtype), n in program.sizes.items())
        assert 0 < made.scratch < rooms.MUCH and program.nbytes == planned
        assert f"Planned {planned + made.scratch} bytes" in describe(program)
        scratch, weights = rooms.held(), keeping.held()
        assert scratch >= made.scratch and weights >= 4 * 16 * 8 * 9
        assert any(f"{weights / 1e6:.1f} MB of weights" in line for line in mxcore_report())

    def test_arrays_of_other_sizes_never_reach_the_library(self, arrays):
        executor = bound(residual(), arrays)
        executor.forward(is_train=False)[0].wait_to_read()
        (step,) = regions(residual(), arrays)
        made = plan_of(step)
        with pytest.raises(Refused, match="not what this was made for"):
            made.run(*[np.zeros(3, np.float32)] * len(made.arrays))


@pytest.mark.usefixtures("provider")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child(arrays):
    executor = bound(residual(), arrays)
    want = executor.forward(is_train=False)[0].asnumpy()
    mx.nd.waitall()
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            y = executor.forward(is_train=False)[0].asnumpy()
            os.write(writer, b"1" if np.allclose(y, want, rtol=1e-4, atol=1e-5) else b"0")
        finally:
            os._exit(0)
    os.close(writer)
    assert select.select([reader], [], [], 60)[0], os.kill(pid, signal.SIGKILL)
    assert os.read(reader, 1) == b"1" and os.waitpid(pid, 0)[1] == 0
    os.close(reader)


@pytest.mark.usefixtures("provider")
def test_other_numbers_of_threads(arrays, monkeypatch):
    executor = bound(residual(), arrays)
    with passes_off(PASS):
        want = results(residual(), arrays)
    for n in (2, 2, 1, 1, 2, 1):
        monkeypatch.setattr(plans, "workers", lambda work=0, n=n: n)
        check_close([executor.forward(is_train=False)[0].asnumpy()], want)


def plan_of(step):
    """A plan of a region's step, of those for several numbers of threads."""
    return plans_of(step)[0]


def plans_of(step):
    return [
        p
        for key, p in plans._plans.items()
        if "layers" in key and isinstance(p, plan.Plan) and len(p.arrays) == len(step.ins) + 1
    ]


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("op", ["max", "avg"])
def test_windows_of_padding(op):
    """MXNet's `full` convention has windows that begin behind the images."""
    x = block(mx.sym.Variable("data"), 8, "a")
    for size in (5, 6, 7):
        for kernel, stride, pad in ((2, 2, 0), (3, 2, 1), (2, 3, 1), (3, 3, 0)):
            y = F.Pooling(
                x,
                kernel=(kernel, kernel),
                stride=(stride, stride),
                pad=(pad, pad),
                pool_type=op,
                pooling_convention="full",
            )
            check(y, arrays_of(y, data=(1, 3, size, size)))


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(value):
    """But for what a maximum or a minimum with it is, which the library takes for the other number, as MXNet does."""
    x = mx.sym.Variable("data")
    y = F.Convolution(x, kernel=(1, 1), num_filter=8, no_bias=True, name="c")
    for act in ("relu", "sigmoid", "tanh"):
        symbol = mx.sym.Group([F.Activation(y, act_type=act), F.LeakyReLU(y, slope=0.5), F.clip(y, 0, 6)])
        arrays = arrays_of(symbol, data=(1, 4, 3, 3))
        arrays["data"][0, 1, 1, 1] = value
        with passes_off(PASS):
            want = results(symbol, arrays)
        found = results(symbol, arrays)
        if np.isnan(value):
            found, want = ([y for y, lost in zip(ys, (act == "relu", False, True)) if not lost] for ys in (found, want))
        for a, b in zip(found, want):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("provider")
def test_regions_that_need_each_other_are_apart():
    """Two regions, each of which would read what the other gives, are no order to compute in."""
    x = mx.sym.Variable("data")
    a = block(x, 8, "a")
    b = block(F.square(x), 8, "b")
    c = block(F.square(a) + b, 8, "c")
    d = F.Activation(F.square(c) + block(b, 8, "d"), act_type="relu")
    symbol = mx.sym.Group([d, F.square(b) + a, c + a])
    check(symbol, arrays_of(symbol, data=(1, 4, 6, 6)), 2)


@pytest.mark.parametrize("size", [(9,), (11,), (9, 9), (11, 10)])
def test_behind_a_convolution_by_products_of_matrices(provider, size):
    """Whose results lie as the caller's arrays do: a normalization, slopes and a gate by channel behind it."""
    n = len(size)
    x = F.Convolution(mx.sym.Variable("data"), kernel=(3,) * n, pad=(1,) * n, num_filter=3, name="a")
    x = F.Convolution(
        x, kernel=(5,) * n, dilate=(2,) * n, num_filter=3, num_group=3, pad=(int(size[0] > 9),) * n, name="b"
    )
    y = F.Activation(F.Activation(x, act_type="relu"), act_type="tanh")
    gate = F.broadcast_mul(y, F.Pooling(y, global_pool=True, kernel=(1,) * n, pool_type="avg"))
    slope = F.LeakyReLU(x, act_type="prelu", name="s")
    symbol = mx.sym.Group([F.BatchNorm(y, fix_gamma=False, name="n"), gate, slope, F.LeakyReLU(y, act_type="prelu")])
    check(symbol, arrays_of(symbol, data=(2, 4, *size)))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("last", ["norm", "slope", "pool"])
def test_images_of_one_number_are_joined(provider, rank, last):
    """Their layout tells nothing of channels: what has a number for each channel is right all the same."""
    one = (1,) * rank
    data = F.Variable("data")
    x, y = (F.Convolution(data, num_filter=1, kernel=one, name=name) for name in "cd")
    y = F.Concat(F.tanh(x), F.sigmoid(x), y, dim=1)
    if last == "pool":
        y = F.Pooling(y, global_pool=True, kernel=one, pool_type="avg")
    y = F.LeakyReLU(y, act_type="prelu", name="p") if last == "slope" else F.BatchNorm(y, name="b", fix_gamma=False)
    for n in (1, 2, 5):
        check(y, arrays_of(y, data=(n, 4, *one)))


@pytest.mark.parametrize("last", ["norm", "slope", "sum and slope"])
def test_images_of_one_place_after_blocks_of_channels(provider, last):
    x = F.Convolution(F.Variable("data"), num_filter=4, num_group=4, kernel=(1,), name="c")
    y = F.Pooling(F.relu(F.relu(x)), global_pool=True, kernel=(1,), pool_type="avg")
    if last == "norm":
        y = F.BatchNorm(y, name="b", fix_gamma=False)
    else:
        y = y + F.tanh(y) if last == "sum and slope" else y
        y = F.LeakyReLU(y, act_type="prelu", name="p")
    check(F.Group([x, y]), arrays_of(F.Group([x, y]), data=(2, 4, 11)))


def test_weights_computed_in_the_graph(provider):
    """Weights that depend on layers of the region are none of its constants."""
    x = mx.sym.Variable("data")
    w = block(mx.sym.Variable("w"), 8, "a")
    symbol = F.Activation(
        F.Convolution(block(x, 8, "b"), w, kernel=(3, 3), num_filter=4, no_bias=True), act_type="relu"
    )
    arrays = arrays_of(symbol, data=(2, 3, 7, 7), w=(4, 5, 3, 3))
    check(symbol, arrays)


def test_numbers_are_those_of_a_plain_sum(provider):
    """A convolution, a normalization, a sum and an activation by hand, in float64."""
    data, weight, gamma, beta, mean = numbers(0, (1, 8, 5, 5), (8, 8, 1, 1), 8, 8, 8)
    var = np.abs(numbers(1, 8)[0]) + 0.5
    x = mx.sym.Variable("data")
    y = F.Convolution(x, kernel=(1, 1), num_filter=8, no_bias=True, name="c")
    y = F.Activation(F.BatchNorm(y, fix_gamma=False, eps=0.25, name="n") + x, act_type="relu")
    names = dict(data=data, c_weight=weight, n_gamma=gamma, n_beta=beta, n_moving_mean=mean, n_moving_var=var)
    (found,) = results(y, {n: mx.nd.array(a) for n, a in names.items()})
    product = np.einsum("fc,nchw->nfhw", weight[:, :, 0, 0].astype(np.float64), data)

    def column(a):
        return a.reshape(1, -1, 1, 1)

    normed = (product - column(mean)) / np.sqrt(column(var) + 0.25) * column(gamma) + column(beta)
    check_close([found], [np.maximum(normed + data, 0)])


def _convolved(x, **args):
    return F.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv", **args)


@pytest.mark.parametrize(
    "build",
    [
        lambda d: F.relu(_convolved(d) + F.zeros((0, 4, 8, 8))),
        lambda d: F.relu(_convolved(F.ones((0, 4, 8, 8)))) + d,
        lambda d: F.exp(F.relu(_convolved(F.ones((0, 4, 8, 8))))) * d,
        lambda d: F.relu(_convolved(d, weight=F.ones((4, 0, 3, 3)), no_bias=True)),
        lambda d: F.LeakyReLU(_convolved(d), gamma=F.ones((0,)), act_type="prelu"),
    ],
)
def test_shapes_that_only_a_consumer_decides(build):
    y = build(F.Variable("data"))
    arrays = dict(zip(y.list_arguments(), numbers(0, *y.infer_shape(data=(2, 4, 8, 8))[0])))

    def forward():
        bound = y.simple_bind(mx.cpu(), data=(2, 4, 8, 8), grad_req="null")
        for name, value in arrays.items():
            bound.arg_dict[name][:] = value
        return [v.asnumpy() for v in bound.forward(is_train=False)]

    with passes_off(PASS):
        want = forward()
    check_close(forward(), want)


@pytest.mark.parametrize("cell", ["ConvRNNCell", "ConvLSTMCell", "ConvGRUCell"])
def test_states_of_convolutional_cells(cell):
    outputs, _ = getattr(mx.rnn, cell)(input_shape=(1, 3, 8, 8), num_hidden=4).unroll(2, inputs=F.Variable("data"))
    module = mx.mod.Module(F.Group(list(outputs)), label_names=None)
    module.bind([("data", (2, 2, 3, 8, 8))], for_training=False)
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 2, 3, 8, 8))]))
    assert [y.shape for y in module.get_outputs()] == [(2, 4, 8, 8)] * 2
