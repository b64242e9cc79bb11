"""Documents of the form that each reader of foreign files expects, with one part repeated up to a size.

`hostile_texts` has texts that a pattern stumbles over; these have many parts of a kind instead, that refer to each
other or are compared with each other: a reader that looks at each pair takes hours for a megabyte.
"""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Run = "Callable[[], None]"
SPEC = """name: chat
model: {hub_id: meta-llama/Llama-2-7b-chat-hf, accept_eula: true}
workload: {input_tokens: 256, output_tokens: 256, concurrency: 4}
"""
RAILS = "guard_rails: {models: [meta-llama/*], licences: [llama2], max_copies: 4, required_tags: [team]}\n"
OPTIONS = f"{SPEC}serving: {{engine: vllm, overrides: {{extra: "

SPECS: Mapping[str, tuple[str, str, str]] = {
    "unknown fields": (SPEC, "f#: 1\n", ""),
    "a field many times": (SPEC, "name: chat\n", ""),
    "environments that are none": (f"{SPEC}environments:\n", "  e#: {tags: {a: b}}\n", ""),
    "lists in a list": (f"{SPEC}tags: ", "[", ""),
    "mappings in a mapping": (f"{SPEC}tags: ", "{a: ", ""),
    "anchors that name the one before": (f"{SPEC}x: &a0 [x]\n", "y#: &b# [*a0, *a0]\n", ""),
    "aliases of one anchor": (f"{SPEC}x: &a {{b: 1}}\ny: [", "*a,", "]\n"),
    "merges": (f"{SPEC}x: &a {{b: 1}}\n", "y#: {<<: *a}\n", ""),
    "instance types": (f"{SPEC}serving: {{instance_types: [", "ml.g#.xlarge,", "]}\n"),
    "instance types that are none": (f"{SPEC}serving: {{instance_types: [", "g#,", "]}\n"),
    "tags": (f"{SPEC}tags: {{", "t#: a,", "}\n"),
    "tags that are reserved": (f"{SPEC}tags: {{", "'seatrial:#': a,", "}\n"),
    "schedules": (f"{SPEC}scaling: {{schedules: [", "{name: a, schedule: rate(1 day), min_copies: 9},", "]}\n"),
    "models beside it": (f"{SPEC}hosting: {{more_models: [", "m#,", "]}\n"),
    "variants": (f"{SPEC}hosting: {{kind: single_model, variants: [", "{name: v},", "]}\n"),
    "adapters": (f"{SPEC}serving: {{adapters: [", "{name: a, s3_uri: 's3://b/a.tar.gz'},", "]}\n"),
    "optimizations": (f"{SPEC}optimization: [", "fp8,", "]\n"),
    "options": (OPTIONS + "{", "o#: evil/m#,", "}}}\n"),
    "one option that names many models": (f'{OPTIONS}{{lora_modules: "', "evil/m#,", '"}}}\n'),
    "one option that names many words": (f'{OPTIONS}{{lora_modules: "', "a ", '"}}}\n'),
    "an option in JSON": (f"{OPTIONS}{{speculative_config: '", '{"a": ', "'}}}\n"),
    "an option in JSON with many members": (f"{OPTIONS}{{speculative_config: '{{", '"m#": "evil/#",', '"x": 1}\'}}}\n'),
    "levels of a trial": (f"{SPEC}trial: {{concurrency_levels: [", "#,", "]}\n"),
    "a text of many lines": (f"{SPEC}description: |\n", "  a line\n", ""),
    "comments": (SPEC, "# a comment\n", ""),
    "documents": (SPEC, "---\nname: a\n", ""),
}
"""What stands before, what is repeated (`#` is the number), and what ends it."""
ENVIRONMENT = "name: dev\nregion: us-east-1\n"
ENVIRONMENTS: Mapping[str, tuple[str, str, str]] = {
    "models": (f"{ENVIRONMENT}guard_rails: {{models: [", "'m#/*',", "]}\n"),
    "patterns of stars": (f"{ENVIRONMENT}guard_rails: {{models: ['", "*a", "']}\n"),
    "instance types": (f"{ENVIRONMENT}guard_rails: {{instance_types: [", "ml.g#.xlarge,", "]}\n"),
    "required tags": (f"{ENVIRONMENT}guard_rails: {{required_tags: [", "t#,", "]}\n"),
    "options": (f"{ENVIRONMENT}guard_rails: {{models: [a], extra: [", "o#,", "]}\n"),
    "subnets": (f"{ENVIRONMENT}network: {{security_group_ids: [sg-1], subnet_ids: [", "subnet-#,", "]}\n"),
    "addresses": (f"{ENVIRONMENT}observability: {{budget_emails: [", "a#@b.de,", "]}\n"),
    "unknown fields": (ENVIRONMENT, "f#: 1\n", ""),
}
PRICES: Mapping[str, tuple[str, str, str]] = {
    "regions": ("regions:\n", "  us-east-#: {usd_per_hour: {ml.g5.xlarge: 1}}\n", ""),
    "types": ("regions:\n  us-east-1:\n    usd_per_hour: {", "ml.g#.xlarge: 1,", "}\n"),
    "types that are none": ("regions:\n  us-east-1:\n    usd_per_hour: {", "g#: 1,", "}\n"),
}
PRODUCT = """name: p
description: d
owner: o
version: 1.0.0
environments: [dev]
principals: ['arn:aws:iam::111122223333:role/a']
endpoint:
  model: {hub_id: meta-llama/Llama-2-7b-chat-hf}
  workload: {input_tokens: 256, output_tokens: 256, concurrency: 4}
"""
PRODUCTS: Mapping[str, tuple[str, str, str]] = {
    "sizes": (f"{PRODUCT}sizes:\n", "  s#: {}\n", ""),
    "fields of one size": (f"{PRODUCT}sizes: {{s: {{tags: {{", "t#: a,", "}}}\n"),
    "versions": (f"{PRODUCT}sizes: {{s: {{}}}}\ndeprecated: [", "0.0.#,", "]\n"),
    "principals": (PRODUCT.replace("['arn:aws:iam::111122223333:role/a']", "["), "", ""),
    "teams": (f"{PRODUCT}sizes: {{s: {{}}}}\nparameters: {{teams: [", "t#,", "]}\n"),
}
JSON: Mapping[str, tuple[str, str, str]] = {
    "members": ("{", '"k#":1,', '"x":1}'),
    "one member many times": ("{", '"k":1,', '"x":1}'),
    "the last member twice": ("{", '"k#":1,', '"x":1,"x":1}'),
    "lists in lists": ("", "[", ""),
    "objects in objects": ("", '{"a":', ""),
    "numbers": ("[", "#,", "1]"),
    "a long number": ("", "1", ""),
    "a long text": ('"', "a", '"'),
    "escapes": ('"', "\\u0041", '"'),
    "lines": ("", '{"a": 1}\n', ""),
    "lines of text": ("", "a line that is none\n", ""),
    "objects in a list": ("[", '{"model_id": "m", "version": "1.#"},', "{}]"),
}
"""For whatever is read as JSON, or line by line."""
TABLES: Mapping[str, tuple[str, str, str]] = {
    "columns": ("", "c#,", "\n1,2\n"),
    "one column many times": ("", "model,", "\n1,2\n"),
    "cells": ("timestamp,input_length,output_length\n", "1,", "\n"),
    "rows": ("timestamp,input_length,output_length\n", "#,1,1\n", ""),
    "rows of another form": ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "2024-01-01 00:00:00,1,1\n", ""),
    "wrong rows": ("timestamp,input_length,output_length\n", "a,b,c\n", ""),
    "quotes": ("timestamp,input_length,output_length\n", '"', ""),
    "commas": ("timestamp,input_length,output_length\n", ",", ""),
    "points": ("concurrency,output_tok_s,ms_per_token_p90\n", "#,#,10\n", ""),
    "one point many times": ("concurrency,output_tok_s,ms_per_token_p90\n", "1,1,10\n", ""),
    "rows to predict": ("model,instance_type,input_tokens,output_tokens,concurrency\n", "m#,ml.g5.xlarge,1,1,1\n", ""),
}
ROWS_JSON: Mapping[str, tuple[str, str, str]] = {
    "traces": ("", '{"timestamp": #, "input_length": 1, "output_length": 1, "hash_ids": [#]}\n', ""),
    "agents": (
        '{"requests": [{"t": 0, "in": 9, "out": 1},',
        '{"t": #, "type": "subagent", "requests": [{"t": 0, "in": 1e9, "out": 1}]},',
        '{"t": 1, "in": 9, "out": 1}]}',
    ),
    "sessions": ("", '{"session_id": 1, "timestamp": #, "input_length": 1e9, "output_length": 1}\n', ""),
    "spans": (
        "",
        '{"span_id": "#", "parent_span_id": "1#", "trace_id": 1, "start_time": #, "attributes": '
        '{"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 9}}\n',
        "",
    ),
    "blocks": ('{"timestamp": 1, "input_length": 999999999, "output_length": 1, "hash_ids": [', "#,", "1]}\n"),
    "prompts": ("", '{"text_input": "a"}\n', ""),
    "conversations": ("", '{"session_id": "s#", "turns": [{"text": "a"}, {"text": "b"}]}\n', ""),
    "turns": ('{"session_id": "s", "turns": [', '{"text": "a"},', '{"text": "b"}]}\n'),
    "evaluations": ("", '{"id": "#", "prompt": "a", "reference": "b"}\n', ""),
    "one id many times": ("", '{"id": "a", "prompt": "a", "reference": "b"}\n', ""),
    "lengths": ("", '{"input_length": 1, "output_length": 1}\n', ""),
}
CONFIGURATIONS: Mapping[str, tuple[str, str, str, str]] = {
    "variables": ("a.env", "", "OPTION_X#=1\n", ""),
    "one variable many times": ("a.env", "", "OPTION_DTYPE=fp16\n", ""),
    "unknown variables": ("a.env", "OPTION_MODEL_ID=m\n", "OPTION_TENSOR_PARALEL_#=1\n", ""),
    "properties": ("serving.properties", "engine=Python\n", "option.x#=1\n", ""),
    "continued lines": ("serving.properties", "engine=Python\noption.a=", "\\\n", ""),
    "containers": ("a.json", '{"Containers":[', '{"Image":"a","Environment":{"OPTION_DTYPE":"fp16"}},', "{}]}"),
    "one member many times": ("a.json", '{"PrimaryContainer":{"Image":"a","Environment":{', '"A":"1",', '"B":"1"}}}'),
    "variants": ("a.json", '{"ProductionVariants":[', '{"InstanceType":"ml.g5.xlarge","ModelName":"m#"},', "{}]}"),
    "pods": (
        "a.yaml",
        "",
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: vllm, env: [{name: A, value: b}]}]}\n---\n",
        "",
    ),
    "containers of a pod": (
        "a.yaml",
        "kind: Pod\nspec:\n  containers:\n",
        "  - {image: vllm, env: [{name: A, value: b}]}\n",
        "",
    ),
    "services": ("a.yaml", "services:\n", "  s#: {image: vllm, environment: [A=b]}\n", ""),
    "anchors": ("a.yaml", "services:\n  a: &a {image: vllm, environment: [A=b]}\n", "  s#: *a\n", ""),
    "a Terraform plan": (
        "plan.json",
        '{"format_version":"1.2","planned_values":{"root_module":{"resources":[',
        '{"type":"aws_sagemaker_model","name":"m#","address":"a#","values":{"primary_container":[{"image":"a"}]}},',
        "{}]}}}",
    ),
    "modules of Terraform": (
        "plan.json",
        '{"format_version":"1.2","planned_values":{"root_module":',
        '{"child_modules":[',
        "",
    ),
    "calls": (
        "a.py",
        "import boto3\nsm = boto3.client('sagemaker')\n",
        "sm.create_model(PrimaryContainer={'Image':'a'})\n",
        "",
    ),
    "names": ("a.py", "PrimaryContainer = 1\n", "a# = a\n", ""),
    "cells": (
        "a.ipynb",
        '{"nbformat":4,"cells":[',
        '{"cell_type":"code","source":["sm.create_model(PrimaryContainer={\'Image\':\'a\'})"]},',
        '{"cell_type":"code","source":[]}]}',
    ),
    "lines of a cell": (
        "a.ipynb",
        '{"nbformat":4,"cells":[{"cell_type":"code","source":["PrimaryContainer',
        '\\n",\n"a=1',
        '"]}]}',
    ),
}
"""The file's name, what stands before, what is repeated, and what ends it."""


def filled(before: str, unit: str, after: str, length: int) -> str:
    """Return a document of about a length."""
    room = length - len(before) - len(after)
    if not unit or room <= 0:
        return before + after
    if "#" not in unit:
        return before + unit * (room // len(unit)) + after
    parts, size, number = [before], 0, 0
    while size < room:
        part = unit.replace("#", str(number))
        parts.append(part)
        size += len(part)
        number += 1
    return "".join((*parts, after))


def _role(statement: Mapping[str, object]) -> dict[str, object]:
    policy = {"PolicyName": "p", "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
    return {"R": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [policy]}}}


def _allow(**fields: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **fields}


def _each(count: int, name: str, kind: str, **properties: object) -> dict[str, object]:
    """Return so many resources of a type; `#` in their properties is the number of each."""
    text = json.dumps({"Type": kind, "Properties": properties})
    return {f"{name}{number}": json.loads(text.replace("#", str(number))) for number in range(count)}


_ENDPOINT = {"E": {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointConfigName": {"Ref": "C"}}}}
_SCALED = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"}


def _config(**properties: object) -> dict[str, object]:
    return {"C": {"Type": "AWS::SageMaker::EndpointConfig", "Properties": properties}}


def _describing(count: int) -> dict[str, object]:
    named = [f"arn:aws:cloudwatch:*:*:alarm:a{number}*b" for number in range(count)]
    return _role(_allow(Action="cloudwatch:DescribeAlarms", Resource=named))


def _rolled_back(*alarms: str) -> dict[str, object]:
    return {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name} for name in alarms]}}


def _ref(name: str) -> dict[str, object]:
    return {"Ref": name}


TEMPLATES: Mapping[str, Callable[[int], dict[str, object]]] = {
    "one statement of everything": lambda n: _role(
        _allow(
            Action=[f"s3:Get{'?' * (at % 20)}*{'*' * (at // 20)}" for at in range(n)],
            Resource=[f"arn:aws:s3:::b{at}/*" for at in range(n)],
            Condition={"StringEquals": {f"s3:key{at}": "a" for at in range(n)}},
        )
    ),
    "resources beside whole services": lambda n: _role(
        _allow(Action=["s3:*", "sagemaker:*", "ec2:*", "iam:*"], Resource=[f"arn:aws:x:::{at}*" for at in range(n)])
    ),
    "stars of a resource": lambda n: _role(_allow(Resource=["arn:" + "*:?" * n])),
    "stars of an action": lambda n: _role(_allow(Action=["s3:" + "*a" * n])),
    "actions": lambda n: _role(_allow(Action=[f"s3:Gett{at}" for at in range(n)])),
    "services": lambda n: _role(_allow(Action=[f"s{at}x:Get" for at in range(n)])),
    "conditions": lambda n: _role(_allow(Condition={f"StringEquals{at}": {"s3:x": "a"} for at in range(n)})),
    "roles": lambda n: {
        **_each(n, "R", "AWS::IAM::Role"),
        **_each(n, "P", "AWS::IAM::Policy", Roles=[_ref("R#")], PolicyDocument={"Statement": [_allow()]}),
    },
    "roles of one policy": lambda n: {
        **_each(n, "R", "AWS::IAM::Role"),
        **_each(1, "P", "AWS::IAM::Policy", Roles=[_ref(f"R{at}") for at in range(n)], PolicyDocument={}),
    },
    "managed policies of one role": lambda n: {
        **_each(n, "P", "AWS::IAM::ManagedPolicy", PolicyDocument={"Statement": [_allow()]}),
        **_each(n, "R", "AWS::IAM::Role", ManagedPolicyArns=[_ref("P0")]),
    },
    "variants and components": lambda n: {
        **_config(ProductionVariants=[{"VariantName": f"v{at}", "InstanceType": "ml.g5.xlarge"} for at in range(n)]),
        **_ENDPOINT,
        **_each(n, "I", "AWS::SageMaker::InferenceComponent", EndpointName=_ref("E"), VariantName="w#"),
    },
    "targets and policies": lambda n: {
        **_each(n, "T", "AWS::ApplicationAutoScaling::ScalableTarget", ResourceId="inference-component/c#", **_SCALED),
        **_each(n, "P", "AWS::ApplicationAutoScaling::ScalingPolicy", ResourceId="inference-component/c#", **_SCALED),
    },
    "policies of one target": lambda n: {
        **_each(n, "T", "AWS::ApplicationAutoScaling::ScalableTarget", ResourceId="inference-component/c#", **_SCALED),
        **_each(n, "P", "AWS::ApplicationAutoScaling::ScalingPolicy", ScalingTargetId=_ref(f"T{n - 1}")),
    },
    "a chain": lambda n: {
        **_config(),
        **_ENDPOINT,
        **{f"X{at}": {"Type": "A::B::C", "DependsOn": [f"X{at + 1}"]} for at in range(n)},
        **{
            f"I{at}": {
                "Type": "AWS::SageMaker::InferenceComponent",
                "DependsOn": "X0",
                "Properties": {"EndpointName": "e"},
            }
            for at in range(n)
        },
    },
    "endpoints of a chain": lambda n: {
        **{f"X{at}": {"Type": "A::B::C", "DependsOn": [f"X{at + 1}"]} for at in range(n)},
        **_each(n, "E", "AWS::SageMaker::Endpoint", EndpointName="e#"),
        **{
            f"I{at}": {
                "Type": "AWS::SageMaker::InferenceComponent",
                "DependsOn": "X0",
                "Properties": {"EndpointName": f"e{at}"},
            }
            for at in range(n)
        },
    },
    "alarms": lambda n: {
        **_describing(n),
        **_config(ExecutionRoleArn={"Fn::GetAtt": ["R", "Arn"]}),
        "E": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointConfigName": _ref("C"),
                "DeploymentConfig": _rolled_back(*(f"z{at}" for at in range(n))),
            },
        },
    },
    "endpoints of one role": lambda n: {
        **_describing(n),
        **_each(n, "C", "AWS::SageMaker::EndpointConfig", ExecutionRoleArn={"Fn::GetAtt": ["R", "Arn"]}),
        **_each(n, "E", "AWS::SageMaker::Endpoint", EndpointConfigName=_ref("C#"), DeploymentConfig=_rolled_back("z")),
    },
    "variables": lambda n: _each(
        1,
        "M",
        "AWS::SageMaker::Model",
        PrimaryContainer={"Environment": {f"PASSWORD{at}": "a1b2c3d4e5f6g7h8" for at in range(n)}},
    ),
    "models": lambda n: _each(n, "M", "AWS::SageMaker::Model", ModelName="same"),
    "names with dots": lambda n: (
        _each(
            1,
            "M",
            "AWS::SageMaker::Model",
            PrimaryContainer={"Environment": {"PASSWORD" + ".a" * at: "a1b2c3d4e5f6g7h8" for at in range(n)}},
        )
        if n < 1_000
        else {}
    ),
    "one variant many times": lambda n: _config(
        ProductionVariants=[{"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge"}] * n
    ),
    "parts of a text": lambda n: _each(1, "M", "A::B::C", X={"Fn::Sub": ["${a}" * n, {"a": "${b}" * n}]}),
    "parts of a list": lambda n: _each(n, "M", "A::B::C", X={"Fn::Split": [",", "a," * 99]}),
    "references": lambda n: _each(1, "M", "A::B::C", X=[_ref(f"R{at}") for at in range(n)]),
    "resources": lambda n: _each(n, "R", "A::B::C"),
    "buckets": lambda n: _each(n, "B", "AWS::S3::BucketPolicy", PolicyDocument={"Statement": [_allow()]}),
}
"""Resources of so many parts."""


def template_of_size(name: str, length: int) -> str:
    """Return a template of at most a length, and not much less."""
    count, text = 1, ""
    while True:
        found = json.dumps({"Resources": TEMPLATES[name](count)})
        if len(found) > length or len(found) == len(text):
            return text or found
        count, text = max(count + 1, int(count * min(2, 0.95 * length / len(found)))), found


def command(*arguments: str) -> Callable[[], None]:
    """Return a run of the command line, as people run it; a refusal is an answer, too."""
    from typer import Exit  # noqa: PLC0415 (each reader imports its own, so that one alone is measured)

    from seatrial_base.errors import SeatrialError  # noqa: PLC0415 (as above)

    def run() -> None:
        try:
            _command_line()([*arguments], standalone_mode=False)
        except (SeatrialError, Exit):
            return

    return run


@cache
def _command_line() -> Callable[..., object]:
    from typer.main import get_command  # noqa: PLC0415 (as above)

    from seatrial.cli.app import app  # noqa: PLC0415 (as above)

    return get_command(app).main


def written(file: Path, content: str | bytes, run: Callable[[], object]) -> Callable[[], None]:
    """Return a run for which a file is written before; what it refuses is an answer, too."""

    def both() -> None:
        from seatrial_base.errors import SeatrialError  # noqa: PLC0415 (as above)

        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            run()
        except (SeatrialError, ValueError):
            return

    return both


def _with_spec(environment: str = ENVIRONMENT) -> None:
    for folder in ("endpoints", "environments"):
        Path(folder).mkdir(exist_ok=True)
    Path("environments/dev.yaml").write_text(environment, encoding="utf-8")
    Path("endpoints/chat.yaml").write_text(SPEC, encoding="utf-8")


def specs(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec(ENVIRONMENT + RAILS)
    file = Path("endpoints/chat.yaml")
    for name, parts in SPECS.items():
        yield name, written(file, filled(*parts, length), command("validate", str(file)))


def environments(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec()
    for name, parts in ENVIRONMENTS.items():
        yield name, written(Path("environments/dev.yaml"), filled(*parts, length), command("validate", "endpoints"))


def prices(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec()
    for name, parts in PRICES.items():
        yield name, written(Path("environments/prices.yaml"), filled(*parts, length), command("validate", "endpoints"))


def products(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec(f"{ENVIRONMENT}vending: true\n")
    file = Path("products/p.yaml")
    for name, parts in PRODUCTS.items():
        yield name, written(file, filled(*parts, length), command("products", "validate", str(file)))


def locks(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec()
    lock, run = Path("endpoints/chat.lock.json"), command("render", "endpoints/chat.yaml", "-e", "dev")
    for name, parts in JSON.items():
        yield name, written(lock, filled(*parts, length), run)
    command("plan", "endpoints/chat.yaml", "-e", "dev", "--write", "--accept-slo-miss")()
    whole = json.loads(lock.read_text(encoding="utf-8"))
    (plan,) = whole["environments"].values()
    count = max(1, length // len(json.dumps(plan)))
    yield "plans", written(lock, json.dumps({**whole, "environments": {f"e{at}": plan for at in range(count)}}), run)
    for field, value in plan.items():
        if isinstance(value, list) and value:
            copies = max(1, length // len(json.dumps(value)))
            longer = {**whole, "environments": {"dev": {**plan, field: value * copies}}}
            yield f"{field} of a plan", written(lock, json.dumps(longer), run)


def calibrations(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    _with_spec()
    run = command("validate", "endpoints/chat.yaml")
    for name, parts in JSON.items():
        yield name, written(Path("endpoints/chat.calibration.json"), filled(*parts, length), run)
    command("plan", "endpoints/chat.yaml", "-e", "dev", "--write", "--accept-slo-miss")()
    ask = ("calibrate", "endpoints/chat.yaml", "-e", "dev")
    for name, parts in TABLES.items():
        file = Path("points.csv")
        yield f"points: {name}", written(file, filled(*parts, length), command(*ask, "--points", str(file)))
    for name, parts in JSON.items():
        file = Path("export.json")
        yield f"export: {name}", written(file, filled(*parts, length), command(*ask, "--benchmark", f"1={file}"))
        file = Path("result.json")
        yield f"result: {name}", written(file, filled(*parts, length), command(*ask, "--result", str(file)))
    file = Path("output.tar.gz")
    for name, files in (("files of an archive", length // 512), ("zeros of an archive", 1)):
        yield name, written(file, _archive(files, length), command(*ask, "--benchmark", f"1={file}"))


def _archive(files: int, length: int) -> bytes:
    """Return an archive that is as long unpacked, or, of one file, a thousand times as long."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for number in range(files):
            content = b"" if files > 1 else b"0" * min(1_000 * length, 2**28)
            entry = tarfile.TarInfo(f"{number}/other.json")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def configurations(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, (file, first, part, last) in CONFIGURATIONS.items():
        content = filled(first, part, last, length)
        yield name, written(Path(file), content, command("lint", file))
        if file.endswith((".env", ".properties")):
            yield f"{name}, converted", written(Path(file), content, command("convert", file, "--to", "vllm"))


def templates(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name in TEMPLATES:
        file = Path("template.json")
        yield name, written(file, template_of_size(name, length), command("check", str(file), "--region", "us-east-1"))
    for name, parts in JSON.items():
        yield f"JSON: {name}", written(Path("t.json"), filled(*parts, length), command("check", "t.json"))
    for name, parts in SPECS.items():
        yield f"YAML: {name}", written(Path("t.yaml"), filled(*parts, length), command("check", "t.yaml"))


def changed_templates(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial.operations.template_diff import diff_templates  # noqa: PLC0415 (as above)
    from seatrial_lint.cloudformation.template import read_template  # noqa: PLC0415 (as above)

    def compare(old: str, new: str) -> Callable[[], None]:
        def compared() -> None:
            diff_templates(read_template(old, name="a"), read_template(new, name="b"))

        return compared

    for name in TEMPLATES:
        text = template_of_size(name, length // 2)
        yield name, compare(text, text.replace("a", "b"))
        yield f"{name}, removed", compare(text, '{"Resources": {}}')


def tables(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, parts in TABLES.items():
        yield name, written(Path("rows.csv"), filled(*parts, length), command("predict", "rows.csv"))


def traffic(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial_load.prompts.dataset import read_dataset  # noqa: PLC0415 (as above)
    from seatrial_load.prompts.jsonl import JsonlPrompts  # noqa: PLC0415 (as above)
    from seatrial_load.prompts.trace import read_trace, sessions_dataset  # noqa: PLC0415 (as above)
    from seatrial_load.quality.scores import evaluation_set  # noqa: PLC0415 (as above)

    readers: Mapping[str, Callable[[Path], object]] = {
        "trace": read_trace,
        "sessions": sessions_dataset,
        "dataset": read_dataset,
        "recording": lambda file: read_dataset(file, timed=True),
        "prompts": lambda file: JsonlPrompts(file, tokens_out=1, chat=True),
        "evaluations": lambda file: evaluation_set(file.read_bytes(), file.name, chat=True),
    }
    for suffix, every in ((".csv", TABLES), (".jsonl", {**JSON, **ROWS_JSON})):
        for name, parts in every.items():
            file, content = Path(f"rows{suffix}"), filled(*parts, length)
            for reader, read in readers.items():
                yield f"{reader}: {name}", written(file, content, partial(read, file))


def results(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial_load.documents.request import TrialRequest  # noqa: PLC0415 (as above)
    from seatrial_load.documents.strict_json import read_document  # noqa: PLC0415 (as above)

    file = Path("result.json")
    for name, parts in JSON.items():
        content = filled(*parts, length)
        yield name, written(file, content, command("report", str(file), "-o", "out"))
        yield f"recipe: {name}", written(file, content, command("compare", str(file), str(file)))
        read = partial(read_document, TrialRequest, content, where="a")
        yield f"request: {name}", written(file, content, read)


def facts(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield readers of files that tell of a model, of a run of the embedded AWS, or why something failed."""
    from seatrial.specs.spec_files import indexed_bytes  # noqa: PLC0415 (as above)
    from seatrial_base.catalog.architecture import from_config_json  # noqa: PLC0415 (as above)
    from seatrial_base.catalog.jumpstart import read_metadata  # noqa: PLC0415 (as above)
    from seatrial_base.catalog.symptoms import find_symptom  # noqa: PLC0415 (as above)
    from tests.acceptance.transcript.compare import read_profile  # noqa: PLC0415 (as above)
    from tests.acceptance.transcript.lines import read_transcript  # noqa: PLC0415 (as above)

    readers: Mapping[str, Callable[[Path], object]] = {
        "config.json": from_config_json,
        "model.safetensors.index.json": lambda file: indexed_bytes(file.parent),
        "metadata.json": lambda file: read_metadata(file, "m"),
        "profile.json": read_profile,
        "transcript.jsonl": read_transcript,
        "log.txt": lambda file: find_symptom(tuple(file.read_text(encoding="utf-8").splitlines())),
    }
    for name, parts in JSON.items():
        content = filled(*parts, length)
        for file, read in readers.items():
            path = Path(file)
            yield f"{file}: {name}", written(path, content, lambda read=read, path=path: read(path))  # type: ignore[misc]


READERS: Mapping[str, Callable[[int], Iterator[tuple[str, Callable[[], None]]]]] = {
    "specs": specs,
    "environments": environments,
    "prices": prices,
    "products": products,
    "locks": locks,
    "calibrations": calibrations,
    "configurations": configurations,
    "templates": templates,
    "changed templates": changed_templates,
    "tables": tables,
    "traffic": traffic,
    "results": results,
    "facts": facts,
}
