"""The source of prompts that a workload names."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial_base.bounds import wrong_prefix
from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.measure.lengths import lengths_of, turns_listed
from seatrial_load.prompts.dataset import RULE as TRACE_RULE
from seatrial_load.prompts.jsonl import RULE as JSONL_RULE
from seatrial_load.prompts.jsonl import JsonlConversations, JsonlPrompts
from seatrial_load.prompts.synthetic import SyntheticPrompts
from seatrial_load.prompts.trace import TracePrompts, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial_load.documents.request import Workload
    from seatrial_load.prompts.synthetic import Prompts
    from seatrial_load.prompts.trace import Trace


_REQUEST_RULE: Final = "SEA501"
_WHERE: Final = "trial request"


def prompts_of(
    workload: Workload, *, seed: str, words_per_token: float = 1.0, file: Path | None = None, first: int = 0
) -> SyntheticPrompts | JsonlPrompts | JsonlConversations | TracePrompts:
    """Return the workload's source of prompts.

    Args:
        file: The workload's file on this machine; None for made-up prompts.
        first: The number of the request that takes the first of the lengths, or a trace's first row.

    Raises:
        BenchError: SEA501, a shared prefix that can't be, or a file that is missing or another one; SEA509, SEA510,
            SEA550 or SEA551, the file's bad lines.
    """
    if problems := [
        Finding(_REQUEST_RULE, Place.at(_WHERE, field), text) for field, text in _impossible(workload, file)
    ]:
        raise BenchError(problems)
    if workload.source == "synthetic" or file is None:
        return SyntheticPrompts(
            seed=seed,
            lengths=lengths_of(workload),
            words_per_token=words_per_token,
            shared_prefix_tokens=workload.shared_prefix_tokens,
            prefix_groups=workload.prefix_groups,
            first=first,
            turns=turns_listed(workload.conversations).at(0.5) if workload.conversations else workload.turns,
        )
    rule = JSONL_RULE if workload.source == "jsonl" else TRACE_RULE
    try:
        status = file.stat()
    except OSError as unread:
        raise BenchError.of(rule, f"can't be read: {unread.strerror}", where=str(file)) from unread
    seen = _Seen(status.st_size, status.st_mtime_ns)
    _check_digest(file, seen, workload.source_digest, rule)
    if workload.source == "jsonl":
        lines = _jsonl(file, seen, workload.output_tokens, chat=workload.schema == "openai_chat")
        return JsonlConversations(lines, first) if workload.conversations else lines
    return TracePrompts(trace=_trace(file, seen), seed=seed, words_per_token=words_per_token, first=first)


def digest_of(file: Path) -> str:
    """Return the file's SHA-256 in hexadecimal digits, as `Workload.source_digest` holds it."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _impossible(workload: Workload, file: Path | None) -> Iterator[tuple[str, str]]:
    shared, groups = workload.shared_prefix_tokens, workload.prefix_groups
    if wrong := wrong_prefix(shared, workload.input_tokens):
        yield "workload.shared_prefix_tokens", wrong
    if groups < 1:
        yield "workload.prefix_groups", f"{groups} is below 1"
    if shared and workload.source != "synthetic":
        message = f"only synthetic prompts can share a prefix, not those of a {workload.source} file"
        yield "workload.shared_prefix_tokens", message
    if workload.source != "synthetic" and file is None:
        yield "workload.source", f"no {workload.source} file is given"


class _Seen(NamedTuple):
    """Identifies a file that was read already: a trial opens its prompts at every level."""

    size_bytes: int
    changed_ns: int


@lru_cache(maxsize=4)
def _check_digest(file: Path, _seen: _Seen, wanted: str, rule: str) -> None:
    if not wanted:
        return
    try:
        digest = digest_of(file)
    except OSError as unread:
        raise BenchError.of(rule, f"can't be read: {unread.strerror}", where=str(file)) from unread
    if digest != wanted:
        message = f"its SHA-256 is {digest[:16]}…, but the request has {wanted[:16]}…"
        raise BenchError.of(rule, message, where=str(file), field="workload.source_digest")


@lru_cache(maxsize=1)
def _jsonl(file: Path, _seen: _Seen, tokens_out: int, *, chat: bool) -> JsonlPrompts:
    return JsonlPrompts(file, tokens_out=tokens_out, chat=chat)


@lru_cache(maxsize=1)
def _trace(file: Path, _seen: _Seen) -> Trace:
    return read_trace(file)


if TYPE_CHECKING:
    # the type checker refuses a source that lacks a method
    _SOURCES: tuple[type[Prompts], ...] = (SyntheticPrompts, JsonlPrompts, JsonlConversations, TracePrompts)
