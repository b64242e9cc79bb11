"""Review of products: fields, sizes and versions that change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.deployment.product import load_product, size_deployment
from seatrial.deployment.published import (
    changed_version,
    forbidden_versions,
    kept_templates,
    publication_state,
    unpublished_version,
)
from seatrial.operations.review.changes import FieldChange, differing_fields, flat_fields
from seatrial.operations.review.side import PRODUCTS, EndpointPlace, EndpointState, affects_products, stale_plan
from seatrial.specs.yaml_source import read_source
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.deployment.product import LoadedProduct
    from seatrial.operations.review.review import EndpointReview, Selection
    from seatrial.operations.review.side import RepositorySide
    from seatrial_base.findings import Finding

_SHOWN_BY_SIZE = ("endpoint", "sizes")
ReviewSize: TypeAlias = "Callable[[EndpointPlace, EndpointState | None, EndpointState | None], EndpointReview]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductReview:
    """The changes of a product.

    Attributes:
        name: The product, by the name of its file.
        change: `new`: only the checkout has it; `removed`: only the base has it.
        fields: The fields of its file other than endpoint and sizes, and the published versions by environment.
        sizes: The changes of its sizes; the place names product and size.
        findings: Why the checkout can't offer it, or its current version is not that of the file.
    """

    name: str
    change: Literal["new", "removed", "changed"]
    fields: tuple[FieldChange, ...]
    sizes: tuple[EndpointReview, ...]
    findings: tuple[Finding, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return self.change == "changed" and not (self.fields or self.sizes or self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProductState:
    """A product on one side.

    Attributes:
        fields: As JSON, the fields of its file other than endpoint and sizes, and the published versions.
        loaded: The product; `None` when it is wrong.
        sizes: Each size in each environment.
        problems: What is wrong with it other than its locks.
    """

    fields: dict[str, str]
    loaded: LoadedProduct | None
    sizes: dict[EndpointPlace, EndpointState]
    problems: tuple[Finding, ...]


_NO_PRODUCT = _ProductState(fields={}, loaded=None, sizes={}, problems=())


def product_reviews(
    old: RepositorySide,
    new: RepositorySide,
    paths: Sequence[str],
    selection: Selection,
    review_size: ReviewSize,
) -> tuple[ProductReview, ...]:
    """Return the products that change, by name; `review_size` compares a selected size."""
    if not affects_products(new, paths):
        return ()
    names = sorted({file.stem for side in (old, new) for file in (side.root / PRODUCTS).glob("*.yaml")})
    reviews = (_review(name, _state(old, name), _state(new, name), selection, review_size) for name in names)
    return tuple(review for review in reviews if not review.is_empty)


def _review(
    name: str,
    before: _ProductState | None,
    after: _ProductState | None,
    selection: Selection,
    review_size: ReviewSize,
) -> ProductReview:
    old, new = before or _NO_PRODUCT, after or _NO_PRODUCT
    # Of a product that can't be read no size is known: to call all of them new or removed would be wrong.
    wrong = any(state is not None and state.loaded is None for state in (before, after))
    places = [] if wrong else sorted({*old.sizes, *new.sizes}, key=lambda place: (place.environment, place.endpoint))
    reviews = (
        review_size(place, old.sizes.get(place), new.sizes.get(place)) for place in places if selection.holds(place)
    )
    known = {(problem.rule, problem.message) for problem in old.problems}
    return ProductReview(
        name=name,
        change="new" if before is None else "removed" if after is None else "changed",
        fields=differing_fields(old.fields, new.fields) if before and after else (),
        sizes=tuple(review for review in reviews if not review.is_empty),
        findings=tuple(problem for problem in new.problems if (problem.rule, problem.message) not in known),
    )


def _state(side: RepositorySide, name: str) -> _ProductState | None:
    file = side.root / PRODUCTS / f"{name}.yaml"
    if not file.is_file():
        return None
    try:
        loaded = load_product(file, side.environments)
    except SeatrialError as error:
        return _ProductState(fields={}, loaded=None, sizes={}, problems=side.shown(error.problems))
    return _ProductState(
        fields=dict(_fields(loaded, side)),
        loaded=loaded,
        sizes={
            EndpointPlace(f"{name} {size}", environment): _size(side, loaded, environment, size)
            for environment, size in loaded.sizes
        },
        problems=side.shown(_publication_problems(loaded)),
    )


def _fields(loaded: LoadedProduct, side: RepositorySide) -> Iterator[tuple[str, str]]:
    written = {key: one for key, one in read_source(loaded.path).data.items() if key not in _SHOWN_BY_SIZE}
    yield from flat_fields("", written)
    folder = side.root / PRODUCTS
    for environment in loaded.product.environments:
        files = [file for file in kept_templates(folder, environment) if file.parents[2].name == loaded.path.stem]
        yield from flat_fields(f"published in {environment}", [file.parent.name for file in files])


def _size(side: RepositorySide, loaded: LoadedProduct, environment: str, size: str) -> EndpointState:
    spec = loaded.sizes[environment, size]
    try:
        deployment = size_deployment(loaded, environment, size)
    except SeatrialError as error:
        return EndpointState(loaded=spec, plan=stale_plan(spec), problems=side.shown(error.problems))
    return EndpointState(loaded=spec, plan=deployment.plan, deployment=deployment)


def _publication_problems(loaded: LoadedProduct) -> Iterator[Finding]:
    """Yield why the current version is not that of the product, and which version no guard rail allows any more.

    What is wrong with a lock is reported by its size.
    """
    for environment in loaded.product.environments:
        yield from forbidden_versions(loaded, environment)
        try:
            state = publication_state(loaded, environment)
        except SeatrialError as error:
            # Every other problem here is a lock's, which its size reports already.
            yield from (problem for problem in error.problems if problem.rule == "SEA498")
            continue
        if state == "not published":
            yield from unpublished_version(loaded, environment).problems
        elif state == "changed":
            yield from changed_version(loaded, environment).problems
