"""An endpoint for those who have no Python: its template without a bootstrapped account, or a Terraform module of it.

The template is that of the app. What the CDK would upload to the bucket that it bootstraps lies beside the template,
and a parameter names the bucket that it is uploaded to instead.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast

from seatrial.deployment.document import service_stack
from seatrial.deployment.load import load_deployment
from seatrial.deployment.optimization_job import jobs_name
from seatrial.deployment.published import sealed
from seatrial.operations.synthesis import StackSource, synthesized_file
from seatrial.packaging import zip_bytes
from seatrial_base.bounds import LONGEST_DEPLOYMENT_S
from seatrial_base.errors import SpecError
from seatrial_base.files import kind_of, read_file_bytes, read_text, write_together, write_whole
from seatrial_base.findings import Finding, Place
from seatrial_base.terminal import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.deployment.document import Deployment

ExportFormat = Literal["cloudformation", "terraform"]
ASSETS_BUCKET: Final = "AssetsBucket"
"""The parameter of a template that names the bucket of its assets."""
BUCKET_PATTERN: Final = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
"""Amazon S3 user guide, "General purpose bucket naming rules"."""
LARGEST_BODY_BYTES: Final = 51_200
"""Of a template that a call carries; a larger one is read from S3 (CloudFormation quotas)."""
LARGEST_TEMPLATE_BYTES: Final = 1_000_000
ASSETS: Final = "assets"
MODULE: Final = ("main.tf", "outputs.tf", "variables.tf", "versions.tf")
MARKER: Final = ".seatrial-export.json"
"""Lists what an export wrote, with the SHA-256 of each file: only that is written again or removed by the next one."""
_BOOTSTRAP = ("Parameters", "BootstrapVersion"), ("Rules", "CheckBootstrapVersion")
"""What the CDK adds to a template that reads from the bucket that it bootstraps (`DefaultStackSynthesizer`)."""
_NAMES_OF_ROLES = frozenset({"RoleName", "ManagedPolicyName", "InstanceProfileName", "UserName", "GroupName"})
Section = dict[str, "object"]


@dataclass(frozen=True, slots=True)
class Export:
    """What an export writes, and what whoever deploys it has to know.

    Attributes:
        subject: The stack and the format: another export takes another folder.
        deployed_first: The stacks of the environment that it calls by their names.
        files: The content of each file, by its path in the folder.
        commands: They upload what S3 has to have, and deploy.
    """

    subject: str
    deployed_first: tuple[str, ...]
    files: Mapping[str, bytes]
    commands: tuple[str, ...]
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class _Template:
    """The template of an endpoint without a bootstrapped account, and the assets that it reads by their keys in S3."""

    deployment: Deployment
    text: str
    assets: Mapping[str, bytes]
    outputs: tuple[str, ...]
    capability: str
    bucket: str | None

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.deployment.stack_name}.template.json"

    @property
    def is_large(self) -> bool:
        """Whether CloudFormation takes it from S3 alone."""
        return len(self.text.encode()) > LARGEST_BODY_BYTES

    @property
    def needs_bucket(self) -> bool:
        """Whether S3 has to have anything before it is deployed."""
        return bool(self.assets) or self.is_large

    @property
    def deployed_first(self) -> tuple[str, ...]:
        """The stacks of the environment that it calls by their names."""
        one, name = self.deployment, self.deployment.environment.name
        has_jobs = any(each.optimization_job is not None for each in (one, *one.guests, *one.variants))
        return (*((service_stack(name),) if one.needs_trial_service else ()), *((jobs_name(name),) if has_jobs else ()))


def export_of(
    spec: Path, environments: Path, environment: str, kind: ExportFormat, *, folder: Path | None, bucket: str | None
) -> tuple[Path, Export]:
    """Synthesize one endpoint, and return the folder of its export with what that holds; equal locks, equal bytes.

    Args:
        folder: Where it is to be written, as the commands name it; `None` for the name of the stack.
        bucket: The default of the bucket of assets; `None` for a parameter that has to be given.

    Raises:
        SpecError: With every problem of spec, environment and lock; SEA680 for what has no such template.
        RenderError: When the plan can't be rendered.
        SeatrialError: SEA446 without Node, SEA450 when the app fails.
    """
    deployment = load_deployment(spec, environments, environment)
    source = StackSource.of(spec, environments, deployment.environment, deployment.stack_name)
    with scratch_folder("seatrial-export-") as scratch:
        template = _template(deployment, synthesized_file(source, scratch / "app"), bucket)
    where = folder or Path(deployment.stack_name)
    chdir = f"terraform -chdir={shlex.quote(where.as_posix())}"
    commands = _commands(template, where) if kind == "cloudformation" else (f"{chdir} init", f"{chdir} apply")
    texts = {template.file: template.text, **_filled(template, kind, commands, where)}
    files = {name: text.encode() for name, text in texts.items()}
    files |= {f"{ASSETS}/{key}": content for key, content in template.assets.items()}
    return where, Export(
        f"{deployment.stack_name} for {kind}",
        template.deployed_first,
        files,
        commands,
        deployment.environment.is_embedded,
    )


def write_export(export: Export, folder: Path) -> tuple[Path, ...]:
    """Write an export into a folder that is new, empty or an earlier export, and return the paths of its files.

    What an earlier export wrote and this one has no more is removed. Whatever else lies there stays, such as the state
    of Terraform.

    Raises:
        SpecError: SEA681 with every file that an export would overwrite and did not write, or that was edited since.
        OSError: A file can't be written; texts are then as they were.
    """
    subject, earlier = _earlier(folder)
    if subject not in (None, export.subject):
        message = f"it holds the export of {subject}, not of {export.subject}"
        raise SpecError([_refused(folder, message, "give another folder with --output")])
    problems = [*_in_the_way(export, folder, earlier)]
    if problems:
        raise SpecError(problems)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(export.files.items())}
    folder.mkdir(parents=True, exist_ok=True)
    # Assets first: their names are digests of them, so that none takes the place of what an earlier template reads.
    for name in (name for name in digests if "/" in name):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, export.files[name])
    texts = {name: export.files[name].decode() for name in digests if "/" not in name}
    marker = {"export": export.subject, "files": digests}
    write_together(folder, {**texts, MARKER: json.dumps(marker, indent=1) + "\n"})
    for name in earlier.keys() - digests.keys():
        (folder / name).unlink(missing_ok=True)
    return tuple(folder / name for name in digests)


def _earlier(folder: Path) -> tuple[str | None, Mapping[str, str]]:
    """Return what an earlier export was of, with the digests of its files; a marker without them says nothing."""
    try:
        marker = json.loads(read_text(folder / MARKER))
        files = {str(name): str(digest) for name, digest in marker["files"].items()}
        return str(marker["export"]), files
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, MappingProxyType({})


def _in_the_way(export: Export, folder: Path, earlier: Mapping[str, str]) -> Iterator[Finding]:
    if kind_of(folder) not in {None, "folder"} or (folder.is_symlink() and not folder.exists()):
        yield _refused(folder, "it is no folder", "give another one with --output")
        return
    # A marker is a text that anyone may edit: a name in it that leads out of the folder is none of an export's.
    if strange := [name for name in earlier if not re.fullmatch(r"(?:assets/(?:\w[\w-]*/)*)?\w[\w.-]*", name)]:
        yield _refused(folder / MARKER, f"no export has the file {strange[0]}", f"remove {MARKER}, or the folder")
        return
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if kind_of(path) != "folder"}
    # An export that was interrupted left no marker, and nothing but what it would write again.
    if not earlier and (others := sorted(there - export.files.keys() - {MARKER})):
        message = f"it holds {others[0]}, which no export wrote"
        yield _refused(folder, message, "give a new or empty folder with --output")
        return
    for name in sorted(there & {*earlier, *export.files}):
        content = read_file_bytes(folder / name)
        if content == export.files.get(name):
            continue
        if name not in earlier:
            yield _refused(folder / name, "no export wrote it, and this one would overwrite it", "move it away")
        elif hashlib.sha256(content).hexdigest() != earlier[name]:
            hint = "move your edit out of the folder, and remove the file: a module of yours may call this one"
            yield _refused(folder / name, "it was edited since it was exported", hint)


def _refused(path: Path, message: str, hint: str) -> Finding:
    return Finding("SEA681", Place.at(path.as_posix()), message, hint)


def _template(deployment: Deployment, file: Path, bucket: str | None) -> _Template:
    """Return the template that the app wrote, without what it needs of a bootstrapped account.

    Raises:
        SpecError: SEA680.
    """
    manifest = json.loads(read_text(file.with_name(f"{deployment.stack_name}.assets.json")))
    if manifest.get("dockerImages"):
        raise _not_exported(deployment, "the app builds an image for it", "push the image to Amazon ECR, and name it")
    template: Section = json.loads(read_text(file))
    assets: dict[str, bytes] = {}
    buckets: set[str] = set()
    for each in manifest["files"].values():
        source = each["source"]
        if source.get("path") == file.name:
            continue
        if "path" not in source:
            raise _not_exported(deployment, "a program packs an asset of it", "let the app pack its assets")
        path, (place, *_) = file.parent / source["path"], each["destinations"].values()
        buckets.add(place["bucketName"])
        if source["packaging"] == "zip":
            parts = (part for part in path.rglob("*") if part.is_file())
            content = zip_bytes({part.relative_to(path).as_posix(): part.read_bytes() for part in parts})
        else:
            content = path.read_bytes()
        assets[place["objectKey"]] = content
    for section, name in _BOOTSTRAP:
        cast("Section", template.get(section, {})).pop(name, None)
    template = cast("Section", _of_parameter(template, frozenset(buckets)))
    if assets:
        parameter = {
            "Type": "String",
            "Description": "The bucket that holds the assets of this template, in the Region of the stack.",
            "AllowedPattern": BUCKET_PATTERN,
            "ConstraintDescription": "the name of an S3 bucket",
            **({} if bucket is None else {"Default": bucket}),
        }
        template["Parameters"] = {**cast("Section", template.get("Parameters", {})), ASSETS_BUCKET: parameter}
    whole = sealed({name: part for name, part in template.items() if part}, deployment.plan.digest)
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    if len(text.encode()) > LARGEST_BODY_BYTES:  # without its spaces one call may carry it
        text = json.dumps(whole, separators=(",", ":"), sort_keys=True) + "\n"
    if (size := len(text.encode())) > LARGEST_TEMPLATE_BYTES:
        message = f"its template has {size:,} bytes, at most {LARGEST_TEMPLATE_BYTES:,}"
        raise _not_exported(deployment, message, "let fewer models share the endpoint")
    return _Template(
        deployment=deployment,
        text=text,
        assets=dict(sorted(assets.items())),
        outputs=tuple(cast("Section", template.get("Outputs", {}))),
        capability="CAPABILITY_NAMED_IAM" if _names_roles(template["Resources"]) else "CAPABILITY_IAM",
        bucket=bucket,
    )


def _not_exported(deployment: Deployment, message: str, hint: str) -> SpecError:
    return SpecError.of("SEA680", message, where=deployment.stack_name, hint=hint)


def _of_parameter(node: object, buckets: frozenset[str]) -> object:
    """Return a part of a template with the parameter in place of the bucket that the CDK bootstraps.

    Args:
        buckets: Its name as the CDK writes it: a pattern of `Fn::Sub`, or a text where the account is known.
    """
    if isinstance(node, str):
        bucket = next((each for each in buckets if each in node), None)
        if bucket is None or node == bucket:
            return node if bucket is None else {"Ref": ASSETS_BUCKET}
        return {"Fn::Sub": node.replace("${", "${!").replace(bucket, f"${{{ASSETS_BUCKET}}}")}
    if isinstance(node, list):
        return [_of_parameter(each, buckets) for each in node]
    if not isinstance(node, dict):
        return node
    text = node.get("Fn::Sub")
    if not isinstance(text, str):
        return {key: _of_parameter(value, buckets) for key, value in node.items()}
    for bucket in buckets:
        text = text.replace(bucket, f"${{{ASSETS_BUCKET}}}")
    return {"Fn::Sub": text}


def _names_roles(resources: object) -> bool:
    each = cast("dict[str, Section]", resources).values()
    return any(_NAMES_OF_ROLES & cast("Section", one.get("Properties", {})).keys() for one in each)


def _commands(template: _Template, folder: Path) -> tuple[str, ...]:
    """Return the commands that upload assets and deploy the template; the AWS CLI uploads a large one itself."""
    region, stack = template.deployment.environment.region, template.deployment.stack_name
    bucket = template.bucket or "BUCKET"
    upload = f"aws s3 cp {shlex.quote((folder / ASSETS).as_posix())} s3://{bucket}/ --recursive --region {region}"
    deploy = [
        f"aws cloudformation deploy --stack-name {stack} --region {region}",
        f"--template-file {shlex.quote((folder / template.file).as_posix())} --capabilities {template.capability}",
        *([f"--s3-bucket {bucket} --s3-prefix {stack}"] if template.is_large else []),
        *([f"--parameter-overrides {ASSETS_BUCKET}={bucket}"] if template.assets else []),
    ]
    return (*([upload] if template.assets else []), " ".join(deploy))


def _filled(template: _Template, kind: ExportFormat, commands: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Return the page of an export, and the files of its module as `terraform fmt` writes them."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (other commands need no Jinja)

    one, environment = template.deployment, template.deployment.environment
    holes = {
        "account": environment.account,
        "bucket": template.bucket,
        "bucket_pattern": BUCKET_PATTERN,
        "capability": template.capability,
        "commands": commands,
        "deployed_first": template.deployed_first,
        "endpoint": one.endpoint.name,
        "environment": environment.name,
        "folder": folder.as_posix() if folder.is_absolute() else f"./{folder.as_posix()}",
        "has_assets": bool(template.assets),
        "is_large": template.is_large,
        "kind": kind,
        "needs_bucket": template.needs_bucket,
        "outputs": template.outputs,
        "plan": one.plan.digest,
        "region": environment.region,
        "stack": one.stack_name,
        "template": template.file,
        "timeout": f"{LONGEST_DEPLOYMENT_S // 60}m",
    }
    jinja = Environment(  # noqa: S701 (HCL and Markdown, not HTML)
        loader=FileSystemLoader(Path(__file__).resolve().parent / "terraform"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
    )
    jinja.filters["snake"] = _snake
    names = ("README.md", *(MODULE if kind == "terraform" else ()))
    return {name: jinja.get_template(f"{name}.j2").render(holes) for name in names}


def _snake(name: str) -> str:
    """Return a name as Terraform writes it."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
