/** Draws the graticule under the map, which is transparent: meridians, parallels, their labels. */
import type { Map as MapLibreMap } from 'maplibre-gl';
import { cleared } from './canvas';
import { cellMetres, latitudeLabel, lines, longitudeLabel, spacingDeg } from './graticule';
import type { MapTokens } from './style';

/** Lines closer than this are noise, and their labels would touch. */
const LINE_PX = 90;
const FONT = '12px system-ui, sans-serif';

/** What is drawn now, so that a frame in which only aircraft moved costs nothing here. */
const drawn = new WeakMap<HTMLCanvasElement, string>();

/** `covered`: how much of the map panels lie over, in pixels; labels stand beside them. */
export function drawGraticule(canvas: HTMLCanvasElement, map: MapLibreMap, tokens: MapTokens, covered: { top: number; left: number; bottom: number }): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  const bounds = map.getBounds();
  const [west, east, south, north] = [bounds.getWest(), bounds.getEast(), bounds.getSouth(), bounds.getNorth()];
  const key = [covered.top, covered.left, covered.bottom, width, height, ratio, west, east, south, north, tokens.grid].join();
  if (drawn.get(canvas) === key || width === 0 || height === 0) return;
  drawn.set(canvas, key);

  const context = cleared(canvas);
  if (!context) return;
  context.font = FONT;
  context.strokeStyle = tokens.grid;
  context.fillStyle = tokens.gridText;
  context.lineWidth = 1;

  const acrossDeg = spacingDeg((east - west) / width, LINE_PX);
  const upDeg = spacingDeg((north - south) / height, LINE_PX);
  context.beginPath();
  const meridians = lines(west, east, acrossDeg).map((at) => ({ at, x: Math.round(map.project([at, south]).x) + 0.5 }));
  const parallels = lines(south, north, upDeg).map((at) => ({ at, y: Math.round(map.project([west, at]).y) + 0.5 }));
  for (const { x } of meridians) {
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  for (const { y } of parallels) {
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.stroke();

  context.textBaseline = 'top';
  for (const { at, x } of meridians) context.fillText(longitudeLabel(at, acrossDeg), x + 4, covered.top + 4);
  context.textBaseline = 'bottom';
  // The top row belongs to the meridians, the bottom one to the scale.
  for (const { at, y } of parallels) if (y > covered.top + 34 && y < height - covered.bottom - 30) context.fillText(latitudeLabel(at, upDeg), covered.left + 4, y - 2);

  const middle = (north + south) / 2;
  const cell = `grid ${cellMetres(acrossDeg, middle, 'parallel')} × ${cellMetres(upDeg, middle, 'meridian')}`;
  context.fillText(cell, covered.left + 10, height - covered.bottom - 30);
}
