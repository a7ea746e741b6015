"""The bundled data set: 1,797 handwritten digits, see ``data/DATA.md``."""

from __future__ import annotations

from pathlib import Path

from mxcore.base import error

__all__ = ["digits_files", "digits_path"]

_DATA = Path(__file__).parent / "data"
_INDEX = {"all": "digits.idx", "train": "digits_train.idx", "test": "digits_test.idx"}


def digits_path() -> str:
    """Return the path of the record file of handwritten digits.

    Returns
    -------
    str
        1,797 grey images of 28 x 28 pixels, labelled 0 to 9.

    Examples
    --------
    >>> from mxcore_io_rec.recordio import MXRecordIO, unpack_img
    >>> header, image = unpack_img(MXRecordIO(digits_path(), "r").read())
    >>> header.label, image.shape
    (0.0, (28, 28))
    """
    return str(_DATA / "digits.rec")


def digits_files(split: str = "all") -> dict[str, str]:
    """Return the files of the handwritten digits, as parameters for `ImageRecordIter`.

    Parameters
    ----------
    split : {'all', 'train', 'test'}
        All 1,797 digits, the 1,438 to train with, or the 359 that are held out for testing. The split is
        fixed, and holds the same share of each digit.

    Returns
    -------
    dict
        ``path_imgrec`` and ``path_imgidx``.

    Examples
    --------
    >>> import mxcore as mx
    >>> it = mx.io.ImageRecordIter(**digits_files("test"), data_shape=(1, 28, 28), batch_size=32)
    >>> it.provide_data[0].shape
    (32, 1, 28, 28)
    """
    if split not in _INDEX:
        raise error(ValueError, f"split must be one of {', '.join(_INDEX)}; got {split!r}")
    return {"path_imgrec": digits_path(), "path_imgidx": str(_DATA / _INDEX[split])}
