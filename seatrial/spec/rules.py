"""Every rule's ID and title: the table behind error messages and the reference page.

SEA1xx the spec, SEA2xx the plan, SEA3xx the serving configuration, SEA4xx lock and synth, SEA5xx the trial,
SEA6xx the laptop.
"""

from __future__ import annotations

from types import MappingProxyType

RULES = MappingProxyType(
    {
        "SEA101": "a file is missing, or can't be read or written",
        "SEA102": "the text is not YAML",
        "SEA103": "a key is written twice",
        "SEA104": "the field is unknown",
        "SEA105": "the value has the wrong type",
        "SEA106": "a required field is missing",
        "SEA107": "the value is outside its bounds",
        "SEA108": "two fields contradict each other",
        "SEA109": "the environment is unknown",
        "SEA110": "the instance type is not in the catalog",
        "SEA111": "a guard rail of the environment is broken",
        "SEA112": "the licence of the model has not been accepted",
        "SEA113": "a secret stands in plain text",
        "SEA201": "the architecture of the model is unknown",
        "SEA202": "the model fits on no allowed instance type",
        "SEA203": "the weights do not fit on the chosen accelerators",
        "SEA204": "the tensor parallel degree does not fit the model or the instance",
        "SEA205": "no deployment is predicted to meet the SLO",
        "SEA206": "no deployment is within the budget",
        "SEA207": "the price of an instance type is unknown",
        "SEA208": "the context is too short for the workload",
        "SEA209": "the architecture can't be planned yet",
        "SEA210": "the accelerator's specifications are unknown",
        "SEA301": "a serving template can't be filled",
        "SEA302": "a limit on the container environment is broken",
        "SEA303": "no image is known for the engine, version and region",
        "SEA304": "an extra option contradicts what the plan decides",
        "SEA305": "the model source can't be served this way",
        "SEA306": "an extra option would be dropped without an error",
        "SEA401": "there is no lock for this endpoint and environment",
        "SEA402": "the lock does not match its spec",
        "SEA403": "the lock can't be read or written",
        "SEA404": "there is nothing to synthesize",
        "SEA501": "the trial request is malformed",
        "SEA502": "the live endpoint is not this deployment's",
        "SEA503": "there are no AWS credentials, or they are refused",
        "SEA504": "AWS or the endpoint can't be reached",
        "SEA505": "the trial's budget is longer than one Lambda function may run",
        "SEA506": "the report can't be written",
        "SEA507": "the trial ended with an error",
        "SEA601": "the embedded AWS did not start",
        "SEA602": "the embedded AWS is not running",
        "SEA603": "the laptop's dependencies are not installed",
        "SEA604": "the port is in use",
        "SEA605": "a container refuses its configuration",
        "SEA606": "a step of the demo did not happen as told",
    }
)
