"""Names, order, kinds, defaults of inputs and parameters are MXNet 1.9.1's; so are aliases and names of outputs.

The facts are in ``tests/golden/data/operators.json``, made by ``tests/golden/make_operator_facts.py`` from the real
MXNet. What differs on purpose is in the tables below; a line there that is no longer needed fails.
"""

import functools
import json
import pathlib
import re

import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.op import MISSING
from mxcore.operator import get_operator_arguments

FILE = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data" / "operators.json"

#: They take an array in the place of each parameter that is not told.
DISTRIBUTIONS = (
    "bernoulli choice exponential gamma gumbel logistic multinomial normal normal_n pareto powerd rayleigh uniform "
    "uniform_n weibull"
).split()

#: Operators whose listed arguments are not those that MXNet's own parser takes, or that it does not list at all.
ARGUMENTS = {
    "_copyto": "takes the source's context, which MXNet reads from the output",
    "_linalg_potrf": "MXNet reads `lower` without listing it",
    "_linalg_potri": "MXNet reads `lower` without listing it",
    "_linspace": "MXNet lists the parameters of _arange and reads others",
    "smooth_l1": "MXNet writes is_int into files without listing it",
    "_contrib_quantized_rnn": "MXNet writes quantized into files without listing it",
    "_npi_cholesky": "MXNet reads `lower` without listing it",
    "_npi_norm": "MXNet lists none and reads these",
    **dict.fromkeys(
        ("_npi_concatenate", "_npi_dstack", "_npi_hstack"), "MXNet lists the parameters of Concat and reads others"
    ),
    **dict.fromkeys(
        (f"_npi_{name}" for name in DISTRIBUTIONS),
        "one name for all inputs; which there are, parameters say, in MXNet, too",
    ),
}
#: Operators whose symbols have other names of inputs or outputs.
NAMES = {
    "_cvcopyMakeBorder": "MXNet lists src and calls its variable data",
    "_cvimdecode": "MXNet lists buf and calls its variable data",
    "_cvimresize": "MXNet lists src and calls its variable data",
    "_contrib_quantized_rnn": "MXNet lists data_scale and data_shift, and calls its variables min_data and max_data",
    **dict.fromkeys(
        ("_multi_lamb_update", "_multi_mp_lamb_update", "_multi_adamw_update", "_multi_mp_adamw_update"),
        "MXNet gives one name to several inputs",
    ),
}
#: (operator, parameter) of another kind or default.
KINDS = {
    ("_full", "shape"): "both say that the consumer decides",
    ("_linspace", "stop"): "MXNet lists the parameters of _arange",
    ("smooth_l1", "scalar"): "MXNet's parser has the default 1 and does not list it",
    ("_np_transpose", "axes"): "() stands for None",
    ("_npi_einsum", "optimize"): "NumPy's ways are taken, too",
    ("_npi_flip", "axis"): "all axes unless told, as in NumPy",
    ("_npi_boolean_mask_assign_scalar", "start_axis"): "the first unless told",
    ("_npi_boolean_mask_assign_tensor", "start_axis"): "the first unless told",
    ("_npi_pad", "mode"): "NumPy's 'wrap' is there, too",
    ("_npi_pad", "pad_width"): "pairs, which MXNet says in other words",
    **{
        (f"_npi_{name}", "ctx"): "the current context unless told"
        for name in DISTRIBUTIONS
        if name not in ("multinomial", "powerd")
    },
}
#: Further names.
ALIASES = {"_linalg_syevd": "linalg_syevd: so that all of linalg has both names"}
#: Operators with another gradient.
GRADIENTS = {
    **dict.fromkeys(
        """sign _npi_sign _contrib_MultiBoxDetection _contrib_MultiBoxPrior _contrib_MultiBoxTarget
        _contrib_MultiProposal _contrib_Proposal _contrib_bipartite_matching _contrib_box_iou""".split(),
        "zero; MXNet has an operator that computes zeros",
    ),
    **dict.fromkeys(
        """_np_atleast_1d _np_atleast_2d _np_atleast_3d _npi_boolean_mask_assign_scalar _npi_boolean_mask_assign_tensor
        _npi_eig _npi_eigh _npi_eigvals _npi_eigvalsh _npi_percentile _npi_pinv _npi_pinv_scalar_rcond _npi_std _npi_var
        """.split(),
        "MXNet has none and gives zeros",
    ),
}


@functools.cache
def facts():
    """MXNet's rows."""
    return json.loads(FILE.read_text())["operators"]


def ours(name):
    """The operator of a row, by any of its names."""
    for n in (name, *facts()[name]["aliases"]):
        op = tables.ops.find(n)
        if op is not None:
            return op
    return None


def rows(hidden=False):
    """Names of the rows; those of backward operators, which list no arguments in MXNet, only if told."""
    return [n for n in facts() if hidden or "backward" not in n]


def kind_of(text):
    """(kind, default) of a parameter from MXNet's words; 'required' stands for no default."""
    kind, default = re.fullmatch(r"(.*?)(?:, ?optional, default=(.*)|, required)?", text).groups()
    default = "required" if default is None else default.strip("'")
    if kind.startswith("{"):
        words = set(re.findall(r"'([^']*)'|None", kind)) - {"", "None"}
        dtypes = words <= {"bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"}
        kind = "dtype" if words and dtypes else " ".join(sorted(words))
    kind = (
        kind.replace(" (non-negative)", "")
        .replace("double", "float")
        .replace("long", "int")
        .replace(" or None", "")
        .replace("(tuple)", "")
        .replace("tuple of <int>", "Shape")
    )
    return kind, "" if default == "None" else _number(default)


def _number(text):
    """Numbers in the width that both print."""
    return re.sub(r"\b\d+(\.\d+)?(e[-+]?\d+)?", lambda m: f"{float(m[0]):.6g}", text)


def compared(checked, exceptions):
    """Fail unless exactly the operators in `exceptions` differ; `checked` maps operators to differences."""
    unexpected = {n: d for n, d in checked.items() if d and n not in exceptions}
    assert not unexpected, "\n".join(f"{n}: {d}" for n, d in unexpected.items())
    needless = [n for n in exceptions if not checked.get(n)]
    assert not needless, f"no longer exceptions: {needless}"


def test_inputs_and_parameters():
    found = {}
    for name in rows():
        row, op = facts()[name], ours(name)
        aux = max((g[2] for g in row["given"]), key=len, default=[])
        inputs = [n for n in op.input_names if n in row["inputs"] or n not in aux]
        want = [n for n, _ in row["params"]]
        listed = get_operator_arguments(op.name).names
        parameters = [n for n in listed[len(op.input_names) :] if n in want or not op.variadic or n != op.count]
        found[name] = (
            inputs != row["inputs"]
            and f"inputs {inputs}, MXNet {row['inputs']}"
            or parameters != want
            and f"parameters {parameters}, MXNet {want}"
        )
    compared(found, ARGUMENTS)


def test_kinds_and_defaults():
    found = {}
    for name in rows():
        op = ours(name)
        listed = get_operator_arguments(op.name)
        types = dict(zip(listed.names, listed.types))
        for parameter, text in facts()[name]["params"]:
            if parameter in types and not text.startswith(("NDArray", "Symbol", ",")):
                got, want = kind_of(types[parameter]), kind_of(text)
                found[name, parameter] = got != want and f"{got}, MXNet {want}"
    compared(found, KINDS)


def test_none_is_taken_where_mxnet_takes_it():
    for name in rows():
        for parameter, text in facts()[name]["params"]:
            spec = ours(name).params.get(parameter)
            if (
                (name, parameter) not in KINDS
                and spec is not None
                and (" or None" in text or text.startswith("{None") or "default='None'" in text)
            ):
                assert spec.optional, f"{name}: {parameter} may be None in MXNet ({text})"


def test_aliases():
    found = {}
    for name in rows(hidden=True):
        op, wanted = ours(name), {n for n in (name, *facts()[name]["aliases"]) if not n.startswith("_np")}
        reached = {
            n: tables.ops.find(n) or (n.startswith("_sparse_") and tables.ops.find(n.removeprefix("_sparse_")))
            for n in wanted
        }
        missing = sorted(n for n, o in reached.items() if o is not op)
        extra = sorted(
            n for n, o in tables.ops.items.items() if o is op and n not in wanted and not n.startswith("_np")
        )
        found[name] = " ".join([*(f"without {n}" for n in missing), *extra])
    compared(found, ALIASES)


def test_names_of_arguments_states_and_outputs():
    found = {}
    for name in rows(hidden=True):
        op = ours(name)
        for params, *want in facts()[name]["given"]:
            s = mx.sym.compose(op.name, [], {**params, "name": "op"}, op)
            got = [
                [n.removeprefix("op_") for n in part]
                for part in (s.list_arguments(), s.list_auxiliary_states(), s.list_outputs())
            ]
            found[name] = found.get(name) or got != want and f"{params}: {got}, MXNet {want}"
    compared(found, NAMES)


def test_gradients():
    """MXNet's gradient, or one where it has none."""
    found = {}
    for name in rows(hidden=True):
        op, want = ours(name), facts()[name]["gradient"]
        has = (
            "zero"
            if op.grad_rule is None
            else "none"
            if op.grad_rule is MISSING and op.backward_rule is None
            else "yes"
        )
        found[name] = want in ("yes", "zero") and has != want and f"{has}, MXNet {want}"
    compared(found, GRADIENTS)


def test_the_facts_cover_every_stock_operator():
    known = {n for name, row in facts().items() for n in (name, *row["aliases"])}
    others = set(json.loads(FILE.read_text())["others"])
    new = sorted(n for n, op in tables.ops.items.items() if tables.ops.owners[n] in ("ops", "builtin") and n in others)
    assert known and not new, f"run make_operator_facts.py: {new}"


@pytest.mark.parametrize(
    "text, want",
    [
        ("double, optional, default=9.9999999392252903e-09", ("float", "1e-08")),
        ("int (non-negative), required", ("int", "required")),
        ("{'None', 'float16', 'float32'},optional, default='None'", ("dtype", "")),
        ("{'a', 'b'}, required", ("a b", "required")),
        ("Shape or None, optional, default=None", ("Shape", "")),
        ("tuple of <double>, optional, default=[0,0]", ("tuple of <float>", "[0,0]")),
    ],
)
def test_mxnets_words_are_read(text, want):
    assert kind_of(text) == want
