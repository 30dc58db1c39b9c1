/** The map of the ground, where the service has one: a PMTiles archive, read from it piece by piece. Loaded only then. */
import type { LayerSpecification, SourceSpecification } from 'maplibre-gl';

export interface GroundMap {
  readonly source: SourceSpecification;
  /** West, south, east, north, as the archive states them. */
  readonly bounds: [number, number, number, number];
  layers(dark: boolean): LayerSpecification[];
}

export const GROUND = 'ground';

/** What PMTiles calls the kind of its tiles: vectors; pictures are 2 to 5. */
const VECTOR = 1;

export async function openGround(url: string): Promise<GroundMap> {
  const [{ PMTiles, Protocol }, { addProtocol }] = await Promise.all([import('pmtiles'), import('maplibre-gl')]);
  const archive = new PMTiles(url);
  const { tileType, maxZoom, minLon, minLat, maxLon, maxLat } = await archive.getHeader();
  const bounds: GroundMap['bounds'] = [minLon, minLat, maxLon, maxLat];
  const protocol = new Protocol();
  protocol.add(archive);
  addProtocol('pmtiles', protocol.tile);
  if (tileType !== VECTOR) {
    return {
      source: { type: 'raster', url: `pmtiles://${url}`, tileSize: 256, maxzoom: maxZoom },
      bounds,
      layers: () => [{ id: GROUND, type: 'raster', source: GROUND, paint: { 'raster-fade-duration': 0 } }],
    };
  }
  const { layers, namedFlavor } = await import('@protomaps/basemaps');
  return {
    source: { type: 'vector', url: `pmtiles://${url}`, maxzoom: maxZoom },
    bounds,
    // Without a language there are no labels, and without labels nothing else has to be loaded.
    layers: (dark) => layers(GROUND, namedFlavor(dark ? 'dark' : 'light')),
  };
}
