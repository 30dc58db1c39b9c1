/** The missions that are being planned: drawn or read, previewed against the aircraft, and sent. Nothing reaches an aircraft before `send`. */
import { untrack } from 'svelte';
import { giveMission, readMissionFile, type Answer } from '../api/missions';
import type { FleetMissionUpload, GeoPoint, MissionFormat, MissionUpload, PlanDraft, PlanFile, PlanPreview } from '../api/model';
import { exportMissions, previewPlan, savePlan } from '../api/plan';
import { allNotes, assign, receivers, sharedProtocol } from '../fleet/assign';
import { shortHash } from '../fleet/format';
import { displayName, natural } from '../fleet/sort';
import type { Aircraft } from '../fleet/state';
import { addPlaces, addWaypoint, corridor, emptyMission, moveWaypoint, removeWaypoint, survey, type Lanes, type Place } from './draft';
import { EMPTY_FORM, contentOf, optionsOf, type FileForm } from './file';
import { plain } from './names';

/** What a click on the map adds to. */
export type Tool = 'route' | 'area' | 'line';

/** A mission and what was noted when its file was read. */
export interface Drawn {
  readonly mission: MissionUpload;
  readonly notes: readonly string[];
}

/** A mission on its way to an aircraft. */
export interface Sent {
  readonly vehicle: string;
  readonly name: string;
  readonly mission: string;
  readonly state: 'sending' | 'held' | 'failed';
  readonly reason: string;
  readonly notes: readonly string[];
}

/** As the ground service takes them. */
export const FILE_BYTES_MAX = 2_000_000;
/** A change is previewed when no other has followed it for so long. */
const SETTLED_MS = 250;
/** The aircraft move: what stands here is never much older. */
const REFRESH_MS = 5_000;
const UNDO_MAX = 100;

/** What the planner knows of the page. */
export interface Around {
  readonly aircraft: () => readonly Aircraft[];
  readonly selected: () => ReadonlySet<string>;
}

export class Planner {
  readonly #around: Around;
  #past = $state.raw<readonly (readonly Drawn[])[]>([]);
  /** The draft that the preview is of. */
  #previewed = $state('');

  drawn = $state.raw<readonly Drawn[]>([]);
  /** Where the plan that was opened says that its aircraft start: saved with it again. */
  #home = $state.raw<GeoPoint | undefined>(undefined);
  /** How files are read. */
  form = $state.raw<FileForm>(EMPTY_FORM);
  /** The one that is edited. */
  current = $state(0);
  tool = $state<Tool | undefined>(undefined);
  /** Corners of the area, or points of the line, that lanes will be laid over. */
  sketch = $state.raw<readonly Place[]>([]);
  /** The waypoint that is moved or was touched last. */
  chosen = $state<number | undefined>(undefined);
  heightM = $state(20);
  spacingM = $state(30);
  headingDeg = $state(0);
  widthM = $state(60);
  /** How long a full battery flies, minutes; undefined is unknown. */
  enduranceMin = $state<number | undefined>(undefined);
  problem = $state('');
  reading = $state(false);
  preview = $state.raw<PlanPreview | undefined>(undefined);
  sent = $state.raw<readonly Sent[]>([]);
  sending = $state(false);
  /** Counts what the map should show whole. */
  shown = $state(0);

  /** The aircraft that would take the missions. */
  readonly targets: readonly Aircraft[] = $derived.by(() => receivers(this.#around.aircraft(), this.#around.selected()));
  readonly #targetIds: string = $derived.by(() => this.targets.map(({ fleet: { status } }) => status?.id ?? '').join());
  readonly mission: MissionUpload | undefined = $derived(this.drawn[this.current]?.mission);
  /** Each mission with its aircraft, or why that cannot be said. */
  readonly assigned: readonly FleetMissionUpload[] | string = $derived.by(() => {
    if (this.drawn.length === 0) return 'There is no mission yet.';
    const short = this.drawn.find(({ mission }) => mission.waypoints.length < 2);
    if (short) return `${plain(short.mission.name)} has ${short.mission.waypoints.length === 0 ? 'no waypoint' : 'one waypoint'}, expected at least 2.`;
    // Which aircraft they are counts here, not where they fly.
    void this.#targetIds;
    const found = assign(untrack(() => this.targets), this.drawn.map(({ mission, notes }) => ({ mission, notes: [...notes] })));
    return typeof found === 'string' ? found : found.map(({ vehicle, mission: { mission } }) => ({ vehicle, mission }));
  });
  readonly draft: PlanDraft | undefined = $derived.by(() => {
    if (typeof this.assigned === 'string') return undefined;
    return { missions: [...this.assigned], ...(this.enduranceMin === undefined ? {} : { endurance_s: this.enduranceMin * 60 }) };
  });
  /** What the preview is of: it counts for exactly that. */
  readonly draftKey: string = $derived(JSON.stringify(this.draft ?? null));
  readonly isPreviewed: boolean = $derived(this.preview !== undefined && this.#previewed === this.draftKey);
  readonly stops: boolean = $derived(this.preview?.problems.some(({ stops }) => stops) ?? false);
  readonly canSend: boolean = $derived(this.draft !== undefined && this.isPreviewed && !this.stops && !this.sending);
  readonly canUndo: boolean = $derived(this.#past.length > 0);
  /** A sentence that names the missions that stand here and that not every aircraft has taken; empty where there is none. */
  readonly unsent: readonly string[] = $derived.by(() => {
    const drawn = this.drawn.filter(({ mission }) => mission.waypoints.length > 0);
    const isHeld = this.sent.length > 0 && this.sent.every(({ state }) => state === 'held');
    if (drawn.length === 0 || isHeld) return [];
    const what = drawn.length === 1 && drawn[0] ? `The mission ${plain(drawn[0].mission.name)}` : `${drawn.length} missions`;
    return [`${what} on this page ${drawn.length === 1 ? 'is' : 'are'} not sent.`];
  });
  /** The lanes that the sketch would become. */
  readonly lanes: Lanes = $derived.by(() => {
    if (this.tool === 'area') return survey(this.sketch, this.spacingM, this.headingDeg);
    if (this.tool === 'line') return corridor(this.sketch, this.widthM, this.spacingM);
    return { places: [], tooMany: false };
  });

  constructor(around: Around) {
    this.#around = around;
  }

  /** Previews what stands here, now and again; returns what ends that. */
  watch(): () => void {
    let timer: ReturnType<typeof setTimeout>;
    let ended = false;
    const again = async (): Promise<void> => {
      await this.refresh();
      if (!ended) timer = setTimeout(() => void again(), REFRESH_MS);
    };
    timer = setTimeout(() => void again(), SETTLED_MS);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }

  async refresh(): Promise<void> {
    const { draft, draftKey } = this;
    if (draft === undefined) return;
    const answer = await previewPlan(draft);
    // What was asked about has changed meanwhile.
    if (draftKey !== this.draftKey) return;
    if (answer.ok) [this.preview, this.#previewed] = [answer.value, draftKey];
    else [this.preview, this.#previewed] = [{ problems: [{ stops: true, text: answer.reason }], flights: [], notes: [] }, draftKey];
  }

  #change(drawn: readonly Drawn[]): void {
    this.#past = [...this.#past.slice(1 - UNDO_MAX), this.drawn];
    this.drawn = drawn;
    this.current = Math.max(0, Math.min(this.current, drawn.length - 1));
    this.sent = [];
  }

  undo(): void {
    if (this.sketch.length > 0) {
      this.sketch = this.sketch.slice(0, -1);
      return;
    }
    const before = this.#past.at(-1);
    if (!before) return;
    this.#past = this.#past.slice(0, -1);
    this.drawn = before;
    this.current = Math.max(0, Math.min(this.current, before.length - 1));
    this.chosen = undefined;
  }

  /** The mission that is edited becomes this one. */
  edit(mission: MissionUpload): void {
    const before = this.drawn[this.current];
    if (before) this.#change(this.drawn.with(this.current, { ...before, mission }));
    else this.#change([{ mission, notes: [] }]);
  }

  #start(): MissionUpload {
    return this.mission ?? emptyMission(`drawn-${this.drawn.length + 1}`);
  }

  begin(tool: Tool): void {
    this.sketch = [];
    this.tool = this.tool === tool ? undefined : tool;
    if (this.tool !== undefined && this.drawn.length === 0) this.edit(this.#start());
  }

  end(): void {
    [this.tool, this.sketch] = [undefined, []];
  }

  /** Another mission, for another aircraft. */
  another(): void {
    this.#change([...this.drawn, { mission: emptyMission(`drawn-${this.drawn.length + 1}`), notes: [] }]);
    this.current = this.drawn.length - 1;
    this.chosen = undefined;
  }

  choose(index: number): void {
    [this.current, this.chosen] = [index, undefined];
  }

  clear(): void {
    this.#change([]);
    this.#home = undefined;
    this.end();
    [this.problem, this.preview, this.chosen] = ['', undefined, undefined];
    // What was far away is gone: the fleet is what there is to see.
    this.shown += 1;
  }

  /** A click on the map. */
  click(place: Place): void {
    if (this.tool === 'route') {
      this.edit(addWaypoint(this.#start(), place, this.heightM));
      this.chosen = (this.mission?.waypoints.length ?? 1) - 1;
    } else if (this.tool !== undefined) this.sketch = [...this.sketch, place];
  }

  /** The waypoint follows the pointer: one step of *Undo* from where it was grabbed. */
  move(index: number, place: Place, first: boolean): void {
    if (!this.mission) return;
    const past = this.#past;
    this.edit(moveWaypoint(this.mission, index, place));
    if (!first) this.#past = past;
    this.chosen = index;
  }

  remove(index: number): void {
    if (!this.mission) return;
    this.edit(removeWaypoint(this.mission, index));
    this.chosen = undefined;
  }

  /** The lanes over the sketch become waypoints. */
  lay(): void {
    if (this.lanes.places.length === 0) return;
    this.edit(addPlaces(this.#start(), this.lanes.places, this.heightM));
    this.end();
  }

  /** Reads files in the order of their names. What is too large stays where it is. */
  async open(list: Iterable<File>): Promise<void> {
    const files = [...list].toSorted((a, b) => natural.compare(a.name, b.name));
    if (files.length === 0) return;
    [this.problem, this.reading] = ['', true];
    const read: Drawn[] = [];
    try {
      for (const file of files) {
        const answer = await this.#read(file);
        if (!answer.ok) {
          this.problem = plain(answer.reason);
          return;
        }
        read.push(...answer.value);
      }
    } finally {
      this.reading = false;
    }
    this.#change(read);
    [this.current, this.chosen, this.#home] = [0, undefined, undefined];
    this.end();
    this.shown += 1;
  }

  /** Missions of a plan that was opened, and where they start. */
  take({ missions, home }: Pick<PlanFile, 'missions' | 'home'>): void {
    this.#change(missions.map((mission) => ({ mission, notes: [] })));
    this.#home = home ?? undefined;
    [this.current, this.chosen, this.problem] = [0, undefined, ''];
    this.end();
    this.shown += 1;
  }

  async #read(file: File): Promise<Answer<readonly Drawn[]>> {
    if (file.size > FILE_BYTES_MAX) return { ok: false, reason: `${file.name}: found ${file.size} bytes, expected at most ${FILE_BYTES_MAX}` };
    const options = optionsOf(this.form);
    if (typeof options === 'string') return { ok: false, reason: options };
    const bytes = new Uint8Array(await file.arrayBuffer());
    const content = contentOf(bytes);
    if (content === undefined) return { ok: false, reason: `${file.name}: found bytes that are no text, expected text in UTF-8, UTF-16 or Latin-1` };
    const answer = await readMissionFile({ name: file.name, ...content, protocol: sharedProtocol(this.targets), options });
    return answer.ok ? { ok: true, value: answer.value.missions } : answer;
  }

  /** Each aircraft is sent its own, and answers for itself. */
  async send(): Promise<void> {
    const { draft } = this;
    if (!draft || !this.canSend) return;
    this.end();
    this.sending = true;
    const names = new Map(this.targets.map((target) => [target.fleet.status?.id ?? '', displayName(target)]));
    this.sent = draft.missions.map(({ vehicle, mission }) => ({ vehicle, name: names.get(vehicle) ?? vehicle, mission: mission.name, state: 'sending', reason: '', notes: [] }));
    await Promise.all(
      draft.missions.map(async ({ vehicle, mission }, index) => {
        const answer = await giveMission(vehicle, mission);
        const change: Partial<Sent> = answer.ok
          ? { state: 'held', reason: `holds ${shortHash(answer.value.hash)}`, notes: allNotes(this.drawn[index]?.notes ?? [], answer.value.notes) }
          : { state: 'failed', reason: answer.reason };
        this.sent = this.sent.map((one) => (one.vehicle === vehicle ? { ...one, ...change } : one));
      }),
    );
    this.sending = false;
  }

  /** The plan as a file that the bench flies; what is not in it is said. */
  async exportPlan(choice: Omit<PlanFile, 'missions' | 'home'>): Promise<{ readonly name: string; readonly text: string } | undefined> {
    const missions = choice.protocol === 'follow_me' ? [] : choice.protocol === 'muscop' ? (this.mission ? [this.mission] : []) : this.drawn.map(({ mission }) => mission);
    const home = missions.length > 0 && this.#home ? { home: this.#home } : {};
    const answer = await savePlan({ ...choice, missions, ...home });
    this.problem = answer.ok ? answer.value.notes.join('; ') : plain(answer.reason);
    return answer.ok ? answer.value : undefined;
  }

  /** The missions as a file; what is not in it is said. */
  async export(format: MissionFormat): Promise<{ readonly name: string; readonly text: string } | undefined> {
    const missions = format === 'kml' ? this.drawn.map(({ mission }) => mission) : this.mission ? [this.mission] : [];
    const here = this.targets[this.current]?.fleet.status?.navigation;
    const home = here ? { home: { ...here.position, altitude_m: here.position.altitude_m - here.height_m } } : {};
    const answer = await exportMissions({ format, missions, ...home });
    this.problem = answer.ok ? answer.value.notes.join('; ') : plain(answer.reason);
    return answer.ok ? answer.value : undefined;
  }
}
