//! One ArduCopter on two physics: on its own, as it is simulated by its makers, and in lock step on ours (`sim::rigid`), manoeuvre by
//! manoeuvre. Program, parameters, client and what is measured are the same; what differs is what moves the aircraft, and that on
//! its own physics the program runs by the clock.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use wingbeat_autopilot::codec::Decoder;
use wingbeat_cosim::copter::{Config, Copter, LockStep, STRETCH};
use wingbeat_cosim::incidents::Sensors;
use wingbeat_geo::{DVec2, DVec3, Instant};
use wingbeat_linktest::statistics::mean;
use wingbeat_sim::autopilot::Autopilot as _;
use wingbeat_sim::motion::{BatteryParameters, WindParameters};
use wingbeat_sim::rigid::Body;

use super::measure::{Quantity, first, flat, legs, most, speed};
use super::script::{
    AGAINST, ARRIVED_M, CRUISES, HEIGHT_M, LEGS, LEVELS, SUDDEN, Sample, Script, Segment, TURN_DEG, Trace,
};
use super::{LIMIT_S, feed};
use crate::lockstep::{ENDLESS_MAH, SILENCE};
use crate::plan::profile_of;
use crate::scenario::ORIGIN;
use crate::sitl::parameters::{self, Wanted, wind_gradient};

/// The speed of missions, and of the return.
const SPEED_M_S: f64 = 10.0;
/// The mean wind of [`Flight::Wind`] at [`HEIGHT_M`], from the west.
const WIND_M_S: f64 = 6.0;
/// The error at the end of a manoeuvre is the mean of so long.
const STEADY_S: f64 = 4.0;
/// A turn is over when it stays within this of where it is to point.
const TURNED_DEG: f64 = 5.0;
/// So low it has met the ground, as the reference has it.
const DOWN_M: f64 = 0.15;

/// What is flown on each physics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// The manoeuvres, in air that does not move.
    Calm,
    /// A hover and a cruise in wind without gusts.
    Wind,
}

impl Flight {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Calm, Self::Wind];

    pub(super) fn script(self) -> Script {
        match self {
            Self::Calm => Script::manoeuvres(),
            Self::Wind => Script::in_wind(),
        }
    }

    /// The air at the height of the manoeuvres.
    fn wind(self) -> WindParameters {
        match self {
            Self::Calm => WindParameters::default(),
            Self::Wind => WindParameters {
                speed_m_s: WIND_M_S,
                direction_rad: 1.5 * std::f64::consts::PI,
                ..WindParameters::default()
            },
        }
    }

    /// The parameters; the wind is among them on the program's own physics, where it is less near the ground.
    pub(super) fn parameters(self, of_own_physics: bool) -> String {
        let factor = if of_own_physics { wind_gradient(HEIGHT_M) } else { 0.0 };
        let wind = self.wind();
        parameters::file(&Wanted {
            speed_m_s: SPEED_M_S,
            wind: WindParameters { speed_m_s: wind.speed_m_s * factor, ..wind },
            log: false,
            position_hz: 4,
            extra: "",
        })
    }
}

/// Flies in lock step on our physics, in virtual time.
///
/// # Errors
/// The program cannot be flown in lock step, ends or falls silent; a step that does not end.
pub fn on_ours(binary: &Path, flight: Flight) -> Result<Trace> {
    let config = Config {
        home: ORIGIN,
        heading_rad: 0.0,
        booted_at: Instant::ZERO,
        wind: flight.wind(),
        wind_full_m: HEIGHT_M,
        weather: (1, ORIGIN),
        body: Body::of(profile_of(binary)?),
        battery: BatteryParameters { capacity_mah: ENDLESS_MAH, ..BatteryParameters::default() },
        physics: None,
        sensors: Sensors::default(),
        stretch: STRETCH,
        defaults: flight.parameters(false),
        silence: SILENCE,
    };
    let mut copter = Copter::start(&LockStep::find(binary)?, config)?;
    let (mut script, mut decoder) = (flight.script(), Decoder::default());
    let (mut received, mut sent, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    while now < Instant::from_secs(LIMIT_S) {
        now = now + STRETCH;
        copter.receive(&sent);
        copter.begin(now);
        received.clear();
        copter.finish(&mut received).map_err(|why| anyhow!(why)).context("in lock step")?;
        sent.clear();
        if let Some(trace) = feed(&mut script, &mut decoder, &received, &mut sent)? {
            return Ok(trace);
        }
    }
    bail!("the manoeuvres: found no end within {LIMIT_S} s in lock step")
}

/// What the flights come to: the same names for every pair of them.
pub fn everything(calm: &Trace, wind: &Trace) -> Vec<Quantity> {
    let mut all = Figures(Vec::new());
    let up = DVec3::new(0.0, 0.0, HEIGHT_M);
    let climb = part(calm, "take-off");
    let there = first(climb.clone(), |s| s.position.z > 0.95 * HEIGHT_M).map(|(t, _)| t);
    all.put("take-off", "time to 95 % of its height", "s", there);
    all.put("take-off", "overshoot", "m", most(climb.clone().map(|(_, s)| s.position.z - HEIGHT_M)));
    all.put("take-off", "peak speed", "m/s", most(climb.map(|(_, s)| s.velocity.z)));
    all.put("take-off", "steady error", "m", steady(calm, "take-off", up));
    all.hover(calm, "hover", up);
    for (name, from, to, _) in CRUISES {
        all.track(calm, name, from, to);
    }
    for (name, from, to) in LEVELS {
        all.track(calm, name, from, to);
    }
    all.turn(calm);
    all.brake(calm);
    let corners = segment(calm, "corners");
    legs(calm, corners, &mut |quantity, unit, value| {
        let quantity = quantity.strip_prefix("legs: ").unwrap_or(quantity);
        all.put("corners", quantity, unit, value);
    });
    all.put("corners", "steady error", "m", steady(calm, "corners", LEGS[3]));
    let back = part(calm, "return");
    let home = |s: &Sample| flat(s.position).length() < ARRIVED_M && speed(s) < 0.5;
    all.put("return", "duration", "s", first(back.clone(), home).map(|(t, _)| t));
    let from = back.clone().next().map_or(DVec2::ZERO, |(_, s)| flat(s.position));
    let past = |s: &Sample| -flat(s.position).dot(from.normalize_or_zero());
    all.put("return", "overshoot", "m", most(back.clone().map(|(_, s)| past(s))));
    all.put("return", "peak speed", "m/s", most(back.map(|(_, s)| speed(s))));
    all.land(calm);
    all.hover(wind, "hover in wind", up);
    let (name, to, _) = AGAINST;
    all.track(wind, name, up, to);
    all.0
}

fn segment(trace: &Trace, name: &str) -> Segment {
    trace.segment(name).unwrap_or(Segment { name: "none", from_s: 0.0, to_s: -1.0 })
}

fn part<'a>(trace: &'a Trace, name: &str) -> impl Iterator<Item = (f64, &'a Sample)> + Clone {
    trace.of(segment(trace, name))
}

/// The mean distance from a place at the end of a segment.
fn steady(trace: &Trace, name: &str, at: DVec3) -> Option<f64> {
    let Segment { from_s, to_s, .. } = segment(trace, name);
    let last = part(trace, name).filter(|(t, _)| *t > to_s - from_s - STEADY_S);
    mean(last.map(|(_, s)| (s.position - at).length()))
}

/// By how much it points to the right of a heading, -180 to 180 degrees.
fn right_of_deg(found_deg: f64, heading_deg: f64) -> f64 {
    (found_deg - heading_deg + 180.0).rem_euclid(360.0) - 180.0
}

struct Figures(Vec<Quantity>);

impl Figures {
    fn put(&mut self, manoeuvre: &str, quantity: &str, unit: &'static str, value: Option<f64>) {
        let (name, value) = (format!("{manoeuvre}: {quantity}"), value.unwrap_or(f64::NAN));
        self.0.push(Quantity { name, value, unit });
    }

    /// Standing in the air.
    fn hover(&mut self, trace: &Trace, name: &str, at: DVec3) {
        let stands = part(trace, name);
        self.put(name, "peak speed", "m/s", most(stands.clone().map(|(_, s)| s.velocity.length())));
        let farthest = most(stands.map(|(_, s)| flat(s.position - at).length()));
        self.put(name, "farthest from its place", "m", farthest);
        self.put(name, "steady error", "m", steady(trace, name, at));
    }

    /// From one place to another, to rest there.
    fn track(&mut self, trace: &Trace, name: &str, from: DVec3, to: DVec3) {
        let (flown, way) = (part(trace, name), to - from);
        let rests = |s: &Sample| (s.position - to).length() < 1.0 && s.velocity.length() < 0.5;
        self.put(name, "duration", "s", first(flown.clone(), rests).map(|(t, _)| t));
        let past = |s: &Sample| (s.position - to).dot(way.normalize_or_zero());
        self.put(name, "overshoot", "m", most(flown.clone().map(|(_, s)| past(s))));
        self.put(name, "peak speed", "m/s", most(flown.map(|(_, s)| s.velocity.length())));
        self.put(name, "steady error", "m", steady(trace, name, to));
    }

    /// About itself.
    fn turn(&mut self, trace: &Trace) {
        let turn: Vec<_> = part(trace, "turn").filter(|(_, s)| s.heading_deg.is_finite()).collect();
        let began_deg = turn.first().map_or(f64::NAN, |(_, s)| s.heading_deg);
        // Where it points beyond what was commanded.
        let beyond = |s: &Sample| right_of_deg(s.heading_deg, began_deg + TURN_DEG);
        let last_off = turn.iter().rposition(|(_, s)| beyond(s).abs() > TURNED_DEG);
        let turned = last_off.and_then(|i| turn.get(i + 1)).map(|(t, _)| *t);
        self.put("turn", "duration", "s", turned);
        self.put("turn", "overshoot", "deg", most(turn.iter().map(|(_, s)| beyond(s))));
        // Over a fifth of a second: headings are whole hundredths of a degree, at uneven times.
        let rates = turn
            .iter()
            .zip(turn.iter().skip(5))
            .map(|((t, a), (later, b))| right_of_deg(b.heading_deg, a.heading_deg) / (later - t).max(1e-3));
        self.put("turn", "peak speed", "deg/s", most(rates));
        let end_s = turn.last().map_or(0.0, |(t, _)| *t);
        let rest = turn.iter().filter(|(t, _)| *t > end_s - STEADY_S);
        self.put("turn", "steady error", "deg", mean(rest.map(|(_, s)| beyond(s).abs())));
    }

    fn brake(&mut self, trace: &Trace) {
        let (_, name) = SUDDEN;
        super::measure::brake(trace, segment(trace, name), name, &mut |quantity, unit, value| {
            let quantity = quantity.strip_prefix(name).map_or(quantity, |rest| rest.trim_start_matches(": "));
            self.put(name, quantity, unit, value);
        });
    }

    fn land(&mut self, trace: &Trace) {
        let down = part(trace, "land");
        self.put("land", "duration", "s", down.clone().last().map(|(t, _)| t));
        let touch = first(down.clone(), |s| s.position.z < DOWN_M);
        self.put("land", "time to touch-down", "s", touch.map(|(t, _)| t));
        self.put("land", "peak speed", "m/s", most(down.clone().map(|(_, s)| -s.velocity.z)));
        let meets_m_s = touch.map(|(_, s)| -s.velocity.z);
        self.put("land", "speed at touch-down", "m/s", meets_m_s);
        let from = down.clone().next().map_or(DVec3::ZERO, |(_, s)| s.position);
        let aside_m = down.last().map(|(_, s)| flat(s.position - from).length());
        self.put("land", "steady error", "m", aside_m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::{kept_names_are_unique, simulated_on};
    use wingbeat_sim::motion::Profile;

    #[test]
    fn both_profiles_fly_every_manoeuvre_and_each_quantity_is_found() {
        for profile in [Profile::Copter357, Profile::Copter462] {
            let [calm, wind] = Flight::ALL.map(|flight| simulated_on(profile, flight).unwrap());
            let all = everything(&calm, &wind);
            kept_names_are_unique(&all);
            let missing: Vec<_> = all.iter().filter(|q| !q.value.is_finite()).collect();
            assert!(missing.is_empty(), "{profile}: {missing:?}");
            let figure = |name: &str| all.iter().find(|q| q.name == name).unwrap().value;
            for (name, speed_m_s) in [("5 m/s and stop", 5.0), ("10 m/s and stop", 10.0)] {
                let found = figure(&format!("{name}: peak speed"));
                assert!((0.9..1.06).contains(&(found / speed_m_s)), "{profile}, {name}: {found}");
            }
            // It turns by 60 degrees a second, which a difference of headings shows to a few digits.
            assert!((8.0..60.1).contains(&figure("turn: peak speed")), "{profile}: {all:?}");
            assert!(figure("turn: steady error") < 2.0 && figure("hover: steady error") < 1.0, "{profile}");
            assert!(figure("hover in wind: steady error") < 1.0, "{profile}");
        }
    }

    #[test]
    fn a_turn_over_north_is_measured_as_any_other() {
        let at = |t_s: f64, heading_deg: f64| Sample {
            t_s,
            position: DVec3::new(0.0, 0.0, HEIGHT_M),
            velocity: DVec3::ZERO,
            heading_deg,
        };
        // 30 degrees a second from 300 to 392 degrees, back to 390.
        let turns = (0..100).map(|i| {
            let turned = (f64::from(i) * 30.0 * 0.04).min(92.0);
            at(f64::from(i) * 0.04, (300.0 + if i > 90 { 90.0 } else { turned }) % 360.0)
        });
        let segments = vec![Segment { name: "turn", from_s: 0.0, to_s: 4.0 }];
        let mut figures = Figures(Vec::new());
        figures.turn(&Trace { samples: turns.collect(), segments });
        let values: Vec<f64> = figures.0.iter().map(|q| (q.value * 10.0).round() / 10.0).collect();
        // Within 5 degrees from 85 on: 2.84 s.
        assert_eq!(values[..3], [2.8, 2.0, 30.0]);
    }
}
