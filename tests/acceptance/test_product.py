"""A product: a user who may use Service Catalog and nothing else launches, updates and terminates an endpoint."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.acceptance.account.removal import PATH
from tests.acceptance.account.smoke import OPTIONS, default_network
from tests.acceptance.endpoint import INSTANCE_TYPES, SPEC, awake, refusal
from tests.acceptance.questions import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.acceptance.target import Client, Target

pytestmark = pytest.mark.acceptance

USER = "team-search"
NO_RUN = "0e0e0e0e"
"""In place of a run's ID on the embedded AWS, so that transcripts tell the same name."""
NAME = "acceptance"
VERSIONS = {"1.0.0": 8, "1.1.0": 4}
"""Each version with its batch limit: the second is another configuration."""
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


@pytest.fixture(scope="module")
def secured(target: Target) -> Iterator[dict[str, str]]:
    """Return what an environment with a key says of it; a token of the hub is there that the key encrypts.

    An account has neither: a key costs a dollar and stays for a week, and the hub refuses a token that is none.
    """
    if not target.is_embedded:
        yield {}
        return
    kms, secrets = target.client("kms"), target.client("secretsmanager")
    key = str(kms.create_key()["KeyMetadata"]["Arn"])
    secrets.create_secret(Name=SECRET, SecretString="hf_token", KmsKeyId=key)
    yield {"kms_key_arn": key}
    secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)


def publish(target: Target, version: str, sequences: int, *, is_gated: bool) -> Path:
    """Write a version of the product, plan its sizes and publish its template, with the commands of a platform team."""
    overrides = {"max_model_len": 512, "max_num_seqs": sequences}
    model = {"hub_id": "Qwen/Qwen2.5-0.5B-Instruct", **({"hub_token_secret": SECRET} if is_gated else {})}
    product = {
        "name": NAME,
        "description": "A chat endpoint.",
        "owner": "platform-team",
        "version": version,
        "environments": [target.environment],
        "principals": ["arn:aws:iam:::user/*"],
        "parameters": {"teams": ["search", "support"]},
        "endpoint": {
            "model": model,
            "workload": SPEC["workload"],
            "slo": SPEC["slo"],
            "serving": {"instance_types": list(INSTANCE_TYPES), "overrides": overrides},
            "trial": {"concurrency_levels": [1, 2], "requests_per_concurrency": 1, "budget_minutes": 2},
        },
        "sizes": {
            "small": {"scaling": {"min_copies": 0, "max_copies": 2}},
            "single": {"hosting": {"kind": "single_model"}, "trial": {"mode": "off"}},
        },
    }
    file = target.folder / "products" / f"{NAME}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(product, sort_keys=False), encoding="utf-8")
    for words in (
        ("plan", f"products/{NAME}.yaml", "--write", "--accept-slo-miss"),
        ("publish", f"products/{NAME}.yaml"),
    ):
        ended = target.seatrial("products", *words)
        assert ended.exit_code == 0, ended.output
    return file


@pytest.fixture(scope="module")
def offered(target: Target, secured: dict[str, str]) -> Iterator[Target]:
    """Publish two versions and offer the product in an environment that vends."""
    place = target.folder / "environments" / f"{target.environment}.yaml"
    written = yaml.safe_load(place.read_text(encoding="utf-8"))
    every = {"network": network_of(target), "vending": True, **OPTIONS, **secured}
    place.write_text(yaml.safe_dump({**written, **every}, sort_keys=False), encoding="utf-8")
    for version, sequences in VERSIONS.items():
        publish(target, version, sequences, is_gated=bool(secured))
    assembly = target.synth("cdk.out.products", products=target.folder / "products", endpoints=target.folder / "none")
    ended = target.deploy(assembly)
    assert ended.exit_code == 0, ended.last_lines
    yield target
    place.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    target.destroy(assembly)


def network_of(target: Target) -> dict[str, list[str]]:
    """Return the network of the environment; on the embedded AWS its default one.

    The default VPC of an account has no way out for containers: they get no public address.
    """
    place = target.folder / "environments" / f"{target.environment}.yaml"
    given: dict[str, list[str]] = yaml.safe_load(place.read_text(encoding="utf-8")).get("network", {})
    return given or (default_network(target.client) if target.is_embedded else {})


@pytest.fixture(scope="module")
def user(target: Target) -> Iterator[Callable[[str], Client]]:
    """Return the maker of clients of an IAM user with rights to Service Catalog alone."""
    iam, name = target.client("iam"), f"{USER}-{target.run_id or NO_RUN}"
    iam.create_user(UserName=name, Path=PATH)
    try:
        iam.put_user_policy(UserName=name, PolicyName="launch", PolicyDocument=json.dumps(OF_SERVICE_CATALOG))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        clients = target.session_of(key)
        catalog = clients("servicecatalog")
        # A new user's key works after some seconds (IAM user guide, changes are not always visible at once).
        assert awake(catalog.search_products, target.look_s, target.patience_s), "the user's key"
        yield clients
    finally:
        for each in iam.list_access_keys(UserName=name)["AccessKeyMetadata"]:
            iam.delete_access_key(UserName=name, AccessKeyId=each["AccessKeyId"])
        iam.delete_user_policy(UserName=name, PolicyName="launch")
        iam.delete_user(UserName=name)


def test_the_user_may_do_nothing_else(offered: Target, user: Callable[[str], Client]) -> None:
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    create_stack = partial(user("cloudformation").create_stack, StackName="own", TemplateBody="{}")
    create_role = partial(user("iam").create_role, RoleName="own", AssumeRolePolicyDocument=trust)
    create_endpoint = partial(user("sagemaker").create_endpoint, EndpointName="own", EndpointConfigName="own")
    denied = {
        "cloudformation:CreateStack": create_stack,
        "iam:CreateRole": create_role,
        "sagemaker:CreateEndpoint": create_endpoint,
    }
    for action, call in denied.items():
        told = refusal(call)
        assert told["code"].startswith("AccessDenied"), told
        assert f"is not authorized to perform: {action}" in told["words"]


def test_the_user_launches_updates_and_terminates(offered: Target, user: Callable[[str], Client]) -> None:
    catalog, target = user("servicecatalog"), offered
    product = product_of(catalog)
    versions = catalog.list_provisioning_artifacts(ProductId=product)["ProvisioningArtifactDetails"]
    assert [each["Name"] for each in versions] == list(VERSIONS)
    launched = catalog.provision_product(
        ProductId=product,
        ProvisioningArtifactName="1.0.0",
        ProvisionedProductName="search-chat",
        ProvisioningParameters=[{"Key": "Team", "Value": "search"}, {"Key": "EndpointName", "Value": "chat"}],
        Tags=target.tags,
    )["RecordDetail"]
    try:
        end = ended(target, catalog, launched)
        record(target, "source-account", {"launched": end})
        assert end == "SUCCEEDED"
        first = outputs(catalog)
        assert (first["EndpointName"], first["Verdict"]) == (f"{target.environment}-search-chat-small", "pass")
        model = target.client("sagemaker").describe_model(ModelName=first["ModelName"])
        assert model.get("VpcConfig", {}).get("Subnets", []) == network_of(target).get("subnet_ids", [])
        renewed = catalog.update_provisioned_product(
            ProvisionedProductName="search-chat", ProvisioningArtifactName="1.1.0"
        )["RecordDetail"]
        assert ended(target, catalog, renewed) == "SUCCEEDED"
        second = outputs(catalog)
        assert (second["EndpointName"], second["Verdict"]) == (first["EndpointName"], "pass")
        assert second["ModelName"] != first["ModelName"]
        # It may have gone to zero meanwhile: a request wakes it.
        assert awake(partial(answer, target, second), target.look_s, target.patience_s)
        chosen = {"Size": "single", "MinCopies": "1", "MaxCopies": "1"}
        other = catalog.update_provisioned_product(
            ProvisionedProductName="search-chat",
            ProvisioningParameters=[{"Key": key, "Value": value} for key, value in chosen.items()],
        )["RecordDetail"]
        with target.faults(wait_speed=300):  # the roles of the former size are deleted, as below
            assert ended(target, catalog, other) == "SUCCEEDED"
        third = outputs(catalog)
        assert third["EndpointName"] == f"{target.environment}-search-chat-single"
        assert answer(target, third)
    finally:
        terminated = catalog.terminate_provisioned_product(ProvisionedProductName="search-chat")["RecordDetail"]
        with target.faults(wait_speed=300):  # with a key the roles stay for the minutes that its grants may last
            end = ended(target, catalog, terminated)
    assert end == "SUCCEEDED"
    endpoints = target.client("sagemaker").list_endpoints(NameContains="search-chat-")["Endpoints"]
    assert endpoints == []


def product_of(catalog: Client) -> str:
    found = catalog.search_products()["ProductViewSummaries"]
    (product,) = (each["ProductId"] for each in found if NAME in each["Name"])
    return str(product)


def ended(target: Target, catalog: Client, record: dict[str, Any]) -> str:
    """Wait for the end of a record and return how it ended, with its errors."""
    detail: dict[str, Any] = {}
    deadline = time.monotonic() + 2 * target.patience_s
    while time.monotonic() < deadline:
        detail = catalog.describe_record(Id=record["RecordId"])["RecordDetail"]
        if detail["Status"] not in ("CREATED", "IN_PROGRESS", "IN_PROGRESS_IN_ERROR"):
            break
        time.sleep(target.look_s)
    return f"{detail['Status']}{''.join(each['Description'] for each in detail.get('RecordErrors', ()))}"


def outputs(catalog: Client) -> dict[str, str]:
    told = catalog.get_provisioned_product_outputs(ProvisionedProductName="search-chat")["Outputs"]
    return {each["OutputKey"]: each["OutputValue"] for each in told}


def answer(target: Target, of: dict[str, str]) -> str:
    """Send one request to a launched endpoint and return the answered text."""
    told = target.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=of["EndpointName"],
        **({"InferenceComponentName": component} if (component := of["InferenceComponentName"]) != "none" else {}),
        ContentType="application/json",
        Body=json.dumps({"inputs": "Where does the boat go?", "parameters": {"max_new_tokens": 8}}),
    )
    return str(json.loads(told["Body"].read())["generated_text"])
