"""One synthesis in this process: prints its seconds, its crossings into Node and its resources, as JSON."""

from __future__ import annotations

import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent.parent
SPEC = "llama-2-7b-chat"
PEER_TAG = "0.27.0-tensorrtllm0.8.0-cu122"


def ours(count: int, folder: str) -> None:
    """Synthesize endpoints of one environment as `app.py` does, each in a stack of its own, with the rule book."""
    from aws_cdk import App  # noqa: PLC0415 (each process imports what it measures)

    from seatrial.deployment.load import load_deployments  # noqa: PLC0415 (as above)
    from seatrial_cdk import HostingChecks  # noqa: PLC0415 (as above)
    from seatrial_stacks.endpoint_stack import EndpointStack  # noqa: PLC0415 (as above)

    app = App(outdir=folder, analytics_reporting=False)
    for number in range(count):
        (found,) = load_deployments(ROOT / "endpoints", ROOT / "environments", "dev", SPEC).deployments
        named = replace(found, endpoint=found.endpoint.model_copy(update={"name": f"chat-{number}"}))
        EndpointStack(app, named.stack_name, deployment=named)
    HostingChecks.add_to(app)
    app.synth()


def bare(count: int, folder: str) -> None:
    """Synthesize the same with L1 constructs."""
    from benchmarks.synth.bare_l1 import bare_l1  # noqa: PLC0415 (as above)

    ours_folder = Path(folder).parent / "ours"
    (artifact, *_) = sorted(ours_folder.glob("asset.*.tar.gz"))
    template = json.loads(min(ours_folder.glob("*.template.json")).read_text())
    requests = [each["Properties"]["Request"] for each in template["Resources"].values() if "Custom::" in each["Type"]]
    bare_l1(count, folder, str(artifact), requests[0], list(template["Outputs"]))


def peer(count: int, folder: str) -> None:
    """Synthesize so many custom endpoints of generative-ai-cdk-constructs."""
    from aws_cdk import App, Environment, Stack  # noqa: PLC0415 (as above)
    from cdklabs.generative_ai_cdk_constructs import (  # type: ignore[import-not-found]  # noqa: PLC0415 (as above)
        sagemaker_deployment as theirs,
    )

    image = theirs.DeepLearningContainerImage.from_deep_learning_container_image("djl-inference", PEER_TAG)
    app = App(outdir=folder, analytics_reporting=False)
    for number in range(count):
        stack = Stack(app, f"peer-{number}", env=Environment(region="us-east-1", account="123456789012"))
        theirs.CustomSageMakerEndpoint(
            stack,
            "Endpoint",
            model_id="chat",
            instance_type=theirs.SageMakerInstanceType.ML_G5_2_XLARGE,
            container=image,
            model_data_url="s3://bucket/model.tar.gz",
            endpoint_name=f"chat-{number}",
            environment={"HF_MODEL_ID": "chat"},
        )
    app.synth()


def count_crossings() -> Callable[[], int]:
    """Count the requests that the CDK's Python sends to its Node process from now on; return what tells the count."""
    from jsii._kernel.providers.process import _NodeProcess  # noqa: PLC0415 (as above)

    send, crossings = _NodeProcess.send, itertools.count()

    def counted(process: _NodeProcess, *arguments: Any) -> Any:  # noqa: ANN401 (jsii's own)
        next(crossings)
        return send(process, *arguments)

    _NodeProcess.send = counted  # type: ignore[assignment,method-assign]  # counts, and hands on
    return lambda: next(crossings)


def resources(folder: str) -> int:
    """Return how many resources the templates of an assembly have."""
    templates = (json.loads(path.read_text()) for path in Path(folder).glob("*.template.json"))
    return sum(len(template["Resources"]) for template in templates)


if __name__ == "__main__":
    began_s = time.perf_counter()
    kind, count, folder = sys.argv[1], int(sys.argv[2]), f"{sys.argv[3]}/{sys.argv[1]}"
    sys.path[:0] = [
        str(ROOT),
        *(str(folder) for pattern in ("constructs", "stacks", "packages/*") for folder in ROOT.glob(pattern)),
    ]
    crossings = count_crossings() if kind != "peer" else lambda: 0
    {"ours": ours, "bare": bare, "peer": peer}[kind](count, folder)
    seconds = time.perf_counter() - began_s
    print(json.dumps({"seconds": seconds, "crossings": crossings(), "resources": resources(folder)}))
