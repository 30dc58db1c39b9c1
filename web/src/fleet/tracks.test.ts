import { expect, it } from 'vitest';
import { aircraft, status } from './samples';
import type { Aircraft } from './state';
import { POINTS_MAX, Tracks, TRACK_MS } from './tracks';

const ADDRESS = 'http://10.0.0.1:8080';

function at(timeMs: number, longitudeDeg: number, link: 'up' | 'lost' = 'up'): Aircraft[] {
  const navigation = status(1).navigation;
  if (!navigation) throw new Error('the sample has a position');
  const position = { ...navigation.position, longitude_deg: longitudeDeg };
  return [{ fleet: aircraft(1, { navigation: { ...navigation, position } }, { link }), receivedAtMs: timeMs }];
}

it('keeps one point a second, of an aircraft that moves', () => {
  const tracks = new Tracks();
  for (let time = 0; time <= 3_000; time += 100) tracks.add(at(time, time / 1e6), time);
  expect(tracks.pieces(ADDRESS)).toEqual([[[0, 39.4801], [0.001, 39.4801], [0.002, 39.4801], [0.003, 39.4801]]]);
});

it('draws no line across the time without contact', () => {
  const tracks = new Tracks();
  for (const time of [0, 1_000, 2_000]) tracks.add(at(time, time / 1e6), time);
  tracks.add(at(5_000, 0.005, 'lost'), 5_000);
  for (const time of [20_000, 21_000]) tracks.add(at(time, time / 1e6), time);
  expect(tracks.pieces(ADDRESS).map((piece) => piece.length)).toEqual([3, 2]);
});

it('forgets after five minutes, is bounded, and drops aircraft that left', () => {
  const tracks = new Tracks();
  const end = TRACK_MS * 2;
  for (let time = 0; time <= end; time += 1_000) tracks.add(at(time, time / 1e7), time);
  const points = tracks.pieces(ADDRESS).flat();
  expect(points).toHaveLength(POINTS_MAX);
  expect(points.at(-1)?.[0]).toBeCloseTo(end / 1e7, 9);
  tracks.add([], end);
  expect(tracks.pieces(ADDRESS)).toEqual([]);
});
