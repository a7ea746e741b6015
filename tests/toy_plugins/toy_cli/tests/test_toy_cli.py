import mxcore as mx
from mxcore import cli


def test_it_counts(tmp_path, capsys):
    file = str(tmp_path / "some.params")
    mx.nd.save(file, {"a": mx.nd.ones((2, 3)), "b": mx.nd.ones((4,))})
    assert cli.main(["toy_cli", file]) == 0
    assert capsys.readouterr().out == "10\n"


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert cli.main(["toy_cli", str(tmp_path / "none.params")]) == 1
    assert "mxcore toy_cli: " in capsys.readouterr().err


def test_help(capsys):
    assert cli.main(["help"]) == 0
    assert "count the parameters in a file" in capsys.readouterr().out
