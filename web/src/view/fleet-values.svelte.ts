/** Some parameters of each flight controller: as the aircraft report them, and set with the verified writes of *Parameters*. */
import { readAircraft } from '../api/aircraft';
import type { FleetParameters, FleetParameterWrite, Parameter } from '../api/model';
import { isIdle, outcomes, type Outcome } from '../fleet/comparison';
import { Asking } from './asking.svelte';

const PATH = '/api/v1/fleet/parameters';
/** Aircraft that are asked at the same time. */
const AT_ONCE = 8;
const AGAIN_MS = 3_000;

export class FleetValues extends Asking {
  /** By id: the parameters that its daemon watches; undefined of one that did not answer. */
  known = $state.raw<ReadonlyMap<string, readonly Parameter[] | undefined>>(new Map());
  #written = $state.raw<FleetParameters | undefined>(undefined);
  /** What became of what was set last, by id. */
  readonly said: ReadonlyMap<string, Outcome> = $derived(new Map(this.#written ? outcomes(this.#written).map((one) => [one.id, one] as const) : []));

  /**
   * Reads them, and again for as long as a daemon has not read its flight controller's. Returns what ends that.
   */
  keepReading(ids: readonly string[], isComplete: () => boolean): () => void {
    const read = () => void this.doing(() => this.#read(ids));
    read();
    const again = setInterval(() => {
      if (!isComplete()) read();
    }, AGAIN_MS);
    return () => clearInterval(again);
  }

  /** Sets them, and reads what the aircraft report then. */
  write(vehicles: FleetParameterWrite['vehicles']): Promise<void> {
    return this.doing(async () => {
      const begun = await this.ask<FleetParameters>('PUT', PATH, { vehicles });
      await this.follow(begun, PATH, isIdle, (now) => (this.#written = now));
      await this.#read([...this.known.keys()]);
    });
  }

  async #read(ids: readonly string[]): Promise<void> {
    const found = new Map<string, readonly Parameter[] | undefined>();
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE);
      const answers = await Promise.all(some.map((id) => readAircraft(id)));
      answers.forEach((answer, index) => found.set(some[index] ?? '', answer.ok ? answer.value.status?.flight_controller.parameters : undefined));
    }
    this.known = found;
  }
}
