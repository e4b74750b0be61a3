"""Treebanks of Universal Dependencies."""

from __future__ import annotations

import io
import re

from sklearn.utils import Bunch

from crfkit.datasets.remote import Collection, PathLike, Places, RemoteFile, fetch_parts
from crfkit.io import read_conllu

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


def _read(content: io.BytesIO) -> Bunch:
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
    return fetch_parts(_collection(treebank), part, places, _read)
