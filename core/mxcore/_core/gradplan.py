"""Gradient rules, compiled from the names of their arguments; the tape and the gradient pass of graphs share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .array import Like, ruled
from .errors import error, suggest
from .params import Params

if TYPE_CHECKING:
    from .op import Op

__all__ = ["RULE_WORDS", "GradPlan", "higher_of", "plan_of"]

#: What a gradient rule may ask for beside inputs and outputs.
RULE_WORDS = frozenset({"F", "k", "p", "needs", "dy", "dys", "y"})


class GradPlan:
    """A gradient rule compiled from its argument names: what to keep, and one expression that calls it.

    Attributes
    ----------
    call : callable or None
        ``(rule, F, p, needs, dys, ins, outs) -> gradients``; None: every gradient is zero, or there is no rule.
    keep : callable or None
        ``(inputs, outputs, p) -> (inputs or None, {output: array} or None, versions or None)``: what the tape keeps;
        None: nothing.
    short : bool
        `call` needs none of the preparations of `gradients`.
    checked : bool
        What comes of it is compared with the inputs: the library's own rules are, by the conformance kit.
    keeps_inputs, likes : frozenset of int
        Places in the declaration of inputs to keep, as arrays or by shape and dtype.
    keeps_outputs : tuple of int
    higher : GradPlan or None
        The rule that stands in under ``create_graph``, compiled on first use.
    """

    __slots__ = (
        "op",
        "rule",
        "call",
        "keep",
        "keeps_inputs",
        "keeps_outputs",
        "likes",
        "reads_dys",
        "short",
        "checked",
        "flat",
        "single",
        "n_in",
        "higher",
    )

    def __init__(self, op: Op, rule: Any) -> None:
        self.op = op
        self.higher: GradPlan | None = None
        self.rule: Any = rule
        self.call: Any = None
        self.keep: Any = None
        self.keeps_inputs: frozenset[int] = frozenset()
        self.likes: frozenset[int] = frozenset()
        self.keeps_outputs: tuple[int, ...] = ()
        self.reads_dys: tuple[int, ...] | None = ()
        self.short = False
        # With this, the result of the rule needs no reshuffling.
        self.n_in = len(op.input_slots)
        self.flat = not op.variadic and not any(s.condition for s in op.input_slots)
        self.single = self.flat and self.n_in == 1
        self.checked = any(r and not str(r.__module__).startswith("mxcore.") for r in (op.backward_rule or rule,))
        if op.backward_rule is not None:
            self.keeps_inputs, self.reads_dys = frozenset(range(self.n_in)), None
        elif rule:  # neither None nor missing
            args = [self.source(op, self.flat, n) for n in rule.__code__.co_varnames[: rule.__code__.co_argcount]]
            # One expression instead of a loop over argument kinds at every call.
            self.call = eval(
                f"lambda rule, F, p, needs, dys, ins, outs: rule({', '.join(a for a, _, _ in args)})", _HELPERS
            )
            self.keeps_inputs = frozenset(i for _, kind, i in args if kind == "in")
            like = range(self.n_in) if self.checked else [i for _, kind, i in args if kind == "like"]
            self.likes = frozenset(like) - self.keeps_inputs
            self.keeps_outputs = tuple(sorted({i for _, kind, i in args if kind == "out"}))
            kinds = {kind for _, kind, _ in args}
            self.reads_dys = None if "dys" in kinds else tuple(sorted({i for _, kind, i in args if kind == "dy"}))
            self.short = (
                self.flat and not (self.checked or callable(op.outputs) or "needs" in kinds) and len(op.outputs) == 1
            )
        if self.keeps_inputs or self.likes or self.keeps_outputs:
            fixed = self.flat and not op.aux and not (callable(op.outputs) or any(s.condition for s in op.outputs))
            self.keep = self._compiled_keep() if fixed else self._keep

    def _compiled_keep(self) -> Any:
        """`_keep` as one expression, for operators whose inputs do not depend on parameters."""
        places = range(self.n_in)
        ins = [
            f"ins[{i}] if ins[{i}].rules is None else ruled(ins[{i}])"
            if i in self.keeps_inputs
            else f"Like(ins[{i}])"
            if i in self.likes
            else "None"
            for i in places
        ]
        outs = ", ".join(f"{i}: ruled(outs[{i}].twin())" for i in self.keeps_outputs)
        versions = ", ".join(f"ins[{i}]._st.version" if i in self.keeps_inputs else "-1" for i in places)
        kept = f"({', '.join(ins)},)" if self.keeps_inputs or self.likes else "()"
        return eval(
            f"lambda ins, outs, p: ({kept}, {f'{{{outs}}}' if outs else None}, "
            f"{f'({versions},)' if self.keeps_inputs else None})",
            _HELPERS,
        )

    def _keep(self, inputs: Sequence[Any], outputs: Sequence[Any], p: Params) -> Any:
        slots, states, held = p._sig.slots, p._sig.states, self.keeps_inputs
        keep = [ruled(x) if s in held else Like(x) if s in self.likes else None for x, s in zip(inputs, slots)]
        # Auxiliary states may be written in between, as by the backward of another call.
        versions = [
            x._st.version if s in held and i not in states else -1 for i, (x, s) in enumerate(zip(inputs, slots))
        ]
        # Twins without a place on the tape: a node must not hold its own output.
        own = {j: ruled(outputs[j].twin()) for j in map(p._sig.out_at.get, self.keeps_outputs) if j is not None}
        return keep, own or None, versions if self.keeps_inputs else None

    def reads(self, p: Params, output: int) -> bool:
        """Whether the gradient of an output makes any difference."""
        return self.reads_dys is None or any(p._sig.out_at.get(i) == output for i in self.reads_dys)

    @staticmethod
    def source(op: Op, flat: bool, name: str) -> tuple[str, str, int]:
        """(expression for an argument of the rule, kind, index)."""
        if name in ("F", "p", "needs"):
            return name, name, 0
        if name == "dy":
            return "dys[0]", "dy", 0
        if name == "dys":
            return "dys", "dys", 0
        if name == "y":
            return "outs[0]", "out", 0
        places = {n: i for i, n in enumerate(op.input_names)}
        plain = name[:-1] if name.endswith("_") and name[:-1] in RULE_WORDS else name
        kind, where = (
            ("in", places.get(plain))
            if plain in places
            else ("like", places.get(name[5:]) if name[:5] == "like_" else None)
        )
        if where is not None:
            if flat:
                return f"ins[{where}]", kind, where
            pick = "_pick_all" if op.input_slots[where].variadic else "_pick"
            return f"{pick}(p, ins, {where})", kind, where
        word, _, rest = name.partition("_")
        outs = {} if callable(op.outputs) else {s.name: i for i, s in enumerate(op.outputs)}
        index = int(rest) if rest.isdigit() else outs.get(rest)
        if word in ("d", "out") and index is not None:
            values, kind = ("dys", "dy") if word == "d" else ("outs", "out")
            if callable(op.outputs) or any(s.condition for s in op.outputs):  # parameters may switch it off
                return f"_output(p, {values}, {index})", kind, index
            return f"{values}[{index}]", kind, index
        raise error(
            TypeError,
            f"gradient rule of operator {op.name}: '{name}' is no input, output or rule word "
            f"({', '.join(sorted(RULE_WORDS - {'k'}))}, d_<output>, out_<output>, like_<input>)"
            f"{suggest(name, [*op.input_names, *(RULE_WORDS - {'k'})])}",
        )

    def gradients(
        self, p: Params, F: Any, needs: Any, dys: list[Any], ins: Any, outs: Any, likes: Any
    ) -> Sequence[Any]:
        """Run the rule; one gradient (or None) per input.

        `dys` are the incoming gradients, None where none arrived; `likes` what zeros for those are made like.
        """
        if self.call is None:
            if self.rule is None:
                return [None] * len(p._sig.inputs)
            raise error(NotImplementedError, f"operator {self.op.name} is not differentiable: it has no gradient rule")
        if likes is not None:
            for i in range(len(dys)) if self.reads_dys is None else self.reads_dys:
                j: Any = i if self.reads_dys is None else p._sig.out_at.get(i)
                if j is not None and dys[j] is None and likes[j] is not None:  # None: never computed
                    dys[j] = F.roles["zero gradient"](likes[j])
        return self.arranged(p, self.call(self.rule, F, p, needs, dys, ins, outs))

    def arranged(self, p: Params, result: Any) -> Sequence[Any]:
        """What a rule returned as one gradient (or None) per input."""
        found: Sequence[Any] = result if result.__class__ is tuple or result.__class__ is list else (result,)
        n = len(p._sig.inputs)
        if not self.flat:
            found = self._spread_out(p, found, n)
        if len(found) != n:
            raise error(
                ValueError,
                f"gradient rule of operator {self.op.name} returned {len(found)} gradients for {n} inputs "
                f"({', '.join(p._sig.inputs)})",
            )
        return found

    def _spread_out(self, p: Params, result: Any, n: int) -> list[Any]:
        """Gradients given per declared input, lists for variadic ones: those that parameters switch off are skipped."""
        declared = list(result)
        nested = any(isinstance(g, (list, tuple)) for g in declared)
        if not nested and (len(declared) == n or len(declared) != self.n_in):
            return declared
        grads: list[Any] = []
        for i, g in enumerate(declared):
            if isinstance(g, (list, tuple)):
                grads += g
            elif i in p._sig.slots:
                grads.append(g)
        return grads


def _pick(p: Params, ins: Sequence[Any], place: int) -> Any:
    """The input at a place of the declaration; None if the parameters switch it off."""
    return next((x for x, s in zip(ins, p._sig.slots) if s == place), None)


def _pick_all(p: Params, ins: Sequence[Any], place: int) -> list[Any]:
    """All items of a variadic input."""
    return [x for x, s in zip(ins, p._sig.slots) if s == place]


def _output(p: Params, values: Any, i: int) -> Any:
    """The value of a declared output, or None if the parameters switch it off."""
    j = p._sig.out_at.get(i)
    return None if j is None else values[j]


_HELPERS = {"_pick": _pick, "_pick_all": _pick_all, "_output": _output, "Like": Like, "ruled": ruled}


def plan_of(op: Op) -> GradPlan:
    """The compiled gradient rule of an operator."""
    plan = op.grad_plan
    if plan is None:
        plan = op.grad_plan = GradPlan(op, op.grad_rule)
    return plan


def higher_of(plan: GradPlan) -> GradPlan:
    """The compiled rule of gradients that can be differentiated again."""
    op = plan.op
    if op.higher_rule is not None and plan.higher is None:
        plan.higher = found = GradPlan(op, op.higher_rule)
        if not (found.keeps_inputs <= plan.keeps_inputs and {*found.keeps_outputs} <= {*plan.keeps_outputs}):
            raise error(
                TypeError, f"operator {op.name}: its rule for create_graph asks for more than its gradient rule keeps"
            )
    return plan.higher or plan
