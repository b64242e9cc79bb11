from __future__ import annotations

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Match, Template

from seatrial.engines.rendered import RenderedConfig
from seatrial_base.errors import RenderError
from seatrial_cdk.endpoint.inference_component import ComponentCopies
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.serving_container import ServingArtifact, ServingContainer, container_definition
from seatrial_cdk.endpoint.variant_instances import VariantInstances


def serving(weights_s3_uri: str) -> RenderedConfig:
    return RenderedConfig(
        engine="lmi",
        engine_version="27",
        image="763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130",
        payload_schema="lmi",
        files={},
        container_env={"HF_MODEL_ID": "/opt/ml/model"},
        secret_env={},
        weights_s3_uri=weights_s3_uri,
        isolated=True,
    )


@pytest.mark.parametrize(
    ("uri", "data_type", "compression"),
    [
        ("s3://bucket/model/", "S3Prefix", "None"),
        ("s3://bucket/model.tar.gz", "S3Object", "Gzip"),
        ("s3://bucket/model.tar.gz/", "S3Prefix", "None"),
    ],
)
@pytest.mark.parametrize("accept_eula", [True, False])
def test_a_prefix_is_mounted_and_an_archive_unpacked_each_with_its_own_licence(
    uri: str,
    data_type: str,
    compression: str,
    accept_eula: bool,  # noqa: FBT001 (a table's column)
) -> None:
    container = container_definition(ServingContainer.of(serving(uri), accept_eula=accept_eula), None)
    source = container.model_data_source
    assert isinstance(source, sagemaker.CfnModel.ModelDataSourceProperty)
    s3 = source.s3_data_source
    assert isinstance(s3, sagemaker.CfnModel.S3DataSourceProperty)
    assert (s3.s3_uri, s3.s3_data_type, s3.compression_type) == (uri, data_type, compression)
    access = s3.model_access_config
    assert access is None or isinstance(access, sagemaker.CfnModel.ModelAccessConfigProperty)
    assert (access and access.accept_eula) == (True if accept_eula else None)


def test_every_credential_in_the_environment_is_refused_before_it_is_in_a_template() -> None:
    token = "nvapi-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6"
    env = {"HF_MODEL_ID": "/opt/ml/model", "NGC_TOKEN": token, "DB_PASSWORD": "swordfish", "PAD_TOKEN": "</s>"}
    plain = serving("s3://bucket/model/").model_copy(update={"container_env": env})
    with pytest.raises(RenderError) as error:
        container_definition(ServingContainer.of(plain, accept_eula=False), None)
    assert [(problem.rule, problem.field, problem.message) for problem in error.value.problems] == [
        ("SEA374", "NGC_TOKEN", "an NVIDIA API key would be deployed in plain text"),
        ("SEA374", "DB_PASSWORD", "a secret value would be deployed in plain text"),
    ]
    assert token not in str(error.value)


def test_a_name_in_secrets_manager_is_none() -> None:
    named = serving("s3://bucket/model/").model_copy(update={"secret_env": {"HF_TOKEN": "prod/hf-token-2024-a1B2c3"}})
    assert container_definition(ServingContainer.of(named, accept_eula=False), None).image == named.image


def test_an_archive_with_a_credential_is_not_made() -> None:
    stack = Stack(App(), "stack")
    with pytest.raises(RenderError, match=r"SEA374: an AWS access key id would be deployed in plain text"):
        ServingArtifact(stack, "Artifact", files={"model.py": 'ID = "AKIA' + 'Z3X5C7V9B1N2M4Q6"'})


PACKAGE = "arn:aws:sagemaker:eu-west-1:444455556666:model-package/chat/3"
HUB_CONTENT = "arn:aws:sagemaker:eu-west-1:111122223333:hub-content/models/Model/llama/1.0.0"
IMAGE_OF_SOURCE = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"


def serve(container: ServingContainer) -> Template:
    stack = Stack(App(), "Sources")
    LlmEndpoint(
        stack,
        "Chat",
        instances=VariantInstances(instance_type="ml.g5.2xlarge"),
        container=container,
        copies=ComponentCopies(accelerators=1, memory_min_mb=1024),
    )
    return Template.from_stack(stack)


def test_a_model_package_names_image_and_weights_and_the_role_may_look_it_up() -> None:
    container = ServingContainer(
        image=IMAGE_OF_SOURCE,
        environment={"OPTION_MODEL_ID": "/opt/ml/model"},
        model_package_arn=PACKAGE,
        readable_s3_uri="s3://packages/chat/",
    )
    template = serve(container)
    template.has_resource_properties(
        "AWS::SageMaker::Model",
        {
            "PrimaryContainer": {
                "ModelPackageName": PACKAGE,
                "Image": Match.absent(),
                "ModelDataSource": Match.absent(),
                "Environment": {"OPTION_MODEL_ID": "/opt/ml/model"},
            }
        },
    )
    reading = {"Action": "sagemaker:DescribeModelPackage", "Effect": "Allow", "Resource": PACKAGE}
    assert reading in statements_of(template)


def test_a_private_hub_lets_the_weights_be_read() -> None:
    container = ServingContainer(
        image=IMAGE_OF_SOURCE, weights_s3_uri="s3://hub/llama/", accept_eula=True, hub_content_arn=HUB_CONTENT
    )
    template = serve(container)
    source = {
        "S3Uri": "s3://hub/llama/",
        "HubAccessConfig": {"HubContentArn": HUB_CONTENT},
        "ModelAccessConfig": {"AcceptEula": True},
    }
    template.has_resource_properties(
        "AWS::SageMaker::Model",
        {"PrimaryContainer": Match.object_like({"ModelDataSource": {"S3DataSource": Match.object_like(source)}})},
    )
    allowed = {each["Action"]: each["Resource"] for each in statements_of(template) if isinstance(each["Action"], str)}
    assert allowed["sagemaker:DescribeHubContent"] == HUB_CONTENT
    assert allowed["sagemaker:DescribeHub"] == "arn:aws:sagemaker:eu-west-1:111122223333:hub/models"


def statements_of(template: Template) -> list[dict[str, object]]:
    roles = template.find_resources("AWS::IAM::Role").values()
    policies = [each for role in roles for each in role["Properties"].get("Policies", ())]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def test_a_package_takes_no_weights_beside_it() -> None:
    container = ServingContainer(image=IMAGE_OF_SOURCE, model_package_arn=PACKAGE, weights_s3_uri="s3://bucket/a/")
    with pytest.raises(RenderError, match="SEA305"):
        container_definition(container, None)
