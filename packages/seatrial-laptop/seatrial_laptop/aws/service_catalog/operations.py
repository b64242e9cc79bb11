"""The operations of the Service Catalog API: those of who launches products, and few of who offers them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError, absent, check_api_request, service_model
from seatrial_laptop.aws.json_document import Document, children, text_member, text_members
from seatrial_laptop.aws.service_catalog.catalog import (
    SERVICE,
    CatalogRecord,
    Provisioned,
    delete,
    deploy,
    invalid_parameters,
    not_found,
    root_arn,
    settle_record,
)
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.service_catalog.catalog import Artifact, Catalog, Product


def call_service_catalog(catalog: Catalog, operation: str, request: Document, principal: str) -> Document:
    """Do one operation of the Service Catalog API.

    Raises:
        ApiError: The request isn't valid, or the embedded AWS has no such operation.
    """
    if operation not in service_model(SERVICE).operation_names or operation not in OPERATIONS:
        raise absent(operation)
    check_api_request(SERVICE, operation, request)
    with catalog.lock:
        return OPERATIONS[operation](catalog, principal, request)


def _search_products(catalog: Catalog, principal: str, request: Document) -> Document:
    wanted = [word.lower() for word in text_members(_filters(request), "FullTextSearch")]
    products = [
        product
        for product in catalog.products.values()
        if catalog.portfolios_of(principal, product.product_id) and all(word in product.name.lower() for word in wanted)
    ]
    return {"ProductViewSummaries": [product.summary() for product in products], "ProductViewAggregations": {}}


def _filters(request: Document) -> Document:
    filters = request.get("Filters")
    return filters if isinstance(filters, dict) else {}


def _search_as_admin(catalog: Catalog, principal: str, request: Document) -> Document:
    _admin(principal)
    portfolio = text_member(request, "PortfolioId")
    products = [
        product
        for product in catalog.products.values()
        if not portfolio or (portfolio, product.product_id) in catalog.offered
    ]
    details = [
        {
            "ProductViewSummary": product.summary(),
            "Status": "AVAILABLE",
            "ProductARN": f"arn:aws:catalog:{REGION}:{own_account()}:product/{product.product_id}",
            "CreatedTime": product.created_s,
        }
        for product in products
    ]
    return {"ProductViewDetails": details}


def _describe_product(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("Id", "Name"))
    return {
        "ProductViewSummary": product.summary(),
        "ProvisioningArtifacts": [artifact.view() for artifact in product.artifacts],
        "BudgetDetails": [],
        "LaunchPaths": [
            {"Id": portfolio, "Name": str(catalog.portfolios[portfolio]["DisplayName"])}
            for portfolio in catalog.portfolios_of(principal, product.product_id)
        ],
    }


def _list_artifacts(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    details = [
        {**artifact.view(), "Type": "CLOUD_FORMATION_TEMPLATE", "Active": True} for artifact in product.artifacts
    ]
    return {"ProvisioningArtifactDetails": details}


def _update_artifact(catalog: Catalog, principal: str, request: Document) -> Document:
    _admin(principal)
    product = _requested_product(catalog, principal, request, ("ProductId",))
    artifact = _artifact(product, request, ("ProvisioningArtifactId",))
    artifact.guidance = text_member(request, "Guidance", artifact.guidance)
    detail = {**artifact.view(), "Type": "CLOUD_FORMATION_TEMPLATE", "Active": True}
    return {"ProvisioningArtifactDetail": detail, "Info": {}, "Status": "AVAILABLE"}


def _launch_paths(catalog: Catalog, principal: str, request: Document) -> Document:
    product = catalog.product_for(principal, text_member(request, "ProductId"))
    return {
        "LaunchPathSummaries": [
            {
                "Id": portfolio,
                "Name": str(catalog.portfolios[portfolio]["DisplayName"]),
                "ConstraintSummaries": [
                    {"Type": constraint.kind}
                    for constraint in catalog.constraints.values()
                    if (constraint.portfolio_id, constraint.product_id) == (portfolio, product.product_id)
                ],
                "Tags": [],
            }
            for portfolio in catalog.portfolios_of(principal, product.product_id)
        ]
    }


def _provisioning_parameters(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    artifact = _artifact(product, request, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    declared: dict[str, dict[str, object]] = json.loads(artifact.template).get("Parameters", {})
    described = []
    for key, each in declared.items():
        values = each.get("AllowedValues")
        constraints = {
            "AllowedPattern": each.get("AllowedPattern"),
            "ConstraintDescription": each.get("ConstraintDescription"),
            "MaxLength": _written(each.get("MaxLength")),
            "MinLength": _written(each.get("MinLength")),
            "AllowedValues": ([str(value) for value in values] if isinstance(values, list) else None),
        }
        described.append(
            {
                "ParameterKey": key,
                "ParameterType": str(each.get("Type", "String")),
                "IsNoEcho": bool(each.get("NoEcho", False)),
                "Description": str(each.get("Description", "")),
                **({"DefaultValue": str(each["Default"])} if "Default" in each else {}),
                "ParameterConstraints": {name: value for name, value in constraints.items() if value is not None},
            }
        )
    return {
        "ProvisioningArtifactParameters": described,
        "ConstraintSummaries": [],
        "UsageInstructions": [],
        "TagOptions": [],
    }


def _written(value: object) -> str | None:
    return None if value is None else str(value)


def _provision(catalog: Catalog, principal: str, request: Document) -> Document:
    token = text_member(request, "ProvisionToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    artifact = _artifact(product, request, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    if artifact.guidance == "DEPRECATED":
        raise invalid_parameters(
            f"Provisioning artifact {artifact.artifact_id} is deprecated and can't be provisioned."
        )
    paths = catalog.portfolios_of(principal, product.product_id)
    path = text_member(request, "PathId") or next(iter(paths))
    if path not in paths:
        raise not_found(f"Launch path {path}")
    name = text_member(request, "ProvisionedProductName")
    if any(each.name == name for each in catalog.provisioned.values()):
        raise invalid_parameters(f"A stack named {name} already exists.")
    new = Provisioned(
        name=name,
        product_id=product.product_id,
        artifact_id=artifact.artifact_id,
        portfolio_id=path,
        principal=principal,
        tags=[*children(request, "Tags")],
    )
    parameters = {
        text_member(parameter, "Key"): text_member(parameter, "Value")
        for parameter in children(request, "ProvisioningParameters")
    }
    new.stack_id = deploy(catalog, new, artifact, parameters)
    catalog.provisioned[new.provisioned_id] = new
    return _started(catalog, new, "PROVISION_PRODUCT", artifact.artifact_id, token=token, parameters=parameters)


def _update(catalog: Catalog, principal: str, request: Document) -> Document:
    token = text_member(request, "UpdateToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    given = catalog.provisioned_for(principal, request)
    _check_idle(given)
    product = catalog.product_for(principal, given.product_id)
    named = any(key in request for key in ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    wanted = request if named else {"ProvisioningArtifactId": given.artifact_id}
    artifact = _artifact(product, wanted, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    tags = catalog.constraint("RESOURCE_UPDATE", given.portfolio_id, given.product_id)
    if "Tags" in request and tags and tags.properties.get("TagUpdateOnProvisionedProduct") == "NOT_ALLOWED":
        raise invalid_parameters("Updating the tags of the provisioned product is not allowed.")
    parameters = dict(given.parameters)
    for parameter in children(request, "ProvisioningParameters"):
        if not parameter.get("UsePreviousValue"):
            parameters[text_member(parameter, "Key")] = text_member(parameter, "Value")
    stack_id = deploy(catalog, given, artifact, parameters)
    document = _started(
        catalog, given, "UPDATE_PROVISIONED_PRODUCT", artifact.artifact_id, token=token, parameters=parameters
    )
    if not stack_id and given.last is not None:
        given.parameters = parameters
        given.last.status, given.status, given.artifact_id = "SUCCEEDED", "AVAILABLE", artifact.artifact_id
        return _record_document(catalog, given.last)
    return document


def _terminate(catalog: Catalog, principal: str, request: Document) -> Document:
    if request.get("RetainPhysicalResources"):
        raise absent("RetainPhysicalResources")
    token = text_member(request, "TerminateToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    given = catalog.provisioned_for(principal, request)
    _check_idle(given)
    delete(given)
    return _started(
        catalog, given, "TERMINATE_PROVISIONED_PRODUCT", given.artifact_id, token=token, parameters=given.parameters
    )


def _describe_provisioned(catalog: Catalog, principal: str, request: Document) -> Document:
    given = catalog.provisioned_for(principal, request)
    if given.last is not None:
        _settle(catalog, given.last)
    if given.provisioned_id not in catalog.provisioned:
        raise not_found(f"Provisioned product {given.name}")
    last = {} if given.last is None else {"LastRecordId": given.last.record_id}
    return {
        "ProvisionedProductDetail": {
            "Name": given.name,
            "Arn": given.arn,
            "Type": "CFN_STACK",
            "Id": given.provisioned_id,
            "Status": given.status,
            "StatusMessage": given.message,
            "CreatedTime": given.created_s,
            "ProductId": given.product_id,
            "ProvisioningArtifactId": given.artifact_id,
            **last,
        },
        "CloudWatchDashboards": [],
    }


def _describe_record(catalog: Catalog, principal: str, request: Document) -> Document:
    record = catalog.records.get(text_member(request, "Id"))
    given = None if record is None else catalog.provisioned.get(record.provisioned_id)
    if record is None or (given is not None and principal not in (root_arn(), given.principal)):
        raise not_found(f"Record {text_member(request, 'Id')}")
    _settle(catalog, record)
    return {**_record_document(catalog, record), "RecordOutputs": record.outputs}


def _outputs(catalog: Catalog, principal: str, request: Document) -> Document:
    given = catalog.provisioned_for(principal, request)
    if given.last is None:
        return {"Outputs": []}
    _settle(catalog, given.last)
    return {"Outputs": given.last.outputs}


OPERATIONS: Final[dict[str, Callable[[Catalog, str, Document], Document]]] = {
    "SearchProducts": _search_products,
    "SearchProductsAsAdmin": _search_as_admin,
    "DescribeProduct": _describe_product,
    "ListProvisioningArtifacts": _list_artifacts,
    "UpdateProvisioningArtifact": _update_artifact,
    "ListLaunchPaths": _launch_paths,
    "DescribeProvisioningParameters": _provisioning_parameters,
    "ProvisionProduct": _provision,
    "UpdateProvisionedProduct": _update,
    "TerminateProvisionedProduct": _terminate,
    "DescribeProvisionedProduct": _describe_provisioned,
    "DescribeRecord": _describe_record,
    "GetProvisionedProductOutputs": _outputs,
}


def _admin(principal: str) -> None:
    if principal != root_arn():
        message = f"{principal} is not the root of the embedded AWS, which alone offers products by calls"
        raise ApiError("AccessDeniedException", message)


def _requested_product(catalog: Catalog, principal: str, request: Document, keys: tuple[str, ...]) -> Product:
    wanted = {text_member(request, key) for key in keys if key in request}
    for product in catalog.products.values():
        if wanted & {product.product_id, product.name}:
            return catalog.product_for(principal, product.product_id)
    raise not_found(f"Product {', '.join(sorted(wanted))}")


def _artifact(product: Product, request: Document, keys: tuple[str, ...]) -> Artifact:
    wanted = {text_member(request, key) for key in keys if key in request}
    for artifact in product.artifacts:
        if wanted & {artifact.artifact_id, artifact.name}:
            return artifact
    raise not_found(f"Provisioning artifact {', '.join(sorted(wanted))}")


def _repeated(catalog: Catalog, token: str) -> CatalogRecord | None:
    return next((record for record in catalog.records.values() if token and record.token == token), None)


def _check_idle(provisioned: Provisioned) -> None:
    if provisioned.last is not None:
        settle_record(provisioned, provisioned.last)
    if provisioned.status == "UNDER_CHANGE":
        raise invalid_parameters(f"Provisioned product {provisioned.provisioned_id} is under change.")


def _started(
    catalog: Catalog, provisioned: Provisioned, kind: str, artifact_id: str, *, token: str, parameters: dict[str, str]
) -> Document:
    record = CatalogRecord(
        kind=kind,
        provisioned_id=provisioned.provisioned_id,
        stack_id=provisioned.stack_id,
        artifact_id=artifact_id,
        token=token,
        parameters=parameters,
    )
    catalog.records[record.record_id] = record
    provisioned.last, provisioned.status = record, "UNDER_CHANGE"
    return _record_document(catalog, record)


def _settle(catalog: Catalog, record: CatalogRecord) -> None:
    """Bring a record to what its stack is at; what was terminated is forgotten."""
    given = catalog.provisioned.get(record.provisioned_id)
    if given is None:
        return
    settle_record(given, record)
    if record.kind == "TERMINATE_PROVISIONED_PRODUCT" and record.status == "SUCCEEDED":
        del catalog.provisioned[record.provisioned_id]


def _record_document(catalog: Catalog, record: CatalogRecord) -> Document:
    given = catalog.provisioned.get(record.provisioned_id)
    known = {} if given is None else {"ProvisionedProductName": given.name, "ProductId": given.product_id}
    errors = [{"Code": "ResourceFailed", "Description": record.error}] if record.error else []
    return {
        "RecordDetail": {
            "RecordId": record.record_id,
            "Status": record.status,
            "RecordType": record.kind,
            "ProvisionedProductId": record.provisioned_id,
            "ProvisionedProductType": "CFN_STACK",
            "ProvisioningArtifactId": record.artifact_id,
            "CreatedTime": record.created_s,
            "UpdatedTime": record.updated_s,
            "RecordErrors": errors,
            "RecordTags": [],
            **known,
        }
    }
