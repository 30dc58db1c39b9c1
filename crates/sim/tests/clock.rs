//! This computer's clock next to GNSS time, through the flight controller: an agent and a controller in virtual time.

use crate::common::pair;

use pair::{HOME, Pair};
use wingbeat_agent::Input;
use wingbeat_geo::Duration;
use wingbeat_sim::flight_controller::{Boot, Config};
use wingbeat_sim::motion::Profile;

fn controller(profile: Profile, boot: Boot) -> Config {
    Config { profile, boot, ..Config::new(1, HOME) }
}

#[test]
fn the_offset_of_a_clock_from_gnss_time_is_known_to_its_bound() {
    for profile in [Profile::Copter357, Profile::Copter462] {
        let mut pair = Pair::new(controller(profile, Boot::Warm), |_| {});
        let behind_us = 1_234_567;
        pair.feed(Input::Utc { unix_us: pair.true_us() - behind_us });
        // The first time has to stand for a minute.
        pair.run(Duration::from_secs(75));
        let clock = pair.agent.status(pair.now()).clock.unwrap();
        let off_us = clock.gnss.unix_us.abs_diff(pair.true_us());
        println!("{profile:?}: off by {off_us} µs, bound {} µs", clock.gnss.error_us);
        assert!(off_us <= clock.gnss.error_us && clock.gnss.error_us < 30_000, "{off_us} {clock:?}");
        let ahead_us = clock.ahead_us.unwrap();
        assert!(ahead_us.abs_diff(-(behind_us as i64)) <= clock.gnss.error_us, "{ahead_us}");
        let check = pair.check("clock");
        assert!(
            !check.passed && !check.is_required && check.detail.contains("behind GNSS time"),
            "{check:?}"
        );
        pair.feed(Input::Utc { unix_us: pair.true_us() });
        assert!(pair.check("clock").passed);
    }
}

#[test]
fn a_clock_in_1970_at_boot_refuses_setup_until_it_is_set_and_ends_right() {
    let expires_us = 1_767_225_600_000_000 + 3_600_000_000;
    let mut pair =
        Pair::new(controller(Profile::Copter462, Boot::Cold), |config| config.clocks_are_set = true);
    pair.feed(Input::Utc { unix_us: 60_000_000 });
    pair.feed(Input::KeysHold { from_unix_us: 1_767_225_000_000_000, until_unix_us: expires_us });
    let before = pair.now();
    let check = pair.check("clock");
    let expected = "not set, and no GNSS time from the flight controller yet";
    assert!(!check.passed && check.is_required && check.detail == expected, "{check:?}");
    let keys = |pair: &Pair| pair.check("keys");
    assert!(keys(&pair).detail.contains("not known"), "{:?}", keys(&pair));

    // The receiver has found its satellites, and its time has stood for a minute. Keys are judged by it before the clock is set.
    pair.run(Duration::from_secs(120));
    assert!(pair.check("clock").detail.contains("days behind GNSS time"), "{:?}", pair.check("clock"));
    assert!(keys(&pair).passed && keys(&pair).detail.contains("expire in 0 h"), "{:?}", keys(&pair));
    assert!(pair.agent.counter() < 1_000_000_000_000, "{}", pair.agent.counter());

    // Another program sets the clock.
    pair.feed(Input::Utc { unix_us: pair.true_us() });
    assert!(pair.check("clock").passed, "{:?}", pair.check("clock"));
    assert!(pair.agent.counter() >= pair.true_us(), "datagrams are counted from where the clock is");
    assert!(pair.now() > before && pair.now().as_micros() < 160_000_000, "the agent's own time did not jump");

    // Put back by a spoofed receiver, or by hand: neither makes expired keys valid.
    pair.run(Duration::from_secs(3_600));
    assert!(!keys(&pair).passed, "{:?}", keys(&pair));
    pair.feed(Input::Utc { unix_us: 60_000_000 });
    assert!(!keys(&pair).passed && !pair.check("clock").passed);
    let counter = pair.agent.counter();
    pair.feed(Input::Utc { unix_us: 120_000_000 });
    assert!(pair.agent.counter() >= counter, "never backwards");
}

/// Case 20: u-blox receivers step by a week at its end, and by 1024 weeks after a roll-over.
#[test]
fn a_receiver_that_is_ahead_judges_no_keys_and_gives_no_sample() {
    const WEEK_US: u64 = 7 * 86_400_000_000;
    for weeks in [1, 1_024] {
        let mut pair = Pair::new(controller(Profile::Copter462, Boot::Warm), |_| {});
        let now_us = pair.true_us();
        pair.feed(Input::Utc { unix_us: now_us });
        let until_unix_us = now_us + 86_400_000_000;
        pair.feed(Input::KeysHold { from_unix_us: now_us - 1, until_unix_us });
        pair.run(Duration::from_secs(90));
        assert!(pair.agent.gnss_time(pair.now()).is_some());
        let stepped_us = pair.true_us() + weeks * WEEK_US;
        pair.step_utc(weeks * WEEK_US);
        for _ in 0..55 {
            pair.run(Duration::from_secs(1));
            let gnss = pair.agent.gnss_time(pair.now());
            assert!(gnss.is_none_or(|gnss| gnss.unix_us < stepped_us), "{weeks} weeks: {gnss:?}");
            assert!(pair.check("keys").passed, "{weeks} weeks: {:?}", pair.check("keys"));
        }
        let expected = if weeks == 1 { "stepped ahead by" } else { "the receiver's week number is wrong" };
        assert!(pair.lines.iter().any(|line| line.contains(expected)), "{weeks} weeks: {:?}", pair.lines);
        pair.run(Duration::from_secs(100));
        if weeks == 1_024 {
            assert!(pair.check("keys").passed, "never: {:?}", pair.check("keys"));
        }
    }
}
