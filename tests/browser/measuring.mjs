// What the measurements share (bench.mjs, figures.mjs): a ground service as a child process, a browser at its page, the printed lines.

import { spawn } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { chromium } from 'playwright-core';

import { FLAGS, freePort, ROOT } from './support.mjs';

/** What a page is measured against: the stand-in for a ground service, or `wingbeat bench fleet`, which flies the aircraft on this machine. */
export const GROUNDS = {
  'stand-in': (uavs, port) => ['node', ['web/dev/fake-ground.mjs', '--uavs', String(uavs), '--port', String(port), '--autostart']],
  fleet: (uavs, port, more = []) => [
    process.env.WINGBEAT || join(ROOT, 'target/release/wingbeat'),
    ['bench', 'fleet', ...(more.includes('--plan') ? [] : ['--uavs', String(uavs)]), '--ground', `127.0.0.1:${port}`, '--web', 'web/dist', '--auto', ...more],
  ],
};

/** Starts one of them and a browser, lets `measure` look when all fly and the first drawing is over, and ends both. */
export async function withFlight(kind, uavs, measure, { more = [], start = (page, address) => page.goto(address) } = {}) {
  const port = await freePort();
  const [program, args] = GROUNDS[kind](uavs, port, more);
  const ground = spawn(program, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] });
  let [ended, said] = [undefined, ''];
  ground.stderr.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-1_000)));
  const gone = new Promise((done) => {
    ground.on('error', (error) => done((ended = String(error))));
    ground.on('close', (code, signal) => done((ended = `exit code ${code}, signal ${signal}: ${said.trim()}`)));
  });
  const address = `http://127.0.0.1:${port}`;
  let browser;
  try {
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: FLAGS });
    for (let tries = 0; !(await fetch(`${address}/api/v1/fleet`).then(({ ok }) => ok, () => false)); tries += 1) {
      if (ended !== undefined || tries > 600) throw new Error(`${program} does not answer: ${ended ?? 'it runs'}`);
      await sleep(100);
    }
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const devtools = await page.context().newCDPSession(page);
    await start(page, address, devtools);
    await page.waitForFunction((count) => document.querySelector('[data-testid=map]')?.dataset.count === String(count), uavs, { timeout: 120_000 });
    await page.waitForFunction(() => document.querySelector('[data-testid=phase]')?.dataset.step === 'fly', undefined, { timeout: 1_200_000 });
    await sleep(5_000);
    return await measure({ page, devtools, address, browser, ground });
  } finally {
    await browser?.close();
    ground.kill('SIGINT');
    // Its ports are free then.
    await gone;
  }
}

/** The metrics of the page by their names. */
export async function metrics(devtools) {
  return Object.fromEntries((await devtools.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
}

let missed = false;

/** A line for each figure, with its target where it has one. */
export function line(what, value, unit, target) {
  const over = target !== undefined && !(value <= target);
  missed ||= over;
  console.log(`${what.padEnd(48)} ${value.toFixed(1).padStart(8)} ${unit}${target === undefined ? '' : `, at most ${target}${over ? ': MISSED' : ''}`}`);
}

/** Ends the program with 1 where a figure was missed. */
export function conclude() {
  process.exitCode = missed ? 1 : 0;
}

export const machine = () => `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores`;
export const load = () => `load ${loadavg()[0].toFixed(1)}`;

/** The value that this share of them does not exceed (nearest rank). */
export function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
