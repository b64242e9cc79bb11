r"""Forms of credentials, so that one in plain text is refused and never repeated.

This is the only list: specs, environments, locks, code folders, rendered configurations, `lint`, `convert`, results,
reports, logs and error messages all ask here. It is the standard library alone, because it also ships in a Lambda.

A credential is found in three ways:

* by its form: a prefix or a structure that nothing else has (`FORMS`, each with its source);
* by where it stands: a password in a URL, a signature in a query, an `Authorization` header, forty characters of
  Base64 beside an AWS key id;
* by its name: `password`, `api_key`, `hf_token`, … in any case, when the value looks like a value.

A reference (`$HF_TOKEN`, `{{token}}`, `<your-token>`, an ARN, a path) and a placeholder (`xxxx`, `changeme`, `EMPTY`)
are no credentials. `token` alone is a word of language models: next to it only a random value counts, and beside
`eos_token` and its like none does.

detect-secrets (Yelp, 1.5.0 of May 2024, the newest) was measured on the table of `test_credential_forms.py` and not
taken. Its regular expressions miss half of the 40 forms (Hugging Face, Anthropic, NVIDIA, Google, Databricks, GitHub's
fine-grained and AWS's session tokens among them) and 38 of the 43 places. With its entropy and keyword plugins it takes
23 of the 103 harmless texts for secrets: digests, chat templates, names in Secrets Manager, `changeme`. It tells lines,
not places, so that nothing could be masked byte for byte; its import alone takes as long as a whole `seatrial
validate`; and the Lambda could not carry it, so that there would be two lists again.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Characters of a credential that a message may show: its kind, nothing of its value.
SHOWN = 3
MASK = "…"
# The kind of a credential that only the name next to it tells.
BY_NAME = "a secret value"
# Of a credential with fewer characters nothing is shown: three of a short password say too much.
LEAST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of credential that its text alone tells.

    Attributes:
        kind: What it is, for messages.
        needles: Every match contains one of them, and begins with it where the pattern begins with `_START`: a quick
            search for these spares most texts the pattern.
        pattern: Regular expression; nothing but the credential matches.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: str
    source: str


_KEY_ID = "an AWS access key id"
_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
_WORD = "[A-Za-z0-9_-]"
_PEM_HEADER = (  # ends with its line, or in front of the first word that may be Base64
    r"(?:Proc-Type|DEK-Info|Version|Comment):"
    r"(?:[^\n\\]{0,99}+(?=\\+[nr]|\n)|(?:[^\S\n]*+(?![A-Za-z0-9+/=]{16})[^\s\\]++){0,20}+)(?:\\+[nr]|\s)++"
)
_PEM_BODY = rf"(?:\\+[nr]|[\s\"'+,])*+(?:{_PEM_HEADER})*+"
_NO_START = "(?![_-]eyJ)"  # a run of beginnings is read once

FORMS = (
    Form("a Hugging Face token", ("hf_",), rf"{_START}hf_[A-Za-z0-9]{{20,}}", "Hugging Face hub, User access tokens"),
    Form(
        "a Hugging Face token",
        ("api_org_",),
        rf"{_START}api_org_[A-Za-z0-9]{{20,}}",
        "Hugging Face hub, organisation API tokens (before 2024)",
    ),
    Form(
        _KEY_ID,
        ("AKIA", "ASIA"),
        rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}{_END}",
        "IAM user guide, IAM identifiers: understanding unique ID prefixes",
    ),
    Form(
        "an AWS session token",
        ("IQoJ", "FwoG", "FQoG", "AQoD", "AQoE"),
        rf"{_START}(?:(?:IQoJb3JpZ2lu|F[Qw]oGZXIvYXdz|AQo[DE]YXdz)[A-Za-z0-9+/=%]{{16,}}"
        r"|(?:IQoJ|F[Qw]oG|AQo[DE])[A-Za-z0-9+/=%]{60,})",
        "IAM user guide, AssumeRole and GetSessionToken examples",
    ),
    Form(
        "a SageMaker bearer token",
        ("sagemaker-api-key-",),
        rf"{_START}sagemaker-api-key-[A-Za-z0-9+/=_-]{{20,}}",
        "SageMaker developer guide, Invoke endpoints with OpenAI-compatible APIs; sagemaker-core 2.27.0",
    ),
    Form(
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{30,}}|github_pat_[A-Za-z0-9_]{{22,}})",
        "GitHub documentation, GitHub's token formats",
    ),
    Form(
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glft-", "glsoat-", "glagent-", "glimt-"),
        rf"{_START}gl(?:pat|dt|rt|ptt|cbt|oas|ft|soat|agent|imt)-[A-Za-z0-9_.-]{{20,}}",
        "GitLab documentation, Token overview: token prefixes",
    ),
    Form(
        "an Anthropic API key",
        ("sk-ant-",),
        rf"{_START}sk-ant-{_WORD}{{20,}}",
        "Anthropic API documentation, Getting started",
    ),
    Form(
        "an OpenAI API key",
        ("sk-",),
        rf"{_START}sk-(?:(?:proj|svcacct|admin|None|or-v1)-{_WORD}{{20,}}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{20,}})",
        "OpenAI platform documentation, API keys; OpenRouter documentation, Authentication",
    ),
    Form("an NVIDIA API key", ("nvapi-",), rf"{_START}nvapi-{_WORD}{{20,}}", "NVIDIA NGC user guide, API keys"),
    Form("a Groq API key", ("gsk_",), rf"{_START}gsk_[A-Za-z0-9]{{40,}}", "Groq documentation, API keys"),
    Form("a Replicate token", ("r8_",), rf"{_START}r8_[A-Za-z0-9]{{37}}{_END}", "Replicate documentation, API tokens"),
    Form(
        "a Slack token",
        ("xox", "xapp-"),
        rf"{_START}(?:xox[abeoprs]-[A-Za-z0-9.-]{{10,}}|xapp-[0-9]-[A-Za-z0-9-]{{10,}})",
        "Slack API documentation, Token types",
    ),
    Form(
        "a Slack webhook",
        ("hooks.slack.com/",),
        r"(?<=hooks\.slack\.com/)(?:services|workflows)/[A-Za-z0-9+/]{20,}",
        "Slack API documentation, Sending messages using incoming webhooks",
    ),
    Form(
        "a Google API key",
        ("AIza",),
        rf"{_START}AIza[A-Za-z0-9_-]{{30,}}",
        "Google Cloud documentation, Manage API keys",
    ),
    Form(
        "a Google OAuth credential",
        ("GOCSPX-", "ya29."),
        rf"{_START}(?:GOCSPX-{_WORD}{{20,}}|ya29\.{_WORD}{{20,}})",
        "Google Identity documentation, OAuth 2.0",
    ),
    Form("an npm token", ("npm_",), rf"{_START}npm_[A-Za-z0-9]{{30,}}", "npm documentation, About access tokens"),
    Form(
        "a PyPI token",
        ("pypi-AgE",),
        rf"{_START}pypi-AgE{_WORD}{{20,}}",
        "PyPI documentation, API tokens (a macaroon of pypi.org or test.pypi.org)",
    ),
    Form(
        "a Stripe key",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_"),
        rf"{_START}[rs]k_(?:live|test)_[A-Za-z0-9]{{16,}}",
        "Stripe documentation, API keys",
    ),
    Form(
        "a Databricks token",
        ("dapi",),
        rf"{_START}dapi[0-9a-f]{{32}}(?:-[0-9])?{_END}",
        "Databricks documentation, Personal access tokens",
    ),
    Form(
        "a Docker Hub token", ("dckr_",), rf"{_START}dckr_[op]at_{_WORD}{{20,}}", "Docker documentation, Access tokens"
    ),
    Form(
        "a Vault token", ("hvs.", "hvb."), rf"{_START}hv[bs]\.{_WORD}{{24,}}", "HashiCorp Vault documentation, Tokens"
    ),
    Form(
        "a SendGrid key",
        ("SG.",),
        rf"{_START}SG\.{_WORD}{{16,}}\.{_WORD}{{16,}}",
        "SendGrid documentation, API keys",
    ),
    Form(
        "a Telegram bot token",
        (":AA",),
        r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
        "Telegram Bot API, Authorizing your bot; length: gitleaks, telegram-bot-api-token",
    ),
    Form(
        "a Discord webhook",
        ("/api/webhooks/",),
        rf"(?<=/api/webhooks/)[0-9]{{17,20}}/{_WORD}{{20,}}",
        "Discord developer documentation, Webhook resource",
    ),
    Form("a Heroku token", ("HRKU-",), rf"{_START}HRKU-{_WORD}{{30,}}", "Heroku Dev Center, OAuth: prefixed tokens"),
    Form("a Twilio API key", ("SK",), rf"{_START}SK[0-9a-f]{{32}}{_END}", "Twilio documentation, API keys: SID"),
    Form(
        "a DigitalOcean token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        rf"{_START}do[por]_v1_[0-9a-f]{{64}}",
        "DigitalOcean API reference, Authentication",
    ),
    Form(
        "an age secret key",
        ("AGE-SECRET-KEY-1",),
        r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}",
        "age-encryption.org/v1, X25519 identities (Bech32)",
    ),
    Form(
        "a Linear key",
        ("lin_api_", "lin_oauth_"),
        rf"{_START}lin_(?:api|oauth)_[A-Za-z0-9]{{32,}}",
        "Linear developer documentation, API and OAuth; length: gitleaks, linear-api-key",
    ),
    Form("a Figma token", ("figd_",), rf"{_START}figd_{_WORD}{{30,}}", "Figma REST API, Access tokens"),
    Form(
        "a JSON Web Token",
        ("eyJ",),
        rf"{_START}eyJ(?:{_NO_START}{_WORD}){{8,}}+\.eyJ{_WORD}{{8,}}+\.{_WORD}*",
        "RFC 7519, section 3.1",
    ),
    Form(
        "a private key",
        ("PRIVATE KEY",),
        rf"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----{_PEM_BODY}(?=[A-Za-z0-9+/=]{{16}})"
        r"(?:[A-Za-z0-9+/=\s\\]{16,20000}?(?=-----END)|[A-Za-z0-9+/=]{16,}(?:(?:\\+[nr]|\s)+[A-Za-z0-9+/=]{32,})*)",
        "RFC 7468, RFC 1421 and RFC 9580: textual encodings",
    ),
)
_PATTERNS = tuple((form, re.compile(form.pattern)) for form in FORMS)
_SHORTEST_FORM = 15  # characters: `xoxb-` and ten more


@dataclass(frozen=True, slots=True, order=True)
class Credential:
    """Where a credential is in a text.

    Attributes:
        end: The first character behind it.
        kind: What it is, for messages.
    """

    start: int
    end: int
    kind: str


def credentials(text: str, *, name: str = "") -> tuple[Credential, ...]:
    """Return every credential of a text in its order; those that overlap are one.

    `name`: the name of the field whose whole value the text is; it may tell what the value is.
    """
    if not text:
        return ()
    spans = sorted(
        chain(_by_form(text), _by_encoded_form(text), _by_place(text), _by_name(text), _as_value(text, name))
    )
    return tuple(_joined(spans))


def holds_credential(text: str, *, name: str = "") -> bool:
    """Return whether a text holds a credential."""
    return bool(credentials(text, name=name))


def redacted(text: str, *, name: str = "") -> str:
    """Return a text without its credentials; everything else stays byte for byte.

    Of a credential the first three characters and an ellipsis are left, of a short one the ellipsis alone. JSON stays
    JSON, a URL stays a URL, and a text that was masked already stays as it is.
    """
    parts: list[str] = []
    at = 0
    for one in credentials(text, name=name):
        # What may be shown of a credential; never half of an escape.
        credential = text[one.start : one.end]
        kind = credential[:SHOWN]
        parts += [
            text[at : one.start],
            (kind if len(credential) >= LEAST_SHOWN and re.fullmatch(r"[\w./+=-]*", kind) else ""),
            MASK,
        ]
        at = one.end
    return "".join((*parts, text[at:])) if parts else text


def _joined(credentials: Iterable[Credential]) -> Iterator[Credential]:
    last: Credential | None = None
    for one in credentials:
        if last is None or one.start >= last.end:
            if last:
                yield last
            last = one
        else:
            kind = one.kind if last.kind == BY_NAME else last.kind
            last = Credential(last.start, max(last.end, one.end), kind)
    if last:
        yield last


# By form.

_FILLED = re.compile(r"[xX*._0-]*")
_LEAST_ENCODED = 2  # characters of a needle: of two, Base64 tells nothing


def _by_form(text: str) -> Iterator[Credential]:
    if len(text) < _SHORTEST_FORM:
        return
    for form, pattern in _PATTERNS:
        if any(map(text.__contains__, form.needles)):
            spans = [match.span() for match in _matches(text, form, pattern) if not _is_filled(match[0], form)]
            yield from (Credential(*span, form.kind) for span in spans)
            if form.kind == _KEY_ID:
                yield from _beside_key_ids(text, spans)


def _matches(text: str, form: Form, pattern: re.Pattern[str]) -> Iterable[re.Match[str]]:
    if not form.pattern.startswith(_START):
        return pattern.finditer(text)
    return sorted(_beginning(text, form.needles, pattern), key=re.Match.start)


def _beginning(text: str, needles: Iterable[str], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the matches that begin with one of these; such a search is faster than the pattern's."""
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            match = pattern.match(text, at)
            if match:
                yield match
            at = text.find(needle, match.end() if match else at + 1)


def _is_filled(credential: str, form: Form) -> bool:
    prefix = next(filter(credential.startswith, form.needles), "")
    return _FILLED.fullmatch(credential.removeprefix(prefix)) is not None


# Base64 of a credential, as `kubectl get secret` and `docker login` write it: what the needle becomes at its beginning.

_ENCODED_NEEDLES = tuple(
    b64encode(needle.encode())[: len(needle) * 8 // 6].decode()
    for form in FORMS
    for needle in form.needles
    if form.pattern.startswith(_START) and len(needle) > _LEAST_ENCODED
)
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/=])(?:{'|'.join(_ENCODED_NEEDLES)})[A-Za-z0-9+/]{{16,}}+={{0,2}}")


def _by_encoded_form(text: str) -> Iterator[Credential]:
    for match in _beginning(text, _ENCODED_NEEDLES, _ENCODED):
        bare = match[0].rstrip("=")
        whole = bare[:-1] if len(bare) % 4 == 1 else bare
        for inner in _by_form(b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")):
            yield Credential(*match.span(), f"{inner.kind} in Base64")
            break


# A secret access key is 40 characters of Base64, as other things are: an access key id next to it tells, or its name.
_NEAR = 200  # characters
_LENGTH_OF_KEY = 40
_SECRET_ACCESS_KEY = re.compile(
    r"(?<![A-Za-z0-9+/=])(?=[A-Za-z0-9+/]*[A-Z])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[0-9])"
    r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)


def _beside_key_ids(text: str, key_ids: Iterable[tuple[int, int]]) -> Iterator[Credential]:
    for start, end in _near(key_ids):
        for match in _SECRET_ACCESS_KEY.finditer(text, start, end):
            yield Credential(*match.span(), "an AWS secret access key")


def _near(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans with what is near them; those that overlap are one, so that nothing is read twice."""
    start = end = 0
    for low, high in spans:
        if low - _NEAR > end:
            yield start, end
            start = low - _NEAR
        end = high + _NEAR
    yield start, end


# By place.

_AT = re.compile(r"://[^\s/@:?#\"'<>\\]{0,200}:(?P<secret>[^\s/?#\"'<>\\]{1,500})@(?!sha256:)(?=[\w\[])")
# X-Amz-*: Amazon S3, authenticating requests with query parameters; X-Goog-Signature: Cloud Storage, signed URLs;
# Signature: Amazon CloudFront, signed URLs; sig: Azure Storage, service SAS.
_SIGNED = re.compile(
    r"(?:[?&]|&amp;|\\u0026)(?:X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature|Signature|sig)="
    r"(?P<secret>[A-Za-z0-9%+/=_~.-]{16,})",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"authorization[\"'\\]*[ \t]*[:=,][ \t]*[\"'\\]*(?:bearer|token|apikey|api-key)[ \t]+"
    r"(?P<secret>[A-Za-z0-9._~+/=:-]{4,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\bbearer[ \t]+(?P<secret>[A-Za-z0-9._~+/=:-]{16,})", re.IGNORECASE)
_BASIC = re.compile(r"\bbasic[ \t]+(?P<secret>[A-Za-z0-9+/_-]{6,}={0,2})", re.IGNORECASE)


def _by_place(text: str) -> Iterator[Credential]:
    if "://" in text:
        yield from _where(_AT, text, "a password in a URL", _is_value)
    if "=" in text and ("ig" in text or "IG" in text or "Security-Token" in text):
        yield from _where(_SIGNED, text, "the signature of a URL", _is_value)
    if " " not in text and "\t" not in text:
        return
    lower = text.lower()
    if "bearer" in lower or "authorization" in lower:
        yield from _where(_HEADER, text, "an Authorization header", _proves)
        yield from _where(_BEARER, text, "a bearer token", _is_random)
    if "basic " in lower:
        yield from _where(_BASIC, text, "an Authorization header", _is_basic)


def _where(
    pattern: re.Pattern[str], text: str, kind: str, is_credential: Callable[[str], bool]
) -> Iterator[Credential]:
    for match in pattern.finditer(text):
        if is_credential(match["secret"]):
            yield Credential(*match.span("secret"), kind)


def _proves(value: str) -> bool:
    """Return whether what an Authorization header holds is a value: words of a documentation are letters alone."""
    return _is_value(value) and (len(value) >= LEAST_SHOWN or any(map(str.isdigit, value)))


def _is_basic(value: str) -> bool:
    """Return whether a text is what RFC 7617 makes of a user and a password."""
    try:
        user, colon, password = b64decode(value + "=" * (-len(value) % 4), validate=True).decode().partition(":")
    except ValueError:  # no Base64, or no text; a Kelvin sign is a K to the pattern
        return False
    return bool(colon) and f"{user}{password}".isprintable()


# What a value is.

# Characters of a value that are judged; all of it is hidden. Every pattern below reads each of them a few times.
_JUDGED = 4096
_MOST_DIGITS = 5  # a number up to this length is a count or a switch, no password
_LEAST_VALUE = 4
# A variable, a template's hole, a tag of YAML, an ARN, a path, a name of Secrets Manager, the ID of a rule.
_REFERENCE = r"""\$\w+|\$\(.*|%\w+%|<[^<>]*>|\[[^\[\]]*\]|\(.*|!\w+\b.*|arn:.*
    |(?:env|file|secret|secretsmanager|ssm|vault|op|keyring|ref\+\w+):.*
    |(?:os|process|self|args|config|settings)\.\w.*|SEA\d{3}:?
    |(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.-]{1,24}[/\\])*[\w.-]{1,24}[/\\]?
    |[A-Za-z]++(?:[-_.][A-Za-z]++)*+(?:/[A-Za-z]++(?:[-_.][A-Za-z]++)*+)++"""
_FILLED_IN = re.compile(r"\{\{|\$\{|\{[\w.!:\[\]]*\}|%s|%\(\w+\)|…|\[hidden\]|\(hidden\)")
_PLACEHOLDER = r"""[x*.•\#0_-]+|(?=.*[x*.-]\Z)[a-z_]{0,10}[_-]?(?:proj-|live_)?(?:x{3}|\*{3}|\.{3})[x*.-]*
    |(?:your|insert|enter|put|paste|replace|change|fill)(?:[-_ ].*|(?:me|this|it|in|your).*)?
    |none|null|nil|true|false|yes|no|off|empty|unset|undefined|default|auto|optional|required|string|str|text|bytes
    |test|n/?a|tbd|todo|fixme|unused|not[-_ ]?(?:needed|used|set|required|real|applicable)
    |(?:sk-)?no[-_](?:key|token|password|auth)(?:[-_](?:required|needed))?"""
_NUMBER = rf"[-+]?\d{{0,{_MOST_DIGITS}}}(?:\.\d+)?"
_NO_VALUE = re.compile(rf"(?s:{_REFERENCE})|(?i:{_PLACEHOLDER})|{_NUMBER}", re.VERBOSE)
_WORDS = re.compile(r"[A-Za-z]{1,19}+(?:[-_. ][A-Za-z]++)*+")
_JOINED_WORDS = re.compile(r"[a-z]++(?:[-_ ][a-z]++)*+", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[-_ ]")
_OF_PLACEHOLDERS = {"example", "placeholder", "dummy", "fake", "sample", "redacted", "hidden", "masked"}
_BEHIND_MY = {"secret", "token", "key", "password"}
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]{12,}")
_RANDOM_LETTERS, _RANDOM_DIGITS = 3, 2
_LEAST_RANDOM = 16
_DIGEST = re.compile(r"(?:sha\d+|md5)[:-].*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _is_value(text: str) -> bool:
    """Return whether a text could be a secret: it is no reference, placeholder, switch or small number."""
    text = text[:_JUDGED]
    return (len(text) == _LENGTH_OF_KEY and _SECRET_ACCESS_KEY.fullmatch(text) is not None) or (
        len(text) >= _LEAST_VALUE
        and not _FILLED_IN.search(text)
        and not _NO_VALUE.fullmatch(text)
        and not _are_placeholder_words(text)
    )


def _are_placeholder_words(text: str) -> bool:
    """Return whether words say that they stand for a value: `my-secret-key`, `an_example`."""
    if not _JOINED_WORDS.fullmatch(text):
        return False
    first, *others = _BETWEEN_WORDS.split(text.lower())
    return not _OF_PLACEHOLDERS.isdisjoint((first, *others)) or (first == "my" and not _BEHIND_MY.isdisjoint(others))


def _is_random(text: str) -> bool:
    """Return whether a text is what a generator of keys makes: long, letters and digits mixed, no digest or UUID."""
    text = text[:_JUDGED]
    return (
        len(text) >= _LEAST_RANDOM
        and not any(map(str.isspace, text))
        and any(map(_mixes, _ALPHANUMERIC.findall(text)))
        and not _DIGEST.fullmatch(text)
        and _is_value(text)
    )


def _mixes(run: str) -> bool:
    digits = sum(map(run.count, "0123456789"))
    return digits >= _RANDOM_DIGITS and len(run) - digits >= _RANDOM_LETTERS


# By name.

Says = Literal["no", "perhaps", "yes"]

# Names that say that their value is secret, written without separators: their ends, or the whole of them.
_YES = re.compile(
    r"(?:passw(?:or)?d|passphrase|(?:db|user|admin|root|my|sql|redis|mysql|pg)pwd"
    r"|(?:api|secret|access|private|signing|account|storage|shared|master|auth|encryption|subscription|license|deploy"
    r"|ngc)key|sharedaccesssignature|amzsignature|amzsecuritytoken"
    r"|(?:hf|hub|huggingface|face|api|auth|access|session|security|bearer|refresh|id|github|gh|gitlab|git|slack|bot"
    r"|npm|pypi|aws|secret|private|personal|oauth|jwt|csrf|deploy|registry|wandb|openai|anthropic|nvidia|databricks"
    r"|replicate|cohere|mistral|vault|client|sas)token"
    r"|(?:client|app|consumer|oauth|jwt|webhook|shared|signing|api|cookie|session)secret)$"
)
# Names that only may say it: their value must be random, too. `hub_token_secret` names a secret of Secrets Manager.
_PERHAPS = re.compile(r"(?:token|secret|credentials?|auth|pwd|pat)$")
# Beside these, a token is a word of a language model, or counted.
_OF_TEXT = re.compile(
    r"(?:pad|eos|bos|unk|sep|cls|mask|stop|start|end|begin|first|last|next|per|input|output|prompt|completion|special"
    r"|image|video|audio|vision|think|thinking|reasoning|tool|call|max|min|num|new|draft|decoder|text|word|speech|fim"
    r"|prefix|suffix|middle|cached|added|header|role|chat|instruct|turn|placeholder|delimiter|budget|total)token$"
)
_BEHIND = re.compile(r"(?:[_\-. \d]|value|plaintext|plain)++$", re.IGNORECASE)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")


@lru_cache(maxsize=1024)  # configurations share their names
def _says_secret(name: str) -> Says:
    """Return whether the name of a field says that its value is secret, in snake, kebab or camel case."""
    flat = _SEPARATORS.sub("", _BEHIND.sub("", name)).lower()
    if _OF_TEXT.search(flat):
        return "no"
    return "yes" if _YES.search(flat) else "perhaps" if _PERHAPS.search(flat) else "no"


def _as_value(text: str, name: str) -> Iterator[Credential]:
    """Yield a whole text that the name of its field makes a credential."""
    says = _says_secret(name[-_LONGEST_NAME:]) if name else "no"
    value = text.strip()
    if says == "no" or value.startswith(("{", "[")):  # a document, which is looked into
        return
    if _is_random(value) if says == "perhaps" else _is_value(value):
        start = text.index(value)
        yield Credential(start, start + len(value), BY_NAME)


_QUOTE = r"\\{0,63}[\"']|&quot;|&\#0?3[49];|&\#x2[27];"
# For a text in lower case: a search without regard to case takes five times as long.
_NAMED = re.compile(
    rf"""(?P<noun>passw(?:or)?d|passphrase|pwd|key|signature|token|secret|credentials?|auth|pat|value|plain)\d*
    (?P<close>{_QUOTE})?[ \t]*(?:=>|:=|[:=])(?!=)(?P<gap>[ \t]*)(?:[bru]?(?P<open>{_QUOTE}))?""",
    re.VERBOSE,
)
# An option and its value, in a command line or in a JSON list.
_FLAG = re.compile(
    rf"(?<![\w-])--?(?P<noun>[A-Za-z][\w-]{{1,60}})(?P<close>{_QUOTE})?(?P<gap>[ \t]*,\s*|[ \t]+)(?P<open>{_QUOTE})?",
    re.VERBOSE,
)
_CLOSING = {quote: re.compile(rf"(?<!\\)(\\*+){quote}|\n") for quote in "\"'"}
_CAPITALS = re.compile(r"[A-Z]+")
_OF_NAMES = f"{ascii_letters}{digits}_.-"
_LONGEST_NAME = 64
_UNQUOTED = re.compile(r"[^\s\"'`,;&<>(){}\[\]|\\#]++")
# Names within one value without quotes, `a=b=c`, that are judged one by one; what follows is one value.
_MOST_NAMES = 8
# Values behind names that are reported one by one; what follows the last one is reported as a whole.
_MOST_ASSIGNED = 4_096
_TO_LINE_END = re.compile(r"[^\s\"'`(){}\[\]<>|\\]++(?=[ \t\r]*(?:\n|\Z|\\+[nr]))")
_LINE_HEAD = re.compile(r"[ \t+-]*+(?:(?:export|ENV|ARG|set|env)[ \t]++)?(?:option\.)?", re.IGNORECASE)
_LONGEST_HEAD = 80  # characters before a name that tell whether it begins its line
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_SECRET_WORD = re.compile(r"pass|pwd|key|token|secret|cred|auth", re.IGNORECASE)
_LEAST_MIXED = 6
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")


def _by_name(text: str) -> Iterator[Credential]:
    """Yield what stands behind a name that says that it is secret, in any text: JSON, YAML, code, a log."""
    spans: Iterator[tuple[int, int] | None] = _assigned(text) if ":" in text or "=" in text else iter(())
    if "-" in text and any(map(text.__contains__, " ,\t")):
        flags = _FLAG.finditer(text)
        spans = chain(spans, (_behind(text, one, _says_secret(one["noun"]), one["noun"], one.start()) for one in flags))
    yield from (Credential(*span, BY_NAME) for span in spans if span)


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    spans = filter(None, _judged_names(text))
    last = 0
    for start, last in islice(spans, _MOST_ASSIGNED):
        yield start, last
    if rest := next(spans, None):
        yield max(rest[0], last), len(text)


def _judged_names(text: str) -> Iterator[tuple[int, int] | None]:
    judged_to = value_end = nested = 0
    for match in _NAMED.finditer(_lower(text)):
        start = match.end()
        if start < judged_to or (text[start : start + 1].isspace() and not match["open"]):
            continue
        name = _name_before(text, match)
        says = _says_secret(name)
        if says == "no":
            continue
        nested = nested + 1 if start < value_end else 0
        if nested == 0 and not match["open"]:
            value_end = _run_end(text, start)
        if nested >= _MOST_NAMES:
            judged_to = min(value_end, start + _JUDGED)
            yield (start, judged_to) if _is_text(text[start:judged_to]) else None
        elif span := _behind(text, match, says, name, match.end("noun") - len(name)):
            judged_to = span[1]
            yield span


def _name_before(text: str, match: re.Match[str]) -> str:
    near = text[max(0, match.start() - _LONGEST_NAME) : match.end("noun")]
    before = near.rstrip(_OF_NAMES)
    name = near[len(before) :]
    return name[1:] if name[0] == "n" and before.endswith("\\") else name  # `\n` ends the line before


def _lower(text: str) -> str:
    """Return a text in lower case, with every character in its place: a few have two in lower case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else _CAPITALS.sub(lambda match: match[0].lower(), text)


def _run_end(text: str, start: int) -> int:
    run = _UNQUOTED.match(text, start)
    return run.end() if run else start


def _behind(text: str, match: re.Match[str], says: Says, name: str, name_at: int) -> tuple[int, int] | None:
    if says == "no":
        return None
    return _quoted(text, match, says, name) if match["open"] else _unquoted(text, match, says, name, name_at)


def _quoted(text: str, match: re.Match[str], says: Says, name: str) -> tuple[int, int] | None:
    """Return the span of a value in quotes; words alone count beside the quoted name of a password only."""
    start, end = match.end(), _closing(text, match.end(), match["open"])
    value = text[start : min(end, start + _JUDGED)]
    if says == "perhaps" or any(map(str.isspace, value)):
        return (start, end) if _is_random(value) else None
    words_count = match["close"] and "pass" in name.lower() and not _SECRET_WORD.search(value)
    return (start, end) if _is_value(value) and (words_count or not _WORDS.fullmatch(value)) else None


def _closing(text: str, start: int, quote: str) -> int:
    """Return where a quoted text ends; before the line's end at the latest.

    In JSON within JSON every quote has backslashes before it, `n` of them; a quote of the value itself has more.
    """
    if quote.startswith("&"):
        end = text.find(quote, start)
        return end if end >= 0 else start
    level = len(quote) - 1
    for match in _CLOSING[quote[-1]].finditer(text, start):
        if match[1] is None:
            return start
        if len(match[1]) % (2 * (level + 1)) == level:
            return match.end() - len(quote)
    return start


def _unquoted(text: str, match: re.Match[str], says: Says, name: str, name_at: int) -> tuple[int, int] | None:
    """Return the span of a value without quotes, which may well be code: `password=password`, `token: str`."""
    if match["close"]:  # JSON: a number, true, null
        return None
    # Nothing but what exports a variable stands before it on its line; `\n` ends a line, too.
    _, line_end, head = text[max(0, name_at - _LONGEST_HEAD) : name_at].replace("\\n", "\n").rpartition("\n")
    starts_line = (line_end != "" or name_at <= _LONGEST_HEAD) and _LINE_HEAD.fullmatch(head) is not None
    whole = (starts_line and _TO_LINE_END.match(text, match.end())) or _UNQUOTED.match(text, match.end())
    if whole is None or text[whole.end() : whole.end() + 1] in ("(", "[", "{"):
        return None
    value = whole[0].rstrip(",;")
    if says == "perhaps":
        counts = _is_random(value)
    elif starts_line and name.isupper() and not match["gap"]:
        counts = _is_value(value) and not _SECRET_WORD.fullmatch(value)  # a line of an environment file
    else:
        counts = _is_text(value)
    return (whole.start(), whole.start() + len(value)) if counts else None


def _is_text(value: str) -> bool:
    return not _is_code(value) and _is_value(value)


def _is_code(value: str) -> bool:
    """Return whether a value without quotes is a name rather than a text."""
    mixed = len(value) >= _LEAST_MIXED and _DIGIT.search(value) and _LETTER.search(value)
    if not _IDENTIFIER.fullmatch(value):
        return not mixed
    return not _is_random(value) and ("." in value or not mixed or _SECRET_WORD.search(value) is not None)
