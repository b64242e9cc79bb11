"""A product: deployed from its template alone, then launched, updated and terminated by a user without other rights."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.deployment.product import load_product
from seatrial.deployment.published import template_path
from seatrial.locks.generation import count_generation
from seatrial.locks.lock_file import locked_document, write_lock
from seatrial.planner.planner import make_plan
from seatrial_laptop.control import change_control, reset_control
from seatrial_laptop.lifecycle import child_variables
from seatrial_stacks.publish_products import publish
from tests.e2e.conftest import ENVIRONMENT, ROOT
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_cloudformation.type_defs import ParameterTypeDef

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace

ServiceCatalogClient = Any  # no stubs of the service are installed
pytestmark = pytest.mark.e2e

LONGEST_S = 240.0
USER = "team-search"
OF_SERVICE_CATALOG = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                "servicecatalog:Describe*",
                "servicecatalog:Get*",
                "servicecatalog:List*",
                "servicecatalog:ProvisionProduct",
                "servicecatalog:SearchProducts",
                "servicecatalog:TerminateProvisionedProduct",
                "servicecatalog:UpdateProvisionedProduct",
            ],
            "Resource": "*",
        }
    ],
}
"""What AWSServiceCatalogEndUserFullAccess allows of Service Catalog, and nothing of other services."""
SECRET = "seatrial/hub-token"
PRODUCT: dict[str, object] = {
    "name": "chat",
    "description": "A chat endpoint.",
    "owner": "platform-team",
    "version": "1.0.0",
    "environments": [ENVIRONMENT],
    "principals": ["arn:aws:iam:::user/team-*"],
    "parameters": {"teams": ["search", "support"]},
    "endpoint": {
        "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True, "hub_token_secret": SECRET},
        "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 2},
        "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}},
        "serving": {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512, "max_num_seqs": 8}},
        "trial": {"concurrency_levels": [1, 2], "requests_per_concurrency": 1, "budget_minutes": 2},
    },
    "sizes": {
        "small": {"scaling": {"min_copies": 1, "max_copies": 2}},
        "large": {"scaling": {"min_copies": 1, "max_copies": 3}},
    },
}


def lock_and_publish(workspace: Workspace, product: dict[str, object]) -> Path:
    """Write a version of the product, lock its sizes and publish it; return its template."""
    file = workspace.folder / "products" / "chat.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(product, sort_keys=False), encoding="utf-8")
    loaded = load_product(file, workspace.environments)
    for spec in loaded.sizes.values():
        spec.path.parent.mkdir(exist_ok=True)
        plan, _ = count_generation(locked_document(spec), make_plan(spec, accept_slo_miss=True))
        write_lock(plan, spec.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        (template,) = publish([file], workspace.environments)
    return template


@pytest.fixture(scope="module")
def key_arn(cloud: EmbeddedAws, state_dir: Path) -> Iterator[str]:
    """Return a key of the account, and a token of the hub that it encrypts."""
    with environment(child_variables(cloud.local)):
        kms, secrets = boto3.client("kms"), boto3.client("secretsmanager")
    key = str(kms.create_key()["KeyMetadata"]["Arn"])
    secrets.create_secret(Name=SECRET, SecretString="hf_token", KmsKeyId=key)
    change_control(state_dir, {"wait_speed": 600.0})  # minutes that a deletion waits until AWS has released the key
    yield key
    reset_control(state_dir)
    secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)


@pytest.fixture(scope="module")
def templates(new_workspace: Callable[[], Workspace], key_arn: str) -> tuple[Workspace, Path]:
    """Publish two versions of a gated model; the second batches fewer requests."""
    workspace = new_workspace()
    place = workspace.environments / f"{ENVIRONMENT}.yaml"
    more = f"vending: true\nkms_key_arn: {key_arn}\n"
    place.write_text(place.read_text(encoding="utf-8") + more, encoding="utf-8")
    first = lock_and_publish(workspace, PRODUCT)
    endpoint = cast("dict[str, object]", PRODUCT["endpoint"])
    serving = {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512, "max_num_seqs": 4}}
    lock_and_publish(workspace, {**PRODUCT, "version": "1.1.0", "endpoint": {**endpoint, "serving": serving}})
    return workspace, first


@pytest.fixture(scope="module")
def offered(
    cdk: RunCdk, templates: tuple[Workspace, Path], remove_stacks: Callable[[], None]
) -> Iterator[tuple[Workspace, Path]]:
    """Offer the product with the CDK; whatever was deployed is destroyed in the end."""
    workspace, template = templates
    assembly = synthesize(
        workspace.folder / "cdk.out", {**workspace.context(), "products": workspace.folder / "products"}
    )
    deployed = cdk("deploy", "--all", "--app", assembly, "--require-approval", "never", "--progress", "events")
    assert deployed.exit_code == 0, deployed.output
    try:
        yield workspace, template
    finally:
        remove_stacks()


@pytest.fixture(scope="module")
def user(cloud: EmbeddedAws) -> Iterator[boto3.Session]:
    """Return the session of an IAM user with rights to Service Catalog alone."""
    with environment(child_variables(cloud.local)):
        iam = boto3.client("iam")
        iam.create_user(UserName=USER)
        iam.put_user_policy(UserName=USER, PolicyName="launch", PolicyDocument=json.dumps(OF_SERVICE_CATALOG))
        key = iam.create_access_key(UserName=USER)["AccessKey"]
        yield boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=cloud.region)
        iam.delete_access_key(UserName=USER, AccessKeyId=key["AccessKeyId"])
        iam.delete_user_policy(UserName=USER, PolicyName="launch")
        iam.delete_user(UserName=USER)


def parameters(name: str, **others: str) -> list[ParameterTypeDef]:
    chosen = {"Team": "search", "EndpointName": name, **others}
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in chosen.items()]


def test_a_template_is_deployed_with_its_trial_and_no_cdk(cloud: EmbeddedAws, offered: tuple[Workspace, Path]) -> None:
    client, s3 = cloud.client("cloudformation"), cloud.client("s3")
    s3.create_bucket(Bucket="by-hand")
    s3.put_object(Bucket="by-hand", Key="chat.json", Body=offered[1].read_bytes())
    url = f"https://s3.{cloud.region}.amazonaws.com/by-hand/chat.json"
    with pytest.raises(ClientError, match="size small has 1 to 2 copies"):
        client.create_stack(
            StackName="refused",
            TemplateURL=url,
            Parameters=parameters("plain", MaxCopies="3"),
            Capabilities=["CAPABILITY_IAM"],
        )
    client.create_stack(
        StackName="by-hand", TemplateURL=url, Parameters=parameters("plain"), Capabilities=["CAPABILITY_IAM"]
    )
    client.get_waiter("stack_create_complete").wait(StackName="by-hand", WaiterConfig={"Delay": 1, "MaxAttempts": 240})
    stack = cloud.stack("by-hand")
    assert (stack.output("EndpointName"), stack.output("Verdict")) == ("local-search-plain-small", "pass")
    assert cloud.ask("local-search-plain-small", "local-search-plain-small-model")
    client.delete_stack(StackName="by-hand")
    client.get_waiter("stack_delete_complete").wait(StackName="by-hand", WaiterConfig={"Delay": 1, "MaxAttempts": 240})
    assert cloud.leftovers("by-hand-") == []


def ended(catalog: ServiceCatalogClient, record_id: str) -> str:
    """Wait for the end of a record and return how it ended."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        detail = catalog.describe_record(Id=record_id)["RecordDetail"]
        if detail["Status"] in ("SUCCEEDED", "FAILED"):
            return f"{detail['Status']}{''.join(each['Description'] for each in detail['RecordErrors'])}"
        time.sleep(0.5)
    return "too slow"


def denied(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    return refused.value.response["Error"]["Code"]


def test_a_user_without_other_rights_launches_updates_and_terminates(
    cloud: EmbeddedAws, offered: tuple[Workspace, Path], user: boto3.Session
) -> None:
    del offered
    with environment(child_variables(cloud.local)):
        catalog, stacks = user.client("servicecatalog"), user.client("cloudformation")
        iam, sagemaker = user.client("iam"), user.client("sagemaker")
    trust = json.dumps({"Statement": []})
    assert denied(lambda: stacks.create_stack(StackName="own", TemplateBody="{}")) == "AccessDenied"
    assert denied(lambda: iam.create_role(RoleName="own", AssumeRolePolicyDocument=trust)) == "AccessDenied"
    create_endpoint = partial(sagemaker.create_endpoint, EndpointName="own", EndpointConfigName="own")
    assert denied(create_endpoint) == "AccessDeniedException"

    (product,) = catalog.search_products()["ProductViewSummaries"]
    versions = catalog.list_provisioning_artifacts(ProductId=product["ProductId"])["ProvisioningArtifactDetails"]
    assert [each["Name"] for each in versions] == ["1.0.0", "1.1.0"]
    launched = catalog.provision_product(
        ProductId=product["ProductId"],
        ProvisioningArtifactName="1.0.0",
        ProvisionedProductName="search-chat",
        ProvisioningParameters=[{"Key": "Team", "Value": "search"}, {"Key": "EndpointName", "Value": "chat"}],
    )["RecordDetail"]
    assert ended(catalog, launched["RecordId"]) == "SUCCEEDED"
    first = outputs(catalog)
    assert (first["EndpointName"], first["Verdict"]) == ("local-search-chat-small", "pass")

    renewed = catalog.update_provisioned_product(ProvisionedProductName="search-chat", ProvisioningArtifactName="1.1.0")
    assert ended(catalog, renewed["RecordDetail"]["RecordId"]) == "SUCCEEDED"
    second = outputs(catalog)
    assert (second["EndpointName"], second["Verdict"]) == ("local-search-chat-small", "pass")
    assert second["ModelName"] != first["ModelName"]
    assert cloud.ask(second["EndpointName"], second["InferenceComponentName"])

    terminated = catalog.terminate_provisioned_product(ProvisionedProductName="search-chat")
    assert ended(catalog, terminated["RecordDetail"]["RecordId"]) == "SUCCEEDED"
    assert cloud.leftovers("sc-0-") == []


def outputs(catalog: ServiceCatalogClient) -> dict[str, str]:
    told = catalog.get_provisioned_product_outputs(ProvisionedProductName="search-chat")["Outputs"]
    return {each["OutputKey"]: each["OutputValue"] for each in told}


def test_published_versions_are_committed_beside_the_product(templates: tuple[Workspace, Path]) -> None:
    workspace, first = templates
    assert first == template_path(workspace.folder / "products" / "chat.yaml", "1.0.0", ENVIRONMENT)
