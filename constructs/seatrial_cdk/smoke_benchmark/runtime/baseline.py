"""What is released: the last pass of an endpoint, of whatever plan, which the next plan's trial is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.result import TrialResult
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.trial_store import configuration_key, released_key
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


@dataclass(frozen=True, slots=True)
class Baseline:
    """A released result and the URI under which it stays; None and empty when there is none."""

    result: TrialResult | None
    uri: str


def baseline_of(store: TrialStore, endpoint_name: str) -> Baseline:
    """Return what is released; what can't be read, or is of another version's schema, is no baseline."""
    try:
        text = store.read(released_key(endpoint_name))
        result = None if text is None else TrialResult.from_json(text)
    except (BenchError, UnavailableError):
        return Baseline(None, "")
    return Baseline(result, "" if result is None else _uri(store, endpoint_name, result))


def _uri(store: TrialStore, endpoint_name: str, result: TrialResult) -> str:
    """Return where the passing result of that configuration lies: what is released changes, this stays."""
    expected = result.request.expected
    if expected is None:
        return store.uri(released_key(endpoint_name))
    names = (endpoint_name, result.request.plan_digest, expected.endpoint_config_name, expected.model_name)
    return store.uri(configuration_key(*names))
