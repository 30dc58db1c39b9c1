/** Changes to a mission that is drawn, and the lanes over an area or along a line. Nothing here is checked: the ground service does that. */
import type { GeoPoint, MissionItem, MissionUpload } from '../api/model';

/** A place on the map. */
export type Place = Pick<GeoPoint, 'latitude_deg' | 'longitude_deg'>;

/** As many waypoints as an aircraft takes. */
export const WAYPOINTS_MAX = 600;

export const emptyMission = (name: string): MissionUpload => ({ name, waypoints: [], end: { kind: 'land' } });

/** Finer than the 1e-7 degree that aircraft exchange is noise. */
const rounded = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;

export const item = ({ latitude_deg, longitude_deg }: Place, heightM: number): MissionItem => ({
  latitude_deg: rounded(latitude_deg), longitude_deg: rounded(longitude_deg), height_m: heightM,
});

const withWaypoints = (mission: MissionUpload, waypoints: MissionItem[]): MissionUpload => ({ ...mission, waypoints: waypoints.slice(0, WAYPOINTS_MAX) });

/** Behind the waypoint with this index, or at the end. */
export function addWaypoint(mission: MissionUpload, place: Place, heightM: number, behind = mission.waypoints.length - 1): MissionUpload {
  return withWaypoints(mission, mission.waypoints.toSpliced(behind + 1, 0, item(place, heightM)));
}

export const changeWaypoint = (mission: MissionUpload, index: number, change: Partial<MissionItem>): MissionUpload =>
  withWaypoints(mission, mission.waypoints.map((one, at) => (at === index ? { ...one, ...change } : one)));

export const moveWaypoint = (mission: MissionUpload, index: number, { latitude_deg, longitude_deg }: Place): MissionUpload =>
  changeWaypoint(mission, index, { latitude_deg: rounded(latitude_deg), longitude_deg: rounded(longitude_deg) });

export const removeWaypoint = (mission: MissionUpload, index: number): MissionUpload => withWaypoints(mission, mission.waypoints.toSpliced(index, 1));

export const addPlaces = (mission: MissionUpload, places: readonly Place[], heightM: number): MissionUpload =>
  withWaypoints(mission, [...mission.waypoints, ...places.map((place) => item(place, heightM))]);

type Metres = readonly [east: number, north: number];

const METRES_PER_DEGREE = 111_195;

/** To metres east and north of the first place and back: good to 0.1 % over the few kilometres of a mission. */
function around(origin: Place): { to: (place: Place) => Metres; from: (at: Metres) => Place } {
  const across = METRES_PER_DEGREE * Math.cos((origin.latitude_deg * Math.PI) / 180);
  return {
    to: ({ latitude_deg, longitude_deg }) => [(longitude_deg - origin.longitude_deg) * across, (latitude_deg - origin.latitude_deg) * METRES_PER_DEGREE],
    from: ([east, north]) => ({ latitude_deg: origin.latitude_deg + north / METRES_PER_DEGREE, longitude_deg: origin.longitude_deg + east / across }),
  };
}

export interface Lanes {
  readonly places: readonly Place[];
  /** There were more waypoints than an aircraft takes: nothing of it is flown. */
  readonly tooMany: boolean;
}

const lanesOf = (places: readonly Place[]): Lanes => (places.length > WAYPOINTS_MAX ? { places: [], tooMany: true } : { places, tooMany: false });

/**
 * Lanes over an area, `spacingM` apart, along the heading (degrees from north), to and fro. The half of a lane's width lies inside
 * of the first and the last edge. An area with a bay is flown across the bay.
 */
export function survey(area: readonly Place[], spacingM: number, headingDeg: number): Lanes {
  const [origin] = area;
  if (!origin || area.length < 3 || !(spacingM > 0)) return lanesOf([]);
  const { to, from } = around(origin);
  const angle = (headingDeg * Math.PI) / 180;
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
  // Turned so that the lanes run along the second axis.
  const corners = area.map(to).map(([east, north]): Metres => [east * cos - north * sin, east * sin + north * cos]);
  const back = ([side, along]: Metres): Place => from([side * cos + along * sin, along * cos - side * sin]);
  const sides = corners.map(([side]) => side);
  const [least, most] = [Math.min(...sides), Math.max(...sides)];
  const count = Math.max(1, Math.round((most - least) / spacingM));
  if (2 * count > WAYPOINTS_MAX) return { places: [], tooMany: true };
  const step = (most - least) / count;
  const places: Place[] = [];
  for (let lane = 0; lane < count; lane += 1) {
    const side = least + (lane + 0.5) * step;
    const crossings = corners.flatMap(([fromSide, fromAlong], index) => {
      const [toSide, toAlong] = corners[(index + 1) % corners.length] ?? [0, 0];
      // Half open, so that a corner counts once.
      if (fromSide <= side === toSide <= side) return [];
      return [fromAlong + ((side - fromSide) / (toSide - fromSide)) * (toAlong - fromAlong)];
    });
    crossings.sort((a, b) => (lane % 2 === 0 ? a - b : b - a));
    places.push(...crossings.map((along) => back([side, along])));
  }
  return lanesOf(places);
}

/** A corner sharper than this would throw the outer lane far out. */
const MITRE_MAX = 3;

/** Lanes along a line, `spacingM` apart over a width, to and fro. */
export function corridor(line: readonly Place[], widthM: number, spacingM: number): Lanes {
  const [origin] = line;
  if (!origin || line.length < 2 || !(spacingM > 0) || !(widthM >= 0)) return lanesOf([]);
  const { to, from } = around(origin);
  const points = line.map(to).filter((at, index, all) => index === 0 || at[0] !== all[index - 1]?.[0] || at[1] !== all[index - 1]?.[1]);
  if (points.length < 2) return lanesOf([]);
  const count = Math.max(1, Math.round(widthM / spacingM));
  if (count * points.length > WAYPOINTS_MAX) return { places: [], tooMany: true };
  /** To the right of each stretch, of length 1. */
  const rights = points.slice(1).map(([east, north], index): Metres => {
    const [e, n] = points[index] ?? [0, 0];
    const length = Math.hypot(east - e, north - n);
    return [(north - n) / length, (e - east) / length];
  });
  const places: Place[] = [];
  for (let lane = 0; lane < count; lane += 1) {
    const offset = count === 1 ? 0 : (lane - (count - 1) / 2) * (widthM / count);
    const shifted = points.map(([east, north], index): Metres => {
      const [before, behind] = [rights[index - 1] ?? rights[index], rights[index] ?? rights[index - 1]];
      const [x, y] = [(before?.[0] ?? 0) + (behind?.[0] ?? 0), (before?.[1] ?? 0) + (behind?.[1] ?? 0)];
      const length = Math.hypot(x, y);
      // Where the line turns back there is no middle between both sides.
      if (length < 1e-9) return [east + (before?.[0] ?? 0) * offset, north + (before?.[1] ?? 0) * offset];
      const mitre = Math.min(MITRE_MAX, 2 / length);
      return [east + (x / length) * offset * mitre, north + (y / length) * offset * mitre];
    });
    places.push(...(lane % 2 === 0 ? shifted : shifted.toReversed()).map(from));
  }
  return lanesOf(places);
}
