//! What follows from every state under every input, as the lower and as the higher of two: the snapshot says it
//! for each pair, the document gathers what has the same consequence (`UPDATE_DOCS=1 cargo test -p
//! wingbeat-protocol` writes it).

use super::*;
use std::fmt::Write as _;
use std::format;
use std::string::{String, ToString as _};

/// When the input comes.
const NOW: Instant = Instant::from_secs(200);
/// Since when the state has lasted: longer than anything that waits in it, but for the deadlock's timer.
const SINCE: Instant = Instant::from_secs(190);
/// In [`HOME`]'s frame, where it is in every state.
const HERE: (f64, f64) = (-300.0, 0.0);

/// One protocol before, while and after something happens.
struct Case {
    protocol: Mbcap,
    me: u64,
    other: u64,
    now: Instant,
    at: Telemetry,
    orders: Vec<Order>,
    refused: bool,
}

impl Case {
    /// With a mission, on the ground.
    fn new(me: u64, other: u64) -> Self {
        let config = Config { me: VehicleId(me), ..Config::mbcap_e() };
        let mut protocol = Mbcap::new(config, me, Instant::ZERO);
        let mission = [HERE, (300.0, 0.0)].map(|(x, y)| point(DVec2::new(x, y), 20.0));
        protocol.set_mission(&mission).unwrap();
        let at = Telemetry {
            position: Frame::new(HOME).to_position(DVec3::new(HERE.0, HERE.1, 20.0)),
            height_m: 20.0,
            velocity_m_s: DVec3::ZERO,
            heading_rad: 0.0,
            armed: false,
            landing: false,
        };
        let mut case =
            Self { protocol, me, other, now: Instant::ZERO, at, orders: Vec::new(), refused: false };
        case.report();
        case
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut actions = Actions::new();
        self.protocol.handle(self.now, input, &mut actions);
        for action in actions {
            match action {
                Action::Order(order) => self.orders.push(order),
                Action::Refused(reason) => panic!("{reason}"),
                Action::Broadcast { .. } | Action::Log(..) => {}
            }
        }
    }

    fn report(&mut self) {
        self.feed(Input::Telemetry(self.at));
    }

    fn hear(&mut self, beacon: Beacon) {
        let from = VehicleId(self.other);
        self.feed(Input::Message { from, flight: 0, message: &Message::Beacon(beacon) });
    }

    /// It tells that it is in conflict with us.
    fn mutual(&mut self, state: Avoidance, at: &[(f64, f64)]) {
        self.hear(beacon(state, Some(self.me), at));
    }

    /// As the operator's command comes through the agent: asked for permission first.
    fn command(&mut self, command: Command) {
        match self.protocol.permits(command) {
            Ok(()) => self.feed(Input::Operator(command)),
            Err(_) => self.refused = true,
        }
    }

    /// In the air, on the mission, 10 s in this state.
    fn flying(&mut self, avoidance: Avoidance, doing: Option<Doing>) {
        self.feed(Input::Operator(Command::Setup));
        self.feed(Input::Done(Order::LoadRoute));
        self.feed(Input::Operator(Command::Start));
        self.at.armed = true;
        self.report();
        self.feed(Input::Done(Order::FlyRoute { height_mm: 20_000 }));
        self.feed(Input::Reached(0));
        let p = &mut self.protocol;
        (p.state, p.told.state, p.doing) = (State::Flying(avoidance), Some(avoidance), doing);
        if avoidance != Avoidance::Normal || doing.is_some() {
            p.avoiding = Some(VehicleId(self.other));
        }
        if avoidance == Avoidance::MovingAside {
            p.aside = Some(p.here.truncate() + DVec2::new(0.0, 7.6));
        }
    }

    /// The state with what it waits for.
    fn name(&self) -> String {
        let doing = match self.protocol.doing {
            None | Some(Doing::Aside { .. }) => "",
            Some(Doing::Stopping { braking: false, .. }) => ", told to hold",
            Some(Doing::Stopping { braking: true, .. }) => ", braking",
            Some(Doing::Resuming(_)) => ", told to resume",
        };
        format!("{}{doing}", self.protocol.state_id())
    }
}

/// A beacon of an aircraft that stands at `at` (metres east and north of home).
fn beacon(state: Avoidance, avoiding: Option<u64>, at: &[(f64, f64)]) -> Beacon {
    let location = |&(x, y): &(f64, f64)| {
        let p = Frame::new(HOME).to_position(DVec3::new(x, y, 0.0));
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 50_000 }
    };
    Beacon {
        state,
        avoiding: avoiding.map(VehicleId),
        planned_speed_cm_s: 1_000,
        locations: at.iter().map(location).collect(),
        ..Beacon::default()
    }
}

/// Out of everybody's way.
const ELSEWHERE: &[(f64, f64)] = &[(-300.0, 60.0), (-100.0, 60.0)];
/// It will come through the place where we are.
const THROUGH_US: &[(f64, f64)] = &[(-250.0, 3.0), (-350.0, 3.0)];

type Step = (&'static str, fn(&mut Case));

const HOLDING: Doing = Doing::Stopping { braking: false, until: None };

/// Every state, with what it waits for.
const STATES: [Step; 17] = [
    ("Start", |_| {}),
    ("Setup", |c| c.feed(Input::Operator(Command::Setup))),
    ("SetupFinished", |c| {
        c.feed(Input::Operator(Command::Setup));
        c.feed(Input::Done(Order::LoadRoute));
    }),
    ("TakingOff", |c| {
        c.feed(Input::Operator(Command::Setup));
        c.feed(Input::Done(Order::LoadRoute));
        c.feed(Input::Operator(Command::Start));
        c.at.armed = true;
        c.report();
    }),
    ("Normal", |c| c.flying(Avoidance::Normal, None)),
    ("Normal, told to hold", |c| c.flying(Avoidance::Normal, Some(HOLDING))),
    ("Normal, braking", |c| {
        // For a second now; it gives up waiting after five.
        let until = Some(NOW + Duration::from_secs(4));
        c.flying(Avoidance::Normal, Some(Doing::Stopping { braking: true, until }));
        c.at.velocity_m_s = DVec3::new(8.0, 0.0, 0.0);
        c.report();
    }),
    ("StandStill", |c| c.flying(Avoidance::StandStill, None)),
    ("StandStill, told to resume", |c| {
        c.flying(Avoidance::StandStill, Some(Doing::Resuming(Avoidance::Overtaking)));
    }),
    ("MovingAside", |c| c.flying(Avoidance::MovingAside, Some(Doing::Aside { until: None }))),
    ("GoOnPlease", |c| c.flying(Avoidance::GoOnPlease, None)),
    ("GoOnPlease, told to resume", |c| {
        c.flying(Avoidance::GoOnPlease, Some(Doing::Resuming(Avoidance::Normal)));
    }),
    ("Overtaking", |c| c.flying(Avoidance::Overtaking, None)),
    ("EmergencyLand", |c| c.flying(Avoidance::EmergencyLand, None)),
    ("Landing", |c| {
        c.flying(Avoidance::Normal, None);
        c.protocol.state = State::Landing;
    }),
    ("Aborted", |c| {
        c.flying(Avoidance::Normal, None);
        c.feed(Input::Operator(Command::Hold));
    }),
    ("Finished", |c| {
        c.flying(Avoidance::Normal, None);
        (c.protocol.state, c.at.armed) = (State::Landing, false);
        c.report();
    }),
];

/// Every input; after each comes one pass of the state machine.
const INPUTS: [Step; 43] = [
    ("a pass", |_| {}),
    ("a risk", |c| {
        c.protocol.told.locations = core::iter::once(DVec3::ZERO).collect();
        c.hear(beacon(Avoidance::Normal, None, &[(-300.0, 10.0)]));
    }),
    ("it is in conflict with nobody", |c| c.hear(beacon(Avoidance::Normal, None, ELSEWHERE))),
    ("it is in conflict with a third", |c| c.hear(beacon(Avoidance::StandStill, Some(9), ELSEWHERE))),
    ("mutual, it is Normal", |c| c.mutual(Avoidance::Normal, ELSEWHERE)),
    ("mutual, it is in StandStill", |c| c.mutual(Avoidance::StandStill, ELSEWHERE)),
    ("mutual, it is in StandStill, we are in its way", |c| c.mutual(Avoidance::StandStill, THROUGH_US)),
    ("mutual, it is MovingAside", |c| c.mutual(Avoidance::MovingAside, ELSEWHERE)),
    ("mutual, it is in GoOnPlease", |c| c.mutual(Avoidance::GoOnPlease, ELSEWHERE)),
    ("mutual, it is Overtaking", |c| c.mutual(Avoidance::Overtaking, ELSEWHERE)),
    ("mutual, it is in EmergencyLand", |c| c.mutual(Avoidance::EmergencyLand, ELSEWHERE)),
    ("mutual, it lands", |c| {
        let landing = Beacon { landing: true, ..beacon(Avoidance::Normal, Some(c.me), ELSEWHERE) };
        c.hear(landing);
    }),
    ("it has passed", |c| {
        c.hear(beacon(Avoidance::Overtaking, Some(c.me), ELSEWHERE));
        c.hear(Beacon { event: 1, ..beacon(Avoidance::Normal, None, ELSEWHERE) });
    }),
    ("120 s, it is there", |c| {
        c.protocol.since = Instant::from_secs(70);
        c.mutual(Avoidance::Overtaking, ELSEWHERE);
    }),
    ("120 s, it is silent", |c| {
        let told = beacon(Avoidance::StandStill, Some(c.me), ELSEWHERE);
        c.now = Instant::from_secs(185);
        c.hear(told);
        (c.now, c.protocol.since) = (NOW, Instant::from_secs(70));
    }),
    ("standing", |c| {
        c.at.velocity_m_s = DVec3::ZERO;
        c.report();
    }),
    ("fast", |c| {
        c.at.velocity_m_s = DVec3::new(10.0, 0.0, 0.0);
        c.report();
    }),
    ("fast for 6 s", |c| {
        c.at.velocity_m_s = DVec3::new(10.0, 0.0, 0.0);
        for s in 1..=6 {
            c.now = NOW + Duration::from_secs(s);
            c.report();
        }
    }),
    ("standing at the place aside", |c| {
        c.protocol.aside = c.protocol.aside.map(|_| c.protocol.here.truncate());
        c.at.velocity_m_s = DVec3::ZERO;
        c.report();
    }),
    ("both the other and the risk recede", |c| {
        c.mutual(Avoidance::GoOnPlease, ELSEWHERE);
        c.at.velocity_m_s = DVec3::new(0.0, -10.0, 0.0);
        for step in 1..=3 {
            let at = DVec3::new(HERE.0, -10.0 * f64::from(step), 20.0);
            c.at.position = Frame::new(HOME).to_position(at);
            c.report();
        }
    }),
    ("over the last waypoint", |c| {
        c.at.position = Frame::new(HOME).to_position(DVec3::new(300.0, 0.0, 20.0));
        c.feed(Input::Reached(1));
        c.report();
    }),
    ("a waypoint that the mission does not have", |c| c.feed(Input::Reached(2))),
    ("disarmed", |c| {
        c.at.armed = false;
        c.report();
    }),
    ("no report for 20 s", |c| c.now = NOW + Duration::from_secs(20)),
    ("loading done", |c| c.feed(Input::Done(Order::LoadRoute))),
    ("loading failed", |c| c.feed(Input::Failed(Order::LoadRoute))),
    ("take-off done", |c| c.feed(Input::Done(Order::FlyRoute { height_mm: 20_000 }))),
    ("take-off failed", |c| c.feed(Input::Failed(Order::FlyRoute { height_mm: 20_000 }))),
    ("hold done, standing", |c| c.feed(Input::Done(Order::Hold))),
    ("hold done, fast", |c| {
        c.at.velocity_m_s = DVec3::new(10.0, 0.0, 0.0);
        c.report();
        c.feed(Input::Done(Order::Hold));
    }),
    ("hold failed", |c| c.feed(Input::Failed(Order::Hold))),
    ("resume done", |c| c.feed(Input::Done(Order::Resume))),
    ("resume failed", |c| c.feed(Input::Failed(Order::Resume))),
    ("flight aside failed", |c| c.feed(Input::Failed(Order::FlyTo(point(DVec2::ZERO, 20.0))))),
    ("landing done", |c| c.feed(Input::Done(Order::Land))),
    ("landing failed", |c| c.feed(Input::Failed(Order::Land))),
    ("return failed", |c| c.feed(Input::Failed(Order::Return))),
    ("operator: setup", |c| c.command(Command::Setup)),
    ("operator: start", |c| c.command(Command::Start)),
    ("operator: hold", |c| c.command(Command::Hold)),
    ("operator: return", |c| c.command(Command::Return)),
    ("operator: land", |c| c.command(Command::Land)),
    ("operator: a new mission", |c| {
        let mission = [point(DVec2::ZERO, 20.0), point(DVec2::new(0.0, 90.0), 20.0)];
        c.refused = c.protocol.set_mission(&mission).is_err();
    }),
];

/// What follows: `stays`, `refused`, or the orders and the next state.
fn consequence(state: Step, input: Step, me: u64, other: u64) -> String {
    let mut case = Case::new(me, other);
    // Nothing but the input moves it until then.
    (case.protocol.pass_at, case.protocol.beacon_at) = (Instant::NEVER, Instant::NEVER);
    (state.1)(&mut case);
    case.now = SINCE;
    case.report();
    (case.protocol.since, case.now) = (SINCE, NOW);
    (case.protocol.pass_at, case.protocol.beacon_at) = (Instant::NEVER, Instant::NEVER);
    case.orders.clear();
    assert_eq!(case.name(), state.0, "the state itself");
    (input.1)(&mut case);
    case.protocol.pass_at = case.now;
    case.feed(Input::Wake);
    let mut text: Vec<String> = case.orders.iter().map(|o| format!("asks for {o}")).collect();
    if case.name() != state.0 {
        text.push(format!("→ {}", case.name()));
    }
    match (case.refused, text.is_empty()) {
        (true, _) => "refused".to_string(),
        (false, true) => "stays".to_string(),
        (false, false) => text.join(" "),
    }
}

/// The consequence for both of two, where they differ.
fn cell(state: Step, input: Step) -> String {
    let (lower, higher) = (consequence(state, input, 1, 2), consequence(state, input, 2, 1));
    if lower == higher { lower } else { format!("lower: {lower}; higher: {higher}") }
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
fn mbcap_10_the_document_says_what_the_code_does() {
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
        let states = match others.len() < 6 {
            true => format!("any but {}", others.join("; ")),
            false => states.join("; "),
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
