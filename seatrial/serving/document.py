"""The serving configuration as a document: what the container will read, and nothing else."""

from __future__ import annotations

from typing import Literal

from seatrial.model import FrozenModel


class ServingConfig(FrozenModel):
    """One container's whole configuration.

    Attributes:
        engine: `lmi` or `tgi`.
        engine_version: Container version as the catalog writes it.
        image: URI of the container image.
        payload_schema: Request and response schema that `/invocations` speaks.
        files: Files of the code artifact by name; empty when everything is in the environment.
        container_env: Plain environment variables.
        secret_env: Environment variable to Secrets Manager name or ARN, resolved at deployment, never written here.
        weights_s3_uri: S3 prefix that the service mounts at `/opt/ml/model`; `None` when the container fetches them.
        isolated: The container makes no outbound connection.
    """

    engine: Literal["lmi", "tgi"]
    engine_version: str
    image: str
    payload_schema: Literal["lmi", "tgi"]
    files: dict[str, str]
    container_env: dict[str, str]
    secret_env: dict[str, str]
    weights_s3_uri: str | None
    isolated: bool
