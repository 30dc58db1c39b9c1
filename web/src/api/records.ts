/** Recorded flights that the ground service reads from its directory of records. Only read: nothing here changes anything. */
import type { ApiError, RecordedTrack, Records } from './model';

export const RECORDS = '/api/v1/records';
export const RECORDS_TRACK = '/api/v1/records/track';

/** The page of a campaign's results. The service serves it without scripts: a file may have been written by others. */
export const resultsPage = (page: string): string => `/api/v1/records/page?file=${encodeURIComponent(page)}`;

/** A long log is read from its beginning to its end. */
const ANSWER_MS = 65_000;

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly status: number; readonly reason: string };

async function read<T>(path: string, request: typeof fetch): Promise<Read<T>> {
  try {
    const response = await request(path, { method: 'GET', signal: AbortSignal.timeout(ANSWER_MS) });
    if (response.ok) return { ok: true, value: (await response.json()) as T };
    const text = await response.text();
    let reason = text.slice(0, 300) || `the ground service answered ${response.status}`;
    try {
      reason = (JSON.parse(text) as ApiError).message;
    } catch {
      // Not this service's own answer: its text stands for itself.
    }
    return { ok: false, status: response.status, reason };
  } catch {
    return { ok: false, status: 0, reason: 'the ground service does not answer' };
  }
}

export const readRecords = (request: typeof fetch = fetch): Promise<Read<Records>> => read(RECORDS, request);

/** With as many samples at most. */
export const readTrack = (file: string, samples: number, request: typeof fetch = fetch): Promise<Read<RecordedTrack>> =>
  read(`${RECORDS_TRACK}?file=${encodeURIComponent(file)}&samples=${samples}`, request);
