// The alarms are the ground service's: a second page and a reloaded one show the same list, acknowledged once for all.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PHASE_MS, withFleet } from './support.mjs';

const UAVS = 2;

/** What a page lists: the aircraft's alarms, and whether each is acknowledged. */
const listed = (page) => page.getByTestId('alarm').evaluateAll((all) => all.map(({ dataset }) => `${dataset.level} ${dataset.acknowledged}`));

test('an alarm is acknowledged on one page for all of them, and outlives a reload', { timeout: 3 * PHASE_MS }, async () => {
  await withFleet('alarms', UAVS, ['--uavs', String(UAVS), '--speed', '2'], async ({ page, until, shot }) => {
    const service = page.url();
    // Raised where no page has the panel open: the aircraft are handed over from elsewhere.
    await page.evaluate(() => fetch('/api/v1/fleet/commands', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: 'elsewhere', command: 'recover_control', vehicles: [] }),
    }));
    const badge = (of, text) => async () => (await of.getByTestId('alarm-badge').innerText()) === text;
    await until('the first page has the alarms', badge(page, '2 alarms'));
    const second = await page.context().browser().newPage();
    await second.goto(service);
    await until('the second page has them', badge(second, '2 alarms'));
    await second.getByTestId('alarm-badge').click();
    await page.getByTestId('alarm-badge').click();
    assert.deepEqual(await listed(second), Array(UAVS).fill('alarm false'));

    await page.getByTestId('acknowledge-all').click();
    const are = (of) => async () => (await listed(of)).join() === Array(UAVS).fill('alarm true').join();
    await until('the second page shows them as acknowledged', are(second));
    assert.match(await second.getByTestId('alarm').first().innerText(), /acknowledged by 127\.0\.0\.1/);
    await page.reload();
    await until('the reloaded page has the alarms', badge(page, '2 alarms'));
    await page.getByTestId('alarm-badge').click();
    await until('they are still acknowledged', are(page));
    await shot('alarms');

    await second.evaluate(() => fetch('/api/v1/fleet/commands', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: 'again', command: 'engage', vehicles: [] }),
    }));
    await until('the alarms are over on both', async () => (await badge(page, 'No alarms')()) && badge(second, 'No alarms')());
    await second.close();
  });
});
