"""Writes the templates of products' current versions, one for each environment: `seatrial products publish` runs it.

    python -m seatrial_stacks.publish_products ENVIRONMENTS PRODUCT…

It runs in the folder of `cdk.json`, whose feature flags it takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment.product import load_product, product_deployments
from seatrial.deployment.published import changed_version, publication_state, source_path, source_text, template_path
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import read_text, write_whole
from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_stacks.product_template import product_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.deployment.product import LoadedProduct
    from seatrial_base.findings import Finding

FEWEST_ARGUMENTS, USAGE = 2, 2


def publish(products: Iterable[Path], environments: Path) -> tuple[Path, ...]:
    """Write the templates that are not there yet, and their sources, and return every path; all or none is written.

    A template that is there is left alone, also by a later Seatrial that would write another one.

    Raises:
        SpecError: With every problem of every product; SEA495 when a template was published from another product.
    """
    context: dict[str, object] = json.loads(read_text(Path("cdk.json"))).get("context", {})
    texts: dict[Path, str | None] = {}
    problems: list[Finding] = []
    for product in products:
        try:
            texts |= _texts(load_product(product, environments), context)
        except SeatrialError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    for path, text in texts.items():
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
    return tuple(texts)


def _texts(loaded: LoadedProduct, context: Mapping[str, object]) -> dict[Path, str | None]:
    """Return the template of each environment, and what it is made from, by path; `None` for what is there."""
    names = loaded.product.environments
    states = {name: publication_state(loaded, name) for name in names}
    changed = [changed_version(loaded, name) for name, state in states.items() if state == "changed"]
    if changed:
        raise SpecError(problem for error in changed for problem in error.problems)
    texts: dict[Path, str | None] = {}
    for name in names:
        template = template_path(loaded.path, loaded.product.version, name)
        is_new, source = states[name] == "not published", source_text(loaded, product_deployments(loaded, name))
        texts[template] = product_template(loaded, name, context) if is_new else None
        texts[source_path(template)] = None if states[name] == "published" else source
    return texts


def main() -> int:
    """Publish, print the paths, and return the exit code."""
    arguments = [Path(each) for each in sys.argv[1:]]
    if len(arguments) < FEWEST_ARGUMENTS:
        sys.stderr.write(f"{__doc__}\n")
        return USAGE
    try:
        for path in publish(arguments[1:], arguments[0]):
            sys.stdout.write(f"{path.as_posix()}\n")
    except SeatrialError as error:
        sys.stderr.write(f"{printable(redacted(str(error)))}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
