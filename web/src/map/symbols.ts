/**
 * The map's symbols and texts, drawn on the spot: the page loads no glyphs and no sprites. An image's
 * name holds all there is to draw, so the map asks for images as it needs them.
 */
import type { Map as MapLibreMap } from 'maplibre-gl';
import type { MapTokens } from './style';

/** Images are drawn larger than shown, for sharp displays. */
const RATIO = 2;
const FONT = '600 11px system-ui, sans-serif';
/** Three digits fit a ring. */
const SLOT_FONT = '600 9px system-ui, sans-serif';
const SIZE = 30;

export interface SymbolState {
  /** Old news: hollow and grey. */
  readonly stale: boolean;
  /** Filled when armed, outlined on the ground. */
  readonly armed: boolean;
}

export function symbolId(colour: number, state: SymbolState): string {
  const flags = `${state.stale ? 's' : ''}${state.armed ? 'a' : ''}`;
  return `aircraft/${colour}/${flags}`;
}

export const labelId = (name: string, leader: boolean): string => `label/${leader ? '★ ' : ''}${name}`;

/** Over an aircraft whose companion answers while its flight controller sends nothing. */
export const CROSS_ID = 'mark/cross';

/** Where the paths of two in conflict come too near. */
export const RISK_ID = 'mark/risk';

/** The place aside of an aircraft of that colour. */
export const asideId = (colour: number): string => `aside/${colour}`;

/** A place in the formation, numbered from 0 as everywhere; dashed while it is only what would be planned. */
export const slotId = (colour: number, slot: number, planned: boolean): string => `slot/${colour}/${slot}/${planned ? 'p' : ''}`;

export const numberId = (index: number): string => `number/${index + 1}`;

/** Draws the image of that name and gives it to the map; a name of none of ours is left alone. */
export function addSymbol(map: MapLibreMap, id: string, tokens: MapTokens): void {
  const slash = id.indexOf('/');
  const [kind, rest] = [id.slice(0, slash), id.slice(slash + 1)];
  let image: ImageData | undefined;
  if (kind === 'aircraft') {
    const [colour = '0', flags = ''] = rest.split('/');
    image = drawAircraft(tokens, Number(colour), {
      stale: flags.includes('s'),
      armed: flags.includes('a'),
    });
  } else if (id === CROSS_ID) {
    image = drawCross(tokens);
  } else if (id === RISK_ID) {
    image = drawRisk(tokens);
  } else if (kind === 'aside') {
    image = drawAside(tokens, Number(rest));
  } else if (kind === 'slot') {
    const [colour = '0', slot = '', flags = ''] = rest.split('/');
    image = drawSlot(tokens, Number(colour), slot, flags.includes('p'));
  } else if (kind === 'label') {
    image = drawText(rest, tokens.text, tokens.halo);
  } else if (kind === 'number') {
    image = drawText(rest, tokens.mission, tokens.halo);
  }
  if (image && !map.hasImage(id)) map.addImage(id, image, { pixelRatio: RATIO });
}

function canvas(width: number, height: number): CanvasRenderingContext2D {
  const element = document.createElement('canvas');
  element.width = Math.ceil(width * RATIO);
  element.height = Math.ceil(height * RATIO);
  const context = element.getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error('map symbols: this browser gives no 2D canvas');
  context.scale(RATIO, RATIO);
  context.lineJoin = 'round';
  context.lineCap = 'round';
  return context;
}

const pixels = (context: CanvasRenderingContext2D): ImageData =>
  context.getImageData(0, 0, context.canvas.width, context.canvas.height);

/** A dart that points north. */
function drawAircraft(tokens: MapTokens, colour: number, state: SymbolState): ImageData {
  const context = canvas(SIZE, SIZE);
  const paint = state.stale ? tokens.stale : (tokens.aircraft[colour] ?? tokens.text);
  context.translate(SIZE / 2, SIZE / 2);
  const dart = new Path2D('M0 -11 L8 9 L0 4.5 L-8 9 Z');
  context.lineWidth = 4;
  context.strokeStyle = tokens.halo;
  context.stroke(dart);
  const hollow = state.stale || !state.armed;
  context.fillStyle = hollow ? tokens.halo : paint;
  context.fill(dart);
  if (hollow) {
    if (state.stale) context.setLineDash([2.5, 3]);
    context.lineWidth = 1.8;
    context.strokeStyle = paint;
    context.stroke(dart);
    context.setLineDash([]);
  }
  return pixels(context);
}

function drawCross(tokens: MapTokens): ImageData {
  const context = canvas(SIZE, SIZE);
  context.translate(SIZE / 2, SIZE / 2);
  const cross = new Path2D('M-8 -8 L8 8 M8 -8 L-8 8');
  context.lineWidth = 5.5;
  context.strokeStyle = tokens.halo;
  context.stroke(cross);
  context.lineWidth = 2.6;
  context.strokeStyle = tokens.bad;
  context.stroke(cross);
  return pixels(context);
}

/** A warning triangle, its tip on top. */
function drawRisk(tokens: MapTokens): ImageData {
  const context = canvas(24, 24);
  context.translate(12, 13);
  const triangle = new Path2D('M0 -9 L9 7 L-9 7 Z');
  context.lineWidth = 4;
  context.strokeStyle = tokens.halo;
  context.stroke(triangle);
  context.fillStyle = tokens.warn;
  context.fill(triangle);
  context.lineWidth = 2;
  context.strokeStyle = tokens.halo;
  context.stroke(new Path2D('M0 -3.5 L0 1.5 M0 4.6 L0 4.7'));
  return pixels(context);
}

/** A diamond on its tip. */
function drawAside(tokens: MapTokens, colour: number): ImageData {
  const context = canvas(22, 22);
  context.translate(11, 11);
  const diamond = new Path2D('M0 -8 L8 0 L0 8 L-8 0 Z');
  context.lineWidth = 5;
  context.strokeStyle = tokens.halo;
  context.stroke(diamond);
  context.fillStyle = tokens.halo;
  context.fill(diamond);
  context.lineWidth = 2.2;
  context.strokeStyle = tokens.aircraft[colour] ?? tokens.text;
  context.stroke(diamond);
  return pixels(context);
}

/** A ring with its number in it. */
function drawSlot(tokens: MapTokens, colour: number, slot: string, planned: boolean): ImageData {
  const context = canvas(24, 24);
  context.translate(12, 12);
  const ring = new Path2D();
  ring.arc(0, 0, 9, 0, 2 * Math.PI);
  context.fillStyle = tokens.halo;
  context.fill(ring);
  context.lineWidth = 1.5;
  context.strokeStyle = tokens.aircraft[colour] ?? tokens.text;
  if (!planned) context.setLineDash([3, 2.6]);
  context.stroke(ring);
  context.font = SLOT_FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = tokens.text;
  context.fillText(slot, 0, 0.5);
  return pixels(context);
}

function drawText(text: string, colour: string, halo: string): ImageData {
  const ruler = canvas(1, 1);
  ruler.font = FONT;
  const context = canvas(ruler.measureText(text).width + 6, 16);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.lineWidth = 3;
  context.strokeStyle = halo;
  context.strokeText(text, 3, 8.5);
  context.fillStyle = colour;
  context.fillText(text, 3, 8.5);
  return pixels(context);
}
