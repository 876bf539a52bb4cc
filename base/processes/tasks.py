"""Run independent tasks in processes: on this machine's cores, or on the workers of a Dask cluster.

A task is a function with its arguments, pickled by cloudpickle. It runs in its own process (`task_process`). On a
cluster, a thread of a worker waits for this process. So each thread represents a core, a killed task does not end its
worker, and no process is left when a task is cancelled.
"""

from __future__ import annotations

import pickle
import secrets
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from ..errors import OnebasinError, TaskDied, TaskError, error_in_words
from ..machine import lacks
from .task_process import heard_by, start, versions

CONNECT_SECONDS = 10
MOST = 1000
"""Maximum number of tasks that are submitted at once."""
Hear = Callable[[str, dict[str, Any]], None]
"""A function that is called with the key of a task and a message from its process, which is empty when it begins."""
Say = Callable[[str], None]
Attempt = Callable[[str, bytes], bytes]
"""A function that runs a task once and waits for its result."""


def run_tasks[T](
    function: Callable[..., T],
    tasks: Mapping[str, tuple[Any, ...]],
    client: Any = None,
    *,
    what: str = "The function",
    hear: Hear = lambda key, told: None,
    say: Say = lambda line: None,
    after: Mapping[str, Sequence[str]] | None = None,
    at_once: int | None = None,
    cores: int = 1,
    here: bool = False,
    retries: int = 1,
    again: tuple[type[Exception], ...] = (TaskDied,),
) -> Generator[tuple[str, T | Exception]]:
    """Run a function on each of several tuples of arguments; yield the key and the result of each as it ends.

    Tasks run on a cluster (`client`, or the address of its scheduler), or in processes of this machine, or one by one
    in this process if `here`. A task begins after the tasks that `after` lists for it have ended, even if they failed.
    On this machine, `at_once` tasks run together, with `cores` each. A cluster runs one task per worker thread, with
    one core each, or more if there are fewer tasks than threads.

    Messages that a task sends by `tell` go to `hear`, in another thread; `say` gets lines for the user. A task that
    fails with one of the errors `again` is retried `retries` times, and then yields the last error; a killed process
    counts as `TaskDied`. Any other error stops all tasks and is raised. Raise `TaskError`, which calls the function
    `what`, if the cluster cannot be reached, a worker has other versions, or a task cannot be sent.
    """

    def work(key: str, attempt: Callable[[str], T]) -> T | Exception:
        for left in range(retries, -1, -1):
            try:
                return attempt(key)
            except again as error:
                if not left:
                    return error
                hear(key, {"again": error_in_words(error)})
        raise AssertionError("A task needs at least one attempt.")

    if here:
        for key in tasks:
            with heard_by(partial(hear, key)):
                hear(key, {})
                yield key, work(key, lambda key: function(*tasks[key]))
        return
    orders = {key: _order(what, function, arguments) for key, arguments in tasks.items()}
    if not orders:
        return
    places = (
        _on_cluster(client, list(orders), hear, say) if client is not None else _here(cores, hear)
    )
    waiting, ended, at_work = list(orders), set[str](), dict[Future[T | Exception], str]()
    room = min(MOST, len(orders) if client is not None else at_once or len(orders))
    with ThreadPoolExecutor(room) as pool, places as attempt:

        def result(key: str) -> T:
            found = pickle.loads(attempt(key, orders[key]))
            if isinstance(found, Exception):
                raise found
            return cast(T, found)

        while waiting or at_work:
            ready = [k for k in waiting if ended.issuperset((after or {}).get(k, ()))]
            for key in ready[: room - len(at_work)]:
                waiting.remove(key)
                at_work[pool.submit(work, key, result)] = key
            # Wait briefly: on some systems, Ctrl-C does not interrupt a long wait.
            for future in wait(at_work, timeout=0.2, return_when=FIRST_COMPLETED).done:
                key = at_work.pop(future)
                ended.add(key)
                yield key, future.result()


def succeeded[T](key: str, found: T | Exception) -> T:
    """Return the result of a task; raise `TaskError` if every attempt failed."""
    if isinstance(found, Exception):
        raise TaskError(
            f"{key} failed: {error_in_words(found)}. If memory ran out, give each worker more memory or fewer "
            "threads."
        ) from found
    return found


def _order(what: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Pickle the versions and the task; the user's own modules are pickled by value."""
    import cloudpickle

    own = [module for module in list(sys.modules.values()) if _is_users(module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        task = cloudpickle.dumps((function, arguments))
    except Exception as error:
        raise TaskError(
            f"{what} cannot be sent to another process: {error_in_words(error)}. A function that runs in another "
            "process may use only arrays and numbers from outside the function. Inside the function, open any files "
            "and sockets, and load any compiled libraries."
        ) from error
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
    return pickle.dumps((versions(), task))


def _is_users(module: Any) -> bool:
    """Check whether other machines may lack a module: its file is neither in Python's folders nor in onebasin."""
    file = getattr(module, "__file__", None)
    if not file or module.__name__.partition(".")[0] in ("__main__", "onebasin", "conftest"):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


_INSTALLED = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}


@contextmanager
def _here(cores: int, hear: Hear) -> Iterator[Attempt]:
    """Run tasks in processes of this machine, which end with the block."""
    cancel = threading.Event()
    try:
        yield lambda key, order: start(order, cores, cancel, partial(hear, key))
    finally:
        cancel.set()


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """Yield a client of a cluster: the one that is given, or a new one for an address."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        if error.name != "distributed":
            raise
        raise TaskError(lacks("Running on a Dask cluster", "cluster")) from error
    if isinstance(client, Client):
        yield client
        return
    if not isinstance(client, str) or "://" not in client:
        raise TaskError(
            "`client` must be a distributed.Client, or the address of a Dask scheduler such as tcp://host:8786; got "
            f"{client!r}."
        )
    try:
        made = Client(client, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise TaskError(
            f"No Dask scheduler answers at {client}. Start one with `dask scheduler`, or correct the address."
        ) from error
    with made:
        yield made


@contextmanager
def _on_cluster(where: Any, keys: Sequence[str], hear: Hear, say: Say) -> Iterator[Attempt]:
    with connected(where) as client:
        from distributed import KilledWorker

        from .dask_worker import Stops, run_on_worker

        topic, numbers, futures = f"onebasin-{secrets.token_hex(4)}", dict.fromkeys(keys, 0), []
        threads = sum(client.nthreads().values())
        if not threads:
            there = client.scheduler_info()["address"]
            say(f"waits for workers at {there}: start some with `dask worker`")
        cores = max(1, threads // len(keys))

        def attempt(key: str, order: bytes) -> bytes:
            numbers[key] += 1
            # Dask groups tasks by the first part of their keys. Tasks of one group wait at the scheduler until a
            # thread is free, even on a worker that joins later.
            future = client.submit(
                run_on_worker,
                order,
                task=key,
                cores=cores,
                topic=topic,
                key=(f"task-{topic}", f"{key}-{numbers[key]}"),
                priority=-keys.index(key),
                retries=0,
            )
            futures.append(future)
            try:
                return cast(bytes, future.result())
            except KilledWorker as error:
                raise TaskDied("its workers were killed, perhaps because memory ran out") from error
            except CancelledError:
                raise TaskError(
                    "onebasin lost the connection to the Dask scheduler. The scheduler has ended, or the network is "
                    "down. Start the scheduler again, and repeat the run."
                ) from None
            except OnebasinError:
                raise
            except Exception as error:
                raise TaskError(
                    f"A worker cannot run tasks: {error_in_words(error)}. Install the same packages on all machines."
                ) from error
            finally:
                future.release()
                futures.remove(future)

        try:
            client.register_plugin(Stops(topic))
        except Exception as error:
            raise TaskError(
                f"A worker cannot run tasks: {error}. Install this version of onebasin on all machines."
            ) from error
        client.subscribe_topic(topic, lambda event: hear(event[1]["task"], event[1]["told"]))
        try:
            yield attempt
        finally:
            client.cancel(list(futures), force=True)
            with suppress(Exception):  # The scheduler may be gone.
                client.unsubscribe_topic(topic)
                client.unregister_worker_plugin(topic)
