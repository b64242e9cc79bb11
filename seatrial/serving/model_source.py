"""Where a container finds the weights: fetched from the hub by itself, or mounted from S3 by the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.errors import RenderError

if TYPE_CHECKING:
    from seatrial.spec.load import LoadedSpec

MOUNT = "/opt/ml/model"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where the weights come from.

    Attributes:
        model_id: What the container is told to load: a hub id, or the mount point.
        revision: Commit of the hub repository.
        weights_s3_uri: Prefix that the service mounts; `None` for a hub model.
        secret_env: Environment variable to Secrets Manager name of the hub token.
    """

    model_id: str
    revision: str | None
    weights_s3_uri: str | None
    secret_env: dict[str, str]


def model_source(loaded: LoadedSpec) -> ModelSource:
    """Return where the weights come from.

    Raises:
        RenderError: SEA305 for a JumpStart id without the S3 prefix of its artifact.
    """
    model = loaded.endpoint.model
    if model.s3_uri is not None:
        return ModelSource(MOUNT, None, model.s3_uri, {})
    if model.hub_id is not None:
        secret = {"HF_TOKEN": model.hub_token_secret} if model.hub_token_secret else {}
        return ModelSource(model.hub_id, model.revision, None, secret)
    message = f"the artifact of JumpStart model {model.jumpstart_id} is not known here"
    hint = "add model.s3_uri with the S3 prefix that the model's JumpStart page or the SageMaker SDK names"
    raise RenderError([loaded.problem(("model", "jumpstart_id"), "SEA305", message, hint)])
