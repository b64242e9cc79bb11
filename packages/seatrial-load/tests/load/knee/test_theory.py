from __future__ import annotations

from seatrial_load.documents.request import PredictedLevel, Prior
from seatrial_load.knee import theory_knee


def predicted(tok_s: dict[int, float]) -> tuple[PredictedLevel, ...]:
    return tuple(
        PredictedLevel(concurrency=load, output_tok_s=value, ttft_p95_ms=100.0, e2e_mean_ms=900.0)
        for load, value in tok_s.items()
    )


BENDS_AT_8 = predicted({1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 800.0, 32: 800.0})


def test_the_batch_limit_comes_before_the_bend() -> None:
    knee = theory_knee(Prior(levels=BENDS_AT_8, batch_limit=6))
    assert (knee.detector, knee.concurrency) == ("theory", 6)
    assert knee.because == "batch limit of one copy: 6 sequences; predicted, not measured"


def test_the_bend_comes_before_the_batch_limit() -> None:
    knee = theory_knee(Prior(levels=BENDS_AT_8, batch_limit=256))
    assert knee.concurrency == 8
    assert knee.because == "predicted throughput bends at 8 per copy; not measured"


def test_a_curve_without_a_bend_leaves_the_batch_limit() -> None:
    straight = predicted({1: 100.0, 2: 200.0, 4: 400.0})
    assert theory_knee(Prior(levels=straight, batch_limit=64)).concurrency == 64
    assert theory_knee(Prior(levels=straight)).because == "predicted throughput does not bend"


def test_no_plan_no_theory() -> None:
    knee = theory_knee(Prior())
    assert (knee.concurrency, knee.because) == (None, "the plan has no prediction")
