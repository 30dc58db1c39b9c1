/** Numbers for people: with their unit, of a width that does not jump. */
import type { StateId, VehicleOutcome } from '../api/model';

export const ABSENT = '–';

function number(value: number | null | undefined, decimals: number, unit: string): string {
  if (value == null || !Number.isFinite(value)) return ABSENT;
  const text = value.toFixed(decimals);
  // -0.0 reads like a small descent; it is none.
  const clean = Number(text) === 0 ? text.replace('-', '') : text;
  return clean.replace('-', '\u2212') + (unit && `\u202f${unit}`);
}

/** For a table column whose heading carries the unit. */
export const decimal = (value: number | null | undefined): string => number(value, 1, '');

export const metres = (value: number | null | undefined): string => number(value, 1, 'm');
/** Where a decimal would only flicker. */
export const wholeMetres = (value: number | null | undefined): string => number(value, 0, 'm');
/** From 10 km on in kilometres. */
export const distance = (value: number | null | undefined): string => (value != null && value >= 10_000 ? number(value / 1000, 1, 'km') : wholeMetres(value));
export const metresPerSecond = (value: number | null | undefined): string => number(value, 1, 'm/s');
export const seconds = (value: number | null | undefined): string => number(value, 1, 's');
export const percent = (value: number | null | undefined): string => number(value, 0, '%');
export const volts = (value: number | null | undefined): string => number(value, 1, 'V');
/** Charge and voltage of a battery, as far as they are reported. */
export const charge = (battery: { remaining_percent?: number | null; voltage_v: number } | null | undefined): string =>
  battery?.remaining_percent == null ? volts(battery?.voltage_v) : `${percent(battery.remaining_percent)}, ${volts(battery.voltage_v)}`;
export const milliampereHours = (value: number | null | undefined): string => number(value, 0, 'mAh');
export const amperes = (value: number | null | undefined): string => number(value, 1, 'A');

export function headingDegrees(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return ABSENT;
  return `${String(((Math.round(value) % 360) + 360) % 360).padStart(3, '0')}°`;
}

/** An age: below a second it only flickers, so it is not shown. */
export function age(ageMs: number | null | undefined): string {
  if (ageMs == null || !Number.isFinite(ageMs)) return ABSENT;
  const seconds = Math.floor(ageMs / 1000);
  if (seconds < 1) return '<1\u202fs';
  if (seconds < 100) return `${seconds}\u202fs`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 100 ? `${minutes}\u202fmin` : `${Math.floor(minutes / 60)}\u202fh`;
}

/** A duration as a clock shows it: 03:07, and 1:03:07 from an hour on. */
export function clock(durationMs: number): string {
  const total = Math.max(0, Math.floor(durationMs / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const hours = Math.floor(total / 3600);
  const rest = `${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

/** Latitude and longitude to 1e-7 degree, as aircraft exchange them. */
export function coordinates(latitudeDeg: number, longitudeDeg: number): string {
  const one = (value: number, positive: string, negative: string) =>
    `${Math.abs(value).toFixed(7)}°\u202f${value < 0 ? negative : positive}`;
  return `${one(latitudeDeg, 'N', 'S')} ${one(longitudeDeg, 'E', 'W')}`;
}

/** The end of a URL that matters in a table. */
export const shortAddress = (address: string): string => address.replace(/^https?:\/\//, '').replace(/\/$/, '');

/** Enough of a hash to compare by eye. */
export const shortHash = (hash: string): string => hash.slice(0, 6);

/** A protocol's state in words: MovingToWaypoint becomes Moving to waypoint. */
export function stateWords(state: StateId): string {
  const words = state.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

const OUTCOMES: Record<VehicleOutcome, string> = {
  sending: 'sending',
  accepted: 'accepted',
  effect_seen: 'effect seen',
  failed: 'failed',
  expired: 'no effect seen',
};
export const outcomeName = (outcome: VehicleOutcome): string => OUTCOMES[outcome] ?? outcome;
