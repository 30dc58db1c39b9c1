/** What a panel asks of the ground service: one thing at a time, for as long as the panel is open. What went wrong is one line. */
import { explain } from '../api/send';

const POLL_MS = 1_000;

/** What is answered of many aircraft. */
interface OfVehicles<V> {
  vehicles: V[];
}

export class Asking {
  busy = $state(false);
  problem = $state('');
  readonly #leaving = new AbortController();

  /** The panel is closed. */
  end(): void {
    this.#leaving.abort();
  }

  /** The answer as JSON; throws the service's sentence where it refuses. */
  async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(path, {
      method, signal: this.#leaving.signal,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(await explain(response));
    return (await response.json()) as T;
  }

  /** Does nothing while something else is asked. */
  async doing(act: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    [this.busy, this.problem] = [true, ''];
    try {
      await act();
    } catch (error) {
      if (!this.#leaving.signal.aborted) this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      this.busy = false;
    }
  }

  /** Asks again, once a second, until it is as it is waited for. */
  async until<T>(begun: T, isDone: (now: T) => boolean, again: () => Promise<T>, take: (now: T) => void): Promise<void> {
    let now = begun;
    take(now);
    while (!isDone(now)) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      now = await again();
      take(now);
    }
  }

  /** The same for work of many aircraft: what one refused at once has no other place where it is said. */
  async follow<V extends { id: string; problem?: string | null }>(
    begun: OfVehicles<V>, path: string, isDone: (now: OfVehicles<V>) => boolean, take: (now: OfVehicles<V>) => void,
  ): Promise<void> {
    const refused = new Map(begun.vehicles.filter(({ problem }) => problem).map((one) => [one.id, one] as const));
    const again = async () => {
      const { vehicles } = await this.ask<OfVehicles<V>>('GET', path);
      return { vehicles: vehicles.map((one) => refused.get(one.id) ?? one) };
    };
    await this.until(begun, isDone, again, take);
  }
}
