"""A stack with an asynchronous endpoint of two variants, its scaling and its schedule, on the embedded AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
HOUR = "cron(0 0 * * ? *)"


def resource(kind: str, *, after: str = "", **properties: object) -> dict[str, object]:
    return {"Type": f"AWS::{kind}", "Properties": properties, **({"DependsOn": after} if after else {})}


def name_of(of: str) -> dict[str, object]:
    return {"Fn::GetAtt": [of, f"{of}Name"]}


def template(bucket: str, topic: str, *, nights: int = 0) -> str:
    variants = [
        {
            "VariantName": name,
            "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
            "InitialInstanceCount": "1",
            "InitialVariantWeight": weight,
            "InstancePools": [{"InstanceType": "ml.g6e.12xlarge", "Priority": "1"}],
            "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
        }
        for name, weight in (("a", "0.5"), ("b", "0.5"))
    ]
    output = {"S3OutputPath": f"s3://{bucket}/out", "S3FailurePath": f"s3://{bucket}/failed"}
    notify = {"NotificationConfig": {"SuccessTopic": topic, "ErrorTopic": topic}}
    place = {"Fn::Sub": ["endpoint/${Name}/variant/a", {"Name": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}}]}
    steps = [{"MetricIntervalLowerBound": "0", "ScalingAdjustment": "1"}]
    actions = [
        {
            "ScheduledActionName": "night",
            "Schedule": HOUR,
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": str(nights), "MaxCapacity": "2"},
        }
    ]
    resources = {
        "Model": resource(
            "SageMaker::Model",
            ExecutionRoleArn=ROLE,
            PrimaryContainer={"Image": LMI, "Environment": {"HF_MODEL_ID": "org/model"}},
        ),
        "EndpointConfig": resource(
            "SageMaker::EndpointConfig",
            ProductionVariants=variants,
            AsyncInferenceConfig={
                "OutputConfig": {**output, **notify},
                "ClientConfig": {"MaxConcurrentInvocationsPerInstance": "2"},
            },
            DataCaptureConfig={
                "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
                "DestinationS3Uri": f"s3://{bucket}/captured",
                "InitialSamplingPercentage": "100",
            },
            MetricsConfig={"EnableEnhancedMetrics": "true", "MetricPublishFrequencyInSeconds": "60"},
        ),
        "Endpoint": resource("SageMaker::Endpoint", EndpointConfigName=name_of("EndpointConfig")),
        "Target": resource(
            "ApplicationAutoScaling::ScalableTarget",
            MinCapacity="0",
            MaxCapacity="2",
            ResourceId=place,
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            ServiceNamespace="sagemaker",
            ScheduledActions=actions,
        ),
        "Policy": resource(
            "ApplicationAutoScaling::ScalingPolicy",
            PolicyName="wake",
            PolicyType="StepScaling",
            ScalingTargetId={"Ref": "Target"},
            StepScalingPolicyConfiguration={
                "AdjustmentType": "ChangeInCapacity",
                "Cooldown": "60",
                "StepAdjustments": steps,
            },
        ),
        "Alarm": resource(
            "CloudWatch::Alarm",
            Namespace="AWS/SageMaker",
            MetricName="HasBacklogWithoutCapacity",
            Dimensions=[{"Name": "EndpointName", "Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}}],
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            AlarmActions=[{"Ref": "Policy"}],
        ),
    }
    return json.dumps({"Resources": resources, "Outputs": {"Name": {"Value": name_of("Endpoint")}}})


def read(laptop: Laptop, url: str) -> bytes | None:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    try:
        found: bytes = laptop.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError:
        return None
    return found


def notified(queue: str) -> Any:  # noqa: ANN401 (JSON)
    sqs: Any = boto3.client("sqs")
    found = sqs.receive_message(QueueUrl=queue).get("Messages", [])
    return json.loads(json.loads(found[0]["Body"])["Message"]) if found else None


@pytest.fixture
def inbox(laptop: Laptop) -> tuple[str, str]:
    """Return a topic and a queue that gets its messages."""
    sns: Any = boto3.client("sns")
    sqs: Any = boto3.client("sqs")
    name = laptop.name("notices")
    topic = sns.create_topic(Name=name)["TopicArn"]
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    delivery = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = json.dumps({"Statement": {**delivery, "Resource": arn}})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return topic, queue


def test_an_asynchronous_endpoint_lives_in_a_stack_from_creation_to_deletion(
    laptop: Laptop, control: Callable[..., dict[str, object]], inbox: tuple[str, str]
) -> None:
    (topic, queue), bucket, stack = inbox, laptop.name("async"), laptop.name("async-stack")
    laptop.s3.create_bucket(Bucket=bucket)
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template(bucket, topic))
    laptop.stack_settled(stack)
    created = laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    assert created["StackStatus"] == "CREATE_COMPLETE"
    name = created["Outputs"][0]["OutputValue"]
    told = laptop.sagemaker.describe_endpoint(EndpointName=name)
    assert told["AsyncInferenceConfig"]["ClientConfig"] == {"MaxConcurrentInvocationsPerInstance": 2}
    assert [each["CurrentWeight"] for each in told["ProductionVariants"]] == [0.5, 0.5]

    body = json.dumps({"inputs": "hi", "parameters": {"max_new_tokens": 2}}).encode()
    laptop.s3.put_object(Bucket=bucket, Key="in/1.json", Body=body)
    asked = laptop.runtime.invoke_endpoint_async(
        EndpointName=name, InputLocation=f"s3://{bucket}/in/1.json", ContentType="application/json", InferenceId="one"
    )
    assert asked["ResponseMetadata"]["HTTPStatusCode"] == 202
    assert "generated_text" in json.loads(until(lambda: read(laptop, asked["OutputLocation"]), "the answer"))
    message = until(lambda: notified(queue), "the notification")
    assert (message["invocationStatus"], message["inferenceId"]) == ("Completed", "one")
    with pytest.raises(ClientError, match="is asynchronous: use InvokeEndpointAsync"):
        laptop.runtime.invoke_endpoint(EndpointName=name, Body=body)

    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=template(bucket, topic, nights=1))
    assert laptop.stack_settled(stack) == "UPDATE_COMPLETE"
    scaling: Any = boto3.client("application-autoscaling")
    place = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{name}/variant/a"}
    (action,) = scaling.describe_scheduled_actions(**place)["ScheduledActions"]
    assert (action["Schedule"], action["ScalableTargetAction"]["MinCapacity"]) == (HOUR, 1)

    sleep = [{"VariantName": each, "DesiredInstanceCount": 0} for each in "ab"]
    laptop.sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=sleep)
    laptop.endpoint_settled(name)
    laptop.runtime.invoke_endpoint_async(
        EndpointName=name, Body=body, ContentType="application/json", InferenceId="two"
    )
    control(clock_speed=60)
    assert until(lambda: notified(queue), "the second notification")["inferenceId"] == "two"
    activities = scaling.describe_scaling_activities(**place)["ScalingActivities"]
    assert activities[-1]["Description"] == "Setting desired instance count to 1."
    assert "triggered policy wake" in activities[-1]["Cause"]

    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"
    assert scaling.describe_scheduled_actions(**place)["ScheduledActions"] == []
