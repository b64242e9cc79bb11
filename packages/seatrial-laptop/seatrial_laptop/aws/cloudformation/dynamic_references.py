"""`{{resolve:…}}` of a template, read with the rights of the role that deploys.

A secret needs `secretsmanager:GetSecretValue`, a parameter `ssm:GetParameters`; what a key of the account encrypts
needs `kms:Decrypt` too, through the service that keeps it. Keys that AWS owns need no right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ministack.services import secretsmanager, ssm
from ministack.services.cloudformation import engine

from seatrial_laptop.aws.cloudformation.deployer import deployer
from seatrial_laptop.aws.cloudformation.handler_denial import check_right
from seatrial_laptop.aws.json_document import Document, text_member
from seatrial_laptop.aws.rights.role_rights import Right
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OWNED_BY_AWS: Final = "alias/aws/"
SECRET_ARN_PARTS: Final = 7


def resolve_with_rights() -> None:
    """Let MiniStack ask before it resolves a dynamic reference."""
    theirs = cast("Callable[[str], str]", engine._resolve_dynamic_reference)  # noqa: SLF001 (the contract)

    def resolve(literal: str) -> str:
        if by := deployer.get():
            for right in reference_rights(literal):
                check_right(by, right)
        return theirs(literal)

    engine._resolve_dynamic_reference = resolve  # noqa: SLF001 (the contract)


def reference_rights(literal: str) -> Iterator[Right]:
    """Return what a dynamic reference asks of the role that deploys.

    Args:
        literal: As `{{resolve:secretsmanager:seatrial/hub-token}}`.
    """
    service, _, body = literal.removeprefix("{{resolve:").removesuffix("}}").partition(":")
    if service == "secretsmanager":
        yield from _secret_rights(body)
    else:
        yield from _parameter_rights(body.partition(":")[0])


def _secret_rights(body: str) -> Iterator[Right]:
    parts = body.split(":")
    named = ":".join(parts[:SECRET_ARN_PARTS]) if body.startswith("arn:") else parts[0]
    _, found = secretsmanager._resolve(named, use_arn_scope=True)  # noqa: SLF001 (the contract)
    secret = cast("Document", found or {})
    arn = text_member(secret, "ARN", f"arn:aws:secretsmanager:{REGION}:{own_account()}:secret:{named}")
    yield Right("secretsmanager:GetSecretValue", arn)
    yield from _key_rights(str(secret.get("KmsKeyId") or ""), "secretsmanager")


def _parameter_rights(name: str) -> Iterator[Right]:
    _, found = ssm._lookup_parameter(name, flexible_name=True)  # noqa: SLF001 (the contract)
    slash = "" if name.startswith("/") else "/"
    yield Right("ssm:GetParameters", f"arn:aws:ssm:{REGION}:{own_account()}:parameter{slash}{name}")
    yield from _key_rights(str((found or {}).get("KeyId") or ""), "ssm")


def _key_rights(key: str, service: str) -> Iterator[Right]:
    if key and not key.startswith(OWNED_BY_AWS):
        arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{own_account()}:key/{key}"
        yield Right("kms:Decrypt", arn, {"kms:viaservice": f"{service}.{REGION}.amazonaws.com"})
