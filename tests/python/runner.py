"""Plays the scenarios of tests/conformance on components in Python: runner.py SCENARIOS COMPONENTS [TRANSCRIPT]

SCENARIOS is the folder of the files, COMPONENTS that of the components. TRANSCRIPT is a file to be written: everything that
was answered and told, a line for each scenario. The exit code is 0 where everything held.
"""

import json
import platform
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/python"))

from driver import Driver
from expect import text, wrong_answer, wrong_told
from policy import Policy


def play(policies, policy, scenario):
    """What came of each step until the first that did not end as it must, and what was wrong with that."""
    played, at = [], "the start"
    try:
        driver = Driver(policies, policy, scenario)
        for number, step in enumerate(scenario["steps"], 1):
            at = f"step {number} {text(step)}"
            answer = driver.play(step)
            told = driver.around.take_told()
            played.append({"answer": answer, "told": told})
            wrong = wrong_answer(step, answer) or wrong_told(step, told)
            if wrong:
                return played, f"{at}: {wrong}"
    except Exception as error:
        return played, f"{at}: {type(error).__name__}: {error}"
    return played, None


def read(file):
    """A file's policy and its scenarios."""
    try:
        contents = json.loads(file.read_text(encoding="utf-8"))
        for scenario in contents["scenarios"]:
            scenario["name"], scenario["steps"][0]
        return contents["policy"], contents["scenarios"]
    except Exception as error:
        sys.exit(f"{file.name} is no file of scenarios: {type(error).__name__}: {error}")


def main(scenarios, components, transcript=None):
    @cache
    def policies(name):
        return Policy(Path(components) / f"{name}.wasm")

    files = sorted(Path(scenarios).glob("*.json"))
    total, steps, failures, lines = 0, 0, [], []
    for file in files:
        policy, contained = read(file)
        for scenario in contained:
            total += 1
            steps += len(scenario["steps"])
            played, failure = play(policies, policy, scenario)
            lines.append(text({"file": file.name, "scenario": scenario["name"], "played": played}) + "\n")
            if failure:
                failures.append(f"{file.name}: {scenario['name']}\n    {failure}")
    if transcript:
        Path(transcript).write_text("".join(lines), encoding="utf-8")
    subject = f"Python {platform.python_version()}, wasmtime {version('wasmtime')}"
    print(f"{subject}: {total} scenarios of {len(files)} files played ({steps} steps); {total - len(failures)} held, {len(failures)} did not")
    print("".join(f"  {failure}\n" for failure in failures), end="")
    return 0 if total and not failures else 1


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
