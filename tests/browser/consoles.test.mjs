// Two consoles: the second observes until its operator takes over, flies the mission, loses its ground service in flight and gets it back.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { distanceM, freePort, holdDown, landAll, PHASE_MS, ROOT, rows, WINGBEAT, withFleet } from './support.mjs';

const UAVS = 2;
const MOVED_M = 10;

/** The ground service of the second console; it follows the same aircraft. */
function startGround(port, keys, aircraft) {
  const args = ['ground', '--keys', keys, '--bind', `127.0.0.1:${port}`, '--web', 'web/dist', ...aircraft];
  return spawn(WINGBEAT, args, { cwd: ROOT, stdio: 'ignore' });
}

test('an operator takes over, loses the ground service in flight, and gets it back', { timeout: 8 * PHASE_MS }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wingbeat-consoles-'));
  const logs = join(folder, 'logs');
  let ground;
  try {
    // In real time: a console's orders are dated by a clock that runs as fast as the aircraft's.
    await withFleet('consoles', UAVS, ['--uavs', String(UAVS), '--logs', logs], async (flight) => {
      const { page, all, until } = flight;
      const picture = await page.evaluate(async () => (await fetch('/api/v1/fleet')).json());
      // A laptop with a copy of the folder: one folder serves one service.
      const keys = join(folder, 'second');
      cpSync(join(logs, 'console'), keys, { recursive: true });
      const addresses = picture.aircraft.map(({ address }) => address.replace(/^https?:\/\//, ''));
      const port = await freePort();
      ground = startGround(port, keys, addresses);
      const second = await page.context().browser().newPage();
      await second.setViewportSize({ width: 1440, height: 900 });
      const address = `http://127.0.0.1:${port}`;
      const answers = () => fetch(`${address}/api/v1/session`).then((answer) => answer.ok, () => false);
      await until('the second ground service answers', answers);
      await second.goto(address);

      const is = (of, id, text) => async () => (await of.getByTestId(id).count()) === 1 && (await of.getByTestId(id).innerText()).includes(text);
      await until('the second console names the first', is(second, 'elsewhere', picture.console));
      assert.equal(await second.getByTestId('setup').count(), 0, 'an observing console offers no Set up');
      await until('the first console can begin', async () => (await page.getByTestId('setup').count()) === 1);

      await second.getByTestId('take-over').hover();
      await second.mouse.down();
      await until('the second console is in charge', is(second, 'in-charge', 'this console'));
      await second.mouse.up();
      await until('the first console is told', is(page, 'elsewhere', `:${port}`));
      assert.equal(await page.getByTestId('setup').count(), 0);

      const one = { page: second, until };
      await until('Set up can be pressed', async () => (await second.getByTestId('setup').count()) === 1 && second.getByTestId('setup').isEnabled());
      await holdDown(one, 'setup');
      await until('Start can be pressed', async () => (await second.getByTestId('start').count()) === 1 && second.getByTestId('start').isEnabled());
      const hovering = new Map((await rows(page)).map((row) => [row.id, row]));
      await holdDown(one, 'start');
      const last = second.getByTestId('last-command');
      await until('both fly', async () => {
        assert.notEqual(await last.getAttribute('data-verdict'), 'bad', `Start failed: ${await last.innerText()}`);
        return all((row) => row.armed && distanceM(hovering.get(row.id), row) > MOVED_M);
      });

      const ended = once(ground, 'exit');
      ground.kill('SIGKILL');
      await ended;
      const lost = second.getByTestId('alarm-badge');
      await until('the loss of the service is an alarm', async () => (await lost.getAttribute('data-level')) === 'alarm');
      await second.screenshot({ path: join(ROOT, 'target/browser/consoles-lost.png') });
      assert.ok(await all((row) => row.armed), 'the aircraft fly on');
      await until('the first console is in charge again', is(page, 'in-charge', 'this console'));

      ground = startGround(port, keys, addresses);
      await until('the service is back, and its loss no alarm any more', async () => (await lost.getAttribute('data-level')) !== 'alarm');
      await until('the second console observes', is(second, 'elsewhere', picture.console));
      await landAll(flight);
    });
  } finally {
    ground?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
