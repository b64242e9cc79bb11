"""What `is_complete` is asked, and what is beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.is_complete import (
    Surroundings,
)

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore
    from tests.constructs.conftest import DictScaling

PAUSE = "runs/dev-chat/scaling.json"
BEFORE = {"DynamicScalingInSuspended": False}
NOTE = json.dumps({"request_id": "request-1", "before": BEFORE})
STARTED_S = 1000.0
DUE_S = STARTED_S + 600.0 + 240.0  # the budget and its margin
KEY = "trials/dev-chat/b/request-1.json"
URI = f"s3://results/{KEY}"
REPORT = URI.replace(".json", ".md")
MISSED = "ttft_ms p95 2400.0 ms exceeds 2000.0 ms at concurrency 16 per copy"


@dataclass
class Starter:
    orders: list[TrialOrder] = field(default_factory=list)

    def start(self, order: TrialOrder) -> None:
        self.orders.append(order)


def beside(store: TrialStore, scaling: DictScaling, starter: Starter | None = None) -> Surroundings:
    return Surroundings(store=store, scaling=scaling, starter=starter or Starter())
