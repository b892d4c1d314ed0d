"""Docstrings as Markdown, for mkdocstrings: doctests as blocks of code, without what only the tests of the code read."""

import re

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^(?![ ]*$).*\n?)*)+", re.MULTILINE)
FOR_TESTS = re.compile(r"^(?:Many parameters|Long): (?:.+\n?)+\n*", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring with its examples fenced.

    >>> as_markdown("Add.\\n\\n>>> 1 + 1\\n2\\n\\nLong: it is a table.").splitlines()
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    fenced = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", FOR_TESTS.sub("", text))
    return fenced.strip()


class Examples(griffe.Extension):
    """What mkdocstrings loads."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Each class, function and attribute, once it is read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
