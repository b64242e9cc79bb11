"""What a scheduled trial leaves behind: a document of its own, an event, and a finding where something got worse.

Nothing that a deployment is answered from, or compared with, is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.printable import printable
from seatrial_base.secrets import redacted
from seatrial_cdk.trial_service.runtime.event import announce, result_detail, scheduled_detail
from seatrial_cdk.trial_service.runtime.metrics import metrics_line
from seatrial_cdk.trial_service.runtime.outcome import Baseline, baseline_of, readable_result
from seatrial_cdk.trial_service.runtime.report import evidence, short_report
from seatrial_cdk.trial_service.runtime.store import (
    UnavailableError,
    report_key,
    scheduled_latest_key,
    scheduled_passed_key,
    trial_key,
)

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.custom_resource import Order, TrialProperties
    from seatrial_cdk.trial_service.runtime.event import Bus
    from seatrial_cdk.trial_service.runtime.findings import Findings
    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from seatrial_load.model.result import TrialResult


def scheduled_baseline(store: TrialStore, endpoint_name: str) -> Baseline:
    """Return the last scheduled trial that passed, of one copy like the next; before the first, what is released."""
    key = scheduled_passed_key(endpoint_name)
    result = readable_result(store, key)
    return baseline_of(store, endpoint_name) if result is None else Baseline(result, store.uri(key))


def keep_scheduled(
    store: TrialStore, order: Order, result: TrialResult, *, bus: Bus, findings: Findings, now_s: float
) -> list[str]:
    """Keep what was measured, announce it, and tell people where it was not passed or got worse; return log lines."""
    properties, key = order.properties, trial_key(order.properties, order.request_id)
    endpoint_name, is_pass = properties.endpoint_name, result.verdict.status == "pass"
    document, report = redacted(result.to_json()), redacted(short_report(result, store.uri(key)))
    worse = result.comparison is not None and result.comparison.status == "worse"
    passed = [scheduled_passed_key(endpoint_name)] if is_pass and not worse else []
    for kept in (*passed, scheduled_latest_key(endpoint_name), key):
        store.write(report_key(kept), report)
        store.write(kept, document)
    uris = {"result_uri": store.uri(key), "report_uri": store.uri(report_key(key))}
    detail = result_detail(result, endpoint_name=endpoint_name, **uris)
    compared = None if result.comparison is None else result.comparison.status
    lines = [*evidence(result), metrics_line(result, now_s=now_s), announce(bus, scheduled_detail(detail, compared))]
    if not is_pass or worse:
        lines.append(_publish(findings, *_finding(properties, result, uris["report_uri"])))
    return [line for line in lines if line]


def _finding(properties: TrialProperties, result: TrialResult, report_uri: str) -> tuple[str, str]:
    """Return the subject and the text of what people are told."""
    verdict, comparison = result.verdict, result.comparison
    outcome = {"pass": "got worse", "fail": "failed", "inconclusive": "was inconclusive"}[verdict.status]
    lines = [f"verdict: {verdict.status}: {verdict.because}"]
    if comparison is not None:
        lines.append(f"compared with {comparison.baseline_uri or 'nothing'}: {comparison.because}")
    lines += [f"report: {report_uri}", "The endpoint was not changed."]
    return f"Seatrial: the scheduled trial of {properties.endpoint_name} {outcome}", "\n".join(lines)


def tell_not_made(
    store: TrialStore, properties: TrialProperties, request_id: str, message: str, *, findings: Findings
) -> list[str]:
    """Tell people that a scheduled trial could not be made; return log lines."""
    document = store.read(trial_key(properties, request_id))
    if document is not None:
        store.write(scheduled_latest_key(properties.endpoint_name), document)
    subject = f"Seatrial: the scheduled trial of {properties.endpoint_name} could not be made"
    line = _publish(findings, subject, f"{message}\nThe endpoint was not changed.")
    return [line] if line else []


def _publish(findings: Findings, subject: str, text: str) -> str:
    """Publish a finding, and return why it was not taken; empty when it was. No trial fails for that."""
    try:
        findings.publish(subject, "\n".join(printable(line) for line in redacted(text).splitlines()))
    except UnavailableError as unavailable:
        return f"nobody was told: {unavailable}"
    return ""
