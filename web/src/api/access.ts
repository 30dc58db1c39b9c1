/** Who uses the page, and what was done through the ground service. */
import { ask, type Answer } from './missions';
import type { Access, AuditLog } from './model';
import { explain } from './send';

export const SESSION = '/api/v1/session';
export const AUDIT = '/api/v1/audit';

const ANSWER_MS = 10_000;

export const readAccess = (request: typeof fetch = fetch): Promise<Answer<Access>> => ask(SESSION, 'GET', undefined, request);

/** The session is a cookie, which no script reads. */
export const signIn = (name: string, password: string, request: typeof fetch = fetch): Promise<Answer<Access>> =>
  ask(SESSION, 'POST', { name, password }, request);

export async function signOut(request: typeof fetch = fetch): Promise<Answer<undefined>> {
  try {
    const response = await request(SESSION, { method: 'DELETE', signal: AbortSignal.timeout(ANSWER_MS) });
    return response.ok ? { ok: true, value: undefined } : { ok: false, reason: await explain(response) };
  } catch {
    return { ok: false, reason: 'the ground service does not answer' };
  }
}

/** What was done after the entry with this number. */
export const readAudit = (after: number, request: typeof fetch = fetch): Promise<Answer<AuditLog>> =>
  ask(`${AUDIT}?after=${after}`, 'GET', undefined, request);
