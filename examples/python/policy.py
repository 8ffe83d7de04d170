"""A Tripwit policy in Python: a component in, the contract's functions out (wit/policy.wit, names with underscores).

Records are SimpleNamespaces, enums are texts. A variant is a `wasmtime.component.Variant`, or the bare value where the types of
its cases tell them apart: a decision is a ticket (admit), None (pass) or a rejection (reject).
"""

import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

POLICY = "tripwit:breaker/policy@0.1.0"


class Host:
    """What a component may import: two clocks in nanoseconds, a log, and finished spans. This one prints warnings and worse."""

    monotonic = staticmethod(time.monotonic_ns)
    wall = staticmethod(time.time_ns)

    def log(self, level, message, fields):
        if level in ("warn", "error", "critical"):
            print(f"{level}: {message}")

    def span(self, span):
        pass


class Policy:
    """A compiled component. Each call makes an instance, which holds any number of circuits and serves one thread at a time."""

    def __init__(self, file):
        self.engine = Engine()
        self.component = Component(self.engine, Path(file).read_bytes())

    def __call__(self, host=None):
        return Instance(self, host or Host())


class Instance:
    """The contract's functions as methods: `instance.acquire(circuit)`, `instance.lease_of(circuit)`."""

    def __init__(self, policy, host):
        self._store = Store(policy.engine)
        linker = Linker(policy.engine)
        for interface, name, function in imports(host):
            with linker.root() as root, root.add_instance(interface) as instance:
                instance.add_func(name, partial(without_store, function))
        self._instance = linker.instantiate(self._store, policy.component)
        self._policy = self._instance.get_export_index(self._store, POLICY)

    def __getattr__(self, name):
        index = self._instance.get_export_index(self._store, name.replace("_", "-"), self._policy)
        if index is None:
            raise AttributeError(f"{POLICY} has no function {name!r}")
        function = self._instance.get_func(self._store, index)
        setattr(self, name, lambda *arguments: plain(function(self._store, *map(contract, arguments))))
        return getattr(self, name)


class Rejected(Exception):
    """A call that was not made: the circuit is open, say. `retry_after`: seconds until it is worth asking again, if a clock decides."""

    def __init__(self, rejection):
        super().__init__(f"rejected: {rejection.reason}")
        self.retry_after = None if rejection.retry_after is None else rejection.retry_after / 1e9


def guard(policy, circuit, call):
    """Makes a call if the circuit admits it, and tells the policy how it ended. `call` is given its time limit in seconds, or None."""
    admission = policy.acquire(circuit)
    decision, lease = admission.decision, admission.lease
    if isinstance(decision, SimpleNamespace) and lease.mode != "shadow":
        raise Rejected(decision)
    limit, started = lease.call_timeout, time.monotonic_ns()

    def settle(outcome, cause=None):
        took = time.monotonic_ns() - started
        timed = limit is not None or lease.slow_after is not None
        outcome = "timeout" if limit is not None and took > limit else outcome
        if isinstance(decision, int):
            report = SimpleNamespace(outcome=outcome, took=took if timed else None, retry_after=None, cause=cause)
            policy.settle(circuit, decision, report)

    try:
        result = call(None if limit is None else limit / 1e9)
    except Exception as error:
        settle("timeout" if isinstance(error, TimeoutError) else "failure", str(error))
        raise
    except BaseException:
        settle("ignored")
        raise
    settle("success")
    return result


def imports(host):
    def datetime():
        seconds, nanoseconds = divmod(host.wall(), 1_000_000_000)
        return SimpleNamespace(seconds=seconds, nanoseconds=nanoseconds)

    return [
        ("wasi:clocks/monotonic-clock@0.2.12", "now", host.monotonic),
        ("wasi:clocks/wall-clock@0.2.12", "now", datetime),
        ("tripwit:breaker/log@0.1.0", "log", host.log),
        ("tripwit:breaker/spans@0.1.0", "export-span", host.span),
    ]


def without_store(function, _store, *arguments):
    return contract(function(*map(plain, arguments)))


def plain(value):
    """A value of the contract with wasmtime's records, whose names have hyphens, as SimpleNamespaces with underscores."""
    return renamed(value, Record, SimpleNamespace, "-", "_")


def contract(value):
    """The way back."""
    return renamed(value, SimpleNamespace, Record, "_", "-")


def renamed(value, old, new, before, after):
    again = partial(renamed, old=old, new=new, before=before, after=after)
    if isinstance(value, old):
        made = new()
        for name, field in vars(value).items():
            setattr(made, name.replace(before, after), again(field))
        return made
    if isinstance(value, Variant):
        return Variant(value.tag, again(value.payload))
    if isinstance(value, (list, tuple)):
        return type(value)(map(again, value))
    return value
