"""What a run on an account costs: expected before it begins, and estimated while it runs, both at list prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seatrial_base.catalog.instances import find_instance
from seatrial_base.table import aligned_lines, number_columns, table_of, text_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Client = Any  # boto3's clients have no type of their own

HOUR_S: Final = 3_600.0
OTHER_USD: Final = 0.50
"""For what is not counted: functions, requests to S3 and CloudWatch, metrics of alarms, logs. An assumption."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the run.

    Attributes:
        what: What happens.
        instances: Instances that run meanwhile, on average.
        minutes: How long it takes: 8 for an instance with its image, 3 for a copy on an instance that is there, 4 for a
            trial. Assumptions until a run has measured them.
    """

    what: str
    instances: float
    minutes: float

    @property
    def hours(self) -> float:
        """Hours of instances."""
        return self.instances * self.minutes / 60


LONGEST_REMOVAL_S: Final = 5_400.0
STEPS: Final = (
    Step("first deployment with its trial, 2 copies", 2, 20),
    Step("questions; metrics and a component without room are watched for 10 minutes each", 3, 45),
    Step("update with a candidate, copy by copy", 3.7, 28),
    Step("a candidate that fails its trial", 3.5, 15),
    Step("an alarm during the rollout", 3.7, 20),
    Step("no room for a candidate", 4, 35),
    Step("a change by hand, copy by copy", 3.5, 15),
    Step("removal of the endpoint", 3, 10),
    Step("a product of every option: launched, updated, of another size, terminated", 1.6, 75),
    Step("an adapter on vLLM, an update in place", 1.3, 45),
    Step("to zero, awake, out and in again", 1, 75),
    Step("removal of the rest", 1, 5),
)
"""The suite in its order."""


SMOKE_USD: Final = 0.01
"""Of `smoke.py`: some 30 requests to CloudWatch at 0.01 USD per 1,000 (its price list); the rest is free of charge."""
LONGEST_SMOKE_S: Final = 420.0
"""After this no question is asked and nothing is waited for any more; the removal follows."""
LONGEST_SMOKE_REMOVAL_S: Final = 150.0
"""A new function can't be deleted while Lambda makes its network interfaces: an assumption."""


def longest_run_s() -> float:
    """Return how long the suite and the removal behind it take, in seconds: credentials must last as long."""
    return sum(step.minutes for step in STEPS) * HOUR_S / 60 + LONGEST_REMOVAL_S


def list_price(instance_type: str) -> float:
    """Return the price of a type in USD per hour, from the catalog.

    Raises:
        KeyError: The catalog has no price of it.
    """
    found = find_instance(instance_type)
    if found is None or found.usd_per_hour is None:
        raise KeyError(instance_type)
    return found.usd_per_hour


def expected_usd(usd_per_hour: float) -> float:
    """Return what the whole run is expected to cost."""
    return sum(step.hours for step in STEPS) * usd_per_hour + OTHER_USD


def price_lines(instance_type: str, usd_per_hour: float) -> list[str]:
    """Return the expected price, step by step, as lines of a table."""
    rows = [
        (step.what, f"{step.instances:g}", f"{step.minutes:g}", f"{step.hours:.2f}", f"{step.hours * usd_per_hour:.2f}")
        for step in STEPS
    ]
    rows.append(("functions, requests, metrics, logs (assumed)", "", "", "", f"{OTHER_USD:.2f}"))
    hours = sum(step.hours for step in STEPS)
    rows.append(("expected", "", "", f"{hours:.2f}", f"{expected_usd(usd_per_hour):.2f}"))
    columns = (*text_columns("step"), *number_columns("instances", "minutes", "instance hours", "USD"))
    head = f"{instance_type} at {usd_per_hour:.4f} USD per hour (list price of the catalog)"
    return [head, *aligned_lines(table_of(columns, rows))]


def running_instances(sagemaker: Client, prefix: str) -> dict[str, int]:
    """Return the instances of the endpoints whose names begin so, by type: those that run or are asked for."""
    counted: dict[str, int] = {}
    for endpoint in _endpoints(sagemaker, prefix):
        told = sagemaker.describe_endpoint(EndpointName=endpoint)
        config = sagemaker.describe_endpoint_config(EndpointConfigName=told["EndpointConfigName"])
        types = {each["VariantName"]: each.get("InstanceType", "") for each in config["ProductionVariants"]}
        for variant in told.get("ProductionVariants", ()):
            count = max(variant.get("CurrentInstanceCount", 0), variant.get("DesiredInstanceCount", 0))
            name = types.get(variant["VariantName"], "")
            counted[name] = counted.get(name, 0) + count
    return counted


def _endpoints(sagemaker: Client, prefix: str) -> Iterator[str]:
    for page in sagemaker.get_paginator("list_endpoints").paginate(NameContains=prefix):
        for endpoint in page["Endpoints"]:
            if endpoint["EndpointName"].startswith(prefix):
                yield endpoint["EndpointName"]


@dataclass(slots=True)
class Spending:
    """What a run has cost so far: instances that were seen, at their price, for the time between two looks.

    Attributes:
        price_of: Returns the price of a type in USD per hour.
        dearest: The price that counts for a type without one.
        removal_s: How long the removal takes at most; what it costs is kept free of the budget.
        usd: Spent so far.
    """

    price_of: Callable[[str], float]
    dearest: float
    removal_s: float = LONGEST_REMOVAL_S
    usd: float = OTHER_USD
    _last_s: float | None = None
    _last_usd_per_s: float = 0.0

    def look(self, instances: Mapping[str, int] | None, now_s: float) -> None:
        """Count the time since the last look at the larger of both rates: what was missed in between is not cheap.

        Args:
            instances: Those that run, by type; None where it is not known: the last ones are taken to run on.
            now_s: A reading of `time.monotonic`.
        """
        known = instances if instances is not None else {}
        rate = sum(count * self._price(name) for name, count in known.items()) / HOUR_S
        rate = rate if instances is not None else self._last_usd_per_s
        if self._last_s is not None:
            self.usd += max(rate, self._last_usd_per_s) * (now_s - self._last_s)
        self._last_s, self._last_usd_per_s = now_s, rate

    def would_exceed(self, budget_usd: float, next_look_s: float) -> bool:
        """Tell whether the budget would not last until the next look and a removal after it."""
        return self.usd + self._last_usd_per_s * (next_look_s + self.removal_s) > budget_usd

    def _price(self, instance_type: str) -> float:
        try:
            return self.price_of(instance_type)
        except KeyError:
            return self.dearest
