"""A covering sample of the matrix is deployed, updated and destroyed on the embedded AWS, with rights on.

`make test-matrix` alone runs it. CloudFormation acts as a role that has the rights of `docs/reference/handlers.md` and
no others, a product is launched by a role that may use Service Catalog alone: what a handler, the launch role or a
role of the deployment lacks is refused.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from botocore.config import Config

from seatrial.packaging import tar_gz_bytes
from seatrial_laptop import lifecycle
from seatrial_laptop.control import change_control
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from tests.environment import environment
from tests.launch_rights import deployer_policy
from tests.matrix.configuration import Outcome, changed, configuration_of, outcome_of
from tests.matrix.options import ACCOUNT, BOUNDARY, KEY
from tests.matrix.test_matrix import ALL, ROWS, pairs_of
from tests.tools import BIN, ROOT, run_to_end
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.matrix.configuration import Configuration, Row

pytestmark = pytest.mark.skipif(not ALL, reason="takes minutes: make test-matrix")

SAMPLE: Final = 20
WITHOUT_ENGINE: Final = "sglang"
"""The embedded AWS has no engine that stands for this one."""
LONGEST_S: Final = 600.0
LOOK_S: Final = 0.3
FIRST: Final = "1.0.0"
LAUNCHED: Final = "search-chat"
ACTIONS_PER_POLICY: Final = 150
MOST_POLICY_CHARACTERS: Final = 6_144
"""Of a managed policy (IAM and AWS STS quotas)."""
SERVICES: Final = ("-trials", "-products")
"""How the names of stacks end that others need."""


def sample() -> list[Row]:
    """Return rows that have every value which the embedded AWS can run, and of the pairs as many as so few can."""
    left = [row for row in ROWS if row["engine"] != WITHOUT_ENGINE]
    values: set[object] = set()
    pairs: set[object] = set()
    chosen: list[Row] = []
    for _ in range(SAMPLE):
        best = max(left, key=lambda row: (len({*row.items()} - values), len({*pairs_of(row)} - pairs)))
        left.remove(best)
        chosen.append(best)
        values |= {*best.items()}
        pairs |= {*pairs_of(best)}
    return chosen


@dataclass(frozen=True, slots=True)
class Account:
    """The embedded AWS as the account of the matrix: what its documents name is there, and who deploys has a role."""

    folder: Path
    cloud: EmbeddedAws
    tools: CdkCli

    def client(self, service: str) -> Any:  # noqa: ANN401 (boto3's clients have no type of their own)
        """Return a client of the account's root."""
        with environment(lifecycle.child_variables(self.cloud.local)):
            return boto3.Session().client(
                service,  # type: ignore[call-overload]  # any service
                region_name=self.cloud.region,
                endpoint_url=self.cloud.local.endpoint_url,
                config=Config(s3={"addressing_style": "path"}),
            )

    def prepare(self) -> str:
        """Make what the documents of the matrix name; return the key's ARN."""
        iam, s3 = self.client("iam"), self.client("s3")
        self.client("sns").create_topic(Name="on-call")
        self.client("secretsmanager").create_secret(Name="seatrial/hub-token", SecretString="hf_token")
        iam.create_policy(PolicyName=BOUNDARY.rpartition("/")[2], PolicyDocument=policy("*"))
        for bucket in ("results-of-ours", "weights-of-ours"):
            s3.create_bucket(Bucket=bucket)
        s3.upload_fileobj(io.BytesIO(tar_gz_bytes({"adapter_config.json": b"{}"})), "weights-of-ours", "sql.tar.gz")
        s3.put_object(Bucket="weights-of-ours", Key="mistral/config.json", Body=b"{}")
        return str(self.client("kms").create_key()["KeyMetadata"]["Arn"])

    def deployer_policies(self) -> list[str]:
        """Make policies with the rights of the handlers of all types, as `docs/reference/handlers.md` lists them."""
        actions = deployer_policy("", "/")["Statement"][0]["Action"]
        starts = range(0, len(actions), ACTIONS_PER_POLICY)
        documents = [policy(*actions[start : start + ACTIONS_PER_POLICY]) for start in starts]
        assert max(len(document) for document in documents) <= MOST_POLICY_CHARACTERS
        iam = self.client("iam")
        return [
            str(iam.create_policy(PolicyName=f"deploys-{number}", PolicyDocument=each)["Policy"]["Arn"])
            for number, each in enumerate(documents)
        ]

    def deploy(self, configuration: Configuration, version: str) -> None:
        """Write, synthesize and deploy a configuration; a product is launched, or updated to a version."""
        configuration.write(self.folder, version)
        assembly = configuration.synthesized(self.folder)
        options = ("--require-approval", "never", "--no-notices", "--method", "direct", "--progress", "events")
        ended = self.tools.cdk("deploy", "--all", "--app", str(assembly), *options)
        assert ended.exit_code == 0, failures(ended.output)
        if configuration.is_product:
            self.launch(version)

    def launch(self, version: str) -> None:
        """Launch the product, or update what was launched to a version."""
        catalog = self.client("servicecatalog")
        (product,) = (each["ProductId"] for each in catalog.search_products()["ProductViewSummaries"])
        given = {"ProvisionedProductName": LAUNCHED, "ProvisioningArtifactName": version}
        if version == FIRST:
            values = [{"Key": "Team", "Value": "search"}, {"Key": "EndpointName", "Value": "chat"}]
            begun = catalog.provision_product(ProductId=product, ProvisioningParameters=values, **given)
        else:
            begun = catalog.update_provisioned_product(**given)
        self.awaited_record(catalog, begun["RecordDetail"]["RecordId"])

    def awaited_record(self, catalog: Any, record: str) -> None:  # noqa: ANN401 (likewise)
        """Wait for the end of what Service Catalog does."""

        def ended() -> dict[str, Any] | None:
            detail: dict[str, Any] = catalog.describe_record(Id=record)["RecordDetail"]
            return None if detail["Status"] in ("CREATED", "IN_PROGRESS", "IN_PROGRESS_IN_ERROR") else detail

        detail = until(ended, record, look_s=LOOK_S, longest_s=LONGEST_S)
        assert detail["Status"] == "SUCCEEDED", json.dumps(detail["RecordErrors"])

    def destroy(self) -> list[str]:
        """Delete what was launched, the endpoints, and the services that they need; return why a deletion failed."""
        catalog, cloudformation = self.client("servicecatalog"), self.cloud.client("cloudformation")
        with suppress(catalog.exceptions.ResourceNotFoundException):
            begun = catalog.terminate_provisioned_product(ProvisionedProductName=LAUNCHED)
            self.awaited_record(catalog, begun["RecordDetail"]["RecordId"])
        failed = []
        for are_services in (False, True):
            names = [name for name in self.stacks() if name.endswith(SERVICES) is are_services]
            for name in names:
                cloudformation.delete_stack(StackName=name)
            for name in names:
                ended = until(lambda name=name: self.ended(name), name, look_s=LOOK_S, longest_s=LONGEST_S)
                failed += [] if ended == "DELETE_COMPLETE" else [f"{name}: {ended}: {self.reasons(name)}"]
        return failed

    def stacks(self) -> dict[str, str]:
        """Return the status of every stack of the environment by its name."""
        stacks = self.cloud.client("cloudformation").describe_stacks()["Stacks"]
        return {each["StackName"]: each["StackStatus"] for each in stacks if "-lab-" in each["StackName"]}

    def ended(self, stack: str) -> str:
        """Return how a deletion ended, or nothing."""
        status = self.stacks().get(stack, "DELETE_COMPLETE")
        return "" if status.endswith("_IN_PROGRESS") else status

    def reasons(self, stack: str) -> list[str]:
        """Return why resources of a stack failed."""
        events = self.cloud.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        failed = (each for each in events if each["ResourceStatus"].endswith("_FAILED"))
        return [f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason')}" for each in failed]

    def models(self) -> list[str]:
        """Return the names of the models that are there."""
        return [each["ModelName"] for each in self.cloud.client("sagemaker").list_models()["Models"]]

    def clear(self) -> None:
        """Remove what an environment retains: the bucket of its results, and logs."""
        s3, logs = self.client("s3"), self.client("logs")
        for bucket in [each["Name"] for each in s3.list_buckets()["Buckets"] if each["Name"].startswith("seatrial-")]:
            for each in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=each["Key"])
            s3.delete_bucket(Bucket=bucket)
        for group in logs.describe_log_groups()["logGroups"]:
            logs.delete_log_group(logGroupName=group["logGroupName"])


def policy(*actions: str) -> str:
    """Return a policy that allows some actions on everything."""
    allowed = {"Effect": "Allow", "Action": [*actions], "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def failures(output: str) -> str:
    """Return the lines of the CDK CLI's output that tell what failed, and the last ones."""
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join([*[line for line in lines if "FAILED" in line or "rror" in line][:20], *lines[-5:]])


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Account, str]]:
    """Start an embedded AWS, and yield it with the ARN of its key."""
    folder = tmp_path_factory.mktemp("account")
    try:
        local = lifecycle.start_embedded_aws(state_dir=folder / "aws", account=ACCOUNT)
        env = {**lifecycle.child_variables(local), "TMPDIR": str(folder), "CDK_VALIDATION": "false"}
        tools = CdkCli(ROOT, env, folder / "tools.log", verbose=False)
        made = Account(folder, EmbeddedAws(local), tools)
        key = made.prepare()
        given = ("--cloudformation-execution-policies", ",".join(made.deployer_policies()))
        tools.cdk_must("bootstrap", f"aws://{ACCOUNT}/{local.region}", *given, "--no-notices", folder=folder)
        # Minutes that CloudFormation and the trial service wait are skipped.
        change_control(folder / "aws", {"wait_speed": 600.0})
        yield made, key
    finally:
        lifecycle.stop_embedded_aws(folder / "aws")


@pytest.mark.parametrize("row", sample(), ids=lambda row: "-".join(row.values()))
def test_a_configuration_is_deployed_updated_and_destroyed(
    row: Row, account: tuple[Account, str], tmp_path: Path
) -> None:
    made, key = replace(account[0], folder=tmp_path), account[1]
    written = configuration_of(row)
    first = replace(written, place=json.loads(json.dumps(written.place).replace(KEY, key)))
    second = replace(first, endpoint=changed(first.endpoint, {"serving.overrides.max_num_seqs": 4}))
    try:
        made.deploy(first, FIRST)
        before = made.models()
        made.deploy(second, "1.1.0")
        assert {*made.models()} - {*before}, "the update changed no model"
    finally:
        failed = made.destroy()
        left = made.cloud.leftovers("none")
        made.clear()
    assert (failed, left) == ([], [])


def test_checkov_finds_nothing_in_the_sample(tmp_path: Path) -> None:
    for index, row in enumerate(sample()):
        assert outcome_of(row, tmp_path / f"{index}") == Outcome()
    # Its version is that of `make check-security`.
    (version,) = re.findall(r"checkov==[\d.]+", (ROOT / "scripts" / "check_security.sh").read_text(encoding="utf-8"))
    command = ("--quiet", "--from", version, "checkov", "--config-file", ".checkov.yaml", "--directory", tmp_path)
    ended = run_to_end(BIN / "uvx", *command, folder=ROOT, env=os.environ, longest_s=LONGEST_S)
    assert ended.exit_code == 0, ended.output
