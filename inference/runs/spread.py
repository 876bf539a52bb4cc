"""Independent parts of a method's work: in this process, or each in a process of a Dask cluster."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, override

from onebasin.base.processes.task_process import tell
from onebasin.base.processes.tasks import run_tasks, succeeded
from onebasin.base.progress import ChainBar, ProgressBars
from onebasin.base.run_log import record

TELL_SECONDS = 0.5  # Least time between two reports of a chain.


def spread[T](
    client: Any,
    bars: ProgressBars,
    what: str,
    function: Callable[..., T],
    tasks: Mapping[str, tuple[Any, ...]],
) -> Iterator[T]:
    """Call a function on bars and each of several tuples of arguments, and yield the results: here in order.

    With a `client`, a cluster or the address of its scheduler, they are sent to its workers and yielded as they end;
    `what` is the name for what is sent in an error.

    Raises
    ------
    TaskError
        If something cannot be sent, a worker has other versions, or a task's process was killed twice.
    """
    if client is None:
        yield from (function(bars, *arguments) for arguments in tasks.values())
        return
    sent = {key: (function, *arguments) for key, arguments in tasks.items()}
    hear = _Hearing(bars)
    for key, found in run_tasks(_called, sent, client, what=what, hear=hear, say=bars.say):
        yield succeeded(key, found)


def _called[T](function: Callable[..., T], *arguments: Any) -> T:
    return function(_TellingBars(), *arguments)


class _TellingBars(ProgressBars):
    """Tells progress to whoever started this process."""

    def __init__(self) -> None:
        super().__init__(False)
        self._told_at = 0.0

    @override
    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        bar = super().add(description, total, timed=timed)
        tell(bar=bar, adds=description, total=total, timed=timed)
        return bar

    @override
    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        if time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            tell(bar=bar, done=completed, description=description)

    @override
    def chain(self, number: int, *, warmup: int, draws: int, done: int = 0) -> ChainBar:
        return _TellingBar(self, number, warmup, draws, done)

    @override
    def say(self, message: str) -> None:
        tell(says=message)


class _TellingBar(ChainBar):
    """Tells how far a chain is, now and then."""

    moving = True

    def __init__(
        self, bars: ProgressBars, number: int, warmup: int, draws: int, done: int = 0
    ) -> None:
        self._number, self._told_at = number, time.monotonic()
        tell(chain=number, done=done, warmup=warmup, draws=draws)

    @override
    def show(self, done: int, **facts: float | None) -> None:
        if time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            tell(chain=self._number, done=done, facts=facts)

    @override
    def end(self, seconds: float, **facts: float | None) -> None:
        tell(chain=self._number, seconds=seconds, facts=facts)


class _Hearing:
    """Shows what processes tell of their work."""

    def __init__(self, bars: ProgressBars) -> None:
        self._bars, self._shown = bars, dict[int, ChainBar]()
        self._added: dict[tuple[str, int], int] = {}

    def __call__(self, key: str, told: Mapping[str, Any]) -> None:
        match dict(told):
            case {"chain": number, "done": done, "warmup": warmup, "draws": draws}:
                if number in self._shown:  # a second try
                    self._shown[number].show(done)
                else:
                    bars = self._bars
                    self._shown[number] = bars.chain(number, warmup=warmup, draws=draws, done=done)
            case {"chain": number, "seconds": seconds, "facts": facts}:
                self._shown[number].end(seconds, **facts)
            case {"chain": number, "done": done, "facts": facts}:
                self._shown[number].show(done, **facts)
            case {"bar": bar, "adds": words, "total": total, "timed": timed}:
                self._added[key, bar] = self._bars.add(words, total, timed=timed)
            case {"bar": bar, "done": done, "description": words}:
                self._bars.move(self._added[key, bar], done, words)
            case {"again": why}:
                self._bars.say(f"{key}: {why}; tried again")
            case {"says": line}:
                self._bars.say(line)
            case {"records": line}:
                record(line)
