"""A deployed stack, as CloudFormation describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class LiveStack:
    """A deployed stack.

    Attributes:
        name: Its name.
        status: CloudFormation's status.
        outputs: Its outputs by name.
    """

    name: str
    status: str
    outputs: Mapping[str, str]

    def output(self, name: str) -> str:
        """Return one output.

        Raises:
            BenchError: SEA502 when the stack has no such output.
        """
        if name not in self.outputs:
            message = f"the stack ({self.status}) has no output {name}"
            hint = "deploy it with this version of Seatrial"
            raise BenchError.of("SEA502", message, where=self.name, hint=hint)
        return self.outputs[name]
