"""Texts that a spreadsheet shows instead of running them.

Names come from whoever sends steps. A spreadsheet takes a text that begins like a formula for one, so such a text is
given an apostrophe before it (OWASP's advice against CSV injection). Every table that is written as CSV goes by this.
"""

# The wide ones too, which some take for the same.
_FORMULA = (
    *"=+-@\t\r\n",
    *"\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}",
)


def harmless_text(text: str) -> str:
    """The text as a cell that no spreadsheet runs.

    >>> harmless_text("=1+1"), harmless_text("robot-7")
    ("'=1+1", 'robot-7')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
