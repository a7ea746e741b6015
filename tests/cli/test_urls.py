"""URLs on command lines: they work, or are refused; no local folder is named after one."""

import json
import zipfile

import fsspec
import numpy as np
import pytest

import mxcore as mx
from mxcore._io_files import names_in, open_read, write_atomic
from mxcore.cli import main
from mxcore.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack_img, unpack

AT = "memory://cli"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, which must stay empty; returns status, output and errors."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def run(*args):
        status = main([*map(str, args)])
        out, err = capsys.readouterr()
        assert list(here.iterdir()) == []
        return status, out, err

    return run


@pytest.fixture(scope="module")
def store():
    """A network, pictures and records of them in a store."""
    net = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Variable("data")), num_hidden=2, no_bias=True, name="fc")
    mx.model.save_checkpoint(f"{AT}/net", 1, net, {"fc_weight": mx.nd.ones((2, 192))}, {})
    write_atomic(f"{AT}/names.txt", b"dark\nbright\n")
    with MXIndexedRecordIO(f"{AT}/a.idx", f"{AT}/a.rec", "w") as record:
        for i in range(8):
            image = np.full((8, 8, 3), 20 + 200 * (i % 2), np.uint8)
            record.write_idx(i, pack_img(IRHeader(0, float(i % 2), i, 0), image, img_fmt=".png"))
            write_atomic(f"{AT}/images/{i}.png", unpack(pack_img(IRHeader(0, 0.0, 0, 0), image, img_fmt=".png"))[1])
    write_atomic(f"{AT}/lists/a.lst", b"".join(b"%d\t%d\t%d.png\n" % (i, i % 2, i) for i in range(8)))


def test_summary(run, store):
    status, out, _ = run("summary", f"{AT}/net-symbol.json", "--params", f"{AT}/net-0001.params")
    assert status == 0 and "fc(FullyConnected)" in out and "384" in out


@pytest.mark.parametrize("ending", ["svg", "dot"])
def test_plot(run, store, ending):
    status, out, _ = run("plot", f"{AT}/net-symbol.json", "-o", f"{AT}/net.{ending}", "--title", "net")
    assert status == 0 and f"in {AT}/net.{ending}" in out
    assert b"fc" in open_read(f"{AT}/net.{ending}").read()


def test_plot_into_an_archive(run, store):
    status, _, err = run("plot", f"{AT}/net-symbol.json", "-o", "zip://net.svg::net.zip")
    assert status == 1 and "archives are read only" in err


def test_predict(run, store):
    inputs = [f"{AT}/images/1.png", f"{AT}/a.rec"]
    options = ("--shape", "3,8,8", "--labels", f"{AT}/names.txt", "--input", *inputs)
    for model in ((f"{AT}/net", "1"), (f"{AT}/net-symbol.json", f"{AT}/net-0001.params")):
        status, out, err = run("predict", *model, *options)
        assert status == 0, err
        assert out.startswith("1.png") and "dark" in out and "of 8 right" in out


def test_predict_from_an_archive(run, store, tmp_path):
    """A prefix of a checkpoint in an archive, and records in it."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        for name in ("net-symbol.json", "net-0001.params", "a.rec"):
            out.writestr(name, open_read(f"{AT}/{name}").read())
    end = f"::{tmp_path}/a.zip"
    status, out, err = run("predict", f"zip://net{end}", "1", "--shape", "3,8,8", "--input", f"zip://a.rec{end}")
    assert status == 0 and "of 8 right" in out, err


@pytest.mark.parametrize("api", ["gluon", "module"])
def test_train(run, store, api):
    folder = f"{AT}/{api}"
    common = (
        "train",
        "--api",
        api,
        "--network",
        "mlp",
        "--rec",
        f"{AT}/a.rec",
        "--data-shape",
        "3,8,8",
        "--num-classes",
        2,
    )
    common = (*common, "--batch-size", 4, "--output", folder)
    status, out, err = run(*common, "--epochs", 2, "--tensorboard", f"{AT}/board-{api}")
    assert status == 0, err
    files = {"mlp-0002.params", "mlp-0002.states", "mlp-0002.json", "mlp-curve.png"}
    graph = {"mlp-symbol.json"} if api == "module" else set()
    assert set(names_in(folder)) == files | graph and f"{folder}/mlp-0002.params (parameters)" in out
    assert len(names_in(f"{AT}/board-{api}")) == 1
    status, out, err = run(*common, "--epochs", 3, "--resume")
    assert status == 0 and f"going on after epoch 2 of {folder}/mlp-0002.params" in out, err
    assert json.loads(open_read(f"{folder}/mlp-0003.json").read())["epoch"] == 3


def test_a_run_that_is_resumed_from_nowhere(run, store):
    status, _, err = run("train", "--output", f"{AT}/nowhere", "--resume", "--network", "mlp")
    assert status == 1 and f"no checkpoint of 'mlp' in '{AT}/nowhere'" in err


def test_train_into_what_cannot_be_written(run, store):
    for output, words in (("zip://out::a.zip", "archives are read only"), ("nosuch://out", "Protocol not known")):
        status, _, err = run("train", "--network", "mlp", "--epochs", 1, "--output", output)
        assert status == 1 and "--output" in err and words in err


def test_im2rec(run, store):
    status, out, err = run("im2rec", "--pass-through", f"{AT}/lists/a", f"{AT}/images")
    assert status == 0 and f"wrote {AT}/lists/a.rec: 8 images, 0 unreadable" in out, err
    assert [unpack(r)[0].label for r in MXRecordIO(f"{AT}/lists/a.rec", "r")] == [0, 1] * 4
    assert run("im2rec", "--pass-through", f"{AT}/lists", f"{AT}/images")[0] == 0  # all lists of a folder
    status, _, err = run("im2rec", f"{AT}/none", f"{AT}/images")
    assert status == 1 and f"there is no list {AT}/none*.lst" in err


def test_lists_of_images(run, store, tmp_path):
    """Written to a store, of images on this machine; a store is not searched."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"")
    status, out, _ = run("im2rec", "--list", f"{AT}/made/b", tmp_path / "images")
    assert status == 0 and open_read(f"{AT}/made/b.lst").read() == b"0\t0.000000\ta.png\n"
    status, _, err = run("im2rec", "--list", f"{AT}/made/c", f"{AT}/images")
    assert status == 1 and f"'{AT}/images' is a URL" in err and "on this machine" in err


def test_a_new_plugin(run, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("plugins", "new", "my_op", "--dir", f"{AT}/plugins")
    assert "is a URL" in capsys.readouterr().err and list((tmp_path / "here").iterdir()) == []


def test_run(run):
    write_atomic(f"{AT}/script.py", b"print('here')")
    status, _, err = run("run", f"{AT}/script.py")
    assert status == 1 and "is a URL" in err and "on this machine" in err


def test_an_output_by_a_file_url(tmp_path, run):
    status, _, err = run("train", "--network", "mlp", "--epochs", 1, "--output", f"file://{tmp_path}/out")
    assert status == 0, err
    assert (tmp_path / "out" / "mlp-0001.params").exists()
    assert not any("cli/file" in name for name in fsspec.filesystem("memory").find("/"))
