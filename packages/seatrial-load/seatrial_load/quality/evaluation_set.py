"""An evaluation set: prompts whose answers are judged, one JSON object a line.

    {"prompt": "What is the capital of France? One word.", "reference": "Paris"}
    {"messages": [{"role": "user", "content": "Name a sea."}], "id": "sea-1"}

`reference` is the right answer; without one, only the answers of two recipes can be compared. A line without an `id` is
named by its number. Every line is checked before anything is sent.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MIB
from seatrial_load.documents.request import ChatMessage, EvaluationPrompt
from seatrial_load.prompts.dataset import LineProblems, is_chat, why_not_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial_load.payload.request import Prompt


RULE: Final = "SEA527"
KEYS: Final = ("prompt", "messages", "reference", "id")
MOST_PROMPTS: Final = 10_000
MOST_SET_BYTES: Final = 16 * MIB
LONGEST_ID: Final = 200
_EXAMPLE: Final = 'write one JSON object per line: {"prompt": "…", "reference": "…"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """The prompts of one file.

    Attributes:
        digest: SHA-256 of the prompts, whatever the file's spaces and order of keys.
    """

    prompts: tuple[EvaluationPrompt, ...]
    digest: str

    @property
    def has_references(self) -> bool:
        """Whether some prompt has a right answer."""
        return any(prompt.reference is not None for prompt in self.prompts)


def evaluation_set(content: bytes, where: str, *, chat: bool) -> EvaluationSet:
    """Read an evaluation set.

    Raises:
        BenchError: SEA527, with every bad line, or an empty or too large set.
    """
    problems = LineProblems(where, RULE)
    if len(content) > MOST_SET_BYTES:
        problems.note(0, f"larger than {MOST_SET_BYTES // MIB} MiB")
        problems.raise_if_any()
    prompts = tuple(_prompts(content, problems, chat=chat))
    if not prompts and not problems:
        problems.note(0, "the file is empty", hint=_EXAMPLE)
    if len(prompts) > MOST_PROMPTS:
        problems.note(0, f"{len(prompts):,} prompts; the maximum is {MOST_PROMPTS:,}")
    problems.raise_if_any()
    return EvaluationSet(prompts=prompts, digest=digest_of_prompts(prompts))


def prompt_content(prompt: EvaluationPrompt) -> Prompt:
    """Return the sent part of a prompt: its messages, else its text."""
    if prompt.messages:
        return [{"role": message.role, "content": message.content} for message in prompt.messages]
    return prompt.prompt


def digest_of_prompts(prompts: Sequence[EvaluationPrompt]) -> str:
    """Return the SHA-256 of prompts, in hexadecimal digits."""
    text = json.dumps([asdict(prompt) for prompt in prompts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _prompts(content: bytes, problems: LineProblems, *, chat: bool) -> Iterator[EvaluationPrompt]:
    seen: dict[str, int] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        prompt = _read(line, number, problems, chat=chat)
        if prompt is None:
            continue
        if (first := seen.setdefault(prompt.id, number)) != number:
            problems.note(number, f"{prompt.id!r} is the id of line {first} too", field="id")
        yield prompt


def _read(line: bytes, number: int, problems: LineProblems, *, chat: bool) -> EvaluationPrompt | None:
    try:
        document: object = json.loads(line.strip())
    except (ValueError, RecursionError) as malformed:
        problems.note(number, why_not_json(malformed), hint=_EXAMPLE)
        return None
    if not isinstance(document, dict):
        problems.note(number, "not a JSON object", hint=_EXAMPLE)
        return None
    wrong = [*_wrong(document, chat=chat)]
    for field, message in wrong:
        problems.note(number, message, field=field)
    if wrong:
        return None
    messages, reference = document.get("messages"), document.get("reference")
    turns = messages if isinstance(messages, list) else []
    return EvaluationPrompt(
        id=str(document.get("id", f"line-{number}")),
        prompt=document.get("prompt", ""),
        messages=tuple(ChatMessage(role=turn["role"], content=turn["content"]) for turn in turns),
        reference=None if reference is None else str(reference),
    )


def _wrong(document: Mapping[str, object], *, chat: bool) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key; known are {', '.join(KEYS)}") for key in document if key not in KEYS)
    present = [key for key in ("prompt", "messages") if key in document]
    if len(present) != 1:
        yield "", f"needs one of prompt and messages, has {' and '.join(present) or 'none'}"
    elif present == ["prompt"]:
        if not _is_text(document["prompt"]):
            yield "prompt", "not a non-empty string"
    elif not is_chat(messages := document["messages"]) or not all(
        isinstance(turn["content"], str) for turn in messages
    ):
        yield "messages", 'not a list of objects with "role" and "content", both strings'
    elif not chat:
        yield "messages", "the endpoint's schema needs a string, not messages"
    if document.get("reference") is not None and not _is_text(document["reference"]):
        yield "reference", "not a non-empty string"
    name = document.get("id", "-")
    if not isinstance(name, str | int) or isinstance(name, bool) or not 0 < len(str(name)) <= LONGEST_ID:
        yield "id", f"not a whole number or a string of 1 to {LONGEST_ID} characters"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
