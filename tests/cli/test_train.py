"""``mxcore train``: what it learns, writes and resumes, and what it says about bad input."""

import json
import math
import re
import types
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli import main
from mxcore.cli.train import checkpoint, curve, options


@pytest.fixture
def train(tmp_path, capsys):
    """Run ``mxcore train`` with arguments; returns status, output and errors."""

    def run(*args, output=tmp_path / "out"):
        status = main(["train", "--output", str(output), *map(str, args)])
        out, err = capsys.readouterr()
        return status, out, err

    run.folder = tmp_path / "out"
    return run


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    """Record files of bright and dark squares of 12 x 16 colour pixels: 40 images of 2 classes."""
    folder = tmp_path_factory.mktemp("squares")
    draw = np.random.RandomState(0)
    with mx.recordio.MXIndexedRecordIO(str(folder / "a.idx"), str(folder / "a.rec"), "w") as record:
        for i in range(40):
            image = draw.randint(0, 90, (12, 16, 3)).astype(np.uint8) + np.uint8(150 * (i % 2))
            header = mx.recordio.IRHeader(0, float(i % 2), i, 0)
            record.write_idx(i, mx.recordio.pack_img(header, image, img_fmt=".png"))
    return folder / "a.rec"


@pytest.mark.parametrize("api, more", [("gluon", set()), ("module", {"mlp-symbol.json"})])
def test_it_learns_and_leaves_files(train, api, more):
    status, out, _ = train("--network", "mlp", "--epochs", 3, "--api", api)
    assert status == 0
    *epochs, last, files = out.splitlines()
    assert [line.split(":")[0] for line in epochs] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert all("samples/s" in line for line in epochs)
    assert float(re.match(r"test accuracy ([\d.]+) % after epoch 3, [\d.]+ s$", last)[1]) > 80
    names = {p.name for p in train.folder.iterdir()}
    assert names == {"mlp-0003.params", "mlp-0003.states", "mlp-0003.json", "mlp-curve.png"} | more
    assert all(str(train.folder / name) in files for name in ("mlp-0003.params", "mlp-curve.png"))
    assert (train.folder / "mlp-curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_curve_that_cannot_be_drawn_costs_nothing_else(train, monkeypatch):
    def draw(*_):
        raise OSError("no writable cache directory")

    monkeypatch.setattr("mxcore.cli.train.curve.draw", draw)
    status, out, err = train("--network", "mlp", "--epochs", 1)
    assert status == 0 and "test accuracy" in out and "mlp-0001.params" in out and "(learning curve)" not in out
    assert "no learning curve is drawn: no writable cache directory" in err


@pytest.mark.parametrize("api", ["gluon", "module"])
def test_whoever_updates_gets_the_learning_rate(train, api, monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert train("--network", "mlp", "--epochs", 1, "--api", api, "--kvstore", "device")[0] == 0


def test_tensorboard_gets_every_epoch(train, tmp_path):
    assert train("--network", "mlp", "--epochs", 2, "--tensorboard", tmp_path / "logs")[0] == 0
    (file,) = (tmp_path / "logs").iterdir()
    found = file.read_bytes()
    for name in (b"loss", b"train_accuracy", b"test_accuracy", b"samples_per_s", b"learning_rate"):
        assert found.count(name) == 2, name


def test_the_parameters_are_in_gluons_format(train):
    train("--network", "mlp", "--epochs", 1)
    stored = mx.nd.load(str(train.folder / "mlp-0001.params"))
    assert {name: a.shape for name, a in stored.items()} == {
        "0.weight": (128, 784),
        "0.bias": (128,),
        "1.weight": (64, 128),
        "1.bias": (64,),
        "2.weight": (10, 64),
        "2.bias": (10,),
    }


def test_module_trains_as_gluon_does(train, tmp_path):
    for api in ("gluon", "module"):
        assert train("--network", "mlp", "--epochs", 2, "--api", api, output=tmp_path / api)[0] == 0
    a, b = (json.loads((tmp_path / api / "mlp-0002.json").read_text())["history"] for api in ("gluon", "module"))
    np.testing.assert_allclose([e["loss"] for e in b], [e["loss"] for e in a], rtol=0.02)


def test_what_module_leaves_is_a_checkpoint(train):
    train("--network", "mlp", "--epochs", 1, "--api", "module")
    net, args, aux = mx.model.load_checkpoint(str(train.folder / "mlp"), 1)
    assert (
        net.list_outputs() == ["softmax_output"]
        and set(args) == set(net.list_arguments()) - {"data", "softmax_label"}
        and not aux
    )


@pytest.mark.parametrize("api", ["gluon", "module"])
def test_a_resumed_run_ends_like_an_uninterrupted_one(train, tmp_path, monkeypatch, api):
    args = ["--network", "mlp", "--epochs", 3, "--optimizer", "adam", "--api", api]
    assert train(*args, output=tmp_path / "whole")[0] == 0
    save = checkpoint.save

    def interrupted(run):
        save(run)
        if run.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save", interrupted)
    status, _, err = train(*args)
    assert status == 130 and "interrupted" in err
    monkeypatch.undo()
    status, out, _ = train(*args, "--resume")
    assert status == 0 and out.startswith("going on after epoch 2")
    ours, whole = (mx.nd.load(str(folder / "mlp-0003.params")) for folder in (train.folder, tmp_path / "whole"))
    for name, array in whole.items():
        # Not bit by bit: sums in threads may round differently from run to run.
        np.testing.assert_allclose(ours[name].asnumpy(), array.asnumpy(), rtol=1e-3, atol=1e-5)
    notes = [json.loads((folder / "mlp-0003.json").read_text()) for folder in (train.folder, tmp_path / "whole")]
    a, b = ([entry["loss"] for entry in note["history"]] for note in notes)
    np.testing.assert_allclose(a, b, rtol=1e-4)
    status, out, _ = train(*args, "--resume")
    assert status == 0 and "after epoch 3" in out.splitlines()[-2]


@pytest.mark.parametrize("api", ["gluon", "module"])
def test_own_records_on_two_contexts_give_what_one_gives(train, squares, tmp_path, api):
    args = ["--network", "lenet", "--rec", squares, "--val-rec", squares, "--data-shape", "3,16,16", "--num-classes", 2]
    args += ["--batch-size", 8, "--epochs", 5, "--augment", "--api", api]
    for folder, *where in (("one", "--ctx", "cpu"), ("two", "--ctx", "cpu(0),cpu(1)", "--kvstore", "device")):
        status, out, _ = train(*args, *where, output=tmp_path / folder)
        assert status == 0 and "test accuracy 100.00 %" in out
    one, two = (json.loads((tmp_path / n / "lenet-0005.json").read_text())["history"] for n in ("one", "two"))
    np.testing.assert_allclose([e["loss"] for e in two], [e["loss"] for e in one], rtol=1e-4)


def test_the_rate_is_that_of_the_images_of_an_epoch(train, squares, monkeypatch):
    """40 images in three batches, the last of them filled up; what testing takes does not count."""
    clock = iter([100.0, 108.0, 200.0, 204.0])
    monkeypatch.setattr("mxcore.cli.train.loop.time", types.SimpleNamespace(perf_counter=lambda: next(clock)))
    status, out, _ = train(
        "--network",
        "mlp",
        "--rec",
        squares,
        "--val-rec",
        squares,
        "--data-shape",
        "3x8x8",
        "--num-classes",
        2,
        "--batch-size",
        16,
        "--epochs",
        2,
    )
    assert status == 0 and re.findall(r"^epoch (\d)/2: .*, (\d+) samples/s$", out, re.M) == [("1", "5"), ("2", "10")]
    assert [e["samples_per_s"] for e in json.loads((train.folder / "mlp-0002.json").read_text())["history"]] == [5, 10]


def test_without_a_test_file_the_training_accuracy_is_told(train, squares):
    status, out, _ = train(
        "--network",
        "mlp",
        "--rec",
        squares,
        "--data-shape",
        "3x8x8",
        "--num-classes",
        2,
        "--batch-size",
        16,
        "--epochs",
        1,
    )
    assert status == 0 and re.search(r"^train accuracy [\d.]+ % after epoch 1,", out, re.M) and "test " not in out


@pytest.mark.parametrize(
    "args, words",
    [
        (["--network", "lenett"], "no network 'lenett', did you mean 'lenet'"),
        (["--optimizer", "sdg"], "'sdg', did you mean"),
        (["--kvstore", "locl"], "'locl', did you mean 'local'"),
        (["--ctx", "gpu(7)"], "gpu"),
        (["--batch-size", "63", "--ctx", "cpu(0),cpu(1)"], "63 cannot be divided evenly over 2"),
        (["--data-shape", "1,8,8"], "cannot take images of shape (1, 8, 8)"),
        (["--num-classes", "9", "--network", "mlp"], "label 9 is none of 0 to 8"),
        (["--rec", "nowhere.rec"], "nowhere.rec"),
        (["--val-rec", "nowhere.rec"], "--val-rec needs --rec"),
        (["--resume"], "no checkpoint of 'lenet'"),
    ],
)
def test_bad_input_is_told_in_one_line(train, args, words):
    status, _, err = train(*args)
    assert status == 1 and words in err and err.startswith("mxcore train: ") and "Traceback" not in err


@pytest.mark.parametrize(
    "args, words",
    [
        (["--ctx", "cpu[0]"], "no context"),
        (["--ctx", "cpu,cpu(0)"], "twice"),
        (["--data-shape", "28,28"], "CHANNELS,HEIGHT,WIDTH"),
        (["--epochs", "0"], "whole number from 1"),
        (["--lr", "0"], "number above 0"),
        (["--lr", "nan"], "number above 0"),
        (["--seed", "x"], "whole number"),
    ],
)
def test_bad_arguments_exit_with_usage(train, capsys, args, words):
    with pytest.raises(SystemExit) as caught:
        train(*args)
    err = capsys.readouterr().err
    assert caught.value.code == 2 and words in err and "usage: mxcore train" in err


def test_contexts_and_shapes():
    assert options.contexts("cpu") == [mx.cpu(0)] and options.contexts("gpu(1), gpu:0") == [mx.gpu(1), mx.gpu(0)]
    assert options.shape("(3, 32, 24)") == options.shape("3x32x24") == (3, 32, 24)


def test_an_output_that_cannot_be_made(train, tmp_path):
    (tmp_path / "file").touch()
    status, _, err = train("--network", "mlp", output=tmp_path / "file" / "out")
    assert status == 1 and "--output" in err


@pytest.mark.parametrize("text, words", [("{", "damaged"), ("{}", "lacks"), ("[1]", "lacks")])
def test_a_damaged_checkpoint_is_named(train, text, words):
    train("--network", "mlp", "--epochs", 1)
    (train.folder / "mlp-0001.json").write_text(text)
    status, _, err = train("--network", "mlp", "--resume")
    assert status == 1 and words in err and "mlp-0001.json" in err


def test_a_checkpoint_with_other_values_is_named(train):
    train("--network", "mlp", "--epochs", 1)
    note = train.folder / "mlp-0001.json"
    sound = json.loads(note.read_text())
    huge = [{"epoch": 1, "loss": 10**400}]
    for changed in (
        {"epoch": None},
        {"epoch": "1"},
        {"history": {}},
        {"history": [None]},
        {"history": [{"epoch": 1}]},
        {"history": huge},
        {"epoch": 1 << 40},
        {"history": [{"epoch": 1e308, "loss": 1.0}]},
        {"history": [{"epoch": -1, "loss": 1.0}]},
    ):
        note.write_text(json.dumps(sound | changed))
        status, _, err = train("--network", "mlp", "--resume")
        assert status == 1 and "its epoch is no number, or its history no list" in err and "mlp-0001.json" in err


def test_a_history_of_losses_alone_is_drawn(train):
    train("--network", "mlp", "--epochs", 1)
    note = train.folder / "mlp-0001.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"history": [{"epoch": 1, "loss": float("nan")}]}))
    status, _, err = train("--network", "mlp", "--epochs", 2, "--resume")
    assert status == 0, err


@pytest.mark.parametrize(
    "losses",
    [[], [math.nan], [0.0], [-1.5, 2.0], [5e-324, 1e308], [math.inf, 1.0], [5e-324], [1 << 62]],
    ids=lambda losses: str(losses) or "none",
)
def test_any_history_is_drawn(losses, tmp_path):
    history = [{"epoch": i + 1, "loss": x, "train_accuracy": x} for i, x in enumerate(losses)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = curve.draw(history, str(tmp_path / "curve.png"))
    with open(path, "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_a_complete_run_that_is_resumed_says_what_it_knows(train):
    train("--network", "mlp", "--epochs", 1)
    note = train.folder / "mlp-0001.json"
    sound = json.loads(note.read_text())
    for more, words in (({"train_accuracy": 0.5}, "train accuracy 50.00 % after epoch 1"), ({}, "loss 2.5000 after")):
        note.write_text(json.dumps(sound | {"history": [{"epoch": 1, "loss": 2.5} | more]}))
        status, out, err = train("--network", "mlp", "--epochs", 1, "--resume")
        assert status == 0 and words in out, err


def test_a_checkpoint_of_another_kind_is_refused(train, squares):
    train("--network", "mlp", "--epochs", 1)
    for args, words in (
        (("--num-classes", 12), "num_classes 10, not 12"),
        (("--api", "module"), "api 'gluon', not 'module'"),
    ):
        status, _, err = train("--network", "mlp", *args, "--resume")
        assert status == 1 and words in err
    status, out, _ = train("--network", "mlp", "--epochs", 2, "--batch-size", 32, "--resume")
    assert status == 0 and "note: the images come in another order" in out


def test_without_the_plugin_of_the_digits(train, monkeypatch):
    from mxcore._core.manager import manager

    monkeypatch.setattr(manager.pm, "get_plugin", lambda name: None)
    status, _, err = train("--network", "mlp")
    assert status == 1 and "io_rec" in err and "--rec" in err


@pytest.mark.slow
@pytest.mark.parametrize("api", ["gluon", "module"])
def test_the_main_job_reaches_its_figure(train, api):
    status, out, _ = train("--api", api)
    assert status == 0
    assert float(re.search(r"^test accuracy ([\d.]+) %", out, re.M)[1]) >= 97


@pytest.mark.parametrize("label, told", [(float("nan"), "nan"), (3.0, "3")])
def test_a_record_without_a_class(train, tmp_path, label, told):
    records = mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    picture = np.zeros((8, 8, 3), "u1")
    for i in range(8):
        header = mx.recordio.IRHeader(0, label if i == 5 else i % 3, i, 0)
        records.write_idx(i, mx.recordio.pack_img(header, picture, img_fmt=".png"))
    records.close()
    args = "--rec", tmp_path / "a.rec", "--network", "mlp", "--num-classes", 3, "--data-shape", "3,8,8"
    status, _, err = train(*args, "--batch-size", 4, "--epochs", 1)
    assert status == 1 and f"record 5: label {told} is none of 0 to 2" in err
