"""What NumPy 1.23 had: programs' lines, with what it printed for them."""

import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from mxcore.compat import numpy1

#: What a program writes, and what NumPy 1.23.5 and MXNet 1.9.1 print.
LINES = [
    ("'%f %d' % (loss, loss), float(loss), int(loss), '%.2f' % (loss + 1)", "('3.500000 3', 3.5, 3, '4.50')"),
    (
        "type(loss.sum()), type(loss), repr(loss)",
        "(<class 'numpy.float32'>, <class 'numpy.ndarray'>, 'array([3.5], dtype=float32)')",
    ),
    ("float(rows[2]), [float(r) for r in rows], math.sqrt(rows[4])", "(2.0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 2.0)"),
    ("{'mean': rows.mean(), 'max': [np.max(rows)]}", "{'mean': 2.5, 'max': [5.0]}"),
    (
        "loss.tostring(), np.ones(1, 'u1').tostring(), np.float32(2).tostring()",
        r"(b'\x00\x00`@', b'\x01', b'\x00\x00\x00@')",
    ),
    ("np.ones((2, 3)).ptp(), np.ones(1, '<i4').newbyteorder().dtype.str, np.arange(4.).ptp()", "(0.0, '>i4', 3.0)"),
    (
        "(lambda a: (a.itemset((0, 1), 5), a.itemset(2, 7), a.tolist())[-1])(np.zeros((2, 2)))",
        "[[0.0, 5.0], [7.0, 0.0]]",
    ),
    ("(lambda a: (a.itemset(4), a.tolist())[-1])(np.zeros((1, 1)))", "[[4.0]]"),
    (
        "np.array([[1], [1, 2]]).dtype, np.array([[1], [1, 2]]).shape, np.asarray([[1], []]).dtype",
        "(dtype('O'), (2,), dtype('O'))",
    ),
    ("(lambda a: (np.array(a, copy=False) is a, np.array([1], copy=False).tolist()))(np.ones(2))", "(True, [1])"),
    (
        "np.fromstring(b'abc', np.uint8).tolist(), np.fromstring('1 2', sep=' ').tolist(), np.fromstring('ab', "
        "dtype='u1', count=1).tolist()",
        "([97, 98, 99], [1.0, 2.0], [97])",
    ),
    ("np.fromstring(b'abc', np.uint8).flags.writeable", "True"),
    ("np.array([300], np.uint8).tolist(), np.array([-1], dtype='uint8').tolist()", "([44], [255])"),
    (
        "np.product([2, 3]), np.cumproduct([2, 3]).tolist(), "
        "np.sometrue([0, 1]), np.alltrue([0, 1]), np.NaN, np.Inf, np.PINF, np.NINF",
        "(6, [2, 6], True, False, nan, inf, inf, -inf)",
    ),
    (
        "np.cast['int32'](2.7).tolist(), np.cast[np.float32](1).dtype, np.nbytes['float64'], np.sctypes['int'][0]",
        "(2, dtype('float32'), 8, <class 'numpy.int8'>)",
    ),
    (
        "np.find_common_type([np.float32], [np.int64]), np.find_common_type([np.int32], [np.float64]), "
        "np.find_common_type(['f4', 'f8'], [])",
        "(dtype('float32'), dtype('float64'), dtype('float64'))",
    ),
    (
        "np.math.pi, np.mat([[1]]).shape, np.in1d([1, 2], [2]).tolist(), np.trapz([1, 2])",
        "(3.141592653589793, (1, 1), [False, True], 1.5)",
    ),
    (
        "np.issctype(np.float32), np.issctype(3), np.obj2sctype('f4'), "
        "np.sctype2char('f4'), np.issubsctype('f4', np.floating)",
        "(True, False, <class 'numpy.float32'>, 'f', True)",
    ),
    (
        "np.AxisError.__name__, np.VisibleDeprecationWarning.__name__, np.ComplexWarning.__name__, "
        "np.DataSource.__name__, np.chararray.__name__",
        "('AxisError', 'VisibleDeprecationWarning', 'ComplexWarning', 'DataSource', 'chararray')",
    ),
    (
        "np.lib.pad(np.ones(1), 1, 'constant').tolist(), np.linalg.linalg.norm([3, 4]), np.safe_eval('[1]'), "
        "np.msort([[2], [1]]).tolist()",
        "([0.0, 1.0, 0.0], 5.0, [1], [[1], [2]])",
    ),
    (
        "__import__('numpy.lib.function_base').lib.function_base.percentile([1, 2], 50), "
        "__import__('numpy.linalg.linalg').linalg.linalg.det([[2]])",
        "(1.5, 2.0)",
    ),
    ("np.round_(2.567, 1), np.asfarray([1]).dtype, np.CLIP, np.WRAP, np.RAISE", "(2.6, dtype('float64'), 0, 1, 2)"),
    ("np.asscalar(np.array([3])), np.rank(np.ones((2, 2)))", "(3, 2)"),  # of older NumPy
    (
        "np.float_(1), [np.float32(0.5)], np.unicode_('a'), (np.int64(1), np.bool_(True))",
        "(1.0, [0.5], 'a', (1, True))",
    ),
    (
        "[pickle.loads(pickle.dumps(a, p)).tolist() for a in (loss, rows[:1]) for p in (0, 2, 4)]",
        "[[3.5], [3.5], [3.5], [[0.0]], [[0.0]], [[0.0]]]",
    ),
    (
        "mx.nd.from_numpy(rows.copy()).sum().asscalar(), mx.nd.array(rows).sum().asscalar(), "
        "mx.nd.array(loss).asnumpy().tolist()",
        "(15.0, 15.0, [3.5])",
    ),
    (
        "np.concatenate([rows, rows]).shape, np.vstack([loss, loss]).tolist(), "
        "(rows > 2).sum(), rows.argmax(), bool(loss), loss == 3.5",
        "((12, 1), [[3.5], [3.5]], 3, 5, True, array([ True]))",
    ),
]

PROGRAM = """
import json, math, pickle, sys, warnings
warnings.simplefilter("ignore")
import mxnet as mx, numpy as np
loss, rows = mx.nd.array([[3.5]]).mean().asnumpy(), mx.nd.arange(6).reshape((6, 1)).asnumpy()
said = []
for line in json.load(open(sys.argv[1])):
    try:
        said.append(repr(eval(line)))
    except Exception as e:
        said.append(f"{type(e).__name__}: {e}")
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What `mxcore run` makes of the lines, and `mxcore run --strict`."""
    folder = tmp_path_factory.mktemp("old")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "lines.json").write_text(json.dumps([line for line, _ in LINES]))
    found = {}
    for options in ((), ("--strict",)):
        out = subprocess.run(
            [sys.executable, "-m", "mxcore", "run", *options, str(folder / "program.py"), str(folder / "lines.json")],
            capture_output=True,
            text=True,
            check=True,
        )
        found[options] = json.loads(out.stdout)
    return found


@pytest.mark.parametrize("i", range(len(LINES)), ids=[line[:40] for line, _ in LINES])
def test_lines_of_programs(said, i):
    assert said[()][i] == LINES[i][1]


def test_nothing_is_put_back_in_a_strict_run(said):
    strict = said[("--strict",)]
    assert "AttributeError" in strict[[n for n, (line, _) in enumerate(LINES) if "np.product" in line][0]]


def test_this_process_is_untouched():
    assert type(__import__("mxcore").nd.ones(1).asnumpy()) is np.ndarray and not hasattr(np.array, "__wrapped__")


def test_numbers_come_from_one_element_only():
    one, two = np.ones((1, 1)).view(numpy1.OldArray), np.ones(2).view(numpy1.OldArray)
    assert float(one) == int(one) == complex(one) == 1
    for kind in (float, int, complex):
        with pytest.raises(TypeError):
            kind(two)


def test_conversion_is_added_once():
    def asnumpy(self):
        """Copy."""
        return np.ones(1)

    made = numpy1.with_old_arrays(asnumpy)
    assert numpy1.with_old_arrays(made) is made and made.__doc__ == "Copy." and type(made(None)) is numpy1.OldArray


def test_lenient_functions_still_refuse():
    array = numpy1._lenient(np.array)
    with pytest.raises(ValueError, match="inhomogeneous"):
        array([[1], [1, 2]], np.float32)
    with pytest.raises(ValueError, match="invalid literal"):
        array(["a"], int)
    with pytest.warns(UserWarning, match="different lengths"):
        assert array([[1], [1, 2]]).dtype == object


def test_deprecated_functions_warn():
    @numpy1._deprecate(message="use another")
    def old():
        return 1

    with pytest.warns(DeprecationWarning, match="`old` is deprecated! use another"):
        assert old() == 1
    with pytest.warns(DeprecationWarning, match="deprecated!$"):
        assert numpy1._deprecate(lambda: 2)() == 2


def test_children_of_a_run_have_it_too(tmp_path):
    (tmp_path / "child.py").write_text("import mxnet as mx; print('%d' % mx.nd.ones((1, 1)).asnumpy())")
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys; print(subprocess.run([sys.executable, "
        "sys.argv[1]], capture_output=True, text=True).stdout)"
    )
    out = subprocess.run(
        [sys.executable, "-m", "mxcore", "run", str(tmp_path / "parent.py"), str(tmp_path / "child.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert out.stdout.strip() == "1", out.stderr


def test_records(tmp_path):
    (tmp_path / "a.csv").write_text("A,b\n1,2.5\n3,4.5\n")
    names = {name: value for owner, table in numpy1.names() for name, value in table.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = names["recfromcsv"](str(tmp_path / "a.csv"))
    assert found.a.tolist() == [1, 3] and found.b.tolist() == [2.5, 4.5]
    assert pickle.loads(pickle.dumps(np.ones(1).view(numpy1.OldArray))).__class__ is np.ndarray
