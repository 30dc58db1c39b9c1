/**
 * Draws corridors on a canvas between the map and the aircraft. One stroke of a canvas covers every place once, however
 * often a route returns to it; lines and areas of the map would be darker there.
 */
import type { Map as MapLibreMap } from 'maplibre-gl';
import type { GeoPoint } from '../api/model';
import type { Strip } from './corridor';
import { TILE_PX } from './mercator';
import type { MapTokens } from './style';

/** A pixel of zoom 0 on the equator. */
const METRES_PER_PIXEL = 40_075_016.686 / TILE_PX;

export const pixels = (metres: number, latitudeDeg: number, zoom: number): number => (metres * 2 ** zoom) / (METRES_PER_PIXEL * Math.cos((latitudeDeg * Math.PI) / 180));

/** On an empty canvas: what is there already is erased where they lie. */
export function drawCorridors(context: CanvasRenderingContext2D, map: MapLibreMap, tokens: MapTokens, strips: readonly Strip[], crossed: readonly Strip[]): void {
  context.save();
  [context.lineJoin, context.lineCap] = ['round', 'round'];
  const project = ({ longitude_deg, latitude_deg }: GeoPoint) => map.project([longitude_deg, latitude_deg]);
  const zoom = map.getZoom();
  /** By width: what is as wide is one path. */
  const paths = (all: readonly Strip[]) => {
    const found = new Map<number, Path2D>();
    for (const { places, widthM } of all) {
      const width = pixels(widthM, places[0]?.latitude_deg ?? 0, zoom);
      const key = Math.round(width * 10) / 10;
      const path = found.get(key) ?? new Path2D();
      for (const [index, { x, y }] of places.map(project).entries()) index === 0 ? path.moveTo(x, y) : path.lineTo(x, y);
      found.set(key, path);
    }
    return found;
  };
  const stroke = (all: ReadonlyMap<number, Path2D>, colour: string, opacity: number, moreWide = 0) => {
    [context.strokeStyle, context.globalAlpha] = [colour, opacity];
    for (const [width, path] of all) {
      context.lineWidth = width + moreWide;
      context.stroke(path);
    }
  };
  const all = paths(strips);
  stroke(all, tokens.mission, 0.7, 2);
  // Of that the edge is left.
  context.globalCompositeOperation = 'destination-out';
  stroke(all, tokens.mission, 1);
  context.globalCompositeOperation = 'source-over';
  stroke(all, tokens.mission, 0.12);
  stroke(paths(crossed), tokens.warn, 0.3);
  context.restore();
}
