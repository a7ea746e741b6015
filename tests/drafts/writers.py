"""Every writer of the library as a pair of functions: write a generation of a file, and tell which one is there.

Run as a script, it is the process in which children write and are killed: it imports once, and forks for each.
"""

import functools
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import types

import numpy as np

RECORDS = 40


def payload(generation, i):
    return b"%d:%d;" % (generation, i) * (generation % 5 * 20 + 1)


def one(found):
    """The one generation that all parts are of."""
    [generation] = set(found)
    return generation


def _recordio():
    from mxcore_io_rec import make_index, recordio

    return recordio, make_index


def write_records(folder, generation):
    record = _recordio()[0].MXRecordIO(f"{folder}/a.rec", "w")
    for i in range(RECORDS):
        record.write(payload(generation, i))
    record.close()


def read_records(folder):
    found = list(_recordio()[0].MXRecordIO(f"{folder}/a.rec", "r"))
    generation = int(found[0].partition(b":")[0])
    assert found == [payload(generation, i) for i in range(RECORDS)]
    return generation


def write_pair(folder, generation):
    """All records are equally long, and every generation has other keys: a wrong index would fit, and lie."""
    record = _recordio()[0].MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w")
    for i in range(RECORDS):
        record.write_idx((i + generation) % RECORDS, b"%08d:%08d" % (generation, (i + generation) % RECORDS))
    record.close()


def read_pair(folder):
    record = _recordio()[0].MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "r")
    found = [record.read_idx(i).split(b":") for i in range(RECORDS)]
    assert [int(key) for _, key in found] == list(range(RECORDS))
    return one(int(generation) for generation, _ in found)


def write_index(folder, generation):
    if not os.path.exists(f"{folder}/a.rec"):
        write_records(folder, 1)
    _recordio()[1](f"{folder}/a.rec", f"{folder}/a.idx")


def read_index(folder):
    recordio, _ = _recordio()
    record = recordio.MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "r")
    assert [record.read_idx(i) for i in range(RECORDS)] == [payload(1, i) for i in range(RECORDS)]
    return 1


def write_list(folder, generation):
    """``im2rec``, of files that are passed through."""
    import argparse

    from mxcore_io_rec import im2rec

    names = [f"{generation % 3}-{i}.png" for i in range(RECORDS)]
    for name in names:
        path = f"{folder}/{name}"
        # A child that was killed may have left it empty.
        if not os.path.exists(path) or os.path.getsize(path) < len(name):
            with open(path, "wb") as file:
                file.write(name.encode())
    parser = argparse.ArgumentParser()
    im2rec.add_arguments(parser)
    with open(f"{folder}/a.lst", "w") as file:
        file.writelines(f"{i}\t{generation % 3}\t{name}\n" for i, name in enumerate(names))
    im2rec.make_record(f"{folder}/a.lst", parser.parse_args([f"{folder}/a", folder, "--pass-through"]))


def read_list(folder):
    recordio, _ = _recordio()
    record = recordio.MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "r")
    found = [recordio.unpack(record.read_idx(i)) for i in range(RECORDS)]
    assert [data for _, data in found] == [b"%d-%d.png" % (header.label, i) for i, (header, _) in enumerate(found)]
    return one(header.label for header, _ in found)


def write_arrays(folder, generation):
    import mxcore as mx

    mx.nd.save(f"{folder}/a.params", {f"w{i}": mx.nd.array(np.full(2000, generation)) for i in range(9)})


def read_arrays(folder):
    import mxcore as mx

    found = mx.nd.load(f"{folder}/a.params")
    assert len(found) == 9
    return one(v for a in found.values() for v in set(a.asnumpy().tolist()))


def write_checkpoint(folder, generation):
    import mxcore as mx

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=generation, name="fc")
    mx.model.save_checkpoint(f"{folder}/a", 1, net, {"fc_bias": mx.nd.ones((generation,))}, {})


def read_checkpoint(folder):
    import mxcore as mx

    net, arg, _ = mx.model.load_checkpoint(f"{folder}/a", 1)
    return one((arg["fc_bias"].shape[0], int(net.attr_dict()["fc"]["num_hidden"])))


@functools.cache
def _module():
    """A bound module whose weights and momenta a generation fills."""
    import mxcore as mx

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (1, 3))])
    module.init_params()
    module.init_optimizer(kvstore=None, optimizer_params={"momentum": 0.9})
    return module


def _states(generation):
    import mxcore as mx

    return {i: mx.nd.ones((2,)) * generation for i in range(2)}


def _read_states(path):
    import mxcore as mx

    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    updater.load(path)
    return {v for a in updater.states.values() for v in a.asnumpy().tolist()}


def write_module(folder, generation):
    import mxcore as mx

    module = _module()
    module.init_params(mx.init.Constant(generation), force_init=True)
    module._updater.states = _states(generation)
    module.save_checkpoint(f"{folder}/a", 1, save_optimizer_states=True)


def read_module(folder):
    import mxcore as mx

    _, arg, _ = mx.model.load_checkpoint(f"{folder}/a", 1)
    return one({*arg["fc_weight"].asnumpy().ravel().tolist(), *_read_states(f"{folder}/a-0001.states")})


def write_buckets(folder, generation):
    import mxcore as mx

    def graph(key):
        return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=generation, name="fc"), ("data",), None

    module = mx.mod.BucketingModule(graph, default_bucket_key=3)
    module.bind([("data", (1, 3))])
    module.init_params()
    module.switch_bucket(4, [("data", (1, 3))])
    module.save_checkpoint(f"{folder}/a", 1)


def read_buckets(folder):
    import mxcore as mx

    module = mx.mod.BucketingModule.load(
        f"{folder}/a", 1, lambda key: (mx.sym.Variable("data"), ("data",), None), default_bucket_key=3
    )
    found = {key: bucket.symbol.attr_dict()["fc"]["num_hidden"] for key, bucket in module._buckets.items()}
    generation = one({*map(int, found.values()), len(module._curr_module._arg_params["fc_bias"])})
    assert {*found} == {3, 4}
    return generation


def _block(generation):
    import mxcore as mx

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=3))
    net.initialize(mx.init.Constant(generation))
    net.hybridize(generation % 2 == 1)
    net(mx.nd.ones((1, 3)))  # of one that has no graph the file does not say that it is hybridised
    return net


def write_block(folder, generation):
    _block(generation).save(f"{folder}/a")


def read_block(folder):
    net = _block(2)
    net.load(f"{folder}/a")
    generation = one(net[0].weight.data().asnumpy().ravel().tolist())
    assert net._active == (generation % 2 == 1)
    return generation


def write_best(folder, generation):
    """The best checkpoint of an Estimator."""
    import mxcore as mx

    net = _block(generation)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, kvstore=None)
    trainer._prepare()
    trainer._updaters[0].states = _states(generation)
    handler = mx.gluon.contrib.estimator.CheckpointHandler(folder, "a")
    handler._save_params_and_trainer(types.SimpleNamespace(net=net, trainer=trainer), "a-best")


def read_best(folder):
    net = _block(2)
    net.load_parameters(f"{folder}/a-best.params")
    return one({*net[0].weight.data().asnumpy().ravel().tolist(), *_read_states(f"{folder}/a-best.states")})


def _run(folder):
    """As much of a run of ``mxcore train`` as its checkpoints need."""
    args = types.SimpleNamespace(output=pathlib.Path(folder), network="a", api="gluon", num_classes=2)
    images = types.SimpleNamespace(state_dict=dict)
    return types.SimpleNamespace(args=args, epoch=1, shape=(1,), data=types.SimpleNamespace(train=images))


def write_train(folder, generation):
    import mxcore as mx
    from mxcore.cli.train import checkpoint
    from mxcore.drafts import atomic_writer

    def save(prefix, epoch):
        mx.nd.save(f"{prefix}-{epoch:04d}.params", mx.nd.ones((2,)) * generation)
        updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
        updater.states = _states(generation)
        with atomic_writer(f"{prefix}-{epoch:04d}.states") as file:
            file.write(updater.get_states())

    run = _run(folder)
    run.learner, run.history = types.SimpleNamespace(save=save), [{"epoch": 1, "loss": generation}]
    checkpoint.save(run)


def read_train(folder):
    import mxcore as mx
    from mxcore.cli.train import checkpoint

    note = pathlib.Path(checkpoint.last(_run(folder)))
    found = {*_read_states(note.with_suffix(".states")), json.loads(note.read_text())["history"][0]["loss"]}
    return one(found | {*mx.nd.load(str(note.with_suffix(".params")))[0].asnumpy().tolist()})


WRITERS = {
    "records": (write_records, read_records),
    "pair": (write_pair, read_pair),
    "index": (write_index, read_index),
    "im2rec": (write_list, read_list),
    "arrays": (write_arrays, read_arrays),
    "checkpoint": (write_checkpoint, read_checkpoint),
    "module": (write_module, read_module),
    "buckets": (write_buckets, read_buckets),
    "block": (write_block, read_block),
    "best": (write_best, read_best),
    "train": (write_train, read_train),
}


def in_child(work):
    """Run a function in a forked child, and return the child's number."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def finished(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def drafts(folder):
    return [name for name in os.listdir(folder) if name.startswith(".mxcore-")]


def check(name, folder, before, after):
    """What must hold after a kill: a whole file, and after the next write no draft."""
    write, read = WRITERS[name]
    left = len(drafts(folder))
    found = read(folder)
    assert before is None or found in (before, *after) or name in ("im2rec", "index"), (found, before, after)
    assert finished(in_child(lambda: write(folder, 7))) == 0
    assert read(folder) == 7 or name in ("im2rec", "index")
    assert drafts(folder) == [], drafts(folder)
    return left


def at_random(name, folder, seed, times):
    """Kill a child that writes one generation after the other, at random moments."""
    write, _ = WRITERS[name]
    rng, left = random.Random(seed), 0

    def forever():
        for generation in range(8, 1 << 20):
            write(folder, generation % 200 + 1)

    finished(in_child(lambda: write(folder, 7)))
    for _ in range(times):
        pid = in_child(forever)
        time.sleep(rng.random() ** 2 * 0.06)
        os.kill(pid, signal.SIGKILL)
        assert finished(pid) == -signal.SIGKILL
        left += check(name, folder, None, ())
    return left


def dying(step, work):
    """Work, and kill this process before or after one of the calls to the system that it is made of."""
    import fcntl

    calls = [(os, "open"), (os, "fsync"), (os, "replace"), (os, "unlink"), (fcntl, "flock")]
    count = 0

    def counted(call):
        def stepped(*args, **kwargs):
            nonlocal count
            for part in (lambda: None, lambda: call(*args, **kwargs)):
                out = part()
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
            return out

        return stepped

    for module, call in calls:
        setattr(module, call, counted(getattr(module, call)))
    work()


def at_every_step(name, folder):
    """Kill a child before and after each call to the system that a write is made of."""
    write, _ = WRITERS[name]
    finished(in_child(lambda: write(folder, 7)))
    left = kills = 0
    while finished(in_child(lambda step=kills: dying(step, lambda: write(folder, 8)))) == -signal.SIGKILL:
        left += check(name, folder, 7, (8,))
        kills += 1
    return {"kills": kills, "left": left}


def _epochs(folder, api):
    """A run of ``mxcore train`` whose arrays, states and losses are the number of the epoch."""
    import mxcore as mx
    from mxcore.drafts import atomic_writer

    run = _run(folder)

    def save(prefix, epoch):
        arrays = {"w": mx.nd.ones((2,)) * epoch}
        if api == "module":
            mx.model.save_checkpoint(str(prefix), epoch, mx.sym.Variable(f"w{epoch}"), arrays, {})
        else:
            mx.nd.save(f"{prefix}-{epoch:04d}.params", arrays)
        with atomic_writer(f"{prefix}-{epoch:04d}.states") as file:
            file.write(b"%d" % epoch)

    def load(prefix, epoch):
        (value,) = {v for a in mx.nd.load(f"{prefix}-{epoch:04d}.params").values() for v in a.asnumpy().tolist()}
        states = pathlib.Path(f"{prefix}-{epoch:04d}.states").read_bytes()
        assert (value, states) == (epoch, b"%d" % epoch)

    run.epoch, run.history = 0, []
    run.args.api = api
    run.learner = types.SimpleNamespace(save=save, load=load)
    run.workers = types.SimpleNamespace(first=True, rank=0, of_the_first=lambda data: data)
    run.data.train.load_state_dict = lambda state: None
    return run


def save_next(folder, api):
    """Resume, and train one epoch more."""
    from mxcore.cli.train import checkpoint

    run = _epochs(folder, api)
    checkpoint.load(run)
    assert [entry["epoch"] for entry in run.history] == [*range(1, run.epoch + 1)]
    run.epoch += 1
    run.history.append({"epoch": run.epoch, "loss": float(run.epoch)})
    checkpoint.save(run)


def check_resumed(folder, api, before):
    """What must hold after the checkpoint behind `before` others was killed: nothing whole is missed, or left."""
    from mxcore.cli.train import checkpoint

    placed = os.path.exists(f"{folder}/a-{before + 1:04d}.params")
    run = _epochs(folder, api)
    found = checkpoint.load(run)
    assert run.epoch == before + placed and found == (run.epoch > 0), (run.epoch, before, os.listdir(folder))
    kinds = [] if run.epoch == 0 else [f"a-{run.epoch:04d}{kind}" for kind in checkpoint.KINDS]
    visible = {n for n in os.listdir(folder) if n[0] != "."} - {"a-symbol.json"}
    assert visible == {*kinds}, visible
    assert finished(in_child(lambda: save_next(folder, api))) == 0
    names = {f"a-{run.epoch + 1:04d}{kind}" for kind in checkpoint.KINDS}
    assert {*os.listdir(folder)} == names | ({"a-symbol.json"} if api == "module" else set()), os.listdir(folder)
    return placed


def at_every_checkpoint(api, folder):
    """Kill a child at each step of its first, second and third checkpoint."""
    kills = placed = 0
    for before in range(3):
        step = 0
        while True:
            for name in os.listdir(folder):
                os.unlink(f"{folder}/{name}")
            for _ in range(before):
                assert finished(in_child(lambda: save_next(folder, api))) == 0
            if finished(in_child(lambda step=step: dying(step, lambda: save_next(folder, api)))) == 0:
                break
            placed += check_resumed(folder, api, before)
            step += 1
        kills += step
    return {"kills": kills, "placed": placed}


if __name__ == "__main__":
    what, which, where, *rest = sys.argv[1:]
    if which == "im2rec":  # whose progress bar has a lock for all children: one that is killed would keep it
        import threading

        from tqdm import tqdm

        tqdm.set_lock(threading.RLock())
    with tempfile.TemporaryDirectory() as elsewhere:  # what is imported and made once need not be in every child
        if what == "resume":
            save_next(elsewhere, which)
        else:
            WRITERS[which][0](elsewhere, 7)
            WRITERS[which][1](elsewhere)
    if what == "resume":
        found = at_every_checkpoint(which, where)
    else:
        found = at_every_step(which, where) if what == "steps" else at_random(which, where, *map(int, rest))
    print(json.dumps(found))
