// The contract in JavaScript: opens after so many failures in a row, waits, and lets one probe decide.
//
// The host calls one function at a time, and each answers at once. Times are BigInts of nanoseconds. What is thrown as a plain
// object is the refusal of an `attach`; an Error is a fault, and ends the instance.

import { now } from 'wasi:clocks/monotonic-clock@0.2.12';
import { now as wallClock } from 'wasi:clocks/wall-clock@0.2.12';
import { log } from 'tripwit:breaker/log@0.1.0';
import { exportSpan } from 'tripwit:breaker/spans@0.1.0';

const SECOND = 1_000_000_000n;
const LATEST = 2n ** 64n - 1n;
const MOST = 2 ** 32 - 1;
/** A probe that has not reported for this long is lost. */
const PROBE_TIMEOUT = 60n * SECOND;
const MAX_KEY = 512;
const MAX_SETTINGS = 64 * 1024;
const MAX_CIRCUITS = 100_000;

const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    failure_threshold: {
      type: 'integer', minimum: 1, maximum: 1_000_000, default: 5,
      description: 'The circuit opens when at least this many calls in a row have failed.',
    },
    open_seconds: {
      type: 'integer', minimum: 1, maximum: 86_400, default: 30,
      description: 'How long the circuit stays open before a call goes through as a probe, in seconds.',
    },
  },
  additionalProperties: false,
};

const setup = { namespace: 'tripwit', instrumentation: { requestInformation: true, circuitBreaker: true, other: true } };
const circuits = new Map();
const numbersByKey = new Map();
let lastCircuit = 0;
let lastNumber = 0n;

// --- settings ---------------------------------------------------------------------------------------------

function refuse(field, problem) {
  throw { tag: 'settings', val: { field, problem } };
}

function read(text) {
  if (text.length > MAX_SETTINGS) refuse('', `longer than ${MAX_SETTINGS} characters`);
  let given;
  try {
    given = JSON.parse(text);
  } catch (error) {
    refuse('', `not JSON: ${error.message}`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) refuse('', 'not a JSON object');
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(SCHEMA.properties, name)) {
      const pointer = name.replaceAll('~', '~0').replaceAll('/', '~1');
      refuse(`/${pointer}`, `no such setting; there are ${Object.keys(SCHEMA.properties).join(', ')}`);
    }
  }
  const value = (name) => {
    const { minimum, maximum, default: usual } = SCHEMA.properties[name];
    const value = Object.hasOwn(given, name) ? given[name] : usual;
    if (!Number.isInteger(value) || value < minimum || value > maximum) {
      refuse(`/${name}`, `not a whole number from ${minimum} to ${maximum}`);
    }
    return value;
  };
  return { text, failureThreshold: value('failure_threshold'), wait: BigInt(value('open_seconds')) * SECOND };
}

function same(one, other) {
  return one.failureThreshold === other.failureThreshold && one.wait === other.wait;
}

function checkKey(key) {
  // No text has fewer bytes than characters, and a very long one is not worth counting.
  if (key.length > MAX_KEY) throw { tag: 'key', val: `a key has at most ${MAX_KEY} bytes, this one has more` };
  let bytes = 0;
  for (const character of key) {
    const code = character.codePointAt(0);
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  if (bytes === 0) throw { tag: 'key', val: 'a key must not be empty' };
  if (bytes > MAX_KEY) throw { tag: 'key', val: `a key has at most ${MAX_KEY} bytes, this one has ${bytes}` };
}

// --- states -----------------------------------------------------------------------------------------------

const closed = (failures = 0, timeouts = 0) => ({ name: 'closed', failures, timeouts });
const open = (until, reopenings) => ({ name: 'open', until, reopenings });
const halfOpen = (reopenings) => ({ name: 'half-open', probe: undefined, reopenings });

const later = (instant, by) => (instant + by < LATEST ? instant + by : LATEST);
const until = (instant, at) => (instant > at ? instant - at : 0n);

function probeUnderWay({ state, latest }) {
  return state.name === 'half-open' && state.probe !== undefined && state.probe.deadline > latest;
}

function standsStill({ mode }) {
  return mode === 'forced-open' || mode === 'disabled';
}

/** The circuit of a number as it is at this moment, for those who look. A clock that steps back shows its largest reading. */
function seen(number) {
  const circuit = circuits.get(number);
  if (circuit === undefined) throw new Error('no such circuit');
  const reading = now();
  return { ...circuit, latest: reading > circuit.latest ? reading : circuit.latest };
}

/** The circuit of a number, to which something happens at this moment. */
function touched(number) {
  return Object.assign(circuits.get(number) ?? {}, seen(number));
}

function newNumber() {
  lastNumber += 1n;
  return lastNumber;
}

// --- moves ------------------------------------------------------------------------------------------------

function timestamp() {
  const { seconds, nanoseconds } = wallClock();
  return seconds * SECOND + BigInt(nanoseconds);
}

const text = (name, value) => ({ name, value: { tag: 'text', val: value } });

/** Changes the state, begins a new generation and tells of both. */
function move(circuit, state, operation, cause, wait) {
  const { key, state: before } = circuit;
  const at = timestamp();
  Object.assign(circuit, { state, since: at, generation: newNumber() });
  const seconds = `${Number(wait ?? 0n) / 1e9}s`;
  const [level, line] = {
    'trip': ['warn', `Circuit breaker tripped for topic ${key}; rejecting calls for ${seconds}`],
    're-trip': ['debug', `Circuit breaker re-tripped for topic ${key}; rejecting calls for ${seconds}`],
    'half-open': ['debug', `Circuit breaker half-open for topic ${key}; probing`],
    'reset': ['info', `Circuit breaker reset for topic ${key}; calls admitted`],
  }[operation];
  log(level, line, wait === undefined ? [text('topic', key)] : [text('topic', key), text('wait', seconds)]);
  const { requestInformation, circuitBreaker, other } = setup.instrumentation;
  const name = operation.replace('-', '_');
  const attributes = [];
  if (requestInformation || circuitBreaker || other) attributes.push(text('instrumentation.domain', 'circuit_breaker'));
  if (requestInformation) attributes.push(text(`${setup.namespace}.operation`, name));
  if (circuitBreaker) attributes.push(text('circuit_breaker.topic', key));
  exportSpan({ name: `${key} ${name}`, start: at, end: at, attributes });
  return { operation, cause, before: before.name, after: state.name, at, wait, cooldownCount: undefined };
}

function toOpen(circuit, cause, wait = circuit.settings.wait) {
  const { state, latest } = circuit;
  const operation = state.name === 'closed' ? 'trip' : 're-trip';
  return move(circuit, open(later(latest, wait), Math.min((state.reopenings ?? 0) + 1, MOST)), operation, cause, wait);
}

// --- answers ----------------------------------------------------------------------------------------------

function lease(circuit) {
  const { mode, generation, state, latest } = circuit;
  const said = (standing, until, successes = { tag: 'never' }) => ({
    mode, generation, state: state.name, standing, until, successes, slowAfter: undefined, callTimeout: undefined,
  });
  const reject = (reason) => ({ tag: 'reject', val: reason });
  if (mode === 'forced-open') return said(reject('forced-open'));
  if (mode === 'disabled') return said({ tag: 'pass' });
  switch (state.name) {
    case 'closed':
      // A success matters only where it ends a row of failures.
      return said({ tag: 'admit', val: generation }, undefined, { tag: state.failures === 0 ? 'never' : 'each' });
    case 'open':
      return latest < state.until ? said(reject('open'), state.until) : said({ tag: 'ask' });
    default:
      return probeUnderWay(circuit)
        ? said(reject('probe-limit'), state.probe.deadline, { tag: 'each' })
        : said({ tag: 'ask' }, undefined, { tag: 'each' });
  }
}

const moved = (circuit, transition) => ({ lease: lease(circuit), transition });

function counts(circuit) {
  const { failures = 0, timeouts = 0 } = circuit.state;
  const probesInFlight = probeUnderWay(circuit) ? 1 : 0;
  return { successes: 0, failures, timeouts, slow: 0, consecutiveSuccesses: 0, consecutiveFailures: failures, probesInFlight };
}

function retryAfter({ state, latest }) {
  return state.name === 'open' ? until(state.until, latest) : undefined;
}

function add(circuit) {
  let number = numbersByKey.get(circuit.key);
  if (number === undefined) {
    if (circuits.size >= MAX_CIRCUITS) throw { tag: 'full', val: MAX_CIRCUITS };
    number = lastCircuit += 1;
    numbersByKey.set(circuit.key, number);
  }
  circuits.set(number, circuit);
  return { circuit: number, lease: lease(circuit) };
}

/** What is wrong with a snapshot whose parts do not fit together. */
function senseless({ state, retryAfter, cooldownCount, reopenings, counts, detail, detailFormat }) {
  if (state === 'closed' && (retryAfter !== undefined || cooldownCount !== undefined)) return 'closed, and yet it waits';
  if (state === 'closed' && reopenings > 0) return 'closed, and yet it counts re-openings';
  if (state === 'half-open' && cooldownCount !== undefined) return 'half-open, and yet it counts cool-down cycles';
  if (counts.timeouts > counts.failures) return 'more time-outs than failures';
  if (detail.length > 0 && detailFormat === '') return 'a detail without a format';
  return undefined;
}

function adopted({ state, retryAfter, reopenings, counts }, age, settings, latest) {
  switch (state) {
    case 'closed': {
      const failures = Math.min(counts.consecutiveFailures, settings.failureThreshold - 1);
      return closed(failures, Math.min(counts.timeouts, failures));
    }
    case 'open': {
      const left = retryAfter === undefined ? settings.wait : until(retryAfter, age);
      return open(later(latest, left), Math.max(reopenings, 1));
    }
    default:
      return halfOpen(Math.max(reopenings, 1));
  }
}

/** Records a call that ended while closed. */
function record(circuit, outcome) {
  const { state, settings } = circuit;
  if (outcome === 'success') Object.assign(state, closed());
  if (outcome === 'failure' || outcome === 'timeout') {
    state.failures = Math.min(state.failures + 1, MOST);
    state.timeouts = Math.min(state.timeouts + (outcome === 'timeout' ? 1 : 0), MOST);
    if (state.failures >= settings.failureThreshold) return toOpen(circuit, 'policy');
  }
  return undefined;
}

/** Whether the report counts, and the move that it makes. */
function settled(circuit, ticket, outcome) {
  const { state } = circuit;
  if (standsStill(circuit)) return [false, undefined];
  if (state.name === 'closed') return ticket === circuit.generation ? [true, record(circuit, outcome)] : [false, undefined];
  if (!probeUnderWay(circuit) || state.probe.ticket !== ticket) return [false, undefined];
  state.probe = undefined;
  if (outcome === 'ignored') return [true, undefined];
  return [true, outcome === 'success' ? move(circuit, closed(), 'reset', 'policy') : toOpen(circuit, 'policy')];
}

// --- the contract -----------------------------------------------------------------------------------------

export const policy = {
  describe: () => ({
    name: 'consecutive-js',
    version: '0.1.0',
    summary: 'Opens after so many failures in a row, and closes after one successful probe.',
    settingsSchema: JSON.stringify(SCHEMA),
    extra: [text('namespace', 'tripwit'), text('instrumentation_scope', 'tripwit')],
  }),

  prepare({ instrumentation, namespace }) {
    Object.assign(setup, { instrumentation, namespace: namespace ?? 'tripwit' });
  },

  attach(key, written) {
    checkKey(key);
    const settings = read(written);
    const number = numbersByKey.get(key);
    if (number !== undefined) {
      const circuit = seen(number);
      if (!same(circuit.settings, settings)) throw { tag: 'conflict' };
      return { circuit: number, lease: lease(circuit) };
    }
    return add({ key, settings, mode: 'automatic', generation: newNumber(), latest: now(), state: closed(), since: timestamp() });
  },

  configure(number, written) {
    const circuit = touched(number);
    const settings = read(written);
    const { state } = circuit;
    if (state.name === 'closed') {
      const failures = Math.min(state.failures, settings.failureThreshold - 1);
      Object.assign(state, closed(failures, Math.min(state.timeouts, failures)));
    } else {
      state.probe = undefined;
    }
    Object.assign(circuit, { settings, generation: newNumber() });
    return moved(circuit);
  },

  detach(number) {
    numbersByKey.delete(touched(number).key);
    circuits.delete(number);
  },

  acquire(number) {
    const circuit = touched(number);
    const { mode, state, latest } = circuit;
    const answer = (decision, transition) => ({ decision, lease: lease(circuit), transition });
    const reject = (reason, retryAfter) => answer({ tag: 'reject', val: { reason, retryAfter } });
    if (mode === 'forced-open') return reject('forced-open');
    if (mode === 'disabled') return answer({ tag: 'pass' });
    if (state.name === 'closed') return answer({ tag: 'admit', val: circuit.generation });
    if (state.name === 'open' && latest < state.until) return reject('open', until(state.until, latest));
    if (probeUnderWay(circuit)) return reject('probe-limit', until(state.probe.deadline, latest));
    const transition = state.name === 'open' ? move(circuit, halfOpen(state.reopenings), 'half-open', 'policy') : undefined;
    const ticket = newNumber();
    circuit.state.probe = { ticket, deadline: later(latest, PROBE_TIMEOUT) };
    return answer({ tag: 'admit', val: ticket }, transition);
  },

  settle(number, ticket, { outcome, cause }) {
    const circuit = touched(number);
    const [counted, transition] = settled(circuit, ticket, outcome);
    if (counted && (outcome === 'failure' || outcome === 'timeout')) {
      Object.assign(circuit, { lastFailure: transition?.at ?? timestamp(), lastCause: cause });
    }
    return { counted, lease: lease(circuit), transition };
  },

  settleSuccesses(number, ticket, count) {
    const circuit = touched(number);
    return moved(circuit, count > 0 ? settled(circuit, ticket, 'success')[1] : undefined);
  },

  leaseOf: (number) => lease(seen(number)),

  trip(number, wait) {
    const circuit = touched(number);
    if (circuit.state.name !== 'open') return moved(circuit, toOpen(circuit, 'operator', wait));
    const end = later(circuit.latest, wait ?? circuit.settings.wait);
    if (end > circuit.state.until) circuit.state.until = end;
    return moved(circuit);
  },

  reset(number) {
    const circuit = touched(number);
    Object.assign(circuit, { lastFailure: undefined, lastCause: undefined });
    if (circuit.state.name !== 'closed') return moved(circuit, move(circuit, closed(), 'reset', 'operator'));
    Object.assign(circuit, { state: closed(), generation: newNumber() });
    return moved(circuit);
  },

  setMode(number, mode) {
    const circuit = touched(number);
    if (mode === circuit.mode) return moved(circuit);
    if (circuit.state.name === 'closed') circuit.state = closed();
    if (circuit.state.name === 'half-open') circuit.state.probe = undefined;
    Object.assign(circuit, { mode, generation: newNumber() });
    log('info', `Circuit breaker mode of topic ${circuit.key} set to ${mode}`, [text('topic', circuit.key), text('mode', mode)]);
    return moved(circuit);
  },

  coolDown: () => [],

  inspect(number) {
    const circuit = seen(number);
    const { key, state, mode, since, lastFailure, lastCause } = circuit;
    return {
      key, state: state.name, mode, since, retryAfter: retryAfter(circuit), cooldownCount: undefined, counts: counts(circuit),
      lastFailure, lastCause, extra: [],
    };
  },

  tripped: () => [...circuits.values()].filter(({ state }) => state.name !== 'closed').map(({ key }) => key),

  save(number) {
    const circuit = seen(number);
    const { key, settings, state, mode, since, lastFailure, lastCause } = circuit;
    return {
      key, settings: settings.text, state: state.name, mode, since, retryAfter: retryAfter(circuit), cooldownCount: undefined,
      reopenings: state.reopenings ?? 0, counts: { ...counts(circuit), probesInFlight: 0 }, lastFailure, lastCause,
      detail: new Uint8Array(), detailFormat: '',
    };
  },

  restore(snapshot, written, age) {
    const { key, mode, since, lastFailure, lastCause } = snapshot;
    checkKey(key);
    const settings = read(written);
    const problem = senseless(snapshot);
    if (problem !== undefined) throw { tag: 'snapshot', val: problem };
    const latest = now();
    const state = adopted(snapshot, age, settings, latest);
    return add({ key, settings, mode, generation: newNumber(), latest, state, since, lastFailure, lastCause });
  },
};
