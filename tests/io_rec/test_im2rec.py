"""``mxcore im2rec``: lists, record files, and images that cannot be read."""

import argparse
import os

import numpy as np
import pytest

from mxcore.base import MXNetError
from mxcore.cli import main as mxcore
from mxcore_io_rec import codec, im2rec
from mxcore_io_rec.image_iter import ImageRecordIter
from mxcore_io_rec.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, unpack, unpack_img

NAMES = ["root.png", "Ape/A.PNG", "cat/c1.png", "cat/c2.png", "dog/d1.jpg", "dog/d2.jpeg", "dog/sub/e.png"]
LABELS = [0, 1, 2, 2, 3, 3, 4]


@pytest.fixture
def images(tmp_path):
    """A folder of images of 20 x (30 + i) pixels, and other things."""
    root = tmp_path / "images"
    for i, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        image = np.full((20, 30 + i, 3), i * 10, np.uint8)
        image[:, ::2, 0] = 200
        ending = ".png" if name.lower().endswith(".png") else ".jpg"
        (root / name).write_bytes(codec.encode(image, ending))
    (root / "cat" / "note.txt").write_text("no image")
    return root


def run(*args):
    parser = argparse.ArgumentParser()
    im2rec.add_arguments(parser)
    return im2rec.main(parser.parse_args([str(a) for a in args]))


def lines(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_lists_are_mxnets(images, tmp_path, capsys):
    assert run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images) == 0
    expected = [[str(i), f"{label:f}", name] for i, (label, name) in enumerate(zip(LABELS, NAMES))]
    assert lines(tmp_path / "a.lst") == expected
    assert capsys.readouterr().out.splitlines()[:5] == [". 0", "Ape 1", "cat 2", "dog 3", "dog/sub 4"]
    run("--list", tmp_path / "flat", images)
    assert lines(tmp_path / "flat.lst") == [["0", "0.000000", "root.png"]]


def test_shuffled_lists_hold_the_same_and_are_alike(images, tmp_path):
    for name in "ab":
        run("--list", "--recursive", tmp_path / name, images)
    found = lines(tmp_path / "a.lst")
    assert found == lines(tmp_path / "b.lst")
    assert [int(line[0]) for line in found] != list(range(7))
    assert sorted(line[2] for line in found) == sorted(NAMES)


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--train-ratio", 0.5, "--test-ratio", 0.3], {"a_test": 2, "a_train": 3, "a_val": 2}),
        (["--train-ratio", 0.6], {"a_train": 4, "a_val": 3}),
        (["--chunks", 3], {"a_0": 3, "a_1": 3, "a_2": 1}),
        (["--chunks", 2, "--train-ratio", 0.5], {"a_0_train": 2, "a_0_val": 2, "a_1_train": 2, "a_1_val": 1}),
    ],
)
def test_parts_and_chunks(images, tmp_path, options, expected):
    run("--list", "--recursive", *options, tmp_path / "a", images)
    found = {path.stem: lines(path) for path in tmp_path.glob("*.lst")}
    assert {name: len(part) for name, part in found.items()} == expected
    assert sorted(line[2] for part in found.values() for line in part) == sorted(NAMES)


def test_files_passed_through(images, tmp_path):
    run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images)
    made = []
    for threads in (1, 3):
        assert run("--pass-through", "--num-thread", threads, tmp_path / "a", images) == 0
        made.append(((tmp_path / "a.rec").read_bytes(), (tmp_path / "a.idx").read_bytes()))
    assert made[0] == made[1]
    with MXRecordIO(tmp_path / "expected.rec", "w") as record:
        for i, (label, name) in enumerate(zip(LABELS, NAMES)):
            record.write(pack(IRHeader(0, float(label), i, 0), (images / name).read_bytes()))
    assert made[0][0] == (tmp_path / "expected.rec").read_bytes()
    it = ImageRecordIter(path_imgrec=str(tmp_path / "a.rec"), data_shape=(3, 20, 30), batch_size=7)
    assert it.next_arrays()[1][0].tolist() == LABELS


@pytest.mark.parametrize(
    "options, shape, start",
    [
        ([], (20, 30, 3), b"\xff\xd8"),
        (["--resize", 10, "--encoding", ".png"], (10, 15, 3), b"\x89PNG"),
        (["--center-crop"], (20, 20, 3), b"\xff\xd8"),
        (["--center-crop", "--resize", 8, "--color", 0], (8, 8), b"\xff\xd8"),
        (["--color", -1, "--encoding", ".png", "--quality", 9], (20, 30, 3), b"\x89PNG"),
    ],
)
def test_images_are_changed_as_asked(images, tmp_path, options, shape, start):
    run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images)
    run(*options, "--num-thread", 2, tmp_path / "a", images)
    first = MXRecordIO(tmp_path / "a.rec", "r").read()
    assert unpack(first)[1].startswith(start) and unpack_img(first)[1].shape == shape


def test_many_labels(images, tmp_path):
    (tmp_path / "a.lst").write_text("5\t1\t2.5\t3\troot.png\n")
    for options, label in (([], 1.0), (["--pack-label"], [1, 2.5, 3])):
        run(*options, tmp_path / "a", images)
        header, _ = unpack(MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r").read_idx(5))
        assert header.id == 5 and np.array_equal(header.label, label)


def test_every_list_of_the_prefix_is_made(images, tmp_path):
    run("--list", "--recursive", "--train-ratio", 0.5, tmp_path / "a", images)
    run("--list", "--recursive", tmp_path / "b", images)
    run(tmp_path / "a", images)
    assert sorted(path.name for path in tmp_path.glob("*.rec")) == ["a_train.rec", "a_val.rec"]


def test_unreadable_images_are_named_and_counted(images, tmp_path, capsys):
    run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images)
    (images / "cat/c1.png").write_bytes(b"no image")
    (images / "dog/d1.jpg").unlink()
    assert run("--num-thread", 2, tmp_path / "a", images) == 0
    out, err = capsys.readouterr()
    assert "5 images, 2 unreadable" in out
    assert "cat/c1.png: OpenCV cannot decode" in err and "dog/d1.jpg: " in err
    assert MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r").keys == [0, 1, 3, 5, 6]
    with pytest.raises(ValueError, match="image 'cat/c1.png' of .*a.lst' cannot be read"):
        run("--strict", tmp_path / "a", images)


def test_a_run_that_fails_leaves_the_files_as_they_were(images, tmp_path):
    run("--list", "--recursive", tmp_path / "a", images)
    run(tmp_path / "a", images)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("a.*")}
    (images / "cat/c1.png").write_bytes(b"no image")
    with pytest.raises(MXNetError):
        run("--strict", tmp_path / "a", images)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("a.*")} == before


def test_nothing_readable_is_a_failure(tmp_path):
    (tmp_path / "a.lst").write_text("0\t1\tnone.png\n")
    assert run(tmp_path / "a", tmp_path) == 1


@pytest.mark.parametrize(
    "text, word",
    [("0\t1\n", "fewer than three"), ("x\t1\ta.png\n", "line 1"), ("0\t1\ta.png\n1\tx\tb.png\n", "line 2")],
)
def test_broken_lists_name_the_line(tmp_path, text, word):
    (tmp_path / "a.lst").write_text(text)
    with pytest.raises(ValueError, match=word):
        run(tmp_path / "a", tmp_path)


@pytest.mark.parametrize(
    "options, word",
    [
        (["--list", "--chunks", 0], "chunks"),
        (["--list", "--train-ratio", 0.9, "--test-ratio", 0.9], "ratios"),
        (["--list", "--exts", ".webp"], "holds no image"),
        ([], "there is no list"),
        (["--num-thread", 0], "there is no list"),
    ],
)
def test_wrong_arguments(images, tmp_path, options, word):
    with pytest.raises(MXNetError, match=word):
        run(tmp_path / "none", images, *options)
    with pytest.raises(NotADirectoryError, match="no folder"):
        run("--list", tmp_path / "none", tmp_path / "nowhere")


@pytest.mark.parametrize("option, value", [("--resize", -1), ("--num-thread", 0)])
def test_numbers_that_are_none(images, tmp_path, option, value):
    run("--list", tmp_path / "a", images)
    with pytest.raises(ValueError, match=f"im2rec: {option} must be .*, got {value}"):
        run(tmp_path / "a", images, option, value)


def test_links_lead_nowhere_twice(images, tmp_path, capsys):
    """Two links to the folder itself would be 2**40 paths."""
    run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images)
    for name in ("x", "y"):
        (images / name).symlink_to(".")
    run("--list", "--recursive", "--no-shuffle", tmp_path / "b", images)
    assert lines(tmp_path / "b.lst") == lines(tmp_path / "a.lst")
    assert capsys.readouterr().err.count("whose images are listed already") == 2


@pytest.mark.skipif(os.name == "nt", reason="names of files that Windows does not have")
def test_names_that_no_list_can_hold(images, tmp_path, capsys):
    """A folder's name could else be the labels of an image in another."""
    run("--list", "--recursive", "--no-shuffle", tmp_path / "a", images)
    (picture,) = sorted(images.rglob("*.jpg"))[:1]
    (images / "x\n7\t3.5\tcat").mkdir()
    for name in ("x\n7\t3.5\tcat/a.jpg", "x\ty.jpg", "x\ny.jpg", "x\ry.jpg"):
        (images / name).write_bytes(picture.read_bytes())
    capsys.readouterr()
    run("--list", "--recursive", "--no-shuffle", tmp_path / "b", images)
    assert lines(tmp_path / "b.lst") == lines(tmp_path / "a.lst")
    assert capsys.readouterr().err.count("is left out: no list can hold a tab or the end of a line") == 4


def test_the_command(images, tmp_path, capsys):
    assert mxcore(["im2rec", "--list", "--recursive", str(tmp_path / "a"), str(images)]) == 0
    assert mxcore(["im2rec", str(tmp_path / "a"), str(images)]) == 0
    assert os.path.exists(tmp_path / "a.rec")
    assert mxcore(["im2rec", str(tmp_path / "none"), str(images)]) == 1
    assert "there is no list" in capsys.readouterr().err
