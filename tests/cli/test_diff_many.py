"""`seatrial diff --base` over every endpoint and environment; the app writes templates without the CDK."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.conftest import REPOSITORY
from tests.cli.test_diff import GIT, git
from tests.operations.sample_stack import properties, sample_document

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial

APP = """
import json, os, pathlib
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
stack = pathlib.Path("stack.json").read_text()
for lock in pathlib.Path(context["endpoints"]).glob("*.lock.json"):
    name = lock.name.removesuffix(".lock.json")
    assert (lock.parent / f"{name}.yaml").exists()
    for environment, seal in json.loads(lock.read_text())["digests"].items():
        if environment == context.get("environment", environment):
            template = stack.replace("048dbcc6", seal["plan"])
            file = pathlib.Path(os.environ["CDK_OUTDIR"], f"seatrial-{environment}-{name}.template.json")
            file.write_text(template)
    if "environment" not in context:
        assert "local" not in json.loads(lock.read_text())["environments"]
"""
PAGE = REPOSITORY / "docs" / "how-to" / "review-a-pull-request.md"
SHOWN = "$ seatrial diff --base HEAD\n"
LLAMA = "endpoints/llama-2-7b-chat.yaml"
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def repository(project: Path) -> Path:
    (project / "cdk.json").write_text(json.dumps({"app": "python app.py"}))
    (project / "app.py").write_text(APP)
    (project / "stack.json").write_text(json.dumps(sample_document()))
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "first")
    return project


def document(seatrial: Seatrial, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = seatrial("diff", *arguments, "--base", "HEAD", "--format", "json", env=GIT)
    assert (done.returncode, done.stderr if not code else "") == (code, "")
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def places(read: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["endpoint"], one["environment"], one["change"]) for one in read["endpoints"]]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def assert_golden(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_nothing_changes(seatrial: Seatrial, repository: Path) -> None:
    done = seatrial("diff", "--base", "HEAD", "--check", env=GIT)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout == "revision HEAD → this checkout\n\nNo endpoint changes. 9 endpoints and environments compared.\n"
    )
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_what_is_not_deployed_is_not_synthesized(seatrial: Seatrial, repository: Path) -> None:
    """An app that fails would be told."""
    (repository / "stack.json").unlink()
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "second")
    edit(repository / LLAMA, "objective: cost", "objective: cost  # a comment")
    (repository / "README.md").write_text("text")
    (repository / "docs").mkdir()
    (repository / "docs" / "page.md").write_text("text")
    assert document(seatrial, "endpoints", "--check")["is_empty"]


def test_a_stale_lock_is_told_and_fails_only_a_check(seatrial: Seatrial, repository: Path) -> None:
    edit(repository / LLAMA, "concurrency: 96", "concurrency: 80")
    read = document(seatrial, "--check", code=1)
    assert places(read) == [("llama-2-7b-chat", "prod", "changed")]
    (only,) = read["endpoints"]
    assert [one["rule"] for one in only["findings"] if one["severity"] == "error"] == ["SEA402"]
    assert (only["is_blocked"], only["risk"], only["resources"]) == (True, None, [])
    assert only["spec"] == [{"field": "workload.concurrency", "old": "96", "new": "80"}]


def test_the_page_shows_what_the_command_writes(seatrial: Seatrial, repository: Path) -> None:
    edit(repository / LLAMA, "concurrency: 96", "concurrency: 80")
    done = seatrial("diff", "--base", "HEAD", env=GIT)
    assert done.returncode == 0  # a stale lock fails a check alone
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(SHOWN)
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(f"{head}{SHOWN}{done.stdout}```{rest.partition('```')[2]}", encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").partition(SHOWN)[2].partition("```")[0] == done.stdout


def test_a_second_endpoint_is_told_with_resources_costs_and_quotas(seatrial: Seatrial, repository: Path) -> None:
    edit(repository / LLAMA, "min_copies: 2\n      max_copies: 6", "min_copies: 3\n      max_copies: 7")
    assert seatrial("plan", LLAMA, "-e", "prod", "--write").returncode == 0
    read = document(seatrial)
    assert places(read) == [("llama-2-7b-chat", "prod", "changed")]
    (only,) = read["endpoints"]
    assert {one["field"] for one in only["spec"]} == {"scaling.max_copies", "scaling.min_copies"}
    decided = {one["field"]: (one["old"], one["new"], bool(one["because"])) for one in only["plan"]}
    assert decided["max_copies"] == ("6", "7", False)
    assert decided["copy_count"][2]
    updated = {one["logical_id"] for one in only["resources"] if one["action"] == "updated"}
    assert {"Candidate", "Trial"} <= updated
    cost = only["costs"]["usd_per_hour"]
    assert cost["before"] < cost["after"]
    assert {point["concurrency"] for point in only["curve"]} >= {1, 2, 4}
    changed = [tuple(one.values()) for one in read["quotas"] if one["before"] != one["after"]]
    assert changed == [("prod", "ml.g5.2xlarge", 0, 7, 7), ("prod", "ml.g6e.2xlarge", 6, 6, 0)]
    comment = seatrial("diff", "--base", "HEAD", "--format", "markdown", env=GIT)
    assert comment.returncode == 0
    assert comment.stdout.count("<details>") == comment.stdout.count("</details>") == 2


def test_new_removed_and_never_locked_endpoints(seatrial: Seatrial, repository: Path) -> None:
    for name in ("falcon-40b.yaml", "falcon-40b.lock.json"):
        git(repository, "rm", "--quiet", "--cached", f"endpoints/{name}")
    git(repository, "commit", "--quiet", "-m", "second")
    for name in ("mixtral-8x7b.yaml", "mixtral-8x7b.lock.json"):
        (repository / "endpoints" / name).unlink()
    text = (repository / LLAMA).read_text().replace("name: llama-2-7b-chat", "name: second")
    (repository / "endpoints" / "second.yaml").write_text(text)
    read = document(seatrial, "-e", "dev", "-e", "prod")
    assert places(read) == [
        ("falcon-40b", "dev", "new"),
        ("mixtral-8x7b", "dev", "removed"),
        ("falcon-40b", "prod", "new"),
        ("mixtral-8x7b", "prod", "removed"),
    ]
    assert read["unlocked"] == ["endpoints/second.yaml"]
    assert {one["action"] for one in read["endpoints"][0]["resources"]} == {"created"}
    assert [one["resources"] for one in read["endpoints"] if one["change"] == "removed"] == [[], []]


def test_a_renamed_endpoint_is_another_one_and_a_renamed_file_is_not(seatrial: Seatrial, repository: Path) -> None:
    folder = repository / "endpoints"
    for suffix in (".yaml", ".lock.json"):
        (folder / f"falcon-40b{suffix}").rename(folder / f"bird{suffix}")
    assert document(seatrial, "-e", "prod")["endpoints"] == []
    (folder / "bird.lock.json").unlink()
    edit(folder / "bird.yaml", "name: falcon-40b", "name: bird")
    assert seatrial("plan", "endpoints/bird.yaml", "-e", "prod", "--write").returncode == 0
    read = document(seatrial, "-e", "prod")
    assert [(one["endpoint"], one["change"], one["renamed"]) for one in read["endpoints"]] == [
        ("bird", "new", "falcon-40b"),
        ("falcon-40b", "removed", "bird"),
    ]
    shown = seatrial("diff", "--base", "HEAD", "-e", "prod", env=GIT).stdout
    assert "bird in prod: new, renamed from falcon-40b; " in shown
    assert "A new stack is made of the same spec; that of falcon-40b stays deployed until it is deleted." in shown
    assert "falcon-40b in prod: removed, renamed to bird; stays deployed until its stack is deleted" in shown


def test_looser_rails_come_first_and_licences_are_told(seatrial: Seatrial, repository: Path) -> None:
    place = repository / "environments" / "prod.yaml"
    place.write_text(place.read_text() + "network: {isolated: false}\n")
    rails = yaml.safe_load(place.read_text())
    rails["guard_rails"] = {**rails.get("guard_rails", {}), "licences": ["apache-2.0", "llama2"]}
    place.write_text(yaml.safe_dump(rails))
    git(repository, "commit", "--quiet", "-am", "rails")
    rails["guard_rails"]["licences"] = ["apache-2.0", "llama2", "mit"]
    place.write_text(yaml.safe_dump(rails))
    edit(repository / LLAMA, "hub_id: meta-llama/Llama-2-7b-chat-hf", "hub_id: mistralai/Mistral-7B-Instruct-v0.3")
    lines = seatrial("diff", "--base", "HEAD", "-e", "prod", "--format", "markdown", env=GIT).stdout.splitlines()
    first = next(line for line in lines[1:] if line)
    assert first.startswith("Looser guard rails in prod: licences")
    assert '"mit"' in first
    assert "Licence llama2 → apache-2.0: llama-2-7b-chat in prod." in lines


def test_a_comment_on_a_small_change(seatrial: Seatrial, repository: Path) -> None:
    """A tag of two environments: what is the same of all endpoints is told once."""
    for name in ("dev", "prod"):
        edit(repository / "environments" / f"{name}.yaml", "tags:", "tags:\n  team: search")
    done = seatrial("diff", "--base", "HEAD", "--format", "markdown", env=GIT)
    assert (done.returncode, done.stderr) == (0, "")
    assert_golden("small-change.md", done.stdout)


def test_a_comment_on_a_change_with_risks(seatrial: Seatrial, repository: Path) -> None:
    """The code replaces every model, one lock is stale, one spec is broken, one is removed, two of three are alike."""
    changed = sample_document()
    properties(changed, "Model")["PrimaryContainer"]["Environment"]["MAX_BATCH"] = "64"
    (repository / "stack.json").write_text(json.dumps(changed))
    edit(repository / LLAMA, "concurrency: 96", "concurrency: 80")
    (repository / "endpoints" / "falcon-40b.yaml").write_text("name: [")
    for name in ("mixtral-8x7b.yaml", "mixtral-8x7b.lock.json"):
        (repository / "endpoints" / name).unlink()
    done = seatrial("diff", "--base", "HEAD", "--format", "markdown", env=GIT)
    assert (done.returncode, done.stderr) == (0, "")
    assert_golden("change-with-risks.md", done.stdout)


def test_another_account_is_a_new_deployment_and_a_named_one_is_the_same(seatrial: Seatrial, repository: Path) -> None:
    prod = repository / "environments" / "prod.yaml"
    edit(prod, "name: prod", 'name: prod\naccount: "111111111111"')
    named = {(one["is_moved"], one["change"], len(one["refused"])) for one in document(seatrial)["endpoints"]}
    git(repository, "commit", "--quiet", "-a", "-m", "second")
    edit(prod, "111111111111", "222222222222")
    read = document(seatrial)
    assert named == {(False, "changed", 0)}
    assert {one["is_moved"] for one in read["endpoints"]} == {True}
    assert {row["action"] for one in read["endpoints"] for row in one["resources"]} == {"created"}
    assert {one["before"] for one in read["quotas"]} == {0}


def test_a_base_that_went_on_is_told_and_three_dots_are_its_merge_base(seatrial: Seatrial, repository: Path) -> None:
    git(repository, "branch", "theirs")
    git(repository, "checkout", "--quiet", "theirs")
    edit(repository / "environments" / "dev.yaml", "stage: dev", "stage: development")
    git(repository, "commit", "--quiet", "-a", "-m", "theirs")
    git(repository, "checkout", "--quiet", "-")
    forward = seatrial("diff", LLAMA, "-e", "dev", "-e", "prod", "--base", "theirs", env=GIT)
    assert "theirs has 1 commit that this checkout lacks" in forward.stdout
    again = seatrial("diff", LLAMA, "-e", "dev", "-e", "prod", "--base", "theirs...", "--check", env=GIT)
    assert (again.returncode, again.stderr, "lacks" in again.stdout) == (0, "", False)


def test_every_endpoint_is_removed_with_its_folder(seatrial: Seatrial, repository: Path) -> None:
    git(repository, "rm", "-r", "--quiet", "endpoints")
    assert {change for _, _, change in places(document(seatrial))} == {"removed"}


def test_code_of_the_app_may_change_every_template(seatrial: Seatrial, repository: Path) -> None:
    changed = sample_document()
    properties(changed, "Errors")["Threshold"] = 3
    (repository / "stack.json").write_text(json.dumps(changed))
    read = document(seatrial)
    assert len(places(read)) == 9
    assert {one["risk"] for one in read["endpoints"]} == {"none"}
    narrowed = document(seatrial, LLAMA, "-e", "dev", "-e", "local")
    assert [(one["endpoint"], one["environment"]) for one in narrowed["endpoints"]] == [
        ("llama-2-7b-chat", "dev"),
        ("llama-2-7b-chat", "local"),
    ]


def test_templates_of_both_sides_are_data(seatrial: Seatrial, repository: Path) -> None:
    """What runs code, or never ends, is a finding of its side: whoever writes templates can't run code in a review."""
    own = repository / "serving_templates/lmi"
    own.mkdir(parents=True)
    for name in ("serving.properties.j2", "container.env.j2"):
        (own / name).write_text("{{ cycler.__init__.__globals__.os.popen('touch escaped').read() }}")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "theirs")
    for name in ("serving.properties.j2", "container.env.j2"):
        (own / name).write_text("{% macro m(f) %}{{ f(f) }}{{ f(f) }}{% endmacro %}{{ m(m) }}")
    read = document(seatrial, LLAMA, "-e", "dev", "-e", "local")
    fresh = [one for endpoint in read["endpoints"] for one in endpoint["findings"] if one["rule"] == "SEA311"]
    assert {one["message"] for one in fresh} == {"more than 20 macros call each other"}
    assert {(one["file"], one["line"]) for one in fresh} <= {
        (f"serving_templates/lmi/{name}", 1) for name in ("serving.properties.j2", "container.env.j2")
    }
    shutil.rmtree(own.parent)
    assert not [
        one
        for endpoint in document(seatrial, LLAMA, "-e", "dev", "-e", "local")["endpoints"]
        for one in endpoint["findings"]
    ]
    assert not [*repository.rglob("escaped")]


@pytest.mark.parametrize("arguments", [("endpoints",), (LLAMA, "-e", "dev")])
def test_a_revision_of_others_runs_no_code(seatrial: Seatrial, repository: Path, arguments: tuple[str, ...]) -> None:
    git(repository, "checkout", "--quiet", "-b", "theirs")
    for name in ("app.py", "stacks/evil.py"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(f"open({str(repository / 'escaped')!r}, 'w')\n{APP}")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "theirs")
    git(repository, "checkout", "--quiet", "-")
    edit(repository / "environments" / "dev.yaml", "stage: dev", "stage: development")
    refused = seatrial("diff", *arguments, "--base", "theirs", env=GIT)
    assert refused.returncode == 2
    assert "SEA452: it has code that this checkout lacks: app.py, stacks/evil.py" in refused.stderr
    assert seatrial("diff", *arguments, "--base", "theirs...", env=GIT).returncode == 0
    assert not (repository / "escaped").exists()
    git(repository, "stash", "--quiet")
    git(repository, "merge", "--quiet", "theirs")
    git(repository, "stash", "pop", "--quiet")
    assert seatrial("diff", *arguments, "--base", "theirs", env=GIT).returncode == 0
    assert (repository / "escaped").exists()


def test_a_refused_change_is_told_and_fails(seatrial: Seatrial, repository: Path) -> None:
    changed = sample_document()
    properties(changed, "Config")["ProductionVariants"][0]["InstanceType"] = "ml.g6.2xlarge"
    (repository / "stack.json").write_text(json.dumps(changed))
    done = seatrial("diff", "-e", "dev", "--base", "HEAD", env=GIT)
    assert done.returncode == 1
    assert done.stderr.startswith("falcon-40b in dev: Endpoint: InstanceType: SEA453: ")
    assert "falcon-40b in dev: resources; refused: SEA453" in done.stdout


@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        ("endpoints/llama-2-7b-chat.lock.json", "{", "SEA403"),
        ("endpoints/llama-2-7b-chat.yaml", "name: [", "SEA102"),
        ("environments/dev.yaml", "name: dev\nregion: nowhere\n", "SEA107"),
    ],
)
def test_what_can_not_be_read_is_a_finding(
    seatrial: Seatrial, repository: Path, file: str, text: str, rule: str
) -> None:
    (repository / file).write_text(text)
    read = document(seatrial, "-e", "dev")
    found = {one["endpoint"]: one for one in read["endpoints"]}["llama-2-7b-chat"]
    assert rule in {one["rule"] for one in found["findings"]}
    assert {one["file"] for one in found["findings"] if one["rule"] == rule} == {file}


def test_two_specs_of_one_name_are_told(seatrial: Seatrial, repository: Path) -> None:
    for suffix in ("yaml", "lock.json"):
        text = (repository / "endpoints" / f"llama-2-7b-chat.{suffix}").read_text()
        (repository / "endpoints" / f"twin.{suffix}").write_text(text)
    edit(repository / LLAMA, "Chat for", "Talk for")
    read = document(seatrial, "-e", "dev")
    twin = {one["endpoint"]: one for one in read["endpoints"]}["twin"]
    assert "SEA108" in {one["rule"] for one in twin["findings"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("diff",), "--base REF to compare many"),
        (("diff", "-e", "nosuch", "--base", "HEAD"), "SEA109: there is no environment nosuch"),
        (("diff", "endpoints", "other/a.yaml", "--base", "HEAD"), "SEA420: the specs are in several folders"),
        (("diff", "--base", "nosuch"), "SEA452: no revision nosuch"),
        (("diff", "nosuch", "--base", "HEAD"), "nosuch: SEA101: neither the checkout nor the revision has it"),
        (("diff", "endpoints/no.yaml", "--base", "HEAD"), "endpoints/no.yaml: SEA101: neither"),
    ],
)
def test_what_is_asked_wrongly(seatrial: Seatrial, repository: Path, arguments: tuple[str, ...], words: str) -> None:
    done = seatrial(*arguments, env=GIT)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())
