/**
 * Draws the aircraft over the map, on a canvas of their own: a frame in which only they move costs the map nothing. Their numbers
 * stand inside the symbols, so that no label has to give way.
 */
import type { GeoPoint } from '../api/model';
import { cleared } from './canvas';
import type { Mark } from './marks';
import { Sprites, type Box } from './sprites';
import type { MapTokens } from './style';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export type Project = (place: GeoPoint) => Point;

export interface Drawn {
  readonly address: string;
  readonly x: number;
  readonly y: number;
}

/** Above so many aircraft a label of the height is drawn only for those selected or in trouble, and dashes only for those selected. */
const LABELS_MAX = 25;
const RADIUS = 12;
const FONT = '650 13px system-ui, sans-serif';
const LABEL_FONT = '600 13px system-ui, sans-serif';

/** What the parts of a symbol cover, their edges included. */
const box = (left: number, top: number, width: number, height: number): Box => ({ left, top, width, height });
const BOXES = {
  around: box(-26, -26, 52, 52), nose: box(-9, -RADIUS - 11, 18, 16), body: box(-15, -15, 30, 30), target: box(-8, -8, 16, 16),
  leader: box(-RADIUS - 11, -RADIUS - 13, 24, 24), crossed: box(RADIUS - 10, -RADIUS - 10, 20, 20),
} as const;

export function drawAircraft(
  canvas: HTMLCanvasElement,
  aircraft: Iterable<readonly [Mark, GeoPoint, number]>,
  project: Project,
  tokens: MapTokens,
  measured: readonly GeoPoint[],
  measuredText: string,
): Drawn[] {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  const context = cleared(canvas);
  if (!context) return [];
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineJoin = 'round';

  const all = [...aircraft].map(([mark, place, heading]) => ({ mark, heading, ...pick(project(place)) }));
  // Trouble lies on top, and what is selected on top of that.
  all.sort((a, b) => weight(a.mark) - weight(b.mark));
  const sprites = spritesOf(tokens, ratio);
  drawTargets(context, sprites, tokens, all.flatMap(({ mark, x, y }) => (mark.target && !mark.stale ? [{ mark, from: { x, y }, to: project(mark.target) }] : [])));
  const inView = all.filter(({ x, y }) => x > -40 && y > -40 && x < width + 40 && y < height + 40);
  for (const one of inView) drawMark(context, sprites, tokens, one.mark, one.x, one.y, one.heading);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const taken: [number, number][] = [];
  for (const { mark, x, y } of inView.toReversed()) {
    const must = mark.selected || mark.level !== undefined;
    if (mark.label === '' || (!must && inView.length > LABELS_MAX)) continue;
    const at: [number, number] = [x, y + RADIUS + 14];
    if (!must && taken.some(([left, top]) => Math.abs(left - at[0]) < 52 && Math.abs(top - at[1]) < 16)) continue;
    taken.push(at);
    text(context, tokens, mark.label, ...at);
  }
  if (measured.length > 0) drawMeasure(context, tokens, measured.map(project), measuredText);
  return all.map(({ mark: { address }, x, y }) => ({ address, x, y }));
}

const pick = ({ x, y }: Point): Point => ({ x, y });

const weight = ({ selected, level }: Mark): number => (selected ? 4 : 0) + (level === 'alarm' ? 2 : level === 'caution' ? 1 : 0);

/** One sheet for the colours of now: a browser has one page, and that one theme and one screen. */
let sheet: { readonly tokens: MapTokens; readonly sprites: Sprites } | undefined;

function spritesOf(tokens: MapTokens, ratio: number): Sprites {
  if (sheet?.tokens !== tokens || sheet.sprites.ratio !== ratio) sheet = { tokens, sprites: new Sprites(ratio) };
  return sheet.sprites;
}

function drawMark(context: CanvasRenderingContext2D, sprites: Sprites, tokens: MapTokens, mark: Mark, x: number, y: number, headingDeg: number): void {
  const { colour, armed, stale, selected, level, conflict, number, leader, crossed } = mark;
  const paint = stale ? tokens.stale : (tokens.aircraft[colour] ?? tokens.text);
  const { ratio } = sprites;
  place(context, ratio, { x, y });
  if (selected || level !== undefined || conflict) {
    sprites.copy(context, `around ${selected} ${level} ${conflict}`, BOXES.around, (on) => drawAround(on, tokens, mark));
  }
  // The nose shows the heading.
  context.rotate((headingDeg * Math.PI) / 180);
  sprites.copy(context, `nose ${paint}`, BOXES.nose, (on) => drawNose(on, tokens, paint));
  place(context, ratio, { x, y });
  sprites.copy(context, `body ${paint} ${armed} ${stale} ${number}`, BOXES.body, (on) => drawBody(on, tokens, mark, paint));
  if (leader) sprites.copy(context, 'leader', BOXES.leader, (on) => star(on, tokens, -RADIUS + 1, -RADIUS - 1));
  if (crossed) sprites.copy(context, 'crossed', BOXES.crossed, (on) => cross(on, tokens, RADIUS, -RADIUS));
}

/** What says that it is selected, or in trouble. */
function drawAround(context: CanvasRenderingContext2D, tokens: MapTokens, { selected, level, conflict }: Mark): void {
  if (selected) disc(context, RADIUS + 10, `${tokens.selection}`, 0.22, tokens.selection, 2);
  if (level !== undefined) ring(context, RADIUS + 5, level === 'alarm' ? tokens.bad : tokens.warn, level === 'alarm' ? 4 : 3);
  // Seen from far away, where circles of 20 m are specks.
  if (conflict) ring(context, RADIUS + 9, tokens.warn, 2, [4, 3]);
}

function drawNose(context: CanvasRenderingContext2D, tokens: MapTokens, paint: string): void {
  context.beginPath();
  context.moveTo(0, -RADIUS - 8);
  context.lineTo(6, -RADIUS + 1);
  context.lineTo(-6, -RADIUS + 1);
  context.closePath();
  context.lineWidth = 3;
  context.strokeStyle = tokens.halo;
  context.stroke();
  context.fillStyle = paint;
  context.fill();
}

function drawBody(context: CanvasRenderingContext2D, tokens: MapTokens, { armed, stale, number }: Mark, paint: string): void {
  const filled = armed && !stale;
  context.beginPath();
  context.arc(0, 0, RADIUS, 0, 2 * Math.PI);
  context.fillStyle = filled ? paint : tokens.halo;
  context.fill();
  context.lineWidth = 2.5;
  context.strokeStyle = filled ? tokens.halo : paint;
  if (stale) context.setLineDash([3, 3]);
  context.stroke();
  context.setLineDash([]);
  context.font = FONT;
  context.fillStyle = filled ? tokens.onAircraft : stale ? tokens.stale : tokens.text;
  context.fillText(number, 0, 0.5, 2 * RADIUS - 4);
}

function disc(context: CanvasRenderingContext2D, radius: number, fill: string, opacity: number, stroke: string, width: number): void {
  context.beginPath();
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.globalAlpha = opacity;
  context.fillStyle = fill;
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = width;
  context.strokeStyle = stroke;
  context.stroke();
}

function ring(context: CanvasRenderingContext2D, radius: number, stroke: string, width: number, dash: number[] = []): void {
  context.beginPath();
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.setLineDash(dash);
  context.lineWidth = width;
  context.strokeStyle = stroke;
  context.stroke();
  context.setLineDash([]);
}

function star(context: CanvasRenderingContext2D, tokens: MapTokens, x: number, y: number): void {
  text(context, tokens, '★', x, y);
}

function cross(context: CanvasRenderingContext2D, tokens: MapTokens, x: number, y: number): void {
  for (const [stroke, width] of [[tokens.halo, 6], [tokens.bad, 3]] as const) {
    context.beginPath();
    context.moveTo(x - 5, y - 5);
    context.lineTo(x + 5, y + 5);
    context.moveTo(x + 5, y - 5);
    context.lineTo(x - 5, y + 5);
    context.lineWidth = width;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

interface Target {
  readonly mark: Mark;
  readonly from: Point;
  readonly to: Point;
}

/** All lines, then all circles: what is alike and follows is one step for the browser. */
function drawTargets(context: CanvasRenderingContext2D, sprites: Sprites, tokens: MapTokens, targets: readonly Target[]): void {
  const paint = ({ colour }: Mark) => tokens.aircraft[colour] ?? tokens.text;
  for (const { mark, from, to } of targets) {
    // Dashes are dear, too.
    context.setLineDash(mark.selected || targets.length <= LABELS_MAX ? [4, 4] : []);
    context.strokeStyle = paint(mark);
    context.lineWidth = mark.selected ? 2 : 1;
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
  context.setLineDash([]);
  for (const { mark, to } of targets) {
    place(context, sprites.ratio, to);
    sprites.copy(context, `target ${paint(mark)}`, BOXES.target, (on) => ring(on, 5, paint(mark), 1.5));
  }
  context.setTransform(sprites.ratio, 0, 0, sprites.ratio, 0, 0);
}

/** The origin on a whole pixel: a picture between two is blurred. */
function place(context: CanvasRenderingContext2D, ratio: number, { x, y }: Point): void {
  context.setTransform(ratio, 0, 0, ratio, Math.round(x * ratio), Math.round(y * ratio));
}

function drawMeasure(context: CanvasRenderingContext2D, tokens: MapTokens, points: readonly Point[], label: string): void {
  context.strokeStyle = tokens.text;
  context.lineWidth = 2;
  context.setLineDash([6, 4]);
  context.beginPath();
  for (const [index, { x, y }] of points.entries()) index === 0 ? context.moveTo(x, y) : context.lineTo(x, y);
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = tokens.text;
  for (const { x, y } of points) context.fillRect(x - 3, y - 3, 6, 6);
  const last = points.at(-1);
  if (last && label) text(context, tokens, label, last.x, last.y - 16);
}

function text(context: CanvasRenderingContext2D, tokens: MapTokens, label: string, x: number, y: number): void {
  context.font = LABEL_FONT;
  context.lineWidth = 4;
  context.strokeStyle = tokens.halo;
  context.strokeText(label, x, y);
  context.fillStyle = tokens.text;
  context.fillText(label, x, y);
}

/** The nearest aircraft to a point of the map, if one is that near. */
export function nearest(drawn: readonly Drawn[], { x, y }: Point, withinPx: number): string | undefined {
  let found: { address: string; distance: number } | undefined;
  for (const one of drawn) {
    const distance = Math.hypot(one.x - x, one.y - y);
    if (distance <= withinPx && (!found || distance <= found.distance)) found = { address: one.address, distance };
  }
  return found?.address;
}
