"""Ask, evaluate and tell to the end; and whatever ends that early loses nothing."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcces.blackbox.progress import progress_line
from pcces.support.interrupt import uninterrupted
from pcces.support.streams import is_terminal

if TYPE_CHECKING:
    from pcces.blackbox.batch import Batch
    from pcces.blackbox.evaluator import Evaluator
    from pcces.blackbox.optimizer import Optimizer
    from pcces.blackbox.result import Result

OFTEN = 3.0  # seconds between two checkpoints
SLOW = 1.0  # seconds that a batch takes, for a checkpoint after each
CHEAP = 0.05  # of the time may go into writing them


class Keeper:
    """Writes a search into a file every now and then: after each batch that took long, or every few seconds."""

    def __init__(self, optimizer: Optimizer, path: str | Path):
        self.optimizer, self.path = optimizer, path
        self._latest, self._cost, self._evaluations = time.monotonic(), 0.0, -1

    def __call__(self, batch_took: float) -> None:
        """After a batch."""
        wait = OFTEN if batch_took < SLOW else 0.0
        if time.monotonic() - self._latest >= max(wait, self._cost / CHEAP):
            self.write()

    def write(self) -> None:
        """Now, if there is anything new."""
        if self._evaluations != self.optimizer.state.budget.evaluations or self.optimizer.stop():
            began = time.monotonic()
            self.optimizer.save(self.path)
            self._latest, self._evaluations = time.monotonic(), self.optimizer.state.budget.evaluations
            self._cost = self._latest - began


def ask_and_tell(
    optimizer: Optimizer,
    evaluate: Evaluator,
    callback: Callable[..., Any] | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    asynchronous: bool = False,
) -> Result:
    """Ask, evaluate and tell to the end; `callback` is called once an iteration and may end the search. `asynchronous`: ask for
    as many points as there are free workers, and tell what each of them gave.

    Whatever is raised on the way carries the best so far as its attribute `result`, and is noted in the checkpoint.
    """
    if progress is None:
        progress = is_terminal()
    keeper = None if checkpoint is None else Keeper(optimizer, checkpoint)
    called = None if callback is None else reading(callback)
    iteration = len(optimizer.history)
    with (
        _with_result(optimizer, evaluate, keeper),
        progress_line(optimizer.search) if progress else nullcontext() as show,
    ):
        for told, took in (_one_by_one if asynchronous else _batch_by_batch)(optimizer, evaluate):
            with uninterrupted():
                optimizer.name_constraints(evaluate.names)
                optimizer.tell(*told)
                if keeper is not None:
                    keeper(took)
            if show is not None:
                show()
            if called is not None and len(optimizer.history) > iteration:
                iteration = len(optimizer.history)
                try:
                    wants_to_stop = called(optimizer.result)
                except StopIteration:
                    wants_to_stop = True
                if wants_to_stop:
                    optimizer.finish()
        if keeper is not None:
            keeper.write()
    return _result(optimizer, evaluate)


def _batch_by_batch(optimizer: Optimizer, evaluate: Evaluator) -> Iterator[tuple[tuple[Any, ...], float]]:
    """What to tell next, and how long that took."""
    while not optimizer.stop():
        batch, began = optimizer.ask(), time.monotonic()
        outputs = evaluate(batch, optimizer.spare(batch.phase, len(batch)))
        yield (batch, *outputs, None, evaluate.repeated), time.monotonic() - began


def _one_by_one(optimizer: Optimizer, evaluate: Evaluator) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Likewise, whatever is done first; what a search from a file had asked for is asked for again."""
    running: dict[int, tuple[Batch, int]] = {}

    def begin(batch: Batch) -> None:
        for row, number in enumerate(evaluate.submit(batch)):
            running[number] = batch, row

    for batch in optimizer.pending:
        begin(batch)
    while not optimizer.stop():
        free = evaluate.runner.capacity - len(running)
        if free > 0:
            begin(optimizer.ask(free))
        if optimizer.stop():
            return
        began = time.monotonic()
        for number, f, c in evaluate.collect(optimizer.spare(optimizer.state.phase, 0)):
            batch, row = running.pop(number)
            if optimizer.stop():
                return
            repeated, evaluate.repeated = evaluate.repeated, 0
            yield (batch, f, c, [row], repeated), time.monotonic() - began


def _result(optimizer: Optimizer, evaluate: Evaluator) -> Result:
    result = optimizer.result
    if result.failures and evaluate.last_error:
        result["message"] += f" (the last one with {evaluate.last_error})"
    return result


@contextmanager
def _with_result(optimizer: Optimizer, evaluate: Evaluator, keeper: Keeper | None) -> Iterator[None]:
    """Whatever is raised inside takes the best so far along."""
    try:
        yield
    except BaseException as error:
        budget = optimizer.state.budget
        if budget.evaluations == 0:  # a mistake that shows at once
            raise
        note = "The best point so far is in the attribute `result` of this exception."
        if keeper is not None:
            try:
                keeper.write()
                note += f" To continue, call minimize again with checkpoint={str(keeper.path)!r}."
            except OSError as fault:
                note += f" The checkpoint could not be written ({fault})."
        result = _result(optimizer, evaluate)
        if result.running:
            result["message"] = (
                f"stopped by {type(error).__name__} after {budget.evaluations} of {optimizer.search.max_evaluations} "
                "evaluations; nothing is certified yet"
            )
        error.result = result  # type: ignore[attr-defined]
        error.add_note(note)
        raise


def reading(callback: Callable[..., Any]) -> Callable[[Result], Any]:
    """The callback as a function of the result so far. As in SciPy, one whose parameter is called `intermediate_result`
    gets it by that name, and one of `xk` or `x` gets the point alone.

    >>> from types import SimpleNamespace
    >>> reading(lambda xk: xk + 1)(SimpleNamespace(x=1)), reading(lambda result: result.x)(SimpleNamespace(x=1))
    (2, 1)
    """
    try:
        names = list(inspect.signature(callback).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        names = []
    if names == ["intermediate_result"]:
        return lambda result: callback(intermediate_result=result)
    if names in (["xk"], ["x"]):
        return lambda result: callback(result.x)
    return callback
