from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.documents.comparison import Basis, InstanceComparison
from seatrial.documents.prediction import Band
from seatrial.report.terminal.alternatives import band_lines, comparison_csv, comparison_rows, instances_view

if TYPE_CHECKING:
    from tests.report.terminal.conftest import Shown

FITTED = Band(throughput=0.04, latency=0.05, measured=True, because="80 % of the rows left out lay within it.")
ASSUMED = Band(throughput=0.5, latency=0.5, measured=False, because="No constants are fitted on L40S.")
ROWS = (
    InstanceComparison(
        instance_type="ml.g5.2xlarge",
        accelerators=1,
        tensor_parallel_degree=1,
        copies_per_instance=1,
        kv_limited_batch=29,
        ms_per_token_alone=33.12,
        highest_concurrency=64,
        highest_tok_s=612.4,
        usd_per_hour=1.515,
        usd_per_million_output_tokens=0.6872,
        blended_usd_per_million_tokens=0.1718,
        fits=True,
        because="",
    ),
    InstanceComparison(
        instance_type="ml.g6e.12xlarge",
        accelerators=4,
        tensor_parallel_degree=2,
        copies_per_instance=2,
        kv_limited_batch=180,
        ms_per_token_alone=14.9,
        highest_concurrency=512,
        highest_tok_s=4120.0,
        usd_per_hour=None,
        usd_per_million_output_tokens=None,
        blended_usd_per_million_tokens=None,
        fits=True,
        because="",
    ),
    InstanceComparison(
        instance_type="ml.g4dn.xlarge",
        accelerators=1,
        tensor_parallel_degree=1,
        copies_per_instance=1,
        kv_limited_batch=0,
        ms_per_token_alone=None,
        highest_concurrency=0,
        highest_tok_s=0.0,
        usd_per_hour=0.736,
        usd_per_million_output_tokens=None,
        blended_usd_per_million_tokens=None,
        fits=False,
        because="12.6 GiB of weights and one sequence do not fit in 14.4 GiB.",
    ),
)
BASIS = Basis(
    engine="tgi",
    engine_version="1.1.0",
    constants="tgi-1.x",
    workload="256 + 256 tokens",
    discount=0.2,
    bands={"ml.g5.2xlarge": FITTED, "ml.g6e.12xlarge": ASSUMED, "ml.g4dn.xlarge": FITTED},
)


def test_the_whole_comparison(shown: Shown) -> None:
    assert (
        shown(instances_view(ROWS, BASIS, "Instance types for chat in dev"), width=84)
        == """\
Instance types for chat in dev
Predicted, not measured: 256 + 256 tokens, tgi 1.1.0, constants of tgi-1.x, list
prices less 20 %.

                     degree ms per
                          x  token  most     in          $/1M    $/1M
instance type   GPUs copies  alone tok/s flight    $/h output blended band
ml.g5.2xlarge      1  1 x 1   33.1   612     64 $1.515 $0.687  $0.172 a
ml.g6e.12xlarge    4  2 x 2   14.9 4,120    512      ?      ?       ? b

One instance of each type, lowest price per token first. Alone: a single request.
Most: highest power of 2 of concurrent requests that all end in time. Blended: 3
input tokens to 1 output token. ?: price unknown.
a: throughput ±4 %, latency ±5 % (measured). 80 % of the rows left out lay within
it.
b: throughput ±50 %, latency ±50 % (assumed). No constants are fitted on L40S.

Left out
instance type   because
ml.g4dn.xlarge  12.6 GiB of weights and one sequence do not fit in 14.4 GiB.
"""
    )


def test_bands_of_one_width_share_a_letter_and_their_reasons_stay_with_the_machines(shown: Shown) -> None:
    other = ASSUMED.model_copy(update={"because": "No constants are fitted on L4."})
    basis = replace(BASIS, bands={"ml.g5.2xlarge": other, "ml.g6e.12xlarge": ASSUMED})
    assert list(band_lines(ROWS[:2], basis)) == [
        "a: throughput ±50 %, latency ±50 % (assumed). The source differs by type: see --format json."
    ]
    assert [row["band_because"] for row in comparison_rows(ROWS[:2], basis)] == [other.because, ASSUMED.because]


def test_without_a_type_that_holds_the_model_there_is_no_table(shown: Shown) -> None:
    text = shown(instances_view(ROWS[2:], BASIS, "Instance types for chat in dev"))
    assert "The model fits on no instance type.\n\nLeft out\n" in text
    assert "band" not in text


def test_the_csv_has_every_field_and_leaves_the_unknown_empty() -> None:
    text = comparison_csv(ROWS, BASIS)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["instance_type"] for row in rows] == ["ml.g5.2xlarge", "ml.g6e.12xlarge", "ml.g4dn.xlarge"]
    assert rows[0]["highest_tok_s"] == "612.4"
    assert (rows[0]["constants"], rows[0]["throughput_band"], rows[0]["band"]) == ("tgi-1.x", "0.04", "measured")
    assert (rows[1]["usd_per_hour"], rows[1]["band"]) == ("", "assumed")
    assert (rows[2]["fits"], rows[2]["ms_per_token_alone"]) == ("False", "")


def test_nothing_to_compare_is_an_empty_csv() -> None:
    assert comparison_csv((), BASIS) == "\n"
