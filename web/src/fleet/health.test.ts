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
      companion: 'never_seen', companionAgeMs: undefined, flightController: 'never_seen', flightControllerAgeMs: undefined,
    });
  });

  it('a page clock behind the event does not make an age negative', () => {
    expect(health(received(aircraft(1)), 500, true).companionAgeMs).toBe(100);
  });
});
