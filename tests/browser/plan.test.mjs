// A first-time user: with the demo's page open, a mission is planned on the map, five aircraft fly it, and all return.
// Every click and every button that is held is counted. Before that a file of another place is opened: it is red and stays here.
// The operator first forgets to send, and flies a second time.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { distanceM, holdDown, PHASE_MS, rows, SHOTS, WINGBEAT, withFleet } from './support.mjs';
import { join } from 'node:path';

const UAVS = 5;
const CLICKS_MAX = 12;
const MOVED_M = 10;
/** A mission one degree farther north: 111 km away. */
const faraway = ({ lat, lon }) =>
  `QGC WPL 110\n0\t1\t0\t16\t0\t0\t0\t0\t0\t0\t0\t1\n${[0, 0.001].map((more, index) => `${index + 1}\t0\t3\t16\t0\t0\t0\t0\t${lat + 1 + more}\t${lon}\t20\t1\n`).join('')}`;

test('a mission is planned on the map, flown by five, and ended, in few clicks', { timeout: 8 * PHASE_MS }, () =>
  withFleet('plan', UAVS, ['--uavs', String(UAVS), '--speed', '5'], async (flight) => {
    const { page, map, all, shot, until } = flight;
    const preview = page.getByTestId('preview');
    const is = (state) => async () => (await preview.count()) === 1 && (await preview.getAttribute('data-state')) === state;
    const send = page.getByTestId('give-missions');
    const [first] = await rows(page);

    // A file that was made for another place.
    await page.getByTestId('step-plan').click();
    await page.getByTestId('mission-files').setInputFiles({ name: 'far\u202eaway.waypoints', mimeType: 'text/plain', buffer: Buffer.from(faraway(first)) });
    await until('the mission is refused', is('stops'));
    assert.match(await page.getByTestId('problem').first().innerText(), /Waypoint 2 lies 111\.\d km from UAV 1, expected at most 5\.0 km/);
    assert.ok(await send.isDisabled(), 'what is red cannot be sent');
    await until('the map shows both', async () => (await map.getAttribute('data-moving')) === 'false');
    await shot('plan-far');
    await page.getByTestId('clear-plan').click();
    const scale = page.locator('.maplibregl-ctrl-scale');
    await until('the map shows the fleet again', async () =>
      (await map.getAttribute('data-moving')) === 'false' && /\d m$/.test((await scale.innerText()).replace(/\s/g, ' ')));
    await page.keyboard.press('Escape');
    assert.equal(await page.getByTestId('drawer').count(), 0);

    let clicks = 0;
    const click = async (what) => {
      clicks += 1;
      await what();
    };
    const setup = page.getByTestId('setup');
    await click(() => page.getByTestId('step-plan').click());
    await click(() => page.getByTestId('draw-route').click());
    // Where the panels leave the map free.
    const { x, y, width } = await map.boundingBox();
    for (const [across, down] of [[0.36, 300], [0.46, 300], [0.46, 480]]) await click(() => page.mouse.click(x + width * across, y + down));
    await until('three waypoints are drawn', async () => (await map.getAttribute('data-waypoints')) === '3');
    await until('it is compared with the aircraft', is('clear'));
    assert.match(await preview.innerText(), /5 aircraft/);
    await shot('plan-drawn');
    // What was not sent stands in the way of a set-up, which would fly what the aircraft hold.
    assert.equal(await setup.count(), 0, 'Set up is not offered while the mission on the page is not sent');
    assert.match(await page.getByTestId('unsent').innerText(), /is not sent\. The aircraft hold/);
    await click(() => send.click());
    const given = page.getByTestId('mission-row');
    await until('the leader holds it', async () => (await given.count()) === 1 && (await given.getAttribute('data-state')) === 'held');
    await shot('plan-sent');

    await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
    // Pressing once too shortly, to see that it does nothing, is no part of the path.
    await click(() => holdDown(flight, 'setup'));
    const start = page.getByTestId('start');
    await until('Start can be pressed', async () => (await start.count()) === 1 && start.isEnabled());
    const hovering = new Map((await rows(page)).map((row) => [row.id, row]));
    await click(() => holdDown(flight, 'start'));
    await until('all five fly', () => all((row) => row.armed && distanceM(hovering.get(row.id), row) > MOVED_M));
    await shot('plan-flown');

    await click(() => page.getByTestId('return').click());
    await click(() => page.getByTestId('confirm').click());
    await until('all return', () => all((row) => row.mode === 'RTL' || !row.armed));
    await until('all are down', () => all((row) => !row.armed));
    console.log(`first-time path: ${clicks} clicks (at most ${CLICKS_MAX}); pictures in ${join(SHOTS)}`);
    assert.ok(clicks <= CLICKS_MAX, `${clicks} clicks, expected at most ${CLICKS_MAX}`);

    // The second flight begins from the page too.
    const next = page.getByTestId('next-flight');
    await until('the next flight is offered', async () => (await next.count()) === 1 && next.isEnabled());
    await shot('plan-next-flight');
    await next.click();
    await until('Set up can be pressed again', async () => (await setup.count()) === 1 && setup.isEnabled());
    assert.match(await page.getByTestId('will-fly').innerText(), /Mission: drawn-1, \d waypoints/);
    await holdDown(flight, 'setup');
    await until('Start can be pressed again', async () => (await start.count()) === 1 && start.isEnabled());
    const again = new Map((await rows(page)).map((row) => [row.id, row]));
    await holdDown(flight, 'start');
    await until('all five fly again', () => all((row) => row.armed && distanceM(again.get(row.id), row) > MOVED_M));
    await page.getByTestId('land').click();
    await page.getByTestId('confirm').click();
    await until('all are down again', () => all((row) => !row.armed));
  }));

test('a waypoint is dragged on the map, lanes are laid, and the file is saved', { timeout: 4 * PHASE_MS }, () =>
  withFleet('plan-edit', 2, ['--uavs', '2'], async ({ page, map, until }) => {
    await page.getByTestId('step-plan').click();
    await page.getByTestId('draw-route').click();
    const { x, y, width } = await map.boundingBox();
    const at = (across, down) => [x + width * across, y + down];
    for (const place of [at(0.36, 300), at(0.46, 300)]) await page.mouse.click(...place);
    const latitude = () => page.getByLabel('Latitude of waypoint 2').inputValue();
    await until('both are in the table', async () => (await page.getByTestId('waypoint').count()) === 2);
    const before = Number(await latitude());
    await page.mouse.move(...at(0.46, 300));
    await page.mouse.down();
    await page.mouse.move(...at(0.46, 400), { steps: 5 });
    await page.mouse.up();
    await until('it lies farther south', async () => Number(await latitude()) < before);
    assert.equal(await map.getAttribute('data-waypoints'), '2', 'a drag draws nothing');
    await page.getByTestId('undo').click();
    await until('the drag is one step back', async () => Number(await latitude()) === before);

    // From a field that loses the keyboard to the map, and let go of over a panel: then it stays, although the pointer comes back.
    await page.getByLabel('Latitude of waypoint 1').focus();
    await page.mouse.move(...at(0.46, 300));
    await page.mouse.down();
    await page.mouse.move(...at(0.46, 380), { steps: 5 });
    await until('it lies farther south again', async () => Number(await latitude()) < before);
    await page.getByTestId('timeline').hover();
    await page.mouse.up();
    const released = await latitude();
    await page.mouse.move(...at(0.4, 320), { steps: 5 });
    await page.mouse.move(...at(0.46, 260), { steps: 5 });
    await page.waitForTimeout(300);
    assert.equal(await latitude(), released, 'it follows no pointer whose button is up');
    await page.getByTestId('undo').click();
    await until('that drag is one step back, too', async () => Number(await latitude()) === before);

    // Escape ends drawing and leaves the panel; the next one closes it.
    await page.keyboard.press('Escape');
    assert.equal(await page.getByTestId('end-drawing').count(), 0);
    assert.equal(await page.getByTestId('drawer').count(), 1);
    await page.getByTestId('draw-area').click();
    for (const place of [at(0.36, 320), at(0.48, 320), at(0.48, 520), at(0.36, 520)]) await page.mouse.click(...place);
    await until('lanes lie over it', async () => /Add \d+ waypoints/.test(await page.getByTestId('lay').innerText()));
    await page.getByTestId('lay').click();
    await until('they are waypoints', async () => Number(await map.getAttribute('data-waypoints')) >= 4);
    const drawn = Number(await map.getAttribute('data-waypoints'));
    for (const [format, extension] of [['plan', 'plan'], ['waypoints', 'waypoints'], ['kml', 'kml']]) {
      await page.getByTestId('export-format').selectOption(format);
      const downloading = page.waitForEvent('download');
      await page.getByTestId('export').click();
      const file = await downloading;
      assert.equal(file.suggestedFilename(), `drawn-1.${extension}`);
      // Opened again it is the same mission.
      await page.getByTestId('mission-files').setInputFiles(await file.path().then(async (path) => ({
        name: file.suggestedFilename(), mimeType: 'text/plain', buffer: await (await import('node:fs/promises')).readFile(path),
      })));
      await until(`the ${format} is read back`, async () => (await map.getAttribute('data-waypoints')) === String(drawn) && (await page.getByTestId('waypoint').count()) > 0);
    }
  }));

test('the flight is set up on the page, seen in the aircraft, flown, and saved as a plan that the bench flies', { timeout: 8 * PHASE_MS }, () =>
  withFleet('plan-setup', 4, ['--uavs', '4', '--speed', '5'], async (flight) => {
    const { page, map, all, shot, until } = flight;
    const setups = () => page.evaluate(async () => {
      const { vehicles } = await (await fetch('/api/v1/fleet/flight-setup')).json();
      return vehicles.map(({ state }) => [state.source, state.setup.formation, state.setup.distance_m, state.setup.take_off]);
    });
    await page.getByTestId('step-plan').click();
    await page.getByTestId('show-flight-setup').click();
    const send = page.getByTestId('send-setup');
    await until('the aircraft have said what can be set', async () => (await send.count()) === 1 && (await page.getByTestId('setup-formation').count()) > 3);
    assert.deepEqual(new Set((await setups()).map(([source]) => source)), new Set(['configuration']));

    // By the keyboard alone: the next formation, the spacing, together.
    await page.locator('[data-testid=setup-formation]:checked').focus();
    while ((await page.locator('[data-testid=setup-formation]:checked').inputValue()) !== 'matrix') await page.keyboard.press('ArrowRight');
    await page.getByTestId('setup-distance_m').fill('32');
    await page.keyboard.press('Tab');
    await page.getByTestId('setup-take_off').selectOption('simultaneous');
    await shot('plan-flight-setup');
    await send.focus();
    await page.keyboard.press('Enter');
    const row = page.getByTestId('setup-row');
    await until('each is seen to have it', async () => (await row.count()) === 4 && (await row.evaluateAll((list) => list.every(({ dataset }) => dataset.state === 'held'))));
    assert.deepEqual(await setups(), Array(4).fill(['operator', 'matrix', 32, 'simultaneous']));
    await shot('plan-flight-setup-sent');

    // The mission that the fleet holds is kept; another is drawn over it, saved with the set-up, and flown.
    await page.getByTestId('draw-route').click();
    const { x, y, width } = await map.boundingBox();
    for (const [across, down] of [[0.36, 300], [0.46, 300]]) await page.mouse.click(x + width * across, y + down);
    await page.keyboard.press('Escape');
    const preview = page.getByTestId('preview');
    await until('it is compared with the aircraft', async () => (await preview.getAttribute('data-state')) === 'clear');
    assert.match(await preview.innerText(), /matrix, 4 aircraft, 32/);
    const downloading = page.waitForEvent('download');
    await page.getByTestId('save-plan').click();
    const file = await downloading;
    const plan = join(SHOTS, 'page-plan.toml');
    await file.saveAs(plan);
    const bench = spawnSync(WINGBEAT, ['bench', 'run', plan], { encoding: 'utf8' });
    assert.equal(bench.status, 0, `${bench.stdout}\n${bench.stderr}`);
    assert.match(bench.stdout, /matrix/);
    // Opened again: its numbers, in place of others.
    await page.getByTestId('setup-distance_m').fill('77');
    await page.keyboard.press('Tab');
    await page.getByTestId('open-plan').setInputFiles(plan);
    await until('the plan is opened', async () => (await page.getByTestId('setup-distance_m').inputValue()) === '32');

    await page.getByTestId('give-missions').click();
    const given = page.getByTestId('mission-row');
    await until('the leader holds it', async () => (await given.count()) === 1 && (await given.getAttribute('data-state')) === 'held');
    const setup = page.getByTestId('setup');
    await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
    await holdDown(flight, 'setup');
    const start = page.getByTestId('start');
    await until('Start can be pressed', async () => (await start.count()) === 1 && start.isEnabled());
    // A matrix of four is a square: each has two neighbours as far apart as was set.
    const here = await rows(page);
    const nearest = here.map((one) => here.filter(({ id }) => id !== one.id).map((other) => distanceM(one, other)).toSorted((a, b) => a - b)[1]);
    for (const m of nearest) assert.ok(Math.abs(m - 32) < 3, `${m} m to the second neighbour, expected 32`);
    // What is under way is not set up otherwise: each says so.
    await send.click();
    await until('each refuses', async () => row.evaluateAll((list) => list.every(({ dataset }) => dataset.state === 'refused')));
    assert.match(await row.first().innerText(), /a flight is set up with disarmed motors, found armed ones/);
    await holdDown(flight, 'start');
    await until('all fly', () => all(({ armed }) => armed));
    await page.getByTestId('land').click();
    await page.getByTestId('confirm').click();
    await until('all are down', () => all((one) => !one.armed));
  }));
