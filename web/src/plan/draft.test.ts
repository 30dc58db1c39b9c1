import { describe, expect, it } from 'vitest';
import { distanceM } from '../fleet/avoidance';
import { addWaypoint, corridor, emptyMission, moveWaypoint, removeWaypoint, survey, WAYPOINTS_MAX, type Place } from './draft';
import { plain } from './names';

const at = (east: number, north: number): Place => ({
  latitude_deg: 39.48 + north / 111_195, longitude_deg: -0.34 + east / (111_195 * Math.cos((39.48 * Math.PI) / 180)),
});
const apart = (a: Place | undefined, b: Place | undefined) => (a && b ? distanceM({ ...a, altitude_m: 0 }, { ...b, altitude_m: 0 }) : NaN);
const square = [at(0, 0), at(100, 0), at(100, 200), at(0, 200)];

describe('a mission that is drawn', () => {
  it('is added to, moved and taken from', () => {
    let mission = [at(0, 0), at(10, 0), at(20, 0)].reduce((drawn, place) => addWaypoint(drawn, place, 20), emptyMission('m'));
    mission = addWaypoint(mission, at(5, 5), 30, 0);
    expect(mission.waypoints.map(({ height_m }) => height_m)).toEqual([20, 30, 20, 20]);
    mission = moveWaypoint(mission, 1, at(6, 6));
    expect(apart(mission.waypoints[1], at(6, 6))).toBeLessThan(0.02);
    mission = removeWaypoint(mission, 0);
    expect(mission.waypoints.map(({ height_m }) => height_m)).toEqual([30, 20, 20]);
  });

  it('holds what an aircraft takes and no more', () => {
    const full = { ...emptyMission('m'), waypoints: Array.from({ length: WAYPOINTS_MAX }, () => ({ ...at(0, 0), height_m: 20 })) };
    expect(addWaypoint(full, at(1, 1), 20).waypoints.length).toBe(WAYPOINTS_MAX);
  });
});

describe('lanes over an area', () => {
  it('are as far apart as asked, to and fro, and half of that from the edge', () => {
    const { places } = survey(square, 25, 0);
    expect(places.length).toBe(8);
    expect(apart(places[0], at(12.5, 0))).toBeLessThan(0.1);
    expect(apart(places[1], at(12.5, 200))).toBeLessThan(0.1);
    expect(apart(places[2], at(37.5, 200))).toBeLessThan(0.1);
    for (const lane of [0, 1, 2, 3]) expect(apart(places[2 * lane], places[2 * lane + 1])).toBeCloseTo(200, 0);
  });

  it('run along the heading, on areas of either sense', () => {
    for (const area of [square, square.toReversed()]) {
      const { places } = survey(area, 50, 90);
      expect(places.length).toBe(8);
      expect(apart(places[0], places[1])).toBeCloseTo(100, 0);
      for (const { latitude_deg } of places) expect(latitude_deg).toBeGreaterThan(39.48);
    }
  });

  it('cross a bay', () => {
    const bay = [at(0, 0), at(100, 0), at(100, 90), at(50, 40), at(0, 90)];
    const { places } = survey(bay, 30, 90);
    expect(places.length % 2).toBe(0);
    expect(places.length).toBeGreaterThan(2 * 3);
  });

  it('are none where there is no area, and none where there would be too many', () => {
    expect(survey(square.slice(0, 2), 25, 0)).toEqual({ places: [], tooMany: false });
    expect(survey(square, 0, 0)).toEqual({ places: [], tooMany: false });
    expect(survey(square, 0.1, 0)).toEqual({ places: [], tooMany: true });
  });
});

describe('lanes along a line', () => {
  it('lie beside it, to and fro, and follow its corners', () => {
    const { places } = corridor([at(0, 0), at(0, 100), at(100, 100)], 40, 20);
    expect(places.length).toBe(6);
    expect(apart(places[0], at(-10, 0))).toBeLessThan(0.1);
    expect(apart(places[1], at(-10, 110))).toBeLessThan(0.2);
    expect(apart(places[3], at(100, 90))).toBeLessThan(0.2);
    expect(apart(places[5], at(10, 0))).toBeLessThan(0.1);
  });

  it('are the line itself where it is narrow, and survive a line that turns back or stands still', () => {
    expect(apart(corridor([at(0, 0), at(0, 100)], 10, 20).places[1], at(0, 100))).toBeLessThan(0.1);
    for (const line of [[at(0, 0), at(0, 100), at(0, 0)], [at(0, 0), at(0, 0), at(0, 50)], [at(0, 0), at(0, 0)]]) {
      for (const { latitude_deg, longitude_deg } of corridor(line, 40, 20).places) expect(Number.isFinite(latitude_deg + longitude_deg)).toBe(true);
    }
  });
});

it('shows what would steer a text by its number', () => {
  expect(plain('mission\u202egpk.kml')).toBe('mission[U+202E]gpk.kml');
  expect(plain('a\u0007b\nc')).toBe('a[U+0007]b[U+000A]c');
  expect(plain('Überflug 东')).toBe('Überflug 东');
});
