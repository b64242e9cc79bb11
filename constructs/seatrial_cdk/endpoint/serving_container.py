"""The container of a model: image, variables and weights, and the packaged files of its serving configuration."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aws_cdk import AssetStaging, FileAssetPackaging, Stack
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial.engines.rendered import refuse_credentials
from seatrial.packaging import tar_gz_bytes
from seatrial_base.errors import RenderError
from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_cdk import aws_ecr as ecr

    from seatrial.engines.rendered import RenderedConfig

_WHERE = "container of the model"


@contextmanager
def archive_file(name: str, content: bytes) -> Iterator[str]:
    """Write an archive to a temporary file and return its path; inside the block CDK must have staged its copy."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield str(path)


class ServingArtifact(Construct):
    """A gzipped tar archive in the stack's asset bucket, under a key that ends with `.tar.gz`.

    CDK's own `Asset` keeps only the last suffix of a key (aws/aws-cdk#30257), and SageMaker documents `.tar.gz`; so
    the archive is staged here, and its hash is handed over with the first half of the suffix.

    Args:
        files: Texts by file name.

    Raises:
        RenderError: SEA374 with every file that holds a credential.
    """

    def __init__(self, scope: Construct, construct_id: str, *, files: Mapping[str, str]) -> None:
        super().__init__(scope, construct_id)
        refuse_credentials(files, where="archive of the serving configuration")
        stack = Stack.of(self)
        content = tar_gz_bytes({name: text.encode() for name, text in files.items()})
        with archive_file("model.tar.gz", content) as path:
            staged = AssetStaging(self, "Stage", source_path=path)
        location = stack.synthesizer.add_file_asset(
            file_name=staged.relative_staged_path(stack),
            packaging=FileAssetPackaging.FILE,
            source_hash=f"{staged.asset_hash}.tar",
        )
        self.bucket_name = location.bucket_name
        self.object_key = location.object_key
        self.s3_uri = f"s3://{self.bucket_name}/{self.object_key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingContainer:
    """What the container of a model reads.

    Attributes:
        image: URI of the image; it may be a token where `image_repository` is given.
        image_repository: The repository of the image, to pull from; default: the one that the URI names.
        environment: Plain environment variables.
        secrets: Environment variable to Secrets Manager name or ARN, which CloudFormation resolves at deployment.
        files: Texts by file name, packaged as `/opt/ml/model`; not beside `weights_s3_uri`.
        weights_s3_uri: What the service mounts at `/opt/ml/model`: an S3 prefix with its final slash, or one `.tar.gz`.
        readable_s3_uri: S3 prefix that the container may read besides; default: `weights_s3_uri` alone.
        readable_key_arn: Key that encrypts what is read there; default: the endpoint's `weights_key` alone.
        accept_eula: The user has accepted the licence of the mounted weights; weights without one need none.
        network_isolation: The container makes no connection.
        model_package_arn: A model package that has image and weights, in this account or shared with it; then `image`
            only names the repository that the package's image is pulled from, and `readable_s3_uri` its weights.
        hub_content_arn: Content of a JumpStart private hub through which `weights_s3_uri` is read.
        digest: A digest of what the container reads: a tag of the model, which drift compares; default: none.
    """

    image: str
    image_repository: ecr.IRepository | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    weights_s3_uri: str | None = None
    readable_s3_uri: str | None = None
    readable_key_arn: str | None = None
    accept_eula: bool = False
    network_isolation: bool = False
    model_package_arn: str | None = None
    hub_content_arn: str | None = None
    digest: str | None = None

    @classmethod
    def of(
        cls,
        serving: RenderedConfig,
        *,
        readable_s3_uri: str | None = None,
        accept_eula: bool = False,
        model_package_arn: str | None = None,
        hub_content_arn: str | None = None,
    ) -> ServingContainer:
        """Return the container of a rendered serving configuration."""
        return made_of(
            cls,
            serving,
            environment=serving.container_env,
            secrets=serving.secret_env,
            readable_s3_uri=readable_s3_uri,
            accept_eula=accept_eula,
            network_isolation=serving.isolated,
            model_package_arn=model_package_arn,
            hub_content_arn=hub_content_arn,
            digest=serving.container_digest,
        )

    @property
    def described(self) -> tuple[tuple[str, str], ...]:
        """What SageMaker looks up or decrypts with the model's role: an action, and the ARN of its resource."""
        rights = []
        if self.readable_key_arn is not None:
            rights.append(("kms:Decrypt", self.readable_key_arn))
        if self.model_package_arn is not None:
            rights.append(("sagemaker:DescribeModelPackage", self.model_package_arn))
        if self.hub_content_arn is not None:
            hub = "/".join(self.hub_content_arn.replace(":hub-content/", ":hub/").split("/")[:2])
            rights += [("sagemaker:DescribeHub", hub), ("sagemaker:DescribeHubContent", self.hub_content_arn)]
        return tuple(rights)

    def refuse_credentials(self) -> None:
        """Refuse what would be deployed with a credential in it.

        Raises:
            RenderError: SEA374 with every variable or name that holds one.
        """
        plain = {**self.environment, "image": self.image, "weights_s3_uri": self.weights_s3_uri or ""}
        refuse_credentials(plain | {f"{name}.valueFrom": secret for name, secret in self.secrets.items()}, where=_WHERE)


def container_definition(
    container: ServingContainer, artifact: ServingArtifact | None
) -> sagemaker.CfnModel.ContainerDefinitionProperty:
    """Define the container of a model.

    Raises:
        RenderError: SEA305 when both the packaged files and the weights claim `/opt/ml/model`; SEA374 when a variable
            or a name holds a credential.
    """
    container.refuse_credentials()
    if artifact and container.weights_s3_uri:
        hint = "mounted weights: configure the container through its environment"
        raise RenderError.of("SEA305", "packaged files and mounted weights both use /opt/ml/model", hint=hint)
    if container.model_package_arn is not None:
        return _packaged(container, artifact)
    return sagemaker.CfnModel.ContainerDefinitionProperty(
        image=container.image,
        environment={**container.environment, **_secrets(container.secrets)},
        model_data_url=artifact.s3_uri if artifact else None,
        model_data_source=_weights(container.weights_s3_uri, container) if container.weights_s3_uri else None,
    )


def _packaged(
    container: ServingContainer, artifact: ServingArtifact | None
) -> sagemaker.CfnModel.ContainerDefinitionProperty:
    """Define a container whose image and weights a model package names; the environment is added to the package's."""
    if artifact is not None or container.weights_s3_uri is not None:
        hint = "configure the container through its environment, and give no weights"
        raise RenderError.of("SEA305", "a model package has files and weights of its own", hint=hint)
    return sagemaker.CfnModel.ContainerDefinitionProperty(
        model_package_name=container.model_package_arn,
        environment={**container.environment, **_secrets(container.secrets)},
    )


def _secrets(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return references that CloudFormation resolves at deployment: neither template nor plan holds a secret.

    They are those of `SecretValue.secrets_manager` of the CDK, without its two crossings to Node.
    """
    return {
        variable: f"{{{{resolve:secretsmanager:{secret}:SecretString:::}}}}" for variable, secret in secrets.items()
    }


def _weights(s3_uri: str, container: ServingContainer) -> sagemaker.CfnModel.ModelDataSourceProperty:
    """Define what the service mounts: the objects under a prefix as they are, or one archive that it unpacks."""
    is_archive, hub = s3_uri.endswith(".tar.gz"), container.hub_content_arn
    return sagemaker.CfnModel.ModelDataSourceProperty(
        s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
            s3_uri=s3_uri,
            s3_data_type="S3Object" if is_archive else "S3Prefix",
            compression_type="Gzip" if is_archive else "None",
            model_access_config=sagemaker.CfnModel.ModelAccessConfigProperty(accept_eula=container.accept_eula)
            if container.accept_eula or hub
            else None,
            hub_access_config=sagemaker.CfnModel.HubAccessConfigProperty(hub_content_arn=hub) if hub else None,
        )
    )
