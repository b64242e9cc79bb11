"""What is a credential and what is none: one table for everything that asks, whatever the text around it is."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base import secrets
from seatrial_base.secrets import FORMS, MASK, SHOWN, credentials, holds_credential, redacted

UPPER, MIXED = "Z3X5C7V9B1N2M4Q6", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYplantedKEY"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----"
KEY_ID = f"AKIA{UPPER}"

# A text that is a credential, whatever stands around it.
BARE = {
    "Hugging Face, user": f"hf_{MIXED}",
    "Hugging Face, organisation": f"api_org_{MIXED}",
    "AWS access key id": KEY_ID,
    "AWS access key id, temporary": f"ASIA{UPPER}",
    "AWS session token": "IQoJb3JpZ2luX2VjEJ3//////////wEaCXVzLWVhc3QtMSJHMEUCIQD" + MIXED,
    "AWS session token, older": "FwoGZXIvYXdzEBYaDNKdyZLr" + MIXED,
    "SageMaker bearer token": "sagemaker-api-key-c2FnZW1ha2VyLmFtYXpvbmF3cy5jb20vP0FjdGlvbg==",
    "GitHub, classic": f"ghp_{MIXED}a1B2",
    "GitHub, OAuth": f"gho_{MIXED}a1B2",
    "GitHub, user to server": f"ghu_{MIXED}a1B2",
    "GitHub, server to server": f"ghs_{MIXED}a1B2",
    "GitHub, refresh": f"ghr_{MIXED}a1B2",
    "GitHub, fine-grained": f"github_pat_11ABCDEFG0{MIXED}_{MIXED}",
    "GitLab": "glpat-aB3dE5fG7hJ9kL1mN2pQ",
    "OpenAI, legacy": f"sk-{MIXED}a1B2c3D4e5F6g7H8",
    "OpenAI, project": f"sk-proj-{MIXED}_{MIXED}",
    "OpenAI, service account": f"sk-svcacct-{MIXED}",
    "Anthropic": f"sk-ant-api03-{MIXED}-AA",
    "NVIDIA": f"nvapi-{MIXED}_{MIXED}",
    "Groq": f"gsk_{MIXED}a1B2c3D4e5F6",
    "Replicate": f"r8_{MIXED}a1B2c",
    "Slack, bot": "xoxb-123456789012-123456789012-aB3dE5fG7hJ9kL1mN2pQ4rS6",
    "Slack, user": "xoxp-123456789012-aB3dE5fG7hJ9",
    "Slack, app": "xapp-1-A0123456789-1234567890123-aB3dE5fG7hJ9",
    "Google": "AIzaSyD-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0x",
    "Google OAuth": "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",
    "npm": f"npm_{MIXED}a1B2",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{MIXED}",
    "Stripe, secret": "sk_live_aB3dE5fG7hJ9kL1mN2pQ4rS6",
    "Stripe, restricted": "rk_live_aB3dE5fG7hJ9kL1mN2pQ4rS6",
    "Databricks": "dapi0123456789abcdef0123456789abcdef",
    "Docker Hub": "dckr_pat_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8",
    "Vault": "hvs.CAESIaB3dE5fG7hJ9kL1mN2pQ4rS6tU8",
    "SendGrid": "SG.aB3dE5fG7hJ9kL1mN2pQ4r.aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3dE5fG7hJ",
    "Telegram": f"123456789:AAF{MIXED}",
    "Heroku": "HRKU-57dce771-afad-4c41-a8a5-d10b7fbc743c",
    "Heroku, second form": f"HRKU-AA{MIXED}_____w{MIXED[:20]}",
    "Twilio": "SK0123456789abcdef0123456789abcdef",
    "DigitalOcean": "dop_v1_" + "0123456789abcdef" * 4,
    "DigitalOcean, OAuth": "doo_v1_" + "0123456789abcdef" * 4,
    "DigitalOcean, refresh": "dor_v1_" + "0123456789abcdef" * 4,
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
    "Linear": f"lin_api_{MIXED}a1B2c3D4",
    "Linear, OAuth": "lin_oauth_" + "0123456789abcdef" * 4,
    "Figma": f"figd_{MIXED}a1B2c3D4",
    "JSON Web Token": JWT,
    "private key": PEM,
    "private key, RSA": PEM.replace("PRIVATE", "RSA PRIVATE"),
    "private key, OpenSSH": PEM.replace("PRIVATE", "OPENSSH PRIVATE"),
    "private key in JSON": PEM.replace("\n", "\\n"),
    "private key in JSON within JSON": PEM.replace("\n", "\\\\n"),
    "private key that is cut": PEM.partition("\n-----END")[0],
    "private key with headers": PEM.replace(
        "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0011223344556677\n\n", 1
    ),
    "private key with headers in one line": PEM.replace("-----\n", "-----\nVersion: GnuPG v2 Comment: mine\n", 1),
    **{f"AWS session token, {begin}": f"{begin}{MIXED * 2}" for begin in ("IQoJ", "FwoG", "FQoG", "AQoD", "AQoE")},
    **{
        f"GitLab, {kind}": f"gl{kind}-aB3dE5fG7hJ9kL1mN2pQ"
        for kind in ("pat", "dt", "rt", "ptt", "cbt", "oas", "ft", "soat", "agent", "imt")
    },
    "Google OAuth, access token": f"ya29.{MIXED}",
    "Stripe, test": "sk_test_aB3dE5fG7hJ9kL1mN2pQ4rS6",
    "Stripe, restricted, test": "rk_test_aB3dE5fG7hJ9kL1mN2pQ4rS6",
    "Vault, batch": "hvb.CAESIaB3dE5fG7hJ9kL1mN2pQ4rS6tU8",
}

# A text, and the part of it that is the credential.
PLACED = {
    "URL with a password": ("https://user:hunter2@example.org/x", "hunter2"),
    "URL with a word as password": ("postgres://admin:swordfish@db:5432/name", "swordfish"),
    "URL with an at sign in the password": ("https://user:p@ss1234@example.org/x", "p@ss1234"),
    "URL with several at signs": ("proxy http://user:p@ss@w0rd@10.0.0.1:3128 refused", "p@ss@w0rd"),
    "URL without a user": ("redis://:p4ssw0rd!@cache:6379", "p4ssw0rd!"),
    "URL of pip": ("git+https://oauth2:aB3dE5fG@gitlab.example/x.git", "aB3dE5fG"),
    "presigned URL": (
        f"https://b.s3.amazonaws.com/k?X-Amz-Date=20260101T000000Z&X-Amz-Signature={'a1' * 32}",
        "a1" * 32,
    ),
    "presigned URL, session token": (
        f"https://b/k?X-Amz-Security-Token={MIXED}%2F%2F{MIXED}&x=1",
        f"{MIXED}%2F%2F{MIXED}",
    ),
    "presigned URL in HTML": (f"https://b/k?a=1&amp;X-Amz-Signature={'a1' * 32}&amp;b=2", "a1" * 32),
    "presigned URL in JSON": (f'"https://b/k?a=1\\u0026X-Amz-Signature={"a1" * 32}"', "a1" * 32),
    "shared access signature": (
        "https://a.blob.core.windows.net/c?sv=2022&sig=aB3dE5fG7hJ9kL1m%2FN2pQ%3D&se=x",
        "aB3dE5fG7hJ9kL1m%2FN2pQ%3D",
    ),
    "URL with a token": ("https://example.org/x?access_token=aB3dE5fG7h&y=1", "aB3dE5fG7h"),
    "URL with a key": ("https://example.org/x?y=1&api_key=aB3dE5fG7h", "aB3dE5fG7h"),
    "Azure storage key": (
        f"AccountName=a;AccountKey={MIXED * 2}a1B2c3D4e5F6g7H8i9J0kL==;EndpointSuffix=x",
        f"{MIXED * 2}a1B2c3D4e5F6g7H8i9J0kL==",
    ),
    "bearer header": ("Authorization: Bearer aB3dE5fG7h", "aB3dE5fG7h"),
    "bearer header in JSON": ('{"Authorization": "Bearer aB3dE5fG7h"}', "aB3dE5fG7h"),
    "bearer": (f"curl -H 'authorization: bearer {MIXED}'", MIXED),
    "bearer header, tabs": ("Authorization:\tBearer\taB3dE5fG7h", "aB3dE5fG7h"),
    "bearer alone": (f"bearer {MIXED}", MIXED),
    "bearer header, letters": ("Authorization: Bearer abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
    "token header": ("Authorization: token aB3dE5fG7h", "aB3dE5fG7h"),
    "basic header, not filled up": ("Authorization: Basic dXNlcjpwYXNzd29yZA", "dXNlcjpwYXNzd29yZA"),
    "basic header, two less": ("Authorization: Basic dXNlcjpwYXNzMQ", "dXNlcjpwYXNzMQ"),
    "basic header, one less": ("Authorization: Basic dXNlcjpwYXNzd29yZDE", "dXNlcjpwYXNzd29yZDE"),
    "signed URL of capitals": (f"https://b/k?X-GOOG-SIGNATURE={'A1' * 32}", "A1" * 32),
    "basic header": ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    "header with a key": ("x-api-key: aB3dE5fG7h", "aB3dE5fG7h"),
    "environment line": (
        "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567",
        "0123456789abcdef0123456789abcdef01234567",
    ),
    "environment line, a word": ("A=1\nexport DB_PASSWORD=swordfish\nB=2", "swordfish"),
    "environment line, punctuation": ("DB_PASSWORD=p@ss,w;rd1", "p@ss,w;rd1"),
    "Dockerfile": ("ENV HF_TOKEN=abcdefgh", "abcdefgh"),
    "property": ("option.hf_token=aB3dE5fG7h", "aB3dE5fG7h"),
    "YAML": ("db:\n  password: hunter2\n", "hunter2"),
    "YAML, quoted": ("  apiKey: 'aB3dE5fG7h'\n", "aB3dE5fG7h"),
    "JSON": ('{"password": "hunter2", "x": 1}', "hunter2"),
    "JSON, a word": ('{"password": "swordfish"}', "swordfish"),
    "JSON, escaped quote": (r'{"password": "hun\"ter2", "x": "y"}', r"hun\"ter2"),
    "JSON, escaped backslash": (r'{"password": "hunter2\\", "x": "y"}', r"hunter2\\"),
    "JSON within JSON": (r'{"x": "{\"password\": \"hunter2\", \"y\": \"z\"}"}', "hunter2"),
    "JSON within JSON, escaped quote": (r'"{\"password\": \"hun\\\"ter2\"}"', r"hun\\\"ter2"),
    "JSON within HTML": ("{&quot;password&quot;: &quot;hunter2&quot;}", "hunter2"),
    "Python": ('client = Client(api_key="aB3dE5fG7h")', "aB3dE5fG7h"),
    "Python, annotated": ('TOKEN: str = "x"\nhf_token = "aB3dE5fG7h"', "aB3dE5fG7h"),
    "Python, without quotes": ("connect(password=ab1c2d)", "ab1c2d"),
    "Python, without quotes, an X": ("connect(password=ab1c2dX)", "ab1c2dX"),
    "environment line, escaped": ("A=1\\nDB_PASSWORD=swordfish", "swordfish"),
    "Python, random, a word of secrets in it": ("connect(password=mykey1a2b3c4d5e6f7)", "mykey1a2b3c4d5e6f7"),
    "a name within the ninth value": ("pat=" * 9 + "hunter2", "hunter2"),
    "a name within a value": ("f(password='x1y2,api_key=\"z1'b2\")", 'x1y2,api_key="z1'),
    "environment line, far below": (f"{'x' * 100}\nDB_PASSWORD=swordfish", "swordfish"),
    "a letter that is two in lower case": ("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}: PASSWORD=hunter22", "hunter22"),
    "JavaScript": ("const o = {clientSecret: 'aB3dE5fG7h'}", "aB3dE5fG7h"),
    "command line": ("vllm serve m --api-key aB3dE5fG7h --port 8000", "aB3dE5fG7h"),
    "command line, equals": ("serve --hf-token=aB3dE5fG7h", "aB3dE5fG7h"),
    "arguments as a JSON list": ('["--api-key", "aB3dE5fG7h", "--port", "8000"]', "aB3dE5fG7h"),
    "secret access key": (f"aws_secret_access_key = {AWS_KEY}", AWS_KEY),
    "secret access key in JSON": (f'{{"SecretAccessKey": "{AWS_KEY}"}}', AWS_KEY),
    "token with a random value": (f"token: {MIXED}", MIXED),
    "secret with a random value": (f'{{"secret": "{MIXED}"}}', MIXED),
    "npmrc": (f"//registry.npmjs.org/:_authToken={MIXED}", MIXED),
    "log": ("login failed: password=hunter2, retrying", "hunter2"),
}

# The name of a field, and its whole value.
NAMED = (
    ("password", "hunter2"),
    ("password", "secret"),
    ("password", "correct horse battery staple"),
    ("db_passwd", "swordfish"),
    ("HF_TOKEN", "abcdefgh"),
    ("hf_token", "swordfish"),
    ("huggingFaceHubToken", "swordfish"),
    ("api_key", "swordfish"),
    ("api-key", "swordfish"),
    ("apiKey", "swordfish"),
    ("OPENAI_APIKEY", "swordfish"),
    ("option.api_key", "swordfish"),
    ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"),
    ("aws_secret_access_key", AWS_KEY),
    ("SecretAccessKey", AWS_KEY),
    ("AWS_SESSION_TOKEN", "abcdefghijklmnop"),
    ("secret_key", "swordfish"),
    ("client_secret", "swordfish"),
    ("private_key", "swordfish"),
    ("account_key", "swordfish"),
    ("token", MIXED),
    ("secret", MIXED),
    ("my_credential", MIXED),
    ("NGC_TOKEN_1", MIXED),
    ("args", '{"password": "hunter2"}'),
    ("args", '["--api-key", "aB3dE5fG7h"]'),
    ("url", "https://user:hunter2@example.org"),
    ("password", "a1b2"),
    ("password", "123456"),
    ("password", "open-secret"),
    ("password", "my-swordfish"),
    ("password", f"{'x' * 4095}aB1"),
    ("secret_key", "/bPxRfiCYplantedKEY7/K7MDENGwJalrXUtnFEM"),  # no path: forty characters of Base64
    ("token", "abcdefghijklmno12"),
    ("token", "12345678901234abc"),
)

NONE = (
    "$HF_TOKEN",
    "${HF_TOKEN}",
    "HF_TOKEN=$HF_TOKEN",
    "export HF_TOKEN=${HF_TOKEN:-}",
    "HF_TOKEN={{token}}",
    "password: {{ .Values.password }}",
    "HF_TOKEN={{resolve:secretsmanager:seatrial/hub-token}}",
    '"HF_TOKEN": "{{resolve:secretsmanager:arn:aws:secretsmanager:us-east-1:111122223333:secret:t:SecretString:::}}"',
    "api_key: <your-token>",
    "api_key: <your-api-key-here>",
    "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "HF_TOKEN=hf_xxxxxxxx",
    "HF_TOKEN=hf_***",
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-no-key-required",
    "password: ****",
    "password: xxxx",
    "password: changeme",
    "password: CHANGE_ME",
    "api_key=EMPTY",
    'api_key="EMPTY"',
    "api_key: your-api-key",
    "YOUR_API_KEY",
    "hub_token_secret: seatrial/hub-token",
    "hub_token_secret: prod/hf-token-2024",
    "hub_token_secret: arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-token-AbCdEf",
    "secretName: seatrial-hub-token-2024",
    "max_tokens: 512",
    "max_new_tokens=512",
    "tokenizer: meta-llama/Llama-2-7b-hf",
    "option.tokenizer=s3://bucket/tokenizer-20240101/",
    'pad_token: "</s>"',
    '"eos_token": "<|eot_id|>"',
    '"eos_token_id": 128009',
    '"bos_token": "<|begin_of_text|>"',
    "special_tokens_map.json",
    "stop_token_ids: [128001, 128009]",
    "token_budget: 20480",
    '{"token": {"id": 450, "text": " Paris", "logprob": -0.1}}',
    '{"token": " hello", "finish_reason": "length"}',
    '{"generated_text": "the password is a secret"}',
    "tpot_ms: time per output token: 23.1",
    "first_token: 12345678901234567890",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "123456789012.dkr.ecr.us-east-1.amazonaws.com/repo@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15",
    "docker://image:tag@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "b1946ac92492d2347c6235b4d2611184e1a5b3c4",
    "revision: b1946ac92492d2347c6235b4d2611184e1a5b3c4",
    "550e8400-e29b-41d4-a716-446655440000",
    '"integrity": "sha512-' + MIXED * 2 + 'a1B2c3D4e5F6g7H8i9J0kL=="',
    "chat_template: eyUgZm9yIG1lc3NhZ2UgaW4gbWVzc2FnZXMgJX17eyBtZXNzYWdlWydjb250ZW50J10gfX17JSBlbmRmb3IgJX0=",
    "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "hf_transfer",
    "HF_HUB_ENABLE_HF_TRANSFER=1",
    "task-arctic-embed-m-v2-0-and-more-words",
    "risk-abcdefghijklmnopqrstuvwxyz",
    "ask-me-anything-about-the-endpoint-0",
    "https://example.org:8080/path",
    "https://user@example.org/x",
    "https://${USER}:${PASSWORD}@example.org",
    "https://user:$PASSWORD@example.org",
    "https://{user}:{password}@example.org",
    "https://<user>:<password>@example.org",
    "https://example.org/x?token=$TOKEN",
    "https://example.org/x?max_tokens=512&signature=none",
    "mailto:someone@example.org and http://example.org",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer {token}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer token",
    'headers = {"Authorization": f"Bearer {api_key}"}',
    "a bearer token is expected",
    "Authorization: Bearer abcdefghijklmnopqrs",
    "Authorization: Bearer env:TOKEN1",
    "Authorization: Basic dXNlcm9ubHk=",  # no colon
    "Authorization: Basic dXNlcjoAAQ==",  # not to be printed
    "Authorization: Basic dXNl----cjpwYXNzd29yZA==",  # no Base64
    "Basic authentication is not supported; basic usage follows",
    "-----BEGIN PRIVATE KEY-----",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text: ...',
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC\n-----END PUBLIC KEY-----",
    'token = os.environ["HF_TOKEN"]',
    'hf_token = os.getenv("HF_TOKEN")',
    "token = get_token()",
    "client = Client(api_key=api_key, password=args.password)",
    'connect(password="swordfish")',  # a word in code
    '{"api_key": "swordfish"}',
    '{"password": "the_password"}',
    '{"password": "It has 2 times 3 words"}',
    "serve --served-name hunter22",
    '{"token": "hunter2"}',
    '{"password": "hunter2\n',  # no quote closes it on its line
    "{&quot;password&quot;: &quot;hunter2",
    '{"password": "hunter2',
    "connect(password=ab1c2d(x))",  # a call, a place in a table
    "connect(password=ab1c2d[0])",
    "connect(password=ab1c2d{x})",
    "run DB_PASSWORD=swordfish",  # a word in code; a line of an environment file begins with its name
    "db_password=swordfish",
    "PASSWORD = swordfish",
    "HF_TOKEN=token",
    "connect(password=12345678)",
    "key=" * 20 + "hunter2",
    "pat=" * 8 + "hunter2",
    'token="' + "pat=" * 8 + "hunter2",
    "1 " + "pat=" * 9 + "swordfish",
    "pat=" * 9 + "swordfish 1a",
    "connect(password=read-only)",
    "connect(password=other.value1x)",
    "connect(password=db_key_2)",
    "connect(password=my_pass_2)",
    "connect(password=ab1c2)",
    "password=self.config.password2,",
    "def login(user: str, password: str, api_key: Optional[str] = None) -> None:",
    "token: Optional[str] = None",
    "parser.add_argument('--hf-token', default=None)",
    "parser.add_argument('--api-key', type=str, help='the key')",
    "serve --api-key $API_KEY --token {{token}}",
    "serve --token-budget 20480 --max-num-seqs 64",
    '{"password": {"type": "string"}}',
    "the password: it must have eight characters",
    "key: the first one; token: the second",
    "password_file: /run/secrets/db_password",
    "password: /run/secrets/db_password1",
    "private_key: ~/.ssh/id_rsa",
    "api_key: !Ref ApiKey",
    "api_key: ref+vault:secret/key#1",
    "use_auth_token: true",
    "sort_key=created_at2",
    "primary_key: user_id_2",
    "AWS4-HMAC-SHA256 SignedHeaders=host;x-amz-date, Signature=" + "a1" * 32,
    "AKIALESS",
    AWS_KEY,
)

NAMED_NONE = (
    ("hub_token_secret", "seatrial/hub-token"),
    ("hub_token_secret", "prod/hf-token-2024"),
    ("HF_TOKEN", "$HF_TOKEN"),
    ("HF_TOKEN", "${HF_TOKEN}"),
    ("HF_TOKEN", "{{resolve:secretsmanager:hub}}"),
    ("HF_TOKEN", "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub"),
    ("HF_TOKEN", "arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:hub"),
    ("HF_TOKEN", "(from Secrets Manager: seatrial/hub-token)"),
    ("HF_TOKEN", ""),
    ("api_key", "<your-token>"),
    ("api_key", "EMPTY"),
    ("api_key", "dummy"),
    ("password", "xxxxxxxx"),
    ("password", "********"),
    ("password", "true"),
    ("api_key", "512"),
    ("token", "</s>"),
    ("eos_token", "<|eot_id|>"),
    ("pad_token", "a1B2c3D4e5F6g7H8i9"),
    ("max_tokens", "512"),
    ("token_budget", "20480"),
    ("tokenizer", "meta-llama/Llama-2-7b-hf"),
    ("stop_token_ids", "[128001,128009]"),
    ("secret", "seatrial/hub-token"),
    ("secret_name", "a1B2c3D4e5F6g7H8i9"),
    ("password_file", "a1B2c3D4e5F6g7H8i9"),
    ("access_key_id", "a1B2c3D4e5F6g7H8i9"),
    ("public_key", "a1B2c3D4e5F6g7H8i9"),
    ("chat_template", "{% for message in messages %}{{ message.content }}{% endfor %}"),
    ("revision", "b1946ac92492d2347c6235b4d2611184e1a5b3c4"),
    ("PWD", "/opt/ml/model"),
    ("password", "a1b"),
    ("password", "x" * 40),  # as long as a secret access key
    ("password", "12345"),
    ("password", f"{'x' * 4096}aB1"),  # so many characters are judged
    *(
        ("password", f"an-{word}")
        for word in ("example", "placeholder", "dummy", "fake", "sample", "redacted", "hidden", "masked")
    ),
    *(("password", f"my-{word}") for word in ("secret", "token", "key", "password")),
    ("token", "abcdefghijklmnop1"),
    ("token", "123456789012345ab"),
    ("token", "abcdefghijklmnXX"),
    ("token", "see a1B2c3D4e5F6g7H8 for more"),
    ("token", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("token", "550e8400-e29b-41d4-a716-4466554abcde"),
    ("token", "env:a1B2c3D4e5F6g7H8i9"),
    ("token", f"{'a' * 4096}{MIXED}"),
    ("password", '{"a": "b"}'),  # a document, which is looked into
    ("password", '["a", ["b"]]'),
)


def test_every_form_has_a_source_and_is_in_the_table() -> None:
    assert all(form.source for form in FORMS)
    told = {credential.kind for text in BARE.values() for credential in credentials(text)}
    assert told == {form.kind for form in FORMS} - {"a Slack webhook", "a Discord webhook"}
    discord = f"https://discord.com/api/webhooks/123456789012345678/{MIXED}"
    assert redacted(discord) == "https://discord.com/api/webhooks/123…"
    assert (
        credentials("https://hooks.slack.com/services/T0123ABCD/B0123ABCD/aB3dE5fG7hJ9kL1m")[0].kind
        == "a Slack webhook"
    )


@pytest.mark.parametrize("name", BARE)
def test_a_form_is_found_and_only_it_is_masked(name: str) -> None:
    text = BARE[name]
    (found,) = credentials(f"before {text} behind")
    masked = redacted(f"before {text} behind")
    assert (found.start, masked[:7], masked[-7:]) == (7, "before ", " behind")
    assert masked.startswith(f"before {text[:SHOWN]}{MASK}")
    assert text[SHOWN + 1 : SHOWN + 16] not in masked


@pytest.mark.parametrize("name", PLACED)
def test_what_stands_in_the_place_of_a_credential_is_masked_and_nothing_else(name: str) -> None:
    text, secret = PLACED[name]
    before, _, behind = text.partition(secret)
    (found,) = credentials(text)
    assert text[found.start : found.end] == secret
    masked = redacted(text)
    assert masked.startswith(before)
    assert masked.endswith(f"{MASK}{behind}")
    assert masked.removeprefix(before).removesuffix(f"{MASK}{behind}") in ("", secret[:SHOWN])


@pytest.mark.parametrize(("name", "value"), NAMED)
def test_the_name_of_a_field_tells_what_its_value_is(name: str, value: str) -> None:
    assert holds_credential(value, name=name)
    assert not holds_credential(redacted(value, name=name), name=name)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_credential_is_left_alone(text: str) -> None:
    assert credentials(text) == ()
    assert redacted(text) == text


@pytest.mark.parametrize(("name", "value"), NAMED_NONE)
def test_a_reference_a_placeholder_and_a_word_of_models_are_no_values(name: str, value: str) -> None:
    assert not holds_credential(value, name=name)
    assert redacted(value, name=name) == value


def test_a_secret_access_key_is_known_beside_its_id() -> None:
    text = f"{KEY_ID}\n{AWS_KEY} b1946ac92492d2347c6235b4d2611184e1a5b3c4"
    assert redacted(text) == "AKI…\nwJa… b1946ac92492d2347c6235b4d2611184e1a5b3c4"


def test_a_secret_access_key_is_known_up_to_200_characters_beside_an_id() -> None:
    for space, is_near in ((160, True), (161, False)):
        assert (AWS_KEY not in redacted(f"{KEY_ID}{' ' * space}{AWS_KEY}")) == is_near
        assert (AWS_KEY not in redacted(f"{AWS_KEY}{' ' * space}{KEY_ID}")) == is_near
    assert AWS_KEY not in redacted(f"{AWS_KEY} {KEY_ID}")


def test_a_secret_access_key_between_two_ids_is_known_where_they_leave_no_gap() -> None:
    for space, is_near in ((180, True), (400, False)):
        assert (AWS_KEY not in redacted(f"{KEY_ID}{' ' * space}{AWS_KEY}{' ' * space}{KEY_ID}")) == is_near


def test_the_kind_is_that_of_the_form_and_of_the_place_before_that_of_the_name() -> None:
    kinds = {
        f"token=hf_{MIXED}": "a Hugging Face token",
        "secret=https://u:abc123XYZ789abcd@h/@h/": "a password in a URL",
        PLACED["presigned URL, session token"][0]: "the signature of a URL",
        PLACED["bearer alone"][0]: "a bearer token",
        PLACED["token header"][0]: "an Authorization header",
        "xoxb-a1B2c3D4e5": "a Slack token",  # the shortest form
        '{"password": "hunter2"}': "a secret value",
    }
    assert {text: credentials(text)[0].kind for text in kinds} == kinds


def test_two_forms_that_touch_are_two() -> None:
    (token, key) = credentials(f"{BARE['GitHub, classic']}{PEM}")
    assert (token.kind, key.kind) == ("a GitHub token", "a private key")
    assert token.end == key.start


ENCODED = {name: text for name, text in BARE.items() if text[:2].isalpha() and not text.startswith(("SK", "r8", "AGE"))}


@pytest.mark.parametrize("name", ENCODED)
def test_a_credential_in_base64_is_one(name: str) -> None:
    encoded = b64encode(ENCODED[name].encode()).decode()
    for text in (encoded, f"data: {{x: {encoded}}}", f"{encoded.rstrip('=')}\nbehind"):
        assert encoded[SHOWN + 1 : 20] not in redacted(text), text


def test_a_credential_in_base64_is_read_to_its_last_character() -> None:
    shortest = "SG.aB3dE5fG7hJ9kL1m.aB3dE5fG7hJ9kL1W"
    encoded = b64encode(shortest.encode()).decode()
    assert encoded.endswith("X")
    for text in (encoded, f"{encoded}A"):  # one more is no Base64
        (found,) = credentials(text)
        assert (found.start, found.end, found.kind) == (0, len(text), "a SendGrid key in Base64")
    assert credentials(b64encode(shortest[:-1].encode()).decode()) == ()


def test_base64_is_called_what_it_holds_first() -> None:
    (found,) = credentials(b64encode(f"{KEY_ID} {BARE['GitHub, classic']}".encode()).decode())
    assert found.kind == "an AWS access key id in Base64"


def test_a_form_of_two_letters_is_not_sought_in_base64() -> None:
    """Every seventh text of numbers and letters would be decoded."""
    assert credentials(b64encode(BARE["Twilio"].encode()).decode()) == ()


def test_base64_of_something_else_is_none() -> None:
    text = b64encode(b"hf_transfer is the name of a package, and AKIA is how an id begins").decode()
    assert redacted(text) == text


def test_the_id_of_a_rule_stays_beside_a_name_that_says_that_its_value_is_secret() -> None:
    line = "serving.overrides.extra.HF_TOKEN: SEA113: looks like a credential in plain text"
    assert redacted(line) == line
    assert redacted(f"api_key: SEA113 {KEY_ID}") == "api_key: SEA113 AKI…"


def test_a_long_value_is_masked_to_its_end() -> None:
    for text in (f"password={MIXED * 400}", f'{{"password": "{MIXED * 400}"}}', f"x --api-key {MIXED * 400}"):
        assert MIXED[-8:] not in redacted(text)


def test_names_within_a_value_hide_nothing_however_many_they_are() -> None:
    for count in (1, 7, 8, 9, 100, 2_000):
        assert "hunter2" not in redacted("password=" * count + "hunter2"), count
        assert MIXED not in redacted("pat=" * count + MIXED), count
        assert redacted("password=" * count + "hunter2 stays").endswith(" stays"), count


def test_up_to_80_characters_before_a_name_tell_whether_it_begins_its_line() -> None:
    for space, begins in ((79, True), (80, False)):
        text = f"x\n{' ' * space}DB_PASSWORD=swordfish"
        assert holds_credential(text) == begins
    assert holds_credential(f"{' ' * 80}DB_PASSWORD=swordfish")
    assert not holds_credential(f"{' ' * 81}DB_PASSWORD=swordfish")


def test_up_to_64_characters_before_its_noun_belong_to_a_name() -> None:
    assert holds_credential(f"{'A' * 64}PASSWORD=swordfish")
    assert not holds_credential(f"{'A' * 65}PASSWORD=swordfish")


@pytest.mark.parametrize("name", ["password=", "pat=", "key=", "api_key='", 'password="', "--api-key="])
def test_names_within_a_value_are_read_a_few_times_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are: a text that somebody else wrote may be nothing but names."""
    read = 0

    def is_value(value: str) -> bool:
        nonlocal read
        read += len(value)
        return secrets_is_value(value)

    def run_end(text: str, start: int) -> int:
        nonlocal read
        end = secrets_run_end(text, start)
        read += end - start
        return end

    secrets_is_value, secrets_run_end = secrets._is_value, secrets._run_end  # noqa: SLF001 (what reads is counted)
    monkeypatch.setattr(secrets, "_is_value", is_value)
    monkeypatch.setattr(secrets, "_run_end", run_end)
    text = name * 2_000 + "hunter2"
    credentials(text)
    assert read <= 10 * len(text)


def test_so_many_values_are_told_one_by_one_and_what_follows_as_one() -> None:
    assert redacted("password=hunter2x " * 4096 + "tail") == "password=… " * 4096 + "tail"
    assert redacted("password=hunter2x " * 4098 + "tail") == "password=… " * 4096 + "password=hun…"


def test_of_a_short_secret_nothing_is_shown() -> None:
    assert redacted('{"password": "hunter2"}') == '{"password": "…"}'
    assert redacted('{"password": "hunter2", "x": "and more words"}') == '{"password": "…", "x": "and more words"}'
    assert redacted("a1B2c3D4e5F6g7H8i9J", name="password") == "…"
    assert redacted("a1B2c3D4e5F6g7H8i9J0", name="password") == "a1B…"


def test_json_stays_json_where_a_secret_begins_with_an_escape() -> None:
    text = json.dumps({"password": "\u00e9" + MIXED})
    assert json.loads(redacted(text)) == {"password": MASK}


TOKENS = [text for text in BARE.values() if not text.startswith("-")]
ALL = [*BARE.values(), *(text for text, _ in PLACED.values())]


@given(st.text())
def test_a_text_without_credentials_is_unchanged(text: str) -> None:
    if not credentials(text):
        assert redacted(text) == text


@given(st.text(), st.sampled_from(ALL), st.text())
def test_masking_twice_changes_nothing_more(before: str, text: str, behind: str) -> None:
    once = redacted(f"{before} {text}\n{behind}")
    assert redacted(once) == once


@given(st.text(alphabet=" \n\"',;()[]<>/ab."), st.sampled_from(TOKENS), st.text(alphabet=" \n\"',;()[]<>"))
def test_only_the_span_of_a_credential_changes(before: str, secret: str, behind: str) -> None:
    assert redacted(f"{before} {secret} {behind}") == f"{before} {secret[:SHOWN]}{MASK} {behind}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(ALL),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["password", "api_key", "token", "x"]), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json(document: object, indent: int | None, ascii_only: bool) -> None:  # noqa: FBT001
    inner = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    for text in (inner, json.dumps({"within": inner}, ensure_ascii=ascii_only)):
        masked = json.loads(redacted(text))
        assert type(masked) is type(json.loads(text))
    json.loads(json.loads(redacted(json.dumps({"within": inner})))["within"])
