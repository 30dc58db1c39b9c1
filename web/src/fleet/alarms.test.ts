import { expect, test } from 'vitest';
import type { FleetAlarm } from '../api/model';
import { acknowledge, active, HISTORY_MAX, merged, unheard, updateAlarms, type Alarm, type Report } from './alarms';
import { stateOf, update } from './samples';
import { applyUpdate, ENDED_ALARMS_MAX } from './state';
import type { Condition } from './conditions';

const condition = (change: Partial<Condition> = {}): Condition => ({ kind: 'battery', level: 'caution', short: 'Battery', text: 'battery at 20 %', ...change });
const report = (...conditions: Condition[]): Report[] => [{ address: 'a', name: 'UAV 1', conditions }];

test('an alarm begins, is acknowledged, grows worse, ends and stays in the history', () => {
  let alarms = updateAlarms([], report(condition()), 100);
  expect(alarms).toMatchObject([{ name: 'UAV 1', level: 'caution', sinceMs: 100, endedMs: undefined, acknowledged: false }]);
  expect(unheard(alarms)).toBe('caution');
  alarms = acknowledge(alarms);
  expect(unheard(alarms)).toBeUndefined();
  // The number changes: no new alarm, and nothing to acknowledge again.
  alarms = updateAlarms(alarms, report(condition({ text: 'battery at 19 %' })), 200);
  expect(alarms).toMatchObject([{ text: 'battery at 19 %', acknowledged: true, sinceMs: 100 }]);
  alarms = updateAlarms(alarms, report(condition({ level: 'alarm', text: 'battery at 15 %' })), 300);
  expect(unheard(alarms)).toBe('alarm');
  alarms = updateAlarms(alarms, report(), 400);
  expect(alarms).toMatchObject([{ endedMs: 400 }]);
  expect(active(alarms)).toEqual([]);
  // It comes back: another alarm.
  alarms = updateAlarms(alarms, report(condition()), 500);
  expect(alarms.map(({ sinceMs, endedMs }) => [sinceMs, endedMs])).toEqual([[500, undefined], [100, 400]]);
});

test('an alarm that ends and begins again within one update has a key of its own', () => {
  let alarms = updateAlarms([], report(condition()), 100);
  alarms = updateAlarms(alarms, report(), 100);
  alarms = updateAlarms(alarms, report(condition()), 100);
  alarms = updateAlarms(alarms, report(), 100);
  alarms = updateAlarms(alarms, report(condition()), 100);
  expect(new Set(alarms.map(({ key }) => key)).size).toBe(3);
});

test('nothing changed is the same list, and a notice is no alarm', () => {
  const alarms = updateAlarms([], report(condition()), 0);
  expect(updateAlarms(alarms, report(condition()), 1)).toBe(alarms);
  expect(updateAlarms([], report(condition({ level: 'notice' })), 0)).toEqual([]);
});

test('alarms come before cautions, unacknowledged before acknowledged', () => {
  let alarms = updateAlarms([], report(condition(), condition({ kind: 'lost', level: 'alarm', text: 'lost' })), 0);
  alarms = updateAlarms(alarms, report(condition(), condition({ kind: 'lost', level: 'alarm', text: 'lost' }), condition({ kind: 'takeover', level: 'alarm', text: 'pilot' })), 1);
  const key = alarms.find(({ kind }) => kind === 'takeover')?.key;
  expect(active(acknowledge(alarms, key)).map(({ kind }) => kind)).toEqual(['lost', 'takeover', 'battery']);
});

test('the history is bounded', () => {
  let alarms: readonly Alarm[] = [];
  for (let n = 0; n < HISTORY_MAX + 10; n += 1) {
    alarms = updateAlarms(alarms, report(condition()), 2 * n);
    alarms = updateAlarms(alarms, report(), 2 * n + 1);
  }
  expect(alarms.length).toBe(HISTORY_MAX);
});

const ofService = (number: number, change: Partial<FleetAlarm> = {}): FleetAlarm => ({
  number, address: 'a', name: 'UAV 1', kind: 'lost', level: 'alarm', text: 'out of contact', since_ms: number * 100, ...change,
});

test('the alarms of the service stand with those of the page, newest first, with who acknowledged them', () => {
  const own = updateAlarms([], report(condition({ kind: 'voltage' })), 150);
  const acknowledged = { by: 'anna', at_ms: 300 };
  const alarms = merged([ofService(1, { acknowledged }), ofService(2, { ended_ms: 500 })], own);
  expect(alarms.map(({ number, acknowledged: is, by, endedMs }) => [number, is, by, endedMs])).toEqual([
    [2, false, undefined, 500], [undefined, false, undefined, undefined], [1, true, 'anna', undefined],
  ]);
});

test('updates of the service change its alarms by their numbers, and the list is bounded', () => {
  let state = stateOf([], { alarms: [ofService(1), ofService(2)] });
  state = applyUpdate(state, update([], { alarms: [ofService(2, { ended_ms: 400 }), ofService(3)] }), 5);
  expect(state.alarms.map(({ number, ended_ms }) => [number, ended_ms])).toEqual([[1, undefined], [2, 400], [3, undefined]]);
  const many = Array.from({ length: 300 }, (_, index) => ofService(index + 10, { ended_ms: 1 }));
  state = applyUpdate(state, update([], { alarms: many }), 6);
  expect(state.alarms.filter(({ ended_ms }) => ended_ms !== undefined)).toHaveLength(ENDED_ALARMS_MAX);
  expect(state.alarms.slice(0, 2).map(({ number }) => number)).toEqual([1, 3]);
});
