"""Lone surrogates: legal in JSON escapes and in Python strings, impossible in UTF-8. They are replaced on entry."""


def without_lone_surrogates(text: str) -> str:
    r"""The text with each lone surrogate replaced by U+FFFD, and surrogate pairs joined; safe to encode as UTF-8.

    >>> without_lone_surrogates("a\ud800b")
    'a�b'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
