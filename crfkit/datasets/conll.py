"""The shared tasks of CoNLL-2000 and CoNLL-2002."""

from __future__ import annotations

import io

from sklearn.utils import Bunch

from crfkit._params import check_option
from crfkit.datasets.remote import Collection, PathLike, Places, RemoteFile, fetch_parts
from crfkit.io import read_conll

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
