"""Runs one trial and writes its document; whatever happens, there is one."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from seatrial.bench.request import TrialRequest
from seatrial.bench.trial import run_trial
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.evidence import evidence
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import aws_copy_scaling, paused
from seatrial_cdk.smoke_benchmark.runtime.trial_store import latest_key, passed_key, results_bucket, trial_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


def handler(order: TrialOrder, _context: object) -> None:
    """Run the ordered trial in this function's region."""
    perform(order, results_bucket(), aws_copy_scaling(), run_trial, region=os.environ["AWS_REGION"])


def perform(
    order: TrialOrder,
    store: TrialStore,
    scaling: CopyScaling,
    trial: Callable[[TrialRequest], TrialResult],
    *,
    region: str,
) -> None:
    """Run a trial and write its result; the document that `is_complete` waits for comes last.

    Lambda delivers an order at least once: one whose document is there has been carried out.
    """
    properties = TrialProperties.of(order["ResourceProperties"])
    key = trial_key(properties, order["RequestId"])
    if store.read(key) is not None:
        _log("this trial has been made already")
        return
    try:
        request = trial_request(properties, region)
        with paused(scaling, store, properties, order["RequestId"]):
            result = trial(request)
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: the waiting stack must learn of any failure)
        document = json.dumps({"error": str(error) or repr(error)})
        _log(f"error: {error!r}")
    else:
        document = result.to_json()
        _log(*evidence(result))
        store.write(latest_key(properties), document)
        if result.verdict.status == "pass":
            store.write(passed_key(properties), document)
    store.write(key, document)


def _log(*lines: str) -> None:
    """Write into the function's log group."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def trial_request(properties: TrialProperties, region: str) -> TrialRequest:
    """Complete the trial's request with what only the deployed stack knows.

    Raises:
        BenchError: SEA501 when the `Request` property is malformed.
    """
    whole = {
        **json.loads(properties.request),
        "target": {
            "endpoint_name": properties.endpoint_name,
            "inference_component": properties.inference_component_name,
            "region": region,
        },
        "expected": {
            "endpoint_config_name": properties.endpoint_config_name,
            "model_name": properties.model_name,
        },
    }
    return TrialRequest.from_json(json.dumps(whole))
