"""What was read: keys and values with their place in a file, whatever its form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Form = Literal["properties", "env"]
Kind = Literal[
    "serving.properties",
    "environment file",
    "environment JSON",
    "model definition",
    "endpoint config",
    "CloudFormation template",
    "Terraform plan",
    "container manifest",
]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One key with its value.

    Attributes:
        key: As it is written, unescaped.
        value: Its value, unescaped.
        line: Line of the key, counted from 1.
        form: Whether it is a property or an environment variable.
        key_span: Characters of the key in the text, quotes included.
        value_span: Characters of the value, quotes included.
        whole_span: Characters that go when the entry goes, line end included; `None` in JSON.
        is_known: The value is written there; otherwise only the deployment knows it, and nothing is said of it.
    """

    key: str
    value: str
    line: int
    form: Form
    key_span: Span = (0, 0)
    value_span: Span = (0, 0)
    whole_span: Span | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """One container's configuration in one file.

    Attributes:
        file: Path as the user gave it.
        kind: What the file holds.
        entries: Its keys in order; those of the environment, or of the properties.
        facts: What is said beside the container's own keys (`image`, `instance_type`, …), by the names in `model.py`.
        is_json: Written as JSON, so that a replaced key is quoted.
        text: The file's whole text.
        encoding: In which the text is written.
        line: Line at which the container's configuration begins.
        is_fixable: Keys and values stand in the text as their spans say, so that `--fix` may change them.
        is_partial: It may have more keys than were read, so that nothing is said to be missing.
        unread: What of the container is not read, in words; empty when all is.
    """

    file: str
    kind: Kind
    entries: tuple[SourceEntry, ...]
    facts: dict[str, SourceEntry] = field(default_factory=dict)
    is_json: bool = False
    text: str = ""
    encoding: str = "utf-8"
    line: int = 1
    is_fixable: bool = True
    is_partial: bool = False
    unread: str = ""

    def fact(self, name: str) -> str | None:
        """Return a fact's value, or `None` when nothing is said."""
        found = self.facts.get(name)
        return found.value if found else None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that can't be linted, and why.

    Attributes:
        file: Path as the user gave it.
        because: Why.
        is_failure: It may hold a configuration; otherwise it is passed over in a folder.
    """

    file: str
    because: str
    is_failure: bool = False
