"""What a workload loses through `hosting.router`, whose limits are those of SageMaker's inference routers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

# botocore 1.44.8, InvokeInferenceRouter and InvokeEndpoint; AWS Lambda quotas, payload of an invocation.
LONGEST_ROUTED_MS, MOST_ROUTED_BYTES = 60_000, 6_291_456


def router_findings(loaded: LoadedSpec, predicted_ms: float | None = None) -> Iterator[Finding]:
    """Yield what a workload loses through `hosting.router`, whose limits are those of SageMaker's inference routers.

    Args:
        predicted_ms: 95th percentile of the end-to-end latency at the planned load; default: what the SLO allows.
    """
    endpoint, path = loaded.endpoint, ("hosting", "router")
    slo, workload, direct = endpoint.slo, endpoint.workload, "let its callers invoke the components (seatrial.client)"
    if not endpoint.hosting.router:
        return
    bounded = [name for name in ("ttft_ms", "tpot_ms") if getattr(slo, name).model_dump(exclude_none=True)]
    if bounded or workload.turns > 1:
        what = f"slo.{bounded[0]} is of streams" if bounded else "conversations are streamed"
        message = f"{what}, and the router streams nothing: its callers get the first token with the last"
        yield loaded.problem(path, "SEA147", message, direct)
    bounds = [each for each in slo.e2e_latency_ms.model_dump(exclude_none=True).values() if each is not None]
    longest_ms = max(bounds, default=0) if predicted_ms is None else predicted_ms
    if longest_ms > LONGEST_ROUTED_MS:
        which = "its SLO allows" if predicted_ms is None else "p95 is predicted to take"
        message = f"{which} {longest_ms / MS_PER_S:g} s, and SageMaker ends a request through the router after 60 s"
        yield loaded.problem(path, "SEA147", message, f"bound the output, or {direct} as streams")
    if workload.dataset is not None and (file := loaded.path.parent / workload.dataset).is_file():
        with file.open("rb") as lines:
            largest = max(map(len, lines), default=0)
        if largest > MOST_ROUTED_BYTES:
            message = f"a line of {workload.dataset} has {largest:,} bytes, and the router takes {MOST_ROUTED_BYTES:,}"
            yield loaded.problem(path, "SEA147", message, direct)
