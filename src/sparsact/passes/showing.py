"""Where progress is shown: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

from sparsact.passes.progress import OnProgress, Progress


@dataclass
class Lines:
    """A line on stderr for a note, and for each stage as it begins: for all stages, or only after a note."""

    begun: bool
    _seen: set[str] = field(default_factory=set)

    def __call__(self, now: Progress) -> None:
        """Print what is new."""
        self.begun |= bool(now.note)
        line = now.note or f"{now.stage} ..."
        if self.begun and line not in self._seen and sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)
        self._seen.add(line)


def on_a_terminal() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def showing(progress: bool | OnProgress | None) -> Iterator[OnProgress | None]:
    """What shows progress on stderr: bars if that is a terminal (and rich is installed), else lines.

    None is as True, but without a terminal lines begin at the note of a fit that may take long. False shows nothing,
    and a callable shows what it likes.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"`progress` is True, False, None or a function of a Progress; got {progress!r}.")
    if callable(progress) or progress is False:
        yield progress or None
    elif on_a_terminal() and find_spec("rich") is not None:
        from sparsact.passes.bars import bars

        with bars() as shown:
            yield shown
    else:
        yield Lines(begun=progress is True or on_a_terminal())
