// Makes the component policy.wasm of policy.js. `npm run build -- ../elsewhere/wit` where the contract's `wit` folder lies elsewhere.

import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const [witPath = '../../wit'] = process.argv.slice(2);
const { component } = await componentize({
  sourcePath: './policy.js',
  witPath,
  worldName: 'breaker',
  // A policy has no use for any of them; each is an import that would have to be let in.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile('policy.wasm', component);
console.log(`policy.wasm: ${component.length} bytes`);
