"""Two models on the instances of one endpoint: each has a role, a component and a metric of its own."""

from seatrial_cdk import plain_errors

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.34.0-lmi16.0.0-cu128"

with plain_errors():
    from aws_cdk import App, Environment, Stack

    from seatrial_cdk import (
        AddedComponent,
        ComponentCopies,
        HostingChecks,
        LlmEndpoint,
        ServingContainer,
        VariantInstances,
    )

    app = App()
    stack = Stack(app, "Shared", env=Environment(region="us-east-1"))
    shared = LlmEndpoint(
        stack,
        "Endpoint",
        endpoint_name="shared",
        instances=VariantInstances(instance_type="ml.g5.12xlarge", max_count=2),
        container=ServingContainer(image=IMAGE, environment={"HF_MODEL_ID": "Qwen/Qwen2.5-7B-Instruct"}),
        copies=ComponentCopies(accelerators=2, memory_min_mb=32_768),
    )
    AddedComponent(
        stack,
        "Summaries",
        endpoint=shared,
        name="summaries",
        container=ServingContainer(image=IMAGE, environment={"HF_MODEL_ID": "Qwen/Qwen2.5-3B-Instruct"}),
        copies=ComponentCopies(accelerators=1, memory_min_mb=16_384),
    )
    HostingChecks.add_to(app)
    app.synth()
