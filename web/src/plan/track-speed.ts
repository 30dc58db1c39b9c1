/** The speed along a leg that a flight controller has by itself: `WPNAV_SPEED` in cm/s, from ArduCopter 4.7 on `WP_SPD` in m/s. */
import type { Parameter } from '../api/model';

/** Values of either that ArduCopter takes, metres per second. */
export const TRACK_SPEED_M_S = { least: 0.2, most: 20 } as const;

/** An aircraft reports both in cm/s, under the name that its flight controller has. */
export function trackSpeed(parameters: readonly Parameter[] | undefined): { readonly name: string; readonly speedMS: number } | undefined {
  const found = parameters?.find(({ name, value }) => (name === 'WPNAV_SPEED' || name === 'WP_SPD') && value != null);
  return found?.value == null ? undefined : { name: found.name, speedMS: found.value / 100 };
}

/** What is written, in the flight controller's own unit. */
export const trackSpeedWrite = (name: string, speedMS: number): { name: string; value: number } => ({ name, value: name === 'WP_SPD' ? speedMS : Math.round(speedMS * 100) });
