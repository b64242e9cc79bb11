"""Writes JumpStart's specification of a model to a file, for `model.jumpstart_metadata`.

    python scripts/fetch_jumpstart.py MODEL_ID REGION OUTPUT.json [VERSION]

Needs the SageMaker SDK (`pip install seatrial[sagemaker]`) and AWS credentials. Commit the file: synthesis reads it,
and asks nobody.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(model_id: str, region: str, output: Path, version: str = "*") -> None:
    """Fetch and write one specification."""
    try:
        from sagemaker.core.jumpstart.accessors import JumpStartModelsAccessor  # noqa: PLC0415 (the optional extra)
    except ImportError:
        sys.exit("the SageMaker SDK is not installed: pip install 'seatrial[sagemaker]'")
    found = JumpStartModelsAccessor.get_model_specs(region=region, model_id=model_id, version=version)
    output.write_text(json.dumps(found.to_json(), indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")
    print(f"{output}: {model_id}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:5])
