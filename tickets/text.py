"""From what a mail client wrote to what the person said.

The only module that knows the libraries for HTML (Beautiful Soup over the standard parser) and for
the reply headers of other languages (mail-parser-reply). The latter's own cutting is not used: it
takes "Thanks, ..." and everything below for a signature, and its expressions need minutes for a
long line. Its table of headers is asked about short candidates only, so that the time stays
proportional to the text.
"""

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import CData, NavigableString, Tag
from bs4.exceptions import ParserRejectedMarkup
from mailparser_reply import EmailMessage  # type: ignore[import-untyped]

from tickets.phrases import (
    CHINESE_LABELS,
    CHINESE_WROTE,
    CLOSING,
    LABEL,
    MOBILE,
    REPLY_ABOVE,
    SENT_LABELS,
    SEPARATOR,
    SIGNATURE_MARKS,
)

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\x85\x0b\x0c]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_SPACES = re.compile(r"[ \t\n]+")
_MANY_BLANK = re.compile(r"\n(?:[ \t]*\n){2,}")
_TAG = re.compile(r"<[^<>]*>")
_TAG_OR_LESS_THAN = re.compile(r"<([^<>]*)(>?)")
_TAG_NAME = re.compile(r"/?[a-zA-Z][a-zA-Z0-9]{0,20}")
_MARKED_SECTION = re.compile(r"<!\[[^<>]*>")
_TAG_LENGTH = 2000

_DROPPED = {"script", "style", "head", "title", "template", "object", "svg", "select", "textarea"}
_LINES = {
    "div",
    "li",
    "tr",
    "dt",
    "dd",
    "section",
    "article",
    "header",
    "footer",
    "address",
    "body",
}
_PARAGRAPHS = {
    "p",
    "ul",
    "ol",
    "table",
    "pre",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "blockquote",
}
_QUOTE_CLASSES = {
    "gmail_quote",
    "yahoo_quoted",
    "moz-cite-prefix",
    "protonmail_quote",
    "zmail_extra",
}
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)

_HEADERS: re.Pattern[str] = EmailMessage(
    text="",
    languages=["en", "de", "fr", "es", "it", "nl", "pl", "sv", "da", "cs", "ja", "ko", "zh"],
).HEADER_REGEX
_HEADER_LENGTH = 300
_HEADER_LINES = 3
_BLOCK_LINES = 10
_SURE_BLOCK = 4

_SIGNATURE_LINES = 12
_CLOSING_LINES = 6
_CLOSING_WIDTH = 60


def clean_text(text: str) -> str:
    """Remove what no store takes: NUL, other control characters, lone surrogates.

    Args:
        text: Any string.

    Returns:
        The text with plain line feeds and spaces, no trailing spaces, and at most one empty line in
        a row, without empty lines around it.
    """
    text = _LINE_ENDS.sub("\n", text)
    text = _UNWANTED.sub("", text).replace("\xa0", " ")
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return _MANY_BLANK.sub("\n\n", text).strip("\n").rstrip()


def clean_line(text: str) -> str:
    """Clean a text that belongs on one line, such as a subject or a name.

    Args:
        text: Any string.

    Returns:
        The text with every run of white space as one space.
    """
    return " ".join(clean_text(text).split())


def html_to_text(html: str) -> str:
    """Read HTML as a person would: paragraphs, list items, the words of links, the names of images.

    Scripts, styles and hidden elements are gone. Quotations (`blockquote`, the quote blocks of
    Gmail, Yahoo and others) become lines that begin with `> `.

    Args:
        html: A document or a piece of one, however broken.

    Returns:
        Clean plain text.
    """
    try:
        # The leading element keeps the library from guessing whether this is a file name or XML.
        soup = BeautifulSoup("<div>" + _closed_tags(clean_text(html)), "html.parser")
    except (ParserRejectedMarkup, AssertionError):
        return clean_text(_TAG.sub(" ", html))
    writer = _Writer()
    for event, node in _walk(soup):
        _write(writer, event, node)
    return clean_text(writer.finish())


def cut_history(text: str) -> str:
    """Keep what was written now: cut quoted mails, forwarded mails, and the signature.

    A reply header ("On ... wrote:") followed by `> ` lines takes these lines with it, so that an
    answer below the quotation stays; every other header takes all that follows.

    Args:
        text: A message as plain text.

    Returns:
        The cleaned rest; the whole cleaned text when nothing would be left.
    """
    whole = clean_text(text)
    kept = _cut_signature(_cut_quotes(whole.split("\n")))
    return clean_text("\n".join(kept)) or whole


def _closed_tags(html: str) -> str:
    """Leave only complete tags of moderate length, since others cost old parsers quadratic time."""
    pieces: list[str] = []
    end = 0
    while (start := html.find("<!--", end)) >= 0:
        close = html.find("-->", start)
        if close < 0:
            break
        pieces.append(html[end:start])
        end = close + 3
    pieces.append(html[end:])
    return _TAG_OR_LESS_THAN.sub(_closed_tag, _MARKED_SECTION.sub("", "".join(pieces)))


def _closed_tag(match: re.Match[str]) -> str:
    """Write one tag, or the sign < where it begins none; a picture inside an attribute goes."""
    inside, close = match.groups()
    if not close:
        return "&lt;" + inside
    if len(inside) <= _TAG_LENGTH:
        return f"<{inside}>"
    name = _TAG_NAME.match(inside)
    return f"<{name.group()}>" if name else " "


class _Writer:
    """Collects lines of text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.quote_depth = 0
        self.verbatim_depth = 0

    def write(self, text: str) -> None:
        if self.verbatim_depth:
            *before, last = text.split("\n")
            for line in before:
                self.parts.append(line)
                self.end_line()
            self.parts.append(last)
        else:
            self.parts.append(_SPACES.sub(" ", text))

    def end_line(self) -> None:
        line = "".join(self.parts)
        self.parts = []
        if not self.verbatim_depth:
            line = _SPACES.sub(" ", line).strip()
        self.lines.append("> " + line if self.quote_depth else line)

    def break_line(self) -> None:
        if "".join(self.parts).strip():
            self.end_line()
        else:
            self.parts = []

    def break_paragraph(self) -> None:
        self.break_line()
        if self.lines and self.lines[-1].strip("> "):
            self.end_line()

    def finish(self) -> str:
        self.break_line()
        return "\n".join(self.lines)


def _walk(root: Tag) -> Iterator[tuple[str, Tag | NavigableString]]:
    """Visit the tree without recursion, since mails nest without limit."""
    stack: list[tuple[str, Tag | NavigableString]] = [("open", root)]
    while stack:
        event, node = stack.pop()
        if isinstance(node, NavigableString) and type(node) not in (NavigableString, CData):
            continue  # a comment or a declaration
        if event == "open" and isinstance(node, Tag):
            if node.name in _DROPPED or _HIDDEN.search(str(node.get("style") or "")):
                continue
            stack.append(("close", node))
            stack.extend(
                ("open", child)
                for child in reversed(node.contents)
                if isinstance(child, Tag | NavigableString)
            )
        yield event, node


def _write(writer: _Writer, event: str, node: Tag | NavigableString) -> None:
    """Write one step of the walk."""
    if isinstance(node, NavigableString):
        writer.write(str(node))
        return
    name, opens = node.name, event == "open"
    if name == "br":
        if opens:
            writer.end_line()
        return
    if name == "img":
        if opens:
            writer.write(str(node.get("alt") or ""))
        return
    quoted = name == "blockquote" or bool(_QUOTE_CLASSES.intersection(_classes(node)))
    if name in _PARAGRAPHS or quoted:
        writer.break_paragraph()
    elif name in _LINES:
        writer.break_line()
    step = 1 if opens else -1
    if quoted:
        writer.quote_depth += step
    if name == "pre":
        writer.verbatim_depth += step
    if name == "li" and opens:
        writer.write("- ")
    if name in ("td", "th") and not opens:
        writer.write(" ")


def _classes(tag: Tag) -> list[str]:
    """Give the classes of an element."""
    classes = tag.get("class")
    return str(classes).split() if not isinstance(classes, list) else [str(name) for name in classes]


def _cut_quotes(lines: list[str]) -> list[str]:
    """Drop `> ` lines, and reply headers with what they introduce."""
    kept: list[str] = []
    position = 0
    while position < len(lines):
        length = _header_length(lines, position)
        if length:
            position += length
            while position < len(lines) and not lines[position].strip():
                position += 1
            if position == len(lines) or not lines[position].lstrip().startswith(">"):
                break
        elif lines[position].lstrip().startswith(">"):
            position += 1
        else:
            kept.append(lines[position])
            position += 1
    while kept and not kept[-1].strip("_-=* "):
        kept.pop()
    return kept


def _header_length(lines: list[str], start: int) -> int:
    """Count the lines of the reply header that begins here; 0 when none does."""
    first = lines[start].strip()
    if not first or len(first) > _HEADER_LENGTH:
        return 0
    if SEPARATOR.fullmatch(first) or REPLY_ABOVE.fullmatch(first):
        return 1
    return _wrote_length(lines, start) or _block_length(lines, start)


def _wrote_length(lines: list[str], start: int) -> int:
    """Count the lines of "On ... wrote:" in any of the known languages, which clients wrap."""
    text = ""
    for length in range(1, _HEADER_LINES + 1):
        line = lines[start + length - 1].strip() if start + length <= len(lines) else ""
        text = f"{text} {line}".strip()
        if not line or len(text) > _HEADER_LENGTH:
            return 0
        if line.endswith((":", "：")) and any(char.isdigit() or char == "@" for char in text):
            # A date or an address must be there: "On Monday the driver wrote:" is a tale.
            found = CHINESE_WROTE.fullmatch(text) or _HEADERS.fullmatch(text)
            return length if found else 0
    return 0


def _block_length(lines: list[str], start: int) -> int:
    """Count the lines of "From: ... Sent: ..." in any of the known languages."""
    labels: list[str] = []
    block: list[str] = []
    for line in lines[start : start + _BLOCK_LINES]:
        match = LABEL.match(line[:_HEADER_LENGTH])
        if not match:
            break
        labels.append(match.group(1).strip().lower())
        block.append(line.strip()[:_HEADER_LENGTH])
    if len(block) < 2:
        return 0
    chinese = sum(label in CHINESE_LABELS for label in labels)
    if chinese < 2 and not _HEADERS.match("\n".join(block)):
        return 0
    # "From: Berlin, To: Munich" is a wish to travel, not a mail.
    sure = (
        any("@" in line for line in block)
        or bool(SENT_LABELS.intersection(labels))
        or len(block) >= _SURE_BLOCK
    )
    return len(block) if sure else 0


def _cut_signature(lines: list[str]) -> list[str]:
    """Drop the signature at the end."""
    lines = _without_end(lines)
    for position in range(len(lines) - 1, -1, -1):
        if position >= len(lines):
            continue
        line = lines[position].strip()
        below = [below for below in lines[position + 1 :] if below.strip()]
        if len(below) > _SIGNATURE_LINES:
            break
        if (
            line in SIGNATURE_MARKS
            or (MOBILE.fullmatch(line) and len(below) <= 1)
            or (CLOSING.fullmatch(line) and _is_signature(below))
        ):
            lines = _without_end(lines[:position])
    return lines


def _is_signature(below: list[str]) -> bool:
    """Say whether the lines below a closing are few and short."""
    return len(below) <= _CLOSING_LINES and all(
        len(line) <= _CLOSING_WIDTH and "?" not in line for line in below
    )


def _without_end(lines: list[str]) -> list[str]:
    """Drop empty lines at the end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]
