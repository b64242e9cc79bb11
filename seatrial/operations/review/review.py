"""The review of a change of the repository: every endpoint environment and product, and the instances needed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.deployment.load import name_problems
from seatrial.deployment.product import load_product, size_deployment
from seatrial.deployment.published import (
    changed_version,
    forbidden_versions,
    kept_templates,
    publication_state,
    unpublished_version,
)
from seatrial.locks.changes import decision_changes
from seatrial.operations.app import app_folder
from seatrial.operations.checkout import changed_paths, checkout_of, commit_of, commits_ahead, git_repository_of, moved
from seatrial.operations.consequences import consequences
from seatrial.operations.effect import PlannedSize
from seatrial.operations.review.changes import (
    FieldChange,
    differing_fields,
    field_changes,
    file_changes,
    findings,
    flat_fields,
    licence_changes,
    loosened_rails,
)
from seatrial.operations.review.side import (
    PRODUCTS,
    EndpointPlace,
    EndpointState,
    RepositorySide,
    affected,
    affects_products,
    endpoint_state,
    instances_of_plan,
    is_code_changed,
    never_locked,
    places,
    refuse_code_of_others,
    stale_plan,
)
from seatrial.operations.synthesis import SideTemplates, synthesize_both
from seatrial.operations.template_diff import diff_templates
from seatrial.specs.load import environment_names, load_environment
from seatrial.specs.spec_files import endpoint_name_of
from seatrial.specs.yaml_source import read_source
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place
from seatrial_lint.cloudformation.template import EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial.documents.plan import Plan
    from seatrial.locks.changes import DecisionChange
    from seatrial.operations.consequences import Consequences
    from seatrial.operations.review.changes import FileChange
    from seatrial.operations.template_diff import TemplateDiff


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


States = dict["EndpointPlace", "EndpointState"]
SPEC_SUFFIXES = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """The most instances of one type that an environment runs, all its endpoints together.

    Attributes:
        before: Of the base, where each endpoint has its most copies; none of what goes to another account or region.
        during: While every endpoint of the change is updated at once.
        after: Of the checkout.
    """

    environment: str
    instance_type: str
    before: int
    during: int
    after: int


def quota_needs(
    reviews: Iterable[EndpointReview], others: Iterable[EndpointPlace], side: RepositorySide
) -> tuple[QuotaNeed, ...]:
    """Sum the needs of each environment's endpoints by instance type; of `others`, those that change count once."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    changed = set()
    for review in reviews:
        changed.add(review.place)
        for when, needed in _needed(review).items():
            for instance_type, number in needed.items():
                counts[review.place.environment, instance_type][when] += number
    for place in others:
        if place not in changed:
            for instance_type, number in instances_of_plan(side, place).items():
                counts[place.environment, instance_type].update(before=number, during=number, after=number)
    return tuple(
        QuotaNeed(*key, count["before"], count["during"], count["after"]) for key, count in sorted(counts.items())
    )


def more_instances(review: EndpointReview) -> Mapping[str, int]:
    """Return how many instances more an endpoint needs at most, during the update or afterwards, by type."""
    needed = _needed(review)
    return dict(sorted(((needed["during"] | needed["after"]) - needed["before"]).items()))


def _needed(review: EndpointReview) -> Mapping[str, Counter[str]]:
    before, after = (
        (Counter() if plan is None else Counter({plan.instance_type.value: plan.max_instances}))
        for plan in review.plans
    )
    # What can't be read can't be deployed either: it keeps what runs.
    if review.after is not None and review.plans[1] is None:
        return {"before": before, "during": before, "after": before}
    if review.after is None:
        return {"before": before, "during": before, "after": Counter()}
    # The stack elsewhere has a quota of its own, and nothing of it runs here before.
    if review.is_moved:
        return {"before": Counter(), "during": after, "after": after}
    surge: Counter[str] = Counter()
    if review.consequences is not None and not _is_another_endpoint(review):
        surge[review.consequences.size.instance_type] = review.consequences.most_instances
    during = before + after if _is_another_endpoint(review) else (before | after) + surge
    return {"before": before, "during": during, "after": after}


def _is_another_endpoint(review: EndpointReview) -> bool:
    """Return whether a first or a second endpoint starts: its own instances are the surge."""
    before, after = (None if side is None else side.deployment for side in (review.before, review.after))
    if review.before is None:
        return True
    return before is not None and after is not None and before.endpoint_name != after.endpoint_name


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointReview:
    """The changes of an endpoint in an environment.

    Attributes:
        change: `new`: only the checkout has it; `removed`: only the base has it.
        before: Its state in the base; `None` when it is new.
        after: Its state in the checkout; `None` when it is removed.
        spec: The fields of spec and environment.
        plan: The decisions of the locked plan.
        files: Those that the container reads.
        consequences: What CloudFormation does; `None` where a side can't be synthesized, and of what is removed.
        findings: Of the checkout alone.
        known_findings: Of the base too.
        is_size: It is a size of a product: a version of it is launched, and no stack of the app deploys it.
        licences: Of its models and drafts, those that differ; all of what is new.
        renamed: The name of the removed or new endpoint that has the same spec; empty without one.
    """

    place: EndpointPlace
    change: Literal["new", "removed", "changed"]
    before: EndpointState | None
    after: EndpointState | None
    spec: tuple[FieldChange, ...]
    plan: tuple[DecisionChange, ...]
    files: tuple[FileChange, ...]
    consequences: Consequences | None
    findings: tuple[Finding, ...]
    known_findings: tuple[Finding, ...]
    is_size: bool = False
    licences: tuple[FieldChange, ...] = ()
    renamed: str = ""

    @property
    def plans(self) -> tuple[Plan | None, Plan | None]:
        """The locked plan before and after."""
        before, after = (None if side is None else side.plan for side in (self.before, self.after))
        return before, after

    @property
    def is_moved(self) -> bool:
        """Whether it goes to another account or region: it is deployed there again, and the old one stays."""
        old, new = (None if side is None else side.deployment for side in (self.before, self.after))
        return old is not None and new is not None and is_elsewhere(old, new)

    @property
    def is_blocked(self) -> bool:
        """Whether the checkout can't be synthesized."""
        return self.after is not None and self.after.deployment is None

    @property
    def refused(self) -> tuple[Finding, ...]:
        """What CloudFormation can't do this way, at the endpoint's name."""
        findings = () if self.consequences is None else self.consequences.refused
        name = f"{self.place.endpoint} in {self.place.environment}"
        return tuple(replace(finding, place=replace(finding.place, file=name)) for finding in findings)

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs but texts."""
        resources = self.consequences is None or self.consequences.diff.is_empty
        return self.change == "changed" and resources and not (self.spec or self.plan or self.files or self.findings)


def is_elsewhere(old: Deployment, new: Deployment) -> bool:
    """Return whether two deployments go to different places; an account that is not named may be the same."""
    before, after = old.environment, new.environment
    # An environment without an account deploys to that of the credentials, which may be the other side's.
    is_other_account = None not in {before.account, after.account} and before.account != after.account
    return is_other_account or before.region != after.region


@dataclass(frozen=True, slots=True)
class ServiceReview:
    """The changes of an environment's trial service."""

    environment: str
    diff: TemplateDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A change of the repository.

    Attributes:
        endpoints: Those that change, by environment and endpoint.
        services: The trial services that change.
        quotas: The instances that each changed environment needs, by type.
        unlocked: The changed specs that no environment has a plan for.
        products: The products that change.
        compared: Endpoints and environments of both sides, those that do not change included.
        ahead: Commits that the base has and the checkout lacks: what they change is compared backwards.
        loosened: What an environment asked of its endpoints and asks less of, or no more, by environment.
    """

    endpoints: tuple[EndpointReview, ...]
    services: tuple[ServiceReview, ...]
    quotas: tuple[QuotaNeed, ...]
    unlocked: tuple[str, ...]
    products: tuple[ProductReview, ...]
    compared: int
    ahead: int = 0
    loosened: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.endpoints or self.services or self.unlocked or self.products or self.loosened)

    @property
    def refused(self) -> tuple[Finding, ...]:
        """What CloudFormation can't do this way."""
        return tuple(problem for endpoint in self.endpoints for problem in endpoint.refused)


def make_review(
    old: RepositorySide, new: RepositorySide, paths: Sequence[str], folder: Path, *, selection: Selection
) -> Review:
    """Compare two sides; endpoints that are not selected only count for the quotas.

    Raises:
        SeatrialError: SEA450 when an app fails, SEA451 when what it writes is no template.
    """
    # A renamed file keeps its endpoint and its stack, as these have the name that the spec says.
    files = [{endpoint_name_of(file): file.stem for file in side.endpoints.glob("*.yaml")} for side in (old, new)]
    origins = {stem: files[0][name] for name, stem in files[1].items() if files[0].get(name, stem) != stem}
    old = replace(old, origins={stem: origin for stem, origin in origins.items() if stem not in files[0].values()})
    known = places(old), places(new)
    every = sorted({*known[0], *known[1]}, key=lambda one: (one.environment, one.endpoint))
    touched = affected(new, paths, every)
    some = [place for place in every if place in touched and selection.holds(place)]
    before = {place: endpoint_state(old, place) for place in some if place in known[0]}
    after = _checked({place: endpoint_state(new, place) for place in some if place in known[1]}, new)
    renamed = _renamed(before, after)
    # Synthesis takes most of the time: equal deployments by equal code have equal templates, and are left out.
    wanted = _wanted(before, after, is_code_changed=is_code_changed(new, paths))
    templates = synthesize_both((old, new), wanted, folder)
    reviews = (
        replace(_endpoint_review(place, before.get(place), after.get(place), templates), renamed=renamed.get(place, ""))
        for place in some
    )
    changed_reviews = tuple(review for review in reviews if not review.is_empty)
    changed = {review.place.environment for review in changed_reviews}
    moved_places = {review.place.environment for review in changed_reviews if review.is_moved}
    return Review(
        endpoints=changed_reviews,
        services=tuple(_services(templates, moved_places)),
        quotas=quota_needs(changed_reviews, [place for place in known[1] if place.environment in changed], new),
        unlocked=tuple(
            shown
            for file in never_locked(new, known[1])
            if (shown := file.relative_to(new.top).as_posix()) in paths and selection.holds_spec(file.stem)
        ),
        products=_products(old, new, paths, selection),
        compared=sum(1 for place in every if selection.holds(place)),
        loosened=_loosened(old, new, selection),
    )


def _renamed(before: States, after: States) -> dict[EndpointPlace, str]:
    """Return the other name of each endpoint that is removed and, with the same spec under another name, new."""
    sides = [
        {place: side.loaded for place, side in one.items() if place not in other and side.loaded is not None}
        for one, other in ((before, after), (after, before))
    ]
    specs = [
        {
            (place.environment, json.dumps({**loaded.document.data, "name": None})): place
            for place, loaded in side.items()
        }
        for side in sides
    ]
    pairs = [(specs[0][key], specs[1][key]) for key in specs[0].keys() & specs[1].keys()]
    names = [(old, sides[1][new].endpoint.name, new, sides[0][old].endpoint.name) for old, new in pairs]
    return {place: name for old, to, new, origin in names for place, name in ((old, to), (new, origin))}


def _loosened(old: RepositorySide, new: RepositorySide, selection: Selection) -> dict[str, tuple[FieldChange, ...]]:
    """Return what each environment asks less of; one that a side lacks, or that is wrong, is told elsewhere."""
    loosened: dict[str, tuple[FieldChange, ...]] = {}
    for name in environment_names(new.environments):
        if selection.environments and name not in selection.environments:
            continue
        try:
            sides = [load_environment(side.environments, name) for side in (old, new)]
        except SeatrialError:
            continue
        if changes := loosened_rails(*sides):
            loosened[name] = changes
    return loosened


def _products(
    old: RepositorySide, new: RepositorySide, paths: Sequence[str], selection: Selection
) -> tuple[ProductReview, ...]:
    """Return the products that change; none where endpoints are named."""
    if selection.endpoints is not None:
        return ()

    def review(place: EndpointPlace, before: EndpointState | None, after: EndpointState | None) -> EndpointReview:
        size_review = _endpoint_review(place, before, after, (SideTemplates(), SideTemplates()))
        return replace(size_review, consequences=None, is_size=True)

    return product_reviews(old, new, paths, selection, review)


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a repository to compare.

    Attributes:
        endpoints: Names of specs; `None` for all.
        environments: Names of environments; none for all.
    """

    endpoints: Collection[str] | None = None
    environments: Collection[str] = ()

    def holds(self, place: EndpointPlace) -> bool:
        """Return whether an endpoint in an environment belongs to it."""
        in_environments = not self.environments or place.environment in self.environments
        return in_environments and self.holds_spec(place.endpoint)

    def holds_spec(self, name: str) -> bool:
        """Return whether a spec belongs to it."""
        return self.endpoints is None or name in self.endpoints


def _checked(states: States, side: RepositorySide) -> States:
    """Return the states with what is wrong with names of one environment among each other."""
    by_environment: dict[str, dict[Path, Deployment]] = defaultdict(dict)
    for place, state in states.items():
        if state.deployment is not None:
            by_environment[place.environment][side.spec(place)] = state.deployment
    wrong: dict[EndpointPlace, list[Finding]] = defaultdict(list)
    for environment, deployments in by_environment.items():
        of_file = {side.spec(place).as_posix(): place for place in states if place.environment == environment}
        for problem in name_problems(deployments):
            wrong[of_file[problem.where]].append(problem)
    return {
        place: replace(state, deployment=None, problems=(*state.problems, *side.shown(wrong[place])))
        if place in wrong
        else state
        for place, state in states.items()
    }


def _wanted(
    before: States, after: States, *, is_code_changed: bool
) -> tuple[dict[EndpointPlace, Deployment], dict[EndpointPlace, Deployment]]:
    """Return what must be synthesized of both sides: the same code makes the same template of equal deployments."""
    old: dict[EndpointPlace, Deployment] = {}
    new: dict[EndpointPlace, Deployment] = {}
    for place, state in after.items():
        former = before.get(place)
        if state.deployment is None or (former is not None and former.deployment is None):
            continue
        if former is None or is_code_changed or former.deployment != state.deployment:
            new[place] = state.deployment
            if former is not None and former.deployment is not None:
                old[place] = former.deployment
    return old, new


def _endpoint_review(
    place: EndpointPlace,
    before: EndpointState | None,
    after: EndpointState | None,
    templates: tuple[SideTemplates, SideTemplates],
) -> EndpointReview:
    loaded = [None if state is None else state.loaded for state in (before, after)]
    fresh, known = findings(before, after)
    return EndpointReview(
        place=place,
        change="new" if before is None else "removed" if after is None else "changed",
        before=before,
        after=after,
        spec=field_changes(*loaded),
        plan=_decisions(before, after),
        files=file_changes(before, after) if after is not None and before is not None else (),
        consequences=_consequences(place, before, after, templates),
        findings=fresh,
        known_findings=known,
        licences=licence_changes(*loaded) if before is None or loaded[0] is not None else (),
    )


def _decisions(before: EndpointState | None, after: EndpointState | None) -> tuple[DecisionChange, ...]:
    """Return the decisions that differ; none of what is removed, or where a plan can't be read."""
    old, new = (None if state is None else state.plan for state in (before, after))
    if new is None or (before is not None and old is None):
        return ()
    return decision_changes({} if old is None else old.model_dump(mode="json"), new.model_dump(mode="json"))


def _consequences(
    place: EndpointPlace,
    before: EndpointState | None,
    after: EndpointState | None,
    templates: tuple[SideTemplates, SideTemplates],
) -> Consequences | None:
    """Return what CloudFormation does; an app without the stack does not delete it."""
    if after is None or after.deployment is None or (before is not None and before.deployment is None):
        return None
    old, new = (side.endpoints.get(place, EMPTY) for side in templates)
    former = None if before is None else before.deployment
    if former is not None and is_elsewhere(former, after.deployment):
        old = EMPTY
    return consequences(diff_templates(old, new), PlannedSize.of(after.deployment.plan))


def _services(templates: tuple[SideTemplates, SideTemplates], moved: Collection[str]) -> Iterator[ServiceReview]:
    """Yield the trial services that differ; one that a side does not need for what was compared is not compared."""
    old, new = (side.services for side in templates)
    # A side synthesizes a trial service only where one of its compared endpoints is tried: one that only one side
    # has proves nothing about the other.
    for name in sorted((old.keys() & new.keys()) - set(moved)):
        diff = diff_templates(old[name], new[name])
        if not diff.is_empty:
            yield ServiceReview(name, diff)


def review_of(
    specs: Sequence[Path], environments: Path, revision: str, folder: Path, *, only_environments: Sequence[str] = ()
) -> Review:
    """Compare the endpoints of a folder, or some of its files, with those of a revision; `REF...` is the merge base.

    Raises:
        SpecError: SEA101 for a folder or spec that neither side has, SEA109 for such an environment, SEA420 for specs
            of several folders, SEA450 when there is no app, SEA452 when the revision can't be checked out, or has
            code that the checkout lacks.
        SeatrialError: As `make_review`.
    """
    # By the place behind the links: two spellings of one folder are one.
    folders = {follow_links(folder_of(spec)) for spec in specs}
    if len(folders) > 1:
        listed = ", ".join(path.as_posix() for path in sorted(folders))
        hint = "compare one folder after the other"
        raise SpecError.of("SEA420", f"the specs are in several folders: {listed}", hint=hint)
    names = None if any(folder_of(spec) == spec for spec in specs) else tuple(spec.stem for spec in specs)
    endpoints = folder_of(specs[0])
    # A folder, or the nearest above it that exists: a change may remove every spec.
    target = follow_links(endpoints)
    top = git_repository_of(next(one for one in (target, *target.parents) if one.is_dir()))
    commit = commit_of(top, revision)
    new = RepositorySide(
        top=top,
        root=app_folder(endpoints / "spec.yaml"),
        endpoints=follow_links(endpoints),
        environments=follow_links(environments),
    )
    refuse_code_of_others(new, commit)
    with checkout_of(top, commit, folder / "checkout") as (_, checkout):
        old = RepositorySide(
            top=checkout,
            root=moved(new.root, top, checkout),
            endpoints=moved(new.endpoints, top, checkout),
            environments=moved(new.environments, top, checkout),
        )
        _refuse_unknown(endpoints, names, only_environments, (old, new))
        selection = Selection(names, only_environments)
        review = make_review(old, new, changed_paths(top, commit), folder / "synthesis", selection=selection)
    return replace(review, ahead=commits_ahead(top, commit))


def folder_of(path: Path) -> Path:
    """Return a folder of specs itself, and the folder of a spec; a folder may be one that only the revision has."""
    return path.parent if path.suffix in SPEC_SUFFIXES and not path.is_dir() else path


def _refuse_unknown(
    folder: Path, names: Sequence[str] | None, environments: Sequence[str], sides: tuple[RepositorySide, RepositorySide]
) -> None:
    # What neither side has would be compared with nothing, and no change would show.
    if names is None:
        missing = [] if any(side.endpoints.is_dir() for side in sides) else [folder]
    else:
        files = {name: f"{name}.yaml" for name in names}
        missing = [
            folder / file for file in files.values() if not any((side.endpoints / file).exists() for side in sides)
        ]
    message, hint = "neither the checkout nor the revision has it", "check the path; it is relative to this folder"
    problems = [Finding("SEA101", Place.at(path.as_posix()), message, hint) for path in missing]
    known = sorted({name for side in sides for name in environment_names(side.environments)})
    hint = f"known environments: {', '.join(known) or 'none'}"
    problems += [
        Finding("SEA109", Place("command line", field="--environment"), f"there is no environment {name}", hint)
        for name in environments
        if name not in known
    ]
    if problems:
        raise SpecError(problems)
