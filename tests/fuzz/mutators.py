"""Damage to the bytes of a file; all that is chosen comes from a `random.Random`."""

from __future__ import annotations

import gzip
import io
import json
import pickletools
import re
import struct
import zipfile

__all__ = ["mutated"]

#: A repeated token makes a file at most this much longer.
MOST = 1 << 17
_NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    32,
    33,
    127,
    128,
    255,
    256,
    1 << 16,
    2**24,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**40,
    2**59,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
)
_TEXTS = (
    "", "0", "-1", "1", "-0", "1e999", "-1e999", "nan", "inf", "1_0", "0x10", "2147483648", "9223372036854775808",
    str(10**30), "9" * 400, "9" * 5000, "1.5", ".", "-", "-" * 300000, "(" * 5000, "(1," * 3000, "None", "True", "()",
    "[]", "(1, 2)", "\0", "\n", " ", ",", '"', "'", "\U0007a478", "\U00020000", "\u0661", "\u2028", "\ufeff", "\r",
    "\\ud800", "x" * 70000,
)  # fmt: skip
_VALUES = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1.5, -0.0, 1e300, float("nan"), float("inf"), "", "x", "\ud800",
    "\0", "é", "1e999", "-" * 300000, "9" * 5000, "(" * 300, "(1, 2)", "None", [], {}, [[]], [0], [0, 0], [0, 0, 0],
    [-1, 0, 0], [10**30, 0, 0], [0, 10**30], [True, True], {"a": 1}, [1.5], ["x"], "null", "Custom", "_foreach",
    "BatchNorm", "data",
)  # fmt: skip


def mutated(data: bytes, rnd, most: int = 3) -> bytes:
    """The bytes with one to `most` changes."""
    for _ in range(rnd.choice(range(1, most + 1))):
        data = _changed(data, rnd)
    return data


def _changed(data, rnd):
    apt = [f for f in (_gzip, _zip, _json, _pickle) if rnd.random() < 0.7]
    for within in apt:
        found = within(data, rnd)
        if found is not None:
            return found
    return rnd.choice(_BYTES if _is_binary(data) or rnd.random() < 0.3 else _LINES)(data, rnd)


def _is_binary(data):
    return b"\0" in data[:4096] or bool(data[:1] in b"\x80\x89\xff\x1f")


# -- bytes -------------------------------------------------------------------------------------------------------------
def _place(data, rnd):
    return rnd.randrange(len(data)) if data else 0


def _stretch(data, rnd):
    """(begin, end) of a short piece, more often near the beginning, where headers are."""
    begin = _place(data, rnd) if rnd.random() < 0.6 else min(rnd.randrange(128), max(len(data) - 1, 0))
    return begin, min(len(data), begin + rnd.choice((1, 2, 4, 4, 8, 8, 16, 64, 1000)))


def flip(data, rnd):
    found = bytearray(data)
    for _ in range(rnd.choice((1, 1, 2, 8))):
        if found:
            found[_stretch(data, rnd)[0]] ^= 1 << rnd.randrange(8)
    return bytes(found)


def overwrite(data, rnd):
    begin, end = _stretch(data, rnd)
    return (
        data[:begin]
        + rnd.choice((bytes(end - begin), b"\xff" * (end - begin), rnd.randbytes(end - begin)))
        + data[end:]
    )


def number(data, rnd):
    """A number in the place of another: most lengths are multiples of four from the beginning."""
    size, order = rnd.choice((1, 2, 4, 4, 8, 8)), rnd.choice("<<<>")
    begin = _stretch(data, rnd)[0]
    begin -= begin % 4 if rnd.random() < 0.5 else 0
    old = int.from_bytes(data[begin : begin + size], "little" if order == "<" else "big")
    new = rnd.choice((*_NUMBERS, old + 1, old - 1, 2 * old, old // 2, len(data))) % (1 << 8 * size)
    return data[:begin] + struct.pack(order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size], new) + data[begin + size :]


def cut(data, rnd):
    return data[: _place(data, rnd)]


def lengthen(data, rnd):
    return data + rnd.choice((b"\0", bytes(8), bytes(4096), b"\n", b"\xff" * 9, data, data[:100], rnd.randbytes(20)))


def delete(data, rnd):
    begin, end = _stretch(data, rnd)
    return data[:begin] + data[end:]


def double(data, rnd):
    begin, end = _stretch(data, rnd)
    return data[:end] + data[begin:]


def move(data, rnd):
    begin, end = _stretch(data, rnd)
    piece, rest = data[begin:end], data[:begin] + data[end:]
    at = _place(rest, rnd)
    return rest[:at] + piece + rest[at:]


def repeat(data, rnd):
    """A piece of the file many times over."""
    begin, end = _stretch(data, rnd)
    piece = data[begin:end] or b"\0"
    at = rnd.choice((begin, _place(data, rnd), len(data)))
    return data[:at] + piece * rnd.choice((2, 10, 1000, MOST // len(piece))) + data[at:]


_BYTES = (flip, flip, overwrite, number, number, number, cut, lengthen, delete, double, move, repeat)


# -- text --------------------------------------------------------------------------------------------------------------
def word(data, rnd):
    """Something else in the place of a number or a word."""
    found = list(re.finditer(rb"[\w.+-]+", data))
    if not found:
        return flip(data, rnd)
    at, new = rnd.choice(found), rnd.choice(_TEXTS)
    return data[: at.start()] + new.encode("utf-8", "surrogatepass") + data[at.end() :]


def insert(data, rnd):
    at = _place(data, rnd)
    new = rnd.choice(
        (*(t.encode("utf-8", "surrogatepass") for t in _TEXTS), b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\x80")
    )
    return data[:at] + new + data[at:]


def lines(data, rnd):
    """Lines in another order, left out, twice, or joined."""
    found = data.split(b"\n")
    i, j = rnd.randrange(len(found)), rnd.randrange(len(found))
    how = rnd.randrange(4)
    if how == 0:
        found[i], found[j] = found[j], found[i]
    elif how == 1:
        del found[i]
    elif how == 2:
        found[i:i] = [found[j]] * rnd.choice((1, 2, 100))
    else:
        found[i : i + 2] = [b"".join(found[i : i + 2])]
    return b"\n".join(found)


_LINES = (word, word, word, insert, insert, lines, lines, *_BYTES)


# -- what holds something ----------------------------------------------------------------------------------------------
def _gzip(data, rnd):
    if data[:2] != b"\x1f\x8b":
        return None
    try:
        inner = gzip.decompress(data)
    except Exception:
        return None
    return gzip.compress(_changed(inner, rnd), 1, mtime=0)


def _zip(data, rnd):
    if data[:2] != b"PK":
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            members = [(name, z.read(name)) for name in z.namelist()]
    except Exception:
        return None
    if not members:
        return None
    i = rnd.randrange(len(members))
    members[i] = members[i][0], _changed(members[i][1], rnd)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in members:
            z.writestr(name, content)
    return out.getvalue()


def _json(data, rnd):
    """A value of a JSON text replaced, left out, doubled, or exchanged with another."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places, left = [], [tree]
    while left:
        at = left.pop()
        for k, v in at.items() if isinstance(at, dict) else enumerate(at):
            places.append((at, k))
            if isinstance(v, (dict, list)):
                left.append(v)
    if not places:
        return None
    at, k = rnd.choice(places)
    how = rnd.randrange(6)
    if how == 0:
        del at[k]
    elif how == 1:
        other, key = rnd.choice(places)
        at[k] = json.loads(json.dumps(other[key]))
    elif how == 2 and isinstance(at, dict):
        at[
            rnd.choice(
                (
                    "",
                    "\ud800",
                    "axis",
                    "num_args",
                    "name",
                    "op",
                    "inputs",
                    "attrs",
                    "param",
                    "attr",
                    "subgraphs",
                    "__shape__",
                    "__dtype__",
                    "__init__",
                )
            )
        ] = rnd.choice(_VALUES)
    elif how == 3 and isinstance(at, list):
        at.insert(k, json.loads(json.dumps(at[k])))
    else:
        at[k] = rnd.choice(_VALUES)
    text = json.dumps(tree)
    if rnd.random() < 0.02:
        text = text.replace("[]", "[" * 20000 + "]" * 20000, 1)
    return text.encode()


_NAMES = (
    b"cos\nsystem\n", b"cnumpy\ndtype\n", b"c__builtin__\nlist\n", b"c__builtin__\nrange\n",
    b"c__builtin__\nbytearray\n", b"cnumpy\nndarray\n", b"c_codecs\nencode\n",
    b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy.core.numeric\n_frombuffer\n",
    b"cmxnet.ndarray.ndarray\nNDArray\n", b"ccollections\ndefaultdict\n", b"cmxnet.optimizer.optimizer\nAdam\n",
    b"cmxnet.lr_scheduler\nFactorScheduler\n", b"ccopy_reg\n_reconstructor\n", b"c__builtin__\nobject\n",
    b"ccollections\ndeque\n",
)  # fmt: skip
_CODES = (
    b"0", b"2", b"(", b")", b"N", b"]", b"}", b"\x8f", b"t", b"l", b"d", b"R", b"b", b"a", b"e", b"s", b"u", b"\x81",
    b"\x85", b"\x86", b"\x87", b"\x88", b"\x90", b"\x91", b"\x93", b"\x94", b"h\0", b"q\0", b"r\xff\xff\xff\xff",
    b"j\0\0\0\0", b"K\xff", b"M\xff\xff", b"J\xff\xff\xff\xff", b"L" + b"9" * 5000 + b"\n", b"\x8b\xff\xff\xff\x7f",
    b"I01\n", b"F1e999\n", b"C\0", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"X\xff\xff\xff\xff", b"\x8c\x01x",
    b"\x8a\x09" + b"\xff" * 8 + b"\x7f", b"\x97", b"P1\n", b"Q", b"o", b"i__builtin__\nlist\n",
)  # fmt: skip


def _pickle(data, rnd):
    """An instruction of a pickle left out, doubled, moved, put in, or given another argument."""
    try:
        starts = [at for _, _, at in pickletools.genops(data)]
    except Exception:
        return None
    if len(starts) < 3:
        return None
    parts = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)])]
    i, j = rnd.randrange(len(parts)), rnd.randrange(len(parts))
    how = rnd.randrange(6)
    if how == 0:
        del parts[i]
    elif how == 1:
        parts.insert(i, parts[j])
    elif how == 2:
        parts[i] = parts[j]
    elif how == 3:
        parts.insert(i, rnd.choice(_CODES))
    elif how == 4:
        parts.insert(i, rnd.choice(_NAMES))
    else:
        parts[i] = parts[i][:1] + rnd.choice(_BYTES)(parts[i][1:], rnd)
    return b"".join(parts)
