"""The plugins in the page for authors, one for each hook at least, installed and used as an author would."""

import ast
import re
import subprocess
import sys
from textwrap import dedent

from mxcore._core import hookspecs
from mxcore.testing.plugin import OPTIONS
from tests.house.environment import documented
from tests.house.files import ROOT
from tests.house.test_examples import python_blocks

BLOCKS = python_blocks((ROOT / "docs" / "plugins.md").read_text(encoding="utf-8"))
USE = {
    "mxcore_ops": """
        x = mx.nd.array([1.0, 2.0])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.swish_like(x, beta=2.0)
        y.backward()
        assert abs(y.asnumpy() - [0.8808, 1.9640]).max() < 1e-4
        assert abs(x.grad.asnumpy() - [1.0908, 1.0527]).max() < 1e-4
        net = mx.sym.swish_like(mx.sym.Variable("x"))
        assert net.list_arguments() == ["x"]
        soft = mx.sym.soft_step(mx.sym.tanh(mx.sym.Variable("x")), width=2.0).bind(mx.cpu(), {"x": mx.nd.ones((4, 4))})
        assert abs(soft.forward()[0].asnumpy() - 0.2758).max() < 1e-4
        from mxcore.testing.conformance import check_op
        for name in ("swish_like", "per_unit", "above", "centered", "bounded", "_backward_cube", "cube"):
            check_op(name)
        net = mx.sym.per_unit(mx.sym.Variable("x"), mx.sym.Variable("w"), units=4)
        assert net.infer_shape(x=(2, 3)) == ([(2, 3), (4, 3)], [(2, 4)], [])
        net = mx.sym.centered(mx.sym.Variable("x"), mx.sym.Variable("m"))
        assert (net.list_arguments(), net.list_auxiliary_states()) == (["x"], ["m"])
        assert mx.nd.above(mx.nd.array([[1.0, -1.0], [2.0, 3.0]])).asnumpy().tolist() == [2, 1]
        assert mx.nd.bounded(mx.nd.array([3.0, 4.0])).asnumpy().tolist() == [0.75, 1.0]
        """,
    "mxcore_kernels": """
        assert mx.nd.relu(mx.nd.array([-1.0, 2.0])).asnumpy().tolist() == [0, 2]
        counts, edges = mx.nd.histogram(mx.nd.array([0.0, 1.0, 1.5, 2.0, 3.0]), bins=2, range=(0, 2))
        assert counts.asnumpy().tolist() == [1, 3] and edges.asnumpy().tolist() == [0, 1, 2]
        """,
    "mxcore_devices": """
        x = mx.nd.ones((2,), ctx=mx.Context("board")) * 3
        assert str(x.context) == "board(0)" and x.asnumpy().tolist() == [3, 3]
        """,
    "mxcore_optimizers": """
        rate = {"learning_rate": 0.5}
        trainer_of = lambda net: gluon.Trainer(net.collect_params(), "signdescent", rate, kvstore=store)
        from mxcore import gluon
        for store in (None, "local"):
            net = gluon.nn.Dense(1, use_bias=False, in_units=2)
            net.initialize(mx.init.One())
            with mx.autograd.record():
                loss = net(mx.nd.ones((1, 2))).sum()
            loss.backward()
            trainer_of(net).step(1)
            assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5]]
        metric = mx.metric.create(["largest", "mse"])
        metric.update([mx.nd.ones((2,))], [mx.nd.array([1.0, 3.0])])
        assert dict(metric.get_name_value())["largest"] == 3.0
        it = mx.io.RampIter(2)
        assert [b.data[0].asnumpy().tolist() for b in it] == [[0, 1], [2, 3], [4, 5]]
        it.reset()
        assert next(it).data[0].shape == (2,) and "RampIter" in dir(mx.io)
        """,
    "mxcore_initializers": """
        from mxcore import gluon
        net = gluon.nn.Dense(3, in_units=1)
        net.initialize(mx.init.create("Stripes"))
        assert net.weight.data().asnumpy().tolist() == [[1], [0], [1]]
        """,
    "mxcore_lr_schedulers": """
        scheduler = mx.lr_scheduler.create("halving", step=2, base_lr=1.0)
        assert [scheduler(i) for i in range(5)] == [1, 1, 0.5, 0.5, 0.25]
        """,
    "mxcore_report": """
        from mxcore import cli
        mx.nd.softmax(mx.nd.ones((200, 200)))
        assert cli.main(["info"]) == 0
        """,
    "mxcore_kvstores": """
        from mxcore import gluon
        net = gluon.nn.Dense(1, use_bias=False, in_units=2)
        net.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(1)])
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore=mx.kv.create("Adding"))
        with mx.autograd.record():
            losses = [net(mx.nd.ones((1, 2), ctx=c)).sum() for c in (mx.cpu(0), mx.cpu(1))]
        mx.autograd.backward(losses)
        trainer.step(1)
        assert [net.weight.data(c).asnumpy().tolist() for c in (mx.cpu(0), mx.cpu(1))] == [[[-1.0, -1.0]]] * 2
        """,
    "mxcore_graph_passes": """
        net = mx.sym.tanh(mx.sym.Variable("x"), name="t").optimize_for("tanh_to_softsign")
        assert net.bind(mx.cpu(), {"x": mx.nd.ones((1,))}).forward()[0].asnumpy().tolist() == [0.5]
        assert net.name == "t" and net.list_outputs() == ["t_output"]
        from mxcore import gluon
        block = gluon.nn.HybridLambda("tanh")
        block.hybridize(backend="tanh_to_softsign")
        assert block(mx.nd.ones((1,))).asnumpy().tolist() == [0.5]
        net = gluon.nn.Dense(2, activation="relu", in_units=3)
        net.initialize(mx.init.One())
        net.hybridize()
        assert net(mx.nd.array([[1, 2, 3], [-1, -2, -3]])).asnumpy().tolist() == [[6, 6], [0, 0]]
        [found] = net._cached_op.op._signatures.values()
        assert [n.op.name for n in found.compiled.program.graph.nodes if n.op] == ["dense_relu"]
        """,
    "mxcore_cli": """
        from mxcore import cli
        mx.nd.save("some.params", {"a": mx.nd.ones((2, 3)), "b": mx.nd.ones((4,))})
        assert cli.main(["count", "some.params"]) == 0 and cli.main(["help"]) == 0
        """,
}


def test_each_documented_plugin_works_as_installed(folder, tmp_path_factory, monkeypatch):
    used = set()
    for i, block in enumerate(b for b in BLOCKS if "API_VERSION" in b):
        folder.add(f"plugin_{i}", block)
        used |= {*re.findall(r"^def (mxcore_\w+)", block, re.M)}
    assert used == {n for n in vars(hookspecs) if n.startswith("mxcore_")} and used > {*USE}
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    code = "import mxcore as mx\n" + "\n".join(dedent(c) for c in USE.values())
    done = folder(
        code + "\nfrom mxcore import cli\nassert cli.main(['plugins']) == cli.main(['plugins', 'check']) == 0\n",
        "-W",
        "error",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert (
        "\n10\n" in done.stdout
        and "count the parameters in a file" in done.stdout
        and "most time in: " in done.stdout
        and "operators without samples: 1" in done.stdout
        and "a layer without bias takes data and weight" in done.stdout
    )
    assert "kernels for cpu (5) " in done.stdout, "the relu of the page meets the stock one"


def test_the_documented_benchmark_runs(tmp_path):
    (benchmark,) = (b for b in BLOCKS if "API_VERSION" not in b)
    file = tmp_path / "benchmarks" / "test_page.py"
    file.parent.mkdir()
    file.write_text(benchmark)
    command = [sys.executable, "-m", "pytest", "--benchmark", "--quick", "-p", "mxcore.testing.plugin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and re.search(r"exp +cpu\(0\) .*at most 1.5", done.stdout), done.stdout + done.stderr


def test_the_table_of_options_and_variables_is_true():
    page, variables = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("plugins.md", "environment.md"))
    rows = re.findall(r"^\| (pytest|`mxcore`|environment) \| `([^`]+)` \|", page, re.M)
    assert {name for of, name in rows if of == "pytest"} == {*OPTIONS, "-p mxcore.testing.plugin"}
    assert [name for of, name in rows if of == "environment" and name not in documented(variables)] == []
    about_plugins = variables.partition("## Plugins")[2].partition("\n## ")[0]
    assert {*documented(about_plugins)} < {name for of, name in rows if of == "environment"}


def test_the_table_of_overrides_is_that_of_the_device_over_pytorch():
    source = (ROOT / "tests" / "toy_plugins" / "torch_device" / "torch_device.py").read_text(encoding="utf-8")
    given = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Dict))
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", page.partition("| override |")[2].partition("\n\n")[0], re.M)
    assert rows == [(k.value, ast.unparse(v)) for k, v in zip(given.keys, given.values)]
