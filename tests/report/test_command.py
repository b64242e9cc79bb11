"""The command that makes a trial again, and how a trial is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.header import cautions
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import page_of
from seatrial.report.document.provenance import command_of, trial_name
from seatrial_load.documents.request import JUMPSTART_LEVELS, TrialTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Load
    from seatrial_load.documents.result import TrialResult


@pytest.fixture
def served(real: TrialResult) -> TrialResult:
    """Return a trial of an OpenAI-compatible server, which has no spec and no plan."""
    target = TrialTarget(
        endpoint_name="small chat",
        inference_component=None,
        region="none",
        endpoint_url="http://localhost:8000/v1",
        kind="openai",
        model="small chat",
        api_key_variable="KEY",
    )
    request = replace(real.request, endpoint="small chat", environment="none", plan_digest="", target=target)
    return replace(real, request=request)


def test_a_trial_of_a_spec(real: TrialResult) -> None:
    assert command_of(real.request) == (
        "seatrial bench SPEC --environment dev --levels 1,2,4,8,16,32,64 --start together --output report"
    )


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        (
            lambda load: replace(load, concurrency_levels=(1, 64), search="adaptive", goal="max_goodput"),
            "--levels 1,64 --start together --search adaptive --goal max_goodput",
        ),
        (
            lambda load: replace(load, arrival="poisson", rates_per_s=(0.5, 2.0), level_s=20.0),
            "--rate 0.5,2 --arrival poisson --level-seconds 20",
        ),
        (
            lambda load: replace(load, arrival="poisson", rates_per_s=(1234567.5,), level_s=86400.125),
            "--rate 1234567.5 --arrival poisson --level-seconds 86400.125",
        ),
        (lambda load: replace(load, arrival="replay"), "--trace TRACE"),
        (
            lambda load: replace(load, protocol="jumpstart-2024", concurrency_levels=JUMPSTART_LEVELS),
            "--protocol jumpstart-2024",
        ),
        (
            lambda load: replace(load, protocol="jumpstart-2024", concurrency_levels=(64,), requests=1000),
            "--protocol jumpstart-2024 --levels 64 --requests 1000",
        ),
    ],
)
def test_what_the_spec_does_not_say(real: TrialResult, changed: Callable[[Load], Load], options: str) -> None:
    command = command_of(replace(real.request, load=changed(real.request.load)))
    assert command == f"seatrial bench SPEC --environment dev {options} --output report"


def test_prompts_of_a_file(real: TrialResult) -> None:
    request = replace(real.request, workload=replace(real.request.workload, source="jsonl", source_digest="ab"))
    assert "--prompts PROMPTS.jsonl" in command_of(request)


def test_a_trial_of_a_server(served: TrialResult) -> None:
    assert command_of(served.request) == (
        "seatrial bench --url http://localhost:8000/v1 --model 'small chat' --api-key-variable KEY --input-tokens 256 "
        "--output-tokens 256 --slo ttft_ms.p95=2000 --slo tpot_ms.p95=60 --slo error_rate=0.01 --gate 16 "
        "--usd-per-hour 1.212 --levels 1,2,4,8,16,32,64 --start together --output report"
    )


def test_a_server_is_named_by_its_address(served: TrialResult, real: TrialResult) -> None:
    assert trial_name(served.request) == "small chat at http://localhost:8000/v1"
    assert trial_name(real.request) == "sample-chat in dev"


def test_a_server_needs_no_plan(served: TrialResult) -> None:
    assert list(cautions(served, None)) == []
    page = page_of(served, None)
    assert (page.facts[0].value.text, page.facts[0].aside) == ("small chat", "http://localhost:8000/v1")
    facts = {fact.name: fact.value for fact in page.details[-1].facts}
    assert facts["Plan digest"].missing_because == "no plan was deployed"
    assert render_markdown(served, None).splitlines()[-1] == "Started 2026-11-02T14:05:00Z."


def test_the_load_is_named(real: TrialResult) -> None:
    facts = {fact.name: (fact.value.text, fact.aside) for fact in page_of(real, None).facts}
    assert facts["Load"] == ("closed loop, common start", "sweep, seatrial")


def test_the_limits_of_a_server_that_are_not_the_usual(served: TrialResult) -> None:
    load = replace(
        served.request.load,
        request_timeout_s=30.0,
        max_retries=2,
        workers=2,
        budget_s=300.0,
        requests=9,
        budget_usd=1.5,
    )
    assert command_of(replace(served.request, load=load)).endswith(
        "--levels 1,2,4,8,16,32,64 --start together --requests 9 --workers 2 --budget 5 --timeout 30 --retries 2 "
        "--budget-usd 1.5 "
        "--output report"
    )


def test_an_open_loop_of_a_server_has_no_gate_of_its_own(served: TrialResult) -> None:
    load = replace(served.request.load, arrival="constant", rates_per_s=(2.0,), level_s=20.0, max_connections=900)
    command = command_of(replace(served.request, load=load))
    assert "--gate" not in command
    assert command.endswith("--rate 2 --arrival constant --level-seconds 20 --connections 900 --output report")
