import { describe, expect, it } from 'vitest';
import type { FleetLinks, LinkTestReport } from '../api/model';
import { band, linkText, lossPercent, matrix, seconds, step } from './links';

const links: FleetLinks = {
  age_ms: 0,
  test: null,
  missing: [{ id: 'c', reason: 'no answer in time' }],
  aircraft: [
    { id: 'a', probe_period_ms: 1000, links: [{ from: 'b', received: 27, lost: 3, distance_m: 210.04, age_ms: 400 }] },
    { id: 'b', probe_period_ms: 1000, links: [{ from: 'a', received: 0, lost: 30, distance_m: null, age_ms: 40_000 }] },
  ],
};

describe('the matrix', () => {
  it('has a row for each sender and nothing on the diagonal', () => {
    const rows = matrix(['a', 'b', 'c'], links);
    expect(rows.map((row) => row.map((cell) => cell?.loss))).toEqual([
      [undefined, 1, undefined],
      [0.1, undefined, undefined],
      [undefined, undefined, undefined],
    ]);
    expect(rows[0]?.[0]).toBeUndefined();
    expect(rows[0]?.[2]).toBeDefined();
    expect(matrix(['a', 'b'], undefined)[0]?.[1]?.loss).toBeUndefined();
  });

  it('says a link in words', () => {
    const cell = matrix(['a', 'b'], links)[1]?.[0];
    expect(cell && linkText('UAV 2', 'UAV 1', cell)).toBe('UAV 2 to UAV 1: 10 % lost, 3 of 30 probes, 210.0\u202fm, last <1\u202fs ago');
    expect(linkText('a', 'c', { loss: undefined, received: 0, lost: 0, distanceM: undefined, ageMs: undefined })).toBe('a to c: no probe received');
  });

  it('distinguishes how bad a loss is', () => {
    expect([undefined, 0, 0.02, 0.1, 0.5, 0.9, 1].map(band)).toEqual(['unknown', 'good', 'good', 'fair', 'poor', 'bad', 'none']);
    expect([undefined, 0, 0.034, 1].map(lossPercent)).toEqual(['–', '0', '3', '100']);
  });

  it('is walked by arrow keys past the diagonal and not beyond its edges', () => {
    expect(step('ArrowRight', [0, 1], 3)).toEqual([0, 2]);
    expect(step('ArrowDown', [0, 1], 3)).toEqual([2, 1]);
    expect(step('ArrowLeft', [0, 1], 3)).toEqual([0, 1]);
    expect(step('ArrowUp', [0, 1], 3)).toEqual([0, 1]);
    expect(step('Enter', [0, 1], 3)).toBeUndefined();
  });
});

it('a test shows the loss of each whole second', () => {
  const test = { number: 1, sender: 'a', receivers: ['b'], rate_hz: 10, payload_bytes: 500, seconds: 5, unicast: false };
  const report: LinkTestReport = {
    test, role: 'receiver', ended: null, elapsed_ms: 3_500, ran_ms: 3_500, count: 15,
    seconds: [{ received: 10, distance_m: 100 }, { received: 5, distance_m: 110 }],
  };
  expect(seconds(report, 35)).toEqual([
    { loss: 0, distanceM: 100 },
    { loss: 0.5, distanceM: 110 },
    { loss: 1, distanceM: undefined },
  ]);
  expect(seconds(report, 9)).toEqual([]);
});
