from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.comparisons import compare_instance_types

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

TGI_1 = {"engine": "tgi", "engine_version": "1.1.0"}


def test_one_row_for_each_instance_type_the_cheapest_token_first(ask: Ask) -> None:
    rows = compare_instance_types(
        ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"], **TGI_1})
    )
    prices = [row.usd_per_million_output_tokens or 0.0 for row in rows]

    assert {row.instance_type for row in rows} == {"ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"}
    assert prices == sorted(prices)


def test_a_row_has_what_the_articles_print(ask: Ask) -> None:
    (row,) = compare_instance_types(
        ask(serving={"instance_types": ["ml.g5.2xlarge"], **TGI_1}, budget={"discount": 0.5})
    )

    assert (row.accelerators, row.tensor_parallel_degree, row.copies_per_instance) == (1, 1, 1)
    assert row.highest_concurrency == 64  # the published tables end there: 128 would pass 60 s
    assert row.usd_per_hour == 0.7575
    per_million = 0.7575 / (row.highest_tok_s * 3_600) * 1e6
    assert row.usd_per_million_output_tokens == pytest.approx(per_million, rel=1e-3)
    assert row.blended_usd_per_million_tokens == pytest.approx(per_million / 4, rel=1e-3)
    assert (row.fits, row.because) == (True, "The only degree that fits.")


def test_copies_share_an_instance(ask: Ask) -> None:
    fixed = {"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}, **TGI_1}
    rows = {row.instance_type: row for row in compare_instance_types(ask(serving=fixed))}

    assert rows["ml.g5.12xlarge"].copies_per_instance == 4
    assert rows["ml.g5.12xlarge"].highest_tok_s == pytest.approx(4 * rows["ml.g5.2xlarge"].highest_tok_s, rel=0.01)
    assert rows["ml.g5.12xlarge"].ms_per_token_alone == rows["ml.g5.2xlarge"].ms_per_token_alone


def test_what_holds_no_model_comes_last_with_its_reason(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge", "ml.p4d.24xlarge"], **TGI_1}
    row = compare_instance_types(ask(serving=serving, model={"hub_id": "meta-llama/Llama-2-70b-hf"}))[-1]

    assert (row.instance_type, row.fits, row.highest_tok_s, row.ms_per_token_alone) == ("ml.g5.2xlarge", False, 0, None)
    assert " GiB weights, " in row.because


def test_an_unknown_price_comes_after_the_known_ones(ask: Ask) -> None:
    rows = compare_instance_types(ask(serving={"instance_types": ["ml.p5e.48xlarge", "ml.g5.12xlarge"]}))

    assert [(row.instance_type, row.usd_per_million_output_tokens is None) for row in rows] == [
        ("ml.g5.12xlarge", False),
        ("ml.p5e.48xlarge", True),
    ]


def test_a_request_that_takes_longer_than_the_timeout_alone_has_no_throughput(ask: Ask) -> None:
    (row,) = compare_instance_types(ask(trial={"request_timeout_s": 1}))

    assert (row.highest_concurrency, row.highest_tok_s, row.usd_per_million_output_tokens) == (0, 0.0, None)
