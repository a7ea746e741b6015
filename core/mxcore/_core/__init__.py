"""The microkernel: declarations, registry, dispatch, engine, tape, graph IR and inference.

It needs the standard library, NumPy and pluggy only, boots with no plugin at all and knows no operator, device,
optimizer or iterator by name. Everything else in mxcore reaches it through plugin hooks or sits on top of it.
"""
