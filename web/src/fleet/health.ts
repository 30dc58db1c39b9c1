/**
 * How old what the page shows is, and which of four links is broken: page to ground service, ground
 * service to companion computer, and behind it companion computer to flight controller, and its radio to the
 * other aircraft. Each hides those behind it.
 */
import type { LinkState } from '../api/model';
import type { Aircraft } from './state';

/** `unknown`: a link in front of it is broken, so the state is not known. */
export type LinkHealth = LinkState | 'unknown';

export interface Health {
  /** Page to ground service. */
  readonly console: 'up' | 'lost';
  readonly companion: LinkHealth;
  /** Since the ground service last received from the companion computer; undefined if never. */
  readonly companionAgeMs: number | undefined;
  readonly flightController: LinkHealth;
  /** Whether the radio can send and receive; `never_seen` while nothing of another aircraft was accepted. */
  readonly radio: LinkHealth;
  /** Since the flight controller's last heartbeat; undefined if never. */
  readonly flightControllerAgeMs: number | undefined;
}

/** Ages grow between updates, by the page's clock. */
export function health(aircraft: Aircraft, nowMs: number, groundLive: boolean): Health {
  const { fleet, receivedAtMs } = aircraft;
  const sinceMs = Math.max(0, nowMs - receivedAtMs);
  const companion: LinkHealth = groundLive ? fleet.link : 'unknown';
  const controller = fleet.status?.flight_controller;
  const radio = fleet.status?.radio;
  return {
    console: groundLive ? 'up' : 'lost',
    radio: companion !== 'up' || !radio ? (companion === 'never_seen' ? 'never_seen' : 'unknown') : radio.down != null ? 'lost' : radio.received > 0 ? 'up' : 'never_seen',
    companion,
    companionAgeMs: fleet.age_ms == null ? undefined : fleet.age_ms + sinceMs,
    flightController: companion === 'up' && controller ? controller.link : companion === 'never_seen' ? 'never_seen' : 'unknown',
    flightControllerAgeMs:
      controller?.heartbeat_age_ms == null ? undefined : controller.heartbeat_age_ms + sinceMs + staleMs(aircraft),
  };
}

/** A heartbeat's age was true when the companion sent it: what the link lost since then counts too. */
function staleMs(aircraft: Aircraft): number {
  return aircraft.fleet.age_ms ?? 0;
}

/** Whether the shown values are old news. */
export function isStale(health: Health): boolean {
  return health.companion !== 'up';
}
