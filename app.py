"""Synthesizes a stack for each endpoint and environment: `cdk ls`, or `cdk synth -c environment=dev -c endpoint=a`."""

import sys

from aws_cdk import App

from seatrial.errors import SeatrialError
from seatrial.printable import printable
from seatrial.secrets import redacted
from seatrial_cdk.hosting_checks import HostingChecks
from seatrial_stacks.app_stacks import define_stacks

try:
    define_stacks(app := App(analytics_reporting=False))
    HostingChecks.add_to(app)
    app.synth()
except SeatrialError as error:
    sys.stderr.write(f"{printable(redacted(str(error)))}\n")
    sys.exit(error.exit_code)
except RuntimeError as error:  # of the CDK, which has told every finding of the validation
    if not str(error).startswith("ValidationFailed"):
        raise
    sys.exit(f"{error}")
