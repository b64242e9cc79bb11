"""A covering sample of the matrix is deployed, updated and destroyed on the embedded AWS, with rights on.

`make test-matrix` alone runs it. CloudFormation acts as a role that has the rights of `docs/reference/handlers.md` and
no others: what a handler, the launch role or a role of the deployment lacks is refused.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from seatrial.packaging import tar_gz_bytes
from seatrial_laptop import lifecycle
from seatrial_laptop.control import change_control
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
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
VERSIONS: Final = ("1.0.0", "1.1.0")
LAUNCHED: Final = {"ProvisionedProductName": "search-chat"}
ACTIONS_PER_POLICY, MOST_POLICY_CHARACTERS = 150, 6_144
"""The latter of a managed policy (IAM and AWS STS quotas)."""
SERVICES: Final = ("-trials", "-products")
"""How the names of stacks end that others need."""


def sample() -> list[Row]:
    """Return rows that have every value which the embedded AWS can run, and of the pairs as many as so few can."""
    left = [row for row in ROWS if row["engine"] != WITHOUT_ENGINE]
    met: set[object] = set()
    chosen: list[Row] = []
    while len(chosen) < SAMPLE:
        best = max(left, key=lambda row: (len({*row.items()} - met), len({*pairs_of(row)} - met)))
        met |= {*best.items(), *pairs_of(best)}
        left.remove(best)
        chosen.append(best)
    return chosen


@dataclass(frozen=True, slots=True)
class Account:
    """The embedded AWS as the account of the matrix, and the folder of a configuration."""

    folder: Path
    cloud: EmbeddedAws
    tools: CdkCli

    def client(self, service: str) -> Any:  # noqa: ANN401 (boto3's clients have no type of their own)
        return cast("Any", self.cloud).client(service)

    def prepare(self) -> str:
        """Make what the documents of the matrix name, and bootstrap; return the key's ARN."""
        iam, s3 = self.client("iam"), self.client("s3")
        self.client("sns").create_topic(Name="on-call")
        self.client("secretsmanager").create_secret(Name="seatrial/hub-token", SecretString="hf_token")
        for bucket in ("results-of-ours", "weights-of-ours"):
            s3.create_bucket(Bucket=bucket)
        s3.upload_fileobj(io.BytesIO(tar_gz_bytes({"adapter_config.json": b"{}"})), "weights-of-ours", "sql.tar.gz")
        s3.put_object(Bucket="weights-of-ours", Key="mistral/config.json", Body=b"{}")
        actions = deployer_policy("", "/")["Statement"][0]["Action"]
        parts = {
            f"deploys-{start}": actions[start : start + ACTIONS_PER_POLICY]
            for start in range(0, len(actions), ACTIONS_PER_POLICY)
        }
        for name, allowed in {BOUNDARY.rpartition("/")[2]: ["*"], **parts}.items():
            statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
            document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            assert len(document) <= MOST_POLICY_CHARACTERS
            iam.create_policy(PolicyName=name, PolicyDocument=document)
        arns = ",".join(f"arn:aws:iam::{ACCOUNT}:policy/{name}" for name in parts)
        place = f"aws://{ACCOUNT}/{self.cloud.region}"
        bootstrap = ("bootstrap", place, "--no-notices", "--cloudformation-execution-policies", arns)
        self.tools.cdk_must(*bootstrap, folder=self.folder)
        return str(self.client("kms").create_key()["KeyMetadata"]["Arn"])

    def deploy(self, configuration: Configuration, version: str) -> None:
        """Write, synthesize and deploy a configuration; a product is launched, or updated to a version."""
        configuration.write(self.folder, version)
        assembly = configuration.synthesized(self.folder)
        options = ("--require-approval", "never", "--no-notices", "--method", "direct", "--progress", "events")
        ended = self.tools.cdk("deploy", "--all", "--app", str(assembly), *options)
        assert ended.exit_code == 0, "\n".join(line for line in ended.output.splitlines() if "FAILED" in line)
        if not configuration.is_product:
            return
        catalog, given = self.client("servicecatalog"), {**LAUNCHED, "ProvisioningArtifactName": version}
        (product,) = (each["ProductId"] for each in catalog.search_products()["ProductViewSummaries"])
        values = [{"Key": "Team", "Value": "search"}, {"Key": "EndpointName", "Value": "chat"}]
        self.await_record(
            catalog.provision_product(ProductId=product, ProvisioningParameters=values, **given)
            if version == VERSIONS[0]
            else catalog.update_provisioned_product(**given)
        )

    def await_record(self, begun: dict[str, Any]) -> None:
        """Wait for the end of what Service Catalog does."""

        def ended() -> dict[str, Any] | None:
            told: dict[str, Any] = self.client("servicecatalog").describe_record(Id=begun["RecordDetail"]["RecordId"])
            return None if told["RecordDetail"]["Status"] in {"CREATED", "IN_PROGRESS"} else told["RecordDetail"]

        detail = until(ended, "the product", look_s=0.3, longest_s=LONGEST_S)
        assert detail["Status"] == "SUCCEEDED", json.dumps(detail["RecordErrors"])

    def destroy(self) -> None:
        """Delete what was launched, the endpoints, the services that they need, and what these retain."""
        catalog, cloudformation = self.client("servicecatalog"), self.client("cloudformation")
        with suppress(catalog.exceptions.ResourceNotFoundException):
            self.await_record(catalog.terminate_provisioned_product(**LAUNCHED))
        names = [each["StackName"] for each in cloudformation.describe_stacks()["Stacks"]]
        ours = (name for name in names if name.startswith("seatrial-lab-"))
        for name in sorted(ours, key=lambda name: name.endswith(SERVICES)):
            cloudformation.delete_stack(StackName=name)
            cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        s3, logs = self.client("s3"), self.client("logs")
        for bucket in [each["Name"] for each in s3.list_buckets()["Buckets"] if each["Name"].startswith("seatrial-")]:
            for each in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=each["Key"])
            s3.delete_bucket(Bucket=bucket)
        for group in logs.describe_log_groups()["logGroups"]:
            logs.delete_log_group(logGroupName=group["logGroupName"])

    def models(self) -> set[str]:
        return {each["ModelName"] for each in self.client("sagemaker").list_models()["Models"]}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Account, str]]:
    """Start an embedded AWS, and yield it with the ARN of its key."""
    folder = tmp_path_factory.mktemp("account")
    try:
        local = lifecycle.start_embedded_aws(state_dir=folder / "aws", account=ACCOUNT)
        env = {**lifecycle.child_variables(local), "TMPDIR": str(folder), "CDK_VALIDATION": "false"}
        made = Account(folder, EmbeddedAws(local), CdkCli(ROOT, env, folder / "tools.log", verbose=False))
        key = made.prepare()
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
        made.deploy(first, VERSIONS[0])
        before = made.models()
        made.deploy(second, VERSIONS[1])
        assert made.models() - before, "the update changed no model"
    finally:
        made.destroy()
    assert made.cloud.leftovers("none") == []


def test_checkov_finds_nothing_in_the_sample(tmp_path: Path) -> None:
    for index, row in enumerate(sample()):
        assert outcome_of(row, tmp_path / f"{index}") == Outcome()
    # Its version is that of `make check-security`.
    (version,) = re.findall(r"checkov==[\d.]+", (ROOT / "scripts" / "check_security.sh").read_text(encoding="utf-8"))
    command = ("--quiet", "--from", version, "checkov", "--config-file", ".checkov.yaml", "--directory", tmp_path)
    ended = run_to_end(BIN / "uvx", *command, folder=ROOT, env=os.environ, longest_s=LONGEST_S)
    assert ended.exit_code == 0, ended.output
