//! How far gusts carry an aircraft that holds its place: what the separation budget has for it
//! (`crates/protocol/src/swarm/budget.rs`, `docs/separation.md`).

use wingbeat_geo::DVec3;
use wingbeat_protocol::swarm::budget::{AIRSPEED_3_M_S, AIRSPEED_4_M_S, GUST_SHARE, wind_most_m_s};
use wingbeat_sim::motion::{Multicopter, NavParameters, Profile, Task, Wind, WindParameters};

const TICK_S: f64 = 0.02;
const WIND_S: f64 = 0.1;
const TAKE_OFF_S: f64 = 30.0;
const HOVER_S: f64 = 600.0;

/// In a mean wind: standard deviation per axis, and the greatest distance, metres.
fn carried_m(profile: Profile, speed_m_s: f64) -> (f64, f64) {
    let (mut squares, mut samples, mut most_m) = (0.0, 0.0, 0.0f64);
    for seed in 0..8 {
        let weather = WindParameters {
            speed_m_s,
            direction_rad: f64::from(seed),
            gust_deviation_m_s: GUST_SHARE * speed_m_s,
            gust_time_constant_s: 5.0,
            gust_length_m: 100.0,
        };
        let wind = Wind::new(weather, seed as u64);
        let parameters = NavParameters::new(profile);
        let mut aircraft = Multicopter::new(profile, DVec3::ZERO, 0.0);
        aircraft.set_task(Task::TakeOff { altitude_m: 20.0 }, &parameters);
        let mut air = DVec3::ZERO;
        for tick in 0..((TAKE_OFF_S + HOVER_S) / TICK_S) as u32 {
            let (at_s, off_m) = (f64::from(tick) * TICK_S, aircraft.state().position.truncate());
            if tick % (WIND_S / TICK_S).round() as u32 == 0 {
                air = wind.at(at_s, off_m);
            }
            aircraft.step(TICK_S, &parameters, air);
            if at_s > TAKE_OFF_S {
                squares += off_m.length_squared() / 2.0;
                samples += 1.0;
                most_m = most_m.max(off_m.length());
            }
        }
    }
    (libm::sqrt(squares / samples), most_m)
}

#[test]
fn within_the_wind_that_is_held_gusts_carry_an_aircraft_no_farther_than_the_budget_has() {
    for (profile, airspeed_m_s, carried_s) in
        [(Profile::Copter357, AIRSPEED_3_M_S, 0.088), (Profile::Copter462, AIRSPEED_4_M_S, 0.035)]
    {
        let most_m_s = wind_most_m_s(airspeed_m_s);
        for wind_m_s in [2.0, 4.0, most_m_s] {
            let (deviation_m, most_m) = carried_m(profile, wind_m_s);
            println!("{profile:?} {wind_m_s:.1} m/s: {deviation_m:.2} m per axis, at most {most_m:.2} m");
            let share_s = deviation_m / wind_m_s;
            assert!(
                (0.7 * carried_s..1.1 * carried_s).contains(&share_s),
                "{profile:?} {wind_m_s}: {share_s} s"
            );
            // Over the ground, in four hours: the budget's four deviations of an axis and a little.
            assert!(most_m < 4.8 * carried_s * wind_m_s, "{profile:?} {wind_m_s}: {most_m} m");
        }
        // A third more is no longer held.
        let (_, most_m) = carried_m(profile, most_m_s * 1.5);
        assert!(most_m > 5.0, "{profile:?}: {most_m} m");
    }
}
