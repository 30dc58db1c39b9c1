/** What the ground service answers on request, because nobody needs it five times a second. */
import type { AlarmsAcknowledge, FleetAircraft, FleetCommandNote } from './model';
import { ask, type Answer } from './missions';
import { explain } from './send';

/** One aircraft with its parameters. */
export const readAircraft = (vehicle: string, request: typeof fetch = fetch): Promise<Answer<FleetAircraft>> =>
  ask(`/api/v1/fleet/aircraft?vehicle=${encodeURIComponent(vehicle)}`, 'GET', undefined, request);

/** Why a command was given. */
/** Acknowledges alarms of the service, for all consoles. */
export async function acknowledgeAlarms(body: AlarmsAcknowledge): Promise<Answer<undefined>> {
  try {
    const response = await fetch('/api/v1/fleet/alarms', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: AbortSignal.timeout(5_000),
    });
    return response.ok ? { ok: true, value: undefined } : { ok: false, reason: await explain(response) };
  } catch {
    return { ok: false, reason: 'the ground service does not answer' };
  }
}

export async function sendNote(body: FleetCommandNote): Promise<Answer<undefined>> {
  try {
    const response = await fetch('/api/v1/fleet/commands/note', {
      method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: AbortSignal.timeout(5_000),
    });
    return response.ok ? { ok: true, value: undefined } : { ok: false, reason: await explain(response) };
  } catch {
    return { ok: false, reason: 'the ground service does not answer' };
  }
}
