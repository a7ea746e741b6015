"""The examples about graphs of varying length, over several devices, and in little memory."""

import re

import pytest


def figure(pattern, printed):
    """The number that `printed` gives where `pattern` has its group."""
    found = re.search(pattern, printed)
    assert found, f"nothing like {pattern!r} in\n{printed}"
    return float(found.group(1))


@pytest.mark.parametrize("options", [(), ("--fused", "--layers", 2, "--hidden", 32)], ids=["cells", "fused"])
def test_bucketing_lstm(example, tmp_path, options):
    printed = example(
        "bucketing_lstm", "--epochs", 10, "--prefix", "model", "--start", "that lay in", "--temperature", 0.1, *options
    )
    assert figure(r"words' frequencies: (\S+)", printed) == pytest.approx(133.4, abs=0.1)
    # What is left to guess: which of several lines goes on.
    assert 1 < figure(r"perplexity of the LSTM: (\S+)", printed) < 5
    assert (tmp_path / "model-0010.params").exists()
    assert printed.count("> that lay in the house that jack built\n") == 3  # by single cells, whatever trained


def test_model_parallel(example):
    printed = example("model_parallel")
    assert dict(re.findall(r"^(\w+_weight) +on (\S+)$", printed, re.M)) == {
        "embed_weight": "cpu(0)",
        "lstm_l0_i2h_weight": "cpu(0)",
        "lstm_l1_i2h_weight": "cpu(1)",
        "pred_weight": "cpu(1)",
    }
    for way in ("simple_bind", "bind"):
        assert figure(rf"(?m)^{way}: largest difference from one device: (\S+)", printed) < 1e-6
    for way in ("on one device", "with data and model parallelism"):
        assert figure(rf"accuracy {way}: (\S+)", printed) > 0.95
    assert figure(r"parameters: largest difference after one epoch: (\S+)", printed) < 1e-3  # sums in another order


def test_memonger(example):
    printed = example("memonger", "--hidden", 128, "--examples", 1024, "--epochs", 3)
    rows = {}
    for way, *figures in re.findall(
        r"^(.*?): +(\d+) MB planned, .* s, loss (\S+) to (\S+), gradients differ by (\S+)$", printed, re.M
    ):
        rows[way] = [float(f) for f in figures]
    memory = {way: row[0] for way, row in rows.items()}
    # 64 layers keep three results each; one each is kept; 2·√64 stages and layers of a stage are.
    assert memory["sublinear"] < memory["everything kept"] / 4
    assert memory["sublinear"] < memory["cheap operators again"] < memory["everything kept"] * 0.75
    _, first, last, _ = rows["everything kept"]
    assert last < first / 2
    for way in rows:
        assert rows[way][1:3] == pytest.approx([first, last], rel=1e-2)
        assert rows[way][3] < 1e-5


def curves(printed):
    """The perplexities of training and validation, epoch by epoch."""
    rows = re.findall(r"^epoch \d+: perplexity (\S+), validation perplexity (\S+), \d+ words/s$", printed, re.M)
    return [[float(row[side]) for row in rows] for side in (0, 1)]


@pytest.mark.parametrize("options", [(), ("--tied", "--layers", 2, "--dropout", 0)], ids=["plain", "tied"])
def test_word_language_model(example, options):
    printed = example("word_language_model", "--epochs", 6, *options)
    # As many as there are words.
    assert figure(r"epoch 0: validation perplexity (\S+)", printed) == pytest.approx(662, abs=2)
    train, valid = curves(printed)
    assert len(train) == 6 and train == sorted(train, reverse=True) and train[-1] < (70 if options else 25)
    assert valid[-1] < min(valid[0], 110 if options else 40)
    assert len(re.findall(r"^> this is the\b", printed, re.M)) == 3


def test_word_language_model_goes_on_from_its_file(example, tmp_path):
    (tmp_path / "text.txt").write_text("one two three four\ntwo four six\n" * 40)
    (tmp_path / "valid.txt").write_text("two four six\n" * 20)
    common = "--text", "text.txt", "--valid-text", "valid.txt", "--start", "one two", "--temperature", 0.1
    first = example("word_language_model", *common, "--epochs", 8, "--save", "m.params")
    second = example("word_language_model", *common, "--epochs", 0, "--load", "m.params")
    assert figure(r"epoch 0: validation perplexity (\S+)", second) == min(curves(first)[1]) < 2
    assert second.count("> one two three four\n") == 3
