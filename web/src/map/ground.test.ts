// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { creditOf, openTiles } from './ground';

test('of an attribution the text and the address are shown, and nothing of it runs', () => {
  expect(creditOf('<a href="https://www.openstreetmap.org/copyright">© OpenStreetMap\n contributors</a>')).toEqual({ text: '© OpenStreetMap contributors', href: 'https://www.openstreetmap.org/copyright' });
  expect(creditOf('made by make.py')).toEqual({ text: 'made by make.py', href: undefined });
  expect(creditOf('<script>alert(1)</script><a href="javascript:alert(1)">Somewhere</a><img src=x onerror=alert(1)>')).toEqual({ text: 'Somewhere', href: undefined });
  for (const nothing of [undefined, 7, '', '<b> </b>']) expect(creditOf(nothing)).toBeUndefined();
  expect(creditOf('a'.repeat(1000))?.text).toHaveLength(200);
});

test('of MBTiles the service says where the tiles are, how deep, and whose', async () => {
  const about = { tilejson: '3.0.0', format: 'png', tiles: ['/tiles/{z}/{x}/{y}'], minzoom: 3, maxzoom: 15, bounds: [-1, 39, 0, 40], attribution: '<b>made here</b>' };
  const asked: string[] = [];
  const answers = (body: unknown, status = 200): typeof fetch => async (url) => {
    asked.push(String(url));
    return Response.json(body, { status });
  };
  const pictures = await openTiles('http://console', answers(about));
  expect(asked).toEqual(['http://console/tiles.json']);
  expect(pictures.source).toEqual({ type: 'raster', tiles: ['http://console/tiles/{z}/{x}/{y}'], minzoom: 3, maxzoom: 15, tileSize: 256 });
  expect([pictures.bounds, pictures.credit?.text, pictures.layers(true).map(({ type }) => type)]).toEqual([[-1, 39, 0, 40], 'made here', ['raster']]);
  const vectors = await openTiles('http://console', answers({ ...about, format: 'pbf' }));
  expect(vectors.source).toEqual({ type: 'vector', tiles: ['http://console/tiles/{z}/{x}/{y}'], minzoom: 3, maxzoom: 15 });
  expect(vectors.layers(false).length).toBeGreaterThan(10);
  await expect(openTiles('http://console', answers({ code: 'not_found', message: 'found no MBTiles' }, 404))).rejects.toThrow('404 found no MBTiles');
});
