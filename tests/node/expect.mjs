// Holds what came against what must come.
import { isObject, parseTime, text } from './text.mjs';

/**
 * Where `got` lacks something of `expected`, or undefined.
 *
 * An object must have the fields that are expected, and may have more; a list must be of the same length; anything else must be
 * equal. `{"from": .., "to": ..}` takes every time between the two, both included.
 */
function mismatch(expected, got, path = '') {
  if (isRange(expected) && typeof got === 'string') {
    const at = parseTime(got);
    if (parseTime(expected.from) <= at && at <= parseTime(expected.to)) return undefined;
  } else if (isObject(expected) && isObject(got)) {
    for (const [name, value] of Object.entries(expected)) {
      if (!(name in got)) return `${differs(`${path}/${name}`, value, null)}: there is no such field`;
      const wrong = mismatch(value, got[name], `${path}/${name}`);
      if (wrong) return wrong;
    }
    return undefined;
  } else if (Array.isArray(expected) && Array.isArray(got) && expected.length === got.length) {
    return expected.map((one, index) => mismatch(one, got[index], `${path}/${index}`)).find(Boolean);
  } else if (text(expected) === text(got)) {
    return undefined;
  }
  return differs(path || 'the answer', expected, got);
}

const isRange = (value) => isObject(value) && Object.keys(value).sort().join() === 'from,to';

const differs = (what, expected, got) => `${what}\n      expected ${text(expected)}\n      got      ${text(got)}`;

/** Whether the answer is not what the step expects. A step that expects nothing goes well: its call is admitted, nothing is refused. */
export function wrongAnswer(step, answer) {
  const wrong = 'expect' in step ? mismatch(step.expect, answer) : undefined;
  if (wrong) return wrong;
  const expects = (field) => isObject(step.expect) && field in step.expect;
  if ('acquire' in step && answer.decision !== 'admit' && !expects('decision')) {
    return differs('/decision', 'admit', answer.decision);
  }
  if ((answer.error ?? null) !== null && !expects('error')) return differs('/error', null, answer);
  return undefined;
}

/** Where the lines and spans are not exactly those that must come. */
export function wrongTold(step, told) {
  for (const [name, fits] of [['log', lineFits], ['spans', spanFits]]) {
    const expected = step[name] ?? [];
    const got = told[name];
    if (expected.length !== got.length || !expected.every((one, index) => fits(one, got[index]))) {
      return differs(name, expected, got);
    }
  }
  return undefined;
}

/** A line that ends in `*` stands for every line that begins as it does. */
function lineFits(expected, got) {
  const { line, fields } = typeof expected === 'string' ? { line: expected } : expected;
  const same = line.endsWith('*') ? got.line.startsWith(line.slice(0, -1)) : got.line === line;
  return same && (fields === undefined || text(fields) === text(got.fields));
}

function spanFits(expected, got) {
  const { name, at, attributes } = typeof expected === 'string' ? { name: expected } : expected;
  const same = name === got.name && (at === undefined || at === got.at);
  return same && (attributes === undefined || text(attributes) === text(got.attributes));
}
