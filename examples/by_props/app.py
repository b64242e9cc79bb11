"""An endpoint by props alone: no YAML and no plan; VPC, key, topic and repository are the app's own."""

from seatrial_cdk import plain_errors

CIDR = "10.40.0.0/16"

with plain_errors():
    from aws_cdk import Acknowledgment, App, Environment, Stack, Validations
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_ecr as ecr
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sns as sns

    from seatrial.specs.endpoint import Percentiles, Slo
    from seatrial_cdk import (
        ComponentCopies,
        CopyScaling,
        EndpointAlarms,
        EndpointOutputs,
        HostingChecks,
        HostingVpcEndpoints,
        LlmEndpoint,
        ScalingLimits,
        ServingContainer,
        VariantInstances,
    )

    app = App()
    stack = Stack(app, "Support", env=Environment(region="us-east-1"))
    private = ec2.SubnetConfiguration(name="Private", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    addresses = ec2.IpAddresses.cidr(CIDR)
    vpc = ec2.Vpc(stack, "Vpc", ip_addresses=addresses, max_azs=2, nat_gateways=0, subnet_configuration=[private])
    reason = "The VPC has no route to the internet; a platform team adds flow logs where its rules ask for them."
    Validations.of(vpc).acknowledge(Acknowledgment(id="AwsSolutions::AwsSolutions-VPC7", reason=reason))
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    containers = ec2.SecurityGroup(stack, "Containers", vpc=vpc)
    interfaces = ec2.SecurityGroup(stack, "Interfaces", vpc=vpc, allow_all_outbound=False)
    interfaces.add_ingress_rule(ec2.Peer.ipv4(CIDR), ec2.Port.tcp(443), "HTTPS from the VPC")
    HostingVpcEndpoints(stack, "VpcEndpoints", vpc=vpc, vpc_subnets=isolated, security_groups=[interfaces])
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    topic = sns.Topic(stack, "Alarms", master_key=key, enforce_ssl=True)
    repository = ecr.Repository.from_repository_name(stack, "Repository", "djl-inference")

    support = LlmEndpoint(
        stack,
        "Support",
        endpoint_name="support",
        instances=VariantInstances(
            instance_type="ml.g5.2xlarge", max_count=3, inference_ami_version="al2-ami-sagemaker-inference-gpu-3-1"
        ),
        container=ServingContainer(
            image=repository.repository_uri_for_tag("0.34.0-lmi16.0.0-cu128"),
            image_repository=repository,
            environment={"HF_MODEL_ID": "/opt/ml/model", "OPTION_MAX_MODEL_LEN": "4096"},
            weights_s3_uri="s3://amzn-s3-demo-bucket/qwen2.5-7b/",
            accept_eula=True,
            network_isolation=True,
        ),
        copies=ComponentCopies(accelerators=1, memory_min_mb=16_384, max_copies=2),
        vpc=vpc,
        vpc_subnets=isolated,
        security_groups=[containers],
        weights_key=key,
    )
    slo = Slo(ttft_ms=Percentiles(p95=2000), tpot_ms=Percentiles(p95=100))
    EndpointAlarms(stack, "SupportAlarms", endpoint=support, slo=slo, output_tokens=256, topic=topic)
    limits = ScalingLimits(min_capacity=1, max_capacity=2)
    CopyScaling(stack, "SupportScaling", endpoint=support, limits=limits, target_concurrency_per_copy=8)
    names = {"EndpointName": support.endpoint_name, "InferenceComponentName": support.component_name}
    EndpointOutputs(stack, "SupportNames", values=names, parameters="/support/llm")

    older = LlmEndpoint.from_endpoint_name(stack, "Older", "support-2025")
    EndpointAlarms(stack, "OlderAlarms", endpoint=older, slo=slo, output_tokens=256, topic=topic)
    HostingChecks.add_to(app)
    app.synth()
