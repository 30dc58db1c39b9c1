use std::sync::Arc;

use wingbeat_geo::{DVec3, Duration, Instant};

use super::Reception;
use super::csma::{Capture, Config, Csma};
use super::link::{Bursts, Fading, Jammer, Partition, Propagation};
use super::statistics::Statistics;
use super::timing::airtime;
use crate::faults::{Direction, Fault};

/// Found up to 100 m.
fn config() -> Config {
    let propagation = Propagation::Table(vec![(0.0, 60.0), (50.0, 60.0), (50.1, 80.0), (100.0, 80.0)]);
    Config { propagation, power_dbm: 0.0, ..Config::default() }
}

/// Radios along a line.
fn line(config: Config, seed: u64, metres: &[f64]) -> Csma {
    let mut medium = Csma::new(config, seed, metres.len());
    let positions: Vec<DVec3> = metres.iter().map(|&x| DVec3::new(x, 0.0, 0.0)).collect();
    medium.moved(Instant::ZERO, &positions);
    medium
}

fn datagram(len: usize) -> Arc<[u8]> {
    vec![0; len].into()
}

fn micros(at: u64) -> Instant {
    Instant::from_micros(at)
}

/// Hands over datagrams of 705 bytes (1052 µs) at times and returns all receptions.
fn run(medium: &mut Csma, handed: &[(u64, usize)]) -> Vec<Reception> {
    let mut out = Vec::new();
    for &(at, from) in handed {
        medium.advance(micros(at), &mut out);
        medium.transmit(micros(at), from, datagram(705));
    }
    medium.advance(Instant::from_secs(3600), &mut out);
    out
}

fn ends(receptions: &[Reception]) -> Vec<(u64, usize, Vec<usize>)> {
    receptions.iter().map(|r| (r.at.as_micros(), r.from, r.to.clone())).collect()
}

fn assert_adds_up(s: &Statistics) {
    assert_eq!(s.offered, s.sent + s.queue_full + s.expired, "{s:?}");
    let all = s.out_of_range + s.cut_off + s.receiver_sending + s.collided + s.noise + s.lost + s.received;
    assert_eq!(s.possible, all, "{s:?}");
    assert_eq!(s.access.count(), s.sent);
}

#[test]
fn an_idle_medium_is_used_after_difs_and_reaches_those_in_range() {
    let mut medium = line(config(), 1, &[0.0, 40.0, 99.0, 101.0]);
    let received = run(&mut medium, &[(5_000, 0)]);
    assert_eq!(ends(&received), [(5_000 + 34 + 1052, 0, vec![1, 2])]);
    let s = medium.statistics();
    assert_eq!((s.sent, s.possible, s.received, s.out_of_range), (1, 3, 2, 1));
    assert!((s.access.mean_ms() - 0.034).abs() < 1e-9);
    assert_adds_up(s);
}

#[test]
fn a_busy_medium_is_waited_for_with_a_backoff_of_0_to_15_slots() {
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let mut medium = line(config(), seed, &[0.0, 10.0, 20.0]);
        let received = run(&mut medium, &[(0, 0), (500, 1)]);
        let first_end = 34 + 1052;
        assert_eq!(received[0].at, micros(first_end));
        let second = &received[1];
        assert_eq!((second.from, &second.to[..]), (1, &[0, 2][..]));
        // Propagation over 10 m is 33 ns, which the world's clock rounds up.
        let wait = second.at.as_micros() - first_end - 1052 - 34;
        waits.insert(wait / 9);
        assert!(wait % 9 <= 1 && wait / 9 <= 15, "{wait}");
        assert_eq!(medium.statistics().waited_for_medium, 1);
    }
    assert_eq!(waits.len(), 16, "{waits:?}");
}

#[test]
fn a_second_datagram_of_the_same_radio_follows_after_difs_and_a_backoff() {
    for seed in 0..50 {
        let mut medium = line(config(), seed, &[0.0, 10.0]);
        let received = run(&mut medium, &[(0, 0), (1, 0)]);
        let gap = received[1].at.since(received[0].at).as_micros() as u64 - 1052 - 34;
        assert!(gap.is_multiple_of(9) && gap <= 135, "{gap}");
        let s = medium.statistics();
        assert_eq!((s.waited_for_own, s.waited_for_medium, s.received), (1, 0, 2));
    }
}

#[test]
fn datagrams_within_the_time_of_carrier_sense_collide_and_later_ones_wait() {
    // 4 µs after the first bit the frame is sensed: what would begin then waits.
    for (later_us, collide) in [(0, true), (3, true), (5, false), (30, false)] {
        let mut medium = line(config(), 3, &[0.0, 10.0, 20.0]);
        let received = run(&mut medium, &[(0, 0), (later_us, 1)]);
        assert_eq!(received.is_empty(), collide, "{later_us}: {received:?}");
        let s = medium.statistics();
        assert_eq!(
            (s.overlapped, s.collided, s.receiver_sending),
            if collide { (2, 2, 2) } else { (0, 0, 0) }
        );
        assert_adds_up(s);
    }
}

#[test]
fn terminals_that_are_hidden_from_each_other_collide_in_the_middle() {
    // Without capture any overlap destroys both; with it two equal preambles do.
    for (capture, later_us) in [(Capture::Never, 500), (Capture::Stronger, 3)] {
        let mut medium = line(Config { capture, ..config() }, 1, &[0.0, 90.0, 180.0]);
        assert_eq!(run(&mut medium, &[(0, 0), (later_us, 2)]), []);
        let s = medium.statistics();
        assert_eq!((s.collided, s.out_of_range, s.waited_for_medium), (2, 2, 0));
    }
    // One after the other they are received.
    let mut medium = line(config(), 1, &[0.0, 90.0, 180.0]);
    assert_eq!(run(&mut medium, &[(0, 0), (2_000, 2)]).len(), 2);
}

#[test]
fn a_radio_that_sends_receives_nothing() {
    // They begin together: each is the other's receiver.
    let mut medium = line(config(), 1, &[0.0, 10.0]);
    assert_eq!(run(&mut medium, &[(0, 0), (0, 1)]), []);
    assert_eq!(medium.statistics().receiver_sending, 2);
    assert_adds_up(medium.statistics());
}

#[test]
fn a_radio_that_sent_in_a_collision_receives_the_next_frame() {
    // Radio 0 begins 3 µs later, so that its own frame is the last on the air.
    let mut medium = line(config(), 1, &[0.0, 10.0]);
    let received = run(&mut medium, &[(0, 1), (3, 0), (5_000, 1)]);
    assert_eq!(ends(&received).len(), 1, "{received:?}");
    assert_eq!((medium.statistics().receiver_sending, medium.statistics().noise), (2, 0));
}

#[test]
fn the_stronger_of_two_frames_survives_where_capture_is_on() {
    // At the last radio the second sender is 20 dB stronger.
    let captured = |capture, handed: &[(u64, usize)]| {
        let mut medium = line(Config { capture, ..config() }, 1, &[0.0, 120.0, 90.0]);
        let received = run(&mut medium, handed);
        assert_adds_up(medium.statistics());
        ends(&received).into_iter().map(|(_, from, to)| (from, to)).collect::<Vec<_>>()
    };
    let together = [(0, 0), (3, 1)];
    assert_eq!(captured(Capture::Stronger, &together), [(1, vec![2])]);
    assert_eq!(captured(Capture::Later, &together), [(1, vec![2])]);
    assert_eq!(captured(Capture::Never, &together), []);
    // Once the first preamble is found, only a receiver that looks for later ones leaves it.
    let later = [(0, 0), (12, 1)];
    assert_eq!(captured(Capture::Stronger, &later), []);
    assert_eq!(captured(Capture::Later, &later), [(1, vec![2])]);
    // After the preamble none does.
    assert_eq!(captured(Capture::Later, &[(0, 0), (40, 1)]), []);
    // The stronger first: it survives the weaker.
    assert_eq!(captured(Capture::Stronger, &[(0, 1), (500, 0)]), [(1, vec![2])]);
    assert_eq!(captured(Capture::Never, &[(0, 1), (500, 0)]), []);
}

#[test]
fn after_a_frame_with_errors_eifs_is_waited_for() {
    // Radio 2 follows the frame of 0 until that of 1 destroys it; then it has something to send itself.
    let handed = [(0, 0), (500, 1), (600, 2)];
    let mut least = u64::MAX;
    for seed in 0..100 {
        let mut medium = line(config(), seed, &[0.0, 130.0, 90.0]);
        let received = run(&mut medium, &handed);
        let own = received.iter().find(|r| r.from == 2).unwrap();
        // The frame of 1 ends last, at 500 + 34 + 1052 µs; the error was that of 0, at 34 + 1052 µs.
        least = least.min(own.at.as_micros() - 1052 - (500 + 34 + 1052));
    }
    // EIFS of 94 µs has passed before the medium is idle: DIFS decides.
    assert!((34..36).contains(&least), "{least}");

    // Where the destroyed frame ends last, EIFS decides.
    let mut least = u64::MAX;
    for seed in 0..100 {
        let mut medium = line(config(), seed, &[0.0, 130.0, 90.0]);
        let mut out = Vec::new();
        medium.transmit(micros(0), 0, datagram(1400));
        medium.transmit(micros(500), 1, datagram(10));
        medium.advance(micros(900), &mut out);
        medium.transmit(micros(900), 2, datagram(10));
        medium.advance(Instant::from_secs(1), &mut out);
        let own = out.iter().find(|r| r.from == 2).unwrap();
        let first_end = 34 + airtime(1400).as_micros() as u64;
        least = least.min(own.at.as_micros() - airtime(10).as_micros() as u64 - first_end);
    }
    assert!((94..96).contains(&least), "{least}");
}

#[test]
fn the_queue_is_bounded_and_old_datagrams_are_dropped() {
    let mut medium = line(Config { queue: 3, ..config() }, 1, &[0.0, 10.0]);
    let received = run(&mut medium, &[(0, 0); 10]);
    let s = medium.statistics();
    assert_eq!((received.len(), s.offered, s.queue_full, s.sent), (3, 10, 7, 3));
    assert_adds_up(s);

    let mut medium = line(Config { lifetime: Duration::from_millis(5), ..config() }, 1, &[0.0, 10.0]);
    let received = run(&mut medium, &[(0, 0); 100]);
    let s = medium.statistics();
    assert!((4..=6).contains(&received.len()) && s.expired == 100 - s.sent, "{s:?}");
    assert_adds_up(s);
    // What comes later is sent.
    let mut out = Vec::new();
    medium.transmit(Instant::from_secs(3600), 0, datagram(10));
    medium.advance(Instant::from_secs(3601), &mut out);
    assert_eq!(out.len(), 1);
}

#[test]
fn a_partition_cuts_carrier_sense_too_and_heals() {
    let partition = Partition { group: 0b01, from: micros(0), until: micros(10_000) };
    let mut medium = line(Config { partitions: vec![partition], ..config() }, 1, &[0.0, 10.0]);
    let received = run(&mut medium, &[(0, 0), (500, 1), (20_000, 0)]);
    assert_eq!(ends(&received), [(20_000 + 34 + 1052, 0, vec![1])]);
    let s = medium.statistics();
    assert_eq!((s.cut_off, s.waited_for_medium), (2, 0));
    assert_adds_up(s);
}

#[test]
fn faults_of_the_channel_apply() {
    let until = micros(10_000);
    for (fault, expected) in [
        (Fault::Partition { group: 0b01, until }, (1, 0)),
        (Fault::RadioSilent { vehicle: 0, lost: Direction::Sent, until }, (1, 0)),
        (Fault::Loss { share: 1.0, until }, (0, 1)),
        (Fault::Bursts { share: 1.0, stretch: Duration::from_millis(1), until }, (0, 1)),
    ] {
        let mut medium = line(config(), 1, &[0.0, 10.0]);
        medium.disturb(fault);
        assert_eq!(run(&mut medium, &[(0, 0), (20_000, 0)]).len(), 1, "{fault:?}");
        assert_eq!((medium.statistics().cut_off, medium.statistics().lost), expected, "{fault:?}");
    }
    let mut medium = line(config(), 1, &[0.0, 10.0]);
    medium.disturb(Fault::Doubled { share: 1.0, most: Duration::from_millis(3), until });
    assert_eq!(run(&mut medium, &[(0, 0)]).len(), 2);
}

#[test]
fn a_jammer_destroys_what_is_weak_and_silences_what_is_near() {
    let jammer = |power_dbm| Jammer {
        at_m: DVec3::new(30.0, 0.0, 0.0),
        power_dbm,
        from: micros(1_000),
        until: micros(50_000),
        on: Duration::from_secs(1),
        period: Duration::from_secs(1),
    };
    // -65 dBm at 30 m: below what carrier sense reports of noise, above what frames can bear (-60 dBm, 4 dB).
    let medium =
        |power_dbm| line(Config { jammers: vec![jammer(power_dbm)], ..config() }, 1, &[0.0, 40.0, 75.0]);
    let mut strong = medium(0.0);
    let received = run(&mut strong, &[(2_000, 0)]);
    // -60 dBm make the medium busy until the jammer ends.
    assert!(received[0].at > micros(50_000 + 34 + 1052), "{received:?}");
    assert!(received[0].at < micros(50_000 + 34 + 1052 + 16 * 9), "{received:?}");
    let mut weak = medium(-3.0);
    assert_eq!(run(&mut weak, &[(2_000, 0)]), [], "-63 dBm of noise under frames of -60 and -80 dBm");
    assert_eq!(weak.statistics().noise, 2);
    assert_eq!(run(&mut medium(-10.0), &[(2_000, 0)])[0].to, [1], "-70 dBm destroy the frame of -80 dBm");
    assert_eq!(run(&mut medium(-60.0), &[(2_000, 0)])[0].to, [1, 2]);
    assert_eq!(run(&mut medium(0.0), &[(60_000, 0)])[0].to, [1, 2], "it has ended");
}

#[test]
fn fading_makes_the_edge_of_range_gradual() {
    let propagation = Propagation::LogDistance { exponent: 2.0, first_metre_db: 40.0 };
    // Found up to 126 m without fading.
    let share = |fading, metres| {
        let config = Config { propagation: propagation.clone(), power_dbm: 0.0, fading, ..Config::default() };
        let mut medium = line(config, 1, &[0.0, metres]);
        let handed: Vec<(u64, usize)> = (0..2_000).map(|k| (k * 100_000, 0)).collect();
        run(&mut medium, &handed).len() as f64 / 2_000.0
    };
    assert_eq!((share(Fading::None, 120.0), share(Fading::None, 130.0)), (1.0, 0.0));
    for fading in [Fading::PerPacket { m: 1 }, Fading::PerSecond { m: 1 }] {
        // Rayleigh: exp(-d²/126²) are above the threshold.
        for metres in [60.0, 126.0, 200.0] {
            let expected = libm::exp(-(metres / 125.9_f64).powi(2));
            // 200 seconds are few draws.
            let tolerance = if fading == (Fading::PerPacket { m: 1 }) { 0.03 } else { 0.09 };
            let found = share(fading, metres);
            assert!((found - expected).abs() < tolerance, "{fading:?} {metres}: {found} {expected}");
        }
    }
}

#[test]
fn bursts_lose_receptions_and_not_carrier_sense() {
    let bursts = Bursts {
        good: Duration::from_secs(1),
        bad: Duration::from_secs(3600),
        lost_in_good: 1.0,
        lost_in_bad: 1.0,
    };
    let mut medium = line(Config { bursts: Some(bursts), ..config() }, 1, &[0.0, 10.0]);
    assert_eq!(run(&mut medium, &[(0, 0), (500, 1)]), []);
    let s = medium.statistics();
    assert_eq!((s.lost, s.waited_for_medium), (2, 1));
}

#[test]
fn the_same_seed_gives_the_same_receptions() {
    let all = |seed| {
        let config = Config { fading: Fading::PerPacket { m: 2 }, ..config() };
        let mut medium = line(config, seed, &[0.0, 20.0, 45.0, 70.0, 95.0, 130.0, 160.0]);
        let handed: Vec<(u64, usize)> = (0..2_000u64).map(|k| (k * 300, (k * k % 7) as usize)).collect();
        let received = run(&mut medium, &handed);
        assert_adds_up(medium.statistics());
        let s = medium.statistics();
        assert!(
            s.collided > 100 && s.received > 100 && s.receiver_sending > 0 && s.out_of_range > 100,
            "{s:?}"
        );
        (received, s.clone())
    };
    assert!(all(1) == all(1));
    assert!(all(1).0 != all(2).0);
}
