"""The commands of the library itself: a table that is read before anything else is loaded."""

from __future__ import annotations

__all__ = ["COMMANDS"]

#: Commands: name -> (what it does, module).
COMMANDS = {
    "train": ("train an image classifier; with no argument LeNet on handwritten digits", "mxcore.cli.train"),
    "predict": ("run a saved model on images, arrays or records", "mxcore.cli.predict"),
    "summary": ("show the layers of a saved model, with shapes and parameters", "mxcore.cli.summary"),
    "plot": ("draw the graph of a saved model", "mxcore.cli.plot"),
    "bench": ("measure a model on this machine, operator by operator", "mxcore.cli.bench"),
    "run": ("run a script that says `import mxnet`, unchanged", "mxcore.cli.run"),
    "warm": ("compile beforehand what a model, or everyday use, needs", "mxcore.cli.warm"),
    "info": ("show versions, devices, threads and plugins", "mxcore.cli.info"),
    "plugins": ("list or check the plugins, or write the skeleton of a new one", "mxcore.cli.plugins"),
}
