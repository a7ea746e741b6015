"""Event files: read back by a reader of their own format, and by TensorBoard where it is installed."""

import os
import struct
import threading

import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.contrib.events import EventWriter, checksum
from mxcore.model import BatchEndParam


def fields(data):
    """(number, value) of a message of protocol buffers."""
    found, i = [], 0

    def varint():
        nonlocal i
        n = shift = 0
        while True:
            b = data[i]
            i += 1
            n |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return n

    while i < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        found.append((key >> 3, data[i : i + size]))
        i += size
    return found


def events(file):
    """(step, tag, value) of all scalars; checks every checksum."""
    data, i, found = file.read_bytes(), 0, []
    while i < len(data):
        head = data[i : i + 8]
        (n,) = struct.unpack("<Q", head)
        body = data[i + 12 : i + 12 + n]
        assert struct.unpack("<I", data[i + 8 : i + 12]) == (checksum(head),)
        assert struct.unpack("<I", data[i + 12 + n : i + 16 + n]) == (checksum(body),)
        i += 16 + n
        event = dict(fields(body))
        assert struct.unpack("<d", event[1])[0] > 1.6e9
        if 5 in event:
            value = dict(fields(dict(fields(event[5]))[1]))
            found.append((event.get(2, 0), value[1].decode(), struct.unpack("<f", value[2])[0]))
        else:
            assert event[3] == b"brain.Event:2"
    return found


def test_the_checksum_is_the_published_one():
    # RFC 3720, B.4: 32 bytes of zeros, and 32 of ones, masked as the record format does.
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)):
        assert checksum(data) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars(tmp_path):
    with EventWriter(tmp_path / "logs" / "deep") as writer:
        for tag, value, step in (("loss", 0.25, 0), ("loss", 3, 300), ("täg", -1e300, 2**40), ("nan", float("nan"), 1)):
            writer.add_scalar(tag, value, step)
        with pytest.raises(TypeError, match="'loss' must be a number, got 'low'"):
            writer.add_scalar("loss", "low", 1)
    (file,) = (tmp_path / "logs" / "deep").iterdir()
    assert file.name.startswith("events.out.tfevents.")
    found = events(file)
    assert found[:3] == [(0, "loss", 0.25), (300, "loss", 3.0), (2**40, "täg", float("-inf"))]
    assert found[3][:2] == (1, "nan") and found[3][2] != found[3][2]


def test_metrics_of_a_training(tmp_path):
    log = mx.contrib.tensorboard.LogMetricsCallback(str(tmp_path), prefix="train")
    metric = mx.metric.create(["acc", "ce"])
    for epoch, right in ((4, 0.9), (5, 0.2)):
        metric.reset()
        metric.update([mx.nd.array([1.0])], [mx.nd.array([[1 - right, right]])])
        log(BatchEndParam(epoch=epoch, nbatch=0, eval_metric=metric, locals=None))
    log(BatchEndParam(epoch=0, nbatch=0, eval_metric=None, locals=None))
    found = events(next(tmp_path.iterdir()))
    assert [row[:2] for row in found] == [(s, f"train-{n}") for s in (4, 5) for n in ("accuracy", "cross-entropy")]
    assert [row[2] for row in found] == pytest.approx([1, 0.10536, 0, 1.60944], rel=1e-4)


def test_two_writers_of_one_folder_have_files_of_their_own(tmp_path):
    writers = [EventWriter(tmp_path) for _ in range(2)]
    for w in writers:
        w.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_tensorboard_reads_it(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with EventWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 7)
    found = reader.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(7, 0.5)]


def test_who_closes_waits_for_who_writes(tmp_path):
    """Else the number of the file that is closed may be another file's, which would get the rest of the record."""
    writer, done = EventWriter(tmp_path), threading.Event()
    with writer._lock:
        other = threading.Thread(target=lambda: (writer.close(), done.set()))
        other.start()
        assert not done.wait(0.1) and not writer._file.closed
    other.join()
    assert writer._file.closed
    with pytest.raises(MXNetError, match="is closed"):
        writer.add_scalar("loss", 1, 1)


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot make the folder '.*logs'"):
        EventWriter(tmp_path / "file" / "logs")


def test_what_cannot_be_written_names_the_file(tmp_path):
    writer = EventWriter(tmp_path)
    for step in ("two", None, float("nan")):
        with pytest.raises(MXNetError, match="the step of 'loss' must be a whole number"):
            writer.add_scalar("loss", 1.0, step)
    writer.close()
    with pytest.raises(ValueError, match="tfevents.* is closed") as e:
        writer.add_scalar("loss", 1.0)
    assert isinstance(e.value, MXNetError)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
def test_a_full_disk_is_an_error_of_ours(tmp_path):
    writer = EventWriter(tmp_path)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._file.fileno())
    os.close(full)
    for _ in range(2):
        with pytest.raises(OSError, match="cannot write .*tfevents.*No space left") as e:
            writer.add_scalar("loss", 1.0)
        assert isinstance(e.value, MXNetError)
    writer.close()  # nothing was left to write


@pytest.mark.parametrize("size", [10, 5000, 100_000])
def test_a_record_that_was_not_written_whole_is_taken_back(size, tmp_path):
    """What is written without an error can be read, whatever has failed before it."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = []
    with EventWriter(tmp_path) as writer:
        for step in range(12):
            before = os.path.getsize(writer.path)
            try:
                if step in (0, 3, 4, 5, 11):
                    resource.setrlimit(resource.RLIMIT_FSIZE, (before + (30 if size == 10 else 300), hard))
                writer.add_scalar("t" * size, 0.5, step)
                told.append(step)
            except OSError as e:
                assert isinstance(e, MXNetError) and "cannot write" in str(e) and "File too large" in str(e)
                assert os.path.getsize(writer.path) == before
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told == [1, 2, 6, 7, 8, 9, 10]
    assert [(step, tag) for step, tag, _ in events(next(tmp_path.iterdir()))] == [(step, "t" * size) for step in told]


def test_a_record_that_cannot_be_taken_back_is_told(tmp_path):
    writer = EventWriter(tmp_path)
    begin = os.path.getsize(writer.path)

    class Torn:
        closed = False

        def tell(self):
            return next(told)

        def write(self, data):
            if len(data) < 20:
                raise OSError(28, "No space left on device")
            return len(data) - 10

        def truncate(self):
            raise OSError(5, "Input/output error")

        seek = int

    told = iter([begin, begin + 10])
    writer._file, file = Torn(), writer._file
    file.close()
    with pytest.raises(
        OSError,
        match=f"cannot write .*tfevents.*No space left.*taken back .*Input/output error.* up to byte {begin} only",
    ) as e:
        writer.add_scalar("loss", 1.0)
    assert isinstance(e.value, MXNetError)
