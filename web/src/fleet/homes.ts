/** Where each aircraft last stood with its motors off: its home, as far as the page has seen it. */
import type { GeoPoint } from '../api/model';
import type { Aircraft } from './state';

export class Homes {
  readonly #places = new Map<string, GeoPoint>();
  readonly #armed = new Set<string>();

  add(fleet: readonly Aircraft[]): void {
    for (const { fleet: { address, link, status } } of fleet) {
      const position = status?.navigation?.position;
      if (!status || link !== 'up' || !position) continue;
      if (status.flight_controller.armed) this.#armed.add(address);
      // After a landing it stands somewhere else: that is its home when it is armed again.
      else if (this.#armed.delete(address) || !this.#places.has(address) || status.phase === 'start') this.#places.set(address, position);
    }
  }

  /** Unknown of one that was armed when the page was opened. */
  of(address: string): GeoPoint | undefined {
    return this.#places.get(address);
  }

  get size(): number {
    return this.#places.size;
  }
}
