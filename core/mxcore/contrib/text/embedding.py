"""Vectors for words, read from files: custom ones, GloVe's and fastText's."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from ... import ndarray as nd
from ... import registry
from ..._io_files import checked, reading
from ...base import asserted, error
from ...util import is_np_array
from .vocab import Vocabulary

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "is_np_array",
    "register",
]

#: Names of the published files, by class.
_GLOVE = [
    f"glove.{c}.{d}d.txt"
    for c, ds in (("42B", (300,)), ("6B", (50, 100, 200, 300)), ("840B", (300,)), ("twitter.27B", (25, 50, 100, 200)))
    for d in ds
]
_FASTTEXT = [
    "crawl-300d-2M.vec",
    "wiki-news-300d-1M.vec",
    "wiki-news-300d-1M-subword.vec",
    *(
        f"wiki.{c}.vec"
        for c in """
    aa ab ace ady af ak als am an ang ar arc arz as ast av ay az azb ba bar bat_smg bcl be bg bh bi bjn bm bn bo bpy br
    bs bug bxr ca cbk_zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da de diq dsb dv dz ee el eml en eo es
    et eu ext fa ff fi fiu_vro fj fo fr frp frr fur fy ga gag gan gd gl glk gn gom got gu gv ha hak haw he hi hif ho hr
    hsb ht hu hy hz ia id ie ig ii ik ilo io is it iu ja jam jbo jv ka kaa kab kbd kg ki kj kk kl km kn ko koi kr krc ks
    ksh ku kv kw ky la lad lb lbe lez lg li lij lmo ln lo lrc lt ltg lv mai map_bms mdf mg mh mhr mi min mk ml mn mo mr
    mrj ms mt multi.ar multi.bg multi.ca multi.cs multi.da multi.de multi.el multi.en multi.es multi.et multi.fi
    multi.fr multi.he multi.hr multi.hu multi.id multi.it multi.mk multi.nl multi.no multi.pl multi.pt multi.ro multi.ru
    multi.sk multi.sl multi.sv multi.tr multi.uk multi.vi mus mwl my myv mzn na nah nap nds nds_nl ne new ng nl nn no
    nov nrm nso nv ny oc olo om or os pa pag pam pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa_rup
    roa_tara ru rue rw sa sah sc scn sco sd se sg sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te
    tet tg th ti tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi
    yo za zea zh zh_classical zh_min_nan zh_yue zu""".split()
    ),
]


#: The longest line, in characters; and what bytes become that are no character.
_LONGEST, _STRAY = 1 << 24, re.compile("[\\ud800-\\udfff]")


def _lines(raw: BinaryIO, path: str, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers; errors name file and line."""
    n = 0
    try:
        file = io.TextIOWrapper(raw, encoding=encoding, errors="surrogateescape")
        try:
            while line := file.readline(_LONGEST + 1):
                n += 1
                if n == 1:
                    line = line.removeprefix("\ufeff")  # which some editors put before all
                if len(line) > _LONGEST:
                    raise error(
                        ValueError,
                        f"{path}, line {n}: it is longer than {_LONGEST} characters; "
                        "is this a file of words and vectors?",
                    )
                if not line.isascii() and _STRAY.search(line):
                    raise error(
                        ValueError,
                        f"{path}, line {n}: {line[:40].encode('ascii', 'backslashreplace').decode()!r} "
                        f"is not in {encoding}; give the encoding of the file, or decode it anew",
                    )
                yield n, line
        finally:
            file.detach()  # who reads it looks whether it was written to meanwhile
    except UnicodeError as e:
        raise error(ValueError, f"{path}, behind line {n}: {e}; give the encoding of the file") from None
    except LookupError as e:
        raise error(LookupError, f"{path}: {e}") from None


class _TokenEmbedding(Vocabulary):
    """A vocabulary with a vector for each word; `idx_to_vec` holds them by number."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._idx_to_vec: Any = None
        self._vec_len = 0

    @property
    def vec_len(self) -> int:
        """Length of a vector."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> Any:
        """All vectors, (words, length); the first is that of unknown words."""
        return self._idx_to_vec

    # -- reading -----------------------------------------------------------------------------------------------
    def _load_embedding(
        self, pretrained_file_path: str, elem_delim: str, init_unknown_vec: Callable[..., Any], encoding: str = "utf8"
    ) -> None:
        """Read words and vectors, one word a line; classes of users call it as well."""
        path, delim = os.path.expanduser(checked(pretrained_file_path, "the file of an embedding")), elem_delim
        if delim is not None and not (isinstance(delim, str) and delim):
            raise error(
                ValueError, f"{type(self).__name__}: elem_delim must be what is between the numbers, got {delim!r}"
            )
        known: dict[str, int] = {}
        rows: list[Any] = []
        unknown = None
        with reading(path) as raw, np.errstate(over="ignore"):
            for n, line in _lines(raw, path, encoding):
                token, *numbers = line.rstrip().split(delim)
                if n == 1 and len(numbers) == 1 and token.isdecimal() and numbers[0].isdecimal():
                    continue  # fastText's first line: how many there are, and how long
                try:
                    if "_" in (text := "".join(numbers)) or not text.isascii():  # Python reads 1_0 as 10
                        raise ValueError
                    vector = np.array([float(x) for x in numbers if x], dtype="float32")
                except ValueError:
                    raise error(
                        ValueError, f"{path}, line {n}: the vector of {token[:80]!r} holds something that is no number"
                    ) from None
                if len(vector) == 1 and rows and len(rows[0]) > 1:
                    warnings.warn(
                        f"{path}, line {n}: {token[:80]!r} has one number, "
                        f"the words before have {len(rows[0])}; left out",
                        stacklevel=4,
                    )
                    continue
                if len(vector) > 1 and rows and len(rows[0]) == 1:
                    warnings.warn(
                        f"{path}: {list(known)[:5]} before line {n} have one number, {token[:80]!r} has "
                        f"{len(vector)}; left out",
                        stacklevel=4,
                    )
                    known, rows, unknown = {}, [], None
                if rows and len(vector) != len(rows[0]):
                    raise asserted(
                        ValueError,
                        f"{path}, line {n}: {token[:80]!r} has {len(vector)} numbers, "
                        f"the words before have {len(rows[0])}",
                    )
                if not len(vector):
                    raise asserted(
                        ValueError, f"{path}, line {n}: {token[:80]!r} has no vector; is {delim!r} between the numbers?"
                    )
                if token == self.unknown_token and unknown is None:
                    unknown = vector
                elif token in known or token == self.unknown_token:
                    warnings.warn(
                        f"{path}, line {n}: {token[:80]!r} came before; the first vector counts", stacklevel=4
                    )
                else:
                    known[token] = len(rows)
                    rows.append(vector)
        if not rows:
            raise error(ValueError, f"{path} holds no word with a vector")
        self._vec_len = len(rows[0])
        if unknown is not None and len(unknown) != self._vec_len:
            raise error(
                ValueError, f"{path}: {self.unknown_token!r} has {len(unknown)} numbers, the words have {self._vec_len}"
            )
        first = init_unknown_vec(shape=self._vec_len) if unknown is None else nd.array(unknown)
        if tuple(first.shape) != (self._vec_len,):
            raise error(
                ValueError, f"init_unknown_vec gave shape {first.shape} for unknown words; ({self._vec_len},) is needed"
            )
        start = len(self._idx_to_token)
        fresh = [t for t in known if t not in self._token_to_idx]
        self._idx_to_token = [*self._idx_to_token, *fresh]
        self._token_to_idx = {t: i for i, t in enumerate(self._idx_to_token)}
        table = np.zeros((len(self._idx_to_token), self._vec_len), dtype="float32")
        table[:start] = first.asnumpy()
        for t, i in known.items():
            table[self._token_to_idx[t]] = rows[i]
        self._idx_to_vec = nd.array(table)

    def _build_embedding_for_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Keep the words of a vocabulary only, under its numbers; all for None."""
        if vocabulary is None:
            return
        if not isinstance(vocabulary, Vocabulary):
            raise asserted(
                TypeError, f"{type(self).__name__}: vocabulary must be a Vocabulary, got {type(vocabulary).__name__}"
            )
        vectors = self.get_vecs_by_tokens(vocabulary.idx_to_token)
        unknown = self._idx_to_vec[0]
        vectors[0] = unknown
        self._adopt(vocabulary)
        self._idx_to_vec = vectors

    def _adopt(self, vocabulary: Vocabulary) -> None:
        self._unknown_token, self._reserved_tokens = vocabulary.unknown_token, vocabulary.reserved_tokens
        self._idx_to_token, self._token_to_idx = list(vocabulary.idx_to_token), dict(vocabulary.token_to_idx)

    # -- vectors -----------------------------------------------------------------------------------------------
    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> Any:
        """The vector of a word, or the vectors of a list of words.

        Parameters
        ----------
        tokens : str or list of str
        lower_case_backup : bool
            Look for a word in small letters where it is not there as written.

        Returns
        -------
        NDArray
            (length,) or (words, length).
        """
        single = isinstance(tokens, str)
        words = [tokens] if single else list(tokens)
        known = self._token_to_idx
        numbers = [known[t] if t in known else known.get(t.lower(), 0) if lower_case_backup else 0 for t in words]
        vectors = nd.take(self._idx_to_vec, nd.array(numbers, dtype="int64"))
        return vectors[0] if single else vectors

    def update_token_vectors(self, tokens: Any, new_vectors: Any) -> None:
        """Give words other vectors.

        Parameters
        ----------
        tokens : str or list of str
            Must be there.
        new_vectors : NDArray
            (length,) for one word, or (words, length).

        Raises
        ------
        MXNetError
            (also ValueError) if a word is not there, or the shape does not fit.
        """
        words = [tokens] if isinstance(tokens, str) else list(tokens)
        if not isinstance(new_vectors, nd.NDArray):
            raise asserted(
                TypeError, f"update_token_vectors: new_vectors must be an NDArray, got {type(new_vectors).__name__}"
            )
        rows = new_vectors.reshape((1, -1)) if len(new_vectors.shape) == 1 else new_vectors
        if tuple(rows.shape) != (len(words), self._vec_len):
            raise asserted(
                ValueError,
                f"update_token_vectors: new_vectors have shape {new_vectors.shape}; for {len(words)} word(s) "
                f"({len(words)}, {self._vec_len}) is needed",
            )
        missing = [t for t in words if t not in self._token_to_idx]
        if missing:
            raise error(
                ValueError,
                f"update_token_vectors: there are no words {missing[:5]}; "
                f"name {self.unknown_token!r} for unknown words",
            )
        for i, t in enumerate(words):
            self._idx_to_vec[self._token_to_idx[t]] = rows[i]


class _Published(_TokenEmbedding):
    """Embeddings that somebody published; the file must lie in `embedding_root` already."""

    pretrained_file_name_sha1: dict[str, Any] = {}
    pretrained_archive_name_sha1: dict[str, Any] = {}

    def __init__(
        self,
        pretrained_file_name: str,
        embedding_root: str,
        init_unknown_vec: Callable[..., Any],
        vocabulary: Vocabulary | None,
        **kwargs: Any,
    ) -> None:
        names = list(self.pretrained_file_name_sha1)
        if pretrained_file_name not in names:
            raise error(
                KeyError,
                f"{type(self).__name__}: {pretrained_file_name!r} is none of its files; there are {', '.join(names)}. "
                "Read other files with CustomEmbedding",
            )
        path = os.path.join(
            os.path.expanduser(checked(embedding_root, "embedding_root")),
            type(self).__name__.lower(),
            pretrained_file_name,
        )
        if not os.path.isfile(path):
            raise error(
                FileNotFoundError,
                f"{type(self).__name__}: {path!r} is not there; mxcore does not download embeddings: get the "
                "file from its authors and put it there, or read it with CustomEmbedding",
            )
        super().__init__(**kwargs)
        self._load_embedding(path, " ", init_unknown_vec)
        self._build_embedding_for_vocabulary(vocabulary)


class GloVe(_Published):
    """GloVe's vectors, from a file in ``<embedding_root>/glove``.

    Parameters
    ----------
    pretrained_file_name : str
    embedding_root : str
    init_unknown_vec : callable
        Makes the vector of unknown words from ``shape``, where the file has none.
    vocabulary : Vocabulary, optional
        Keep its words only.

    Raises
    ------
    MXNetError
        (also KeyError, FileNotFoundError, TypeError or ValueError) if the name is none of GloVe's files, the file is
        not there, or does not fit.

    Examples
    --------
    >>> "glove.6B.50d.txt" in get_pretrained_file_names("glove")
    True
    >>> import pathlib, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> (root / "glove").mkdir()
    >>> (root / "glove" / "glove.6B.50d.txt").write_text("hello 1 2\\n")
    10
    >>> GloVe("glove.6B.50d.txt", embedding_root=str(root)).idx_to_token
    ['<unk>', 'hello']
    """

    pretrained_file_name_sha1 = dict.fromkeys(_GLOVE)

    def __init__(
        self,
        pretrained_file_name: str = "glove.840B.300d.txt",
        embedding_root: str = os.path.join("~", ".mxnet", "embeddings"),
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs)


class FastText(_Published):
    """fastText's vectors, from a file in ``<embedding_root>/fasttext``; parameters and errors as in `GloVe`.

    Examples
    --------
    >>> "wiki.simple.vec" in get_pretrained_file_names("fasttext")
    True
    """

    pretrained_file_name_sha1 = dict.fromkeys(_FASTTEXT)

    def __init__(
        self,
        pretrained_file_name: str = "wiki.simple.vec",
        embedding_root: str = os.path.join("~", ".mxnet", "embeddings"),
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs)


class CustomEmbedding(_TokenEmbedding):
    """Vectors from a file of your own, one word a line: the word, then its numbers.

    Parameters
    ----------
    pretrained_file_path : str
        Path or URL.
    elem_delim : str
        Between the word and the numbers.
    encoding : str
    init_unknown_vec : callable
        Makes the vector of unknown words from ``shape``, where the file has none.
    vocabulary : Vocabulary, optional
        Keep its words only.

    Raises
    ------
    MXNetError
        (also ValueError) naming file and line, if a line does not fit.

    Examples
    --------
    >>> from mxcore._io_files import write_atomic
    >>> write_atomic("memory://doc/vectors.txt", b"hello 1 2\\nworld 3 4\\n")
    >>> e = CustomEmbedding("memory://doc/vectors.txt")
    >>> e.get_vecs_by_tokens(["world", "?"]).asnumpy().tolist()
    [[3.0, 4.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        pretrained_file_path: str,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._build_embedding_for_vocabulary(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The words of a vocabulary, with the vectors of several embeddings one after the other.

    Parameters
    ----------
    vocabulary : Vocabulary
    token_embeddings : embedding or list of them

    Raises
    ------
    MXNetError
        (also TypeError) if an argument is none.

    Examples
    --------
    >>> import collections
    >>> from mxcore._io_files import write_atomic
    >>> write_atomic("memory://doc/one.txt", b"hello 1 2\\nworld 3 4\\n")
    >>> one = CustomEmbedding("memory://doc/one.txt")
    >>> both = CompositeEmbedding(Vocabulary(collections.Counter(["world"])), [one, one])
    >>> both.get_vecs_by_tokens("world").asnumpy().tolist()
    [3.0, 4.0, 3.0, 4.0]
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise asserted(TypeError, f"CompositeEmbedding: a Vocabulary is needed, got {type(vocabulary).__name__}")
        parts: Sequence[Any] = token_embeddings if isinstance(token_embeddings, (list, tuple)) else [token_embeddings]
        bad = [type(e).__name__ for e in parts if not isinstance(e, _TokenEmbedding)]
        if bad or not parts:
            raise asserted(TypeError, f"CompositeEmbedding: token_embeddings must be embeddings, got {bad or 'none'}")
        super().__init__()
        self._adopt(vocabulary)
        self._idx_to_vec = nd.concat(*[e.get_vecs_by_tokens(vocabulary.idx_to_token) for e in parts], dim=1)
        self._vec_len = self._idx_to_vec.shape[1]


_register = registry.get_register_func(_TokenEmbedding, "token embedding")
_create = registry.get_create_func(_TokenEmbedding, "token embedding")


def register(embedding_cls: Any) -> Any:
    """Let :func:`create` make embeddings of a class, by its name in small letters; a decorator.

    Examples
    --------
    >>> @register
    ... class MyWords(CustomEmbedding):
    ...     def __init__(self):
    ...         Vocabulary.__init__(self)
    >>> type(create("mywords")).__name__
    'MyWords'
    """
    return _register(embedding_cls)


for _cls in (GloVe, FastText, CustomEmbedding):
    register(_cls)


def create(embedding_name: str, **kwargs: Any) -> Any:
    """Make an embedding by name: ``'glove'``, ``'fasttext'``, ``'customembedding'`` or one of :func:`register`.

    Raises
    ------
    MXNetError
        If there is no such embedding, or its class refuses the arguments.

    Examples
    --------
    >>> from mxcore._io_files import write_atomic
    >>> write_atomic("memory://doc/two.txt", b"hello 1 2\\n")
    >>> create("customembedding", pretrained_file_path="memory://doc/two.txt").vec_len
    2
    """
    return _create(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """Names of the published files of an embedding, or of all by name of the embedding.

    Raises
    ------
    MXNetError
        (also KeyError) if there is no such embedding.

    Examples
    --------
    >>> get_pretrained_file_names("fasttext")[0]
    'crawl-300d-2M.vec'
    """
    found = {c.__name__.lower(): list(c.pretrained_file_name_sha1) for c in (GloVe, FastText)}
    if embedding_name is None:
        return found
    if embedding_name not in found:
        raise error(
            KeyError, f"there are no published files of {embedding_name!r}; there are those of {', '.join(found)}"
        )
    return found[embedding_name]
