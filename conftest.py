"""The option ``pytest --benchmark``: run the benchmarks instead of the tests, and print one table."""

from pathlib import Path

BENCHMARKS = Path(__file__).parent / "benchmarks"


def pytest_addoption(parser):
    parser.addoption(
        "--benchmark",
        action="store_true",
        help="run benchmarks/ on every device that is present, and print one table; `-m 'not slow'` leaves the long ones out",
    )


def pytest_configure(config):
    if not config.option.benchmark:
        return
    given = config.invocation_params.args
    if config.args_source is not config.ArgsSource.ARGS:
        config.args[:] = [str(BENCHMARKS)]
    if not any(a.startswith("-m") for a in given):
        config.option.markexpr = ""  # the tests' default leaves slow ones out
    config.option.benchmark_quiet = True  # our table takes the place of pytest-benchmark's


def pytest_ignore_collect(collection_path, config):
    if BENCHMARKS in (collection_path, *collection_path.parents) and not config.option.benchmark:
        return True
    return None
