"""What can be set, and what people are told of it: one list for the command line and for the documentation."""

import dataclasses
import inspect
import json

import pytest
from typer.testing import CliRunner

import pcces
from pcces.blackbox.optimizer import OWN
from pcces.blackbox.options import Options
from pcces.cli import app
from pcces.cli.settings import settings_of
from pcces.policies import ALGORITHMS, find_algorithm
from pcces.support.settings import FIRST, USES, by_use, settings_in

PRESETS = [(name, preset) for name in ALGORITHMS for preset in find_algorithm(name).presets]


def here(*words):
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize(("name", "preset"), [("minimize", "default"), *PRESETS])
def test_every_setting_says_what_it_is_once_and_in_a_group(name, preset):
    known = settings_of(name, preset)
    assert [each.name for each in known if not each.words or each.use not in USES] == []
    assert len({each.name for each in known}) == len(known)
    assert 5 <= len(by_use(known)[FIRST]) <= 15


def test_all_arguments_of_minimize_and_all_options_are_there():
    named = {*inspect.signature(pcces.minimize).parameters, *OWN} - {"more"}
    assert {each.name for each in settings_of("minimize")} == named | {
        each.name for each in dataclasses.fields(Options)
    }


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_settings_of_an_algorithm_are_there_with_the_values_of_its_preset(name, preset):
    values = find_algorithm(name).presets[preset]
    known = {each.name: each.default for each in settings_of(name, preset)}
    for field in dataclasses.fields(values):
        value = getattr(values, field.name)
        assert known[field.name] == (f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value))
    named = {*inspect.signature(pcces.train).parameters} - {"task", "further", "population"}
    assert named <= set(known)


def test_a_changed_default_keeps_its_words():
    hidden = {name: next(each for each in settings_of(name) if each.name == "hidden") for name in ("pcces", "openes")}
    assert hidden["pcces"].words == hidden["openes"].words == "widths of the policy's layers"
    assert (hidden["pcces"].default, hidden["openes"].default) == ("(64, 64)", "(10, 10)")
    assert (
        "population" in {e.name for e in settings_of("pcces")},
        "population" in {e.name for e in settings_of("asebo")},
    ) == (False, True)
    assert {each.name: each.default for each in settings_in(Options)}["objective"] == "Mean()"


def test_the_command_line_lists_them_in_groups():
    lines = here("settings").stdout.splitlines()
    assert lines[0] == "pcces.train, algorithm pcces, preset default" and "pcces.minimize" in lines
    assert [line.split("  ")[0] for line in lines if line.startswith(USES)] == [*USES, *USES]
    rate = next(line for line in lines if line.startswith("rate "))
    assert rate.split(None, 2)[1:] == ["0.002", "learning rate of the policy (Adam): lower it if training is unstable"]
    paper = here("settings", "PCCES", "--preset", "paper", "--json")
    (known,) = json.loads(paper.stdout).values()
    assert {"name": "m", "default": "20", "words": "surrogates kept", "use": "research"} in known


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["minimise"], "there are no settings of 'minimise'; did you mean 'minimize'?"),
        (["cpo", "--preset", "paper"], "unknown preset 'paper' of cpo; there are default"),
    ],
)
def test_what_is_not_there_is_refused(words, says):
    done = here("settings", *words)
    assert done.exit_code == 2 and done.stdout == "" and done.stderr == f"error: {says}\n"


def test_the_options_of_train_are_in_groups():
    text = here("train", "--help").stdout
    titles = [
        "Arguments",
        "Options",
        "Most used",
        "How long",
        "Settings",
        "The environment and its costs",
        "Where it runs",
    ]
    assert all(f"─ {title} ─" in text for title in titles)
    assert (
        text.index("─ Most used ─")
        < text.rindex("--threshold")
        < text.index("─ How long ─")
        < text.index("─ Settings ─")
    )
    command = next(each for each in app.registered_commands if each.callback.__name__ == "train")
    named = [name for names in command.cls.panels.values() for name in names]
    assert sorted([*named, "task"]) == sorted(inspect.signature(command.callback).parameters)
