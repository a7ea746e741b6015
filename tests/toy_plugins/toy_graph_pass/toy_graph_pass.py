"""A plugin for mxcore: the graph pass 'toy_graph_pass', which replaces tanh by softsign."""

from mxcore.plugin import GraphF, GraphPass, Value, hookimpl, rewrite

API_VERSION = 1


def cheaper(graph):
    """The graph with another function in the place of tanh."""

    def visit(node, inputs, fact):
        if node.op.name != "tanh":
            return None  # keep it
        F = GraphF(node.name)
        return [F.softsign(Value(inputs[0], F)).entry]

    return rewrite(graph, visit)


@hookimpl
def mxcore_graph_passes():
    """Bring the pass; a number in the place of None runs it over every graph that is bound, by ascending numbers."""
    return [GraphPass("toy_graph_pass", None, cheaper)]
