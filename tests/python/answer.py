"""Answers in the words of tests/conformance/README.md: every field is there, null where it has no value, and times are texts."""

import json
import re

UNITS = [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)]
LARGEST = 2**64 - 1


def parse_time(text):
    """A time in nanoseconds. Units come once each, from the largest."""
    parts = re.fullmatch("".join(f"(?:([0-9]+){unit})?" for unit, _ in UNITS), text) if isinstance(text, str) else None
    if not parts or not text:
        raise ValueError(f"{text!r} is no time")
    total = sum(int(many or 0) * size for many, (_, size) in zip(parts.groups(), UNITS))
    if total > LARGEST:
        raise ValueError(f"{text!r} is longer than 584 years")
    return total


def time(nanoseconds):
    """A time as a text in the largest units that need no fractions; None for None."""
    if nanoseconds is None:
        return None
    text = ""
    for unit, size in UNITS:
        many, nanoseconds = divmod(nanoseconds, size)
        text += f"{many}{unit}" if many else ""
    return text or "0s"


def fields(named):
    """Named values as an object. A name that comes twice, which the contract forbids, shows."""
    made = {}
    for field in named:
        if field.name in made:
            made[f"{field.name} (before)"] = made[field.name]
        made[field.name] = field.value
    return made


def line(level, message, named):
    return {"line": f"{level.upper()} {message}", "fields": fields(named)}


def span(told):
    at = time(told.start) if told.start == told.end else f"{time(told.start)} to {time(told.end)}"
    return {"name": told.name, "at": at, "attributes": fields(told.attributes)}


def transition(moved):
    return moved and {
        "operation": moved.operation.replace("-", "_"),
        "cause": moved.cause,
        "before": moved.before,
        "after": moved.after,
        "at": time(moved.at),
        "wait": time(moved.wait),
        "cooldown_count": moved.cooldown_count,
    }


def admission(answer):
    kind, rejection = decision(answer.decision)
    return {
        "decision": kind,
        "reason": rejection and rejection.reason,
        "retry_after": rejection and time(rejection.retry_after),
        "transition": transition(answer.transition),
    }


def decision(value):
    """The case of a decision, which wasmtime hands out bare, and its rejection if it is one."""
    if value is None:
        return "pass", None
    return ("admit", None) if isinstance(value, int) else ("reject", value)


def status(of):
    return {
        "key": of.key,
        "state": of.state,
        "mode": of.mode,
        "since": time(of.since),
        "retry_after": time(of.retry_after),
        "cooldown_count": of.cooldown_count,
        "counts": vars(of.counts),
        "last_failure": time(of.last_failure),
        "last_cause": of.last_cause,
        "extra": fields(of.extra),
    }


def lease(of, generation):
    standing, successes = of.standing, of.successes
    allowance = successes.payload and {"successes": successes.payload.successes, "before": time(successes.payload.before)}
    return {
        "mode": of.mode,
        "generation": generation,
        "state": of.state,
        "standing": standing.tag,
        "reason": standing.payload if standing.tag == "reject" else None,
        "until": time(of.until),
        "successes": successes.tag,
        "allowance": allowance,
        "slow_after": time(of.slow_after),
        "call_timeout": time(of.call_timeout),
    }


def refusal(error):
    """Why something was not attached, changed or taken over: a Variant."""
    field, problem = None, error.payload
    if error.tag == "settings":
        field, problem = problem.field, problem.problem
    return {"error": error.tag, "field": field, "problem": None if problem is None else str(problem)}


def description(of):
    return {
        "name": of.name,
        "version": of.version,
        "summary": of.summary,
        "settings_schema": json.loads(of.settings_schema),
        "extra": fields(of.extra),
    }


def is_as_new(saved):
    """Whether a circuit is what it would be without its snapshot: a host need not keep such a circuit over a restart."""
    nothing = saved.last_failure is None and not any(vars(saved.counts).values())
    return nothing and (saved.state, saved.mode) == ("closed", "automatic")


TIMES = ["since", "retry_after", "last_failure"]


def snapshot(saved):
    return vars(saved) | {name: time(getattr(saved, name)) for name in TIMES} | {
        "counts": dict(vars(saved.counts)),
        "detail": list(saved.detail),
    }


def changed(saved, changes):
    """A snapshot with some of its fields changed, as a record of the contract."""
    whole = snapshot(saved)
    merge(whole, changes)
    for name in TIMES:
        whole[name] = None if whole[name] is None else parse_time(whole[name])
    whole["detail"] = bytes(whole["detail"])
    whole["counts"] = type(saved)(**whole["counts"])
    return type(saved)(**whole)


def merge(into, changes):
    for name, value in changes.items():
        if name not in into:
            raise ValueError(f"a snapshot has no field {name!r}")
        if isinstance(value, dict) and isinstance(into[name], dict):
            merge(into[name], value)
        else:
            into[name] = value
