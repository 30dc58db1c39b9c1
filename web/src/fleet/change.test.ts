import { expect, test } from 'vitest';
import { applyChange } from './change';

test('an object changes the members that it names, and the rest keeps its identity', () => {
  const old = { a: 1, b: { c: [1, 2], d: 'x' }, e: { f: 1 } };
  const changed = applyChange(old, { a: 2, b: { c: { 1: 5 } } }) as typeof old;
  expect(changed).toEqual({ a: 2, b: { c: [1, 5], d: 'x' }, e: { f: 1 } });
  expect(changed.e).toBe(old.e);
  expect(old.b.c).toEqual([1, 2]);
});

test('a list of another length, null and a value of another kind take the place of the old one', () => {
  expect(applyChange({ a: [1, 2], b: { c: 1 }, d: 'hold' }, { a: [3], b: null, d: { exclude: { member: 'x' } } })).toEqual({
    a: [3], b: null, d: { exclude: { member: 'x' } },
  });
  expect(applyChange({ a: null }, { a: { b: 1 } })).toEqual({ a: { b: 1 } });
});

test('elements of a list are changed by their index', () => {
  const old = [{ name: 'gps', passed: false }, { name: 'battery', passed: true }];
  const changed = applyChange(old, { 0: { passed: true } }) as typeof old;
  expect(changed).toEqual([{ name: 'gps', passed: true }, { name: 'battery', passed: true }]);
  expect(changed[1]).toBe(old[1]);
});
