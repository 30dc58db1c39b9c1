// How fast the page answers its operator, and whether it may stay open all day. Prints figures, and exits with 1 where one is missed.
//
//   node tests/browser/figures.mjs input [--uavs 100] [--inputs 300] [--seed 1] [--fleet]
//   node tests/browser/figures.mjs heap [--uavs 100] [--seconds 600] [--seed 1] [--fleet]
//   node tests/browser/figures.mjs land [--trials 100] [--loss 10] [--profile 4.6.2] [--seed 1]
//
// Without --fleet the page is served by `web/dev/fake-ground.mjs`, 5 times a second; with it by `wingbeat bench fleet`, which flies them
// on this machine. Both need the built page.
//
// input: selecting an aircraft, opening and closing panels, keys of the map, at random moments, by the mouse and the keyboard of the
// browser. The time is Chromium's own from the input to the frame that shows what it did (Event Timing: in steps of 8 ms, the longest
// event of an interaction; one below 16 ms is not reported and counts as 16). Each must have had its effect. Most of it is the wait for a
// frame: what one takes is printed too.
//
// heap: what is left after a forced collection, every 30 s, in the middle of use: before each the same tour of inputs is made. The slope is
// that of the line by least squares, in MB for ten minutes, with its standard error.

//
// land: 50 aircraft of `bench fleet` fly missions of their own; *Land* for all is confirmed by a click, and each aircraft is timed from
// that click to the end of the frame in which its row is in LAND. Between two trials all are sent to *Return*, which takes them up again. Every packet
// between the ground service and an aircraft's daemon, in either direction, is lost with --loss percent: the kernel drops it (nftables)
// in a network namespace of this program's own, with packets no larger than an Ethernet frame. Wants Linux, `nft`, `ip` and `unshare`; which
// packets are lost is not of the seed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';

import { conclude, line, load, machine, metrics, numbers, quantile, withFlight } from './measuring.mjs';

const INPUT_MS = 100;
/** Flat: in a day of ten hours less than 60 MB. */
const HEAP_MB = 1;
/** Without its effect after so long an input failed. */
const EFFECT_MS = 20_000;
const FRAMES_MS = 8_000;
/** After so many frames the one that shows an input is on the screen. */
const FRAMES = 6;
const SAMPLE_S = 30;
/** Samples count from then on: the tracks on the map are of the last five minutes, and fill until then. */
const WARM_UP_S = 330;
const { values, positionals: [what] } = parseArgs({
  allowPositionals: true,
  options: {
    uavs: { type: 'string', default: '100' }, inputs: { type: 'string', default: '300' }, seconds: { type: 'string', default: '600' },
    trials: { type: 'string', default: '100' }, loss: { type: 'string', default: '10' }, profile: { type: 'string', default: '4.6.2' },
    seed: { type: 'string', default: '1' }, fleet: { type: 'boolean', default: false },
  },
});
const [uavs, seed] = [Number(values.uavs), Number(values.seed)];
const kind = values.fleet ? 'fleet' : 'stand-in';

/** Clicks the middle of what is there; only the input itself is left to the page. */
async function press(page, selector) {
  const at = await page.evaluate((selector) => {
    const element = document.querySelector(selector);
    element?.scrollIntoView({ block: 'nearest' });
    const { x, y, width, height } = element?.getBoundingClientRect() ?? {};
    return x === undefined ? undefined : [x + width / 2, y + height / 2];
  }, selector);
  assert.ok(at, `${selector} is not on the page`);
  await page.mouse.click(...at);
}

/** Waits until the page is as the input should have made it. */
const shows = (what, holds, of) => (page) =>
  page.waitForFunction(holds, of, { timeout: EFFECT_MS }).catch(() => assert.fail(`not within ${EFFECT_MS / 1000} s: ${what}`));
const noneSelected = shows('no aircraft is selected', () => document.querySelectorAll('[data-testid=aircraft-row][aria-selected=true]').length === 0);
const panel = (name, testid) => [
  { name: `open ${name}`, act: (page) => press(page, `[data-testid=${testid}]`), holds: shows(`${name} is open`, (name) => document.querySelector('[data-testid=drawer]')?.ariaLabel.endsWith(name.toLowerCase()) || document.querySelector('[data-testid=drawer]')?.ariaLabel === name, name) },
  { name: 'close a panel', act: (page) => page.keyboard.press('Escape'), holds: shows(`${name} is closed`, () => document.querySelector('[data-testid=drawer]') === null) },
];

/** What an operator does, in this order again and again; the aircraft are drawn. */
function tour(random) {
  const row = () => 1 + Math.floor(random() * uavs);
  const select = () => {
    const selector = `:nth-child(${row()} of [data-testid=aircraft-row])`;
    return { name: 'select an aircraft', act: (page) => press(page, selector), holds: shows('the aircraft is selected', (selector) => document.querySelector(selector)?.ariaSelected === 'true', selector) };
  };
  return [
    select(), select(), { name: 'clear the selection', act: (page) => page.keyboard.press('Escape'), holds: noneSelected },
    ...panel('Check', 'step-check', 'Check'), ...panel('Links', 'open-links', 'Links'), ...panel('Alarms', 'alarm-badge', 'Alarms'),
    ...panel('Parameters', 'open-parameters', 'Parameters'), ...panel('Settings', 'open-settings', 'Settings'), ...panel('Plan', 'step-plan', 'Plan'),
    { name: 'fit the map (F)', act: (page) => page.keyboard.press('f') },
    { name: 'corridors on (C)', act: (page) => page.keyboard.press('c') }, { name: 'corridors off (C)', act: (page) => page.keyboard.press('c') },
    { name: 'select all', act: (page) => press(page, '[data-testid=select-all]') }, { name: 'clear the selection', act: (page) => page.keyboard.press('Escape'), holds: noneSelected },
  ];
}

/** How long a frame takes, and what of it is the graphics process's work: without a graphics card that is most. */
async function frames(page, devtools) {
  const graphicsS = async () => (await devtools.send('SystemInfo.getProcessInfo')).processInfo.find(({ type }) => type === 'GPU')?.cpuTime ?? Number.NaN;
  const before = await graphicsS();
  const { count, tookMs } = await page.evaluate((limitMs) => new Promise((done) => {
    const began = performance.now();
    let count = 0;
    const next = (now) => {
      if (now - began < limitMs) requestAnimationFrame(next);
      else done({ count, tookMs: now - began });
      count += 1;
    };
    requestAnimationFrame(next);
  }), FRAMES_MS);
  return { ms: tookMs / count, graphicsMs: ((await graphicsS()) - before) * 1000 / count };
}

async function input() {
  const count = Number(values.inputs);
  await withFlight(kind, uavs, async ({ page, browser }) => {
    await page.evaluate(() => {
      window.interactions = new Map();
      new PerformanceObserver((list) => {
        for (const { interactionId, duration, startTime, processingEnd } of list.getEntries()) {
          if (interactionId === 0) continue;
          const before = window.interactions.get(interactionId) ?? { duration: 0, handled: 0 };
          window.interactions.set(interactionId, { duration: Math.max(before.duration, duration), handled: Math.max(before.handled, processingEnd - startTime) });
        }
      }).observe({ type: 'event', durationThreshold: 16 });
    });
    const random = numbers(seed);
    const idle = await frames(page, await browser.newBrowserCDPSession());
    const took = new Map();
    const [all, handled] = [[], []];
    const before = load();
    for (let queue = []; all.length < count;) {
      if (queue.length === 0) queue = tour(random);
      const { name, act, holds } = queue.shift();
      await sleep(200 + 400 * random());
      await page.evaluate(() => window.interactions.clear());
      await act(page);
      await holds?.(page);
      // Past the frame that shows it, wherever that is on its way to the screen, and the observer that is called after.
      await page.evaluate((frames) => new Promise((done) => {
        const next = () => (frames-- > 0 ? requestAnimationFrame(next) : setTimeout(done, 100));
        next();
      }), FRAMES);
      const seen = await page.evaluate(() => [...window.interactions.values()]);
      assert.ok(seen.length <= 1, `${name} was ${seen.length} interactions`);
      const ms = seen[0]?.duration ?? 16;
      if (seen.length > 0) handled.push(seen[0].handled);
      took.set(name, [...(took.get(name) ?? []), ms]);
      all.push(ms);
    }
    console.log(`${uavs} aircraft at 5 Hz, ${kind}, ${all.length} inputs, seed ${seed}; ${machine()}, ${before} to ${load()}, Chromium ${browser.version()}, drawn without a graphics card`);
    line('input to paint, p95', quantile(all, 0.95), 'ms', INPUT_MS);
    line('  p50', quantile(all, 0.5), 'ms');
    line('  most', Math.max(...all), 'ms');
    line('  to the end of the page\'s own handlers, p95', quantile(handled, 0.95), 'ms');
    line('frame, while nothing is pressed', idle.ms, 'ms');
    line('  of it graphics process, processor time', idle.graphicsMs, 'ms');
    for (const [name, ms] of took) line(`  ${name} (${ms.length}), p95`, quantile(ms, 0.95), 'ms');
  });
}

/** The line by least squares: its slope, and the standard error of that. */
function fit(points) {
  const mean = (all) => all.reduce((sum, one) => sum + one, 0) / all.length;
  const [x, y] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const squares = points.reduce((sum, [at]) => sum + (at - x) ** 2, 0);
  const slope = points.reduce((sum, [at, value]) => sum + (at - x) * (value - y), 0) / squares;
  const rest = points.reduce((sum, [at, value]) => sum + (value - y - slope * (at - x)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (points.length - 2) / squares) };
}

async function heap() {
  const seconds = Number(values.seconds);
  await withFlight(kind, uavs, async ({ page, devtools, browser }) => {
    await devtools.send('Performance.enable');
    await devtools.send('HeapProfiler.enable');
    const random = numbers(seed);
    const points = [];
    const before = load();
    const began = performance.now();
    for (let sample = 0; sample * SAMPLE_S <= seconds + WARM_UP_S; sample += 1) {
      await sleep(Math.max(0, began + sample * SAMPLE_S * 1000 - performance.now()));
      for (const { act, holds } of tour(random)) {
        await act(page);
        await holds?.(page);
      }
      await sleep(500);
      // Twice: what the first one finalises is free only after the second.
      for (let i = 0; i < 2; i += 1) await devtools.send('HeapProfiler.collectGarbage');
      const { JSHeapUsedSize, Nodes, JSEventListeners } = await metrics(devtools);
      const at = (performance.now() - began) / 1000;
      console.log(`${at.toFixed(0).padStart(5)} s ${(JSHeapUsedSize / 1e6).toFixed(2).padStart(8)} MB ${Nodes} nodes ${JSEventListeners} listeners`);
      if (sample * SAMPLE_S >= WARM_UP_S) points.push([at, JSHeapUsedSize / 1e6, Nodes]);
    }
    const { slope, error } = fit(points);
    const nodes = fit(points.map(([at, , nodes]) => [at, nodes])).slope;
    console.log(`${uavs} aircraft at 5 Hz, ${kind}, ${points.length} samples in ${seconds} s after ${WARM_UP_S} s, seed ${seed}; ${machine()}, ${before} to ${load()}, Chromium ${browser.version()}`);
    line('heap after collection, growth in 10 minutes', slope * 600, `MB (standard error ${(error * 600).toFixed(2)})`, HEAP_MB);
    line('  nodes, growth in 10 minutes', nodes * 600, '');
    line('  at the end', points.at(-1)[1], 'MB');
  });
}

const LAND_MS = 1_000;
/** Trials of one flight: those that were sent to *Return* are at home after some minutes. */
const FLIGHT_TRIALS = 10;
/** Of those that are not there by then the ground service is asked why: a line for each is printed. */
const LATE_MS = 700;
/** A trial that takes longer counts as this. */
const TRIAL_MS = 15_000;
const CROWD = ['--plan', 'crates/bench/plans/mbcap-crowd.toml', '--flight', '50', '--variant', 'off'];

/** A command of a tool, which must succeed. */
function tool(program, args, input) {
  const { status, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8' });
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${error ?? stderr}`);
}

/** From now on packets to and from these ports are lost. */
function lose(percent, ports) {
  const rule = (side) => `tcp ${side} @aircraft numgen random mod 1000 < ${Math.round(percent * 10)} counter drop`;
  // Dropped where they arrive: dropped where they leave, the sender would be told.
  const rules = `table ip wingbeat {
    set aircraft { type inet_service; elements = { ${ports.join(', ')} } }
    chain arrive { type filter hook input priority 0; ${rule('dport')}; ${rule('sport')}; }
  }`;
  // One that is there is of the flight before.
  tool('nft', ['-f', '-'], `table ip wingbeat\ndelete table ip wingbeat\n${rules}`);
}

async function land() {
  const [trials, loss] = [Number(values.trials), Number(values.loss)];
  if (process.env.WINGBEAT_FIGURES_NETWORK === undefined) {
    const again = spawnSync('unshare', ['--user', '--map-root-user', '--net', process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
      stdio: 'inherit', env: { ...process.env, WINGBEAT_FIGURES_NETWORK: 'own' },
    });
    process.exit(again.status ?? 1);
  }
  tool('ip', ['link', 'set', 'lo', 'up', 'mtu', '1500', 'gso_max_segs', '1']);
  const before = load();
  const fleet = async (address) => (await fetch(`${address}/api/v1/fleet`)).json();
  const command = (address, command, vehicles = []) =>
    fetch(`${address}/api/v1/fleet/commands`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: crypto.randomUUID(), command, vehicles }) });
  /** Set up and started by --auto; where a slow machine let some of that fail, those again. */
  const start = async (page, address) => {
    await page.goto(address);
    for (let tries = 0; tries < 60; tries += 1) {
      await sleep(10_000);
      const { aircraft } = await fleet(address);
      const ids = (phase) => aircraft.filter(({ status }) => status?.phase === phase).map(({ status }) => status.id);
      if (ids('moving').length === 50) return;
      if (tries > 2 && ids('start').length > 0) await command(address, 'setup', ids('start'));
      else if (tries > 2 && ids('ready').length > 0) await command(address, 'start', ids('ready'));
    }
  };
  /** What the ground service knows of those that do not land yet. */
  const missing = async (address) => {
    const { aircraft, commands } = await fleet(address);
    const results = commands.findLast((one) => one.command === 'land')?.results ?? [];
    const others = aircraft.filter(({ status }) => status?.flight_controller.mode !== 'LAND').map(({ status, problem, age_ms }) => {
      const { outcome, detail } = results.find(({ vehicle }) => vehicle === status?.id) ?? {};
      return `  ${status?.name} is in ${status?.flight_controller.mode}, heard ${age_ms} ms ago (${problem ?? 'no problem'}); ${outcome}: ${detail}`;
    });
    return [`  after ${LATE_MS} ms the ground service knows of all but ${others.length}`, ...others];
  };
  const random = numbers(seed);
  const [each, slowest, known, late] = [[], [], [], []];
  let version;
  const flight = (last) => withFlight('fleet', 50, async ({ page, address, browser }) => {
    const { aircraft } = await fleet(address);
    assert.equal(aircraft.length, 50);
    version = browser.version();
    lose(loss, aircraft.map(({ address }) => Number(new URL(address).port)));
    await page.evaluate(() => {
      const rows = () => document.querySelectorAll('[data-testid=aircraft-row]');
      window.modes = () => [...rows()].map(({ dataset }) => dataset.mode);
      addEventListener('click', (event) => {
        if (!event.target.closest('[data-testid=confirm]')) return;
        const trial = (window.trial = { at: event.timeStamp, took: new Map(), known: undefined, frames: [] });
        let before = event.timeStamp;
        const look = () => {
          if (window.trial !== trial) return;
          const shown = [...rows()].filter(({ dataset }) => dataset.mode === 'LAND' && !trial.took.has(dataset.id));
          const known = trial.known === undefined && document.querySelector('[data-testid=last-command]')?.dataset.verdict === 'done';
          // What is there when a frame begins is on the screen when the next does.
          requestAnimationFrame((next) => {
            for (const { dataset } of shown) if (!trial.took.has(dataset.id)) trial.took.set(dataset.id, next - trial.at);
            if (known) trial.known ??= next - trial.at;
            trial.frames.push(next - before);
            before = next;
            look();
          });
        };
        requestAnimationFrame(look);
      }, { capture: true });
    });
    while (slowest.length < last) {
      // The question is withdrawn after ten seconds: a machine that was slower asks anew.
      while (!(await page.evaluate(() => window.trial !== undefined))) {
        await press(page, '[data-testid=land]');
        await page.waitForSelector('[data-testid=confirm]', { timeout: 5_000 }).then(() => press(page, '[data-testid=confirm]')).catch(() => undefined);
        await sleep(100);
      }
      const all = (timeout) => page.waitForFunction(() => window.trial?.took.size === 50, undefined, { timeout, polling: 100 });
      const missed = await all(LATE_MS).then(() => [], () => missing(address));
      await all(TRIAL_MS).catch(() => undefined);
      await page.waitForFunction(() => window.trial?.known !== undefined, undefined, { timeout: 5_000, polling: 100 }).catch(() => undefined);
      const { took, seen, frames } = await page.evaluate(() => {
        const { took, known, frames } = window.trial;
        window.trial = undefined;
        return { took: [...took.values()], seen: known, frames };
      });
      if (missed.length > 0) {
        const last = took.toSorted((a, b) => b - a).slice(0, 5).map((ms) => ms.toFixed(0));
        late.push(`trial ${slowest.length + 1}: the last after ${last.join(', ')} ms; longest time between two frames ${Math.max(...frames).toFixed(0)} ms`, ...missed);
      }
      while (took.length < 50) took.push(TRIAL_MS);
      each.push(...took);
      slowest.push(Math.max(...took));
      known.push(seen ?? TRIAL_MS);
      if (process.stderr.isTTY || slowest.length % FLIGHT_TRIALS === 0) console.error(`${slowest.length} of ${trials}: slowest ${slowest.at(-1).toFixed(0)} ms, ${load()}`);
      await command(address, 'return');
      await page.waitForFunction(() => window.modes().every((mode) => mode === 'RTL'), undefined, { timeout: 120_000, polling: 200 }).catch(async () => {
        const { aircraft, commands } = await fleet(address);
        const results = commands.findLast((one) => one.command === 'return')?.results ?? [];
        const others = aircraft.filter(({ status }) => status?.flight_controller.mode !== 'RTL').map(({ status, link }) => {
          const { outcome, detail } = results.find(({ vehicle }) => vehicle === status?.id) ?? {};
          return `${status?.name}: ${status?.flight_controller.mode}, ${link}, ${status?.detail}; ${outcome}: ${detail}`;
        });
        assert.fail(`not within 120 s: all are in RTL; found ${others.join('\n')}`);
      });
      // Not in step with the heartbeats.
      await sleep(1_000 + 1_000 * random());
    }
  }, { more: [...CROWD, '--profile', values.profile, '--seed', values.seed], start });
  while (slowest.length < trials) await flight(Math.min(trials, slowest.length + FLIGHT_TRIALS));
  console.log(`50 aircraft, simulated ArduCopter ${values.profile}, ${loss} % of packets lost, ${trials} trials, seed ${seed}; ${machine()}, ${before} to ${load()}, Chromium ${version}`);
  line('Land all to every aircraft in LAND on screen, p99 of the trials', quantile(slowest, 0.99), 'ms', LAND_MS);
  line('  p50 of the trials', quantile(slowest, 0.5), 'ms');
  line('  trials over 1 s', slowest.filter((ms) => ms > LAND_MS).length, `of ${trials}`);
  line('  each aircraft, p50', quantile(each, 0.5), 'ms');
  line('  each aircraft, p95', quantile(each, 0.95), 'ms');
  line('  each aircraft, p99', quantile(each, 0.99), 'ms');
  line('  the command\'s own line says that all are, p50', quantile(known, 0.5), 'ms');
  for (const one of late) console.log(one);
}

const run = { input, heap, land }[what];
assert.ok(run, `found ${JSON.stringify(what)}, expected input, heap or land`);
await run();
conclude();
