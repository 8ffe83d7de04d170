"""Holds `guard` of examples/python to what a host must do: guard.py COMPONENTS"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/python"))

from policy import Host, Policy, Rejected, guard


class Quiet(Host):
    def log(self, level, message, fields):
        pass


def attach(key, **settings):
    return policy.attach(key, json.dumps(settings)).circuit


def raised(kind, circuit, call):
    try:
        guard(policy, circuit, call)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def raises(error):
    def call(_limit):
        raise error

    return call


def runs_longer(limit):
    end = time.monotonic() + limit
    while time.monotonic() <= end:
        pass


policy = Policy(Path(sys.argv[1]) / "consecutive.wasm")(Quiet())

own = attach("own", failure_threshold=3, call_timeout=None)
assert guard(policy, own, lambda limit: ("done", limit)) == ("done", None)
raised(OSError, own, raises(OSError("no route")))
assert policy.inspect(own).counts.failures == 1
assert policy.inspect(own).last_cause == "no route"

timed = attach("timed", failure_threshold=3, call_timeout="1ms")
guard(policy, timed, runs_longer)
raised(TimeoutError, timed, raises(TimeoutError()))
assert policy.inspect(timed).counts.timeouts == 2

# What says nothing of the dependency does not count, and the probe that it was is free again.
probed = attach("probed", success_threshold=1)
policy.trip(probed, 1)
raised(KeyboardInterrupt, probed, raises(KeyboardInterrupt()))
assert policy.inspect(probed).state == "half-open"
assert policy.inspect(probed).counts.probes_in_flight == 0
guard(policy, probed, lambda _limit: None)
assert policy.inspect(probed).state == "closed"

policy.trip(own, 1_500_000_000)
calls = []
rejected = raised(Rejected, own, calls.append)
assert str(rejected) == "rejected: open" and 0 < rejected.retry_after <= 1.5
policy.set_mode(own, "forced-open")
rejected = raised(Rejected, own, calls.append)
assert str(rejected) == "rejected: forced-open" and rejected.retry_after is None
assert not calls
for mode in ["shadow", "disabled"]:
    policy.set_mode(own, mode)
    guard(policy, own, calls.append)
    raised(OSError, own, raises(OSError("no route")))
assert len(calls) == 2
assert policy.inspect(own).state == "open"
