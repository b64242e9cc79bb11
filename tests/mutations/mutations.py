"""The table of mutations: one wrong line each, and the tests that are nearest to it.

`mutations.json` has a row for each file: the tests that must notice, and pieces of its source with what replaces them
and what nobody would notice. These are the ones that would hurt; `draw` makes others by chance.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).with_name("mutations.json")
SOURCE_ROOTS: Final = (
    *sorted((ROOT / "packages").glob("seatrial-*")),
    ROOT / "constructs",
    ROOT / "stacks",
    ROOT,
)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One wrong line.

    Attributes:
        file: The file, below the repository.
        before: What stands there, once.
        after: What stands there instead.
        unseen: What nobody would notice if no test did.
        tests: The nearest tests.
    """

    file: str
    before: str
    after: str
    unseen: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name under which the file is imported."""
        path = ROOT / self.file
        root = next(root for root in SOURCE_ROOTS if path.is_relative_to(root))
        return ".".join(path.relative_to(root).with_suffix("").parts)

    @property
    def place(self) -> str:
        """The file and the line, as `seatrial/locks/lock_file.py:287`."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        return f"{self.file}:{text[: max(0, text.find(self.before))].count(chr(10)) + 1}"

    def applied(self, text: str) -> str:
        """Return a file's text with the wrong line.

        Raises:
            ValueError: What is to be replaced does not stand there once.
        """
        if (count := text.count(self.before)) != 1:
            raise ValueError(f"{self.file} has {count} times: {self.before}")
        return text.replace(self.before, self.after)


def all_mutations() -> tuple[Mutation, ...]:
    """Return the table, in its order."""
    return tuple(
        Mutation(row["file"], one["before"], one["after"], one["unseen"], tuple(row["tests"]))
        for row in json.loads(TABLE.read_text(encoding="utf-8"))
        for one in row["mutations"]
    )
