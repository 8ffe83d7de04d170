// Holds `guard` of examples/node to what a host must do: node guard.mjs COMPONENTS
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { guard, load, processHost, Rejected } from '../../examples/node/policy.mjs';

const newInstance = await load(join(process.argv[2], 'consecutive.wasm'));
const policy = newInstance({ ...processHost, log: () => {} });
const attach = (key, settings) => policy.attach(key, JSON.stringify(settings)).circuit;
const counts = (circuit) => policy.inspect(circuit).counts;
const fails = async () => {
  throw new Error('no route');
};

const own = attach('own', { failure_threshold: 3, call_timeout: null });
assert.equal(await guard(policy, own, async (signal) => signal), undefined);
await assert.rejects(guard(policy, own, fails), /no route/);
assert.equal(counts(own).failures, 1);
assert.equal(policy.inspect(own).lastCause, 'Error: no route');

// The timer of a signal does not keep the process alive, as a real call would.
const alive = setInterval(() => {}, 1_000);
// A call that ends with its signal, whatever it makes of it, has timed out.
const timed = attach('timed', { failure_threshold: 4, call_timeout: '1ms' });
await guard(policy, timed, (signal) => signal.aborted || once(signal, 'abort'));
await assert.rejects(guard(policy, timed, async (signal) => {
  await (signal.aborted || once(signal, 'abort'));
  throw signal.reason;
}), { name: 'TimeoutError' });
// One that lets no timer run has, too.
await guard(policy, timed, async () => {
  const end = processHost.monotonic() + 2_000_000n;
  while (processHost.monotonic() < end);
});
assert.equal(counts(timed).timeouts, 3);
clearInterval(alive);

policy.trip(own, 1_500_000_001n);
let calls = 0;
const counted = async () => (calls += 1);
await assert.rejects(guard(policy, own, counted), (error) => {
  assert(error instanceof Rejected && error.message === 'rejected: open');
  return error.retryAfter > 0 && error.retryAfter <= 1501;
});
policy.setMode(own, 'forced-open');
await assert.rejects(guard(policy, own, counted), { message: 'rejected: forced-open', retryAfter: undefined });
assert.equal(calls, 0);
for (const mode of ['shadow', 'disabled']) {
  policy.setMode(own, mode);
  await guard(policy, own, counted);
  await assert.rejects(guard(policy, own, fails), /no route/);
}
assert.equal(calls, 2);
assert.equal(policy.inspect(own).state, 'open');
