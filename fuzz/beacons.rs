//! What the fuzz targets for the air run, and `crates/agent/tests/fuzz.rs` replays: any bytes go in, nothing
//! panics, and what each function asserts holds.

use std::collections::BTreeSet;

use wingbeat_agent::separation::{Monitor, Own, Thresholds};
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::{Action, Actions, Command, Input, Mbcap, Order, Protocol, StateId, Telemetry, mbcap};
use wingbeat_wire::{
    Avoidance, Beacon, DATAGRAM_LEN_MAX, Datagram, Draft, FleetKey, LOCATIONS_MAX, Location, Message, Point,
    Roster, Signer, VERSION, VehicleId, WAYPOINTS_MAX, read_unverified,
};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const ME: VehicleId = VehicleId(5);
/// Wakes it at one instant until time must pass.
const WAKES_MAX: usize = 16;

/// The decoder of datagrams: these bytes as they come from the radio, and as the content of a datagram that its sender
/// sealed.
pub(crate) fn datagrams(data: &[u8]) {
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
        let result = roster.open(bytes).and_then(|o| o.read_into(&mut opened));
        assert_eq!(result.map(|()| opened), read, "opened and read alike");
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
pub(crate) fn beacons(script: &[u8]) {
    let _ = states(script);
}

/// The states that a script of [`beacons`] goes through.
pub(crate) fn states(script: &[u8]) -> BTreeSet<StateId> {
    let Some((&first, script)) = script.split_first() else { return BTreeSet::new() };
    let mut config = if first & 1 == 0 { mbcap::Config::mbcap_e() } else { mbcap::Config::mbcap() };
    config.me = ME;
    let mut flight = FuzzedFlight {
        protocol: Mbcap::new(config, 1, Instant::ZERO),
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
    };
    let mission: Vec<Point> = [(0, 0), (4_500, 0), (4_500, 4_500), (0, 4_500)].map(corner).into();
    flight.protocol.set_mission(&mission).unwrap_or_else(|why| panic!("{why}"));
    if first & 2 == 0 {
        flight.take_off();
    }
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        flight.step(step, &mut || script.next().unwrap_or(0));
    }
    // No input any more: it comes to rest.
    flight.pass(Duration::from_secs(200));
    flight.states
}

fn corner((north_e7, east_e7): (i32, i32)) -> Point {
    Point {
        latitude_e7: HOME.latitude_e7 + north_e7,
        longitude_e7: HOME.longitude_e7 + east_e7,
        height_mm: 20_000,
    }
}

struct FuzzedFlight {
    protocol: Mbcap,
    monitor: Monitor,
    now: Instant,
    here: Telemetry,
    /// What the flight controller was asked for last.
    order: Option<Order>,
    counter: u64,
    /// Whether every report so far was one that a multicopter makes.
    is_sane: bool,
    states: BTreeSet<StateId>,
}

impl FuzzedFlight {
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
        let mut actions = Actions::new();
        self.protocol.handle(self.now, input, &mut actions);
        assert!(!actions.is_full(), "an action may have been lost: {actions:?}");
        for action in actions {
            match action {
                Action::Order(order) => self.order = Some(order),
                Action::Broadcast { flight, message } => {
                    let datagram = Datagram { from: ME, counter: 1, flight, message };
                    let draft = datagram.draft().unwrap_or_else(|e| panic!("{e}"));
                    // Wrong reports of the flight controller are broadcast too; others refuse them.
                    if self.is_sane {
                        assert_eq!(draft.read(), Ok(datagram), "others would refuse it");
                    }
                }
                Action::Log(..) | Action::Refused(_) => {}
            }
        }
        let avoidance = self.protocol.details().avoidance;
        let on_earth = |p: &Position| p.is_on_earth();
        assert!(avoidance.is_none_or(|v| v.predicted.iter().chain(&v.risk).chain(&v.aside).all(on_earth)));
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

    fn step(&mut self, step: u8, byte: &mut impl FnMut() -> u8) {
        match step % 12 {
            0 | 1 => self.pass(Duration::from_millis(u64::from(byte()) * 8)),
            2 => self.pass(Duration::from_secs(u64::from(byte()))),
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
            6..=8 => {
                let beacon = self.beacon(byte);
                self.receive(u64::from(byte() % 8), beacon);
            }
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
                    self.feed(if failed { Input::Failed(order) } else { Input::Done(order) });
                }
            }
            _ => self.feed(Input::Reached(u16::from(byte() % 6))),
        }
    }

    /// A beacon near us, with locations in straight steps or anywhere.
    fn beacon(&self, byte: &mut impl FnMut() -> u8) -> Beacon {
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
