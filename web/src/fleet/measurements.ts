/** What an autopilot measures or estimates: one row per field. A field of the API without a row does not compile. */
import type { Measurements } from '../api/model';
import { age, amperes, headingDegrees, metresPerSecond, milliampereHours, percent, plural, volts } from './format';

export interface MeasurementText {
  readonly label: string;
  /** Undefined before the first report. */
  readonly text: string | undefined;
}

const ROWS: Readonly<Record<keyof Measurements, (measured: Measurements) => MeasurementText>> = {
  battery: ({ battery }) => ({ label: 'Battery', text: battery ? batteryText(battery) : undefined }),
  gnss: ({ gnss }) => ({ label: 'GNSS', text: gnss ? gnssText(gnss) : undefined }),
  corrections: ({ corrections }) => ({ label: 'Corrections', text: corrections ? correctionsText(corrections) : undefined }),
  wind: ({ wind }) => ({ label: 'Wind', text: wind ? `${metresPerSecond(wind.speed_m_s)} from ${headingDegrees(wind.from_deg)}` : undefined }),
  clock: ({ clock }) => ({ label: 'Clock', text: clock ? clockText(clock) : undefined }),
  remote_id: ({ remote_id }) => ({ label: 'Remote ID', text: remote_id ? `${remote_id.uas_id}: ${remote_id.detail}` : undefined }),
};

/** All rows, in the order above. */
export const measurementRows = (measured: Measurements): MeasurementText[] => Object.values(ROWS).map((row) => row(measured));

type Measured<K extends keyof Measurements> = NonNullable<Measurements[K]>;

function batteryText({ remaining_percent, voltage_v, current_a, consumed_mah, left_s, needed_s, batteries }: Measured<'battery'>): string {
  const used = consumed_mah == null ? [] : [`${milliampereHours(consumed_mah)} used`];
  const lasts = left_s == null ? [] : [`lasts ${left_s} s to its reserve`];
  const needs = needed_s == null ? [] : [`${needed_s} s needed to be down`];
  const each = (batteries ?? []).map(({ number, remaining_percent, voltage_v, state }) => {
    const figures = [...(remaining_percent == null ? [] : [percent(remaining_percent)]), ...(voltage_v == null ? [] : [volts(voltage_v)])];
    return `battery ${number}: ${[...figures, state].join(' ')}`;
  });
  return [percent(remaining_percent), volts(voltage_v), amperes(current_a), ...used, ...lasts, ...needs, ...each].join(', ');
}

/** The aircraft's clock against GNSS time, which logs of several aircraft are merged by. */
function clockText({ ahead_us, is_fed }: Measured<'clock'>): string {
  if (ahead_us == null) return 'GNSS time known';
  const s = Math.abs(ahead_us) / 1e6;
  const off = s < 1 ? `${(s * 1e3).toFixed(1)} ms` : s < 600 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
  return `${off} ${ahead_us < 0 ? 'behind' : 'ahead of'} GNSS${is_fed ? ', set by chrony' : ''}`;
}

/** Corrections of the GNSS fix: of an aircraft those that it hands on, of the ground service those that it broadcasts. */
export function correctionsText({ age_ms, bytes_s, refused }: Pick<Measured<'corrections'>, 'age_ms' | 'bytes_s' | 'refused'>): string {
  const used = age_ms == null ? 'none used' : `${age(age_ms)} old, ${bytes_s} B/s`;
  return [used, ...refused.map(({ reason, count }) => `${count} ${reason.replaceAll('_', ' ')}`)].join(', ');
}

function gnssText({ fix_type, satellites, accuracy_m }: Measured<'gnss'>): string {
  const fix = ['no receiver', 'no fix', '2D fix', '3D fix', 'differential fix', 'RTK float', 'RTK fixed'][fix_type] ?? `fix type ${fix_type}`;
  const seen = satellites == null ? fix : `${fix}, ${plural(satellites, 'satellite', 'satellites')}`;
  return accuracy_m == null ? seen : `${seen}, ±${accuracy_m.toFixed(accuracy_m < 0.1 ? 2 : 1)} m`;
}
