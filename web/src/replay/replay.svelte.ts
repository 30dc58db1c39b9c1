/** What the replay shows: the recorded flight, and the moment of it. It reads files of the ground service, and knows no aircraft. */
import { readRecords, readTrack } from '../api/records';
import type { RecordedLog, RecordedResults, RecordedTrack } from '../api/model';
import { colourOf } from '../map/features';
import { readPreferences, type Preferences } from '../fleet/preferences';
import { advanced, flightOf, momentAt, nearestOf, receivedAt, samplesFor, type Flight, type Moment, type Near, type Received, type Speed } from './flight';

/** Logs that are replayed together. */
export const LOGS_MAX = 128;
/** What a key or a button steps. */
export const STEP_MS = 1_000;
export const LEAP_MS = 10_000;

/** One aircraft of the replay. */
export interface Replayed {
  readonly index: number;
  readonly name: string;
  readonly number: string;
  readonly colour: number;
  readonly id: string;
  readonly moment: Moment | undefined;
  readonly received: readonly Received[];
  /** By the positions of both logs. */
  readonly nearest: (Near & { readonly name: string }) | undefined;
}

export class Replay {
  logs = $state.raw<readonly RecordedLog[]>([]);
  results = $state.raw<readonly RecordedResults[]>([]);
  leftOut = $state(0);
  /** Why there is nothing to show; empty else. */
  problem = $state('');
  signedOut = $state(false);
  listing = $state(true);
  /** Files that are chosen. */
  chosen = $state.raw<ReadonlySet<string>>(new Set());
  /** How many of the chosen are read; undefined where none is being read. */
  reading = $state<number | undefined>(undefined);
  flight = $state.raw<Flight | undefined>(undefined);
  atMs = $state(0);
  playing = $state(false);
  speed = $state<Speed>(1);
  backwards = $state(false);
  /** Index of the aircraft whose details are shown. */
  focus = $state<number | undefined>(undefined);
  readonly preferences: Preferences = readPreferences();

  /** Folders with their logs, in the service's order. */
  readonly folders: readonly (readonly [string, readonly RecordedLog[]])[] = $derived.by(() => {
    const folders = new Map<string, RecordedLog[]>();
    for (const log of this.logs) {
      const folder = log.file.includes('/') ? log.file.slice(0, log.file.lastIndexOf('/')) : '';
      folders.set(folder, [...(folders.get(folder) ?? []), log]);
    }
    return [...folders];
  });

  readonly aircraft: readonly Replayed[] = $derived.by(() => {
    const tracks = this.flight?.tracks ?? [];
    const moments = tracks.map((track) => momentAt(track, this.atMs));
    const near = nearestOf(moments);
    const name = (index: number): string => tracks[index]?.data.name || tracks[index]?.data.file || '';
    return tracks.map((track, index): Replayed => {
      const nearest = near[index];
      return {
        index,
        name: name(index),
        number: String(index + 1),
        colour: colourOf(index),
        id: track.data.aircraft,
        moment: moments[index],
        received: receivedAt(track, this.atMs),
        nearest: nearest && { ...nearest, name: name(nearest.index) },
      };
    });
  });

  #lastMs: number | undefined;

  /** Lists what there is, and opens what the page's address names. */
  async start(files: readonly string[] = []): Promise<void> {
    const answer = await readRecords();
    this.listing = false;
    if (!answer.ok) {
      this.problem = answer.reason;
      this.signedOut = answer.status === 401;
      return;
    }
    this.logs = answer.value.logs;
    this.results = answer.value.results;
    this.leftOut = answer.value.left_out;
    if (files.length > 0) {
      this.chosen = new Set(files);
      await this.open();
    }
  }

  toggle(files: readonly string[], on: boolean): void {
    const chosen = new Set(this.chosen);
    for (const file of files) on ? chosen.add(file) : chosen.delete(file);
    this.chosen = chosen;
  }

  /** Reads the chosen logs, one after another, and begins the replay at its beginning. */
  async open(): Promise<void> {
    const files = [...this.chosen].toSorted(new Intl.Collator('en', { numeric: true }).compare);
    if (files.length === 0 || this.reading !== undefined) return;
    if (files.length > LOGS_MAX) {
      this.problem = `found ${files.length} logs, expected at most ${LOGS_MAX}`;
      return;
    }
    this.problem = '';
    this.playing = false;
    const tracks: RecordedTrack[] = [];
    for (const file of files) {
      this.reading = tracks.length;
      const answer = await readTrack(file, samplesFor(files.length));
      if (!answer.ok) {
        this.problem = answer.reason;
        this.signedOut = answer.status === 401;
        this.reading = undefined;
        return;
      }
      tracks.push(answer.value);
    }
    this.reading = undefined;
    this.flight = flightOf(tracks);
    this.atMs = 0;
    this.backwards = false;
    this.focus = tracks.length === 1 ? 0 : undefined;
  }

  /** Back to the list. */
  close(): void {
    this.playing = false;
    this.flight = undefined;
    this.focus = undefined;
  }

  play(): void {
    if (!this.flight) return;
    if (!this.playing) {
      // At its end it begins again.
      if (!this.backwards && this.atMs >= this.flight.durationMs) this.atMs = 0;
      if (this.backwards && this.atMs <= 0) this.atMs = this.flight.durationMs;
      this.#lastMs = undefined;
    }
    this.playing = !this.playing;
  }

  seek(atMs: number): void {
    this.atMs = Math.min(this.flight?.durationMs ?? 0, Math.max(0, atMs));
  }

  /** The page's clock is at `nowMs`: time of the replay passes. */
  tick(nowMs: number): void {
    const lastMs = this.#lastMs;
    this.#lastMs = nowMs;
    if (!this.playing || lastMs === undefined || !this.flight) return;
    const { atMs, ended } = advanced(this.atMs, nowMs - lastMs, this.backwards ? -this.speed : this.speed, this.flight.durationMs);
    this.atMs = atMs;
    if (ended) this.playing = false;
  }

  /** The name of an aircraft of this replay, or the end of the id of another. */
  nameOf(id: string): string {
    return this.aircraft.find((one) => one.id === id)?.name ?? `…${id.slice(-4)}`;
  }

  /** A sentence with the names of this replay's aircraft in place of their ids. */
  withNames(text: string): string {
    return text.replace(/\b[0-9a-f]{16}\b/g, (id) => this.aircraft.find((one) => one.id === id)?.name ?? id);
  }
}
