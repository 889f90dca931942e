"""Atlassian's document format (ADF) as plain text."""

from collections.abc import Iterator, Mapping

from tickets.fields import dig, read_line, read_list, read_mapping

_BLOCKS = {"paragraph", "heading", "codeBlock", "rule", "tableRow", "panel", "expand", "listItem"}
_SPACED = {"paragraph", "heading", "codeBlock", "rule", "panel", "expand"}
_ATTACHMENTS = ("media", "mediaInline")


def adf_to_text(document: object) -> str:
    """Read a document as a person would; a quotation becomes lines that begin with `> `.

    Args:
        document: The document's JSON, however broken.

    Returns:
        The text, not yet cleaned.
    """
    lines: list[str] = [""]
    quote_depth = list_depth = 0
    for opens, node in _walk(document):
        kind = read_line(node.get("type")) or ""
        if kind == "blockquote":
            lines.append("")
            quote_depth += 1 if opens else -1
        elif kind == "listItem":
            list_depth += 1 if opens else -1
        if kind in _BLOCKS and lines[-1].strip("> -"):
            lines.extend(["", ""] if kind in _SPACED and not list_depth else [""])
        if not opens:
            continue
        if kind == "listItem":
            lines[-1] = "- "
        elif kind == "hardBreak":
            lines.append("")
        else:
            _append(lines, _words(node, kind))
        if quote_depth and not lines[-1].startswith(">"):
            lines[-1] = "> " + lines[-1]
    return "\n".join(lines)


def adf_attachments(document: object) -> tuple[str, ...]:
    """Name the files of a document.

    Args:
        document: The document's JSON, or anything else.

    Returns:
        The names, in order.
    """
    names = (
        read_line(dig(node, "attrs", "alt"))
        for opens, node in _walk(document)
        if opens and node.get("type") in _ATTACHMENTS
    )
    return tuple(name for name in names if name)


def _append(lines: list[str], words: str) -> None:
    """Write words that may hold line ends, as code does."""
    first, *rest = words.split("\n")
    lines[-1] += first
    lines.extend(rest)


def _words(node: Mapping[str, object], kind: str) -> str:
    """Give a node's own words."""
    if kind == "text":
        words = node.get("text")
    elif kind in ("inlineCard", "blockCard", "embedCard"):
        words = dig(node, "attrs", "url")
    elif kind in ("mention", "status"):
        words = dig(node, "attrs", "text")
    elif kind == "emoji":
        words = dig(node, "attrs", "text") or dig(node, "attrs", "shortName")
    else:
        words = None
    return words if isinstance(words, str) else ""


def _walk(document: object) -> Iterator[tuple[bool, Mapping[str, object]]]:
    """Visit every node without recursion, before (True) and after (False) its content."""
    stack: list[tuple[bool, Mapping[str, object]]] = [(True, read_mapping(document))]
    while stack:
        opens, node = stack.pop()
        yield opens, node
        if opens:
            stack.append((False, node))
            content = read_list(node.get("content"))
            stack.extend((True, read_mapping(child)) for child in reversed(content))
