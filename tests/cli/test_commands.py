"""The commands as a user runs them: exit codes, messages, and nothing half-written."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, ClassVar

import pytest

from seatrial_laptop.state import STATE_FILE
from tests.cli.conftest import SPECS, files
from tests.operations.test_recommendations import JOB

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


def test_a_recommendation_is_compared_with_the_plan_without_an_account(seatrial: Seatrial, project: Path) -> None:
    job = project / "job.json"
    for text, told, code in (
        ('{"AIRecommendationJobStatus": "Completed", "Recommendations": [{}]}', "SEA633", 2),
        (json.dumps(JOB), "", 0),
        ("{", "SEA633", 2),
    ):
        job.write_text(text)
        done = seatrial("jobs", "compare", SPECS[0], "-e", "dev", "--file", "job.json")
        assert (done.returncode, "recommendation 1" in done.stdout, told in done.stderr) == (code, code == 0, True)


class TestValidate:
    def test_the_shipped_specs_are_valid_in_every_environment(self, seatrial: Seatrial) -> None:
        done = seatrial("validate", *SPECS)
        assert (done.returncode, done.stdout) == (0, "".join(f"{spec}: valid\n" for spec in SPECS))

    def test_a_name_that_no_spec_has_is_told_where_every_spec_is_judged(
        self, seatrial: Seatrial, project: Path
    ) -> None:
        notify = "{notify: [{teams: [serach], emails: [a@b.cc]}, {endpoints: [cat, falcon-40b], emails: [a@b.cc]}]}"
        budgets = "{team_budgets_usd_per_month: {ads: 5}}"
        place = f"name: qa\nregion: us-east-1\ntags: {{team: search}}\nalarms: {notify}\nobservability: {budgets}\n"
        (project / "environments" / "qa.yaml").write_text(place)
        done = seatrial("validate", "endpoints", "-e", "qa", "--format", "json")
        found = [each for each in json.loads(done.stdout)["findings"] if each["rule"] == "SEA664"]
        assert [(each["field"], each["severity"]) for each in found] == [
            ("alarms.notify[0].teams[0]", "warning"),
            ("alarms.notify[1].endpoints[0]", "warning"),
            ("observability.team_budgets_usd_per_month.ads", "warning"),
        ]
        (project / "products").mkdir()
        (project / "products" / "chat.yaml").write_text("name: chat\nparameters: {teams: [serach, ads]}\n")
        done = seatrial("validate", "endpoints", "-e", "qa", "--format", "json")
        assert done.stdout.count("SEA664") == 1, "products have teams"

    def test_four_mistakes_are_four_messages_exit_2_and_nothing_written(
        self, seatrial: Seatrial, project: Path
    ) -> None:
        (project / "endpoints" / "bad.yaml").write_text(
            "name: bad\ncolour: red\nmodel: {hub_id: a/b, config_file: none.json}\n"
            "workload: {input_tokens: many, output_tokens: 1, concurrency: 1, requests_per_second: 1}\n"
        )
        before = files(project)
        done = seatrial("validate", "endpoints/bad.yaml", "-e", "dev")
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.splitlines()[::2] == [
            "endpoints/bad.yaml:2: colour: SEA104: the field is unknown",
            "endpoints/bad.yaml:3: model.config_file: SEA101: the file none.json does not exist",
            "endpoints/bad.yaml:4: workload.input_tokens: SEA105: should be a valid integer, not 'many'",
            "endpoints/bad.yaml:4: workload.requests_per_second: SEA108: "
            "concurrency and requests_per_second exclude each other",
        ]
        assert files(project) == before

    def test_specs_that_hosting_names_and_that_are_not_there_are_told(self, seatrial: Seatrial, project: Path) -> None:
        spec = project / "endpoints" / "llama-2-7b-chat.yaml"
        spec.write_text(f"{spec.read_text()}hosting: {{more_models: [falcon-40b, gone, away]}}\n")
        done = seatrial("validate", "endpoints/llama-2-7b-chat.yaml", "-e", "dev")
        assert done.returncode == 2
        told = [line.partition("hosting.")[2] for line in done.stderr.splitlines()[::2]]
        assert [line.partition(": there")[0] for line in told] == ["more_models[1]: SEA128", "more_models[2]: SEA128"]

    @pytest.mark.parametrize(("year", "code"), [(2020, 2), (2999, 0)])
    def test_reserved_capacity_that_has_ended_is_told(
        self, seatrial: Seatrial, project: Path, year: int, code: int
    ) -> None:
        spec = project / "endpoints" / "llama-2-7b-chat.yaml"
        text = spec.read_text().replace("[ml.g5.2xlarge, ml.g5.12xlarge, ml.g6e.2xlarge]", "[ml.p5.48xlarge]")
        arn = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/may"
        spec.write_text(
            f"{text}hosting:\n  capacity_reservation_arn: {arn}\n"
            f'  capacity_reservation_ends_at: "{year}-01-31T11:30:00Z"\n'
        )
        done = seatrial("validate", "endpoints/llama-2-7b-chat.yaml", "-e", "dev")
        assert (done.returncode, "hosting.capacity_reservation_arn: SEA630" in done.stderr) == (code, code == 2)
        done = seatrial("validate", "endpoints/llama-2-7b-chat.yaml", "-e", "dev", "--format", "json")
        severities = {each["severity"] for each in json.loads(done.stdout)["findings"] if each["rule"] == "SEA630"}
        assert severities <= {"error" if code else "note"}

    def test_from_the_folder_of_the_specs_the_environments_are_found(self, seatrial: Seatrial, project: Path) -> None:
        done = seatrial("validate", "llama-2-7b-chat.yaml", folder=project / "endpoints")
        assert (done.returncode, done.stdout, done.stderr) == (0, "llama-2-7b-chat.yaml: valid\n", "")

    def test_paths_are_named_as_the_user_gave_them(self, seatrial: Seatrial, project: Path) -> None:
        hint = "\n  hint: known environments: dev, local, prod (in {})\n"
        done = seatrial("validate", "falcon-40b.yaml", "-e", "qa", folder=project / "endpoints")
        assert (
            done.stderr
            == f"../environments/qa.yaml: SEA109: there is no environment qa{hint.format('../environments')}"
        )
        done = seatrial("validate", SPECS[0], "-e", "qa")
        assert done.stderr == f"environments/qa.yaml: SEA109: there is no environment qa{hint.format('environments')}"
        folder = project.resolve() / "environments"
        done = seatrial("validate", str(project / SPECS[0]), "-e", "qa")
        assert done.stderr == f"{folder}/qa.yaml: SEA109: there is no environment qa{hint.format(folder)}"

    @pytest.mark.parametrize("command", [["plan"], ["plan", "--write"], ["render"], ["render", "-o", "out"]])
    def test_other_commands_refuse_a_wrong_spec_alike(
        self, command: list[str], seatrial: Seatrial, project: Path
    ) -> None:
        (project / "endpoints" / "bad.yaml").write_text("name: bad\n")
        before = files(project)
        done = seatrial(*command, "endpoints/bad.yaml", "-e", "dev")
        assert done.returncode == 2
        assert "endpoints/bad.yaml: model: SEA106: the field is required" in done.stderr
        assert "Traceback" not in done.stderr
        assert files(project) == before


class TestRender:
    def test_to_a_folder(self, seatrial: Seatrial, project: Path) -> None:
        done = seatrial("render", SPECS[1], "-e", "dev", "-o", "out")
        assert done.stdout.splitlines() == ["out/container.env", "out/serving.properties"]
        assert "option.model_id=meta-llama/Llama-2-7b-chat-hf" in (project / "out" / "serving.properties").read_text()

    def test_to_the_terminal(self, seatrial: Seatrial) -> None:
        assert seatrial("render", SPECS[1], "-e", "local").stdout.startswith("==> serving.properties <==\n")

    def test_of_a_lock_imports_no_planner(self, project: Path) -> None:
        """It imported 8,500 lines of the planner before it looked for a lock."""
        code = (
            "import sys; from seatrial.cli.app import app; app(sys.argv[1:], standalone_mode=False); "
            "print(*(name for name in sys.modules if name.startswith('seatrial.planner')))"
        )
        command = [sys.executable, "-c", code, "render", SPECS[1], "-e", "dev", "-o", "out"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["out/container.env", "out/serving.properties", ""]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("environment", ["dev", "prod", "local"])
def test_the_committed_locks_are_fresh(spec: str, environment: str, seatrial: Seatrial) -> None:
    done = seatrial("render", spec, "-e", environment)
    assert done.returncode == 0, done.stderr
    assert "nothing is locked" not in done.stderr


def test_an_unknown_command_and_no_command_explain_themselves(seatrial: Seatrial) -> None:
    assert seatrial("sail").returncode == 2
    assert "plan" in seatrial("--help").stdout


def test_every_rule_is_listed(seatrial: Seatrial) -> None:
    assert "SEA108  two fields contradict each other" in seatrial("rules").stdout
    assert seatrial("rules", "sea206").stdout == "SEA206  no deployment is within the budget (error)\n"
    assert "    source: " in seatrial("rules", "SEA571").stdout
    unknown = seatrial("rules", "SEA206", "SEA2066")
    assert (unknown.returncode, "no rule SEA2066; near: SEA206" in unknown.stderr) == (2, True)


def test_the_schema_is_printed(seatrial: Seatrial) -> None:
    assert json.loads(seatrial("schema", "environment").stdout)["title"] == "EnvironmentSpec"


def test_a_missing_result_is_named(seatrial: Seatrial) -> None:
    done = seatrial("report", "none.json")
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        1,
        "none.json: SEA501: the result can't be read: No such file or directory",
    )


class TestWithoutAws:
    """Nothing here calls AWS: the calls end before, each with one message."""

    NOTHING: ClassVar = {
        "HOME": "/nonexistent",
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent/config",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials",
        "AWS_MAX_ATTEMPTS": "1",
    }
    LOG_IN = "  hint: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n"
    REPORT = ("report", "s3://bucket/result.json")
    BENCH = ("bench", SPECS[1], "-e", "dev")

    @pytest.mark.parametrize(
        ("arguments", "where"), [(REPORT, "s3://bucket/result.json"), (BENCH, "seatrial-dev-llama-2-7b-chat")]
    )
    def test_no_credentials(self, arguments: tuple[str, ...], where: str, seatrial: Seatrial) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        done = seatrial(*arguments, env=self.NOTHING)
        message = f"{where}: SEA503: there are no AWS credentials: Unable to locate credentials\n"
        assert (done.returncode, done.stderr) == (1, message + self.LOG_IN)

    @pytest.mark.parametrize(
        ("arguments", "where"), [(REPORT, "s3://bucket/result.json"), (BENCH, "seatrial-dev-llama-2-7b-chat")]
    )
    def test_an_unknown_profile(self, arguments: tuple[str, ...], where: str, seatrial: Seatrial) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        done = seatrial(*arguments, env=self.NOTHING | {"AWS_PROFILE": "nosuch"})
        message = f"{where}: SEA503: The config profile (nosuch) could not be found\n"
        hint = "  hint: set AWS_PROFILE to one of `aws configure list-profiles`\n"
        assert (done.returncode, done.stderr) == (1, message + hint)

    def test_no_connection(self, seatrial: Seatrial) -> None:
        with socket.socket() as nobody:  # bound, and never listening: every connection is refused
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": url}
            done = seatrial(*self.REPORT, env=self.NOTHING | keys)
        assert (done.returncode, done.stderr) == (
            1,
            "s3://bucket/result.json: SEA504: AWS can't be reached: Could not connect to the endpoint URL: "
            f'"{url}/bucket/result.json"\n  hint: check the connection, the region and AWS_ENDPOINT_URL\n',
        )


class TestPathsThatCantBe:
    def test_a_name_that_is_too_long_to_render_into(self, seatrial: Seatrial) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        done = seatrial("render", SPECS[1], "-e", "dev", "-o", "x" * 300)
        assert (done.returncode, done.stderr) == (2, f"{'x' * 300}: SEA301: can't be written: File name too long\n")

    def test_schemas_where_docs_is_a_file(self, seatrial: Seatrial, project: Path) -> None:
        (project / "docs").write_text("")
        done = seatrial("schema", "--write")
        assert (done.returncode, done.stderr) == (
            2,
            "docs/schema: SEA101: the schemas can't be written: Not a directory\n"
            "  hint: run it in the repository root\n",
        )

    @pytest.mark.parametrize(
        ("port", "bound"),
        [("0", "greater than or equal to 1"), ("-1", "greater than or equal to 1"), ("65536", "less than or equal to")],
    )
    def test_a_port_that_is_none(self, port: str, bound: str, seatrial: Seatrial) -> None:
        done = seatrial("local", "up", "--port", port)
        assert done.returncode == 2
        assert f"Invalid value for '--port': Input should be {bound}" in done.stderr

    @pytest.mark.parametrize(("command", "first"), [("status", "not running"), ("down", "not running")])
    def test_a_folder_without_an_embedded_aws_is_named(
        self, command: str, first: str, seatrial: Seatrial, project: Path
    ) -> None:
        done = seatrial("local", command)
        place = f"no state in {project}/.seatrial/local"
        assert done.stdout == f"{first}: {place}; start it (seatrial local up), or give another folder with --state\n"
        assert not (project / ".seatrial").exists()

    def test_a_folder_whose_embedded_aws_was_killed_is_told_from_one_that_has_none(
        self, seatrial: Seatrial, project: Path
    ) -> None:
        state = project / ".seatrial" / "local"
        state.mkdir(parents=True)
        (state / STATE_FILE).write_text("{}")
        told = f"what ran with {state} was killed, and its stacks are lost; start it again: seatrial local up"
        assert seatrial("local", "status").stdout == f"not running: {told}\n"

    def test_a_lock_that_is_a_link_to_itself_is_told(self, seatrial: Seatrial, project: Path) -> None:
        lock = project / "lock.json"
        lock.symlink_to(lock)
        done = seatrial("report", "lock.json")
        assert (done.returncode, done.stderr.partition("\n")[0]) == (
            1,
            f"{lock}: SEA101: Too many levels of symbolic links",
        )

    @pytest.mark.parametrize(
        "arguments", [("validate",), ("plan", "-e", "dev"), ("drift", "-e", "dev"), ("products", "validate")]
    )
    def test_a_spec_that_is_a_link_to_itself_is_told(
        self, arguments: tuple[str, ...], seatrial: Seatrial, project: Path
    ) -> None:
        spec = project / "endpoints" / "loop.yaml"
        spec.symlink_to("loop.yaml")
        done = seatrial(*arguments, "endpoints/loop.yaml")
        first = "endpoints/loop.yaml: SEA101: Too many levels of symbolic links"
        assert (done.returncode, done.stderr.partition("\n")[0]) == (2, first)

    def test_a_link_to_itself_is_a_finding_beside_the_others(self, seatrial: Seatrial, project: Path) -> None:
        (project / "loop.yaml").symlink_to("loop.yaml")
        (project / "empty").mkdir()
        done = seatrial("validate", "loop.yaml", "empty", "--format", "json")
        rules = [(finding["rule"], finding["file"]) for finding in json.loads(done.stdout)["findings"]]
        assert (done.returncode, rules) == (2, [("SEA101", "loop.yaml"), ("SEA420", "empty")])

    @pytest.mark.parametrize(
        "arguments",
        [
            ("plan", SPECS[1], "-e", "dev", "--environments", "x" * 300),
            ("deploy", "x" * 300, "-e", "dev"),
            ("local", "status", "--state", "x" * 300),
        ],
    )
    def test_what_cannot_be_looked_at_is_not_taken_for_missing(
        self, arguments: tuple[str, ...], seatrial: Seatrial
    ) -> None:
        done = seatrial(*arguments)
        assert (done.returncode, done.stderr.partition("\n")[0].partition(": ")[2]) == (1, "SEA101: File name too long")

    def test_there_are_no_variables_without_an_embedded_aws(self, seatrial: Seatrial, project: Path) -> None:
        done = seatrial("local", "env")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            f"{project}/.seatrial/local: SEA602: no embedded AWS is running with this state folder\n"
        )

    def test_a_state_that_is_a_file(self, seatrial: Seatrial, project: Path) -> None:
        (project / "state").write_text("")
        done = seatrial("local", "up", "--state", "state")
        assert done.returncode == 2
        assert "Invalid value for '--state': dir 'state' is a file." in done.stderr

    def test_a_state_below_a_file(self, seatrial: Seatrial, project: Path) -> None:
        pytest.importorskip("ministack", reason="another Python has no extra `local`")
        (project / "state").write_text("")
        done = seatrial("local", "up", "--state", "state/here")
        assert (done.returncode, done.stderr) == (
            1,
            f"{project}/state/here/logs: SEA601: the state folder can't be created: Not a directory\n"
            "  hint: give another with --state\n",
        )


WAIVED = """\
  models: [nobody/*]
  waivers: [{rail: models, endpoint: "*", reason: a case, approver: ana, expires: "DAY"}]
"""


def test_a_waived_rail_is_told_and_a_waiver_that_ended_is_refused(seatrial: Seatrial, project: Path) -> None:
    place = project / "environments" / "dev.yaml"
    before = place.read_text()

    def states(day: str) -> tuple[tuple[str, int], ...]:
        place.write_text(before.replace("guard_rails:\n", f"guard_rails:\n{WAIVED}".replace("DAY", day)))
        checks = [seatrial(*command, SPECS[2], "-e", "dev") for command in (("validate",), ("plan", "--check"))]
        return tuple((f"{done.stdout}{done.stderr}", done.returncode) for done in checks)

    (valid, code), (checked, check_code) = states("2099-01-31")
    told = "SEA647: note: the model mistralai/Mixtral-8x7B-Instruct-v0.1 is not allowed in dev"
    assert told in valid
    assert told in checked
    assert "waived until 2099-01-31: a case (approved by ana)" in checked
    assert (code, check_code) == (0, 0)
    (ended, code), (checked, check_code) = states("2020-01-31")
    assert ("SEA645" in ended, code) == (True, 2)
    assert ("SEA645" in checked, check_code) == (True, 1)
    deployed = seatrial("deploy", SPECS[2], "-e", "dev", "--yes")  # synthesis has no clock, and takes it
    assert ("SEA645" in deployed.stderr, deployed.returncode) == (True, 2)
    place.write_text(place.read_text().replace("models: [nobody/*]", "models: ['*']").replace('"*"', "mixtrl"))
    assert "waivers[0].endpoint: SEA646" in seatrial("validate", SPECS[2], "-e", "dev").stderr


def test_guard_rails_are_printed_for_guard_and_iam_with_what_they_can_not_enforce(
    seatrial: Seatrial, project: Path
) -> None:
    place = project / "environments" / "dev.yaml"
    nothing = seatrial("guard-rails", "-e", "dev", "--format", "scp")
    assert ("SEA648" in nothing.stderr, nothing.returncode) == (True, 2)
    rails = "guard_rails:\n  models: [nobody/*]\n  router: refused\n  instance_types: [ml.g5.12xlarge]\n"
    place.write_text(place.read_text().replace("guard_rails:\n", rails))
    guard = seatrial("guard-rails", "-e", "dev")
    assert "rule router {" in guard.stdout
    assert guard.stderr.startswith("not enforced: usd_per_hour: ")
    denied = {
        output_format: seatrial("guard-rails", "-e", "dev", "--format", output_format)
        for output_format in ("scp", "iam")
    }
    assert denied["scp"].stdout == denied["iam"].stdout
    policy = json.loads(denied["iam"].stdout)
    assert [each["Sid"] for each in policy["Statement"]] == ["InstanceTypes", "Router"]
    assert [line.split(": ")[1] for line in denied["iam"].stderr.splitlines()] == [
        "usd_per_hour",
        "max_copies",
        "models",
    ]
    waiver = "{rail: router, endpoint: '*', reason: a, approver: ana, expires: '2020-01-31'}"
    place.write_text(place.read_text().replace("guard_rails:\n", f"guard_rails:\n  waivers: [{waiver}]\n"))
    ended = seatrial("guard-rails", "-e", "dev")
    assert (guard.stdout, True) == (ended.stdout, "waiver of router for * ended on 2020-01-31" in ended.stderr)
    types = ", ".join(f"ml.c{number}.large" for number in range(10, 600))
    place.write_text(place.read_text().replace("ml.g5.12xlarge", types))
    large = seatrial("guard-rails", "-e", "dev", "--format", "iam")
    assert ("SEA648" in large.stderr, large.returncode) == (True, 2)
