"""CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit._params import meant
from crfkit.cli.formats.base import DataFormat, Labeled, Words
from crfkit.io import ConlluSentence, iter_conllu
from crfkit.io.conllu import sentence_lines

CONLLU_COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "deprel")
_PROBABILITY = "Probability"  # the entry of MISC


class ConlluFormat(DataFormat):
    """CoNLL-U: the columns form, lemma, upos, xpos, feats and deprel, without the label."""

    name = "conllu"

    def _check_label(self) -> None:
        self._label = (self.label or "upos").lower()
        if self._label not in CONLLU_COLUMNS:
            raise ValueError(
                f"--label {self.label}: choose one of {', '.join(CONLLU_COLUMNS)}."
                f"{meant(self.label, CONLLU_COLUMNS)}"
            )
        self.columns = [name for name in CONLLU_COLUMNS if name != self._label]

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the fields of the words as tuples, and the label field."""
        labeled = Labeled([], [])
        for tokens, sentence in self.iterate(source, width):
            labeled.X.append(tokens)
            labeled.y.append([word.text(self._label) for word in sentence.words])
        return labeled

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], ConlluSentence]]:
        """Yield the fields of the words, and the sentences."""
        fields = self.columns or []
        for sentence in iter_conllu(source, encoding=self.encoding):
            yield [tuple(word.text(name) for name in fields) for word in sentence.words], sentence

    def tagged(
        self, sequence: ConlluSentence, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return all lines of the sentence with the label in its field, a second column in MISC."""
        cells, rows = zip(*columns, strict=True), []
        for row in sequence.rows:
            if row.id.isdigit():
                label, *probability = next(cells)
                filled: dict[str, Any] = {self._label: label}
                if probability:
                    filled["misc"] = row.misc | {_PROBABILITY: probability[0]}
                row = row._replace(**filled)
            rows.append(row)
        added = [f"{name} = {value}" for name, value in notes.items()]
        return sentence_lines(ConlluSentence(rows, sequence.comments + added))

    def words(self, tokens: Sequence[Any], sequence: ConlluSentence) -> Words:
        """Return the forms, and the fields that are features."""
        forms = [word.form for word in sequence.words]
        return Words(forms, [tuple(token) for token in tokens])
