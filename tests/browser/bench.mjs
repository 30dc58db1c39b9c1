// What an update of the fleet costs a browser, and what it costs the network. Prints figures, and exits with 1 where one is missed.
//
//   node tests/browser/bench.mjs [--uavs 100] [--seconds 30] [--fleet]
//
// Without --fleet the page is served by `web/dev/fake-ground.mjs`, whose aircraft change as real ones do, 5 times a second; with it by
// `wingbeat bench fleet`, which flies them on this machine. Both need the built page.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { conclude, line, load, machine, metrics, withFlight } from './measuring.mjs';

const TARGET_MS = 20;
const TARGET_BYTES = 500;
const { values } = parseArgs({ options: { uavs: { type: 'string', default: '100' }, seconds: { type: 'string', default: '30' }, fleet: { type: 'boolean', default: false } } });
const uavs = Number(values.uavs);
let [updates, raw, encoded] = [0, 0, 0];
let stream;

async function start(page, address, devtools) {
  // By the processor time of the thread: what else this machine does is not the page's.
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  await devtools.send('Network.enable');
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
}

await withFlight(values.fleet ? 'fleet' : 'stand-in', uavs, async ({ devtools }) => {
  const before = await metrics(devtools);
  [updates, raw, encoded] = [0, 0, 0];
  await sleep(Number(values.seconds) * 1000);
  const after = await metrics(devtools);
  const ms = (name) => ((after[name] - before[name]) * 1000) / updates;
  console.log(`${uavs} aircraft, ${updates} updates in ${values.seconds} s (${(updates / Number(values.seconds)).toFixed(1)} Hz), ${values.fleet ? 'flown by wingbeat bench fleet' : 'by the fake ground service'}; ${machine()}, ${load()}`);
  line('main thread per update, processor time', ms('TaskDuration'), 'ms', TARGET_MS);
  line('  of it scripts', ms('ScriptDuration'), 'ms');
  line('  of it layout and style', ms('LayoutDuration') + ms('RecalcStyleDuration'), 'ms');
  line('stream, per aircraft and update', raw / updates / uavs, 'bytes', TARGET_BYTES);
  line('  compressed', encoded / updates / uavs, 'bytes');
  line('heap of the page', after.JSHeapUsedSize / 1e6, 'MB');
}, { start });
conclude();
