import type { Map as MapLibreMap } from 'maplibre-gl';
import { expect, it } from 'vitest';
import type { Coordinate } from '../fleet/tracks';
import { mercator } from './mercator';
import type { MapTokens } from './style';
import { drawTracks } from './track-canvas';

const CENTRE = { lng: -0.34, lat: 39.48 };
const tokens = { aircraft: ['red', 'blue'], text: 'black' } as unknown as MapTokens;

/** A map of 800 × 600 pixels whose middle panels have moved to the left, at a zoom at which a pixel is about 0.46 m. */
const map = { getCenter: () => CENTRE, getZoom: () => 17, project: () => ({ x: 300, y: 300 }) } as unknown as MapLibreMap;

/** What is drawn, a line for each stroke. */
function drawn(...tracks: { colour: number; pieces: Coordinate[][] }[]): string[] {
  const strokes: string[] = [];
  let path = '';
  const point = (letter: string) => (x: number, y: number) => (path += `${letter}${Math.round(x)},${Math.round(y)} `);
  const context = {
    strokeStyle: '', save: () => undefined, restore: () => undefined, beginPath: () => (path = ''),
    moveTo: point('M'), lineTo: point('L'), stroke: () => strokes.push(`${context.strokeStyle} ${path.trim()}`),
  };
  drawTracks(context as unknown as CanvasRenderingContext2D, map, tokens, tracks);
  return strokes;
}

it('is Web Mercator: the world is a square', () => {
  expect(mercator(0, 0)).toEqual({ x: 0.5, y: 0.5 });
  const corner = mercator(180, 85.051_128_779_806_6);
  expect([corner.x, corner.y]).toEqual([1, expect.closeTo(0, 9)]);
});

it('draws each piece where it was, in the colour of its aircraft', () => {
  // 100 m to the east and to the north are 217 pixels each.
  const east: Coordinate = [CENTRE.lng + 100 / (111_195 * Math.cos((CENTRE.lat * Math.PI) / 180)), CENTRE.lat];
  const north: Coordinate = [CENTRE.lng, CENTRE.lat + 100 / 111_195];
  const middle: Coordinate = [CENTRE.lng, CENTRE.lat];
  expect(drawn({ colour: 1, pieces: [[middle, east], [middle, north]] }, { colour: 7, pieces: [] })).toEqual([
    'blue M300,300 L517,300 M300,300 L300,83',
    'black ',
  ]);
});

it('leaves out what is within a pixel and a half, and never an end', () => {
  const step = 0.5 / 111_195;
  const piece: Coordinate[] = Array.from({ length: 8 }, (_, index) => [CENTRE.lng, CENTRE.lat + index * step]);
  const [stroke = ''] = drawn({ colour: 0, pieces: [piece] });
  // Of steps of 1.1 pixels each second one is drawn, and the last.
  expect(stroke).toBe('red M300,300 L300,298 L300,296 L300,293 L300,292');
});
