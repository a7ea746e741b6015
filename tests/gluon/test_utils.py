"""Helpers: splitting, clipping, downloading."""

import hashlib
import http.server
import socket
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import utils

CPUS = [mx.cpu(0), mx.cpu(1)]


@pytest.mark.parametrize(
    "n, axis, even, shapes",
    [
        (2, 0, False, [(4, 6), (3, 6)]),
        (4, 0, False, [(2, 6), (2, 6), (2, 6), (1, 6)]),
        (4, 1, False, [(7, 2), (7, 2), (7, 1), (7, 1)]),
        (3, 1, True, [(7, 2)] * 3),
        (1, 0, True, [(7, 6)]),
    ],
)
def test_split_data(n, axis, even, shapes):
    data = mx.nd.array(np.arange(42).reshape(7, 6))
    parts = utils.split_data(data, n, axis, even)
    assert [p.shape for p in parts] == shapes
    assert (np.concatenate([p.asnumpy() for p in parts], axis) == data.asnumpy()).all()


def test_uneven_split_is_refused():
    with pytest.raises(ValueError, match=r"shape \(7, 6\).*2 slices along axis 0.*even_split"):
        utils.split_data(mx.nd.zeros((7, 6)), 2)
    with pytest.raises(ValueError, match="num_slice"):
        utils.split_data(mx.nd.zeros((7, 6)), 0)


def test_split_and_load():
    parts = utils.split_and_load(np.arange(8).reshape(4, 2), CPUS)
    assert [p.context for p in parts] == CPUS and [p.shape for p in parts] == [(2, 2)] * 2
    assert utils.split_and_load(mx.nd.ones((3, 2)), [mx.cpu(1)])[0].context == mx.cpu(1)
    with pytest.raises(ValueError, match="split_and_load: ctx_list is empty"):
        utils.split_and_load(np.zeros((4, 2)), [mx.gpu(i) for i in range(0)])


def test_clip_global_norm():
    a, b = mx.nd.array([3.0]), mx.nd.array([4.0], ctx=mx.cpu(1))
    norm = utils.clip_global_norm([a, b], 1.0)
    assert abs(norm - 5) < 1e-5 and abs(a.asscalar() - 0.6) < 1e-5 and abs(b.asscalar() - 0.8) < 1e-5
    small = mx.nd.array([0.3, 0.4])
    assert abs(utils.clip_global_norm([small], 1.0, check_isfinite=False).asscalar() - 0.5) < 1e-6
    assert np.allclose(small.asnumpy(), [0.3, 0.4])
    with pytest.warns(UserWarning, match="norm of the arrays is nan"):
        utils.clip_global_norm([mx.nd.array([np.nan])], 1.0)
    with pytest.raises(AssertionError, match="at least one"):
        utils.clip_global_norm([], 1.0)
    with pytest.raises(TypeError, match="max_norm must be a number, got '1'"):
        utils.clip_global_norm([mx.nd.ones(2)], "1")


def test_shape_is_known():
    known = [utils.shape_is_known(s) for s in (None, (2, 0), (2, -1), (2, 3), ())]
    assert known == [False, False, False, True, False]  # () is unknown, as 0 is
    with mx.util.np_shape():
        assert utils.shape_is_known(()) and utils.shape_is_known((2, 0))


def test_check_sha1(tmp_path):
    f = tmp_path / "f"
    f.write_bytes(b"abc")
    digest = hashlib.sha1(b"abc").hexdigest()
    assert utils.check_sha1(str(f), digest) and utils.check_sha1(str(f), digest[:8])
    assert not utils.check_sha1(str(f), "0" * 40)


@pytest.mark.parametrize("as_url", [False, True])
def test_download_of_local_files(as_url, tmp_path):
    source = tmp_path / "source.bin"
    source.write_bytes(b"abc")
    url = source.as_uri() if as_url else str(source)
    folder = tmp_path / "there"
    folder.mkdir()
    assert utils.download(url, str(folder)) == str(folder / "source.bin")
    target = str(folder / "deeper" / "x.bin")
    assert utils.download(url, target) == target
    source.write_bytes(b"new")
    assert (folder / "source.bin").read_bytes() == b"abc"
    utils.download(url, str(folder))
    assert (folder / "source.bin").read_bytes() == b"abc"
    utils.download(url, str(folder), sha1_hash=hashlib.sha1(b"new").hexdigest())
    assert (folder / "source.bin").read_bytes() == b"new"
    source.write_bytes(b"newer")
    utils.download(url, str(folder), overwrite=True)
    assert (folder / "source.bin").read_bytes() == b"newer"
    assert sorted(p.name for p in folder.iterdir()) == ["deeper", "source.bin"]


def test_failed_download_leaves_things_as_they_were(tmp_path):
    target, source = tmp_path / "f", tmp_path / "source"
    target.write_bytes(b"old")
    source.write_bytes(b"wrong")
    with pytest.raises(OSError, match="SHA-1.*expected"):
        utils.download(str(source), str(target), sha1_hash="0" * 40)
    with pytest.raises(OSError, match="could not fetch .*nowhere.* after 1 attempt") as e:
        utils.download(str(tmp_path / "nowhere"), str(target), overwrite=True)
    assert isinstance(e.value, mx.base.MXNetError)
    assert target.read_bytes() == b"old" and sorted(p.name for p in tmp_path.iterdir()) == ["f", "source"]


def test_download_tries_again(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    answers = [503, 503, 200, 404]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            code = answers.pop(0)
            self.send_response(code)
            self.end_headers()
            if code == 200:
                self.wfile.write(b"abc")

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/a/file.bin?x=1"
        assert utils.download(url, str(tmp_path)) == str(tmp_path / "file.bin")
        assert (tmp_path / "file.bin").read_bytes() == b"abc"
        # What the server does not have is not asked for again.
        with pytest.raises(OSError, match="after 1 attempt.*"):
            utils.download(url, str(tmp_path), overwrite=True)
        assert answers == [] and (tmp_path / "file.bin").read_bytes() == b"abc"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_hook_handles_serve_one_hook():
    from collections import OrderedDict

    hooks, handle = OrderedDict(), utils.HookHandle()
    handle.attach(hooks, print)
    assert list(hooks.values()) == [print]
    with pytest.raises(AssertionError, match="already"):
        handle.attach(hooks, len)
    handle.detach()
    assert not hooks


@pytest.mark.parametrize(
    "answer, told",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500, "500 bytes came of the 1000"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n" + b"x" * 300, "IncompleteRead"),
        (b"\x00\xff" * 50, r"BadStatusLine\('\\x00"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "got more than 100 headers"),
    ],
    ids=["short", "chunks", "garbage", "headers"],
)
def test_half_a_file_is_none(answer, told, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    (tmp_path / "f").write_bytes(b"old")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(mx.base.MXNetError, match=f"could not fetch .*{told}") as e:
            utils.download(
                f"http://127.0.0.1:{server.getsockname()[1]}/f", str(tmp_path / "f"), overwrite=True, retries=0
            )
        thread.join()
    assert isinstance(e.value, OSError)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norms_of_half_precision_are_computed_in_float32(dtype):
    arrays = [mx.nd.full((5000,), 300.0).astype(dtype), mx.nd.full((4,), 1e-5).astype(dtype)]
    assert utils.clip_global_norm(arrays, 1.0) == pytest.approx(300 * 5000**0.5, rel=1e-3)
    np.testing.assert_allclose(arrays[0].astype("float32").asnumpy(), 5000**-0.5, rtol=2**-7)
