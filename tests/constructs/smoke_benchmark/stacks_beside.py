"""The stack and the store that `on_event` is beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder

NOW_S = 1_763_690_000.0
UNREADABLE = "unreadable"
ROLLBACKS = ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]


@dataclass
class Stack:
    status: str
    orders: list[TrialOrder] = field(default_factory=list)

    def stack_status(self, stack_id: str) -> str:
        assert stack_id.startswith("arn:aws:cloudformation:")
        if self.status == UNREADABLE:
            raise UnavailableError("reading the stack's status: throttled")
        return self.status

    def start_runner(self, order: TrialOrder) -> None:
        self.orders.append(order)


class UnreadableStore:
    """A store that is throttled."""

    def read(self, key: str) -> str | None:
        raise UnavailableError(f"reading s3://results/{key}: SlowDown")

    def write(self, key: str, text: str) -> None:
        raise UnavailableError(f"writing {len(text)} characters to s3://results/{key}: SlowDown")

    def create(self, key: str, text: str) -> bool:
        raise UnavailableError(f"creating s3://results/{key} of {len(text)} characters: SlowDown")

    def uri(self, key: str) -> str:
        return f"s3://results/{key}"

    def clear(self, endpoint_name: str) -> None:
        raise UnavailableError(f"emptying s3://results of {endpoint_name}: SlowDown")
