from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from seatrial.specs import shapes
from seatrial.specs.load import environment_names, environments_of, load_environment, load_spec
from seatrial.specs.yaml_source import read_source, yaml_text
from seatrial_base.errors import SpecError

TOO_LARGE = (
    "endpoints/chat.yaml: SEA102: the text is nested too deeply, or its aliases expand to too much text\n"
    "  hint: reduce the nesting"
)


# Of the `endpoint_text` in `dev`, as the first locks have it: a change of it makes every lock stale.
FIRST_DIGEST = "752b0f1f6faa3f1c"
NIGHT = "{name: night, schedule: rate(1 day), min_copies: 0, max_copies: 0}"


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


def messages(error: SpecError, folder: Path) -> list[str]:
    return [str(problem).replace(f"{folder.as_posix()}/", "") for problem in error.problems]


def problems_of(text: str, write: Write, environments: Path, environment: str = "dev") -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_spec(write(text), environment, environments=environments)
    return messages(caught.value, environments.parent)


def test_a_minimal_spec_gets_the_documented_defaults(write: Write, environments: Path, endpoint_text: str) -> None:
    endpoint = load_spec(write(endpoint_text), "dev", environments=environments).endpoint
    assert endpoint.objective.goal == "cost"
    assert endpoint.serving.engine == "auto"
    assert endpoint.scaling.max_copies == 1
    assert endpoint.trial.mode == "rollback"


def test_four_kinds_of_mistakes_are_reported_in_one_run(write: Write, environments: Path) -> None:
    text = """\
        name: chat
        model:
          hub_id: org/model
          s3_uri: s3://bucket/model/
          config_file: config.json
        workload:
          input_tokens: many
          output_tokens: 128
          concurency: 8
        """
    assert problems_of(text, write, environments) == [
        "endpoints/chat.yaml:4: model.s3_uri: SEA108: hub_id and s3_uri exclude each other\n  hint: keep one of them",
        "endpoints/chat.yaml:5: model.config_file: SEA101: the file config.json does not exist\n"
        "  hint: the path is relative to the spec",
        "endpoints/chat.yaml:6: workload: SEA106: the workload has no traffic\n"
        "  hint: give concurrency or requests_per_second",
        "endpoints/chat.yaml:7: workload.input_tokens: SEA105: should be a valid integer, not 'many'\n"
        "  hint: write the number without quotes and units",
        "endpoints/chat.yaml:9: workload.concurency: SEA104: the field is unknown\n  hint: did you mean `concurrency`?",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            ("name: chat", "name: -chat"),
            "endpoints/chat.yaml:1: name: SEA107: should match pattern '^[a-zA-Z0-9](-*[a-zA-Z0-9])*$', not '-chat'\n"
            "  hint: letters, digits and inner hyphens, as in support-chat",
            id="bad-name",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: 0"),
            "endpoints/chat.yaml:7: workload.concurrency: SEA107: should be greater than 0, not 0",
            id="zero",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: yes"),
            "endpoints/chat.yaml:7: workload.concurrency: SEA105: should be a valid integer, not True\n"
            "  hint: quote it: YAML reads yes, no, on and off as booleans",
            id="yaml-yes",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: 8\ntrial: {mode: off}"),
            "endpoints/chat.yaml:8: trial.mode: SEA107: should be 'rollback', 'report' or 'off', not False\n"
            "  hint: quote it: YAML reads yes, no, on and off as booleans",
            id="yaml-off",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: 8\ntrial: {overload: off}"),
            "endpoints/chat.yaml:8: trial.overload: SEA107: should be 'off', 'prove' or 'require', not False\n"
            "  hint: quote it: YAML reads yes, no, on and off as booleans",
            id="yaml-off-overload",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: 8\n  requests_per_second: 2"),
            "endpoints/chat.yaml:8: workload.requests_per_second: SEA108: "
            "concurrency and requests_per_second exclude each other\n"
            "  hint: keep one; the plan computes the other by Little's law",
            id="two-kinds-of-traffic",
        ),
        pytest.param(
            ("hub_id: org/model", "revision: abc\n  s3_uri: s3://bucket/model/"),
            "endpoints/chat.yaml:3: model.revision: SEA108: revision needs a hub_id\n"
            "  hint: remove revision, or give hub_id",
            id="revision-without-hub",
        ),
        pytest.param(
            ("hub_id: org/model", "s3_uri: s3://bucket/model"),
            "endpoints/chat.yaml:3: model.s3_uri: SEA107: should match pattern "
            r"'^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(.*/|.*[^/]\.tar\.gz)$', not 's3://bucket/model'"
            "\n"
            "  hint: as in s3://bucket/model/, with the final slash, or s3://bucket/model.tar.gz",
            id="s3-without-final-slash",
        ),
        pytest.param(
            ("hub_id: org/model", "jumpstart_id: meta-textgeneration-llama-2-7b"),
            "endpoints/chat.yaml:2: model: SEA112: the licence of meta-textgeneration-llama-2-7b has not been accepted"
            "\n  hint: read it (https://jumpstart-cache-prod-us-east-1.s3.us-east-1.amazonaws.com/"
            "fmhMetadata/eula/llamaEula.txt), then write `accept_eula: true`",
            id="eula",
        ),
        pytest.param(
            ("name: chat", "name: chat\ndescription: hf_abcdefghijklmnopqrstuvwx"),
            "endpoints/chat.yaml:2: description: SEA113: looks like a credential in plain text\n"
            "  hint: revoke it, store a new one in Secrets Manager and name that in model.hub_token_secret",
            id="token",
        ),
        pytest.param(
            ("name: chat", "name: hr-candidate-0a1b2c3d"),
            "endpoints/chat.yaml:1: name: SEA140: hr-candidate-0a1b2c3d ends as the candidates of trials do: "
            "candidate- and eight digits of 0 to f\n  hint: choose another name",
            id="candidate",
        ),
        pytest.param(
            ("name: chat", "name: chat\nname: talk"),
            "endpoints/chat.yaml:2: name: SEA103: written a second time (first on line 1)\n  hint: keep one of them",
            id="duplicate-key",
        ),
        pytest.param(
            ("name: chat", "name: chat\nscaling: {min_copies: 2}"),
            "endpoints/chat.yaml:2: scaling.min_copies: SEA108: min_copies 2 exceeds max_copies 1\n"
            "  hint: set max_copies to at least 2",
            id="min-above-max",
        ),
        pytest.param(
            ("name: chat", "name: chat\nserving: {overrides: {max_model_len: 383}}"),
            "endpoints/chat.yaml:2: serving.overrides.max_model_len: SEA108: "
            "max_model_len 383 is below the workload's 256 + 128 tokens\n  hint: set it to at least 384",
            id="context-one-too-short",
        ),
        pytest.param(
            ("  concurrency: 8", "  concurrency: 8\n  max_model_len: 383"),
            "endpoints/chat.yaml:8: workload.max_model_len: SEA108: "
            "max_model_len 383 is below the workload's 256 + 128 tokens\n  hint: set it to at least 384",
            id="longest-request-below-the-typical-one",
        ),
        pytest.param(
            ("  concurrency: 8", "  concurrency: 8\n  max_model_len: 512\nserving: {overrides: {max_model_len: 384}}"),
            "endpoints/chat.yaml:9: serving.overrides.max_model_len: SEA120: workload.max_model_len is 512, but "
            "serving.overrides.max_model_len is 384\n  hint: keep workload.max_model_len only",
            id="longest-request-twice",
        ),
        pytest.param(
            ("concurrency: 8", "concurrency: 1e3"),
            "endpoints/chat.yaml:7: workload.concurrency: SEA105: should be a valid integer, not 1000.0\n"
            "  hint: write it as a whole number: 1000",
            id="whole-float",
        ),
        pytest.param(
            ("hub_id: org/model", "hub_id: org/model\n  revision: 1234567"),
            "endpoints/chat.yaml:4: model.revision: SEA105: should be a valid string, not 1234567\n"
            "  hint: write it in quotes",
            id="number-for-text",
        ),
        pytest.param(
            ("name: chat", "name: chat\nscaling: {max_copies: 1001}"),
            "endpoints/chat.yaml:2: scaling.max_copies: SEA107: should be less than or equal to 1000, not 1001\n"
            "  hint: the limit is 1,000 copies",
            id="copies-without-bound",
        ),
        pytest.param(
            ("name: chat", "name: chat\nserving: {instance_types: []}"),
            "endpoints/chat.yaml:2: serving.instance_types: SEA107: the list is empty\n"
            "  hint: give at least one item, or leave the field out",
            id="no-instance-type",
        ),
        pytest.param(
            ("name: chat", "name: chat\ndescription: 2024-01-01"),
            "endpoints/chat.yaml:2: description: SEA105: 2024-01-01 is not a string: YAML reads it as a date\n"
            '  hint: quote it: "2024-01-01"',
            id="date",
        ),
        pytest.param(
            ("name: chat", "name: chat\ndescription: !!binary aGVsbG8="),
            "endpoints/chat.yaml:2: description: SEA105: aGVsbG8= is not a string: it is written as binary data\n"
            '  hint: quote it: "aGVsbG8="',
            id="binary",
        ),
        pytest.param(
            ("name: chat", "name: chat\nserving: {image: foo}"),
            "endpoints/chat.yaml:2: serving.image: SEA107: should match pattern "
            f"'{shapes.IMAGE_URI}', not 'foo'\n"
            "  hint: write it as ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG",
            id="image",
        ),
        pytest.param(
            ("hub_id: org/model", "hub_id: org/model\n  hub_token_secret: a:b"),
            "endpoints/chat.yaml:4: model.hub_token_secret: SEA107: should match pattern "
            f"'{shapes.SECRET_NAME}', not 'a:b'\n"
            "  hint: a name as in my/token, or the full ARN: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
            id="secret",
        ),
        pytest.param(
            ("name: chat", "name: chat\nobjective: price"),
            "endpoints/chat.yaml:2: objective.goal: SEA107: should be 'cost', 'cost_per_token', 'latency' or "
            "'throughput', not 'price'",
            id="objective",
        ),
        pytest.param(
            ("name: chat", "name: chat\nobjective: {headroom: 0.9}"),
            "endpoints/chat.yaml:2: objective.headroom: SEA155: headroom needs requests_per_second\n"
            "  hint: give a rate in place of concurrency: headroom is the chance that it is carried; or leave it out",
            id="headroom-of-no-rate",
        ),
        pytest.param(
            ("name: chat", "name: chat\nbudget: {discount: 1}"),
            "endpoints/chat.yaml:2: budget.discount: SEA107: should be less than 1, not 1",
            id="all-of-the-price",
        ),
        pytest.param(
            ("name: chat", "name: chat\nbudget: {usd_per_million_output_tokens: 0}"),
            "endpoints/chat.yaml:2: budget.usd_per_million_output_tokens: SEA107: should be greater than 0, not 0",
            id="tokens-for-nothing",
        ),
        pytest.param(
            ("name: chat", "name: chat\nenvironments: {stage: {}}"),
            "endpoints/chat.yaml:2: environments.stage: SEA109: there is no environment stage\n"
            "  hint: known environments: dev, prod (in environments)",
            id="override-of-unknown-environment",
        ),
    ],
)
def test_one_mistake_gives_one_whole_message(
    change: tuple[str, str], expected: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    assert problems_of(endpoint_text.replace(*change), write, environments) == [expected]


@pytest.mark.parametrize(
    "secret", ["hub-token", "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-token-a1B2c3"]
)
def test_a_secret_is_given_by_its_name_or_its_arn(
    secret: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    spec = write(endpoint_text.replace("hub_id: org/model", f"hub_id: org/model\n  hub_token_secret: {secret}"))
    assert load_spec(spec, "dev", environments=environments).endpoint.model.hub_token_secret == secret


def test_a_context_that_just_fits_is_accepted(write: Write, environments: Path, endpoint_text: str) -> None:
    spec = write(f"{endpoint_text}serving: {{overrides: {{max_model_len: 384}}}}\n")
    assert load_spec(spec, "dev", environments=environments).endpoint.serving.overrides.max_model_len == 384


def test_jumpstart_with_its_artifact_and_licence_is_accepted(write: Write, environments: Path) -> None:
    text = """\
        name: chat
        model: {jumpstart_id: meta-llama, s3_uri: "s3://bucket/artifact/", accept_eula: true}
        workload: {input_tokens: 1, output_tokens: 1, requests_per_second: 0.5}
        """
    assert load_spec(write(text), "dev", environments=environments).endpoint.model.jumpstart_id == "meta-llama"


class TestEnvironments:
    @pytest.mark.parametrize("texts", [("throughput", "{headroom: 0.8}"), ("{headroom: 0.8}", "throughput")])
    def test_a_goal_and_its_headroom_keep_each_other(
        self, texts: tuple[str, str], write: Write, environments: Path, endpoint_text: str
    ) -> None:
        text = endpoint_text.replace("concurrency: 8", "requests_per_second: 8")
        spec = write(f"{text}objective: {texts[0]}\nenvironments: {{dev: {{objective: {texts[1]}}}}}\n")
        objective = load_spec(spec, "dev", environments=environments).endpoint.objective
        assert (objective.goal, objective.headroom) == ("throughput", 0.8)

    def test_overrides_are_merged_before_validation(self, write: Write, environments: Path, endpoint_text: str) -> None:
        text = f"{endpoint_text}environments:\n  prod:\n    workload: {{concurrency: 99}}\n"
        spec = write(text)
        assert load_spec(spec, "dev", environments=environments).endpoint.workload.concurrency == 8
        prod = load_spec(spec, "prod", environments=environments).endpoint
        assert (prod.workload.concurrency, prod.workload.input_tokens) == (99, 256)

    def test_null_in_an_override_removes_the_value(self, write: Write, environments: Path, endpoint_text: str) -> None:
        override = "environments:\n  prod:\n    workload: {concurrency: null, requests_per_second: 3}\n"
        workload = load_spec(write(endpoint_text + override), "prod", environments=environments).endpoint.workload
        assert (workload.concurrency, workload.requests_per_second) == (None, 3.0)

    def test_a_mistake_in_an_override_is_placed_there(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        text = f"{endpoint_text}environments:\n  prod:\n    workload:\n      concurrency: -1\n"
        assert problems_of(text, write, environments, "prod") == [
            "endpoints/chat.yaml:11: environments.prod.workload.concurrency: SEA107: should be greater than 0, not -1"
        ]

    def test_the_overrides_must_be_mappings(self, write: Write, environments: Path, endpoint_text: str) -> None:
        assert problems_of(f"{endpoint_text}environments: [dev]\n", write, environments) == [
            "endpoints/chat.yaml:8: environments: SEA105: must be a mapping of environments\n"
            "  hint: write `dev:` below it"
        ]
        assert problems_of(f"{endpoint_text}environments: {{dev: 3}}\n", write, environments) == [
            "endpoints/chat.yaml:8: environments.dev: SEA105: must be a mapping of fields"
        ]

    def test_an_unknown_environment_names_the_known(self, write: Write, environments: Path, endpoint_text: str) -> None:
        (problem,) = problems_of(endpoint_text, write, environments, "stage")
        assert problem.startswith(
            "environments/stage.yaml: SEA109: there is no environment stage\n  hint: known environments: "
        )
        assert problem.endswith(": dev, prod (in environments)")

    def test_the_name_must_be_the_file_s(self, environments: Path) -> None:
        (environments / "qa.yaml").write_text("name: dev\nregion: eu-west-1\n")
        with pytest.raises(SpecError, match="the name dev differs from the file name qa"):
            load_environment(environments, "qa")

    def test_names_are_sorted(self, environments: Path) -> None:
        assert environment_names(environments) == ("dev", "prod")

    def test_a_guard_rail_on_copies_names_its_bound(self, write: Write, environments: Path, endpoint_text: str) -> None:
        (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\nguard_rails: {max_copies: 2}\n")
        text = f"{endpoint_text}scaling: {{max_copies: 3}}\n"
        assert problems_of(text, write, environments) == [
            "endpoints/chat.yaml:8: scaling.max_copies: SEA111: max_copies 3 exceeds dev's guard rail 2 "
            "(set in environments/dev.yaml:3)\n"
            "  hint: at most 2"
        ]
        spec = write(text.replace("3}", "2}"))
        assert load_spec(spec, "dev", environments=environments).endpoint.scaling.max_copies == 2

    def test_an_isolated_environment_refuses_a_hub_model(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\nnetwork: {isolated: true}\n")
        (problem,) = problems_of(endpoint_text, write, environments)
        assert "SEA111: dev has network isolation, so the weights can't come from a hub" in problem


class TestUnreadableFiles:
    def test_a_missing_file(self, environments: Path, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match=r"none\.yaml: SEA101: the file does not exist\n  hint: check the path"):
            load_spec(tmp_path / "none.yaml", "dev", environments=environments)

    def test_the_name_of_a_spec_is_answered_with_its_file(
        self, environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "endpoints").mkdir(exist_ok=True)
        for file, hint in (("endpoints/chat.yaml", "endpoints/chat.yaml"), ("chat.yaml", "chat.yaml")):
            Path(file).touch()
            with pytest.raises(SpecError, match=rf"SEA101: .*\n  hint: did you mean {hint}\?"):
                load_spec(Path("chat"), "dev", environments=environments)

    @pytest.mark.parametrize("text", ["", "- a\n", "just text\n", "{", "a: [", "\t: x", "&a [*a]", "? {a: b}\n: c\n"])
    def test_text_that_is_no_mapping(self, text: str, write: Write, environments: Path) -> None:
        assert all("SEA10" in problem for problem in problems_of(text, write, environments))

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("a:\n  b: 1\n c: 2\n", 3, "1 space; the lines above begin with 0 or 2\n  hint: indent it by one of these"),
            ("a:\n  b:\n    - 1\n   - 2\n", 4, "3 spaces; the lines above begin with 0, 2 or 4"),
            ("a: 1\n b: 2\n", 2, "indented deeper than line 1, which has a value\n  hint: indent it by 0 spaces"),
            ("a\n  b: 2\n", 1, "no colon behind a name\n  hint: write `name: value`, with a space behind the colon"),
            ("# c\na:b\n\n  # c\n  b: 2\n", 2, "no colon behind a name"),
            ("a:\n  b:1\n  c: 2\n", 2, "no colon behind a name"),
            ("a: 1\nb 2\nc: 3\n", 2, "no colon behind a name"),
            ("a: b: 1\n", 1, "two colons\n  hint: begin a line for the second name; a text with `: ` needs quotes"),
            ('a: 1\nb: "c\nd: 2\n', 2, "the quote is not closed"),
            ("a: {b: 1\nc: 2\n", 1, "the { is not closed\n  hint: close it, or put the comma that is missing"),
            ("a: [1\nc: 2\n", 1, "the [ is not closed"),
            ("a:\n\tb: 1\n", 2, "a tab before the text\n  hint: indent with spaces"),
            ("a: @b\n", 1, "a text can't begin with @\n  hint: quote it"),
            ("a: {b: 1}}\n", 1, "fix the YAML syntax on this line"),
        ],
    )
    def test_a_mistake_of_the_text_is_placed_where_it_was_made(
        self, text: str, line: int, words: str, write: Write, environments: Path
    ) -> None:
        (problem,) = problems_of(text, write, environments)
        assert problem.startswith(f"endpoints/chat.yaml:{line}: SEA102: ")
        assert words in problem

    def test_fields_that_are_not_indented_are_one_message(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        text = f"{endpoint_text}slo:\nttft_ms: {{p95: 3000}}\nerror_rate: 0.1\nscaling:\nmax_copies: 2\n"
        assert problems_of(text, write, environments) == [
            "endpoints/chat.yaml:8: slo: SEA105: it is empty: its fields are not indented (line 9 and 10)\n"
            "  hint: indent them below slo",
            "endpoints/chat.yaml:11: scaling: SEA105: it is empty: its fields are not indented (line 12)\n"
            "  hint: indent them below scaling",
        ]

    @pytest.mark.parametrize(
        ("line", "hint"),
        [
            ("max_copies: 2", "it belongs below `scaling`"),
            ("instance_types: [ml.g5.xlarge]", "it belongs below `serving`"),
            ("p95: 3", "it belongs below `slo.ttft_ms`, `slo.tpot_ms` or `slo.e2e_latency_ms`"),
            ("region: us-east-1", "it belongs into environments/ENV.yaml"),
            ("objectiv: cost", "did you mean `objective`?"),
            ("none_such: 1", "known fields: schema_version, name, "),
            ("serving: {overrides: {extra: {rope_scaling: {factor: 4.0}}}}", "it belongs below `serving.overrides`"),
            ("serving: {overrides: {extra: {gpu_memory_utilization: 1.5}}}", "valid: above 0, at most 1"),
            ("serving: {overrides: {extra: {CUDA_memory_fraction: '1.5'}}}", "valid: above 0, at most 1"),
            ("serving: {overrides: {extra: {kv_cache_free_gpu_mem_fraction: 95}}}", "valid: above 0, at most 1"),
            ("scaling: {max_copies: 0}", "to scale to zero, set scaling.min_copies: 0; of 0"),
            (f"scaling: {{schedules: [{NIGHT}]}}", "to scale to zero, set the schedule's min_copies: 0; of 0"),
        ],
    )
    def test_a_field_or_value_of_another_place_is_one_message_that_tells_where_it_belongs(
        self, line: str, hint: str, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        (problem,) = problems_of(f"{endpoint_text}{line}\n", write, environments)
        assert f"\n  hint: {hint}" in problem

    def test_weights_of_16_bits_do_not_pass_for_fewer(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        text = f"{endpoint_text}serving: {{overrides: {{quantization: nvfp4}}}}\n"
        load_spec(write(text), "dev", environments=environments)  # nobody knows the format of org/model
        (problem,) = problems_of(text.replace("org/model", "Qwen/Qwen3-8B"), write, environments)
        assert "SEA152: nvfp4 needs weights that are quantized so; those of Qwen/Qwen3-8B have 16 bits" in problem
        (problem,) = problems_of(text.replace("org/model", "Qwen/Qwen3-32B-AWQ"), write, environments)
        assert "SEA152: the weights of Qwen/Qwen3-32B-AWQ are awq, so nvfp4 can't be made from them" in problem
        # What is no precision is told once; `bitsandbytes` quantizes 16-bit weights while it loads them.
        loads = text.replace("org/model", "Qwen/Qwen3-8B").replace("nvfp4", "bitsandbytes")
        assert ["SEA107" in each for each in problems_of(loads, write, environments)] == [True]

    def test_bytes_that_are_no_text(self, write: Write, environments: Path) -> None:
        spec = write("")
        spec.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(SpecError, match="SEA101: the file can't be read"):
            load_spec(spec, "dev", environments=environments)

    def test_a_recursive_alias_is_refused(self, write: Write, environments: Path) -> None:
        where, what = "endpoints/chat.yaml:2: ", "SEA102: the alias refers to its own parent"
        hint = "\n  hint: write the value out instead of the alias"
        assert f"{where}{what}{hint}" in problems_of("name: &a\n  b: *a\n", write, environments)

    @pytest.mark.parametrize("depth", [50, 2000, 100_000])
    def test_text_nested_without_end(self, depth: int, write: Write, environments: Path) -> None:
        assert problems_of(f"name: {'[' * depth}{']' * depth}\n", write, environments) == [TOO_LARGE]

    def test_aliases_that_unfold_to_billions(self, write: Write, environments: Path) -> None:
        rows = [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}' if i else 'x'] * 10)}]" for i in range(12)]
        assert problems_of("\n".join(rows), write, environments) == [TOO_LARGE]


class TestDigest:
    def test_it_depends_on_what_is_asked_only(self, write: Write, environments: Path, endpoint_text: str) -> None:
        first = load_spec(write(endpoint_text), "dev", environments=environments).digest
        commented = load_spec(write(f"# hello\n{endpoint_text}"), "dev", environments=environments).digest
        changed = load_spec(write(endpoint_text.replace("8", "9")), "dev", environments=environments).digest
        assert first == commented != changed

    def test_an_override_elsewhere_does_not_change_it(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        first = load_spec(write(endpoint_text), "dev", environments=environments).digest
        spec = write(f"{endpoint_text}environments: {{prod: {{objective: latency}}}}\n")
        assert load_spec(spec, "dev", environments=environments).digest == first

    @pytest.mark.parametrize(
        ("endpoint", "environment"),
        [
            ("description: other\n", ""),
            ("scaling: {scale_in_cooldown_s: 7}\n", ""),
            ("", "removal: destroy\n"),
            ("", "tags: {team: ml}\n"),
            ("", "account: '111122223333'\n"),
            ("", "guard_rails: {job_usd: 100}\n"),
        ],
    )
    def test_what_is_only_deployed_does_not_change_it(
        self, endpoint: str, environment: str, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        first = load_spec(write(endpoint_text), "dev", environments=environments).digest
        (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\n{environment}")
        assert load_spec(write(endpoint_text + endpoint), "dev", environments=environments).digest == first

    @pytest.mark.parametrize(
        ("endpoint", "environment"),
        [
            ("objective: latency\n", ""),
            ("trial: {mode: report}\n", ""),
            ("slo: {ttft_ms: {p95: 10}}\n", ""),
            ("", "guard_rails: {max_copies: 3}\n"),
        ],
    )
    def test_what_is_planned_or_tried_changes_it(
        self, endpoint: str, environment: str, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        first = load_spec(write(endpoint_text), "dev", environments=environments).digest
        (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\n{environment}")
        assert load_spec(write(endpoint_text + endpoint), "dev", environments=environments).digest != first

    @pytest.mark.parametrize(
        "endpoint",
        [
            "budget: {discount: 0.25}\n",
            "budget: {usd_per_million_output_tokens: 2}\n",
            "budget: {blended_usd_per_million_tokens: 2}\n",
            "serving: {overrides: {speculative_decoding: {draft_tokens: 4, acceptance_rate: 0.7}}}\n",
        ],
    )
    def test_a_newer_field_counts_when_it_is_written(
        self, endpoint: str, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        first = load_spec(write(endpoint_text), "dev", environments=environments).digest
        assert load_spec(write(endpoint_text + endpoint), "dev", environments=environments).digest != first

    def test_a_newer_field_that_is_left_out_makes_no_lock_stale(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        assert load_spec(write(endpoint_text), "dev", environments=environments).digest == FIRST_DIGEST
        written = f"{endpoint_text}budget: {{discount: 0}}\n"
        assert load_spec(write(written), "dev", environments=environments).digest == FIRST_DIGEST

    def test_of_the_config_file_what_it_says_counts(self, write: Write, environments: Path, endpoint_text: str) -> None:
        def digest(config: str) -> str:
            write(config, "config.json")
            text = endpoint_text.replace("hub_id: org/model", "hub_id: org/model\n  config_file: config.json")
            return load_spec(write(text), "dev", environments=environments).digest

        first = digest('{"layers": 1, "heads": 2}')
        assert digest('{\n "heads": 2,\n "layers": 1}\n') == first
        assert len({first, digest('{"layers": 2, "heads": 2}'), digest("no JSON"), digest("{" * 100_000)}) == 4

    def test_of_the_hub_token_only_whether_there_is_one_counts(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        def digest(secret: str) -> str:
            text = endpoint_text.replace("hub_id: org/model", f"hub_id: org/model\n  {secret}")
            return load_spec(write(text), "dev", environments=environments).digest

        assert digest("hub_token_secret: one") == digest("hub_token_secret: two") != digest("")


@pytest.mark.parametrize(
    ("written", "number"), [("1e-3", 0.001), ("1.0e-3", 0.001), (".5", 0.5), ("5e-1", 0.5), ("1E-2", 0.01)]
)
def test_numbers_are_read_as_people_write_them(
    written: str, number: float, write: Write, environments: Path, endpoint_text: str
) -> None:
    spec = write(f"{endpoint_text}slo: {{error_rate: {written}}}\n")
    assert load_spec(spec, "dev", environments=environments).endpoint.slo.error_rate == number


def test_a_commit_that_begins_like_an_exponent_is_a_text(write: Write, environments: Path, endpoint_text: str) -> None:
    commit = "0e9e39f249a16976918f6564b8830bc894c89659"
    text = endpoint_text.replace("hub_id:", f"revision: {commit}\n  hub_id:", 1)
    assert load_spec(write(text), "dev", environments=environments).endpoint.model.revision == commit


@pytest.mark.parametrize("text", ["79e54297", "1e5", "-1_0.5e3", ".5E-3", "12", "1.5", "yes", "2026-11-27", "a: b", ""])
def test_a_text_that_looks_like_a_number_is_written_as_text(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml_text({"tags": {"run": text}, "ratio": 1e-05}))
    assert read_source(file).data == {"tags": {"run": text}, "ratio": 1e-05}


def test_environments_are_those_that_synthesis_reads(tmp_path: Path) -> None:
    app, lax = tmp_path / "app", tmp_path / "lax"
    for folder in (app / "endpoints" / "environments", app / "environments", lax / "environments", lax / "endpoints"):
        folder.mkdir(parents=True)
    (lax / "endpoints" / "chat.yaml").touch()
    (app / "endpoints" / "link.yaml").symlink_to(lax / "endpoints" / "chat.yaml")
    (tmp_path / "link.yaml").symlink_to(lax / "endpoints" / "chat.yaml")
    assert environments_of(app / "endpoints" / "chat.yaml") == app / "endpoints" / "environments"
    (app / "cdk.json").touch()
    for name in ("chat", "link"):
        assert environments_of(app / "endpoints" / f"{name}.yaml") == app / "environments"
    assert environments_of(tmp_path / "link.yaml") == lax / "environments"
