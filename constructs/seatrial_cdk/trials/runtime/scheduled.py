"""Starts a trial on a schedule: what is live is tried as a candidate beside itself.

The candidate is of the live component's specification; the trial's request is that of the last result of what is live,
so that both can be compared. Nothing that serves is changed. Where a deployment is at work nothing is started, and one
that comes later takes the endpoint over.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from seatrial_base.bounds import IMAGE_PULL_S, INSTANCE_START_S
from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.order import Order, trial_key
from seatrial_cdk.trials.runtime.outcome import (
    Baseline,
    announce,
    baseline_of,
    readable_result,
    result_detail,
    scheduled_detail,
    sealed,
)
from seatrial_cdk.trials.runtime.ownership import Owner, take_if_idle
from seatrial_cdk.trials.runtime.properties import TrialProperties, write_properties
from seatrial_cdk.trials.runtime.report import evidence, metrics_line, short_report
from seatrial_cdk.trials.runtime.store import (
    LATEST,
    PASSED,
    SCHEDULED,
    UnavailableError,
    former_key,
    report_key,
    run_key,
    scheduled_latest_key,
    scheduled_passed_key,
)

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.components import ComponentState
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_cdk.trials.runtime.outcome import Bus, Findings, Sign
    from seatrial_cdk.trials.runtime.store import TrialStore
    from seatrial_load.documents.result import TrialResult


AT_REST: Final = (
    "CREATE_COMPLETE",
    "IMPORT_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
)
"""Statuses of a stack in which nothing of it is at work."""
SPECIFIED: Final = ("ModelName", "ComputeResourceRequirements", "StartupParameters")
"""What of a live component's specification makes another one like it."""
ONLY_OF_ITS_TRIAL: Final = ("target", "expected", "manner", "alarms")


class ScheduledCall(TypedDict):
    """Which endpoint is to be tried.

    Attributes:
        StackId: Name or ARN of its stack.
        Topics: ARNs, with commas, of topics of the endpoint that are told of findings beside the environment's.
        Id: Unique for each call, or the time of a schedule (`2026-11-27T13:00:00Z`); a repeated one starts nothing new.
    """

    EndpointName: str
    InferenceComponentName: str
    StackId: str
    Id: str
    Topics: NotRequired[str]


class ScheduledAnswer(TypedDict):
    """Whether a trial was started.

    Attributes:
        Started: It was, by this call or by an earlier one of the same ID.
        RequestId: Of the trial.
        Because: Why it was not; empty when it was.
    """

    Started: bool
    RequestId: str
    Because: str


class NotNowError(Exception):
    """The endpoint can't be tried at the moment; the message says why."""


def start_scheduled(call: ScheduledCall, context: TrialContext) -> ScheduledAnswer:
    """Start the trial of an endpoint as it is live, unless a deployment is at work.

    Raises:
        UnavailableError: AWS did not answer; Lambda then calls again.
    """
    request_id = _request_id(call)
    try:
        live = _live(call, context)
        order = _order(call, request_id, live, context)
        _begin(order, context)
    except NotNowError as not_now:
        log(f"no scheduled trial of {call['EndpointName']}: {not_now}")
        return {"Started": False, "RequestId": request_id, "Because": f"{not_now}"}
    log(f"scheduled trial of {call['EndpointName']}: {request_id}")
    return {"Started": True, "RequestId": request_id, "Because": ""}


def _request_id(call: ScheduledCall) -> str:
    """Return the trial's request; a time is that of other endpoints too, and names of executions have no colons."""
    if not re.fullmatch(r"[\dT:.-]+Z", call["Id"]):
        return f"{SCHEDULED}-{call['Id']}"
    own = sha256(call["EndpointName"].encode()).hexdigest()[:8]
    return f"{SCHEDULED}-{call['Id'].replace(':', '')}-{own}"


def _live(call: ScheduledCall, context: TrialContext) -> ComponentState:
    """Return the component as it is live and at rest."""
    name, component = call["EndpointName"], call["InferenceComponentName"]
    if not name.startswith(f"{context.environment}-"):
        raise NotNowError(f"it is no endpoint of {context.environment}")
    status = context.stack_status(call["StackId"])
    if status not in AT_REST:
        raise NotNowError(f"its stack is {status}")
    live = context.components.describe(component)
    if live is None or live.endpoint_name != name:
        raise NotNowError(f"there is no component {component} on it")
    if live.status != "InService":
        raise NotNowError(f"{component} is {live.status}")
    return live


def _order(call: ScheduledCall, request_id: str, live: ComponentState, context: TrialContext) -> Order:
    """Return the order of a trial that is like the last one of what is live."""
    name, model = call["EndpointName"], f"{live.specification.get('ModelName', '')}"
    config = context.components.live_config(name)
    before = last_result(context.store, name, config, model)
    if before is None:
        raise NotNowError(f"no trial of what is live ({config}, {model}) is kept: deploy it with its trial")
    fields: dict[str, object] = json.loads(before.request.to_json())
    fields_of_request = {key: value for key, value in fields.items() if key not in ONLY_OF_ITS_TRIAL}
    specification = {key: value for key, value in live.specification.items() if key in SPECIFIED}
    startup = live.specification.get("StartupParameters")
    timeouts = startup.values() if isinstance(startup, dict) else ()  # of download and start, in seconds
    properties = TrialProperties(
        phase="candidate",
        endpoint_name=name,
        inference_component_name=call["InferenceComponentName"],
        endpoint_config_name=config,
        model_name=model,
        specification=json.dumps(specification),
        plan_digest=before.request.plan_digest,
        request=json.dumps(fields_of_request),
        mode="rollback",
        budget_s=before.request.load.budget_s,
        start_s=float(sum(value for value in timeouts if isinstance(value, int | float))),
        instance_s=INSTANCE_START_S + IMAGE_PULL_S,
        fallback_target=before.request.fallback_target_concurrency,
        topics=tuple(filter(None, call.get("Topics", "").split(","))),
    )
    event: CustomResourceEvent = {
        "RequestType": "Update",
        "RequestId": request_id,
        "StackId": call["StackId"],
        "LogicalResourceId": "",
        "ResponseURL": "",
        "ResourceProperties": write_properties(properties),
    }
    return Order(event, context.now_s(), "scheduled", config)


def last_result(store: TrialStore, endpoint_name: str, config: str, model: str) -> TrialResult | None:
    """Return the last pass of a live configuration, else its last result of a load; `None` without any."""
    for folder in (PASSED, LATEST):
        keys = (key for key in store.keys(f"{folder}/{endpoint_name}/") if key.endswith(f"/{config}/{model}.json"))
        results = (readable_result(store, key) for key in keys)
        loaded = [each for each in results if each is not None and each.request.manner != "verify"]
        if loaded:
            return max(loaded, key=lambda result: result.started_at)
    return None


def _begin(order: Order, context: TrialContext) -> None:
    """Take the endpoint where no request is at work on it, and start the workflow."""
    properties, store = order.properties, context.store

    def is_busy(owner: Owner) -> bool:
        is_over = not owner.document or store.read(owner.document) is not None
        return not is_over and not owner.is_over(context.now_s())

    wanted = Owner(
        request_id=order.request_id,
        seen_at_s=order.started_at_s,
        document=trial_key(properties, order.request_id),
        budget_s=properties.budget_s,
    )
    store.write(run_key(properties.endpoint_name, order.request_id, "request"), json.dumps(asdict(order)))
    other = take_if_idle(store, properties.endpoint_name, wanted, is_busy)
    if other is not None and other.request_id != order.request_id:
        raise NotNowError(f"the trial {other.request_id} is at work")
    try:
        context.workflow.start(properties.endpoint_name, order.request_id)
    except UnavailableError:
        # The endpoint is free again, and no document says that the trial is over: the call is repeated.
        take_if_idle(store, properties.endpoint_name, replace(wanted, document=""), is_busy)
        raise


def scheduled_baseline(store: TrialStore, endpoint_name: str) -> Baseline:
    """Return the last scheduled trial that passed, of one copy like the next; before the first, what is released."""
    key = scheduled_passed_key(endpoint_name)
    for each in (key, former_key(key)):
        if (result := readable_result(store, each)) is not None:
            return Baseline(result, store.uri(each))
    return baseline_of(store, endpoint_name)


def keep_scheduled(
    store: TrialStore, order: Order, result: TrialResult, *, seal: Sign, bus: Bus, findings: Findings, now_s: float
) -> list[str]:
    """Keep what was measured, announce it, and notify where it was not passed or got worse; return log lines."""
    properties, key = order.properties, trial_key(order.properties, order.request_id)
    endpoint_name, is_pass = properties.endpoint_name, result.verdict.status == "pass"
    document, unsigned = sealed(result, seal, order.request_id)
    report = redacted(short_report(result, store.uri(key)))
    worse = result.comparison is not None and result.comparison.status == "worse"
    passed = [scheduled_passed_key(endpoint_name)] if is_pass and not worse else []
    for kept in (*passed, scheduled_latest_key(endpoint_name), key):
        store.write(report_key(kept), report)
        store.write(kept, document)
    uris = {"result_uri": store.uri(key), "report_uri": store.uri(report_key(key))}
    detail = result_detail(result, endpoint_name=endpoint_name, **uris)
    compared = None if result.comparison is None else result.comparison.status
    lines = [*evidence(result), metrics_line(result, now_s=now_s), announce(bus, scheduled_detail(detail, compared))]
    lines.append(unsigned)
    if not is_pass or worse:
        lines.append(_publish(findings, properties, *_finding(properties, result, uris["report_uri"])))
    return [line for line in lines if line]


def _finding(properties: TrialProperties, result: TrialResult, report_uri: str) -> tuple[str, str]:
    """Return the subject and the text of a notice."""
    verdict, comparison = result.verdict, result.comparison
    outcome = {"pass": "got worse", "fail": "failed", "inconclusive": "was inconclusive"}[verdict.status]
    lines = [f"verdict: {verdict.status}: {verdict.because}"]
    if comparison is not None:
        lines.append(f"compared with {comparison.baseline_uri or 'nothing'}: {comparison.because}")
    lines += [f"report: {report_uri}", "The endpoint was not changed."]
    return f"Seatrial: the scheduled trial of {properties.endpoint_name} {outcome}", "\n".join(lines)


def report_not_made(
    store: TrialStore, properties: TrialProperties, request_id: str, message: str, *, findings: Findings
) -> list[str]:
    """Notify that a scheduled trial could not be made; return log lines."""
    document = store.read(trial_key(properties, request_id))
    if document is not None:
        store.write(scheduled_latest_key(properties.endpoint_name), document)
    subject = f"Seatrial: the scheduled trial of {properties.endpoint_name} could not be made"
    line = _publish(findings, properties, subject, f"{message}\nThe endpoint was not changed.")
    return [line] if line else []


def _publish(findings: Findings, properties: TrialProperties, subject: str, text: str) -> str:
    """Publish a finding, and return why it was not taken; empty when it was. No trial fails for that."""
    try:
        message = "\n".join(printable(line) for line in redacted(text).splitlines())
        findings.publish(subject, message, properties.topics)
    except UnavailableError as unavailable:
        return f"nobody was told: {unavailable}"
    return ""
