"""Parameters and structure of a block on disk."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ..._io_files import checked, read_text, write_atomic
from ..._json import decode, encode
from ...base import error
from ...drafts import read_pair, together
from ...ndarray.files import without_kinds
from ...urls import appended
from ..parameter.pairing import likely_pairs
from ..parameter.parameter_dict import brief, load_matching
from .depth import explained

if TYPE_CHECKING:
    from ...context import Context
    from . import Block

__all__ = ["load", "load_parameters", "save", "save_parameters"]


def save_parameters(block: Block, filename: str, deduplicate: bool) -> None:
    """Write the parameters under their structural names, e.g. ``features.0.weight``."""
    params = block._collect_params_with_prefix()
    if deduplicate:
        # Of several names of one parameter the last stays, at the place of the first.
        last = {}
        for name, p in params.items():
            last[p] = name
        params = {name: p for p, name in last.items()}
    nd.save(filename, {name: p._reduce() for name, p in params.items()})


def load_parameters(
    block: Block,
    filename: str,
    ctx: Context | Sequence[Context] | None,
    allow_missing: bool,
    ignore_extra: bool,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Read parameters by structural names, or by full names if that is what the file has."""
    loaded = nd.load(filename)
    params = block._collect_params_with_prefix()
    if not loaded and not params:
        return
    if not isinstance(loaded, dict):
        raise error(ValueError, f"{filename} holds {len(loaded)} arrays without names; parameters are loaded by name.")
    if not any("." in name or name in params for name in loaded):
        # Full names, with the block's prefix or without it: files of old versions and exported models.
        full = block.collect_params()
        bare = without_kinds(loaded, filename)
        prefix = "" if any(name in bare for name in full) else block.prefix
        full.load(filename, ctx, allow_missing, ignore_extra, prefix, cast_dtype, dtype_source)
        return

    extra = [name for name in loaded if name not in params]
    if not allow_missing:
        # A shared parameter may stand in the file under one of its names only.
        present = {params[name] for name in loaded if name in params}
        missing = [name for name, p in params.items() if p not in present]
        if missing:
            strangers = f" Unknown to the network: {brief(extra)}." if extra else ""
            raise error(
                AssertionError,
                f"Parameter {brief(missing)} is missing in file '{filename}', which contains parameters: "
                f"{brief(loaded)}.{strangers} Set allow_missing=True to ignore missing parameters."
                + likely_pairs(missing, extra),
            )
    if extra and not ignore_extra:
        raise error(
            ValueError,
            f"Parameter {brief(extra)} loaded from file '{filename}' is not present in ParameterDict, which "
            f"contains parameters {brief(params)}. Set ignore_extra=True to ignore."
            + likely_pairs([name for name in params if name not in loaded], extra),
        )
    known = {name: params[name] for name in loaded if name in params}
    load_matching(known, loaded, f"file '{filename}'", ctx, cast_dtype, dtype_source)


def _describe(block: Any, numbers: Iterator[int]) -> dict[str, Any]:
    """One block for the structure file: its name, whether it is hybridised, its children."""
    entry: dict[str, Any] = {
        "orig_name": block.name,
        "hybridized": False,  # said only of one whose graph is here, too
        "children": {},
    }
    if getattr(block, "_active", False) and (traced := block._graph_now()) is not None:
        entry.update(hybridized=True, in_format=traced.in_format, out_format=traced.out_format)
        entry.update(inputs=[i.tojson() for i in traced.inputs], symbol=traced.out.tojson())
    with explained(block):
        for attribute, child in block._children.items():
            entry["children"][child.name] = attribute
            number = next(numbers)  # before those of its own children
            entry[f"{type(child).__name__.lower()}{number}"] = _describe(child, numbers)
    return entry


def save(block: Block, prefix: str) -> None:
    """Write ``prefix-model.params`` and ``prefix-model.json``."""
    prefix = checked(prefix, "the prefix of a block's files", empty=True)
    numbers = itertools.count()
    structure = {f"{type(block).__name__.lower()}{next(numbers)}": _describe(block, numbers)}
    with explained(block):
        text = json.dumps(structure, ensure_ascii=False)
    params, graph = (appended(prefix, ending) for ending in ("-model.params", "-model.json"))
    with together(params, graph):
        save_parameters(block, params, False)
        write_atomic(graph, encode(text, "the structure of the block"))


_FIELDS = {"orig_name", "hybridized", "children", "in_format", "out_format", "inputs", "symbol"}


def _restore(block: Block, entry: Any, path: str, filename: str) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get("children", {}), dict):
        raise error(
            ValueError,
            f"{filename}: block {path or 'at the top'} must be an object, "
            "its 'children' another one; the file is damaged",
        )
    parts = [value for key, value in entry.items() if key not in _FIELDS and isinstance(value, dict)]
    names = entry.get("children", {})
    if len(parts) != len(block._children) or not all(isinstance(n, str) for n in names.values()):
        raise error(
            ValueError,
            f"{filename}: block {path or 'at the top'} has children {brief(list(names.values()))} in the file, "
            f"but {brief(block._children)} in the network.",
        )
    # Children are matched by position, and take over the names under which the file has their parameters. One child
    # under two names stands in the file twice, but with one entry among the names.
    if len(set(names.values())) == len(parts):
        found = dict(zip(names.values(), block._children.values()))
        block._children.clear()
        block._children.update(found)
    with explained(block):
        for part, (name, child) in zip(parts, block._children.items()):
            _restore(child, part, f"{path}.{name}" if path else name, filename)
    if entry.get("hybridized") and hasattr(block, "_active"):
        block._active = True


def load(block: Block, prefix: str) -> None:
    """Read what `save` wrote into a block of the same structure."""
    prefix = checked(prefix, "the prefix of a block's files", empty=True)
    filename, arrays = appended(prefix, "-model.json"), appended(prefix, "-model.params")

    def read(where: str) -> None:
        structure = decode(read_text(where), filename)
        if not isinstance(structure, dict) or len(structure) != 1:
            raise error(
                ValueError, f"{filename} is no structure file of a block: expected an object with the block by its name"
            )
        (entry,) = structure.values()
        _restore(block, entry, "", filename)
        load_parameters(block, arrays, None, False, False, False, "current")

    read_pair(filename, arrays, read)
