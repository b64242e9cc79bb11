"""Writes the catalog's table of JumpStart models from the one that AWS's generative AI CDK constructs carry.

    python scripts/build_jumpstart.py CHECKOUT DATE

CHECKOUT is a checkout of https://github.com/awslabs/generative-ai-cdk-constructs, whose maintainers read JumpStart's
public manifest of us-east-1; DATE is the day of its last change there. Text-generation models only, each in its newest
version.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from pathlib import Path

FOLDER = "src/patterns/gen-ai/aws-model-deployment-sagemaker"
OUTPUT = (
    Path(__file__).parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "jumpstart.json"
)
FAMILIES = ("huggingface-llm-", "meta-textgeneration-", "deepseek-llm-")
RAW_DEFLATE = -15
MOST_BYTES = 500 * 2**20


def main(checkout: Path, date: str) -> None:
    """Write the table."""
    folder = checkout / FOLDER
    models = [model for model in _models(folder / "jumpstart-models.json") if model["modelId"].startswith(FAMILIES)]
    newest: dict[str, dict[str, str]] = {}
    for model in sorted(models, key=lambda model: _version(model["version"])):
        newest[model["modelId"]] = model
    constants = (folder / "private" / "jumpstart-constants.ts").read_text(encoding="utf-8")
    document = {
        "source": f"github awslabs/generative-ai-cdk-constructs, {FOLDER}/jumpstart-models.json",
        "date": date,
        "regions": sorted(set(re.findall(r"'([a-z0-9-]+)': \{", constants))),
        "rows": [_row(newest[name]) for name in sorted(newest)],
    }
    lines = ",\n".join(f"    {json.dumps(row)}" for row in document["rows"])
    head = ",\n".join(f"  {json.dumps(key)}: {json.dumps(document[key])}" for key in ("source", "date", "regions"))
    OUTPUT.write_text(f'{{\n{head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    print(f"{OUTPUT}: {len(newest)} models")


def _models(path: Path) -> list[dict[str, str]]:
    """Read the table, which is the text of a JavaScript buffer that holds deflated JSON."""
    packed = bytes(json.loads(path.read_text(encoding="utf-8"))["data"])
    content = zlib.decompressobj(RAW_DEFLATE).decompress(packed, MOST_BYTES)
    return list(json.loads(content).values())


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _row(model: dict[str, str]) -> dict[str, object]:
    return {
        "id": model["modelId"],
        "version": model["version"],
        "key": model.get("prepackedArtifactKey") or model["artifactKey"],
        "gated": bool(model.get("gatedBucket")),
        "eula_key": model.get("requiresEula") or None,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
