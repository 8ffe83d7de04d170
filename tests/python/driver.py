"""Plays steps on an instance as a host would that asks about each call and keeps nothing back."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

from wasmtime.component import Variant

import answer
from answer import LARGEST, parse_time
from expect import text

# What each verb may have beside it.
ARGUMENTS = {
    "wait": [], "clock": [], "wall": [], "acquire": [], "settle": ["outcome", "retry_after", "cause"], "call": ["retry_after", "cause"],
    "trip": [], "reset": [], "mode": [], "cool_down": [], "tripped": [], "inspect": [], "available": [], "describe": [],
    "attach": [], "restart": [], "lease": [], "settle_successes": ["count"], "configure": [], "detach": [], "prepare": [],
    "save": [], "restore": ["age", "settings", "policy", "with"],
}  # fmt: skip
OPTIONS = ["request-information", "circuit-breaker", "other"]


class Surroundings:
    """What the imports reach: two clocks that are set by hand, and a list of what was told."""

    def __init__(self):
        self.now, self.date = parse_time("1h"), parse_time("1000h")
        self.told = {"log": [], "spans": []}

    def monotonic(self):
        return self.now

    def wall(self):
        return self.date

    def log(self, *told):
        self.told["log"].append(answer.line(*told))

    def span(self, told):
        self.told["spans"].append(answer.span(told))

    def take_told(self):
        told, self.told = self.told, {"log": [], "spans": []}
        return told


@dataclass
class Permit:
    key: str
    circuit: int
    ticket: int
    started: int
    call_timeout: int | None


class Driver:
    """One scenario. `policies` makes instances by the policy's name."""

    def __init__(self, policies, policy, scenario):
        self.policies, self.policy, self.around = policies, policy, Surroundings()
        self.settings, self.setup = scenario.get("settings", {}), scenario.get("setup", {})
        self.snapshots = {}
        self.start()

    def start(self):
        """Goes on with a new instance, in which nothing is attached and no permit of before means anything."""
        self.instance = self.policies(self.policy)(self.around)
        self.circuits, self.generations, self.permits = {}, {}, {}
        self.prepare(self.setup)

    def play(self, step):
        """Does what a step says, and answers in the words of the format."""
        arguments = {name: value for name, value in step.items() if name not in ("key", "expect", "log", "spans")}
        verbs = [name for name in arguments if name in ARGUMENTS]
        if len(verbs) != 1:
            raise ValueError(f"a step has exactly one verb, and this has {verbs}; its fields are {list(arguments)}")
        value = arguments.pop(verbs[0])
        unknown = set(arguments) - set(ARGUMENTS[verbs[0]])
        if unknown:
            raise ValueError(f"{verbs[0]} has no arguments {sorted(unknown)}")
        return getattr(self, f"play_{verbs[0]}")(step.get("key", "orders"), value, **{f"{name}_": it for name, it in arguments.items()})

    # --- clocks

    def play_wait(self, _key, value):
        self.around.now = min(self.around.now + parse_time(value), LARGEST)
        self.around.date = min(self.around.date + parse_time(value), LARGEST)
        return {}

    def play_clock(self, _key, value):
        self.around.now = parse_time(value)
        return {}

    def play_wall(self, _key, value):
        self.around.date = parse_time(value)
        return {}

    # --- calls

    def play_acquire(self, key, value):
        answered, permit = self.acquire(key)
        if permit:
            self.permits[value] = permit
        return answered

    def play_settle(self, _key, value, outcome_, retry_after_=None, cause_=None):
        return self.settle(self.permit(value), outcome_, retry_after_, cause_)

    def play_call(self, key, value, retry_after_=None, cause_=None):
        answered, permit = self.acquire(key)
        if not permit:
            raise ValueError(f"the call was not admitted: {text(answered)}")
        return self.settle(permit, value, retry_after_, cause_)

    def acquire(self, key):
        circuit, started = self.number(key), self.around.now
        admission = self.instance.acquire(circuit)
        self.heed(key, admission.lease)
        kind, _ = answer.decision(admission.decision)
        permit = Permit(key, circuit, admission.decision, started, admission.lease.call_timeout) if kind == "admit" else None
        return answer.admission(admission), permit

    def settle(self, permit, outcome, retry_after, cause):
        took, limit = max(self.around.now - permit.started, 0), permit.call_timeout
        if outcome in ("success", "failure") and limit is not None and took > limit:
            outcome = "timeout"
        report = SimpleNamespace(
            outcome=outcome,
            took=None if limit is None else took,
            retry_after=None if retry_after is None else parse_time(retry_after),
            cause=cause,
        )
        settlement = self.instance.settle(permit.circuit, permit.ticket, report)
        self.heed(permit.key, settlement.lease)
        return {"counted": settlement.counted, "transition": answer.transition(settlement.transition)}

    def permit(self, label):
        if label not in self.permits:
            raise ValueError(f"no call was admitted as {label!r}")
        return self.permits[label]

    def play_settle_successes(self, _key, value, count_):
        permit = self.permit(value)
        return self.moved(permit.key, self.instance.settle_successes(self.number(permit.key), permit.ticket, count_))

    # --- commands

    def play_trip(self, key, value):
        return self.moved(key, self.instance.trip(self.number(key), None if value is True else parse_time(value)))

    def play_reset(self, key, _value):
        return self.moved(key, self.instance.reset(self.number(key)))

    def play_mode(self, key, value):
        return self.moved(key, self.instance.set_mode(self.number(key), value))

    def moved(self, key, moved):
        self.heed(key, moved.lease)
        return {"transition": answer.transition(moved.transition)}

    def play_cool_down(self, _key, _value):
        keys, moves = {circuit: key for key, circuit in self.circuits.items()}, {}
        for circuit, moved in self.instance.cool_down():
            if keys[circuit] in moves:
                raise ValueError(f"cool-down moved {keys[circuit]!r} twice")
            moves[keys[circuit]] = self.moved(keys[circuit], moved)
        return [{"key": key} | moves[key] for key in sorted(moves)]

    # --- looking

    def play_tripped(self, _key, _value):
        return sorted(self.instance.tripped())

    def play_inspect(self, key, _value):
        return answer.status(self.instance.inspect(self.number(key)))

    def play_available(self, key, _value):
        lease = self.instance.lease_of(self.number(key))
        holds = lease.until is None or self.around.now < lease.until
        return {"available": not (lease.standing.tag == "reject" and lease.mode != "shadow" and holds)}

    def play_describe(self, _key, _value):
        return answer.description(self.instance.describe())

    def play_lease(self, key, _value):
        lease = self.instance.lease_of(self.number(key))
        return answer.lease(lease, self.heed(key, lease))

    # --- circuits and instances

    def number(self, key):
        """The number of a key's circuit, which is attached first where it must be."""
        if key not in self.circuits:
            answered = self.play_attach(key, self.settings)
            if answered["error"]:
                raise ValueError(f"{key!r} is not attached: {text(answered)}")
        return self.circuits[key]

    def heed(self, key, lease):
        """Holds an answer's lease against the rules of the contract, and says which generation of its circuit it is."""
        stands = self.instance.lease_of(self.circuits[key])
        if stands != lease:
            raise ValueError(f"the answer's lease is {lease}, and that of lease-of {stands}")
        generations = self.generations[key]
        if not generations or generations[-1] < lease.generation:
            generations.append(lease.generation)
        if generations[-1] != lease.generation:
            raise ValueError(f"generation {lease.generation} came after {generations[-1]}")
        return len(generations)

    def play_attach(self, key, value):
        return self.attached(key, self.instance.attach(key, settings_text(value)))

    def attached(self, key, result):
        if isinstance(result, Variant):
            return answer.refusal(result)
        if self.circuits.setdefault(key, result.circuit) != result.circuit:
            raise ValueError(f"the circuit of {key!r} had number {self.circuits[key]} and has {result.circuit} now")
        self.generations.setdefault(key, [])
        self.heed(key, result.lease)
        return {"error": None}

    def play_configure(self, key, value):
        result = self.instance.configure(self.number(key), settings_text(value))
        return answer.refusal(result) if isinstance(result, Variant) else {"error": None} | self.moved(key, result)

    def play_detach(self, key, _value):
        circuit = self.circuits.pop(key)
        del self.generations[key]
        self.instance.detach(circuit)
        self.permits = {label: permit for label, permit in self.permits.items() if permit.circuit != circuit}
        return {}

    def play_prepare(self, _key, value):
        self.setup = value
        self.prepare(value)
        return {}

    def prepare(self, setup):
        unknown = set(setup) - {"seed", "instrumentation", "namespace"} or set(setup.get("instrumentation", [])) - set(OPTIONS)
        if unknown:
            raise ValueError(f"a setup has no {sorted(unknown)}")
        self.instance.prepare(
            SimpleNamespace(
                seed=setup.get("seed", 0),
                instrumentation=set(setup.get("instrumentation", OPTIONS)),
                namespace=setup.get("namespace"),
            )
        )

    def play_restart(self, _key, _value):
        self.start()
        return {}

    def play_save(self, key, value):
        self.snapshots[value] = self.instance.save(self.number(key))
        return answer.snapshot(self.snapshots[value])

    def play_restore(self, _key, value, age_="0s", settings_=None, policy_=None, with_=None):
        if policy_:
            self.policy = policy_
            self.start()
        snapshot = answer.changed(self.snapshots[value], with_ or {})
        settings = settings_text(self.settings if settings_ is None else settings_)
        return self.attached(snapshot.key, self.instance.restore(snapshot, settings, parse_time(age_)))


def settings_text(settings):
    """Settings as the text that a policy reads: an object is written out, a text is taken as it is."""
    return settings if isinstance(settings, str) else json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
