"""Rights of everyone who calls the running embedded AWS, and the words of its denials."""

from __future__ import annotations

import io
import json
import time
import zipfile
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixtures' classes live in conftest.py, which nobody can import
Roles = Any
ACCOUNT = "000000000000"
COMPONENTS = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:inference-component"
TAGGED = {"StringEquals": {"aws:ResourceTag/seatrial:environment": "dev"}}
DEV = [{"Key": "seatrial:environment", "Value": "dev"}]
LONGEST_WAIT_S = 20.0


def allow(*actions: str, resource: str = "*", **elements: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": [*actions], "Resource": resource, **elements}


def denied(call: Callable[[], object]) -> tuple[str, str]:
    """Return the code and the message of a refusal."""
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def eventually(call: Callable[[], Any]) -> Any:  # noqa: ANN401 (what it returns)
    deadline = time.monotonic() + LONGEST_WAIT_S
    while not (found := call()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


class TestSessionsOfRoles:
    def test_a_denial_reads_as_that_of_aws(self, roles: Roles) -> None:
        code, message = denied(lambda: roles.client("sagemaker").list_endpoints())
        assert code == "AccessDeniedException"
        assert message.startswith(f"User: arn:aws:sts::{ACCOUNT}:assumed-role/tested-")
        assert message.endswith(
            "/tester is not authorized to perform: sagemaker:ListEndpoints on resource: * because no identity-based "
            "policy allows the sagemaker:ListEndpoints action"
        )

    def test_an_absent_component_has_no_tag_so_its_description_is_denied(self, roles: Roles) -> None:
        """N1: what a role may describe by tag only, it can't find absent."""
        client = roles.client("sagemaker", allow("sagemaker:DescribeInferenceComponent", Condition=TAGGED))
        code, message = denied(lambda: client.describe_inference_component(InferenceComponentName="dev-absent-model"))
        assert code == "AccessDeniedException"
        assert f"on resource: {COMPONENTS}/dev-absent-model" in message

    def test_an_absent_component_is_not_found_by_who_may_describe_its_name(self, roles: Roles) -> None:
        by_name = allow("sagemaker:DescribeInferenceComponent", resource=f"{COMPONENTS}/dev-*")
        client = roles.client("sagemaker", by_name)
        assert denied(lambda: client.describe_inference_component(InferenceComponentName="dev-absent-model")) == (
            "ValidationException",
            f'Could not find inference component "{COMPONENTS}/dev-absent-model".',
        )
        other = denied(lambda: client.describe_inference_component(InferenceComponentName="prod-model"))
        assert other[0] == "AccessDeniedException"

    def test_tags_of_a_resource_and_of_a_request_are_asked(self, laptop: Laptop, roles: Roles) -> None:
        mine, other = laptop.model(), laptop.model()
        arn = laptop.sagemaker.describe_model(ModelName=mine)["ModelArn"]
        laptop.sagemaker.add_tags(ResourceArn=arn, Tags=DEV)
        asked = {"StringEquals": {"aws:RequestTag/seatrial:environment": "dev"}}
        client = roles.client(
            "sagemaker",
            allow("sagemaker:DeleteModel", Condition=TAGGED),
            allow("sagemaker:AddTags", Condition=asked),
        )
        arn_of_other = laptop.sagemaker.describe_model(ModelName=other)["ModelArn"]
        assert denied(lambda: client.add_tags(ResourceArn=arn_of_other, Tags=[{"Key": "Team", "Value": "a"}]))
        assert denied(lambda: client.delete_model(ModelName=other))[0] == "AccessDeniedException"
        client.delete_model(ModelName=mine)
        client.add_tags(ResourceArn=arn_of_other, Tags=DEV)
        client.delete_model(ModelName=other)

    def test_an_explicit_deny_wins(self, roles: Roles) -> None:
        deny = {"Effect": "Deny", "Action": "sagemaker:ListModels", "Resource": "*"}
        _, message = denied(lambda: roles.client("sagemaker", allow("sagemaker:*"), deny).list_models())
        assert message.endswith("with an explicit deny in an identity-based policy")

    def test_a_permissions_boundary_bounds_a_role(self, roles: Roles) -> None:
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow("s3:*")]})
        name = f"bound-{time.time_ns()}"
        bound = boto3.client("iam").create_policy(PolicyName=name, PolicyDocument=policy)["Policy"]["Arn"]
        _, message = denied(lambda: roles.client("sagemaker", allow("*"), boundary=bound).list_models())
        assert message.endswith("because no permissions boundary allows the sagemaker:ListModels action")

    def test_a_session_policy_bounds_a_session(self, roles: Roles) -> None:
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow("s3:*")]})
        _, message = denied(lambda: roles.client("sagemaker", allow("*"), policy=policy).list_models())
        assert message.endswith("because no session policy allows the sagemaker:ListModels action")

    def test_a_role_is_passed_by_who_may_pass_it(self, roles: Roles) -> None:
        passed = roles.role(services=("sagemaker.amazonaws.com",))
        container = {"Image": "r/djl-inference:0.36.0-lmi27", "Environment": {"HF_MODEL_ID": "m"}}
        request = {"ModelName": f"passed-{time.time_ns()}", "ExecutionRoleArn": passed, "PrimaryContainer": container}
        to_lambda = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
        to_sagemaker = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
        create = allow("sagemaker:CreateModel")
        for statements in ((create,), (create, allow("iam:PassRole", Condition=to_lambda))):
            _, message = denied(lambda: roles.client("sagemaker", *statements).create_model(**request))  # noqa: B023 (called at once)
            assert f"is not authorized to perform: iam:PassRole on resource: {passed}" in message
        roles.client("sagemaker", create, allow("iam:PassRole", Condition=to_sagemaker)).create_model(**request)

    def test_alarms_are_described_by_their_names(self, roles: Roles) -> None:
        mine = f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:seatrial-dev-*"
        client = roles.client("cloudwatch", allow("cloudwatch:DescribeAlarms", resource=mine))
        client.describe_alarms(AlarmNames=["seatrial-dev-chat-errors"])
        for asked in ({"AlarmNames": ["seatrial-dev-chat-errors", "Chat-Errors"]}, {}):
            assert denied(lambda: client.describe_alarms(**asked))[0] in ("AccessDenied", "AccessDeniedException")  # noqa: B023 (called at once)

    def test_metrics_are_put_into_a_namespace(self, roles: Roles) -> None:
        within = {"StringEquals": {"cloudwatch:namespace": ["Seatrial"]}}
        client = roles.client("cloudwatch", allow("cloudwatch:PutMetricData", Condition=within))
        data = [{"MetricName": "Knee", "Value": 1.0}]
        client.put_metric_data(Namespace="Seatrial", MetricData=data)
        assert denied(lambda: client.put_metric_data(Namespace="Other", MetricData=data))[0].startswith("AccessDenied")

    def test_an_invocation_needs_the_right_to_its_component(self, host: str, chat: str, roles: Roles) -> None:
        body = json.dumps({"inputs": "hello", "parameters": {"max_new_tokens": 2}}).encode()
        asked = {"EndpointName": host, "InferenceComponentName": chat, "ContentType": "application/json", "Body": body}
        endpoint = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/{host}"
        alone = roles.client("sagemaker-runtime", allow("sagemaker:InvokeEndpoint", resource=endpoint))
        code, message = denied(lambda: alone.invoke_endpoint(**asked))
        assert (code, f"{COMPONENTS}/{chat}" in message) == ("AccessDeniedException", True)
        both = [allow("sagemaker:InvokeEndpoint", resource=each) for each in (endpoint, f"{COMPONENTS}/{chat}")]
        assert roles.client("sagemaker-runtime", *both).invoke_endpoint(**asked)["ContentType"] == "application/json"

    def test_a_parameter_of_a_wrong_type_is_no_way_round(self, roles: Roles) -> None:
        session = roles.session(roles.role(allow("sagemaker:DescribeEndpoint", resource=f"{COMPONENTS}/x")))
        client = session.client("sagemaker")
        client.meta.events.register(
            "before-call.sagemaker.DescribeEndpoint", lambda params, **_: params.update(body=b'{"EndpointName": 5}')
        )
        assert denied(lambda: client.describe_endpoint(EndpointName="any"))[0] == "AccessDeniedException"


CODE = """
import boto3
def handler(event, context):
    try:
        return {"models": len(boto3.client("sagemaker").list_models()["Models"])}
    except Exception as error:
        return {"error": str(error)}
"""


def new_function(role: str, code: str = CODE) -> str:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("index.py", code)
    name = f"asks-{time.time_ns()}"
    made = boto3.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.12",
        Role=role,
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
    )
    return made["FunctionArn"]


class TestServicesThatActWithARole:
    def test_a_function_may_what_its_role_may(self, roles: Roles) -> None:
        def answer(*statements: object) -> dict[str, Any]:
            function = new_function(roles.role(*statements, services=("lambda.amazonaws.com",)))
            answer: dict[str, Any] = json.loads(boto3.client("lambda").invoke(FunctionName=function)["Payload"].read())
            return answer

        assert "is not authorized to perform: sagemaker:ListModels" in answer()["error"]
        assert "models" in answer(allow("sagemaker:ListModels"))

    @pytest.mark.parametrize("allowed", [True, False])
    def test_a_workflow_invokes_what_its_role_may_invoke(self, roles: Roles, *, allowed: bool) -> None:
        function = new_function(roles.role(services=("lambda.amazonaws.com",)), "def handler(event, context): return 1")
        statements = [allow("lambda:InvokeFunction", resource=function)] if allowed else []
        role = roles.role(*statements, services=("states.amazonaws.com",))
        task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": function}}
        definition = json.dumps({"StartAt": "Ask", "States": {"Ask": {**task, "End": True}}})
        states: Any = boto3.client("stepfunctions")
        machine = states.create_state_machine(name=f"asks-{time.time_ns()}", definition=definition, roleArn=role)
        execution = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]

        def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = states.describe_execution(executionArn=execution)
            return found if found["status"] != "RUNNING" else None

        found = eventually(ended)
        assert found["status"] == ("SUCCEEDED" if allowed else "FAILED")
        assert allowed or "is not authorized to perform: lambda:InvokeFunction" in found["cause"]

    def test_an_object_under_a_key_needs_the_right_to_the_key(self, laptop: Laptop, roles: Roles) -> None:
        kms: Any = boto3.client("kms")
        key, bucket = kms.create_key()["KeyMetadata"]["Arn"], f"encrypted-{time.time_ns()}"
        default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
        laptop.s3.create_bucket(Bucket=bucket)
        laptop.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [default]})
        laptop.s3.put_object(Bucket=bucket, Key="a", Body=b"b")
        objects = allow("s3:GetObject", "s3:PutObject", resource=f"arn:aws:s3:::{bucket}/*")
        by_s3 = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}
        reader = roles.client("s3", objects, allow("kms:Decrypt", resource=key, Condition=by_s3))
        assert reader.get_object(Bucket=bucket, Key="a")["Body"].read() == b"b"
        assert denied(lambda: reader.put_object(Bucket=bucket, Key="c", Body=b"d"))[0] == "AccessDenied"
        assert denied(lambda: roles.client("s3", objects).get_object(Bucket=bucket, Key="a"))[0] == "AccessDenied"

    def test_a_key_of_a_stack_signs_for_whom_its_policy_names_and_shows_everyone_its_public_half(
        self, laptop: Laptop, roles: Roles
    ) -> None:
        """As the trial service's: the account administers it, and no policy of a role can allow signing."""
        signer, name = roles.role(services=("lambda.amazonaws.com",)), laptop.name("signing")
        account = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        administer = ("kms:Get*", "kms:Describe*", "kms:PutKeyPolicy", "kms:ScheduleKeyDeletion")
        policy = [allow(*administer, Principal=account)]
        policy.append(allow("kms:Sign", Principal={"AWS": signer}))
        key = {"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "KeyPolicy": {"Statement": policy}}
        resources = {"Key": {"Type": "AWS::KMS::Key", "Properties": {**key, "PendingWindowInDays": 30}}}
        outputs = {"Arn": {"Value": {"Fn::GetAtt": ["Key", "Arn"]}}}
        stacks: Any = boto3.client("cloudformation")
        stacks.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources, "Outputs": outputs}))
        stacks.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
        (output,) = stacks.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        arn, message = output["OutputValue"], sha256(b"a result").digest()
        signed = {"KeyId": arn, "MessageType": "DIGEST", "Message": message, "SigningAlgorithm": "ECDSA_SHA_256"}
        signature = roles.session(signer).client("kms").sign(**signed)["Signature"]
        reader = roles.client("kms", allow("kms:*", resource=arn))
        public = serialization.load_der_public_key(reader.get_public_key(KeyId=arn)["PublicKey"])
        assert isinstance(public, ec.EllipticCurvePublicKey)
        public.verify(signature, b"a result", ec.ECDSA(hashes.SHA256()))
        assert denied(lambda: reader.sign(**signed))[0] == "AccessDeniedException"

    def test_a_bucket_that_refuses_plain_http_answers_as_by_tls(self, laptop: Laptop) -> None:
        name = f"tls-{time.time_ns()}"
        plain = {"Bool": {"aws:SecureTransport": "false"}}
        deny = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": f"arn:aws:s3:::{name}/*",
            "Condition": plain,
        }
        laptop.s3.create_bucket(Bucket=name)
        laptop.s3.put_bucket_policy(Bucket=name, Policy=json.dumps({"Statement": [deny]}))
        laptop.s3.put_object(Bucket=name, Key="a", Body=b"b")
