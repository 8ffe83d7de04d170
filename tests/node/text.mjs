// JSON and times, to the last digit.
import { isLosslessNumber, parse as parseLossless, stringify } from 'lossless-json';

/** Reads JSON. Numbers stay as they are written. */
export const parse = (json) => parseLossless(json);

/** JSON with sorted names, so that equal values have equal texts. */
export const text = (value) => stringify(sorted(value));

/** The order of texts by their bytes. */
export const byBytes = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));

export const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value);

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const names = Object.keys(value).sort(byBytes);
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
}

const UNITS = [['h', 3_600_000_000_000n], ['m', 60_000_000_000n], ['s', 1_000_000_000n], ['ms', 1_000_000n], ['us', 1_000n], ['ns', 1n]];
export const LARGEST = 2n ** 64n - 1n;
const TIME = new RegExp(`^${UNITS.map(([unit]) => `(?:([0-9]+)${unit})?`).join('')}$`);

/** A time in nanoseconds. Units come once each, from the largest. */
export function parseTime(of) {
  const parts = typeof of === 'string' && of !== '' && TIME.exec(of);
  if (!parts) throw new Error(`${text(of)} is no time`);
  const total = UNITS.reduce((sum, [, size], index) => sum + BigInt(parts[index + 1] ?? 0) * size, 0n);
  if (total > LARGEST) throw new Error(`${text(of)} is longer than 584 years`);
  return total;
}

/** A time as a text in the largest units that need no fractions; null where there is none. */
export function time(nanoseconds) {
  if (nanoseconds === undefined) return null;
  let rest = nanoseconds;
  let made = '';
  for (const [unit, size] of UNITS) {
    if (rest >= size) made += `${rest / size}${unit}`;
    rest %= size;
  }
  return made || '0s';
}
