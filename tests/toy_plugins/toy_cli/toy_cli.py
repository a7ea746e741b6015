"""A plugin for mxcore: the command ``mxcore toy_cli``, which counts the parameters in a file."""

from mxcore.plugin import hookimpl

API_VERSION = 1


class ToyCli:
    """The command."""

    help = "count the parameters in a file"

    @staticmethod
    def add_arguments(parser):
        """Declare the arguments, as of `argparse`."""
        parser.add_argument("file", help="as mx.nd.save writes it")

    @staticmethod
    def main(args):
        """Run; an exit status other than 0 may be returned, and an `MXNetError` is told without a traceback."""
        import mxcore as mx  # here, since help should not wait for it

        found = mx.nd.load(args.file)
        print(sum(a.size for a in (found.values() if isinstance(found, dict) else found)))


@hookimpl
def mxcore_cli():
    """Bring the command; "module:attr" in the place of the class would be imported when somebody calls it."""
    return {"toy_cli": ToyCli}
