"""The private names of MiniStack that several modules read or replace, each in one place.

They hold for the pinned version only; `packages/seatrial-laptop/tests/laptop` holds the contract on them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ministack.core import iam_evaluator
from ministack.services import cloudformation, iam
from ministack.services.cloudformation import handlers, helpers, provisioners

from seatrial_laptop.environment import own_account

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from ministack.core.iam_evaluator import PrincipalInfo

    Response = tuple[int, object, object]
    """Status, headers and body."""
    Parameters = Mapping[str, list[str]]
    """Those of a request to a query API."""


def replace(name: str, ours: object, *modules: ModuleType) -> None:
    """Replace a function of MiniStack in the modules that call it."""
    # A module that imported the function has a binding of its own: replaced in its home alone, it would still be
    # called there.
    for module in modules:
        if hasattr(module, name):
            setattr(module, name, ours)


def wrapper(name: str, *modules: ModuleType) -> Callable[[Callable[..., object]], None]:
    """Decorate what replaces a function of MiniStack, and gets that function before its arguments.

    Args:
        modules: Where it is called; the first one has it.
    """
    return lambda ours: replace(name, partial(ours, getattr(modules[0], name)), *modules)


def _principals(kind: str) -> Any:  # noqa: ANN401 (MiniStack has no types)
    # Read at each call: a reset of MiniStack may bind the names to other stores.
    return iam._roles if kind == "AssumedRole" else iam._users  # noqa: SLF001 (the contract)


def find_role(name: str) -> dict[str, Any] | None:
    """Return a role of IAM; `None` where there is none."""
    return cast("dict[str, Any] | None", _principals("AssumedRole").get_scoped(own_account(), None, name))


def role_principal(name: str, session_name: str) -> PrincipalInfo:
    """Return a session of a role, with the role's policies and its boundary."""
    account = own_account()
    return iam_evaluator.PrincipalInfo(
        arn=f"arn:aws:sts::{account}:assumed-role/{name}/{session_name}",
        type="AssumedRole",
        account=account,
        policies=iam_evaluator._gather_role_policies(name, account),  # noqa: SLF001 (the contract)
        limits=_boundary("AssumedRole", name),
    )


def user_principal(arn: str) -> PrincipalInfo:
    """Return a user, with the user's policies and boundary."""
    name, account = arn.rpartition("/")[2], own_account()
    return iam_evaluator.PrincipalInfo(
        arn=arn,
        type="User",
        account=account,
        policies=iam_evaluator._gather_user_policies(name, account),  # noqa: SLF001 (the contract)
        limits=_boundary("User", name),
    )


def _boundary(kind: str, name: str) -> object:
    return iam_evaluator._permissions_boundary(_principals(kind), name, own_account())  # noqa: SLF001 (the contract)


def has_boundary(principal: PrincipalInfo) -> bool:
    """Tell whether the first limit of a principal is its permissions boundary."""
    name = principal.arn.split("/")[1] if "/" in principal.arn else ""
    record = _principals(principal.type).get_scoped(principal.account, None, name)
    return bool((record or {}).get("PermissionsBoundary"))


def physical_name(stack: str, logical_id: str, longest: int) -> str:
    """Return the name that CloudFormation gives a resource without one; `longest` in characters."""
    return str(provisioners._physical_name(stack, logical_id, max_len=longest))  # noqa: SLF001 (the contract)


def stack_records() -> dict[str, dict[str, Any]]:
    """Return the stacks of the request's account, by name or ID."""
    return cast("dict[str, dict[str, Any]]", cloudformation._stacks)  # noqa: SLF001 (the contract)


def stack_operations() -> dict[str, Callable[[Any], Any]]:
    """Return the table of CloudFormation's operations; a change of it holds."""
    return cast("dict[str, Callable[[Any], Any]]", handlers._ACTION_HANDLERS)  # noqa: SLF001 (the contract)


def parameter(params: Parameters, name: str) -> str:
    """Return the first value of a parameter, or nothing."""
    value = params.get(name, "")
    return value[0] if isinstance(value, list) else value


def validation_error(message: str) -> Response:
    """Return CloudFormation's ValidationError."""
    return cast("Response", helpers._error("ValidationError", message))  # noqa: SLF001 (the contract)
