import { describe, expect, it } from 'vitest';
import type { ParameterComparison, ParameterRow } from '../api/model';
import { changes, filtered, groups, isIdle, outcomes, writeOf } from './comparison';

const row = (name: string, values: (number | null)[], expected?: (number | null)[], is_own = false): ParameterRow => ({
  name, is_own, values, ...(expected ? { expected } : {}),
});
const vehicle = (id: string, age_ms: number | null = 1) => ({ id, name: `drone ${id}`, known: 3, count: 3, age_ms, drifted: 0 });
const compared = (rows: ParameterRow[], ages: (number | null)[]): ParameterComparison => ({
  vehicles: ages.map((age, index) => vehicle(String(index), age)), rows, files: [],
});

describe('the parameters of a fleet', () => {
  it('are grouped by value, most aircraft first', () => {
    const many = Array.from({ length: 100 }, (_, index) => (index === 7 ? 2000 : index === 9 ? null : 1500));
    const found = groups(row('RTL_ALT', many));
    expect(found.map(({ value, vehicles }) => [value, vehicles.length])).toEqual([[1500, 98], [2000, 1], [undefined, 1]]);
    expect(found[1]?.vehicles).toEqual([7]);
  });

  it('are filtered by name, and calibration is hidden unless it is wanted', () => {
    const rows = [row('RTL_ALT', [1, 2]), row('INS_ACCOFFS_X', [1, 2], undefined, true)];
    expect(filtered(rows, ' rtl', false).map(({ name }) => name)).toEqual(['RTL_ALT']);
    expect(filtered(rows, '', false)).toHaveLength(1);
    expect(filtered(rows, '', true)).toHaveLength(2);
  });

  it('change only where the list is complete and the value is another', () => {
    const rows = [row('RTL_ALT', [1500, 2000, 1500], [2000, 2000, 2000]), row('WPNAV_SPEED', [500, 800, 500]), row('NO_SUCH', [null, null, null], [1, 1, 1])];
    const found = changes(compared(rows, [1, 1, null]));
    expect(found.map((one) => one.changes)).toEqual([[{ name: 'RTL_ALT', from: 1500, to: 2000 }], [], []]);
    expect(writeOf(found)).toEqual({ vehicles: [{ vehicle: '0', parameters: [{ name: 'RTL_ALT', value: 2000 }] }] });
  });

  it('do not change by the decimals that a file leaves out', () => {
    expect(changes(compared([row('ATC_RAT_RLL_P', [0.12345678], [0.123457])], [1]))[0]?.changes).toEqual([]);
  });

  it('have one line for each aircraft', () => {
    const outcome = (effect: 'set' | 'unchanged' | 'refused' | 'pending', reason = '') => ({ name: 'RTL_ALT', value: 1, effect, reason });
    const fleet = {
      vehicles: [
        { id: 'a', progress: { work: 'reading' as const, revision: 1, received: 12, count: 850 } },
        { id: 'b', progress: { work: 'writing' as const, revision: 1, received: 850, outcomes: [outcome('set'), outcome('pending')] } },
        { id: 'c', progress: { work: 'none' as const, revision: 1, received: 850, outcomes: [outcome('set'), outcome('refused', 'armed')] } },
        { id: 'd', progress: { work: 'none' as const, revision: 1, received: 850, outcomes: [outcome('set'), outcome('unchanged')] } },
        { id: 'e', problem: 'no answer in time' },
      ],
    };
    expect(outcomes(fleet).map(({ text, level }) => [text, level])).toEqual([
      ['reading, 12 of 850', 'busy'], ['setting, 1 of 2', 'busy'], ['armed', 'bad'], ['2 of 2 hold', 'good'], ['no answer in time', 'bad'],
    ]);
    expect(isIdle(fleet)).toBe(false);
    expect(isIdle({ vehicles: fleet.vehicles.slice(2) })).toBe(true);
  });
});
