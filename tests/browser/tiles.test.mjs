// Maps of the ground from real PMTiles archives, of pictures and of vectors (tiles/make.py), from MBTiles that are made for the test
// (tiles/mbtiles.py), and the one that ships: served by the ground service, drawn under the aircraft. What is drawn is read from a screenshot.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { PHASE_MS, ROOT, withFleet } from './support.mjs';

const GREEN = [96, 160, 80];
/** Earth and water of Protomaps' light flavour. */
const LAND = [226, 223, 218];
const WATER = [128, 222, 234];
/** Of the map, that no panel covers. */
const CLIP = { x: 420, y: 250, width: 560, height: 380 };

/** The share of the pixels that have this colour, as nearly as a browser draws it. */
async function shareOf(page, colour) {
  const png = (await page.screenshot({ clip: CLIP })).toString('base64');
  return page.evaluate(async ([png, colour]) => {
    const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const context = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, picture.width, picture.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) if (colour.every((value, part) => Math.abs(data[at + part] - value) <= 3)) found += 1;
    return (4 * found) / data.length;
  }, [png, colour]);
}

/** One level; a click while the map still moves would cut that short. */
async function zoomOut(page) {
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await sleep(1_000);
}

/** Whether this comes to hold soon: a level more is no harm. A screenshot alone may take seconds. */
async function drawnSoon(holds) {
  for (const end = Date.now() + 3_000; Date.now() < end; await sleep(250)) if (await holds()) return true;
  return false;
}

async function withMap(archive, credit, look) {
  const name = basename(archive, '.pmtiles').replace('.', '-');
  const opened = async ({ page }) => {
    await page.evaluate(() => localStorage.setItem('wingbeat.preferences', JSON.stringify({ theme: 'light', sound: false })));
    await page.reload();
  };
  await withFleet(`tiles-${name}`, 2, ['--uavs', '2', '--tiles', archive], async (flight) => {
    await flight.until('the map of the ground is open', async () => (await flight.map.getAttribute('data-ground')) === 'true');
    assert.equal(await flight.page.getByTestId('ground-credit').innerText(), credit);
    await look(flight);
    assert.equal(await flight.page.getByTestId('ground-problem').count(), 0);
    await flight.shot(`tiles-${name}`);
  }, { opened });
}

async function picturesAreDrawn({ page, until }) {
  await until('the ground is green', async () => (await shareOf(page, GREEN)) > 0.8);
  // Away from the place there are no tiles: the graticule is left.
  await until('most of the map is not', async () => {
    await zoomOut(page);
    return (await shareOf(page, GREEN)) < 0.3;
  });
}

async function vectorsAreDrawn({ page, until }) {
  // Each tile has a lake: one is in sight when the map shows as much as a tile, however near it was before, or comes by fitting itself.
  const hasBoth = async () => (await shareOf(page, LAND)) > 0.2 && (await shareOf(page, WATER)) > 0.05;
  await until('there are land and water', async () => {
    await zoomOut(page);
    return drawnSoon(hasBoth);
  });
}

test('pictures of the ground are drawn under the aircraft', { timeout: 3 * PHASE_MS }, () =>
  withMap('tests/browser/tiles/pictures.pmtiles', 'made by make.py', picturesAreDrawn));

test('vectors of the ground are drawn in the colours of the page', { timeout: 3 * PHASE_MS }, () =>
  withMap('tests/browser/tiles/vectors.pmtiles', 'made by make.py', vectorsAreDrawn));

for (const [kind, areDrawn] of [['pictures', picturesAreDrawn], ['vectors', vectorsAreDrawn]]) {
  test(`${kind} of MBTiles are drawn`, { timeout: 3 * PHASE_MS }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wingbeat-'));
    try {
      const file = join(folder, `${kind}.mbtiles`);
      execFileSync('python3', [join(ROOT, 'tests/browser/tiles/mbtiles.py'), kind, file]);
      await withMap(file, 'made by mbtiles.py', async (flight) => {
        const answers = [];
        flight.page.on('response', (response) => answers.push([response.status(), new URL(response.url()).pathname]));
        await areDrawn(flight);
        const tiles = answers.filter(([, path]) => /^\/tiles\/\d+\/\d+\/\d+$/.test(path));
        // Around the file's own tiles there are none (204), which is no error.
        assert.ok(tiles.some(([status]) => status === 200) && tiles.every(([status]) => status === 200 || status === 204), JSON.stringify(tiles));
        assert.ok(answers.every(([, path]) => path !== '/map.pmtiles'));
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test('the map that ships has the land and the sea of the demo, and says whose data it is', { timeout: 3 * PHASE_MS }, () =>
  withMap('deploy/maps/valencia.pmtiles', '© OpenStreetMap contributors', async ({ page, shot, until }) => {
    assert.equal(await page.getByTestId('ground-credit').getByRole('link').getAttribute('href'), 'https://www.openstreetmap.org/copyright');
    // The aircraft stand on land.
    await until('there is land', async () => (await shareOf(page, LAND)) > 0.8);
    const hasBoth = async () => (await shareOf(page, LAND)) > 0.2 && (await shareOf(page, WATER)) > 0.2;
    await until('there are land and sea', async () => {
      await zoomOut(page);
      return drawnSoon(hasBoth);
    });
    await shot('tiles-valencia-coast');
  }));
