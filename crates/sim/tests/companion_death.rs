//! What becomes of an aircraft when its companion dies: agent, guardian and simulated flight controller in
//! virtual time, the agent killed at every half second of a whole flight, for both profiles.
//!
//! `cargo test -p wingbeat-sim --test sim companion_death:: -- --nocapture` prints what was measured.

use crate::common::mission_flight;
use crate::common::muscop;

use mission_flight::Scripted;
use muscop::Muscop;
use wingbeat_agent::guardian::{self, Activity, Guardian, Modes, Pulse, Then};
use wingbeat_agent::{Input, Signing, StateId};
use wingbeat_autopilot::codec::signing::{Key, Signer, Unsigned, Verifier};
use wingbeat_autopilot::codec::{Decoder, MavHeader, encode_signed, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{HEARTBEAT_DATA, MavAutopilot, MavMessage, MavType};
use wingbeat_geo::{DVec2, DVec3, Duration, Instant, Position};
use wingbeat_sim::flight_controller::{Config, FlightController, Parameter, TICK, Truth};
use wingbeat_sim::motion::Profile;

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
/// Height of the legs above home.
const HEIGHT_M: f64 = 20.0;
/// Two legs with a right angle, metres east and north of home.
const LEGS: [DVec2; 3] = [DVec2::new(0.0, 5.0), DVec2::new(0.0, 105.0), DVec2::new(80.0, 105.0)];
/// From the guardian's wish to the open port.
const OPENING: Duration = Duration::from_millis(100);
const HOLD: Duration = Duration::from_secs(10);
const KEY: Key = Key::new([7; 32]);
/// 2026, where the clock is set.
const UNIX_US: u64 = 1_790_000_000_000_000;
/// Slower than this an aircraft rests.
const REST_M_S: f64 = 0.5;

/// Whoever commands the aircraft until it dies.
trait Companion {
    /// Bytes from the autopilot, or a wake-up; bytes for the autopilot out.
    fn tick(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>);
    fn pulse(&self, now: Instant) -> Pulse;
    fn finished(&self) -> bool;
}

impl Companion for Muscop {
    fn tick(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) {
        self.step(now, received, out);
    }
    fn pulse(&self, now: Instant) -> Pulse {
        self.agent.pulse(now)
    }
    fn finished(&self) -> bool {
        self.agent.view().state == StateId::Finished
    }
}

impl Companion for Scripted {
    fn tick(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) {
        self.step(now, received, out);
    }
    fn pulse(&self, _now: Instant) -> Pulse {
        Pulse {
            activity: if self.commanding() { Activity::Commanding } else { Activity::Idle },
            system_id: 1,
            ours: self.own_modes().iter().fold(Modes::default(), |all, m| all.with(Modes::one(m.number()))),
            switch_channel: 0,
            endpoint: 0,
            route: 0,
            takes_up: 0,
        }
    }
    fn finished(&self) -> bool {
        self.done()
    }
}

/// How a death went; times since it.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    commanding: bool,
    speed_m_s: f64,
    brake_at: Option<Duration>,
    rest_at: Option<Duration>,
    land_at: Option<Duration>,
    disarmed_at: Option<Duration>,
    /// How far it went from the place of the death before it rested, and how far from the legs.
    path_m: f64,
    off_legs_m: f64,
    above_m: f64,
    /// How far it rose above the height of its legs.
    over_m: f64,
    touchdown_m_s: f64,
    released: bool,
}

struct GuardedFlight<C> {
    now: Instant,
    companion: Option<C>,
    guardian: Guardian,
    /// Whether there is a guardian at all.
    guarded: bool,
    controller: FlightController,
    signing: Option<SigningPort>,
    pulse: Option<Pulse>,
    pulse_at: Instant,
    wanted_at: Option<Instant>,
    port_open: bool,
}

/// The flight controller's port where signing is required: what is not signed with the key, or not later
/// than the frame before it, does not reach it; what it sends is signed.
struct SigningPort {
    decoder: Decoder,
    signer: Signer,
}

impl SigningPort {
    fn new() -> Self {
        Self {
            decoder: Decoder::verifying(Verifier::new(KEY, Unsigned::Refused)),
            signer: Signer::new(KEY, 0),
        }
    }
    fn accepted(&self) -> u32 {
        self.decoder.verifier().unwrap().accepted()
    }
    fn receive(&mut self, bytes: &[u8], controller: &mut FlightController) {
        self.decoder.push(bytes, |frame| {
            let mut plain = heapless::Vec::<u8, 300>::new();
            encode_v2(frame.header, &frame.message, &mut plain).unwrap();
            controller.receive(&plain);
        });
    }
    /// As ArduPilot, it stamps with nothing older than what it has received.
    fn sign(&mut self, sent: &[u8]) -> Vec<u8> {
        self.signer.advance(self.decoder.verifier().unwrap().newest());
        let mut signed = Vec::new();
        Decoder::default().push(sent, |frame| {
            let mut bytes = heapless::Vec::<u8, 300>::new();
            encode_signed(frame.header, &frame.message, &mut self.signer, &mut bytes).unwrap();
            signed.extend_from_slice(&bytes);
        });
        signed
    }
}

impl<C: Companion> GuardedFlight<C> {
    fn new(profile: Profile, companion: C) -> Self {
        Self::with(profile, companion, &[], None)
    }

    fn with(
        profile: Profile,
        companion: C,
        parameters: &[(Parameter, f32)],
        signing: Option<Signing>,
    ) -> Self {
        let mut config = Config::new(1, HOME);
        config.parameters.extend_from_slice(parameters);
        config.profile = profile;
        config.parameters.push((Parameter::WPNAV_SPEED, 1000.0));
        let guardian = guardian::Config {
            silence: Duration::from_secs(1),
            hold: HOLD,
            then: Then::Land,
            land_below_mv: 0,
            below_for_s: 10,
            other_batteries: 0,
            endpoint: 0,
            signing: signing.clone(),
        };
        let mut flight = Self {
            now: Instant::ZERO,
            companion: Some(companion),
            guardian: Guardian::new(guardian),
            guarded: true,
            signing: signing.map(|_| SigningPort::new()),
            controller: FlightController::new(config, 3, Instant::ZERO),
            pulse: None,
            pulse_at: Instant::ZERO,
            wanted_at: None,
            port_open: false,
        };
        flight.guard(guardian::Input::Connected);
        flight
    }

    fn receive(&mut self, bytes: &[u8]) {
        match &mut self.signing {
            None => self.controller.receive(bytes),
            Some(port) => port.receive(bytes, &mut self.controller),
        }
    }

    fn guard(&mut self, input: guardian::Input<'_>) {
        if !self.guarded {
            return;
        }
        let mut out = guardian::Outputs::default();
        self.guardian.handle(self.now, input, &mut out);
        if out.sample {
            // A simulated process shows nothing of itself.
            self.guardian.handle(self.now, guardian::Input::Process(None), &mut out);
        }
        if self.port_open {
            self.receive(&out.autopilot);
        }
    }

    /// Twenty milliseconds.
    fn tick(&mut self) {
        self.now = self.now + TICK;
        let mut received = Vec::new();
        self.controller.advance(self.now, &mut received);
        if let Some(port) = &mut self.signing {
            received = port.sign(&received);
        }
        if let Some(companion) = &mut self.companion {
            let mut out = Vec::new();
            companion.tick(self.now, &received, &mut out);
            let pulse = companion.pulse(self.now);
            if self.pulse != Some(pulse) || self.now >= self.pulse_at + guardian::PULSE_PERIOD {
                (self.pulse, self.pulse_at) = (Some(pulse), self.now);
                self.guard(guardian::Input::Pulse(pulse));
            }
            self.receive(&out);
        }
        match (self.guardian.wants_port(), self.wanted_at) {
            (true, None) => self.wanted_at = Some(self.now),
            (true, Some(at)) if !self.port_open && self.now >= at + OPENING => {
                self.port_open = true;
                self.guard(guardian::Input::AutopilotLink(true));
            }
            (true, Some(_)) => {}
            (false, _) => (self.wanted_at, self.port_open) = (None, false),
        }
        if self.port_open && !received.is_empty() {
            self.guard(guardian::Input::Autopilot(&received));
        }
        if self.now >= self.guardian.poll_timeout() {
            self.guard(guardian::Input::Wake);
        }
    }

    fn kill(&mut self) -> bool {
        let commanding =
            self.companion.take().is_some_and(|c| c.pulse(self.now).activity == Activity::Commanding);
        self.guard(guardian::Input::Gone);
        commanding
    }

    /// Flies on without its companion until it is over, and measures.
    fn aftermath(mut self) -> Outcome {
        let died_at = self.now;
        let before = self.controller.truth();
        let mut outcome =
            Outcome { commanding: self.kill(), speed_m_s: before.velocity.length(), ..Outcome::default() };
        let mut last = before;
        let mut moving_at = died_at;
        while self.now.since(died_at) < Duration::from_secs(120) {
            self.tick();
            let (truth, age) = (self.controller.truth(), self.now.since(died_at));
            if truth.mode == Mode::Brake {
                outcome.brake_at = outcome.brake_at.or(Some(age));
            }
            if truth.mode == Mode::Land && truth.armed {
                outcome.land_at = outcome.land_at.or(Some(age));
            }
            if outcome.land_at.is_none() && truth.armed {
                if truth.velocity.length() >= REST_M_S {
                    (moving_at, outcome.rest_at) = (self.now, None);
                } else {
                    outcome.rest_at = outcome.rest_at.or(Some(moving_at.since(died_at)));
                }
                outcome.path_m = outcome.path_m.max((truth.local - before.local).length());
            }
            outcome.off_legs_m = outcome.off_legs_m.max(off_legs_m(&truth));
            outcome.above_m = outcome.above_m.max(truth.local.z - before.local.z.max(0.0));
            outcome.over_m = outcome.over_m.max(truth.local.z - HEIGHT_M);
            if last.armed && !truth.armed {
                outcome.disarmed_at = Some(age);
                outcome.touchdown_m_s = truth.touchdown_m_s;
            }
            last = truth;
            if !truth.armed && !self.guardian.wants_port() && age > Duration::from_secs(5) {
                break;
            }
        }
        outcome.released = !self.guardian.wants_port();
        outcome
    }
}

fn off_legs_m(truth: &Truth) -> f64 {
    let here: DVec3 = truth.local;
    let here = here.truncate();
    let to_leg = |a: DVec2, b: DVec2| {
        let (along, way) = (b - a, here - a);
        let part = (way.dot(along) / along.length_squared()).clamp(0.0, 1.0);
        (way - along * part).length()
    };
    let home = to_leg(DVec2::ZERO, LEGS[0]);
    LEGS.windows(2).map(|leg| to_leg(leg[0], leg[1])).fold(home, f64::min)
}

/// Kills a companion at every half second of its flight and hands each outcome to `judge`.
fn every_half_second<C: Companion>(
    profile: Profile,
    companion: impl Fn() -> C,
    mut judge: impl FnMut(Duration, Outcome),
) -> usize {
    let mut commanding = 0;
    for half_seconds in 1.. {
        let at = Duration::from_millis(500) * half_seconds;
        let mut flight = GuardedFlight::new(profile, companion());
        while flight.now < Instant::ZERO + at {
            flight.tick();
        }
        let over = flight.companion.as_ref().is_some_and(Companion::finished);
        let outcome = flight.aftermath();
        commanding += usize::from(outcome.commanding);
        judge(at, outcome);
        if over {
            break;
        }
        assert!(half_seconds < 600, "the flight does not end");
    }
    commanding
}

/// What is promised of every death, for a death that was measured.
struct Bounds {
    rest: Duration,
    path_m: f64,
    off_legs_m: f64,
    above_m: f64,
    over_m: f64,
}

fn check(what: &str, profile: Profile, bounds: &Bounds, at: Duration, outcome: Outcome, worst: &mut Outcome) {
    let case = format!("{what}, {profile:?}, death at {:.1} s: {outcome:?}", at.as_secs_f64());
    assert!(outcome.released, "the guardian lets go: {case}");
    if !outcome.commanding {
        assert!(outcome.brake_at.is_none(), "a companion that was not commanding is not succeeded: {case}");
        return;
    }
    if let Some(rest) = outcome.rest_at {
        assert!(rest <= bounds.rest, "at rest: {case}");
    }
    assert!(outcome.path_m <= bounds.path_m, "it goes no farther: {case}");
    assert!(outcome.off_legs_m <= bounds.off_legs_m, "it stays in its corridor: {case}");
    assert!(outcome.above_m <= bounds.above_m, "it climbs no higher: {case}");
    assert!(outcome.over_m <= bounds.over_m, "never above its height: {case}");
    assert!(outcome.touchdown_m_s < 1.0, "{case}");
    if let Some(brake) = outcome.brake_at {
        let land = outcome.land_at.or(outcome.disarmed_at).unwrap_or_else(|| panic!("LAND follows: {case}"));
        assert!(land <= brake + HOLD + Duration::from_millis(2_500), "{case}");
    }
    let later = |a: Option<Duration>, b: Option<Duration>| a.max(b);
    worst.brake_at = later(worst.brake_at, outcome.brake_at);
    worst.rest_at = later(worst.rest_at, outcome.rest_at);
    worst.land_at = later(worst.land_at, outcome.land_at);
    worst.disarmed_at = later(worst.disarmed_at, outcome.disarmed_at);
    worst.path_m = worst.path_m.max(outcome.path_m);
    worst.off_legs_m = worst.off_legs_m.max(outcome.off_legs_m);
    worst.above_m = worst.above_m.max(outcome.above_m);
    worst.over_m = worst.over_m.max(outcome.over_m);
    worst.speed_m_s = worst.speed_m_s.max(outcome.speed_m_s);
    worst.touchdown_m_s = worst.touchdown_m_s.max(outcome.touchdown_m_s);
}

fn report(what: &str, profile: Profile, deaths: usize, worst: &Outcome) {
    let s = |d: Option<Duration>| d.map_or(f64::NAN, |d| d.as_secs_f64());
    println!(
        "{what} {profile:?}: {deaths} deaths while commanding, fastest {:.1} m/s; latest BRAKE {:.2} s, at rest \
         {:.2} s, LAND {:.2} s, disarmed {:.2} s; farthest {:.1} m, off the legs {:.1} m, above {:.1} m, over \
         its height {:.2} m, touch-down {:.2} m/s",
        worst.speed_m_s,
        s(worst.brake_at),
        s(worst.rest_at),
        s(worst.land_at),
        s(worst.disarmed_at),
        worst.path_m,
        worst.off_legs_m,
        worst.above_m,
        worst.over_m,
        worst.touchdown_m_s,
    );
}

fn guided(profile: Profile, bounds: &Bounds) {
    let mut worst = Outcome::default();
    let deaths = every_half_second(
        profile,
        || Muscop::new(HOME, &LEGS, HEIGHT_M),
        |at, outcome| {
            check("MUSCOP", profile, bounds, at, outcome, &mut worst);
        },
    );
    report("MUSCOP", profile, deaths, &worst);
    assert!(deaths > 80, "{deaths}");
}

fn auto(profile: Profile, bounds: &Bounds) {
    let mut worst = Outcome::default();
    let deaths = every_half_second(
        profile,
        || Scripted::new(HOME, &LEGS, HEIGHT_M),
        |at, outcome| {
            check("AUTO", profile, bounds, at, outcome, &mut worst);
        },
    );
    report("AUTO", profile, deaths, &worst);
    assert!(deaths > 60, "{deaths}");
}

/// From cruise at 10 m/s: the heartbeat that is awaited (1 s), the one until which BRAKE may be lost, and the
/// stop; the guardian takes BRAKE for granted after three tries.
const BOUNDS: Bounds =
    // 10 m/s flown on until BRAKE (1.2 s), then the 20.4 m in which 4.6.2 was measured to stop.
    Bounds { rest: Duration::from_secs(8), path_m: 33.0, off_legs_m: 5.0, above_m: 8.0, over_m: 1.0 };
#[test]
fn muscop_on_3_5_7() {
    guided(Profile::Copter357, &BOUNDS);
}

#[test]
fn muscop_on_4_6_2() {
    guided(Profile::Copter462, &BOUNDS);
}

#[test]
fn a_mission_in_auto_on_3_5_7() {
    auto(Profile::Copter357, &BOUNDS);
}

#[test]
fn a_mission_in_auto_on_4_6_2() {
    auto(Profile::Copter462, &BOUNDS);
}

/// A companion next to a ground station that sends heartbeats.
struct Beating<C> {
    companion: C,
    due: Instant,
}

impl<C: Companion> Companion for Beating<C> {
    fn tick(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) {
        self.companion.tick(now, received, out);
        if now >= self.due {
            self.due = now + Duration::from_secs(1);
            let beat = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
                mavtype: MavType::MAV_TYPE_GCS,
                autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
                ..HEARTBEAT_DATA::default()
            });
            let mut frame = heapless::Vec::<u8, 280>::new();
            encode_v2(MavHeader { system_id: 255, component_id: 191, sequence: 0 }, &beat, &mut frame)
                .unwrap();
            out.extend_from_slice(&frame);
        }
    }
    fn pulse(&self, now: Instant) -> Pulse {
        self.companion.pulse(now)
    }
    fn finished(&self) -> bool {
        self.companion.finished()
    }
}

/// What the autopilot does alone: when it leaves the mode that it was in, for which, and when it has landed.
#[derive(Debug, Default)]
struct Alone {
    modes: Vec<(Duration, Mode)>,
    disarmed_at: Option<Duration>,
    home_m: f64,
}

impl Alone {
    fn after(&self, mode: Mode) -> Option<Duration> {
        self.modes.iter().find(|(_, entered)| *entered == mode).map(|(at, _)| *at)
    }
}

impl<C: Companion> GuardedFlight<C> {
    fn until(&mut self, what: &str, reached: impl Fn(&Self) -> bool) {
        while !reached(self) {
            self.tick();
            assert!(self.now < Instant::from_secs(120), "never {what}");
        }
    }

    /// Flying along its first leg, in this mode.
    fn cruising(&mut self, mode: Mode) {
        self.until("cruising", |flight| {
            let truth = flight.controller.truth();
            truth.mode == mode && truth.velocity.truncate().length() > 4.0
        });
    }

    fn modes_after_death(&mut self, patience: Duration) -> Alone {
        let died_at = self.now;
        assert!(self.kill(), "it was commanding");
        let (mut alone, mut mode) = (Alone::default(), self.controller.truth().mode);
        while self.now.since(died_at) < patience {
            self.tick();
            let truth = self.controller.truth();
            if truth.mode != mode {
                mode = truth.mode;
                alone.modes.push((self.now.since(died_at), mode));
            }
            if !truth.armed {
                alone.disarmed_at = Some(self.now.since(died_at));
                alone.home_m = truth.local.truncate().length();
                assert!(truth.landed && truth.touchdown_m_s < 1.0, "{truth:?}");
                break;
            }
        }
        alone
    }
}

/// MUSCOP with no guardian: a console holds the lease, or none does.
fn unguarded(profile: Profile, action: f32, held: bool) -> GuardedFlight<Muscop> {
    let mut companion = Muscop::new(HOME, &LEGS, HEIGHT_M);
    let mut out = Vec::new();
    companion.feed(Instant::ZERO, Input::Guard(None), &mut out);
    companion.feed(Instant::ZERO, Input::Lease(held), &mut out);
    let mut flight = GuardedFlight::with(profile, companion, &[(Parameter::FS_GCS_ENABLE, action)], None);
    flight.guarded = false;
    flight
}

fn returns(what: &str, profile: Profile, alone: &Alone) {
    println!("{what}, {profile:?}: {alone:?}");
    let rtl = alone.after(Mode::Rtl).unwrap_or_else(|| panic!("{what}, {profile:?}: {alone:?}"));
    assert!(rtl <= Duration::from_secs(6), "{what}, {profile:?}: {alone:?}");
    assert!(alone.disarmed_at.is_some() && alone.home_m < 2.0, "{what}, {profile:?}: {alone:?}");
}

#[test]
fn without_a_guardian_the_autopilots_failsafe_brings_it_home_from_guided() {
    for profile in [Profile::Copter357, Profile::Copter462] {
        let mut flight = unguarded(profile, 1.0, true);
        flight.cruising(Mode::Guided);
        let alone = flight.modes_after_death(Duration::from_secs(180));
        returns("FS_GCS_ENABLE 1 alone, GUIDED", profile, &alone);
    }
}

#[test]
fn in_auto_only_4_x_has_a_failsafe_that_brings_it_home() {
    for profile in [Profile::Copter357, Profile::Copter462] {
        let companion = Beating { companion: Scripted::new(HOME, &LEGS, HEIGHT_M), due: Instant::ZERO };
        let mut flight = GuardedFlight::with(profile, companion, &[(Parameter::FS_GCS_ENABLE, 1.0)], None);
        flight.guarded = false;
        flight.cruising(Mode::Auto);
        let old = profile == Profile::Copter357;
        let alone = flight.modes_after_death(Duration::from_secs(if old { 20 } else { 180 }));
        if old {
            assert!(alone.modes.is_empty() && alone.disarmed_at.is_none(), "it flies on: {alone:?}");
        } else {
            returns("FS_GCS_ENABLE 1 alone, AUTO", profile, &alone);
        }
    }
}

#[test]
fn without_any_layer_setup_is_refused_and_names_those_it_checked() {
    for (profile, action, held, why) in [
        (Profile::Copter462, 0.0, true, "FS_GCS_ENABLE is 0"),
        (Profile::Copter357, 1.0, false, "no console holds the lease"),
        (Profile::Copter462, 1.0, false, "no console holds the lease"),
    ] {
        let mut flight = unguarded(profile, action, held);
        while flight.now < Instant::from_secs(40) {
            flight.tick();
        }
        let agent = &flight.companion.as_ref().unwrap().agent;
        let status = agent.status(flight.now);
        let failed: Vec<_> = status.checks.iter().filter(|c| c.is_required && !c.passed).collect();
        assert_eq!(failed.iter().map(|c| c.name).collect::<Vec<_>>(), ["companion loss"], "{failed:?}");
        assert!(failed[0].detail.ends_with(why), "{:?}", failed[0]);
        assert_eq!((status.state, flight.controller.truth().armed), (StateId::Start, false));
    }
}

/// Both layers: on 4.x the failsafe also acts in the guardian's BRAKE, and the guardian gives way.
#[test]
fn the_autopilots_failsafe_may_take_the_aircraft_from_the_guardian() {
    for (profile, action, expected) in [
        (Profile::Copter357, 1.0, &[Mode::Brake, Mode::Land][..]),
        (Profile::Copter462, 1.0, &[Mode::Brake, Mode::Rtl]),
        (Profile::Copter462, 5.0, &[Mode::Brake, Mode::Land]),
    ] {
        let mut companion = Muscop::new(HOME, &LEGS, HEIGHT_M);
        companion.feed(Instant::ZERO, Input::Lease(true), &mut Vec::new());
        let mut flight = GuardedFlight::with(profile, companion, &[(Parameter::FS_GCS_ENABLE, action)], None);
        flight.cruising(Mode::Guided);
        let alone = flight.modes_after_death(Duration::from_secs(180));
        println!("guardian and FS_GCS_ENABLE {action}, {profile:?}: {alone:?}");
        assert_eq!(alone.modes.iter().map(|(_, mode)| *mode).collect::<Vec<_>>(), expected, "{alone:?}");
        assert!(alone.disarmed_at.is_some(), "{alone:?}");
        for _ in 0..100 {
            flight.tick();
        }
        assert!(!flight.guardian.wants_port(), "the guardian lets go");
    }
}

/// Daemon and guardian share key, system id, component and link id: for the flight controller they are one
/// sender, whose next frame must be later than its last.
#[test]
fn what_the_guardian_signs_is_accepted_after_what_the_daemon_signed() {
    for (profile, clock_is_set) in
        [(Profile::Copter357, true), (Profile::Copter462, true), (Profile::Copter357, false)]
    {
        let signing = Some(Signing { key: KEY, link_id: 1, setup: false });
        let config = wingbeat_agent::Config { signing: signing.clone(), ..Muscop::config() };
        let mut companion = Muscop::configured(config, HOME, &LEGS, HEIGHT_M);
        companion.feed(Instant::ZERO, Input::Utc { unix_us: UNIX_US }, &mut Vec::new());
        let mut flight = GuardedFlight::with(profile, companion, &[], signing);
        if clock_is_set {
            flight.guard(guardian::Input::Utc { unix_us: UNIX_US });
        }
        flight.cruising(Mode::Guided);
        let before = flight.signing.as_ref().unwrap().accepted();
        let alone = flight.modes_after_death(Duration::from_secs(120));
        assert!(alone.after(Mode::Brake).is_some_and(|at| at < Duration::from_secs(3)), "{alone:?}");
        assert!(alone.after(Mode::Land).is_some() && alone.disarmed_at.is_some(), "{alone:?}");
        let port = flight.signing.as_ref().unwrap();
        assert!(port.accepted() > before + 20, "heartbeats and both modes: {}", port.accepted() - before);
        let refused = port.decoder.refused().signature.total();
        // Without a clock, the heartbeat that opens the port is stamped with nothing; before it asks for a
        // mode it has received the time.
        assert_eq!(refused, u32::from(!clock_is_set), "{profile:?}, clock set: {clock_is_set}");
    }
}
