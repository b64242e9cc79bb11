"""A spec from a few words: a model and its load, as the command line is given them; as YAML with comments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_COPIES: Final = 8
_LONGEST_NAME: Final = 40  # of an endpoint's spec
_COMMENT_AT: Final = 34
_NUMBER: Final = "{:.15g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """What a user asks for without a file.

    Attributes:
        hub_id: The model; `None` where its weights lie in a folder.
        config_file: The `config.json` of that folder, relative to the spec; `None` for a model of the hub.
        input_tokens: Mean prompt length.
        output_tokens: Mean answer length.
        concurrency: Requests in flight at peak; `None` where a rate is given.
        requests_per_second: Requests per second at peak; `None` where those in flight are given.
        ttft_p95_ms: Bound of the time to first token; `None` for none.
        tpot_p95_ms: Bound of the time per output token after the first; `None` for none.
        usd_per_hour: Highest cost; `None` for none.
    """

    hub_id: str | None
    input_tokens: int
    output_tokens: int
    config_file: str | None = None
    concurrency: int | None = None
    requests_per_second: float | None = None
    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    usd_per_hour: float | None = None


def endpoint_name(hub_id: str) -> str:
    """Return a name for an endpoint of a model: `qwen3-32b` of `Qwen/Qwen3-32B`."""
    words = re.sub(r"[^a-z0-9]+", "-", hub_id.rpartition("/")[2].lower())
    return words.strip("-")[:_LONGEST_NAME].rstrip("-") or "endpoint"


def spec_text(asked: ModelLoad, name: str, *, most_copies: int = MOST_COPIES) -> str:
    """Return the spec as YAML, with comments; it is loaded like any other, so that its mistakes are told alike.

    Args:
        asked: What is asked for.
        name: Of the endpoint.
        most_copies: Up to which autoscaling adds copies.
    """
    return "\n".join((*_lines(asked, name, most_copies), ""))


def _lines(asked: ModelLoad, name: str, most_copies: int) -> Iterator[str]:
    yield f"name: {name}"
    yield "model:"
    yield from _model(asked, name)
    yield "workload:"
    yield _commented(f"  input_tokens: {asked.input_tokens}", "mean length of a prompt")
    yield _commented(f"  output_tokens: {asked.output_tokens}", "mean length of an answer")
    if asked.concurrency is not None:
        yield _commented(f"  concurrency: {asked.concurrency}", "requests in flight at peak, over all copies")
    if asked.requests_per_second is not None:
        rate = _NUMBER.format(asked.requests_per_second)
        yield _commented(f"  requests_per_second: {rate}", "at peak, over all copies")
    yield _commented("objective: cost", "or cost_per_token, latency, throughput")
    yield from _slo(asked)
    if asked.usd_per_hour is not None:
        yield _commented(f"budget: {{usd_per_hour: {_NUMBER.format(asked.usd_per_hour)}}}", "highest cost at this load")
    yield "scaling:"
    yield "  min_copies: 1"
    yield _commented(f"  max_copies: {most_copies}", "autoscaling adds copies up to this")


def _model(asked: ModelLoad, name: str) -> Iterator[str]:
    if asked.hub_id is not None:
        yield _commented(f"  hub_id: {_quoted(asked.hub_id)}", "add `revision: COMMIT`: a branch can move")
    if asked.config_file is not None:
        yield _commented(f"  s3_uri: s3://your-bucket/{name}/", "where `seatrial stage` puts the weights")
        yield _commented(f"  config_file: {json.dumps(asked.config_file)}", "of the weights, relative to this file")


def _slo(asked: ModelLoad) -> Iterator[str]:
    bounds = (
        ("ttft_ms", asked.ttft_p95_ms, "time to first token, queueing included"),
        ("tpot_ms", asked.tpot_p95_ms, "time per token after the first"),
    )
    given = [(name, bound, meaning) for name, bound, meaning in bounds if bound is not None]
    if not given:
        yield "# slo: {ttft_ms: {p95: 2000}, tpot_ms: {p95: 50}}  # without one, only failed requests are judged"
        return
    yield _commented("slo:", "95 % of the requests keep it, in milliseconds")
    for name, bound, meaning in given:
        yield _commented(f"  {name}: {{p95: {_NUMBER.format(bound)}}}", meaning)


def _commented(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_AT}}# {comment}" if len(text) < _COMMENT_AT else f"{text}  # {comment}"


def _quoted(hub_id: str) -> str:
    """Return a hub id as YAML text; what the catalog has needs no quotes."""
    return hub_id if re.fullmatch(r"[A-Za-z][\w./-]*", hub_id) else f'"{hub_id}"'
