// The PC Companion page in a real browser, against a real fleet: the operator holds Set up and Start down,
// sees the aircraft move, presses Land, and sees them down. Everything is read from the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { distanceM, holdDown, landAll, PHASE_MS, rows, withFleet } from './support.mjs';

const UAVS = 4;
const SPEED = 5;
// Farther than a hovering aircraft drifts.
const MOVED_M = 10;

test('an operator flies a fleet from the page', { timeout: 8 * PHASE_MS }, () =>
  withFleet('fleet', UAVS, ['--uavs', String(UAVS), '--speed', String(SPEED)], async (flight) => {
    const { page, map, all, shot, until } = flight;
    assert.ok((await rows(page)).every((row) => !row.armed), 'nothing is armed before Setup');

    const setup = page.getByTestId('setup');
    const start = page.getByTestId('start');
    const phase = page.getByTestId('phase');
    await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
    assert.equal(await start.count(), 0, 'Start is not offered before the aircraft are set up');
    assert.equal(await phase.getAttribute('data-step'), 'setup');
    // What Setup would plan is drawn, and the operator can hide it from the keyboard.
    await until('the formation is drawn', async () => (await map.getAttribute('data-slots')) === String(UAVS));
    await page.keyboard.press('f');
    await shot('formation');
    await page.keyboard.press('o');
    await until('the formation is hidden', async () => (await map.getAttribute('data-slots')) === '0');
    await page.keyboard.press('o');
    await holdDown(flight, 'setup');

    await until('Start can be pressed', async () => (await start.count()) === 1 && start.isEnabled());
    assert.match(await phase.innerText(), new RegExp(`Ready ${UAVS} of ${UAVS}`));
    const hovering = new Map((await rows(page)).map((row) => [row.id, row]));
    assert.ok([...hovering.values()].every((row) => row.armed), 'every aircraft hovers in its slot');
    await holdDown(flight, 'start');

    const moved = () => all((row) => hovering.has(row.id) && distanceM(hovering.get(row.id), row) > MOVED_M);
    await until(`every aircraft has moved by ${MOVED_M} m`, moved);
    await shot('flying');

    // One is excluded: asked once more, it holds, and the others no longer wait for it.
    const second = page.getByTestId('aircraft-row').filter({ hasText: 'UAV 2' });
    const excluded = { id: await second.getAttribute('data-id') };
    await second.click();
    await page.getByTestId('exclude').click();
    await page.keyboard.press('Escape');
    assert.equal(await page.getByTestId('confirm-exclude').count(), 0, 'Esc is no');
    assert.ok((await rows(page)).every((row) => !row.excluded));
    await page.getByTestId('exclude').click();
    await page.getByTestId('confirm-exclude').click();
    await until('the swarm has excluded it', async () => {
      const shown = await rows(page);
      return shown.filter((row) => row.excluded).map(({ id }) => id).join() === excluded.id;
    });
    await page.getByTestId('open-commands').click();
    const command = page.getByTestId('command').first();
    await until('all have seen it leave', async () => (await command.getAttribute('data-verdict')) === 'done');
    assert.equal(await command.getAttribute('data-command'), 'exclude');
    assert.match(await command.innerText(), /Exclude\s+UAV 2\s+4 effect seen/);
    await page.keyboard.press('Escape');
    assert.match(await page.getByTestId('given-up').innerText(), /excluded by the operator, known to 4 of 4/);
    assert.ok(await page.getByTestId('exclude').isDisabled(), 'once is enough');
    await shot('excluded');
    const others = (await rows(page)).filter((row) => row.id !== excluded.id);
    await until('the others fly on', async () =>
      (await rows(page)).every((row) => {
        const before = others.find(({ id }) => id === row.id);
        return before === undefined || distanceM(before, row) > MOVED_M;
      }));
    await page.keyboard.press('Escape');

    await landAll(flight);
    await until('the phase says that all are down', async () => (await phase.innerText()) === `Landed ${UAVS} of ${UAVS}`);
    assert.ok(!(await page.getByTestId('aircraft-row').allInnerTexts()).some((text) => /Moving|m\/s/.test(text)), 'none that is down says that it moves');
    // All that was commanded is in the timeline, newest first, with who gave it.
    await page.getByTestId('open-timeline').click();
    const commands = page.locator('[data-testid=event][data-kind=command]');
    await until('every command is in the timeline', async () => (await commands.count()) === 4);
    const texts = (await commands.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
    for (const [index, name] of ['Land', 'Exclude', 'Start', 'Set up'].entries()) assert.match(texts[index], new RegExp(`${name}: .* this page`));
    await shot('landed');

    // Another page, as after a restart of the browser, has the same past.
    await page.reload();
    await page.getByTestId('open-timeline').click();
    await until('the commands are there again', async () => (await commands.count()) === 4);
    await until('the log is there again', async () => (await page.locator('[data-testid=event][data-kind=log]').count()) > UAVS);
  }));
