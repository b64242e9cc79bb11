"""The types of AWS::ServiceCatalog that a portfolio of products is made of.

The physical ID of an association joins its parts with `|`, as `Ref` does; that of the others is their ID.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.service_catalog.catalog import Artifact, Constraint, Product, invalid_parameters, new_id
from seatrial_laptop.aws.service_catalog.stacks import read_product_template

if TYPE_CHECKING:
    from seatrial_laptop.aws.json_document import Handlers
    from seatrial_laptop.aws.service_catalog.catalog import Catalog

PREFIX: Final = "AWS::ServiceCatalog::"
CONSTRAINTS: Final = {
    f"{PREFIX}LaunchRoleConstraint": "LAUNCH",
    f"{PREFIX}LaunchTemplateConstraint": "TEMPLATE",
    f"{PREFIX}ResourceUpdateConstraint": "RESOURCE_UPDATE",
}
Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""


def service_catalog_types(catalog: Catalog) -> dict[str, Handlers]:
    """Return MiniStack's tables of the types."""
    portfolio, product = PortfolioType(catalog), ProductType(catalog)
    offered, principal = AssociationType(catalog, "ProductId"), AssociationType(catalog, "PrincipalARN")
    each: dict[str, PortfolioType | ProductType | AssociationType | ConstraintType] = {
        f"{PREFIX}Portfolio": portfolio,
        f"{PREFIX}CloudFormationProduct": product,
        f"{PREFIX}PortfolioProductAssociation": offered,
        f"{PREFIX}PortfolioPrincipalAssociation": principal,
        **{name: ConstraintType(catalog, kind) for name, kind in CONSTRAINTS.items()},
    }
    return {
        name: {"create": handler.create, "update": handler.update, "delete": handler.delete}
        for name, handler in each.items()
    }


@dataclass(frozen=True, slots=True)
class PortfolioType:
    """A portfolio; every property can be updated."""

    catalog: Catalog

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the portfolio."""
        return self._keep(new_id("port"), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the portfolio."""
        return self._keep(physical_id, new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the portfolio.

        Raises:
            ApiError: ResourceInUseException, something is still associated with it.
        """
        with self.catalog.lock:
            if any(physical_id == portfolio for portfolio, _ in self.catalog.offered | self.catalog.principals):
                raise ApiError("ResourceInUseException", f"Portfolio {physical_id} has associations.")
            self.catalog.portfolios.pop(physical_id, None)

    def _keep(self, portfolio_id: str, properties: Document) -> Created:
        with self.catalog.lock:
            self.catalog.portfolios[portfolio_id] = properties
        return portfolio_id, {"PortfolioName": text_member(properties, "DisplayName")}


@dataclass(frozen=True, slots=True)
class ProductType:
    """A product; an update matches versions by name and template and leaves those that match alone."""

    catalog: Catalog

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the product with its versions.

        Raises:
            ApiError: InvalidParametersException, a template isn't there.
        """
        return self._keep(Product(product_id=new_id("prod"), properties=properties, artifacts=[]), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the product: versions that are new are added, those that are gone are removed.

        Raises:
            ApiError: InvalidParametersException, a template isn't there.
        """
        return self._keep(self.catalog.products[physical_id], new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the product; what was provisioned of it stays.

        Raises:
            ApiError: ResourceInUseException, a portfolio still offers it.
        """
        with self.catalog.lock:
            if any(physical_id == product for _, product in self.catalog.offered):
                raise ApiError("ResourceInUseException", f"Product {physical_id} is associated with a portfolio.")
            self.catalog.products.pop(physical_id, None)

    def _keep(self, product: Product, properties: Document) -> Created:
        known = {(each.name, each.url): each for each in product.artifacts}
        artifacts = []
        for each in children(properties, "ProvisioningArtifactParameters"):
            name, url = text_member(each, "Name"), text_member(child(each, "Info"), "LoadTemplateFromURL")
            artifacts.append(known.get((name, url)) or _artifact(name, url, each))
        if not artifacts:
            raise invalid_parameters("A product needs a provisioning artifact.")
        with self.catalog.lock:
            product.properties, product.artifacts = properties, artifacts
            self.catalog.products[product.product_id] = product
        return product.product_id, {
            "ProductName": product.name,
            "ProvisioningArtifactIds": ",".join(each.artifact_id for each in artifacts),
            "ProvisioningArtifactNames": ",".join(each.name for each in artifacts),
        }


def _artifact(name: str, url: str, properties: Document) -> Artifact:
    return Artifact(
        name=name, description=text_member(properties, "Description"), url=url, template=read_product_template(url)
    )


@dataclass(frozen=True, slots=True)
class AssociationType:
    """A product, or a principal, of a portfolio; every change replaces it."""

    catalog: Catalog
    member: str

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Associate."""
        pair = text_member(properties, "PortfolioId"), text_member(properties, self.member)
        with self.catalog.lock:
            self._pairs().add(pair)
        return "|".join(pair), {}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Associate anew; another physical ID lets the engine remove this one."""
        return self.create("", new, stack)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Disassociate; what is gone already is fine."""
        portfolio, _, member = physical_id.partition("|")
        with self.catalog.lock:
            self._pairs().discard((portfolio, member))

    def _pairs(self) -> set[tuple[str, str]]:
        return self.catalog.offered if self.member == "ProductId" else self.catalog.principals


@dataclass(frozen=True, slots=True)
class ConstraintType:
    """A constraint of a product in a portfolio."""

    catalog: Catalog
    kind: str

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the constraint.

        Raises:
            ApiError: ResourceNotFoundException, the portfolio does not offer the product.
        """
        return self._keep(new_id("cons"), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the constraint."""
        return self._keep(physical_id, new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the constraint; one that is gone already is fine."""
        with self.catalog.lock:
            self.catalog.constraints.pop(physical_id, None)

    def _keep(self, constraint_id: str, properties: Document) -> Created:
        portfolio, product = text_member(properties, "PortfolioId"), text_member(properties, "ProductId")
        with self.catalog.lock:
            if (portfolio, product) not in self.catalog.offered:
                raise ApiError("ResourceNotFoundException", f"Portfolio {portfolio} does not offer {product}.")
            self.catalog.constraints[constraint_id] = Constraint(
                kind=self.kind, portfolio_id=portfolio, product_id=product, properties=properties
            )
        return constraint_id, {}
