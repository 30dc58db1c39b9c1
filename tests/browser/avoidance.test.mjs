// Two aircraft of different owners meet face to face, on missions that the operator gives them from a file on
// the page: the page shows which aircraft avoids which, in which state, and the predicted positions, until they have passed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdDown, landAll, PHASE_MS, rows, withFleet } from './support.mjs';

const PLAN = ['--plan', 'tests/browser/apart.toml', '--variant', 'mbcap-e', '--speed', '2'];

/** One path for each aircraft, to where the other stands. */
function towardsEachOther([one, other]) {
  const path = (name, from, to) => `<Placemark><name>${name}</name><LineString>
    <altitudeMode>relativeToGround</altitudeMode>
    <coordinates>${from.lon},${from.lat},10 ${to.lon},${to.lat},10</coordinates></LineString></Placemark>`;
  return `<kml><Document>${path('eastward', one, other)}${path('westward', other, one)}</Document></kml>`;
}

test('the page shows two aircraft that avoid each other', { timeout: 8 * PHASE_MS }, () =>
  withFleet('avoidance', 2, PLAN, async (flight) => {
    const { page, map, all, shot, until } = flight;
    // Apart, by the plan: without the missions from the file they would never meet.
    await page.getByTestId('step-plan').click();
    const name = 'meeting.kml';
    const buffer = Buffer.from(towardsEachOther(await rows(page)));
    await page.getByTestId('mission-files').setInputFiles({ name, mimeType: 'application/xml', buffer });
    await until('the map marks where they would meet', async () =>
      (await map.getAttribute('data-plan-conflicts')) === '1' && (await map.getAttribute('data-moving')) === 'false');
    assert.match(await page.getByTestId('problem').first().innerText(), /UAV 1 and UAV 2 come within \d+ m of each other/);
    await shot('plan-conflict');
    await page.getByTestId('give-missions').click();
    const given = page.getByTestId('mission-row');
    await until('both hold their mission', async () => {
      const states = await given.evaluateAll((all) => all.map(({ dataset }) => dataset.state));
      return states.length === 2 && states.every((state) => state === 'held');
    });

    const setup = page.getByTestId('setup');
    const start = page.getByTestId('start');
    await page.keyboard.press('Escape');
    await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
    await holdDown(flight, 'setup');
    await until('Start can be pressed', async () => (await start.count()) === 1 && start.isEnabled());
    assert.ok(await all((row) => !row.armed), 'Setup loads missions and arms no aircraft');
    // A state may be shown for less than a second: the page itself keeps them, however seldom it is read.
    await page.evaluate(() => {
      const record = () => {
        for (const row of document.querySelectorAll('[data-testid="aircraft-row"]')) window.shown.add(row.dataset.state);
      };
      window.shown = new Set();
      const what = { attributes: true, attributeFilter: ['data-state'], childList: true, subtree: true };
      new MutationObserver(record).observe(document.body, what);
    });
    await holdDown(flight, 'start');

    // Nobody is selected: what is drawn is drawn for the conflict.
    await until('both are in conflict', () => all((row) => row.avoiding !== ''));
    const [one, other] = await rows(page);
    assert.deepEqual([one.avoiding, other.avoiding], [other.id, one.id], 'each names the other');
    await until('the map shows their places and the pair', async () =>
      (await map.getAttribute('data-conflicts')) === '1' && Number(await map.getAttribute('data-circles')) >= 2);
    assert.match(await page.getByTestId('conflicts').innerText(), /2 in conflict/);

    // The badge of one leads to the other, and its details say the same.
    await page.getByTestId('aircraft-row').first().getByRole('button', { name: /In conflict with/ }).click();
    const details = page.getByTestId('avoidance');
    await details.waitFor();
    assert.ok((await page.getByTestId('scope').innerText()).includes('of 2'), 'the other one is selected');

    assert.match(await page.getByTestId('separation').innerText(), /Nearest\s+UAV \d, \d/, 'the details say how near the other is');

    let pictured = false;
    let seen = new Set();
    const passed = async () => {
      if (!pictured && (await rows(page)).some((row) => row.state === 'GoOnPlease')) {
        pictured = true;
        await page.keyboard.press('z');
        await shot('avoidance');
      }
      seen = new Set(await page.evaluate(() => [...window.shown]));
      return seen.has('Overtaking') && (await map.getAttribute('data-conflicts')) === '0' && all((row) => row.state === 'Normal');
    };
    await until('the higher has passed and both fly on', passed);
    for (const state of ['StandStill', 'GoOnPlease', 'Overtaking']) {
      assert.ok(seen.has(state), `${state} was shown; found ${[...seen].join(', ')}`);
    }
    assert.equal(await details.getAttribute('data-state'), 'Normal');

    // Without a conflict and a selection nothing is drawn, unless the operator asks for all.
    await page.keyboard.press('Escape');
    await until('no circle is left', async () => (await map.getAttribute('data-circles')) === '0');
    await page.keyboard.press('p');
    await until('the places of both are drawn', async () => Number(await map.getAttribute('data-circles')) >= 2);

    await landAll(flight);
  }));
