/** The fleet as GeoJSON, one collection per source of the map's style. */
import type { Feature, FeatureCollection, Geometry } from 'geojson';
import type { FleetMission, GeoPoint } from '../api/model';
import type { Homes } from '../fleet/homes';
import type { Aircraft } from '../fleet/state';
import { spanDeg } from './longitude';
import { numberId } from './symbols';

/** Colours that aircraft share in turn; the tokens are `--aircraft-0` and on. */
export const COLOURS = 6;

export const colourOf = (index: number): number => index % COLOURS;

export const collection = (features: Feature[]): FeatureCollection => ({ type: 'FeatureCollection', features });

export const feature = (geometry: Geometry, properties: Record<string, string | number | boolean>): Feature => ({
  type: 'Feature',
  geometry,
  properties,
});

const CORNERS = 32;

const METRES_PER_DEGREE = 111_195;

/** A circle of true size: it grows and shrinks with the map. */
export function circle({ latitude_deg, longitude_deg }: GeoPoint, radiusM: number): [number, number][] {
  const up = radiusM / METRES_PER_DEGREE;
  const across = up / Math.cos((latitude_deg * Math.PI) / 180);
  return Array.from({ length: CORNERS + 1 }, (_, index) => {
    const angle = (2 * Math.PI * (index % CORNERS)) / CORNERS;
    return [longitude_deg + across * Math.sin(angle), latitude_deg + up * Math.cos(angle)];
  });
}

/** More missions than these would cover one another and the aircraft: then only those of selected aircraft are drawn. */
const MISSIONS_MAX = 12;

/** `selected` are ids of aircraft, `colours` by id. Waypoints are numbered as the mission's file numbers them, from 1. */
export function missionFeatures(
  missions: readonly FleetMission[],
  selected: ReadonlySet<string>,
  colours: ReadonlyMap<string, number> = new Map(),
): FeatureCollection {
  return collection(
    missions.flatMap(({ waypoints, holders }) => {
      const chosen = holders.some((id) => selected.has(id)) || missions.length === 1;
      if (missions.length > MISSIONS_MAX && !chosen) return [];
      const colour = holders.length === 1 ? (colours.get(holders[0] ?? '') ?? NEUTRAL) : NEUTRAL;
      const coordinates = waypoints.map(({ longitude_deg, latitude_deg }) => [longitude_deg, latitude_deg]);
      const points = coordinates.map((at, index) => feature({ type: 'Point', coordinates: at }, { number: numberId(index), colour, chosen }));
      return coordinates.length > 1 ? [feature({ type: 'LineString', coordinates }, { colour, chosen }), ...points] : points;
    }),
  );
}

/** A mission that several fly. */
const NEUTRAL = -1;

/** A fence around the home of an aircraft, metres. */
export interface Fence {
  readonly address: string;
  readonly radiusM: number;
}

/** Homes, each place once, and the fence of the aircraft that is looked at. */
export function siteFeatures(fleet: readonly Aircraft[], homes: Homes, fence: Fence | undefined): FeatureCollection {
  const places = new Map<string, [number, number]>();
  for (const { fleet: { address } } of fleet) {
    const home = homes.of(address);
    if (home) places.set(`${home.latitude_deg.toFixed(5)}/${home.longitude_deg.toFixed(5)}`, [home.longitude_deg, home.latitude_deg]);
  }
  const home = fence && homes.of(fence.address);
  return collection([
    ...[...places.values()].map((coordinates) => feature({ type: 'Point', coordinates }, { kind: 'home' })),
    ...(fence && home ? [feature({ type: 'LineString', coordinates: circle(home, fence.radiusM) }, { kind: 'fence' })] : []),
  ]);
}

/** West, south, east, north of everything there is to see; undefined if there is nothing. */
export function extent(
  fleet: readonly Aircraft[],
  missions: readonly FleetMission[],
  places: readonly GeoPoint[] = [],
): [number, number, number, number] | undefined {
  const points = [
    ...fleet.flatMap(({ fleet: { status } }) => (status?.navigation ? [status.navigation.position] : [])),
    ...missions.flatMap(({ waypoints }) => waypoints),
    ...places,
  ];
  if (points.length === 0) return undefined;
  const [west, east] = spanDeg(points.map((point) => point.longitude_deg)) ?? [0, 0];
  const latitudes = points.map((point) => point.latitude_deg);
  return [west, Math.min(...latitudes), east, Math.max(...latitudes)];
}
