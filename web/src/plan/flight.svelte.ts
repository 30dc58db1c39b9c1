/** The flight's set-up before it is sent: protocol, formation, distances, speed and manners, as the aircraft say that they can be set. */
import type { AircraftStatus, FleetFlightSetups, FlightProtocol, FlightSetup, FlightSetupChoice, FlightSetupKey, PlanFile, PlanProtocol } from '../api/model';

export type Value = string | number | undefined;
type Key = Exclude<keyof FlightSetup, 'protocol'>;

const PROTOCOLS: Record<FlightProtocol, string> = {
  muscop: 'MUSCOP: a formation flies one mission', mbcap: 'MBCAP: each its own, they give way', follow_me: 'FollowMe: a formation follows a pilot',
  mission: 'Mission: each its own, nothing keeps them apart', sweep: 'Sweep: each a strip of an area',
};
const LABELS: Record<string, string> = {
  variant: 'Variant', leader: 'Leader', aircraft: 'Aircraft', formation: 'Formation', distance_m: 'Spacing', landing_distance_m: 'Spacing at landing',
  height_m: 'Height', speed_m_s: 'Speed', take_off: 'Take-off', landing: 'Landing',
};
const VALUES: Record<string, string> = { sequential: 'one after another', simultaneous: 'together', in_place: 'where they are', formation: 'in formation', 'mbcap-e': 'MBCAP-e', mbcap: 'as published' };

export const protocolName = (protocol: FlightProtocol): string => PROTOCOLS[protocol];
/** What a key that is new here is called stands in its name. */
export const labelOf = (key: string): string => LABELS[key] ?? key.replace(/_(m_s|m)$/, '').replaceAll('_', ' ');
export const unitOf = (key: string): string => (key.endsWith('_m_s') ? 'm/s' : key.endsWith('_m') ? 'm' : '');
export const valueName = (value: string): string => VALUES[value] ?? value;

/** In the order of their labels: the stream brings keys in any order, and null for one that is gone. */
const KEYS = Object.keys(LABELS);
const stated = (setup: FlightSetup): [Key, Value][] =>
  (Object.entries(setup) as [Key | 'protocol', Value | null][])
    .flatMap(([key, value]): [Key, Value][] => (key === 'protocol' || value == null ? [] : [[key, value]]))
    .toSorted(([a], [b]) => KEYS.indexOf(a) - KEYS.indexOf(b));

/** One line: what an aircraft is set up with. */
export function describe(setup: FlightSetup, nameOf: (id: string) => string): string {
  const parts = stated(setup).map(([key, value]) => {
    if (key === 'leader') return `${nameOf(String(value))} leads`;
    if (key === 'formation') return String(value);
    if (key === 'aircraft') return `${value} aircraft`;
    const unit = unitOf(key);
    return `${labelOf(key).toLowerCase()} ${unit ? `${value} ${unit}` : valueName(String(value))}`;
  });
  return [(PROTOCOLS[setup.protocol].split(':')[0] ?? setup.protocol), ...parts].join(', ');
}

/** Whether an aircraft has all that a set-up states. */
export const isHeld = (held: FlightSetup, setup: FlightSetup): boolean =>
  held.protocol === setup.protocol && stated(setup).every(([key, value]) => held[key] === value);

/** What most have. */
export function usual(setups: readonly FlightSetup[]): FlightSetup | undefined {
  const counts = new Map<string, { setup: FlightSetup; count: number }>();
  for (const setup of setups) {
    const key = JSON.stringify([setup.protocol, ...stated(setup)]);
    counts.set(key, { setup, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  return [...counts.values()].toSorted((a, b) => b.count - a.count)[0]?.setup;
}

/** What an aircraft has otherwise than most of its swarm. Two leaders are two swarms; one without a leader is compared with all. */
export function differences(setup: FlightSetup, all: readonly FlightSetup[]): string[] {
  const expected = usual(setup.leader == null ? all : all.filter(({ leader }) => leader === setup.leader));
  if (expected === undefined) return [];
  if (expected.protocol !== setup.protocol) return [`protocol ${setup.protocol}, most have ${expected.protocol}`];
  return stated(setup).flatMap(([key, value]) => (expected[key] == null || expected[key] === value ? [] : [`${labelOf(key).toLowerCase()} ${value}, most have ${expected[key]}`]));
}

/** A flight of a minute. */
const DRAWN = 'drawn:60';

export class FlightDraft {
  protocol = $state<FlightProtocol>('muscop');
  values = $state.raw<Readonly<Record<string, Value>>>({});
  choices = $state.raw<readonly FlightSetupChoice[]>([]);
  /** What each refused when it was sent last, by id; empty text for what it took. */
  answers = $state.raw<ReadonlyMap<string, string>>(new Map());
  /** What was sent last. */
  sent = $state.raw<FlightSetup | undefined>(undefined);
  /** Of the plan for the bench, where the protocol has no speed of its own. */
  benchSpeedMS = $state(10);
  /** Of the same, what flies the leader of FollowMe: a pilot drawn from the seed, or the published flight. */
  benchPilot = $state(DRAWN);
  #isOwn = $state(false);
  #most: FlightSetup | undefined;

  readonly keys: readonly FlightSetupKey[] = $derived(this.choices.find(({ protocol }) => protocol === this.protocol)?.keys ?? []);
  /** What is sent: a key without a value stays as each aircraft is configured. */
  readonly setup: FlightSetup = $derived.by(() => {
    const chosen = this.keys.flatMap(({ key }) => (this.values[key] === undefined ? [] : [[key, this.values[key]] as const]));
    return { protocol: this.protocol, ...(Object.fromEntries(chosen) as Partial<FlightSetup>) };
  });

  /** A sentence, where the set-up on this page is not the one that all aircraft took. */
  readonly unsent: readonly string[] = $derived.by(() => {
    const isHeld = JSON.stringify(this.sent) === JSON.stringify(this.setup) && [...this.answers.values()].every((problem) => problem === '');
    return this.#isOwn && !isHeld ? ['The flight set-up on this page is not sent.'] : [];
  });

  /** Drops the changes: the draft is again what most aircraft have. */
  discard(): void {
    this.#isOwn = false;
    if (this.#most) this.#fill(this.#most);
  }

  /** What aircraft answered: the choices are theirs, and until something is chosen the draft is what most have. */
  take({ vehicles }: FleetFlightSetups): void {
    const states = vehicles.flatMap(({ state }) => state ?? []);
    // A choice that one aircraft does not have is refused by that one, and said.
    this.choices = states.toSorted((a, b) => b.choices.length - a.choices.length)[0]?.choices ?? this.choices;
    const most = usual(states.map(({ setup }) => setup));
    this.#most = most ?? this.#most;
    if (!this.#isOwn && most) this.#fill(most);
  }

  #fill(setup: FlightSetup): void {
    this.protocol = setup.protocol;
    this.values = Object.fromEntries(stated(setup));
  }

  set(key: string, value: Value): void {
    this.#isOwn = true;
    this.values = { ...this.values, [key]: value };
  }

  /** Another protocol begins with what an aircraft has of it, else with the whole fleet behind its first. */
  choose(protocol: FlightProtocol, fleet: readonly AircraftStatus[]): void {
    this.#isOwn = true;
    const held = fleet.find(({ flight_setup }) => flight_setup?.setup.protocol === protocol)?.flight_setup?.setup;
    const leads = fleet.find(({ swarm }) => swarm?.leader) ?? fleet[0];
    this.#fill(held ?? { protocol, ...(leads ? { leader: leads.id } : {}), aircraft: Math.min(128, Math.max(2, fleet.length)) });
  }

  /** What was answered to a set-up, by aircraft. */
  answered(sent: FlightSetup | undefined, fleet: FleetFlightSetups): void {
    this.sent = sent;
    this.answers = new Map(fleet.vehicles.map(({ id, problem }) => [id, problem ?? ''] as const));
    if (sent === undefined) this.#isOwn = false;
    this.take(fleet);
  }

  #text(key: string): string | undefined {
    return typeof this.values[key] === 'string' ? this.values[key] : undefined;
  }

  #number(key: string): number | undefined {
    return typeof this.values[key] === 'number' ? this.values[key] : undefined;
  }

  /** The protocol as the bench's plans call it; undefined for one whose flight the page's plans do not describe. */
  get planProtocol(): PlanProtocol | undefined {
    if (this.protocol === 'mbcap') return this.#text('variant') === 'mbcap' ? 'mbcap' : 'mbcap-e';
    return this.protocol === 'sweep' ? undefined : this.protocol;
  }

  /** The plan for the bench, but for its missions. */
  get plan(): Omit<PlanFile, 'missions' | 'home'> | undefined {
    const protocol = this.planProtocol;
    if (protocol === undefined) return undefined;
    const [landing_distance_m, take_off, landing] = [this.#number('landing_distance_m'), this.#text('take_off'), this.#text('landing')];
    const height_m = this.#number('height_m');
    const ofLeader = protocol === 'follow_me' ? { pilot: this.benchPilot, ...(height_m === undefined ? {} : { height_m }), ...(landing_distance_m === undefined ? {} : { landing_distance_m }), ...(landing ? { landing } : {}) } : {};
    const ofSwarm = protocol === 'muscop' ? { ...(landing_distance_m === undefined ? {} : { landing_distance_m }), ...(take_off ? { take_off } : {}), ...(landing ? { landing } : {}) } : {};
    return {
      protocol, aircraft: this.#number('aircraft') ?? 2, formation: this.#text('formation') ?? 'linear', distance_m: this.#number('distance_m') ?? 50,
      speed_m_s: this.#number('speed_m_s') ?? this.benchSpeedMS, ...ofSwarm, ...ofLeader,
    };
  }

  /** A plan file was opened: its set-up is the draft; who leads is the fleet's to say. */
  open(plan: PlanFile): void {
    this.#isOwn = true;
    const { protocol, aircraft, formation, distance_m, landing_distance_m, take_off, landing, speed_m_s, height_m, pilot } = plan;
    if (protocol === 'muscop' || protocol === 'follow_me') {
      const { leader } = this.values;
      this.protocol = protocol;
      this.benchPilot = pilot ?? DRAWN;
      this.values = { ...(leader === undefined ? {} : { leader }), aircraft, formation, distance_m, landing_distance_m: landing_distance_m ?? undefined, take_off: take_off ?? undefined, landing: landing ?? undefined, height_m: height_m ?? undefined };
      this.benchSpeedMS = speed_m_s;
    } else {
      this.protocol = protocol === 'mission' ? 'mission' : 'mbcap';
      this.values = { speed_m_s, ...(protocol === 'mission' ? {} : { variant: protocol }) };
    }
  }
}
