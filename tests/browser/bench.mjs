// What an update of the fleet costs a browser, and what it costs the network. Prints figures, and exits with 1 where one is missed.
//
//   node tests/browser/bench.mjs [--uavs 100] [--seconds 30] [--fleet]
//
// Without --fleet the page is served by `web/dev/fake-ground.mjs`, whose aircraft change as real ones do, 5 times a second; with it by
// `wingbeat bench fleet`, which flies them on this machine. Both need the built page.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { chromium } from 'playwright-core';

import { FLAGS, freePort, ROOT } from './support.mjs';

const TARGET_MS = 20;
const TARGET_BYTES = 500;
const { values } = parseArgs({ options: { uavs: { type: 'string', default: '100' }, seconds: { type: 'string', default: '30' }, fleet: { type: 'boolean', default: false } } });
const uavs = Number(values.uavs);
const port = await freePort();
const [program, args] = values.fleet
  ? [process.env.WINGBEAT || join(ROOT, 'target/release/wingbeat'), ['bench', 'fleet', '--uavs', values.uavs, '--ground', `127.0.0.1:${port}`, '--web', 'web/dist', '--auto']]
  : ['node', ['web/dev/fake-ground.mjs', '--uavs', values.uavs, '--port', String(port), '--autostart']];
const ground = spawn(program, args, { cwd: ROOT, stdio: 'ignore' });
const address = `http://127.0.0.1:${port}`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: FLAGS });
let missed = false;
try {
  for (let tries = 0; !(await fetch(`${address}/api/v1/fleet`).then(({ ok }) => ok, () => false)); tries += 1) {
    if (tries > 600) throw new Error('the ground service does not answer');
    await sleep(100);
  }
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const devtools = await page.context().newCDPSession(page);
  // By the processor time of the thread: what else this machine does is not the page's.
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  await devtools.send('Network.enable');
  let [updates, raw, encoded] = [0, 0, 0];
  let stream;
  devtools.on('Network.responseReceived', ({ requestId, response }) => {
    if (response.mimeType === 'text/event-stream') stream = requestId;
  });
  devtools.on('Network.eventSourceMessageReceived', ({ eventName, data }) => {
    if (eventName === 'update') [updates, raw] = [updates + 1, raw + data.length];
  });
  devtools.on('Network.dataReceived', ({ requestId, encodedDataLength }) => {
    if (requestId === stream) encoded += encodedDataLength;
  });
  await page.goto(address);
  await page.waitForFunction((count) => document.querySelector('[data-testid=map]')?.dataset.count === String(count), uavs, { timeout: 120_000 });
  // Until they fly, and the first drawing is over.
  await page.waitForFunction(() => document.querySelector('[data-testid=phase]')?.dataset.step === 'fly', undefined, { timeout: 300_000 });
  await sleep(5_000);
  const metrics = async () => Object.fromEntries((await devtools.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
  const before = await metrics();
  [updates, raw, encoded] = [0, 0, 0];
  await sleep(Number(values.seconds) * 1000);
  const after = await metrics();
  const ms = (name) => ((after[name] - before[name]) * 1000) / updates;
  const line = (what, value, unit, target) => {
    const over = target !== undefined && value > target;
    missed ||= over;
    console.log(`${what.padEnd(44)} ${value.toFixed(1).padStart(8)} ${unit}${target === undefined ? '' : `, at most ${target}${over ? ': MISSED' : ''}`}`);
  };
  console.log(`${uavs} aircraft, ${updates} updates in ${values.seconds} s (${(updates / Number(values.seconds)).toFixed(1)} Hz), ${values.fleet ? 'flown by wingbeat bench fleet' : 'by the fake ground service'}`);
  line('main thread per update, processor time', ms('TaskDuration'), 'ms', TARGET_MS);
  line('  of it scripts', ms('ScriptDuration'), 'ms');
  line('  of it layout and style', ms('LayoutDuration') + ms('RecalcStyleDuration'), 'ms');
  line('stream, per aircraft and update', raw / updates / uavs, 'bytes', TARGET_BYTES);
  line('  compressed', encoded / updates / uavs, 'bytes');
  line('heap of the page', after.JSHeapUsedSize / 1e6, 'MB');
} finally {
  await browser.close();
  ground.kill('SIGINT');
}
process.exitCode = missed ? 1 : 0;
