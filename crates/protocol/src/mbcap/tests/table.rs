//! What follows from every state under every input, as the lower and as the higher of two: the snapshot has it
//! for each pair, the document gathers what has the same consequence (`UPDATE_DOCS=1 cargo test -p
//! wingbeat-protocol` writes it).

use super::driver::{CLIMB, Driver, ELSEWHERE, HERE, LAST, NEAR, THROUGH_US, beacon};
use super::*;
use std::fmt::Write as _;
use std::string::ToString as _;

/// Which of two aircraft can come into a state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Both,
    Lower,
    Higher,
}

type State = (&'static str, Of, fn(&mut Driver));
type Step = (&'static str, fn(&mut Driver));

/// Every state, with what it waits for, some seconds after it began.
const STATES: [State; 30] = [
    ("Start", Of::Both, |_| {}),
    ("Setup", Of::Both, |d| d.command(Command::Setup)),
    ("SetupFinished", Of::Both, Driver::set_up),
    ("TakingOff, not armed yet", Of::Both, |d| {
        d.set_up();
        d.command(Command::Start);
    }),
    ("TakingOff", Of::Both, Driver::take_off),
    ("Normal", Of::Both, Driver::normal),
    ("Normal, ordered to hold", Of::Both, Driver::ordered_to_hold),
    ("Normal, braking", Of::Both, |d| {
        d.ordered_to_hold();
        d.fly(HERE, 8.0);
        d.done();
    }),
    ("StandStill", Of::Both, Driver::stand_still),
    ("StandStill, ordered to resume", Of::Both, |d| match d.me < d.other {
        true => {
            d.stand_still();
            d.lands();
            d.check();
        }
        false => d.ordered_to_pass(),
    }),
    ("MovingAside", Of::Lower, Driver::moving_aside),
    ("MovingAside, ordered to resume", Of::Lower, |d| {
        d.moving_aside();
        d.lands();
        d.check();
    }),
    ("GoOnPlease", Of::Lower, Driver::go_on_please),
    ("GoOnPlease, ordered to resume", Of::Lower, |d| {
        d.go_on_please();
        d.receive(Beacon { event: 1, ..beacon(Avoidance::Normal, None, ELSEWHERE) });
        d.check();
    }),
    ("Overtaking", Of::Higher, Driver::overtaking),
    ("EmergencyLand", Of::Both, Driver::emergency_land),
    ("Holding", Of::Both, |d| {
        d.normal();
        d.feed(Input::Failed(Order::Resume));
    }),
    ("Landing", Of::Both, Driver::landing),
    ("Aborted (Hold)", Of::Both, |d| {
        d.normal();
        d.command(Command::Hold);
    }),
    ("Aborted (Return)", Of::Both, |d| {
        d.normal();
        d.command(Command::Return);
    }),
    ("Aborted (Land)", Of::Both, |d| {
        d.normal();
        d.command(Command::Land);
    }),
    ("Aborted, on the ground", Of::Both, |d| {
        d.normal();
        d.command(Command::Land);
        d.disarm();
    }),
    ("Finished", Of::Both, |d| {
        d.landing();
        d.disarm();
    }),
    ("Aborted (Return), seen", Of::Both, Driver::returning),
    ("Returning, Normal, ordered to hold", Of::Both, Driver::returning_ordered_to_hold),
    ("Returning, StandStill", Of::Both, Driver::returning_stand_still),
    ("Returning, MovingAside", Of::Lower, |d| {
        d.returning_stand_still();
        d.mutual(Avoidance::StandStill, THROUGH_US);
        d.wait(1);
    }),
    ("Returning, GoOnPlease", Of::Lower, |d| {
        d.returning_stand_still();
        d.mutual(Avoidance::StandStill, ELSEWHERE);
        d.wait(1);
    }),
    ("Returning, GoOnPlease, ordered to return", Of::Lower, |d| {
        d.returning_stand_still();
        d.mutual(Avoidance::StandStill, ELSEWHERE);
        d.wait(1);
        d.receive(Beacon { event: 1, ..beacon(Avoidance::Normal, None, ELSEWHERE) });
        d.check();
    }),
    ("Returning, Overtaking", Of::Higher, |d| {
        d.returning_stand_still();
        d.mutual(Avoidance::GoOnPlease, ELSEWHERE);
        d.wait(1);
        d.done();
        d.wait(6);
    }),
];

/// Every input; after each comes one check.
const INPUTS: [Step; 48] = [
    ("a check", |_| {}),
    ("a risk", |d| d.receive(beacon(Avoidance::Normal, None, NEAR))),
    ("it is in conflict with no aircraft", |d| d.receive(beacon(Avoidance::Normal, None, ELSEWHERE))),
    ("it is in conflict with a third", |d| d.receive(beacon(Avoidance::StandStill, Some(9), ELSEWHERE))),
    ("mutual, it is Normal", |d| d.mutual(Avoidance::Normal, ELSEWHERE)),
    ("mutual, it is in StandStill", |d| d.mutual(Avoidance::StandStill, ELSEWHERE)),
    ("mutual, it is in StandStill, we are in its way", |d| d.mutual(Avoidance::StandStill, THROUGH_US)),
    ("mutual, it is MovingAside", |d| d.mutual(Avoidance::MovingAside, ELSEWHERE)),
    ("mutual, it is in GoOnPlease", |d| d.mutual(Avoidance::GoOnPlease, ELSEWHERE)),
    ("mutual, it is Overtaking", |d| d.mutual(Avoidance::Overtaking, ELSEWHERE)),
    ("mutual, it is in EmergencyLand", |d| d.mutual(Avoidance::EmergencyLand, ELSEWHERE)),
    ("mutual, it lands", Driver::lands),
    ("it has passed", |d| {
        d.mutual(Avoidance::Overtaking, ELSEWHERE);
        d.receive(Beacon { event: 2, ..beacon(Avoidance::Normal, None, ELSEWHERE) });
    }),
    ("120 s, it is there", |d| d.until(121, |d| d.mutual(Avoidance::Overtaking, ELSEWHERE))),
    ("120 s, it is silent", |d| d.until(121, |_| {})),
    ("60 s pass", |d| d.until(60, |_| {})),
    ("standing", |d| d.fly(HERE, 0.0)),
    ("fast", |d| d.fly(HERE, 10.0)),
    ("fast for 6 s", |d| d.until(6, |d| d.fly(HERE, 10.0))),
    ("standing at the position aside", |d| {
        if let Some(aside) = d.protocol.details().avoidance.and_then(|a| a.aside) {
            d.at.position = aside;
        }
        d.at.velocity_m_s = DVec3::ZERO;
        d.report();
    }),
    ("both the other and the risk recede", |d| {
        d.mutual(Avoidance::GoOnPlease, ELSEWHERE);
        d.at.velocity_m_s = DVec3::new(0.0, -10.0, 0.0);
        for step in 1..=3 {
            let at = DVec3::new(HERE.0, -10.0 * f64::from(step), 20.0);
            d.at.position = Frame::new(HOME).to_position(at);
            d.report();
        }
    }),
    ("over the last waypoint", |d| {
        d.at.position = Frame::new(HOME).to_position(DVec3::new(LAST.0, LAST.1, 20.0));
        d.feed(Input::Reached(1));
        d.report();
    }),
    ("a waypoint that the mission does not have", |d| d.feed(Input::Reached(2))),
    ("disarmed", Driver::disarm),
    ("no report for 20 s", |d| d.now = d.now + Duration::from_secs(20)),
    ("loading done", |d| d.feed(Input::Done(Order::LoadRoute))),
    ("loading failed", |d| d.feed(Input::Failed(Order::LoadRoute))),
    ("take-off done", |d| d.feed(Input::Done(CLIMB))),
    ("take-off failed", |d| d.feed(Input::Failed(CLIMB))),
    ("hold done, standing", |d| d.feed(Input::Done(Order::Hold))),
    ("hold done, fast", |d| {
        d.fly(HERE, 10.0);
        d.feed(Input::Done(Order::Hold));
    }),
    ("hold failed", |d| d.feed(Input::Failed(Order::Hold))),
    ("resume done", |d| d.feed(Input::Done(Order::Resume))),
    ("resume failed", |d| d.feed(Input::Failed(Order::Resume))),
    ("flight aside failed", |d| d.feed(Input::Failed(Order::FlyTo(point(DVec2::ZERO, 20.0))))),
    ("landing done", |d| d.feed(Input::Done(Order::Land))),
    ("landing failed", |d| d.feed(Input::Failed(Order::Land))),
    ("return done", |d| d.feed(Input::Done(Order::Return))),
    ("return failed", |d| d.feed(Input::Failed(Order::Return))),
    ("taken over: holds", |d| d.feed(Input::TakenOver(EndFlight::Hold))),
    ("taken over: returns", |d| d.feed(Input::TakenOver(EndFlight::Return))),
    ("operator: setup", |d| d.command(Command::Setup)),
    ("operator: start", |d| d.command(Command::Start)),
    ("operator: hold", |d| d.command(Command::Hold)),
    ("operator: return", |d| d.command(Command::Return)),
    ("operator: land", |d| d.command(Command::Land)),
    ("operator: exclude", |d| d.command(Command::Exclude { member: VehicleId(d.other) })),
    ("operator: a new mission", |d| {
        let mission = [point(DVec2::ZERO, 20.0), point(DVec2::new(0.0, 90.0), 20.0)];
        d.refused = d.protocol.set_mission(&mission, MissionExtras::NONE).is_err();
    }),
];

/// What follows: `stays`, `refused`, or the orders and the next state.
fn consequence(state: State, input: Step, me: u64, other: u64) -> String {
    let mut driver = Driver::new(me, other);
    (state.2)(&mut driver);
    driver.wait(1);
    let before = driver.name();
    assert!(state.0.starts_with(&before), "{}: found {before}", state.0);
    driver.orders.clear();
    (input.1)(&mut driver);
    if driver.orders.is_empty() && driver.name() == before {
        driver.check();
    }
    let mut text: Vec<String> = driver.orders.iter().map(|o| format!("asks for {o}")).collect();
    if driver.name() != before {
        text.push(format!("→ {}", driver.name()));
    }
    match (driver.refused, text.is_empty()) {
        (true, _) => "refused".to_string(),
        (false, true) => "stays".to_string(),
        (false, false) => text.join(" "),
    }
}

/// The consequence for both of two, where they differ.
fn cell(state: State, input: Step) -> String {
    let (lower, higher) = (|| consequence(state, input, 1, 2), || consequence(state, input, 2, 1));
    match state.1 {
        Of::Lower => lower(),
        Of::Higher => higher(),
        Of::Both => match (lower(), higher()) {
            (lower, higher) if lower == higher => lower,
            (lower, higher) => format!("lower: {lower}; higher: {higher}"),
        },
    }
}

#[test]
fn mbcap_10_the_transition_table() {
    let mut table = String::new();
    for state in STATES {
        writeln!(table, "{}", state.0).unwrap();
        for input in INPUTS {
            writeln!(table, "  {}: {}", input.0, cell(state, input)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn mbcap_10_the_document_matches_the_code() {
    const BEGIN: &str = "<!-- transitions: written by UPDATE_DOCS=1 cargo test -p wingbeat-protocol -->\n";
    const END: &str = "<!-- end of transitions -->\n";
    // For each input, which states it leads where; then the inputs that lead the same states to the same place.
    let mut rows: Vec<(Vec<&str>, String, Vec<&str>)> = Vec::new();
    for input in INPUTS {
        let mut cells: Vec<(String, Vec<&str>)> = Vec::new();
        for state in STATES {
            let cell = cell(state, input);
            match cells.iter_mut().find(|(known, _)| *known == cell) {
                Some((_, states)) => states.push(state.0),
                None => cells.push((cell, vec![state.0])),
            }
        }
        for (cell, states) in cells.into_iter().filter(|(cell, _)| cell != "stays") {
            match rows.iter_mut().find(|row| row.0 == states && row.1 == cell) {
                Some((_, _, inputs)) => inputs.push(input.0),
                None => rows.push((states, cell, vec![input.0])),
            }
        }
    }
    rows.sort_by_key(|(states, ..)| STATES.iter().position(|s| s.0 == states[0]));
    let mut table = String::from("| in | input | what follows |\n|---|---|---|\n");
    for (states, cell, inputs) in rows {
        let others: Vec<&str> = STATES.iter().map(|s| s.0).filter(|s| !states.contains(s)).collect();
        let states = match others.len() {
            0 => String::from("any"),
            1..6 => format!("any but {}", others.join("; ")),
            _ => states.join("; "),
        };
        writeln!(table, "| {states} | {} | {cell} |", inputs.join("; ")).unwrap();
    }
    let same = INPUTS.iter().filter(|&&i| STATES.iter().all(|&s| cell(s, i) == "stays")).map(|i| i.0);
    let same: Vec<&str> = same.collect();
    writeln!(table, "| any | {} | stays |", same.join("; ")).unwrap();
    writeln!(table, "| any | any other of the {} inputs | stays |", INPUTS.len()).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/mbcap.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the marker of the table");
    let (found, after) = rest.split_once(END).expect("the marker after the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(table.lines()) {
        assert_eq!(found, expected, "docs/protocols/mbcap.md against the code");
    }
    assert_eq!(found.lines().count(), table.lines().count(), "docs/protocols/mbcap.md against the code");
}
