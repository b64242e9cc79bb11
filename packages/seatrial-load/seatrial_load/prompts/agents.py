"""Recordings of agents: sessions of turns, with what runs between them, sub-agents and shared prefixes.

- Weka, as AIPerf 0.13 (`weka_trace`) and GuideLLM 0.8 (`weka`) read it: an object with the `requests` of a session, in
  a file of its own or a line; or one request a line with its `id`. `t`, `think_time` and `api_time` are seconds.
  Entries `subagent` start after the request before them, in parallel; the next request waits for all of them.
- OpenTelemetry GenAI: OTLP JSON (`resourceSpans`), and what GuideLLM 0.8 (`otel`) reads: the `spans` of a session a
  line, or one span a line. Calls are spans with `gen_ai.usage.*`, a trace is a session; calls below an `invoke_agent`
  span are a sub-agent's where another agent called before.
- Mooncake with `session_id`, as AIPerf 0.13 (`mooncake_trace`) reads it: `input_length` is what a turn adds, `delay`
  the milliseconds before it.

A turn leaves some time after the last of those that it waits for ended. Where the recording has the end of calls, or
the think time, that is the time of tools alone; else the recorded server's time is part of it. Without ids of blocks a
prompt begins with the one before it; a shorter one begins anew. Numbers are kept, texts are not.
"""

from __future__ import annotations

import json
import math
from array import array
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from seatrial_base.bounds import LONGEST_DELAY_S
from seatrial_load.prompts.dataset import BLOCK_TOKENS, COUNT_WORDS, RULE, seconds_of, whole_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial_load.prompts.dataset import LineProblems

WEKA_RULE, OTEL_RULE = "SEA550", "SEA551"
_BLOCK: Final = 64  # tokens: Weka's, and of prompts without ids
_MOST_ID: Final = 2**62
_TRACE_ID, _SPAN_ID, _PARENT_ID = ("trace_id", "traceId"), ("span_id", "spanId"), ("parent_span_id", "parentSpanId")
_CALLS: Final = ("chat", "generate", "generate_content", "text_completion")
_NO_CALLS: Final = ("invoke_agent", "create_agent", "execute_tool", "embeddings")
_USAGE: Final = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
)
_FAILED: Final = (2, "2", "ERROR", "STATUS_CODE_ERROR")
_NS, _MS = 1e16, 1e11  # times above are in such units since 1970, as GuideLLM takes them


class _Call(NamedTuple):
    """A recorded call of a model, by one of a session's agents.

    Attributes:
        think_s: The recorded gap before it; None where the times tell it.
        blocks: Ids; empty without any.
    """

    tokens_in: int
    tokens_out: int
    start_s: float = 0.0
    end_s: float = 0.0
    think_s: float | None = None
    blocks: tuple[int, ...] = ()
    agent: str = ""


@dataclass(slots=True, kw_only=True)
class Recording:
    """The sessions that were read so far; its lists are those of `Trace`."""

    problems: LineProblems
    due_s: array[float] = field(default_factory=lambda: array("d"))
    openings: array[int] = field(default_factory=lambda: array("Q", [0]))
    tokens_in: array[int] = field(default_factory=lambda: array("Q"))
    tokens_out: array[int] = field(default_factory=lambda: array("Q"))
    gaps_s: array[float] = field(default_factory=lambda: array("d"))
    waits: list[tuple[int, ...]] = field(default_factory=list)
    goes_on: list[bool] = field(default_factory=list)
    history: array[int] = field(default_factory=lambda: array("q"))
    kept: array[int] = field(default_factory=lambda: array("Q"))
    blocks: list[array[int]] = field(default_factory=list)
    block_tokens: array[int] = field(default_factory=lambda: array("Q"))
    shared: list[bool] = field(default_factory=list)
    skipped: int = 0
    shortened: int = 0

    def add(
        self,
        calls: Sequence[_Call],
        starters: Mapping[str, str] = MappingProxyType({}),
        ends_s: Mapping[str, float] = MappingProxyType({}),
        *,
        at_s: float | None = None,
        block_tokens: int = _BLOCK,
        shared: bool = False,
        adds: bool = False,
    ) -> None:
        """Add a session; one without calls is none.

        Args:
            calls: In order: those of a sub-agent after the one that starts it, and before the one that waits for it.
            starters: The agent that started each sub-agent.
            ends_s: When each sub-agent had ended; without it, before its starter's next call.
            at_s: When it began; None where that is unknown.
            adds: Whether the length of a prompt is what its turn adds to the prompt and the answer before it.
        """
        held: list[array[int]] = []
        last: dict[str, int] = {}
        running: dict[str, list[str]] = {}
        opening = self.openings[-1]
        for place, call in enumerate(calls):
            goes_on, starter = call.agent in last, starters.get(call.agent, "")
            children = running.pop(call.agent, [])
            ended = [child for child in children if ends_s.get(child, 0.0) <= call.start_s]
            running[call.agent] = [child for child in children if ends_s.get(child, 0.0) > call.start_s]
            after = [last[one] for one in (call.agent if goes_on else starter, *ended) if one in last]
            if not goes_on and call.agent:
                running.setdefault(starter, []).append(call.agent)
            last[call.agent] = place
            before, total = opening + after[0] if after else -1, call.tokens_in
            if adds and goes_on:
                total += self.tokens_in[before] + self.tokens_out[before]
            grows = (
                goes_on and (adds or not call.blocks) and total >= self.tokens_in[before] and self.history[before] >= 0
            )
            if grows:
                ids, history, kept = held[after[0]], self.history[before], self.tokens_in[before] // block_tokens
            else:
                ids = array("q", call.blocks[: total // block_tokens])
                history = -1 if ids and not adds else len(self.tokens_in)
                pairs = zip(held[after[0]] if after else (), ids, strict=False)
                kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            held.append(ids)
            self.tokens_in.append(total)
            self.tokens_out.append(call.tokens_out)
            self.gaps_s.append(self._gap_s(call, [calls[at] for at in after]))
            self.waits.append(tuple(place - at for at in after))
            self.goes_on.append(goes_on)
            self.history.append(history)
            self.kept.append(kept)
            self.blocks.append(ids[kept:])
        if calls:
            self.openings.append(len(self.tokens_in))
            self.block_tokens.append(block_tokens)
            self.shared.append(shared)
            self.due_s.extend(() if at_s is None else (at_s,))

    def _gap_s(self, call: _Call, after: Sequence[_Call]) -> float:
        if not after:
            return 0.0
        gap_s = call.start_s - max(before.end_s for before in after)
        if call.think_s is not None and len(after) == 1:
            gap_s = call.think_s
        self.shortened += gap_s > LONGEST_DELAY_S
        return min(max(gap_s, 0.0), float(LONGEST_DELAY_S))


Read: TypeAlias = "Callable[[Iterator[tuple[int, dict[str, object]]], Recording], None]"


def form_of(document: Mapping[str, object]) -> tuple[str, Read] | None:
    """Return the rule and the reader of the form that an object has; None of a single request."""
    keys = document.keys()
    if "requests" in keys or {"t", "in", "out"} <= keys:
        return WEKA_RULE, _read_weka
    if keys & {"resourceSpans", "spans"} or ("attributes" in keys and keys & {*_TRACE_ID, *_SPAN_ID}):
        return OTEL_RULE, _read_otel
    return (RULE, _read_mooncake) if {"session_id", "input_length"} <= keys else None


class _Fields:
    """Reads the fields of an object, and notes what is wrong with them."""

    def __init__(self, values: Mapping[str, object], line: int, made: Recording, path: str = "") -> None:
        self.values, self._line, self._made, self._path = values, line, made, path
        self.wrong = False

    def note(self, name: str, message: str, hint: str = "") -> None:
        """Note a problem of a field."""
        self.wrong = True
        self._made.problems.note(self._line, message, field=f"{self._path}{name}", hint=hint)

    def text(self, names: Sequence[str], missing: str = "") -> str:
        """Return the first of some fields that is there."""
        return next((str(self.values[name]) for name in names if self.values.get(name)), missing)

    def number(self, name: str, *, unit: Literal["s", "ms", ""] = "", missing: float | None = None) -> float:
        """Return a time from 0 in seconds, or a whole number; required without `missing`."""
        value = self.values.get(name)
        known = missing if value is None else seconds_of(value, unit) if unit else whole_count(value)
        if known is None or (known < 0 and value is not None):
            wanted = f"a number of {unit} from 0" if unit else COUNT_WORDS
            self.note(name, "missing" if value is None else f"{json.dumps(value)[:60]} is not {wanted}")
        return known or 0.0

    def call(self, names: tuple[str, str], block_tokens: int) -> _Call | None:
        """Return the lengths and blocks of a call, by the names of its lengths; None of one to leave out."""
        tokens_in, tokens_out = (int(self.number(name)) for name in names)
        ids = self.values.get("hash_ids") or []
        if not isinstance(ids, list) or not all(type(one) is int and 0 <= one < _MOST_ID for one in ids):
            self.note("hash_ids", f"{json.dumps(ids)[:60]} is not a list of whole numbers from 0 to {_MOST_ID - 1:,}")
        elif whole_count(self.values.get(names[0])) is not None and len(ids) > math.ceil(tokens_in / block_tokens):
            self.note("hash_ids", f"{len(ids)} blocks of {block_tokens} tokens are more than {tokens_in} tokens")
        elif tokens_in and tokens_out:
            return _Call(tokens_in, tokens_out, blocks=tuple(ids))
        self._made.skipped += not self.wrong
        return None

    def instant(self, names: Sequence[str]) -> float | None:
        """Return a time since 1970 in seconds, as a date or a number of s, ms or ns; None for what is none."""
        value = next((self.values[name] for name in names if self.values.get(name) is not None), None)
        number = seconds_of(value, "s")
        if number is None:
            return seconds_of(value, "date")
        return number / (1e9 if abs(number) >= _NS else 1e3 if abs(number) >= _MS else 1.0)


def _read_mooncake(objects: Iterator[tuple[int, dict[str, object]]], made: Recording) -> None:
    sessions: dict[str, tuple[float, list[_Call]]] = {}
    for line, values in objects:
        fields = _Fields(values, line, made)
        at_s, gap_s = (
            fields.number("timestamp", unit="ms", missing=-1.0),
            fields.number("delay", unit="ms", missing=0.0),
        )
        if (call := fields.call(("input_length", "output_length"), BLOCK_TOKENS)) is not None:
            name = fields.text(("session_id",), f"line {line}")
            sessions.setdefault(name, (at_s, []))[1].append(call._replace(think_s=gap_s))
    timed = all(at_s >= 0 for at_s, _ in sessions.values())
    for at_s, calls in sorted(sessions.values(), key=lambda session: session[0]):
        made.add(calls, at_s=at_s if timed else None, block_tokens=BLOCK_TOKENS, shared=True, adds=True)


def _read_weka(objects: Iterator[tuple[int, dict[str, object]]], made: Recording) -> None:
    rows: dict[str, list[_Call]] = {}
    for line, values in objects:
        fields = _Fields(values, line, made)
        block_tokens = int(fields.number("block_size", missing=_BLOCK)) or _BLOCK
        if "requests" not in values:
            rows.setdefault(fields.text(("id",)), []).extend(_weka_calls(fields, block_tokens))
            continue
        calls: list[_Call] = []
        starters: dict[str, str] = {}
        for path, request in _listed(fields, "requests"):
            entry = _Fields(request, line, made, path)
            if request.get("type") != "subagent":
                calls += _weka_calls(entry, block_tokens)
                continue
            inner, at_s = [*_listed(entry, "requests", path)], entry.number("t", unit="s")
            # Raw captures count a sub-agent's times from its start, published ones from the session's.
            opening = inner[0][1].get("t") if inner else None
            from_s = at_s if isinstance(opening, int | float) and opening < at_s else 0.0
            parts = (_weka_calls(_Fields(one, line, made, where), block_tokens, from_s, path) for where, one in inner)
            child = [call for part in parts for call in part]
            starters[path] = ""
            made.skipped += 0 if calls else len(child)
            calls += child if calls else ()
        shared = values.get("hash_id_scope") == "global"
        made.add(calls, starters, block_tokens=block_tokens, shared=shared)
    for calls in rows.values():
        made.add(calls)


def _weka_calls(fields: _Fields, block_tokens: int, from_s: float = 0.0, agent: str = "") -> Iterator[_Call]:
    if fields.values.get("type") == "subagent":
        fields.note("type", "a sub-agent has no sub-agents", hint="list them beside it")
        return
    at_s = from_s + fields.number("t", unit="s")
    took_s, think_s = (
        fields.number("api_time", unit="s", missing=0.0),
        fields.number("think_time", unit="s", missing=-1.0),
    )
    if (call := fields.call(("in", "out"), block_tokens)) is not None:
        known_s = think_s if think_s >= 0 else None
        yield call._replace(start_s=at_s, end_s=at_s + took_s, think_s=known_s, agent=agent)


def _listed(fields: _Fields, name: str, path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the objects of a list with their places; note where it is none."""
    listed = fields.values.get(name)
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        fields.note(name, "not a list of objects")
        return
    yield from ((f"{path}{name}[{number}].", one) for number, one in enumerate(listed))


class _Span(NamedTuple):
    parent: str
    start_s: float
    end_s: float
    is_agent: bool
    call: _Call | None


def _read_otel(objects: Iterator[tuple[int, dict[str, object]]], made: Recording) -> None:
    traces: dict[str, dict[str, _Span]] = {}
    for line, values in objects:
        for path, one in _spans(values, line, made):
            fields = _Fields(one, line, made, path)
            if (span := _span(fields, made)) is not None:
                trace = traces.setdefault(fields.text(_TRACE_ID, f"line {line}"), {})
                trace[fields.text(_SPAN_ID, f"{line} {path}")] = span
    named = [[(name, one.call) for name, one in spans.items() if one.call is not None] for spans in traces.values()]
    sessions = [
        (sorted(calls, key=lambda call: call[1].start_s), spans)
        for calls, spans in zip(named, traces.values(), strict=True)
    ]
    for calls, spans in sorted((one for one in sessions if one[0]), key=lambda one: one[0][0][1].start_s):
        placed: list[_Call] = []
        starters: dict[str, str] = {}
        root: set[str] = set()  # the agents of the first call: theirs is the session
        for name, call in calls:
            above = _agents_above(name, spans)
            root = root if placed else {*above}
            agent = above[0] if above and above[0] not in root else ""
            if agent and agent not in starters:
                starters[agent] = next((one for one in above[1:] if one in starters), "")
            placed.append(call._replace(agent=agent))
        ends_s = {name: spans[name].end_s for name in starters}
        made.add(placed, starters, ends_s, at_s=placed[0].start_s)


def _agents_above(name: str, spans: Mapping[str, _Span]) -> list[str]:
    """Return the agents that a span is part of, the nearest one first."""
    seen, above = {name}, spans[name].parent
    agents: list[str] = []
    while above in spans and above not in seen:
        seen.add(above)
        agents += [above] if spans[above].is_agent else []
        above = spans[above].parent
    return agents


def _spans(values: dict[str, object], line: int, made: Recording) -> list[tuple[str, dict[str, object]]]:
    """Return the spans of an object with their places in it."""
    spans = [("", values)]
    nested = ("resourceSpans", "scopeSpans", "spans")
    for name in nested if nested[0] in values else [one for one in nested[2:] if one in values]:
        spans = [inner for path, one in spans for inner in _listed(_Fields(one, line, made, path), name, path)]
    return spans


def _span(fields: _Fields, made: Recording) -> _Span | None:
    known = _attributes(fields.values.get("attributes"))
    operation, status = known.get("gen_ai.operation.name"), fields.values.get("status")
    start_s = fields.instant(("startTimeUnixNano", "start_time"))
    end_s = max(fields.instant(("endTimeUnixNano", "end_time")) or 0.0, start_s or 0.0)
    counts = [next((known[name] for name in names if name in known), None) for names in _USAGE]
    is_agent = operation == "invoke_agent"
    is_call = operation in _CALLS or (operation not in _NO_CALLS and counts != [None, None])
    span = _Span(fields.text(_PARENT_ID), start_s or 0.0, end_s, is_agent, None)
    if not is_call and not is_agent:
        return span
    if start_s is None:
        fields.note("startTimeUnixNano", "missing, or no time", hint="or start_time: a date, or s, ms or ns since 1970")
        return None
    if not is_call or (isinstance(status, dict) and status.get("code") in _FAILED):
        made.skipped += is_call
        return span
    usage = _Fields(dict(zip(("input", "output"), counts, strict=True)), 0, made)
    for names, count in zip(_USAGE, counts, strict=True):
        if whole_count(count) is None:
            fields.note(f"attributes.{names[0]}", f"missing, or not {COUNT_WORDS}", hint="record every call's usage")
    call = None if fields.wrong else usage.call(("input", "output"), _BLOCK)
    return span if call is None else span._replace(call=call._replace(start_s=start_s, end_s=end_s))


def _attributes(listed: object) -> dict[str, object]:
    """Return attributes by their names, of an object or of OTLP's list of keys and typed values."""
    if isinstance(listed, dict):
        return listed
    pairs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    values = [(one.get("key"), one.get("value")) for one in pairs]
    return {str(key): next(iter(value.values())) for key, value in values if isinstance(value, dict) and value}
