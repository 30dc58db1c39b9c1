/** What the panel of links shows: the matrix of every pair, and a test's loss against time. */
import type { FleetLinks, LinkTestReport } from '../api/model';
import { age, metres, plural } from './format';

/** One link, from an aircraft to another. */
export interface Cell {
  /** Share lost, 0 to 1; absent where the receiver received nothing of the sender yet, or did not answer. */
  readonly loss: number | undefined;
  readonly received: number;
  readonly lost: number;
  readonly distanceM: number | undefined;
  readonly ageMs: number | undefined;
}

const UNKNOWN: Cell = { loss: undefined, received: 0, lost: 0, distanceM: undefined, ageMs: undefined };

/** Rows send, columns receive, both in the order of `ids`; nothing on the diagonal. */
export function matrix(ids: readonly string[], links: FleetLinks | undefined): readonly (readonly (Cell | undefined)[])[] {
  const receivers = new Map((links?.aircraft ?? []).map(({ id, links }) => [id, new Map(links.map((link) => [link.from, link]))]));
  return ids.map((from) =>
    ids.map((to) => {
      if (from === to) return undefined;
      const link = receivers.get(to)?.get(from);
      if (!link) return UNKNOWN;
      const all = link.received + link.lost;
      return {
        loss: all > 0 ? link.lost / all : undefined,
        received: link.received,
        lost: link.lost,
        distanceM: link.distance_m ?? undefined,
        ageMs: link.age_ms,
      };
    }),
  );
}

/** How bad a loss is, in five steps and unknown: a class of the cell. */
export function band(loss: number | undefined): 'unknown' | 'good' | 'fair' | 'poor' | 'bad' | 'none' {
  if (loss === undefined) return 'unknown';
  if (loss <= 0.02) return 'good';
  if (loss <= 0.1) return 'fair';
  if (loss <= 0.5) return 'poor';
  return loss < 1 ? 'bad' : 'none';
}

export const lossPercent = (loss: number | undefined): string => (loss === undefined ? '–' : `${Math.round(loss * 100)}`);

/** A link in a sentence, for the line below the matrix and for screen readers. */
export function linkText(from: string, to: string, cell: Cell): string {
  if (cell.loss === undefined) return `${from} to ${to}: no probe received`;
  const all = cell.received + cell.lost;
  return `${from} to ${to}: ${lossPercent(cell.loss)} % lost, ${cell.lost} of ${plural(all, 'probe', 'probes')}, ${metres(cell.distanceM)}, last ${age(cell.ageMs)} ago`;
}

/** Where an arrow key leads from a cell of a square matrix, past the diagonal; the same cell at an edge. */
export function step(key: string, [row, column]: readonly [number, number], count: number): readonly [number, number] | undefined {
  const by = ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as const)[key];
  if (!by) return undefined;
  let at: readonly [number, number] = [row, column];
  do {
    at = [at[0] + by[0], at[1] + by[1]];
    if (at[0] < 0 || at[1] < 0 || at[0] >= count || at[1] >= count) return [row, column];
  } while (at[0] === at[1]);
  return at;
}

/** One second of a test. */
export interface Second {
  readonly loss: number;
  readonly distanceM: number | undefined;
}

/** Loss of each second that has been sent, by the receiver's report; of the last one only where it is over. */
export function seconds(report: LinkTestReport, sent: number): readonly Second[] {
  const rate = report.test.rate_hz;
  const all = Math.floor(sent / rate);
  return Array.from({ length: all }, (_, n) => {
    const second = report.seconds[n];
    // Numbers of datagrams and seconds do not divide evenly at every rate.
    const expected = Math.ceil((n + 1) * rate) - Math.ceil(n * rate);
    const loss = 1 - Math.min(second?.received ?? 0, expected) / expected;
    return { loss, distanceM: second?.distance_m ?? undefined };
  });
}
