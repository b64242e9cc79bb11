"""A stack that the endpoints of an environment share: one in a stage or app."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from aws_cdk import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_cdk import Stack
    from constructs import Construct

Shared = TypeVar("Shared", bound="Stack")


def shared_stack(scope: Construct, name: str, kind: type[Shared], make: Callable[[Construct], Shared]) -> Shared:
    """Return the stack of a name in the stage or app of a construct; it is made when it is not there.

    Args:
        scope: A construct of the stage or app.
        name: Its construct ID.
        kind: What it must be.
        make: Makes it, in the stage or app.

    Raises:
        TypeError: When something else has the name.
    """
    stage = Stage.of(scope)
    root = cast("Construct", scope.node.root) if stage is None else stage
    found = root.node.try_find_child(name)
    if found is None:
        return make(root)
    if not isinstance(found, kind):
        raise TypeError(f"{found.node.path} is no {kind.__name__}")
    return found
