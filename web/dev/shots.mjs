// Pictures of the page against `dev/fake-ground.mjs`, for looking at one's work: each size, theme and fleet.
//
//   node dev/shots.mjs [--out /tmp/shots] [--only NAME]
//
// It takes playwright-core from tests/browser (`npm ci` there) and Chromium from $CHROMIUM or /usr/bin/chromium.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { chromium } = createRequire(new URL('../../tests/browser/package.json', import.meta.url))('playwright-core');
const { values } = parseArgs({ options: { out: { type: 'string', default: '/tmp/shots' }, only: { type: 'string', default: '' } } });
mkdirSync(values.out, { recursive: true });

const LAPTOP = { width: 1440, height: 900 };
const TABLET = { width: 1024, height: 768 };
const UPRIGHT = { width: 820, height: 1180 };
const PHONE = { width: 390, height: 844 };
const FLEETS = { 5: ['--uavs', '5', '--autostart'], '5-alarms': ['--uavs', '5', '--trouble', '--autostart'], 25: ['--uavs', '25', '--autostart'], '25-alarms': ['--uavs', '25', '--trouble', '--alarms'], 100: ['--uavs', '100', '--autostart', '--alarms'], mbcap: ['--uavs', '6', '--mbcap', '--autostart'] };
const SHOTS = [
  ['5-dark', '5', LAPTOP, 'dark'], ['5-light', '5', LAPTOP, 'light'], ['5-sun', '5', LAPTOP, 'sun'], ['5-tablet', '5', TABLET, 'dark'], ['5-upright', '5', UPRIGHT, 'light'], ['5-phone', '5', PHONE, 'dark'],
  ['5-detail', '5', LAPTOP, 'dark', 'detail'], ['5-alarms', '5-alarms', LAPTOP, 'dark', 'alarms'], ['5-check', '5-alarms', LAPTOP, 'light', 'check'], ['5-timeline', '5-alarms', LAPTOP, 'dark', 'timeline'], ['5-phone-detail', '5-alarms', PHONE, 'light', 'detail'],
  ['25-dark', '25', LAPTOP, 'dark'], ['25-alarms', '25-alarms', LAPTOP, 'light'], ['25-tablet', '25-alarms', TABLET, 'dark', 'detail'],
  ['100-dark', '100', LAPTOP, 'dark'], ['100-light', '100', LAPTOP, 'light', 'detail'], ['100-phone', '100', PHONE, 'dark'], ['mbcap', 'mbcap', LAPTOP, 'dark', 'detail'],
  ['5-hold', '5', LAPTOP, 'dark', 'hold'], ['5-settings', '5', LAPTOP, 'light', 'settings'], ['5-land', '5', LAPTOP, 'dark', 'land'], ['5-links', '5', LAPTOP, 'dark', 'links'], ['5-plan', '5', LAPTOP, 'dark', 'plan'], ['5-draw', '5', LAPTOP, 'light', 'draw'], ['5-draw-dark', '5', LAPTOP, 'dark', 'draw'], ['5-phone-draw', '5', PHONE, 'light', 'draw'], ['5-phone-plan', '5', PHONE, 'dark', 'drawn'],
].filter(([name]) => name.includes(values.only));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'] });
for (const fleet of new Set(SHOTS.map(([, fleet]) => fleet))) {
  const port = 8790;
  const ground = spawn('node', [fileURLToPath(new URL('fake-ground.mjs', import.meta.url)), '--port', String(port), ...FLEETS[fleet]], { stdio: 'ignore' });
  await sleep(12_000);
  for (const [name, , viewport, theme, what] of SHOTS.filter((shot) => shot[1] === fleet)) {
    const page = await browser.newPage({ viewport, hasTouch: viewport.width < 1100 });
    page.on('console', (message) => message.type() === 'error' && console.log(name, message.text()));
    page.on('pageerror', (error) => console.log(name, String(error)));
    await page.addInitScript((theme) => localStorage.setItem('wingbeat.preferences', JSON.stringify({ theme, sound: false })), theme);
    await page.goto(`http://127.0.0.1:${port}`);
    await page.waitForSelector('[data-testid=map][data-ready=true]', { timeout: 30_000 });
    await sleep(2_500);
    if (what === 'detail') await page.getByTestId('aircraft-row').nth(0).click();
    if (what === 'alarms') await page.getByTestId('alarm-badge').click();
    if (what === 'check') await page.getByTestId('step-check').click();
    if (what === 'plan') await page.getByTestId('step-plan').click();
    if (what === 'draw' || what === 'drawn') {
      await page.getByTestId('step-plan').click();
      await page.getByTestId('draw-route').click();
      const { x, y, width, height } = await page.getByTestId('map').boundingBox();
      for (const [across, down] of [[0.36, 0.3], [0.5, 0.28], [0.5, 0.42], [0.38, 0.4]]) await page.mouse.click(x + width * across, y + height * down);
      if (what === 'drawn') await page.getByRole('button', { name: 'Details' }).click();
    }
    if (what === 'links') await page.getByTestId('open-links').click();
    if (what === 'timeline') await page.getByTestId('open-timeline').click();
    if (what === 'settings') await page.getByTestId('open-settings').click();
    if (what === 'hold') await page.getByTestId('hold-all').click();
    if (what === 'land') await page.getByTestId('land').click();
    await sleep(1_500);
    await page.screenshot({ path: join(values.out, `${name}.png`) });
    await page.close();
  }
  ground.kill();
  await sleep(300);
}
await browser.close();
