"""``mxcore plugins new``: skeletons that install, and that equal the toy plugins of the tests."""

import functools
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mxcore import cli
from mxcore.cli import skeleton
from mxcore.testing.conformance import operators

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
TOYS = sorted(p for p in (ROOT / "tests" / "toy_plugins").glob("toy_*") if (p / "pyproject.toml").exists())
tool = runpy.run_path(str(ROOT / "tools" / "refresh_templates.py"), run_name="tool")


@pytest.mark.parametrize("toy", TOYS, ids=lambda p: p.name)
def test_toys_are_what_the_templates_give(toy):
    files = {p.relative_to(toy).as_posix(): p.read_text(encoding="utf-8") for p in tool["project_files"](toy)}
    rendered = skeleton.render(toy.name, tool["kind_of"](toy))
    assert sorted(rendered) == sorted(files)
    assert {p for p in files if rendered[p] != files[p]} == set(), "run tools/refresh_templates.py"


def test_template_and_rendering_are_inverse(monkeypatch, tmp_path):
    text = "class ToyOp: 'toy-op' costs $5, toy_op"
    (tmp_path / "op").mkdir()
    (tmp_path / "op" / "NAME.py.tmpl").write_text(tool["to_template"](text, "toy_op"))
    monkeypatch.setattr(skeleton, "TEMPLATES", tmp_path)
    assert skeleton.render("toy_op", "op") == {"toy_op.py": text}
    assert skeleton.render("a_b", "op") == {"a_b.py": "class AB: 'a-b' costs $5, a_b"}


def test_every_kind_has_a_toy():
    assert skeleton.kinds() == sorted("op kernel device optimizer metric iterator kvstore graph-pass cli".split())
    assert sorted(map(tool["kind_of"], TOYS)) == skeleton.kinds()


@pytest.mark.parametrize("kind", skeleton.kinds())
def test_new_writes_a_project(kind, tmp_path, capsys):
    assert cli.main(["plugins", "new", "my_thing", "--kind", kind, "--dir", str(tmp_path / "deep")]) == 0
    made = tmp_path / "deep" / "my_thing"
    assert str(made) in capsys.readouterr().out
    assert [p.name for p in made.parent.iterdir()] == ["my_thing"]
    sources = list(made.rglob("*.py"))
    assert any("test_" in p.name for p in sources)
    for path in sources:
        compile(path.read_text(), str(path), "exec")
    everything = "".join(p.read_text() for p in made.rglob("*") if p.is_file())
    readme = (made / "README.md").read_text()
    commands = readme.split("```bash\n")[1].split("```")[0].splitlines()
    assert [c.partition("#")[0].strip() for c in commands] == [
        "pip install -e '.[test]'",
        "pytest",
        "mxcore plugins check",
    ]
    assert "my_thing" in everything and "toy" not in everything and "$" not in everything


@pytest.mark.parametrize(
    "name", ["my-op", "MyOp", "class", "1st", "", "a/b", "größe", "_op", "op_", "_", "none", "test_op"]
)
def test_names_that_are_no_modules_are_refused(name, tmp_path, capsys):
    assert cli.main(["plugins", "new", name, "--dir", str(tmp_path)]) == 1
    assert "no name for a plugin's module" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name, kind, owner",
    [
        ("dot", "op", "an operator of plugin 'ops'"),
        ("gpu", "device", "another device"),
        ("stock", "op", "another plugin"),
        ("hookimpl", "op", "something that the skeleton imports"),
        ("sgd", "optimizer", "the optimizer of plugin 'stock'"),
        ("accuracy", "metric", "the metric of plugin 'stock'"),
        ("local", "kvstore", "the kvstore of plugin 'kvstore_local'"),
        ("info", "cli", "the cli of plugin 'stock'"),
    ],
)
def test_names_that_would_not_load_are_refused(name, kind, owner, tmp_path, capsys):
    assert cli.main(["plugins", "new", name, "--kind", kind, "--dir", str(tmp_path)]) == 1
    assert f"{owner} has the name '{name}' already" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_existing_folders_are_kept(tmp_path, capsys):
    (tmp_path / "my_op").mkdir()
    assert cli.main(["plugins", "new", "my_op", "--dir", str(tmp_path)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert list((tmp_path / "my_op").iterdir()) == []


def test_a_project_that_another_makes_meanwhile_is_kept(tmp_path, capsys, monkeypatch):
    def render(name, kind, rendered=skeleton.render):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "of_another.py").touch()
        return rendered(name, kind)

    monkeypatch.setattr(Path, "exists", lambda self: False)
    monkeypatch.setattr(skeleton, "render", render)
    assert cli.main(["plugins", "new", "my_op", "--dir", str(tmp_path)]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "my_op").iterdir()] == ["of_another.py"] and [
        p.name for p in tmp_path.iterdir()
    ] == ["my_op"]


def install(project, site):
    """Put a project into a folder as pip does, without a network: its modules and its entry points."""
    with open(project / "pyproject.toml", "rb") as f:
        about = tomllib.load(f)
    named, built = about["project"], about["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]
    info = site / f"{named['name'].replace('-', '_')}-{named['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {named['name']}\nVersion: {named['version']}\n")
    points = "".join(f"{k} = {v}\n" for k, v in named["entry-points"]["mxcore"].items())
    (info / "entry_points.txt").write_text(f"[mxcore]\n{points}")
    for file in built:
        shutil.copy(project / file, site)


def python(site, folder, *args):
    """Run Python beside installed plugins."""
    env = {**os.environ, "PYTHONPATH": str(site), "MXCORE_STRICT_PLUGINS": "1"}
    return subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, cwd=folder, timeout=600)


def test_all_skeletons_pass_their_own_tests_together(tmp_path):
    names = {kind: "my_" + kind.replace("-", "_") for kind in skeleton.kinds()}
    for kind, name in names.items():
        install(skeleton.write(name, kind, tmp_path), tmp_path / "site")
    out = python(
        tmp_path / "site", tmp_path, "-W", "error", "-m", "pytest", "-v", "-p", "no:cacheprovider", *names.values()
    )
    assert out.returncode == 0 and "SKIPPED" not in out.stdout, out.stdout + out.stderr
    assert [name for name in names.values() if f"test_{name}.py::" not in out.stdout] == []
    checked = python(tmp_path / "site", tmp_path, "-m", "mxcore", "plugins", "check")
    assert checked.returncode == 0 and ", nothing wrong, " in checked.stdout, checked.stdout + checked.stderr


@pytest.fixture(scope="module", params=skeleton.kinds())
def installed(request, tmp_path_factory):
    """(kind, project, function that runs Python with it installed by pip) of each skeleton."""
    folder = tmp_path_factory.mktemp(request.param)
    made = skeleton.write("my_thing", request.param, folder)
    site = folder / "site"
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", *here, "--target", str(site), str(made)], check=True
    )
    return request.param, made, functools.partial(python, site, folder)


@pytest.mark.slow
def test_skeletons_install_and_pass_their_tests(installed):
    _, made, run = installed
    out = run("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made))
    assert out.returncode == 0 and " passed" in out.stdout, out.stdout + out.stderr
    listed = run("-m", "mxcore", "plugins", "--check")
    assert listed.returncode == 0 and "my_thing  my-thing 0.1.0  loaded" in listed.stdout, listed.stdout + listed.stderr


@pytest.mark.slow
def test_skeletons_pass_the_conformance_kit(installed):
    """Operators of all kinds on the new device, or the new operator or kernel on the CPU: no failure, none left out."""
    kind, _, run = installed
    some = ",".join([o.name for o in operators()][::16] + ["_image_resize", "_advanced_*", "BatchNorm"])
    what = {
        "op": ["--ops=my_thing"],
        "device": ["--device=my_thing(1)", f"--ops={some}"],
        "kernel": ["--ops=softsign"],
    }.get(kind)
    if what is None:
        return
    out = run(
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "mxcore.testing.conformance",
        "-p",
        "mxcore.testing.plugin",
        *what,
    )
    result = out.stdout.splitlines()[-1]
    assert out.returncode == 0 and " passed" in result and "skipped" not in result and "xfailed" not in result, (
        out.stdout[-5000:] + out.stderr
    )


def test_two_authors_get_two_numbers():
    files = {name: skeleton.render(name, "device")[f"{name}.py"] for name in ("my_board", "my_other_board")}
    numbers = {
        name: int(re.search(r"type_id, xp, async_ = .*?, (\d+),", text).group(1)) for name, text in files.items()
    }
    assert numbers == {name: skeleton.type_id(name) for name in files}
    assert len(set(numbers.values())) == 2 and all(100 < n < 2**31 for n in numbers.values())
    # It stands in files: no later version may derive another.
    assert numbers["my_board"] == 881_892_715


@pytest.mark.parametrize("name", ["numpy", "json", "mxcore"])
def test_a_plugin_hides_no_other_module(name, tmp_path, capsys):
    assert cli.main(["plugins", "new", name, "--dir", str(tmp_path)]) == 1
    assert f"there is a module '{name}' already" in capsys.readouterr().err and os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["plugins", "new", "my_thing", "--dir", str(tmp_path / "file")]) == 1
    assert "mxcore plugins: cannot write" in capsys.readouterr().err
