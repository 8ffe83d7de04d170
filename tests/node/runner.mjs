// Plays the scenarios of tests/conformance on components in Node: node runner.mjs SCENARIOS COMPONENTS [TRANSCRIPT]
//
// SCENARIOS is the folder of the files, COMPONENTS that of the components. TRANSCRIPT is a file to be written: everything that
// was answered and told, a line for each scenario. The exit code is 0 where everything held.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { load } from '../../examples/node/policy.mjs';
import { Driver } from './driver.mjs';
import { wrongAnswer, wrongTold } from './expect.mjs';
import { parse, text } from './text.mjs';

/** What came of each step until the first that did not end as it must, and what was wrong with that. */
async function play(policies, policy, scenario) {
  const played = [];
  let at = 'the start';
  try {
    const driver = new Driver(policies, policy, scenario);
    await driver.start();
    for (const [index, step] of scenario.steps.entries()) {
      at = `step ${index + 1} ${text(step)}`;
      const answer = await driver.play(step);
      const told = driver.around.takeTold();
      played.push({ answer, told });
      const wrong = wrongAnswer(step, answer) ?? wrongTold(step, told);
      if (wrong) return { played, failure: `${at}: ${wrong}` };
    }
    return { played };
  } catch (error) {
    return { played, failure: `${at}: ${error}` };
  }
}

/** A file's policy and its scenarios. */
async function read(folder, file) {
  try {
    const { policy, scenarios } = parse(await readFile(join(folder, file), 'utf8'));
    for (const { name, steps } of scenarios) {
      if (typeof name !== 'string' || !(steps.length > 0)) throw new Error(`${name} has no steps`);
    }
    return { policy, contained: scenarios };
  } catch (error) {
    throw new Error(`${file} is no file of scenarios: ${error.message}`, { cause: error });
  }
}

async function main(scenarios, components, transcript) {
  const compiled = new Map();
  const policies = (name) => {
    if (!compiled.has(name)) compiled.set(name, load(join(components, `${name}.wasm`)));
    return compiled.get(name);
  };
  const files = (await readdir(scenarios)).filter((name) => name.endsWith('.json')).sort();
  const failures = [];
  let total = 0;
  let steps = 0;
  let lines = '';
  for (const file of files) {
    const { policy, contained } = await read(scenarios, file);
    for (const scenario of contained) {
      total += 1;
      steps += scenario.steps.length;
      const { played, failure } = await play(policies, policy, scenario);
      lines += `${text({ file, scenario: scenario.name, played })}\n`;
      if (failure) failures.push(`${file}: ${scenario.name}\n    ${failure}`);
    }
  }
  if (transcript) await writeFile(transcript, lines);
  const held = `${total - failures.length} held, ${failures.length} did not`;
  console.log(`${await subject()}: ${total} scenarios of ${files.length} files played (${steps} steps); ${held}`);
  for (const failure of failures) console.log(`  ${failure}`);
  return total > 0 && failures.length === 0 ? 0 : 1;
}

async function subject() {
  const example = createRequire(new URL('../../examples/node/policy.mjs', import.meta.url));
  const jco = example.resolve('@bytecodealliance/jco-transpile').replace(/dist.index\.js$/, 'package.json');
  return `Node ${process.versions.node}, jco-transpile ${JSON.parse(await readFile(jco)).version}`;
}

const [scenarios, components, transcript, ...rest] = process.argv.slice(2);
if (components === undefined || rest.length > 0) {
  console.error('usage: node runner.mjs SCENARIOS COMPONENTS [TRANSCRIPT]');
  process.exitCode = 2;
} else {
  process.exitCode = await main(scenarios, components, transcript);
}
