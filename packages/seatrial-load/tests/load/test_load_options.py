"""Options of a command line: each arrives in its field, of a server's trial and of one that a spec asked for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_base.errors import SpecError
from seatrial_base.field_facts import facts_of
from seatrial_load.cli.requests import Mistakes, request_of_server, server_request, trial_files, with_options
from seatrial_load.documents.options import FILES, OPTIONS, CommandOption
from seatrial_load.documents.request import Load, Workload
from seatrial_load.documents.request_checks import check_trial_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Arrival, TrialRequest

URL = "http://localhost:8000/v1"
WITHOUT_OPTION = {
    "load": {
        "requests_per_concurrency": "a server's trial has its own; --requests sets a number",
        "warmup_requests": "likewise",
        "ramp_per_concurrency": "likewise",
        "max_requests_per_concurrency": "likewise",
        "precision": "likewise",
        "rates_for_copies": "a server is one copy",
        "gate_rate_per_s": "rates of a command line have no gate",
    },
    "workload": {
        "schema": "a server's is OpenAI's chat, a deployment's the engine's",
        "stream": "the protocol decides it",
        "source": "the option that names a file",
        "source_digest": "the file's",
        "lengths": "a spec's dataset has them",
        "times_s": "likewise",
        "conversations": "a dataset or a file of prompts has them",
        "delays_s": "likewise",
        "sends_prefix_id": "the endpoint's routing decides it",
        "max_tokens_key": "the first request finds it out",
    },
}


def sample(row: CommandOption) -> tuple[object, object]:
    """Return a value as it is written, and as its field has it."""
    if row.flag in {"--levels", "--rate"}:
        return ("1,2", (1, 2))
    if row.option.sets is not None:
        return True, row.option.sets
    if row.choices:
        return row.choices[-1], row.choices[-1]
    value: Any = {str: "text", int: 3, float: 3.0}.get(row.kind, "FILE")
    return value, value * row.option.unit if row.option.unit != 1 else value


@pytest.fixture
def planned(trial_request: Callable[..., TrialRequest]) -> TrialRequest:
    """The trial of a spec with random arrivals."""
    plain = trial_request()
    load = replace(plain.load, arrival="gamma", arrival_smoothness=0.5, rates_per_s=(2.0, 3.0, 4.0), rates_for_copies=2)
    return replace(plain, load=load)


@pytest.mark.parametrize("row", [row for row in OPTIONS.values() if row.flag != "--slo"], ids=lambda row: row.flag)
def test_every_option_arrives_in_its_field(row: CommandOption) -> None:
    """With what it needs; a field that gets an option needs no line in any of the command lines."""
    value, expected = sample(row)
    needed = {flag: sample(OPTIONS[flag])[0] for flag in row.option.needs[:1] if flag != "--url"}
    written = {"--url": URL, **needed, row.flag: value}
    request = trial_files(written) if row.part == FILES else request_of_server(written, Mistakes(given=frozenset()))
    part = getattr(request, row.part) if row.part not in {"", FILES} else request
    assert getattr(part, row.name) == expected


@pytest.mark.parametrize(("part", "document"), [("load", Load), ("workload", Workload)])
def test_a_field_without_an_option_has_a_reason(part: str, document: type) -> None:
    without = {name for name, facts in facts_of(document).items() if facts.option is None}
    assert without == WITHOUT_OPTION[part].keys()


@pytest.mark.parametrize("row", OPTIONS.values(), ids=lambda row: row.flag)
def test_the_help_of_an_option_is_one_sentence_and_what_it_needs(row: CommandOption) -> None:
    words = row.words()
    assert words[0].isupper()
    assert words.endswith(".")
    assert [flag for flag in row.option.needs if flag not in words and not row.option.help.startswith("With ")] == []
    assert words.count("Default") <= 1


@pytest.mark.parametrize(
    ("options", "arrival", "rates"),
    [
        ({}, "gamma", (2.0, 3.0, 4.0)),
        ({"--levels": "1,2"}, "closed", ()),
        ({"--protocol": "jumpstart-2024"}, "closed", ()),
        ({"--rate": "1,9", "--arrival": "poisson"}, "poisson", (1.0, 9.0)),
        ({"--rate": "1,9"}, "poisson", (1.0, 9.0)),
    ],
)
def test_what_is_ordered_takes_the_place_of_what_is_planned(
    planned: TrialRequest, options: dict[str, object], arrival: Arrival, rates: tuple[float, ...]
) -> None:
    changed = with_options(planned, options, Mistakes(given=frozenset()))
    check_trial_request(changed)
    assert (changed.load.arrival, changed.load.rates_per_s) == (arrival, rates)
    assert changed.load.rates_for_copies == (2 if arrival == "gamma" else None)


def test_what_needs_another_option_changes_nothing_without_it(planned: TrialRequest) -> None:
    written = {"--arrival": "ramp", "--turn-delay": 3.0, "--input-tokens": 7, "--connections": 4}
    assert with_options(planned, written, Mistakes(given=frozenset())) == planned


def test_a_wrong_deviation_of_delays_is_told_at_its_own_option() -> None:
    """It was told at --turn-delay, whose value was right."""
    written = {"--url": URL, "--turns": 3, "--turn-delay": 2.0, "--turn-delay-stddev": 2.0}
    with pytest.raises(SpecError) as refused:
        server_request(written, Mistakes(given=frozenset(written)))
    assert [(problem.rule, problem.field) for problem in refused.value.problems] == [("SEA501", "--turn-delay-stddev")]


def test_the_fields_that_a_file_of_prompts_replaces_have_their_defaults() -> None:
    """Facts name each field's part: one that has no default could not be left out."""
    for document in (Load, Workload):
        required = {each.name for each in fields(document) if each.default is each.default_factory}
        assert not {name for name, facts in facts_of(document).items() if facts.of} & required
