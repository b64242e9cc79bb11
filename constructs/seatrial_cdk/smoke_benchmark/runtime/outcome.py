"""What a trial's end leaves behind: its document, its short report, what is deployed since, metrics and an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.secrets import redacted
from seatrial_cdk.smoke_benchmark.runtime.announcement import announce, error_detail, result_detail
from seatrial_cdk.smoke_benchmark.runtime.evidence import evidence
from seatrial_cdk.smoke_benchmark.runtime.metrics_line import metrics_line
from seatrial_cdk.smoke_benchmark.runtime.short_report import short_report
from seatrial_cdk.smoke_benchmark.runtime.trial_store import (
    latest_key,
    passed_key,
    released_key,
    report_key,
    trial_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Bus
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


def keep_result(
    store: TrialStore, properties: TrialProperties, request_id: str, result: TrialResult, *, bus: Bus, now_s: float
) -> list[str]:
    """Keep what was measured and announce it, credentials masked; return the log's lines.

    The trial's own document, which lets the deployment go on, is written after all that later deployments read.
    """
    key = trial_key(properties, request_id)
    document, report = redacted(result.to_json()), redacted(short_report(result, store.uri(key)))
    for kept in (*_keys_of_the_deployed(properties, result), key):
        store.write(report_key(kept), report)
        store.write(kept, document)
    detail = result_detail(
        result,
        endpoint_name=properties.endpoint_name,
        result_uri=store.uri(key),
        report_uri=store.uri(report_key(key)),
    )
    lines = [*evidence(result), metrics_line(result, now_s=now_s), announce(bus, detail)]
    return [line for line in lines if line]


def keep_error(
    store: TrialStore, properties: TrialProperties, request_id: str, message: str, *, bus: Bus | None
) -> str:
    """Keep why there is no result, and announce it where there is a bus; return the log's line, empty without one."""
    key, message = trial_key(properties, request_id), redacted(message)
    store.write(key, json.dumps({"error": message}))
    if bus is None:
        return ""
    detail = error_detail(
        message,
        request=properties.request,
        endpoint_name=properties.endpoint_name,
        plan_digest=properties.plan_digest,
        result_uri=store.uri(key),
    )
    return announce(bus, detail)


def _keys_of_the_deployed(properties: TrialProperties, result: TrialResult) -> Iterator[str]:
    yield latest_key(properties)
    if result.verdict.status == "pass":
        yield passed_key(properties)
        yield released_key(properties.endpoint_name)
