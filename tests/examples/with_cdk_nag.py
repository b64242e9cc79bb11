"""Runs the `app.py` of the working directory as it is, with cdk-nag's AwsSolutions pack added: a finding fails it.

The CDK's own check of templates is left out: it takes longer than the synthesis, and cfn-lint looks at them too.
"""

from __future__ import annotations

import runpy
import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

plain = App.__init__


def checked(app: App, **props: object) -> None:
    """Make the app with the pack."""
    plain(app, **props, builtin_cloud_formation_validation=False)  # type: ignore[arg-type]  # what the example gives
    Validations.of(app).add_plugins(AwsSolutionsChecks())


sys.path.insert(0, ".")
App.__init__ = checked  # type: ignore[assignment, method-assign]
runpy.run_path("app.py", run_name="__main__")
