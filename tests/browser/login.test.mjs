// Login to landing in a real browser, against a real fleet: an observer sees and commands nothing, an operator signs in, flies, is
// signed out in flight by another password, comes back to the same place with nothing sent meanwhile, and lands all.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { holdDown, landAll, PHASE_MS, rows, WINGBEAT, withFleet } from './support.mjs';

const UAVS = 3;
const PASSWORD = 'correct horse';
const OTHER = 'battery staple';

test('an operator flies from login to landing', { timeout: 8 * PHASE_MS }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wingbeat-login-'));
  const users = join(folder, 'users.toml');
  const change = (args, password) => execFileSync(WINGBEAT, ['ground', 'users', ...args, '--users', users], { input: `${password}\n` });
  change(['add', 'olga', '--role', 'observer'], PASSWORD);
  change(['add', 'otto', '--role', 'operator'], PASSWORD);

  const signIn = async ({ page, until }, name, password) => {
    await page.getByTestId('user-name').fill(name);
    await page.getByTestId('password').fill(password);
    await page.getByTestId('submit-sign-in').click();
    await until(`${name} has signed in`, async () => (await page.getByTestId('sign-in').count()) === 0);
  };
  const opened = async (flight) => {
    const { page, until } = flight;
    await until('the page asks who this is', async () => (await page.getByTestId('sign-in').count()) === 1);
    assert.equal((await rows(page)).length, 0, 'a stranger sees no aircraft');
    await page.screenshot({ path: join(flight.shots, 'login.png') });
    await page.getByTestId('user-name').fill('olga');
    await page.getByTestId('password').fill('a wrong one');
    await page.getByTestId('submit-sign-in').click();
    await until('the wrong password is refused', async () => (await page.getByTestId('sign-in-problem').count()) === 1);
    assert.match(await page.getByTestId('sign-in-problem').innerText(), /do not belong together/);
    await signIn(flight, 'olga', PASSWORD);
  };

  try {
    await withFleet('login', UAVS, ['--uavs', String(UAVS), '--speed', '5', '--users', users], async (flight) => {
      const { page, all, shot, until } = flight;
      const user = page.getByTestId('user');
      assert.equal(await user.innerText(), 'olga, observer');
      for (const name of ['hold', 'return', 'land', 'hold-all']) assert.ok(await page.getByTestId(name).isDisabled(), `${name} is not an observer's`);
      await shot('observer');

      await page.getByTestId('open-settings').click();
      await page.getByTestId('sign-out').click();
      await until('she has signed out', async () => (await page.getByTestId('sign-in').count()) === 1);
      await signIn(flight, 'otto', PASSWORD);
      assert.equal(await user.innerText(), 'otto, operator');
      await page.keyboard.press('Escape');

      const setup = page.getByTestId('setup');
      await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
      await holdDown(flight, 'setup');
      const start = page.getByTestId('start');
      await until('Start can be pressed', async () => (await start.count()) === 1 && start.isEnabled());
      await holdDown(flight, 'start');
      await until('all fly', () => all((row) => row.armed && row.state === 'MovingToWaypoint'));

      // In flight, with an aircraft selected: the session ends, because the password is another.
      await page.getByTestId('aircraft-row').filter({ hasText: 'UAV 2' }).click();
      const scope = await page.getByTestId('scope').innerText();
      change(['password', 'otto'], OTHER);
      await until('the page says that the session has ended', async () => (await page.getByTestId('session-ended').count()) === 1);
      assert.match(await page.getByTestId('session-ended').innerText(), /password was changed/);
      await shot('session-ended');
      // What is pressed now is not sent.
      await page.keyboard.down('l');
      await page.waitForTimeout(1500);
      await page.keyboard.up('l');
      await signIn(flight, 'otto', OTHER);
      assert.equal(await page.getByTestId('scope').innerText(), scope, 'the same place');
      await until('the fleet is there again', () => all((row) => row.armed));
      assert.ok((await rows(page)).every((row) => row.mode !== 'LAND'), 'nothing landed by itself');
      await page.keyboard.press('Escape');

      await landAll(flight);
      await page.getByTestId('open-timeline').click();
      const commands = page.locator('[data-testid=event][data-kind=command]');
      await until('every command is in the timeline', async () => (await commands.count()) === 3);
      for (const text of await commands.allInnerTexts()) assert.match(text, /otto, this page/);
      const done = page.locator('[data-testid=event][data-kind=audit]');
      await until('so is who signed in', async () => (await done.filter({ hasText: 'signed in' }).count()) === 4);
      await shot('login-landed');
    }, { opened, refusals: /401/ });

    const log = readFileSync(join(folder, 'audit.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    const line = ({ user, action, what, status }) => `${user} ${action} ${what} ${status}`.replace(/ +/g, ' ');
    assert.deepEqual(log.map(line), [
      'olga sign_in 401', 'olga sign_in 200', 'olga sign_out 204', 'otto sign_in 200', 'otto command setup 202', 'otto command start 202',
      'otto sign_in 200', 'otto command land 202',
    ]);
    assert.deepEqual(log.map(({ number }) => number), log.map((_, index) => index + 1));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
