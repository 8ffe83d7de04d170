// Plays steps on an instance as a host would that asks about each call and keeps nothing back.
import * as answers from './answer.mjs';
import { byBytes, LARGEST, parseTime, text } from './text.mjs';

/** What the imports reach: two clocks that are set by hand, and a list of what was told. */
class Surroundings {
  now = parseTime('1h');
  date = parseTime('1000h');
  told = { log: [], spans: [] };

  monotonic = () => this.now;
  wall = () => this.date;
  log = (...told) => this.told.log.push(answers.line(...told));
  span = (told) => this.told.spans.push(answers.span(told));

  takeTold() {
    const { told } = this;
    this.told = { log: [], spans: [] };
    return told;
  }
}

// What each verb may have beside it.
const ARGUMENTS = {
  wait: [], clock: [], wall: [], acquire: [], settle: ['outcome', 'retry_after', 'cause'], call: ['retry_after', 'cause', 'times'],
  trip: [], reset: [], mode: [], cool_down: [], tripped: [], inspect: [], available: [], describe: [], attach: [], restart: ['at'],
  lease: [], settle_successes: ['count'], configure: [], detach: [], prepare: [], save: [],
  restore: ['age', 'settings', 'policy', 'with'], swap: ['settings'], reconfigure: [],
};
const OPTIONS = { 'request-information': 'requestInformation', 'circuit-breaker': 'circuitBreaker', other: 'other' };

/** One scenario. `policies` makes instances by the policy's name. */
export class Driver {
  around = new Surroundings();
  snapshots = new Map();

  constructor(policies, policy, { settings = {}, setup = {} }) {
    Object.assign(this, { policies, policy, settings, setup });
  }

  /** Goes on with a new instance, in which nothing is attached and no permit of before means anything. */
  async start() {
    this.instance = await this.newInstance(this.policy);
    this.circuits = new Map();
    this.permits = new Map();
  }

  async newInstance(policy) {
    const instance = (await this.policies(policy))(this.around);
    instance.prepare(setupRecord(this.setup));
    return instance;
  }

  /** Does what a step says, and answers in the words of the format. */
  play(step) {
    const { key = 'orders', expect: _expect, log: _log, spans: _spans, ...all } = step;
    const verbs = Object.keys(all).filter((name) => Object.hasOwn(ARGUMENTS, name));
    if (verbs.length !== 1) {
      throw new Error(`a step has exactly one verb, and this has [${verbs}]; its fields are [${Object.keys(all)}]`);
    }
    const { [verbs[0]]: value, ...step_arguments } = all;
    const unknown = Object.keys(step_arguments).filter((name) => !ARGUMENTS[verbs[0]].includes(name));
    if (unknown.length > 0) throw new Error(`${verbs[0]} has no arguments [${unknown}]`);
    return this[`play_${verbs[0]}`](key, value, step_arguments);
  }

  // --- clocks

  play_wait(_key, value) {
    const moved = (hand) => (hand + parseTime(value) > LARGEST ? LARGEST : hand + parseTime(value));
    this.around.now = moved(this.around.now);
    this.around.date = moved(this.around.date);
    return {};
  }

  play_clock(_key, value) {
    this.around.now = parseTime(value);
    return {};
  }

  play_wall(_key, value) {
    this.around.date = parseTime(value);
    return {};
  }

  // --- calls

  play_acquire(key, label) {
    const { answer, permit } = this.acquire(key);
    if (permit) this.permits.set(label, permit);
    return answer;
  }

  play_settle(_key, label, { outcome, ...details }) {
    return this.settle(this.permit(label), outcome, details);
  }

  play_call(key, outcome, { times = 1, ...details }) {
    for (let place = 1; place < Number(times); place += 1) {
      const answer = this.call(key, outcome, details);
      if (answer.transition !== null) throw new Error(`call ${place} already answers ${text(answer)}`);
    }
    return this.call(key, outcome, details);
  }

  call(key, outcome, details) {
    const { answer, permit } = this.acquire(key);
    if (!permit) throw new Error(`the call was not admitted: ${text(answer)}`);
    return this.settle(permit, outcome, details);
  }

  acquire(key) {
    const circuit = this.number(key);
    const started = this.around.now;
    const admission = this.instance.acquire(circuit);
    const { decision, lease } = admission;
    this.heed(key, lease);
    const answer = answers.admission(admission);
    if (decision.tag !== 'admit') return { answer };
    const { callTimeout, slowAfter } = lease;
    const measured = callTimeout !== undefined || slowAfter !== undefined;
    return { answer, permit: { key, circuit, ticket: decision.val, started, callTimeout, measured, instance: this.instance } };
  }

  settle({ key, circuit, ticket, started, callTimeout, measured, instance }, outcome, { retry_after, cause }) {
    // A host does not ask an instance about the tickets of another.
    if (instance !== this.instance) return { counted: false, transition: null };
    const took = this.around.now > started ? this.around.now - started : 0n;
    const late = ['success', 'failure'].includes(outcome) && callTimeout !== undefined && took > callTimeout;
    const { counted, lease, transition } = this.instance.settle(circuit, ticket, {
      outcome: late ? 'timeout' : outcome,
      took: measured ? took : undefined,
      retryAfter: retry_after === undefined ? undefined : parseTime(retry_after),
      cause,
    });
    this.heed(key, lease);
    return { counted, transition: answers.transition(transition) };
  }

  permit(label) {
    const permit = this.permits.get(label);
    if (!permit) throw new Error(`no call was admitted as ${label}`);
    return permit;
  }

  play_settle_successes(_key, label, { count }) {
    const { key, ticket, instance } = this.permit(label);
    if (instance !== this.instance) throw new Error(`${label} is of another instance`);
    return this.moved(key, this.instance.settleSuccesses(this.number(key), ticket, Number(count)));
  }

  // --- commands

  play_trip(key, value) {
    return this.moved(key, this.instance.trip(this.number(key), value === true ? undefined : parseTime(value)));
  }

  play_reset(key) {
    return this.moved(key, this.instance.reset(this.number(key)));
  }

  play_mode(key, mode) {
    return this.moved(key, this.instance.setMode(this.number(key), mode));
  }

  moved(key, { lease, transition }) {
    this.heed(key, lease);
    return { transition: answers.transition(transition) };
  }

  play_cool_down() {
    const keys = new Map([...this.circuits].map(([key, { number }]) => [number, key]));
    const moves = this.instance.coolDown().map(([circuit, moved]) => {
      const key = keys.get(circuit);
      if (!keys.delete(circuit)) throw new Error(`cool-down moved circuit ${circuit}, which is unknown or was moved before`);
      return { key, ...this.moved(key, moved) };
    });
    return moves.sort((one, other) => byBytes(one.key, other.key));
  }

  // --- looking

  play_tripped() {
    return this.instance.tripped().sort(byBytes);
  }

  play_inspect(key) {
    return answers.status(this.instance.inspect(this.number(key)));
  }

  play_available(key) {
    const { standing, mode, until } = this.instance.leaseOf(this.number(key));
    const holds = until === undefined || this.around.now < until;
    return { available: !(standing.tag === 'reject' && mode !== 'shadow' && holds) };
  }

  play_describe() {
    return answers.description(this.instance.describe());
  }

  play_lease(key) {
    const lease = this.instance.leaseOf(this.number(key));
    return answers.lease(lease, this.heed(key, lease));
  }

  // --- circuits and instances

  /** The number of a key's circuit, which is attached first where it must be. */
  number(key) {
    if (!this.circuits.has(key)) {
      const answer = this.attach(key, settingsText(this.settings), false);
      if (answer.error !== null) throw new Error(`${key} is not attached: ${text(answer)}`);
    }
    return this.circuits.get(key).number;
  }

  /** Holds an answer's lease against the rules of the contract, and says which generation of its circuit it is. */
  heed(key, lease) {
    const { number, generations } = this.circuits.get(key);
    const stands = text(this.instance.leaseOf(number));
    if (stands !== text(lease)) throw new Error(`the answer's lease is ${text(lease)}, and that of lease-of ${stands}`);
    const last = generations.at(-1);
    if (last > lease.generation) throw new Error(`generation ${lease.generation} came after ${last}`);
    if (last !== lease.generation) generations.push(lease.generation);
    return generations.length;
  }

  play_attach(key, settings) {
    return this.attach(key, settingsText(settings), true);
  }

  attach(key, settings, own) {
    return refusable(
      () => this.instance.attach(key, settings),
      (attachment) => this.attached(key, attachment, settings, own),
    );
  }

  /** One that is known keeps the settings that it has. */
  attached(key, { circuit, lease }, settings, own) {
    if (!this.circuits.has(key)) this.circuits.set(key, { number: circuit, settings, own, generations: [] });
    const { number } = this.circuits.get(key);
    if (number !== circuit) throw new Error(`the circuit of ${key} had number ${number} and has ${circuit} now`);
    this.heed(key, lease);
    return { error: null };
  }

  play_configure(key, value) {
    const [number, settings] = [this.number(key), settingsText(value)];
    return refusable(
      () => this.instance.configure(number, settings),
      (moved) => {
        Object.assign(this.circuits.get(key), { settings, own: true });
        return { error: null, ...this.moved(key, moved) };
      },
    );
  }

  play_detach(key) {
    const circuit = this.circuits.get(key);
    if (circuit === undefined) throw new Error(`${key} is not attached`);
    this.instance.detach(circuit.number);
    this.circuits.delete(key);
    this.permits = new Map([...this.permits].filter(([, permit]) => permit.key !== key));
    return {};
  }

  play_prepare(_key, setup) {
    this.setup = setup;
    this.instance.prepare(setupRecord(setup));
    return {};
  }

  // --- going over

  play_save(key, label) {
    const saved = this.instance.save(this.number(key));
    this.snapshots.set(label, saved);
    return answers.snapshot(saved);
  }

  async play_restore(_key, label, { age = '0s', settings, policy, with: changes = {} }) {
    if (policy !== undefined) {
      this.policy = policy;
      await this.start();
    }
    if (!this.snapshots.has(label)) throw new Error(`nothing was saved as ${label}`);
    const snapshot = answers.changed(this.snapshots.get(label), changes);
    const given = settingsText(settings ?? this.settings);
    return refusable(
      () => this.instance.restore(snapshot, given, parseTime(age)),
      (attachment) => this.attached(snapshot.key, attachment, given, settings !== undefined),
    );
  }

  async play_restart(_key, value, { at }) {
    if (value !== true && value !== 'state') throw new Error(`a restart is \`true\` or \`state\`, and not ${text(value)}`);
    const leaving = value === true ? [] : this.leaving().filter(({ snapshot }) => !answers.isAsNew(snapshot));
    if (at !== undefined) this.around.now = parseTime(at);
    this.permits = new Map();
    const answer = await this.takeOver(this.policy, this.settings, leaving);
    if (answer.error !== null) throw new Error(text(answer));
    return {};
  }

  /** Lets another policy have every circuit. Where it refuses one, or the settings, nothing has changed. */
  async play_swap(_key, policy, { settings: table = {} }) {
    const keepsOwn = policy === this.policy;
    const leaving = this.leaving().map(({ snapshot, settings, own }) =>
      own && keepsOwn ? { snapshot, settings, own } : { snapshot, settings: settingsText(table), own: false },
    );
    return (await this.refused(policy, table)) ?? this.takeOver(policy, table, leaving);
  }

  /** Gives other settings to the circuits that have none of their own. Where they are refused, nothing has changed. */
  async play_reconfigure(_key, table) {
    const refused = await this.refused(this.policy, table);
    if (refused) return refused;
    const settings = settingsText(table);
    for (const key of [...this.circuits.keys()].sort(byBytes)) {
      const circuit = this.circuits.get(key);
      if (circuit.own || circuit.settings === settings) continue;
      const { transition } = this.moved(key, this.instance.configure(circuit.number, settings));
      if (transition !== null) throw new Error(`other settings moved ${key}`);
      circuit.settings = settings;
    }
    this.settings = table;
    return { error: null };
  }

  /** Why settings are refused, or undefined: an instance of its own is asked. */
  async refused(policy, table) {
    const trial = await this.newInstance(policy);
    return refusable(
      () => trial.attach('trial', settingsText(table)),
      () => undefined,
      { key: null },
    );
  }

  /** Snapshot and settings of each circuit, and whether those are its own. */
  leaving() {
    const keys = [...this.circuits.keys()].sort(byBytes);
    const circuits = keys.map((key) => this.circuits.get(key));
    return circuits.map(({ number, settings, own }) => ({ snapshot: this.instance.save(number), settings, own }));
  }

  /** Goes on with a new instance of a policy that has these circuits, if it takes each of them. */
  async takeOver(policy, table, leaving) {
    const instance = await this.newInstance(policy);
    const taken = [];
    for (const { snapshot, settings, own } of leaving) {
      const refused = refusable(
        () => instance.restore(snapshot, settings, 0n),
        (attachment) => void taken.push([snapshot.key, attachment, settings, own]),
        { key: snapshot.key },
      );
      if (refused) return refused;
    }
    Object.assign(this, { policy, instance, settings: table, circuits: new Map() });
    for (const one of taken) this.attached(...one);
    return { error: null };
  }
}

/** A setup as a record of the contract. */
function setupRecord({ seed = 0, instrumentation = Object.keys(OPTIONS), namespace, ...rest }) {
  const unknown = [...Object.keys(rest), ...instrumentation.filter((option) => !Object.hasOwn(OPTIONS, option))];
  if (unknown.length > 0) throw new Error(`a setup has no [${unknown}]`);
  return {
    seed: BigInt(seed.toString()),
    instrumentation: Object.fromEntries(instrumentation.map((option) => [OPTIONS[option], true])),
    namespace,
  };
}

/** The answer of a function that may refuse: jco throws the error of a result as it is. `about` is added to a refusal. */
function refusable(ask, go, about = {}) {
  let answered;
  try {
    answered = ask();
  } catch (error) {
    if (error instanceof Error) throw error;
    return { ...answers.refusal(error), ...about };
  }
  return go(answered);
}

/** Settings as the text that a policy reads: an object is written with its names in order, a text is taken as it is. */
const settingsText = (settings) => (typeof settings === 'string' ? settings : text(settings));
