/** Mission files: the ground service reads them, and passes each mission on to the one aircraft it is for. */
import type { MissionFile, MissionFileContent, MissionSummary, MissionUpload } from './model';
import { explain } from './send';

export const MISSION_FILES = '/api/v1/mission-files';
export const FLEET_MISSION = '/api/v1/fleet/mission';

/** An aircraft answers within 10 s; the ground service needs a little longer. */
const ANSWER_MS = 12_000;

export type Answer<T> = { ok: true; value: T } | { ok: false; reason: string };

/** One request that is not repeated. */
export async function ask<T>(path: string, method: string, body: unknown, request: typeof fetch): Promise<Answer<T>> {
  try {
    const response = await request(path, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return response.ok ? { ok: true, value: (await response.json()) as T } : { ok: false, reason: await explain(response) };
  } catch {
    return { ok: false, reason: 'the ground service does not answer' };
  }
}

/** With the protocol of the aircraft that it is for, the notes list what that protocol does not fly. */
export const readMissionFile = (file: MissionFile, request: typeof fetch = fetch): Promise<Answer<MissionFileContent>> =>
  ask(MISSION_FILES, 'POST', file, request);

/** `vehicle` is the id of the aircraft; the answer is the aircraft's own. */
export const giveMission = (vehicle: string, mission: MissionUpload, request: typeof fetch = fetch): Promise<Answer<MissionSummary>> =>
  ask(FLEET_MISSION, 'PUT', { vehicle, mission }, request);
