"""Whole networks: names, structure and parameters as in MXNet 1.9.1."""

import contextlib
import hashlib
import json
import os
import struct
import tracemalloc
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon.model_zoo import model_store, vision

from . import cases

with open(os.path.join(os.path.dirname(__file__), "golden", "zoo.json")) as _f:
    GOLDEN = json.load(_f)


def test_names():
    assert sorted(vision._MODELS) == sorted(GOLDEN)
    with pytest.raises(ValueError, match="resnet19.*resnet18_v1"):
        vision.get_model("resnet19")


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_structure_is_mxnets(name):
    net = vision.get_model(name.upper(), classes=7)
    params = net.collect_params()
    texts = (repr(net), repr(params), repr(list(net._collect_params_with_prefix())))
    assert [len(list(params.keys())), *(zlib.crc32(t.encode()) for t in texts)] == GOLDEN[name]


@pytest.mark.parametrize("name", ["resnet18_v1", "resnet18_v2", "mobilenetv2_0.25", "mobilenet0.25"])
def test_small_networks_run_and_learn(name):
    net = vision.get_model(name, classes=3)
    net.initialize(mx.init.Xavier())
    x = mx.nd.array(cases.values((2, 3, 32, 32), 1))
    with mx.autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    assert y.shape == (2, 3) and np.isfinite(y.asnumpy()).all()
    first = next(iter(net.collect_params(".*conv0_weight").values()))
    assert abs(first.grad().asnumpy()).sum() > 0
    net.hybridize()
    eager = net(x).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-4, atol=1e-5)


def test_functions_have_names_and_help():
    assert vision.resnet18_v1.__name__ == "resnet18_v1" and "pretrained" in vision.resnet18_v1.__doc__
    assert vision.vgg11_bn(classes=2).features[1].__class__.__name__ == "BatchNorm"
    assert repr(vision.resnet18_v1(classes=2, thumbnail=True).features[0]).startswith(
        "Conv2D(None -> 64, kernel_size=(3, 3)"
    )


@pytest.mark.parametrize(
    "make", [lambda: vision.get_resnet(3, 18), lambda: vision.get_resnet(1, 19), lambda: vision.SqueezeNet("2.0")]
)
def test_unknown_variants(make):
    with pytest.raises(AssertionError, match="3|19|2.0"):
        make()


@pytest.fixture
def trained(tmp_path):
    net = vision.squeezenet1_1(classes=2)
    net.initialize()
    net(mx.nd.ones((1, 3, 224, 224)))
    net.save_parameters(str(tmp_path / "squeezenet1.1.params"))
    return net, tmp_path


def test_pretrained_from_a_local_folder(trained, monkeypatch):
    net, root = trained
    digest = hashlib.sha1((root / "squeezenet1.1.params").read_bytes()).hexdigest()
    monkeypatch.setitem(model_store._SHA1, "squeezenet1.1", digest)
    for _ in range(2):
        other = vision.squeezenet1_1(pretrained=True, root=str(root), classes=2)
        same = [
            (a.data().asnumpy() == b.data().asnumpy()).all()
            for a, b in zip(net.collect_params().values(), other.collect_params().values())
        ]
        assert all(same) and len(same) == 52
        # The second time under the published name.
        published = root / f"squeezenet1.1-{model_store.short_hash('squeezenet1.1')}.params"
        if not published.exists():
            (root / "squeezenet1.1.params").rename(published)
    model_store.purge(str(root))
    assert list(root.iterdir()) == []


def test_published_archives_are_unpacked_and_checked(trained, monkeypatch, tmp_path):
    _, root = trained
    data = (root / "squeezenet1.1.params").read_bytes()
    (root / "squeezenet1.1.params").unlink()
    digest = hashlib.sha1(data).hexdigest()
    monkeypatch.setitem(model_store._SHA1, "squeezenet1.1", digest)
    remote = tmp_path / "repo" / "gluon" / "models"
    remote.mkdir(parents=True)
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "repo").as_uri())
    archive = remote / f"squeezenet1.1-{digest[:8]}.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr(f"squeezenet1.1-{digest[:8]}.params", data)
    local = str(tmp_path / "local")
    path = model_store.get_model_file("squeezenet1.1", local)
    assert os.listdir(local) == [os.path.basename(path)]
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr(f"squeezenet1.1-{digest[:8]}.params", b"something else")
    model_store.purge(local)
    with pytest.raises(ValueError, match="does not hold the published"):
        model_store.get_model_file("squeezenet1.1", local)
    sound = archive.read_bytes()
    directory = sound.index(b"PK\1\2")
    # Version, whether encrypted, how it is packed.
    for at, value in ((directory + 6, 99), (directory + 8, 1), (directory + 10, 99)):
        with open(os.path.join(local, archive.name), "wb") as f:
            f.write(sound[:at] + bytes([value]) + sound[at + 1 :])
        with pytest.raises(ValueError, match="is damaged: .*Delete it") as e:
            model_store.get_model_file("squeezenet1.1", local)
        assert isinstance(e.value, mx.base.MXNetError)


@pytest.fixture
def published(monkeypatch, tmp_path):
    """(where the archive of a model of nonsense is published, its file's name, its content, a local folder)."""
    data = np.random.RandomState(0).bytes(100000)
    digest = hashlib.sha1(data).hexdigest()
    monkeypatch.setitem(model_store._SHA1, "alexnet", digest)
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "repo").as_uri())
    remote = tmp_path / "repo" / "gluon" / "models" / f"alexnet-{digest[:8]}.zip"
    remote.parent.mkdir(parents=True)
    with zipfile.ZipFile(remote, "w") as z:
        z.writestr(f"alexnet-{digest[:8]}.params", data)
    (tmp_path / "local").mkdir()
    return remote, f"alexnet-{digest[:8]}.params", data, tmp_path / "local"


def test_a_file_that_is_not_the_published_one_is_fetched_again(published):
    remote, name, data, local = published
    wrong = bytes([data[0] ^ 1]) + data[1:]
    (local / "alexnet.params").write_bytes(b"the user's own, which is no substitute")
    for lost in (False, True):
        (local / name).write_bytes(wrong)
        if lost:
            remote.unlink()
        with (
            pytest.warns(mx.base.MXNetWarning, match=rf"Mismatch in the content of .*{name}.* Downloading again"),
            pytest.raises(FileNotFoundError, match=rf"alexnet, as .*{name} is not the published file: .*\.zip is not")
            if lost
            else contextlib.nullcontext(),
        ):
            model_store.get_model_file("alexnet", str(local))
        assert (local / name).read_bytes() == (wrong if lost else data)
    (local / name).unlink()
    assert model_store.get_model_file("alexnet", str(local)) == str(local / "alexnet.params")


def test_others_that_ask_for_the_same_model(published, monkeypatch):
    """Another process takes the parameters out of the archive, and removes it, before it is opened here, or then."""
    _, name, data, local = published
    fetch, take_out = model_store.fetch, model_store._take_out

    def robbed(*args):
        os.remove(fetch(*args))
        (local / name).write_bytes(data)

    def late(archive, *args):
        return take_out(archive, *args) and not os.remove(archive)

    for what, does in (("fetch", robbed), ("_take_out", late)):
        with monkeypatch.context() as m:
            m.setattr(model_store, what, does)
            assert model_store.get_model_file("alexnet", str(local)) == str(local / name)
        assert [path.name for path in local.iterdir()] == [name]
        (local / name).unlink()
    monkeypatch.setattr(model_store, "fetch", lambda *args: os.remove(fetch(*args)))
    with pytest.raises(OSError, match=r"alexnet-.*\.zip is removed by others"):
        model_store.get_model_file("alexnet", str(local))


def test_threads_that_ask_for_one_model(published):
    _, name, data, local = published
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            found = pool.map(lambda _: model_store.get_model_file("alexnet", str(local)), range(4))
            assert set(found) == {str(local / name)} and (local / name).read_bytes() == data
            (local / name).unlink()


@pytest.mark.parametrize("answer", [b"<html>Sign in</html>", b""])
def test_a_bad_answer_does_not_stay(published, answer):
    remote, name, data, local = published
    sound = remote.read_bytes()
    remote.write_bytes(answer)
    with pytest.raises(ValueError, match=r"alexnet: .*\.zip, as it was downloaded from file:.*not the published.*rem"):
        model_store.get_model_file("alexnet", str(local))
    assert os.listdir(local) == []
    remote.write_bytes(sound)
    with open(model_store.get_model_file("alexnet", str(local)), "rb") as f:
        assert f.read() == data


def test_an_archive_that_lies_about_its_size_takes_no_memory(tmp_path):
    """Tells of 10 bytes, and unfolds to 300 MB."""
    stem = f"alexnet-{model_store.short_hash('alexnet')}"
    with zipfile.ZipFile(tmp_path / f"{stem}.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(f"{stem}.params", bytes(300 << 20))
    data = bytearray((tmp_path / f"{stem}.zip").read_bytes())
    for at in (22, data.rindex(b"PK\1\2") + 24):
        data[at : at + 4] = struct.pack("<I", 10)
    (tmp_path / f"{stem}.zip").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="is damaged: .*Delete it"):
            model_store.get_model_file("alexnet", str(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert os.listdir(tmp_path) == [f"{stem}.zip"]


def test_missing_pretrained_file_is_explained(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "nowhere").as_uri())
    with pytest.raises(FileNotFoundError, match=r"alexnet.*alexnet-44335d1f.*root="):
        vision.alexnet(pretrained=True, root=str(tmp_path))
    with pytest.raises(ValueError, match="mobilenet0.1 is not available"):
        vision.get_mobilenet(0.1, pretrained=True, root=str(tmp_path))


#: One of each kind, the smallest.
KINDS = """
    alexnet densenet121 inceptionv3 mobilenet0.25 mobilenetv2_0.25 resnet18_v1 resnet18_v2 resnet50_v1 resnet50_v2
    squeezenet1.0 vgg11 vgg11_bn
""".split()


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_network_takes_a_gradient_penalty(name, hybrid):
    net = vision.get_model(name, classes=2)
    net.initialize(mx.init.Xavier())
    net.hybridize(hybrid)
    size = next(
        (s for n, s in (("alexnet", 67), ("dense", 224), ("incep", 299), ("squeeze", 224)) if name.startswith(n)), 64
    )
    x = mx.nd.random.uniform(-1, 1, (2, 3, size, size))
    x.attach_grad()
    with mx.autograd.record():
        (g,) = mx.autograd.grad(net(x).sum(), [x], create_graph=True)
        penalty = ((g * g).sum(axis=(1, 2, 3)).sqrt() - 1) ** 2
    penalty.backward()
    grads = [p.grad() for p in net.collect_params(".*weight").values()]
    assert all(bool(mx.nd.contrib.isfinite(g).min().asscalar()) for g in grads) and any(
        float(g.abs().max().asscalar()) > 0 for g in grads
    )
