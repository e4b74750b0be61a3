"""The shared tasks of CoNLL-2000 and CoNLL-2002, and treebanks of Universal Dependencies."""

from __future__ import annotations

import io
import re

from sklearn.utils import Bunch

from crfkit._params import check_option
from crfkit.datasets.remote import Collection, PathLike, Places, RemoteFile, fetch_parts
from crfkit.io import read_conll, read_conllu

_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora"


def _files(corpus: str, hashes: dict[str, str], parts: tuple[str, ...]) -> dict[str, RemoteFile]:
    """Return the files of a corpus by part, given their hashes by name."""
    return {
        part: RemoteFile(name, sha256, f"{_NLTK}/{corpus}.zip", f"{corpus}/{name}")
        for part, (name, sha256) in zip(parts, hashes.items(), strict=True)
    }


CONLL2000 = Collection(
    folder="conll2000",
    files=_files(
        "conll2000",
        {
            "train.txt": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
            "test.txt": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
        },
        ("train", "test"),
    ),
    mirror_folders=("conll2000",),
    license="none stated; the text is from the Wall Street Journal",
    description="""\
CoNLL-2000 text chunking
========================
Phrases (noun phrases, verb phrases ...) in newspaper text: sections 15-18 of the Wall Street
Journal part of the Penn Treebank for training, section 20 for testing. Parts of speech are from
the Brill tagger, chunk tags (IOB2) are derived from the treebank.

train: 8,936 sentences, 211,727 tokens, 106,978 chunks
test: 2,012 sentences, 47,377 tokens, 23,852 chunks

Tjong Kim Sang and Buchholz (2000), "Introduction to the CoNLL-2000 shared task: chunking".
""",
)


def _conll2002(language: str, hashes: dict[str, str], counts: str) -> Collection:
    return Collection(
        folder="conll2002",
        files=_files("conll2002", hashes, ("train", "dev", "test")),
        mirror_folders=(f"conll2002_{language}", "conll2002"),
        license="for research in the context of the CoNLL-2002 shared task only, no commercial use",
        description=f"""\
CoNLL-2002 named entities
=========================
Names of persons (PER), places (LOC), organizations (ORG) and others (MISC) in newspaper text, IOB2.

{counts}

Tjong Kim Sang (2002), "Introduction to the CoNLL-2002 shared task: language-independent named
entity recognition".
""",
    )


CONLL2002 = {
    "es": _conll2002(
        "es",
        {
            "esp.train": "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008",
            "esp.testa": "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87",
            "esp.testb": "1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016",
        },
        "Spanish, EFE newswire of May 2000: 8,323 sentences for training, 1,915 for development,\n"
        "1,517 for testing. One tag in the training part is illegal in IOB2 (an I that begins).",
    ),
    "nl": _conll2002(
        "nl",
        {
            "ned.train": "0a419dcb356b62c8cff38515675550b3d5dbea9f45a1c4956328dbd5cc7fcdbc",
            "ned.testa": "51259d4bfe52462f211d3d0b67173a7ecbfa296e199f6c6bd0895f4c78155057",
            "ned.testb": "2aa748edb82e6f9c4d82e57a4bed69ded18cfa4803122c75070335d513517488",
        },
        "Dutch, De Morgen of 2000. Marks of new articles (-DOCSTART-) are left out.",
    ),
}


def _read(content: io.BytesIO) -> Bunch:
    rows, tags = read_conll(content, sep=" ", skip_docstart=True)
    return Bunch(
        tokens=[[word for word, _ in row] for row in rows],
        pos=[[pos for _, pos in row] for row in rows],
        tags=tags,
        target_names=sorted({tag for sequence in tags for tag in sequence}),
    )


def fetch_conll2000(
    part: str = "train",
    *,
    data_home: PathLike | None = None,
    mirror: PathLike | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load the chunking data of CoNLL-2000, downloading them if needed.

    Parameters
    ----------
    part : {"train", "test", "all"}, default="train"
        Which part to load.
    data_home : path, optional
        Where downloaded files are kept; see :func:`get_data_home`.
    mirror : path, optional
        A folder that holds the files, packed (``.gz``, ``.xz``, ``.bz2``) or not, itself or in
        ``conll2000``. If given, nothing else is looked at and nothing is written.
    download_if_missing : bool, default=True
        Whether to download what is not there, or to raise an error.

    Returns
    -------
    data : Bunch
        tokens, pos, tags : list of list of str, length S
            Words, parts of speech and IOB2 chunk tags of each sentence.
        target_names : list of str
            All tags of the part, sorted.
        part, filename, DESCR, license : str
            What was read, what it is and what may be done with it.
        verified : bool
            Whether the content had a known SHA-256 to be compared with (here always).

        With ``part="all"`` a Bunch of such Bunches, ``train`` and ``test``, with ``DESCR`` and
        ``license``.

    Raises
    ------
    OSError, ValueError
        If a file cannot be had or has not the content it should have; if the part is not known.
    """
    return fetch_parts(CONLL2000, part, Places(data_home, mirror, download_if_missing), _read)


def fetch_conll2002(
    part: str = "train",
    *,
    language: str = "es",
    data_home: PathLike | None = None,
    mirror: PathLike | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load the named entities of CoNLL-2002, downloading them if needed.

    Errors and the rest of the parameters are those of :func:`fetch_conll2000`.

    Parameters
    ----------
    part : {"train", "dev", "test", "all"}, default="train"
        Which part to load; "dev" is the file ``testa``, "test" is ``testb``.
    language : {"es", "nl"}, default="es"
        Spanish or Dutch.
    mirror : path, optional
        A folder that holds the files, packed or not, itself or in ``conll2002_es``,
        ``conll2002_nl`` or ``conll2002``.

    Returns
    -------
    data : Bunch
        As of :func:`fetch_conll2000`; the tags are IOB2 over PER, LOC, ORG and MISC.
    """
    check_option("language", language, CONLL2002)
    places = Places(data_home, mirror, download_if_missing)
    return fetch_parts(CONLL2002[language], part, places, _read)


_RELEASE = "r2.16"
_GITHUB = "https://raw.githubusercontent.com/UniversalDependencies"
_CODE = re.compile(r"[a-z]{2,8}_[a-z0-9]+")
_PARTS = ("train", "dev", "test")

_REPOSITORIES = {"en_ewt": "UD_English-EWT", "zh_gsdsimp": "UD_Chinese-GSDSimp"}
_SHA256 = {
    "en_ewt": {
        "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
        "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
        "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
    },
    "zh_gsdsimp": {
        "dev": "342a2969df6d6d08bdc25dbc067c93c86ab3099bb054a9921ae7067cbc2c53ad",
        "test": "573f59b799b499a920d2d5bdc0e3c1dbd7bcacf86bdece4334ecbd03e21b6150",
    },
}


def _file(treebank: str, part: str) -> RemoteFile:
    name = f"{treebank}-ud-{part}.conllu"
    sha256 = _SHA256.get(treebank, {}).get(part)
    if sha256 is None:
        return RemoteFile(name)
    return RemoteFile(name, sha256, f"{_GITHUB}/{_REPOSITORIES[treebank]}/{_RELEASE}/{name}")


def _collection(treebank: str) -> Collection:
    known = treebank in _SHA256
    version = f", release {_RELEASE[1:]}" if known else " (version and license as in its README)"
    return Collection(
        folder=f"ud-{_RELEASE[1:]}",
        files={part: _file(treebank, part) for part in _PARTS},
        mirror_folders=("UD_*", "ud_*"),
        license="CC BY-SA 4.0" if known else "see the README of the treebank",
        description=f"Universal Dependencies, treebank {treebank}{version}.\n"
        'Nivre et al. (2020), "Universal Dependencies v2".\n',
    )


def _read_treebank(content: io.BytesIO) -> Bunch:
    sentences = read_conllu(content)
    tags = [[word.upos for word in sentence.words] for sentence in sentences]
    return Bunch(
        sentences=sentences,
        tokens=[[word.form for word in sentence.words] for sentence in sentences],
        tags=tags,
        target_names=sorted({tag for sequence in tags for tag in sequence}),
    )


def fetch_ud(
    treebank: str = "en_ewt",
    part: str = "train",
    *,
    data_home: PathLike | None = None,
    mirror: PathLike | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load a treebank of Universal Dependencies, downloading it if needed.

    Downloaded and checked are the English ``en_ewt`` and the parts dev and test of the Chinese
    ``zh_gsdsimp``, of release 2.16. Any other treebank or part is read from a mirror, such as an
    unpacked release of all treebanks, without a check.

    Parameters
    ----------
    treebank : str, default="en_ewt"
        The code in the names of its files, ``{treebank}-ud-{part}.conllu``.
    part : {"train", "dev", "test", "all"}, default="train"
        Which part to load.
    data_home, download_if_missing
        As of :func:`fetch_conll2000`, and the errors.
    mirror : path, optional
        A folder that holds the files, packed or not, itself or in folders ``UD_*`` or ``ud_*``.

    Returns
    -------
    data : Bunch
        sentences : list of ConlluSentence, length S
            As of :func:`crfkit.io.read_conllu`.
        tokens, tags : list of list of str, length S
            The words and their universal parts of speech. For other fields pass `sentences` to
            :func:`crfkit.io.conllu_features_and_labels`.
        target_names, part, filename, verified, DESCR, license
            As of :func:`fetch_conll2000`.

        With ``part="all"`` a Bunch of such Bunches, ``train``, ``dev`` and ``test``.
    """
    if not isinstance(treebank, str) or not _CODE.fullmatch(treebank):
        raise ValueError(f"treebank={treebank!r} is no code such as 'en_ewt' or 'cs_pdt'.")
    places = Places(data_home, mirror, download_if_missing)
    return fetch_parts(_collection(treebank), part, places, _read_treebank)
