/** Alarms of the fleet: what is wrong now, what was, and what the operator has acknowledged. Pure: time is an argument. */
import type { FleetAlarm } from '../api/model';
import type { Condition, Kind, Level } from './conditions';

/** Ended alarms that are kept. */
export const HISTORY_MAX = 200;

export interface Alarm {
  /** Of one aircraft and one kind; a kind that comes back is a new alarm. */
  readonly key: string;
  readonly address: string;
  readonly name: string;
  readonly kind: Kind;
  readonly level: Level;
  readonly text: string;
  /** By the ground service's clock. */
  readonly sinceMs: number;
  /** Absent while it lasts. */
  readonly endedMs: number | undefined;
  readonly acknowledged: boolean;
  /** The user, or the address of the console; absent where this page alone has the alarm. */
  readonly by?: string;
  /** Its number at the ground service; absent where this page alone has it. */
  readonly number?: number;
}

/** An aircraft and what is wrong with it. */
export interface Report {
  readonly address: string;
  readonly name: string;
  readonly conditions: readonly Condition[];
}

/**
 * Newest first. An alarm that grows worse must be acknowledged again; one whose text alone changes must not. Notices are shown
 * with the aircraft and are no alarms.
 */
export function updateAlarms(alarms: readonly Alarm[], reports: readonly Report[], timeMs: number): readonly Alarm[] {
  const lasting = new Map(alarms.filter(({ endedMs }) => endedMs === undefined).map((alarm) => [`${alarm.address}/${alarm.kind}`, alarm]));
  const begun: Alarm[] = [];
  const still = new Map<string, Alarm>();
  for (const { address, name, conditions } of reports) {
    for (const { kind, level, text } of conditions) {
      if (level === 'notice') continue;
      const place = `${address}/${kind}`;
      const known = lasting.get(place);
      if (!known) begun.push({ key: freeKey(`${place}/${timeMs}`, alarms), address, name, kind, level, text, sinceMs: timeMs, endedMs: undefined, acknowledged: false });
      else if (known.text === text && known.level === level && known.name === name) still.set(known.key, known);
      else {
        const graver = level === 'alarm' && known.level !== 'alarm';
        still.set(known.key, { ...known, name, level, text, acknowledged: known.acknowledged && !graver });
      }
    }
  }
  let changed = begun.length > 0;
  const kept = alarms.map((alarm) => {
    if (alarm.endedMs !== undefined) return alarm;
    const now = still.get(alarm.key) ?? { ...alarm, endedMs: timeMs };
    changed ||= now !== alarm;
    return now;
  });
  if (!changed) return alarms;
  const all = [...begun, ...kept];
  let ended = 0;
  return all.filter(({ endedMs }) => endedMs === undefined || (ended += 1) <= HISTORY_MAX);
}

/** Kinds that the page alone knows: the loss of the service, and voltages below the limits that it reads from the parameters. */
export const OWN_KINDS: readonly Kind[] = ['service', 'voltage'];

/** Returns the alarms of the service and of the page, newest first. */
export function merged(ofService: readonly FleetAlarm[], own: readonly Alarm[]): readonly Alarm[] {
  const alarms = ofService.map(({ number, address, name, kind, level, text, since_ms, ended_ms, acknowledged }): Alarm => ({
    key: `service/${number}`, number, address, name, kind, level, text, sinceMs: since_ms, endedMs: ended_ms ?? undefined,
    acknowledged: acknowledged != null, ...(acknowledged == null ? {} : { by: acknowledged.by }),
  }));
  return [...alarms, ...own].toSorted((a, b) => b.sinceMs - a.sinceMs || (b.number ?? 0) - (a.number ?? 0));
}

/** Returns a key that no alarm has: a condition can end and begin again within one update. */
function freeKey(wanted: string, alarms: readonly Alarm[]): string {
  const taken = new Set(alarms.map(({ key }) => key));
  let key = wanted;
  for (let again = 2; taken.has(key); again += 1) key = `${wanted}/${again}`;
  return key;
}

export const isActive = ({ endedMs }: Alarm): boolean => endedMs === undefined;

/** Gravest first, then newest. */
export function active(alarms: readonly Alarm[]): Alarm[] {
  const rank = ({ level, acknowledged }: Alarm) => (level === 'alarm' ? 0 : 2) + (acknowledged ? 1 : 0);
  return alarms.filter(isActive).sort((a, b) => rank(a) - rank(b) || b.sinceMs - a.sinceMs);
}

export const acknowledge = (alarms: readonly Alarm[], key?: string): readonly Alarm[] =>
  alarms.map((alarm) => (isActive(alarm) && (key === undefined || alarm.key === key) ? { ...alarm, acknowledged: true } : alarm));

/** What the speaker has to say: the gravest alarm that nobody has acknowledged. */
export function unheard(alarms: readonly Alarm[]): Level | undefined {
  const waiting = alarms.filter((alarm) => isActive(alarm) && !alarm.acknowledged);
  if (waiting.length === 0) return undefined;
  return waiting.some(({ level }) => level === 'alarm') ? 'alarm' : 'caution';
}
