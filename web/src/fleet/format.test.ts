import { describe, expect, it } from 'vitest';
import { ABSENT, age, clock, coordinates, decimal, headingDegrees, metres, metresPerSecond, percent, plural, shortAddress, stateWords, volts } from './format';

// A narrow no-break space stands between number and unit.
const narrow = (text: string) => text.replaceAll('\u202f', ' ');

describe('numbers with units', () => {
  it('carry their unit', () => {
    expect(narrow(metres(20.04))).toBe('20.0 m');
    expect(narrow(metresPerSecond(3.66))).toBe('3.7 m/s');
    expect(narrow(percent(79.6))).toBe('80 %');
    expect(narrow(volts(11.94))).toBe('11.9 V');
    expect(decimal(7)).toBe('7.0');
  });

  it('show what is absent or no number as absent', () => {
    for (const value of [null, undefined, NaN, Infinity]) expect(metres(value)).toBe(ABSENT);
  });

  it('have a real minus sign, and none before zero', () => {
    expect(narrow(metres(-1.26))).toBe('−1.3 m');
    expect(narrow(metres(-0.01))).toBe('0.0 m');
  });
});

it('headings have three digits and stay below 360', () => {
  expect([5, 90, 359.7, -10].map(headingDegrees)).toEqual(['005°', '090°', '000°', '350°']);
});

it('ages do not flicker below a second and grow coarser', () => {
  expect([0, 999, 1_000, 99_999, 100_000, 6_000_000].map((ms) => narrow(age(ms)))).toEqual(['<1 s', '<1 s', '1 s', '99 s', '1 min', '1 h']);
  expect(age(undefined)).toBe(ABSENT);
});

it('durations read as a clock', () => {
  expect([-5, 59_999, 187_000, 3_787_000].map(clock)).toEqual(['00:00', '00:59', '03:07', '1:03:07']);
});

it('coordinates name their hemisphere', () => {
  expect(narrow(coordinates(39.482594, -0.346265))).toBe('39.4825940° N 0.3462650° W');
});

it('words', () => {
  expect(stateWords('MovingToWaypoint')).toBe('Moving to waypoint');
  expect(stateWords('Start')).toBe('Start');
  expect(shortAddress('http://10.0.0.7:8080/')).toBe('10.0.0.7:8080');
  expect(plural(1, 'line', 'lines')).toBe('1 line');
  expect(plural(2, 'line', 'lines')).toBe('2 lines');
});
