"""Damage files of every format and read them: ``python -m tests.fuzz --seconds 100``.

Each case follows from the seed that is printed and its number, so that a failure can be had again with ``--case
SEED/NUMBER``.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from .child import damaged, put
from .formats import FORMATS
from .parent import run


def main() -> int:
    """Run as the options say; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=100, help="how long in all")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="any text; random unless told")
    parser.add_argument("--formats", default=",".join(FORMATS), help="names with commas between; all unless told")
    parser.add_argument("--limit", type=float, default=20, help="seconds that one case may take")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for the files of failures")
    parser.add_argument("--case", help="read one case again, in this process")
    args = parser.parse_args()
    names = args.formats.split(",")
    unknown = [n for n in names if n not in FORMATS]
    if unknown:
        parser.error(f"no format is named {unknown[0]!r}; there are {', '.join(FORMATS)}")
    if args.case:
        with tempfile.TemporaryDirectory() as folder:
            put(Path(folder), damaged(names[0], args.case, FORMATS[names[0]].samples()))
            FORMATS[names[0]].read(Path(folder))
        return 0
    print(f"seed {args.seed}", flush=True)
    report = run(names, args.seed, seconds=args.seconds, limit=args.limit, keep=args.keep)
    for name, counts in report.counts.items():
        print(
            f"{name:16}{sum(counts.values()):8} cases{counts['read']:8} read{counts['refused']:8} "
            f"refused{counts['failed']:6} failed"
        )
    for f in report.failures.values():
        print(f"{f.name}, {f.seed}: {f.kind} {f.at}, {f.count} times")
    print(f"seed {args.seed}: {report.cases} cases, {len(report.failures)} kinds of failure")
    return bool(report.failures)


if __name__ == "__main__":
    sys.exit(main())
