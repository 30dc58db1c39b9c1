//! The real agent, alone in its swarm, with a simulated operator that sends Setup and Start.

use wingbeat_agent::guardian::{Answer, Cause, Stance};
use wingbeat_agent::{Agent, Command, Config, Input, Outputs, Reply, StateId};
use wingbeat_geo::{DVec2, Frame, Instant, Position};
use wingbeat_protocol::muscop;
use wingbeat_wire::{Point, VehicleId};

/// The companion.
pub(crate) struct Muscop {
    pub(crate) agent: Agent,
    outputs: Outputs,
    pressed: usize,
}

impl Muscop {
    /// A flight over `legs`, metres east and north of home, at one height.
    pub(crate) fn new(home: Position, legs: &[DVec2], height_m: f64) -> Self {
        Self::configured(Self::config(), home, legs, height_m)
    }

    /// Alone in its swarm, with the published numbers.
    pub(crate) fn config() -> Config {
        let me = VehicleId(1);
        Config::new(muscop::Config::new(me, me, 1))
    }

    /// The same flight, configured otherwise.
    pub(crate) fn configured(config: Config, home: Position, legs: &[DVec2], height_m: f64) -> Self {
        let mut agent = Agent::new(config, 1, Instant::ZERO).unwrap();
        let mut outputs = Outputs::default();
        let frame = Frame::new(home);
        let route: Vec<Point> = legs
            .iter()
            .map(|leg| {
                let place = frame.to_position(leg.extend(0.0));
                let height_mm = (height_m * 1e3) as i32;
                Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm }
            })
            .collect();
        agent.handle(Instant::ZERO, Input::Mission(&route), &mut outputs);
        assert_eq!(outputs.reply, Some(Reply::Accepted));
        let watching = Answer { stance: Stance::Watching, cause: Cause::Ended };
        agent.handle(Instant::ZERO, Input::Guard(Some(watching)), &mut outputs);
        Self { agent, outputs, pressed: 0 }
    }

    /// One input; bytes for the autopilot are appended. Whether a command was accepted.
    pub(crate) fn feed(&mut self, now: Instant, input: Input<'_>, out: &mut Vec<u8>) -> bool {
        self.agent.handle(now, input, &mut self.outputs);
        out.extend_from_slice(&self.outputs.autopilot);
        self.outputs.reply == Some(Reply::Accepted)
    }

    /// Datagrams that the last input asked for.
    /// Whether the datagrams of the last input say where it is and how its flight ends, and nothing else.
    pub(crate) fn says_only_that_it_leaves(&self) -> bool {
        self.outputs.datagrams.iter().all(|draft| {
            let datagram = draft.read().expect("its own");
            matches!(datagram.message, wingbeat_wire::Message::Leaving { .. })
        })
    }

    /// Hears, is woken, and its operator presses what is next.
    pub(crate) fn step(&mut self, now: Instant, received: &[u8], out: &mut Vec<u8>) {
        for piece in received.chunks(280) {
            self.feed(now, Input::Autopilot(piece), out);
        }
        if now >= self.agent.poll_timeout().0 {
            self.feed(now, Input::Wake, out);
        }
        let (id, command) = match (self.pressed, self.agent.view().state) {
            (0, StateId::Start) => ("setup", Command::Setup),
            (1, StateId::SetupFinished) => ("start", Command::Start),
            _ => return,
        };
        if self.feed(now, Input::Operator { id, command }, out) {
            self.pressed += 1;
        }
    }
}
