"""`ImageRecordIter`: order, batches, threads, damage, resuming."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mxcore as mx
from mxcore import _workers
from mxcore.base import MXNetError, MXNetWarning
from mxcore_io_rec import codec
from mxcore_io_rec.image_iter import ImageRecordIter
from mxcore_io_rec.loader import Loader
from mxcore_io_rec.order import Order, part_bounds
from mxcore_io_rec.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img
from mxcore_io_rec.records import Records

from .cases import ROUNDS

GOLDEN = Path(__file__).parent / "golden"
TINY = codec.encode(np.zeros((2, 2), np.uint8), ".png")


def write(path, n, image=TINY, label=float, index=True):
    """A file whose records have their number as label and 100 + number as id."""
    if index:
        with MXIndexedRecordIO(path.with_suffix(".idx"), path, "w") as record:
            for i in range(n):
                record.write_idx(i, pack(IRHeader(0, label(i), 100 + i, 0), image))
    else:
        with MXRecordIO(path, "w") as record:
            for i in range(n):
                record.write(pack(IRHeader(0, label(i), 100 + i, 0), image))
    return str(path)


@pytest.fixture
def ten(tmp_path):
    return write(tmp_path / "ten.rec", 10, index=False)


def tiny(path, batch_size=4, **parameters):
    return ImageRecordIter(path_imgrec=path, data_shape=(1, 2, 2), batch_size=batch_size, **parameters)


def drain(it):
    """Labels and pads of the rest of an epoch."""
    batches = []
    while True:
        try:
            _, (labels,), pad, _ = it.next_arrays()
        except StopIteration:
            return batches
        batches.append([labels.ravel().tolist(), pad])


def epoch(it):
    """Labels of the rest of an epoch that count."""
    return [label for labels, pad in drain(it) for label in labels[: len(labels) - pad]]


# -- batches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ROUNDS)
def test_epochs_are_mxnets(ten, size):
    expected = json.loads((GOLDEN / "batches.json").read_text())[f"image {size}"]
    it = tiny(ten, size)
    for i, batches in enumerate(expected):
        found = drain(it)
        assert [labels for labels, _ in found] == [labels for labels, _ in batches]
        if i == 0:  # later on MXNet's pads of full batches are left over from batches before
            assert found == batches
        with pytest.raises(StopIteration):
            it.next_arrays()
        it.reset()
    it.close()


def test_without_round_batch_the_pad_is_told(ten):
    it = tiny(ten, round_batch=False)
    for _ in range(2):
        assert drain(it) == [[[0, 1, 2, 3], 0], [[4, 5, 6, 7], 0], [[8, 9, 0, 1], 2]]
        it.reset()
    it.close()


def test_reset_within_an_epoch_and_twice(ten):
    it = tiny(ten)
    it.next_arrays()
    it.reset()
    it.reset()
    assert len(drain(it)) == 3
    it.reset()
    it.reset()  # the images taken over from the last batch are given back, and no epoch is lost
    assert drain(it)[0][0] == [0, 1, 2, 3]
    it.close()


def test_the_face_of_a_data_iter(ten):
    it = mx.io.ImageRecordIter(path_imgrec=ten, data_shape=(1, 2, 2), batch_size=4, data_name="x", label_name="y")
    assert it.provide_data[0] == ("x", (4, 1, 2, 2)) and it.provide_label[0] == ("y", (4,))
    assert it.provide_data[0].dtype is np.float32 and it.batch_size == 4
    batch = it.next()
    assert isinstance(batch.data[0], mx.nd.NDArray) and batch.data[0].shape == (4, 1, 2, 2)
    assert batch.index.tolist() == [100, 101, 102, 103] and batch.index.dtype == np.uint64
    assert it.iter_next() and it.getpad() == 0 and it.getlabel().asnumpy().tolist() == [4, 5, 6, 7]
    assert it.getdata().shape == (4, 1, 2, 2) and it.getindex().tolist() == [104, 105, 106, 107]
    assert len(list(it)) == 1 and not it.iter_next()
    it.close()


def test_labels_of_many_numbers(tmp_path):
    path = write(tmp_path / "a.rec", 4, label=lambda i: [i, i + 1, i + 2])
    it = tiny(path, label_width=3)
    assert it.provide_label[0].shape == (4, 3)
    assert it.next_arrays()[1][0].tolist() == [[i, i + 1, i + 2] for i in range(4)]
    with pytest.raises(ValueError, match="record 0 .*3 labels, but label_width is 2"):
        tiny(path, label_width=2).next_arrays()


def test_labels_from_a_list(ten, tmp_path):
    lst = tmp_path / "a.lst"
    lst.write_text("".join(f"{100 + i}\t{50 + i}\t7\timage{i}\n" for i in range(10)))
    assert epoch(tiny(ten, path_imglist=str(lst))) == list(range(50, 60))
    it = tiny(ten, path_imglist=str(lst), label_width=2)
    assert it.next_arrays()[1][0].tolist() == [[50 + i, 7] for i in range(4)]
    lst.write_text("100\t1\ta\n")
    with pytest.raises(KeyError, match="no labels for id 101"):
        tiny(ten, path_imglist=str(lst)).next_arrays()
    lst.write_text("100\t1\ta\n101\n")
    with pytest.raises(ValueError, match=r"line 2 of the list .*a\.lst"):
        tiny(ten, path_imglist=str(lst))


# -- order -------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 60), st.integers(1, 7), st.booleans(), st.integers(-5, 5), st.integers(0, 5))
def test_parts_share_out_every_record_once(n, parts, shuffle, seed, epoch):
    taken, sizes = [], []
    for index in range(parts):
        order = Order(lambda upto: n, shuffle, seed + index, parts, index)  # even with seeds of their own
        sizes.append(order.known(1 << 60))
        taken += order.take(epoch, 0, sizes[-1])
    assert sorted(taken) == list(range(n)) and max(sizes) - min(sizes) <= 1
    bounds = [part_bounds(n, parts, i) for i in range(parts)]
    assert [first for first, _ in bounds[1:]] == [end for _, end in bounds[:-1]]


def test_shuffle_reaches_over_the_whole_file():
    order = Order(lambda upto: 1000, True, 7)
    epochs = [np.array(order.take(e, 0, 1000)) for e in range(6)]
    for e in epochs:
        assert np.abs(e - np.arange(1000)).mean() == pytest.approx(1000 / 3, rel=0.1)
    assert len({tuple(e) for e in epochs}) == 6
    assert np.array_equal(epochs[2], Order(lambda upto: 1000, True, 7).take(2, 0, 1000))
    assert not np.array_equal(epochs[2], Order(lambda upto: 1000, True, 8).take(2, 0, 1000))


def test_every_worker_comes_to_see_every_record():
    order = Order(lambda upto: 100, True, 0, 4, 1)
    assert len({r for e in range(40) for r in order.take(e, 0, 25)}) == 100


@pytest.mark.parametrize("index", [True, False])
def test_shuffled_epochs_and_parts_of_a_file(tmp_path, index):
    path = write(tmp_path / "a.rec", 23, index=index)
    setting = {"shuffle": True, "seed": 3, "num_parts": 3, "round_batch": False}
    its = [tiny(path, 5, part_index=i, **setting) for i in range(3)]
    seen = []
    for _ in range(3):
        seen.append([epoch(it) for it in its])
        assert sorted(sum(seen[-1], [])) == list(range(23))
        for it in its:
            it.reset()
    assert seen[0] != seen[1] != seen[2]


def test_an_index_given_chooses_the_records(tmp_path):
    path = write(tmp_path / "a.rec", 10)
    lines = (tmp_path / "a.idx").read_text().splitlines(keepends=True)
    (tmp_path / "some.idx").write_text("".join(lines[6:2:-1]))
    assert epoch(tiny(path, 2, path_imgidx=str(tmp_path / "some.idx"))) == [3, 4, 5, 6]


def test_an_index_beside_is_used_only_if_it_fits(tmp_path):
    path = write(tmp_path / "a.rec", 10)
    assert Records(path).where(3).startswith("record 3 (key 3) of")
    write(tmp_path / "b.rec", 4)
    (tmp_path / "b.idx").replace(tmp_path / "a.idx")  # of an older, shorter file
    records = Records(path)
    assert len(records) == 10 and "key" not in records.where(3)
    for text in ("", "nonsense\n", "0\t4\n"):
        (tmp_path / "a.idx").write_text(text)
        assert len(Records(path)) == 10


def test_the_headers_are_read_as_far_as_needed(tmp_path):
    path = write(tmp_path / "a.rec", 500, index=False)
    records = Records(path)
    assert 3 <= records.known(3) < 10
    assert len(records) == 500 and records.read(499, 8) == records.read(499)[:8]


@pytest.mark.parametrize(
    "problem", [ConnectionRefusedError(111, "Connection refused"), TypeError("of the store"), KeyError("of the store")]
)
def test_a_store_that_fails_is_named(problem, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    def fails(self, path):
        raise problem

    monkeypatch.setattr(MemoryFileSystem, "isdir", fails)
    with pytest.raises(
        mx.MXNetError, match="cannot read 'memory://a.rec': .*(Connection refused|of the store)"
    ) as caught:
        mx.io.ImageRecordIter(path_imgrec="memory://a.rec", data_shape=(3, 4, 4), batch_size=1)
    assert isinstance(caught.value, ConnectionRefusedError if isinstance(problem, OSError) else OSError)


def test_folders_and_several_files(tmp_path):
    for name, n in (("b", 2), ("a", 3), ("c", 1)):
        write(tmp_path / f"{name}.rec", n, label=lambda i, name=name: 10 * (ord(name) - 97) + i)
    expected = [0, 1, 2, 10, 11, 20]
    assert epoch(tiny(str(tmp_path), 4)) == expected
    assert epoch(tiny(f"{tmp_path}/b.rec;{tmp_path}/a.rec", 4)) == [10, 11, 0, 1, 2]
    with pytest.raises(ValueError, match="one index .* for the 3 files"):
        tiny(str(tmp_path), path_imgidx=str(tmp_path / "a.idx"))


def test_files_in_a_store(ten):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://store/ten.rec", "wb") as f:
        f.write(Path(ten).read_bytes())
    assert epoch(tiny("memory://store", 5)) == list(range(10))
    assert sorted(epoch(tiny("memory://store/ten.rec", shuffle=True))) == list(range(10))


# -- threads -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "p.rec"
    rs = np.random.RandomState(0)
    with MXIndexedRecordIO(path.with_suffix(".idx"), path, "w") as record:
        for i in range(30):
            image = rs.randint(0, 256, (40 + i, 60, 3), dtype=np.uint8)
            record.write_idx(i, pack_img(IRHeader(0, i, i, 0), image, quality=80))
    return str(path)


LIVELY = {
    "rand_crop": True,
    "rand_mirror": True,
    "shuffle": True,
    "seed": 5,
    "brightness": 0.2,
    "resize": 36,
    "max_rotate_angle": 9,
    "pca_noise": 0.1,
    "max_random_contrast": 0.1,
    "mean_r": 100,
    "random_h": 9,
    "inter_method": 10,
}


def lively(photos, **parameters):
    return ImageRecordIter(path_imgrec=photos, data_shape=(3, 32, 32), **{"batch_size": 8, **LIVELY, **parameters})


def images_of(it, epochs=2):
    found = []
    for _ in range(epochs):
        try:
            while True:
                found.append(it.next_arrays()[0][0])
        except StopIteration:
            it.reset()
    it.close()
    return np.concatenate(found)


def test_batches_do_not_depend_on_threads(photos, monkeypatch):
    monkeypatch.setattr("mxcore_io_rec.record_iter.processors", lambda: 8)
    monkeypatch.setattr("mxcore_io_rec.record_iter._SMALL", 0)
    first = images_of(lively(photos, preprocess_threads=1, prefetch_buffer=0))
    for threads, ahead in ((2, 1), (5, 4), (8, 9)):
        it = lively(photos, preprocess_threads=threads, prefetch_buffer=ahead)
        assert it._threads == threads
        np.testing.assert_array_equal(images_of(it), first)
    assert (images_of(lively(photos, seed=6)) != first).any()
    assert (images_of(lively(photos, seed_aug=6)) != first).any()


def test_batches_that_somebody_has_are_not_written_again(photos):
    """Large ones use the memory of those before; also of one whose rows, or NumPy's view, are all that is left."""
    it = ImageRecordIter(path_imgrec=photos, data_shape=(3, 224, 224), resize=224, batch_size=4, rand_crop=True)
    kept, copies, places = [], [], []
    for epoch in range(3):
        it.reset()
        for i, batch in enumerate(it):
            data = batch.data[0]
            places.append(data._data.__array_interface__["data"][0])
            if (i + epoch) % 3:
                kept.append((data, data[1:2], data.to_dlpack_for_read())[i % 3])
                copies.append((data, data[1:2], data)[i % 3].asnumpy())
    it.close()
    assert len({*places}) < len(places), "memory is used again"
    for found, copy in zip(kept, copies):
        found = found if isinstance(found, mx.nd.NDArray) else mx.nd.from_dlpack(found)
        np.testing.assert_array_equal(found.asnumpy(), copy)


def test_every_epoch_is_augmented_anew(photos):
    it = lively(photos, shuffle=False, batch_size=30)
    one = it.next_arrays()[0][0]
    it.reset()
    two = it.next_arrays()[0][0]
    it.close()
    assert all((a != b).any() for a, b in zip(one, two))


@pytest.fixture
def decoders():
    """Threads that decode, but for those of iterators that other tests left to the garbage collector."""
    gc.collect()
    assert wait_for(lambda: not _decoders())
    return _decoders


def _decoders():
    return [t for t in threading.enumerate() if t.name.startswith("mxcore-decode")]


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_close_ends_the_threads(photos, decoders):
    it = lively(photos)
    it.next_arrays()
    assert decoders()
    it.close()
    assert not decoders()


def test_closing_tells_who_waits_and_who_comes_later(photos, decoders):
    it = lively(photos)
    it.close()
    it.close()
    for use in (it.next, it.reset):
        with pytest.raises(MXNetError, match="closed"):
            use()
    gate, met = threading.Event(), []
    loader = Loader(iter("abcdef").__next__, lambda job: [lambda: gate.wait(10)], 1, 1)

    def consume():
        try:
            loader.next()
        except BaseException as e:
            met.append(e)

    waiter, closer = threading.Thread(target=consume), threading.Thread(target=loader.close)
    for t in (waiter, closer):
        t.start()
        time.sleep(0.1)
    gate.set()
    for t in (waiter, closer):
        t.join(10)
    (problem,) = met
    assert isinstance(problem, MXNetError) and "closed" in str(problem)
    assert not decoders()


def test_an_interrupt_while_a_loader_starts_anew_leaves_no_item_for_which_it_waits():
    """At each line in turn: what comes next are whole items, of the old plan or of the new one."""
    paths = _workers.__file__, sys.modules[Loader.__module__].__file__
    for place in range(1, 300):
        gate, left = threading.Event(), [place]
        loader = Loader(iter(range(20)).__next__, lambda i: [gate.wait if i == 0 else int] * 2, 1, 3)
        with loader._lock:
            loader._begin()

        def trace(frame, event, arg, left=left):
            # A trace tells of a line where a with-block is left, too, where no signal comes: that of its lock is here.
            if frame.f_code.co_filename not in paths or frame.f_code is Loader.restart.__code__:
                return None
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        try:
            sys.settrace(trace)
            loader.restart()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        gate.set()
        found = []
        asks = threading.Thread(target=lambda: found.extend(loader.next() for _ in range(3)), daemon=True)
        asks.start()
        asks.join(20)
        assert found in ([0, 1, 2], [4, 5, 6])
        loader.close()
        if left[0] > 0:
            break
    assert 10 < place < 299


def test_an_iterator_dropped_mid_epoch_goes_away(photos, decoders):
    gc.disable()
    try:
        it = lively(photos, prefetch_buffer=50)
        it.next_arrays()
        gone = weakref.ref(it)
        del it
        assert wait_for(lambda: gone() is None and not decoders())
    finally:
        gc.enable()


def test_a_program_may_end_mid_epoch(photos):
    program = (
        "from mxcore_io_rec.image_iter import ImageRecordIter\n"
        f"it = ImageRecordIter(path_imgrec={photos!r}, data_shape=(3, 32, 32), batch_size=2, "
        "prefetch_buffer=99)\nit.next_arrays(); print('end')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "end\n" and done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on(photos):
    it = lively(photos, shuffle=False, prefetch_buffer=2)
    it.next_arrays()
    out, into = os.pipe()
    taken, done = threading.Event(), threading.Event()

    def takes():  # as a thread that asks for a batch
        with it._loader._lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=takes)
    thread.start()
    taken.wait()
    pid = os.fork()
    done.set()
    if pid == 0:
        try:
            signal.alarm(30)
            os.write(into, json.dumps(epoch(it)).encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(pid, 0)
    with os.fdopen(out, "rb") as f:
        assert json.loads(f.read()) == list(range(8, 30))
    assert epoch(it) == list(range(8, 30))
    it.close()


def test_the_first_failure_is_raised_whatever_finishes_first():
    def fail(after, text):
        time.sleep(after)
        raise ValueError(text)

    work = {"bad": [lambda: fail(0.05, "first"), lambda: fail(0, "second")], "good": []}
    loader = Loader(iter(work).__next__, work.get, 2, 3)
    with pytest.raises(ValueError, match="first"):
        loader.next()
    assert loader.next() == "good"
    with pytest.raises(StopIteration):
        loader.next()
    loader.close()


# -- damage ------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path):
    """Ten records: the image of 3 is none, and the header of 6 is broken."""
    path = tmp_path / "bad.rec"
    with MXIndexedRecordIO(tmp_path / "bad.idx", path, "w") as record:
        for i in range(10):
            record.write_idx(i, pack(IRHeader(0, i, i, 0), b"no image" if i == 3 else TINY))
        offsets = dict(record.idx)
    data = bytearray(path.read_bytes())
    data[offsets[6]] ^= 0xFF
    path.write_bytes(bytes(data))
    return str(path), offsets


@pytest.mark.parametrize("threads", [1, 4])
def test_errors_name_record_key_file_and_offset(damaged, threads):
    path, offsets = damaged
    it = tiny(path, 5, preprocess_threads=threads)
    place = rf"record 3 \(key 3\) of '{path}' at offset {offsets[3]}: OpenCV cannot decode"
    with pytest.raises(ValueError, match=place) as caught:
        it.next_arrays()
    assert isinstance(caught.value, MXNetError)
    with pytest.raises(ValueError, match=rf"record 6 \(key 6\) of '{path}' at offset {offsets[6]} is damaged"):
        it.next_arrays()
    it.reset()
    with pytest.raises(ValueError, match="record 3"):
        it.next_arrays()
    it.close()


def test_damaged_records_are_left_out_and_counted(damaged):
    path, _ = damaged
    it = tiny(path, 5, on_error="skip")
    assert drain(it) == [[[0, 1, 2, 4, 0], 1], [[5, 7, 8, 9, 5], 1]] and it.skipped == 2
    it.close()
    it = tiny(path, 5, on_error="warn")
    with pytest.warns(MXNetWarning, match=r"left out: .*record \d \(key \d\)") as told:
        assert epoch(it) == [0, 1, 2, 4, 5, 7, 8, 9]
    assert len(told) == 2
    it.close()


def test_a_batch_without_a_sound_record_is_passed_over(damaged):
    path, _ = damaged
    it = tiny(path, 1, on_error="skip")
    assert [pad for _, pad in drain(it)] == [0] * 8
    it.close()


def test_damage_met_while_looking_for_records(damaged):
    path, offsets = damaged
    os.unlink(path[:-3] + "idx")
    with pytest.raises(ValueError, match=rf"record 6 of '{path}' at offset {offsets[6]} is damaged"):
        tiny(path, shuffle=True)
    it = tiny(path, 2, on_error="skip", shuffle=True)
    assert sorted(epoch(it)) == [0, 1, 2, 4, 5, 7, 8, 9] and it.skipped == 1 and it.records.skipped == 1
    it.close()


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "grey"])
def test_pictures_of_floats_are_in_colour_or_grey_as_asked_for(tmp_path, colour):
    image = np.random.RandomState(0).randint(0, 256, (2, 2, 3) if colour else (2, 2)).astype("float32")
    path = write(tmp_path / "floats.rec", 1, codec.encode(image, ".pfm"), index=False)
    assert codec.decode(codec.encode(image, ".pfm")).shape == image.shape
    for flag, channels in ((1, 3), (0, 1)):
        batch = ImageRecordIter(path_imgrec=path, data_shape=(channels, 2, 2), batch_size=1).next()
        want = codec.decode(codec.encode(image.astype("uint8"), ".bmp"), flag).reshape(2, 2, channels)
        if channels == 3:
            want = want[..., ::-1]
        assert (batch.data[0].asnumpy()[0].transpose(1, 2, 0) == want).all()
    if not colour:
        batch = mx.image.ImageIter(1, (3, 2, 2), path_imgrec=path, aug_list=[]).next()
        assert (batch.data[0].asnumpy()[0] == image).all()


def test_images_of_other_kinds_are_told(tmp_path):
    rec = tmp_path / "a.rec"
    with MXRecordIO(rec, "w") as record:
        record.write(pack_img(IRHeader(0, 0, 0, 0), np.zeros((4, 4, 3), np.uint8), img_fmt=".png"))
    with pytest.raises(ValueError, match="3 channels, but data_shape is \\(4, 2, 2\\)"):
        ImageRecordIter(path_imgrec=str(rec), data_shape=(4, 2, 2), batch_size=1).next_arrays()
    with MXRecordIO(rec, "w") as record:
        record.write(pack_img(IRHeader(0, 0, 0, 0), np.zeros((4, 4, 4), np.uint16), img_fmt=".png"))
    with pytest.raises(ValueError, match="uint16; only uint8"):
        ImageRecordIter(path_imgrec=str(rec), data_shape=(4, 2, 2), batch_size=1).next_arrays()


@pytest.mark.parametrize(
    "kind, parameters, word",
    [
        (TypeError, {"path_imgrec": None}, "path_imgrec"),
        (ValueError, {"data_shape": (2, 2)}, "data_shape"),
        (ValueError, {"data_shape": (2, 2, 2)}, "data_shape"),
        (ValueError, {"data_shape": (1, 0, 2)}, "data_shape"),
        (ValueError, {"batch_size": 0}, "batch_size"),
        (ValueError, {"num_parts": 2, "part_index": 2}, "part_index"),
        (ValueError, {"num_parts": 11, "part_index": 0}, "holds no record"),
        (ValueError, {"dtype": "float64"}, "dtype"),
        (ValueError, {"on_error": "ignore"}, "on_error"),
        (FileNotFoundError, {"path_imgrec": "none.rec"}, "none.rec"),
    ],
)
def test_wrong_parameters(ten, kind, parameters, word):
    with pytest.raises(kind, match=word) as caught:
        ImageRecordIter(**{"path_imgrec": ten, "data_shape": (1, 2, 2), "batch_size": 4, **parameters})
    assert isinstance(caught.value, MXNetError)


def test_required_and_unknown_parameters(ten):
    with pytest.raises(TypeError, match="needs parameter batch_size"):
        ImageRecordIter(path_imgrec=ten, data_shape=(1, 2, 2))
    with pytest.warns(MXNetWarning, match=r"no parameter 'suffle' \(meant 'shuffle'\?\): left out"):
        tiny(ten, suffle=True).close()
    it = ImageRecordIter(path_imgrec=ten, data_shape="(1, 2, 2)", batch_size="4", shuffle="False", dtype=np.uint8)
    assert it.next_arrays()[0][0].dtype == np.uint8


def test_the_docstring_names_every_parameter():
    for table in ImageRecordIter.tables:
        for name in table:
            assert f"\n{name} : " in ImageRecordIter.__doc__
    assert "{parameters}" not in mx.io.ImageDetRecordIter.__doc__


# -- the mean image ----------------------------------------------------------------------------------


def test_the_mean_image_is_made_once(photos, tmp_path):
    path = str(tmp_path / "mean.bin")
    setting = {"path_imgrec": photos, "data_shape": (3, 32, 32), "batch_size": 8}
    plain = ImageRecordIter(**setting, round_batch=False)
    images = np.concatenate([plain.next_arrays()[0][0] for _ in range(4)])[:30]
    it = ImageRecordIter(**setting, mean_img=path)
    mean = mx.nd.load(path)["mean_img"].asnumpy()
    np.testing.assert_allclose(mean, images.mean(0), rtol=1e-5)
    np.testing.assert_allclose(it.next_arrays()[0][0], images[:8] - mean, atol=1e-4)
    stamp = os.stat(path).st_mtime_ns
    again = ImageRecordIter(**setting, mean_img=path)
    np.testing.assert_allclose(again.next_arrays()[0][0], images[:8] - mean, atol=1e-4)
    assert os.stat(path).st_mtime_ns == stamp


# -- going on later ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.booleans(), st.booleans(), st.integers(0, 30))
def test_resuming_gives_exactly_what_would_have_followed(size, shuffle, round_batch, steps):
    path = test_resuming_gives_exactly_what_would_have_followed.path
    setting = {"shuffle": shuffle, "round_batch": round_batch}

    def walk(it, steps):
        found = []
        for _ in range(steps):
            try:
                _, (labels,), pad, index = it.next_arrays()
                found.append((labels.tolist(), pad, index.tolist()))
            except StopIteration:
                found.append("end")
                it.reset()
        return found

    first = tiny(path, size, **setting)
    walk(first, steps)
    state = json.loads(json.dumps(first.state_dict()))
    second = tiny(path, size, **setting)
    walk(second, 3)
    second.load_state_dict(state)
    assert walk(second, 12) == walk(first, 12)
    first.close()
    second.close()


@pytest.fixture(autouse=True, scope="module")
def _resume_file(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("resume") / "ten.rec", 10, index=False)
    test_resuming_gives_exactly_what_would_have_followed.path = path


def test_resuming_augments_alike(photos):
    first, second = lively(photos), lively(photos)
    for _ in range(2):
        first.next_arrays()
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(images_of(first), images_of(second))


def test_states_that_do_not_fit(ten):
    state = tiny(ten).state_dict()
    with pytest.raises(ValueError, match="batch_size=4, not 5"):
        tiny(ten, 5).load_state_dict(state)
    with pytest.raises(ValueError, match="seed=0, not 1"):
        tiny(ten, seed=1).load_state_dict(state)
    with pytest.raises(ValueError, match="no state that state_dict"):
        tiny(ten).load_state_dict({})
    for changed, word in (
        ({"epoch": None}, "no place"),
        ({"position": 10**30}, "no place"),
        ({"taken": [0]}, "no place"),
        ({"started": "x"}, "no place"),
        ({"skipped": []}, "records that were left out"),
    ):
        with pytest.raises(MXNetError, match=word):
            tiny(ten).load_state_dict(state | changed)
