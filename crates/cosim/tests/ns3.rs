//! ns-3 as the medium: with our program where it is built (`cargo xtask ns3 program`), and with programs that only pretend.
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as Wall;

use wingbeat_cosim::method::{Method, Published};
use wingbeat_cosim::ns3::{Config, End, Flow, Ns3, Reach, Routing, find};
use wingbeat_geo::{DVec3, Instant};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::medium::timing::{DIFS_NS, airtime};
use wingbeat_sim::medium::{Medium as _, Reception};

const SILENCE: Wall = Wall::from_secs(60);
/// Of one that is waited for in vain; on a loaded computer a shell begins within this.
const SOON: Wall = Wall::from_secs(8);

/// Our program, or why there is none.
fn program() -> Option<PathBuf> {
    find().map_err(|why| println!("skipped: {why:#}")).ok()
}

fn started(config: &Config, seed: u64, count: usize) -> Option<Ns3> {
    Some(Ns3::start(&program()?, config, seed, count, SILENCE).expect("it starts"))
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// All that arrives until then, as a world asks for it.
fn until(medium: &mut Ns3, end: Instant) -> Vec<Reception> {
    let mut all = Vec::new();
    while medium.poll_timeout() <= end {
        let before = all.len();
        medium.advance(end, &mut all).expect("ns-3 goes on");
        if all.len() == before {
            break;
        }
    }
    all
}

fn line(metres: &[f64]) -> Vec<DVec3> {
    metres.iter().map(|&x| DVec3::new(x, 0.0, 20.0)).collect()
}

/// From the hand-over to an idle medium until the last bit has come over up to 300 m, rounded up to a microsecond.
fn idle_us(bytes: usize) -> u64 {
    DIFS_NS / 1_000 + airtime(bytes).as_micros() as u64 + 1
}

fn pairs(received: &[Reception]) -> Vec<(usize, usize, u64)> {
    received.iter().map(|one| (one.from, one.to[0], one.at.as_micros())).collect()
}

#[test]
fn a_broadcast_arrives_in_range_after_its_time_on_the_air() {
    let config = Config { reach: Reach::Range { range_m: 200.0 }, ..Config::default() };
    let Some(mut medium) = started(&config, 1, 4) else { return };
    let places = line(&[0.0, 100.0, 199.0, 300.0]);
    let bytes: Arc<[u8]> = Arc::from([7; 705].as_slice());
    medium.transmit(ms(1000), 0, Arc::clone(&bytes), &places, &mut Vec::new());
    let received = until(&mut medium, ms(1100));
    let at_us = 1_000_000 + idle_us(705);
    assert_eq!(pairs(&received), [(0, 1, at_us), (0, 2, at_us)]);
    assert!(received.iter().all(|one| one.bytes == bytes));
    assert_eq!((medium.counters().sent, medium.counters().delivered, medium.counters().lost), (1, 2, 1));
    // It has nothing to do, and is not asked.
    assert_eq!(medium.poll_timeout(), Instant::NEVER);
    // They moved: the last one is in range alone.
    let places = line(&[0.0, 900.0, 800.0, 150.0]);
    medium.transmit(ms(2000), 3, bytes, &places, &mut Vec::new());
    assert_eq!(pairs(&until(&mut medium, ms(2100))), [(3, 0, 2_000_000 + idle_us(705))]);
}

#[test]
fn it_stops_at_the_first_arrival_and_goes_on_from_there() {
    let Some(mut medium) = started(&Config::default(), 1, 3) else { return };
    let places = line(&[0.0, 10.0, 20.0]);
    let bytes: Arc<[u8]> = Arc::from([1; 100].as_slice());
    medium.transmit(ms(10), 0, Arc::clone(&bytes), &places, &mut Vec::new());
    let mut out = Vec::new();
    medium.advance(ms(1000), &mut out).expect("ns-3 goes on");
    // Both receivers of the one frame, and not a second of simulated time.
    let first_us = 10_000 + idle_us(100);
    assert_eq!(pairs(&out), [(0, 1, first_us), (0, 2, first_us)]);
    // What one of them sends then is on the air well before the second is over, its backoff of at most 15 slots included.
    medium.transmit(out[0].at, 1, bytes, &places, &mut Vec::new());
    let answers = until(&mut medium, ms(1000));
    assert_eq!(answers.len(), 2);
    let waited_us = answers[0].at.as_micros() - first_us - idle_us(100);
    assert!((0..=15 * 9 + 2).contains(&waited_us), "{waited_us} us");
}

#[test]
fn the_same_seed_gives_the_same_arrivals_and_another_seed_others() {
    let flown = |seed| {
        let mut medium = started(&Config::default(), seed, 12)?;
        let places = line(&(0..12).map(|i| f64::from(i) * 20.0).collect::<Vec<_>>());
        let mut all = Vec::new();
        for round in 0..20 {
            for from in 0..12 {
                // Twice as much as the air carries for a moment: they wait for each other, and some collide.
                let at = Instant::from_micros(round * 50_000 + from as u64 * 250);
                all.extend(pairs(&until(&mut medium, at)));
                medium.transmit(at, from, Arc::from([0; 300].as_slice()), &places, &mut Vec::new());
            }
            all.extend(pairs(&until(&mut medium, ms(round * 50 + 50))));
        }
        Some(all)
    };
    let Some(first) = flown(1) else { return };
    assert_eq!(Some(&first), flown(1).as_ref());
    assert_ne!(Some(&first), flown(2).as_ref());
    // Collisions cost some, and most arrive.
    assert!((1000..20 * 12 * 11).contains(&first.len()), "{}", first.len());
}

#[test]
fn routing_brings_a_flow_over_two_hops_and_none_does_not() {
    for (routing, arrives) in
        [(Routing::None, false), (Routing::Aodv, true), (Routing::Olsr, true), (Routing::Dsdv, true)]
    {
        let flow =
            Flow { from: 0, to: End::Radio(2), kbit_s: 100.0, payload_bytes: 500, seconds: (40.0, 50.0) };
        let reach = Reach::Range { range_m: 120.0 };
        let config = Config { routing, reach, flows: vec![flow], ..Config::default() };
        let Some(mut medium) = started(&config, 1, 3) else { return };
        medium.moved(Instant::ZERO, &line(&[0.0, 100.0, 200.0]));
        assert!(until(&mut medium, ms(60_000)).is_empty());
        let figures = &medium.flows()[0];
        assert_eq!((figures.from, figures.to), (0, 2));
        // 10 s of 100 kbit/s are 125 kB.
        let bytes = figures.bytes();
        assert_eq!((100_000..=125_000).contains(&bytes), arrives, "{routing:?}: {bytes}");
        assert!(arrives || bytes == 0, "{routing:?}: {bytes}");
    }
}

/// 10 s of two radios of which one sends every 130 ms, by one of the published methods: when receptions are handed over, and the medium.
fn flown_by(method: Method, waits: bool) -> Option<(Vec<u64>, Published)> {
    let flow = Flow { from: 0, to: End::Radio(1), kbit_s: 100.0, payload_bytes: 500, seconds: (2.0, 8.0) };
    let config = Config { method, flows: vec![flow], ..Config::default() };
    let mut medium = Published::new(started(&config, 1, 2)?, method, 1, waits);
    let places = line(&[0.0, 50.0]);
    let mut out = Vec::new();
    for at in (0..=10_000).step_by(10) {
        if medium.poll_timeout() <= ms(at) {
            medium.moved(ms(at), &places);
            medium.advance(ms(at), &mut out).expect("ns-3 goes on");
        }
        if at % 130 == 0 && at < 9_900 {
            medium.transmit(ms(at), 0, Arc::from([0; 100].as_slice()), &places, &mut out);
        }
    }
    medium.end(ms(10_000)).expect("ns-3 goes on");
    Some((out.iter().map(|one| one.at.as_micros() / 1_000).collect(), medium))
}

#[test]
fn published_methods_are_late_by_their_rules_and_stepwise_equals_coupled() {
    let Some((stepwise_at, stepwise)) = flown_by(Method::Stepwise, false) else { return };
    let Some((waits_at, waits)) = flown_by(Method::Coupled, true) else { return };
    let Some((coupled_at, coupled)) = flown_by(Method::Coupled, false) else { return };
    // The network ran after the flight: all was carried, and nothing received in flight.
    assert!(stepwise_at.is_empty());
    assert_eq!((stepwise.counters().delivered, stepwise.lateness().unwrap().most_us), (77, 0));
    assert_eq!(stepwise.flows(), waits.flows());
    assert_eq!(stepwise.flows(), coupled.flows());
    assert!((70_000..=75_000).contains(&stepwise.flows()[0].bytes()), "{:?}", stepwise.flows());
    // Received at the ends of steps, within one where the flight waits, within two where it flies on.
    for (at, medium, most_us) in [(&waits_at, &waits, 100_000), (&coupled_at, &coupled, 200_000)] {
        assert!(at.iter().all(|at| at % 100 == 0) && at.len() >= 75, "{at:?}");
        let late = medium.lateness().unwrap();
        assert!(late.mean_ms() > most_us as f64 * 1e-3 / 4.0 && late.most_us <= most_us, "{late:?}");
    }
    let pace = Method::Asynchronous { pace: 1.5 };
    let (Some((_, one)), Some((_, again))) = (flown_by(pace, true), flown_by(pace, true)) else { return };
    assert_eq!((one.lateness(), one.flows()), (again.lateness(), again.flows()));
    // At the end of 10 s ns-3 is 5 s ahead, the pace's wandering aside.
    let late_s = one.lateness().unwrap().most_us as f64 * 1e-6;
    assert!((4.0..6.0).contains(&late_s), "{late_s}");
}

#[test]
fn faults_of_the_plan_disturb_it_too() {
    let Some(mut medium) = started(&Config::default(), 1, 3) else { return };
    let places = line(&[0.0, 10.0, 20.0]);
    medium.disturb(Fault::Partition { group: 0b100, until: ms(500) });
    for at in [100, 600] {
        medium.transmit(ms(at), 0, Arc::from([0; 50].as_slice()), &places, &mut Vec::new());
    }
    let to: Vec<usize> = until(&mut medium, ms(1000)).iter().map(|one| one.to[0]).collect();
    assert_eq!(to, [1, 1, 2]);
    assert_eq!((medium.counters().delivered, medium.counters().lost), (3, 1));
}

#[test]
fn one_that_dies_in_the_middle_is_one_message() {
    let Some(mut medium) = started(&Config::default(), 1, 2) else { return };
    let places = line(&[0.0, 10.0]);
    medium.transmit(ms(10), 0, Arc::from([0; 50].as_slice()), &places, &mut Vec::new());
    medium.kill();
    let error = medium.advance(ms(20), &mut Vec::new()).expect_err("it is dead");
    assert_eq!(error, "ns-3 ended: signal: 9 (SIGKILL)");
}

/// A shell script instead of the program.
fn pretender(script: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wingbeat-ns3");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    (folder, path)
}

#[test]
fn what_is_no_such_program_is_named() {
    for (script, expected) in [
        ("echo no route >&2; exit 3", "ns-3 ended: exit status: 3, it printed: no route"),
        ("printf 'WBN3\\001\\000'; cat", "expected wingbeat-ns3 with protocol 3: build it again"),
        ("printf 'hello world'; cat", "found a greeting of [104, 101,"),
        ("exec sleep 60", "ns-3 fell silent: found no answer"),
    ] {
        let (_folder, path) = pretender(script);
        let error = Ns3::start(&path, &Config::default(), 1, 2, SOON).err().expect("it is refused");
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{script}: {error}");
    }
    let missing = PathBuf::from("/nonexistent/wingbeat-ns3");
    let error = Ns3::start(&missing, &Config::default(), 1, 2, SILENCE).err().expect("it is refused");
    assert!(format!("{error:#}").starts_with("/nonexistent/wingbeat-ns3: it does not start"), "{error:#}");
}

#[test]
fn an_answer_that_is_none_is_one_message() {
    let empty = "\\000".repeat(32);
    for (frame, bytes) in [
        ("\\003\\000\\000\\000abc".to_owned(), 3),
        // More than was announced.
        (format!("\\040\\000\\000\\000{empty}ab"), 34),
    ] {
        let (_folder, path) = pretender(&format!("printf 'WBN3\\003\\000{frame}'; cat >/dev/null"));
        let mut medium = Ns3::start(&path, &Config::default(), 1, 2, SILENCE).expect("its greeting is right");
        let error = medium.advance(ms(20), &mut Vec::new()).expect_err("that is no answer");
        assert_eq!(error, format!("ns-3: found an answer of {bytes} bytes that is none"));
    }
}

#[test]
fn one_that_reads_no_more_or_closes_its_output_is_one_message() {
    for (script, expected) in [
        ("printf 'WBN3\\003\\000'; exec sleep 300", "ns-3 fell silent: found no answer"),
        ("printf 'WBN3\\003\\000'; exec >&- <&-; exec sleep 300", "ns-3 closed its output and goes on"),
    ] {
        let (_folder, path) = pretender(&format!("exec 2>/dev/null; {script}"));
        let mut medium = Ns3::start(&path, &Config::default(), 1, 1_000, SOON).expect("it greets");
        // More than a socket holds: 100 times where 1000 radios are.
        let places = line(&vec![0.0; 1_000]);
        (0..100).for_each(|at| medium.moves_at(ms(at), &places));
        let error = format!("{:#}", medium.run_to(ms(200)).expect_err("it answers nothing"));
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn answers_that_lead_nowhere_are_refused() {
    // Reached, next event and used, ns; then receptions, each at ns, receiver, id; then no arrivals of flows.
    let answer = |reached: u64, next: u64, receptions: &[(u64, u16)]| {
        let mut body: Vec<u8> = [reached, next, 0].iter().flat_map(|number| number.to_le_bytes()).collect();
        body.extend((receptions.len() as u32).to_le_bytes());
        for (at, to) in receptions {
            body.extend(at.to_le_bytes());
            body.extend(to.to_le_bytes());
            body.extend([0; 4]);
        }
        body.extend([0; 4]);
        let bytes = (body.len() as u32).to_le_bytes().into_iter().chain(body);
        bytes.map(|byte| format!("\\{byte:03o}")).collect::<String>()
    };
    const END: u64 = 20_000_000;
    let asked = |frame: &str| {
        let (_folder, path) = pretender(&format!("printf 'WBN3\\003\\000{frame}'; cat >/dev/null"));
        let mut medium = Ns3::start(&path, &Config::default(), 1, 2, SILENCE).expect("its greeting is right");
        let bytes: Arc<[u8]> = Arc::from([0; 50].as_slice());
        medium.transmit(Instant::ZERO, 0, bytes, &line(&[0.0, 10.0]), &mut Vec::new());
        medium.advance(ms(20), &mut Vec::new()).expect_err("that is no answer")
    };
    // What radio 0 has sent is received by itself, and twice by the other.
    for receptions in [&[(5, 0)][..], &[(5, 1), (5, 1)]] {
        let error = asked(&answer(5, 6, receptions));
        assert!(error.contains("expected each other radio at most once"), "{error}");
    }
    for (frame, expected) in [
        (answer(END + 1, END + 2, &[]), "found 20000001 ns reached, expected 0 to 20000000"),
        (answer(END - 1, END, &[]), "found 19999999 ns reached and nothing received"),
        (answer(END, 0, &[]), "found its next event at 0 ns"),
        (answer(5, 6, &[(5, 2)]), "found receiver 2 of 2"),
        (answer(5, 6, &[(7, 1)]), "found a reception at 7 ns, expected 0 to 5"),
    ] {
        let (_folder, path) = pretender(&format!("printf 'WBN3\\003\\000{frame}'; cat >/dev/null"));
        let mut medium = Ns3::start(&path, &Config::default(), 1, 2, SILENCE).expect("its greeting is right");
        let error = medium.advance(ms(20), &mut Vec::new()).expect_err("that is no answer");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
