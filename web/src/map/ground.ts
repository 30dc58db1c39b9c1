/** The map of the ground, where the service has one: a PMTiles archive, read from it piece by piece, or MBTiles, of which the service hands out tile by tile. Loaded only then. */
import type { LayerSpecification, SourceSpecification } from 'maplibre-gl';

export interface GroundMap {
  readonly source: SourceSpecification;
  /** West, south, east, north, as the archive states them. */
  readonly bounds: [number, number, number, number];
  /** Whose data it is, which licences want to be read on the map. */
  readonly credit: Credit | undefined;
  layers(dark: boolean): LayerSpecification[];
}

export interface Credit {
  readonly text: string;
  /** Where the licence is. */
  readonly href: string | undefined;
}

export const GROUND = 'ground';

/** More than that is no line on a map. */
const CREDIT_CHARS_MAX = 200;

/** The attribution of an archive, which is HTML of another's making: of that the text, and the first address. */
export function creditOf(attribution: unknown): Credit | undefined {
  if (typeof attribution !== 'string') return undefined;
  const { body } = new DOMParser().parseFromString(attribution, 'text/html');
  for (const element of body.querySelectorAll('script, style')) element.remove();
  const text = (body.textContent ?? '').replace(/\s+/g, ' ').trim().slice(0, CREDIT_CHARS_MAX);
  const href = body.querySelector('a')?.getAttribute('href') ?? '';
  return text === '' ? undefined : { text, href: /^https?:\/\//.test(href) ? href : undefined };
}

/** What the two kinds of files say of themselves. */
interface About {
  readonly isOfVectors: boolean;
  readonly maxZoom: number;
  readonly bounds: GroundMap['bounds'];
  readonly attribution: unknown;
  /** Where MapLibre has the tiles from. */
  readonly from: { readonly url: string } | { readonly tiles: string[]; readonly minzoom: number };
}

async function groundOf({ isOfVectors, maxZoom, bounds, attribution, from }: About): Promise<GroundMap> {
  const credit = creditOf(attribution);
  if (!isOfVectors) {
    return {
      source: { type: 'raster', ...from, tileSize: 256, maxzoom: maxZoom },
      bounds,
      credit,
      layers: () => [{ id: GROUND, type: 'raster', source: GROUND, paint: { 'raster-fade-duration': 0 } }],
    };
  }
  const { layers, namedFlavor } = await import('@protomaps/basemaps');
  return {
    source: { type: 'vector', ...from, maxzoom: maxZoom },
    bounds,
    credit,
    // Without a language there are no labels, and without labels nothing else has to be loaded.
    layers: (dark) => layers(GROUND, namedFlavor(dark ? 'dark' : 'light')),
  };
}

/** What PMTiles calls the kind of its tiles: vectors; pictures are 2 to 5. */
const VECTOR = 1;

export async function openGround(url: string): Promise<GroundMap> {
  const [{ PMTiles, Protocol }, { addProtocol }] = await Promise.all([import('pmtiles'), import('maplibre-gl')]);
  const archive = new PMTiles(url);
  const { tileType, maxZoom, minLon, minLat, maxLon, maxLat } = await archive.getHeader();
  const protocol = new Protocol();
  protocol.add(archive);
  addProtocol('pmtiles', protocol.tile);
  return groundOf({
    isOfVectors: tileType === VECTOR,
    maxZoom,
    bounds: [minLon, minLat, maxLon, maxLat],
    attribution: (await archive.getMetadata() as { attribution?: unknown } | undefined)?.attribution,
    from: { url: `pmtiles://${url}` },
  });
}

/** What the service says of MBTiles: TileJSON 3.0.0. */
interface TileJson {
  readonly format: string;
  readonly tiles: readonly string[];
  readonly minzoom: number;
  readonly maxzoom: number;
  readonly bounds: GroundMap['bounds'];
  readonly attribution?: string;
}

export async function openTiles(origin: string, request: typeof fetch = fetch): Promise<GroundMap> {
  const response = await request(`${origin}/tiles.json`);
  if (!response.ok) throw new Error(`${response.status} ${((await response.json().catch(() => ({}))) as { message?: string }).message ?? ''}`.trim());
  const { format, tiles, minzoom, maxzoom, bounds, attribution } = (await response.json()) as TileJson;
  return groundOf({ isOfVectors: format === 'pbf', maxZoom: maxzoom, bounds, attribution, from: { tiles: tiles.map((path) => `${origin}${path}`), minzoom } });
}
