//! Whatever bytes come along the link, in whatever state: the agent does not panic, sends nothing but whole
//! frames, and comes to rest.

use proptest::prelude::*;
use wingbeat_agent::{Agent, Command, Config, Input, Outputs, Signing, SigningKey};
use wingbeat_autopilot::codec::{Decoder, FRAME_LEN_MAX, MavHeader, encode_v1, encode_v2};
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::muscop;
use wingbeat_wire::{Draft, Point, Roster, Signer, VehicleId};

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A frame of an autopilot: message id, payload, MAVLink 1.
    Frame(u32, Vec<u8>, bool),
    /// The same with a byte changed, lost or added.
    Hurt(u32, Vec<u8>, usize, u8),
    Bytes(Vec<u8>),
    Radio(Vec<u8>),
    Pass(u16),
    Operator(Command),
    Port(bool),
    Utc(u64),
}

/// Messages that the agent or one of its jobs acts on.
const IDS: [u32; 18] = [0, 1, 22, 24, 33, 40, 42, 44, 47, 51, 62, 73, 76, 77, 87, 148, 193, 253];

fn frame(id: u32, payload: &[u8], version_1: bool) -> Vec<u8> {
    let header = MavHeader { system_id: 1, component_id: 1, sequence: 0 };
    let mut out = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    let message = wingbeat_autopilot::codec::message(id, payload)
        .unwrap_or_else(|| MavMessage::HEARTBEAT(Default::default()));
    let encoded =
        if version_1 { encode_v1(header, &message, &mut out) } else { encode_v2(header, &message, &mut out) };
    encoded.unwrap();
    out.to_vec()
}

fn step() -> impl Strategy<Value = Step> {
    // Numbers of enums, counts and sequences are small.
    let byte = prop_oneof![3 => 0..12u8, 1 => any::<u8>()];
    let message = || (prop::sample::select(&IDS[..]), prop::collection::vec(byte.clone(), 0..60));
    // A heartbeat of a quadrotor with ArduPilot: mode, armed or not.
    let heartbeat = (0..22u8, any::<bool>()).prop_map(|(mode, armed)| {
        Step::Frame(0, vec![mode, 0, 0, 0, 2, 3, if armed { 209 } else { 81 }, 4, 3], false)
    });
    let commands = [
        Command::Setup,
        Command::Start,
        Command::Hold,
        Command::Return,
        Command::Land,
        Command::RecoverControl,
        Command::Engage,
    ];
    prop_oneof![
        4 => heartbeat,
        8 => (message(), any::<bool>()).prop_map(|((id, payload), v1)| Step::Frame(id, payload, v1)),
        4 => (message(), any::<usize>(), any::<u8>())
            .prop_map(|((id, payload), at, how)| Step::Hurt(id, payload, at, how)),
        2 => prop::collection::vec(prop_oneof![4 => any::<u8>(), 1 => Just(0xfd)], 0..400).prop_map(Step::Bytes),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Step::Radio),
        6 => (0..3_000u16).prop_map(Step::Pass),
        2 => prop::sample::select(commands.to_vec()).prop_map(Step::Operator),
        1 => any::<bool>().prop_map(Step::Port),
        1 => any::<u64>().prop_map(Step::Utc),
    ]
}

struct Harness {
    agent: Box<Agent>,
    out: Box<Outputs>,
    now: Instant,
    sent: usize,
    commands: u32,
}

impl Harness {
    fn new(signing: Option<Signing>) -> Self {
        let mut config = Config::new(muscop::Config::new(VehicleId(1), VehicleId(1), 1));
        config.signing = signing;
        let agent = Box::new(Agent::new(config, 1, Instant::ZERO).unwrap());
        let mut flight = Self { agent, out: Box::default(), now: Instant::ZERO, sent: 0, commands: 0 };
        let point =
            |n| Point { latitude_e7: 394_825_940 + n * 9_000, longitude_e7: -3_462_650, height_mm: 20_000 };
        flight.feed(Input::Mission(&[point(0), point(1)]));
        flight
    }

    fn feed(&mut self, input: Input<'_>) {
        self.agent.handle(self.now, input, &mut self.out);
        let mut decoder = Decoder::default();
        decoder.push(&self.out.autopilot, |_| self.sent += 1);
        let refused = decoder.refused();
        assert_eq!(refused.garbage_bytes, 0, "it sends whole frames: {refused:?}");
        assert_eq!(refused.unknown_content, 0, "it sends what we understand: {refused:?}");
        // The status may be read at any time.
        let _ = self.agent.status(self.now);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Frame(id, payload, version_1) => {
                self.feed(Input::Autopilot(&frame(*id, payload, *version_1)))
            }
            Step::Hurt(id, payload, at, how) => {
                let mut bytes = frame(*id, payload, false);
                let at = at % bytes.len();
                match how % 3 {
                    0 => bytes[at] ^= how | 1,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, *how),
                }
                self.feed(Input::Autopilot(&bytes));
            }
            Step::Bytes(bytes) => self.feed(Input::Autopilot(bytes)),
            Step::Radio(content) => {
                let mut draft = Draft::of_content(content).unwrap();
                let bytes = Signer::insecure().seal(&mut draft).to_vec();
                self.feed(Input::Datagram(Roster::insecure().open(&bytes)));
            }
            Step::Pass(ms) => {
                let until = self.now + Duration::from_millis(u64::from(*ms));
                self.pass(until);
            }
            Step::Operator(command) => {
                self.commands += 1;
                let id = self.commands.to_string();
                self.feed(Input::Operator { id: &id, command: *command });
            }
            Step::Port(open) => self.feed(Input::AutopilotLink(*open)),
            Step::Utc(unix_us) => self.feed(Input::Utc { unix_us: *unix_us }),
        }
    }

    /// Wakes it whenever it wants to be.
    fn pass(&mut self, until: Instant) {
        let mut wakes_here = 0;
        loop {
            let (due, why) = self.agent.poll_timeout();
            if due > until {
                break;
            }
            wakes_here = if due > self.now { 0 } else { wakes_here + 1 };
            assert!(wakes_here < 50, "it wants waking again and again at one instant: {why}");
            self.now = self.now.max(due);
            self.feed(Input::Wake);
        }
        self.now = until;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_panic_and_it_comes_to_rest(steps in prop::collection::vec(step(), 1..80)) {
        let mut flight = Harness::new(None);
        for step in &steps {
            flight.step(step);
        }
        flight.pass(flight.now + Duration::from_secs(60));
    }

    #[test]
    fn where_frames_must_be_signed_no_other_is_answered(steps in prop::collection::vec(step(), 1..60)) {
        let key = SigningKey::new([7; 32]);
        let mut flight = Harness::new(Some(Signing { key, link_id: 0, setup: false }));
        for step in &steps {
            flight.step(step);
        }
        flight.pass(flight.now + Duration::from_secs(5));
        prop_assert_eq!(flight.sent, 0, "it never received a frame that was signed with the key");
    }
}
