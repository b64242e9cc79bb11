"""A trial that ends in one run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.bench.request import Expected, Target
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError
from tests.constructs.conftest import IMAGE
from tests.constructs.smoke_benchmark.conftest import LATEST, PASSED, RELEASED, TRIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Detail
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictStore
    from tests.constructs.smoke_benchmark.conftest import Asked, Events, ScriptedTrial


class TestATrialThatEndsInOneRun:
    def test_is_told_what_must_be_live_and_how_long_it_may_go_on(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], passed: TrialResult
    ) -> None:
        (asked,) = run(order, lambda _: passed, left_s=660.0).asked
        target = Target(endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1")
        expected = Expected(endpoint_config_name="config-2", model_name="model-2", image=IMAGE)
        assert asked.request == passed.request
        assert (asked.request.target, asked.request.expected) == (target, expected)
        assert (asked.resume, asked.pause_after_s) == (None, 645.0)
        assert (asked.baseline, asked.baseline_uri) == (None, "")

    def test_leaves_a_pass_as_trial_latest_passed_and_released_each_with_its_report(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, passed: TrialResult
    ) -> None:
        run(order, lambda _: passed)
        assert [store.read(key) for key in (TRIAL, LATEST, PASSED, RELEASED)] == [passed.to_json()] * 4
        reports = {store.read(key.replace(".json", ".md")) for key in (TRIAL, LATEST, PASSED, RELEASED)}
        assert len(reports) == 1

    @pytest.mark.parametrize("status", ["fail", "inconclusive"])
    def test_leaves_anything_else_as_trial_and_latest(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
        status: Literal["fail", "inconclusive"],
    ) -> None:
        result = missed(status)
        run(order, lambda _: result)
        documents = [store.read(key) for key in (TRIAL, LATEST, PASSED, RELEASED)]
        assert documents == [result.to_json(), result.to_json(), None, None]

    def test_is_compared_with_what_is_released(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, passed: TrialResult
    ) -> None:
        before = replace(passed, request=replace(passed.request, plan_digest="a"))
        store.write(RELEASED, before.to_json())
        (asked,) = run(order, lambda _: passed).asked
        uri = "s3://results/passed/dev-chat/a/config-2/model-2.json"
        assert (asked.baseline, asked.baseline_uri) == (before, uri)

    def test_says_so_on_the_event_bus(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], events: Events, passed: TrialResult
    ) -> None:
        run(order, lambda _: passed)
        assert events.details == [
            {
                "endpoint": "chat",
                "environment": "dev",
                "endpointName": "dev-chat",
                "planDigest": "b",
                "verdict": "pass",
                "because": "the objective is met",
                "kneeConcurrencyPerCopy": 16,
                "resultUri": f"s3://results/{TRIAL}",
                "reportUri": "s3://results/trials/dev-chat/b/request-1.md",
            }
        ]

    def test_leaves_its_evidence_and_its_metrics_in_the_log(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        passed: TrialResult,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        run(order, lambda _: passed)
        *lines, metrics = capsys.readouterr().out.splitlines()
        assert lines == [
            "verdict pass: the objective is met",
            "objective: ttft_ms p95 is within its bound",
            "level 8 per copy: 48 of 48 requests succeeded, 250.0 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms",
            "level 16 per copy: 48 of 48 requests succeeded, 410.5 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms",
            "cost of the trial: 0.0257 USD (1 copies x 1.515 USD/h x 61 s)",
            "stopped: every level was measured; live: asked",
        ]
        assert json.loads(metrics)["Passed"] == 1


class TestWhateverGoesWrong:
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (BenchError.of("SEA504", "the endpoint can't be reached"), "SEA504: the endpoint can't be reached"),
            (ZeroDivisionError("division by zero"), "division by zero"),
            (RuntimeError(), "RuntimeError()"),
        ],
    )
    def test_is_written_down_and_announced(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        events: Events,
        error: Exception,
        message: str,
    ) -> None:
        def act(_: Asked) -> TrialResult:
            raise error

        run(order, act)
        documents = [store.read(key) for key in (TRIAL, LATEST, PASSED)]
        assert documents == [json.dumps({"error": message}), None, None]
        (detail,) = events.details
        assert (detail["endpoint"], detail["verdict"], detail["because"]) == ("chat", "error", message)

    def test_a_malformed_request_is_written_down(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, passed: TrialResult
    ) -> None:
        order["ResourceProperties"]["Request"] = "{}"
        run(order, lambda _: passed)
        assert "trial request: endpoint: SEA501: missing" in json.loads(store.read(TRIAL) or "")["error"].splitlines()

    def test_an_event_that_is_not_taken_is_a_line_of_the_log(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        events: Events,
        passed: TrialResult,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def refuse(detail: Detail) -> None:
            raise UnavailableError(f"putting {detail['verdict']}: throttled")

        monkeypatch.setattr(events, "put", refuse)
        run(order, lambda _: passed)
        assert store.read(TRIAL) == passed.to_json()
        assert capsys.readouterr().out.splitlines()[-1] == "no event: putting pass: throttled"
