//! One agent and an autopilot that is a few lines: what it receives and sends, with explicit times. Whole
//! flights are flown against the simulated flight controller, in the bench's tests.

// SET_MODE and its kin are what ArduCopter 3.5.7 understands.
#![allow(deprecated)]

extern crate std;
use std::vec::Vec as StdVec;

mod bad_beacons;
mod batteries;
mod coordination;
mod identity;
mod probes;
mod region;
mod rejoin;
mod start_gate;

use wingbeat_autopilot::codec::{MavHeader, encode_v2};
use wingbeat_autopilot::dialect::{
    AUTOPILOT_VERSION_DATA, EKF_STATUS_REPORT_DATA, EkfStatusFlags, GLOBAL_POSITION_INT_DATA,
    GPS_RAW_INT_DATA, GpsFixType, HEARTBEAT_DATA, HOME_POSITION_DATA, MavAutopilot, MavMessage, MavModeFlag,
    MavParamError, MavParamType, MavSeverity, MavType, PARAM_ERROR_DATA, PARAM_VALUE_DATA, STATUSTEXT_DATA,
    SYS_STATUS_DATA, SYSTEM_TIME_DATA,
};
use wingbeat_wire::{Ending, Message, Roster, Signer, VehicleId};

use wingbeat_geo::Duration;

use super::*;
use crate::guardian::{Activity, Before, Modes, Pulse};
use wingbeat_protocol::{mbcap, muscop};

struct Bench {
    agent: Agent,
    now: Instant,
    mode: u32,
    armed: bool,
    height_mm: i32,
    /// Latitude and longitude, 1e-7 degree.
    at_e7: (i32, i32),
    /// What the EKF reports of itself.
    estimate: EkfStatusFlags,
    /// What the agent sent to the autopilot in the last step.
    sent: StdVec<MavMessage>,
    datagrams: StdVec<Datagram>,
    log: StdVec<LogEntry>,
}

impl Bench {
    /// A lone aircraft with a mission.
    fn new() -> Self {
        Self::with(muscop::Config::new(VehicleId(1), VehicleId(1), 1).into())
    }

    fn with(coordination: Coordination) -> Self {
        let mut config = Config::new(coordination);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let mut bench = Self {
            agent: Agent::new(config, 1, Instant::ZERO).unwrap(),
            now: Instant::ZERO,
            mode: 0,
            armed: false,
            height_mm: 0,
            at_e7: (394_825_940, -3_462_650),
            estimate: EkfStatusFlags::EKF_POS_HORIZ_ABS,
            sent: StdVec::new(),
            datagrams: StdVec::new(),
            log: StdVec::new(),
        };
        let point =
            |n| Point { latitude_e7: 394_825_940 + n * 9_000, longitude_e7: -3_462_650, height_mm: 20_000 };
        assert_eq!(bench.feed(Input::Mission(&[point(0), point(1)])), Some(Reply::Accepted));
        bench
    }

    fn feed(&mut self, input: Input<'_>) -> Option<Reply> {
        let mut out = Outputs::default();
        self.agent.handle(self.now, input, &mut out);
        Decoder::default().push(&out.autopilot, |f| self.sent.push(f.message));
        self.datagrams.extend(out.datagrams.iter().map(|draft| draft.read().unwrap()));
        self.log.extend(out.log);
        out.reply
    }

    /// Bytes from the radio.
    fn receive_datagram(&mut self, bytes: &[u8]) {
        self.feed(Input::Datagram(Roster::insecure().open(bytes)));
    }

    /// Content that its sender sealed.
    fn receive_content(&mut self, content: &[u8]) {
        let mut draft = Draft::of_content(content).unwrap();
        self.receive_datagram(Signer::insecure().seal(&mut draft));
    }

    /// A second passes: the autopilot reports, the agent is woken.
    fn second(&mut self) {
        self.sent.clear();
        let armed = if self.armed { MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED } else { MavModeFlag::empty() };
        let messages = [
            MavMessage::HEARTBEAT(HEARTBEAT_DATA {
                custom_mode: self.mode,
                mavtype: MavType::MAV_TYPE_QUADROTOR,
                autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | armed,
                ..HEARTBEAT_DATA::default()
            }),
            MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA {
                flags: self.estimate,
                ..Default::default()
            }),
            MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA {
                fix_type: GpsFixType::GPS_FIX_TYPE_3D_FIX,
                satellites_visible: 12,
                ..Default::default()
            }),
            MavMessage::HOME_POSITION(HOME_POSITION_DATA {
                latitude: 394_825_940,
                longitude: -3_462_650,
                ..Default::default()
            }),
            MavMessage::SYS_STATUS(SYS_STATUS_DATA {
                voltage_battery: 12_400,
                battery_remaining: 95,
                ..Default::default()
            }),
            MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
                lat: self.at_e7.0,
                lon: self.at_e7.1,
                relative_alt: self.height_mm,
                ..Default::default()
            }),
        ];
        let mut bytes = Vec::<u8, 512>::new();
        for (i, message) in messages.iter().enumerate() {
            let header = MavHeader { system_id: 1, component_id: 1, sequence: i as u8 };
            encode_v2(header, message, &mut bytes).unwrap();
        }
        self.feed(Input::Autopilot(&bytes));
        for _ in 0..5 {
            self.now = self.now + Duration::from_millis(200);
            let before = self.sent.len();
            self.feed(Input::Wake);
            self.answer_parameters(before);
        }
    }

    /// Answers requests for parameters that were sent since: it has none.
    fn answer_parameters(&mut self, since: usize) {
        let name_of = |message: &MavMessage| match message {
            MavMessage::PARAM_REQUEST_READ(request) => Some(request.param_id),
            _ => None,
        };
        let names: StdVec<_> = self.sent[since..].iter().filter_map(name_of).collect();
        for param_id in names {
            self.receive(&MavMessage::PARAM_ERROR(PARAM_ERROR_DATA {
                param_index: -1,
                param_id,
                error: MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST,
                ..PARAM_ERROR_DATA::default()
            }));
        }
    }

    /// One message of the autopilot, with no time passing.
    fn receive(&mut self, message: &MavMessage) {
        let mut bytes = Vec::<u8, 300>::new();
        encode_v2(MavHeader { system_id: 1, component_id: 1, sequence: 0 }, message, &mut bytes).unwrap();
        self.feed(Input::Autopilot(&bytes));
    }

    fn position(&mut self) {
        self.receive(&MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
            lat: self.at_e7.0,
            lon: self.at_e7.1,
            relative_alt: self.height_mm,
            ..Default::default()
        }));
    }

    /// What the datagrams say of how the flight ends; nothing else is among them.
    fn endings(&self) -> StdVec<Ending> {
        let mut endings: StdVec<_> = self
            .datagrams
            .iter()
            .map(|datagram| match datagram.message {
                Message::Leaving { how, .. } => how,
                ref other => panic!("{other:?}"),
            })
            .collect();
        endings.dedup();
        endings
    }

    fn asked_for_mode(&self, mode: Mode) -> bool {
        self.sent.iter().any(|m| matches!(m, MavMessage::SET_MODE(s) if s.custom_mode == mode.number()))
    }

    fn commands_vehicle(&self) -> bool {
        let housekeeping = |m: &MavMessage| match m {
            MavMessage::HEARTBEAT(_)
            | MavMessage::REQUEST_DATA_STREAM(_)
            | MavMessage::PARAM_REQUEST_READ(_)
            | MavMessage::TIMESYNC(_) => true,
            MavMessage::COMMAND_LONG(c) => {
                use wingbeat_autopilot::dialect::MavCmd;
                let asks = [
                    MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES,
                    MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL,
                    MavCmd::MAV_CMD_GET_HOME_POSITION,
                ];
                asks.contains(&c.command)
            }
            _ => false,
        };
        self.sent.iter().any(|m| !housekeeping(m))
    }

    /// Until it is to take off.
    fn taking_off() -> Self {
        let mut bench = Self::new();
        bench.second();
        assert_eq!(bench.feed(Input::Operator { id: "s", command: Command::Setup }), Some(Reply::Accepted));
        // Skip the upload, which has tests of its own: the route counts as loaded.
        let done = wingbeat_protocol::Input::Done(wingbeat_protocol::Order::LoadRoute);
        bench.agent.executor.clear();
        let mut out = Outputs::default();
        bench.agent.protocol_input(bench.now, done, &mut out);
        bench
    }

    /// Until it climbs in guided mode.
    fn climbing() -> Self {
        let mut bench = Self::taking_off();
        for _ in 0..4 {
            bench.second();
            if bench.asked_for_mode(Mode::Guided) {
                bench.mode = Mode::Guided.number();
            }
            bench.armed |= bench.mode == Mode::Guided.number();
        }
        assert!(bench.armed && bench.agent.status(bench.now).state == StateId::TakingOff, "{:?}", bench.log);
        bench
    }
}

#[test]
fn sends_nothing_to_an_autopilot_without_heartbeats() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.now = bench.now + Duration::from_secs(1);
        bench.feed(Input::Wake);
    }
    assert!(bench.sent.is_empty());
    let status = bench.agent.status(bench.now);
    assert_eq!(status.flight_controller.link, LinkState::NeverSeen);
    assert_eq!(
        bench.feed(Input::Operator { id: "a", command: Command::Setup }),
        Some(Reply::Refused(Rejection::Check {
            name: "flight controller",
            detail: text!("no heartbeat received")
        }))
    );
}

#[test]
fn under_a_mode_that_we_did_not_request_nothing_is_commanded_and_the_position_is_broadcast() {
    let mut bench = Bench::climbing();
    bench.mode = Mode::Loiter.number();
    bench.second();
    let status = bench.agent.status(bench.now);
    assert!(!status.engaged && status.detail.contains("LOITER"), "{}", status.detail);
    // From then on: housekeeping, and where it is, whatever happens.
    bench.datagrams.clear();
    for _ in 0..60 {
        bench.second();
        assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
    }
    assert_eq!(bench.endings(), [Ending::Holding]);
    // What it is about to do, as far as its mode shows it.
    bench.mode = Mode::Rtl.number();
    bench.second();
    bench.datagrams.clear();
    bench.second();
    assert_eq!(bench.endings(), [Ending::Returning]);
    let refused = bench.feed(Input::Operator { id: "r", command: Command::Land });
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))));
    // Engaging needs the ground, or the pilot's consent.
    let refused = bench.feed(Input::Operator { id: "e", command: Command::Engage });
    assert!(matches!(refused, Some(Reply::Refused(_))));
    bench.armed = false;
    bench.second();
    assert_eq!(bench.feed(Input::Operator { id: "f", command: Command::Engage }), Some(Reply::Accepted));
    let status = bench.agent.status(bench.now);
    assert!(status.engaged && status.state == StateId::Start && status.route_len == 2);
}

#[test]
fn a_pilot_hands_the_aircraft_over_in_flight_by_switching_to_guided() {
    let mut bench = Bench::climbing();
    bench.mode = Mode::Loiter.number();
    bench.second();
    let engage = |bench: &mut Bench, id| bench.feed(Input::Operator { id, command: Command::Engage });
    assert!(matches!(engage(&mut bench, "a"), Some(Reply::Refused(Rejection::Armed))));
    bench.mode = Mode::Guided.number();
    bench.second();
    assert!(!bench.agent.status(bench.now).engaged, "not before the operator says so");
    // His hand may still be on the switch.
    assert!(matches!(engage(&mut bench, "b"), Some(Reply::Refused(Rejection::Armed))));
    bench.second();
    assert_eq!(engage(&mut bench, "c"), Some(Reply::Accepted));
    assert!(bench.asked_for_mode(Mode::Brake) && bench.agent.status(bench.now).engaged, "{:?}", bench.sent);
    bench.mode = Mode::Brake.number();
    bench.second();
    let land = bench.feed(Input::Operator { id: "l", command: Command::Land });
    assert!(land == Some(Reply::Accepted) && bench.asked_for_mode(Mode::Land), "{land:?} {:?}", bench.sent);
}

#[test]
fn after_a_ground_stations_command_nothing_is_commanded_before_its_frame_leaves() {
    let mut bench = Bench::climbing();
    bench.sent.clear();
    bench.feed(Input::GroundStation { what: "mode LOITER" });
    let status = bench.agent.status(bench.now);
    assert!(!status.engaged && status.detail.contains("mode LOITER"), "{}", status.detail);
    assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
    // The mode itself need not change for it.
    bench.datagrams.clear();
    for _ in 0..60 {
        bench.second();
        assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
    }
    assert_eq!(bench.endings(), [Ending::Holding]);
    let lines = bench.log.iter().filter(|e| e.text.contains("ground station")).count();
    bench.feed(Input::GroundStation { what: "mode RTL" });
    assert_eq!(bench.log.iter().filter(|e| e.text.contains("ground station")).count(), lines, "logged once");
}

#[test]
fn an_aircraft_in_flight_whose_ekf_has_lost_its_position_broadcasts_nothing() {
    let mut bench = Bench::climbing();
    for (estimate, is_heard) in [
        (EkfStatusFlags::EKF_POS_HORIZ_ABS, true),
        (EkfStatusFlags::EKF_CONST_POS_MODE, false),
        (EkfStatusFlags::EKF_POS_HORIZ_ABS, true),
    ] {
        bench.estimate = estimate;
        // The first second still holds what was reported before.
        (0..2).for_each(|_| bench.second());
        bench.datagrams.clear();
        bench.second();
        let is_adrift = |datagram: &Datagram| matches!(datagram.message, Message::Adrift { .. });
        assert_eq!(!bench.datagrams.iter().all(is_adrift), is_heard, "{estimate:?}");
    }
}

/// What its flight controller reports then is where it was last, and another would land on it.
#[test]
fn an_aircraft_that_landed_without_a_position_does_not_say_where_it_stands() {
    let mut bench = Bench::climbing();
    bench.estimate = EkfStatusFlags::EKF_CONST_POS_MODE;
    (0..4).for_each(|_| bench.second());
    bench.armed = false;
    bench.datagrams.clear();
    (0..4).for_each(|_| bench.second());
    assert!(bench.datagrams.is_empty(), "{:?}", bench.datagrams);
    bench.estimate = EkfStatusFlags::EKF_POS_HORIZ_ABS;
    (0..2).for_each(|_| bench.second());
    assert!(!bench.datagrams.is_empty());
}

#[test]
fn an_aircraft_in_flight_whose_flight_controller_is_silent_broadcasts_nothing() {
    let mut bench = Bench::climbing();
    bench.second();
    assert!(!bench.datagrams.is_empty());
    bench.now = bench.now + Duration::from_millis(1_100);
    bench.datagrams.clear();
    for _ in 0..100 {
        bench.feed(Input::Wake);
        bench.now = bench.now + Duration::from_millis(200);
    }
    assert!(bench.datagrams.is_empty(), "{:?}", bench.datagrams);
    bench.second();
    assert!(!bench.datagrams.is_empty(), "it knows again where it is");
}

#[test]
fn what_held_at_the_setup_is_checked_again_at_the_start() {
    let mut bench = Bench::climbing();
    let battery = |percent| SYS_STATUS_DATA {
        voltage_battery: 10_400,
        battery_remaining: percent,
        ..Default::default()
    };
    bench.receive(&MavMessage::SYS_STATUS(battery(29)));
    let start = |bench: &mut Bench, id| bench.feed(Input::Operator { id, command: Command::Start });
    let refused = start(&mut bench, "low");
    assert!(
        matches!(&refused, Some(Reply::Refused(Rejection::Check { name: "battery", .. }))),
        "{refused:?}"
    );
    // The motors turn, as they should: what refuses it then is that it is not in its slot yet.
    bench.receive(&MavMessage::SYS_STATUS(battery(30)));
    let refused = start(&mut bench, "enough");
    assert!(matches!(&refused, Some(Reply::Refused(Rejection::Command(_)))), "{refused:?}");
    // It may always come down.
    bench.receive(&MavMessage::SYS_STATUS(battery(0)));
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
}

#[test]
fn motors_that_another_starts_are_the_pilots() {
    let mut bench = Bench::new();
    bench.second();
    // Waiting for its setup, in the mode that it is in: it is armed by hand.
    bench.armed = true;
    bench.second();
    let status = bench.agent.status(bench.now);
    assert!(!status.engaged && status.detail.contains("armed in"), "{}", status.detail);
    let refused = bench.feed(Input::Operator { id: "r", command: Command::Land });
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
}

#[test]
fn one_that_is_in_the_air_in_a_pilots_mode_when_it_is_first_received_is_the_pilots() {
    // 1 is ACRO, which Wingbeat has no name for.
    for (mode, is_pilots) in [
        (Mode::Loiter.number(), true),
        (Mode::AltHold.number(), true),
        (1, true),
        (Mode::Guided.number(), false),
        (Mode::Land.number(), false),
    ] {
        let mut bench = Bench::new();
        (bench.armed, bench.mode, bench.height_mm) = (true, mode, 20_000);
        bench.second();
        assert_eq!(bench.agent.status(bench.now).engaged, !is_pilots, "mode {mode}");
    }
}

/// A mode that Wingbeat asks for too shows a pilot only where the guardian knows that it was not asked for.
#[test]
fn a_pilot_who_took_over_while_no_daemon_ran_keeps_the_aircraft_as_far_as_the_guardian_knows() {
    let none = Modes::default();
    let mut failed = StdVec::new();
    for mode in [Mode::Rtl, Mode::Land, Mode::Brake, Mode::Auto, Mode::Guided] {
        let (it, other) = (Modes::one(mode.number()), Modes::one(Mode::Loiter.number()));
        for (before, armed, has_pilot, obeys) in [
            (Before::Unknown, true, false, true),
            (Before::Ours(it), true, false, true),
            (Before::Ours(it.with(other)), true, false, true),
            (Before::Ours(other), true, true, false),
            // It was left with the motors off: another has armed it.
            (Before::Ours(none), true, true, false),
            (Before::Ours(none), false, false, true),
            (Before::Pilot, true, true, false),
            (Before::Pilot, false, false, true),
            (Before::Failsafe(it), true, false, true),
            (Before::Failsafe(other), true, true, false),
        ] {
            let mut bench = Bench::new();
            bench.feed(Input::Before(before));
            (bench.armed, bench.mode, bench.height_mm) = (armed, mode.number(), 20_000);
            bench.second();
            // Of an autopilot that was heard the agent knows more.
            bench.feed(Input::Before(Before::Pilot));
            bench.second();
            let is_pilots = bench.agent.taken_by_pilot().is_some();
            let is_obeyed = armed.then(|| bench.feed(Input::Operator { id: "l", command: Command::Land }));
            let is_obeyed = is_obeyed.is_none_or(|reply| reply == Some(Reply::Accepted));
            if (is_pilots, is_obeyed) != (has_pilot, obeys) {
                failed.push((mode, before, armed, is_pilots, is_obeyed));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn one_that_is_in_the_air_when_it_is_first_received_says_what_it_found_and_that_it_does_not_rejoin() {
    let said = |bench: &Bench, what: &str| bench.log.iter().filter(|entry| entry.text.contains(what)).count();
    for (mode, armed, times) in [(Mode::Brake, true, 1), (Mode::Brake, false, 0), (Mode::Loiter, true, 0)] {
        let mut bench = Bench::new();
        (bench.armed, bench.mode, bench.height_mm) = (armed, mode.number(), 20_000);
        for _ in 0..3 {
            bench.second();
        }
        assert_eq!(said(&bench, "in flight when first received: BRAKE, 20.0 m above home, at 39."), times);
        assert_eq!(said(&bench, "not rejoining"), times);
        let detail = bench.agent.status(bench.now).detail;
        assert_eq!(detail.starts_with("not rejoining"), times == 1, "{mode:?}: {detail}");
        assert!(detail.len() < detail.capacity(), "cut off: {detail}");
        if times == 1 {
            bench.armed = false;
            bench.second();
            assert!(!bench.agent.status(bench.now).detail.starts_with("not rejoining"), "it is down");
        }
    }
}

/// A failsafe that the autopilot announces a moment later was no pilot.
#[test]
fn a_failsafe_that_is_announced_after_the_restart_leaves_the_operator_the_end_of_the_flight() {
    let mut bench = Bench::new();
    bench.feed(Input::Before(Before::Pilot));
    (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Rtl.number(), 20_000);
    bench.second();
    assert!(bench.agent.taken_by_pilot().is_some_and(|by| by.contains("while no daemon ran: mode RTL")));
    bench.receive(&MavMessage::STATUSTEXT(STATUSTEXT_DATA {
        severity: MavSeverity::MAV_SEVERITY_WARNING,
        text: "Battery Failsafe".into(),
        ..Default::default()
    }));
    assert_eq!(bench.agent.taken_by_pilot(), None);
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
}

/// What the next daemon's guardian needs to know of this one.
#[test]
fn a_pulse_says_who_has_the_aircraft_and_in_which_mode() {
    let pulse = |bench: &Bench| {
        let Pulse { activity, ours, switch_channel, .. } = bench.agent.pulse(bench.now);
        (activity, ours, switch_channel)
    };
    let mut bench = Bench::new();
    assert_eq!(pulse(&bench), (Activity::Idle, Modes::default(), 0));
    bench.feed(Input::Before(Before::Failsafe(Modes::one(Mode::Rtl.number()))));
    (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Rtl.number(), 20_000);
    bench.second();
    assert_eq!(pulse(&bench).0, Activity::Failsafe);
    assert_eq!(pulse(&bench).1, Modes::one(Mode::Rtl.number()));
    let mut bench = Bench::new();
    (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Brake.number(), 20_000);
    bench.second();
    assert_eq!(pulse(&bench).0, Activity::IdleArmed);
    bench.mode = Mode::Loiter.number();
    bench.second();
    assert_eq!(pulse(&bench).0, Activity::Pilot);
}

/// The heartbeat shows the motors up to a second after the command: an agent that began anew meanwhile was armed, in state
/// Start, and never gave back the height of RTL.
#[test]
fn engaging_is_refused_while_the_motors_are_being_started() {
    use wingbeat_autopilot::dialect::MavCmd;
    let mut bench = Bench::taking_off();
    let starts = |m: &MavMessage| matches!(m, MavMessage::COMMAND_LONG(c) if c.command == MavCmd::MAV_CMD_COMPONENT_ARM_DISARM);
    while !bench.sent.iter().any(starts) {
        bench.second();
        if bench.asked_for_mode(Mode::Guided) {
            bench.mode = Mode::Guided.number();
        }
        assert!(bench.now < Instant::from_millis(20_000), "the motors are never started");
    }
    let engage = |bench: &mut Bench, id| bench.feed(Input::Operator { id, command: Command::Engage });
    assert_eq!(engage(&mut bench, "a"), Some(Reply::Refused(Rejection::Arming)));
    assert_eq!(bench.agent.status(bench.now).state, StateId::TakingOff);
    assert_eq!(
        bench.feed(Input::Operator { id: "h", command: Command::Hold }),
        Some(Reply::Accepted),
        "it can be stopped"
    );
    bench.second();
    assert_eq!(engage(&mut bench, "b"), Some(Reply::Accepted), "no motors, and none are being started");
}

/// Whether it flies, and who flies it, is not known before the first heartbeat: the latch of a pilot holds till then.
#[test]
fn engaging_needs_a_heartbeat() {
    let mut bench = Bench::new();
    bench.feed(Input::TakenBefore { by: "mode RTL" });
    let engage = |bench: &mut Bench, id| bench.feed(Input::Operator { id, command: Command::Engage });
    assert_eq!(engage(&mut bench, "early"), Some(Reply::Refused(Rejection::Unknown)));
    (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Rtl.number(), 20_000);
    bench.second();
    assert_eq!(engage(&mut bench, "in flight"), Some(Reply::Refused(Rejection::Armed)));
    assert_eq!(bench.agent.taken_by_pilot().map(|by| by.as_str()), Some("mode RTL"));
    bench.armed = false;
    bench.second();
    assert_eq!(engage(&mut bench, "on the ground"), Some(Reply::Accepted));
    assert_eq!(bench.agent.taken_by_pilot(), None);
}

/// Its targets are flown in GUIDED too: only a switch to GUIDED is a hand-over.
#[test]
fn a_ground_station_that_flies_in_guided_hands_nothing_over() {
    let mut bench = Bench::climbing();
    bench.feed(Input::GroundStation { what: "SET_POSITION_TARGET_GLOBAL_INT" });
    bench.second();
    let engage = |bench: &mut Bench, id| bench.feed(Input::Operator { id, command: Command::Engage });
    assert_eq!(engage(&mut bench, "a"), Some(Reply::Refused(Rejection::Armed)));
    for mode in [Mode::Loiter, Mode::Guided] {
        bench.mode = mode.number();
        bench.second();
    }
    bench.feed(Input::GroundStation { what: "COMMAND_LONG" });
    assert_eq!(engage(&mut bench, "b"), Some(Reply::Refused(Rejection::Armed)));
}

#[test]
fn after_setup_a_mode_and_a_restart_end_our_command_with_the_motors_off() {
    for restarts in [false, true] {
        let mut bench = Bench::new();
        bench.second();
        assert_eq!(bench.feed(Input::Operator { id: "s", command: Command::Setup }), Some(Reply::Accepted));
        assert!(bench.agent.status(bench.now).engaged);
        if restarts {
            let clock = |time_boot_ms| SYSTEM_TIME_DATA { time_boot_ms, ..SYSTEM_TIME_DATA::default() };
            bench.receive(&MavMessage::SYSTEM_TIME(clock(500_000)));
            bench.receive(&MavMessage::SYSTEM_TIME(clock(100)));
        } else {
            bench.mode = Mode::Loiter.number();
            bench.second();
        }
        assert!(!bench.agent.status(bench.now).engaged, "restarts: {restarts}");
        for _ in 0..60 {
            bench.second();
            assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
        }
    }
}

#[test]
fn a_failsafe_leaves_the_operator_his_emergency_commands_and_a_pilot_does_not() {
    let text = |bench: &mut Bench, line: &str| {
        let mut field = [0; 50];
        field[..line.len()].copy_from_slice(line.as_bytes());
        let severity = MavSeverity::MAV_SEVERITY_WARNING;
        bench.receive(&MavMessage::STATUSTEXT(STATUSTEXT_DATA {
            severity,
            text: field.into(),
            ..Default::default()
        }));
    };
    // The text comes before the heartbeat, and after it.
    let lines = ["Battery 1 low Failsafe", "Low battery", "EKF variance"];
    for (is_before, line) in
        [true, false].into_iter().flat_map(|is_before| lines.map(|line| (is_before, line)))
    {
        let mut bench = Bench::climbing();
        if is_before {
            text(&mut bench, line);
        }
        bench.mode = Mode::Rtl.number();
        bench.second();
        if !is_before {
            text(&mut bench, line);
        }
        assert!(bench.log.iter().any(|e| e.severity == Severity::Warning && e.text.contains(line)));
        let status = bench.agent.status(bench.now);
        assert!(!status.engaged && status.detail.contains(line), "{}", status.detail);
        bench.datagrams.clear();
        bench.second();
        assert_eq!(bench.endings(), [Ending::Returning]);
        // Not to go on with the mission, but to end the flight another way.
        let refused = bench.feed(Input::Operator { id: "t", command: Command::Start });
        assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
        assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
        assert!(bench.asked_for_mode(Mode::Land) && bench.agent.status(bench.now).engaged);
    }
    // A pilot's mode is the pilot's, whatever is announced beside it; and that a failsafe is over announces none.
    for (mode, line) in [(Mode::Loiter, "Radio Failsafe"), (Mode::Rtl, "Radio Failsafe Cleared")] {
        for is_before in [true, false] {
            let mut bench = Bench::climbing();
            if is_before {
                text(&mut bench, line);
            }
            bench.mode = mode.number();
            bench.second();
            if !is_before {
                text(&mut bench, line);
            }
            let refused = bench.feed(Input::Operator { id: "l", command: Command::Land });
            assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{line}: {refused:?}");
        }
    }
    // The operator hands it to the pilot while a failsafe speaks.
    let mut bench = Bench::climbing();
    bench.feed(Input::Operator { id: "r", command: Command::RecoverControl });
    text(&mut bench, "Radio Failsafe");
    let refused = bench.feed(Input::Operator { id: "l", command: Command::Land });
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
    // The pilot takes it from the failsafe at once.
    let mut bench = Bench::climbing();
    text(&mut bench, "Radio Failsafe");
    bench.mode = Mode::Rtl.number();
    bench.second();
    bench.mode = Mode::Loiter.number();
    bench.second();
    let refused = bench.feed(Input::Operator { id: "l", command: Command::Land });
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
    // The pilot, after the failsafe.
    let mut bench = Bench::climbing();
    text(&mut bench, "Radio Failsafe");
    bench.mode = Mode::Rtl.number();
    bench.second();
    for _ in 0..4 {
        bench.second();
    }
    bench.mode = Mode::Loiter.number();
    bench.second();
    let refused = bench.feed(Input::Operator { id: "l", command: Command::Land });
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
}

#[test]
fn an_emergency_command_waits_for_a_flight_controller_of_which_nothing_is_known() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
    // The first that is known: it flies.
    (bench.armed, bench.height_mm, bench.mode) = (true, 19_500, Mode::Guided.number());
    bench.second();
    bench.second();
    assert!(bench.commands_vehicle(), "{:?}", bench.log);
    // The first that is known: it stands on the ground.
    let mut bench = Bench::new();
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
    bench.second();
    bench.second();
    let stages: StdVec<_> = bench.agent.status(bench.now).commands.iter().map(|c| c.stage).collect();
    assert!(!bench.commands_vehicle() && stages == [Stage::EffectSeen], "{stages:?} {:?}", bench.log);
}

#[test]
fn after_a_gap_on_the_line_no_order_is_repeated_before_a_heartbeat_has_shown_the_mode() {
    let mut bench = Bench::climbing();
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
    assert!(bench.asked_for_mode(Mode::Land));
    // The line is cut; meanwhile a pilot takes LOITER.
    for _ in 0..20 {
        bench.now = bench.now + Duration::from_millis(200);
        bench.feed(Input::Wake);
    }
    bench.sent.clear();
    bench.position();
    assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
    bench.mode = Mode::Loiter.number();
    bench.second();
    assert!(!bench.agent.status(bench.now).engaged && !bench.commands_vehicle(), "{:?}", bench.sent);
}

#[test]
fn a_ground_station_that_sets_up_an_aircraft_at_rest_takes_nothing_over() {
    let mut bench = Bench::new();
    bench.second();
    bench.feed(Input::GroundStation { what: "MISSION_COUNT" });
    assert!(bench.agent.status(bench.now).engaged);
    // An order under way is at stake, motors or not.
    assert_eq!(bench.feed(Input::Operator { id: "s", command: Command::Setup }), Some(Reply::Accepted));
    assert!(bench.agent.executor.is_busy());
    bench.feed(Input::GroundStation { what: "MISSION_COUNT" });
    assert!(!bench.agent.status(bench.now).engaged);
}

#[test]
fn a_ground_stations_heartbeat_is_sent_while_a_console_holds_the_lease() {
    let mut bench = Bench::new();
    let beats = |bench: &mut Bench, seconds| {
        let mut count = 0;
        for _ in 0..seconds {
            bench.second();
            let of_station =
                |m: &&MavMessage| matches!(m, MavMessage::HEARTBEAT(h) if h.mavtype == MavType::MAV_TYPE_GCS);
            count += bench.sent.iter().filter(of_station).count();
        }
        count
    };
    assert_eq!(beats(&mut bench, 5), 0);
    bench.feed(Input::Lease(true));
    assert_eq!(beats(&mut bench, 5), 5);
    bench.feed(Input::Lease(false));
    assert_eq!(beats(&mut bench, 5), 0);
    // In flight they go on: the autopilot's failsafe must not end the flight because a console was lost.
    bench.feed(Input::Lease(true));
    bench.armed = true;
    assert_eq!(beats(&mut bench, 5), 5);
    bench.feed(Input::Lease(false));
    assert_eq!(beats(&mut bench, 20), 20);
    bench.armed = false;
    beats(&mut bench, 1);
    assert_eq!(beats(&mut bench, 5), 0);
    assert!(bench.agent.poll_timeout().0 > bench.now, "a lease that ended leaves no deadline behind");
}

#[test]
fn without_a_guardian_a_lease_and_the_autopilots_failsafe_permit_setup_until_another_station_beats() {
    let mut bench = Bench::new();
    bench.agent.config.companion_loss = CompanionLoss::FliesOn;
    let send = |bench: &mut Bench, system_id, message: &MavMessage| {
        let mut bytes = Vec::<u8, 300>::new();
        encode_v2(MavHeader { system_id, component_id: 1, sequence: 0 }, message, &mut bytes).unwrap();
        bench.feed(Input::Autopilot(&bytes));
    };
    let loss = |bench: &Bench| {
        let status = bench.agent.status(bench.now);
        let check = status.checks.iter().find(|c| c.name == "companion loss").unwrap();
        (check.passed, check.detail.clone())
    };
    bench.second();
    assert!(!loss(&bench).0 && loss(&bench).1.contains("FS_GCS_ENABLE"), "{:?}", loss(&bench));
    send(
        &mut bench,
        1,
        &MavMessage::AUTOPILOT_VERSION(AUTOPILOT_VERSION_DATA {
            flight_sw_version: 0x0305_07ff,
            ..AUTOPILOT_VERSION_DATA::default()
        }),
    );
    for (name, value) in [("SYSID_MYGCS", 255.0), ("FS_GCS_ENABLE", 1.0)] {
        let value = PARAM_VALUE_DATA {
            param_id: name.into(),
            param_value: value,
            param_type: MavParamType::MAV_PARAM_TYPE_INT16,
            ..PARAM_VALUE_DATA::default()
        };
        send(&mut bench, 1, &MavMessage::PARAM_VALUE(value));
    }
    assert!(loss(&bench).1.ends_with("no console holds the lease"), "{:?}", loss(&bench));
    bench.feed(Input::Lease(true));
    assert!(loss(&bench).0, "{:?}", loss(&bench));
    let beat = MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        mavtype: MavType::MAV_TYPE_GCS,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        ..HEARTBEAT_DATA::default()
    });
    send(&mut bench, 254, &beat);
    assert!(loss(&bench).0, "the autopilot does not count that one: {:?}", loss(&bench));
    send(&mut bench, 255, &beat);
    assert!(
        loss(&bench).1.ends_with("another ground station sends heartbeats as 255 too"),
        "{:?}",
        loss(&bench)
    );
    let reply = bench.feed(Input::Operator { id: "s", command: Command::Setup });
    assert!(
        matches!(&reply, Some(Reply::Refused(Rejection::Check { name: "companion loss", .. }))),
        "{reply:?}"
    );
    for _ in 0..10 {
        bench.second();
    }
    assert!(loss(&bench).0, "it is gone: {:?}", loss(&bench));
    assert_eq!(bench.feed(Input::Operator { id: "t", command: Command::Setup }), Some(Reply::Accepted));
}

#[test]
fn our_own_mode_changes_are_no_takeover() {
    let mut bench = Bench::climbing();
    assert_eq!(bench.feed(Input::Operator { id: "l", command: Command::Land }), Some(Reply::Accepted));
    assert!(bench.asked_for_mode(Mode::Land), "immediately");
    bench.mode = Mode::Land.number();
    bench.second();
    let status = bench.agent.status(bench.now);
    assert!(status.engaged);
    assert_eq!(status.commands.last().unwrap().stage, Stage::EffectSeen);
}

#[test]
fn a_landing_is_asked_for_until_it_is_seen() {
    let mut bench = Bench::climbing();
    bench.feed(Input::Operator { id: "l", command: Command::Land });
    let mut asked = 0;
    for _ in 0..60 {
        bench.second();
        asked += usize::from(bench.asked_for_mode(Mode::Land));
    }
    assert!(asked > 30, "{asked}");
    assert_eq!(bench.agent.status(bench.now).commands.last().unwrap().stage, Stage::Accepted);
}

#[test]
fn the_same_command_twice_is_one_command() {
    let mut bench = Bench::climbing();
    assert_eq!(bench.feed(Input::Operator { id: "h", command: Command::Hold }), Some(Reply::Accepted));
    assert_eq!(bench.feed(Input::Operator { id: "h", command: Command::Hold }), Some(Reply::AlreadyKnown));
    let long = "x".repeat(65);
    for id in ["", &long] {
        let reply = bench.feed(Input::Operator { id, command: Command::Hold });
        assert!(matches!(reply, Some(Reply::Refused(_))), "{id}");
    }
}

#[test]
fn recover_control_releases_the_sticks() {
    let mut bench = Bench::climbing();
    bench.sent.clear();
    assert_eq!(
        bench.feed(Input::Operator { id: "c", command: Command::RecoverControl }),
        Some(Reply::Accepted)
    );
    let released = |m: &MavMessage| matches!(m, MavMessage::RC_CHANNELS_OVERRIDE(r) if r.chan1_raw == 0 && r.chan3_raw == 0);
    assert!(bench.sent.iter().any(released));
    assert!(!bench.agent.status(bench.now).engaged);
}

#[test]
fn rubbish_is_counted_and_a_silent_autopilot_is_noticed() {
    let mut bench = Bench::new();
    bench.second();
    bench.feed(Input::Autopilot(&[0x55; 4000]));
    for bytes in [&[][..], &[9, 9, 9]] {
        bench.receive_datagram(bytes);
    }
    bench.receive_content(&[2, 3, 4]);
    bench.receive_content(&[1, 0, 0, 3]);
    let status = bench.agent.status(bench.now);
    assert!(status.flight_controller.refused.garbage_bytes > 3000);
    let count = |r: Refused| status.refused[r as usize];
    assert_eq!(
        [count(Refused::Empty), count(Refused::Version), count(Refused::Malformed), count(Refused::Own)],
        [1; 4]
    );
    for _ in 0..3 {
        bench.now = bench.now + Duration::from_secs(1);
        bench.feed(Input::Wake);
    }
    assert_eq!(bench.agent.status(bench.now).flight_controller.link, LinkState::Lost);
    assert!(
        bench.log.iter().any(|e| e.severity == Severity::Error
            && e.text.contains("nothing received from the flight controller"))
    );
}

#[test]
fn a_configuration_that_cannot_be_flown_is_named() {
    let error = |config| Agent::new(config, 1, Instant::ZERO).err().map(|e| std::format!("{e}"));
    let published = || muscop::Config::new(VehicleId(1), VehicleId(1), 3);
    let muscop = |change: fn(&mut muscop::Config)| {
        let mut config = published();
        change(&mut config);
        error(Config::new(config))
    };
    let mbcap = |change: fn(&mut mbcap::Config)| {
        let mut config = mbcap::Config::mbcap_e();
        change(&mut config);
        error(Config::new(config))
    };
    let config = |change: fn(&mut Config)| {
        let mut config = Config::new(published());
        change(&mut config);
        error(config)
    };
    assert_eq!((muscop(|_| {}), mbcap(|_| {})), (None, None));
    assert_eq!(muscop(|c| c.swarm.aircraft = 0).unwrap(), "muscop.aircraft: found 0, expected 1 to 128");
    assert!(muscop(|c| c.swarm.distance_m = f64::NAN).unwrap().starts_with("muscop.distance_m: found NaN"));
    assert!(muscop(|c| c.swarm.height_most_m = 1.0).unwrap().starts_with("fence.height_most_m: found 1"));
    assert!(mbcap(|c| c.height_least_m = 0.0).unwrap().starts_with("fence.height_least_m: found 0"));
    assert!(
        mbcap(|c| c.planned_speed_m_s = f64::NAN).unwrap().starts_with("mbcap.planned_speed_m_s: found NaN")
    );
    assert!(mbcap(|c| c.risk.distance_m = -1.0).unwrap().starts_with("mbcap.risk_distance_m: found -1"));
    assert!(
        mbcap(|c| c.check_period = Duration::ZERO).unwrap().starts_with("mbcap.check_period_ms: found 0")
    );
    assert!(
        config(|c| c.ground_station_system_id = 0).unwrap().starts_with("autopilot.ground_station_system_id")
    );
    assert_eq!(
        config(|c| c.separation.alarm_distance_m = 4.0).unwrap(),
        "separation.alarm_distance_m: found 4, expected at least 5 m: separation.collision_distance_m"
    );
    assert!(
        config(|c| c.separation.alarm_time_s = f64::NAN)
            .unwrap()
            .starts_with("separation.alarm_time_s: found NaN")
    );
    assert!(
        config(|c| c.separation.rule_vertical_m = 0.0)
            .unwrap()
            .starts_with("separation.rule_vertical_m: found 0")
    );
    assert!(
        config(|c| c.position_interval = Duration::ZERO)
            .unwrap()
            .starts_with("autopilot.position_interval_ms")
    );
}

/// Messages of the autopilot with this system id.
fn receive(bench: &mut Bench, system_id: u8, messages: &[MavMessage]) {
    let mut bytes = Vec::<u8, 512>::new();
    for message in messages {
        let header = MavHeader { system_id: system_id.into(), component_id: 1, sequence: 0 };
        encode_v2(header, message, &mut bytes).unwrap();
    }
    bench.feed(Input::Autopilot(&bytes));
}

fn heartbeat_of(autopilot: MavAutopilot, mavtype: MavType) -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        mavtype,
        autopilot,
        base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
        ..HEARTBEAT_DATA::default()
    })
}

#[test]
fn an_autopilot_that_is_not_arducopter_is_refused_by_name_and_never_commanded() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        let px4 = heartbeat_of(MavAutopilot::MAV_AUTOPILOT_PX4, MavType::MAV_TYPE_QUADROTOR);
        receive(&mut bench, 1, &[px4]);
        bench.now = bench.now + Duration::from_millis(500);
        bench.feed(Input::Wake);
    }
    let found = "found PX4 on a quadrotor, expected ArduCopter";
    let lines = bench.log.iter().filter(|e| e.severity == Severity::Error && e.text.contains(found));
    assert_eq!(lines.count(), 1, "{:?}", bench.log);
    let reply = bench.feed(Input::Operator { id: "s", command: Command::Setup });
    assert_eq!(
        reply,
        Some(Reply::Refused(Rejection::Check { name: "ArduCopter", detail: text!("{found}") }))
    );
    bench.feed(Input::Operator { id: "l", command: Command::Land });
    bench.feed(Input::Wake);
    assert!(!bench.commands_vehicle(), "{:?}", bench.sent);
}

#[test]
fn a_second_autopilot_is_not_listened_to() {
    let mut bench = Bench::climbing();
    let copter = heartbeat_of(MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA, MavType::MAV_TYPE_QUADROTOR);
    receive(&mut bench, 2, &[copter.clone(), copter]);
    bench.second();
    let status = bench.agent.status(bench.now);
    assert!(status.engaged, "its mode is not our aircraft's: {}", status.detail);
    assert_eq!(status.flight_controller.other_autopilots.heartbeats, 2);
    let logged = bench.log.iter().filter(|e| e.text.contains("found system 2, expected 1")).count();
    assert_eq!(logged, 1);
}

#[test]
fn after_a_reboot_everything_is_asked_anew() {
    let mut bench = Bench::new();
    let clock = |time_boot_ms| {
        MavMessage::SYSTEM_TIME(wingbeat_autopilot::dialect::SYSTEM_TIME_DATA {
            time_unix_usec: 0,
            time_boot_ms,
        })
    };
    let asked = |bench: &Bench| {
        let name = |m: &MavMessage| matches!(m, MavMessage::PARAM_REQUEST_READ(_));
        bench.sent.iter().filter(|m| name(m)).count()
    };
    for _ in 0..40 {
        bench.second();
    }
    assert_eq!(asked(&bench), 0, "no answer: no further request");
    receive(&mut bench, 1, &[clock(60_000), clock(1_000)]);
    bench.feed(Input::Wake);
    assert_eq!(asked(&bench), 4);
    let status = bench.agent.status(bench.now);
    assert_eq!((status.flight_controller.reboots, status.navigation), (1, None));
    assert!(bench.log.iter().any(|e| e.text.contains("rebooted")));
}

/// An autopilot with three parameters; whole numbers, but the second.
fn answer_as_three(bench: &mut Bench, reports: &mut StdVec<ParameterReport>, held: &mut [f32; 3]) {
    const NAMES: [&str; 3] = ["RTL_ALT", "ATC_RAT_RLL_P", "WPNAV_SPEED"];
    for _ in 0..40 {
        bench.now = bench.now + Duration::from_millis(100);
        let mut out = Outputs::default();
        bench.agent.handle(bench.now, Input::Wake, &mut out);
        let mut sent = StdVec::new();
        loop {
            Decoder::default().push(&out.autopilot, |f| sent.push(f.message));
            reports.extend(out.parameters.iter().copied());
            bench.log.extend(out.log.iter().cloned());
            let Some(message) = sent.pop() else { break };
            let which: StdVec<usize> = match message {
                MavMessage::PARAM_REQUEST_LIST(_) => StdVec::from([0, 2]),
                MavMessage::PARAM_REQUEST_READ(m) if m.param_index >= 0 => {
                    StdVec::from([m.param_index as usize])
                }
                MavMessage::PARAM_REQUEST_READ(m) => {
                    let name = wingbeat_autopilot::codec::text(&*m.param_id);
                    NAMES.iter().position(|n| *n == name).into_iter().collect()
                }
                MavMessage::PARAM_SET(m) => {
                    let name = wingbeat_autopilot::codec::text(&*m.param_id);
                    let at = NAMES.iter().position(|n| *n == name).unwrap();
                    held[at] = m.param_value;
                    StdVec::from([at])
                }
                _ => StdVec::new(),
            };
            let mut bytes = Vec::<u8, 280>::new();
            for i in which {
                let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
                let message = MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
                    param_id: NAMES[i].into(),
                    param_value: held[i],
                    param_count: 3,
                    param_index: i as u16,
                    param_type: match i {
                        1 => MavParamType::MAV_PARAM_TYPE_REAL32,
                        _ => MavParamType::MAV_PARAM_TYPE_INT16,
                    },
                });
                encode_v2(header, &message, &mut bytes).unwrap();
            }
            out = Outputs::default();
            if !bytes.is_empty() {
                bench.agent.handle(bench.now, Input::Autopilot(&bytes), &mut out);
            }
        }
    }
}

fn set(name: &str, value: f32) -> Input<'static> {
    Input::Parameters(ParameterOrder::Set { name: ParameterName::new(name).unwrap(), value })
}

#[test]
fn parameters_are_read_completely_and_set_with_proof() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(set("RTL_ALT", 1.0)), Some(Reply::Refused(Rejection::NotReceived)));
    bench.second();
    bench.second();
    let (mut reports, mut held) = (StdVec::new(), [1_500.0, 0.135, 500.0]);
    assert_eq!(bench.feed(Input::Parameters(ParameterOrder::ReadAll)), Some(Reply::Accepted));
    assert_eq!(bench.feed(set("RTL_ALT", 1.0)), Some(Reply::Refused(Rejection::UnderWay)));
    answer_as_three(&mut bench, &mut reports, &mut held);
    assert_eq!(reports.pop(), Some(ParameterReport::Ended(Ok(()))));
    let listed = |report: &ParameterReport| match report {
        ParameterReport::Listed(one) => (one.index, one.value),
        other => panic!("{other:?}"),
    };
    let mut read: StdVec<_> = reports.iter().map(listed).collect();
    read.sort_by_key(|(index, _)| *index);
    // The one that was lost was requested by its index.
    let values = [ParameterValue::Integer(1_500), ParameterValue::Real(0.135), ParameterValue::Integer(500)];
    assert_eq!(read, (0..).zip(values).collect::<StdVec<_>>());

    for (input, ended) in [
        (set("RTL_ALT", 2_000.0), None),
        (set("ATC_RAT_RLL_P", 0.2), None),
        (set("WPNAV_SPEED", 0.5), Some("parameter WPNAV_SPEED: found 0.5, expected a whole number")),
        (
            set("NO_SUCH", 1.0),
            Some("parameter NO_SUCH: no answer after 3 requests, expected a parameter of this autopilot"),
        ),
    ] {
        reports.clear();
        bench.second();
        assert_eq!(bench.feed(input), Some(Reply::Accepted));
        answer_as_three(&mut bench, &mut reports, &mut held);
        let Some(ParameterReport::Ended(result)) = reports.pop() else { panic!("{reports:?}") };
        assert_eq!(result.err().map(|why| std::format!("{why}")).as_deref(), ended);
        assert_eq!(reports.len(), usize::from(ended.is_none()), "{reports:?}");
    }
    assert_eq!(held, [2_000.0, 0.2, 500.0]);
    assert!(bench.log.iter().any(|line| line.text == "parameter RTL_ALT set from 1500 to 2000"));
}

#[test]
fn parameters_are_left_alone_while_armed_and_of_a_pilots_aircraft() {
    let mut bench = Bench::new();
    bench.second();
    bench.second();
    assert_eq!(bench.feed(set("RTL_ALT", 2_000.0)), Some(Reply::Accepted));
    bench.armed = true;
    bench.second();
    let is_write = |message: &MavMessage| matches!(message, MavMessage::PARAM_SET(_));
    assert!(!bench.sent.iter().any(is_write), "{:?}", bench.sent);
    let line = "reading and setting: found armed motors, expected disarmed ones";
    assert!(bench.log.iter().any(|entry| entry.text == line), "{:?}", bench.log);
    for input in [set("RTL_ALT", 2_000.0), Input::Parameters(ParameterOrder::ReadAll)] {
        assert_eq!(bench.feed(input), Some(Reply::Refused(Rejection::MotorsArmed)));
    }
    bench.armed = false;
    bench.second();
    bench.feed(Input::Operator { id: "take", command: Command::RecoverControl });
    let refused = bench.feed(set("RTL_ALT", 2_000.0));
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Disengaged(_)))), "{refused:?}");
    assert_eq!(bench.feed(Input::Parameters(ParameterOrder::ReadAll)), Some(Reply::Accepted));
}

#[test]
fn an_order_ends_what_was_asked_of_the_parameters_and_that_is_said() {
    let mut bench = Bench::new();
    bench.second();
    bench.second();
    assert_eq!(bench.feed(Input::Parameters(ParameterOrder::ReadAll)), Some(Reply::Accepted));
    bench.agent.executor.begin(Order::LoadRoute);
    let mut out = Outputs::default();
    bench.agent.handle(bench.now, Input::Wake, &mut out);
    let ended = |report: &ParameterReport| matches!(report, ParameterReport::Ended(Err(_)));
    assert!(out.parameters.iter().any(ended), "{:?}", out.parameters);
    let again = bench.feed(Input::Parameters(ParameterOrder::ReadAll));
    assert!(matches!(again, Some(Reply::Refused(Rejection::Underway(_)))), "{again:?}");
}
