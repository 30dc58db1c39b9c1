//! The guardian against scripted heartbeats, with explicit times. Whole deaths are flown against the
//! simulated flight controller in `crates/sim/tests/companion_death.rs`.

extern crate std;
use core::fmt::Write as _;
use std::{string::String, vec::Vec as StdVec};

use wingbeat_autopilot::codec::{Decoder, MavHeader, encode_v2};

use wingbeat_autopilot::dialect::{
    BATTERY_STATUS_DATA, MavSysStatusSensor, RC_CHANNELS_DATA, STATUSTEXT_DATA, SYS_STATUS_DATA,
};

use super::*;

const ENDPOINT: u32 = 7;

struct Bench {
    guardian: Guardian,
    now: Instant,
    /// Modes asked for, with the time in milliseconds.
    asked: StdVec<(u64, Mode)>,
    heartbeats: usize,
    kills: usize,
    report: Option<Report>,
    log: String,
    /// What a sample of the daemon's process shows; none where it cannot be read.
    process: Option<fn(Instant) -> Process>,
}

impl Bench {
    fn new(then: Then) -> Self {
        let config = Config {
            silence: Duration::from_millis(1_000),
            hold: Duration::from_secs(10),
            then,
            land_below_mv: 13_400,
            below_for_s: 10,
            other_batteries: 0b100,
            endpoint: ENDPOINT,
            signing: None,
        };
        Self {
            guardian: Guardian::new(config),
            now: Instant::from_secs(100),
            asked: StdVec::new(),
            heartbeats: 0,
            kills: 0,
            report: None,
            log: String::new(),
            process: None,
        }
    }

    /// A daemon that commands in these modes dies.
    fn orphaned(then: Then, ours: &[Mode]) -> Self {
        let mut bench = Self::new(then);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(pulse(Activity::Commanding, ours)));
        bench.feed(Input::Gone);
        assert!(bench.guardian.wants_port());
        bench.feed(Input::AutopilotLink(true));
        bench
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut out = Outputs::default();
        self.guardian.handle(self.now, input, &mut out);
        if out.sample {
            for entry in &out.log {
                writeln!(self.log, "{}", entry.text).unwrap();
            }
            let sample = self.process.map(|process| process(self.now));
            self.guardian.handle(self.now, Input::Process(sample), &mut out);
        }
        Decoder::default().push(&out.autopilot, |frame| {
            assert_eq!(frame.header.component_id, COMPONENT_ID);
            match frame.message {
                MavMessage::SET_MODE(m) => {
                    self.asked.push((self.now.as_millis(), Mode::from_number(m.custom_mode).unwrap()));
                }
                MavMessage::HEARTBEAT(_) => self.heartbeats += 1,
                other => panic!("a guardian sent {other:?}"),
            }
        });
        self.kills += usize::from(out.kill);
        self.report = out.report.or(self.report);
        for entry in &out.log {
            writeln!(self.log, "{}", entry.text).unwrap();
        }
    }

    fn receive(&mut self, message: &MavMessage) {
        let mut bytes = Vec::<u8, 280>::new();
        encode_v2(MavHeader { system_id: 1, component_id: 1, sequence: 0 }, message, &mut bytes).unwrap();
        self.feed(Input::Autopilot(&bytes));
    }

    fn says(&mut self, text: &str) {
        self.receive(&MavMessage::STATUSTEXT(STATUSTEXT_DATA { text: text.into(), ..Default::default() }));
    }

    /// The pilot's mode switch on channel 5; then the report whether his transmitter is received.
    fn switch_at(&mut self, is_received: bool, pulse_us: u16) {
        let channels = RC_CHANNELS_DATA { chan3_raw: 1_500, chan5_raw: pulse_us, ..Default::default() };
        for _ in 0..3 {
            self.receive(&MavMessage::RC_CHANNELS(channels.clone()));
            self.now = self.now + Duration::from_millis(250);
            assert!(self.guardian.wants_port(), "not before it is known whether the receiver delivers");
        }
        let receiver = MavSysStatusSensor::MAV_SYS_STATUS_SENSOR_RC_RECEIVER;
        self.receive(&MavMessage::SYS_STATUS(SYS_STATUS_DATA {
            onboard_control_sensors_present: receiver,
            onboard_control_sensors_enabled: receiver,
            onboard_control_sensors_health: if is_received { receiver } else { MavSysStatusSensor::empty() },
            ..Default::default()
        }));
    }

    /// What a daemon learns that connects and has not heard the autopilot.
    fn next_daemon(&mut self) -> Before {
        self.feed(Input::Connected);
        self.report = None;
        self.feed(Input::Pulse(Pulse { system_id: 0, ..pulse(Activity::Idle, &[]) }));
        self.report.unwrap().before
    }

    fn heartbeat(&mut self, number: u32, armed: bool) {
        let armed = if armed { MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED } else { MavModeFlag::empty() };
        let message = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: number,
            mavtype: MavType::MAV_TYPE_QUADROTOR,
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | armed,
            ..HEARTBEAT_DATA::default()
        });
        self.receive(&message);
    }

    /// Time passes; heartbeats each second, wake-ups as wanted.
    fn seconds(&mut self, seconds: u64, mode: Mode) {
        self.seconds_at(seconds, mode, 16_000);
    }

    /// The same with a battery of so many millivolts.
    fn seconds_at(&mut self, seconds: u64, mode: Mode, voltage_battery: u16) {
        for _ in 0..seconds {
            self.heartbeat(mode.number(), true);
            self.receive(&MavMessage::SYS_STATUS(SYS_STATUS_DATA { voltage_battery, ..Default::default() }));
            for _ in 0..10 {
                self.now = self.now + Duration::from_millis(100);
                if self.now >= self.guardian.poll_timeout() {
                    self.feed(Input::Wake);
                    assert!(self.guardian.poll_timeout() > self.now, "time does not pass");
                }
            }
        }
    }
}

fn pulse(activity: Activity, ours: &[Mode]) -> Pulse {
    let ours = ours.iter().fold(Modes::default(), |all, m| all.with(Modes::one(m.number())));
    Pulse { activity, system_id: 1, ours, switch_channel: 5, endpoint: ENDPOINT, route: 0, takes_up: 0 }
}

#[test]
fn transition_table() {
    let inputs = [
        TakeoverInput::DisarmedEarly,
        TakeoverInput::Disarmed,
        TakeoverInput::Foreign,
        TakeoverInput::Brake,
        TakeoverInput::Descent,
        TakeoverInput::Commanded,
        TakeoverInput::Unconfirmed,
        TakeoverInput::HoldOver,
        TakeoverInput::BatteryLow,
        TakeoverInput::Stop,
    ];
    let mut table = String::new();
    for phase in TakeoverPhase::ALL {
        for input in inputs {
            writeln!(table, "{phase:?} | {input:?} -> {:?}", phase.next(input)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_commanding_daemon_that_dies_leaves_brake_then_land() {
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
    assert!(bench.asked.is_empty(), "nothing before a heartbeat was judged");
    bench.seconds(2, Mode::Guided);
    assert_eq!(bench.asked, [(100_000, Mode::Brake), (101_200, Mode::Brake)]);
    bench.seconds(9, Mode::Brake);
    assert_eq!(bench.asked.len(), 2, "what is seen is not asked again");
    bench.seconds(2, Mode::Brake);
    assert_eq!(bench.asked[2], (112_000, Mode::Land));
    bench.seconds(20, Mode::Land);
    assert_eq!(bench.guardian.stance(), Stance::Descending);
    bench.heartbeat(Mode::Land.number(), false);
    assert!(!bench.guardian.wants_port());
    assert!(bench.heartbeats >= 30, "{}", bench.heartbeats);
}

#[test]
fn a_daemon_that_was_not_commanding_may_die() {
    for activity in [Activity::Idle, Activity::Pilot] {
        let mut bench = Bench::new(Then::Land);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Guided])));
        bench.feed(Input::Pulse(pulse(activity, &[Mode::Guided])));
        assert_eq!(bench.guardian.poll_timeout(), Instant::NEVER);
        bench.feed(Input::Gone);
        bench.seconds(5, Mode::Guided);
        assert!(!bench.guardian.wants_port() && bench.asked.is_empty());
    }
}

#[test]
fn every_foreign_mode_ends_the_takeover_in_every_phase() {
    let until: [(TakeoverPhase, &[(u64, Mode)]); 5] = [
        (TakeoverPhase::AwaitingHeartbeat, &[]),
        (TakeoverPhase::Braking, &[(1, Mode::Guided)]),
        (TakeoverPhase::Holding, &[(1, Mode::Guided), (1, Mode::Brake)]),
        (TakeoverPhase::Ending, &[(1, Mode::Guided), (11, Mode::Brake)]),
        (TakeoverPhase::Descending, &[(1, Mode::Guided), (11, Mode::Brake), (1, Mode::Land)]),
    ];
    for (phase, script) in until {
        for number in 0..40 {
            let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
            for (seconds, mode) in script {
                bench.seconds(*seconds, *mode);
            }
            assert_eq!(bench.guardian.stance(), phase.stance());
            let own = match phase {
                TakeoverPhase::AwaitingHeartbeat => number == Mode::Guided.number(),
                TakeoverPhase::Braking => [Mode::Guided, Mode::Brake].iter().any(|m| m.number() == number),
                TakeoverPhase::Holding => number == Mode::Brake.number(),
                TakeoverPhase::Ending => [Mode::Brake, Mode::Land].iter().any(|m| m.number() == number),
                TakeoverPhase::Descending => number == Mode::Land.number(),
            };
            let asked = bench.asked.len();
            bench.heartbeat(number, true);
            assert_eq!(bench.guardian.wants_port(), own, "{phase:?} mode {number}: {}", bench.log);
            if !own {
                bench.seconds(30, Mode::Guided);
                assert_eq!(bench.asked.len(), asked, "{phase:?} mode {number}");
            }
        }
    }
}

#[test]
fn brake_that_is_refused_becomes_land_and_rtl_that_is_refused_too() {
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
    bench.seconds(5, Mode::Guided);
    let modes = |bench: &Bench| bench.asked.iter().map(|(_, mode)| *mode).collect::<StdVec<_>>();
    assert_eq!(modes(&bench), [Mode::Brake, Mode::Brake, Mode::Brake, Mode::Land, Mode::Land]);
    bench.seconds(60, Mode::Guided);
    assert!(bench.asked.len() > 40, "a landing is requested until it is seen");

    let mut bench = Bench::orphaned(Then::Rtl, &[Mode::Auto]);
    bench.seconds(1, Mode::Auto);
    bench.seconds(20, Mode::Brake);
    let [Mode::Brake, Mode::Rtl, Mode::Rtl, Mode::Rtl, Mode::Land, ..] = modes(&bench)[..] else {
        panic!("{:?}", bench.asked)
    };
}

#[test]
fn an_aircraft_that_descends_is_left_to_it() {
    for mode in [Mode::Land, Mode::Rtl] {
        let mut bench = Bench::orphaned(Then::Land, &[mode]);
        bench.seconds(20, mode);
        assert!(bench.asked.is_empty() && bench.guardian.stance() == Stance::Descending);
    }
    // The daemon's LAND was on its way when it died: seen after our BRAKE was asked, it is no pilot's.
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided, Mode::Land]);
    bench.seconds(1, Mode::Guided);
    bench.seconds(1, Mode::Land);
    assert_eq!(bench.guardian.stance(), Stance::Descending);
    bench.seconds(12, Mode::Brake);
    assert_eq!(bench.asked.last().unwrap().1, Mode::Land, "our BRAKE overtook it: {}", bench.log);
}

#[test]
fn hold_stays_until_a_pilot_takes_over() {
    let mut bench = Bench::orphaned(Then::Hold, &[Mode::Guided]);
    bench.seconds(1, Mode::Guided);
    bench.seconds(600, Mode::Brake);
    assert!(bench.asked.iter().all(|(_, mode)| *mode == Mode::Brake));
    bench.feed(Input::Stop);
    assert_eq!(bench.asked.last().unwrap().1, Mode::Land, "a guardian that ends leaves no aircraft hanging");
}

/// A battery whose voltage is low for 10 s, or far lower for 3 s, ends the hold and the return; a
/// dip does not.
#[test]
fn what_is_held_or_returns_lands_when_the_battery_is_low() {
    let mut bench = Bench::orphaned(Then::Hold, &[Mode::Guided]);
    bench.seconds(1, Mode::Guided);
    bench.seconds(60, Mode::Brake);
    bench.seconds_at(9, Mode::Brake, 13_399);
    bench.seconds_at(1, Mode::Brake, 13_400);
    bench.seconds_at(10, Mode::Brake, 13_399);
    assert!(bench.asked.iter().all(|(_, mode)| *mode == Mode::Brake), "{:?}", bench.asked);
    bench.seconds_at(2, Mode::Brake, 13_399);
    // 1 + 60 + 9 + 1 + 10 s after the death it has been low for 10 s, a second later for longer.
    let landing: StdVec<_> = bench.asked.iter().filter(|(_, mode)| *mode == Mode::Land).copied().collect();
    assert_eq!(landing[0], (182_000, Mode::Land), "{}", bench.log);
    assert!(bench.log.contains("battery: 13.40 V, below 13.40 V for 10 s: land"), "{}", bench.log);
    bench.seconds_at(30, Mode::Land, 13_000);
    assert_eq!((bench.guardian.stance(), bench.asked.len()), (Stance::Descending, 1 + landing.len()));

    // On its way home: what was left is seen for some seconds, and is not what was asked for.
    let mut bench = Bench::orphaned(Then::Rtl, &[Mode::Auto]);
    bench.seconds(1, Mode::Auto);
    bench.seconds(11, Mode::Brake);
    bench.seconds(5, Mode::Rtl);
    assert_eq!(bench.guardian.stance(), Stance::Descending);
    bench.seconds_at(6, Mode::Rtl, 12_900);
    assert_eq!(bench.guardian.stance(), Stance::Ending, "{}", bench.log);
    assert_eq!(bench.asked.last().unwrap().1, Mode::Land);
    bench.seconds_at(5, Mode::Land, 13_000);
    assert_eq!(bench.guardian.stance(), Stance::Descending);
    bench.heartbeat(Mode::Loiter.number(), true);
    assert!(!bench.guardian.wants_port(), "the pilot's mode outranks it");

    // Of several the worst counts, but none that carries a camera.
    let pack = |id, mv| {
        let mut m = BATTERY_STATUS_DATA { id, battery_remaining: -1, ..Default::default() };
        m.voltages = [u16::MAX; 10];
        m.voltages[0] = mv;
        MavMessage::BATTERY_STATUS(m)
    };
    for (id, lands) in [(1, true), (2, false)] {
        let mut bench = Bench::orphaned(Then::Hold, &[Mode::Guided]);
        bench.seconds(1, Mode::Guided);
        for _ in 0..20 {
            bench.receive(&pack(id, 12_000));
            bench.seconds_at(1, Mode::Brake, 16_000);
        }
        assert_eq!(bench.asked.iter().any(|(_, mode)| *mode == Mode::Land), lands, "{}", bench.log);
    }

    // Nothing is known of a battery that is not measured.
    let mut bench = Bench::orphaned(Then::Hold, &[Mode::Guided]);
    bench.seconds(1, Mode::Guided);
    bench.seconds_at(60, Mode::Brake, 0);
    bench.seconds_at(60, Mode::Brake, u16::MAX);
    assert!(bench.asked.iter().all(|(_, mode)| *mode == Mode::Brake), "{:?}", bench.asked);
}

#[test]
fn motors_that_start_after_the_death_are_seen() {
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
    bench.heartbeat(Mode::Guided.number(), false);
    assert!(bench.guardian.wants_port());
    bench.seconds(1, Mode::Guided);
    assert_eq!(bench.asked.len(), 1);
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
    bench.now = bench.now + Duration::from_secs(3);
    bench.heartbeat(Mode::Guided.number(), false);
    assert!(!bench.guardian.wants_port() && bench.asked.is_empty());
}

#[test]
fn a_hung_daemon_is_killed_once_and_then_succeeded() {
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Guided])));
    bench.now = bench.now + Duration::from_millis(999);
    bench.feed(Input::Wake);
    assert_eq!(bench.kills, 0);
    bench.now = bench.now + Duration::from_millis(1);
    bench.feed(Input::Wake);
    bench.feed(Input::Wake);
    assert_eq!((bench.kills, bench.guardian.wants_port()), (1, false), "not while the daemon may be running");
    bench.feed(Input::Gone);
    assert!(bench.guardian.wants_port());
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(pulse(Activity::Idle, &[])));
    let answer = Answer { stance: Stance::AwaitingHeartbeat, cause: Cause::Hung };
    assert_eq!(bench.report.unwrap().answer, answer);

    // One that cannot be killed is not waited for.
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Guided])));
    for _ in 0..15 {
        bench.now = bench.now + Duration::from_millis(100);
        bench.feed(Input::Wake);
    }
    assert!(bench.kills == 1 && bench.guardian.wants_port(), "{}", bench.log);
}

#[test]
fn a_guardian_that_stood_still_itself_kills_no_daemon() {
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Guided])));
    bench.now = bench.now + Duration::from_secs(5);
    bench.feed(Input::Wake);
    assert!(bench.kills == 0 && bench.log.contains("woken 4000 ms late"), "{}", bench.log);
    bench.now = bench.now + Duration::from_secs(1);
    bench.feed(Input::Wake);
    assert_eq!(bench.kills, 1, "once");
}

#[test]
fn a_daemon_of_another_port_is_answered_that_it_is_not_protected() {
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    for _ in 0..3 {
        bench.feed(Input::Pulse(Pulse { endpoint: 8, ..pulse(Activity::Commanding, &[Mode::Guided]) }));
    }
    assert_eq!(bench.report.unwrap().answer.stance, Stance::OtherEndpoint);
    assert_eq!(bench.log.matches("another autopilot.endpoint").count(), 1);
    bench.feed(Input::Gone);
    assert!(!bench.guardian.wants_port());
}

#[test]
fn the_next_daemon_learns_of_a_mode_that_neither_asked_for() {
    assert_eq!(Bench::new(Then::Land).next_daemon(), Before::Unknown);
    for mode in [Mode::Rtl, Mode::Land, Mode::Auto, Mode::Guided, Mode::Loiter] {
        let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
        bench.seconds(1, Mode::Guided);
        bench.seconds(3, Mode::Brake);
        bench.heartbeat(mode.number(), true);
        assert_eq!(bench.next_daemon(), Before::Pilot, "{mode:?}: {}", bench.log);
        // One that has not heard the autopilot takes nothing of it away.
        bench.feed(Input::Gone);
        assert_eq!(bench.next_daemon(), Before::Pilot);
    }
    // Announced, soon enough, by a text that is a failsafe's, for a mode that one chooses.
    let rtl = Modes::one(Mode::Rtl.number());
    for (text, waits, mode, before) in [
        ("Battery Failsafe", 2, Mode::Rtl, Before::Failsafe(rtl)),
        ("Battery Failsafe", 4, Mode::Rtl, Before::Pilot),
        ("Battery Failsafe", 2, Mode::Loiter, Before::Pilot),
        ("GCS Failsafe Cleared", 2, Mode::Rtl, Before::Pilot),
    ] {
        let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
        bench.seconds(1, Mode::Guided);
        bench.says(text);
        bench.seconds(waits, Mode::Brake);
        bench.heartbeat(mode.number(), true);
        assert_eq!(bench.next_daemon(), before, "{text}, {waits} s, {mode:?}");
    }
    // It landed: armed again, it is not by us.
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Land]);
    bench.seconds(5, Mode::Land);
    bench.heartbeat(Mode::Land.number(), false);
    assert_eq!(bench.next_daemon(), Before::Ours(Modes::default()));
}

#[test]
fn the_next_daemon_learns_how_the_last_left_the_aircraft() {
    let brake = Modes::one(Mode::Brake.number());
    for (activity, before) in [
        (Activity::Idle, Before::Ours(Modes::default())),
        (Activity::IdleArmed, Before::Ours(brake)),
        (Activity::Pilot, Before::Pilot),
        (Activity::Failsafe, Before::Failsafe(brake)),
    ] {
        let mut bench = Bench::new(Then::Land);
        bench.next_daemon();
        bench.feed(Input::Pulse(pulse(activity, &[Mode::Brake])));
        bench.feed(Input::Gone);
        assert_eq!(bench.next_daemon(), before);
        // It asked for nothing: what was known before it still holds.
        bench.feed(Input::Pulse(pulse(Activity::IdleArmed, &[])));
        bench.feed(Input::Gone);
        assert_eq!(bench.next_daemon(), before);
        // Of another port this guardian knows nothing.
        bench.feed(Input::Pulse(Pulse { endpoint: 8, ..pulse(Activity::Pilot, &[]) }));
        assert_eq!(bench.report.unwrap().before, Before::Unknown);
        bench.feed(Input::Gone);
        assert_eq!(bench.next_daemon(), before);
    }
}

/// He chose the mode in which the guardian has it: the heartbeats show nothing.
#[test]
fn a_mode_switch_that_is_moved_is_the_pilots() {
    for (is_received, positions_us, is_pilots) in [
        (true, &[1_800, 1_685][..], true),
        (true, &[1_800, 1_800], false),
        // A preset of a receiver that has lost the transmitter.
        (false, &[1_800, 1_685], false),
    ] {
        let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
        bench.seconds(1, Mode::Guided);
        bench.seconds(2, Mode::Brake);
        for &pulse_us in positions_us {
            bench.switch_at(is_received, pulse_us);
        }
        assert_eq!(!bench.guardian.wants_port(), is_pilots, "{positions_us:?}: {}", bench.log);
        if is_pilots {
            assert_eq!(bench.next_daemon(), Before::Pilot);
        }
    }
}

#[test]
fn other_systems_on_the_line_decide_nothing() {
    let mut bench = Bench::orphaned(Then::Land, &[Mode::Guided]);
    let mut bytes = Vec::<u8, 64>::new();
    let ground_station = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode: 0,
        base_mode: MavModeFlag::empty(),
        ..HEARTBEAT_DATA::default()
    });
    for header in [
        MavHeader { system_id: 255, component_id: 190, sequence: 0 },
        MavHeader { system_id: 2, component_id: 1, sequence: 0 },
        MavHeader { system_id: 1, component_id: 191, sequence: 0 },
    ] {
        encode_v2(header, &ground_station, &mut bytes).unwrap();
        bench.now = bench.now + Duration::from_secs(4);
        bench.feed(Input::Autopilot(&bytes));
        bytes.clear();
    }
    assert_eq!(bench.guardian.stance(), Stance::AwaitingHeartbeat);
    assert!(bench.asked.is_empty());
}

/// A daemon that has not received the autopilot and takes up a flight, or does not.
fn beginner(takes_up: bool) -> Pulse {
    Pulse { system_id: 0, takes_up: u8::from(takes_up), ..pulse(Activity::Idle, &[]) }
}

/// A daemon on a route dies, and the guardian holds the aircraft since two seconds.
fn held_on_route(route: u64) -> Bench {
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(Pulse { route, ..pulse(Activity::Commanding, &[Mode::Auto]) }));
    bench.feed(Input::Gone);
    bench.feed(Input::AutopilotLink(true));
    bench.seconds(1, Mode::Auto);
    bench.seconds(2, Mode::Brake);
    assert_eq!(bench.guardian.stance(), Stance::Holding);
    bench
}

const GIVEN_BACK: Before = Before::OnRoute { modes: Modes(1 << 17), route: 77 };

#[test]
fn an_aircraft_on_its_route_is_given_back_once_to_a_daemon_that_takes_it_up() {
    let mut bench = held_on_route(77);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(beginner(true)));
    // The answer that says so comes when the port is closed.
    assert_eq!(bench.report.unwrap().answer.stance, Stance::Holding);
    assert!(!bench.guardian.wants_port(), "{}", bench.log);
    bench.feed(Input::Pulse(beginner(true)));
    let report = bench.report.unwrap();
    assert_eq!((report.answer.stance, report.before), (Stance::Watching, GIVEN_BACK));
    assert!(bench.guardian.watches_a_commanding_daemon(), "though it has not received the autopilot yet");
    // It goes on, and dies again on its route: the aircraft is landed, and no other daemon gets it.
    bench.feed(Input::Pulse(Pulse { route: 77, ..pulse(Activity::Commanding, &[Mode::Auto]) }));
    bench.feed(Input::Gone);
    bench.feed(Input::AutopilotLink(true));
    bench.seconds(1, Mode::Auto);
    bench.feed(Input::Connected);
    for _ in 0..11 {
        bench.feed(Input::Pulse(beginner(true)));
        bench.seconds(1, Mode::Brake);
        assert!(bench.guardian.wants_port(), "{}", bench.log);
    }
    assert_eq!(bench.asked.last().unwrap().1, Mode::Land);
    // On the ground that flight is over.
    bench.heartbeat(Mode::Land.number(), false);
    assert_eq!(bench.next_daemon(), Before::Ours(Modes::default()));
}

#[test]
fn a_daemon_that_dies_or_hangs_with_an_aircraft_that_was_given_back_is_succeeded() {
    for (pulses, hangs) in [(0, false), (3, false), (0, true), (3, true)] {
        let mut bench = held_on_route(77);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(beginner(true)));
        for _ in 0..pulses {
            let brake = Pulse { system_id: 0, ..pulse(Activity::Commanding, &[Mode::Brake]) };
            bench.feed(Input::Pulse(brake));
        }
        if hangs {
            bench.now = bench.now + Duration::from_millis(1_000);
            bench.feed(Input::Wake);
            assert_eq!(bench.kills, 1, "{}", bench.log);
        }
        bench.feed(Input::Gone);
        assert!(bench.guardian.wants_port(), "{pulses} {hangs}: {}", bench.log);
        bench.feed(Input::AutopilotLink(true));
        bench.seconds(11, Mode::Brake);
        assert_eq!(bench.asked.last().unwrap().1, Mode::Land, "{}", bench.log);
    }
}

#[test]
fn an_aircraft_is_kept_from_a_daemon_that_does_not_take_it_up_or_comes_too_late() {
    // On no route; a daemon that takes up none; one that has received the autopilot; one of another port.
    let other = Pulse { endpoint: 8, ..beginner(true) };
    let heard = Pulse { system_id: 1, ..beginner(true) };
    for (route, daemon) in [(0, beginner(true)), (77, beginner(false)), (77, heard), (77, other)] {
        let mut bench = held_on_route(route);
        bench.feed(Input::Connected);
        for _ in 0..3 {
            bench.feed(Input::Pulse(daemon));
        }
        assert!(bench.guardian.wants_port(), "{route} {daemon:?}");
    }
    // It is landing already.
    let mut bench = held_on_route(77);
    bench.seconds(11, Mode::Brake);
    assert_eq!(bench.guardian.stance(), Stance::Ending);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(beginner(true)));
    assert!(bench.guardian.wants_port());
    // Not before it stands, and not from a pilot.
    let mut bench = held_on_route(77);
    bench.heartbeat(Mode::Loiter.number(), true);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(beginner(true)));
    bench.feed(Input::Pulse(beginner(true)));
    assert_eq!(bench.report.unwrap().before, Before::Pilot);
    // A guardian that holds for ever gives it back within a minute.
    for (late_s, is_given_back) in [(50, true), (61, false)] {
        let mut bench = Bench::new(Then::Hold);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(Pulse { route: 77, ..pulse(Activity::Commanding, &[Mode::Auto]) }));
        bench.feed(Input::Gone);
        bench.feed(Input::AutopilotLink(true));
        bench.seconds(1, Mode::Auto);
        bench.seconds(late_s - 1, Mode::Brake);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(beginner(true)));
        assert_eq!(!bench.guardian.wants_port(), is_given_back, "{late_s} s");
    }
}

/// A process that waited for a processor for this share of the time, per cent.
fn process(now: Instant, state: ProcessState, waited_percent: u64) -> Process {
    let passed_ms = now.as_millis();
    let waited = Duration::from_millis(passed_ms * waited_percent / 100);
    Process { state, ran: Duration::ZERO, waited: Some(waited), load_percent: 2_310 }
}

/// When a commanding daemon, silent from now on, was killed and when the aircraft was taken, milliseconds.
fn silent(sampled: Option<fn(Instant) -> Process>) -> (Option<u64>, Option<u64>, Bench) {
    let mut bench = Bench::new(Then::Land);
    bench.process = sampled;
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Guided])));
    let begun = bench.now;
    let (mut killed, mut taken) = (None, None);
    for ms in 0..6_000 {
        bench.now = begun + Duration::from_millis(ms);
        if bench.now >= bench.guardian.poll_timeout() {
            bench.feed(Input::Wake);
        }
        killed = killed.or((bench.kills > 0).then_some(ms));
        taken = taken.or(bench.guardian.wants_port().then_some(ms));
    }
    (killed, taken, bench)
}

#[test]
fn a_late_daemon_is_given_one_second_more_and_a_hung_one_none() {
    // Waits for a processor, or for a disk: the loss budget is one second.
    for sampled in [
        (|now| process(now, ProcessState::Runnable, 90)) as fn(Instant) -> Process,
        |now| process(now, ProcessState::Sleeps, 30),
        |now| process(now, ProcessState::WaitsForDisk, 0),
    ] {
        let (killed, taken, bench) = silent(Some(sampled));
        assert_eq!((killed, taken), (Some(2_000), Some(2_500)), "{}", bench.log);
        assert!(bench.log.contains("late, waited") && bench.log.contains("load 23.1"), "{}", bench.log);
    }
    // Runnable, where the system shows no waits: it may be late.
    let (killed, taken, bench) =
        silent(Some(|now| Process { waited: None, ..process(now, ProcessState::Runnable, 0) }));
    assert_eq!((killed, taken), (Some(2_000), Some(2_500)), "{}", bench.log);
    // Stopped, asleep, or busy without turning its loop; or not to be read.
    for sampled in [
        Some((|now| process(now, ProcessState::Stopped, 90)) as fn(Instant) -> Process),
        Some(|now| process(now, ProcessState::Sleeps, 0)),
        Some(|now| process(now, ProcessState::Runnable, 10)),
        None,
    ] {
        let (killed, taken, bench) = silent(sampled);
        assert_eq!((killed, taken), (Some(1_000), Some(1_500)), "{}", bench.log);
        assert!(bench.log.contains("no pulse for 1000 ms: ending the daemon by force"), "{}", bench.log);
    }
    // Dead: at the first look at its process, without a kill.
    let (killed, taken, bench) = silent(Some(|now| process(now, ProcessState::Ended, 0)));
    assert_eq!((killed, taken), (None, Some(500)), "{}", bench.log);
}

#[test]
fn pulses_of_a_thread_do_not_cover_for_a_driver_that_hangs() {
    let mut bench = Bench::new(Then::Land);
    bench.process = Some(|now| process(now, ProcessState::Sleeps, 0));
    bench.feed(Input::Connected);
    let content = pulse(Activity::Commanding, &[Mode::Guided]);
    let begun = bench.now;
    let mut killed = None;
    for ms in (0..3_000).step_by(100) {
        bench.now = begun + Duration::from_millis(ms);
        if ms % 200 == 0 {
            // The driver's loop turned last after a second.
            let driver_age_ms = ms.saturating_sub(1_000) as u16;
            bench.feed(Input::Beat(Beat { pulse: content, sequence: 1, driver_age_ms }));
        }
        if bench.now >= bench.guardian.poll_timeout() {
            bench.feed(Input::Wake);
        }
        killed = killed.or((bench.kills > 0).then_some(ms));
    }
    assert_eq!(killed, Some(2_000), "{}", bench.log);
    assert!(bench.log.contains("its driver has not turned for 1000 ms"), "{}", bench.log);
}

#[test]
fn a_content_that_is_out_of_date_is_a_sign_of_life_only() {
    let mut bench = Bench::new(Then::Land);
    bench.feed(Input::Connected);
    let beat =
        |sequence, mode| Beat { pulse: pulse(Activity::Commanding, &[mode]), sequence, driver_age_ms: 0 };
    bench.feed(Input::Beat(beat(7, Mode::Auto)));
    bench.feed(Input::Beat(beat(6, Mode::Guided)));
    bench.feed(Input::Gone);
    bench.feed(Input::AutopilotLink(true));
    bench.seconds(1, Mode::Auto);
    assert!(bench.guardian.wants_port(), "AUTO was asked for last: {}", bench.log);
}

#[test]
fn an_aircraft_is_given_back_by_its_id_and_taken_again_where_it_is_not_received() {
    let takes = |takes_up| Pulse { system_id: 0, takes_up, ..pulse(Activity::Idle, &[]) };
    // A daemon that means another flight controller, or none: the guardian keeps the aircraft, and lands it.
    for takes_up in [0, 2] {
        let mut bench = held_on_route(77);
        bench.feed(Input::Connected);
        for _ in 0..11 {
            bench.feed(Input::Pulse(takes(takes_up)));
            assert_eq!(bench.report.unwrap().system_id, 1, "the daemon learns which is held");
            bench.seconds(1, Mode::Brake);
            assert!(bench.guardian.wants_port(), "{}", bench.log);
        }
        assert_eq!(bench.asked.last().unwrap().1, Mode::Land);
    }
    // Given back, and received: it is the daemon's.
    let mut bench = held_on_route(77);
    bench.feed(Input::Connected);
    bench.feed(Input::Pulse(takes(1)));
    assert!(!bench.guardian.wants_port());
    bench.now = bench.now + Duration::from_millis(900);
    bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Brake])));
    for _ in 0..20 {
        bench.now = bench.now + Duration::from_millis(500);
        bench.feed(Input::Pulse(pulse(Activity::Commanding, &[Mode::Brake])));
        assert!(!bench.guardian.wants_port(), "{}", bench.log);
    }
    // Given back, and not received, or another received: taken again, and landed.
    for (other, within_ms) in [(None, 4_000), (Some(2), 500)] {
        let mut bench = held_on_route(77);
        bench.feed(Input::Connected);
        bench.feed(Input::Pulse(takes(1)));
        let begun = bench.now;
        while !bench.guardian.wants_port() {
            bench.now = bench.now + Duration::from_millis(100);
            assert!(bench.now.since(begun) <= Duration::from_millis(within_ms), "{}", bench.log);
            let system_id = other.unwrap_or(0);
            bench.feed(Input::Pulse(Pulse { system_id, ..pulse(Activity::Commanding, &[Mode::Brake]) }));
            if bench.now >= bench.guardian.poll_timeout() {
                bench.feed(Input::Wake);
            }
        }
        bench.feed(Input::Pulse(takes(1)));
        assert_eq!(bench.report.unwrap().answer.cause, Cause::NotReceived);
        bench.feed(Input::AutopilotLink(true));
        bench.seconds(12, Mode::Brake);
        assert_eq!(bench.asked.last().unwrap().1, Mode::Land, "{}", bench.log);
    }
}
