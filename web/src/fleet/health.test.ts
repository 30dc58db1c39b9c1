import { describe, expect, it } from 'vitest';
import { health, isStale } from './health';
import { aircraft, neverSeen, status } from './samples';
import type { Aircraft } from './state';

const received = (fleet: Aircraft['fleet']): Aircraft => ({ fleet, receivedAtMs: 1_000 });
const controllerLost = { ...status(1).flight_controller, link: 'lost' as const, heartbeat_age_ms: 4_000 };

describe('health', () => {
  it('ages grow between updates', () => {
    const { companionAgeMs, flightControllerAgeMs } = health(received(aircraft(1)), 4_000, true);
    expect(companionAgeMs).toBe(3_100);
    expect(flightControllerAgeMs).toBe(3_300);
  });

  it('a lost flight controller is not a lost companion', () => {
    const links = health(received(aircraft(1, { flight_controller: controllerLost })), 1_000, true);
    expect([links.companion, links.flightController]).toEqual(['up', 'lost']);
    expect(isStale(links)).toBe(false);
  });

  it('four links are told apart', () => {
    const of = (...change: Parameters<typeof aircraft>) => {
      const { console, companion, flightController, radio } = health(received(aircraft(...change)), 1_000, true);
      return [console, companion, flightController, radio];
    };
    const radio = { ...status(1).radio, received: 7 };
    expect(of(1, { radio })).toEqual(['up', 'up', 'up', 'up']);
    expect(of(1, { radio: { ...radio, received: 0 } })).toEqual(['up', 'up', 'up', 'never_seen']);
    expect(of(1, { radio: { ...radio, down: 'no interface wlan0' } })).toEqual(['up', 'up', 'up', 'lost']);
    expect(of(1, { radio, flight_controller: controllerLost })).toEqual(['up', 'up', 'lost', 'up']);
    expect(of(1, { radio }, { link: 'lost', age_ms: 9_000 })).toEqual(['up', 'lost', 'unknown', 'unknown']);
    const behind = health(received(aircraft(1, { radio })), 1_000, false);
    expect([behind.console, behind.companion, behind.radio]).toEqual(['lost', 'unknown', 'unknown']);
  });

  it('behind a lost companion the flight controller is unknown', () => {
    const links = health(received(aircraft(1, {}, { link: 'lost', age_ms: 9_000 })), 1_000, true);
    expect([links.companion, links.flightController]).toEqual(['lost', 'unknown']);
    expect(links.companionAgeMs).toBe(9_000);
    expect(isStale(links)).toBe(true);
  });

  it('behind a lost ground service nothing is known, and everything is stale', () => {
    const links = health(received(aircraft(1)), 6_000, false);
    expect([links.companion, links.flightController]).toEqual(['unknown', 'unknown']);
    expect(isStale(links)).toBe(true);
  });

  it('an aircraft that was never in contact has no age', () => {
    const links = health(received(neverSeen(1)), 6_000, true);
    expect(links).toEqual({
      console: 'up', radio: 'never_seen', companion: 'never_seen', companionAgeMs: undefined, flightController: 'never_seen', flightControllerAgeMs: undefined,
    });
  });

  it('a page clock behind the event does not make an age negative', () => {
    expect(health(received(aircraft(1)), 500, true).companionAgeMs).toBe(100);
  });
});
