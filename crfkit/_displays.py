"""What all pictures of models and predictions share, wherever they are drawn."""

from __future__ import annotations

from typing import Any


class Display:
    """A picture, drawn by `plot`; `name` is that of what it shows."""

    name: str | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


def pyplot(what: str) -> Any:
    """Return matplotlib's pyplot; ImportError says what needs it, and how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{what} needs matplotlib: pip install 'crfkit[plot]'.") from error
    return plt
