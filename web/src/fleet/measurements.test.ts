import { expect, it } from 'vitest';
import { measurementRows } from './measurements';
import { status } from './samples';

const shown = (change: Parameters<typeof status>[1]) =>
  Object.fromEntries(measurementRows(status(1, change)).map(({ label, text }) => [label, text?.replaceAll('\u202f', ' ')]));

it('every measurement has a row with its units', () => {
  const rows = shown({
    battery: { remaining_percent: 80, voltage_v: 12, current_a: 1.25, consumed_mah: 321 },
    gnss: { fix_type: 3, satellites: 12, accuracy_m: 0.74 },
    corrections: { console: '00000200000000c1', age_ms: 1234, bytes_s: 640, frames: 99, refused: [] },
    wind: { speed_m_s: 5.84, from_deg: 269.7 },
  });
  expect(rows).toEqual({ Battery: '80 %, 12.0 V, 1.3 A, 321 mAh used', GNSS: '3D fix, 12 satellites, ±0.7 m', Corrections: '1 s old, 640 B/s', Wind: '5.8 m/s from 270°' });
});

it('what was never reported is absent, and what is not measured is left out', () => {
  expect(shown({ battery: null })).toEqual({ Battery: undefined, GNSS: undefined, Corrections: undefined, Wind: undefined });
  expect(shown({ battery: { voltage_v: 12 }, gnss: { fix_type: 9 } })).toEqual({ Battery: '–, 12.0 V, –', GNSS: 'fix type 9', Corrections: undefined, Wind: undefined });
});

it('the time that the battery lasts, the time that the flight takes, and each of several batteries are shown', () => {
  const batteries = [{ number: 1, remaining_percent: 99, voltage_v: 16.8, state: 'good' }, { number: 2, remaining_percent: 3, voltage_v: 9.9, state: 'critical' }];
  const battery = { remaining_percent: 3, voltage_v: 9.9, left_s: 0, needed_s: 260, batteries };
  expect(shown({ battery }).Battery).toBe('3 %, 9.9 V, –, lasts 0 s to its reserve, 260 s needed to be down, battery 1: 99 % 16.8 V good, battery 2: 3 % 9.9 V critical');
});

it('corrections that were not used are counted by reason', () => {
  const refused = [{ reason: 'other_base', count: 3 }, { reason: 'too_many', count: 1 }];
  const corrections = { bytes_s: 0, frames: 0, refused };
  expect(shown({ battery: null, corrections }).Corrections).toBe('none used, 3 other base, 1 too many');
  expect(shown({ battery: null, corrections: { ...corrections, age_ms: 12_000, refused: [] } }).Corrections).toBe('12 s old, 0 B/s');
});
