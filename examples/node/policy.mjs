// A Tripwit policy in Node: a component in, the contract's functions out (wit/policy.wit, names in camel case).
// What the contract refuses is thrown as jco has it: an object with `tag` and `val`, such as { tag: 'key', val: 'the key is empty; ..' }. A byte
// order mark at the beginning of a text that comes out of a component is lost in jco.
import { readFile } from 'node:fs/promises';
import { transpileBytes } from '@bytecodealliance/jco-transpile';

/** What a component may import: two clocks in nanoseconds, a log, and finished spans. This one prints warnings and worse. */
export const processHost = {
  monotonic: () => process.hrtime.bigint(),
  wall: () => BigInt(Date.now()) * 1_000_000n,
  log: (level, message, _fields) => {
    if (['warn', 'error', 'critical'].includes(level)) console.warn(`${level}: ${message}`);
  },
  span: (_span) => {},
};

/** Compiles a component. Each call of the function that comes back makes an instance, which holds any number of circuits. */
export async function load(file) {
  const { files } = await transpileBytes(await readFile(file), { name: 'policy', instantiation: 'sync' });
  const { instantiate } = await import(`data:text/javascript;base64,${Buffer.from(files['policy.js']).toString('base64')}`);
  const modules = new Map();
  for (const [name, bytes] of Object.entries(files)) {
    if (name.endsWith('.wasm')) modules.set(name, new WebAssembly.Module(bytes));
  }
  return (host = processHost) => instantiate((name) => modules.get(name), imports(host)).policy;
}

/** Makes a call if the circuit admits it, and tells the policy how it ended. `call` is given a signal that ends it in time. */
export async function guard(policy, circuit, call) {
  const { decision, lease } = policy.acquire(circuit);
  if (decision.tag === 'reject' && lease.mode !== 'shadow') throw new Rejected(decision.val);
  const limit = lease.callTimeout;
  const signal = limit === undefined ? undefined : AbortSignal.timeout(Number(limit / 1_000_000n));
  const started = process.hrtime.bigint();
  const settle = (outcome, cause) => {
    if (decision.tag !== 'admit') return;
    const took = process.hrtime.bigint() - started;
    const late = limit !== undefined && (took > limit || signal.aborted);
    const timed = limit !== undefined || lease.slowAfter !== undefined;
    policy.settle(circuit, decision.val, { outcome: late ? 'timeout' : outcome, took: timed ? took : undefined, cause });
  };
  try {
    const result = await call(signal);
    settle('success');
    return result;
  } catch (error) {
    settle('failure', String(error));
    throw error;
  }
}

/** A call that was not made: the circuit is open, say. */
export class Rejected extends Error {
  constructor({ reason, retryAfter }) {
    super(`rejected: ${reason}`);
    /** Milliseconds until it is worth asking again; undefined where no clock decides. */
    this.retryAfter = retryAfter === undefined ? undefined : Math.ceil(Number(retryAfter) / 1e6);
  }
}

function imports({ monotonic, wall, log, span }) {
  const datetime = (at) => ({ seconds: at / 1_000_000_000n, nanoseconds: Number(at % 1_000_000_000n) });
  return {
    'wasi:clocks/monotonic-clock': { now: monotonic },
    'wasi:clocks/wall-clock': { now: () => datetime(wall()) },
    'tripwit:breaker/log': { log },
    'tripwit:breaker/spans': { exportSpan: span },
  };
}
