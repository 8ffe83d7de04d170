"""Holds what came against what must come."""

import json

from answer import parse_time


def text(value):
    """JSON with sorted names, so that equal values have equal texts, and `true` is not 1."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def mismatch(expected, got, path=""):
    """Where `got` lacks something of `expected`, or None.

    An object must have the fields that are expected, and may have more; a list must be of the same length; anything else must be
    equal. `{"from": .., "to": ..}` takes every time between the two, both included.
    """
    if isinstance(expected, dict) and set(expected) == {"from", "to"} and isinstance(got, str):
        if parse_time(expected["from"]) <= parse_time(got) <= parse_time(expected["to"]):
            return None
    elif isinstance(expected, dict) and isinstance(got, dict):
        for name, value in expected.items():
            if name not in got:
                return differs(f"{path}/{name}", value, None) + ": there is no such field"
            wrong = mismatch(value, got[name], f"{path}/{name}")
            if wrong:
                return wrong
        return None
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = enumerate(zip(expected, got))
        return next(filter(None, (mismatch(one, other, f"{path}/{index}") for index, (one, other) in pairs)), None)
    elif text(expected) == text(got):
        return None
    return differs(path or "the answer", expected, got)


def differs(what, expected, got):
    return f"{what}\n      expected {text(expected)}\n      got      {text(got)}"


def wrong_answer(step, answer):
    """Whether the answer is not what the step expects. A step that expects nothing goes well: its call is admitted, nothing is refused."""
    expected = step.get("expect")
    if "expect" in step:
        wrong = mismatch(expected, answer)
        if wrong:
            return wrong

    def expects(field):
        return isinstance(expected, dict) and field in expected

    if "acquire" in step and answer["decision"] != "admit" and not expects("decision"):
        return differs("/decision", "admit", answer["decision"])
    if isinstance(answer, dict) and answer.get("error") is not None and not expects("error"):
        return differs("/error", None, answer)
    return None


def wrong_told(step, told):
    """Where the lines and spans are not exactly those that must come."""
    for name, fits in [("log", line_fits), ("spans", span_fits)]:
        expected, got = step.get(name, []), told[name]
        if len(expected) != len(got) or not all(map(fits, expected, got)):
            return differs(name, expected, got)
    return None


def line_fits(expected, got):
    """A line that ends in `*` stands for every line that begins as it does."""
    expected = {"line": expected} if isinstance(expected, str) else expected
    line = expected["line"]
    same = got["line"].startswith(line[:-1]) if line.endswith("*") else got["line"] == line
    return same and fits(expected, got, ["fields"])


def span_fits(expected, got):
    expected = {"name": expected} if isinstance(expected, str) else expected
    return expected["name"] == got["name"] and fits(expected, got, ["at", "attributes"])


def fits(expected, got, names):
    return all(expected.get(name) is None or text(expected[name]) == text(got[name]) for name in names)
