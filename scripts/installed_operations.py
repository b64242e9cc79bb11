"""Checks that the installed botocore has every operation that we call: `python scripts/installed_operations.py`."""

from __future__ import annotations

import sys

import botocore
import botocore.session

OPERATIONS = {
    "application-autoscaling": ("describe_scalable_targets", "describe_scaling_policies", "register_scalable_target"),
    "cloudformation": ("describe_stacks", "get_template"),
    "cloudwatch": ("describe_alarms", "get_metric_data"),
    "events": ("put_events",),
    "kms": ("describe_key",),
    "lambda": ("get_account_settings",),
    "pricing": ("get_products",),
    "resourcegroupstaggingapi": ("get_resources",),
    "s3": ("create_multipart_upload", "get_object", "put_object"),
    "sagemaker": (
        "create_inference_component",
        "describe_endpoint",
        "describe_endpoint_config",
        "describe_inference_component",
        "describe_model",
        "list_inference_components",
        "update_inference_component_runtime_config",
    ),
    "sagemaker-runtime": ("invoke_endpoint", "invoke_endpoint_with_response_stream"),
    "savingsplans": ("describe_savings_plans_offering_rates",),
    "service-quotas": ("list_service_quotas",),
    "servicecatalog": ("list_provisioning_artifacts", "update_provisioning_artifact"),
    "ssm": ("get_parameter",),
    "stepfunctions": ("describe_execution", "start_execution"),
}

REGION = "us-east-1"


def main() -> None:
    """Tell what is missing, and exit with 1 then."""
    session = botocore.session.Session()
    session.set_credentials("none", "none")
    missing = [
        f"{service}.{operation}"
        for service, operations in OPERATIONS.items()
        for operation in operations
        if not hasattr(session.create_client(service, REGION), operation)
    ]
    parameters = (
        session.create_client("sagemaker-runtime", REGION)
        .meta.service_model.operation_model("InvokeEndpoint")
        .input_shape
    )
    if parameters is None or "InferenceComponentName" not in parameters.members:
        missing.append("InferenceComponentName of sagemaker-runtime.invoke_endpoint")
    if missing:
        sys.exit(f"botocore {botocore.__version__} has no {', '.join(missing)}")
    print(f"botocore {botocore.__version__} has every operation")


if __name__ == "__main__":
    main()
