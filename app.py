"""Synthesizes a stack for each endpoint and environment: `cdk ls`, or `cdk synth -c environment=dev -c endpoint=a`."""

from seatrial_cdk import plain_errors

with plain_errors():
    from aws_cdk import App

    from seatrial_cdk import HostingChecks
    from seatrial_stacks.app_stacks import define_stacks

    define_stacks(app := App(analytics_reporting=False))
    HostingChecks.add_to(app)
    app.synth()
