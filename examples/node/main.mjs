// Guards calls to a server that fails for a while, with a shipped component: npm ci && npm start
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { guard, load, Rejected } from './policy.mjs';

// A server that answers 503 to its first four requests and 200 from then on.
let requests = 0;
const server = createServer((_request, response) => {
  requests += 1;
  response.writeHead(requests <= 4 ? 503 : 200).end();
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}/`;

const newInstance = await load(new URL('../../host/sdk/components/consecutive.wasm', import.meta.url));
const policy = newInstance();
const settings = { failure_threshold: 3, open_for: '200ms', success_threshold: 1, call_timeout: '2s' };
const { circuit } = policy.attach('orders', JSON.stringify(settings));

async function order(signal) {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.status;
}

let calls = 0;
for (let succeeded = 0; succeeded < 2; ) {
  calls += 1;
  try {
    console.log(`call ${calls}: HTTP ${await guard(policy, circuit, order)}`);
    succeeded += 1;
  } catch (error) {
    console.log(`call ${calls}: ${error.message}`);
    // Once the wait is over, the next call goes through as a probe.
    if (error instanceof Rejected) await sleep(error.retryAfter);
  }
}
console.log(`The circuit is ${policy.inspect(circuit).state}. The server saw ${requests} of ${calls} calls.`);
server.close();
