/** Where the aircraft were in the last minutes: bounded in time, in points and in aircraft. */
import type { Aircraft } from './state';

export const TRACK_MS = 5 * 60_000;
/** Points of one aircraft: one a second for five minutes. */
export const POINTS_MAX = 300;
const POINT_EVERY_MS = 1_000;
/** A longer gap is a hole in the knowledge, not a straight flight. */
const GAP_MS = 5_000;

interface TrackPoint {
  readonly atMs: number;
  readonly longitudeDeg: number;
  readonly latitudeDeg: number;
}

/** Longitude and latitude. */
export type Coordinate = [number, number];

export class Tracks {
  readonly #points = new Map<string, TrackPoint[]>();

  /** Adds where the aircraft are now. Aircraft that left the fleet lose their track. */
  add(fleet: readonly Aircraft[], nowMs: number): void {
    const present = new Set(fleet.map(({ fleet }) => fleet.address));
    for (const address of this.#points.keys()) if (!present.has(address)) this.#points.delete(address);
    for (const { fleet: aircraft, receivedAtMs } of fleet) {
      const points = this.#points.get(aircraft.address) ?? [];
      this.#points.set(aircraft.address, points);
      const position = aircraft.link === 'up' ? aircraft.status?.navigation?.position : undefined;
      const last = points.at(-1);
      if (position && (!last || receivedAtMs - last.atMs >= POINT_EVERY_MS)) {
        const moved = last?.longitudeDeg !== position.longitude_deg || last?.latitudeDeg !== position.latitude_deg;
        if (moved) points.push({ atMs: receivedAtMs, longitudeDeg: position.longitude_deg, latitudeDeg: position.latitude_deg });
      }
      const first = points.findIndex((point) => point.atMs >= nowMs - TRACK_MS);
      points.splice(0, Math.max(first === -1 ? points.length : first, points.length - POINTS_MAX));
    }
  }

  /** Aircraft that have one. */
  get size(): number {
    return [...this.#points.values()].filter((points) => points.length > 1).length;
  }

  /** The pieces of an aircraft's track, oldest first, each of two points at least. */
  pieces(address: string): Coordinate[][] {
    const pieces: Coordinate[][] = [];
    let piece: Coordinate[] = [];
    let lastMs = -Infinity;
    for (const { atMs, longitudeDeg, latitudeDeg } of this.#points.get(address) ?? []) {
      if (atMs - lastMs > GAP_MS) {
        piece = [];
        pieces.push(piece);
      }
      piece.push([longitudeDeg, latitudeDeg]);
      lastMs = atMs;
    }
    return pieces.filter((coordinates) => coordinates.length > 1);
  }
}
