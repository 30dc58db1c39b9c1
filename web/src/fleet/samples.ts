/** Values for the unit tests: one healthy aircraft, and changes to it. */
import type { AircraftChange, AircraftStatus, Avoidance, FleetAircraft, FleetCommand, FleetPicture, FleetUpdate, VehicleOutcome } from '../api/model';
import { applyPicture, EMPTY, type FleetState } from './state';

export const ACTIONS = { setup: true, setup_blocked: '', start: false, start_blocked: 'Setup comes first.' };

export function status(index: number, change: Partial<AircraftStatus> = {}): AircraftStatus {
  return {
    id: index.toString(16).padStart(16, '0'),
    name: `UAV ${index}`,
    time_ms: 1000,
    protocol: 'muscop',
    state: 'Start',
    phase: 'start',
    detail: 'waiting for Setup',
    engaged: true,
    failsafe: false,
    flight_controller: { link: 'up', heartbeat_age_ms: 200, firmware: 'ArduCopter 3.5.7', mode: 'LOITER', armed: false, refused: [] },
    navigation: {
      position: { latitude_deg: 39.48 + index / 10_000, longitude_deg: -0.34, altitude_m: 20 },
      height_m: 0, ground_speed_m_s: 0, climb_m_s: 0, heading_deg: 90, target: null,
    },
    battery: { remaining_percent: 80, voltage_v: 12, current_a: 1 },
    mission: null,
    swarm: null,
    radio: { secured: true, sent: 0, received: 0, refused: [] },
    checks: [],
    cures: [],
    can_resume: false,
    commands: [],
    ...change,
  };
}

export function aircraft(index: number, change: Partial<AircraftStatus> = {}, link: Partial<FleetAircraft> = {}): FleetAircraft {
  return { address: `http://10.0.0.${index}:8080`, link: 'up', age_ms: 100, status: status(index, change), ...link };
}

export const neverSeen = (index: number): FleetAircraft => ({
  address: `http://10.0.0.${index}:8080`, link: 'never_seen', age_ms: null, status: null,
});

export function flying(index: number, heightM = 20): FleetAircraft {
  const calm = status(index);
  return aircraft(index, {
    state: 'MovingToWaypoint',
    phase: 'moving',
    flight_controller: { ...calm.flight_controller, mode: 'GUIDED', armed: true },
    navigation: calm.navigation ? { ...calm.navigation, height_m: heightM } : null,
  });
}

/** One that flies for itself, 20 m apart per index, with predicted positions every `everyM` to the north. */
export function avoiding(index: number, change: Partial<Avoidance> = {}, count = 3, everyM = 5): FleetAircraft {
  const one = flying(index);
  const here = one.status?.navigation?.position ?? { latitude_deg: 0, longitude_deg: 0, altitude_m: 0 };
  const predicted = Array.from({ length: count }, (_, k) => ({ ...here, latitude_deg: here.latitude_deg + (k * everyM) / 111_195 }));
  const avoidance: Avoidance = { state: 'Normal', avoiding: null, predicted, risk: null, aside: null, ...change };
  return one.status ? { ...one, status: { ...one.status, protocol: 'mbcap-e', state: avoidance.state, swarm: null, avoidance } } : one;
}

export function picture(list: FleetAircraft[], change: Partial<FleetPicture> = {}): FleetPicture {
  return {
    time_ms: 1000, version: '1.0.0', console: 'laptop:8700', started_unix_ms: 1_700_000_000_000, has_map: false, has_tiles: false, log: [], aircraft: list, missions: [], commands: [], alarms: [], actions: ACTIONS, ...change,
  };
}

/** Each aircraft whole, as the first change of one that nothing was known of. */
export function update(list: FleetAircraft[], change: Partial<FleetUpdate> = {}): FleetUpdate {
  const aircraft: AircraftChange[] = list.map((one) => ({ address: one.address, change: { ...one } }));
  return { time_ms: 2000, aircraft, ...change };
}

export function command(outcomes: VehicleOutcome[], change: Partial<FleetCommand> = {}): FleetCommand {
  const results = outcomes.map((outcome, index) => ({ vehicle: status(index + 1).id, outcome, detail: '' }));
  return { id: 'c1', command: 'land', time_ms: 500, results, ...change };
}

export const stateOf = (list: FleetAircraft[], change: Partial<FleetPicture> = {}): FleetState =>
  applyPicture(EMPTY, picture(list, change), 0);
