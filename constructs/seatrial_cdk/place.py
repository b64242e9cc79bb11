"""The place of a stack, and the stacks that the endpoints of an environment share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakKeyDictionary

from aws_cdk import Aws, Environment, Stack, Stage

from seatrial_base.catalog.images import dns_suffix

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from constructs import Construct, IConstruct

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.pipeline import PipelineSpec


TOKEN_MARKER: Final = "${Token["  # noqa: S105 (no password)
"""What a text with a token in it contains (`aws_cdk.Token`)."""
# Every ARN needs three properties of a stack. Each is a crossing into Node, and so is the way from a construct to it.
_PLACES: WeakKeyDictionary[IConstruct, StackPlace] = WeakKeyDictionary()
"""By stack, and by each construct that was looked up."""
Shared = TypeVar("Shared", bound="Stack")


@dataclass(frozen=True, slots=True)
class StackPlace:
    """Where a stack is; each part may be a token."""

    partition: str
    region: str
    account: str

    @classmethod
    def of(cls, construct: IConstruct) -> StackPlace:
        """Return where the stack of a construct is."""
        place = _PLACES.get(construct)
        if place is None:
            stack = Stack.of(construct)
            place = _PLACES.get(stack) or cls(stack.partition, stack.region, stack.account)
            _PLACES[stack] = _PLACES[construct] = place
        return place

    @property
    def dns_suffix(self) -> str:
        """What hosts of AWS end with here; a token where the Region is one."""
        return Aws.URL_SUFFIX if TOKEN_MARKER in self.region else dns_suffix(self.region)

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN of this partition, region and account.

        Args:
            resource: Kind and name, as `endpoint/chat`.
        """
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def stack_environment(spec: EnvironmentSpec | PipelineSpec | StackPlace) -> Environment:
    """Return where the stacks of an environment or of a pipeline are deployed, or where one is."""
    return Environment(account=spec.account, region=spec.region)


def shared_stack(scope: Construct, name: str, kind: type[Shared], make: Callable[[Construct], Shared]) -> Shared:
    """Return the stack of a name in the stage or app of a construct; it is made when it is not there.

    Raises:
        TypeError: When something else has the name.
    """
    stage = Stage.of(scope)
    root = cast("Construct", scope.node.root) if stage is None else stage
    stack = root.node.try_find_child(name)
    if stack is None:
        return make(root)
    if not isinstance(stack, kind):
        raise TypeError(f"{stack.node.path} is no {kind.__name__}")
    return stack
