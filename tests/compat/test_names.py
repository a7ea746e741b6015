"""Every name that MXNet's modules show is shown, and is the same thing; what is not has a reason here."""

import importlib
import inspect
import subprocess
import sys
import types
import typing
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore.compat import alias, helpers, install_as_mxnet, names

FILE = names._file()
#: Public names that have no meaning here -> where MXNet shows them. All else must be there.
WITHOUT = {
    "structures and messages of C": {
        "mxnet.ndarray.ndarray": "DLContext DLDataType DLManagedTensor DLTensor DeleterFunc PyCapsuleDestructor "
        "dl_managed_tensor_deleter"
    },
    "texts of MXNet's own documentation": {
        "mxnet.ndarray_doc": "BroadcastToDoc CustomDoc NDArrayDoc ReshapeDoc StackDoc elemwise_addDoc",
        "mxnet.symbol_doc": "ActivationDoc BroadcastPlusDoc ConcatDoc DropoutDoc EmbeddingDoc FlattenDoc "
        "FullyConnectedDoc SymbolDoc",
    },
    "how MXNet's DataLoader passes arrays between processes": {
        "mxnet.gluon.data.dataloader": "ConnectionWrapper fetcher_loop_v1 rebuild_ndarray rebuild_np_ndarray "
        "reduce_ndarray reduce_np_ndarray worker_loop_v1"
    },
    "sums of files that are no longer published": {
        "mxnet.contrib.text._constants": "FAST_TEXT_ARCHIVE_SHA1 FAST_TEXT_FILE_SHA1 GLOVE_PRETRAINED_ARCHIVE_SHA1 "
        "GLOVE_PRETRAINED_FILE_SHA1"
    },
    "parts of a network": {"mxnet.gluon.model_zoo.vision.inception": "make_aux"},
    "a function that NumPy itself has no more": {"mxnet.numpy.fallback": "pmt"},
    "operators that call NumPy, and parts of rules; here functions do the same": {
        "mxnet.numpy_op_fallback": "EmptyLike EmptyLikeProp MultivariateNormal MultivariateNormalProp Resize "
        "ResizeProp Unravel_index Unravel_indexProp",
        **dict.fromkeys(
            ("mxnet.ndarray.numpy._internal", "mxnet.symbol.numpy._internal"),
            "backward_nan_to_num backward_polyval empty_like_fallback hsplit_backward mvn_fallback "
            "resize_fallback unravel_index_fallback",
        ),
    },
    "it runs on arrays only": {"mxnet.symbol.numpy._internal": "cvimread"},
}
#: Planned: modules with operators that are not there yet, ONNX and int8.
PLANNED_MODULES = (
    "mxnet.onnx",
    "mxnet.contrib.onnx",
    "mxnet.contrib.quantization",
    "mxnet.ndarray.contrib",
    "mxnet.ndarray.gen_",
    "mxnet.symbol.contrib",
    "mxnet.symbol.gen_",
    "mxnet.contrib.ndarray",
    "mxnet.contrib.symbol",
    "mxnet.contrib.svrg",
    "mxnet.ndarray._internal",
    "mxnet.symbol._internal",
)
#: Packages that not everybody has.
OTHERS = {
    "requests",
    "h5py",
    "onnx",
    "pd",
    "bokeh",
    "ss",
    "spsp",
    "scipy",
    "cv2",
    "BaseEstimator",
    "SKLEARN_INSTALLED",
    "Pandas_Failed_To_Import",
    "Bokeh_Failed_To_Import",
}


@pytest.fixture(scope="module")
def mxnet():
    """The alias, for this module's tests."""
    before = {n: m for n, m in sys.modules.items() if n.split(".")[0] == "mxnet"}
    install_as_mxnet()
    yield importlib.import_module("mxnet")
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, alias._Finder)]
    for name in [n for n in sys.modules if n.split(".")[0] == "mxnet"]:
        del sys.modules[name]
    sys.modules.update(before)


def missing(module):
    """Public names of MXNet's module that mxcore has not."""
    known = names.facts(module)
    without = {n for group in WITHOUT.values() for n in group.get(module, "").split()}
    return [
        n
        for n, (source, _) in known.sources.items()
        if not n.startswith("_")
        and n not in without | OTHERS
        and not names.reason(source)
        and not (source.startswith("distutils") and sys.version_info >= (3, 12))
        and not hasattr(importlib.import_module(module), n)
    ]


@pytest.mark.parametrize("module", [m for m in FILE if not names.reason(m) and not m.startswith(PLANNED_MODULES)])
def test_every_public_name_is_shown(mxnet, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert missing(module) == []


@pytest.mark.filterwarnings("ignore:The distutils package is deprecated")  # which Python has up to 3.11
@pytest.mark.parametrize("module", [m for m in FILE if not names.reason(m)])
def test_names_are_the_same_thing_wherever_they_are_shown(mxnet, module):
    wrong, shown = [], importlib.import_module(module)
    for name, (source, defined) in names.facts(module).sources.items():
        if (
            source == module
            or source.split(".")[0] not in ("mxnet", *sys.stdlib_module_names)
            or not hasattr(shown, name)
        ):
            continue
        try:
            there = importlib.import_module(source)
            there = there if not defined else getattr(there, defined)
        except (ImportError, AttributeError):
            continue
        if getattr(shown, name) is not there:
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize("module", [m for m in FILE if names.reason(m)])
def test_modules_without_a_meaning_say_so(mxnet, module):
    with pytest.raises(ModuleNotFoundError, match="MXNet 1.9.1 has it, mxcore does not: "):
        importlib.import_module(module)


@pytest.mark.parametrize(
    "module, name", [(m, n) for kinds in WITHOUT.values() for m, listed in kinds.items() for n in listed.split()]
)
def test_what_is_without_meaning_is_really_not_there(mxnet, module, name):
    with pytest.raises(AttributeError, match=f"{name!r}, which MXNet 1.9.1 has there"):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    "line, needed",
    [
        ("from mxnet.test_utils import *", "mx np os sys rnd assert_almost_equal same Context"),
        (
            "from mxnet.base import data_dir, SymbolHandle, "
            "_as_list, c_array, check_call, mx_uint, numeric_types, string_types",
            "",
        ),
        ("from mxnet.ndarray.ndarray import py_slice, NDArray, _DTYPE_NP_TO_MX", ""),
        ("from mxnet.gluon.block import *", "Block HybridBlock SymbolBlock"),
        ("from mxnet.gluon.block import _flatten, _regroup", ""),
        (
            "from mxnet.gluon.utils import _get_repo_url, "
            "_get_repo_file_url, _indent, _brief_print_list, check_sha1, download",
            "",
        ),
        ("from mxnet.gluon.loss import _apply_weighting, _reshape_like, Loss", ""),
        (
            "from mxnet.gluon.data.dataloader import _MultiWorkerIter, ForkingPickler, default_batchify_fn, "
            "_thread_worker_initializer",
            "",
        ),
        ("from mxnet.gluon.data.dataloader import DataLoader, DataLoaderV1", ""),
        ("from mxnet.gluon.data.dataset import recordio, Dataset", ""),
        ("from mxnet.gluon.data.vision.datasets import *", "MNIST CIFAR10 ImageFolderDataset"),
        ("from mxnet.gluon.data.vision.transforms import Compose, ToTensor", ""),
        ("from mxnet.gluon.model_zoo.model_store import _model_sha1, get_model_file", ""),
        ("from mxnet.gluon.model_zoo.vision.resnet import resnet_spec, BasicBlockV1", ""),
        (
            "from mxnet.gluon.model_zoo.vision.densenet import _make_dense_block, _make_dense_layer, _make_transition",
            "",
        ),
        ("from mxnet.recordio import IRHeader, _IR_FORMAT, _IR_SIZE, struct", ""),
        ("from mxnet.ndarray.ndarray import _STORAGE_TYPE_STR_TO_ID, _STORAGE_TYPE_ID_TO_STR, _STORAGE_TYPE_CSR", ""),
        ("from mxnet.gluon.nn.conv_layers import _Conv, _Pooling, _infer_weight_shape", ""),
        ("from mxnet.gluon.rnn.rnn_cell import _format_sequence, _get_begin_state, HybridRecurrentCell", ""),
        ("from mxnet.metric import ndarray, check_label_shapes", ""),
        ("from mxnet.model import *", "save_checkpoint load_checkpoint FeedForward np logging"),
        (
            "from mxnet.model import _create_kvstore, _initialize_kvstore, "
            "_update_params, _update_params_on_kvstore, load_params",
            "",
        ),
        ("from mxnet.module.base_module import BaseModule, _parse_data_desc, _check_input_names", ""),
        ("from mxnet.module.executor_group import DataParallelExecutorGroup, _load_data, _merge_multi_context", ""),
        ("from mxnet.executor_manager import _split_input_slice, _load_data", ""),
        ("from mxnet.image.image import ImageIter, imdecode, fixed_crop", ""),
        ("from mxnet.image.detection import CreateDetAugmenter", ""),
        ("from mxnet.io.io import DataIter, DataDesc, np", ""),
        ("from mxnet.symbol.symbol import Symbol, Group, var", ""),
        ("from mxnet.initializer import InitDesc, np, json, ndarray", ""),
        ("from mxnet import *", "nd sym gluon autograd cpu init"),
        ("import mxnet.optimizer.optimizer as opt; opt.Optimizer, opt.SGD", ""),
        ("import mxnet as mx; mx.img.imdecode, mx.viz.plot_network, mx.mon.Monitor, mx.nd.ndarray.NDArray", ""),
    ],
)
def test_import_lines_of_programs(mxnet, line, needed):
    found = {}
    exec(line, found)
    assert set(needed.split()) <= set(found)


def test_parts_of_networks_are_made_as_mxnet_makes_them(mxnet):
    from mxnet.gluon.model_zoo.vision.densenet import _make_dense_block, _make_transition

    block, narrow = _make_dense_block(2, 4, 8, 0.1, 3), _make_transition(6)
    for part in (block, narrow):
        part.initialize()
    out = block(mx.nd.ones((1, 3, 8, 8)))
    assert out.shape == (1, 19, 8, 8) and narrow(out).shape == (1, 6, 4, 4)
    assert sorted(n for n in block.collect_params() if "conv" in n) == [f"stage3_conv{i}_weight" for i in range(4)]


def test_the_header_of_records_is_told(mxnet):
    from mxnet.recordio import _IR_FORMAT, _IR_SIZE, IRHeader, pack, struct

    assert struct.unpack(_IR_FORMAT, pack(IRHeader(0, 2.0, 7, 5), b"")[:_IR_SIZE]) == (0, 2.0, 7, 5)


def test_star_gives_what_mxnet_lists(mxnet):
    found = {}
    exec("from mxnet.gluon.nn.activations import *", found)
    assert sorted(set(found) - {"__builtins__"}) == ["Activation", "ELU", "GELU", "LeakyReLU", "PReLU", "SELU", "Swish"]


@pytest.mark.parametrize(
    "line",
    ["from mxnet.no_such_module import *", "from mxnet.gluon.no_such_module import *", "import mxnet.base.deeper"],
)
def test_modules_that_mxnet_has_not_are_refused(mxnet, line):
    with pytest.raises(ModuleNotFoundError, match="No module named 'mxnet"):
        exec(line, {})


def test_what_later_versions_brought_is_not_there(mxnet):
    """Programs look for it, to do without."""
    with pytest.raises(ImportError, match="batchify"):
        exec("from mxnet.gluon.data import batchify")


def test_functions_that_mxnet_takes_from_numpy_are_those_of_the_face(mxnet):
    """They take arguments that NumPy itself has no more."""
    x, pairs = mxnet.np.array([-1.0, 2, 5]), mxnet.np.array([[1.0, 2, 4], [3, 5, 1]])
    assert mxnet.np.corrcoef(pairs, bias=True, ddof=1).shape == (2, 2)
    for name, rows in (("histogram2d", (x, x)), ("histogramdd", (pairs,))):
        new, old = (getattr(mxnet.np, name)(*rows, bins=2, **kw)[0].asnumpy() for kw in ({"density": 1}, {"normed": 1}))
        assert (new == old).all() and 0 < new.sum() < 1
    assert mxnet.np.nanpercentile(x, 40, interpolation="lower") == mxnet.np.nanquantile(x, 0.4, method="lower") == -1
    assert importlib.import_module("mxnet.numpy.fallback").nanquantile(x, 0.4, interpolation="higher") == 2


def test_names_that_nobody_has_are_refused(mxnet):
    with pytest.raises(
        AttributeError, match=r"module 'mxnet.gluon.nn' \(answered by mxcore\) has no attribute 'Dence'"
    ):
        mxnet.gluon.nn.Dence  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Dence'"):
        exec("from mxnet.gluon.nn import Dence", {})


def test_mxcore_itself_shows_only_what_mxnets_face_has():
    assert mx.operator.py_str(b"a") == "a" and mx.model.cpu is mx.cpu and mx.executor.NDArray is mx.nd.NDArray
    for module, name in [
        (mx.gluon.block, "warnings"),
        (mx.gluon.nn, "basic_layers"),
        (mx.operator, "traceback"),
        (mx.base, "_LIB"),
    ]:
        assert not hasattr(module, name), name
    with pytest.raises(AttributeError, match="module 'mxcore.operator' has no attribute 'nothing'"):
        mx.operator.nothing  # noqa: B018


def test_everything_elsewhere_is_there_and_needed():
    for module in names.ELSEWHERE:
        for name, (source, defined) in names._elsewhere("mxnet." + module).items():
            assert hasattr(importlib.import_module(source), defined)
            assert name in names.facts("mxnet." + module).sources, f"MXNet's {module} shows no {name}"


def test_nothing_large_is_loaded_for_a_star():
    code = (
        "import sys; from mxcore.compat import install_as_mxnet; "
        "install_as_mxnet(); from mxnet.test_utils import *; print([m for m in "
        "('scipy.special', 'pandas', 'numba', 'mxcore.gluon', 'mxcore.ops.pooling.operators') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# -- private helpers, with what MXNet 1.9.1 makes of the same
# -----------------------------------------------------------


def test_flatten_and_regroup():
    x, y = mx.nd.ones((2, 3)), mx.nd.ones(6)
    leaves, structure = helpers._flatten([x, [y, None]], "input")
    assert structure == [0, [0, -1]] and leaves == [x, y]
    assert helpers._regroup(leaves, structure) == [x, [y, None]]
    assert (
        helpers._flatten(x, "i")[1] == 0
        and helpers._flatten(None, "i") == ([None], -1)
        and helpers._regroup([None], -1) is None
    )


def test_texts():
    assert helpers._indent("a\nb", 3) == "a\n   b" and helpers._str2tuple("(3, 3)") == ["3", "3"]
    assert helpers._brief_print_list(range(20)) == "'0', '1', '2', ..., '16', '17', '18', '19'"
    assert (
        helpers._brief_print_list(range(9), 3) == "'0', ..., '7', '8'"
        and helpers._brief_print_list([1, 2]) == "'1', '2'"
    )
    assert helpers.build_param_doc(["a", "b", "a"], ["int", "float, optional", "int"], ["first", "", "again"]) == (
        "Parameters\n----------\na : int\n    first\nb : float, optional\n"
    )
    assert helpers._get_repo_file_url("gluon/x", "y.zip").endswith(".com/gluon/x/y.zip")


def test_errors_of_c():
    said = "ValueError: bad thing\nStack trace:\n  [bt] a\n  [bt] b"
    assert helpers.c2pyerror(said) == (
        "Traceback (most recent call last):\n  [bt] b\n  [bt] a\nValueError: bad thing",
        "ValueError",
    )
    assert helpers.c2pyerror("[10:10] a.cc:3: hello") == ("[10:10] a.cc:3: hello", None) and helpers.c2pyerror(
        "plain"
    ) == ("plain", None)
    assert isinstance(helpers.get_last_ffi_error(), mx.MXNetError)


def test_places_in_documentation(tmp_path, monkeypatch):
    (tmp_path / "documented.py").write_text(
        'def f():\n    "F."\n\n\nclass C:\n    "C."\n\n'
        '    def m(self):\n        "M."\n\n    def n(self):\n        pass\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("documented")
    for _ in range(2):
        helpers.add_fileline_to_docstring(module)
    assert module.f.__doc__ == f"F.\n\nFrom:{tmp_path / 'documented.py'}:1" and module.C.m.__doc__.endswith(
        "documented.py:8"
    )
    assert module.C.n.__doc__ is None


def test_places(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://here")
    assert helpers.data_dir() == str(tmp_path) and helpers.data_dir_default().endswith(".mxnet")
    url, file_url = (names.find("mxnet.gluon.utils", n) for n in ("_get_repo_url", "_get_repo_file_url"))
    assert url() == "http://here/" and file_url("gluon/models", "a.zip") == "http://here/gluon/models/a.zip"


def test_losses():
    loss, weights = mx.nd.array([[1.0, 2.0]]), mx.nd.array([[3.0]])
    assert helpers._apply_weighting(mx.nd, loss, 0.5, weights).asnumpy().tolist() == [[1.5, 3.0]]
    assert helpers._apply_weighting(mx.nd, loss) is loss
    assert helpers._reshape_like(mx.nd, loss, mx.nd.ones(2)).shape == (2,)
    with pytest.raises(AssertionError, match="weight must be a number, got 'a'"):
        helpers._apply_weighting(mx.nd, loss, "a")


def test_shapes():
    kwargs = {"kernel": (3, 3), "num_filter": 4}
    assert helpers._infer_weight_shape("Convolution", (1, 3, 8, 8), kwargs) == [(1, 3, 8, 8), (4, 3, 3, 3), (4,)]
    assert helpers._get_broadcast_shape((3, 1), (4,)) == (3, 4)
    helpers.check_boolean_array_dimension((2, 3, 4), 1, (3, 4))
    with pytest.raises(IndexError, match="along axis 1; size is 3"):
        helpers.check_boolean_array_dimension((2, 3), 1, (2,))


def test_data():
    assert [n for n, _ in helpers._init_data({"b": np.ones(2), "a": np.ones(2)}, False, "data")] == ["a", "b"]
    assert helpers._init_data(None, True, "label") == []
    named = helpers._init_data(np.arange(4.0), False, "data")
    assert helpers._has_instance(named, mx.nd.NDArray) and not helpers._has_instance(named, np.ndarray)
    assert helpers._getdata_by_idx(named, [2, 0])[0][1].asnumpy().tolist() == [2, 0]
    assert helpers._slice_along_batch_axis(mx.nd.arange(6).reshape((2, 3)), slice(1, 3), 1).shape == (2, 2)


def test_executors_data():
    batch = mx.io.DataBatch([mx.nd.arange(4).reshape((4, 1))], [mx.nd.arange(4)])
    whole, halves = mx.nd.zeros((4, 1)), [mx.nd.zeros((2, 1)), mx.nd.zeros((2, 1))]
    helpers._load_data(batch, [whole])
    helpers._load_data(batch, [[(slice(0, 2), halves[0]), (slice(2, 4), halves[1])]], [0])
    assert whole.asnumpy().ravel().tolist() == [0, 1, 2, 3] and halves[1].asnumpy().ravel().tolist() == [2, 3]
    label = mx.nd.zeros(4)
    helpers._load_label(batch, [label])
    assert label.asnumpy().tolist() == [0, 1, 2, 3]


def test_stores_and_callbacks():
    store, on_store = helpers._create_sparse_kvstore("local")
    assert store.type == "local" and on_store is True
    with pytest.raises(TypeError, match="from None"):
        helpers._create_sparse_kvstore(None)
    called = []
    helpers._multiple_callbacks([called.append, None, called.append], 1)
    helpers._multiple_callbacks(called.append, 2)
    helpers._multiple_callbacks(None)
    assert called == [1, 1, 2]


def test_errors():
    @helpers.register_error
    class First(mx.MXNetError):
        pass

    @helpers.register_error("Other")
    class Second(mx.MXNetError):
        pass

    assert helpers.error_types.pop("First") is First and helpers.error_types.pop("Other") is Second
    assert "exp" in str(helpers.NotSupportedForSparseNDArray(mx.nd.exp, "exp", mx.nd.ones(1))) and issubclass(
        helpers.InternalError, mx.MXNetError
    )


class Squares(mx.gluon.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return float(i * i)


@pytest.mark.parametrize("processes", [False, True])
def test_batches_from_a_pool(processes):
    from multiprocessing import get_context
    from multiprocessing.pool import ThreadPool

    data, sampler = Squares(), mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(10), 4)
    pool = (
        get_context("spawn").Pool(1, initializer=helpers._worker_initializer, initargs=(data,))
        if processes
        else ThreadPool(2)
    )
    fn = helpers._worker_fn if processes else helpers._thread_worker_fn
    batchify = (
        mx.gluon.data.batching.default_mp_batchify_fn if processes else mx.gluon.data.dataloader.default_batchify_fn
    )
    with pool:
        batches = helpers._MultiWorkerIter(
            pool, batchify, sampler, worker_fn=fn, prefetch=2, dataset=None if processes else data
        )
        assert len(batches) == 3
        assert [mx.nd.array(b).asnumpy().tolist() for b in batches] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]


class Shifted(helpers._MultiWorkerIter):
    """An iterator as toolkits derive it: it sends work itself, of its own kind, by what the base class keeps."""

    def __init__(self, shifts, pool, dataset, batchify_fn, batch_sampler, prefetch=0):
        super().__init__(pool, batchify_fn, batch_sampler, worker_fn=self.work, prefetch=0)
        self.shifts, self.data = shifts, dataset
        for _ in range(prefetch):
            self._push_next()

    @staticmethod
    def work(samples, shift, batchify_fn, dataset):
        return batchify_fn([dataset[i] + shift for i in samples])

    def _push_next(self):
        samples = next(self._iter, None)
        if samples is not None:
            shift = self.shifts[self._sent_idx % len(self.shifts)]
            work = (samples, shift, self._batchify_fn, self.data)
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, work)
            self._sent_idx += 1


@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_toolkits_derive_from_the_iterator_over_a_pool(prefetch):
    from multiprocessing.pool import ThreadPool

    sampler = mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(10), 4)
    with ThreadPool(2) as pool:
        batches = Shifted([0, 100], pool, Squares(), mx.gluon.data.dataloader.default_batchify_fn, sampler, prefetch)
        assert len(batches._data_buffer) == batches._sent_idx == min(prefetch, 3) and batches._rcvd_idx == 0
        found = [batches.next().asnumpy().tolist(), *(b.asnumpy().tolist() for b in batches)]
    assert found == [[0, 1, 4, 9], [116, 125, 136, 149], [64, 81]]
    assert batches._rcvd_idx == batches._sent_idx == len(batches) == 3 and not batches._data_buffer


def test_a_batch_that_fails_ends_the_pool():
    from multiprocessing.pool import ThreadPool

    def fails(samples, batchify_fn, dataset):
        raise KeyError("no such sample")

    pool = ThreadPool(1)
    batches = helpers._MultiWorkerIter(pool, None, mx.gluon.data.BatchSampler([0, 1], 1, "keep"), worker_fn=fails)
    assert batches._sent_idx == 0  # nothing is sent ahead unless told
    with pytest.raises(KeyError, match="no such sample"):
        next(batches)
    with pytest.raises(ValueError, match="Pool not running"):
        next(batches)


def test_toolkits_derive_from_convolutions():
    from mxcore.gluon.nn.convolution import _Conv
    from mxcore.gluon.nn.pooling import _Pooling

    class Own(_Conv):
        def __init__(self, channels, **kwargs):
            super().__init__(channels, (3, 3), (1, 1), (1, 1), (1, 1), 1, "NCHW", **kwargs)

        def hybrid_forward(self, F, x, weight, bias=None):
            return getattr(F, self._op_name)(x, F.sign(weight), bias, **self._kwargs)

    net = Own(2, op_name="Convolution")
    net.initialize(mx.init.Constant(-0.5))
    assert net(mx.nd.ones((1, 1, 3, 3)))[0, 0].asnumpy().tolist() == [[-4, -6, -4], [-6, -9, -6], [-4, -6, -4]]
    pool = _Pooling((2, 2), None, (0, 0), False, False, "max", "NCHW")
    assert pool(mx.nd.ones((1, 1, 4, 4))).shape == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="layout must be one of .*'NCDHW'.*got 'XY'"):
        _Pooling((2, 2), None, (0, 0), False, False, "max", "XY")


def test_helpers_are_typed_and_documented():
    for name, found in vars(helpers).items():
        if isinstance(found, types.FunctionType) and found.__module__ == helpers.__name__:
            assert inspect.getdoc(found), name
            assert typing.get_type_hints(found), name
