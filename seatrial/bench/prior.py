"""What the plan says before anything is measured: where a search begins, and what the theory's knee is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLevel:
    """What the planner predicts of one concurrency: the prior of a search, and of the theory's knee.

    Attributes:
        concurrency: Requests in flight per copy.
        output_tok_s: Output tokens per second, one copy.
        ttft_p95_ms: Time to first token.
        e2e_mean_ms: End-to-end latency, mean.
    """

    concurrency: int
    output_tok_s: float
    ttft_p95_ms: float
    e2e_mean_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What the plan says before anything is measured.

    Attributes:
        levels: The predicted curve, ascending; may be empty.
        batch_limit: Sequences that one copy batches at once (`max_num_seqs` and the KV room, the lesser); None unknown.
    """

    levels: tuple[PredictedLevel, ...] = ()
    batch_limit: int | None = None
