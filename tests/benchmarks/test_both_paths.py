"""How both paths and a peer's numbers stand in one table."""

from __future__ import annotations

from benchmarks.both_paths.run import GuideLlmBenchmark, GuideLlmDistribution, Round, guidellm_round, table

FAST, SLOW = Round(10.0, 20.0, 2.0, 1_500.0), Round(30.0, 40.0, 4.0, 500.0)


def test_a_way_has_the_medians_of_its_rounds_and_the_throughput_of_each() -> None:
    head, line = table({"invoke": [FAST, SLOW, FAST]}).splitlines()
    assert head.startswith("way ")
    assert head.endswith("TTFT p50 ms TTFT p95 ms TPOT p50 ms  output tok/s, each round")
    assert line.split() == ["invoke", "10.0", "20.0", "2.00", "1,500,", "500,", "1,500"]


def test_a_peers_report_is_read_by_its_own_names() -> None:
    told: GuideLlmDistribution = {"mean": 700.0, "percentiles": {"p50": 3.0, "p95": 9.0}}
    names = ("time_to_first_token_ms", "inter_token_latency_ms", "output_tokens_per_second")
    benchmark: GuideLlmBenchmark = {"metrics": {name: {"successful": told} for name in names}}
    assert guidellm_round({"benchmarks": [benchmark]}) == Round(3.0, 9.0, 3.0, 700.0)
