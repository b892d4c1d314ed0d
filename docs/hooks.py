"""What MkDocs cannot know by itself: the tables of settings and the command line's reference, made from the code.

A page asks for them by a line of its own: `<!-- settings NAME -->` or `<!-- commands -->`.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Sequence
from typing import Any

import typer.main

from pcces.cli import app
from pcces.cli.settings import settings_of
from pcces.support.settings import by_use

LESS_LOOKED_FOR = ("Results", "Contributing")  # long pages that have every word


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What MkDocs reads in place of a page's text."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # the tabs above it say the same
    if page.parent and page.parent.title in LESS_LOOKED_FOR:
        page.meta["search"] = {"boost": 0.01}
    markdown = re.sub(r"^<!-- settings (.+) -->$", lambda mark: settings(*mark[1].split()), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- commands -->$", lambda mark: commands(), markdown, flags=re.M)
    return outside(markdown, posixpath.dirname(page.file.src_uri))


def outside(markdown: str, folder: str) -> str:
    """Links that leave docs/ lead to files of the repository, which a site has not: their paths stay, as text.

    >>> outside("[the peers](../../benchmarks/README.md), [theory](../theory.md)", "results")
    'the peers: `benchmarks/README.md`, [theory](../theory.md)'
    """

    def plain(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"`{path}`" if link[1].strip("`") == path else f"{link[1]}: `{path}`"

    return re.sub(r"\[([^\]\n]*(?:\n[^\]\n]+)?)\]\((\.\./[^)\s]*)\)", plain, markdown)


# -- settings ------------------------------------------------------------------------------------------------------------


def settings(name: str, preset: str = "default") -> str:
    """What `pcces settings` lists: a table for what people touch first, one for what they touch sometimes, and the rest."""
    tables = []
    for use, group in by_use(settings_of(name, preset)).items():
        rows = [[f"`{each.name}`", f"`{each.default}`" if each.default else "", code(each.words)] for each in group]
        tables.append(table([use, "default", "what it is"], rows))
    return "\n\n".join(tables)


def code(words: str) -> str:
    """Plain text in Markdown: nothing in it marks up anything but code.

    >>> code("|d_k| < `sigma_k`, x * y")
    '|d\\\\_k| &lt; `sigma_k`, x \\\\* y'
    """
    parts = words.split("`")
    parts[::2] = [re.sub(r"([*_\[])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


# -- the command line ----------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command: what it does, its examples, its arguments and options."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(described(name, command) for name, command in group.commands.items())


def described(name: str, command: Any) -> str:
    """A command's section."""
    words, _, examples = inspect.cleandoc(command.help.partition("\f")[0]).partition("\b\n")
    context = command.context_class(command, info_name=f"pcces {name}")
    parts = [f"## pcces {name}", words.strip(), f"```sh\n{examples.strip()}\n```"]
    panels: dict[str, list[list[str]]] = {}
    for parameter in command.params:
        shown, meaning = parameter.get_help_record(context)
        panel = getattr(parameter, "rich_help_panel", None) or parameter.param_type_name.capitalize() + "s"
        panels.setdefault(panel, []).append(
            [f"`{shown}`", code(re.sub(r"default: \((.*)\)\]", r"default: \1]", re.sub(r" +", " ", meaning)))]
        )
    for panel, rows in panels.items():
        parts += [table([panel, ""], rows)]
    return "\n\n".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
