"""One endpoint of a spec, in a stack of one's own, with a role that may invoke it."""

from pathlib import Path

from seatrial_cdk import plain_errors

HERE = Path(__file__).parent

with plain_errors():
    from aws_cdk import App, Environment, Stack
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_sns as sns

    from seatrial_cdk import HostingChecks, LlmEndpoint

    app = App()
    stack = Stack(app, "Chat", env=Environment(region="us-east-1"))
    topic = sns.Topic(stack, "Alarms", enforce_ssl=True)
    environment = app.node.try_get_context("environment") or "dev"
    chat = LlmEndpoint.from_spec(stack, "Chat", HERE / "chat.yaml", environment=environment, alarm_topic=topic)
    chat.grant_invoke(iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    HostingChecks.add_to(app)
    app.synth()
