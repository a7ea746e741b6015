"""Plugins that fail, in every way thought of: none takes another with it, nor the process, and each says why."""

import gc
import sys
import threading
import types
import warnings
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.base import MXNetError
from mxcore.executor import CachedOp
from mxcore.plugin import Device, GraphPass, Int, KernelSet, Node, find_op, op, rewrite

HEAD = "from mxcore.plugin import hookimpl, op\nAPI_VERSION = 1\n"
FINE = (
    HEAD
    + """
@op("site_fine")
def thing(k, p, data):
    "Return data."
    return data + 1
@hookimpl
def mxcore_ops():
    return [thing]
"""
)
HOOK = HEAD + "@hookimpl\ndef mxcore_ops({args}):\n    {body}\n"
#: name -> (code of the module, what is said about it)
BAD = {
    "raises": ("raise ImportError('no libmagic here\\nand a second line')", "ImportError: no libmagic here"),
    "syntax": ("def f(:", "SyntaxError: invalid syntax"),
    "leaves": ("import sys; sys.exit(3)", "it ended with SystemExit: 3"),
    "recursion": ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    "mute": (
        "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\nraise Mute",
        "Mute: its message cannot be shown",
    ),
    "empty": ("raise ValueError", "ValueError: no message"),
    "circular": ("import circular_too", "ImportError: cannot import name"),
    "future": ("API_VERSION = 2", "plugin 'future' speaks plugin API 2; this mxcore speaks 1"),
    "versionless": ("x = 1", "plugin 'versionless' states no API_VERSION"),
    "hook_raises": (HOOK.format(args="", body="1 / 0"), "ZeroDivisionError: division by zero"),
    "hook_leaves": (HOOK.format(args="", body="raise SystemExit('bye')"), "it ended with SystemExit: bye"),
    "hook_asks": (
        HOOK.format(args="what", body="return []"),
        "hook mxcore_ops of plugin 'hook_asks' takes (what); hooks take no arguments",
    ),
    "hook_none": (HOOK.format(args="", body="pass"), "hook mxcore_ops of plugin 'hook_none' returned None"),
    "hook_stops": (
        HOOK.format(args="", body="yield op('site_half')(lambda k, p, data: data); raise OSError('no disk')"),
        "OSError: no disk",
    ),
    "hook_mute": (
        HOOK.format(args="", body="return [type('R', (), {'__repr__': lambda s: 1 / 0})()]"),
        "ZeroDivisionError",
    ),
    "hook_misspelt": (
        HEAD + "@hookimpl\ndef mxcore_op():\n    return []\n",
        "unknown hook mxcore_op, did you mean 'mxcore_ops'",
    ),
    "hook_unmarked": (
        HEAD + "def mxcore_ops():\n    return []\n",
        "mxcore_ops of plugin 'hook_unmarked' is not marked as a hook: @hookimpl is missing",
    ),
    "clash": (
        HOOK.format(args="", body="return [op(n)(lambda k, p, data: data) for n in ('site_half', 'tanh')]"),
        "operator 'tanh' of clash is already registered by ops",
    ),
}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """All of them, with one plugin before and one behind them that are fine, and a damaged distribution."""
    from .conftest import Site

    site = Site(tmp_path_factory.mktemp("crowd"))
    for name, (code, _) in BAD.items():
        site.add(name, code)
    (site.folder / "circular_too.py").write_text("from circular import x")
    site.add("aa_fine", FINE)
    site.add("zz_fine", FINE.replace("site_fine", "site_last"))
    site.add("nowhere", "", entries="[mxcore]\nnowhere = no_such_module_here\n")
    site.add("malformed", "", entries="[mxcore]\nmalformed = a b c\n")
    site.add("other", FINE.replace("site_fine", "site_other"), dist="a-second", entries="[mxcore]\nzz_fine = other\n")
    site.add("usurper", FINE.replace("site_fine", "site_usurper"), entries="[mxcore]\nops = usurper\n")
    site.add("broken_file", "", entries="[mxcore]\nno equals sign\n")
    site.add("broken_text", "", entries="[mxcore]\nbroken_text = \xff\n")
    return site


def test_they_leave_the_others_alone_and_say_why(crowd):
    done = crowd(
        """
        import mxcore as mx
        print([round(float(f(mx.nd.ones((1,))).asscalar()), 4) for f in (mx.nd.site_fine, mx.nd.tanh, mx.nd.relu)])
        last = mx.nd.site_last if hasattr(mx.nd, "site_last") else mx.nd.site_other
        print(last(mx.nd.ones((1,))).asscalar())
        from mxcore import cli
        cli.main(["trein"])
        print(hasattr(mx.nd, "site_half"), hasattr(mx.nd, "site_usurper"))
        graph = '{"nodes": [{"op": "site", "name": "a", "inputs": []}], "arg_nodes": [], "heads": [[0, 0, 0]]}'
        for ask in (
            lambda: mx.nd.site_usurper,
            lambda: mx.sym.site_usurper,
            lambda: mx.nd.contrib.site_usurper,
            lambda: mx.io.SiteIter,
            lambda: mx.optimizer.create("site"),
            lambda: mx.metric.create("site"),
            lambda: mx.init.create("site"),
            lambda: mx.lr_scheduler.create("site"),
            lambda: mx.kv.create("site"),
            lambda: mx.Context("site").device,
            lambda: mx.sym.Variable("x").optimize_for("site"),
            lambda: mx.executor.passes_off("site").__enter__(),
            lambda: mx.sym.load_json(graph),
        ):
            try:
                print("FOUND", ask())
            except Exception as e:
                print(type(e).__name__, "plugin 'raises' failed to load: ImportError: no libmagic here;" in str(e))
    """,
        PYTHONWARNINGS="always",
    )
    assert done.returncode == 0, done.stderr
    values, last, seen, *misses = done.stdout.splitlines()
    assert (values, last, seen) == ("[2.0, 0.7616, 1.0]", "2.0", "False False")
    assert len(misses) == 13 and all(m.endswith(" True") for m in misses), misses
    expected = {
        **{name: text for name, (_, text) in BAD.items()},
        "nowhere": "ModuleNotFoundError: No module named 'no_such_module_here'",
        "malformed": "its entry point is 'a b c', where the name of a module is needed",
        "broken_file": "",
        "broken_text": "UnicodeDecodeError",
        "ops (usurper)": "a plugin named 'ops' is already registered by mxcore",
    }
    assert (
        "there is no command 'trein', did you mean 'train'" in done.stderr and "'raises' failed to load" in done.stderr
    )
    told = {name: done.stderr.count(f"plugin '{name}' of ") for name in expected}
    assert set(told.values()) == {1}, (told, done.stderr)
    assert [t for t in expected.values() if t not in done.stderr] == []
    assert (
        "a plugin named 'zz_fine' is already registered by" in done.stderr
        and "MXCORE_DISABLE_PLUGINS with the distribution" in done.stderr
    )


def test_the_command_lists_them_with_the_line_that_failed(crowd):
    done = crowd("import sys; from mxcore import cli; sys.exit(cli.main(['plugins', '--check']))", "-W", "error")
    assert done.returncode == 1 and not done.stderr
    assert f"raises  raises 1.0  failed: ImportError: no libmagic here [{crowd.folder / 'raises.py'}:1]" in done.stdout
    for name, (_, text) in BAD.items():
        assert any(
            line.startswith(f"{name}  ") and "failed" in line and text in line for line in done.stdout.splitlines()
        ), name


def test_they_can_be_left_out_by_distribution(crowd):
    names = ",".join([*BAD, "nowhere", "malformed", "a-second", "usurper", "mxcore"])
    done = crowd(
        "from mxcore._core.manager import manager as m; m.load(); print(sorted(m.origin), sorted(m.failed))",
        MXCORE_DISABLE_PLUGINS=names,
        PYTHONWARNINGS="ignore",
    )
    assert done.stdout == "['aa_fine', 'zz_fine'] ['broken_file', 'broken_text']\n", done.stderr


def test_warnings_as_errors_hit_the_first_use_only(crowd):
    done = crowd("""
        import warnings; warnings.simplefilter("error")
        import mxcore as mx
        try:
            mx.nd.ones((1,))
        except mx.base.MXNetWarning as e:
            print("told")
        print(mx.nd.site_fine(mx.nd.ones((1,))).asscalar())
    """)
    assert done.stdout == "told\n2.0\n", done.stderr


def test_metadata_that_is_no_text_hides_nothing_else(folder):
    folder.add("aa_fine", FINE)
    folder.add("latin", FINE.replace("site_fine", "site_latin"))
    info = folder.folder / "latin-1.0.dist-info"
    (info / "METADATA").write_bytes("Metadata-Version: 2.1\nName: latin\nAuthor: Müller\n".encode("latin-1"))
    done = folder(
        "import mxcore as mx; print(mx.nd.site_fine(mx.nd.ones((1,))).asscalar(), hasattr(mx.nd, 'site_latin'))"
    )
    assert done.stdout == "2.0 False\n", done.stderr
    assert f"plugin '{info}' of damaged metadata was not loaded: UnicodeDecodeError" in done.stderr


def test_broken_plugins_of_one_name_are_all_told(folder):
    for dist in ("first", "second"):
        folder.add(dist, f"raise ImportError('no {dist} here')", dist=dist, entries=f"[mxcore]\nboth = {dist}\n")
    folder.add("third", FINE, dist="third", entries="[mxcore]\nboth = third\n")
    done = folder("import mxcore as mx; print(mx.nd.site_fine(mx.nd.ones(1)).asscalar())")
    assert done.stdout == "2.0\n"
    listed = folder("from mxcore import cli; cli.main(['plugins'])").stdout
    for name, dist in (("both", "first"), ("both (second)", "second")):
        assert done.stderr.count(f"plugin '{name}' of {dist} 1.0 was not loaded: ImportError: no {dist} here") == 1
        assert f"no {dist} here" in listed


def test_kernels_that_two_plugins_bring_stay_with_the_one_that_stays(plug):
    plug("the_op", mxcore_ops=[op("test_shared_set")(lambda k, p, data: data)])
    shared = KernelSet("cpu")
    shared.kernel("test_shared_set")(lambda k, p, data: data * 2)
    plug("first", mxcore_kernels={"cpu": shared})
    with pytest.raises(TypeError, match="3 is no Op object"):
        plug("fails", mxcore_kernels={"cpu": shared}, mxcore_report=list, mxcore_ops=[3])
    x = mx.nd.ones((1,))
    assert mx.nd.test_shared_set(x).asscalar() == 2
    plug("goes", mxcore_kernels={"cpu": shared})
    mx._core.manager.manager.unregister("goes")
    assert mx.nd.test_shared_set(x).asscalar() == 2
    mx._core.manager.manager.unregister("first")
    assert mx.nd.test_shared_set(x).asscalar() == 1


@pytest.mark.parametrize("where", ["kernel", "when", "body", "pass"])
def test_parameters_are_those_of_all_calls_and_stay(plug, where):
    """Who sets one is named, and others compute what they did."""

    def sets(p):
        p.axis %= 2
        return True

    kernels = KernelSet("cpu")

    @kernels.kernel("softmax", priority=99, when=lambda p, data, *more: data.ndim == 2 and (where != "when" or sets(p)))
    def kernel(k, p, data, length=None):
        sets(p)
        return data

    x = mx.nd.array(np.random.default_rng(0).random((2, 3, 4)))
    want, call = mx.nd.softmax(x).asnumpy(), mx.nd.softmax
    if where == "body":
        odd = op("test_sets", axis=Int(-1))(lambda k, p, data: data * sets(p))
        plug("setting", mxcore_ops=[odd])
        call = mx.nd.test_sets
    elif where == "pass":
        changing = GraphPass("setting", 1, lambda g: [sets(n.params) for n in g.nodes if n.op] and g)
        plug("setting", mxcore_graph_passes=[changing])
        call = mx.gluon.nn.HybridLambda("softmax")
        call.hybridize()
    else:
        plug("setting", mxcore_kernels={"cpu": kernels})
    with pytest.raises(MXNetError, match=r"setting.*parameter 'axis' cannot be set to 1: all calls|test_sets.*'axis'"):
        call(x[0])
    np.testing.assert_array_equal(mx.nd.softmax(x).asnumpy(), want)
    assert find_op("softmax").parse({}).axis == -1


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("goes", [False, True])
def test_kernels_that_come_or_go_while_another_thread_binds_a_call(plug, hybrid, goes):
    """What it has bound is forgotten as soon as it has run."""
    inside, go_on, manager = threading.Event(), threading.Event(), mx._core.manager.manager

    def written(value, priority, when=None):
        kernels = KernelSet("cpu")

        @kernels.kernel("test_raced", priority=priority, when=when, out=True)
        def kernel(k, p, outs, data):
            outs[0][...] = value

        return kernels

    def when(p, *specs):
        inside.set()
        return go_on.wait(60)

    plug("the_op", mxcore_ops=[op("test_raced")(lambda k, p, data: data)])
    plug("slow", mxcore_kernels={"cpu": written(5, 10, when)})
    call = mx.gluon.nn.HybridLambda("test_raced") if hybrid else mx.nd.test_raced
    if hybrid:
        call.hybridize()
    x = mx.nd.ones((2,))
    thread = threading.Thread(target=call, args=(x,))
    thread.start()
    assert inside.wait(60)
    if goes:
        manager.unregister("slow")
    else:
        plug("better", mxcore_kernels={"cpu": written(6, 60)})
    go_on.set()
    thread.join()
    assert call(x).asnumpy().tolist() == ([1, 1] if goes else [6, 6])


def test_what_is_taken_out_half_way_can_be_taken_out_again(plug, monkeypatch):
    """Ctrl-C may come at any time."""
    from mxcore._core import tables

    plug("half", mxcore_ops=[op("test_half")(lambda k, p, data: data)])
    drop = tables.drop_owner

    def interrupted(owner):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "drop_owner", interrupted)
    with pytest.raises(KeyboardInterrupt):
        manager.unregister("half")
    monkeypatch.setattr(tables, "drop_owner", drop)
    manager._remove("half")
    assert "test_half" not in tables.ops.items and "half" not in manager.origin


def test_a_pass_that_goes_while_another_thread_makes_a_graph_is_forgotten(plug):
    inside, go_on, made = threading.Event(), threading.Event(), []

    def run(graph):
        inside.set()
        assert go_on.wait(60)
        return rewrite(
            graph,
            lambda node, inputs, fact: (
                Node(find_op("sin"), find_op("sin").parse({}), inputs, node.name) if node.op.name == "exp" else None
            ),
        )

    plug("passing_by", mxcore_graph_passes=[GraphPass("test_passing_by", 1, run)])
    y = mx.sym.exp(mx.sym.Variable("x"))
    thread = threading.Thread(target=lambda: made.append(CachedOp(y)))
    thread.start()
    assert inside.wait(60)
    manager.unregister("passing_by")
    go_on.set()
    thread.join()
    assert made[0](mx.nd.zeros((1,))).asscalar() == 1


def test_an_interrupted_import_of_kernels_loses_none(folder):
    hook = "@hookimpl\ndef mxcore_kernels():\n    return {'cpu': 'its_kernels:kernels'}\n"
    folder.add("stopped", FINE + hook)
    (folder.folder / "its_kernels.py").write_text(
        "import builtins\nif not hasattr(builtins, 'again'):\n    builtins.again = 1\n    raise KeyboardInterrupt\n"
        "from mxcore.plugin import KernelSet\nkernels = KernelSet('cpu')\n"
        "kernels.kernel('site_fine')(lambda k, p, data: data + 41)\n"
    )
    done = folder("""
        import mxcore as mx
        try:
            mx.nd.ones((1,))
        except KeyboardInterrupt:
            print("interrupted")
        print(mx.nd.site_fine(mx.nd.ones((1,))).asscalar())
    """)
    assert done.stdout == "interrupted\n42.0\n", done.stderr


FIRST = "import builtins, errno\nfirst = not hasattr(builtins, '{0}')\nbuiltins.{0} = 1\nif first:\n    raise {1}\n"
EMFILE = "OSError(errno.EMFILE, 'Too many open files', 'its file')"


def test_what_was_short_for_a_moment_is_tried_again(folder):
    """Memory, descriptors and the like: no fault of a plugin, whose parts are imported anew and whole."""
    library = "ImportError('libit.so: cannot open shared object file: Too many open files')"
    for name, what in {"aa": "MemoryError", "bb": EMFILE, "cc": library, "dd": "ValueError('its own')"}.items():
        folder.add(name, FIRST.format(name, what) + FINE.replace("site_fine", f"site_{name}"))
    folder.add("ee", FINE.replace("site_fine", "site_ee").replace("():\n", f"():\n    try_it({EMFILE!r})\n"))
    folder.add("ff", FINE + "@hookimpl\ndef mxcore_kernels():\n    return {'cpu': 'its_kernels:kernels'}\n")
    module = folder.folder / "ee.py"
    once = (
        "import errno\ntried = []\ndef try_it(e):\n    if not tried:\n        tried.append(1)\n        raise eval(e)\n"
    )
    module.write_text(f"{HEAD}{once}{module.read_text().removeprefix(HEAD)}")
    (folder.folder / "its_kernels.py").write_text(
        FIRST.format("kernels", "OSError(errno.EIO, 'Input/output error')")
        + "from mxcore.plugin import KernelSet\nkernels = KernelSet('cpu')\n"
        "kernels.kernel('site_fine')(lambda k, p, data: data + 41)\n"
    )
    (folder.folder / "gg").mkdir()
    folder.add("gg_of", "", entries="[mxcore]\ngg = gg\n")
    (folder.folder / "gg" / "part.py").write_text("made = 5")
    (folder.folder / "gg" / "last.py").write_text(FIRST.format("gg", 'RuntimeError("can\'t start new thread")'))
    (folder.folder / "gg" / "__init__.py").write_text(
        "import gg.part\nfive = gg.part.made\ntry:\n    import gg.last\nexcept RuntimeError:\n"
        "    raise ImportError('gg needs its last part')\n"
        + FINE.replace("site_fine", "site_gg").replace("+ 1", "+ five")
    )
    done = folder(
        """
        import mxcore as mx
        for _ in range(9):
            try:
                x = mx.nd.ones((1,))
            except mx.MXNetError as e:
                assert "; the next use tries again" in str(e)
                told = str(e).split(" now: ")[-1].split(";")[0]
                print(type(e).__name__, getattr(e, "errno", None), str(e).split(" cannot be")[0], told, sep=": ")
        print([float(getattr(mx.nd, f"site_{n}")(x).asscalar()) for n in ("fine", "aa", "bb", "cc", "ee", "gg")])
        print({n: str(e) for n, (_, e) in mx._core.manager.manager.failed.items()}, mx._core.tables.broken)
    """
    )
    files = "[Errno 24] Too many open files"
    assert done.stdout.splitlines() == [
        "MXNetMemoryError: None: module 'aa': MemoryError: no message",
        f"MXNetOSError: 24: module 'bb': OSError: {files}: 'its file'",
        "MXNetOSError: None: module 'cc': ImportError: libit.so: cannot open shared object file: Too many open files",
        f"MXNetOSError: 24: module 'ee': OSError: {files}: 'its file'",
        "MXNetRuntimeError: None: module 'gg': ImportError: gg needs its last part "
        "(RuntimeError: can't start new thread)",
        "MXNetOSError: 5: module 'its_kernels': kernels of ff for device 'cpu' cannot be imported from "
        "'its_kernels:kernels': OSError: [Errno 5] Input/output error",
        "[42.0, 2.0, 2.0, 2.0, 2.0, 6.0]",
        "{'dd': 'its own'} {}",
    ], done.stderr
    assert done.stderr.count("plugin 'dd' of dd 1.0 was not loaded: ValueError: its own") == 1, done.stderr
    assert done.stderr.count("MXNetWarning") == 1


def test_a_process_short_of_descriptors_at_its_first_operator_has_all_of_them_later(folder):
    done = folder("""
        import os, resource
        import mxcore as mx
        import mxcore._core.manager
        mx.nd.NDArray
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(2):
            try:
                print(mx.nd.ones(1).asscalar(), len(mx._core.manager.manager.origin) > 2)
            except mx.MXNetError as e:
                print(type(e).__name__, e.errno, "; the next use tries again" in str(e))
            while held:
                os.close(held.pop())
    """)
    assert done.stdout == "MXNetOSError 24 True\n1.0 True\n", done.stderr


def test_with_warnings_as_errors_kernels_that_fail_leave_those_of_others(plug, tmp_path, monkeypatch):
    (tmp_path / "kernels_of_another.py").write_text(
        "from mxcore.plugin import KernelSet\nkernels = KernelSet('cpu')\n"
        "kernels.kernel('test_left')(lambda k, p, data: data + 41)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plug("the_op", mxcore_ops=[op("test_left")(lambda k, p, data: data)])
    x = mx.nd.ones((1,))
    plug("broken", mxcore_kernels={"cpu": "no_such_module_at_all:kernels"})
    plug("fine", mxcore_kernels={"cpu": "kernels_of_another:kernels"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mx.base.MXNetWarning, match="kernels of broken"):
            mx.nd.test_left(x)
        assert mx.nd.test_left(x).asscalar() == 42


CONFIGURED = "@hookimpl\ndef mxcore_configure():\n    print('{0}'); raise OSError('{0}')\n"


@pytest.mark.parametrize(
    "env, told",
    [
        ({"PYTHONWARNINGS": "always"}, "1.0"),
        ({"PYTHONWARNINGS": "error"}, "MXNetWarning"),
        ({"MXCORE_STRICT_PLUGINS": "1"}, "OSError"),
    ],
    ids=["warned", "error", "strict"],
)
def test_a_hook_that_fails_leaves_the_others(folder, env, told):
    for name in ("aa", "bb"):
        folder.add(name, HEAD + CONFIGURED.format(name))
    done = folder(
        """
        import mxcore as mx
        for _ in range(2):
            try:
                print(mx.nd.ones((1,)).asscalar())
            except (mx.base.MXNetWarning, OSError) as e:
                print(type(e).__name__)
        print(*mx._core.manager.manager.faulty)
    """,
        **env,
    )
    assert done.stdout == f"aa\nbb\n{told}\n1.0\naa bb\n", done.stderr
    if told == "1.0":
        assert all(
            done.stderr.count(f"mxcore_configure of plugin '{n}' failed: OSError: {n}") == 1 for n in "aa bb".split()
        )


def test_a_plugin_may_compute_while_it_is_imported(folder):
    """Stock parts come first, whatever the plugin is called."""
    folder.add(
        "aa",
        HEAD + "import mxcore as mx\nfrom mxcore import gluon\n"
        "print('noise')\nseven = mx.nd.relu(mx.nd.ones((1,)) * 7).asscalar()\n"
        "@op('site_seven')\ndef thing(k, p, data):\n    'Return data.'\n"
        "    return data * seven\n@hookimpl\ndef mxcore_ops():\n    mx.nd.waitall()\n    return [thing]\n",
    )
    done = folder(
        "import mxcore as mx; print(mx.nd.site_seven(mx.nd.ones((1,))).asscalar(), hasattr(mx.sym, 'site_seven'))",
        "-W",
        "error",
    )
    assert done.stdout == "noise\n7.0 True\n", done.stderr


def test_threads_that_start_together_load_everything_once(folder):
    folder.add("slow", "import time; print('once'); time.sleep(0.3)\n" + FINE)
    done = folder("""
        import threading
        import mxcore as mx
        start, seen = threading.Barrier(12), []
        def work(i):
            start.wait()
            ask = [
                lambda: mx.nd.site_fine(mx.nd.ones((1,))).asscalar(),
                lambda: mx.sym.site_fine(mx.sym.Variable("x")).name[:4] == "site" and 2.0,
                lambda: 2.0 * isinstance(mx.optimizer.create("adam"), mx.optimizer.Adam),
            ][i % 3]
            seen.append(float(ask()))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(seen == [2.0] * 12 or seen)
    """)
    assert done.stdout == "once\nTrue\n", done.stderr


def test_a_plugin_that_waits_for_another_thread_does_not_hang_it(folder):
    folder.add(
        "waits",
        "import threading, mxcore as mx\nfailed = []\n"
        "def work():\n    try:\n        mx.nd.no_such_operator\n    except RuntimeError as e:\n"
        "        failed.append(e)\nt = threading.Thread(target=work); t.start(); t.join()\nraise failed[0]\n",
    )
    done = folder("""
        from mxcore._core.plugins import plugins
        plugins.turns.patience = 0.5
        import mxcore as mx
        print(mx.nd.ones((1,)).asscalar())
    """)
    assert done.stdout == "1.0\n"
    assert (
        "plugin 'waits' is being loaded in another thread and does not come to an end; what a plugin does while"
        in done.stderr
    )


COMPUTES = """
import time
from mxcore.plugin import KernelSet
import mxcore as mx
cpu = KernelSet("cpu")
{before}
time.sleep({seconds})
TABLE = {compute}
@cpu.kernel("softsign", priority=1000, out=True)
def kernel(k, p, outs, data):
    outs[0][...] = 42
"""
KERNELS = HEAD + "@hookimpl\ndef mxcore_kernels():\n    return {{'cpu': '{0}:cpu'}}\n"
#: The module of kernels uses a hybridised block while it is imported.
NET = "(net := mx.gluon.nn.HybridLambda('softsign'), net.hybridize(), net(mx.nd.arange(4)).asnumpy())"
#: Runs what stands in CALLS, each in a thread of its own that begins a bit later than the one before.
IN_THREADS = """
import os, sys, threading, time
import mxcore as mx
def run(call, after):
    time.sleep(after)
    try:
        print(f"{call()}\\n", end="", flush=True)
    except BaseException as e:
        print(f"{type(e).__name__} {e}\\n", end="", flush=True)
threads = [threading.Thread(target=run, args=(c, 0.3 * i), daemon=True) for i, c in enumerate(CALLS)]
[t.start() for t in threads]
[t.join(60) for t in threads]
print(any(t.is_alive() for t in threads), mx.nd.softsign(mx.nd.ones(2)).asnumpy().tolist())
sys.stdout.flush()
os._exit(0)
"""


def softsign(n=2):
    return f"lambda: mx.nd.softsign(mx.nd.ones({n})).asnumpy().tolist()"


@pytest.mark.parametrize("compute", ["mx.nd.softsign(mx.nd.ones(2)).asnumpy()", NET], ids=["array", "net"])
def test_kernels_that_compute_while_somebody_imports_them(folder, compute):
    """Another thread computes first: each of the two would wait for the other."""
    folder.add("its_kernels", COMPUTES.format(before="", seconds=1, compute=compute), entries="[other]\n")
    folder.add("slow", KERNELS.format("its_kernels"))
    done = folder(f"CALLS = [lambda: __import__('its_kernels').__name__, {softsign()}, {softsign(3)}]\n{IN_THREADS}")
    assert sorted(done.stdout.splitlines()) == [
        "False [42.0, 42.0]",
        "[42.0, 42.0, 42.0]",
        "[42.0, 42.0]",
        "its_kernels",
    ]
    assert not done.stderr


def test_kernels_that_make_a_net_while_another_thread_calls_one_for_the_first_time(folder):
    folder.add("its_kernels", COMPUTES.format(before="", seconds=1, compute=NET), entries="[other]\n")
    folder.add("slow", KERNELS.format("its_kernels"))
    call = """lambda: (
        net := mx.gluon.nn.Dense(2, use_bias=False), net.initialize(), net.hybridize(), net(X).shape)[-1]"""
    first = "from mxcore._core.manager import manager\nmanager.load()\nimport mxcore as mx\nimport numpy as np\n"
    first += "X = mx.nd.from_numpy(np.ones((2, 2), 'f4'))\n"
    done = folder(f"{first}CALLS = [{softsign()}, {call}]\n{IN_THREADS}")
    assert sorted(done.stdout.splitlines()) == ["(2, 2)", "False [42.0, 42.0]", "[42.0, 42.0]"], done.stderr


def test_a_plugin_that_computes_while_somebody_imports_it(folder):
    """Another thread loads it: each of the two would wait for the other."""
    folder.add("slow", "import time, mxcore as mx\ntime.sleep(1)\ntable = mx.nd.arange(4) * 2\n" + FINE)
    ones = "lambda: (mx.nd.ones(2) * 2).asnumpy().tolist()"
    fine = "lambda: (time.sleep(2), mx.nd.site_fine(mx.nd.ones(2)).asnumpy().tolist())[1]"
    done = folder(f"CALLS = [lambda: __import__('slow').__name__, {ones}, {fine}]\n{IN_THREADS}")
    assert sorted(done.stdout.splitlines()) == ["False [0.5, 0.5]", "[2.0, 2.0]", "[2.0, 2.0]", "slow"], done.stderr
    assert not done.stderr


def test_hooks_may_import_what_computes_while_somebody_imports_it(folder):
    folder.add(
        "its_ops", "import time, mxcore as mx\ntime.sleep(1)\ntable = mx.nd.arange(4) * 2\n" + FINE, entries="[other]\n"
    )
    folder.add("slow", HEAD + "@hookimpl\ndef mxcore_ops():\n    from its_ops import thing\n    return [thing]\n")
    fine = "lambda: mx.nd.site_fine(mx.nd.ones(2)).asnumpy().tolist()"
    done = folder(f"CALLS = [lambda: __import__('its_ops').__name__, {fine}]\n{IN_THREADS}")
    assert sorted(done.stdout.splitlines()) == ["False [0.5, 0.5]", "[2.0, 2.0]", "its_ops"], done.stderr
    assert not done.stderr


@pytest.mark.parametrize("by", ["slow", "its_kernels"])
def test_who_imports_a_plugin_that_computes_gets_all_of_it(folder, by):
    """Its module is not whole while it computes, and is not taken as it is then."""
    compute = "mx.nd.softsign(mx.nd.ones(2)).asnumpy(), mx.nd.ones(2) + mx.nd.ones(2)"
    code = COMPUTES.format(before="", seconds=0, compute=compute)
    code += "@cpu.kernel('elemwise_add', priority=1000)\ndef add(k, p, lhs, rhs):\n    return lhs + rhs + 40\n"
    folder.add("its_kernels", code, entries="[other]\n")
    folder.add("slow", f"import mxcore as mx\ntable = {compute}\n" + FINE + KERNELS.format("its_kernels"))
    done = folder(f"""
        import {by}
        import mxcore as mx
        print((mx.nd.ones(2) + mx.nd.ones(2)).asnumpy().tolist())
        print(mx.nd.softsign(mx.nd.ones(2)).asnumpy().tolist(), mx.nd.site_fine(mx.nd.ones(1)).asscalar())
    """)
    assert done.stdout == "[42.0, 42.0]\n[42.0, 42.0] 2.0\n", done.stderr
    assert not done.stderr


def test_nobody_computes_while_kernels_are_being_imported(folder):
    folder.add("its_kernels", COMPUTES.format(before="print('once')", seconds=0.5, compute=0), entries="[other]\n")
    folder.add("its_others", COMPUTES.format(before="print('again')\n1 / 0", seconds=0, compute=0), entries="[other]\n")
    folder.add("aa", KERNELS.format("its_others"))
    folder.add("slow", KERNELS.format("its_kernels"))
    done = folder(f"CALLS = [{softsign()}] * 8\n{IN_THREADS.replace('0.3 * i', '0')}", "-W", "ignore::UserWarning")
    assert done.stdout.splitlines() == ["again", "once", *["[42.0, 42.0]"] * 8, "False [42.0, 42.0]"], done.stderr


def test_a_number_of_a_device_is_known_before_its_plugin_is_loaded(folder):
    folder.add(
        "board",
        "import numpy as np\nfrom mxcore.plugin import Device, hookimpl\nAPI_VERSION = 1\n"
        "class Board(Device):\n    type, type_id, xp = 'site_board', 70001, np\n    count = lambda self: 1\n"
        "@hookimpl\ndef mxcore_devices():\n    return [Board()]\n",
    )
    done = folder(
        "import mxcore as mx; print(mx.Context(70001), mx.Context('site_board').device_typeid)\ntry: "
        "mx.Context(70002)\nexcept mx.MXNetError as e: print(e)"
    )
    assert done.stdout.startswith("site_board(0) 70001\n") and "70002" in done.stdout, done.stderr


def test_what_a_device_raises_names_it(plug):
    class Loose(Device):
        type, type_id, xp, broken = "loose", 70003, np, ""

        def count(self):
            return 1

        def to_host(self, a):
            self.fail("to_host")
            return np.array(a)

        def from_host(self, a, index):
            self.fail("from_host")
            return np.array(a)

        def copy(self, a, dst):
            self.fail("copy")
            dst[...] = a

        def empty(self, shape, dtype, index):
            self.fail("empty")
            return np.empty(shape, dtype)

        def shares(self, a, b):
            self.fail("shares")
            return np.may_share_memory(a, b)

        def owns(self, a):
            self.fail("owns")
            return False

        def fail(self, name):
            if name == self.broken:
                raise KeyError("a wire")

    device = Loose()
    plug(mxcore_devices=[device])
    ctx = mx.Context("loose")
    x, y = mx.nd.ones((2, 2), ctx=ctx), mx.nd.ones((2, 2), ctx=ctx)
    for name, work in {
        "to_host": x.asnumpy,
        "from_host": lambda: mx.nd.ones((2,)).as_in_context(ctx),
        "copy": lambda: x.copyto(y),
        "empty": lambda: mx.nd.empty((2, 2), ctx=ctx),
        "shares": lambda: mx.nd.relu(x[:1], out=x[1:]),
        "owns": lambda: mx.nd.relu(x, out=y),
    }.items():
        device.broken = name
        with pytest.raises(
            mx.MXNetError, match=rf"device 'loose' of {Loose.__module__}: {name}\(\) raised KeyError: 'a wire'"
        ) as e:
            work()
        assert "a wire" in str(e.value)
        device.broken = ""
        assert (x + 1).asnumpy().tolist() == [[2, 2], [2, 2]]


class Odd(Device):
    """A device that is sound but for what a test puts in the place of a method's result."""

    type, type_id, odd = "odd", 70004, {}

    @property
    def xp(self):
        return self.result("xp", np)

    def result(self, name, found):
        return self.odd[name](found) if name in self.odd else found

    def count(self):
        return self.result("count", 1)

    def to_host(self, a):
        return self.result("to_host", np.array(a) if "view" not in self.odd else a)

    def from_host(self, a, index):
        return self.result("from_host", np.array(a) if "view" not in self.odd else a)

    def empty(self, shape, dtype, index):
        return self.result("empty", np.empty(shape, dtype))

    def full(self, shape, value, dtype, index):
        return self.result("full", np.full(shape, value, dtype))

    def memory(self, index):
        return self.result("memory", (1, 2))


def to_odd():
    return mx.nd.array([[1, 2, 3]], ctx=mx.Context("odd"))


def from_odd():
    return mx.nd.ones((1, 3), ctx=mx.Context("odd")).asnumpy()


def filled_odd():
    x = mx.nd.ones((2,), ctx=mx.Context("odd"))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
    y.backward()


def emptied_odd():
    mx.nd.empty((2, 3), ctx=mx.Context("odd"))


SAME = "an array of float32 (1, 3), as the one it was given, is needed"


@pytest.mark.parametrize(
    "name, value, use, text",
    [
        ("count", lambda a: -1, to_odd, "-1; a number of devices, 0 or more, is needed"),
        ("count", lambda a: "x", to_odd, "'x'; a number of devices"),
        ("count", lambda a: None, to_odd, "None; a number of devices"),
        ("count", lambda a: True, to_odd, "True; a number of devices"),
        ("to_host", lambda a: None, from_odd, "None; a NumPy array of float32 (1, 3) is needed"),
        ("to_host", lambda a: a.tolist(), from_odd, "[[1.0, 1.0, 1.0]]; a NumPy array of float32 (1, 3) is needed"),
        ("to_host", lambda a: a.ravel(), from_odd, f"an array of float32 (3,); {SAME}"),
        ("to_host", lambda a: a.astype("f8"), from_odd, f"an array of float64 (1, 3); {SAME}"),
        ("from_host", lambda a: None, to_odd, f"None; {SAME}"),
        ("from_host", lambda a: a.tolist(), to_odd, f"[[1.0, 2.0, 3.0]]; {SAME}"),
        ("from_host", lambda a: a.ravel(), to_odd, f"an array of float32 (3,); {SAME}"),
        ("from_host", lambda a: a.astype("f8"), to_odd, f"an array of float64 (1, 3); {SAME}"),
        ("full", lambda a: None, filled_odd, "None; an array of float32 (2,) is needed"),
        ("full", lambda a: a[:1], filled_odd, "an array of float32 (1,); an array of float32 (2,) is needed"),
        ("empty", lambda a: None, emptied_odd, "None; an array of float32 (2, 3) is needed"),
        ("empty", lambda a: a[:1], emptied_odd, "an array of float32 (1, 3); an array of float32 (2, 3) is needed"),
        ("empty", lambda a: a.astype("f8"), emptied_odd, "an array of float64 (2, 3); an array of float32 (2, 3)"),
        ("memory", lambda a: 5, lambda: mx.Context("odd").device.memory(0), "5; two whole numbers, (free, total) byt"),
    ],
)
def test_what_a_device_returns_is_looked_at(plug, name, value, use, text):
    device = Odd()
    plug(mxcore_devices=[device])
    device.odd = {name: value}
    with pytest.raises(mx.MXNetError) as e:
        use()
    assert f"device 'odd' of {__name__}: {name}() returned {text}" in str(e.value)


@pytest.mark.parametrize("name, use", [("to_host", from_odd), ("from_host", to_odd)])
def test_a_device_copies(plug, name, use):
    device = Odd()
    plug(mxcore_devices=[device])
    assert use().size == 3
    device.odd = {"view": True}
    with pytest.raises(mx.MXNetError, match=rf"{name}\(\) returned an array .*; a copy, which shares no memory"):
        use()


def test_a_namespace_that_cannot_be_had_is_named(plug):
    device = Odd()
    plug(mxcore_devices=[device])
    device.odd = {"xp": lambda found: 1 / 0}
    with pytest.raises(mx.MXNetError, match=rf"device 'odd' of {__name__}: xp raised ZeroDivisionError"):
        mx.nd.ones((2,), ctx=mx.Context("odd"))


def test_a_device_without_its_methods_is_named(plug):
    plug(mxcore_devices=[type("Bare", (Device,), {"type": "bare", "type_id": 70005})()])
    with pytest.raises(mx.MXNetError, match=r"device 'bare' must define count\(\)"):
        mx.nd.ones((2,), ctx=mx.Context("bare"))


class Mute(Exception):
    def __str__(self):
        raise ValueError("mute")


def eager():
    return mx.nd.bad_op(mx.nd.ones((2, 3))).asnumpy()


def with_out():
    return mx.nd.bad_op(mx.nd.ones((2, 3)), out=mx.nd.ones((2, 3))).asnumpy()


def graph():
    bound = mx.sym.bad_op(mx.sym.Variable("data"), name="node").simple_bind(mx.cpu(), data=(2, 3))
    return bound.forward(data=mx.nd.ones((2, 3)))[0].asnumpy()


WAYS = pytest.mark.parametrize("use", [eager, with_out, graph])


def refused(use, text):
    with pytest.raises(mx.MXNetError, match="operator bad_op") as caught:
        use()
    assert text in str(caught.value), caught.value


def kernels(body, **kw):
    found = KernelSet("cpu")
    found.kernel("bad_op", **kw)(body)
    return {"cpu": found}


def sound(k, p, data):
    """Data and one."""
    return data + 1


def replaces(k, p, outs, data):
    outs[0] = data + 1


@WAYS
@pytest.mark.parametrize(
    "body",
    [
        replaces,
        lambda k, p, outs, data: data + 1,
        lambda k, p, outs, data: [data],
        lambda k, p, outs, data: outs.clear(),
        lambda k, p, outs, data: outs.append(data),
    ],
)
def test_a_kernel_that_does_not_write_is_named(plug, use, body):
    plug(mxcore_ops=[op("bad_op")(sound)], mxcore_kernels=kernels(body, out=True))
    for _ in range(2):  # a bound graph keeps its own arrays
        refused(use, "kernel of throwaway] with data float32 (2, 3)")
        refused(
            use,
            "it replaced an array of `outs` or returned one, which would be lost; with out=True it writes into them",
        )


def test_an_update_does_not_lose_what_a_kernel_replaces(plug):
    """Optimizers call the kernel of the same arrays again and again."""
    found, seen = KernelSet("cpu"), []

    @found.kernel("sgd_update", priority=100, out=True)
    def replaces_later(k, p, outs, weight, grad):
        seen.append(1)
        if len(seen) < 3:
            outs[0] -= grad
        else:
            outs[0] = weight - grad

    plug(mxcore_kernels={"cpu": found})
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1))
    weight = mx.nd.ones((2, 2))
    with pytest.raises(
        mx.MXNetError, match=r"operator sgd_update \[kernel of throwaway\].*it replaced an array of `outs`"
    ):
        for _ in range(3):
            update(0, mx.nd.ones((2, 2)), weight)


@WAYS
def test_a_kernel_may_return_what_it_has_written(plug, use):
    plug(
        mxcore_ops=[op("bad_op")(sound)],
        mxcore_kernels=kernels(lambda k, p, outs, data: np.add(data, 1, out=outs[0]), out=True),
    )
    assert (use() == 2).all()


@WAYS
@pytest.mark.parametrize(
    "value, text",
    [
        (lambda d: None, "it returned "),
        (lambda d: [[d]], "it returned a list; an array of k.xp is needed, of float32"),
        (lambda d: d.astype(complex), "it returned a ndarray of complex128; an array of k.xp is needed, of float32"),
        (lambda d: np.full(d.shape, "2020", "M8[D]"), "it returned a ndarray of datetime64[D]"),
        (lambda d: mx.nd.ones((2, 3)), "it returned a NDArray"),
    ],
)
def test_what_is_no_array_of_the_dtype_is_refused(plug, use, value, text):
    plug(mxcore_ops=[op("bad_op")(lambda k, p, data: value(data))])
    refused(use, text)


def test_a_view_of_another_shape_is_named(plug):
    """Also in graphs, which take views as they are."""
    found = KernelSet("cpu")
    found.kernel("Reshape", priority=1000)(lambda k, p, data: data)
    plug(mxcore_kernels={"cpu": found})
    x = mx.nd.ones((4, 4))
    for use in (
        lambda: mx.nd.Reshape(x, shape=(-1,)),
        lambda: mx.sym.Reshape(mx.sym.Variable("v"), shape=(-1,)).bind(mx.cpu(), {"v": x}).forward()[0].asnumpy(),
        lambda: (mx.sym.Reshape(mx.sym.Variable("v"), shape=(-1,)) * 2).bind(mx.cpu(), {"v": x}).forward()[0].asnumpy(),
    ):
        with pytest.raises(
            ValueError, match=r"operator Reshape .*it returned shape \(4, 4\); \(16,\) is declared"
        ) as e:
            use()
        assert isinstance(e.value, MXNetError)


@WAYS
def test_an_output_that_is_missing_is_named(plug, use):
    plug(mxcore_ops=[op("bad_op", outputs="left right")(lambda k, p, data: (data, None))])
    refused(
        (lambda: mx.nd.bad_op(mx.nd.ones((2, 3)), out=[mx.nd.ones((2, 3)), mx.nd.ones((2, 3))]))
        if use is with_out
        else use,
        "it returned None for output 'right'",
    )


@WAYS
@pytest.mark.parametrize(
    "kind, value, text",
    [
        ("shape", [(2.0, 3)], "there is no array of shape (2.0, 3)"),
        ("shape", [5], "with a shape or None for each is needed"),
        ("shape", [(True, 3)], "there is no array of shape (True, 3)"),
        ("dtype", [None], "the dtype of its output cannot be inferred"),
        ("shape", [], "its shape rule gave [(2, 3)] for 1 input(s), [] for 1 output(s)"),
        ("shape", [(2, 3)] * 2, "[(2, 3), (2, 3)] for 1 output(s)"),
        ("shape", None, "with a shape or None for each is needed"),
        ("dtype", ["zz"], "unknown dtype 'zz'"),
        ("dtype", [np.dtype(complex)], "dtype complex128 cannot be held"),
        ("dtype", [], "[] for 1 output(s)"),
    ],
)
@pytest.mark.parametrize("both", [False, True])
def test_rules_that_give_something_else_are_named(plug, use, kind, value, text, both):
    bad = op("bad_op")(sound)
    getattr(bad, kind)((lambda p, ins, outs: (ins, value)) if both else (lambda p, ins: value))
    plug(mxcore_ops=[bad])
    refused(use, text)


@pytest.mark.parametrize("value", ["f4", float, "float32"])
def test_a_dtype_rule_may_give_what_stands_for_a_dtype(plug, value):
    bad = op("bad_op")(sound)
    bad.dtype(lambda p, ins: [value])
    plug(mxcore_ops=[bad])
    assert eager().dtype == graph().dtype == np.dtype(value)


@WAYS
@pytest.mark.parametrize("fault, text", [(Mute, "its message cannot be shown"), (lambda: KeyError("a wire"), "a wire")])
@pytest.mark.parametrize("where", ["body", "shape", "dtype", "storage", "cost", "kernel"])
def test_whatever_raises_is_named(plug, use, where, fault, text):
    def fail(*args):
        raise fault()

    bad = op("bad_op")((lambda k, p, data: fail()) if where == "body" else sound)
    if where in ("shape", "dtype", "storage"):
        getattr(bad, where)(lambda p, ins: fail())
    elif where == "cost":
        bad.cost(lambda p, ins, outs: fail())
    plug(mxcore_ops=[bad], mxcore_kernels=kernels((lambda k, p, data: fail()), when=None) if where == "kernel" else {})
    refused(use, text)


def test_a_short_way_that_fails_is_named(plug):
    bad = KernelSet("cpu")

    def never(a, b):
        raise ArithmeticError

    @bad.kernel("elemwise_add", priority=900, short=lambda ctx, dtype: {"float32": never}[dtype.name])
    def add(k, p, lhs, rhs):
        return lhs + rhs

    @bad.kernel("_plus_scalar", priority=900, short=lambda ctx, dtype: never)
    def plus(k, p, data):
        return data + p.scalar

    plug("bad_short", mxcore_kernels={"cpu": bad})
    x, y = mx.nd.ones((2,)), mx.nd.ones((2,), dtype="float64")
    assert (x + x).asnumpy().tolist() == (y + 1).asnumpy().tolist() == [2, 2]  # the way is looked up behind them
    for call in (lambda: x + x, lambda: y + 1):
        with pytest.raises(MXNetError, match=r"operator .* \[short way\] with .* \(2,\).*: ArithmeticError"):
            call()
    with pytest.raises(KeyError, match=r"operator elemwise_add \[`short`, kernel of bad_short\] with .*: 'float64'"):
        y + y


class Clock(Odd):
    """A device with a clock that cannot tell times."""

    type, type_id, async_ = "clock", 70005, True

    def mark(self, index):
        return [1.0]

    def elapsed(self, begin, end):
        return self.odd["elapsed"](begin)


@pytest.mark.parametrize(
    "elapsed, text",
    [
        (lambda mark: 1 / 0, r"elapsed\(\) raised ZeroDivisionError"),
        (lambda mark: None, "TypeError"),
        (lambda mark: float("nan"), "ValueError"),
        (lambda mark: float("inf"), "OverflowError"),
    ],
)
def test_a_profile_is_not_lost_for_a_device_that_cannot_tell_times(plug, elapsed, text):
    device = Clock()
    plug(mxcore_devices=[device])
    device.odd = {"elapsed": elapsed}
    mx.profiler.set_config(profile_all=True, aggregate_stats=True)
    mx.profiler.set_state("run")
    try:
        (mx.nd.ones(3) + 1).wait_to_read()
        (mx.nd.ones(3, ctx=mx.Context("clock")) * 2).wait_to_read()
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.set_config(profile_all=False, aggregate_stats=False)
    with pytest.warns(mx.base.MXNetWarning, match=f"events are left out .*{text}"):
        told = mx.profiler.dumps(reset=True)
    assert "_plus_scalar" in told


def test_operators_of_plugins_that_are_gone_are_let_go(plug):
    def used(number):
        added = op("bad_op")(lambda k, p, data: data + number)
        plug(f"gone{number}", mxcore_ops=[added])
        mx.nd.bad_op(mx.nd.ones(2))
        mx.sym.bad_op(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,)).forward()
        manager.unregister(f"gone{number}")
        return weakref.ref(added)

    refs = [used(number) for number in range(5)]
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 1  # the last call may still hold its own


def test_a_parameter_is_not_taken_away():
    p = find_op("Activation").parse({"act_type": "relu"})
    with pytest.raises(AttributeError, match="parameter 'act_type' cannot be set to None: all calls"):
        del p.act_type
    assert p.act_type == "relu"


class Queued(Odd):
    """A device with events, that says nothing of how it is waited for otherwise."""

    type, type_id, async_ = "queued", 70006, True

    def record(self, index):
        return "event"

    def finish(self, event):
        self.odd["finish"](event)


def test_a_queue_with_events_is_waited_for(plug):
    device, seen = Queued(), []
    plug(mxcore_devices=[device])
    device.odd = {"finish": seen.append}
    y = mx.nd.ones(2, ctx=mx.Context("queued")) * 2
    seen.clear()
    mx.nd.waitall()
    assert seen == ["event"]
    device.odd = {"finish": lambda event: 1 / 0}
    with pytest.raises(MXNetError, match=r"device 'queued' of .*: finish\(\) raised ZeroDivisionError"):
        mx.nd.waitall()
    device.odd = {"finish": seen.append}
    assert y.asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize(
    "odd, text",
    [
        ({"dtypes": "float32 float64"}, r"dtypes of device 'odd_values' is 'float32 float64'; None or a collection of"),
        ({"dtypes": ["float32"]}, "a collection of numpy.dtype is needed"),
        ({"dtypes": 3}, "a collection of numpy.dtype is needed"),
        ({"fused_from": "x"}, "fused_from of device 'odd_values' is 'x'; a number of elements is needed"),
    ],
)
def test_attributes_of_devices_that_operators_would_stumble_over(plug, odd, text):
    cls = type("OddValues", (Odd,), {"type": "odd_values", "type_id": 70007, **odd})
    with pytest.raises(MXNetError, match=text):
        plug("odd_values_plugin", mxcore_devices=[cls()])


def test_dtypes_that_are_computed_when_they_are_asked_for(plug):
    cls = type("LateDtypes", (Odd,), {"type": "late_dtypes", "type_id": 70008, "dtypes": property(lambda self: "f4")})
    plug("late_dtypes_plugin", mxcore_devices=[cls()])
    with pytest.raises(MXNetError, match=r"late_dtypes.*a collection of numpy.dtype is needed"):
        mx.nd.ones(2, ctx=mx.Context("late_dtypes")) + 1


def with_entries(*entries):
    kernels = KernelSet("cpu")
    kernels.entries.extend(entries)
    return kernels


def with_a_priority(priority):
    kernels = KernelSet("cpu")
    kernels.kernel("relu")(lambda k, p, x: x)
    kernels.entries[0].priority = priority
    return kernels


def with_an_operator(op):
    kernels = with_a_priority(0)
    kernels.entries[0].op = op
    return kernels


class NotTelling(KernelSet):
    entries = property(lambda self: 1 / 0, lambda self, value: None)


@pytest.mark.parametrize(
    "kernels, says",
    [
        (lambda: with_entries(len), "<built-in function len> is no kernel"),
        (lambda: with_entries(None), "None is no kernel"),
        (lambda: with_a_priority("high"), "is no kernel of a name with a number as priority"),
        (lambda: with_a_priority(float("nan")), "is no kernel of a name with a number as priority"),
        (lambda: with_an_operator(["relu"]), "is no kernel of a name with a number as priority"),
        (lambda: NotTelling("cpu"), "their set does not tell them: ZeroDivisionError"),
    ],
)
def test_odd_sets_of_kernels(plug, kernels, says, monkeypatch):
    """The device goes on, whether the set is given or is to be imported."""
    x = mx.nd.array([-1, 2])
    with pytest.raises(MXNetError, match=f"kernels of odd_set for device 'cpu': .*{says}"):
        plug("odd_set", mxcore_kernels={"cpu": kernels()})
    monkeypatch.setitem(sys.modules, "odd_kernels", types.SimpleNamespace(cpu=kernels()))
    plug("late_set", mxcore_kernels={"cpu": "odd_kernels:cpu"})
    with pytest.warns(UserWarning, match=f"kernels of late_set for device 'cpu': .*{says}.*reference bodies are used"):
        assert mx.nd.relu(x).asnumpy().tolist() == [0, 2]
    assert (x + 1).asnumpy().tolist() == [0, 3]
