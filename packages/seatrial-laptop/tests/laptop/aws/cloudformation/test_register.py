from __future__ import annotations

import json
from typing import Any

import boto3

from seatrial_cdk.trials.runtime.scaling import NONE_SUSPENDED, AwsCopyScaling

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
REFUSED = (
    "InferenceComponent {} failed: The container ended with status 1 before it passed the ping health check. "
    "Its last lines:\noption.dtype: SEA605: 'bfloat16' is not one of auto, fp32, fp16, bf16, int8"
)


def resource(kind: str, **properties: object) -> dict[str, object]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def attribute(of: str, name: str) -> dict[str, object]:
    return {"Fn::GetAtt": [of, name]}


def template(component: str, *, dtype: str = "bf16", slots: int = 4, **variant: object) -> str:
    """Return an endpoint with one inference component and its scaling; numbers are strings, as templates have them."""
    environment = {"HF_MODEL_ID": "org/model", "OPTION_DTYPE": dtype, "OPTION_MAX_ROLLING_BATCH_SIZE": slots}
    batch = {"Type": "COPY_COUNT", "Value": "1"}
    requirements = {"NumberOfAcceleratorDevicesRequired": "1", "MinMemoryRequiredInMb": "1024"}
    main = {"VariantName": "main", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": "2", **variant}
    metric = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    resources = {
        "Model": resource(
            "SageMaker::Model", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": LMI, "Environment": environment}
        ),
        "Config": resource("SageMaker::EndpointConfig", ExecutionRoleArn=ROLE, ProductionVariants=[main]),
        "Endpoint": resource("SageMaker::Endpoint", EndpointConfigName=attribute("Config", "EndpointConfigName")),
        "Component": resource(
            "SageMaker::InferenceComponent",
            InferenceComponentName=component,
            EndpointName=attribute("Endpoint", "EndpointName"),
            VariantName="main",
            Specification={
                "ModelName": attribute("Model", "ModelName"),
                "ComputeResourceRequirements": requirements,
            },
            RuntimeConfig={"CopyCount": "1"},
            DeploymentConfig={"RollingUpdatePolicy": {"MaximumBatchSize": batch, "WaitIntervalInSeconds": "1"}},
        ),
        "Target": {
            "DependsOn": "Component",
            **resource(
                "ApplicationAutoScaling::ScalableTarget",
                MinCapacity="1",
                MaxCapacity="2",
                ResourceId=f"inference-component/{component}",
                ScalableDimension="sagemaker:inference-component:DesiredCopyCount",
                ServiceNamespace="sagemaker",
            ),
        },
        "Policy": resource(
            "ApplicationAutoScaling::ScalingPolicy",
            PolicyName="knee",
            PolicyType="TargetTrackingScaling",
            ScalingTargetId={"Ref": "Target"},
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": "5.5",
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
            },
        ),
    }
    outputs = {"Endpoint": {"Value": {"Ref": "Endpoint"}}, "Component": {"Value": {"Ref": "Component"}}}
    return json.dumps({"Resources": resources, "Outputs": outputs})


def failures(laptop: Laptop, stack: str) -> list[tuple[str, str]]:
    events = laptop.cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
    return [(event["LogicalResourceId"], event["ResourceStatusReason"]) for event in failed]


def of_stack(laptop: Laptop, stack: str) -> tuple[list[str], list[str]]:
    """Return the names of the stack's models and endpoint configurations."""
    models = laptop.sagemaker.list_models(NameContains=f"{stack}-")["Models"]
    configs = laptop.sagemaker.list_endpoint_configs(NameContains=f"{stack}-")["EndpointConfigs"]
    return [entry["ModelName"] for entry in models], [entry["EndpointConfigName"] for entry in configs]


def test_a_stack_lives_from_creation_over_update_and_rollback_to_deletion(laptop: Laptop) -> None:
    stack, component = laptop.name("stack"), laptop.name("cfn-component")
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template(component))
    laptop.stack_settled(stack)
    created = laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    arn = "arn:aws:sagemaker:us-east-1:000000000000"
    outputs = {output["OutputKey"]: output["OutputValue"] for output in created["Outputs"]}
    assert created["StackStatus"] == "CREATE_COMPLETE"
    assert outputs["Component"] == f"{arn}:inference-component/{component}"
    assert outputs["Endpoint"].startswith(f"{arn}:endpoint/{stack}-endpoint-")
    first_models, first_configs = of_stack(laptop, stack)
    (first_port,) = laptop.ports(component)

    scaling = AwsCopyScaling(boto3.client("application-autoscaling"))
    scaling.suspend(component, {"DynamicScalingInSuspended": True})
    bigger = template(component, slots=8, InstanceType="ml.g5.12xlarge")
    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=bigger)
    assert laptop.stack_settled(stack) == "UPDATE_COMPLETE"
    models, configs = of_stack(laptop, stack)
    assert (len(models), len(configs)) == (1, 1)
    assert (models != first_models, configs != first_configs) == (True, True)
    (port,) = laptop.ports(component)
    assert port != first_port
    assert scaling.suspended(component) == {**NONE_SUSPENDED, "DynamicScalingInSuspended": True}
    scaling.suspend(component, {})
    assert scaling.suspended(component) == NONE_SUSPENDED

    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=template(component, dtype="bfloat16"))
    assert laptop.stack_settled(stack) == "UPDATE_ROLLBACK_COMPLETE"
    assert failures(laptop, stack) == [("Component", REFUSED.format(component))]
    assert of_stack(laptop, stack) == (models, configs)
    assert laptop.ports(component) == (port,)

    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"
    assert of_stack(laptop, stack) == ([], [])
    assert laptop.ports(component) == ()
    assert scaling.suspended(component) is None


def test_a_failed_creation_tells_why_and_leaves_nothing(laptop: Laptop) -> None:
    stack, component = laptop.name("stack"), laptop.name("cfn-component")
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template(component, dtype="bfloat16"))
    assert laptop.stack_settled(stack) == "ROLLBACK_COMPLETE"
    assert failures(laptop, stack) == [("Component", REFUSED.format(component))]
    assert of_stack(laptop, stack) == ([], [])


def test_a_property_that_does_not_exist_is_refused(laptop: Laptop) -> None:
    stack = laptop.name("stack")
    body = json.dumps({"Resources": {"Model": resource("SageMaker::Model", ExecutionRole=ROLE)}})
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=body)
    laptop.stack_settled(stack)
    (told,) = failures(laptop, stack)
    assert told[1].splitlines() == [
        "Properties validation failed for resource Model with message:",
        "#: extraneous key [ExecutionRole] is not permitted",
    ]


def test_a_named_resource_is_not_replaced_under_its_name(laptop: Laptop) -> None:
    stack, name = laptop.name("stack"), laptop.name("named")

    def body(image: str) -> str:
        model = resource("SageMaker::Model", ModelName=name, PrimaryContainer={"Image": image})
        return json.dumps({"Resources": {"Model": model}})

    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=body("r/djl-inference:1"))
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=body("r/djl-inference:2"))
    laptop.stack_settled(stack)
    assert failures(laptop, stack) == [
        (
            "Model",
            "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
            f"Rename {name} and update the stack again.",
        )
    ]
    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"


def test_a_role_of_a_stack_has_its_permissions_boundary(laptop: Laptop) -> None:
    """MiniStack forgot it: a policy that asks for it refused every role of a stack, and no boundary bounded one."""
    iam, stack = boto3.client("iam"), laptop.name("bounded")
    allowed = {"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    policy = iam.create_policy(PolicyName=stack, PolicyDocument=document)["Policy"]["Arn"]
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}}
    trusted = {"Statement": [trust]}
    role = resource("IAM::Role", RoleName=stack, AssumeRolePolicyDocument=trusted, PermissionsBoundary=policy)
    body = json.dumps({"Resources": {"Role": role}})
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=body, Capabilities=["CAPABILITY_NAMED_IAM"])
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    assert iam.get_role(RoleName=stack)["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"] == policy


def test_an_alarm_by_promql_is_kept_and_has_no_data(laptop: Laptop) -> None:
    stack, name = laptop.name("promql"), laptop.name("cache")
    criteria = {"PromQLCriteria": {"Query": "up > 1", "PendingPeriod": 300, "RecoveryPeriod": 300}}
    alarm = resource("CloudWatch::Alarm", AlarmName=name, EvaluationCriteria=criteria, EvaluationInterval=60)
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps({"Resources": {"Alarm": alarm}}))
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    (told,) = boto3.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert (told["EvaluationCriteria"], told["StateValue"]) == (criteria, "INSUFFICIENT_DATA")
    assert "MetricName" not in told
