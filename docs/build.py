"""The documentation as a static site, for `make docs`: every page of docs/ in one frame, and a reference made from docstrings.

    python docs/build.py [FOLDER]        # site/ unless told otherwise; works offline, and opens from disk

Markdown and colours come from markdown-it-py and Pygments, which rich needs anyway.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import io
import re
import shutil
import sys
import tokenize
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

DOCS = Path(__file__).parent
STORY = {
    "Start": {"index": "Install", "first-policy": "Your first policy", "using-a-policy": "Using a policy"},
    "Your own": {
        "your-own-problem": "Your own problem",
        "your-own-task": "Your own task",
        "engines": "Simulators, workers, clusters",
        "scaling": "How far it scales",
        "safety-tasks": "Navigation tasks",
    },
    "Theory": {"theory": "In plain words", "certificates": "Certificates", "paper": "The paper in the code"},
    "Results": {
        "results": "The paper's experiments",
        "blackbox": "Black boxes",
        "baselines": "The baselines",
        "findings": "What we tried",
        "speed": "Speed",
        "overhead": "Overhead",
    },
    "Reference": {"reference": "Names and commands", "architecture": "Architecture", "contributing": "Contributing"},
}


def build(target: Path) -> None:
    """Write the site; an old one is replaced."""
    pages = {page.stem: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")} | {"reference": reference()}
    listed = [name for part in STORY.values() for name in part]
    if set(listed) != set(pages):
        raise ValueError(f"pages and STORY differ in {', '.join(sorted(set(listed) ^ set(pages)))}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for folder in ("img", "data"):
        shutil.copytree(DOCS / folder, target / folder)
    for name in listed:
        (target / f"{name}.html").write_text(framed(name, render(pages[name]), listed), encoding="utf-8")


def render(text: str) -> str:
    """Markdown as HTML: links between pages, headings that can be linked to, coloured code, tables that scroll."""
    html = MarkdownIt("commonmark", {"highlight": coloured}).enable("table").render(text)
    html = re.sub(r'href="(?!https?:)([\w-]+)\.md(#[^"]*)?"', r'href="\1.html\2"', html)
    html = re.sub(r"<h([23])>(.*?)</h\1>", lambda m: f'<h{m[1]} id="{anchor(m[2])}">{m[2]}</h{m[1]}>', html)
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def anchor(heading: str) -> str:
    """The address of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", heading).lower()).replace(" ", "-")


def coloured(code: str, language: str, _: str) -> str:
    """Code as Pygments shows it; output and commands that are only shown stay as they are."""
    if language not in ("python", "pycon", "sh", "console"):
        return ""
    return highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))


def framed(name: str, body: str, listed: list[str]) -> str:
    """A page with its navigation."""
    titles = {page: title for part in STORY.values() for page, title in part.items()}
    links = "".join(
        f"<p>{escape(part)}</p><ul>{''.join(_link(page, title, page == name) for page, title in pages.items())}</ul>"
        for part, pages in STORY.items()
    )
    at = listed.index(name)
    on = f'<a href="{listed[at + 1]}.html">Next: {escape(titles[listed[at + 1]])}</a>' if at + 1 < len(listed) else ""
    style = (DOCS / "site.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{escape(titles[name])} - pcces</title><style>{style}</style></head><body>'
        f'<nav><a class="name" href="index.html">pcces</a><details><summary>Contents</summary>{links}</details></nav>'
        f"<main>{body}<footer>{on}</footer></main>"
        "<script>if (matchMedia('(min-width: 60rem)').matches) document.querySelector('details').open = true</script></body></html>"
    )


def _link(page: str, title: str, here: bool) -> str:
    return f'<li><a href="{page}.html"{" aria-current=page" if here else ""}>{escape(title)}</a></li>'


# -- the reference -------------------------------------------------------------------------------------------------------


def reference() -> str:
    """Every public name and every command, as Markdown, from their docstrings."""
    import typer.main

    import pcces
    from pcces.blackbox.result import Result
    from pcces.cli import app
    from pcces.rl.settings import BatchSettings, PopulationSettings

    lines = ["# Reference", "", "Made from the docstrings; their examples are tests.", "", "## Names", ""]
    for name in pcces.__all__:
        lines += described(f"pcces.{name}", getattr(pcces, name))
    for thing in (Result, BatchSettings, PopulationSettings):
        lines += described(f"{thing.__module__}.{thing.__name__}", thing)
    if importlib.util.find_spec("optuna"):
        from pcces.integrations import optuna

        for name in optuna.__all__:
            lines += described(f"pcces.integrations.optuna.{name}", getattr(optuna, name))
    lines += ["## Commands", "", "Each takes `--json` for one machine-readable object on standard output.", ""]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        context = command.context_class(command, info_name=f"pcces {name}", terminal_width=92, max_content_width=92)
        lines += [f"### pcces {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def described(name: str, thing: Any) -> list[str]:
    """A heading, the signature or the settings, the docstring, and what is public inside."""
    lines = [f"### {name}", ""]
    if inspect.ismodule(thing):
        lines += [*documented(thing), ""]
        inside = [(each, getattr(thing, each)) for each in thing.__all__]
    else:
        settings = settings_of(thing)
        lines += [] if settings else ["```python", signature(name, thing), "```", ""]
        lines += [*documented(thing), "", *settings, ""]
        inside = (
            [(each, getattr(f, "__func__", f)) for each, f in vars(thing).items()] if inspect.isclass(thing) else []
        )
    for each, function in inside:
        if not each.startswith("_") and inspect.isfunction(function) and function.__doc__:
            lines += [f"**`{signature(each, function)}`**", "", *documented(function), ""]
    return lines


def signature(name: str, thing: Any) -> str:
    """As one calls it; a long one has a line for each argument."""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return name
    kept = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in ("self", "cls")]
    short = str(found.replace(parameters=kept, return_annotation=found.empty))
    if len(short) < 80:
        return name + short
    return f"{name}(\n    " + short[1:-1].replace(", ", ",\n    ") + ",\n)"


def settings_of(thing: Any) -> list[str]:
    """A table of a dataclass's defaults with what the comments beside them say; nothing where there are no comments."""
    if not dataclasses.is_dataclass(thing):
        return []
    source = inspect.getsource(thing)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    rows = []
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            said = " ".join(
                comments[line] for line in range(node.lineno, (node.end_lineno or 0) + 1) if line in comments
            )
            rows.append(
                f"| `{ast.unparse(node.target)}` | `{ast.unparse(node.value)}` | {said.replace('|', chr(92) + '|')} |"
            )
    return ["| | default | |", "| --- | --- | --- |", *rows] if any(not row.endswith("|  |") for row in rows) else []


def documented(thing: Any) -> list[str]:
    """The docstring, its examples as code."""
    text = inspect.getdoc(thing) or ""
    parts = re.split(r"((?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+)", text, flags=re.MULTILINE)
    shown = (f"```pycon\n{part.rstrip()}\n```\n" if part.startswith(">>>") else part for part in parts)
    return "\n".join(shown).splitlines()


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "site"
    build(folder)
    print(f"site: {folder / 'index.html'}")
