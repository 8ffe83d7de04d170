"""Plays steps on an instance as a host would that asks about each call and keeps nothing back."""

from dataclasses import dataclass, field
from types import SimpleNamespace

from wasmtime.component import Variant

import answer
from answer import LARGEST, parse_time
from expect import text

# What each verb may have beside it.
ARGUMENTS = {
    "wait": [], "clock": [], "wall": [], "acquire": [], "settle": ["outcome", "retry_after", "cause"], "call": ["retry_after", "cause", "times"],
    "trip": [], "reset": [], "mode": [], "cool_down": [], "tripped": [], "inspect": [], "available": [], "describe": [],
    "attach": [], "restart": ["at"], "lease": [], "settle_successes": ["count"], "configure": [], "detach": [], "prepare": [],
    "save": [], "restore": ["age", "settings", "policy", "with"], "swap": ["settings"], "reconfigure": [],
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
    measured: bool
    instance: object


@dataclass
class Circuit:
    number: int
    settings: str
    own: bool
    generations: list = field(default_factory=list)


class Driver:
    """One scenario. `policies` makes instances by the policy's name."""

    def __init__(self, policies, policy, scenario):
        self.policies, self.policy, self.around = policies, policy, Surroundings()
        self.settings, self.setup = scenario.get("settings", {}), scenario.get("setup", {})
        self.snapshots = {}
        self.start()

    def start(self):
        """Goes on with a new instance, in which nothing is attached and no permit of before means anything."""
        self.instance = self.new_instance(self.policy)
        self.circuits, self.permits = {}, {}

    def new_instance(self, policy):
        instance = self.policies(policy)(self.around)
        instance.prepare(setup_record(self.setup))
        return instance

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

    def play_call(self, key, value, retry_after_=None, cause_=None, times_=1):
        for place in range(1, times_):
            answered = self.call(key, value, retry_after_, cause_)
            if answered["transition"]:
                raise ValueError(f"call {place} already answers {text(answered)}")
        return self.call(key, value, retry_after_, cause_)

    def call(self, key, outcome, retry_after, cause):
        answered, permit = self.acquire(key)
        if not permit:
            raise ValueError(f"the call was not admitted: {text(answered)}")
        return self.settle(permit, outcome, retry_after, cause)

    def acquire(self, key):
        circuit, started = self.number(key), self.around.now
        admission = self.instance.acquire(circuit)
        self.heed(key, admission.lease)
        kind, _ = answer.decision(admission.decision)
        if kind != "admit":
            return answer.admission(admission), None
        limit = admission.lease.call_timeout
        measured = limit is not None or admission.lease.slow_after is not None
        return answer.admission(admission), Permit(key, circuit, admission.decision, started, limit, measured, self.instance)

    def settle(self, permit, outcome, retry_after, cause):
        if permit.instance is not self.instance:
            # A host does not ask an instance about the tickets of another.
            return {"counted": False, "transition": None}
        took, limit = max(self.around.now - permit.started, 0), permit.call_timeout
        if outcome in ("success", "failure") and limit is not None and took > limit:
            outcome = "timeout"
        report = SimpleNamespace(
            outcome=outcome,
            took=took if permit.measured else None,
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
        if permit.instance is not self.instance:
            raise ValueError(f"{value!r} is of another instance")
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
        keys, moves = {circuit.number: key for key, circuit in self.circuits.items()}, {}
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
            settings = settings_text(self.settings)
            answered = self.attached(key, self.instance.attach(key, settings), settings, own=False)
            if answered["error"]:
                raise ValueError(f"{key!r} is not attached: {text(answered)}")
        return self.circuits[key].number

    def heed(self, key, lease):
        """Holds an answer's lease against the rules of the contract, and says which generation of its circuit it is."""
        stands = self.instance.lease_of(self.circuits[key].number)
        if stands != lease:
            raise ValueError(f"the answer's lease is {lease}, and that of lease-of {stands}")
        generations = self.circuits[key].generations
        if not generations or generations[-1] < lease.generation:
            generations.append(lease.generation)
        if generations[-1] != lease.generation:
            raise ValueError(f"generation {lease.generation} came after {generations[-1]}")
        return len(generations)

    def play_attach(self, key, value):
        settings = settings_text(value)
        return self.attached(key, self.instance.attach(key, settings), settings, own=True)

    def attached(self, key, result, settings, own):
        """One that is known keeps the settings that it has."""
        if isinstance(result, Variant):
            return answer.refusal(result)
        known = self.circuits.setdefault(key, Circuit(result.circuit, settings, own)).number
        if known != result.circuit:
            raise ValueError(f"the circuit of {key!r} had number {known} and has {result.circuit} now")
        self.heed(key, result.lease)
        return {"error": None}

    def play_configure(self, key, value):
        circuit, settings = self.number(key), settings_text(value)
        result = self.instance.configure(circuit, settings)
        if isinstance(result, Variant):
            return answer.refusal(result)
        self.circuits[key].settings, self.circuits[key].own = settings, True
        return {"error": None} | self.moved(key, result)

    def play_detach(self, key, _value):
        self.instance.detach(self.circuits.pop(key).number)
        self.permits = {label: permit for label, permit in self.permits.items() if permit.key != key}
        return {}

    def play_prepare(self, _key, value):
        self.setup = value
        self.instance.prepare(setup_record(value))
        return {}

    # --- going over

    def play_save(self, key, value):
        self.snapshots[value] = self.instance.save(self.number(key))
        return answer.snapshot(self.snapshots[value])

    def play_restore(self, _key, value, age_="0s", settings_=None, policy_=None, with_=None):
        if policy_:
            self.policy = policy_
            self.start()
        snapshot = answer.changed(self.snapshots[value], with_ or {})
        own = settings_ is not None
        settings = settings_text(settings_ if own else self.settings)
        return self.attached(snapshot.key, self.instance.restore(snapshot, settings, parse_time(age_)), settings, own)

    def play_restart(self, _key, value, at_=None):
        if value is not True and value != "state":
            raise ValueError(f"a restart is `true` or `state`, and not {text(value)}")
        leaving = [] if value is True else [it for it in self.leaving() if not answer.is_as_new(it[0])]
        self.around.now = self.around.now if at_ is None else parse_time(at_)
        self.permits = {}
        answered = self.take_over(self.policy, self.settings, leaving)
        if answered["error"]:
            raise ValueError(text(answered))
        return {}

    def play_swap(self, _key, value, settings_=None):
        """Lets another policy have every circuit. Where it refuses one, or the settings, nothing has changed."""
        table = {} if settings_ is None else settings_
        keeps_own = value == self.policy
        return self.refused(value, table) or self.take_over(
            value,
            table,
            [
                (saved, settings, True) if own and keeps_own else (saved, settings_text(table), False)
                for saved, settings, own in self.leaving()
            ],
        )

    def play_reconfigure(self, _key, value):
        """Gives other settings to the circuits that have none of their own. Where they are refused, nothing has changed."""
        refused, settings = self.refused(self.policy, value), settings_text(value)
        if refused:
            return refused
        for key, circuit in sorted(self.circuits.items()):
            if circuit.own or circuit.settings == settings:
                continue
            result = self.instance.configure(circuit.number, settings)
            if isinstance(result, Variant) or self.moved(key, result)["transition"]:
                raise ValueError(f"configuring {key!r}: {result}")
            circuit.settings = settings
        self.settings = value
        return {"error": None}

    def refused(self, policy, table):
        """Why settings are refused, or None: an instance of its own is asked."""
        result = self.new_instance(policy).attach("trial", settings_text(table))
        return answer.refusal(result) | {"key": None} if isinstance(result, Variant) else None

    def leaving(self):
        """Snapshot and settings of each circuit, and whether those are its own."""
        return [(self.instance.save(it.number), it.settings, it.own) for _, it in sorted(self.circuits.items())]

    def take_over(self, policy, table, leaving):
        """Goes on with a new instance of a policy that has these circuits, if it takes each of them."""
        instance, taken = self.new_instance(policy), []
        for saved, settings, own in leaving:
            result = instance.restore(saved, settings, 0)
            if isinstance(result, Variant):
                return answer.refusal(result) | {"key": saved.key}
            taken.append((saved.key, result, settings, own))
        self.policy, self.instance, self.settings, self.circuits = policy, instance, table, {}
        for one in taken:
            self.attached(*one)
        return {"error": None}


def setup_record(setup):
    """A setup as a record of the contract."""
    unknown = set(setup) - {"seed", "instrumentation", "namespace"} or set(setup.get("instrumentation", [])) - set(OPTIONS)
    if unknown:
        raise ValueError(f"a setup has no {sorted(unknown)}")
    return SimpleNamespace(
        seed=setup.get("seed", 0),
        instrumentation=set(setup.get("instrumentation", OPTIONS)),
        namespace=setup.get("namespace"),
    )


def settings_text(settings):
    """Settings as the text that a policy reads: an object is written with its names in order, a text is taken as it is."""
    return settings if isinstance(settings, str) else text(settings)
