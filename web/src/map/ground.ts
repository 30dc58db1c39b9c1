/** The map of the ground, where the service has one: a PMTiles archive, read from it piece by piece. Loaded only then. */
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

/** What PMTiles calls the kind of its tiles: vectors; pictures are 2 to 5. */
const VECTOR = 1;

export async function openGround(url: string): Promise<GroundMap> {
  const [{ PMTiles, Protocol }, { addProtocol }] = await Promise.all([import('pmtiles'), import('maplibre-gl')]);
  const archive = new PMTiles(url);
  const { tileType, maxZoom, minLon, minLat, maxLon, maxLat } = await archive.getHeader();
  const bounds: GroundMap['bounds'] = [minLon, minLat, maxLon, maxLat];
  const credit = creditOf((await archive.getMetadata() as { attribution?: unknown } | undefined)?.attribution);
  const protocol = new Protocol();
  protocol.add(archive);
  addProtocol('pmtiles', protocol.tile);
  if (tileType !== VECTOR) {
    return {
      source: { type: 'raster', url: `pmtiles://${url}`, tileSize: 256, maxzoom: maxZoom },
      bounds,
      credit,
      layers: () => [{ id: GROUND, type: 'raster', source: GROUND, paint: { 'raster-fade-duration': 0 } }],
    };
  }
  const { layers, namedFlavor } = await import('@protomaps/basemaps');
  return {
    source: { type: 'vector', url: `pmtiles://${url}`, maxzoom: maxZoom },
    bounds,
    credit,
    // Without a language there are no labels, and without labels nothing else has to be loaded.
    layers: (dark) => layers(GROUND, namedFlavor(dark ? 'dark' : 'light')),
  };
}
