"""What is made by name says which parameter it does not have."""

import pytest

import mxcore as mx
from mxcore.registry import get_create_func, get_register_func

MADE = [
    (lambda: mx.gluon.Trainer({}, "sgd", {"learning_rat": 1}), "optimizer 'sgd'", "learning_rat", "learning_rate"),
    (lambda: mx.optimizer.create("Adam", epsilom=1), "optimizer 'adam'", "epsilom", "epsilon"),
    (lambda: mx.metric.create("acc", axes=1), "metric 'acc'", "axes", "axis"),
    (lambda: mx.metric.create("top_k_acc", topk=1), "metric 'top_k_acc'", "topk", "top_k"),
    (lambda: mx.init.create('["xavier", {"magnitud": 3}]'), "initializer 'xavier'", "magnitud", "magnitude"),
    (lambda: mx.lr_scheduler.create("FactorScheduler", stp=1), "lr_scheduler 'factorscheduler'", "stp", "step"),
]


@pytest.mark.parametrize("make, what, wrong, right", MADE, ids=[m[1] for m in MADE])
def test_a_misspelt_parameter_is_told_with_what_it_is_of(make, what, wrong, right):
    with pytest.raises(TypeError, match=f"{what} has no parameter '{wrong}', did you mean '{right}'") as told:
        make()
    assert isinstance(told.value, mx.MXNetError)


def test_so_do_classes_of_users_and_kinds_of_their_own():
    class Shape:
        def __init__(self, size):
            self.size = [*size]

    class Square(Shape):
        def __init__(self, side=1, **kwargs):
            super().__init__(**kwargs)

    get_register_func(Shape, "shape")(Square)
    create = get_create_func(Shape, "shape")
    assert create("square", side=2, size=(3,)).size == [3]
    with pytest.raises(TypeError, match="shape 'square' has no parameter 'sice', did you mean 'size' or 'side'"):
        create("square", sice=(1,))
    with pytest.raises(TypeError, match="must be an iterable"):  # its own errors stay as they are
        create("square", size=3)

    class Odd(Shape):
        def __init__(self, **kwargs):
            super().__init__(size=[kwargs["more"]])
            len(5)

    get_register_func(Shape, "shape")(Odd)
    with pytest.raises(TypeError, match="has no len"):  # though no signature names what it takes
        create("odd", more=1)


def test_an_optimizer_that_takes_no_more_than_its_own_parameters():
    @mx.optimizer.register
    class Narrow(mx.optimizer.Optimizer):
        def __init__(self, learning_rate=0.1):
            super().__init__(learning_rate=learning_rate)

    assert mx.optimizer.create("narrow").lr == 0.1
    with pytest.raises(TypeError, match=r"no parameter 'param_dict'; .* super\(\).__init__\(\*\*kwargs\)"):
        mx.gluon.Trainer({}, "narrow")
