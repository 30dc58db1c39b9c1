/**
 * The map's symbols and texts, drawn on the spot: the page loads no glyphs and no sprites. An image's
 * name holds all there is to draw, so the map asks for images as it needs them.
 */
import type { Map as MapLibreMap } from 'maplibre-gl';
import type { MapTokens } from './style';

/** Images are drawn larger than shown, for sharp displays. */
const RATIO = 2;
const FONT = '600 13px system-ui, sans-serif';
/** Three digits fit a ring. */
const SLOT_FONT = '600 11px system-ui, sans-serif';

/** Where an aircraft stood before it was armed. */
export const HOME_ID = 'mark/home';

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
  if (id === HOME_ID) {
    image = drawHome(tokens);
  } else if (id === RISK_ID) {
    image = drawRisk(tokens);
  } else if (kind === 'aside') {
    image = drawAside(tokens, Number(rest));
  } else if (kind === 'slot') {
    const [colour = '0', slot = '', flags = ''] = rest.split('/');
    image = drawSlot(tokens, Number(colour), slot, flags.includes('p'));
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

/** An H in a square. */
function drawHome(tokens: MapTokens): ImageData {
  const context = canvas(20, 20);
  context.fillStyle = tokens.halo;
  context.strokeStyle = tokens.stale;
  context.lineWidth = 1.5;
  context.fillRect(2, 2, 16, 16);
  context.strokeRect(2, 2, 16, 16);
  context.font = FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = tokens.text;
  context.fillText('H', 10, 10.5);
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
