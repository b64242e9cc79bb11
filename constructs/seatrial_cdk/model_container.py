"""The container of a SageMaker model: image, environment, and where `/opt/ml/model` comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import SecretValue
from aws_cdk import aws_sagemaker as sagemaker

from seatrial.errors import RenderError
from seatrial.serving.rendered import refuse_credentials

if TYPE_CHECKING:
    from seatrial.serving.rendered import RenderedConfig
    from seatrial_cdk.serving_artifact import ServingArtifact

_WHERE = "container of the model"


def model_container(
    serving: RenderedConfig, *, artifact: ServingArtifact | None, accept_eula: bool
) -> sagemaker.CfnModel.ContainerDefinitionProperty:
    """Define the container of a serving configuration.

    Args:
        serving: What the container will read.
        artifact: The packaged files of the serving configuration; `None` when it has none.
        accept_eula: The user has accepted the licence of the weights that the service mounts.

    Raises:
        RenderError: SEA305 when both the packaged files and the weights claim `/opt/ml/model`; SEA374 when a variable
            or a name holds a credential.
    """
    plain = {**serving.container_env, "image": serving.image, "weights_s3_uri": serving.weights_s3_uri or ""}
    refuse_credentials(
        plain | {f"{name}.valueFrom": secret for name, secret in serving.secret_env.items()}, where=_WHERE
    )
    if artifact and serving.weights_s3_uri:
        hint = "mounted weights: configure the container through its environment"
        raise RenderError.of("SEA305", "packaged files and mounted weights both use /opt/ml/model", hint=hint)
    return sagemaker.CfnModel.ContainerDefinitionProperty(
        image=serving.image,
        environment={**serving.container_env, **_secrets(serving)},
        model_data_url=artifact.s3_uri if artifact else None,
        model_data_source=_weights(serving.weights_s3_uri, accept_eula) if serving.weights_s3_uri else None,
    )


def _secrets(serving: RenderedConfig) -> dict[str, str]:
    """Return references that CloudFormation resolves at deployment: neither template nor plan holds a secret."""
    return {
        variable: SecretValue.secrets_manager(secret).unsafe_unwrap() for variable, secret in serving.secret_env.items()
    }


def _weights(s3_uri: str, accept_eula: bool) -> sagemaker.CfnModel.ModelDataSourceProperty:  # noqa: FBT001 (private)
    """Define what the service mounts: the objects under a prefix as they are, or one archive that it unpacks."""
    is_archive = s3_uri.endswith(".tar.gz")
    return sagemaker.CfnModel.ModelDataSourceProperty(
        s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
            s3_uri=s3_uri,
            s3_data_type="S3Object" if is_archive else "S3Prefix",
            compression_type="Gzip" if is_archive else "None",
            model_access_config=sagemaker.CfnModel.ModelAccessConfigProperty(accept_eula=accept_eula),
        )
    )
