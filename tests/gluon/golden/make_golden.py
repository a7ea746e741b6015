"""Writes the golden files beside it. Run it inside MXNet 1.9.1's environment: ``python make_golden.py``."""

import importlib.util
import json
import os
import tempfile
import warnings
import zlib

import mxnet as mx
import numpy as np

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))


def beside(name):
    """A module of the folder above, which is no package here."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, "..", f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases, estimator_cases = beside("cases"), beside("estimator_cases")
nn = mx.gluon.nn


def path(name):
    return os.path.join(HERE, name)


def layers():
    told, arrays = [], {}
    with mx.name.NameManager():
        for i, (layer, shape) in enumerate(cases.layers(nn)):
            texts, found = cases.run_layer(layer, shape, mx)
            told.append(texts)
            arrays.update({f"{i}.{k}": v for k, v in found.items()})
    with open(path("layers.json"), "w") as f:
        json.dump(told, f, indent=0)
    np.savez_compressed(path("layers.npz"), **arrays)


def losses():
    arrays = {}
    for i, (name, kw, args) in enumerate(cases.losses(mx)):
        arrays[f"{i}.value"], arrays[f"{i}.gradient"] = cases.run_loss(getattr(mx.gluon.loss, name)(**kw), args, mx)
    np.savez_compressed(path("losses.npz"), **arrays)


def files():
    net = cases.network(nn)
    net.initialize()
    x = mx.nd.array(cases.values((2, 2, 6, 6), 5))
    net(x)
    cases.fill(net, mx.nd)
    net.save_parameters(path("structural.params"))
    net.collect_params().save(path("full.params"))
    net.collect_params().save(path("stripped.params"), strip_prefix=net.prefix)
    net.save(path("saved"))
    net.hybridize()
    y = net(x)
    net.export(path("exported"), epoch=2)
    np.savez_compressed(path("network.npz"), x=x.asnumpy(), y=y.asnumpy())


def zoo():
    vision, found = mx.gluon.model_zoo.vision, {}
    try:
        vision.get_model("")
    except ValueError as e:
        names = [n.strip() for n in str(e).split("\n\t")[1:]]
    for name in names:
        with mx.name.NameManager():
            net = vision.get_model(name, classes=7)
        texts = (repr(net), repr(net.collect_params()), repr(list(net._collect_params_with_prefix())))
        found[name] = [len(list(net.collect_params().keys())), *(zlib.crc32(t.encode()) for t in texts)]
    with open(path("zoo.json"), "w") as f:
        json.dump(found, f, indent=0)


def estimators():
    with tempfile.TemporaryDirectory() as folder:
        found = estimator_cases.stories(mx, folder)
    with open(path("estimator.json"), "w") as f:
        json.dump(found, f, indent=0)


if __name__ == "__main__":
    layers()
    losses()
    files()
    zoo()
    estimators()
