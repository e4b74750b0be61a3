"""A bar that shows how far reading, features and fits are."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from crfkit._progress import Task, listen, unlisten
from crfkit._search_progress import SearchProgress, Sender, depth_of, is_search

# Characters of a bar, the longest first, and how wide a line is that has one so long.
BARS = ((24, 100), (16, 60), (6, 0))
NAME = 8  # characters of a phase
PLAIN_SECONDS = 30.0  # between lines where none can be written over
_COLOR, _END = "\033[36m", "\033[0m"


class ProgressBar:
    """Shows what is read, made into features and fitted, how far that is, and when it may end.

    Within ``with ProgressBar():`` all such work of the process is shown, whatever calls it:
    pipelines, searches and cross-validation of scikit-learn, too. With scikit-learn 1.9 or later it
    is also a callback: ``estimator.set_callbacks(ProgressBar())`` shows each fit of that estimator,
    or of the pipeline or search. As the callback of a search it counts the fits that have ended,
    those in other processes (``n_jobs``) too; within ``with`` these are not seen.

    On a terminal and in a notebook one line is written over, elsewhere each phase that has ended
    gets a line. The line has the phase, the share that is done, what is known of it (iterations,
    the objective, the score on a validation part), and the seconds so far and those expected. The
    end of a fit is expected from how fast it has converged so far.

    Parameters
    ----------
    file : text stream or None, default=None
        Where to write; None is standard error, in notebooks standard output.
    every : float, default=0.1
        Seconds between two states of the line.
    shown : bool, default=True
        Whether anything is written.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C has ended a fit, which kept what it had reached.

    Notes
    -----
    Colors are left out where ``NO_COLOR`` is set. Without a bar, work that could be shown costs
    nothing that can be measured.

    Examples
    --------
    >>> import sys
    >>> from crfkit import CRFClassifier, ProgressBar
    >>> X, y = [[["the"], ["dog"]]], [["DET", "NOUN"]]
    >>> with ProgressBar(file=sys.stdout):  # doctest: +ELLIPSIS
    ...     crf = CRFClassifier().fit(X, y)
    features 1 sequence, 2 attributes, ...
    fitting  6 iterations, objective 0.5574, ...
    """

    # scikit-learn 1.9 passes it on to the estimators of a pipeline or search.
    max_propagation_depth: ClassVar[int | None] = None

    def __init__(
        self, file: IO[str] | None = None, every: float = 0.1, *, shown: bool = True
    ) -> None:
        self.file, self.every, self.shown = file, every, shown
        self.interrupted = False
        self._search: SearchProgress | None = None
        self._sender: Sender | None = None  # in other processes, to the one that counts
        self._forget()

    def _forget(self) -> None:
        self._open: list[Task] = []  # work under way, the outermost first
        self._seen: set[str] = set()  # phases that have had a line of their own
        self._line = ""  # what stands on the line that is written over
        self._drawn = self._told = 0.0
        self._depth = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is under way: other processes do not show it, but tell of it."""
        sender = self._sender if self._search is None else self._search.sender
        return {"every": self.every, "interrupted": self.interrupted, "_sender": sender}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, file=None, shown=False, _search=None)
        self._forget()

    def __enter__(self) -> Self:
        if self._depth == 0:
            listen(self)
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._depth -= 1
        if self._depth == 0:
            unlisten(self)
            self._keep_line()

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin to show work: scikit-learn calls it where a fit begins."""
        self.__enter__()

    def teardown(self, estimator: Any, context: Any) -> None:
        """Show no more: scikit-learn calls it where the fit has ended."""
        self._end_search()
        self.__exit__(None, None, None)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin to count the fits of a search; other fits tell of themselves."""
        if self.shown and self._search is None and is_search(context):
            self._search = SearchProgress(context.max_subtasks, depth_of(context))

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Count the fits of a search, and do not end the fit."""
        sender = self._sender if self._search is None else self._search.sender
        below = -1 if sender is None else depth_of(context) - sender.depth
        if self._search is None and sender is not None and below == 1:
            sender.send()
        elif self._search is not None and below == 1:
            self._search.count()
        elif below == 0:
            self._end_search()
        return False

    def _end_search(self) -> None:
        if self._search is not None:
            self._search.close()
            self._search = None

    def begin(self, task: Task) -> None:
        """Show that a piece of work begins."""
        with self._lock:
            self._open.append(task)
            self._told = now = time.perf_counter()
            if now - self._drawn >= self.every:
                self._draw(now)

    def update(self, task: Task) -> None:
        """Show that more of it is done."""
        now = time.perf_counter()
        if now - self._drawn >= self.every:
            with self._lock:
                self._draw(now)

    def end(self, task: Task) -> None:
        """Show that it has ended."""
        with self._lock:
            self.interrupted |= bool(task.facts.get("interrupted"))
            if task not in self._open:  # it has ended with work that it was a part of
                return
            place = self._open.index(task)
            others = [each for each in self._open[place:] if each.thread != task.thread]
            self._open = self._open[:place] + others
            if self._open or not self.shown:
                return
            text = _fitted(task.phase, ended(task), self._width())
            if not self._writes_over:
                self._write(text + "\n")
                return
            self._write("\r" + text.ljust(len(self._line)))
            self._line, self._drawn = text, time.perf_counter()
            if task.phase not in self._seen:  # further ones are written over
                self._seen.add(task.phase)
                self._keep_line()

    def clear_line(self) -> None:
        """Make room for a line that somebody else writes."""
        with self._lock:
            if self._line:
                self._write("\r" + " " * len(self._line) + "\r")
                self._line = ""

    def _keep_line(self) -> None:
        if self._line:
            self._line = ""
            self._write("\n")

    def _draw(self, now: float) -> None:
        """Write the line of the work under way."""
        if not (self.shown and self._open):
            return
        if not self._writes_over:
            if now - self._told >= PLAIN_SECONDS:
                self._told = now
                self._write(self._state(now) + "\n")
            return
        self._drawn = now
        text = self._state(now)
        shown = self._colored(text)
        self._write("\r" + shown + " " * max(len(self._line) - len(text), 0))
        self._line = text

    def _state(self, now: float) -> str:
        """Return what is to be said of the work under way."""
        outer, inner = self._open[0], _measure(self._open)
        name = outer.phase
        if outer is not inner and outer.total:
            name = f"{outer.unit[:-1]} {int(outer.done) + 1}/{int(outer.total)}"
            name = f"{name} {inner.phase}"
        return _fitted(name, running(inner, now), self._width(), share_of(inner))

    def _colored(self, text: str) -> str:
        left, right = text.find("["), text.find("]")
        if left < 0 or os.environ.get("NO_COLOR") or not self._stream.isatty():
            return text
        return f"{text[:left]}{_COLOR}{text[left : right + 1]}{_END}{text[right + 1 :]}"

    @property
    def _stream(self) -> IO[str]:
        return self.file or (sys.stdout if _in_notebook() else sys.stderr)

    @property
    def _writes_over(self) -> bool:
        """Whether a line can be written over."""
        stream = self._stream
        if self.file is None and _in_notebook():
            return True
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"

    def _width(self) -> int:
        """Return how many characters a line may have."""
        if not self._writes_over:
            return 10_000
        return 100 if _in_notebook() else _columns(self._stream) - 1

    def _write(self, text: str) -> None:
        """Write, unless nobody can read it."""
        stream = self._stream
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the terminal is gone, or there is none
            self.shown = False


def _columns(stream: IO[str]) -> int:
    """Return how many characters a line of a terminal has."""
    try:
        width = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # it does not say
        width = 0
    return width or 80


def _in_notebook() -> bool:
    """Whether the process is the kernel of a notebook, where nothing is a terminal."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"


def _measure(tasks: list[Task]) -> Task:
    """Return the work that tells how far all is: what reads a stream, else the innermost."""
    return next((task for task in tasks if task.unit == "bytes"), tasks[-1])


def share_of(task: Task) -> float | None:
    """Return which share of a piece of work is done, None where that is not known."""
    left = _left(task)
    if left is None:
        return None
    return task.done / (task.done + left) if task.done + left else 0.0


def _left(task: Task) -> float | None:
    """Return how much is still to be done, as far as is known."""
    known = [] if task.total is None else [max(task.total - task.done, 0.0)]
    expected = task.facts.get("left")
    return min([*known, *([] if expected is None else [expected])], default=None)


def running(task: Task, now: float) -> list[str]:
    """Return what is known of work under way, what matters most first."""
    seconds, left, said = now - task.started, _left(task), []
    if left is not None and task.done and seconds > 1.0:
        said.append(f"about {duration(math.ceil(seconds * left / task.done))} left")
    return [*said, *_facts(task), duration(seconds)]


def ended(task: Task) -> list[str]:
    """Return what is said of work that has ended."""
    how = []
    if "failed" in task.facts or task.facts.get("interrupted"):
        stopped = task.facts.get("interrupted") or task.facts["failed"] == "KeyboardInterrupt"
        how = ["interrupted" if stopped else "failed"]
    return [*how, *_facts(task), duration(time.perf_counter() - task.started)]


def _facts(task: Task) -> list[str]:
    """Return amounts and values."""
    facts, said = task.facts, []
    if task.unit in ("iterations", "fits", "folds") and task.done:
        of = "" if task.total is None else f"/{task.total:.0f}"
        said.append(f"{task.done:.0f}{of} {task.unit}")
    for name in ("score", "objective"):
        if name in facts and math.isfinite(facts[name]):
            said.append(f"{name} {_value(facts[name])}")
    amounts = [name for name in ("sequences", "attributes") if name in facts]
    return said + [_amount(facts[name], name) for name in amounts]


def _amount(number: int, name: str) -> str:
    return f"{number:,} {name.removesuffix('s') if number == 1 else name}"


def _value(number: float) -> str:
    return f"{number:,.4f}" if abs(number) < 10.0 else f"{number:,.2f}"


def duration(seconds: float) -> str:
    """Return a time as people say it; a whole number without decimals."""
    if seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d} h"
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"


def _fitted(name: str, said: list[str], width: int, share: float | None = None) -> str:
    """Return a line that fits a width: what matters least is left out first, then the bar."""
    for bar in _bars(share, width):
        for count in range(len(said), 0, -1):
            text = f"{name:<{NAME}} {bar}{', '.join(said[:count])}"
            if len(text) <= width:
                return text
    percent = "" if share is None else f"{int(100 * share):3d} %"
    return f"{name:<{NAME}} {percent}".rstrip()[:width]


def _bars(share: float | None, width: int) -> Iterator[str]:
    """Yield a bar for a width, then shorter forms of it."""
    if share is not None:
        percent = f"{int(100 * share):3d} %  "
        for size, least in BARS:
            if width >= least:
                filled = int(size * share)
                yield f"[{'#' * filled}{'-' * (size - filled)}] {percent}"
        yield percent
    else:
        yield ""
