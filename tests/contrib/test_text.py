"""Vocabularies and embeddings; what is right was seen in the real MXNet 1.9.1."""

import collections
import pickle
import warnings

import pytest

import mxcore as mx

text = mx.contrib.text
WORDS = collections.Counter("a b b c c c d d e some_word".split())


def file(tmp_path, content, name="e.txt"):
    (tmp_path / name).write_text(content, encoding="utf8")
    return str(tmp_path / name)


def test_count():
    found = text.utils.count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True)
    assert found == {"!": 1, ".": 1, "good": 1, "great": 1, "is": 2, "life": 2}
    more = text.utils.count_tokens_from_str("*is*x*", r"\*", counter_to_update=found)
    assert more is found and more["is"] == 3 and more["x"] == 1


@pytest.mark.parametrize(
    ("keywords", "tokens"),
    [
        ({}, ["<unk>", "c", "b", "d", "a", "e", "some_word"]),
        ({"most_freq_count": 3}, ["<unk>", "c", "b", "d"]),
        ({"min_freq": 2}, ["<unk>", "c", "b", "d"]),
        (
            {"most_freq_count": 2, "min_freq": 2, "unknown_token": "u", "reserved_tokens": ["<pad>", "a"]},
            ["u", "<pad>", "a", "c", "b"],
        ),
    ],
)
def test_vocabulary(keywords, tokens):
    v = text.vocab.Vocabulary(WORDS, **keywords)
    assert v.idx_to_token == tokens and len(v) == len(tokens) and v.token_to_idx == {t: i for i, t in enumerate(tokens)}
    assert v.to_indices(["c", "?"]) == [tokens.index("c"), 0] and v.to_indices("b") == tokens.index("b")
    assert v.to_tokens([0, 1]) == tokens[:2] and v.to_tokens(1) == tokens[1]
    for wrong in (-1, len(tokens)):  # MXNet takes the last for -1
        with pytest.raises(ValueError, match="no number of a word"):
            v.to_tokens([0, wrong])
    assert (v.unknown_token, v.reserved_tokens) == (
        keywords.get("unknown_token", "<unk>"),
        keywords.get("reserved_tokens"),
    )


@pytest.fixture
def embedding(tmp_path):
    with pytest.warns(UserWarning, match="line 5: 'hello' came before"):
        return text.embedding.CustomEmbedding(file(tmp_path, "3 2\nhello 1 2\nworld 3 4\nWord 7 8\nhello 9 9\n"))


def test_custom_embedding(embedding):
    assert embedding.idx_to_token == ["<unk>", "hello", "world", "Word"] and embedding.vec_len == 2
    assert embedding.idx_to_vec.asnumpy().tolist() == [[0, 0], [1, 2], [3, 4], [7, 8]]
    assert embedding.get_vecs_by_tokens("WORLD", lower_case_backup=True).asnumpy().tolist() == [3, 4]
    assert embedding.get_vecs_by_tokens(["hello", "WORLD"]).asnumpy().tolist() == [[1, 2], [0, 0]]
    embedding.update_token_vectors("hello", mx.nd.array([5, 5]))
    embedding.update_token_vectors(["world", "<unk>"], mx.nd.array([[6, 6], [7, 7]]))
    assert embedding.idx_to_vec.asnumpy().tolist() == [[7, 7], [5, 5], [6, 6], [7, 8]]


def test_unknown_words_and_vocabularies(tmp_path, embedding):
    other = text.embedding.CustomEmbedding(
        file(tmp_path, "hello|5|6|1\n<unk>|9|9|9\nb|0|1|2\n", "b.txt"), elem_delim="|"
    )
    assert other.idx_to_vec.asnumpy().tolist() == [[9, 9, 9], [5, 6, 1], [0, 1, 2]]
    v = text.vocab.Vocabulary(collections.Counter("hello b world".split()))
    both = text.embedding.CompositeEmbedding(v, [embedding, other])
    assert both.idx_to_token == ["<unk>", "b", "hello", "world"] and both.vec_len == 5
    assert both.idx_to_vec.asnumpy().tolist() == [[0, 0, 9, 9, 9], [0, 0, 0, 1, 2], [1, 2, 5, 6, 1], [3, 4, 9, 9, 9]]
    few = text.embedding.CustomEmbedding(str(tmp_path / "b.txt"), elem_delim="|", vocabulary=v)
    assert few.idx_to_token == v.idx_to_token and few.idx_to_vec.asnumpy()[2].tolist() == [5, 6, 1]


def test_published_files_are_read_from_their_folder(tmp_path):
    (tmp_path / "glove").mkdir()
    file(tmp_path / "glove", "the 1 2 3\n", "glove.6B.50d.txt")
    found = text.embedding.create(
        "glove", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path), init_unknown_vec=mx.nd.ones
    )
    assert type(found) is text.embedding.GloVe and found.idx_to_vec.asnumpy().tolist() == [[1, 1, 1], [1, 2, 3]]
    assert "glove.6B.50d.txt" in text.embedding.get_pretrained_file_names("glove")
    assert "wiki.simple.vec" in text.embedding.get_pretrained_file_names()["fasttext"]


def test_an_embedding_of_ones_own():
    @text.embedding.register
    class Constant(text.embedding.CustomEmbedding):
        def __init__(self):
            text.vocab.Vocabulary.__init__(self)

    assert type(text.embedding.create("constant")) is Constant


V, E = text.vocab.Vocabulary, text.embedding
BAD = {
    "frequency": (lambda p: V(WORDS, min_freq=0), ValueError, "min_freq must be 1 or more"),
    "reserved": (lambda p: V(WORDS, reserved_tokens=["a", "a"]), ValueError, "repeat"),
    "unknown reserved": (lambda p: V(WORDS, reserved_tokens=["<unk>"]), ValueError, "which is the unknown_token"),
    "counter": (lambda p: V(["a"]), TypeError, "collections.Counter, got list"),
    "number": (lambda p: V(WORDS).to_tokens([99]), ValueError, "99 is no number of a word"),
    "no delimiter": (
        lambda p: E.CustomEmbedding(file(p, "a 1\n"), elem_delim=""),
        ValueError,
        "CustomEmbedding: elem_delim must be what is between the numbers, got ''",
    ),
    "letters": (lambda p: E.CustomEmbedding(file(p, "a 1 x\n")), ValueError, "line 1: the vector of 'a'"),
    "underscores": (lambda p: E.CustomEmbedding(file(p, "a 1_0 2\n")), ValueError, "line 1: the vector of 'a'"),
    "digits": (lambda p: E.CustomEmbedding(file(p, "a \u0661 2\n")), ValueError, "line 1: the vector of 'a'"),
    "lengths": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\nb 1 2\nc 1 2 3\n")),
        ValueError,
        "line 3: 'c' has 3 numbers",
    ),
    "no array": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\n")).update_token_vectors("a", [1, 2]),
        TypeError,
        "must be an NDArray, got list",
    ),
    "kind": (lambda p: E.create("nobody"), KeyError, "no token embedding is named 'nobody'"),
    "delimiter": (lambda p: E.CustomEmbedding(file(p, "a,1,2\n")), ValueError, "line 1: 'a,1,2' has no vector"),
    "empty": (lambda p: E.CustomEmbedding(file(p, "")), ValueError, "holds no word"),
    "no file": (lambda p: E.CustomEmbedding(str(p / "x.txt")), FileNotFoundError, "x.txt"),
    "unknown vector": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\n"), init_unknown_vec=lambda shape: mx.nd.ones(3)),
        ValueError,
        r"gave shape \(3,\)",
    ),
    "word": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\n")).update_token_vectors("b", mx.nd.ones(2)),
        ValueError,
        r"no words \['b'\]",
    ),
    "shape": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\n")).update_token_vectors("a", mx.nd.ones(3)),
        ValueError,
        r"\(1, 2\) is needed",
    ),
    "name": (lambda p: E.create("glove", pretrained_file_name="x"), KeyError, "none of its files"),
    "download": (lambda p: E.create("fasttext", embedding_root=str(p)), FileNotFoundError, "does not download"),
    "names": (lambda p: E.get_pretrained_file_names("bert"), KeyError, "glove, fasttext"),
    "vocabulary": (
        lambda p: E.CustomEmbedding(file(p, "a 1 2\n"), vocabulary=["a"]),
        TypeError,
        "vocabulary must be a Vocabulary, got list",
    ),
    "composite": (lambda p: E.CompositeEmbedding(V(WORDS), [V(WORDS)]), TypeError, "Vocabulary"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name, tmp_path):
    what, kind, message = BAD[name]
    with pytest.raises(mx.MXNetError, match=message) as e:
        what(tmp_path)
    assert isinstance(e.value, kind)


@pytest.mark.parametrize(
    "data, encoding, text",
    [
        (b"a 1 2\nb\xe9 1 2\n", "utf8", r"a\.txt, line 2: .*is not in utf8"),
        (b"".join(b"%d 1 2\n" % i for i in range(5000)) + b"\xff 1 2\n", "utf8", r"a\.txt, line 5001: "),
        (b"a 1\n\xed\xa0\x80 1\n", "utf8", r"a\.txt, line 2: "),
        ("a 1 2\nb 3 4\n".encode("utf-16")[:-1], "utf-16", r"a\.txt, behind line \d: .*truncated"),
        (b"a 1 2\n", "no such", r"a\.txt: unknown encoding"),
        (b"x" * (1 << 25), "utf8", r"a\.txt, line 1: it is longer than 16777216"),
    ],
)
def test_errors_of_encodings_name_file_and_line(data, encoding, text, tmp_path):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(mx.base.MXNetError, match=text):
        mx.contrib.text.embedding.CustomEmbedding(str(tmp_path / "a.txt"), encoding=encoding)


def test_numbers_that_are_too_large_are_infinite(tmp_path):
    (tmp_path / "a.txt").write_text("a 1e300 -1e999\n")
    found = mx.contrib.text.embedding.CustomEmbedding(str(tmp_path / "a.txt"))
    assert found.get_vecs_by_tokens("a").asnumpy().tolist() == [float("inf"), float("-inf")]


def test_headers_are_told_from_words(tmp_path):
    found = text.embedding.CustomEmbedding(file(tmp_path, "2 3\na 1 2 3\nb 4 5 6\n"))
    assert found.idx_to_token == ["<unk>", "a", "b"] and found.vec_len == 3
    found = text.embedding.CustomEmbedding(file(tmp_path, "a 1\nb 2\n"))
    assert found.idx_to_token == ["<unk>", "a", "b"] and found.idx_to_vec.asnumpy().tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("head", ["", "1 2\n"])
def test_a_mark_of_byte_order_is_no_part_of_a_word(head, tmp_path):
    path = file(tmp_path, f"\ufeff{head}a 1 2\n")
    embedding = text.embedding.CustomEmbedding(path)
    assert embedding.idx_to_token[1:] == ["a"] and embedding.get_vecs_by_tokens("a").asnumpy().tolist() == [1, 2]


def test_classes_of_users_read_files_too(tmp_path):
    class Mine(text.embedding._TokenEmbedding):
        def __init__(self, path, vocabulary=None):
            super().__init__(unknown_token="?")
            self._load_embedding(path, " ", mx.nd.ones)
            self._build_embedding_for_vocabulary(vocabulary)

    path = file(tmp_path, "a 1 2\nb 3 4\n")
    assert Mine(path).idx_to_vec.asnumpy().tolist() == [[1, 1], [1, 2], [3, 4]] and Mine(path).unknown_token == "?"
    few = Mine(path, text.vocab.Vocabulary(collections.Counter("b")))
    assert (few.idx_to_token, few.idx_to_vec.asnumpy().tolist()) == (["<unk>", "b"], [[1, 1], [3, 4]])


def test_all_published_files_are_known():
    names = text.embedding.get_pretrained_file_names("fasttext")
    assert len(names) == len(set(names)) == 327 and {
        "wiki-news-300d-1M.vec",
        "wiki.zu.vec",
        "wiki.zh_classical.vec",
    } <= set(names)
    assert len(text.embedding.get_pretrained_file_names("glove")) == 10


#: Those of the above for which MXNet has an assertion.
ASSERTED = {"lengths", "shape", "vocabulary", "composite", "no array", "kind"}


@pytest.mark.parametrize("name", sorted(ASSERTED))
def test_scripts_may_catch_what_mxnet_asserts(name, tmp_path):
    with pytest.raises(AssertionError) as e:
        BAD[name][0](tmp_path)
    assert isinstance(e.value, BAD[name][1]) and isinstance(
        pickle.loads(pickle.dumps(e.value)), (AssertionError, mx.MXNetError)
    )


@pytest.mark.parametrize(
    "made",
    [dict(min_freq=0), dict(reserved_tokens=["x", "x"]), dict(reserved_tokens=["<unk>"]), dict(counter={"a": 1})],
)
def test_vocabularies_assert_too(made):
    with pytest.raises(AssertionError):
        V(**{"counter": WORDS, **made})


def test_lines_with_one_number_are_left_out_with_a_warning(tmp_path):
    for text, message in (
        ("a 1 2\nb 3\nc 5 6\n", "line 2: 'b' has one number"),
        ("x 3\na 1 2\nc 5 6\n", "before line 2 have one number"),
    ):
        with pytest.warns(UserWarning, match=message):
            e = E.CustomEmbedding(file(tmp_path, text))
        assert e.idx_to_token == ["<unk>", "a", "c"] and e.idx_to_vec.asnumpy().tolist() == [[0, 0], [1, 2], [5, 6]]
    assert E.CustomEmbedding(file(tmp_path, "a 1\nb 2\n")).vec_len == 1


def test_unknown_words_of_another_length_are_told_with_the_file(tmp_path):
    with pytest.raises(mx.base.MXNetError, match="e.txt: '<unk>' has 1 numbers, the words have 2"):
        E.CustomEmbedding(file(tmp_path, "<unk> 0\na 1 2\n"))


def test_numbers_of_anything_and_bounds_below_zero():
    assert V(WORDS).to_indices(3) == 0 and V(WORDS, most_freq_count=-1).idx_to_token == V(WORDS).idx_to_token


@pytest.mark.parametrize("change", ["written over", "cut short"])
def test_a_file_that_is_written_while_it_is_read_is_told(tmp_path, monkeypatch, change):
    lines = "".join(f"w{i:06d} 3 3 3\n" for i in range(20_000))
    path = file(tmp_path, "w000000 3 3 3\n" + lines)  # a word twice: a warning in the midst

    def other(*args, **kwargs):
        with open(path, "r+") as f:
            if change == "cut short":
                f.truncate(len(lines) // 14 // 2 * 14)
            else:
                f.write(lines.replace("3 3 3", "5 5 5"))

    monkeypatch.setattr(warnings, "showwarning", other)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", other)
        with pytest.raises(mx.MXNetError, match="was written to while it was read"):
            text.embedding.CustomEmbedding(path)


def test_rows_beyond_what_float32_counts(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("one 1\ntwo 2\n")
    found = text.embedding.CustomEmbedding(str(path))
    far = 1 << 24
    found._token_to_idx, found._idx_to_vec = {"here": far, "there": far + 1}, mx.nd.zeros((far + 2, 1), dtype="uint8")
    found._idx_to_vec[far + 1] = 7
    assert found.get_vecs_by_tokens(["here", "there"]).asnumpy().tolist() == [[0], [7]]
