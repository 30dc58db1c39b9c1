// Every panel, in every colour, on every kind of screen: without findings of axe-core, and with *Hold all* in view.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test } from 'node:test';

import { PHASE_MS, SHOTS, withFleet } from './support.mjs';

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const UAVS = 3;
const SCREENS = { laptop: { width: 1440, height: 900 }, tablet: { width: 820, height: 1180 }, phone: { width: 390, height: 844 } };
const STATES = {
  start: [], detail: ['aircraft-row'], plan: ['step-plan'], flight: ['step-plan', 'show-flight-setup', 'setup-formation'], check: ['step-check'], fence: ['open-fence'], parameters: ['open-parameters'], links: ['open-links'], alarms: ['alarm-badge'],
  settings: ['open-settings'], land: ['land'], more: ['more'],
};

test('axe has no findings, and Hold all is in view', { timeout: 4 * PHASE_MS }, () =>
  // With a checklist, whose items stand in the way: so *Check* is the step of now, and its panel has a button under the mouse.
  withFleet('axe', UAVS, ['--uavs', String(UAVS), '--checklist', 'deploy/checklist.toml', '--checklist-results', SHOTS], async ({ page }) => {
    const found = [];
    // Not as an element of the page: its content security policy forbids that.
    await page.addInitScript({ content: AXE });
    for (const [screen, size] of Object.entries(SCREENS)) {
      await page.setViewportSize(size);
      for (const theme of screen === 'laptop' ? ['dark', 'light', 'sun'] : ['dark']) {
        await page.evaluate((theme) => localStorage.setItem('wingbeat.preferences', JSON.stringify({ theme, sound: false })), theme);
        for (const [state, clicks] of Object.entries(STATES)) {
          await page.reload();
          await page.getByTestId('aircraft-row').nth(UAVS - 1).waitFor({ state: 'attached' });
          for (const id of clicks) await page.getByTestId(id).first().click();
          const { violations } = await page.evaluate(() => window.axe.run());
          for (const { id, nodes } of violations) found.push(`${screen} ${theme} ${state}: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).slice(0, 3).join(' | ')}`);
          const box = await page.getByTestId('hold-all').boundingBox();
          const inside = box && box.x >= 0 && box.y >= 0 && box.x + box.width <= size.width && box.y + box.height <= size.height;
          if (!inside) found.push(`${screen} ${theme} ${state}: Hold all is out of view: ${JSON.stringify(box)}`);
        }
      }
    }
    assert.deepEqual(found, []);
  }));
