"""What MkDocs cannot know by itself: the tables of settings and the command line's reference, made from the code.

A page asks for them by a line of its own: `<!-- settings NAME -->` or `<!-- commands -->`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import posixpath
import re
import tokenize
from collections.abc import Sequence
from typing import Any

import typer.main

from pcces.blackbox.options import Options
from pcces.cli import app
from pcces.policies import find_algorithm

LESS_LOOKED_FOR = ("Results", "Contributing")  # long pages that have every word


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What MkDocs reads in place of a page's text."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # the tabs above it say the same
    if page.parent and page.parent.title in LESS_LOOKED_FOR:
        page.meta["search"] = {"boost": 0.3}
    markdown = re.sub(r"^<!-- settings (.+) -->$", lambda mark: settings(*mark[1].split()), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- commands -->$", lambda mark: commands(), markdown, flags=re.M)
    return outside(markdown, posixpath.dirname(page.file.src_uri))


def outside(markdown: str, folder: str) -> str:
    """Links that leave docs/ lead to files of the repository, which a site has not: their paths stay, as text.

    >>> outside("[the peers](../../benchmarks/README.md), [theory](../theory.md)", "results")
    'the peers (`benchmarks/README.md`), [theory](../theory.md)'
    """

    def plain(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"`{path}`" if link[1].strip("`") == path else f"{link[1]} (`{path}`)"

    return re.sub(r"\[([^\]\n]*(?:\n[^\]\n]+)?)\]\((\.\./[^)\s]*)\)", plain, markdown)


# -- settings ------------------------------------------------------------------------------------------------------------


def settings(name: str, preset: str = "default") -> str:
    """The table of an algorithm's settings, or of the options of `minimize`."""
    kind = Options if name == "minimize" else type(find_algorithm(name).presets[preset])
    return table(["setting", "default", "what it is"], settings_of(kind))


def settings_of(kind: type) -> list[list[str]]:
    """A dataclass's names, defaults, and what the comments beside them say; what is inherited comes first."""
    rows: dict[str, list[str]] = {}
    for each in reversed([each for each in kind.__mro__ if dataclasses.is_dataclass(each)]):
        source = inspect.getsource(each)
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                lines = range(node.lineno, (node.end_lineno or 0) + 1)
                said = " ".join(comments[line] for line in lines if line in comments)
                target = ast.unparse(node.target)
                said = said or rows.get(target, [""])[-1]
                rows[target] = [f"`{target}`", f"`{ast.unparse(node.value)}`", said]
    return list(rows.values())


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
        panels.setdefault(panel, []).append([f"`{shown}`", re.sub(r" +", " ", meaning)])
    for panel, rows in panels.items():
        parts += [table([panel, ""], rows)]
    return "\n\n".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
