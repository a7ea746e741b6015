"""JSON and texts on their way in and out: one reader, whose errors are ours."""

import pytest

import mxcore as mx
from mxcore._json import decode, encode
from mxcore.base import MXNetError


@pytest.mark.parametrize(
    "text, match",
    [
        ("{", "x is no JSON"),
        ("[" * 100_000, "x is no JSON"),
        (b"\xff", "x is no JSON text.*UTF-8"),
        ('"\\ud800"', "x holds half of a character"),
        ('{"\\uDFFF": 1}', "half of a character"),
        ('"\ud800"', "half of a character"),
        ("9" * 5000, "x is no JSON"),
        (None, "x: JSON is read from a str, got NoneType"),
    ],
)
def test_what_is_none(text, match):
    with pytest.raises(MXNetError, match=match):
        decode(text, "x")


def test_what_is():
    assert decode('{"a": "\\ud83d\\ude00"}', "x") == {"a": "\U0001f600"}  # both halves
    assert decode(b"\xef\xbb\xbf[1]", "x") == [1] and encode("h\xf6he", "x") == b"h\xc3\xb6he"


def test_a_number_in_a_configuration_that_no_float_holds():
    with pytest.raises(MXNetError, match="initializer .*too large"):
        mx.init.create(f'["xavier", {{"magnitude": 1{"0" * 400}}}]')


NAME = "\ud800"


@pytest.mark.parametrize(
    "write",
    [
        lambda path: mx.nd.save(path, {NAME: mx.nd.ones(1)}),
        lambda path: mx.sym.Variable(NAME).save(path),
        lambda path: mx.sym.Variable("a", attr={"__note__": NAME}).save(path),
        lambda path: mx.model.save_checkpoint(path, 1, None, {NAME: mx.nd.ones(1)}, {}),
        lambda path: dense().collect_params().save(path),
        lambda path: dense().save(path),
    ],
)
def test_names_that_no_reader_could_have_are_not_written(write, tmp_path):
    with pytest.raises(MXNetError, match="half of a character"):
        write(str(tmp_path / "x"))
    assert not [p for p in tmp_path.iterdir() if p.suffix not in (".params",)]


def dense():
    net = mx.gluon.nn.Dense(1, in_units=1, prefix=NAME)
    net.initialize()
    return net


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_no_file_can_have(name):
    for call in (
        mx.nd.load,
        mx.sym.load,
        lambda p: mx.nd.save(p, [mx.nd.ones(1)]),
        lambda p: mx.sym.Variable("x").save(p),
    ):
        with pytest.raises(MXNetError, match="no file can have the name"):
            call(name)


@pytest.mark.parametrize(
    "text, match",
    [
        ("[" * 100_000, "is no JSON"),
        ('["xavier", {"magnitude": "x"}]', "initializer .*magnitude"),
        ('["xavier", {"no_such": 1}]', "initializer .*no_such"),
        ('[["xavier"], {}]', "must have the form"),
        ('{"initializer": "xavier", "rnd_type": 3}', "rnd_type|initializer"),
    ],
)
def test_configurations(text, match):
    with pytest.raises(MXNetError, match=match) as caught:
        mx.init.create(text)
    assert len(str(caught.value)) < 2000
