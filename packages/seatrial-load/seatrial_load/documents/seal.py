"""What the signature of a trial's result covers, in which bytes, and who made it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMBER, SIGNATURE = "seal", "signature"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSeal:
    """Who made a result, and the signature of the environment's trial service over the whole of it.

    Attributes:
        actor: ARN of the workflow's execution that made the trial: account, Region, environment and request.
        key_arn: The KMS key that signed.
        algorithm: Of AWS KMS; the signature is ASN.1 DER.
        signature: In base64, over `signed_bytes`.
    """

    actor: str
    key_arn: str
    algorithm: Literal["ECDSA_SHA_256"]
    signature: str


def signed_bytes(document: Mapping[str, object]) -> bytes:
    """Return the bytes of a result that its signature covers: all of it but the signature itself.

    They are its JSON with sorted keys, without spaces, in ASCII with escapes; a number is written with the fewest
    digits that read back as the same double, as Python's `json` writes it. So neither the order of the keys nor a
    program that rewrote the file matters.
    """
    seal = document.get(MEMBER)
    covered = {name: value for name, value in seal.items() if name != SIGNATURE} if isinstance(seal, dict) else None
    whole = {**document, MEMBER: covered}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
