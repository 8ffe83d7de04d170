// Answers in the words of tests/conformance/README.md: every field is there, null where it has no value, and times are texts.
import { LosslessNumber } from 'lossless-json';
import { isObject, parse, parseTime, time } from './text.mjs';

/** Named values as an object. A name that comes twice, which the contract forbids, shows. */
export function fields(named) {
  const made = {};
  for (const { name, value } of named) {
    if (name in made) made[`${name} (before)`] = made[name];
    // A number that is whole is told from an integer by its point.
    const whole = value.tag === 'number' && Number.isInteger(value.val);
    made[name] = whole ? new LosslessNumber(value.val.toFixed(1)) : value.val;
  }
  return made;
}

export const line = (level, message, named) => ({ line: `${level.toUpperCase()} ${message}`, fields: fields(named) });

export function span({ name, start, end, attributes }) {
  const at = start === end ? time(start) : `${time(start)} to ${time(end)}`;
  return { name, at, attributes: fields(attributes) };
}

export const transition = (moved) =>
  moved === undefined
    ? null
    : {
        operation: moved.operation.replace('-', '_'),
        cause: moved.cause,
        before: moved.before,
        after: moved.after,
        at: time(moved.at),
        wait: time(moved.wait),
        cooldown_count: moved.cooldownCount ?? null,
      };

export function admission({ decision, transition: moved }) {
  const rejection = decision.tag === 'reject' ? decision.val : undefined;
  return {
    decision: decision.tag,
    reason: rejection?.reason ?? null,
    retry_after: time(rejection?.retryAfter),
    transition: transition(moved),
  };
}

const counts = (of) => ({
  successes: of.successes,
  failures: of.failures,
  timeouts: of.timeouts,
  slow: of.slow,
  consecutive_successes: of.consecutiveSuccesses,
  consecutive_failures: of.consecutiveFailures,
  probes_in_flight: of.probesInFlight,
});

export const status = (of) => ({
  key: of.key,
  state: of.state,
  mode: of.mode,
  since: time(of.since),
  retry_after: time(of.retryAfter),
  cooldown_count: of.cooldownCount ?? null,
  counts: counts(of.counts),
  last_failure: time(of.lastFailure),
  last_cause: of.lastCause ?? null,
  extra: fields(of.extra),
});

export function lease(of, generation) {
  const { standing, successes } = of;
  const allowance = successes.tag === 'up-to' ? successes.val : undefined;
  return {
    mode: of.mode,
    generation,
    state: of.state,
    standing: standing.tag,
    reason: standing.tag === 'reject' ? standing.val : null,
    until: time(of.until),
    successes: successes.tag,
    allowance: allowance === undefined ? null : { successes: allowance.successes, before: time(allowance.before) },
    slow_after: time(of.slowAfter),
    call_timeout: time(of.callTimeout),
  };
}

/** Why something was not attached, changed or taken over. */
export function refusal({ tag, val }) {
  const { field = null, problem = val === undefined ? null : String(val) } = tag === 'settings' ? val : {};
  return { error: tag, field, problem };
}

export const description = (of) => ({
  name: of.name,
  version: of.version,
  summary: of.summary,
  settings_schema: parse(of.settingsSchema),
  extra: fields(of.extra),
});

export const snapshot = (of) => ({
  key: of.key,
  settings: of.settings,
  state: of.state,
  mode: of.mode,
  since: time(of.since),
  retry_after: time(of.retryAfter),
  cooldown_count: of.cooldownCount ?? null,
  reopenings: of.reopenings,
  counts: counts(of.counts),
  last_failure: time(of.lastFailure),
  last_cause: of.lastCause ?? null,
  detail: [...of.detail],
  detail_format: of.detailFormat,
});

/** Whether a circuit is what it would be without its snapshot: a host need not keep such a circuit over a restart. */
export function isAsNew({ state, mode, counts: counted, lastFailure }) {
  const nothing = lastFailure === undefined && Object.values(counted).every((count) => count === 0);
  return nothing && state === 'closed' && mode === 'automatic';
}

/** A snapshot with some of its fields changed, as a record of the contract. */
export function changed(saved, changes) {
  const whole = snapshot(saved);
  merge(whole, changes);
  const point = (of) => (of === null ? undefined : parseTime(of));
  const number = (of) => (of === null ? undefined : Number(of));
  const { counts: counted } = whole;
  return {
    key: whole.key,
    settings: whole.settings,
    state: whole.state,
    mode: whole.mode,
    since: parseTime(whole.since),
    retryAfter: point(whole.retry_after),
    cooldownCount: number(whole.cooldown_count),
    reopenings: Number(whole.reopenings),
    counts: {
      successes: Number(counted.successes),
      failures: Number(counted.failures),
      timeouts: Number(counted.timeouts),
      slow: Number(counted.slow),
      consecutiveSuccesses: Number(counted.consecutive_successes),
      consecutiveFailures: Number(counted.consecutive_failures),
      probesInFlight: Number(counted.probes_in_flight),
    },
    lastFailure: point(whole.last_failure),
    lastCause: whole.last_cause ?? undefined,
    detail: Uint8Array.from(whole.detail, Number),
    detailFormat: whole.detail_format,
  };
}

function merge(into, changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (!(name in into)) throw new Error(`a snapshot has no field ${name}`);
    if (isObject(into[name]) && isObject(value)) merge(into[name], value);
    else into[name] = value;
  }
}
