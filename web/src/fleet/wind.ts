/** The wind as the aircraft's flight controllers estimate it: the mean of those that fly, or of those selected. */
import { isFlying } from './conditions';
import { headingDegrees, metresPerSecond, plural } from './format';
import type { Aircraft } from './state';

export interface Wind {
  readonly speedM_s: number;
  /** Where it comes from, degrees clockwise from north, 0 to 360. */
  readonly fromDeg: number;
  /** The least and the greatest speed that one of them estimates. */
  readonly leastM_s: number;
  readonly mostM_s: number;
  /** Aircraft of which it is the mean. */
  readonly aircraft: number;
}

/**
 * Undefined where no aircraft in contact reports it: ArduCopter 3.5.7 never does. On the ground an estimate is of little worth, so that
 * it counts only where none flies.
 */
export function windOf(fleet: readonly Aircraft[], selected: ReadonlySet<string> = new Set()): Wind | undefined {
  const reporting = fleet.filter(({ fleet: { link, status } }) => link === 'up' && status?.wind != null);
  const narrowed = (wanted: (aircraft: Aircraft) => boolean, of: readonly Aircraft[]) => (of.some(wanted) ? of.filter(wanted) : of);
  const counted = narrowed(isFlying, narrowed(({ fleet: { address } }) => selected.has(address), reporting));
  const winds = counted.flatMap(({ fleet: { status } }) => status?.wind ?? []);
  if (winds.length === 0) return undefined;
  const mean = (part: (radians: number) => number) => winds.reduce((sum, { speed_m_s, from_deg }) => sum + speed_m_s * part((from_deg * Math.PI) / 180), 0) / winds.length;
  const [north, east] = [mean(Math.cos), mean(Math.sin)];
  const speeds = winds.map(({ speed_m_s }) => speed_m_s);
  return {
    speedM_s: Math.hypot(north, east),
    fromDeg: ((Math.atan2(east, north) * 180) / Math.PI + 360) % 360,
    leastM_s: Math.min(...speeds),
    mostM_s: Math.max(...speeds),
    aircraft: winds.length,
  };
}

/** Slower, it is shown as 0.0 m/s, and comes from nowhere. */
const CALM_M_S = 0.05;

export const isCalm = ({ speedM_s }: Wind): boolean => speedM_s < CALM_M_S;

/** Where it comes from, with how far the estimates differ where there are several. */
export function windFrom(wind: Wind): string {
  const { fromDeg, leastM_s, mostM_s, aircraft } = wind;
  const from = isCalm(wind) ? 'calm' : `from ${headingDegrees(fromDeg)}`;
  return mostM_s - leastM_s < CALM_M_S ? from : `${from}, of ${plural(aircraft, 'aircraft', 'aircraft')} ${leastM_s.toFixed(1)} to ${metresPerSecond(mostM_s)}`;
}

export const windText = (wind: Wind): string => `${metresPerSecond(wind.speedM_s)} ${windFrom(wind)}`;
