"""What reference bodies may use of a device's arrays: names, signatures, and what of NumPy's meaning counts.

One table, `CONTRACT`. The strict namespace of the conformance kit refuses whatever it does not list,
:class:`ArrayAPINamespace` gives whatever it lists, and docs/arrays.md prints it.
"""

from __future__ import annotations

import inspect
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

__all__ = [
    "ATTRIBUTES",
    "CONSTANTS",
    "CONTRACT",
    "Entry",
    "METHODS",
    "PREAMBLE",
    "entries",
    "lacking",
    "page",
    "present",
]

#: Types, and numbers.
CONSTANTS = frozenset(
    """
    float16 float32 float64 uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool_ dtype pi inf nan newaxis e
""".split()
)

#: Attributes of arrays.
ATTRIBUTES = frozenset("shape dtype ndim size T itemsize nbytes".split())

#: Functions of the namespace (``linalg.``, ``fft.`` and ``add.at`` too) and, below "Methods", of arrays:
#: ``name(signature)  meaning``, a line each.
CONTRACT = """
# Creation
arange(start, stop=None, step=1, dtype=None)  without a dtype: int64 of whole numbers, float64 of others
array(a, dtype=None)  a new array
asarray(a, dtype=None)  numbers, lists and NumPy arrays are copied to the device; the array itself if it is one of that dtype
ascontiguousarray(a, dtype=None)  in C order; the array itself if it is
empty(shape, dtype=float64)
empty_like(a, dtype=None)
eye(N, M=None, k=0, dtype=float64)
full(shape, fill_value, dtype=None)  without a dtype that of the number
full_like(a, fill_value, dtype=None)
indices(dimensions, dtype=int64)
linspace(start, stop, num=50, endpoint=True, dtype=None)  between two numbers
meshgrid(*xi, indexing='xy')
ones(shape, dtype=float64)
ones_like(a, dtype=None)
tri(N, M=None, k=0, dtype=float64)
zeros(shape, dtype=float64)
zeros_like(a, dtype=None)

# Elementwise: NumPy's broadcasting and promotion; `out` is an array of the result's dtype, or of one that it may be cast to
abs(x, out=None)
absolute(x, out=None)
add(x1, x2, out=None)
arccos(x, out=None)
arccosh(x, out=None)
arcsin(x, out=None)
arcsinh(x, out=None)
arctan(x, out=None)
arctan2(x1, x2, out=None)
arctanh(x, out=None)
bitwise_and(x1, x2, out=None)
bitwise_or(x1, x2, out=None)
bitwise_xor(x1, x2, out=None)
cbrt(x, out=None)
ceil(x, out=None)
cos(x, out=None)
cosh(x, out=None)
degrees(x, out=None)
divide(x1, x2, out=None)
equal(x1, x2, out=None)
exp(x, out=None)
exp2(x, out=None)
expm1(x, out=None)
floor(x, out=None)
floor_divide(x1, x2, out=None)  of integers by zero: any number, no error
fmax(x1, x2, out=None)  the other number beside a NaN
fmin(x1, x2, out=None)
fmod(x1, x2, out=None)  has the sign of x1
greater(x1, x2, out=None)
greater_equal(x1, x2, out=None)
hypot(x1, x2, out=None)
invert(x, out=None)
isfinite(x, out=None)
isinf(x, out=None)
isnan(x, out=None)
left_shift(x1, x2, out=None)  by less than the width
less(x1, x2, out=None)
less_equal(x1, x2, out=None)
log(x, out=None)
log10(x, out=None)
log1p(x, out=None)
log2(x, out=None)
logical_and(x1, x2, out=None)
logical_not(x, out=None)
logical_or(x1, x2, out=None)
logical_xor(x1, x2, out=None)
maximum(x1, x2, out=None)  NaN beside a NaN
minimum(x1, x2, out=None)
mod(x1, x2, out=None)  has the sign of x2; of integers by zero: any number, no error
multiply(x1, x2, out=None)
negative(x, out=None)
not_equal(x1, x2, out=None)
power(x1, x2, out=None)
radians(x, out=None)
reciprocal(x, out=None)
right_shift(x1, x2, out=None)  by less than the width
rint(x, out=None)  halves to even
sign(x, out=None)  of a NaN, NaN or 0
sin(x, out=None)
sinh(x, out=None)
sqrt(x, out=None)
square(x, out=None)
subtract(x1, x2, out=None)
tan(x, out=None)
tanh(x, out=None)
true_divide(x1, x2, out=None)
trunc(x, out=None)
add.at(a, indices, b)  adds b[i] to a[indices[i]], in place; an index that comes often adds often
clip(a, a_min, a_max)  limits are numbers, arrays or None; a NaN stays
isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)
nan_to_num(x, nan=0.0, posinf=None, neginf=None)
where(condition, x, y)

# Reductions: `axis` is None, an int or a tuple; sums of small integers are int64; of nothing 0, 1, True or an error
all(a, axis=None, keepdims=False)
amax(a, axis=None, keepdims=False)
amin(a, axis=None, keepdims=False)
any(a, axis=None, keepdims=False)
argmax(a, axis=None)  the first of equal ones; `axis` is an int or None
argmin(a, axis=None)
count_nonzero(a, axis=None)
cumprod(a, axis=None, dtype=None)
cumsum(a, axis=None, dtype=None)  `axis` is an int, or None of the flat array
max(a, axis=None, keepdims=False)  NaN if one is
mean(a, axis=None, dtype=None, keepdims=False)
min(a, axis=None, keepdims=False)
nanprod(a, axis=None, dtype=None, keepdims=False)
nansum(a, axis=None, dtype=None, keepdims=False)
prod(a, axis=None, dtype=None, keepdims=False)
std(a, axis=None, ddof=0, keepdims=False)
sum(a, axis=None, dtype=None, keepdims=False)
var(a, axis=None, ddof=0, keepdims=False)

# Shapes: a view where the memory allows one, or a copy; nobody writes through the result unless it is a reshaped contiguous array
atleast_1d(a)
array_split(a, sections, axis=0)
broadcast_arrays(*args)
broadcast_to(a, shape)
concatenate(arrays, axis=0)  `axis` is an int
diag(v, k=0)
diagonal(a, offset=0, axis1=0, axis2=1)
diff(a, n=1, axis=-1)
expand_dims(a, axis)  `axis` is an int or a tuple
flip(a, axis=None)
moveaxis(a, source, destination)
pad(array, pad_width, mode='constant', constant_values=0)  modes: constant, edge, reflect, symmetric, wrap; one pair for each dimension, or one
ravel(a)
repeat(a, repeats, axis=None)  `repeats` is a number, or an array of one for each
reshape(a, shape)
roll(a, shift, axis=None)  `shift` and `axis` are numbers, or tuples
split(a, sections, axis=0)  `sections` is a number, or a list of places
squeeze(a, axis=None)
stack(arrays, axis=0)
swapaxes(a, axis1, axis2)
tile(a, reps)
transpose(a, axes=None)
tril(m, k=0)
triu(m, k=0)

# Order and counts
argpartition(a, kth, axis=-1)  sorted is partitioned
argsort(a, axis=-1, kind=None)  kind='stable', or any order of equal ones; NaN last
bincount(x, weights=None, minlength=0)
flatnonzero(a)
histogram(a, bins)  `bins` are edges, ascending; numbers and edges
nonzero(a)
partition(a, kth, axis=-1)
searchsorted(a, v, side='left')
sort(a, axis=-1)
unique(ar, return_index=False, return_inverse=False, return_counts=False)  of the flat array, ascending; the first index of each

# Indices: negative ones count from the end; those out of range are the caller's mistake
put_along_axis(arr, indices, values, axis)  in place; of an index that comes twice, either value
ravel_multi_index(multi_index, dims)
take(a, indices, axis=None)
take_along_axis(arr, indices, axis)  other dimensions broadcast
unravel_index(indices, shape)

# Products
dot(a, b)
matmul(x1, x2, out=None)
outer(a, b)
tensordot(a, b, axes=2)

# Types
can_cast(from_, to)  of dtypes
result_type(*arrays_and_dtypes)

# Linear algebra and Fourier transforms: float32 and float64, stacks of matrices; what has no result raises numpy.linalg.LinAlgError or gives NaN
linalg.cholesky(a)
linalg.det(a)
linalg.eigh(a)  the pair of values, ascending, and vectors
linalg.eigvalsh(a)
linalg.inv(a)
linalg.norm(x, axis=None, keepdims=False)  the root of the sum of squares, over an axis or all
linalg.qr(a)  the pair of the reduced form
linalg.slogdet(a)
linalg.solve(a, b)  `b` has as many dimensions as `a`
linalg.svd(a, full_matrices=True)
fft.fft(a)  along the last axis; complex
fft.ifft(a)

# Methods
all(axis=None, keepdims=False)
any(axis=None, keepdims=False)
argmax(axis=None)
argmin(axis=None)
argsort(axis=-1, kind=None)
astype(dtype, copy=True)  from floats to integers towards zero
clip(a_min, a_max)
conj()
copy()  contiguous
cumsum(axis=None, dtype=None)
diagonal(offset=0, axis1=0, axis2=1)
dot(b)
fill(value)
flatten()
item()  of one element; waits for it
max(axis=None, keepdims=False)
mean(axis=None, dtype=None, keepdims=False)
min(axis=None, keepdims=False)
nonzero()
prod(axis=None, dtype=None, keepdims=False)
ravel()
repeat(repeats, axis=None)
reshape(*shape)  the shape as a tuple too; one -1
round(decimals=0)
squeeze(axis=None)
sum(axis=None, dtype=None, keepdims=False)
swapaxes(axis1, axis2)
take(indices, axis=None)
transpose(*axes)
view(dtype)  complex numbers as pairs of floats and back, uint64 as two uint32 (the lower one first), integers of one size as each other
"""

#: What a table of names cannot say.
PREAMBLE = """
`a[key]` and `a[key] = v` take what NumPy's take: integers, slices (negative steps too, which may give a copy), `...`,
`None`, and arrays of integers or booleans beside them. Without arrays among the keys and with steps above zero,
`a[key]` is a view: who writes to it writes to `a`. `a[key] = v` casts to the dtype of `a` and broadcasts; `v` does not
overlap what is written unless it is the same memory. Operators (`+ - * / // % ** & | ^ << >> @ ~ - abs`, comparisons,
and those that assign) are the functions of the same meaning. Python's numbers are weak in promotion, NumPy's scalars
are not, and NumPy's arrays are refused: a body that has host data says so, with `asarray`. An array has no truth value,
no length and no iteration, and does not become a NumPy array; `item()` waits for one number.
"""


class Entry(NamedTuple):
    """One row of the contract."""

    section: str
    name: str
    signature: inspect.Signature
    meaning: str

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.name}{self.signature}"


class _Name:
    """A default that is a name of the namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: Names of the methods of arrays.
METHODS = frozenset(line.partition("(")[0] for line in CONTRACT.partition("# Methods")[2].splitlines() if line)


@cache
def entries() -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The functions, and the methods of arrays: name -> entry."""
    functions: dict[str, Entry] = {}
    methods: dict[str, Entry] = {}
    names: dict[str, Any] = {n: _Name(n) for n in CONSTANTS}
    section = ""
    for line in filter(None, CONTRACT.splitlines()):
        if line.startswith("# "):
            section = line[2:]
            continue
        text, _, meaning = line.partition("  ")
        name, _, parameters = text.partition("(")
        signature = inspect.signature(eval(f"lambda {parameters[:-1]}: None", names))  # our own text
        (methods if section == "Methods" else functions)[name] = Entry(section, name, signature, meaning)
    return functions, methods


def lacking(xp: Any) -> list[str]:
    """What an array namespace does not have of all that bodies may use."""
    return [name for name in (*entries()[0], *sorted(CONSTANTS)) if not present(xp, name)]


def present(xp: Any, name: str) -> bool:
    """Whether a namespace has a name, which may have dots."""
    try:
        attrgetter(name)(xp)
    except AttributeError:
        return False
    return True


def page() -> str:
    """The page docs/arrays.md, which tools/make_arrays.py writes."""
    functions, methods = entries()
    lines, section = (
        [
            "# Arrays of devices",
            "",
            "What reference bodies may use of `k.xp` and of its arrays, on every device, with NumPy's meaning. "
            "Generated by tools/make_arrays.py; do not edit.",
            PREAMBLE.rstrip(),
        ],
        "",
    )
    for e in (*functions.values(), *methods.values()):
        if e.section != section:
            section = e.section
            title, _, rest = section.partition(": ")
            lines += [
                "",
                f"## {title}",
                "",
                *([f"{rest[:1].upper()}{rest[1:]}.", ""] if rest else []),
                "| | |",
                "| --- | --- |",
            ]
        lines.append(f"| `{e.text}` | {e.meaning} |")
    lines += ["", "## Attributes and constants", ""]
    for of, names in (("Arrays", ATTRIBUTES), ("The namespace", CONSTANTS)):
        lines.append(f"- {of}: {', '.join(f'`{n}`' for n in sorted(names))}.")
    return "\n".join([*lines, ""])
