/** Longitudes on the circle: what lies across the date line is near. */

/** The longitude as it counts from another, within half a turn of it: -179.9 from 179.9 is 180.1. */
export const nearDeg = (longitude: number, from: number): number => longitude - 360 * Math.round((longitude - from) / 360);

/** West and east of the narrowest strip that holds all longitudes; east may be more than 180. Undefined without a longitude. */
export function spanDeg(longitudes: readonly number[]): [number, number] | undefined {
  const sorted = longitudes.map((deg) => nearDeg(deg, 0)).sort((a, b) => a - b);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  // The widest gap between neighbours is outside.
  let [west, east, gap] = [first, last, first + 360 - last];
  for (const [index, deg] of sorted.slice(1).entries()) {
    const before = sorted[index] ?? first;
    if (deg - before > gap) [west, east, gap] = [deg, before + 360, deg - before];
  }
  return [west, east];
}
