"""The kit as outsiders use it: pytest options, files of expected failures, gradient checks, the strict namespace."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.plugin import hookimpl, op
from mxcore.testing.conformance import CHECKS, check_op, operators, read_xfails
from mxcore.testing.gradcheck import check_grads
from mxcore.testing.sample import Distinct, Ints, Sample, Values
from mxcore.testing.strict_xp import StrictArray, xp
from mxcore.testing.tolerance import compare

pytest_plugins = ["pytester"]
RUN = ("--pyargs", "mxcore.testing.conformance", "-p", "mxcore.testing.plugin", "-p", "no:cacheprovider", "-q")
CHECKED = len(CHECKS) + 1


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported():
    """A run inside of this process forgets the modules that it imports: Numba's can be imported only once."""
    check_op("sigmoid", mx.cpu())


@pytest.fixture
def doubled():
    """A plugin whose operator has a wrong gradient."""

    @op("my_double", inputs="data", grad=lambda F, dy: dy * 3, samples=[Sample((2, 3))])
    def double(k, p, data):
        """Twice `data`."""
        return data * 2

    manager.load()
    plugin = type("Plugin", (), {"API_VERSION": 1, "mxcore_ops": staticmethod(hookimpl(lambda: [double]))})
    plugin.mxcore_ops.__name__ = "mxcore_ops"
    manager.register(plugin, "doubled")
    yield
    manager.unregister("doubled")


def test_pytest_entry(pytester):
    pytester.runpytest_inprocess(*RUN, "--device=cpu", "--ops=relu, sig*oid").assert_outcomes(passed=2 * CHECKED)


def test_pytest_entry_with_expected_failures(pytester, doubled):
    pytester.makefile(
        ".txt",
        xfails="# known\nmy_double gradient the factor is 2\n",
        broken="my_double gradient\n",
        stale="my_double gradient x\nmy_* value passes\n",
    )
    run = (*RUN, "--ops=my_*")
    pytester.runpytest_inprocess(*run).assert_outcomes(failed=1, passed=CHECKED - 1)
    pytester.runpytest_inprocess(*run, "--xfails-file=xfails.txt").assert_outcomes(xfailed=1, passed=CHECKED - 1)
    pytester.runpytest_inprocess(*run, "--xfails-file=stale.txt").assert_outcomes(
        failed=1, xfailed=1, passed=CHECKED - 2
    )
    broken = pytester.runpytest_inprocess(*run, "--xfails-file=broken.txt")
    broken.stdout.fnmatch_lines(["*broken.txt:1: expected 'operator check reason'*"])


def test_xfail_lines(tmp_path):
    file = tmp_path / "x"
    file.write_text("a second_gradient because of this\n\n# nothing\n*  value why # note\n")
    assert read_xfails(str(file)) == [("a", "second gradient", "because of this"), ("*", "value", "why")]


def test_operators_by_pattern():
    assert [o.name for o in operators("relu sig*oid,tanh")] == ["relu", "sigmoid", "tanh"]
    with pytest.raises(KeyError, match=r"no operator fits 'softmacks\*', did you mean 'softmax'"):
        operators("relu softmacks*")


@pytest.mark.parametrize(
    "option, said",
    [
        ("--ops=my_*", "*no operator fits 'my_[*]'*"),
        ("--device=cpuu", "*no plugin provides device 'cpuu', did you mean 'cpu'*"),
    ],
)
def test_what_does_not_exist_is_no_success(pytester, option, said):
    result = pytester.runpytest_inprocess(*RUN, option)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_gradients_of_a_function():
    check_grads(lambda a, b: mx.nd.tanh(a) * b, [np.ones((2, 3)), np.full((2, 3), 0.5)], order=2)
    with pytest.raises(AssertionError, match="gradient of order 1"):
        check_grads(lambda x: x * mx.nd.BlockGrad(x), [[1.0, 2.0]])


def test_gradient_checks_draw_again_at_a_kink():
    check_grads(lambda x: mx.nd.relu(x), [[0.0, 1.0]], seed=3)
    with pytest.raises(AssertionError, match="not smooth"):
        check_grads(lambda x: mx.nd.relu(x), [[0.0, 1.0]], redraw=lambda i: [[0.0, 1.0]])


def test_gradient_checks_tell_kinks_from_places_without_a_value():
    with pytest.raises(
        AssertionError, match="of 6 points all are without a finite value; choose inputs inside the dom"
    ):
        check_grads(lambda x: mx.nd.log(x), [[-1.0, -2.0]])


def test_gradient_checks_of_random_functions_use_one_draw():
    check_grads(lambda x: mx.nd.Dropout(x, p=0.5), [np.ones((4, 5))])


def test_orders_are_checked():
    with pytest.raises(mx.MXNetError, match="order must be 1 or 2"):
        check_grads(lambda x: x, [[1.0]], order=3)


def test_samples_are_drawn_the_same_again():
    s = Sample((2, 3), Ints((4,), 0, 5), Distinct((6,), -1, 1), Values((2,), 1, 2, dtype="float16"), [1, 2])
    a, b, other = s.arrays("float32"), s.arrays("float32"), s.arrays("float32", 1)
    assert all((x == y).all() and x.dtype == y.dtype for x, y in zip(a, b))
    assert (a[0] != other[0]).any()
    assert [x.dtype.name for x in a] == ["float32", "float32", "float32", "float16", "float32"]
    assert set(a[1]) <= {0, 1, 2, 3, 4} and len(set(a[2])) == 6 and a[2].min() == -1
    assert s.wants_grad(a) == [True, False, True, True, True]


def test_tolerances():
    compare([1.0, np.nan, np.inf], [1.00001, np.nan, np.inf], "float32", "x")
    compare(np.float16([1.0]), [1.003], "float32", "x")
    for got, want, dtype in [
        ([1.0], [1.001], "float32"),
        ([1.0], [np.nan], "float32"),
        ([1], [2], "float32"),
        ([1.0], [1.00001], "float64"),
        ([1.0, 2.0], [1.0], "float32"),
    ]:
        with pytest.raises(AssertionError, match="^x: "):
            compare(got, want, dtype, "x")


@pytest.mark.parametrize(
    "use",
    [
        lambda a: np.asarray(a),
        lambda a: np.exp(a),
        lambda a: bool(a.sum()),
        lambda a: float(a.sum()),
        lambda a: len(a),
        lambda a: list(a),
        lambda a: a + np.ones(3),
        lambda a: np.ones(3) + a,
        lambda a: a.tolist(),
        lambda a: a.flags,
        lambda a: xp.exp(np.ones(3)),
        lambda a: xp.vander(a),
        lambda a: xp.linalg.matrix_power(a, 2),
        lambda a: xp.multiply.at(a, [0], 1),
        lambda a: xp.where(a > 0, np.ones(3), a),
    ],
)
def test_the_strict_namespace_refuses(use):
    with pytest.raises((TypeError, AttributeError)):
        use(StrictArray(np.ones(3)))


def test_the_strict_namespace_works():
    a = xp.asarray(np.arange(6.0)).reshape(2, 3)
    b = xp.zeros_like(a)
    b[a > 2] = 1
    b[0, 0] += 2
    xp.add.at(b, (xp.asarray([0, 0]), xp.asarray([1, 1])), 1)
    assert b.value.tolist() == [[2, 2, 0], [1, 1, 1]]
    assert (xp.concatenate([a, 1 - b]).sum(0) @ xp.ones(3)).value == 15 + 6 - 7
    assert a.T.shape == (3, 2) and xp.linalg.norm(a).value == pytest.approx(55**0.5)
    assert a.sum().item() == 15.0


def test_the_strict_namespace_keeps_to_the_contract():
    a = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"bodies may use add\(x1, x2, out=None\), by mxcore.array_api.contract"):
        xp.add(a, a, where=a > 1)
    with pytest.raises(
        TypeError, match=r"got an unexpected keyword argument 'order'; bodies may use astype\(dtype, copy=True\)"
    ):
        a.astype("float32", order="F")
    with pytest.raises(TypeError, match="bodies may use linalg.inv"):
        xp.linalg.inv(a, a)
    with pytest.raises(AttributeError, match="xp has no 'linalg.pinv' that bodies may use"):
        xp.linalg.pinv(a)
    with pytest.raises(AttributeError, match="arrays of devices have no 'tolist'"):
        a.tolist()


def test_a_body_that_asks_for_more_than_the_contract_fails_the_kit():
    @op("my_sum_where", inputs="data", samples=[Sample((2, 3), grad=False)])
    def body(k, p, data):
        """The sum of data."""
        return k.xp.add(data, data, casting="unsafe")

    with pytest.raises(AssertionError, match="unexpected keyword argument 'casting'; bodies may use add"):
        check_op(body, mx.cpu(), ["portable"])


def test_checks_of_how_calls_go_together_see_samples_from_first_to_last():
    from mxcore.testing.conformance import MOST, _spread

    assert {*MOST} < {*CHECKS} and not {*MOST} & {"declared", "value", "gradient", "graph", "strided"}
    for n in range(60):
        seen = _spread(range(n), 8)
        assert len(seen) == min(n, 8) == len({*seen})
        assert not n or (seen[0], seen[-1]) == (0, n - 1)
    assert [*_spread(range(15), 8)] == [*range(0, 15, 2)] and _spread([1] * 20, None) == [1] * 20
