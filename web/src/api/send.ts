/**
 * Sends a command to the ground service until it answers. The same id is the same command there,
 * so repeating is safe. From the answer on the ground service repeats towards the aircraft, and what
 * became of it arrives on the event stream.
 */
import { isRecovery } from './commands';
import type { ApiError, Command, FleetCommandRequest } from './model';

export const FLEET_COMMANDS = '/api/v1/fleet/commands';

const REPEAT_MS = 500;
const ANSWER_MS = 2_000;

/** For how long the page keeps trying. A set-up that arrives late surprises; a landing does not. */
export function patienceMs(command: Command): number {
  return isRecovery(command) ? 60_000 : 5_000;
}

/**
 * 128 random bits in hexadecimal. Not `crypto.randomUUID`, which browsers offer on https and localhost
 * only, while the page is also opened over the lab's plain-http network.
 */
export function newCommandId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** `signedOut`: the session has ended. It is not sent again after the next one begins: the operator decides anew. */
export type SendResult = { ok: true } | { ok: false; reason: string; signedOut?: boolean };

export interface SendOptions {
  /** Ends the repeats: a newer command has replaced this one. */
  signal: AbortSignal;
  /** Told after each attempt without an answer. */
  retrying?: (reason: string) => void;
  /** Stands in for `fetch` in tests. */
  request?: typeof fetch;
}

export async function sendCommand(body: FleetCommandRequest, options: SendOptions): Promise<SendResult> {
  const request = options.request ?? fetch;
  const deadline = performance.now() + patienceMs(body.command);
  for (;;) {
    if (options.signal.aborted) return { ok: false, reason: 'replaced by a newer command' };
    let reason: string;
    try {
      const response = await request(FLEET_COMMANDS, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.any([options.signal, AbortSignal.timeout(ANSWER_MS)]),
      });
      if (response.ok) return { ok: true };
      reason = await explain(response);
      // The service read the request and refused it: sending it again would change nothing.
      if (response.status >= 400 && response.status < 500) return { ok: false, reason, ...(response.status === 401 ? { signedOut: true } : {}) };
    } catch {
      if (options.signal.aborted) continue;
      reason = 'the ground service does not answer';
    }
    if (performance.now() + REPEAT_MS >= deadline) return { ok: false, reason };
    options.retrying?.(reason);
    await pause(REPEAT_MS, options.signal);
  }
}

export async function explain(response: Response): Promise<string> {
  try {
    const { message } = (await response.json()) as Partial<ApiError>;
    if (message) return message;
  } catch {
    // Not the service's own error shape, for example a proxy's page: the status has to do.
  }
  return `the ground service answered ${response.status}`;
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal.addEventListener('abort', done);
  });
}
