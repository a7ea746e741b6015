"""``mxcore predict``: a saved model on images, arrays and records, and what it says of bad input."""

import re
import types
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli import main
from mxcore.cli.model import Model
from mxcore.cli.predict.inputs import Prepare, npy
from mxcore.gluon import SymbolBlock, nn

EXPORTED = Path(__file__).parents[1] / "gluon" / "golden"


@pytest.fixture
def predict(capsys):
    """Run the command; returns status, lines and errors."""

    def run(*args):
        status = main(["predict", *map(str, args)])
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that answers with the brightest channel, as scores and as probabilities, and things to run it on."""
    folder = tmp_path_factory.mktemp("predict")
    x = mx.sym.var("data")
    scores = mx.sym.FullyConnected(
        mx.sym.mean(mx.sym.Convolution(x, kernel=(1, 1), num_filter=3, name="c"), axis=(2, 3)),
        num_hidden=3,
        no_bias=True,
        name="fc",
    )
    softmax = mx.sym.SoftmaxOutput(scores, name="softmax")
    args = {
        "c_weight": mx.nd.eye(3).reshape((3, 3, 1, 1)),
        "c_bias": mx.nd.zeros((3,)),
        "fc_weight": mx.nd.eye(3) * 0.1,
    }
    mx.model.save_checkpoint(str(folder / "scores"), 1, scores, args, {})
    mx.model.save_checkpoint(str(folder / "softmax"), 12, softmax, args, {})
    for name, colour in (("red", 0), ("green", 1), ("blue", 2)):
        picture = np.full((6, 9, 3), 40, np.uint8)
        picture[:, :, 2 - colour] = 70  # blue comes first in OpenCV
        packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), picture, img_fmt=".png")
        (folder / f"{name}.png").write_bytes(mx.recordio.unpack(packed)[1])
    with mx.recordio.MXIndexedRecordIO(str(folder / "r.idx"), str(folder / "r.rec"), "w") as record:
        for i in range(5):
            picture = np.full((8, 8, 3), 40, np.uint8)
            picture[:, :, 2 - i % 3] = 90
            header = mx.recordio.IRHeader(0, float(i % 3 if i else 2), i, 0)
            record.write_idx(i, mx.recordio.pack_img(header, picture, img_fmt=".png"))
    (folder / "labels.txt").write_text("n01 red, scarlet\nn02 green\nn03 blue\n")
    return folder


def rows(lines):
    """(probability, class, label) of the lines that name a class."""
    found = [re.fullmatch(r"  ([\d.]+) +(\d+)(?:  (.*))?", line) for line in lines]
    return [(float(m[1]), int(m[2]), m[3]) for m in found if m]


@pytest.mark.parametrize("model", [("scores", "1"), ("softmax", "12"), ("scores-symbol.json", "scores-0001.params")])
def test_images(predict, folder, model, monkeypatch):
    monkeypatch.chdir(folder)
    status, lines, _ = predict(*model, "--input", "red.png", "blue.png", "--labels", "labels.txt", "--top", 2)
    assert status == 0 and [line for line in lines if not line.startswith(" ")] == ["red.png", "blue.png"]
    likely = np.exp([7, 4, 4]) / np.exp([7, 4, 4]).sum()
    assert rows(lines) == [
        (round(likely[0], 4), 0, "n01 red, scarlet"),
        (round(likely[1], 4), 1, "n02 green"),
        (round(likely[0], 4), 2, "n03 blue"),
        (round(likely[1], 4), 0, "n01 red, scarlet"),
    ]


def test_mean_std_and_scale(predict, folder):
    checkpoint = [folder / "scores", 1, "--input", folder / "green.png", "--shape", "3,4,4", "--top", 1]
    _, lines, _ = predict(*checkpoint, "--mean", "40,70,40", "--std", "2", "--scale", "0.5")
    assert rows(lines) == [(0.3333, 0, None)]
    _, lines, _ = predict(*checkpoint, "--mean", 40, "--std", "1,10,1", "--scale", "10")
    wanted = np.exp([0, 3, 0]) / np.exp([0, 3, 0]).sum()
    assert rows(lines) == [(round(wanted[1], 4), 1, None)]


def test_images_are_cut_at_the_centre(folder, tmp_path):
    model = Model(str(folder / "scores-symbol.json"), str(folder / "scores-0001.params"))
    assert (model.data, model.labels, model.channels(), model.extra) == ("data", [], 3, [])
    picture = np.zeros((10, 20, 3), np.uint8)
    picture[:, 4:16] = 200
    packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), picture, img_fmt=".png")
    (tmp_path / "wide.png").write_bytes(mx.recordio.unpack(packed)[1])
    plain = dict(mean=(0.0,), std=(1.0,), scale=1.0)
    x = Prepare(model, (3, 5, 5), **plain).image(str(tmp_path / "wide.png"))
    assert x.shape == (1, 3, 5, 5) and (x == 200).all() and x.dtype == np.float32
    assert Prepare(model, None, **plain).image(str(tmp_path / "wide.png")).shape == (1, 3, 10, 20)
    assert Prepare(model, (9, 3, 20, 30), **plain).image(str(tmp_path / "wide.png")).shape == (1, 3, 20, 30)


def test_arrays(predict, folder, tmp_path):
    x = np.zeros((2, 3, 5, 4))
    x[0, 1], x[1, 2] = 50, 50
    np.save(tmp_path / "two.npy", x)
    np.save(tmp_path / "one.npy", x[1])
    checkpoint = [folder / "scores", 1, "--top", 1, "--input"]
    _, lines, _ = predict(*checkpoint, tmp_path / "two.npy", tmp_path / "one.npy")
    assert lines[::2] == ["two.npy[0]", "two.npy[1]", "one.npy"] and [r[1] for r in rows(lines)] == [1, 2, 2]
    status, _, err = predict(*checkpoint, tmp_path / "one.npy", "--shape", "3,9,9")
    assert status == 1 and "one.npy has shape (3, 5, 4); --shape (3, 9, 9)" in err


def npy_bytes(shape, extra=b"", descr="<f4"):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + extra


@pytest.mark.parametrize(
    "data, match",
    [
        (npy_bytes((10**12,)), "its header tells of shape"),
        (npy_bytes((2, 2), bytes(12)), "12 bytes follow"),
        (npy_bytes((2, 2), bytes(20)), "20 bytes follow"),
        (npy_bytes((10**30,)), "its header tells"),
        (npy_bytes((-1,)), "its header tells"),
        (npy_bytes((2,), bytes(16), "|O"), "not an array of numbers"),
        (npy_bytes((), bytes(4)), "not an array of numbers"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "is no .npy file"),
        (b"\x93NUMPY\x09\x00", "is no .npy file"),
        (b"PK\x03\x04", "is no .npy file: it begins with"),
        (npy_bytes((True,), bytes(4)), "its header tells"),
        (npy_bytes((1,) * 65, bytes(4)), "its header tells of a shape that cannot be held"),
        (npy_bytes((0, 1 << 58, 1 << 58)), "its header tells of a shape that cannot be held"),
        (npy_bytes("(" * 90), "is no .npy file"),
        (npy_bytes((2,)).replace(b"}", b""), "is no .npy file"),
        (b'\x93NUMPY\x01\x00\x0a\x20{\t"' + b" " * 8200, "is no .npy file"),
        (b'\x93NUMPY\x01\x00\x0a\x20{\t"' + b" " * 8198 + b"x", "its header has 8202 bytes"),
        (npy_bytes((2,), bytes(8)).replace(b"{", b"("), "is no .npy file"),
        (b"", "is no .npy file"),
    ],
)
def test_damaged_arrays(tmp_path, data, match):
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(mx.base.MXNetError, match=f"a.npy.*{match}"):
        npy(str(tmp_path / "a.npy"))


def test_sound_arrays(tmp_path):
    for a in (np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3), ">f8")), np.ones(2, bool)):
        np.save(tmp_path / "a.npy", a)
        assert npy(str(tmp_path / "a.npy")).tolist() == a.tolist()


@pytest.mark.filterwarnings("error")
def test_numbers_without_a_value_in_float32(tmp_path):
    """Too large for float32, or a NaN that signals: the network sees an infinity or a NaN, and no warning."""
    signalling = np.array([0x7FF0000000000001], "u8").view("f8")
    np.save(tmp_path / "a.npy", np.concatenate([signalling, [1e300, -1e300, 2]])[None])
    model = types.SimpleNamespace(channels=lambda: None)
    x = Prepare(model, (4,), mean=(1.0,), std=(1.0,), scale=2).array(str(tmp_path / "a.npy"))
    np.testing.assert_array_equal(x, np.array([[np.nan, np.inf, -np.inf, 2]], "float32"))
    assert x.dtype == np.float32


def test_records(predict, folder):
    status, lines, _ = predict(
        folder / "softmax",
        12,
        "--input",
        folder / "r.rec",
        "--shape",
        "3,8,8",
        "--batch-size",
        2,
        "--labels",
        folder / "labels.txt",
    )
    assert status == 0 and len(lines) == 6
    assert re.fullmatch(r"record 0: label 2, 0\.9\d+     0  n01 red, scarlet", lines[0])
    assert re.fullmatch(r"record 4: label 1, 0\.9\d+     1  n02 green", lines[4])
    assert lines[5] == "4 of 5 right (80.00 %)"


@pytest.mark.parametrize(
    "answers, problem",
    [
        (lambda x: mx.sym.reshape(x, shape=(-1, 2)), "the first output has 192 rows for 2 records"),
        (lambda x: mx.sym.reshape(x, shape=(1, -1)), "the first output has 1 rows for 2 records"),
    ],
)
def test_records_without_an_answer_each(predict, folder, tmp_path, answers, problem):
    answers(mx.sym.Variable("data")).save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0001.params"), {"arg:unused": mx.nd.ones(1)})
    args = "--input", folder / "r.rec", "--shape", "3,8,8", "--batch-size", 2
    status, _, err = predict(tmp_path / "m", 1, *args)
    assert status == 1 and problem in err and "Traceback" not in err


def test_weights_and_outputs_of_few_dimensions(predict, tmp_path):
    data = mx.sym.Variable("data")
    mx.sym.Convolution(data, num_filter=2, kernel=(1, 1), name="c").save(str(tmp_path / "c-symbol.json"))
    mx.nd.save(str(tmp_path / "c-0001.params"), {"arg:c_weight": mx.nd.ones(6), "arg:c_bias": mx.nd.ones(2)})
    mx.sym.contrib.boolean_mask(data, mx.sym.zeros((1,))).save(str(tmp_path / "e-symbol.json"))
    mx.nd.save(str(tmp_path / "e-0001.params"), {"arg:unused": mx.nd.ones(1)})
    np.save(tmp_path / "x.npy", np.ones((1, 3, 2, 2), "f4"))
    status, _, err = predict(tmp_path / "c", 1, "--input", tmp_path / "x.npy")
    assert status == 1 and "c_weight" in err and "Traceback" not in err
    status, lines, _ = predict(tmp_path / "e", 1, "--input", tmp_path / "x.npy")
    assert status == 0 and "(0, 3, 2, 2), nothing" in lines[-1]


def test_a_model_that_mxnet_wrote(predict, tmp_path):
    with np.load(EXPORTED / "network.npz") as f:
        x, y = f["x"], f["y"]
    np.save(tmp_path / "x.npy", x)
    status, lines, _ = predict(EXPORTED / "exported", 2, "--input", tmp_path / "x.npy", "--top", 1)
    assert status == 0 and [r[1] for r in rows(lines)] == y.argmax(1).tolist()


def test_outputs_that_are_no_classes(predict, tmp_path):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(1, in_units=2, weight_initializer="ones"))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    net.export(str(tmp_path / "net"))
    np.save(tmp_path / "x.npy", np.array([[1, 2], [3, 4]]))
    status, lines, _ = predict(tmp_path / "net", 0, "--input", tmp_path / "x.npy")
    assert status == 0
    assert lines == [
        "x.npy[0]",
        "  net_dense0_fwd_output (1, 1), from 3 to 3: 3",
        "x.npy[1]",
        "  net_dense0_fwd_output (1, 1), from 7 to 7: 7",
    ]


def test_what_the_network_computes_is_what_a_block_computes(tmp_path):
    from mxcore.cli.predict.answers import Runner

    exported = [str(EXPORTED / "exported-symbol.json"), str(EXPORTED / "exported-0002.params")]
    block = SymbolBlock.imports(exported[0], "data", exported[1])
    with np.load(EXPORTED / "network.npz") as f:
        x = f["x"]
    (y,) = Runner(Model(*exported), mx.cpu())(x).values()
    np.testing.assert_allclose(y, block(mx.nd.array(x)).asnumpy(), rtol=1e-5)


@pytest.fixture
def checkpoint(folder, tmp_path):
    """A copy of a checkpoint whose parameters a test may change."""

    def write(**changed):
        symbol, args, _ = mx.model.load_checkpoint(str(folder / "scores"), 1)
        args.update(changed)
        named = {name: a for name, a in args.items() if a is not None}
        mx.model.save_checkpoint(str(tmp_path / "m"), 1, symbol, named, {})
        return tmp_path / "m"

    return write


def test_names_that_differ(predict, folder, checkpoint):
    x = folder / "red.png"
    weight = mx.nd.eye(3)
    status, _, err = predict(checkpoint(fc_weight=None, fc_wieght=weight, step=weight), 1, "--input", x)
    assert status == 1
    for text in (
        "m-0001.params lacks 1 parameter(s)",
        "'fc_weight'",
        "2 that the graph does not use",
        "'fc_weight' is wanted, 'fc_wieght' is there",
    ):
        assert text in err
    status, lines, _ = predict(checkpoint(step=weight), 1, "--input", x, "--top", 1)
    assert status == 0 and lines[0].endswith("the graph does not use: step") and rows(lines)[0][1] == 0
    status, _, err = predict(checkpoint(fc_weight=mx.nd.ones((3, 7))), 1, "--input", x)
    assert status == 1 and "fc_weight" in err and "(3, 7)" in err


@pytest.mark.parametrize(
    "args, words",
    [
        (["nowhere", "1", "--input", "red.png"], ["nowhere-symbol.json", "No such file"]),
        (["scores", "7", "--input", "red.png"], ["scores-0007.params", "No such file"]),
        (["scores", "1", "--input", "none.png"], ["none.png", "No such file"]),
        (["scores", "1", "--input", "labels.txt"], ["labels.txt", "no image"]),
        (["scores", "1", "--input", "red.png", "--shape", "x=3,4,4"], ["no input named 'x'"]),
        (["scores", "1", "--input", "red.png", "--shape", "4,4"], ["red.png", "CHANNELS,HEIGHT,WIDTH"]),
        (["scores", "1", "--input", "red.png", "--shape", "1,4,4"], ["input 'data' of shape (1, 1, 4, 4)", "--shape"]),
        (["scores", "1", "--input", "r.rec"], ["r.rec", "--shape"]),
        (["scores", "1", "--input", "red.png", "--mean", "1,2"], ["--mean has 2 numbers", "3 channel"]),
        (["scores", "1", "--input", "red.png", "--std", "0"], ["--std must not be 0"]),
        (["scores", "1", "--input", "red.png", "--labels", "short.txt"], ["names 1 classes", "3 apart"]),
        (["scores", "1", "--input", "red.png", "--labels", "none.txt"], ["none.txt"]),
        (["scores", "1", "--input", "bad.npy"], ["bad.npy is no .npy file"]),
        (["scores", "1", "--input", "text.npy"], ["text.npy holds <U3"]),
        (["scores", "1", "--input", "red.png", "--ctx", "gpu(0)"], ["gpu"]),
    ],
)
def test_bad_input(predict, folder, monkeypatch, args, words):
    monkeypatch.chdir(folder)
    Path("short.txt").write_text("one\n")
    Path("bad.npy").write_bytes(b"no")
    np.save("text.npy", np.array(["abc"]))
    status, _, err = predict(*args)
    assert status == 1 and err.startswith("mxcore predict: ") and all(w in err for w in words), err


@pytest.mark.parametrize(
    "args, words",
    [
        (["scores", "1"], "--input"),
        (["scores", "--input", "x.png"], "PARAMS"),
        (["scores", "1", "--input", "x.png", "--mean", "a"], "neither a number"),
        (["scores", "1", "--input", "x.png", "--mean", "nan"], "neither a number"),
        (["scores", "1", "--input", "x.png", "--scale", "inf"], "'inf' is no finite number"),
        (["scores", "1", "--input", "x.png", "--ctx", "cpu(0),cpu(1)"], "names 2"),
        (["scores", "1", "--input", "x.png", "--top", "0"], "from 1"),
    ],
)
def test_bad_command_lines(predict, capsys, args, words):
    with pytest.raises(SystemExit) as e:
        predict(*args)
    assert e.value.code == 2 and words in capsys.readouterr().err
