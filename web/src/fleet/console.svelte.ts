/**
 * What the page shows: the one place where the stream, the operator's selection and the commands under
 * way meet. Components read it and call its methods; they keep no copy of the fleet.
 */
import { readAccess, readAudit, signIn, signOut } from '../api/access';
import type { Access, AuditEntry, Command, FleetCommandRequest, FleetLeases } from '../api/model';
import { commandName, isRecovery } from '../api/commands';
import { explain, newCommandId, sendCommand } from '../api/send';
import { FleetStream } from '../api/stream';
import { colourOf } from '../map/features';
import { FlightDraft } from '../plan/flight.svelte';
import { Planner } from '../plan/planner.svelte';
import { RegionDraft } from './region.svelte';
import { announcements } from './announce';
import { acknowledgeAlarms } from '../api/aircraft';
import { acknowledge, active, isActive, merged, OWN_KINDS, unheard, updateAlarms, type Alarm } from './alarms';
import { byId, everyoneAlone, type ById } from './avoidance';
import { isOfEarlierService, olderCommands, type OlderCommand, type Sending } from './commands';
import { conditionsOf, SERVICE_LOST, type Condition } from './conditions';
import { holdings, type Holdings } from './mission';
import { nextFlight, type NextFlight } from './next-flight';
import { overview, Progress, type Overview } from './overview';
import { fleetPhase, type FleetPhase } from './phase';
import { readPreferences, writePreferences, type Preferences } from './preferences';
import { armSound, play, REPEAT_MS } from './sound';
import { timeline, type TimelineEvent } from './timeline';
import { Voltages, type Low } from './voltages';
import { absences, type Absences } from './members';
import { covers, scopeOf, type Scope } from './scope';
import { displayName, numberOf } from './sort';
import { applyLog, applyPicture, applyUpdate, EMPTY, type Aircraft, type FleetState } from './state';
import { summarize, trackFlight, type FlightClock } from './summary';

/** At most ten redraws a second, however fast the events come. */
const PUBLISH_MS = 100;
/** Ages are whole seconds: twice a second is often enough. */
const TICK_MS = 500;
/** A screen reader is given time to finish its sentence. */
const ANNOUNCE_MS = 1_500;
const SENDINGS_MAX = 16;
const SLOW_MS = 1_000;
const AUDIT_MS = 5_000;
const AUDIT_MAX = 500;
/** So long before its end a session is called to mind. */
const ENDS_SOON_MS = 10 * 60_000;

/** The page's clock: it never jumps. */
export const pageNowMs = (): number => performance.now();

/** Panels that open over the map, one at a time. */
export type Panel = 'plan' | 'check' | 'links' | 'parameters' | 'fence' | 'logs' | 'alarms' | 'commands' | 'settings';

type Addressed = FleetCommandRequest & { readonly vehicles: string[] };

export class FleetConsole {
  fleet = $state.raw<FleetState>(EMPTY);
  /** Whether the ground service answers; undefined before the first attempt has ended. */
  live = $state<boolean | undefined>(undefined);
  /** The page's clock, advancing in ticks. */
  nowMs = $state(pageNowMs());
  flight = $state.raw<FlightClock>(undefined);
  /** Addresses of the selected aircraft. */
  selected = $state.raw<ReadonlySet<string>>(new Set());
  /** Address of the aircraft whose details are shown: the one selected last. */
  focus = $state<string | undefined>(undefined);
  /** Commands of this page, oldest first. */
  sendings = $state.raw<readonly Sending[]>([]);
  /** Events of the stream that could not be read. */
  unreadable = $state(0);
  /** The text of the last exception that no part of the page has caught; empty while there is none. */
  failure = $state('');
  /** For the screen reader. */
  announcement = $state('');
  /** By address: the colour that an aircraft keeps for as long as it is in the fleet. */
  colours = $state.raw<ReadonlyMap<string, number>>(new Map());

  /** Who uses the page; undefined before the service has said. */
  access = $state.raw<Access | undefined>(undefined);
  /** The page's clock when the session ends. */
  #endsAtMs = $state(Infinity);
  /** The user signs in again although the session lasts. */
  renewing = $state(false);
  /** What was done through the service, oldest first; empty for an observer. */
  audit = $state.raw<readonly AuditEntry[]>([]);
  /** Entries that the service could not keep. */
  auditLost = $state(0);
  /** Nothing is shown and nothing sent before a user signs in. */
  readonly signedOut: boolean = $derived(this.access?.login === true && this.access.user === undefined);
  /** Whether this user commands; the service has the last word. */
  readonly mayCommand: boolean = $derived(
    this.access?.login !== true || (this.access.user !== undefined && this.access.user !== null && this.access.user.role !== 'observer'),
  );
  /** How long the session lasts still, where that is not long. */
  readonly endsSoonMs: number | undefined = $derived.by(() => {
    const left = this.#endsAtMs - this.nowMs;
    return left < ENDS_SOON_MS ? Math.max(0, left) : undefined;
  });

  preferences = $state.raw<Preferences>(readPreferences());
  /** Alarms that the page alone knows. */
  #own: readonly Alarm[] = [];
  /** Newest first: what is wrong now and what was, for all consoles. */
  alarms = $state.raw<readonly Alarm[]>([]);
  /** Commands that the aircraft report and the ground service does not know. */
  older = $state.raw<readonly OlderCommand[]>([]);
  /** The panel that is open over the map. */
  panel = $state<Panel | undefined>(undefined);
  /** The map stays on the selected aircraft. */
  follow = $state(false);

  readonly byId: ById = $derived(byId(this.fleet.aircraft));
  /** Whom of a swarm the others do not wait for. */
  readonly absences: Absences = $derived(absences(this.fleet.aircraft));
  readonly summary = $derived(summarize(this.fleet.aircraft));
  readonly held: Holdings = $derived(holdings(this.fleet.aircraft));
  readonly phase: FleetPhase = $derived(fleetPhase(this.fleet.aircraft, this.absences, this.fleet.checklist));
  /** By id: batteries at or below a limit of their flight controllers. */
  voltages = $state.raw<ReadonlyMap<string, Low>>(new Map());
  readonly #voltages = new Voltages();
  /** By address: what is wrong with each, worst first. */
  readonly conditions: ReadonlyMap<string, readonly Condition[]> = $derived.by(() => {
    const around = { known: this.byId, absences: this.absences, held: this.held, nowMs: pageNowMs(), groundLive: this.live ?? false, voltages: this.voltages };
    return new Map(this.fleet.aircraft.map((aircraft) => [aircraft.fleet.address, conditionsOf(aircraft, around)]));
  });
  /** By address: the number in its symbol. */
  readonly numbers: ReadonlyMap<string, string> = $derived(
    new Map(this.fleet.aircraft.map((aircraft, index) => [aircraft.fleet.address, numberOf(aircraft, index)])),
  );
  readonly activeAlarms = $derived(active(this.alarms));
  readonly unheard = $derived(unheard(this.alarms));
  /** The ground service's clock, carried on between its events. */
  readonly groundNowMs = $derived(
    this.fleet.timeMs + (this.fleet.receivedAtMs === undefined || !this.live ? 0 : Math.max(0, this.nowMs - this.fleet.receivedAtMs)),
  );
  /** Consoles that hold a lease of an aircraft, each with how many. */
  readonly leases: ReadonlyMap<string, number> = $derived.by(() => {
    const held = new Map<string, number>();
    for (const { fleet: { status } } of this.fleet.aircraft) {
      const name = status?.lease?.console;
      if (name !== undefined) held.set(name, (held.get(name) ?? 0) + 1);
    }
    return held;
  });
  /** Updated once a second: it compares every pair. */
  overview = $state.raw<Overview>(overview([], []));
  readonly #progress = new Progress();
  events = $state.raw<readonly TimelineEvent[]>([]);
  /** Nobody has a place in a swarm: each can be set up and started without the others. */
  readonly alone: boolean = $derived(everyoneAlone(this.fleet.aircraft));
  /** Draw the predicted places of all aircraft, not only of those selected or in conflict. */
  allPlaces = $state(false);
  /** Draw the places of the formation. */
  formation = $state(true);
  /** Draw the corridors of the routes. */
  corridors = $state(false);
  /** Fence and rally points: drawn, and held. */
  readonly region = new RegionDraft();
  readonly setupDraft = new FlightDraft();
  /** Whether the flight's set-up is unfolded in the plan's panel. */
  showsSetup = $state(false);
  /** What is planned and not yet sent. */
  readonly planner = new Planner({ aircraft: () => this.fleet.aircraft, selected: () => this.selected });
  readonly scope: Scope = $derived(scopeOf(this.fleet.aircraft, this.selected));
  /** The aircraft that have flown and that *Prepare next flight* would engage again. */
  readonly nextFlight: NextFlight = $derived(nextFlight(this.fleet.aircraft));
  /** A sentence for each draft that no aircraft holds; empty while none stands in the way of *Set up*. */
  readonly unsent: readonly string[] = $derived([...this.planner.unsent, ...this.setupDraft.unsent]);

  #next: FleetState = EMPTY;
  #publishing: ReturnType<typeof setTimeout> | undefined;
  #sentences: string[] = [];
  #announced: FleetState = EMPTY;
  #announcing: ReturnType<typeof setTimeout> | undefined;
  readonly #aborts = new Map<string, AbortController>();

  readonly #stream = new FleetStream({
    picture: (picture) => this.#change(applyPicture(this.#next, picture, pageNowMs())),
    update: (update) => this.#change(applyUpdate(this.#next, update, pageNowMs())),
    log: (line) => this.#change(applyLog(this.#next, line)),
    live: (live) => this.#setLive(live),
    problem: (text) => {
      console.error(text);
      this.unreadable += 1;
    },
  });

  /** Connects, and returns what disconnects. */
  start(): () => void {
    void this.checkAccess();
    this.#stream.start();
    const auditing = setInterval(() => void this.#readAudit(), AUDIT_MS);
    const ticking = setInterval(() => (this.nowMs = pageNowMs()), TICK_MS);
    const slow = setInterval(() => {
      this.#lookBack();
      this.#weigh();
    }, SLOW_MS);
    const sounding = setInterval(() => {
      if (this.unheard !== undefined && this.preferences.sound) play(this.unheard);
    }, REPEAT_MS);
    addEventListener('pointerdown', armSound, { once: true });
    addEventListener('keydown', armSound, { once: true });
    const failed = (event: ErrorEvent | PromiseRejectionEvent) =>
      this.fail('reason' in event ? event.reason : (event.error ?? event.message));
    addEventListener('error', failed);
    addEventListener('unhandledrejection', failed);
    return () => {
      removeEventListener('error', failed);
      removeEventListener('unhandledrejection', failed);
      this.#stream.stop();
      clearInterval(ticking);
      clearInterval(slow);
      clearInterval(auditing);
      clearInterval(sounding);
      clearTimeout(this.#publishing);
      clearTimeout(this.#announcing);
    };
  }

  /** Notes an exception that no part of the page has caught: what is drawn may stand still. */
  fail(error: unknown): void {
    console.error(error);
    this.failure = error instanceof Error ? error.message : String(error);
  }

  /** Asks the service who this is. */
  async checkAccess(): Promise<void> {
    const answer = await readAccess();
    if (answer.ok) this.#setAccess(answer.value);
  }

  /** Empty, or why not. */
  async signIn(name: string, password: string): Promise<string> {
    const answer = await signIn(name, password);
    if (!answer.ok) return answer.reason;
    this.renewing = false;
    this.#setAccess(answer.value);
    this.#stream.start();
    return '';
  }

  async signOut(): Promise<void> {
    const answer = await signOut();
    if (!answer.ok) this.#announce([`Not signed out: ${answer.reason}.`]);
    await this.checkAccess();
  }

  #setAccess(access: Access): void {
    this.access = access;
    this.#endsAtMs = access.user ? pageNowMs() + access.user.ends_in_ms : Infinity;
    if (!this.signedOut) return;
    this.#stream.stop();
    this.live = undefined;
    // What was under way is not carried into another session.
    for (const abort of this.#aborts.values()) abort.abort();
    this.audit = [];
  }

  async #readAudit(): Promise<void> {
    if (!this.live || !this.mayCommand || this.access === undefined) return;
    const answer = await readAudit(this.audit.at(-1)?.number ?? 0);
    if (!answer.ok) return;
    this.auditLost = answer.value.lost;
    if (answer.value.entries.length > 0) this.audit = [...this.audit, ...answer.value.entries].slice(-AUDIT_MAX);
  }

  prefer(change: Partial<Preferences>): void {
    this.preferences = { ...this.preferences, ...change };
    writePreferences(this.preferences);
  }

  /** Whether this user may acknowledge the alarm: those of the service count for all consoles. */
  mayAcknowledge(alarm: Alarm): boolean {
    return alarm.number === undefined || this.mayCommand;
  }

  /** One alarm, or all that there are. */
  acknowledge(key?: string): void {
    const meant = this.alarms.filter((alarm) => isActive(alarm) && !alarm.acknowledged && (key === undefined || alarm.key === key) && this.mayAcknowledge(alarm));
    const numbers = meant.flatMap(({ number }) => (number === undefined ? [] : [number]));
    for (const alarm of meant) {
      this.#own = acknowledge(this.#own, alarm.key);
      this.alarms = acknowledge(this.alarms, alarm.key);
    }
    if (numbers.length > 0) void this.#acknowledgeForAll(numbers);
    this.#lookBack();
  }

  async #acknowledgeForAll(numbers: readonly number[]): Promise<void> {
    const answer = await acknowledgeAlarms({ numbers: [...numbers] });
    if (answer.ok) return;
    this.#announce([`Not acknowledged: ${answer.reason}.`]);
    this.#judge();
  }

  /** Opens a panel, or closes it where it is open. */
  togglePanel(panel: Panel): void {
    this.panel = this.panel === panel ? undefined : panel;
  }

  /** What is derived from the whole fleet and its past, once a second. */
  #lookBack(): void {
    const { aircraft, missions, commands, log, timeMs } = this.fleet;
    this.overview = this.live === false ? overview([], []) : overview(aircraft, missions, this.#progress, pageNowMs());
    const { startedUnixMs } = this.fleet;
    const sendings = this.sendings.filter((sending) => !isOfEarlierService(sending, startedUnixMs));
    const known = new Set([...commands.map(({ id }) => id), ...sendings.map(({ id }) => id)]);
    this.older = olderCommands(aircraft, known, this.older, timeMs);
    this.events = timeline({
      commands, log, alarms: this.alarms, older: this.older, known: this.byId, fleetSize: aircraft.length, console: this.fleet.console,
      audit: this.audit, startedUnixMs: this.fleet.startedUnixMs,
      own: new Set(this.sendings.map(({ id }) => id)),
    });
  }

  /** Batteries by their voltage. */
  #weigh(): void {
    const { aircraft } = this.fleet;
    if (this.live) void this.#voltages.read(aircraft, pageNowMs());
    const low = this.#voltages.observe(aircraft, pageNowMs());
    // The same again would judge the whole fleet anew.
    if (low.size !== this.voltages.size || [...low].some(([id, one]) => this.voltages.get(id) !== one)) this.voltages = low;
  }

  /** Selects this aircraft alone, or none if it was selected alone. */
  selectOnly(address: string): void {
    const again = this.selected.size === 1 && this.selected.has(address);
    this.#select(again ? [] : [address], address);
  }

  /** Shows the aircraft with this id: the other one of a conflict. */
  show(id: string): void {
    const address = this.byId.get(id)?.fleet.address;
    if (address !== undefined) this.#select([address], address);
  }

  /** Adds this aircraft to the selection or takes it out. */
  toggle(address: string): void {
    const selected = new Set(this.selected);
    if (!selected.delete(address)) selected.add(address);
    this.#select(selected, address);
  }

  selectAll(addresses: readonly string[]): void {
    this.#select(addresses, addresses.at(-1));
  }

  clearSelection(): void {
    this.#select([], undefined);
  }

  #select(addresses: Iterable<string>, focus: string | undefined): void {
    this.selected = new Set(addresses);
    this.focus = focus !== undefined && this.selected.has(focus) ? focus : [...this.selected].at(-1);
  }

  /** Setup and Start go to all aircraft, the others to the scope that the operator saw on the button. */
  async send(command: Command, scope: Scope): Promise<void> {
    // An empty list means all in a request: none must never become all.
    if (scope.kind === 'none' || !this.#may(commandName(command))) return;
    const body = { id: newCommandId(), command, vehicles: [...scope.vehicles] };
    if (isRecovery(command)) this.#replaceBy(body.vehicles);
    await this.#deliver(body, scope.short);
  }

  /** Sent to the whole swarm, for every member that receives it: also the excluded one. */
  async exclude(aircraft: Aircraft): Promise<void> {
    const member = aircraft.fleet.status?.id;
    if (member === undefined || !this.#may('Exclude')) return;
    await this.#deliver({ id: newCommandId(), command: { exclude: { member } }, vehicles: [] }, displayName(aircraft));
  }

  /**
   * Takes the leases of these aircraft over from the consoles that hold them. The aircraft's status shows who is in charge. Returns why
   * not, as text; empty if all answered that this console is.
   */
  async takeOver(scope: Scope): Promise<string> {
    if (!this.#may('Take over')) return '';
    let problems: string[];
    try {
      const answer = await fetch('/api/v1/fleet/leases', {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ vehicles: scope.vehicles }),
      });
      if (answer.status === 401) await this.checkAccess();
      const { vehicles } = answer.ok ? ((await answer.json()) as FleetLeases) : { vehicles: [] };
      const name = (id: string) => { const one = this.byId.get(id); return one ? displayName(one) : id; };
      problems = answer.ok ? vehicles.flatMap(({ id, problem }) => (problem ? [`${name(id)}: ${problem}`] : [])) : [await explain(answer)];
    } catch {
      problems = ['the ground service does not answer'];
    }
    return problems.join('; ');
  }

  /** Says why not, where this user does not command. */
  #may(what: string): boolean {
    if (this.mayCommand) return true;
    this.#announce([`${what} was not sent: ${this.signedOut ? 'no user has signed in' : 'an observer commands nothing'}.`]);
    return false;
  }

  async #deliver(body: Addressed, scope: string): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(body.id, abort);
    const atUnixMs = this.fleet.startedUnixMs + this.groundNowMs;
    const sending: Sending = { ...body, scope, state: 'sending', reason: '', atUnixMs, serviceUnixMs: 0 };
    this.sendings = [...this.sendings.slice(1 - SENDINGS_MAX), sending];
    const result = await sendCommand(body, {
      signal: abort.signal,
      retrying: (reason) => this.#changeSending(body.id, { reason }),
    });
    this.#aborts.delete(body.id);
    this.#changeSending(body.id, result.ok ? { state: 'sent', reason: '', serviceUnixMs: this.#next.startedUnixMs, sentAtMs: pageNowMs() } : { state: 'failed', reason: result.reason });
    if (!result.ok) this.#announce([`${commandName(body.command)} was not sent: ${result.reason}.`]);
    if (!result.ok && result.signedOut) await this.checkAccess();
  }

  /** An older command must not get through late, after the newer one. */
  #replaceBy(vehicles: readonly string[]): void {
    for (const sending of this.sendings) {
      if (covers(vehicles, sending.vehicles)) this.#aborts.get(sending.id)?.abort();
    }
  }

  #changeSending(id: string, change: Partial<Sending>): void {
    this.sendings = this.sendings.map((sending) => (sending.id === id ? { ...sending, ...change } : sending));
  }

  #setLive(live: boolean): void {
    // The service does not say on a stream why it ended: perhaps the session has.
    if (!live) void this.checkAccess();
    if (live === this.live) return;
    if (!live) this.#announce(['Ground service not reachable.']);
    else if (this.live === false) this.#announce(['Ground service reachable again.']);
    this.live = live;
    this.#judge();
  }

  #change(next: FleetState): void {
    this.#next = next;
    this.#publishing ??= setTimeout(() => {
      this.#publishing = undefined;
      this.#publish();
    }, PUBLISH_MS);
  }

  #publish(): void {
    this.fleet = this.#next;
    this.#announce([]);
    this.flight = trackFlight(this.flight, this.#next);
    this.#colour();
    this.#judge();
  }

  /** Updates the alarms: those of the service, and those of conditions that the page alone knows. */
  #judge(): void {
    const reports = this.#next.aircraft.map((aircraft) => {
      const { address } = aircraft.fleet;
      return { address, name: displayName(aircraft), conditions: (this.conditions.get(address) ?? []).filter(({ kind }) => OWN_KINDS.includes(kind)) };
    });
    const service = { address: '', name: 'Ground service', conditions: this.live === false ? [SERVICE_LOST] : [] };
    this.#own = updateAlarms(this.#own, [service, ...reports], this.#next.timeMs);
    this.alarms = merged(this.#next.alarms, this.#own);
  }

  #colour(): void {
    const addresses = this.fleet.aircraft.map(({ fleet }) => fleet.address);
    if (addresses.length === this.colours.size && addresses.every((address) => this.colours.has(address))) return;
    this.colours = new Map(addresses.map((address, index) => [address, colourOf(index)]));
  }

  /** Says these sentences and what has changed in the fleet since the last time, together and not too often. */
  #announce(sentences: readonly string[]): void {
    this.#sentences.push(...sentences);
    this.#announcing ??= setTimeout(() => {
      this.#announcing = undefined;
      const text = [...this.#sentences, ...announcements(this.#announced, this.fleet)].join(' ');
      this.#announced = this.fleet;
      this.#sentences = [];
      // Silence between two sentences leaves the last one standing; an empty text would announce nothing.
      if (text) this.announcement = text;
    }, ANNOUNCE_MS);
  }
}
