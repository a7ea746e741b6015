"""Who may do what with a file that a draft replaces: owner, group, mode, access control list and attributes."""

from __future__ import annotations

import os
import stat

from .._interrupts import let_through, suppress

__all__ = ["may_be_replaced", "takes_over"]


def may_be_replaced(target: str, old: os.stat_result) -> bool:
    """Whether the system lets this user rename another file over one that is there.

    In a sticky folder, such as /tmp, only who owns the file or the folder may, whoever may write to the file.

    Parameters
    ----------
    target : str
    old : os.stat_result
        Of the file.
    """
    folder = os.stat(os.path.dirname(target))
    if not folder.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return True
    return os.geteuid() in (0, old.st_uid, folder.st_uid)


def takes_over(descriptor: int, path: str, target: str, old: os.stat_result) -> bool:
    """Give a draft what the file has that it replaces, and tell whether everybody has the same rights to it.

    What the system grants is seen afterwards: some file systems refuse, others say yes and do nothing.

    Parameters
    ----------
    descriptor : int
    path : str
        The draft, which is open, and its name.
    target : str
        The file that it replaces.
    old : os.stat_result
        Of that file.
    """
    mode = stat.S_IMODE(old.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)  # as every write to a file clears them
    if not hasattr(os, "fchown"):
        os.chmod(path, mode)
        return True
    for owner in (old.st_uid, -1):  # who may not give files away may give them to a group of theirs
        with suppress(OSError):
            os.fchown(descriptor, owner, old.st_gid)
            break
    # Before the mode, which else would be for the group and not for those whom the list names.
    wanted, found = _attributes(target), _attributes(descriptor)
    for name in found.keys() - wanted.keys():  # which the folder gives to new files
        with suppress(OSError):
            os.removexattr(descriptor, name)
    for name, value in wanted.items():
        if found.get(name) != value:
            with suppress(OSError):
                os.setxattr(descriptor, name, value)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        with suppress(OSError):
            os.chmod(path, mode)
    new, lists = os.fstat(descriptor), _lists(_attributes(target))
    return (
        (new.st_gid, stat.S_IMODE(new.st_mode)) == (old.st_gid, mode)
        and _lists(_attributes(descriptor)) == lists
        and (new.st_uid == old.st_uid or not lists and _shared_by_group(old))
    )


def _attributes(file: int | str) -> dict[str, bytes]:
    """The extended attributes of a file, among them its access control list, as far as this user may read them."""
    found: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        with suppress(OSError):  # a file system that has none
            for name in os.listxattr(file):
                if not name.startswith("system.") or "acl" in name:  # the others are times, places on the disk, …
                    with suppress(OSError):
                        found[name] = os.getxattr(file, name)
    return found


def _lists(attributes: dict[str, bytes]) -> dict[str, bytes]:
    """Those that say who may do what."""
    return {name: value for name, value in attributes.items() if name.startswith("system.")}


def _shared_by_group(old: os.stat_result) -> bool:
    """Whether its owner and this user are members of a file's group, which may do what its owner may."""
    import pwd

    try:
        owner = pwd.getpwuid(old.st_uid)
        theirs = os.getgrouplist(owner.pw_name, owner.pw_gid)
    except (KeyError, OSError) as e:  # nobody whom this machine knows
        let_through(e)
        return False
    ours = [os.getegid(), *os.getgroups()]
    return old.st_mode >> 6 & 7 == old.st_mode >> 3 & 7 and old.st_gid in theirs and old.st_gid in ours
