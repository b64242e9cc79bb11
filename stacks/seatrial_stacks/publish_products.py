"""Writes the template of a product's current version for each of its environments: `seatrial products publish` runs it.

    python -m seatrial_stacks.publish_products PRODUCT ENVIRONMENTS

It runs in the folder of `cdk.json`, whose feature flags it takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seatrial.deployment.product import load_product, template_path
from seatrial.errors import SeatrialError, SpecError
from seatrial.files import read_text, write_whole
from seatrial.printable import printable
from seatrial.secrets import redacted
from seatrial_stacks.product_template import product_template

ARGUMENTS = 2


def publish(product: Path, environments: Path) -> tuple[Path, ...]:
    """Write the templates that are not there yet, and return the path of each; all or none is written.

    Args:
        product: The product's YAML file.
        environments: Folder of environments.

    Raises:
        SpecError: With every problem; SEA495 when a template is there and differs.
    """
    loaded = load_product(product, environments)
    context: dict[str, object] = json.loads(read_text(Path("cdk.json"))).get("context", {})
    texts = {
        template_path(product, loaded.product.version, name): product_template(loaded, name, context)
        for name in loaded.product.environments
    }
    _check_unchanged(texts, loaded.product.version)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return tuple(texts)


def _check_unchanged(texts: dict[Path, str], version: str) -> None:
    changed = [path for path, text in texts.items() if path.is_file() and read_text(path) != text]
    if changed:
        where = ", ".join(path.as_posix() for path in changed)
        message = f"version {version} was published with another template"
        raise SpecError.of("SEA495", message, where=where, hint="raise `version`; published templates stay as they are")


def main() -> int:
    """Publish, print the paths, and return the exit code."""
    if len(sys.argv) != ARGUMENTS + 1:
        sys.stderr.write(f"{__doc__}\n")
        return ARGUMENTS
    try:
        for path in publish(Path(sys.argv[1]), Path(sys.argv[2])):
            sys.stdout.write(f"{path.as_posix()}\n")
    except SeatrialError as error:
        sys.stderr.write(f"{printable(redacted(str(error)))}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
