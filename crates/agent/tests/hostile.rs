//! A million datagrams that are not what they claim: every one is refused and counted by its reason, and nothing else
//! changes.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_agent::{Agent, Config, Input, Outputs, Status};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::mbcap;
use wingbeat_wire::{
    Beacon, DATAGRAM_LEN_MAX, Datagram, FleetKey, Location, Message, ROSTER_MAX, Refused, Role, Roster,
    Screen, Signer, VERSION, VehicleId,
};

const COUNT: u64 = 1_000_000;
/// Ids that hostile datagrams bear.
const SENDERS: u64 = 10_000;
const ME: u64 = 1;
const EPOCH: u8 = 4;
/// The clock that counters are counted from, microseconds.
const BASE_US: u64 = 1_795_435_200_000_000;

fn fleet() -> FleetKey {
    FleetKey([0xf1; 32])
}

fn signer(id: u64) -> Signer {
    Signer::new(&[id as u8; 32], EPOCH, fleet())
}

fn sealed(signer: &Signer, from: u64, counter: u64) -> Vec<u8> {
    let here = Location { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 30_000 };
    let beacon = Beacon { locations: std::iter::once(here).collect(), ..Beacon::default() };
    let message = Message::Beacon(beacon);
    let datagram = Datagram { from: VehicleId(from), counter, flight: 0, message };
    signer.seal(&mut datagram.draft().unwrap()).to_vec()
}

struct Receiver {
    agent: Box<Agent>,
    roster: Box<Roster>,
    screen: Screen,
    out: Box<Outputs>,
    now: Instant,
}

impl Receiver {
    fn new() -> Self {
        let mut config = mbcap::Config::mbcap_e();
        config.me = VehicleId(ME);
        let agent = Agent::new(Config::new(config), 1, Instant::ZERO).unwrap().counting_from(BASE_US);
        let mut roster = Box::new(Roster::new(EPOCH, fleet()));
        for id in ME..=ROSTER_MAX as u64 {
            roster.add(VehicleId(id), Role::Aircraft, &signer(id).public_key().unwrap()).unwrap();
        }
        let screen = roster.screen();
        Self { agent: Box::new(agent), roster, screen, out: Box::default(), now: Instant::from_secs(100) }
    }

    /// As a host does.
    fn receive(&mut self, bytes: &[u8]) {
        let (agent, now) = (&self.agent, self.now);
        let opened = self.roster.open_if(bytes, |claim| agent.admits(now, claim));
        // A radio that screens refuses an outsider's for the same reason, and no other's.
        let outsiders =
            [Refused::Version, Refused::Epoch, Refused::FleetTag, Refused::Malformed, Refused::UnknownSender];
        let refused = opened.err().filter(|reason| outsiders.contains(reason));
        assert_eq!(self.screen.check(bytes).err(), refused);
        self.agent.handle(now, Input::Datagram(opened), &mut self.out);
        assert!(self.out.autopilot.is_empty() && self.out.datagrams.is_empty() && self.out.log.is_empty());
    }

    fn status(&self) -> Status {
        self.agent.status(self.now)
    }
}

/// The clock of every sender now.
fn counter(now: Instant) -> u64 {
    BASE_US + now.as_micros()
}

#[test]
fn a_million_hostile_datagrams_are_refused_by_reason_and_change_nothing() {
    let mut receiver = Receiver::new();
    let mut rng = Pcg64Mcg::new(7);
    let peers = ME + 1..=ROSTER_MAX as u64;
    // Recorded: genuine ones that were received, and ones that were not.
    let sent = counter(receiver.now);
    let recorded: Vec<Vec<u8>> = peers.clone().map(|id| sealed(&signer(id), id, sent)).collect();
    let withheld: Vec<Vec<u8>> = peers.clone().map(|id| sealed(&signer(id), id, sent + 1_000)).collect();
    for bytes in &recorded {
        receiver.receive(bytes);
    }
    let before = receiver.status();
    assert_eq!(before.received, recorded.len() as u64);
    receiver.now = receiver.now + Duration::from_secs(10);
    let now = counter(receiver.now);

    // Made with the keys of another fleet, of another epoch, of none; and with those of a captured aircraft.
    let foreign = Signer::new(&[2; 32], EPOCH, FleetKey([0xf2; 32]));
    let earlier = Signer::new(&[2; 32], EPOCH - 1, FleetKey([0xf0; 32]));
    let captured = signer(2);
    let many = |signer: &Signer, ids: u64| -> Vec<Vec<u8>> {
        (0..ids).map(|id| sealed(signer, id, now + id)).collect()
    };
    let (foreign, earlier) = (many(&foreign, 200), many(&earlier, 200));
    let insecure = many(&Signer::insecure(), SENDERS);
    let unknown: Vec<Vec<u8>> = (1_000..1_000 + SENDERS).map(|id| sealed(&captured, id, now)).collect();
    let in_anothers_name: Vec<Vec<u8>> =
        (3..=ROSTER_MAX as u64).map(|id| sealed(&captured, id, now)).collect();
    let reflected: Vec<Vec<u8>> = (0..100).map(|i| sealed(&signer(ME), ME, BASE_US - i)).collect();

    let mut expected = before.refused;
    let any =
        |from: &[Vec<u8>], rng: &mut Pcg64Mcg| from[(rng.next_u64() % from.len() as u64) as usize].clone();
    for i in 0..COUNT {
        let (bytes, reason) = match i % 64 {
            // The dearest: it costs its receiver a signature.
            0 => (any(&in_anothers_name, &mut rng), Refused::Signature),
            n => match n % 9 {
                0 => (any(&foreign, &mut rng), Refused::FleetTag),
                1 => {
                    let mut bytes = any(&recorded, &mut rng);
                    let bit = 16 + (rng.next_u64() % (bytes.len() as u64 * 8 - 16)) as usize;
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    (bytes, Refused::FleetTag)
                }
                2 => (any(&recorded, &mut rng), Refused::Replayed),
                3 => (any(&withheld, &mut rng), Refused::Stale),
                4 => (any(&reflected, &mut rng), Refused::Own),
                5 => (any(&earlier, &mut rng), Refused::Epoch),
                6 => (any(&unknown, &mut rng), Refused::UnknownSender),
                7 => (any(&insecure, &mut rng), Refused::Version),
                _ => {
                    let mut bytes = vec![0; 80 + (rng.next_u64() % (DATAGRAM_LEN_MAX as u64 - 80)) as usize];
                    rng.fill_bytes(&mut bytes);
                    (bytes[0], bytes[1]) = (VERSION, EPOCH);
                    (bytes, Refused::FleetTag)
                }
            },
        };
        receiver.receive(&bytes);
        expected[reason as usize] += 1;
    }
    let after = receiver.status();
    assert_eq!(after.refused, expected);
    assert_eq!(after.refused.iter().sum::<u64>() - before.refused.iter().sum::<u64>(), COUNT);
    assert_eq!(after, Status { at: after.at, refused: expected, checks: after.checks.clone(), ..before });
    // The aircraft in whose names it spoke are received as before.
    receiver.receive(&sealed(&signer(3), 3, now + 1));
    assert_eq!(receiver.status().received, after.received + 1);
}
