import { describe, expect, test } from 'vitest';
import { nearDeg, spanDeg } from './longitude';

describe('longitudes on the circle', () => {
  test('a longitude counts from another', () => {
    expect(nearDeg(-179.9, 179.9)).toBeCloseTo(180.1, 9);
    expect(nearDeg(179.9, -179.9)).toBeCloseTo(-180.1, 9);
    expect(nearDeg(-0.34, 0)).toBe(-0.34);
  });

  test('the narrowest strip is the same one wherever it lies', () => {
    expect(spanDeg([])).toBeUndefined();
    expect(spanDeg([-0.35, -0.34])).toEqual([-0.35, -0.34]);
    const offsets = [0, 0.001, 0.0025, 0.004];
    for (let at = -180; at <= 180; at += 0.5) {
      const [west, east] = spanDeg(offsets.map((off) => nearDeg(at + off, 0))) ?? [Number.NaN, Number.NaN];
      expect(east - west).toBeCloseTo(0.004, 9);
      expect(nearDeg(west, at)).toBeCloseTo(at, 9);
    }
    expect(spanDeg([179.999, -179.999])?.map((deg) => deg.toFixed(3))).toEqual(['179.999', '180.001']);
  });
});
