// The PC Companion page in a real browser, against a real fleet: the operator presses Setup and Start,
// sees the aircraft move, presses Land, and sees them down. Everything is read from the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { distanceM, landAll, PHASE_MS, rows, withFleet } from './support.mjs';

const UAVS = 4;
const SPEED = 5;
// Farther than a hovering aircraft drifts.
const MOVED_M = 10;

test('an operator flies a fleet from the page', { timeout: 8 * PHASE_MS }, () =>
  withFleet('fleet', UAVS, ['--uavs', String(UAVS), '--speed', String(SPEED)], async (flight) => {
    const { page, all, shot, until } = flight;
    assert.ok((await rows(page)).every((row) => !row.armed), 'nothing is armed before Setup');

    const setup = page.getByTestId('setup');
    const start = page.getByTestId('start');
    await until('Setup can be pressed', () => setup.isEnabled());
    assert.ok(await start.isDisabled(), 'Start cannot be pressed before Setup');
    await setup.click();

    await until('Start can be pressed', () => start.isEnabled());
    const hovering = new Map((await rows(page)).map((row) => [row.id, row]));
    assert.ok([...hovering.values()].every((row) => row.armed), 'every aircraft hovers in its slot');
    await start.click();

    const moved = () => all((row) => hovering.has(row.id) && distanceM(hovering.get(row.id), row) > MOVED_M);
    await until(`every aircraft has moved by ${MOVED_M} m`, moved);
    await shot('flying');

    await landAll(flight);
    await shot('landed');
  }));
