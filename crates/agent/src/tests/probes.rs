//! Probes of the link, from one agent to another.

use super::*;
use wingbeat_wire::{DATAGRAM_LEN_MAX, Refused, SenderMotion, read_unverified};

fn order(test: u32, sequence: u32, unsigned_len: usize) -> ProbeOrder {
    ProbeOrder { test, sequence, period_ms: 20, unsigned_len }
}

/// What the agent broadcasts, sealed.
fn broadcast(agent: &mut Agent, now: Instant, order: ProbeOrder) -> Option<StdVec<u8>> {
    let mut out = Outputs::default();
    agent.handle(now, Input::Probe(order), &mut out);
    out.datagrams.first_mut().map(|draft| Signer::insecure().seal(draft).to_vec())
}

#[test]
fn a_probe_states_where_its_sender_is_and_has_the_length_that_was_asked_for() {
    let mut bench = Bench::new();
    let blind = broadcast(&mut bench.agent, bench.now, order(0, 1, 0)).unwrap();
    let Message::Probe(probe) = read_unverified(&blind).unwrap().message else { panic!("a probe") };
    assert_eq!((probe.sequence, probe.motion), (1, None), "no position yet");
    bench.height_mm = 20_000;
    bench.second();
    let bare = broadcast(&mut bench.agent, bench.now, order(7, 2, 0)).unwrap().len();
    for length in [bare + 1, bare + 128, bare + 129, 1_000, DATAGRAM_LEN_MAX - 64] {
        let bytes = broadcast(&mut bench.agent, bench.now, order(7, 2, length)).unwrap();
        assert_eq!(bytes.len(), length);
        let Message::Probe(probe) = read_unverified(&bytes).unwrap().message else { panic!("a probe") };
        let at = probe.motion.unwrap().at;
        assert_eq!((probe.test, probe.sequence, probe.period_ms), (7, 2, 20));
        assert_eq!((at.latitude_e7, at.longitude_e7), (394_825_940, -3_462_650));
    }
    assert_eq!(broadcast(&mut bench.agent, bench.now, order(7, 2, DATAGRAM_LEN_MAX - 63)), None, "too long");
}

#[test]
fn a_probe_is_handed_to_the_host_and_to_no_protocol() {
    let (mut sender, mut bench) = (Bench::new(), Bench::new());
    sender.agent = {
        let mut config = Config::new(muscop::Config::new(VehicleId(2), VehicleId(2), 1));
        config.companion_loss = CompanionLoss::EndsWithIt;
        Agent::new(config, 1, Instant::ZERO).unwrap()
    };
    sender.second();
    bench.second();
    let receive = |bench: &mut Bench, bytes: &[u8]| {
        let mut out = Outputs::default();
        bench.agent.handle(bench.now, Input::Datagram(Roster::insecure().open(bytes)), &mut out);
        out.probe.map(|(from, probe)| (from, probe.test, probe.sequence))
    };
    for sequence in [0, 1, 5] {
        let bytes = broadcast(&mut sender.agent, sender.now, order(3, sequence, 300)).unwrap();
        assert_eq!(receive(&mut bench, &bytes), Some((VehicleId(2), 3, sequence)));
        assert_eq!(receive(&mut bench, &bytes), None, "a copy counts once");
    }
    let status = bench.agent.status(bench.now);
    assert_eq!((status.received, status.refused[Refused::Replayed as usize]), (3, 3));
    let own = bench.agent.motion(bench.now).map(|SenderMotion { at, .. }| at.latitude_e7);
    assert_eq!(own, Some(394_825_940));
}

#[test]
fn an_accepted_command_is_shown_to_the_host() {
    let mut bench = Bench::new();
    bench.second();
    let mut accepted = |id: &str, command| {
        let mut out = Outputs::default();
        bench.agent.handle(bench.now, Input::Operator { id, command }, &mut out);
        out.accepted
    };
    assert_eq!(accepted("r", Command::RecoverControl), Some(Command::RecoverControl));
    assert_eq!(accepted("r", Command::RecoverControl), None, "known");
    assert_eq!(accepted("s", Command::Start), None, "refused");
}
