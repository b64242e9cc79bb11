"""What a preflight asks the account, and what it makes of the answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from botocore.stub import Stubber

from seatrial.account.clients import AccountClients
from seatrial.deployment.document import Deployment
from seatrial.engines.rendered import RenderedConfig
from seatrial.operations.preflight import (
    check_environment,
    functions_at_once,
    instances_in_use,
    needs_of,
    preflight_judgement,
    preflight_lines,
    quota_link,
    reservation_checks,
)
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EMBEDDED_ACCOUNT, EnvironmentSpec
from seatrial_base.errors import SeatrialError
from tests.constructs.conftest import request_of_dev
from tests.sample_plan import LMI_IMAGE, decided, sample_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.operations.preflight import AccountCheck

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
ACCOUNT = "123456789012"
G5 = "ml.g5.2xlarge for endpoint usage"
NOW = datetime(2027, 1, 20, 11, 30, tzinfo=UTC)


def refused(code: str, operation: str = "Any", message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@dataclass
class Account:
    """An account that answers from what it holds; `errors` by the name of the call come first."""

    account: str = ACCOUNT
    set_quotas: dict[str, float] = field(default_factory=lambda: {G5: 10})
    default_quotas: dict[str, float] = field(default_factory=dict)
    live: dict[str, tuple[str, int]] = field(default_factory=dict)
    secrets: dict[str, object] = field(default_factory=lambda: {"hub-token": None})
    objects: tuple[str, ...] = ("llama/config.json",)
    key_state: str = "Enabled"
    vpcs: tuple[str, str] = ("vpc-1", "vpc-1")
    addresses: int = 50
    bootstrap: str = "21"
    functions: int = 10
    plan: dict[str, object] = field(default_factory=dict)
    alarms: list[dict[str, object]] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)

    def _ask(self, name: str) -> None:
        if name in self.errors:
            raise self.errors[name]

    def get_caller_identity(self) -> Mapping[str, object]:
        self._ask("identity")
        return {"Account": self.account, "Arn": f"arn:aws:iam::{self.account}:user/x"}

    def list_service_quotas(self, **asked: str) -> Mapping[str, object]:
        self._ask("quotas")
        return self._page(self.set_quotas, asked)

    def list_aws_default_service_quotas(self, **asked: str) -> Mapping[str, object]:
        self._ask("quotas")
        return self._page(self.default_quotas, asked)

    @staticmethod
    def _page(quotas: Mapping[str, float], asked: Mapping[str, str]) -> Mapping[str, object]:
        """Return one quota a page."""
        assert asked["ServiceCode"] == "sagemaker"
        number = int(asked.get("NextToken", "0"))
        page = [
            {"QuotaName": name, "QuotaCode": f"L-{name[3:5]}", "Value": value}
            for name, value in [*quotas.items()][number : number + 1]
        ]
        return {"Quotas": page, **({"NextToken": f"{number + 1}"} if number + 1 < len(quotas) else {})}

    def list_endpoints(self, **asked: object) -> Mapping[str, object]:
        self._ask("endpoints")
        assert asked == {"MaxResults": 100}
        return {"Endpoints": [{"EndpointName": name} for name in self.live]}

    def describe_endpoint(self, *, EndpointName: str) -> Mapping[str, object]:  # noqa: N803
        self._ask(EndpointName)
        number = self.live[EndpointName][1]
        variant = {"VariantName": "AllTraffic", "CurrentInstanceCount": number, "DesiredInstanceCount": number}
        return {"EndpointConfigName": EndpointName, "ProductionVariants": [variant]}

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> Mapping[str, object]:  # noqa: N803
        variant = {"VariantName": "AllTraffic", "InstanceType": self.live[EndpointConfigName][0]}
        return {"ProductionVariants": [variant]}

    def describe_secret(self, *, SecretId: str) -> Mapping[str, object]:  # noqa: N803
        self._ask("secret")
        if SecretId not in self.secrets:
            raise refused("ResourceNotFoundException")
        return {"Name": SecretId, "DeletedDate": self.secrets[SecretId]}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, MaxKeys: int) -> Mapping[str, object]:  # noqa: N803
        self._ask("weights")
        assert (Bucket, MaxKeys) == ("weights", 1)
        found = [{"Key": key, "Size": 7} for key in self.objects if key.startswith(Prefix)]
        return {"KeyCount": len(found), **({"Contents": found[:1]} if found else {})}

    def describe_key(self, *, KeyId: str) -> Mapping[str, object]:  # noqa: N803
        self._ask("key")
        return {"KeyMetadata": {"Arn": KeyId, "KeyState": self.key_state}}

    def describe_subnets(self, *, SubnetIds: Sequence[str]) -> Mapping[str, object]:  # noqa: N803
        self._ask("subnets")
        row = {"VpcId": self.vpcs[0], "AvailableIpAddressCount": self.addresses}
        return {"Subnets": [{"SubnetId": one, **row} for one in SubnetIds]}

    def describe_security_groups(self, *, GroupIds: Sequence[str]) -> Mapping[str, object]:  # noqa: N803
        self._ask("groups")
        return {"SecurityGroups": [{"GroupId": one, "VpcId": self.vpcs[1]} for one in GroupIds]}

    def get_parameter(self, *, Name: str) -> Mapping[str, object]:  # noqa: N803
        self._ask("bootstrap")
        assert Name == "/cdk-bootstrap/hnb659fds/version"
        return {"Parameter": {"Name": Name, "Value": self.bootstrap}}

    def describe_alarms(self, **asked: str) -> Mapping[str, object]:
        self._ask("alarms")
        assert asked["StateValue"] == "ALARM"
        return {"MetricAlarms": self.alarms}

    def describe_training_plan(self, *, TrainingPlanName: str) -> Mapping[str, object]:  # noqa: N803
        self._ask("plan")
        assert TrainingPlanName == "may"
        return self.plan

    def get_account_settings(self) -> Mapping[str, object]:
        self._ask("functions")
        return {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": self.functions}}

    def clients(self) -> AccountClients:
        return AccountClients(**dict.fromkeys((each.name for each in fields(AccountClients)), cast("Any", self)))


ENVIRONMENT = EnvironmentSpec.model_validate(
    {
        "name": "dev",
        "region": "us-east-1",
        "account": ACCOUNT,
        "kms_key_arn": KEY,
        "network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
    }
)


def trial_request(concurrency: int = 16) -> str:
    """Return the request of a trial whose largest level has so many requests in flight."""
    request = request_of_dev()
    levels = replace(request.load, concurrency_levels=(8, concurrency))
    fields = json.loads(replace(request, load=levels).to_json())
    return json.dumps({name: value for name, value in fields.items() if name not in {"target", "expected"}})


def deployment(
    name: str = "chat", *, instance_type: str = "ml.g5.2xlarge", environment: EnvironmentSpec = ENVIRONMENT
) -> Deployment:
    """Return a deployment of at most 3 instances and 2 more during an update."""
    spec = {
        "name": name,
        "model": {"s3_uri": "s3://weights/llama/", "accept_eula": True},
        "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
        "slo": {},
        "scaling": {"min_copies": 1, "max_copies": 3},
    }
    serving = {
        "engine": "lmi",
        "engine_version": "27",
        "image": LMI_IMAGE,
        "payload_schema": "lmi",
        "files": {},
        "container_env": {},
        "secret_env": {"HF_TOKEN": "hub-token"},
        "weights_s3_uri": "s3://weights/llama/",
        "isolated": False,
    }
    return Deployment(
        endpoint=EndpointSpec.model_validate(spec),
        environment=environment,
        plan=sample_plan(
            environment="dev", instance_type=decided(instance_type), max_instances=3, surge_instances=decided(2)
        ),
        serving=RenderedConfig.model_validate(serving),
        trial_request=trial_request(),
        has_local_nvme=True,
    )


def status_of(check: AccountCheck) -> str:
    return "ok" if check.is_ok else "problem" if check.is_wrong else "unknown"


def checked(account: Account, *deployments: Deployment) -> dict[str, AccountCheck]:
    found = check_environment(deployments or (deployment(),), ENVIRONMENT, account.clients(), now=NOW)
    return {check.subject.partition(" ")[0]: check for check in found}


def test_an_account_that_has_everything() -> None:
    found = check_environment((deployment(),), ENVIRONMENT, Account().clients(), now=NOW)
    assert all(check.is_ok for check in found)
    assert [check.subject for check in found] == [
        f"quota {G5}",
        "region us-east-1",
        "secret hub-token",
        "weights s3://weights/llama/",
        f"KMS key {KEY}",
        "network subnet-0a1b2c3d, sg-0a1b2c3d",
        "CDK bootstrap",
        f"alarms of {deployment().endpoint_name}",
        "Lambda functions at a time",
    ]


@pytest.mark.parametrize(
    ("trials", "needed"),
    [
        pytest.param([16], 3, id="a function that loads, one that CloudFormation waits for, and the sweep"),
        pytest.param([16, 16], 5, id="two endpoints at a time"),
        pytest.param([2700], 5, id="three functions load"),
        pytest.param([16] * 20, 17, id="eight endpoints at a time"),
    ],
)
def test_functions_that_the_trials_need_at_a_time_are_compared_with_what_the_account_runs(
    trials: list[int], needed: int
) -> None:
    tried = tuple(
        replace(deployment(f"chat-{n}"), trial_request=trial_request(level)) for n, level in enumerate(trials)
    )
    assert functions_at_once(tried) == needed
    account = Account(functions=needed, default_quotas={}, set_quotas={G5: 1000})
    assert checked(account, *tried)["Lambda"].is_ok
    account.functions = needed - 1
    found = checked(account, *tried)["Lambda"].finding
    assert found is not None
    assert (found.rule, found.message) == ("SEA467", f"the trials need {needed}; {needed - 1} are not reserved")
    assert "servicequotas/home/services/lambda/quotas/L-B99A9384" in found.hint


def test_without_trials_no_function_is_asked_for() -> None:
    untried = deployment()
    trial = untried.endpoint.trial.model_copy(update={"mode": "off"})
    untried = replace(untried, endpoint=untried.endpoint.model_copy(update={"trial": trial}))
    assert functions_at_once([untried]) == 0
    assert "Lambda" not in checked(Account(), untried)


def test_what_lambda_may_not_be_asked_is_no_problem() -> None:
    account = Account(errors={"functions": refused("AccessDeniedException")})
    assert checked(account)["Lambda"].is_unread


def test_a_raised_alarm_that_would_roll_an_update_back_is_a_problem() -> None:
    dimensions = [{"Name": "InferenceComponentName", "Value": f"{deployment().endpoint_name}-model"}]
    alarm: dict[str, object] = {
        "AlarmName": "errors",
        "AlarmDescription": "Rolls updates back: it fails",
        "Dimensions": dimensions,
    }
    check = checked(Account(alarms=[alarm]))["alarms"]
    assert (status_of(check), check.finding.rule if check.finding else "") == ("problem", "SEA771")
    assert status_of(checked(Account(alarms=[{**alarm, "AlarmDescription": "tells people"}]))["alarms"]) == "ok"
    denied: dict[str, Exception] = {"alarms": refused("AccessDenied", "DescribeAlarms")}
    assert status_of(checked(Account(alarms=[alarm], errors=denied))["alarms"]) == "unknown"


@pytest.mark.parametrize(("quota", "status"), [(5, "ok"), (4, "problem")])
def test_the_most_copies_and_an_update_of_them_must_fit(quota: float, status: str) -> None:
    check = checked(Account(set_quotas={G5: quota}))["quota"]
    assert status_of(check) == status
    assert (check.finding.rule if check.finding else "") == ("SEA460" if status == "problem" else "")


def test_a_problem_tells_numbers_and_link() -> None:
    check = checked(Account(set_quotas={G5: 4}, live={"other": ("ml.g5.2xlarge", 2)}))["quota"]
    assert check.answer == "needs 5 (dev-chat 5); others use 2; the quota is 4, 3 instances too few"
    link = "https://us-east-1.console.aws.amazon.com/servicequotas/home/services/sagemaker/quotas/L-g5"
    assert check.finding
    assert check.finding.hint == f"request 7 or more at {link}"


@pytest.mark.parametrize(
    ("live", "status"),
    [
        ({"dev-chat": ("ml.g5.2xlarge", 5)}, "ok"),  # the endpoint that is updated: its instances are in the need
        ({"dev-chat": ("ml.g6.2xlarge", 5)}, "ok"),  # of another type: the old endpoint of a move
        ({"dev-chat-1": ("ml.g5.2xlarge", 5)}, "problem"),  # of another name: both run for a while
        ({"dev-chat": ("ml.g5.2xlarge", 5), "other": ("ml.g5.2xlarge", 1)}, "problem"),
    ],
)
def test_what_runs_already(live: dict[str, tuple[str, int]], status: str) -> None:
    assert status_of(checked(Account(set_quotas={G5: 5}, live=live))["quota"]) == status


def test_the_specs_are_added_up_by_type() -> None:
    two = (deployment("one"), deployment("two"))
    check = checked(Account(set_quotas={G5: 9}), *two)["quota"]
    assert (status_of(check), check.answer.partition(";")[0]) == ("problem", "needs 10 (dev-one 5, dev-two 5)")
    assert status_of(checked(Account(set_quotas={G5: 10}), *two)["quota"]) == "ok"
    other = "ml.g6.2xlarge for endpoint usage"
    both = check_environment(
        (deployment("one"), deployment("two", instance_type="ml.g6.2xlarge")),
        ENVIRONMENT,
        Account(set_quotas={G5: 5, other: 5}).clients(),
        now=NOW,
    )
    states = [(check.subject, status_of(check)) for check in both[:2]]
    assert states == [
        (f"quota {G5}", "ok"),
        (f"quota {other}", "ok"),
    ]


def test_a_quota_that_was_never_set_is_the_default() -> None:
    assert status_of(checked(Account(set_quotas={}, default_quotas={"a": 1, G5: 0}))["quota"]) == "problem"


def test_a_quota_that_is_not_listed_is_unknown() -> None:
    check = checked(Account(set_quotas={"another": 1}))["quota"]
    assert (status_of(check), "may lack the instance type" in check.answer) == ("unknown", True)


def test_a_need_beyond_the_quota_is_a_problem_whatever_others_use() -> None:
    errors: dict[str, Exception] = {"endpoints": refused("AccessDeniedException")}
    assert status_of(checked(Account(set_quotas={G5: 4}, errors=errors))["quota"]) == "problem"
    assert status_of(checked(Account(set_quotas={G5: 5}, errors=errors))["quota"]) == "unknown"


def test_an_endpoint_that_goes_while_it_is_counted() -> None:
    live = {"gone": ("ml.g5.2xlarge", 9), "other": ("ml.g5.2xlarge", 1)}
    account = Account(live=live, errors={"gone": refused("ValidationException", message="Could not find endpoint")})
    assert instances_in_use(account.clients().endpoints).instances == {("other", "ml.g5.2xlarge"): 1}


def test_the_embedded_aws_has_no_quotas() -> None:
    local = ENVIRONMENT.model_copy(update={"account": EMBEDDED_ACCOUNT})
    check = check_environment(
        (deployment(environment=local),), local, Account(account=EMBEDDED_ACCOUNT).clients(), now=NOW
    )[0]
    assert (status_of(check), check.answer) == ("unknown", "the embedded AWS has no service quotas")


@pytest.mark.parametrize(
    ("account", "subject", "rule"),
    [
        (Account(secrets={}), "secret", "SEA462"),
        (Account(secrets={"hub-token": "2026-11-22"}), "secret", "SEA462"),
        (Account(objects=("mistral/config.json",)), "weights", "SEA463"),
        (Account(errors={"weights": refused("NoSuchBucket")}), "weights", "SEA463"),
        (Account(key_state="PendingDeletion"), "KMS", "SEA464"),
        (Account(errors={"key": refused("NotFoundException")}), "KMS", "SEA464"),
        (Account(errors={"subnets": refused("InvalidSubnetID.NotFound")}), "network", "SEA465"),
        (Account(errors={"groups": refused("InvalidGroup.NotFound")}), "network", "SEA465"),
        (Account(vpcs=("vpc-1", "vpc-2")), "network", "SEA465"),
        (Account(addresses=0), "network", "SEA465"),
        (Account(bootstrap="5"), "CDK", "SEA466"),
        (Account(bootstrap="?"), "CDK", "SEA466"),
        (Account(errors={"bootstrap": refused("ParameterNotFound")}), "CDK", "SEA466"),
    ],
)
def test_what_is_missing(account: Account, subject: str, rule: str) -> None:
    found = checked(account)
    assert [(name, one.finding.rule) for name, one in found.items() if one.finding] == [(subject, rule)]
    assert found[subject].is_wrong


@pytest.mark.parametrize("call", ["quotas", "secret", "weights", "key", "subnets", "groups", "bootstrap"])
@pytest.mark.parametrize(
    "error", [refused("AccessDeniedException"), refused("Strange"), NoCredentialsError()], ids=["denied", "odd", "none"]
)
def test_what_can_not_be_asked_is_no_problem(call: str, error: Exception) -> None:
    found = checked(Account(errors={call: error}))
    assert [one.is_unread for one in found.values() if not one.is_ok] == [True]


RESERVED = {
    "Status": "Active",
    "TotalInstanceCount": 5,
    "TargetResources": ["endpoint"],
    "ReservedCapacitySummaries": [{"InstanceType": "ml.p5.48xlarge"}],
    "EndTime": NOW + timedelta(days=30),
}
"""A training plan that holds `deployment()` on its type for 30 days."""


def on_reserved(ends_at: str | None = "2027-02-19T11:30:00Z", kind: str = "training-plan") -> Deployment:
    """Return a deployment on reserved capacity whose end is written, within 7 days of which commands warn."""
    made = deployment(instance_type="ml.p5.48xlarge")
    arn = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:{kind}/may"
    hosting = made.endpoint.hosting.model_copy(
        update={"capacity_reservation_arn": arn, "capacity_reservation_ends_at": ends_at}
    )
    return replace(made, endpoint=made.endpoint.model_copy(update={"hosting": hosting}))


END = "2027-02-19T11:30:00Z"


@pytest.mark.parametrize(
    ("plan", "ends_at", "expected"),
    [
        ({}, END, []),
        ({}, None, ["SEA632 warning"]),
        ({}, "2027-02-18T11:30:00Z", ["SEA632 warning"]),
        ({"EndTime": NOW + timedelta(days=7)}, "2027-01-27T11:30:00Z", ["SEA630 warning"]),
        ({"EndTime": NOW + timedelta(days=7, minutes=1)}, "2027-01-27T11:31:00Z", []),
        ({"EndTime": NOW}, "2027-01-20T11:30:00Z", ["SEA630 error"]),
        ({"Status": "Expired"}, END, ["SEA631 error"]),
        ({"TargetResources": ["training-job"], "TotalInstanceCount": 4}, END, ["SEA631 error"] * 2),
        ({"ReservedCapacitySummaries": [{"InstanceType": "ml.p5e.48xlarge"}]}, END, ["SEA631 error"]),
    ],
)
def test_reserved_capacity_holds_the_endpoint_and_does_not_end_soon(
    plan: dict[str, object], ends_at: str | None, expected: list[str]
) -> None:
    account = Account(plan=RESERVED | plan)
    found = [*reservation_checks([deployment(), on_reserved(ends_at)], account.clients(), NOW)]
    assert [f"{one.finding.rule} {one.finding.severity}" for one in found if one.finding] == expected
    assert all(one.finding is None or one.finding.hint for one in found)


@pytest.mark.parametrize(
    ("account", "reserved", "expected"),
    [
        pytest.param(Account(errors={"plan": refused("ResourceNotFoundException")}), on_reserved(), ["SEA631"]),
        pytest.param(Account(errors={"plan": refused("AccessDeniedException")}), on_reserved(), ["SEA436"]),
        # What can't be read still ends when the spec says.
        pytest.param(
            Account(errors={"plan": refused("AccessDeniedException")}),
            on_reserved("2027-01-21T11:30:00Z"),
            ["SEA630", "SEA436"],
        ),
        pytest.param(Account(), on_reserved(kind="ml-reservation"), ["SEA436"]),
    ],
)
def test_reserved_capacity_that_can_not_be_read(account: Account, reserved: Deployment, expected: list[str]) -> None:
    found = [*reservation_checks([reserved], account.clients(), NOW)]
    assert [one.finding.rule for one in found if one.finding] == expected


def test_a_warning_is_listed_with_its_remedy_and_is_no_problem() -> None:
    found = (*reservation_checks([on_reserved()], Account(plan=RESERVED | {"EndTime": NOW}).clients(), NOW),)
    warned = [one for one in found if one.warns]
    assert [line for line in preflight_lines(tuple(warned)) if "extend-training-plan" in line or "SEA6" in line]
    assert [*preflight_lines(tuple(warned))][-1] == "0 ok, 0 with a problem, 1 with a warning, 0 could not be read"


def test_without_an_identity_nothing_is_asked() -> None:
    with pytest.raises(SeatrialError) as caught:
        checked(Account(errors={"identity": NoCredentialsError()}))
    assert caught.value.problems[0].rule == "SEA503"


def test_another_account_is_refused() -> None:
    with pytest.raises(SeatrialError) as caught:
        checked(Account(account="210987654321"))
    assert caught.value.problems[0].rule == "SEA455"


def test_a_region_without_inference_components() -> None:
    elsewhere = ENVIRONMENT.model_copy(update={"region": "af-south-1"})
    found = check_environment((deployment(environment=elsewhere),), elsewhere, Account().clients(), now=NOW)
    assert [(one.subject, one.finding.rule) for one in found if one.finding] == [("region af-south-1", "SEA461")]


def test_how_it_reads() -> None:
    found = check_environment((deployment(),), ENVIRONMENT, Account(secrets={}, bootstrap="5").clients(), now=NOW)
    lines = [*preflight_lines(found)]
    assert lines[2:4] == [
        "problem  secret hub-token: SEA462: it does not exist",
        "           hint: create it: aws secretsmanager create-secret --name hub-token --secret-string …",
    ]
    assert lines[-1] == "7 ok, 2 with a problem, 0 could not be read"
    judgement = preflight_judgement(found, ENVIRONMENT)
    assert [(finding.rule, finding.severity) for finding in judgement.findings] == [
        ("SEA462", "error"),
        ("SEA466", "error"),
    ]


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "eu-west-1.console.aws.amazon.com"),
        ("cn-north-1", "cn-north-1.console.amazonaws.cn"),
        ("us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_the_page_of_a_quota(region: str, host: str) -> None:
    assert quota_link(region, "L-1").partition("/servicequotas")[0] == f"https://{host}"


def test_what_sagemaker_answers_is_counted() -> None:
    """The answers have the shapes of botocore's model: several pages, shadow variants, pools."""
    client = boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    listed = {
        "EndpointArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/a",
        "CreationTime": "2026-11-22T00:00:00Z",
        "LastModifiedTime": "2026-11-22T00:00:00Z",
        "EndpointStatus": "InService",
    }
    arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint-config/c"
    described = {**listed, "EndpointName": "a", "EndpointConfigName": "c"}
    pools = [
        {"InstanceType": "ml.g5.2xlarge", "CurrentInstanceCount": 2},
        {"InstanceType": "ml.g6.2xlarge", "CurrentInstanceCount": 1},
    ]
    with Stubber(client) as stub:
        stub.add_response(
            "list_endpoints",
            {"Endpoints": [{**listed, "EndpointName": "a"}], "NextToken": "t"},
            {"MaxResults": 100},
        )
        stub.add_response(
            "describe_endpoint",
            {
                **described,
                "ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": 1, "DesiredInstanceCount": 3}],
                "ShadowProductionVariants": [{"VariantName": "s", "InstancePools": pools}],
            },
            {"EndpointName": "a"},
        )
        variant = {"VariantName": "v", "InstanceType": "ml.g5.2xlarge"}
        stub.add_response(
            "describe_endpoint_config",
            {
                "EndpointConfigName": "c",
                "EndpointConfigArn": arn,
                "CreationTime": "2026-11-22T00:00:00Z",
                "ProductionVariants": [variant],
            },
            {"EndpointConfigName": "c"},
        )
        stub.add_response("list_endpoints", {"Endpoints": []}, {"MaxResults": 100, "NextToken": "t"})
        found = instances_in_use(client)
        stub.assert_no_pending_responses()
    assert found.instances == {("a", "ml.g5.2xlarge"): 5, ("a", "ml.g6.2xlarge"): 1}


def test_the_need_is_named_by_the_endpoint() -> None:
    (need,) = needs_of((replace(deployment()),))
    assert (need.endpoint_name, need.instance_type, need.instances) == ("dev-chat", "ml.g5.2xlarge", 5)
