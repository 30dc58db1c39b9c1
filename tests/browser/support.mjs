// What the browser tests share: a fleet as a child process, a browser, and looking at the page.
//
// They run the release build of `wingbeat`, or $WINGBEAT (`cargo xtask test`: its build for development), and the built page.
// Chromium is $CHROMIUM, else /usr/bin/chromium. Screenshots and the fleet's output land under target/browser/.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const SHOTS = join(ROOT, 'target/browser');
export const WINGBEAT = process.env.WINGBEAT || join(ROOT, 'target/release/wingbeat');
// Ten times what a flight takes in these tests; only a test that fails waits so long.
export const PHASE_MS = 120_000;

// Without a graphics card Chromium draws pages itself, and WebGL alone by SwiftShader. Left to `--use-angle`, it has SwiftShader draw the
// page too, which takes four times the processor time.
export const FLAGS = [
  '--no-sandbox',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
  '--disable-gpu-compositing',
  '--disable-gpu-rasterization',
  '--disable-accelerated-2d-canvas',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
];

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** The fleet as a child process; `ended` tells how it ended, if it did. */
function startFleet(name, port, more) {
  const args = ['bench', 'fleet', '--ground', `127.0.0.1:${port}`, '--web', 'web/dist', ...more];
  const child = spawn(WINGBEAT, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const log = createWriteStream(join(SHOTS, `${name}.log`));
  const fleet = { child, ended: undefined, tail: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => {
      log.write(bytes);
      fleet.tail = (fleet.tail + bytes).slice(-2000);
    });
  }
  child.on('error', (error) => (fleet.ended = String(error)));
  child.on('exit', (code, signal) => (fleet.ended = `exit code ${code}, signal ${signal}`));
  return fleet;
}

async function stopFleet(fleet) {
  if (fleet.ended !== undefined) return;
  fleet.child.kill('SIGINT');
  for (let i = 0; i < 100 && fleet.ended === undefined; i += 1) await sleep(100);
  const clean = fleet.ended !== undefined;
  if (!clean) fleet.child.kill('SIGKILL');
  assert.ok(clean, 'the fleet did not end within 10 s of Ctrl-C');
}

async function until(what, limitMs, holds, fleet) {
  const end = Date.now() + limitMs;
  for (;;) {
    assert.equal(fleet.ended, undefined, `the fleet ended while waiting until ${what}:\n${fleet.tail}`);
    const found = await holds();
    if (found) return found;
    assert.ok(Date.now() < end, `not within ${limitMs / 1000} s: ${what}`);
    await sleep(100);
  }
}

/** What the fleet's table shows, and where the ground service has each aircraft. */
export const rows = (page) =>
  page.getByTestId('aircraft-row').evaluateAll(async (all) => {
    const fleet = await fetch('/api/v1/fleet').then((answer) => answer.json(), () => undefined);
    const places = new Map((fleet?.aircraft ?? []).map(({ status }) => [status?.id, status?.navigation?.position]));
    return all.map(({ dataset }) => ({
      id: dataset.id,
      state: dataset.state,
      mode: dataset.mode,
      armed: dataset.armed === 'true',
      avoiding: dataset.avoiding,
      excluded: dataset.excluded === 'true',
      lat: places.get(dataset.id)?.latitude_deg ?? Number.NaN,
      lon: places.get(dataset.id)?.longitude_deg ?? Number.NaN,
    }));
  });

export function distanceM(a, b) {
  const north = (b.lat - a.lat) * 111_195;
  const east = (b.lon - a.lon) * 111_195 * Math.cos((a.lat * Math.PI) / 180);
  return Math.hypot(north, east);
}

/**
 * Starts `bench fleet` with these arguments, opens its page when `uavs` aircraft stand in the table with a
 * position and on the map, lets `fly` fly, and ends everything. The page must not have complained, but for `refusals` that a test means.
 * `opened` is done before the aircraft are waited for.
 */
export async function withFleet(name, uavs, more, fly, { opened, refusals } = {}) {
  mkdirSync(SHOTS, { recursive: true });
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const fleet = startFleet(name, port, more);
  let browser;
  let page;
  try {
    const answers = () => fetch(`${address}/api/v1/session`).then((answer) => answer.ok, () => false);
    await until('the ground service answers', PHASE_MS, answers, fleet);

    const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';
    browser = await chromium.launch({ executablePath, args: FLAGS });
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' && !refusals?.test(message.text())) complaints.push(message.text());
    });
    await page.goto(address);
    await opened?.({ page, shots: SHOTS, until: (what, holds) => until(what, PHASE_MS, holds, fleet) });

    const inTable = async () => {
      const shown = await rows(page);
      return shown.length === uavs && shown.every((row) => row.id !== '' && Number.isFinite(row.lat)) && shown;
    };
    await until(`${uavs} aircraft stand in the table with a position`, PHASE_MS, inTable, fleet);
    const map = page.getByTestId('map');
    const drawn = async () =>
      (await map.getAttribute('data-ready')) === 'true' && (await map.getAttribute('data-count')) === String(uavs);
    await until(`${uavs} aircraft are drawn on the map`, PHASE_MS, drawn, fleet);

    // True of no row at all is not true of the fleet.
    const all = async (holds) => {
      const shown = await rows(page);
      return shown.length === uavs && shown.every(holds);
    };
    const shot = (what) => page.screenshot({ path: join(SHOTS, `${what}.png`) });
    await fly({ page, map, all, shot, until: (what, holds) => until(what, PHASE_MS, holds, fleet) });
    assert.deepEqual(complaints, [], 'the page complained in the browser console');
  } catch (error) {
    await page?.screenshot({ path: join(SHOTS, `${name}-failed.png`) }).catch(() => undefined);
    throw error;
  } finally {
    await browser?.close();
    await stopFleet(fleet);
  }
}

/**
 * Holds the button of *Set up* or *Start* down until the page has sent the command: a click alone must not do it. The mouse is
 * released afterwards.
 */
export async function holdDown({ page, until }, name) {
  const button = page.getByTestId(name);
  await button.click();
  const sent = async () => (await page.getByTestId('last-command').getAttribute('data-command', { timeout: 1000 }).catch(() => '')) === name;
  assert.equal(await page.getByTestId('last-command').count() > 0 && (await sent()), false, `a click alone is no ${name}`);
  await button.hover();
  await page.mouse.down();
  await until(`${name} was sent`, sent);
  await page.mouse.up();
}

/** Presses Land for all, confirms, and waits until all are down. */
export async function landAll({ page, all, until }) {
  await page.getByTestId('land').click();
  await page.getByTestId('confirm').click();
  await until('every aircraft is in LAND', () => all((row) => row.mode === 'LAND' || !row.armed));
  await until('every aircraft is down and disarmed', () => all((row) => !row.armed));
}
