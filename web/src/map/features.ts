/** The fleet as GeoJSON, one collection per source of the map's style. */
import type { Feature, FeatureCollection, Geometry } from 'geojson';
import type { FleetMission, GeoPoint } from '../api/model';
import { inConflict } from '../fleet/avoidance';
import { health } from '../fleet/health';
import { leads, type Absences } from '../fleet/members';
import { displayName } from '../fleet/sort';
import type { Aircraft } from '../fleet/state';
import type { Tracks } from '../fleet/tracks';
import { labelId, numberId, symbolId } from './symbols';

/** Colours that aircraft share in turn; the tokens are `--aircraft-0` and on. */
export const COLOURS = 6;

export const colourOf = (index: number): number => index % COLOURS;

export const collection = (features: Feature[]): FeatureCollection => ({ type: 'FeatureCollection', features });

export const feature = (geometry: Geometry, properties: Record<string, string | number | boolean>): Feature => ({
  type: 'Feature',
  geometry,
  properties,
});

export interface AircraftFeatures {
  readonly aircraft: FeatureCollection;
  /** Places that the agents have asked for, and a line to each. */
  readonly targets: FeatureCollection;
}

/** `colours` gives each address its colour for as long as it is in the fleet. */
export function aircraftFeatures(
  fleet: readonly Aircraft[],
  out: Absences,
  colours: ReadonlyMap<string, number>,
  selected: ReadonlySet<string>,
  nowMs: number,
  groundLive: boolean,
): AircraftFeatures {
  const points: Feature[] = [];
  const targets: Feature[] = [];
  for (const aircraft of fleet) {
    const { status, address } = aircraft.fleet;
    const navigation = status?.navigation;
    if (!status || !navigation) continue;
    const { longitude_deg, latitude_deg } = navigation.position;
    const at = [longitude_deg, latitude_deg];
    const links = health(aircraft, nowMs, groundLive);
    const colour = colours.get(address) ?? 0;
    // A leader that was excluded, or left, still reports that it leads.
    const leader = leads(aircraft, out);
    points.push(
      feature({ type: 'Point', coordinates: at }, {
        address,
        heading: navigation.heading_deg,
        selected: selected.has(address),
        conflict: links.companion === 'up' && inConflict(status),
        crossed: links.flightController === 'lost',
        symbol: symbolId(colour, {
          stale: links.companion !== 'up',
          armed: status.flight_controller.armed,
        }),
        label: labelId(displayName(aircraft), leader),
      }),
    );
    const target = navigation.target;
    if (target) {
      const to = [target.longitude_deg, target.latitude_deg];
      targets.push(feature({ type: 'LineString', coordinates: [at, to] }, { colour }));
      targets.push(feature({ type: 'Point', coordinates: to }, { colour }));
    }
  }
  return { aircraft: collection(points), targets: collection(targets) };
}

export function trackFeatures(fleet: readonly Aircraft[], colours: ReadonlyMap<string, number>, tracks: Tracks): FeatureCollection {
  return collection(
    fleet.flatMap(({ fleet: { address } }) => {
      const coordinates = tracks.pieces(address);
      return coordinates.length > 0
        ? [feature({ type: 'MultiLineString', coordinates }, { colour: colours.get(address) ?? 0 })]
        : [];
    }),
  );
}

/** More missions than these would cover one another and the aircraft: then only those of selected aircraft are drawn. */
const MISSIONS_MAX = 12;

/** `selected` are ids of aircraft. */
export function missionFeatures(missions: readonly FleetMission[], selected: ReadonlySet<string>): FeatureCollection {
  return collection(
    missions.flatMap(({ waypoints, holders }) => {
      if (missions.length > MISSIONS_MAX && !holders.some((id) => selected.has(id))) return [];
      const coordinates = waypoints.map(({ longitude_deg, latitude_deg }) => [longitude_deg, latitude_deg]);
      const points = coordinates.map((at, index) => feature({ type: 'Point', coordinates: at }, { number: numberId(index) }));
      return coordinates.length > 1 ? [feature({ type: 'LineString', coordinates }, {}), ...points] : points;
    }),
  );
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
  const longitudes = points.map((point) => point.longitude_deg);
  const latitudes = points.map((point) => point.latitude_deg);
  return [Math.min(...longitudes), Math.min(...latitudes), Math.max(...longitudes), Math.max(...latitudes)];
}
