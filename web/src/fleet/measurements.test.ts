import { expect, it } from 'vitest';
import { measurementRows } from './measurements';
import { status } from './samples';

const shown = (change: Parameters<typeof status>[1]) =>
  Object.fromEntries(measurementRows(status(1, change)).map(({ label, text }) => [label, text?.replaceAll('\u202f', ' ')]));

it('every measurement has a row with its units', () => {
  const rows = shown({
    battery: { remaining_percent: 80, voltage_v: 12, current_a: 1.25, consumed_mah: 321 },
    gnss: { fix_type: 3, satellites: 12 },
    wind: { speed_m_s: 5.84, from_deg: 269.7 },
  });
  expect(rows).toEqual({ Battery: '80 %, 12.0 V, 1.3 A, 321 mAh used', GNSS: '3D fix, 12 satellites', Wind: '5.8 m/s from 270°' });
});

it('what was never reported is absent, and what is not measured is left out', () => {
  expect(shown({ battery: null })).toEqual({ Battery: undefined, GNSS: undefined, Wind: undefined });
  expect(shown({ battery: { voltage_v: 12 }, gnss: { fix_type: 9 } })).toEqual({ Battery: '–, 12.0 V, –', GNSS: 'fix type 9', Wind: undefined });
});
