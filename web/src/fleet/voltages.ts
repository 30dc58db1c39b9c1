/**
 * A battery by its voltage, against the limits that its own flight controller has: an aircraft of which no charge is estimated has no
 * other. The limits come on request, because the stream carries no parameters.
 */
import { readAircraft } from '../api/aircraft';
import type { Parameter } from '../api/model';
import type { Aircraft } from './state';

export type Low = 'low' | 'critical';

/** Volts; absent where the flight controller has no such limit. */
export interface Limits {
  readonly lowV?: number;
  readonly criticalV?: number;
}

/** As ArduCopter's BATT_LOW_TIMER: a voltage that sags while the motors pull is not low. */
const SURE_MS = 10_000;
/** Between two readings of one aircraft's limits, where they are known and where they are not. */
const [AGAIN_MS, SOON_MS] = [300_000, 10_000];
/** Aircraft that are asked in one go. */
const AT_ONCE = 4;

/** BATT_LOW_VOLT and BATT_CRT_VOLT; FS_BATT_VOLTAGE before ArduCopter 3.6. 0 is none. Undefined where none was read. */
export function limitsOf(parameters: readonly Parameter[] | undefined): Limits | undefined {
  const value = (...names: string[]) => parameters?.find((one) => names.includes(one.name) && one.value != null)?.value ?? undefined;
  const [low, critical] = [value('BATT_LOW_VOLT', 'FS_BATT_VOLTAGE'), value('BATT_CRT_VOLT')];
  if (low === undefined && critical === undefined) return undefined;
  return { ...(low ? { lowV: low } : {}), ...(critical ? { criticalV: critical } : {}) };
}

export class Voltages {
  /** By id. */
  readonly #limits = new Map<string, Limits>();
  readonly #askAtMs = new Map<string, number>();
  readonly #since = new Map<string, { readonly low: Low; readonly sinceMs: number }>();

  /** By id: the batteries that have been at or below a limit for ten seconds. */
  observe(fleet: readonly Aircraft[], nowMs: number): ReadonlyMap<string, Low> {
    const found = new Map<string, Low>();
    for (const { fleet: { status, link } } of fleet) {
      if (!status) continue;
      const limits = this.#limits.get(status.id);
      const volts = status.battery?.voltage_v;
      const isBelow = (limit: number | undefined) => limit !== undefined && volts !== undefined && volts <= limit;
      const low = isBelow(limits?.criticalV) ? 'critical' : isBelow(limits?.lowV) ? 'low' : undefined;
      // What is out of contact is as it was when it was received last.
      const since = this.#since.get(status.id);
      if (low === undefined) this.#since.delete(status.id);
      else if (since === undefined) this.#since.set(status.id, { low, sinceMs: nowMs });
      else if (link === 'up' && since.low !== low) this.#since.set(status.id, { low, sinceMs: since.sinceMs });
      const now = this.#since.get(status.id);
      if (now && nowMs - now.sinceMs >= SURE_MS) found.set(status.id, now.low);
    }
    return found;
  }

  /** Reads the limits of those whose turn it is. */
  async read(fleet: readonly Aircraft[], nowMs: number, read: typeof readAircraft = readAircraft): Promise<void> {
    const due = fleet.flatMap(({ fleet: { status, link } }) => (status && link === 'up' && (this.#askAtMs.get(status.id) ?? 0) <= nowMs ? [status.id] : []));
    await Promise.all(due.slice(0, AT_ONCE).map(async (id) => {
      this.#askAtMs.set(id, nowMs + SOON_MS);
      const answer = await read(id);
      const limits = answer.ok ? limitsOf(answer.value.status?.flight_controller.parameters) : undefined;
      if (limits === undefined) return;
      this.#limits.set(id, limits);
      this.#askAtMs.set(id, nowMs + AGAIN_MS);
    }));
  }
}
