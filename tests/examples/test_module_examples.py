"""The examples that train with Module learn what they should, and print it."""

import re

import numpy as np
import pytest


def numbers(printed, start):
    """The numbers on the line that begins with `start`."""
    line = re.search(rf"^{re.escape(start)} (.+)$", printed, re.M)
    assert line, f"no line begins with {start!r}:\n{printed}"
    return [float(n) for n in re.findall(r"(?<![\w.-])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.-])", line[1])]


def number(printed, start):
    found = numbers(printed, start)
    assert len(found) == 1, (start, found)
    return found[0]


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_linear_regression_finds_the_weights(example, noise):
    printed = example("linear_regression", "--noise", noise)
    weights, bias = numbers(printed, "weights"), numbers(printed, "bias")
    np.testing.assert_allclose(weights[:3], weights[3:], atol=0.2 * noise)
    np.testing.assert_allclose(bias[0], bias[1], atol=0.2 * noise)
    mse, variance = numbers(printed, "mse")
    assert variance == pytest.approx(noise**2) and 0.7 * variance < mse < 1.3 * variance


def test_mlp_learns_and_goes_on_from_its_checkpoint(example, tmp_path):
    first = example("mlp_module", "--epochs", 2)
    assert {p.name for p in tmp_path.iterdir()} == {"mlp-symbol.json", "mlp-0001.params", "mlp-0002.params"}
    second = example("mlp_module", "--load-epoch", 2, "--epochs", 8)
    assert (tmp_path / "mlp-0008.params").exists()
    assert (
        0.6 < number(first, "test accuracy") < number(second, "test accuracy")
        and number(second, "test accuracy") > 0.93
    )
    assert number(second, "test cross-entropy") < 0.5 * number(first, "test cross-entropy")
    predicted, labels = numbers(second, "predicted"), numbers(second, "labels   ")
    assert len(predicted) == len(labels) == 10 and sum(p == y for p, y in zip(predicted, labels)) >= 8


def test_lenet_learns_and_its_checkpoint_classifies_alike(example, tmp_path):
    printed = example("lenet_module", "--epochs", 3, "--prefix", "le")
    accuracy = number(printed, "test accuracy")
    assert accuracy > 0.9 and accuracy == number(printed, "the same from le-0003.params")
    assert (tmp_path / "le-symbol.json").exists()


def test_fine_tuning_keeps_the_body_and_beats_a_fresh_start(example):
    printed = example("fine_tune")
    assert "kept conv1_bias conv1_weight conv2_bias conv2_weight\nlearned new_fc_bias new_fc_weight\n" in printed
    tuned, fresh = number(printed, "fine-tuned accuracy"), number(printed, "from scratch accuracy")
    assert tuned > 0.75 and tuned > fresh > 0.3


def test_hidden_layers_lead_to_the_answer(example):
    printed = example("intermediate_outputs")
    assert "fc1_output relu1_output fc2_weight" in printed
    assert "relu2_output (32, 64)\nfc3_output (32, 10)\nsoftmax_output (32, 10)\n" in printed
    assert 0 < number(printed, "hidden units that are zero") < 1
    assert number(printed, "scores differ by") < 1e-4 and number(printed, "answers differ by") < 1e-5
    assert number(printed, "features differ by") == 0
    assert number(printed, "accuracy") > 0.8
    assert number(printed, "monitor relu2_output") == pytest.approx(number(printed, "expected relu2_output"), rel=1e-5)


def test_custom_loss_trains_as_the_built_in_one(example):
    printed = example("custom_operator")
    assert number(printed, "numpy_softmax accuracy") > 0.9
    assert number(printed, "largest difference") < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [(), ("--calib-mode", "entropy", "--dtype", "auto"), ("--calib-mode", "none", "--mode", "full")],
    ids=["naive", "entropy", "as it runs"],
)
def test_lenet_over_eight_bits_is_as_good(example, options):
    printed = example("quantize_lenet", *options)
    floats, whole = (numbers(printed, start) for start in ("float32", options[3] if "--dtype" in options else "int8"))
    # Accuracy: of 384 pictures three may get another answer; two do for some seeds, none for most.
    assert floats[0] > 0.93 and abs(whole[0] - floats[0]) <= 0.008
    assert whole[2] < 0.26 * floats[2]  # bytes
