"""How many tokens a text takes, estimated without a vocabulary."""

import math

CHARACTERS_PER_TOKEN = 3.5
"""Of plain Latin letters and blanks."""


_PLAIN = dict.fromkeys(map(ord, " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))


def _tokens(character: str) -> float:
    """What any other character takes at the most in a sentence, with the four tokenizers the tests name."""
    code = ord(character)
    if code < 0x80:
        return 1.0
    if code < 0x0250:
        return 1.5
    if code < 0x0900 or 0x3040 <= code <= 0x30FF or 0xAC00 <= code <= 0xD7AF:
        return 1.5
    return 2.0 if code < 0x10000 else 4.0


def estimate(text: str) -> int:
    """Tokens a prompt spends on a text, rounded up; meant to be over rather than under."""
    others = text.translate(_PLAIN)  # the plain ones, nearly all, are only counted
    plain = (len(text) - len(others)) / CHARACTERS_PER_TOKEN
    return math.ceil(plain + sum(map(_tokens, others)) - 1e-9)
