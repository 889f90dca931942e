"""What texts have in common, for checks of questions; kept apart from the engine's own notion of words."""

import re

_CJK = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[a-z0-9]+")
_WORDS = """
a about above after again all also am an and any are as at away back be because been before being below
beneath both but by came can come could did do does doing done down each else for from get gets give given
go goes going gone got had has have he her hers him his how i if in into is it its just me more most my no
nor not of off ok on once one only onto or other others our out over own please rather s she should since
so some such t than thank thanks that the their them then there these they this those though through till
to too two under until up us very was we were what when where whether which while who whom whose why will
with without would yes yet you your m re ve ll d
"""
_PAIRS = """
我的 你的 他的 这个 那个 什么 怎么 哪个 哪里 为什 时候 是不 不是 了一 一个 的是 我们 你们 他们 现在 有没 没有
可以 還是 还是 的時 的时 什麼 哪裡 我要 要不 是什 了什 到了 出了 过了 的那 那次
"""
_FUNCTION_WORDS, _FUNCTION_PAIRS = frozenset(_WORDS.split()), frozenset(_PAIRS.split())
_ENDINGS = ("ingly", "edly", "ings", "ing", "ied", "ies", "ed", "es", "ly", "s", "e", "y")


def content(text: str) -> set[str]:
    """The content of a text: stems of its Latin words, and pairs of neighbouring Chinese characters."""
    lowered = text.casefold().replace("'", " ").replace("’", " ")
    words = {_stem(word) for word in _WORD.findall(lowered) if word not in _FUNCTION_WORDS}
    runs = _CJK.findall(lowered)
    pairs = {run[start : start + 2] for run in runs for start in range(len(run) - 1)}
    return words | (pairs - _FUNCTION_PAIRS)


def is_chinese(text: str) -> bool:
    """Whether more of a text is Chinese than Latin, a character counting as much as a word."""
    return sum(map(len, _CJK.findall(text))) > len(_WORD.findall(text.casefold()))


def holds(text: str, word: str) -> bool:
    """Whether a text holds a word or a phrase, also as a plural; a Chinese one anywhere."""
    if _CJK.search(word):
        return word in text
    return re.search(rf"\b{re.escape(word.casefold())}(s|es)?\b", text.casefold()) is not None


def holds_identifier(text: str, identifier: str) -> bool:
    """Whether a text holds an identifier, not as a part of a longer one."""
    return re.search(rf"(?<![\w.-]){re.escape(identifier)}(?![\w-]|\.\d)", text, re.ASCII) is not None


def is_near(one: str, other: str) -> bool:
    """Whether two identifiers differ, but in at most two characters."""
    return len(one) == len(other) and 1 <= sum(a != b for a, b in zip(one, other, strict=True)) <= 2


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
