"""The tools that CI relies on notice what they are for."""

import runpy

from .files import ROOT

dist = runpy.run_path(str(ROOT / "tools" / "check_dist.py"), run_name="tool")
SDIST = {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "tests/house/test_tree.py", ".ci/run"}
INFO = {f"m.dist-info/{n}" for n in ("METADATA", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE")}


def test_complete_distributions_pass():
    wheel = {"m/a.py", *INFO}
    assert dist["complaints"]({"m/a.py"}, wheel, wheel, SDIST) == []


def test_incomplete_distributions_are_found():
    complaints = dist["complaints"]
    wheel = {"m/a.py", *INFO}
    assert complaints({"m/a.py", "m/digits.rec"}, wheel, wheel, SDIST) == ["the wheel lacks m/digits.rec"]
    assert complaints(set(), wheel, wheel, SDIST) == ["the wheel holds m/a.py"]
    assert len(complaints({"m/a.py"}, wheel, wheel - {"m/a.py"}, SDIST)) == 1
    assert complaints({"m/a.py"}, wheel, wheel, SDIST - {"LICENSE"}) == ["the sdist lacks LICENSE"]
    assert complaints({"m/a.py"}, {"m/a.py"}, {"m/a.py"}, SDIST)[0] == "the wheel lacks METADATA"


def test_packages_that_are_not_there_are_found(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "__init__.py").touch()
    assert dist["empty_packages"](tmp_path, ["there", "absent"]) == ["absent is not a package"]
    assert dist["package_files"](tmp_path, ["there"]) == {"there/__init__.py"}
