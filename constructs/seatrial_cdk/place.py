"""Where a stack is: partition, region and account, read from the CDK once for each stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from aws_cdk import Stack

if TYPE_CHECKING:
    from typing import Final

    from constructs import IConstruct

TOKEN_MARKER: Final = "${Token["  # noqa: S105 (no password)
"""What a text with a token in it contains (`aws_cdk.Token`)."""


@dataclass(frozen=True, slots=True)
class StackPlace:
    """Where a stack is; each part may be a token.

    Attributes:
        partition: As `aws`.
        region: As `eu-west-1`.
        account: Its twelve digits.
    """

    partition: str
    region: str
    account: str

    @classmethod
    def of(cls, construct: IConstruct) -> StackPlace:
        """Return where the stack of a construct is."""
        stack = Stack.of(construct)
        found = _PLACES.get(stack)
        if found is None:
            found = _PLACES[stack] = cls(stack.partition, stack.region, stack.account)
        return found

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN of this partition, region and account.

        Args:
            service: As `sagemaker`.
            resource: Kind and name, as `endpoint/chat`.
        """
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


_PLACES: WeakKeyDictionary[Stack, StackPlace] = WeakKeyDictionary()
