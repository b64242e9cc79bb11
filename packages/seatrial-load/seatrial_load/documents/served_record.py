"""What served since when, and on what evidence: the record that a deployment leaves for auditors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seatrial_load.documents.seal import ResultSeal  # noqa: TC001 (the types of fields are read)

UNKNOWN: Final = "unknown"
"""What nothing tells; a record never guesses."""
Change: TypeAlias = Literal["create", "update", "rollback", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """One model of an endpoint as its lock and spec tell it; a text is `unknown` where neither does.

    Attributes:
        endpoint: The name in its spec.
        model: Hub id, JumpStart id, ARN of a model package, or S3 URI.
        revision: Of the hub: a commit is a digest of everything in it, a branch or tag can move.
        licence: Its id, from the catalog, else as the spec declares it.
        weights_uri: S3 URI from which SageMaker mounts the weights; `unknown` where the container fetches them.
        weights_digest: `git:COMMIT` where the container fetches the weights at a commit of the hub.
        image_digest: `sha256:…` where the lock pins the image by it; a tag alone can move.
        adapters: S3 URIs of the adapters, with spaces between them.
        plan_digest: Of what the plan decides and predicts.
        lock_digest: SHA-256 of the plan's whole entry in the lock, as JSON.
        configuration_digest: Of all that decides how one copy serves, as promotions compare it.
        promoted_on: Address of the result on which the plan was promoted from another environment; empty without.
        seatrial_version: The release that synthesized the deployment.
    """

    endpoint: str
    environment: str
    model: str
    revision: str
    licence: str
    weights_uri: str
    weights_digest: str
    engine: str
    engine_version: str
    image: str
    image_digest: str
    adapters: str
    plan_digest: str
    lock_digest: str
    configuration_digest: str
    promoted_on: str
    seatrial_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRecord:
    """One change of what serves, or of its evidence; the next record of the same model of the endpoint ends it.

    Attributes:
        schema_version: Of this document.
        change: `rollback` puts back what served before; from `delete` on nothing serves.
        at: When it was written, ISO 8601 in UTC: after the trial passed, before the alias moves; of a `delete`, when
            the deletion began.
        endpoint_name: On SageMaker.
        component: The inference component; empty where the model is in the production variant.
        verdict: Of the trial, as CloudFormation was answered; `not tried` of a model that has no trial.
        result_uri: S3 URI of the trial's result; `unknown` where there is none.
        result_digest: SHA-256 of the result's bytes; `unknown` where it could not be read.
        result_signature: The result's own; empty of one that is not signed.
        stack_id: ARN of the stack.
        request_id: CloudFormation's.
        change_set: ARN of the change set that CloudFormation names as the stack's last one. Its name is given by who
            deploys.
        seal: Who wrote it, with the signature of the trial service; None where it could not be signed.
    """

    schema_version: Literal["1"] = "1"
    change: Change
    at: str
    endpoint_name: str
    component: str
    served: ServedModel
    verdict: str
    result_uri: str
    result_digest: str
    result_signature: str
    stack_id: str
    request_id: str
    change_set: str
    seal: ResultSeal | None = None
