// Login to landing in a real browser, against a real fleet: an observer sees and commands nothing, an operator signs in, ticks the lab's
// checklist, which a second console shows at once and without which nothing is set up, flies, is
// signed out in flight by another password, comes back to the same place with nothing sent meanwhile, and lands all.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { holdDown, landAll, PHASE_MS, rows, WINGBEAT, withFleet } from './support.mjs';

const UAVS = 3;
const PASSWORD = 'correct horse';
const OTHER = 'battery staple';
const CHECKLIST = `title = "Field"
[[item]]
id = "area"
text = "The area is clear"
[[item]]
id = "props"
text = "Propellers are tight"
per = "aircraft"
[[item]]
id = "go"
text = "All are ready"
before = "start"
`;

test('an operator flies from login to landing', { timeout: 8 * PHASE_MS }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wingbeat-login-'));
  const users = join(folder, 'users.toml');
  const change = (args, password) => execFileSync(WINGBEAT, ['ground', 'users', ...args, '--users', users], { input: `${password}\n` });
  change(['add', 'olga', '--role', 'observer'], PASSWORD);
  change(['add', 'otto', '--role', 'operator'], PASSWORD);
  const checklist = join(folder, 'checklist.toml');
  writeFileSync(checklist, CHECKLIST);

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
    await withFleet('login', UAVS, ['--uavs', String(UAVS), '--speed', '5', '--users', users, '--checklist', checklist], async (flight) => {
      const { page, all, shot, until } = flight;
      const user = page.getByTestId('user');
      assert.equal(await user.innerText(), 'olga, observer');
      for (const name of ['hold', 'return', 'land', 'hold-all']) assert.ok(await page.getByTestId(name).isDisabled(), `${name} is not an observer's`);
      await page.getByTestId('step-check').click();
      const boxes = page.getByTestId('checklist').getByRole('checkbox');
      assert.equal(await boxes.count(), 2 + UAVS);
      for (const box of await boxes.all()) assert.ok(await box.isDisabled(), 'an observer ticks nothing');
      await shot('observer');
      await page.keyboard.press('Escape');

      await page.getByTestId('open-settings').click();
      await page.getByTestId('sign-out').click();
      await until('she has signed out', async () => (await page.getByTestId('sign-in').count()) === 1);
      await signIn(flight, 'otto', PASSWORD);
      assert.equal(await user.innerText(), 'otto, operator');
      await page.keyboard.press('Escape');

      const setup = page.getByTestId('setup');
      const blocked = async (text) => until(`it waits for ${text}`, async () => (await page.getByTestId('blocked').allInnerTexts()).join().includes(text));
      await blocked('checklist: 2 not ticked: area, props (UAV 1, UAV 2, UAV 3)');
      assert.equal(await setup.count(), 0);
      // Another browser, into which the same user has signed in.
      const browser = await page.context().browser().newContext({ storageState: await page.context().storageState(), viewport: { width: 1010, height: 420 } });
      const other = await browser.newPage();
      await page.getByTestId('step-check').click();
      await other.goto(page.url());
      await other.getByTestId('step-check').click();
      await page.bringToFront();
      const box = (on, name) => on.getByRole('checkbox', { name });
      await box(page, 'The area is clear').click();
      await until('the other console shows the tick', async () => (await box(other, 'The area is clear').getAttribute('aria-checked')) === 'true');
      assert.match(await other.getByTestId('ticked-by').innerText(), /^otto, \d\d:\d\d:\d\d UTC$/);
      for (const uav of [1, 2]) await box(page, `UAV ${uav}: Propellers are tight`).click();
      await box(other, 'UAV 3: Propellers are tight').click();
      await shot('checklist');
      await browser.close();
      await page.keyboard.press('Escape');
      await until('Set up can be pressed', async () => (await setup.count()) === 1 && setup.isEnabled());
      await holdDown(flight, 'setup');
      const start = page.getByTestId('start');
      await blocked('checklist: 1 not ticked: go');
      assert.equal(await start.count(), 0, 'in the air it waits, and can hold, return and land');
      for (const name of ['hold', 'return', 'land', 'hold-all']) assert.ok(await page.getByTestId(name).isEnabled(), name);
      await page.getByTestId('step-check').click();
      await box(page, 'All are ready').click();
      await page.keyboard.press('Escape');
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
      await page.getByTestId('step-check').click();
      await until('the flight is over, and nothing is ticked', async () => (await page.getByTestId('checklist-count').innerText()) === '0 of 5 ticked');
      await until('the result of the flight is offered', async () => (await page.getByTestId('checklist-result').count()) === 1);
      await page.keyboard.press('Escape');
      await page.getByTestId('open-timeline').click();
      const commands = page.locator('[data-testid=event][data-kind=command]');
      await until('every command is in the timeline', async () => (await commands.count()) === 3);
      for (const text of await commands.allInnerTexts()) assert.match(text, /otto, this page/);
      const done = page.locator('[data-testid=event][data-kind=audit]');
      await until('so is who signed in', async () => (await done.filter({ hasText: 'signed in' }).count()) === 4);
      assert.ok((await done.allInnerTexts()).every((text) => !/undefined/.test(text)));
      assert.ok((await done.allInnerTexts()).some((text) => /ticked props/.test(text)));
      await shot('login-landed');
    }, { opened, refusals: /401/ });

    const log = readFileSync(join(folder, 'audit.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    const line = ({ user, action, what, status }) => `${user} ${action} ${what} ${status}`.replace(/ +/g, ' ');
    assert.deepEqual(log.map(line), [
      'olga sign_in 401', 'olga sign_in 200', 'olga sign_out 204', 'otto sign_in 200', 'otto tick area 200', 'otto tick props 200', 'otto tick props 200', 'otto tick props 200',
      'otto command setup 202', 'otto tick go 200', 'otto command start 202',
      'otto sign_in 200', 'otto command land 202',
    ]);
    const results = readdirSync(join(folder, 'checklists')).filter((name) => name.startsWith('checklist-'));
    assert.equal(results.length, 1);
    const result = JSON.parse(readFileSync(join(folder, 'checklists', results[0]), 'utf8'));
    assert.deepEqual(result.items.map(({ id, ticks }) => [id, ticks.length, ticks.every(({ by }) => by === 'otto')]), [['area', 1, true], ['props', UAVS, true], ['go', 1, true]]);
    assert.equal(result.setup.length, UAVS);
    assert.ok(result.start.every(({ checks, time }) => checks.length > 5 && time.endsWith('Z')), 'every automatic check with its value and time');
    assert.deepEqual(log.map(({ number }) => number), log.map((_, index) => index + 1));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
