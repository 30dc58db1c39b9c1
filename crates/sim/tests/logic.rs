//! What commands aircraft instead of their agents: bytes to the autopilot, datagrams among each other, its end and its failure.

use std::sync::{Arc, Mutex};

use wingbeat_agent::{Agent, Command, Config, Coordination, Phase, Reply};
use wingbeat_autopilot::codec::{MavHeader, encode_v2};
use wingbeat_autopilot::dialect::{COMMAND_LONG_DATA, MavCmd, MavMessage};
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::mission;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::logic::{Heard, Logic, Sent};
use wingbeat_sim::world::World;
use wingbeat_wire::VehicleId;

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };
/// No multiple of the time between two ticks.
const PERIOD_MS: u64 = 107;
const ARMS_AT: Instant = Instant::from_secs(5);
const ENDS_AT: Instant = Instant::from_secs(20);

/// When, by which aircraft, how many bytes.
type Told = (Instant, usize, usize);

/// Arms, broadcasts its turn's number, keeps what it was told.
#[derive(Debug)]
struct Arms {
    next: Instant,
    has_ended: bool,
    fails: bool,
    told: Arc<Mutex<Vec<Told>>>,
    received: Arc<Mutex<usize>>,
}

fn frame(message: MavMessage) -> Vec<u8> {
    let header = MavHeader { system_id: 255, component_id: 190, sequence: 0 };
    let mut bytes = heapless::Vec::<u8, 300>::new();
    encode_v2(header, &message, &mut bytes).unwrap();
    bytes.to_vec()
}

impl Logic for Arms {
    fn run(&mut self, now: Instant, received: &[u8], heard: &[Heard], out: &mut Sent) -> Result<(), String> {
        *self.received.lock().unwrap() += received.len();
        for (from, bytes) in heard {
            self.told.lock().unwrap().push((now, *from, bytes.len()));
        }
        if self.fails && now > ENDS_AT {
            return Err("it has had enough".into());
        }
        self.has_ended = now >= ENDS_AT;
        if self.has_ended || now < self.next {
            return Ok(());
        }
        self.next = now + Duration::from_millis(PERIOD_MS);
        if now >= ARMS_AT {
            out.autopilot.extend(frame(MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
                param1: 1.0,
                command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
                target_system: 1,
                target_component: 1,
                ..COMMAND_LONG_DATA::DEFAULT
            })));
        }
        out.datagrams.push(vec![7; 100].into());
        Ok(())
    }

    fn due(&self) -> Instant {
        self.next
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn printed(&self) -> Vec<String> {
        Vec::new()
    }
}

const SEED: u64 = 1;

/// Two aircraft of a logic and one with its agent, 50 m apart; what the two were told.
fn flown(fails: bool) -> (World, Vec<Vec<Told>>) {
    let vehicles = (0..3).map(|i| {
        let config = Config::new(Coordination::from(mission::Config::new(VehicleId(i + 1))));
        let home = Frame::new(ORIGIN).to_position(DVec3::new(50.0 * i as f64, 0.0, 0.0));
        let configured = ControllerConfig { boot: Boot::Warm, ..ControllerConfig::new(1, home) };
        let controller = FlightController::new(configured, SEED + i, Instant::ZERO);
        (Agent::new(config, SEED, Instant::ZERO).unwrap(), controller)
    });
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, SEED, 3);
    let mut world = World::new(ORIGIN, vehicles.collect(), channel, 5.0);
    let mut kept = Vec::new();
    for i in 0..2 {
        let (told, received) = (Arc::<Mutex<Vec<Told>>>::default(), Arc::<Mutex<usize>>::default());
        kept.push((Arc::clone(&told), Arc::clone(&received)));
        let arms = Arms { next: Instant::ZERO, has_ended: false, fails: fails && i == 1, told, received };
        world.replace_agent(i, Box::new(arms));
    }
    assert_eq!((world.phase(0), world.logic(2).is_some()), (Phase::Moving, false));
    world.run_until(ENDS_AT + Duration::from_secs(2));
    let of = |(told, received): &(Arc<Mutex<Vec<Told>>>, Arc<Mutex<usize>>)| {
        assert!(*received.lock().unwrap() > 100, "it receives its autopilot");
        told.lock().unwrap().clone()
    };
    let told = kept.iter().map(of).collect();
    (world, told)
}

#[test]
fn logic_commands_its_autopilot_and_broadcasts_to_the_others() {
    let (mut world, told) = flown(false);
    assert!(world.failure().is_none());
    for (i, list) in told.iter().enumerate() {
        assert_eq!(world.phase(i), Phase::Finished);
        assert!(matches!(world.command(i, "setup", Command::Setup), Reply::Refused(_)));
        // Each 107 ms for 20 s, from the other alone, when they are due and not at the next tick.
        assert_eq!(list.len(), 187);
        let [first, rest @ ..] = &list[..] else { panic!("nothing was received") };
        assert!(
            rest.iter()
                .zip(1_u64..)
                .all(|((at, ..), n)| at.since(first.0) == Duration::from_millis(PERIOD_MS * n)),
            "{list:?}"
        );
        assert!(list.iter().all(|(_, from, length)| (*from, *length) == (1 - i, 100)), "{list:?}");
    }
    assert!(world.truth(0).armed && world.truth(1).armed && !world.truth(2).armed);
    // The agent's radio is on another port.
    assert_eq!(world.status(2).refused.iter().sum::<u64>(), 0);
    let again = flown(false);
    assert_eq!((world.trace_hash(), &told), (again.0.trace_hash(), &again.1));
}

#[test]
fn logic_that_fails_stops_the_world_with_its_words() {
    let (world, _) = flown(true);
    assert_eq!(world.failure(), Some("aircraft 2: it has had enough"));
}
