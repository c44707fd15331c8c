"""The end of a command that was asked to stop, by Ctrl-C or by SIGTERM."""

from __future__ import annotations


class Stopped(BaseException):
    """Not an Exception: no handler of errors may take it for one.

    ``status`` is what shells expect of a process that a signal ended.
    """

    def __init__(self, signal: int, where: str = "") -> None:
        super().__init__(f"stopped: {where}" if where else "stopped.")  # `where` may end with a command to be copied
        self.status = 128 + signal
