//! What follows from every state under every input, as a snapshot.

extern crate std;

use std::fmt::Write as _;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use wingbeat_wire::Message;

use super::*;

/// One flight before, while and after something happens to it.
struct Case {
    mission: Mission,
    now_s: u64,
    at: Telemetry,
    seen: Vec<String>,
}

impl Case {
    /// On the ground, with a mission of three waypoints.
    fn new() -> Self {
        let mut mission = Mission::new(Config::new(VehicleId(1)));
        mission.set_mission(&[waypoint(0.0), waypoint(100.0), waypoint(200.0)], MissionExtras::NONE).unwrap();
        let mut case = Self { mission, now_s: 0, at: at(0.0, 0.0, false), seen: Vec::new() };
        case.report();
        case
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut out = Actions::new();
        self.mission.handle(second(self.now_s), input, &mut out);
        for action in out {
            match action {
                Action::Order(order) => self.seen.push(format!("asks for {order}")),
                Action::Refused(reason) => self.seen.push(format!("refuses it: {reason}")),
                Action::Broadcast { message, .. } => panic!("broadcasts {message:?}"),
                Action::PassOn => panic!("passes a command on"),
                Action::Log(..) => {}
            }
        }
    }

    fn report(&mut self) {
        self.feed(Input::Telemetry(self.at));
    }

    /// Flies there at that speed.
    fn fly(&mut self, east_m: f64, speed_m_s: f64) {
        self.at = at(east_m, speed_m_s, true);
        self.report();
    }

    fn disarm(&mut self) {
        self.at.armed = false;
        self.report();
    }

    /// As the operator's command comes through the agent: asked for permission first.
    fn command(&mut self, command: Command) {
        match self.mission.permits(command) {
            Ok(()) => self.feed(Input::Operator(command)),
            Err(why) => self.seen.push(format!("refused: {why}")),
        }
    }

    fn setup(&mut self) {
        self.command(Command::Setup);
        self.feed(Input::Done(Order::LoadRoute));
    }

    fn take_off(&mut self) {
        self.setup();
        self.command(Command::Start);
    }

    fn flying(&mut self) {
        self.take_off();
        self.fly(1.0, 5.0);
        self.feed(Input::Done(CLIMB));
    }

    fn landing(&mut self) {
        self.flying();
        (0..3).for_each(|w| self.feed(Input::Reached(w)));
        self.fly(199.0, 1.0);
    }

    fn name(&self) -> String {
        format!("{} ({})", self.mission.view().state, self.mission.details().line)
    }
}

type Step = (&'static str, fn(&mut Case));

const STATES: [Step; 15] = [
    ("Start", |_| {}),
    ("Start, armed by hand", |c| c.fly(0.0, 0.0)),
    ("Setup", |c| c.command(Command::Setup)),
    ("SetupFinished", Case::setup),
    ("TakingOff, not armed yet", Case::take_off),
    ("TakingOff", |c| {
        c.take_off();
        c.fly(1.0, 0.0);
    }),
    ("Flying", Case::flying),
    ("Flying on the last leg", |c| {
        c.flying();
        (0..2).for_each(|w| c.feed(Input::Reached(w)));
    }),
    ("Holding", |c| {
        c.flying();
        c.feed(Input::Failed(Order::Resume));
    }),
    ("Landing", Case::landing),
    ("Finished", |c| {
        c.landing();
        c.disarm();
    }),
    ("Aborted: Hold", |c| {
        c.flying();
        c.command(Command::Hold);
    }),
    ("Aborted: Return", |c| {
        c.flying();
        c.command(Command::Return);
    }),
    ("Aborted: Land", |c| {
        c.flying();
        c.command(Command::Land);
    }),
    ("Aborted: Land, on the ground", |c| {
        c.flying();
        c.command(Command::Land);
        c.disarm();
    }),
];

const INPUTS: [Step; 36] = [
    ("a second passes", |c| c.feed(Input::Wake)),
    ("60 s pass", |c| {
        c.now_s += 60;
        c.feed(Input::Wake);
    }),
    ("flies", |c| c.fly(50.0, 8.0)),
    ("stands for 11 s", |c| {
        c.now_s += 11;
        c.fly(50.0, 0.0);
    }),
    ("flies over the last waypoint", |c| c.fly(199.0, 5.0)),
    ("stands over the last waypoint for 11 s", |c| {
        c.now_s += 11;
        c.fly(199.5, 0.1);
    }),
    ("disarmed", Case::disarm),
    ("reached the first waypoint", |c| c.feed(Input::Reached(0))),
    ("reached all waypoints, far from the last", |c| {
        (0..3).for_each(|w| c.feed(Input::Reached(w)));
        c.fly(150.0, 8.0);
    }),
    ("reached all waypoints, over the last", |c| {
        (0..3).for_each(|w| c.feed(Input::Reached(w)));
        c.fly(199.0, 1.0);
    }),
    ("reached a waypoint that the mission does not have", |c| c.feed(Input::Reached(3))),
    ("loading done", |c| c.feed(Input::Done(Order::LoadRoute))),
    ("take-off done", |c| c.feed(Input::Done(CLIMB))),
    ("resume done", |c| c.feed(Input::Done(Order::Resume))),
    ("hold done", |c| c.feed(Input::Done(Order::Hold))),
    ("return done", |c| c.feed(Input::Done(Order::Return))),
    ("landing done", |c| c.feed(Input::Done(Order::Land))),
    ("loading failed", |c| c.feed(Input::Failed(Order::LoadRoute))),
    ("take-off failed", |c| c.feed(Input::Failed(CLIMB))),
    ("resume failed", |c| c.feed(Input::Failed(Order::Resume))),
    ("hold failed", |c| c.feed(Input::Failed(Order::Hold))),
    ("return failed", |c| c.feed(Input::Failed(Order::Return))),
    ("landing failed", |c| c.feed(Input::Failed(Order::Land))),
    ("a message of another aircraft", |c| {
        let message = Message::Beacon(wingbeat_wire::Beacon::default());
        c.feed(Input::Message { from: VehicleId(2), flight: 0, message: &message });
    }),
    ("taken over: holds", |c| c.feed(Input::TakenOver(EndFlight::Hold))),
    ("taken over: returns", |c| c.feed(Input::TakenOver(EndFlight::Return))),
    ("battery low: returns", |c| c.feed(Input::BatteryLow(EndFlight::Return))),
    ("operator: setup", |c| c.command(Command::Setup)),
    ("operator: start", |c| c.command(Command::Start)),
    ("operator: hold", |c| c.command(Command::Hold)),
    ("operator: return", |c| c.command(Command::Return)),
    ("operator: land", |c| c.command(Command::Land)),
    ("operator: resume", |c| c.command(Command::Resume)),
    ("operator: exclude", |c| c.command(Command::Exclude { member: VehicleId(2) })),
    ("operator: a new mission", |c| {
        let taken = c.mission.set_mission(&[waypoint(0.0), waypoint(90.0)], MissionExtras::NONE);
        c.seen.push(taken.map_or_else(|why| format!("refused: {why}"), |()| String::from("taken")));
    }),
    ("operator: a mission of one waypoint", |c| {
        let taken = c.mission.set_mission(&[waypoint(0.0)], MissionExtras::NONE);
        c.seen.push(taken.map_or_else(|why| format!("refused: {why}"), |()| String::from("taken")));
    }),
];

/// What follows: `stays`, or what is asked for and the next state.
fn consequence(state: Step, input: Step) -> String {
    let mut case = Case::new();
    case.now_s = 10;
    (state.1)(&mut case);
    let found = case.mission.view().state.to_string();
    assert!(state.0.starts_with(&found), "{}: found {found}", state.0);
    let before = case.name();
    case.seen.clear();
    case.now_s += 1;
    // Its reports come all the time.
    if let Some(telemetry) = case.mission.flight.telemetry().copied() {
        case.feed(Input::Telemetry(telemetry));
    }
    case.seen.clear();
    (input.1)(&mut case);
    if case.name() != before {
        case.seen.push(format!("→ {}", case.name()));
    }
    if case.seen.is_empty() { String::from("stays") } else { case.seen.join(", ") }
}

#[test]
fn the_transition_table() {
    let mut table = String::new();
    for state in STATES {
        writeln!(table, "{}", state.0).unwrap();
        for input in INPUTS {
            writeln!(table, "  {}: {}", input.0, consequence(state, input)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
