/** The alarm's sound: two tones for an alarm, one for a caution, again until it is acknowledged. Made here: no file is loaded. */
import type { Level } from './conditions';

export const REPEAT_MS = 3_000;

let context: AudioContext | undefined;

/** Browsers permit sound only after the operator has touched the page. */
export const armSound = (): void => {
  context ??= new AudioContext();
  if (context.state === 'suspended') void context.resume();
};

export function play(level: Level): void {
  if (!context || context.state !== 'running') return;
  const tones = level === 'alarm' ? [880, 660, 880] : [520];
  for (const [index, hertz] of tones.entries()) {
    const at = context.currentTime + index * 0.18;
    const [tone, volume] = [context.createOscillator(), context.createGain()];
    tone.type = 'triangle';
    tone.frequency.value = hertz;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(0.25, at + 0.02);
    volume.gain.linearRampToValueAtTime(0, at + 0.16);
    tone.connect(volume).connect(context.destination);
    tone.start(at);
    tone.stop(at + 0.17);
  }
}
