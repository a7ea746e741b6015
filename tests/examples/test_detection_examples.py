"""The examples that detect shapes."""

import re
import sys

import numpy as np
import pytest

from .conftest import EXAMPLES


@pytest.fixture
def shapes(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import shapes

    yield shapes
    sys.modules.pop("shapes")


def test_precision_and_pictures(shapes, tmp_path):
    images, labels = shapes.pictures(3, 64, 0)
    perfect = [np.insert(label[label[:, 0] >= 0], 1, 0.9, 1) for label in labels]
    assert shapes.mean_average_precision(perfect, labels) == 1
    assert shapes.mean_average_precision([p[:0] for p in perfect], labels) == 0
    twice = [np.concatenate([p, p]) for p in perfect]  # the second time each is wrong, but comes last
    for rows in twice:
        rows[len(rows) // 2 :, 1] = 0.1
    assert shapes.mean_average_precision(twice, labels) == 1
    moved = [p + [0, 0, 0.5, 0.5, 0.5, 0.5] for p in perfect]
    assert shapes.mean_average_precision(moved, labels) == 0
    shapes.save(str(tmp_path / "found.png"), images, perfect)
    assert (tmp_path / "found.png").read_bytes()[:4] == b"\x89PNG"


def precision(printed):
    return float(re.search(r"^mAP (\S+) on", printed, re.M)[1])


@pytest.mark.slow
def test_ssd(example, tmp_path):
    assert precision(example("ssd_shapes", "--hybridize", "--epochs", 8, "--pictures", 480)) > 0.5
    assert (tmp_path / "ssd.png").exists()


@pytest.mark.slow
def test_faster_rcnn(example, tmp_path):
    assert precision(example("faster_rcnn_shapes", "--epochs", 6, "--pictures", 320)) > 0.4
    assert (tmp_path / "faster_rcnn.png").exists()
