//! One step of a replay: an input, what the agent answers to it now, and the state in which it is afterwards; as lines for
//! people and as JSON for programs.

use serde::Serialize;
use wingbeat_agent::{Agent, Outputs, Sample, StateId};
use wingbeat_geo::Instant;
use wingbeat_wire::Phase;

use crate::event::{Event, outputs};
use crate::export::{describe, words};
use crate::replay::Outcome;

/// Steps of one replay, in order.
#[derive(Debug, Default)]
pub struct Steps {
    inputs: u64,
    state: Option<StateId>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Agent time, seconds.
    pub time_s: f64,
    /// Which input of the log it is, from 1.
    pub number: u64,
    /// The input.
    pub input: Line,
    /// What the agent answers.
    pub outputs: Vec<Line>,
    /// The state afterwards.
    pub state: State,
    /// Whether the protocol enters the state by this input.
    pub is_entered: bool,
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Its name ([`Event::NAMES`]).
    pub record: &'static str,
    /// What it says.
    pub text: String,
    /// Its bytes, all of them, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    #[serde(skip)]
    line: String,
}

/// What of an agent's state a step shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// The protocol's state.
    pub state: StateId,
    /// How far the flight has come.
    pub phase: Phase,
    /// Whether the agent may command.
    pub engaged: bool,
    /// Number of the autopilot's mode.
    pub mode_number: Option<u32>,
    /// Whether motors are armed.
    pub armed: bool,
    /// The waypoint reached last.
    pub waypoint_reached: Option<u16>,
    /// Where it is: degrees, and metres above mean sea level.
    pub position: Option<Place>,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: [f64; 3],
    /// Charge of the battery, per cent.
    pub battery_percent: Option<u8>,
    /// The nearest other aircraft.
    pub nearest: Option<Nearest>,
}

/// A position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Degrees.
    pub latitude_deg: f64,
    /// Degrees.
    pub longitude_deg: f64,
    /// Above mean sea level, metres.
    pub altitude_m: f64,
}

/// Another aircraft.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// Its id, 16 hexadecimal digits.
    pub id: String,
    /// How far it is, metres.
    pub distance_m: f64,
}

impl Steps {
    /// The next step, of what a replay hands over.
    pub fn next(&mut self, at: Instant, input: &Event<'_>, agent: &Agent, out: &Outputs) -> Step {
        self.inputs += 1;
        let sample = agent.sample(at);
        let is_entered = self.state.replace(sample.state) != Some(sample.state);
        let mut answers = Vec::new();
        outputs(out, |event| answers.push(Line::of(&event)));
        Step {
            time_s: at.as_secs_f64(),
            number: self.inputs,
            input: Line::of(input),
            outputs: answers,
            state: State::of(&sample),
            is_entered,
        }
    }
}

impl Step {
    /// The input, each output, and the state where it is another.
    pub fn lines(&self) -> Vec<String> {
        let line = |sign, text: &str| format!("{:12.6} {sign} {text}", self.time_s);
        let mut lines = vec![line('<', &self.input.line)];
        lines.extend(self.outputs.iter().map(|output| line('>', &output.line)));
        if self.is_entered {
            let State { state, engaged, mode_number, armed, height_m, .. } = &self.state;
            let mode = mode_number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
            let engaged = if *engaged { "engaged" } else { "not engaged" };
            let armed = if *armed { "armed" } else { "not armed" };
            lines.push(line('=', &format!("{state}: {engaged}, mode {mode}, {armed}, {height_m:.1} m high")));
        }
        lines
    }
}

impl Line {
    fn of(event: &Event<'_>) -> Self {
        let bytes = match event {
            Event::Autopilot(bytes)
            | Event::ToAutopilot(bytes)
            | Event::Broadcast(_, bytes)
            | Event::PassOn(bytes) => Some(*bytes),
            Event::Datagram(sealed) | Event::Order(sealed) | Event::DirectOrder(sealed) => Some(sealed.bytes),
            _ => None,
        };
        let hex = bytes.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        Self { record: event.name(), text: words(event), hex, line: describe(event) }
    }
}

impl State {
    fn of(sample: &Sample) -> Self {
        Self {
            state: sample.state,
            phase: sample.phase,
            engaged: sample.engaged,
            mode_number: sample.mode_number,
            armed: sample.armed,
            waypoint_reached: sample.reached,
            position: sample.position.map(|p| Place {
                latitude_deg: p.latitude_deg(),
                longitude_deg: p.longitude_deg(),
                altitude_m: f64::from(p.altitude_mm) / 1e3,
            }),
            height_m: sample.height_m,
            velocity_m_s: sample.velocity_m_s.to_array(),
            battery_percent: sample.battery_percent,
            nearest: sample
                .nearest
                .map(|near| Nearest { id: near.id.to_string(), distance_m: near.distance_m }),
        }
    }
}

/// What a replay came to, for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct End {
    /// Inputs that were given to the agent.
    pub inputs: u64,
    /// Bytes of outputs that were compared.
    pub compared_bytes: u64,
    /// Agents that began.
    pub starts: u32,
    /// Agent time between the first input and the last, seconds.
    pub flown_s: f64,
    /// States, each with the time at which it began, seconds.
    pub states: Vec<(f64, String)>,
    /// The first difference.
    pub difference: Option<FirstDifference>,
    /// When records were lost in flight, seconds, and how many: the replay ends there.
    pub lost: Option<(f64, u64)>,
    /// Why the rest of the file was not read.
    pub flaw: Option<String>,
    /// Whether it ended where it was asked to, before the log did.
    pub is_reached: bool,
}

/// Where the agent answered otherwise first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstDifference {
    /// Agent time, seconds.
    pub time_s: f64,
    /// Which input it was, from 1.
    pub number: u64,
    /// The input.
    pub input: String,
    /// What the log has.
    pub expected: String,
    /// What the agent answers now.
    pub found: String,
}

impl End {
    /// Of this outcome.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            inputs: outcome.inputs,
            compared_bytes: outcome.compared,
            starts: outcome.starts,
            flown_s: outcome.flown.as_secs_f64(),
            states: outcome.states.iter().map(|(at, state)| (at.as_secs_f64(), state.clone())).collect(),
            difference: outcome.difference.as_ref().map(|difference| FirstDifference {
                time_s: difference.at.as_secs_f64(),
                number: difference.input_number,
                input: difference.input.clone(),
                expected: difference.expected.clone(),
                found: difference.found.clone(),
            }),
            lost: outcome.lost.map(|(at, count)| (at.as_secs_f64(), count)),
            flaw: outcome.flaw.clone(),
            is_reached: outcome.is_reached,
        }
    }
}
