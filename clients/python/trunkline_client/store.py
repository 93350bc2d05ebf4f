"""Stores of the position."""

from __future__ import annotations

import os
from typing import Protocol


class Store(Protocol):
    """Keeps the position across restarts of the program."""

    async def load(self) -> str | None: ...

    async def save(self, position: str) -> None: ...


class FileStore:
    """Keeps the position in a file and replaces it atomically."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = os.fspath(file)

    async def load(self) -> str | None:
        try:
            with open(self.file, encoding="utf-8") as file:
                return file.read().strip() or None
        except FileNotFoundError:
            return None

    async def save(self, position: str) -> None:
        descriptor = os.open(self.file + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(position + "\n")
        os.replace(self.file + ".new", self.file)


class MemoryStore:
    """Keeps the position in memory: across subscriptions, not across restarts."""

    def __init__(self) -> None:
        self.position: str | None = None

    async def load(self) -> str | None:
        return self.position

    async def save(self, position: str) -> None:
        self.position = position
