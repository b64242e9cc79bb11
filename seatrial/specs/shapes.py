"""The forms of the names that users write: each pattern with an example that a message can show."""

from __future__ import annotations

from types import MappingProxyType

ENDPOINT_NAME = r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"
ENVIRONMENT_NAME = r"^[a-z][a-z0-9]*$"
PRODUCT_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
TEAM_NAME = r"^[a-z][a-z0-9]{0,11}$"
PRODUCT_VERSION = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$"
PRINCIPAL = r"^arn:aws[a-z-]*:iam:(:[0-9]{12}:(role|user|group)/[\w+=,.@/-]+|::(role|user|group)/[\w+=,.@/*?-]+)$"
EMAIL = r"^[^@\s{}]+@[^@\s{}]+\.[^@\s{}]+$"  # no braces: CloudFormation would resolve a dynamic reference
HTTPS_URL = r"^https://\S+$"
INSTANCE_TYPE = r"^ml\.[a-z0-9-]+\.[a-z0-9]+$"
S3_PREFIX = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.*/$"
MODEL_URI = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(.*/|.*[^/]\.tar\.gz)$"
ARCHIVE_URI = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.*[^/]\.tar\.gz$"
RESERVATION_ARN = r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:[a-z0-9-]{1,14}/[A-Za-z0-9-]+$"
MODEL_PACKAGE_ARN = (
    r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:model-package/"
    r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(/[0-9]{1,9})?$"
)
HUB_CONTENT_ARN = (
    r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:([0-9]{12}|aws):hub-content/"
    r"[A-Za-z0-9-]+/(Model|ModelReference)/[A-Za-z0-9-]+/[0-9]+\.[0-9]+\.[0-9]+$"
)
IMAGE_URI = (
    r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[a-z0-9._/-]+(:[A-Za-z0-9_.-]+)?(@sha256:[0-9a-f]{64})?$"
)
SECRET_NAME = (
    r"^([A-Za-z0-9/_+=.@-]{1,512}|"  # noqa: S105 (the form of a name, no secret)
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,519})$"
)
_HUB_WORD = r"[A-Za-z0-9_]+((-|\.|-\.|\.-)[A-Za-z0-9_]+)*"
HUB_ID = (
    rf"^({_HUB_WORD}/)?{_HUB_WORD}$"  # huggingface_hub's validate_repo_id: neither `--` nor `..`, no sign at an end
)
REVISION = r"^[A-Za-z0-9_][A-Za-z0-9_.+/-]*$"
JUMPSTART_ID = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
MODEL_PATH = r"^(s3://|/)?[A-Za-z0-9_][A-Za-z0-9_./-]*$"
ENGINE_VERSION = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
OPTION_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"
TAG_TEXT = r"^[\w .:/=+@-]*$"  # letters and digits of every language, and what AWS allows beside them
TAG_PATTERN = r"^[\w .:/=+@*?-]*$"
MODEL_PATTERN = r"^[A-Za-z0-9_.:/@*?-]+$"  # of hub ids, with `@REVISION` too, S3 URIs, JumpStart ids, ARNs
IMAGE_PATTERN = r"^[A-Za-z0-9_.:/@*?-]+$"
SECRET_PATTERN = r"^[A-Za-z0-9/_+=.@:*?-]+$"  # noqa: S105 (the form of a name, no secret)
LICENCE_ID = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
OWNER = r"^\S(.*\S)?$"
NAME_PATTERN = r"^[A-Za-z0-9*?-]+$"
ACCOUNT = r"^[0-9]{12}$"
REGION = r"^[a-z]{2,}(-[a-z]+)+-[0-9]$"
SUBNET_ID = r"^subnet-[0-9a-z]+$"
SECURITY_GROUP_ID = r"^sg-[0-9a-z]+$"
PIPELINE_NAME = r"^[A-Za-z0-9][A-Za-z0-9-]*$"
CONNECTION_ARN = r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/[a-z0-9-]+$"
REPOSITORY = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$"
# The DER of a key of curve P-256 in base64: its head is always the same.
PUBLIC_KEY = r"^MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE[A-Za-z0-9+/]{86}==$"
KMS_KEY_ARN = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$"
POLICY_ARN = r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[\w+=,.@/-]+$"
ROLE_PATH = r"^/([!-.0-~]+/)*$"
SNS_TOPIC_ARN = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$"
RUNBOOK_URL = r"^https://[^\s#{}]+$"
SLACK_WORKSPACE, SLACK_CHANNEL = r"^T[0-9A-Z]{1,254}$", r"^[CG][0-9A-Z]{1,254}$"
UUID = r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
# As the channel's link has it, percent-encoded (resource schema AWS::Chatbot::MicrosoftTeamsChannelConfiguration).
TEAMS_CHANNEL = r"^[a-zA-Z0-9=+/.,_-]*%3[aA][a-zA-Z0-9=+/.,_-]*%40[a-zA-Z0-9=+/.,_-]*$"
UTC_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z$"
MOST_COPIES = 1000  # a bound against slips of the hand, not one of the service

HINTS = MappingProxyType(
    {
        ENDPOINT_NAME: "letters, digits and inner hyphens, as in support-chat",
        ENVIRONMENT_NAME: "lower-case letters and digits, no hyphen: `prod-eu` with `chat` would share a stack name "
        "with `prod` and `eu-chat`",
        PRODUCT_NAME: "lower-case letters, digits and single inner hyphens, as in chat-standard",
        TEAM_NAME: "lower-case letters and digits, no hyphen: `a-b` with `c` would share a name with `a` and `b-c`",
        PRODUCT_VERSION: "three numbers with dots, as in 1.0.0",
        PRINCIPAL: "as in arn:aws:iam::123456789012:role/NAME; with wildcards and no account: arn:aws:iam:::role/NAME*",
        EMAIL: "as in platform@example.com",
        HTTPS_URL: "as in https://example.com/support",
        INSTANCE_TYPE: "as in ml.g5.2xlarge",
        S3_PREFIX: "as in s3://bucket/model/, with the final slash",
        MODEL_URI: "as in s3://bucket/model/, with the final slash, or s3://bucket/model.tar.gz",
        ARCHIVE_URI: "as in s3://bucket/adapters/sql.tar.gz",
        RESERVATION_ARN: "as in arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
        UTC_TIME: 'a time in UTC, in quotes, as in "2027-01-31T11:30:00Z"',
        MODEL_PACKAGE_ARN: "as in arn:aws:sagemaker:REGION:ACCOUNT:model-package/GROUP/1",
        HUB_CONTENT_ARN: "as in arn:aws:sagemaker:REGION:ACCOUNT:hub-content/HUB/Model/NAME/1.0.0",
        IMAGE_URI: "write it as ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG",
        SECRET_NAME: "a name as in my/token, or the full ARN: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
        HUB_ID: "as in meta-llama/Llama-2-7b-chat-hf: letters, digits and _, with single - or . between them",
        REVISION: "a commit, a tag or a branch, as in 4f2b1e0 or refs/pr/2",
        JUMPSTART_ID: "as in meta-textgeneration-llama-2-7b",
        MODEL_PATH: "a hub id, a path in the container or an S3 URI: org/draft, /opt/ml/model/draft",
        ENGINE_VERSION: "as in `seatrial images list`",
        OPTION_NAME: "letters, digits and underscores, without `option.`",
        TAG_TEXT: "letters, digits, spaces and _ . : / = + - @",
        TAG_PATTERN: "as in search, or team-*",
        IMAGE_PATTERN: "as in 111122223333.dkr.ecr.us-east-1.amazonaws.com/llm/*",
        SECRET_PATTERN: "as in hub/*, or arn:aws:secretsmanager:us-east-1:111122223333:secret:hub/*",
        MODEL_PATTERN: "as in meta-llama/*, s3://bucket/models/* or meta-textgeneration-*",
        LICENCE_ID: "a licence id of the hub, as in apache-2.0, mit or llama3.1",
        NAME_PATTERN: "as in chat, or support-*",
        OWNER: "a team, person or address on one line, as in platform-team",
        ACCOUNT: "twelve digits in quotes",
        REGION: "as in us-east-1",
        SUBNET_ID: "as in subnet-0a1b2c3d",
        SECURITY_GROUP_ID: "as in sg-0a1b2c3d",
        PIPELINE_NAME: "letters, digits and hyphens, as in endpoints",
        CONNECTION_ARN: "arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
        REPOSITORY: "as in OWNER/NAME",
        KMS_KEY_ARN: "the key's full ARN, not an alias: arn:aws:kms:REGION:ACCOUNT:key/KEY-ID",
        PUBLIC_KEY: "what `seatrial keys` writes: the DER of a public key of curve P-256 in base64",
        POLICY_ARN: "the ARN of a managed policy: arn:aws:iam::ACCOUNT:policy/NAME",
        ROLE_PATH: "a slash at both ends, as in /seatrial/",
        RUNBOOK_URL: "as in https://wiki.example.com/llm-alarms, without a section: each alarm adds its own",
        SLACK_WORKSPACE: "the ID that AWS Chatbot's console shows of the workspace, as in T0123ABCD",
        SLACK_CHANNEL: "the end of the channel's link in Slack, as in C0123ABCD",
        UUID: "as in 11111111-2222-3333-4444-555555555555",
        TEAMS_CHANNEL: "the channel's ID as its link has it, as in 19%3aabc%40thread.tacv2",
        SNS_TOPIC_ARN: "the ARN of a standard topic, no FIFO topic: arn:aws:sns:REGION:ACCOUNT:NAME",
    }
)

_PARAMETERS = "the number of parameters, as in 6738415616, not billions or bytes"
SHAPE_HINTS = MappingProxyType(
    {
        "layers": "num_hidden_layers of the model's config.json",
        "hidden_size": "hidden_size of the model's config.json",
        "attention_heads": "num_attention_heads of the model's config.json",
        "kv_heads": "num_key_value_heads of the model's config.json",
        "head_dim": "head_dim of the model's config.json, or hidden_size / attention_heads",
        "vocab": "vocab_size of the model's config.json",
        "max_context": "max_position_embeddings of the model's config.json",
        "params_total": _PARAMETERS,
        "params_active": _PARAMETERS,
        "experts": "num_local_experts or num_experts of the model's config.json; left out for a dense model",
        "experts_per_token": "num_experts_per_tok of the model's config.json",
        "sliding_window": "sliding_window of the model's config.json; left out for full attention",
        "sliding_layers": "the number of layers with the window; left out if all have it",
    }
)
"""Where the `config.json` has each number of `model.shape`."""
