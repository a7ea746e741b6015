"""The plugin ``stock``: the names are MXNet's, and listing them imports nothing."""

import subprocess
import sys

import pytest

from mxcore import kinds

#: The names that MXNet 1.9.1 knows; learning-rate schedulers have none there.
NAMES = {
    "optimizer": "adadelta adagrad adam adamax ccsgd dcasgd ftml ftrl groupadagrad lamb lars lbsgd nadam nag rmsprop "
    "sgd sgld signum test",
    "metric": "acc accuracy caffe ce composite compositeevalmetric crossentropy custommetric f1 loss mae mcc mse "
    "negativeloglikelihood nll_loss pcc pearsoncorrelation pearsonr perplexity rmse top_k_acc top_k_accuracy "
    "topkaccuracy torch",
    "initializer": "bilinear constant fusedrnn lstmbias msraprelu normal one ones orthogonal uniform xavier zero zeros",
    "lr_scheduler": "cosinescheduler factorscheduler multifactorscheduler polyscheduler",
    "iterator": "CSVIter MNISTIter NDArrayIter ImageRecordIter",
    "kvstore": "local local_update_cpu local_allreduce_cpu device local_allreduce_device dist dist_sync dist_async "
    "dist_sync_device dist_device_sync dist_async_device",
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_those_of_mxnet(kind):
    assert set(NAMES[kind].split()) <= set(kinds.names(kind))


@pytest.mark.parametrize("kind", NAMES)
def test_every_name_leads_to_a_class_of_that_name_or_an_alias(kind):
    found = {name: kinds.lookup(kind, name) for name in kinds.names(kind)}
    if kind == "kvstore":  # some types are made by a function, which knows of the job around
        assert all(map(callable, found.values()))
    else:
        assert all(isinstance(cls, type) for cls in found.values())
        assert {cls.__name__.lower() for cls in found.values()} <= {name.lower() for name in found}


def test_listing_imports_no_class():
    code = "import sys; from mxcore import kinds; kinds.names('metric'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mxcore._defaults" in loaded
    assert not {"mxcore.metric", "mxcore.optimizer", "mxcore.io", "mxcore.kvstore", "cv2", "numba"} & set(loaded)
