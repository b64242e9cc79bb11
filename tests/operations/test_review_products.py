"""What a review tells of products: versions, sizes with their price, and what was not published."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.product import load_product, product_deployments
from seatrial.deployment.published import made_from, sealed, source_path, source_text, template_path
from seatrial.operations.review.review import Review, Selection, make_review
from seatrial.operations.review.side import RepositorySide
from seatrial.operations.review.writers import review_markdown, review_text
from tests.sample_product import PRODUCT, lock_sizes, write_product

if TYPE_CHECKING:
    from pathlib import Path

FILE = "products/chat.yaml"


def side(folder: Path) -> RepositorySide:
    return RepositorySide(top=folder, root=folder, endpoints=folder / "endpoints", environments=folder / "environments")


def publish(folder: Path, version: str) -> None:
    """Lock the sizes and write what stands for the template of a version."""
    file, environments = folder / FILE, folder / "environments"
    lock_sizes(file, environments)
    loaded = load_product(file, environments)
    path = template_path(file, version, "lab")
    path.parent.mkdir(parents=True)
    deployments = product_deployments(loaded, "lab")
    path.write_text(json.dumps(sealed({}, made_from(loaded, deployments))))
    source_path(path).write_text(source_text(loaded, deployments))


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Return two repositories that offer the same product."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    write_product(old)
    publish(old, "1.0.0")
    shutil.copytree(old, new)
    return old, new


def review(sides: tuple[Path, Path], *, path: str = FILE, asked: Selection | None = None) -> Review:
    old, new = (side(folder) for folder in sides)
    return make_review(old, new, [path], sides[0].parent / "out", selection=asked or Selection())


def test_a_new_version_is_told_with_the_price_of_each_size(sides: tuple[Path, Path]) -> None:
    sizes = {"small": {"scaling": {"min_copies": 2, "max_copies": 2}}, "large": None}
    write_product(sides[1], version="1.1.0", sizes=sizes, deprecated=["1.0.0"])
    publish(sides[1], "1.1.0")
    found = review(sides)
    (product,) = found.products
    assert (found.is_empty, product.name, product.change, product.findings) == (False, "chat", "changed", ())
    assert {one.field: (one.old, one.new) for one in product.fields} == {
        "deprecated": (None, '["1.0.0"]'),
        "published in lab": ('["1.0.0"]', '["1.0.0", "1.1.0"]'),
        "version": ('"1.0.0"', '"1.1.0"'),
    }
    by_size = {one.place.endpoint: one for one in product.sizes}
    before, after = by_size["chat small"].plans
    assert before is not None
    assert after is not None
    assert (before.copy_count.value, after.copy_count.value) == (1, 2)
    comment = review_markdown(found, base="main")
    row = next(line for line in comment.splitlines() if line.startswith("| `chat small`"))
    assert r"\$1.515 → \$3.03" in row
    assert "what is launched stays" in row
    assert "plan copy_count: 1 → 2" in review_text(found, base="main")


def test_a_change_without_another_version_is_an_error(sides: tuple[Path, Path]) -> None:
    write_product(sides[1], description="Another.")
    (product,) = review(sides).products
    assert [(one.severity, one.rule) for one in product.findings] == [("error", "SEA495")]
    assert "| `chat` | product | changed | what is launched stays |" in review_markdown(review(sides), base="main")


def test_a_stale_lock_a_broken_guard_rail_and_an_edit_are_errors(sides: tuple[Path, Path]) -> None:
    sizes = PRODUCT["sizes"]
    assert isinstance(sizes, dict)
    write_product(sides[1], sizes={**sizes, "large": {"workload": {"concurrency": 6}}})
    (product,) = review(sides).products
    assert [(one.place.endpoint, one.is_blocked) for one in product.sizes] == [("chat large", True)]
    write_product(sides[1], lab={"guard_rails": {"max_copies": 2}})
    (product,) = review(sides).products
    assert [one.rule for one in product.findings] == ["SEA111"]
    write_product(sides[1])
    template_path(sides[1] / FILE, "1.0.0", "lab").write_text("{}")
    (product,) = review(sides).products
    assert [one.rule for one in product.findings] == ["SEA498"]


def test_an_older_version_that_a_tightened_guard_rail_forbids_is_an_error(sides: tuple[Path, Path]) -> None:
    two: dict[str, object] = {"small": {"scaling": {"max_copies": 2}}}
    write_product(sides[1], version="1.1.0", sizes=two, lab={"guard_rails": {"max_copies": 2}})
    publish(sides[1], "1.1.0")
    (product,) = review(sides).products
    assert [one.rule for one in product.findings] == ["SEA487"]
    write_product(sides[1], version="1.1.0", sizes=two, lab={"guard_rails": {"max_copies": 2}}, deprecated=["1.0.0"])
    (product,) = review(sides).products
    assert product.findings == ()


def test_new_and_removed_products_are_told(sides: tuple[Path, Path]) -> None:
    (sides[1] / FILE).unlink()
    (removed,) = review(sides).products
    (new,) = review((sides[1], sides[0])).products
    assert (removed.change, new.change) == ("removed", "new")
    assert [one.change for one in (*removed.sizes, *new.sizes)] == ["removed", "removed", "new", "new"]


def test_other_files_and_named_endpoints_leave_products_out(sides: tuple[Path, Path]) -> None:
    write_product(sides[1], description="Another.")
    assert review(sides, path="README.md").products == ()
    assert review(sides, asked=Selection(endpoints=("chat",))).products == ()
