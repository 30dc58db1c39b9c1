/** Web Mercator, in which maps of the page are drawn: the world is a square, 0 to 1 from west to east and from north to south. */

/** Pixels of MapLibre's world at zoom 0; twice as many at each closer one. */
export const TILE_PX = 512;

export function mercator(longitudeDeg: number, latitudeDeg: number): { readonly x: number; readonly y: number } {
  const up = Math.log(Math.tan(Math.PI / 4 + (latitudeDeg * Math.PI) / 360));
  return { x: (longitudeDeg + 180) / 360, y: (1 - up / Math.PI) / 2 };
}
