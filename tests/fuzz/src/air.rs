//! What comes by radio: datagrams as bytes, and one aircraft under each protocol that receives what others may send.

use std::collections::BTreeSet;

use wingbeat_agent::separation::{Monitor, Own, Thresholds};
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::{
    Action, Actions, Command, FollowMe, Input, Mbcap, MissionExtras, Muscop, Order, Protocol, StateId,
    Telemetry, follow_me as following, mbcap, muscop as barrier,
};
use wingbeat_wire::{
    Avoidance, Beacon, Coordinates, DATAGRAM_LEN_MAX, Datagram, Draft, Ending, FirstPart, FleetKey,
    LOCATIONS_MAX, Location, Message, MoreWaypoints, Plan, Point, Roster, RtcmFinder, Signer, VERSION,
    VehicleId, WAYPOINTS_MAX, is_rtcm_frame, read_unverified,
};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const ME: VehicleId = VehicleId(5);
/// The others of a swarm that a script lets fly with us, the leader first.
const OTHERS: [VehicleId; 2] = [VehicleId(6), VehicleId(7)];
/// Flight time of a script. Beacons are broadcast all along: one that waits for minutes takes as long as a hundred others, so
/// that one in so many is thorough.
const SCRIPT_TIME: Duration = Duration::from_secs(20);
const THOROUGH_TIME: Duration = Duration::from_secs(300);
const THOROUGH_ONE_IN: usize = 32;
/// Steps of one script.
const STEPS_MAX: usize = 96;
/// Wakes it at one instant until time must pass.
const WAKES_MAX: usize = 16;

/// Whether some content begins as that of [`Message::Passed`]: sender, counter, flight, kind.
fn data_passes_on(data: &[u8]) -> bool {
    postcard::take_from_bytes::<(VehicleId, u64, u32, u32)>(data).is_ok_and(|((.., kind), _)| kind == 31)
}

/// A base station's stream: what is found in it are frames, the same in pieces of any size, and no byte counts twice.
pub fn rtcm(data: &[u8]) {
    let found = |piece: usize| {
        let (mut finder, mut frames) = (RtcmFinder::default(), vec![]);
        for piece in data.chunks(piece) {
            finder.push(piece, |corrections| frames.push(corrections.frame.to_vec()));
        }
        (frames, [finder.damaged, finder.garbage_bytes, finder.too_long])
    };
    let (frames, counts) = found(data.len().max(1));
    assert!(frames.iter().all(|frame| is_rtcm_frame(frame)));
    let taken: usize = frames.iter().map(Vec::len).sum();
    // A frame that is too long has 721 bytes at least.
    let [_, garbage_bytes, too_long] = counts;
    assert!(taken as u64 + garbage_bytes + too_long * 721 <= data.len() as u64);
    assert_eq!(found(1), (frames, counts));
}

/// The decoder of datagrams: these bytes as they come from the radio, and as the content of a datagram that its sender
/// sealed.
pub fn datagrams(data: &[u8]) {
    let roster = Roster::insecure();
    let mut ours = vec![VERSION];
    ours.extend_from_slice(data);
    for bytes in [data, &ours] {
        assert!(Roster::new(0, FleetKey([0; 32])).open(bytes).is_err(), "it knows no aircraft");
        let _ = (roster.open(bytes).is_ok(), read_unverified(bytes).is_ok());
    }
    if let Ok(mut sealed) = Draft::of_content(data) {
        let read = sealed.read();
        let mut opened = Datagram::blank();
        let bytes = Signer::insecure().seal(&mut sealed);
        assert!(bytes.len() <= DATAGRAM_LEN_MAX);
        let unpacked = roster.open(bytes);
        // One that passes on what is no datagram is refused for that, whatever else is in it.
        if unpacked.is_ok() || !data_passes_on(data) {
            let result = unpacked.and_then(|o| o.read_into(&mut opened));
            assert_eq!(result.map(|()| opened), read, "opened and read alike");
        }
        let Ok(datagram) = read else { return };
        let again = datagram.draft().unwrap_or_else(|e| panic!("it was a datagram: {e}"));
        // Numbers have more than one spelling; the value has not.
        assert_eq!(again.read(), Ok(datagram.clone()));
        if let Message::Beacon(beacon) = &datagram.message {
            assert!((1..=LOCATIONS_MAX).contains(&beacon.locations.len()));
            assert!(beacon.speed_cm_s <= 10_000 && beacon.age_ms <= 10_000, "{beacon:?}");
        }
        if let Message::DataFirst(part) = &datagram.message {
            let carried = part.plan.waypoints.len();
            assert!(carried >= 1 && (carried + 1..=WAYPOINTS_MAX).contains(&part.count.into()), "{part:?}");
        }
        if let Message::DataWaypoints(part) = &datagram.message {
            let (first, end) = (part.first, usize::from(part.first) + part.waypoints.len());
            assert!(first >= 1 && end > first.into() && end <= part.count.into(), "{part:?}");
            assert!(usize::from(part.count) <= WAYPOINTS_MAX, "{part:?}");
        }
    }
}

/// One aircraft under MBCAP, and its monitor of separation, driven by a script. The first byte chooses the
/// variant and how far the mission has come.
pub fn beacons(script: &[u8]) {
    let _ = fly_beacons(script, script.len().is_multiple_of(THOROUGH_ONE_IN));
}

/// The states that a script of [`beacons`] goes through.
pub fn states(script: &[u8]) -> BTreeSet<StateId> {
    fly_beacons(script, true)
}

fn fly_beacons(script: &[u8], is_thorough: bool) -> BTreeSet<StateId> {
    let Some((&first, script)) = script.split_first() else { return BTreeSet::new() };
    let mut config = if first & 1 == 0 { mbcap::Config::mbcap_e() } else { mbcap::Config::mbcap() };
    config.me = ME;
    let mut flight = FuzzedFlight::new(Box::new(Mbcap::new(config, 1, Instant::ZERO)));
    let mission: Vec<Point> = MISSION.map(corner).into();
    flight.protocol.set_mission(&mission, MissionExtras::NONE).unwrap_or_else(|why| panic!("{why}"));
    if first & 2 == 0 {
        flight.take_off();
    }
    flight.fly(script, is_thorough, FuzzedFlight::receive_beacon);
    if is_thorough {
        // No input any more: it comes to rest.
        flight.pass(Duration::from_secs(200));
    }
    flight.states
}

/// One aircraft under MUSCOP, driven by a script. The first byte says whether it leads and how far the flight has come.
pub fn muscop(script: &[u8]) {
    let _ = muscop_states(script);
}

/// The states that a script of [`muscop`] goes through.
pub fn muscop_states(script: &[u8]) -> BTreeSet<StateId> {
    let Some((&first, script)) = script.split_first() else { return BTreeSet::new() };
    let master = if first & 1 == 0 { OTHERS[0] } else { ME };
    let config = barrier::Config::new(ME, master, 3);
    swarm(Box::new(Muscop::new(config, 1, Instant::ZERO)), first, script)
}

/// The same under FollowMe.
pub fn follow_me(script: &[u8]) {
    let _ = follow_me_states(script);
}

/// The states that a script of [`follow_me`] goes through.
pub fn follow_me_states(script: &[u8]) -> BTreeSet<StateId> {
    let Some((&first, script)) = script.split_first() else { return BTreeSet::new() };
    let leader = if first & 1 == 0 { OTHERS[0] } else { ME };
    let config = following::Config::new(ME, leader, 3);
    swarm(Box::new(FollowMe::new(config, 1, Instant::ZERO)), first, script)
}

fn swarm(protocol: Box<dyn Protocol>, first: u8, script: &[u8]) -> BTreeSet<StateId> {
    let mut flight = FuzzedFlight::new(protocol);
    flight.obeys = true;
    if first & 1 == 1 {
        // Under FollowMe none is needed, and it is refused.
        let _ = flight.protocol.set_mission(&MISSION.map(corner), MissionExtras::NONE);
    }
    if first & 2 == 0 {
        flight.meet();
    }
    flight.fly(script, script.len().is_multiple_of(THOROUGH_ONE_IN), FuzzedFlight::receive_any);
    flight.states
}

const MISSION: [(i32, i32); 4] = [(0, 0), (4_500, 0), (4_500, 4_500), (0, 4_500)];

fn corner((north_e7, east_e7): (i32, i32)) -> Point {
    Point {
        latitude_e7: HOME.latitude_e7 + north_e7,
        longitude_e7: HOME.longitude_e7 + east_e7,
        height_mm: 20_000,
    }
}

struct FuzzedFlight {
    protocol: Box<dyn Protocol>,
    monitor: Monitor,
    now: Instant,
    here: Telemetry,
    /// What the flight controller was asked for last.
    order: Option<Order>,
    counter: u64,
    /// Whether every report so far was one that a multicopter makes.
    is_sane: bool,
    states: BTreeSet<StateId>,
    /// Of the last message that it broadcast.
    flight: u32,
    /// Whether an order that is done has put the aircraft where it says.
    obeys: bool,
    /// When its script has taken its time.
    end: Instant,
}

impl FuzzedFlight {
    fn new(protocol: Box<dyn Protocol>) -> Self {
        Self {
            protocol,
            monitor: Monitor::new(Thresholds::default()),
            now: Instant::from_secs(1),
            here: Telemetry {
                position: HOME,
                height_m: 0.0,
                velocity_m_s: DVec3::ZERO,
                heading_rad: 0.0,
                armed: false,
                landing: false,
                is_located: true,
            },
            order: None,
            counter: 0,
            is_sane: true,
            states: BTreeSet::new(),
            flight: 0,
            obeys: false,
            end: Instant::NEVER,
        }
    }

    /// Runs a script; `receive` is what a step does in which others broadcast.
    fn fly(&mut self, script: &[u8], is_thorough: bool, receive: fn(&mut Self, &mut dyn FnMut() -> u8)) {
        let mut script = script.iter().copied();
        self.end = self.now + if is_thorough { THOROUGH_TIME } else { SCRIPT_TIME };
        for _ in 0..STEPS_MAX {
            let Some(step) = script.next().filter(|_| self.now < self.end) else { break };
            self.step(step, &mut || script.next().unwrap_or(0), receive);
        }
    }

    /// What an order that is done has made of the aircraft is reported before.
    fn obey(&mut self, order: Order) {
        let here = &mut self.here;
        here.armed |= !matches!(order, Order::LoadRoute | Order::Land);
        let height_mm = match order {
            Order::TakeOff { height_mm } | Order::FlyRoute { height_mm } => height_mm,
            Order::FlyTo(Point { latitude_e7, longitude_e7, height_mm }) => {
                (here.position.latitude_e7, here.position.longitude_e7) = (latitude_e7, longitude_e7);
                height_mm
            }
            Order::Land => {
                here.armed = false;
                0
            }
            Order::LoadRoute | Order::Resume | Order::ResumeHeld | Order::Hold | Order::Return => return,
        };
        here.position.altitude_mm = HOME.altitude_mm + height_mm;
        (here.height_m, here.velocity_m_s) = (f64::from(height_mm) * 1e-3, DVec3::ZERO);
        self.report();
    }

    /// Lets time pass, to the end of the script's at most.
    fn wait(&mut self, time: Duration) {
        self.pass(time.min(self.end.since(self.now)));
    }

    /// All are on the ground and near each other, and have received each other.
    fn meet(&mut self) {
        self.report();
        for (n, other) in (1..).zip(OTHERS) {
            let Point { latitude_e7, longitude_e7, .. } = corner((n * 1_000, 0));
            let at = Location { latitude_e7, longitude_e7, altitude_mm: HOME.altitude_mm };
            self.hear(other, 0, Message::Stands { at });
            self.hear(other, 0, Message::Hello { at: corner((n * 1_000, 0)) });
        }
        if self.protocol.permits(Command::Setup).is_ok() {
            self.feed(Input::Operator(Command::Setup));
        }
    }

    /// A message reaches it through its bytes: what the decoder refuses never comes here.
    fn hear(&mut self, from: VehicleId, flight: u32, message: Message) {
        self.counter += 1;
        let datagram = Datagram { from, counter: self.counter, flight, message };
        let Ok(Datagram { from, flight, message, .. }) = datagram.draft().and_then(|draft| draft.read())
        else {
            return;
        };
        self.feed(Input::Message { from, flight, message: &message });
    }

    /// A message of any kind, from one of the swarm or a stranger, of this flight or another.
    fn receive_any(&mut self, byte: &mut dyn FnMut() -> u8) {
        let sender = byte();
        let from = [OTHERS[0], OTHERS[0], OTHERS[1], VehicleId(8)][usize::from(sender % 4)];
        let flight = [self.flight, self.flight, 7, 0][usize::from(byte() % 4)];
        let message = self.message(byte);
        if sender >= 0xc0 && message.is_command() {
            self.feed(Input::Passed { by: OTHERS[0], from, flight, command: &message });
        } else {
            self.hear(from, flight, message);
        }
    }

    fn plan(&self, byte: &mut dyn FnMut() -> u8) -> Plan {
        let how = byte();
        let slots = [ME, OTHERS[0], OTHERS[1]];
        let count = 1 + usize::from(byte() % 5);
        let mut order = vec![0, 1, 2];
        order.rotate_left(usize::from(how % 3));
        // A pilot takes the leader off, or it does not fly, and with it the last.
        order.retain(|slot| how & 16 == 0 || *slot != 1);
        order.retain(|slot| how & 32 == 0 || *slot != 2);
        Plan {
            layout: [0, 1, 2, byte()][usize::from(how >> 6)],
            distance_mm: 50_000 + u32::from(byte()) * 500,
            landing_distance_mm: 10_000 + u32::from(byte()) * 100,
            heading_urad: u32::from(byte()) * 24_000,
            slots: slots.into_iter().take(if how & 32 == 0 { 3 } else { 2 }).collect(),
            take_off_order: order.into_iter().collect(),
            waypoints: (0..count).map(|_| self.point(byte)).collect(),
            ..Plan::default()
        }
    }

    fn point(&self, byte: &mut dyn FnMut() -> u8) -> Point {
        let mut offset = || i32::from(byte() as i8) * 100;
        let (north_e7, east_e7) = (offset(), offset());
        Point { height_mm: 20_000 + offset(), ..corner((north_e7, east_e7)) }
    }

    fn message(&self, byte: &mut dyn FnMut() -> u8) -> Message {
        let kind = byte() % 30;
        let hash = u64::from(byte() & 3);
        match kind {
            0 => Message::Hello { at: self.point(byte) },
            1..=3 => Message::Data(self.plan(byte)),
            4 => Message::DataAck { hash },
            5 => Message::ReadyToFly,
            6 => Message::ReadyToFlyAck,
            7 => Message::TakeOffNow { next: [ME, OTHERS[0], OTHERS[1]][usize::from(byte() % 3)] },
            8 => Message::TargetReached,
            9 => Message::TakeOffEnd,
            10 => Message::TakeOffEndAck,
            11 => Message::ReachedWaypointAck { waypoint: u16::from(byte() % 6) },
            12 => Message::MoveToWaypoint { waypoint: u16::from(byte() % 6) },
            13 => Message::Land { at: self.point(byte) },
            14 => Message::Beacon(self.beacon(byte)),
            15 | 16 => Message::Coordinates(Coordinates {
                at: self.point(byte),
                heading_urad: u32::from(byte()) * 24_000,
                leads: byte() & 1 == 0,
            }),
            17 => Message::Alive { at: self.point(byte) },
            18 => Message::Gather { waypoint: u16::from(byte() % 6) },
            19 => Message::Following {
                waypoint: u16::from(byte() % 6),
                reached: byte() & 1 == 0,
                leader: byte() % 4,
                at: self.point(byte),
            },
            20 => {
                let how = [Ending::Holding, Ending::Returning, Ending::Landing, Ending::Down];
                Message::Leaving { at: self.point(byte), how: how[usize::from(byte() % 4)] }
            }
            21 => Message::Exclude { member: [ME, OTHERS[0], OTHERS[1]][usize::from(byte() % 3)] },
            22 => Message::LandHere { at: self.point(byte) },
            23 => Message::LandAround { at: self.point(byte), leader: byte() % 4 },
            24 => Message::Release { waypoint: u16::from(byte() % 6) },
            25 => Message::TakeOffTogether,
            26 => Message::Holding { at: self.point(byte) },
            27 => Message::DataFirst(FirstPart { plan: self.plan(byte), hash, count: u16::from(byte()) }),
            28 => {
                let first = u16::from(byte() % 8);
                let waypoints = (0..byte() % 8).map(|_| self.point(byte)).collect();
                Message::DataWaypoints(MoreWaypoints { hash, count: u16::from(byte()), first, waypoints })
            }
            _ => Message::Recall,
        }
    }

    fn take_off(&mut self) {
        self.report();
        self.feed(Input::Operator(Command::Setup));
        self.feed(Input::Done(Order::LoadRoute));
        self.feed(Input::Operator(Command::Start));
        (self.here.armed, self.here.height_m) = (true, 20.0);
        self.here.position.altitude_mm += 20_000;
        self.report();
        self.feed(Input::Done(Order::FlyRoute { height_mm: 20_000 }));
        self.feed(Input::Reached(0));
    }

    fn feed(&mut self, input: Input<'_>) {
        let is_wake = matches!(input, Input::Wake);
        let mut actions = Actions::new();
        self.protocol.handle(self.now, input, &mut actions);
        assert!(!actions.is_full(), "an action may have been lost: {actions:?}");
        for action in actions {
            match action {
                Action::Order(order) => self.order = Some(order),
                Action::Broadcast { flight, message } => {
                    self.flight = flight;
                    let datagram = Datagram { from: ME, counter: 1, flight, message };
                    let draft = datagram.draft().unwrap_or_else(|e| panic!("{e}"));
                    // Wrong reports of the flight controller are broadcast too; others refuse them.
                    if self.is_sane {
                        assert_eq!(draft.read(), Ok(datagram), "others would refuse it");
                    }
                }
                Action::PassOn | Action::Log(..) | Action::Refused(_) => {}
            }
        }
        // Made for people, and costs as much as all the rest: not at every beacon.
        if !is_wake {
            let avoidance = self.protocol.details().avoidance;
            let on_earth = |p: &Position| p.is_on_earth();
            assert!(
                avoidance.is_none_or(|v| v.predicted.iter().chain(&v.risk).chain(&v.aside).all(on_earth))
            );
        }
        self.states.insert(self.protocol.view().state);
    }

    fn report(&mut self) {
        let here = self.here;
        let own = Own {
            position: here.position,
            velocity_m_s: here.velocity_m_s,
            height_m: here.height_m,
            armed: here.armed,
        };
        self.monitor.on_own(self.now, own, &mut |_| {});
        self.feed(Input::Telemetry(here));
    }

    fn receive(&mut self, from: u64, beacon: Beacon) {
        self.counter += 1;
        let message = Message::Beacon(beacon);
        let datagram = Datagram { from: VehicleId(from), counter: self.counter, flight: 0, message };
        // Through its bytes: what the decoder refuses never comes here.
        let Ok(Datagram { from, message, .. }) = datagram.draft().and_then(|draft| draft.read()) else {
            return;
        };
        let Message::Beacon(beacon) = &message else { return };
        let taken = self.monitor.on_beacon(self.now, from, beacon, &mut |_| {});
        let view = self.monitor.view(self.now);
        assert!(view.nearest.is_none_or(|n| n.distance_m.is_finite()), "{view:?}");
        assert!(view.closing.is_none_or(|c| c.distance_m.is_finite() && c.time_s >= 0.0), "{view:?}");
        if taken.is_ok() {
            self.feed(Input::Message { from, flight: 0, message: &message });
        }
    }

    /// Wakes it whenever it wants to be.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        loop {
            let (due, why) = self.protocol.poll_timeout();
            if due > end {
                break;
            }
            wakes = if due > self.now { 0 } else { wakes + 1 };
            assert!(wakes < WAKES_MAX, "it wants waking again and again at one instant: {why}");
            self.now = self.now.max(due);
            self.feed(Input::Wake);
        }
        self.now = end;
    }

    fn step(
        &mut self,
        step: u8,
        byte: &mut dyn FnMut() -> u8,
        receive: fn(&mut Self, &mut dyn FnMut() -> u8),
    ) {
        match step % 12 {
            0 | 1 => self.wait(Duration::from_millis(u64::from(byte()) * 8)),
            2 => self.wait(Duration::from_secs(u64::from(byte()))),
            // Some way within 64 m, at up to 16 m/s.
            3 | 4 => {
                let mut metre = |scale: f64| f64::from(byte() as i8) * scale;
                let local = DVec3::new(metre(0.5), metre(0.5), 20.0);
                self.here.velocity_m_s = DVec3::new(metre(0.125), metre(0.125), 0.0);
                self.here.position = Frame::new(HOME).to_position(local);
                self.report();
            }
            5 => {
                let mut number = || i32::from_le_bytes([byte(), byte(), byte(), byte()]);
                let position =
                    Position { latitude_e7: number(), longitude_e7: number(), altitude_mm: number() };
                if position.is_on_earth() {
                    self.is_sane = false;
                    let height_m = f64::from(number()) * 1e-3;
                    let velocity = f64::from(number() as i16) * 1e-2;
                    let landing = byte() & 1 == 1;
                    self.here = Telemetry {
                        position,
                        height_m,
                        velocity_m_s: DVec3::splat(velocity),
                        heading_rad: 0.0,
                        armed: !landing,
                        landing,
                        is_located: byte() & 1 == 0,
                    };
                    self.report();
                }
            }
            6..=8 => receive(self, byte),
            9 => {
                let commands =
                    [Command::Setup, Command::Start, Command::Hold, Command::Return, Command::Land];
                let command = commands[usize::from(byte()) % commands.len()];
                if self.protocol.permits(command).is_ok() {
                    self.feed(Input::Operator(command));
                }
            }
            10 => {
                if let Some(order) = self.order.take() {
                    let failed = byte() & 7 == 0;
                    if !failed && self.obeys {
                        self.obey(order);
                    }
                    self.feed(if failed { Input::Failed(order) } else { Input::Done(order) });
                }
            }
            _ => self.feed(Input::Reached(u16::from(byte() % 6))),
        }
    }

    fn receive_beacon(&mut self, byte: &mut dyn FnMut() -> u8) {
        let beacon = self.beacon(byte);
        self.receive(u64::from(byte() % 8), beacon);
    }

    /// A beacon near us, with locations in straight steps or anywhere.
    fn beacon(&self, byte: &mut dyn FnMut() -> u8) -> Beacon {
        let how = byte();
        let at = |n: i32| i32::from(n as i8);
        let mut location = Location {
            latitude_e7: HOME.latitude_e7 + at(byte().into()) * 40,
            longitude_e7: HOME.longitude_e7 + at(byte().into()) * 40,
            altitude_mm: 70_000 + at(byte().into()) * 400,
        };
        let (north_e7, east_e7) = (at(byte().into()), at(byte().into()));
        let count = usize::from(byte()) % (LOCATIONS_MAX + 1);
        let mut beacon = Beacon {
            event: u16::from(how >> 6),
            state: Avoidance::ALL[usize::from(how) % Avoidance::ALL.len()],
            landing: how & 32 != 0,
            avoiding: (how & 16 != 0).then_some(ME),
            planned_speed_cm_s: u16::from(byte()) * 40,
            speed_cm_s: u16::from(byte()) * 40,
            age_ms: u16::from(byte()) * 40,
            ..Beacon::default()
        };
        for _ in 0..count {
            let _ = beacon.locations.push(location);
            if how & 8 != 0 {
                let mut number = || i32::from_le_bytes([byte(), byte(), byte(), byte()]);
                location = Location { latitude_e7: number(), longitude_e7: number(), altitude_mm: number() };
            } else {
                location.latitude_e7 += north_e7;
                location.longitude_e7 += east_e7;
            }
        }
        beacon
    }
}
