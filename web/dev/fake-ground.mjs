// A stand-in for the ground service while the page is worked on: it serves web/dist and the fleet's API,
// with aircraft that fly circles. It is independent of real aircraft and is never shipped.
//
//   node dev/fake-ground.mjs [--uavs 9] [--port 8700] [--trouble] [--alarms] [--autostart] [--mbcap]
//
// --trouble: one aircraft falls silent, one loses its flight controller, one holds another mission, one
// refuses commands, one is taken over by its pilot, one address never answers.
// --alarms: besides, a failsafe, a battery that is low, one that comes too near, and a radio that is down.
// --autostart: sets up and starts by itself, for pictures and measurements.
// --mbcap: each has its own mission; two by two they meet on a line once a minute, stop, give way and pass.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { constants, createGzip } from 'node:zlib';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: { uavs: { type: 'string', default: '9' }, port: { type: 'string', default: '8700' }, trouble: { type: 'boolean', default: false }, mbcap: { type: 'boolean', default: false }, alarms: { type: 'boolean', default: false }, autostart: { type: 'boolean', default: false } },
});
const count = Number(options.uavs);
const dist = fileURLToPath(new URL('../dist', import.meta.url));
const [homeLat, homeLon] = [39.482594, -0.346265];
const startedAt = Date.now();
const timeMs = () => Date.now() - startedAt;
const is = (index, which) => options.trouble && index === which % count;
const alarming = (index, which) => options.alarms && timeMs() > 5000 && index === which % count;

const place = (east, north, height) => ({
  latitude_deg: homeLat + north / 111_132,
  longitude_deg: homeLon + east / (111_320 * Math.cos((homeLat * Math.PI) / 180)),
  altitude_m: 12 + height,
});
// A lawn-mower of 14 waypoints.
const waypoints = Array.from({ length: 14 }, (_, i) => place((i >> 1) * 40 - 120, ((i + 1) >> 1) % 2 ? 180 : 60, 25));
const missions = [
  { hash: '5f1c9a02be77d310', name: 'field-survey', waypoints },
  { hash: '0badc0de0badc0de', name: 'square', waypoints: [place(-60, -60, 20), place(60, -60, 20), place(60, -140, 20), place(-60, -140, 20)] },
];

const side = Math.ceil(Math.sqrt(count));
const fleet = Array.from({ length: count }, (_, index) => ({
  index,
  id: (0xb827eb000000 + index + 1).toString(16).padStart(16, '0'),
  address: `http://10.0.0.${index + 1}:8080`,
  slot: { east: ((index % side) - (side - 1) / 2) * 25, north: -Math.floor(index / side) * 25 },
  state: 'Start', mode: 'LOITER', armed: false, engaged: true, height: 0, angle: index, commands: [], sent: 0, received: 0,
}));
const commands = [];

// What a pair does in each minute of flight: until when, the lower one, the higher one.
const SCENES = [
  [18, 'Normal', 'Normal'], [23, 'StandStill', 'StandStill'], [30, 'MovingAside', 'StandStill'],
  [44, 'GoOnPlease', 'Overtaking'], [60, 'Normal', 'Normal'],
];
const LANE_M = 90;
/** East and north of home: where one of a pair is, `t` seconds into the minute. */
function track(uav, t) {
  const lane = (uav.index >> 1) * LANE_M;
  const [x, y] = [((uav.index >> 1) % 5) * 400, Math.floor((uav.index >> 1) / 5) * LANE_M + (lane % 7)];
  const lower = uav.index % 2 === 0;
  const along = lower
    ? t < 18 ? -200 + 9 * t : t < 44 ? -38 : Math.min(200, -38 + 15 * (t - 44))
    : t < 18 ? 200 - 9 * t : t < 30 ? 38 : Math.max(-200, 38 - 9 * (t - 30));
  const aside = !lower || t < 23 ? 0 : t < 30 ? -35 * ((t - 23) / 7) : t < 44 ? -35 : -35 * Math.max(0, 1 - (t - 44) / 5);
  return [x + along, y + aside];
}
const seconds = (uav) => (uav.state === 'Flying' ? (timeMs() / 1000 + (uav.index >> 1) * 4) % 60 : 0);

function avoidance(uav) {
  const t = seconds(uav);
  const [, lower, higher] = SCENES.find(([until]) => t < until);
  const mine = uav.index % 2 === 0 ? lower : higher;
  const other = fleet[uav.index ^ 1];
  const conflict = mine !== 'Normal' && other !== undefined;
  const here = place(...track(uav, t), uav.height);
  const moving = mine === 'Normal' || mine === 'Overtaking';
  const risk = place(track(uav, 0)[0] + (uav.index % 2 === 0 ? 200 : -200), track(uav, 0)[1], uav.height);
  const aside = place(...track(uav, 30), uav.height);
  const predicted = moving
    ? Array.from({ length: 17 }, (_, i) => place(...track(uav, Math.min(59.9, t + i / 2)), uav.height))
    : mine === 'MovingAside' ? [here, aside] : mine === 'GoOnPlease' ? [here, risk] : [here, place(...track(uav, 59.9), uav.height)];
  return {
    state: conflict ? mine : 'Normal', avoiding: conflict ? other.id : null, predicted, risk: conflict ? risk : null,
    aside: mine === 'MovingAside' || mine === 'GoOnPlease' ? aside : null,
  };
}

function ownStatus(uav) {
  const t = seconds(uav);
  const [east, north] = track(uav, t);
  const [later, farther] = track(uav, t + 0.5);
  const speed = Math.hypot(later - east, farther - north) * 2;
  const avoids = uav.state === 'Flying' ? avoidance(uav) : null;
  const phases = { Start: 'start', TakingOff: 'preparing', SetupFinished: 'ready', Aborted: 'aborted' };
  const held = uav.mission;
  return {
    protocol: 'mbcap-e', state: avoids?.state ?? uav.state, avoidance: avoids, swarm: null,
    phase: phases[uav.state] ?? (avoids && ['StandStill', 'GoOnPlease'].includes(avoids.state) ? 'waiting' : 'moving'),
    detail: avoids?.avoiding ? `in conflict with ${avoids.avoiding}` : uav.state === 'Start' ? 'waiting for setup' : '',
    navigation: {
      position: place(east, north, uav.height), height_m: uav.height, ground_speed_m_s: avoids ? speed : 0, climb_m_s: 0,
      heading_deg: (Math.atan2(later - east, farther - north) * 180 / Math.PI + 360) % 360,
      target: avoids ? place(...track(uav, 59.9), uav.height) : null,
    },
    mission: { name: held.name, hash: held.hash, waypoints: held.waypoints.length, reached: avoids ? 0 : null },
  };
}

function status(uav) {
  return options.mbcap ? { ...swarmStatus(uav), ...ownStatus(uav) } : swarmStatus(uav);
}

const PHASES = { Start: 'start', TakingOff: 'preparing', SetupFinished: 'ready', MovingToWaypoint: 'moving', Aborted: 'aborted' };

function swarmStatus(uav) {
  const flying = uav.height > 0.5;
  const radius = flying ? 9 : 0;
  const heading = ((-uav.angle * 180) / Math.PI + 360 * 9) % 360;
  const at = place(uav.slot.east + radius * Math.cos(uav.angle), uav.slot.north + radius * Math.sin(uav.angle), uav.height);
  const mission = missions[is(uav.index, 3) ? 1 : 0];
  const holds = uav.index === 0 || uav.state !== 'Start' || is(uav.index, 3);
  return {
    failsafe: alarming(uav.index, 7), cures: [], can_resume: uav.state === 'Aborted' && uav.mode === 'BRAKE' && options.mbcap,
    separation: {
      nearest: { id: fleet[uav.index ^ 1]?.id ?? fleet[0].id, distance_m: alarming(uav.index, 8) ? 3.1 : 24.6 + Math.sin(uav.angle), horizontal_m: 24.6, vertical_m: 0.3 },
      closest_approach: null, flight_minimum: null, alarmed: alarming(uav.index, 8), alarms: alarming(uav.index, 8) ? 1 : 0, collisions: 0, rule_collisions: 0,
    },
    lease: { console: 'field-laptop:8700', left_ms: 4000 + Math.floor(Math.random() * 1000) }, http: { secured: true, refused: [] }, gateway: null,
    gnss: { fix_type: 3, satellites: 14 }, wind: flying ? { speed_m_s: 3.2, from_deg: 285 } : null,
    id: uav.id, name: `UAV ${uav.index + 1}`, time_ms: timeMs(), protocol: 'muscop', state: uav.state, phase: PHASES[uav.state],
    detail: alarming(uav.index, 7) ? 'Battery failsafe: mode RTL' : uav.state === 'Start' ? 'waiting for Setup' : flying ? 'flying in formation' : 'on the ground',
    engaged: uav.engaged,
    flight_controller: {
      link: is(uav.index, 2) && timeMs() > 6000 ? 'lost' : 'up', heartbeat_age_ms: is(uav.index, 2) ? Math.max(0, timeMs() - 6000) : 300,
      firmware: 'ArduCopter 4.6.2', mode: alarming(uav.index, 7) ? 'RTL' : uav.mode, armed: uav.armed, refused: [{ reason: 'bad_crc', count: 3 }],
    },
    navigation: {
      position: at, height_m: uav.height, ground_speed_m_s: flying ? 3.6 : 0, climb_m_s: 0, heading_deg: heading,
      target: flying && uav.index > 0 ? place(uav.slot.east, uav.slot.north, uav.height) : null,
    },
    battery: { remaining_percent: alarming(uav.index, 5) ? 12 : alarming(uav.index, 6) ? 22 : 97 - ((uav.index * 7) % 50), voltage_v: 11.9, current_a: flying ? 14.2 + Math.sin(timeMs() / 900) : 0.6, cells_v: [], consumed_mah: Math.floor(timeMs() / 200) },
    mission: holds ? { name: mission.name, hash: mission.hash, waypoints: mission.waypoints.length, reached: uav.state === 'MovingToWaypoint' ? 4 : null } : null,
    swarm: { leader: uav.index === 0, leader_id: fleet[0].id, size: count, formation: 'matrix', slot: uav.state === 'Start' ? null : uav.index },
    radio: { secured: true, keys: { epoch: 2, serial: 5, issued: '2026-10-01T08:00:00Z', expires: '2027-10-01T08:00:00Z', validity: 'valid' }, down: alarming(uav.index, 9) ? 'the interface wlan0 is gone' : null, sent: uav.sent, received: uav.received, refused: [{ reason: 'other_version', count: 2 }, { reason: 'too_old', count: uav.index }] },
    checks: [
      { name: 'GPS', passed: true, is_required: true, detail: '3D fix, 14 satellites' }, { name: 'Battery', passed: true, is_required: true, detail: '11.9 V' },
      { name: 'Failsafe', passed: !is(uav.index, 5), is_required: false, detail: is(uav.index, 5) ? 'FS_GCS_ENABLE is 0, expected 1' : 'FS_GCS_ENABLE 1' },
      { name: 'Home', passed: true, is_required: true, detail: 'set' },
    ],
    commands: uav.commands.slice(-8),
  };
}

const silent = (uav) => is(uav.index, 1) && timeMs() > 8000;
function aircraft(uav) {
  if (silent(uav)) return { address: uav.address, link: 'lost', age_ms: timeMs() - 8000, status: uav.last, problem: 'its event stream was silent for 3 s' };
  uav.last = status(uav);
  return { address: uav.address, link: 'up', age_ms: 40, status: uav.last };
}
const all = () => [
  ...fleet.map(aircraft),
  ...(options.trouble ? [{ address: 'http://10.0.0.250:8080', link: 'never_seen', age_ms: null, status: null, problem: 'connection refused' }] : []),
];
if (options.mbcap) {
  for (const uav of fleet) {
    const line = [0, 20, 59.9].map((t) => place(...track(uav, t), 20));
    uav.mission = { hash: uav.id.replace(/^0000/, 'c0de'), name: `line ${uav.index + 1}`, waypoints: line };
    missions.push(uav.mission);
  }
}
const every = (state) => fleet.every((uav) => uav.state === state);
function actions() {
  const [setup, start] = [every('Start'), every('SetupFinished')];
  return {
    setup, setup_blocked: setup ? '' : `${fleet[0].id.slice(-4)} is in state ${fleet[0].state}: Setup needs state Start.`,
    start, start_blocked: start ? '' : 'Every aircraft must have finished its setup first.',
  };
}
const log = [];
function picture() {
  const held = fleet.map((uav) => [status(uav).mission?.hash, uav.id]);
  const of = (hash) => held.filter(([one]) => one === hash).map(([, id]) => id);
  return {
    time_ms: timeMs(), commands, actions: actions(), version: '0.0.0-fake', console: 'field-laptop:8700', started_unix_ms: startedAt, has_map: false, has_tiles: false, aircraft: all(),
    missions: missions.map((mission) => ({ ...mission, holders: of(mission.hash) })).filter(({ holders }) => holders.length > 0), log,
  };
}

/** As the ground service does it: what makes the new value of the old one; undefined where they are equal. */
function change(old, value) {
  if (typeof old !== 'object' || typeof value !== 'object' || !old || !value) return old === value || (old == null && value == null) ? undefined : (value ?? null);
  if (Array.isArray(old) !== Array.isArray(value) || (Array.isArray(old) && old.length !== value.length)) return value;
  const members = {};
  for (const name of new Set([...Object.keys(old), ...Object.keys(value)])) {
    const changed = change(old[name], value[name]);
    if (changed !== undefined) members[name] = changed;
  }
  return Object.keys(members).length > 0 ? members : undefined;
}

/** Rounded like the ground service's. */
const short = (value) => JSON.parse(JSON.stringify(value, (name, one) => {
  if (typeof one !== 'number' || Number.isInteger(one)) return one;
  return Number(one.toFixed(/^(latitude|longitude)_deg$/.test(name) ? 7 : 2));
}));

const consoles = new Set();
/** What the consoles have. */
let sent = { aircraft: new Map(), commands: '', actions: '' };
/** A mission or a state has changed: the next message is a whole picture. */
let redraw = false;
const emit = (event, value) => consoles.forEach((send) => send(`event: ${event}\ndata: ${JSON.stringify(value)}\n\n`));
const say = (uav, severity, text) => {
  const line = { at_ms: timeMs(), id: uav.id, time_ms: timeMs(), severity, text };
  log.push(line);
  log.splice(0, log.length - 256);
  emit('log', line);
};

function keep(value) {
  sent = { aircraft: new Map(value.aircraft.map((one) => [one.address, one])), commands: JSON.stringify(value.commands), actions: JSON.stringify(value.actions) };
  return value;
}

function update() {
  const now = all();
  const aircraft = short(now).flatMap((one) => {
    const changed = change(sent.aircraft.get(one.address), one);
    sent.aircraft.set(one.address, one);
    return changed === undefined ? [] : [{ address: one.address, change: changed }];
  });
  const possible = actions();
  const value = { time_ms: timeMs(), aircraft };
  if (JSON.stringify(commands) !== sent.commands) [value.commands, sent.commands] = [commands, JSON.stringify(commands)];
  if (JSON.stringify(possible) !== sent.actions) [value.actions, sent.actions] = [possible, JSON.stringify(possible)];
  return value;
}

function enter(uav, state, mode) {
  if (uav.state !== state) say(uav, state === 'Aborted' ? 'warning' : 'info', `state ${uav.state} → ${state}`);
  Object.assign(uav, { state, mode });
  redraw = true;
}

const EFFECTS = {
  setup: (uav) => {
    if (options.mbcap) return enter(uav, 'SetupFinished', uav.mode);
    uav.armed = true;
    enter(uav, 'TakingOff', 'GUIDED');
  },
  start: (uav) => {
    if (!options.mbcap) return enter(uav, 'MovingToWaypoint', 'GUIDED');
    [uav.armed, uav.height] = [true, 20];
    enter(uav, 'Flying', 'AUTO');
  },
  hold: (uav) => enter(uav, 'Aborted', 'BRAKE'),
  return: (uav) => enter(uav, 'Aborted', 'RTL'),
  land: (uav) => enter(uav, 'Aborted', 'LAND'),
  recover_control: (uav) => { uav.engaged = false; enter(uav, 'Aborted', 'LOITER'); },
  engage: (uav) => { uav.engaged = true; enter(uav, 'Start', uav.mode); },
};

function command({ id, command, vehicles = [] }) {
  const known = commands.find((one) => one.id === id);
  const targets = fleet.filter((uav) => vehicles.length === 0 || vehicles.includes(uav.id));
  if (!known) {
    const results = targets.map((uav) => ({ vehicle: uav.id, outcome: 'sending', detail: '' }));
    commands.push({ id, command, time_ms: timeMs(), results });
    commands.splice(0, commands.length - 16);
    targets.forEach((uav, i) => {
      const set = (outcome, detail) => Object.assign(results[i], { outcome, detail });
      setTimeout(() => {
        if (silent(uav)) return setTimeout(() => set('expired', 'no answer for 10 s'), 5000);
        if (is(uav.index, 4)) {
          say(uav, 'error', `${command} refused: arming refused`);
          return set('failed', 'refused: PreArm: compass not calibrated');
        }
        set('accepted', 'waiting for the effect');
        uav.commands.push({ id, command, stage: 'effect_seen', detail: '' });
        setTimeout(() => { EFFECTS[command](uav); set('effect_seen', `mode ${uav.mode}`); }, 600 + 40 * (i % 20));
      }, 200 + 15 * i);
    });
  }
  return { id, vehicles: targets.map(({ id }) => id) };
}

setInterval(() => {
  for (const uav of fleet) {
    uav.angle += 0.08;
    uav.sent += 1;
    uav.received += count - 1;
    if (uav.state === 'TakingOff' && (uav.height += 1) >= 20) enter(uav, 'SetupFinished', 'GUIDED');
    if (uav.mode === 'LAND' || uav.mode === 'RTL') {
      uav.height = Math.max(0, uav.height - 0.6);
      if (uav.height === 0 && uav.armed) { uav.armed = false; say(uav, 'info', 'disarmed'); }
    }
  }
  if (redraw) emit('picture', keep(short(picture())));
  else emit('update', update());
  redraw = false;
}, 200);
if (options.trouble) setTimeout(() => { fleet[6 % count].engaged = false; say(fleet[6 % count], 'warning', 'the pilot took over: mode LOITER'); }, 7000);

if (options.autostart) {
  const timer = setInterval(() => {
    const possible = actions();
    if (possible.setup) command({ id: 'autostart-setup', command: 'setup' });
    else if (possible.start) {
      command({ id: 'autostart-start', command: 'start' });
      clearInterval(timer);
    }
  }, 500);
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css' };
function file(path, response) {
  const found = join(dist, normalize(path === '/' ? '/index.html' : path));
  if (!existsSync(found) || !statSync(found).isFile()) return response.writeHead(404).end('npm run build first');
  response.writeHead(200, { 'content-type': TYPES[extname(found)] ?? 'application/octet-stream' });
  return createReadStream(found).pipe(response);
}
const json = (response, code, value) => response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value));

createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname === '/api/v1/session') return json(response, 200, { login: false });
  if (pathname === '/api/v1/audit') return json(response, 200, { entries: [], lost: 0, suppressed: 0, kept: false });
  if (pathname === '/api/v1/fleet') return json(response, 200, picture());
  if (pathname === '/api/v1/fleet/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'content-encoding': 'gzip' });
    const gzip = createGzip({ level: 1 });
    gzip.pipe(response);
    const send = (text) => {
      gzip.write(text);
      gzip.flush(constants.Z_SYNC_FLUSH);
    };
    // Everybody has the same then, and the next update is one for all.
    emit('picture', keep(short(picture())));
    send(`event: picture\ndata: ${JSON.stringify(short(picture()))}\n\n`);
    consoles.add(send);
    return request.on('close', () => consoles.delete(send));
  }
  if (pathname === '/api/v1/fleet/commands' && request.method === 'POST') {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    return request.on('end', () => json(response, 202, command(JSON.parse(body))));
  }
  if (pathname === '/api/v1/fleet/aircraft') {
    const found = all().find(({ status }) => status?.id === new URL(request.url, 'http://localhost').searchParams.get('vehicle'));
    const parameters = Object.entries({ FENCE_ENABLE: 1, FENCE_TYPE: 3, FENCE_RADIUS: 300, FENCE_ALT_MAX: 100, RTL_ALT: 1500, FS_EKF_ACTION: 1 });
    const controller = found && { ...found.status.flight_controller, parameters: parameters.map(([name, value]) => ({ name, value, detail: '' })) };
    return found ? json(response, 200, { ...found, status: { ...found.status, flight_controller: controller } }) : json(response, 404, { code: 'not_found', message: 'no such aircraft' });
  }
  if (pathname === '/api/v1/fleet/commands/note' && request.method === 'PUT') {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    return request.on('end', () => {
      const { id, note } = JSON.parse(body);
      for (const one of commands) if (one.id === id) one.note = note;
      response.writeHead(204).end();
    });
  }
  if (pathname === '/api/v1/mission-files' && request.method === 'POST') {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    return request.on('end', () => {
      const { name } = JSON.parse(body);
      // It reads no format: every file is a line of two points.
      const items = [0, 59.9].map((t) => ({ ...place(...track(fleet[0], t), 20), height_m: 20, altitude_m: undefined }));
      return json(response, 200, { missions: [{ mission: { name, waypoints: items }, notes: ['planned speed of 4 m/s is not flown: it flies at its own'] }] });
    });
  }
  if (pathname === '/api/v1/plan/preview' && request.method === 'POST') {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    return request.on('end', () => {
      const { missions: drafts, endurance_s } = JSON.parse(body);
      const problems = [];
      const flights = drafts.map(({ vehicle, mission }) => {
        const away = 111_195 * Math.hypot(mission.waypoints[0].latitude_deg - homeLat, mission.waypoints[0].longitude_deg - homeLon);
        if (away > 5000) problems.push({ stops: true, text: `Waypoint 1 lies ${(away / 1000).toFixed(1)} km from ${vehicle}, expected at most 5.0 km` });
        const needed = endurance_s ? { needed_percent: (100 * 300) / endurance_s } : {};
        return { vehicle, distance_m: away, route: [], ...(away > 5000 ? {} : { length_m: 500, duration_s: 300, remaining_percent: 80, ...needed }) };
      });
      return json(response, 200, { problems, flights, notes: [] });
    });
  }
  if (pathname === '/api/v1/fleet/mission' && request.method === 'PUT') {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    return request.on('end', () => {
      const { vehicle, mission } = JSON.parse(body);
      const uav = fleet.find(({ id }) => id === vehicle);
      if (uav.state !== 'Start') {
        return json(response, 409, { code: 'conflict', message: `a mission can be given in state Start, found ${uav.state}` });
      }
      uav.mission = { ...uav.mission, name: mission.name };
      return json(response, 200, { name: mission.name, hash: uav.mission.hash, waypoints: mission.waypoints.length, notes: [] });
    });
  }
  return file(pathname, response);
}).listen(Number(options.port), '127.0.0.1', () => console.log(`fake ground service: http://127.0.0.1:${options.port}`));
