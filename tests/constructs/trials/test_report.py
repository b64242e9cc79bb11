from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_cdk.trials.runtime.report import short_report
from seatrial_load.documents.result import Comparison
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult

URI = "s3://results/trials/dev-chat/b/request-1.json"


def test_a_trial_that_passed(passed: TrialResult) -> None:
    assert short_report(passed, URI) == (
        "# Sea trial of chat in dev: pass\n"
        "\n"
        "objective met.\n"
        "\n"
        "- ttft_ms p95 is within its bound\n"
        "\n"
        "| concurrency per copy | requests | failed | tok/s | TTFT p95 ms | TPOT p95 ms | end to end p95 ms | SLO |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---|\n"
        "| 8 | 48 | 0 | 250.0 | 812.2 | 45.5 | 45.5 | met |\n"
        "| 16 (knee) | 48 | 0 | 410.5 | 812.2 | 45.5 | 45.5 | met |\n"
        "\n"
        "Scaling target: 12.8 concurrent requests per copy: slo knee 16 per copy x target utilization 0.8.\n"
        "\n"
        "- knee by `slo`: 16: every level meets the SLO\n"
        "- knee by `kneedle`: 8: the curve bends there\n"
        "\n"
        "- stopped: every level was measured\n"
        "- live: asked\n"
        "- cost of the trial: 0.0257 USD (1 copies x 1.515 USD/h x 61 s)\n"
        "- USD per million output tokens: 1.025\n"
        "- USD per million tokens, input and output blended 3:1: 0.26\n"
        "\n"
        f"Summary of `{URI}`, plan b, started at 2026-11-21T01:00:00+00:00.\n"
        f"Full report: `seatrial report {URI}`.\n"
    )


def test_a_simulated_engine_says_so(passed: TrialResult) -> None:
    report = short_report(replace(passed, engine_note="local-cpu-random-llama (not the model named)"), URI)
    assert "**Measured on local-cpu-random-llama (not the model named).**" in report.splitlines()


def test_what_is_missing_is_a_dash_and_what_is_void_says_so(passed: TrialResult) -> None:
    silent, void = passed.levels
    levels = (
        replace(silent, succeeded=40, output_tok_s=None, ttft_ms=None, tpot_ms=None, meets_slo=False),
        replace(void, void=lagging("the client was late")),
    )
    lines = short_report(replace(passed, levels=levels, comparison=None), URI).splitlines()
    assert "| 8 | 48 | 8 | - | - | - | 45.5 | not met |" in lines
    assert "| 16 (knee) | 48 | 0 | 410.5 | 812.2 | 45.5 | 45.5 | void |" in lines


def test_a_trial_without_a_price_has_an_unknown_cost(passed: TrialResult) -> None:
    free = replace(passed.request, usd_per_hour_per_copy=None)
    lines = short_report(replace(passed, request=free), URI).splitlines()
    assert "- cost of the trial: unknown (1 copies for 61 s)" in lines


def test_the_comparison_with_the_last_release_is_told(passed: TrialResult) -> None:
    compared = replace(passed, comparison=Comparison(status="worse", because="12 % fewer tok/s"))
    assert "- compared with the last release: worse: 12 % fewer tok/s" in short_report(compared, URI).splitlines()


def test_what_an_endpoint_answers_is_no_markup(passed: TrialResult) -> None:
    verdict = replace(passed.verdict, because="@everyone <img src=x> [x](http://e)")
    report = short_report(replace(passed, verdict=verdict), URI)
    assert "@\N{WORD JOINER}everyone \\<img src=x\\> \\[x\\](http\\://e)." in report.splitlines()
