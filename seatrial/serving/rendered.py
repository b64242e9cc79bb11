"""The rendered configuration as a document: what the container will read, and nothing else."""

from __future__ import annotations

from typing import Literal

from seatrial.catalog.engine_versions import EngineName
from seatrial.model import FrozenModel


class RenderedConfig(FrozenModel):
    """One container's whole configuration, as its engine spells it.

    Attributes:
        engine: Serving container.
        engine_version: Container version as the catalog writes it.
        image: URI of the container image.
        payload_schema: Request and response schema that `/invocations` speaks.
        files: Files of the code artifact by name; empty when everything is in the environment.
        container_env: Plain environment variables.
        secret_env: Environment variable to Secrets Manager name or ARN, resolved at deployment, never written here.
        weights_s3_uri: S3 prefix that the service mounts at `/opt/ml/model`; `None` when the container fetches them.
        isolated: The container makes no outbound connection.
        notes: What the engine can't do or does differently, for people.
    """

    engine: EngineName
    engine_version: str
    image: str
    payload_schema: Literal["lmi", "tgi", "openai_chat"]
    files: dict[str, str]
    container_env: dict[str, str]
    secret_env: dict[str, str]
    weights_s3_uri: str | None
    isolated: bool
    notes: tuple[str, ...] = ()
