"""Data sets of images and transforms."""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import _repository
from mxcore.gluon.data import vision
from mxcore.gluon.data.vision import images, transforms

cv2 = pytest.importorskip("cv2")


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


DIGITS = np.arange(5 * 28 * 28, dtype="uint32").astype("uint8").reshape(5, 28, 28)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
def test_mnist_from_local_files(kind, zipped, nowhere, publish):
    for part, shift in (("train", 0), ("t10k", 5)):
        for name, array in (("images-idx3", DIGITS), ("labels-idx1", np.arange(5, dtype="uint8") + shift)):
            path = nowhere / f"{part}-{name}-ubyte{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(idx(array)) if zipped else idx(array))
    publish(kind, nowhere)
    d = kind(root=str(nowhere))
    image, label = d[1]
    assert len(d) == 5 and image.shape == (28, 28, 1) and image.dtype == np.uint8
    assert label == 1 and label.dtype == np.int32 and (image.asnumpy()[..., 0] == DIGITS[1]).all()
    d = kind(root=str(nowhere), train=False, transform=lambda x, y: (x.astype("float32") / 255, y * 10))
    assert d[0][0].dtype == np.float32 and d[0][1] == 50


def test_missing_files_are_explained(nowhere):
    with pytest.raises(FileNotFoundError, match=r"MNIST.*train-images-idx3-ubyte.gz is not there.*root="):
        vision.MNIST(root=str(nowhere / "mnist"))
    with pytest.raises(FileNotFoundError, match=r"CIFAR10.*cifar-10-binary.tar.gz"):
        vision.CIFAR10(root=str(nowhere / "cifar"))


@pytest.mark.parametrize(
    "content, words",
    [
        (b"\x1f\x8b broken", "damaged"),
        (b"nonsense", "an IDX file of bytes with 3 axes"),
        (idx(DIGITS)[:100], "ends at byte 100, .* 3936"),
        (idx(DIGITS) + b"x", "goes on, .* 3936"),
        (b"", "starts with nothing"),
    ],
)
def test_damaged_files_are_named(content, words, nowhere):
    (nowhere / "train-images-idx3-ubyte").write_bytes(content)
    (nowhere / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(5, "uint8")))
    with pytest.raises(ValueError, match=f"train-images-idx3-ubyte' .*{words}"):
        vision.MNIST(root=str(nowhere))


def cifar_archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo("some-folder/" + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


PIXELS = (np.arange(2 * 3072) % 251).astype("uint8").reshape(2, 3, 32, 32)


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_an_archive_is_not_passed_through_to_its_end(nowhere, kind, monkeypatch, publish):
    """Forty GiB of nothing are as many kilobytes when they are compressed."""
    member = tarfile.TarInfo("nothing")
    member.size, member.type = 40 << 30, kind
    (nowhere / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(member.tobuf() + bytes(1 << 16)))
    publish(vision.CIFAR10, nowhere)
    with pytest.raises(ValueError, match=r"cifar-10-binary.tar.gz (tells of \d{11} bytes|is damaged)"):
        vision.CIFAR10(root=str(nowhere))
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", "1000")
    with pytest.raises(ValueError, match=r"cifar-10-binary.tar.gz tells of \d+ bytes, more than the 1000"):
        vision.CIFAR10(root=str(nowhere))


ROWS = [bytes([i]) + PIXELS[i % 2].tobytes() for i in range(6)]
PARTS = vision.CIFAR10._parts
CIFAR10 = {**{f"data_batch_{i}.bin": ROWS[i - 1] for i in range(1, 6)}, "test_batch.bin": ROWS[5]}


def test_cifar10_from_the_archive(nowhere, publish):
    cifar_archive(nowhere / "cifar-10-binary.tar.gz", {**CIFAR10, "../evil": b"x"})
    publish(vision.CIFAR10, nowhere)
    train, test = vision.CIFAR10(root=str(nowhere)), vision.CIFAR10(root=str(nowhere), train=False)
    assert len(train) == 5 and len(test) == 1 and test[0][1] == 5
    image, label = train[1]
    assert label == 1 and label.dtype == np.int32 and (image.asnumpy() == PIXELS[1].transpose(1, 2, 0)).all()
    assert not (nowhere.parent / "evil").exists()
    (nowhere / "test_batch.bin").write_bytes(ROWS[5][:-1])
    with pytest.raises(ValueError, match="test_batch.bin is cut short"):
        vision.CIFAR10(root=str(nowhere), train=False)


def test_an_archive_that_is_another_one_is_fetched_again(nowhere, monkeypatch, publish):
    archive = nowhere / "cifar-10-binary.tar.gz"
    cifar_archive(archive, CIFAR10)
    publish(vision.CIFAR10, nowhere)
    sound = archive.read_bytes()
    archive.write_bytes(sound[:-5] + bytes([sound[-5] ^ 1]) + sound[-4:])
    with (
        pytest.warns(mx.base.MXNetWarning, match=r"Mismatch in the content of .*tar\.gz.* Downloading again"),
        pytest.raises(ValueError, match=r"CIFAR10: .*tar\.gz is damaged, or another file: .*not be downloaded.*root="),
    ):
        vision.CIFAR10(root=str(nowhere))
    remote = nowhere / "repo" / "gluon" / "dataset" / "cifar10"
    remote.mkdir(parents=True)
    (remote / archive.name).write_bytes(sound)
    monkeypatch.setenv("MXNET_GLUON_REPO", (nowhere / "repo").as_uri())
    with pytest.warns(mx.base.MXNetWarning, match="Mismatch"):
        assert len(vision.CIFAR10(root=str(nowhere))) == 5
    assert archive.read_bytes() == sound


def test_files_of_mnist_that_are_others_are_fetched_again(nowhere, publish):
    for name, array in (("images-idx3", DIGITS), ("labels-idx1", np.arange(5, dtype="uint8"))):
        (nowhere / f"train-{name}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
    publish(vision.MNIST, nowhere)
    (nowhere / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.zeros(5, "uint8"))))
    with (
        pytest.warns(mx.base.MXNetWarning, match="Mismatch"),
        pytest.raises(ValueError, match=r"MNIST: .*train-labels-idx1-ubyte\.gz is damaged, or another file"),
    ):
        vision.MNIST(root=str(nowhere))


def test_a_checksum_behind_the_last_file_of_an_archive(nowhere):
    """Nothing is taken out of an archive that turns out to be damaged at its end."""
    cifar_archive(nowhere / "a.tar.gz", CIFAR10)
    data = bytearray((nowhere / "a.tar.gz").read_bytes())
    data[-8] ^= 1
    (nowhere / "a.tar.gz").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.tar\.gz is damaged: CRC check failed"):
        _repository.unpack(str(nowhere / "a.tar.gz"), CIFAR10, str(nowhere))
    assert [path.name for path in nowhere.iterdir()] == ["a.tar.gz"]


def test_what_follows_the_last_file_of_an_archive_is_not_unfolded_without_end(nowhere, monkeypatch):
    cifar_archive(nowhere / "a.tar.gz", CIFAR10)
    packed = gzip.decompress((nowhere / "a.tar.gz").read_bytes()) + bytes(1 << 22)
    (nowhere / "a.tar.gz").write_bytes(gzip.compress(packed))
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(1 << 21))
    with pytest.raises(ValueError, match=r"a\.tar\.gz tells of \d+ bytes, more than the 2097152"):
        _repository.unpack(str(nowhere / "a.tar.gz"), CIFAR10, str(nowhere))
    assert [path.name for path in nowhere.iterdir()] == ["a.tar.gz"]


def test_a_damaged_file_of_cifar_is_taken_out_anew(nowhere, monkeypatch, publish):
    """One of the published length; others are the user's own."""
    cifar_archive(nowhere / "cifar-10-binary.tar.gz", CIFAR10)
    publish(vision.CIFAR10, nowhere)
    vision.CIFAR10(root=str(nowhere))
    digests = {name: hashlib.sha1(data).hexdigest() for name, data in CIFAR10.items()}
    monkeypatch.setattr(vision.CIFAR10, "_parts", {t: {n: digests[n] for n in p} for t, p in PARTS.items()})
    monkeypatch.setattr(vision.CIFAR10, "_images", {True: 1, False: 1})
    damaged = nowhere / "data_batch_3.bin"
    damaged.write_bytes(bytes([7]) + ROWS[2][1:])
    with pytest.warns(mx.base.MXNetWarning, match=r"Mismatch .*data_batch_3\.bin.* Unpacking again"):
        assert [y for _, y in vision.CIFAR10(root=str(nowhere))] == [0, 1, 2, 3, 4]
    damaged.write_bytes(bytes([7]) + ROWS[2][1:])
    (nowhere / "cifar-10-binary.tar.gz").unlink()
    with (
        pytest.warns(mx.base.MXNetWarning, match="Mismatch"),
        pytest.raises(FileNotFoundError, match=r"CIFAR10, as .*data_batch_3\.bin is not the published file"),
    ):
        vision.CIFAR10(root=str(nowhere))
    damaged.write_bytes(2 * (bytes([7]) + ROWS[2][1:]))
    assert len(vision.CIFAR10(root=str(nowhere))) == 6


def test_cifar100_labels(nowhere):
    rows = b"".join(bytes([3, 40 + i]) + PIXELS[i].tobytes() for i in range(2))
    (nowhere / "train.bin").write_bytes(rows)
    assert [y for _, y in (vision.CIFAR100(root=str(nowhere))[i] for i in range(2))] == [3, 3]
    assert vision.CIFAR100(root=str(nowhere), fine_label=True)[1][1] == 41


IMAGE = np.random.RandomState(0).randint(0, 255, (6, 7, 3)).astype("uint8")


def png(image=IMAGE):
    return cv2.imencode(".png", image[:, :, ::-1])[1].tobytes()


def test_image_folder(tmp_path):
    for folder in ("b", "a"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.PNG").write_bytes(png())
    (tmp_path / "a" / "x.txt").touch()
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning) as told:
        d = vision.ImageFolderDataset(str(tmp_path))
    assert ["x.txt of type .txt" in str(w.message) or "not a directory" in str(w.message) for w in told] == [True, True]
    assert d.synsets == ["a", "b"] and [label for _, label in d.items] == [0, 1] and len(d) == 2
    image, label = d[1]
    assert label == 1 and image.dtype == np.uint8 and (image.asnumpy() == IMAGE).all()
    (tmp_path / "a" / "x.txt").unlink()
    (tmp_path / "file").unlink()
    assert vision.ImageFolderDataset(str(tmp_path), flag=0)[0][0].shape == (6, 7, 1)
    assert vision.ImageFolderDataset(str(tmp_path), transform=lambda x, y: y + 10)[0] == 10
    (tmp_path / "a" / "1.PNG").write_bytes(b"no image")
    with pytest.raises(ValueError, match="1.PNG"):
        vision.ImageFolderDataset(str(tmp_path))[0]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        vision.ImageFolderDataset(str(tmp_path / "nowhere"))


def test_image_records(tmp_path):
    recordio = mx.recordio
    record = recordio.MXIndexedRecordIO(str(tmp_path / "r.idx"), str(tmp_path / "r.rec"), "w")
    for i in range(3):
        record.write_idx(i, recordio.pack(recordio.IRHeader(0, float(i), i, 0), png()))
    record.close()
    d = vision.ImageRecordDataset(str(tmp_path / "r.rec"))
    image, label = d[2]
    assert len(d) == 3 and label == 2.0 and (image.asnumpy() == IMAGE).all()
    assert vision.ImageRecordDataset(str(tmp_path / "r.rec"), flag=0, transform=lambda x, y: x)[0].shape == (6, 7, 1)


# -- transforms ----------------------------------------------------------------------------------------------

NDIMAGE = mx.nd.array(IMAGE, dtype="uint8")
BATCH = mx.nd.array(np.stack([IMAGE, 255 - IMAGE]), dtype="uint8")


def test_to_tensor_and_normalize():
    t = transforms.ToTensor()(NDIMAGE)
    assert t.dtype == np.float32
    np.testing.assert_allclose(t.asnumpy(), IMAGE.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert transforms.ToTensor()(BATCH).shape == (2, 3, 6, 7)
    mean, std = (0.1, 0.2, 0.3), (1, 2, 4)
    n = transforms.Normalize(mean, std)(t).asnumpy()
    np.testing.assert_allclose(n, (t.asnumpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1)), rtol=1e-5)
    np.testing.assert_allclose(transforms.Normalize(0.5, 0.25)(t).asnumpy(), (t.asnumpy() - 0.5) / 0.25, rtol=1e-5)
    assert transforms.Cast("float16")(NDIMAGE).dtype == np.float16
    with pytest.raises(ValueError, match=r"Normalize.*\(6, 7, 3\)"):
        transforms.Normalize(0.5, 0.5)(NDIMAGE)
    with pytest.raises(ValueError, match=r"ToTensor.*\(6, 7\)"):
        transforms.ToTensor()(mx.nd.ones((6, 7)))


@pytest.mark.parametrize("batch", [False, True])
def test_normalization_is_differentiable(batch):
    x = mx.nd.ones((2, 4, 4, 3) if batch else (4, 4, 3)) * 100
    x.attach_grad()
    chain = transforms.Compose([transforms.Cast(), transforms.ToTensor(), transforms.Normalize(0.5, (0.5, 0.25, 1))])
    plain = chain(x).asnumpy()
    with mx.autograd.record():
        y = chain(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), plain, rtol=1e-5)
    np.testing.assert_allclose(
        x.grad.asnumpy()[..., 0, 0, :].reshape(-1, 3)[0], 1 / (255 * np.array([0.5, 0.25, 1])), rtol=1e-5
    )


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: transforms.Resize(4), (4, 4, 3)),
        (lambda: transforms.Resize((5, 3)), (3, 5, 3)),
        (lambda: transforms.Resize(4, keep_ratio=True), (4, 4, 3)),
        (lambda: transforms.Resize(12, keep_ratio=True), (12, 14, 3)),
        (lambda: transforms.Resize((4, 10), keep_ratio=True), (10, 4, 3)),
        (lambda: transforms.CropResize(1, 2, 4, 3), (3, 4, 3)),
        (lambda: transforms.CropResize(1, 2, 4, 3, (5, 6), 1), (6, 5, 3)),
    ],
)
def test_sizes(make, shape):
    t = make()
    assert t(NDIMAGE).shape == shape and t(BATCH).shape == (2, *shape)
    assert t(NDIMAGE).dtype == np.uint8
    assert (t(BATCH).asnumpy()[0] == t(NDIMAGE).asnumpy()).all()


@pytest.mark.parametrize("interpolation", range(5))
def test_resize_is_opencvs(interpolation):
    methods = (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4)
    wanted = cv2.resize(IMAGE, (5, 9), interpolation=methods[interpolation])
    assert (transforms.Resize((5, 9), False, interpolation)(NDIMAGE).asnumpy() == wanted).all()


def test_automatic_interpolation():
    assert images.method_for(9, (4, 4), (8, 8)) == 2 and images.method_for(9, (8, 8), (4, 4)) == 3
    assert images.method_for(9, (8, 8), (4, 16)) == 1 and images.method_for(10, (8, 8), (4, 4)) in range(5)
    with pytest.raises(ValueError, match="interpolation.*7"):
        images.method_for(7, (4, 4), (8, 8))


def test_center_crop():
    assert (transforms.CenterCrop((3, 4))(NDIMAGE).asnumpy() == IMAGE[1:5, 2:5]).all()
    # What is larger than the image is cut in its proportions and enlarged.
    assert transforms.CenterCrop((20, 4))(NDIMAGE).shape == (4, 20, 3)
    with pytest.raises(ValueError, match="CenterCrop takes an image"):
        transforms.CenterCrop(4)(BATCH)
    with pytest.raises(ValueError, match="not inside an image of 7x6"):
        transforms.CropResize(5, 5, 4, 4)(NDIMAGE)


def test_random_resized_crop():
    crop = transforms.RandomResizedCrop((5, 4))
    mx.random.seed(0)
    seen = {crop(NDIMAGE).asnumpy().tobytes() for _ in range(20)}
    assert crop(NDIMAGE).shape == (4, 5, 3) and len(seen) > 5
    # A window that never fits becomes the middle.
    whole = transforms.RandomResizedCrop((7, 6), scale=(4.0, 5.0))
    assert (whole(NDIMAGE).asnumpy() == IMAGE).all()


@pytest.mark.parametrize("kind, axis", [(transforms.RandomFlipLeftRight, 1), (transforms.RandomFlipTopBottom, 0)])
def test_flips(kind, axis):
    mx.random.seed(0)
    flipped = [(kind()(NDIMAGE).asnumpy() == np.flip(IMAGE, axis)).all() for _ in range(40)]
    assert 8 < sum(flipped) < 32
    grey = mx.nd.array(IMAGE[..., :1], dtype="uint8")
    assert kind()(grey).shape == (6, 7, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: transforms.RandomBrightness(0.3),
        lambda: transforms.RandomContrast(0.3),
        lambda: transforms.RandomSaturation(0.3),
        lambda: transforms.RandomHue(0.3),
        lambda: transforms.RandomLighting(0.3),
        lambda: transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1),
    ],
)
def test_random_colours_follow_the_seed(make):
    change = make()
    mx.random.seed(1)
    a = [change(NDIMAGE).asnumpy() for _ in range(3)]
    mx.random.seed(1)
    b = [change(NDIMAGE).asnumpy() for _ in range(3)]
    assert all((x == y).all() for x, y in zip(a, b)) and (a[0] != a[1]).any()
    assert a[0].dtype == np.uint8 and change(NDIMAGE.astype("float32")).dtype == np.float32
    assert change(mx.nd.array(IMAGE[..., :1], dtype="uint8")).shape == (6, 7, 1)
    with pytest.raises(ValueError, match="takes an image"):
        change(BATCH)


def test_no_change_of_colour():
    for kind in (transforms.RandomBrightness, transforms.RandomContrast, transforms.RandomSaturation):
        assert (kind(0)(NDIMAGE).asnumpy() == IMAGE).all()
    with pytest.raises(ValueError, match="RandomHue.*-1"):
        transforms.RandomHue(-1)


def test_rotation():
    x = mx.nd.array(np.arange(25).reshape(1, 5, 5))
    np.testing.assert_allclose(transforms.Rotate(90)(x).asnumpy()[0], np.rot90(x.asnumpy()[0]), atol=1e-4)
    np.testing.assert_allclose(transforms.Rotate(0)(x).asnumpy(), x.asnumpy(), atol=1e-4)
    ones = mx.nd.ones((2, 1, 8, 12))
    assert transforms.Rotate(30)(ones).asnumpy().min() == 0
    assert transforms.Rotate(30, zoom_in=True)(ones).asnumpy()[..., 1:-1, 1:-1].min() > 0.99
    outside = transforms.Rotate(90, zoom_out=True)(ones).asnumpy()
    assert outside[..., 0, 0].max() == 0 and outside[..., 4, 6].min() > 0.99
    assert transforms.RandomRotation((-30, 30), rotate_with_proba=0)(x).asnumpy().tolist() == x.asnumpy().tolist()
    assert transforms.RandomRotation((89.999, 90.001))(x).asnumpy()[0, 0, 0] == pytest.approx(4, abs=1e-2)
    for make in (
        lambda: transforms.Rotate(1, True, True),
        lambda: transforms.RandomRotation((3, 1)),
        lambda: transforms.RandomRotation((1, 3), rotate_with_proba=2),
    ):
        with pytest.raises(ValueError, match="zoom_in|angle_limits|Probability"):
            make()
    with pytest.raises(TypeError, match="float32"):
        transforms.Rotate(1)(NDIMAGE)


def test_compose():
    chain = transforms.Compose([transforms.Resize(4), transforms.ToTensor(), transforms.RandomResizedCrop(4)])
    assert [type(c).__name__ for c in chain] == ["HybridSequential", "RandomResizedCrop"]
    steps = [transforms.Resize(4), transforms.CenterCrop(3), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]
    chain = transforms.Compose(steps)
    by_hand = NDIMAGE
    for s in steps:
        by_hand = s(by_hand)
    assert (chain(NDIMAGE).asnumpy() == by_hand.asnumpy()).all() and by_hand.shape == (3, 3, 3)
    assert (pickle.loads(pickle.dumps(chain))(NDIMAGE).asnumpy() == by_hand.asnumpy()).all()
    seen = []
    with steps[1].register_forward_hook(lambda *a: seen.append(1)):
        chain(NDIMAGE)
    assert seen == [1]
    own = transforms.Compose([transforms.Resize(4), mx.gluon.nn.Lambda(lambda x: x * 0)])
    assert own(NDIMAGE).asnumpy().max() == 0


def test_random_apply():
    always, never = (
        transforms.RandomApply([transforms.Resize(4)], 1.1),
        transforms.RandomApply(transforms.Resize(4), 0),
    )
    assert always(NDIMAGE).shape == (4, 4, 3) and never(NDIMAGE) is NDIMAGE
    assert repr(never).startswith("RandomApply(\n  (transforms): Resize(")


def test_transforms_in_a_loader():
    data = mx.gluon.data.ArrayDataset(np.stack([IMAGE] * 6), np.arange(6))
    chain = transforms.Compose([transforms.RandomFlipLeftRight(), transforms.ToTensor()])
    loader = mx.gluon.data.DataLoader(
        data.transform_first(lambda x: chain(mx.nd.array(x, dtype="uint8"))), 4, num_workers=2
    )
    assert [(x.shape, y.shape) for x, y in loader] == [((4, 3, 6, 7), (4,)), ((2, 3, 6, 7), (2,))]


def test_default_root_follows_the_environment(monkeypatch, nowhere):
    monkeypatch.setenv("MXNET_HOME", str(nowhere / "home"))
    folder = nowhere / "home" / "datasets" / "mnist"
    folder.mkdir(parents=True)
    for name, array in (("images-idx3", DIGITS), ("labels-idx1", np.arange(5, dtype="uint8"))):
        (folder / f"train-{name}-ubyte").write_bytes(idx(array))
    assert len(vision.MNIST()) == 5 and os.path.isdir(folder)


def test_a_record_that_tells_of_too_many_labels_is_named(tmp_path):
    import cv2

    rec, idx = str(tmp_path / "a.rec"), str(tmp_path / "a.idx")
    jpg = cv2.imencode(".jpg", np.zeros((20, 20, 3), np.uint8))[1].tobytes()
    with mx.recordio.MXIndexedRecordIO(idx, rec, "w") as w:
        w.write_idx(0, struct.pack("<IfQQ", 0, 1.0, 0, 0) + jpg)
        w.write_idx(7, struct.pack("<IfQQ", 1_000_000, 0.0, 1, 0) + jpg)
    with pytest.raises(mx.MXNetError, match=r"record 1 of .*a\.rec: unpack: the header tells of 1000000 labels"):
        [*mx.gluon.data.vision.ImageRecordDataset(rec)]
    with pytest.raises(mx.MXNetError, match=r"ImageIter: record 7 of .*a\.rec.*the header tells of 1000000 labels"):
        [*mx.image.ImageIter(1, (3, 16, 16), path_imgrec=rec, path_imgidx=idx)]
