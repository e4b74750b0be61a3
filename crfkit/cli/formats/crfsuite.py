"""CRFsuite's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crfkit.cli.formats.base import DataFormat, Labeled
from crfkit.io import iter_crfsuite_text, read_crfsuite_text


class CRFsuiteFormat(DataFormat):
    """CRFsuite's text: a label and attributes, split by tabs."""

    name = "crfsuite"
    has_columns = False

    def _check_label(self) -> None:
        if self.label is not None:
            raise ValueError("--label: the label of --format crfsuite is always the first cell.")

    def read(self, source: Any, width: int | None = None) -> Labeled:
        """Return the attributes as dicts, and the labels."""
        X, y, weight = read_crfsuite_text(source, encoding=self.encoding)
        return Labeled(X, y, None if (weight == 1.0).all() else weight)

    def iterate(self, source: Any, width: int | None) -> Iterator[tuple[list[Any], None]]:
        """Yield the attributes; nothing is printed before the labels."""
        for sequence in iter_crfsuite_text(source, encoding=self.encoding):
            yield sequence.attributes, None

    def tagged(
        self, sequence: None, columns: Sequence[Sequence[str]], notes: Mapping[str, str]
    ) -> list[str]:
        """Return the labels, and what follows them; notes as CRFsuite has them."""
        lines = [f"@{name}\t{value}" for name, value in notes.items()]
        return lines + ["\t".join(cells) for cells in zip(*columns, strict=True)]

    def words(self, tokens: Sequence[Any], sequence: None) -> None:
        """Return that attributes tell no words."""
        return None
