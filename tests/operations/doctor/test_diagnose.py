"""What the doctor makes of what AWS answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.operations.doctor.steps import fix_steps
from seatrial.operations.doctor.view import answer_line, doctor_judgement, doctor_lines, is_healthy
from seatrial_base.catalog.symptoms import SYMPTOMS, find_symptom
from seatrial_base.findings import RULES
from seatrial_base.printer import formatted
from seatrial_base.tags import STACK_TAG, candidate_name
from tests.operations.doctor.sample_account import COMPONENT, TARGET, Aws, absent, ago, component, error, target
from tests.operations.test_preflight import Account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.findings import Finding

CUDA_13 = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
OLD_AMI = "al2-ami-sagemaker-inference-gpu-3-1"


def failed(*log: str, reason: str = "The container did not pass the ping health check.") -> Aws:
    return Aws(components={COMPONENT: component("Failed", copies=0, reason=reason)}, log=[*log])


def test_the_newest_container_s_log_counts_before_that_of_an_earlier_one() -> None:
    aws = failed("CUDA out of memory")
    aws.earlier_log = ("exec /usr/bin/python3: exec format error",)
    assert aws.rules() == ["SEA755"]


def test_nothing_is_wrong_with_an_endpoint_that_serves() -> None:
    aws = Aws()
    found = aws.examined()
    assert (aws.diagnosed(), found.unreadable, found.serves) == ((), (), True)
    assert answer_line(found, ()) == "dev-chat: nothing is wrong."
    assert is_healthy(found, ())


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "SEA755"),
        ("ValueError: No available memory for the cache blocks.", "SEA755"),
        ("5.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.1 GiB)", "SEA755"),
        ("OSError: [Errno 28] No space left on device", "SEA756"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.", "SEA759"),
        ("requests.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/x", "SEA759"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "SEA759"),
        ("Please pass the argument `trust_remote_code=True` to allow custom code to be run.", "SEA760"),
        ("Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "SEA760"),
        ("User-specified max_model_len (8192) is greater than the derived max_model_len", "SEA760"),
        ("CUDA driver version is insufficient for CUDA runtime version", "SEA754"),
        ("An error occurred (403) when calling the HeadObject operation: Forbidden", "SEA758"),
    ],
)
def test_a_line_of_the_log_says_more_than_the_failure_reason(line: str, rule: str) -> None:
    (found,) = failed("loading", line).diagnosed()
    assert (found.rule, found.place.resource, found.evidence) == (rule, f"inference component {COMPONENT}", line)
    assert found.source


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("ResourceLimitExceeded: The account-level service limit 'ml.g5.2xlarge for endpoint usage' is 1", "SEA752"),
        ("InsufficientInstanceCapacity: Unable to provision requested ML compute capacity", "SEA753"),
        ("The primary container did not pass the ping health check.", "SEA757"),
        ("Something that nobody knows", "SEA751"),
    ],
)
def test_the_failure_reason_is_read_where_the_log_says_nothing(reason: str, rule: str) -> None:
    (found,) = failed("loading", reason=reason).diagnosed()
    assert found.rule == rule
    assert found.evidence == reason


def test_a_container_without_a_log_and_an_old_ami_lacks_the_driver() -> None:
    aws = Aws(components={COMPONENT: component("Creating", copies=0, minutes=31)}, log=None, image=CUDA_13, ami=OLD_AMI)
    (found,) = aws.diagnosed()
    assert found.rule == "SEA754"
    assert "CUDA 13.0" in found.message
    assert "al2023-ami-sagemaker-inference-gpu-4-1" in found.hint
    aws.ami = "al2023-ami-sagemaker-inference-gpu-4-1"
    (guess,) = aws.diagnosed()
    assert (guess.rule, guess.evidence) == ("SEA754", "Creating, and there is no log group")


@pytest.mark.parametrize(
    ("variables", "accelerators", "words"),
    [
        ({"SM_VLLM_TENSOR_PARALLEL_SIZE": "8"}, 8, "starts with a degree of 4 or with expert parallelism"),
        ({"SM_VLLM_TENSOR_PARALLEL_SIZE": "8"}, 0, "starts with a degree of 4 or with expert parallelism"),
        ({}, 8, "In engine_limits.json: vllm-fp8-experts ("),
    ],
)
def test_a_refusal_of_the_engine_is_explained_by_what_the_live_model_has(
    variables: dict[str, str], accelerators: int, words: str
) -> None:
    width = "The output_size of gate's and up's weight = 320"
    aws = failed(f"ValueError: {width} is not divisible by weight quantization block_n = 128.")
    aws.image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312"
    aws.instance_type = "ml.p5en.48xlarge"
    aws.environment = {"SM_VLLM_MODEL": "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", **variables}
    needs = {"NumberOfAcceleratorDevicesRequired": accelerators} if accelerators else {}
    aws.components[COMPONENT] |= {"Specification": {"ModelName": "model-1", "ComputeResourceRequirements": needs}}
    (diagnosis,) = (each for each in aws.diagnosed() if each.rule == "SEA760")
    assert words in diagnosis.hint


def test_a_young_change_is_no_problem_and_a_very_old_one_is_stuck() -> None:
    aws = Aws(components={COMPONENT: component("Creating", copies=0, minutes=29)}, log=None)
    assert aws.rules() == []
    assert answer_line(aws.examined(), ()) == "dev-chat: it is being changed; nothing is wrong so far."
    aws = Aws(components={COMPONENT: component("Deleting", copies=0, minutes=2880)})
    (found,) = aws.diagnosed()
    assert (found.rule, found.message) == ("SEA761", "It has been Deleting for 2880 minutes.")


def test_an_endpoint_that_rolled_back_tells_its_reason() -> None:
    aws = Aws(endpoint={"EndpointStatus": "InService", "FailureReason": "InsufficientInstanceCapacity: none left"})
    kept, cause = aws.diagnosed()
    assert (kept.rule, cause.rule) == ("SEA636", "SEA753")
    assert "the configuration config-1 from before it still serves" in kept.message


def test_a_stack_tells_the_cause_of_its_rollback() -> None:
    begin = {"ResourceType": "AWS::CloudFormation::Stack", "ResourceStatus": "UPDATE_IN_PROGRESS"}

    def event(name: str, reason: str) -> dict[str, object]:
        return {"LogicalResourceId": name, "ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": reason}

    newest_first: list[Mapping[str, object]] = [
        event("Alarm", "Resource update cancelled"),
        event("Component", "CUDA out of memory"),
        begin,
        event("Old", "No space left on device"),
    ]
    aws = Aws(stack="UPDATE_ROLLBACK_COMPLETE", events=newest_first)
    cause, status = aws.diagnosed()
    assert (cause.rule, cause.place.resource) == ("SEA755", "stack seatrial-dev-chat, Component")
    assert (status.rule, status.evidence) == ("SEA762", "UPDATE_ROLLBACK_COMPLETE")
    assert "Component" in status.message


def in_progress(name: str, resource_type: str, minutes: float) -> dict[str, object]:
    """Return a resource of a stack that has been updated for so long."""
    return {
        "LogicalResourceId": name,
        "ResourceType": resource_type,
        "ResourceStatus": "UPDATE_IN_PROGRESS",
        "LastUpdatedTimestamp": ago(minutes),
    }


def test_a_custom_resource_that_never_answers_is_told() -> None:
    row = in_progress("Trial", "Custom::SmokeBenchmark", 61)
    aws = Aws(stack="UPDATE_IN_PROGRESS", resources=[row])
    assert aws.rules() == ["SEA762"]
    aws.workflows = (59.0,)
    row["LastUpdatedTimestamp"] = ago(59.5)
    assert aws.rules() == []


@pytest.mark.parametrize(
    ("minutes", "workflows", "rules"),
    [(15.0, (), []), (17.0, (), ["SEA762"]), (17.0, (16.9,), []), (17.0, (30.0,), ["SEA762"]), (59.0, (3.0, 70.0), [])],
)
def test_a_custom_resource_that_nobody_works_on_is_told(
    minutes: float, workflows: tuple[float, ...], rules: list[str]
) -> None:
    row = in_progress("Candidate", "Custom::CandidateTrial", minutes)
    aws = Aws(stack="UPDATE_IN_PROGRESS", resources=[row], workflows=workflows)
    found = aws.diagnosed()
    assert [each.rule for each in found] == rules
    if found:
        assert "waited 17 minutes" in found[0].message
        assert "no workflow of the trial service works on it" in found[0].message


def test_a_trial_service_that_cannot_be_asked_is_no_proof() -> None:
    row = in_progress("Candidate", "Custom::CandidateTrial", 20)
    aws = Aws(stack="UPDATE_IN_PROGRESS", resources=[row])
    aws.errors["list_executions"] = [error("AccessDeniedException", "not authorized")]
    found = aws.examined()
    assert (found.workflows, aws.rules()) == (None, [])
    assert any("workflows of seatrial-dev-trials" in each for each in found.unreadable)


@pytest.mark.parametrize(
    ("broken", "rules"),
    [
        ({"targets": [target(SuspendedState={"DynamicScalingInSuspended": True})]}, ["SEA763"]),
        (  # one resource with two dimensions: each is a target of its own
            {
                "targets": [
                    target(SuspendedState={"DynamicScalingInSuspended": True}),
                    target(ScalableDimension="sagemaker:variant:DesiredProvisionedConcurrency"),
                ]
            },
            ["SEA763"],
        ),
        (
            {"targets": [target(SuspendedState={"DynamicScalingInSuspended": True})], "stack": "UPDATE_IN_PROGRESS"},
            [],
        ),
        ({"targets": [target(), target(f"inference-component/{candidate_name('dev-chat', '1')}")]}, ["SEA764"]),
        ({"targets": [target(), target("inference-component/dev-chat-small-model")]}, []),
        ({"components": {COMPONENT: component(copies=0)}, "targets": []}, ["SEA765"]),
        ({"components": {COMPONENT: component(copies=0)}, "targets": [target(MinCapacity=0)]}, ["SEA765"]),
        ({"activities": [{"StatusCode": "Failed", "StatusMessage": "ResourceLimitExceeded"}]}, ["SEA752"]),
        ({"activities": [{"StatusCode": "Failed", "StatusMessage": "odd"}]}, ["SEA768"]),
        ({"activities": [{"StatusCode": "Successful", "StatusMessage": "odd"}]}, []),
    ],
)
def test_scaling_that_does_not_scale_is_told(broken: dict[str, object], rules: list[str]) -> None:
    assert Aws(**broken).rules() == rules  # type: ignore[arg-type]  # a table of arguments


def test_zero_copies_are_well_where_a_step_policy_wakes_them() -> None:
    aws = Aws(components={COMPONENT: component(copies=0)}, targets=[target(MinCapacity=0)], policies=("StepScaling",))
    assert aws.rules() == []


@pytest.mark.parametrize(
    ("stack", "words"),
    [("UPDATE_COMPLETE", "updates are tried in place until then"), ("DELETE_FAILED", "delete it again")],
)
def test_a_candidate_for_which_no_instance_has_room_is_told_with_who_deletes_it(stack: str, words: str) -> None:
    aws = Aws(stack=stack, events=[])
    aws.add_candidate("0000", component("Creating", copies=0, minutes=59))
    assert "SEA753" not in aws.rules(), "its trial may wait for it"
    aws.add_candidate("0000", component("Creating", copies=0, minutes=61))
    (found,) = (each for each in aws.diagnosed() if each.rule == "SEA753")
    assert found.message.startswith("It has been Creating for 61 minutes: no instance has room for it.")
    assert words in found.hint


def test_a_candidate_is_left_over_when_no_trial_can_be_that_long() -> None:
    aws = Aws()
    aws.add_candidate("1", component(minutes=119))
    assert aws.rules() == []
    aws.add_candidate("1", component(minutes=121))
    assert aws.rules() == ["SEA766"]


def test_only_alarms_of_the_endpoint_are_told() -> None:
    def alarm(name: str, component_name: str, *actions: str) -> dict[str, object]:
        dimensions = [{"Name": "InferenceComponentName", "Value": component_name}]
        return {"AlarmName": name, "Dimensions": dimensions, "AlarmActions": list(actions)}

    topic, policy = "arn:aws:sns:us-east-1:111122223333:t", "arn:aws:autoscaling:us-east-1:111122223333:scalingPolicy:a"
    alarms = [alarm("a", COMPONENT), alarm("b", "other"), alarm("c", COMPONENT, policy)]
    alarms.append(alarm("d", COMPONENT, policy, topic))
    assert [each.place.resource for each in Aws(alarms=alarms).diagnosed()] == ["alarm a", "alarm d"]


def test_an_alarm_that_rolls_updates_back_is_told_with_how_to_deploy_a_repair() -> None:
    dimensions = [{"Name": "InferenceComponentName", "Value": COMPONENT}]
    alarm: dict[str, object] = {
        "AlarmName": "a",
        "Dimensions": dimensions,
        "AlarmDescription": "Rolls updates back: dev-chat returns 5XX",
    }
    (told,) = Aws(alarms=[alarm]).diagnosed()
    assert (told.rule, "SageMaker rolls an update back meanwhile" in told.message) == ("SEA767", True)
    assert "-c rollback_alarms=off" in told.hint


def test_a_rollback_that_failed_names_the_command_and_what_it_skips() -> None:
    rows: list[Mapping[str, object]] = [
        {"LogicalResourceId": name, "ResourceType": f"AWS::SageMaker::{name}", "ResourceStatus": status}
        for name, status in (("Component", "UPDATE_FAILED"), ("Endpoint", "UPDATE_COMPLETE"))
    ]
    (told,) = Aws(stack="UPDATE_ROLLBACK_FAILED", resources=rows).diagnosed()
    assert told.rule == "SEA762"
    command = "aws cloudformation continue-update-rollback --stack-name seatrial-dev-chat --resources-to-skip Component"
    assert told.hint == f"Fix the cause, then continue the rollback with `seatrial doctor --fix`: {command}."


def test_an_account_without_role_weights_or_quota_is_told() -> None:
    aws = Aws(trust={"Statement": {"Effect": "Allow", "Principal": {"Service": ["lambda.amazonaws.com"]}}})
    short = Account(objects=(), set_quotas={"ml.g5.2xlarge for endpoint usage": 2})
    assert [each.rule for each in aws.diagnosed(short)] == ["SEA758", "SEA463", "SEA460"]
    aws.errors["get_role"] = [error("NoSuchEntity", "no role")]
    assert aws.diagnosed()[0].message == "it does not exist."


def test_the_files_of_an_adapter_are_looked_for() -> None:
    adapter = {**component(), "Specification": {"Container": {"ArtifactUrl": "s3://weights/a/sql.tar.gz"}}}
    aws = Aws(components={COMPONENT: component(), "dev-chat-adapter-sql": adapter})
    assert [(each.rule, each.place.resource) for each in aws.diagnosed(Account(objects=()))] == [
        ("SEA463", "weights s3://weights/a/sql.tar.gz"),
        ("SEA463", "weights s3://weights/llama/"),
    ]


def test_what_is_denied_is_told_and_is_no_problem() -> None:
    aws = Aws()
    denied = error("AccessDeniedException", "User: me is not authorized to perform: logs:DescribeLogStreams")
    for operation in ("describe_log_streams", "describe_alarms", "list_stack_resources", "get_role"):
        aws.errors[operation] = [denied]
    found = aws.examined()
    assert aws.diagnosed() == ()
    assert [line.partition(":")[0] for line in found.unreadable] == [
        "resources of seatrial-dev-chat",
        "alarms",
        f"log group /aws/sagemaker/InferenceComponents/{COMPONENT}",
    ]
    aws.errors["describe_endpoint"] = [denied]
    assert not is_healthy(aws.examined(), aws.diagnosed())


def test_an_orphan_is_not_told_where_components_could_not_be_listed() -> None:
    aws = Aws()
    aws.errors["list_inference_components"] = [error("AccessDeniedException", "no")]
    assert aws.rules() == []


def test_an_endpoint_that_is_gone_is_told_with_what_is_left_of_it() -> None:
    (gone,) = Aws(endpoint=None, components={}, targets=[], stack="").diagnosed()
    assert (gone.rule, gone.evidence) == ("SEA750", "")
    aws = Aws(endpoint=None, stack="")
    assert aws.diagnosed()[0].evidence == f"left over: inference component {COMPONENT}, scalable target {TARGET}"


def test_an_endpoint_whose_stack_is_gone_is_told_where_it_is_ours() -> None:
    assert Aws(stack="").rules() == ["SEA762"]
    assert Aws(stack="", tags={}).rules() == []


def test_no_credential_of_a_log_or_reason_is_shown() -> None:
    token = "hf_" + "a1B2" * 9
    aws = failed(f"HF_TOKEN={token}", reason=f"bad {token}")
    judgement = doctor_judgement(aws.examined(), aws.diagnosed(), ())
    assert token not in formatted(judgement, "json")
    assert token not in "\n".join(doctor_lines(aws.examined(), aws.diagnosed(), why=True))


def test_the_answer_comes_first_and_the_table_names_every_part() -> None:
    aws = failed("CUDA out of memory")
    lines = [*doctor_lines(aws.examined(), aws.diagnosed(), why=True)]
    assert lines[0].startswith(f"dev-chat: SEA755: inference component {COMPONENT}: The model does not fit")
    assert f"problem  inference component {COMPONENT}: Failed, 0 of 1 copy" in lines
    assert "ok       stack seatrial-dev-chat: UPDATE_COMPLETE" in lines
    assert "ok       variant AllTraffic: 1 of 1 instances, ml.g5.2xlarge" in lines
    assert lines[-1] == "  CUDA out of memory"


def test_every_symptom_has_a_rule_a_source_and_a_sentence() -> None:
    for each in SYMPTOMS.rows:
        assert each.rule in RULES
        assert each.cause.endswith(".")
        assert each.mend.endswith(".")
        assert each.source
    assert find_symptom(("all is well", "INFO ready to serve")) is None


def test_a_stack_by_a_tag_is_asked_for_by_that_name() -> None:
    aws = Aws(tags={"aws:cloudformation:stack-name": "SC-1"})
    assert aws.examined().stack.name == "SC-1"


def test_a_stack_of_another_name_is_found_by_its_resources() -> None:
    aws = Aws(stack="", other_stack="Platform")
    found = aws.examined()
    assert (found.stack.name, found.stack.status, aws.rules()) == ("Platform", "CREATE_COMPLETE", [])
    aws.errors["describe_stack_resources"] = [error("AccessDenied", "no")]
    assert aws.examined().stack.existence == "not asked"


def test_the_cause_of_a_creation_that_failed_comes_before_that_nothing_is_there() -> None:
    event = {"LogicalResourceId": "Endpoint", "ResourceStatus": "CREATE_FAILED"}
    reason = "ResourceLimitExceeded: the account-level service limit is 0"
    aws = Aws(
        endpoint=None,
        components={},
        targets=[],
        stack="ROLLBACK_COMPLETE",
        events=[{**event, "ResourceStatusReason": reason}],
    )
    assert aws.rules() == ["SEA752", "SEA762", "SEA750"]


def test_a_live_component_is_no_candidate_whatever_its_name() -> None:
    aws = Aws()
    aws.components = {"dev-chat-candidate-0a1b2c3d": component(minutes=500)}
    aws.other_stack = "seatrial-dev-chat"
    assert [each.is_candidate for each in aws.examined().components] == [False]
    aws.other_stack = ""
    assert [each.is_candidate for each in aws.examined().components] == [True], "an older release made it"


MISSING = {"LogicalResourceId": "Part", "ResourceStatus": "CREATE_COMPLETE"}


@pytest.mark.parametrize(
    ("resource_type", "physical_id", "rules"),
    [
        ("AWS::SageMaker::InferenceComponent", f"arn:i/{COMPONENT}", []),
        ("AWS::SageMaker::InferenceComponent", "arn:i/dev-chat-summarize", ["SEA775"]),
        ("AWS::CloudWatch::Alarm", "seatrial-dev-chat-errors", []),
        ("AWS::CloudWatch::Alarm", "seatrial-dev-chat-gone", ["SEA775"]),
        ("AWS::CDK::Metadata", "nobody-looks", []),
    ],
)
def test_what_the_stack_has_and_the_account_lacks_is_missing(
    resource_type: str, physical_id: str, rules: list[str]
) -> None:
    resource = {**MISSING, "ResourceType": resource_type, "PhysicalResourceId": physical_id}
    aws = Aws(resources=[resource], absent_alarms=("seatrial-dev-chat-gone",))
    assert aws.rules() == rules


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"])
def test_nothing_is_missing_while_the_stack_is_at_work(status: str) -> None:
    kind = "AWS::SageMaker::InferenceComponent"
    resource = {**MISSING, "ResourceType": kind, "PhysicalResourceId": "arn:i/dev-chat-summarize"}
    assert Aws(stack=status, resources=[resource]).examined().missing == ()


def test_an_update_that_failed_without_a_known_cause_is_reported_once() -> None:
    (finding,) = Aws(endpoint={"EndpointStatus": "InService", "FailureReason": "odd"}).diagnosed()
    assert (finding.rule, "SageMaker's reason: odd" in finding.message) == ("SEA636", True)
    mixed = Aws(endpoint={"EndpointStatus": "UpdateRollbackFailed", "FailureReason": "odd"}).diagnosed()
    assert "a mix of both configurations serves" in mixed[0].message
    component_reason = component(reason="CUDA out of memory")
    assert Aws(components={COMPONENT: component_reason}).rules() == ["SEA636", "SEA755"]


def test_a_configuration_or_model_that_is_deleted_is_reported_once_and_not_during_a_change() -> None:
    aws = Aws()
    for operation in ("describe_endpoint_config", "describe_model"):
        aws.errors[operation] = [absent()]
    places = [(each.rule, each.place.resource) for each in aws.diagnosed()]
    assert places == [("SEA637", "endpoint configuration config-1"), ("SEA637", "model model-1")]
    # CloudFormation's own ARN of it is in small letters, and may name nothing: SEA637 tells it alone.
    kind = "AWS::SageMaker::EndpointConfig"
    aws.resources = [{**MISSING, "ResourceType": kind, "PhysicalResourceId": "arn:c/config24ad0a28"}]
    assert aws.rules() == ["SEA637", "SEA637"]
    aws.stack = "UPDATE_IN_PROGRESS"
    assert aws.rules() == []


@pytest.mark.parametrize("log", [None, [], ["loading"]])
@pytest.mark.parametrize("reason", ["The container did not pass the ping health check.", "odd", ""])
def test_no_answer_sends_to_a_log_that_is_not_there(reason: str, log: list[str] | None) -> None:
    aws = Aws(components={COMPONENT: component("Failed", copies=0, reason=reason)}, log=log)
    (finding,) = aws.diagnosed()
    assert ("aws logs tail" in finding.hint) == (log == ["loading"])
    assert ("No container wrote a line" in finding.hint) == (not log)
    assert finding.hint.endswith(" deploy a changed plan, or delete the stack first.")
    aws.errors["describe_log_streams"] = [error("AccessDeniedException", "no")]
    assert "which was not read here" in aws.diagnosed()[0].hint


def fix_is_named(findings: tuple[Finding, ...]) -> bool:
    return any("seatrial doctor --fix" in each.hint for each in findings)


@pytest.mark.parametrize("tags", [{"seatrial:environment": "dev"}, {}])
@pytest.mark.parametrize("stack", ["", "DELETE_FAILED", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "UPDATE_COMPLETE"])
@pytest.mark.parametrize(
    "broken",
    [
        {"endpoint": None},
        {"endpoint": {"EndpointStatus": "Failed"}, "components": {COMPONENT: component("Failed", copies=0)}},
        {"components": {COMPONENT: component("Deleting", copies=0, minutes=2880)}},
        {"components": {COMPONENT: component(copies=0)}},
        {"targets": [target(SuspendedState={"DynamicScalingOutSuspended": True})]},
        {"targets": [target(f"inference-component/{candidate_name('dev-chat', '1')}")]},
        {"other_stack": "Platform"},
    ],
)
def test_no_answer_sends_to_a_fix_that_does_nothing(
    broken: dict[str, object], stack: str, tags: dict[str, str]
) -> None:
    aws = Aws(**broken, stack=stack, tags=tags)  # type: ignore[arg-type]  # a table of arguments
    aws.add_candidate("7", component(minutes=500))
    for denied in (False, True):
        if denied:
            aws.errors["describe_stacks"] = [error("AccessDeniedException", "no")]
        examination = aws.examined()
        assert fix_steps(examination) or not fix_is_named(aws.diagnosed())


def test_what_keeps_an_endpoint_from_being_deleted_is_named() -> None:
    reason = "Cannot delete endpoint with inference component associated. Please delete inference component"
    event = {"LogicalResourceId": "Endpoint", "ResourceStatus": "DELETE_FAILED", "ResourceStatusReason": reason}
    findings = Aws(stack="DELETE_FAILED", events=[event]).diagnosed()
    assert (findings[0].rule, findings[0].place.resource) == ("SEA642", "stack seatrial-dev-chat, Endpoint")
    assert f"while it has inference components: {COMPONENT}." in findings[0].message


def test_a_foreign_stack_is_known_by_the_tag_of_a_part_and_by_the_arn_of_what_is_gone() -> None:
    tags = {STACK_TAG: "Platform"}
    of_component = Aws(stack="", other_stack="Platform", tags={}, other_tags={COMPONENT: tags})
    of_component.errors["describe_stack_resources"] = [error("AccessDenied", "no")]
    assert of_component.examined().stack.name == "Platform"
    gone = Aws(endpoint=None, components={}, targets=[], stack="", other_stack="Platform")
    assert (gone.examined().stack.name, gone.examined().stack.is_ours) == ("Platform", False)
