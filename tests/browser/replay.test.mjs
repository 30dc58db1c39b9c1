// Flights that the bench recorded are replayed: forwards, back, faster, by slider and by keyboard; the page says what it is, and asks
// the ground service for nothing but files.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { chromium } from 'playwright-core';

import { FLAGS, freePort, PHASE_MS, ROOT, SHOTS, WINGBEAT } from './support.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PLAN = 'tests/browser/crossing.toml';

async function until(what, holds) {
  const end = Date.now() + PHASE_MS;
  for (;;) {
    const found = await holds();
    if (found) return found;
    assert.ok(Date.now() < end, `not within ${PHASE_MS / 1000} s: ${what}`);
    await sleep(100);
  }
}

/** A picture is for people: a browser that is short of memory for one is asked once more. */
const picture = (of, name) => {
  const take = () => of.screenshot({ path: join(SHOTS, `${name}.png`) });
  return take().catch(() => sleep(1_000).then(take));
};

test('a recorded flight is replayed, and nothing is commanded', { timeout: 4 * PHASE_MS }, async () => {
  mkdirSync(SHOTS, { recursive: true });
  const records = join(SHOTS, 'records');
  rmSync(records, { recursive: true, force: true });
  execFileSync(WINGBEAT, ['bench', 'run', PLAN, '--record', join(records, 'logs'), '--out', records], { cwd: ROOT, stdio: 'ignore' });

  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const ground = spawn(WINGBEAT, ['ground', '--bind', `127.0.0.1:${port}`, '--web', 'web/dist', '--records', records], { cwd: ROOT, stdio: 'ignore' });
  let browser;
  let page;
  try {
    await until('the ground service answers', () => fetch(`${address}/api/v1/records`).then(({ ok }) => ok, () => false));
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: FLAGS });
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const complaints = [];
    const asked = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('request', (request) => request.url().startsWith('http') && asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
    // Not as an element of the page: its content security policy forbids that.
    await page.addInitScript({ content: AXE });
    const accessible = async () => assert.deepEqual((await page.evaluate(() => window.axe.run())).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    await page.goto(`${address}/replay`);
    assert.match(await page.getByTestId('replay-banner').innerText(), /REPLAY[\s\S]*none is commanded/);
    assert.match(await page.title(), /^Replay/);
    await page.getByTestId('record').first().waitFor();
    await accessible();
    await picture(page, 'replay-list');

    // The folder of the flight: both of its aircraft.
    await page.locator('fieldset').first().getByRole('checkbox').first().check();
    await page.getByTestId('replay-open').click();
    const bar = page.getByTestId('replay-bar');
    await bar.waitFor();
    const number = async (name) => Number(await bar.getAttribute(`data-${name}`));
    const rows = () => page.getByTestId('replay-row').evaluateAll((all) => all.map(({ dataset: { state, armed, lat, lon, received } }) => ({ state, armed: armed === 'true', lat: Number(lat), lon: Number(lon), received: Number(received) })));
    const count = (await rows()).length;
    assert.ok(count >= 2, `${count} aircraft`);
    const durationMs = await number('duration');
    assert.ok(durationMs > 30_000, `${durationMs} ms`);

    // By its slider, to the middle: all fly, are drawn, and are received.
    const slider = page.getByTestId('replay-slider');
    await slider.fill(String(durationMs / 2));
    await until('all are drawn', async () => (await page.getByTestId('replay-map').getAttribute('data-count')) === String(count));
    const middle = await rows();
    assert.ok(middle.every(({ armed, received }) => armed && received >= 1), JSON.stringify(middle));
    await page.getByTestId('replay-row').first().getByRole('button').click();
    assert.match(await page.getByTestId('replay-separation').innerText(), /\d\sm to UAV/);
    assert.match(await page.getByTestId('replay-received').innerText(), /UAV \d: Beacon/);

    await accessible();

    // Forwards by the keyboard, sixteen times as fast; then back.
    await page.getByTestId('replay-speed').selectOption('16');
    await page.getByTestId('replay-banner').click();
    const from = await number('at');
    await page.keyboard.press('Space');
    await until('time passes', async () => (await number('at')) > from + 5_000);
    const moved = await rows();
    assert.ok(moved.some(({ lat, lon }, index) => lat !== middle[index].lat || lon !== middle[index].lon), 'they move');
    await page.keyboard.press('b');
    const turned = await number('at');
    await until('time runs back', async () => (await number('at')) < turned - 3_000);
    await page.keyboard.press('Space');
    assert.equal(await bar.getAttribute('data-playing'), 'false');
    const still = await number('at');
    await page.keyboard.press('ArrowRight');
    assert.equal(await number('at'), still + 1_000);

    // One stands for the other: the moment is pictured.
    let seen = false;
    for (let at = 0; at <= durationMs && !seen; at += 500) {
      await slider.fill(String(at));
      seen = (await rows()).some(({ state }) => state === 'StandStill' || state === 'GoOnPlease');
    }
    assert.ok(seen, 'a conflict is in the flight');
    await sleep(500);
    await picture(page, 'replay');

    // What the bench came to, on a page of its own: it is shown, and none of its scripts would run.
    await page.getByTestId('replay-list').click();
    const opened = page.context().waitForEvent('page');
    await page.getByTestId('results').getByRole('link').click();
    const results = await opened;
    await results.getByRole('heading', { name: 'Two aircraft that meet' }).waitFor();
    assert.ok(await results.locator('svg').count() > 0, 'its drawings are shown');
    assert.equal(await results.evaluate(() => self.origin), 'null', 'it has an origin of its own');
    await picture(results, 'results');

    // Nothing else is asked for, and nothing of the live page is loaded.
    const wrong = asked.filter((one) => !/^GET \/(replay|assets\/[\w.-]+|api\/v1\/records(\/track)?)$/.test(one));
    assert.deepEqual(wrong, []);
    for (const name of ['hold-all', 'setup', 'start', 'land', 'return']) assert.equal(await page.getByTestId(name).count(), 0, name);
    assert.deepEqual(complaints, [], 'the page complained in the browser console');
  } catch (error) {
    await page?.screenshot({ path: join(SHOTS, 'replay-failed.png') }).catch(() => undefined);
    throw error;
  } finally {
    await browser?.close();
    ground.kill('SIGINT');
  }
});
