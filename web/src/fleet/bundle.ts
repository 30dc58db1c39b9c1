/** A bundle of logs as the panel shows it: a line for each aircraft, its clock, and what is missing. */
import type { Bundle, BundledAircraft, FleetBundle } from '../api/model';
import { plural } from './format';

/** Bytes in the unit that reads best. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** How far the aircraft's computer was from GNSS time, in the newest flight of which that is known. */
export function clockText(one: BundledAircraft): string {
  const clocks = one.files.flatMap(({ clock }) => (clock ? [clock] : []));
  const known = clocks.findLast(({ ahead_of_gnss_ms }) => ahead_of_gnss_ms != null);
  if (known?.ahead_of_gnss_ms != null) {
    const ahead = known.ahead_of_gnss_ms;
    const set = known.stepped_ms === 0 ? '' : `, set by ${known.stepped_ms.toFixed(0)} ms in flight`;
    return `GNSS time; its computer ${Math.abs(ahead).toFixed(1)} ms ${ahead < 0 ? 'behind' : 'ahead'}${set}`;
  }
  return clocks.some(({ utc_of_agent_time_zero_us }) => utc_of_agent_time_zero_us != null) ? 'its computer’s clock' : 'clock unknown';
}

export interface BundleRow {
  folder: string;
  name: string;
  text: string;
  clock: string;
  flaws: string[];
  missing: string[];
}

export function rows(bundle: Bundle): BundleRow[] {
  return bundle.aircraft.map((one) => ({
    folder: one.folder,
    name: one.name || one.address,
    text: `${plural(one.files.length, 'file', 'files')}, ${size(one.files.reduce((sum, { bytes }) => sum + bytes, 0))}`,
    clock: clockText(one),
    flaws: one.files.flatMap(({ name, flaw }) => (flaw ? [`${name}: ${flaw}`] : [])),
    missing: one.missing.map(({ what, why }) => `${what}: ${why}`),
  }));
}

/** What is received, in percent. */
export function receiving(now: FleetBundle): { key: string; text: string }[] {
  return (now.receiving ?? []).map(({ aircraft, file, held_bytes, bytes }) => ({
    key: `${aircraft} ${file}`,
    text: `${aircraft}: ${file}, ${Math.floor((100 * held_bytes) / Math.max(bytes, 1))} % of ${size(bytes)}`,
  }));
}
