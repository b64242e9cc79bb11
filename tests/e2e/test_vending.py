"""A product: deployed from its template alone, and published once per version.

How a user without other rights launches it is `tests/acceptance/test_product.py`.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, cast

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.deployment.product import load_product
from seatrial.deployment.published import template_path
from seatrial.locks.changes import count_generation
from seatrial.locks.lock_file import locked_document, write_lock
from seatrial.planner.planner import make_plan
from seatrial_laptop.control import change_control, reset_control
from seatrial_laptop.lifecycle import child_variables
from seatrial_stacks.publish_products import publish
from tests.e2e.conftest import ENVIRONMENT
from tests.environment import environment
from tests.tools import BIN, ROOT, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_cloudformation.type_defs import ParameterTypeDef

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

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
        template, _ = publish([file], workspace.environments)
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


def test_an_exported_endpoint_is_deployed_with_its_trial_and_no_cdk(
    cloud: EmbeddedAws, offered: tuple[Workspace, Path], variables: dict[str, str]
) -> None:
    workspace, _ = offered
    for name in ("app.py", "cdk.json"):
        shutil.copy(ROOT / name, workspace.folder)
    endpoint = cast("dict[str, object]", PRODUCT["endpoint"])
    workspace.write("exported", **endpoint, scaling={"min_copies": 1, "max_copies": 2})
    arguments = ("exported", "-e", ENVIRONMENT, "--format", "cloudformation", "--output", "out")
    ended = run_to_end(BIN / "seatrial", "export", *arguments, folder=workspace.folder, env=variables)
    assert ended.exit_code == 0, ended.output
    client, s3, stack = cloud.client("cloudformation"), cloud.client("s3"), f"seatrial-{ENVIRONMENT}-exported"
    s3.create_bucket(Bucket="assets-by-hand")
    assets = [*(workspace.folder / "out" / "assets").iterdir()]
    assert assets
    for asset in assets:
        s3.put_object(Bucket="assets-by-hand", Key=asset.name, Body=asset.read_bytes())
    client.create_stack(
        StackName=stack,
        TemplateBody=(workspace.folder / "out" / f"{stack}.template.json").read_text(),
        Parameters=[{"ParameterKey": "AssetsBucket", "ParameterValue": "assets-by-hand"}],
        Capabilities=["CAPABILITY_IAM"],
    )
    client.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 240})
    assert cloud.stack(stack).output("Verdict") == "pass"
    assert cloud.ask("local-exported", "local-exported-model")
    client.delete_stack(StackName=stack)
    client.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 240})
    assert cloud.leftovers("local-exported") == []


def test_published_versions_are_committed_beside_the_product(templates: tuple[Workspace, Path]) -> None:
    workspace, first = templates
    assert first == template_path(workspace.folder / "products" / "chat.yaml", "1.0.0", ENVIRONMENT)
