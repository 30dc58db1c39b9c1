/**
 * Draws where aircraft were, on a canvas between the map and the aircraft: tracks grow each second, and for each change of a source the
 * map draws all that it has, which without a graphics card takes a tenth of a second.
 */
import type { Map as MapLibreMap } from 'maplibre-gl';
import type { Coordinate } from '../fleet/tracks';
import { mercator, TILE_PX } from './mercator';
import type { MapTokens } from './style';

export interface Track {
  /** Of the aircraft. */
  readonly colour: number;
  /** Oldest first. */
  readonly pieces: readonly (readonly Coordinate[])[];
}

/** A point nearer than this to the last one is left out, unless it is a piece's end. */
const APART_PX = 1.5;

export function drawTracks(context: CanvasRenderingContext2D, map: MapLibreMap, tokens: MapTokens, tracks: Iterable<Track>): void {
  const centre = map.getCenter();
  const [middle, at] = [mercator(centre.lng, centre.lat), map.project(centre)];
  const worldPx = TILE_PX * 2 ** map.getZoom();
  context.save();
  [context.lineWidth, context.lineJoin, context.globalAlpha] = [1.5, 'bevel', 0.55];
  for (const { colour, pieces } of tracks) {
    context.strokeStyle = tokens.aircraft[colour] ?? tokens.text;
    context.beginPath();
    for (const piece of pieces) {
      let [lastX, lastY] = [Number.NaN, Number.NaN];
      for (let index = 0; index < piece.length; index += 1) {
        const [longitudeDeg, latitudeDeg] = piece[index] as Coordinate;
        const place = mercator(longitudeDeg, latitudeDeg);
        const [x, y] = [at.x + (place.x - middle.x) * worldPx, at.y + (place.y - middle.y) * worldPx];
        if (index > 0 && index < piece.length - 1 && Math.abs(x - lastX) < APART_PX && Math.abs(y - lastY) < APART_PX) continue;
        if (index === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
        [lastX, lastY] = [x, y];
      }
    }
    context.stroke();
  }
  context.restore();
}
