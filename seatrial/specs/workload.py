"""The workload of a spec as planner, trial and report read it: lengths, their file, what prompts share, arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.specs.spec_files import kind_in_repository, why_away
from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.request import Workload
from seatrial_load.measure.lengths import (
    cached_share,
    conversations_of,
    lengths_of,
    paired_lengths,
    request_lengths,
    shared_share,
)
from seatrial_load.prompts.dataset import Dataset
from seatrial_load.prompts.dataset import read_dataset as read_file
from seatrial_load.prompts.trace import sessions_dataset

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.yaml_source import Document
    from seatrial_base.findings import Finding
    from seatrial_load.measure.lengths import Conversations, RequestLengths


RATE_SHARES: Final = (0.5, 0.75, 1.0)
"""Of the planned rate: an open loop's levels up to the gate. The last decides; the others tell how the queue grows."""
BEYOND_SHARES: Final = (1.25, 1.6, 2.0, 2.5, 3.15, 4.0)
"""Rates beyond, by which the knee is looked for while the SLO holds: a tenth of a decade apart (ISO 3, series R10)."""


def requests_of_spec(endpoint: EndpointSpec, dataset: Dataset) -> Workload:
    """Return the requests that the endpoint gets; how a trial sends them, and when, is said by its deployment."""
    return made_of(
        Workload,
        endpoint.workload,
        schema="openai_chat",
        api="invoke",
        lengths=dataset.pairs,
        conversations=dataset.turns,
        delays_s=dataset.delays_s,
    )


def lengths_of_spec(endpoint: EndpointSpec, dataset: Dataset) -> RequestLengths:
    """Return the lengths of the requests that the endpoint gets: of conversations, with all that was said before."""
    conversations = conversations_of_spec(endpoint, dataset)
    return lengths_of(requests_of_spec(endpoint, dataset)) if conversations is None else request_lengths(conversations)


def conversations_of_spec(endpoint: EndpointSpec, dataset: Dataset) -> Conversations | None:
    """Return the conversations of the workload; None where its requests are single ones."""
    return conversations_of(requests_of_spec(endpoint, dataset))


def read_dataset(spec: Path, endpoint: EndpointSpec | None, document: Document) -> tuple[Dataset, list[Finding]]:
    """Read the file of requests of a spec; return what is taken of it, with every problem of it.

    A file that is not there, or that is another repository's, is reported by the spec's own rules and not read.
    """
    name = None if endpoint is None else endpoint.workload.dataset
    if endpoint is None or name is None or why_away(spec, name) or kind_in_repository(spec.parent / name) != "file":
        return Dataset(), []
    try:
        path, timed = spec.parent / name, endpoint.workload.arrivals == "recorded"
        dataset = sessions_dataset(path, timed=timed) or read_file(path, timed=timed)
    except BenchError as unreadable:
        return Dataset(), [*unreadable.problems]
    return dataset, _other_means(endpoint, dataset, document)


def _other_means(endpoint: EndpointSpec, dataset: Dataset, document: Document) -> list[Finding]:
    """Return where the spec's means are not those of its file, and a limit that its longest request exceeds."""
    workload, problems, lengths = endpoint.workload, [], paired_lengths(dataset.pairs)
    for name, ours, theirs in (
        ("input_tokens", workload.input_tokens, lengths.input.mean),
        ("output_tokens", workload.output_tokens, lengths.output.mean),
    ):
        if ours != round(theirs):
            message = f"{name} {ours:,} is not the mean of the dataset, {theirs:,.1f}"
            hint = f"write {name}: {round(theirs)}"
            problems.append(document.problem(("workload", name), "SEA108", message, hint))
    fixed = endpoint.serving.overrides.max_model_len or workload.max_model_len
    # A file of conversations has turns whose prompts hold the earlier ones: `too_long_conversations` tells of those.
    if fixed is not None and lengths.longest > fixed and not dataset.turns:
        message = f"max_model_len {fixed:,} is below the dataset's longest request, {lengths.longest:,} tokens"
        path = ("workload", "max_model_len")
        problems.append(document.problem(path, "SEA108", message, f"set it to at least {lengths.longest}"))
    return problems


def too_long_conversations(endpoint: EndpointSpec, dataset: Dataset, document: Document) -> list[Finding]:
    """Return that the last turn of the longest conversation exceeds a limit that the spec sets."""
    workload, conversations = endpoint.workload, conversations_of_spec(endpoint, dataset)
    fixed = endpoint.serving.overrides.max_model_len or workload.max_model_len
    if fixed is None or conversations is None:
        return []
    longest = request_lengths(conversations).longest
    if longest <= fixed:
        return []
    message = f"max_model_len {fixed:,} is below the longest conversation, {longest:,} tokens"
    path = ("workload", "max_model_len") if workload.max_model_len else ("serving", "overrides", "max_model_len")
    return [document.problem(path, "SEA108", message, f"set it to at least {longest}, or give fewer turns")]


def with_hit_rate(endpoint: EndpointSpec, dataset: Dataset) -> EndpointSpec:
    """Return the spec with the hit rate that its shared prefix and its earlier turns make, where prefix caching is on.

    Only a spec that turns it on counts (`serving.overrides.prefix_caching`, or `prefix_cache` of its recipe): engines
    and versions differ in what they do by themselves.
    """
    shared, conversations = endpoint.workload.shared_prefix_tokens, conversations_of_spec(endpoint, dataset)
    if endpoint.serving.overrides.prefix_caching is not True or not (shared or conversations):
        return endpoint
    if conversations is None:
        share = shared_share(lengths_of_spec(endpoint, dataset), shared)
    else:
        share = cached_share(conversations, shared)
    workload = endpoint.workload.model_copy(update={"prefix_hit_rate": round(share, 4)})
    return endpoint.model_copy(update={"workload": workload})


def rates_of(endpoint: EndpointSpec, shares: Sequence[float] = RATE_SHARES) -> tuple[float, ...]:
    """Return levels of the trial's open loop in requests per second, all copies together; none of a closed loop.

    `shares`: of the planned rate; those up to it, unless others are asked for.
    """
    workload = endpoint.workload
    if not ARRIVALS[workload.arrivals].is_open or workload.requests_per_second is None:
        return ()
    return tuple(share * workload.requests_per_second for share in shares)
