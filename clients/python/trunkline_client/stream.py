"""Parser of event streams, back-off, and the memory of ids."""

from __future__ import annotations

import random
import re

from .errors import ClosedError, ProtocolError, close_error

MAX_EVENT = 8 << 20  # bytes of one event
_CLOSE = re.compile(rb"^:\s*(\d{4})\b\s*(.*)")


class EventStreamParser:
    """Parses an event stream (HTML standard, section 9.2.6)."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""

    def feed(self, chunk: bytes) -> tuple[list[tuple[bytes, str]], ClosedError | None]:
        """Return the complete events, each with its id, and the error of a close comment."""
        events: list[tuple[bytes, str]] = []
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                if self._data:
                    events.append((b"\n".join(self._data), self._id))
                self._data, self._size = [], 0
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
            elif line.startswith(b"id:"):
                self._id = line[3:].removeprefix(b" ").decode()
            elif line.startswith(b":"):
                if closing := _CLOSE.match(line):
                    return events, close_error(int(closing[1]), closing[2].decode(errors="replace"))
        if self._size + len(self._rest) > MAX_EVENT:
            raise ProtocolError(f"an event has more than {MAX_EVENT} bytes", permanent=True)
        return events, None


class RecentIDs:
    """Remembers the last ids, between size and twice size of them, in two generations."""

    def __init__(self, size: int = 1 << 16) -> None:
        self._size = size
        self._current: set[str] = set()
        self._previous: set[str] = set()

    def add(self, event_id: str) -> bool:
        """Store the id. Return whether it is new."""
        if event_id in self._current or event_id in self._previous:
            return False
        if len(self._current) == self._size:
            self._previous, self._current = self._current, set()
        self._current.add(event_id)
        return True


class Backoff:
    """Exponential back-off with jitter: between half and all of a time that doubles."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most, self._bound = least, most, 0.0

    def next(self) -> float:
        bound = max(self._bound, self._least)
        self._bound = min(2 * bound, self._most)
        return bound / 2 + random.random() * bound / 2

    def reset(self) -> None:
        self._bound = 0.0
