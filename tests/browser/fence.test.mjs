// A swarm is fenced in from the page: a circle is sent, FENCE_ENABLE and the swarm's speed are set, and the swarm is set up inside of it.
// On the way the corridors of its route and the wind are asked for.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { holdDown, landAll, PHASE_MS, withFleet } from './support.mjs';

const UAVS = 3;

test('a swarm is set up inside a fence that the page has sent and enabled', { timeout: 6 * PHASE_MS }, () =>
  withFleet('fence', UAVS, ['--uavs', String(UAVS), '--profile', '4.6.2', '--speed', '4'], async (flight) => {
    const { page, map, shot, until } = flight;
    const textOf = (id) => page.getByTestId(id).innerText();

    await page.getByTestId('open-fence').click();
    await until('none has a fence that acts', async () =>
      (await textOf('fence-acts')).includes(`0 of ${UAVS}`) && (await textOf('fence-enable')).split('is off (FENCE_ENABLE 0)').length === UAVS + 1);
    await page.getByTestId('aircraft-row').first().click();
    await page.getByTestId('fence-radius').fill('500');
    await page.getByTestId('add-circle').click();
    await page.getByTestId('send-region').click();
    await until('all hold the circle', async () => (await textOf('region-outcomes')).split('1 area').length === UAVS + 1);
    await page.getByTestId('enable-fence').click();
    await until('it acts on all', async () => (await textOf('fence-acts')).includes(`${UAVS} of ${UAVS}`));
    await shot('fence');

    await page.getByTestId('step-plan').click();
    await page.getByTestId('show-flight-setup').click();
    await until('the speed is known', async () => /All fly 10\.0/.test(await textOf('track-speeds')));
    await page.getByTestId('track-speed').fill('7.5');
    await page.getByTestId('track-speed').press('Tab');
    await page.getByTestId('set-track-speed').click();
    await until('the speed is set', async () => /All fly 7\.5/.test(await textOf('track-speeds')));
    await page.keyboard.press('Escape');

    await page.keyboard.press('c');
    await until('the corridor is drawn', async () => (await map.getAttribute('data-corridors')) === 'true');
    assert.equal(await map.getAttribute('data-crossings'), '0', 'one route crosses no other');
    await page.keyboard.press('Escape');

    // Followers have no route before the plan comes, and are judged by where they stand until then.
    const setup = page.getByTestId('setup');
    await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
    await holdDown(flight, 'setup');
    await until('all are ready', async () => (await textOf('phase')).includes(`Ready ${UAVS} of ${UAVS}`));
    await until('the wind is told', async () => (await page.getByTestId('map-wind').count()) === 1);
    await shot('fenced');
    await landAll(flight);
  }));
