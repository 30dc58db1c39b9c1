/**
 * The one event stream from which everything on the page comes. It reopens for ever.
 *
 * A browser's EventSource stops after an HTTP error and notices a cut cable only after minutes, so
 * this class closes and reopens it itself: after every error, and after a silence.
 */
import type { FleetLogLine, FleetPicture, FleetUpdate } from './model';

export const FLEET_EVENTS = '/api/v1/fleet/events';

/** From an error to the next attempt. */
export const REOPEN_MS = 1_000;
/** The service sends something every second: after four without, the connection is opened anew. */
export const SILENCE_MS = 4_000;
/** After reopening because of silence: how long the picture may take before the service counts as gone. */
export const ANSWER_MS = 3_000;

export interface StreamHandlers {
  picture(picture: FleetPicture): void;
  update(update: FleetUpdate): void;
  log(line: FleetLogLine): void;
  /** The service answers (true) or does not (false). */
  live(live: boolean): void;
  /** Something on the stream could not be read. */
  problem(text: string): void;
}

/** What is used of EventSource, so that a test can stand in for it. */
export type EventSourceLike = Pick<EventSource, 'addEventListener' | 'close'>;

export class FleetStream {
  #source: EventSourceLike | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly handlers: StreamHandlers,
    private readonly open: () => EventSourceLike = () => new EventSource(FLEET_EVENTS),
  ) {}

  start(): void {
    this.#reopen();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  #reopen(): void {
    this.stop();
    const source = this.open();
    this.#source = source;
    this.#read(source, 'picture', (picture: FleetPicture) => this.handlers.picture(picture));
    this.#read(source, 'update', (update: FleetUpdate) => this.handlers.update(update));
    this.#read(source, 'log', (line: FleetLogLine) => this.handlers.log(line));
    source.addEventListener('error', () => {
      if (source === this.#source) this.#lost();
    });
    this.#wake(ANSWER_MS, () => this.#lost());
  }

  #read<T>(source: EventSourceLike, name: string, handle: (value: T) => void): void {
    source.addEventListener(name, (event) => {
      if (source !== this.#source) return;
      this.handlers.live(true);
      this.#wake(SILENCE_MS, () => this.#reopen());
      try {
        handle(JSON.parse((event as MessageEvent<string>).data) as T);
      } catch (error) {
        this.handlers.problem(`fleet stream: event "${name}" cannot be read: ${String(error)}`);
        // Later updates say what changed of something that the page does not have: only a new picture helps.
        this.#wake(REOPEN_MS, () => this.#reopen());
      }
    });
  }

  #lost(): void {
    this.stop();
    this.handlers.live(false);
    this.#wake(REOPEN_MS, () => this.#reopen());
  }

  #wake(delayMs: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, delayMs);
  }
}
