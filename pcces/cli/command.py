"""A command that says what was meant where an option is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from pcces.cli.common import settings_of
from pcces.cli.ending import REFUSED
from pcces.rl.meanings import MEANINGS
from pcces.support.streams import say
from pcces.support.text import nearest, printable

ONCE = (
    "--cost-bounds",
    "--episode-cost-bounds",
)  # where a second one might be meant for a second cost, as --threshold is


def flowing(text: str) -> str:
    """A docstring whose paragraphs are wrapped where the terminal ends, examples aside.

    >>> flowing("Train\\na policy.\\n\\n\\b\\npcces train\\npcces train --resume")
    'Train a policy.\\n\\n\\x08\\npcces train\\npcces train --resume'
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if each.startswith("\b") else each.replace("\n", " ") for each in paragraphs)


class Command(TyperCommand):
    """Its help is in groups, and what is wrong with its options is one line and exit code 2."""

    panels: Mapping[str, Sequence[str]] = {}  # the groups of its help: parameters by their names; all else are options

    def __init__(self, *words: Any, **named: Any):
        named |= {"rich_markup_mode": "rich", "help": flowing(named.get("help") or "")}
        super().__init__(*words, **named)
        panel_of = {name: panel for panel, names in self.panels.items() for name in names}
        self.params.sort(key=lambda each: [None, *panel_of].index(each.name if each.name in panel_of else None))
        for each in self.params:
            if each.name in panel_of:
                each.rich_help_panel = panel_of[each.name]  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The options, if all are known."""
        try:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        except Exception as error:
            # By name: whose class it is depends on the version of typer.
            if type(error).__name__ != "NoSuchOption":
                raise
            unknown = str(getattr(error, "option_name", ""))
            say(f"error: there is no option {printable(unknown)}; {self._meant(unknown, args)}")
            raise typer.Exit(REFUSED) from None
        for each, count in Counter(each.opts[0] for each in order).items():
            if each in ONCE and count > 1:  # of others the last one counts
                say(f"error: {each} is given {count} times; give it once, it applies to every cost")
                raise typer.Exit(REFUSED)
        return super().parse_args(ctx, args)

    def _meant(self, unknown: str, args: Sequence[str]) -> str:
        """An option, or a setting for --set."""
        options = [opt for each in self.params for opt in each.opts if opt.startswith("--")]
        values = dict(zip(args, [*args[1:], ""])) | dict(arg.split("=", 1) for arg in args if "=" in arg)
        try:
            settings = settings_of(values.get("--algorithm", "pcces"), values.get("--preset", "default"))
        except ValueError:
            settings = {}
        by_name = {name: f"--set {name}={printable(values.get(unknown) or 'VALUE')}" for name in settings}
        known = [*options, *by_name] if "--set" in options else options
        near = nearest(unknown, known, 1, MEANINGS)
        if not near:
            return f"`pcces {self.name} --help` shows all"
        return f"did you mean {by_name.get(near[0], near[0])}?"
