"""API keys: those an issuer gives a recognisable form, and those a text calls so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory.redaction.filtered_pattern import FilteredPattern
from memory.redaction.model import Span
from memory.redaction.tokens import find_named

# Every run is possessive and starts at the left edge of a word, so that no text is read twice.
# The forms are those that the issuers document or their own tools print.
_A: Final = "[A-Za-z0-9]"
_W: Final = "[A-Za-z0-9_-]"
_HEX: Final = "[0-9a-f]"
_ISSUERS: Final[tuple[tuple[str, str], ...]] = (
    ("Anthropic, OpenAI, OpenRouter, Langfuse", rf"sk-(?=[a-z_-]{{0,24}}[A-Z0-9]){_W}{{10,}}+"),
    ("AWS access key", r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("GitHub", rf"gh[opsur]_{_A}{{20,}}+|github_pat_[A-Za-z0-9_]{{20,}}+"),
    ("GitLab", rf"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-{_W}{{16,}}+(?:\.{_W}++)*+"),
    ("Slack", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9.-]{10,}+"),
    ("Slack webhook", rf"(?<=hooks\.slack\.com/)services/{_A}{{6,}}+/{_A}{{6,}}+/{_A}{{10,}}+"),
    ("Stripe", rf"(?:sk|rk)_(?:live|test)_{_A}{{8,}}+|whsec_[A-Za-z0-9+/=]{{16,}}+"),
    ("Google", rf"AIza{_W}{{30,}}+|GOCSPX-{_W}{{20,}}+|ya29\.[A-Za-z0-9._-]{{20,}}+"),
    ("SendGrid", rf"SG\.{_W}{{16,}}+\.{_W}{{16,}}+"),
    ("Twilio", rf"(?:AC|SK){_HEX}{{32}}(?!{_A})"),
    ("Mailgun, Mailchimp", rf"key-{_HEX}{{32}}(?!{_A})|{_HEX}{{32}}-us[0-9]{{1,2}}(?!{_A})"),
    ("npm", rf"npm_{_A}{{30,}}+"),
    ("PyPI", rf"pypi-AgE{_W}{{12,}}+"),
    ("RubyGems", rf"rubygems_{_HEX}{{40,}}+"),
    ("Hugging Face", rf"(?:hf|api_org)_{_A}{{20,}}+"),
    ("Groq, xAI", rf"(?:gsk_|xai-){_A}{{20,}}+"),
    ("Perplexity, Replicate, Tavily", rf"(?:pplx-|r8_|tvly-(?:dev-|prod-)?){_A}{{20,}}+"),
    ("LangSmith, Pinecone, Chroma", rf"(?:lsv2_(?:pt|sk)_|pcsk_|ck-){_W}{{24,}}+"),
    ("Dify", rf"(?:app|dataset)-(?={_A}{{0,24}}[A-Z0-9]){_A}{{20,}}+(?!-)"),
    ("Telegram bot", rf"(?:bot)?[0-9]{{6,12}}:AA{_W}{{30,}}+"),
    ("Discord bot", rf"[MNO]{_W}{{22,27}}\.{_W}{{6}}\.{_W}{{27,}}+"),
    ("Shopify", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}+"),
    ("Square", rf"(?:sq0[a-z]{{3}}-|EAAA){_W}{{22,}}+"),
    ("DigitalOcean", rf"do[opr]_v1_{_HEX}{{32,}}+"),
    ("Databricks", rf"dapi{_HEX}{{32,}}+"),
    ("Notion, Linear, Airtable", rf"(?:ntn_|lin_api_|secret_){_A}{{32,}}+|pat{_A}{{14}}\.{_HEX}{{60,}}+"),
    ("Figma, Postman", rf"(?:figd_|PMAK-){_W}{{24,}}+"),
    ("Sentry, Grafana, New Relic", r"(?:sntry[su]_|glsa_|NRAK-)[A-Za-z0-9+/=_]{24,}+"),
    ("Atlassian, Heroku", rf"(?:ATATT3|ATCTT3|HRKU-){_W}{{24,}}+=?"),
    ("HashiCorp", rf"hv[sb]\.{_W}{{20,}}+"),
    ("Supabase, Doppler, Fly", rf"(?:sbp_|dp\.(?:pt|st|ct)\.|fo1_){_W}{{30,}}+"),
    ("Alibaba Cloud, Tencent Cloud", rf"LTAI{_A}{{12,}}+|AKID{_A}{{13,}}+"),
    ("Zhipu", rf"{_HEX}{{32}}\.{_A}{{16}}(?!{_A})"),
    ("age", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+"),
)
# The shortest key has thirteen characters.
_ISSUED = FilteredPattern(
    re.compile("(?<![A-Za-z0-9])(?:" + "|".join(pattern for _, pattern in _ISSUERS) + ")"),
    form=re.compile("[A-Za-z0-9_.:/+=-]{13}"),
)
# Azure's connection strings and signed addresses.
_AZURE = FilteredPattern(
    re.compile(
        r"(?:AccountKey|SharedAccessKey|SharedSecretValue)=(?P<storage>[A-Za-z0-9+/]{20,}+={0,2})"
        r"|[?&;]sig=(?P<signature>[A-Za-z0-9%+/]{24,}+={0,2})"
    ),
    "key=",
    "value=",
    "sig=",
)
# An AWS secret key has no form of its own but its length: it needs its name or an access key near.
_AWS_SECRET = FilteredPattern(
    re.compile(
        r"(?<![A-Za-z0-9+/])(?=[A-Z0-9+/]{0,38}[a-z])(?=[a-z0-9+/]{0,38}[A-Z])(?=[A-Za-z+/]{0,38}[0-9])"
        r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
    ),
    form=re.compile("[A-Za-z0-9+/]{40}"),
)
_AWS_WORD = re.compile("aws|amazon|secret|\ue005|access.?key|密[钥鑰]", re.IGNORECASE)
_AWS_WINDOW: Final = 120

_NAME = FilteredPattern(
    re.compile(
        r"""(?:
    (?:api|app|access|secret|account|encryption|subscription|master|auth|service|x-api|private|signing)
        [\s_-]?(?:secret[\s_-]?|access[\s_-]?)?keys?
  | (?:client|app|consumer|webhook|api|shared|signing)[\s_-]?secrets?
  | (?<![a-z])secret(?=["'`]?\s{0,2}[:=])
  | api-?schl[uü]ssel | cl[eé]\s(?:d['’]\s?)?api | clave\s(?:de\s)?api | chave\s(?:de\s|da\s)?api
  | api\s?-?(?:密[钥鑰]|キー|키) | (?:密[钥鑰]|秘钥|金鑰)
    )(?![a-z])""",
        re.IGNORECASE | re.VERBOSE,
    ),
    "key",
    "secret",
    "api",
    "钥",
    "鑰",
)


def find_issued_keys(text: str) -> Iterator[Span]:
    """Find keys that can be told by their form.

    Args:
        text: The normalised text.

    Yields:
        One span a key; of an assignment only the value.
    """
    found: dict[int, Span] = {m.start(): Span(*m.span()) for m in _ISSUED.finditer(text)}
    for match in _AZURE.finditer(text):
        group = match.lastgroup or 0
        found[match.start(group)] = Span(*match.span(group))
    for match in _AWS_SECRET.finditer(text):
        around = text[max(0, match.start() - _AWS_WINDOW) : match.end() + _AWS_WINDOW]
        if _AWS_WORD.search(around):
            found.setdefault(match.start(), Span(*match.span()))
    end = 0
    for start in sorted(found):
        if start >= end:
            yield found[start]
            end = found[start].end


def find_named_keys(text: str) -> Iterator[Span]:
    """Find what a text calls an API key or a client secret: `api_key=…`, "my API key is …".

    Args:
        text: The normalised text.

    Yields:
        One span a key, its name left out.
    """
    return find_named(text, _NAME)
