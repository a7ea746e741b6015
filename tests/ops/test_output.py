"""Output layers: labels both ways, gradients that ignore what comes in, refusals."""

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import wave

LAYERS = [
    "SoftmaxOutput",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
    "MakeLoss",
    "make_loss",
]


def gradient(name, x, *label, head=None, **params):
    x = mx.nd.array(x)
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd, name)(x, *(mx.nd.array(t) for t in label), **params)
    y.backward(None if head is None else mx.nd.array(head))
    return x.grad.asnumpy()


@pytest.mark.parametrize("name", LAYERS)
def test_the_incoming_gradient_is_ignored(name):
    x = wave((4, 3), 1)
    label = {"SoftmaxOutput": [[0, 2, 1, 1]], "SVMOutput": [[0, 2, 1, 1]]}.get(
        name, [] if "oss" in name else [wave((4, 3), 2)]
    )
    a, b = gradient(name, x, *label), gradient(name, x, *label, head=wave((4, 3), 5))
    assert a.any() and (a == b).all()


@pytest.mark.parametrize("name", LAYERS[:5])
def test_labels_get_no_gradient(name):
    label = mx.nd.array([0, 2, 1, 1]) if name in ("SoftmaxOutput", "SVMOutput") else mx.nd.array(wave((4, 3), 2))
    x = mx.nd.array(wave((4, 3), 1))
    for a in (x, label):
        a.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd, name)(x, label)
    y.backward()
    assert x.grad.asnumpy().any() and not label.grad.asnumpy().any()


def test_out_grad_multiplies():
    x, label, head = wave((4, 3), 1), [0, 2, 1, 1], wave((4, 3), 5)
    np.testing.assert_allclose(
        gradient("SoftmaxOutput", x, label, head=head, out_grad=True),
        gradient("SoftmaxOutput", x, label) * head,
        rtol=1e-6,
    )
    soft = np.abs(wave((4, 3), 2))
    np.testing.assert_allclose(
        gradient("SoftmaxOutput", x, soft, head=head, out_grad=True),
        gradient("SoftmaxOutput", x, soft) * head,
        rtol=1e-6,
    )


def test_softmax_output_is_the_gradient_of_its_loss():
    x, label = wave((4, 3), 1).astype(np.float64), [0, 2, 1, 1]

    def loss(a):
        return -np.log(np.exp(a)[np.arange(4), label] / np.exp(a).sum(1)).sum()

    d = wave((4, 3), 9)
    slope = (loss(x + 1e-6 * d) - loss(x - 1e-6 * d)) / 2e-6
    assert (gradient("SoftmaxOutput", x, label) * d).sum() == pytest.approx(slope, rel=1e-5)


def test_softmax_labels(shapes):
    data = (4, 3, 5, 2)
    assert shapes("SoftmaxOutput", [data, None])[0] == [data, (4, 3, 5)]
    assert shapes("SoftmaxOutput", [data, None], preserve_shape=True)[0] == [data, (4, 3, 5)]
    assert shapes("SoftmaxOutput", [data, None], multi_output=True)[0] == [data, (4, 10)]
    for label in ((4, 5, 2), (4, 1, 5, 2), (4, 10), data):
        assert shapes("SoftmaxOutput", [data, label], multi_output=True)[0] == [data, label]
    assert shapes("SoftmaxOutput", [(-1, 3), (4,)]) == ([(4, 3), (4,)], [(4, 3)])
    assert shapes("SoftmaxOutput", [None, None], [(4, 3)])[0] == [(4, 3), (4,)]
    assert shapes("SoftmaxOutput", [(4, 3), (4, 3)])[0] == [(4, 3), (4, 3)]
    with pytest.raises(ValueError, match=r"operator SoftmaxOutput: label is \(5,\) where \(4,\) is expected"):
        shapes("SoftmaxOutput", [(4, 3), (5,)])
    with pytest.raises(ValueError, match=r"label \(20,\) must be \(4, 10\), \(4, 5, 2\) or"):
        shapes("SoftmaxOutput", [data, (20,)], multi_output=True)


def test_more_labels_than_samples():
    with pytest.raises(ValueError, match="8 labels for 4 samples; use preserve_shape or multi_output"):
        gradient("SoftmaxOutput", wave((4, 2, 3), 1), np.zeros((4, 2), np.float32))


def test_its_old_name():
    assert mx.sym.Softmax(mx.sym.var("x"), name="s").list_arguments() == ["x", "s_label"]


@pytest.mark.parametrize("name", ["LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"])
def test_regression_labels(shapes, name):
    for data, label in (((4, 3), (4, 3)), ((4, 1), (4,)), ((4,), (4,)), ((4, 3, 2), (4, 3, 2))):
        assert shapes(name, [data, None]) == ([data, label], [data])
    assert shapes(name, [(4, 1), (4, 1)])[0][1] == (4, 1)
    assert shapes(name, [(4, 2, 3), (4, 6)])[0][1] == (4, 6)
    assert shapes(name, [(-1, 3), (4, 3)])[1] == [(4, 3)]
    for bad in ((4,), (3, 4), (4, 4)):
        with pytest.raises(ValueError, match="must have as many elements"):
            shapes(name, [(4, 3), bad])


def test_cross_entropy(shapes):
    x, label = mx.nd.array(wave((4, 3), 1)), mx.nd.array([0, 2, 1, 1])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.softmax_cross_entropy(x, label) * 3
    y.backward()
    np.testing.assert_allclose(
        x.grad.asnumpy(), 3 * gradient("SoftmaxOutput", x.asnumpy(), label.asnumpy()), rtol=1e-5, atol=1e-7
    )
    assert shapes("softmax_cross_entropy", [(4, 3), None]) == ([(4, 3), (4,)], [(1,)])
    with pytest.raises(ValueError, match=r"data must be \(N, C\)"):
        shapes("softmax_cross_entropy", [(4, 3, 2), None])


def test_make_loss_without_valid_elements():
    assert (gradient("MakeLoss", -np.ones((2, 2), np.float32), normalization="valid") == 1).all()


@pytest.mark.parametrize("shape, batch", [((8,), 1), ((4, 2), 4), ((2, 3, 4), 6), ((2, 3, 2, 2), 12), ((0, 3), 1)])
def test_the_batch_of_make_loss_is_all_but_the_last_axis(shape, batch):
    np.testing.assert_allclose(
        gradient("MakeLoss", np.ones(shape, np.float32), normalization="batch", grad_scale=2.0),
        np.full(shape, 2 / batch),
        rtol=1e-6,
    )


def test_svm_labels(shapes):
    assert shapes("SVMOutput", [(4, 3), None])[0] == [(4, 3), (4,)]
    assert shapes("SVMOutput", [(-1, 3), (4,)])[0] == [(4, 3), (4,)]


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5)])
def test_sparse_activations(shapes, shape):
    x, average = mx.nd.array(np.abs(wave(shape, 1)) * 0.4 + 0.1), mx.nd.array([0.1, 0.2, 0.3])
    x.attach_grad()
    before = average.asnumpy()
    with mx.autograd.record():
        y = mx.nd.IdentityAttachKLSparseReg(x, average, sparseness_target=0.2, penalty=0.01, momentum=0.75)
    assert (y.asnumpy() == x.asnumpy()).all() and (average.asnumpy() == before).all()
    y.backward(mx.nd.ones(shape))
    new = 0.75 * before + 0.25 * x.asnumpy().mean((0, *range(2, len(shape))))
    np.testing.assert_allclose(average.asnumpy(), new, rtol=1e-5)
    slope = (1 + 0.01 * (0.8 / (1 - new) - 0.2 / new)).reshape(3, *(1,) * (len(shape) - 2))
    np.testing.assert_allclose(x.grad.asnumpy(), np.broadcast_to(slope, shape), rtol=1e-5)
    assert shapes("IdentityAttachKLSparseReg", [shape, None]) == ([shape, (3,)], [shape])


def test_sparse_activations_in_a_graph(shapes):
    s = mx.sym.IdentityAttachKLSparseReg(mx.sym.var("x"), name="k", momentum=0.5, penalty=0.0)
    assert s.list_auxiliary_states() == ["k_moving_avg"] and s.list_outputs() == ["k_output"]
    ex = s.simple_bind(mx.cpu(), x=(2, 3))
    ex.arg_dict["x"][:] = 0.5
    ex.aux_dict["k_moving_avg"][:] = 0.1
    ex.forward(is_train=True)
    ex.backward([mx.nd.full((2, 3), 3)])
    np.testing.assert_allclose(ex.aux_dict["k_moving_avg"].asnumpy(), [0.3] * 3, rtol=1e-6)
    np.testing.assert_allclose(ex.grad_dict["x"].asnumpy(), 3, rtol=1e-6)
    for ins, params, says in (
        ([(3,), None], {}, "must have batch and channels"),
        ([(4, 3), (2,)], {}, r"moving_avg is \(2,\) where \(3,\)"),
        ([(4, 3), None], {"sparseness_target": 2}, "'sparseness_target' must be float between 0 and 1"),
    ):
        with pytest.raises(mx.MXNetError, match=f"operator IdentityAttachKLSparseReg.*{says}"):
            shapes("IdentityAttachKLSparseReg", ins, **params)


def test_absolute_error_without_error():
    """Where prediction and label agree the gradient is -1, as in MXNet."""
    x = mx.nd.array([[1.0, 2.0, 3.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.MAERegressionOutput(x, mx.nd.array([[1.0, 1.0, 4.0]]), grad_scale=3)
    y.backward()
    assert x.grad.asnumpy().tolist() == [[-1, 1, -1]]


def test_faint_probabilities():
    """No probability counts less than 1e-8; the gradient is that of the softmax all the same."""
    x = mx.nd.array([[100.0, 0.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.softmax_cross_entropy(x, mx.nd.array([1.0]))
    y.backward()
    assert y.asnumpy()[0] == pytest.approx(8 * np.log(10), rel=1e-5)
    assert x.grad.asnumpy().tolist() == [[1, -1]]


@pytest.mark.parametrize("label, by", [([1, -1, -1], 1), ([1, 0, -1], 2)])
def test_softmax_output_is_shared_by_the_valid_labels(label, by):
    def gradient(**params):
        x = mx.nd.array([[1, 2, 0.5], [0, 1, -1], [2, 0, 1]])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.SoftmaxOutput(x, mx.nd.array(label), use_ignore=True, ignore_label=-1, **params)
        y.backward()
        return x.grad.asnumpy()

    whole = gradient()
    assert abs(whole).max() > 0.1
    np.testing.assert_allclose(gradient(normalization="valid"), whole / by, rtol=1e-6)
