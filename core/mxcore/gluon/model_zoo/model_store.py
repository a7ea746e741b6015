"""Files of trained parameters: found locally, or fetched from where MXNet publishes them."""

from __future__ import annotations

import os
import zipfile

from ..._interrupts import let_through, suppress
from ..._io_files import checked, local_path, regular, remove
from ...base import MXNetError, error
from ...drafts import atomic_writer
from ...limits import check_member, copy_unpacked
from .._repository import data_dir, fetch, intact, repo_url
from ..utils import Hashed

__all__ = ["get_model_file", "purge", "short_hash"]

#: How often an archive is downloaded that others remove before it is opened.
_TRIES = 10

#: SHA-1 of the published file of every model.
_SHA1 = {
    "alexnet": "44335d1f0046b328243b32a26a4fbd62d9057b45",
    "densenet121": "f27dbf2dbd5ce9a80b102d89c7483342cd33cb31",
    "densenet161": "b6c8a95717e3e761bd88d145f4d0a214aaa515dc",
    "densenet169": "2603f878403c6aa5a71a124c4a3307143d6820e9",
    "densenet201": "1cdbc116bc3a1b65832b18cf53e1cb8e7da017eb",
    "inceptionv3": "ed47ec45a937b656fcc94dabde85495bbef5ba1f",
    "mobilenet0.25": "9f83e440996887baf91a6aff1cccc1c903a64274",
    "mobilenet0.5": "8e9d539cc66aa5efa71c4b6af983b936ab8701c3",
    "mobilenet0.75": "529b2c7f4934e6cb851155b22c96c9ab0a7c4dc2",
    "mobilenet1.0": "6b8c5106c730e8750bcd82ceb75220a3351157cd",
    "mobilenetv2_0.25": "ae8f9392789b04822cbb1d98c27283fc5f8aa0a7",
    "mobilenetv2_0.5": "aabd26cd335379fcb72ae6c8fac45a70eab11785",
    "mobilenetv2_0.75": "e2be7b72a79fe4a750d1dd415afedf01c3ea818d",
    "mobilenetv2_1.0": "36da4ff1867abccd32b29592d79fc753bca5a215",
    "resnet101_v1": "d988c13d6159779e907140a638c56f229634cb02",
    "resnet101_v2": "18e93e4f48947e002547f50eabbcc9c83e516aa6",
    "resnet152_v1": "671c637a14387ab9e2654eafd0d493d86b1c8579",
    "resnet152_v2": "f2695542de38cf7e71ed58f02893d82bb409415e",
    "resnet18_v1": "a0666292f0a30ff61f857b0b66efc0228eb6a54b",
    "resnet18_v2": "a81db45fd7b7a2d12ab97cd88ef0a5ac48b8f657",
    "resnet34_v1": "48216ba99a8b1005d75c0f3a0c422301a0473233",
    "resnet34_v2": "9d6b80bbc35169de6b6edecffdd6047c56fdd322",
    "resnet50_v1": "0aee57f96768c0a2d5b23a6ec91eb08dfb0a45ce",
    "resnet50_v2": "ecdde35339c1aadbec4f547857078e734a76fb49",
    "squeezenet1.0": "264ba4970a0cc87a4f15c96e25246a1307caf523",
    "squeezenet1.1": "33ba0f93753c83d86e1eb397f38a667eaf2e9376",
    "vgg11": "dd221b160977f36a53f464cb54648d227c707a05",
    "vgg11_bn": "ee79a8098a91fbe05b7a973fed2017a6117723a8",
    "vgg13": "6bc5de58a05a5e2e7f493e2d75a580d83efde38c",
    "vgg13_bn": "7d97a06c3c7a1aecc88b6e7385c2b373a249e95e",
    "vgg16": "e660d4569ccb679ec68f1fd3cce07a387252a90a",
    "vgg16_bn": "7f01cf050d357127a73826045c245041b0df7363",
    "vgg19": "ad2f660d101905472b83590b59708b71ea22b2e5",
    "vgg19_bn": "f360b758e856f1074a85abd5fd873ed1d98297c3",
}


def short_hash(name: str) -> str:
    """The first eight digits of a model's digest, which are part of its file's name."""
    if name not in _SHA1:
        raise error(ValueError, f"Pretrained model for {name} is not available.")
    return _SHA1[name][:8]


def get_model_file(name: str, root: str | None = None) -> str:
    """Path of the trained parameters of a model, downloaded if they are not there.

    Parameters
    ----------
    name : str
        E.g. ``'resnet18_v1'``.
    root : str, default '~/.mxnet/models'
        Folder with files ``NAME-HASH.params`` as published, or ``NAME.params``.

    Returns
    -------
    str

    Raises
    ------
    MXNetError (FileNotFoundError)
        If the file is not there and cannot be downloaded.
    MXNetError (ValueError)
        If what is downloaded is not the published file.

    Notes
    -----
    ``NAME-HASH.params`` is compared with the digest of the published file; another one is downloaded again, with a
    warning. ``NAME.params`` is taken as it is. Several processes may ask for one model at the same time.
    """
    root = local_path(checked(data_dir("models") if root is None else root, "root, the folder of the models,"))
    stem = f"{name}-{short_hash(name)}"
    path, own, archive = (os.path.join(root, end) for end in (f"{stem}.params", f"{name}.params", f"{stem}.zip"))
    for _ in range(_TRIES):
        what = f"pretrained model {name}"
        if intact(path, _SHA1[name]):
            return path
        if os.path.exists(path):
            what += f", as {path} is not the published file"
        elif os.path.exists(own):
            return regular(own)
        given = os.path.exists(archive)
        fetch(f"gluon/models/{stem}.zip", root, None, what)
        if _take_out(archive, path, _SHA1[name], what, given):
            with suppress(OSError):  # the parameters are there, and another process may have removed it
                os.remove(archive)
            return path
    raise error(OSError, f"{what}: {archive} is removed by others whenever it is downloaded; try again")


def _take_out(archive: str, path: str, sha1_hash: str, what: str, given: bool) -> bool:
    """Unpack the parameters of a model; False if another process has done so, and removed the archive."""
    member = os.path.basename(path)
    try:
        with open(archive, "rb") as file, zipfile.ZipFile(file) as z:
            check_member(z.getinfo(member), archive)
            with z.open(member) as source, atomic_writer(path) as out:
                hashed = Hashed(out)
                copy_unpacked(source, hashed, archive)
                if hashed.digest.hexdigest() != sha1_hash:
                    raise ValueError(f"it does not hold the published {member}")
        return True
    except MXNetError:
        raise
    except FileNotFoundError:
        return False
    except Exception as e:  # damaged archives raise anything
        let_through(e)
        if given:
            raise error(ValueError, f"{archive} is damaged: {e}. Delete it to have it downloaded again.") from e
        with suppress(OSError):  # else it would be taken for the published one the next time
            os.remove(archive)
        raise error(
            ValueError,
            f"{what}: {archive}, as it was downloaded from {repo_url()}, is not the published archive: {e}. It was "
            f"removed; try again, or put {member} there yourself.",
        ) from e


def purge(root: str | None = None) -> None:
    """Delete all parameter files in a folder, by default the one where they are kept."""
    root = local_path(checked(data_dir("models") if root is None else root, "root, the folder of the models,"))
    for name in os.listdir(root) if os.path.isdir(root) else ():
        if name.endswith(".params"):
            remove(os.path.join(root, name))
