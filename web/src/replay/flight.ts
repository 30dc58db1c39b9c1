/**
 * A recorded flight of one aircraft or of many, on one time base: what held at any moment of it. Pure. Times of the replay count in
 * milliseconds from the beginning of the first log.
 */
import { distanceM } from '../fleet/avoidance';
import { nearDeg } from '../map/longitude';
import type { GeoPoint, RecordedEvent, RecordedTrack } from '../api/model';

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16] as const;
export type Speed = (typeof SPEEDS)[number];

/** Between two samples so far apart nothing is known: a log has four a second, fewer where it was thinned. */
const GAP_MS = 2_000;
const SAMPLE_MS = 250;
/** A sender counts as received for so many periods after its last datagram. */
const RECEIVED_PERIODS = 3;
/** Points of one path that are drawn. */
const PATH_POINTS_MAX = 1_500;

export interface Track {
  readonly data: RecordedTrack;
  /** From the agent's time to that of the replay. */
  readonly offsetMs: number;
}

export interface Flight {
  readonly tracks: readonly Track[];
  readonly durationMs: number;
  /** UTC at its beginning, milliseconds since 1970; undefined where a log does not state it. */
  readonly zeroUnixMs: number | undefined;
  /** Whether the logs are on UTC. Where they are not, each counts from the start of its agent. */
  readonly onOneClock: boolean;
  readonly events: readonly FlightEvent[];
}

export interface FlightEvent {
  readonly key: string;
  readonly atMs: number;
  /** Index of its track. */
  readonly track: number;
  readonly event: RecordedEvent;
}

/** What held of one aircraft. */
export interface Moment {
  readonly state: string;
  readonly place: GeoPoint | undefined;
  readonly heightM: number;
  readonly speedMS: number;
  readonly headingDeg: number;
  readonly batteryPercent: number | undefined;
  readonly armed: boolean;
  readonly engaged: boolean;
  readonly waypoint: number | undefined;
  readonly nearest: { readonly id: string; readonly distanceM: number } | undefined;
  /** The log has nothing of this moment: what is shown is older. */
  readonly stale: boolean;
}

/** The last datagram of one sender. */
export interface Received {
  readonly id: string;
  readonly kind: string;
  readonly ageMs: number;
  /** Where the sender said that it was. */
  readonly place: GeoPoint | undefined;
}

/** Puts logs on one time base: on UTC where all state it, else on the time of their agents, which those of one bench share. */
export function flightOf(logs: readonly RecordedTrack[]): Flight {
  const zeros = logs.map(({ zero_unix_ms }) => zero_unix_ms ?? undefined);
  const onOneClock = zeros.every((zero) => zero !== undefined);
  const begins = logs.map((log, index) => (log.time_ms[0] ?? 0) + (onOneClock ? (zeros[index] ?? 0) : 0));
  const first = begins.length > 0 ? Math.min(...begins) : 0;
  const tracks = logs.map((data, index): Track => ({
    data, offsetMs: (onOneClock ? (zeros[index] ?? 0) : 0) - first,
  }));
  const ends = tracks.map(({ data, offsetMs }) => (data.time_ms.at(-1) ?? 0) + offsetMs);
  const events = tracks.flatMap(({ data, offsetMs }, track) =>
    data.events.map((event, index): FlightEvent => ({ key: `${track}/${index}`, atMs: Math.max(0, event.time_ms + offsetMs), track, event })),
  );
  events.sort((a, b) => a.atMs - b.atMs);
  return {
    tracks, events, onOneClock,
    durationMs: Math.max(0, ...ends),
    zeroUnixMs: onOneClock && logs.length > 0 ? first : undefined,
  };
}

/** Index of the last value that is not after `at`; -1 where there is none. The values ascend. */
export function lastUpTo(values: readonly number[], at: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? Infinity) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function placeAt({ latitude_e7, longitude_e7, altitude_mm }: RecordedTrack, index: number): GeoPoint | undefined {
  const [latitude, longitude] = [latitude_e7[index], longitude_e7[index]];
  if (latitude == null || longitude == null) return undefined;
  return { latitude_deg: latitude / 1e7, longitude_deg: longitude / 1e7, altitude_m: (altitude_mm[index] ?? 0) / 1000 };
}

const gapMs = ({ every }: RecordedTrack): number => Math.max(GAP_MS, 4 * SAMPLE_MS * every);

/** What held of one aircraft at a moment of the replay; undefined before its log begins. Places are between those of two samples. */
export function momentAt({ data, offsetMs }: Track, atMs: number): Moment | undefined {
  const time = atMs - offsetMs;
  const index = lastUpTo(data.time_ms, time);
  if (index < 0) return undefined;
  const [from, to] = [data.time_ms[index] ?? 0, data.time_ms[index + 1]];
  const between = to !== undefined && to - from <= gapMs(data) && to > from ? (time - from) / (to - from) : 0;
  const mix = (values: readonly number[]) => {
    const value = values[index] ?? 0;
    return value + ((values[index + 1] ?? value) - value) * between;
  };
  const [here, next] = [placeAt(data, index), between > 0 ? placeAt(data, index + 1) : undefined];
  const place = here && next
    ? {
        latitude_deg: here.latitude_deg + (next.latitude_deg - here.latitude_deg) * between,
        longitude_deg: here.longitude_deg + (next.longitude_deg - here.longitude_deg) * between,
        altitude_m: here.altitude_m + (next.altitude_m - here.altitude_m) * between,
      }
    : here;
  const heading = data.heading_deg[index] ?? 0;
  // The short way round.
  const turn = (((data.heading_deg[index + 1] ?? heading) - heading + 540) % 360) - 180;
  const [nearest, nearestCm] = [data.nearest[index], data.nearest_cm[index]];
  return {
    state: data.states[data.state[index] ?? -1] ?? '',
    place,
    heightM: mix(data.height_cm) / 100,
    speedMS: mix(data.speed_cm_s) / 100,
    headingDeg: (heading + turn * between + 360) % 360,
    batteryPercent: data.battery_percent[index] ?? undefined,
    armed: data.armed[index] ?? false,
    engaged: data.engaged[index] ?? false,
    waypoint: data.waypoint_reached[index] ?? undefined,
    nearest: nearest == null || nearestCm == null ? undefined : { id: data.peers[nearest] ?? '', distanceM: nearestCm / 100 },
    stale: time - from > gapMs(data),
  };
}

/** The nearest other aircraft of the replay, by the positions of both logs. */
export interface Near {
  /** Index of its track. */
  readonly index: number;
  readonly distanceM: number;
}

/** For each aircraft the nearest other in space; undefined where no two are known. What a log has no more counts for nothing. */
export function nearestOf(moments: readonly (Moment | undefined)[]): (Near | undefined)[] {
  const found = moments.map((): Near | undefined => undefined);
  const places = moments.map((moment) => (moment && !moment.stale ? moment.place : undefined));
  for (const [index, one] of places.entries()) {
    for (let other = index + 1; other < places.length; other += 1) {
      const there = places[other];
      if (!one || !there) continue;
      const far = Math.hypot(distanceM(one, there), one.altitude_m - there.altitude_m);
      if (far < (found[index]?.distanceM ?? Infinity)) found[index] = { index: other, distanceM: far };
      if (far < (found[other]?.distanceM ?? Infinity)) found[other] = { index, distanceM: far };
    }
  }
  return found;
}

/** The senders that an aircraft received up to a moment, each with its last datagram, the newest first. */
export function receivedAt({ data, offsetMs }: Track, atMs: number): Received[] {
  const { received, peers } = data;
  const [time, within] = [atMs - offsetMs, RECEIVED_PERIODS * Math.max(1_000, received.period_ms)];
  const found = new Map<number, Received>();
  for (let index = lastUpTo(received.time_ms, time); index >= 0; index -= 1) {
    const ageMs = time - (received.time_ms[index] ?? 0);
    if (ageMs > within) break;
    const from = received.from[index] ?? -1;
    if (found.has(from)) continue;
    const [latitude, longitude] = [received.latitude_e7[index], received.longitude_e7[index]];
    found.set(from, {
      id: peers[from] ?? '', kind: received.kinds[received.kind[index] ?? -1] ?? '', ageMs,
      place: latitude == null || longitude == null ? undefined : { latitude_deg: latitude / 1e7, longitude_deg: longitude / 1e7, altitude_m: 0 },
    });
  }
  return [...found.values()];
}

/** The path that an aircraft had flown by then: pieces of longitudes and latitudes. */
export function pathUpTo({ data, offsetMs }: Track, atMs: number): [number, number][][] {
  const end = lastUpTo(data.time_ms, atMs - offsetMs);
  const stride = Math.max(1, Math.ceil((end + 1) / PATH_POINTS_MAX));
  const pieces: [number, number][][] = [];
  let piece: [number, number][] = [];
  let last = -Infinity;
  let first: number | undefined;
  for (let index = 0; index <= end; index += 1) {
    if (index % stride !== 0 && index !== end) continue;
    const [latitude, longitude, time] = [data.latitude_e7[index], data.longitude_e7[index], data.time_ms[index] ?? 0];
    if (latitude == null || longitude == null) continue;
    if (time - last > stride * gapMs(data)) {
      piece = [];
      pieces.push(piece);
    }
    // A path that crosses the date line continues beyond 180 degrees.
    first ??= longitude / 1e7;
    piece.push([nearDeg(longitude / 1e7, first), latitude / 1e7]);
    last = time;
  }
  return pieces.filter((coordinates) => coordinates.length > 1);
}

/** West, south, east, north of all paths; undefined where no position is known. */
export function extentOf({ tracks }: Flight): [number, number, number, number] | undefined {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  let first: number | undefined;
  for (const { data } of tracks) {
    for (const [index, latitude] of data.latitude_e7.entries()) {
      const longitude = data.longitude_e7[index];
      if (latitude == null || longitude == null) continue;
      // Flights are near: all longitudes count from the first, across the date line as well.
      first ??= longitude / 1e7;
      const near = nearDeg(longitude / 1e7, first) * 1e7;
      west = Math.min(west, near);
      east = Math.max(east, near);
      south = Math.min(south, latitude);
      north = Math.max(north, latitude);
    }
  }
  return Number.isFinite(west) ? [west / 1e7, south / 1e7, east / 1e7, north / 1e7] : undefined;
}

/** Where the replay is after `elapsedMs` of the page's clock; it stops at both ends. */
export function advanced(atMs: number, elapsedMs: number, rate: number, durationMs: number): { atMs: number; ended: boolean } {
  const next = atMs + elapsedMs * rate;
  if (next >= durationMs && rate > 0) return { atMs: durationMs, ended: true };
  if (next <= 0 && rate < 0) return { atMs: 0, ended: true };
  return { atMs: next, ended: false };
}

/** As many samples of each log as the page can hold for so many. */
export const samplesFor = (logs: number): number => Math.min(20_000, Math.max(1_000, Math.floor(400_000 / Math.max(1, logs))));
