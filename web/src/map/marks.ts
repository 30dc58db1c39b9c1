/** The aircraft on the map: what is drawn of each, and where it is between two updates. */
import type { GeoPoint } from '../api/model';
import { distanceM, inConflict } from '../fleet/avoidance';
import { isArmed, worst, type Condition, type Level } from '../fleet/conditions';
import { metres } from '../fleet/format';
import { health } from '../fleet/health';
import { leads, type Absences } from '../fleet/members';
import { displayName } from '../fleet/sort';
import type { Aircraft } from '../fleet/state';

export interface Mark {
  readonly address: string;
  readonly number: string;
  readonly colour: number;
  readonly place: GeoPoint;
  readonly headingDeg: number;
  /** Filled when armed, outlined on the ground. */
  readonly armed: boolean;
  /** Old news: hollow and grey. */
  readonly stale: boolean;
  /** Its companion answers and its flight controller sends nothing. */
  readonly crossed: boolean;
  readonly conflict: boolean;
  readonly selected: boolean;
  readonly level: Level | undefined;
  readonly leader: boolean;
  /** Below the symbol, where there is room; always for those selected or in trouble. */
  readonly label: string;
  /** Where its agent sends it. */
  readonly target: GeoPoint | undefined;
}

export interface Looks {
  readonly absences: Absences;
  readonly colours: ReadonlyMap<string, number>;
  readonly numbers: ReadonlyMap<string, string>;
  readonly conditions: ReadonlyMap<string, readonly Condition[]>;
  readonly selected: ReadonlySet<string>;
  readonly nowMs: number;
  readonly groundLive: boolean;
}

export function marksOf(fleet: readonly Aircraft[], looks: Looks): Mark[] {
  return fleet.flatMap((aircraft): Mark[] => {
    const { status, address } = aircraft.fleet;
    const navigation = status?.navigation;
    if (!status || !navigation) return [];
    const links = health(aircraft, looks.nowMs, looks.groundLive);
    const level = worst(looks.conditions.get(address) ?? []);
    const selected = looks.selected.has(address);
    const height = isArmed(aircraft) ? metres(navigation.height_m) : '';
    return [{
      address,
      number: looks.numbers.get(address) ?? '',
      colour: looks.colours.get(address) ?? 0,
      place: navigation.position,
      headingDeg: navigation.heading_deg,
      armed: status.flight_controller.armed,
      stale: links.companion !== 'up',
      crossed: links.flightController === 'lost',
      conflict: links.companion === 'up' && inConflict(status),
      selected,
      level: level === 'notice' ? undefined : level,
      // A leader that was excluded, or left, still reports that it leads.
      leader: leads(aircraft, looks.absences),
      label: selected ? [displayName(aircraft), height].filter(Boolean).join(' ') : height,
      target: navigation.target ?? undefined,
    }];
  });
}

/** A jump farther than this is shown as one: it is another position, not a flight. */
const JUMP_M = 150;
/** An aircraft's updates come every 200 ms; after a longer gap it is not shown as if it had crept. */
const [LEAST_MS, MOST_MS] = [120, 400];

interface Leg {
  from: GeoPoint;
  fromDeg: number;
  mark: Mark;
  startMs: number;
  durationMs: number;
}

/** Where the aircraft are drawn: on the way from the last position to the newest, which they reach when the next is due. */
export class Motion {
  readonly #legs = new Map<string, Leg>();

  set(marks: readonly Mark[], nowMs: number): void {
    const gone = new Set(this.#legs.keys());
    for (const mark of marks) {
      gone.delete(mark.address);
      const leg = this.#legs.get(mark.address);
      const { place } = mark;
      if (!leg) {
        this.#legs.set(mark.address, { from: place, fromDeg: mark.headingDeg, mark, startMs: nowMs, durationMs: 0 });
      } else if (same(leg.mark.place, place) && leg.mark.headingDeg === mark.headingDeg) {
        leg.mark = mark;
      } else {
        const jumps = mark.stale || distanceM(leg.mark.place, place) > JUMP_M;
        const [from, fromDeg] = jumps ? [place, mark.headingDeg] : at(leg, nowMs);
        const durationMs = jumps ? 0 : Math.min(MOST_MS, Math.max(LEAST_MS, nowMs - leg.startMs));
        this.#legs.set(mark.address, { from, fromDeg, mark, startMs: nowMs, durationMs });
      }
    }
    for (const address of gone) this.#legs.delete(address);
  }

  /** Whether any is still on its way. */
  moving(nowMs: number): boolean {
    for (const leg of this.#legs.values()) if (nowMs < leg.startMs + leg.durationMs) return true;
    return false;
  }

  /** Every aircraft with its place and heading now. */
  *now(nowMs: number): Generator<readonly [Mark, GeoPoint, number]> {
    for (const leg of this.#legs.values()) {
      const [place, headingDeg] = at(leg, nowMs);
      yield [leg.mark, place, headingDeg];
    }
  }
}

const same = (a: GeoPoint, b: GeoPoint): boolean => a.latitude_deg === b.latitude_deg && a.longitude_deg === b.longitude_deg;

function at({ from, fromDeg, mark, startMs, durationMs }: Leg, nowMs: number): [GeoPoint, number] {
  const share = durationMs === 0 ? 1 : Math.min(1, (nowMs - startMs) / durationMs);
  const between = (a: number, b: number) => a + (b - a) * share;
  const { place, headingDeg } = mark;
  // The short way round.
  const turn = ((headingDeg - fromDeg + 540) % 360) - 180;
  return [
    {
      latitude_deg: between(from.latitude_deg, place.latitude_deg),
      longitude_deg: between(from.longitude_deg, place.longitude_deg),
      altitude_m: between(from.altitude_m, place.altitude_m),
    },
    (fromDeg + turn * share + 360) % 360,
  ];
}
