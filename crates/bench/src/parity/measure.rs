//! What a trace comes to: times, distances and speeds of every segment.

use wingbeat_geo::{DVec2, DVec3};

use wingbeat_linktest::statistics::mean;

use super::script::{ARRIVED_M, BRAKES, CIRCLE, LEGS, SQUARE, Sample, Segment, Trace, on_circle};

/// One figure of a flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Name, unique in the comparison.
    pub name: String,
    /// How much; NaN where it did not happen.
    pub value: f64,
    /// `s`, `m`, `m/s`, `deg` or `deg/s`.
    pub unit: &'static str,
}

/// Slower than this it stands, for a protocol (the reference's limit).
const SLOW_M_S: f64 = 0.6;
/// What a circle's first round is not judged by.
const CIRCLE_FROM_S: f64 = 20.0;

impl Trace {
    /// The segment of a name.
    pub fn segment(&self, name: &str) -> Option<Segment> {
        self.segments.iter().find(|p| p.name == name).copied()
    }

    /// Samples of a segment with their time since its begin.
    pub(super) fn of(&self, segment: Segment) -> impl Iterator<Item = (f64, &Sample)> + Clone {
        let inside = move |s: &&Sample| s.t_s >= segment.from_s && s.t_s <= segment.to_s;
        self.samples.iter().filter(inside).map(move |s| (s.t_s - segment.from_s, s))
    }

    /// Where it was at a time, straight between samples.
    pub fn at(&self, t_s: f64) -> Option<DVec3> {
        let after = self.samples.partition_point(|s| s.t_s < t_s);
        let (a, b) = (self.samples.get(after.checked_sub(1)?)?, self.samples.get(after)?);
        let share = (t_s - a.t_s) / (b.t_s - a.t_s).max(1e-9);
        Some(a.position + (b.position - a.position) * share)
    }
}

pub(super) fn first<'a>(
    mut samples: impl Iterator<Item = (f64, &'a Sample)>,
    holds: impl Fn(&Sample) -> bool,
) -> Option<(f64, &'a Sample)> {
    samples.find(|(_, s)| holds(s))
}

pub(super) fn flat(v: DVec3) -> DVec2 {
    v.truncate()
}

/// Every quantity of a flight; the same names for every trace of the scenario.
pub fn everything(trace: &Trace) -> Vec<Quantity> {
    let mut all = Vec::new();
    let mut put = |name: &str, unit, value: Option<f64>| {
        all.push(Quantity { name: name.to_owned(), value: value.unwrap_or(f64::NAN), unit });
    };
    let segment =
        |name: &str| trace.segment(name).unwrap_or(Segment { name: "none", from_s: 0.0, to_s: -1.0 });

    let climb = trace.of(segment("take-off"));
    for height_m in [0.1, 10.0, 18.0] {
        let at = first(climb.clone(), |s| s.position.z > height_m).map(|(t, _)| t);
        put(&format!("take-off: command to {height_m} m"), "s", at);
    }
    put("take-off: fastest climb", "m/s", most(climb.map(|(_, s)| s.velocity.z)));

    legs(trace, segment("legs"), &mut put);
    for (_, name) in BRAKES {
        brake(trace, segment(name), name, &mut put);
    }
    for (i, name) in ["side 1", "side 2", "side 3", "side 4"].into_iter().enumerate() {
        let from = SQUARE[(i + 3) % 4];
        let way = flat(SQUARE[i] - from);
        let (length_m, side) = (way.length(), trace.of(segment(name)));
        let along = |s: &Sample| flat(s.position - from).dot(way) / length_m;
        let half = first(side.clone(), |s| along(s) > length_m / 2.0).map(|(t, _)| t);
        put(&format!("{name}: command to half way"), "s", half);
        let near = |s: &Sample| flat(SQUARE[i] - s.position).length() < 1.0 && speed(s) < 0.5;
        put(&format!("{name}: command to rest"), "s", first(side.clone(), near).map(|(t, _)| t));
        put(&format!("{name}: overshoot"), "m", most(side.map(|(_, s)| along(s) - length_m)));
    }
    circle(trace, segment("circle"), &mut put);
    let ends = trace.of(segment("stream ends"));
    put("stream ends: to 0.6 m/s", "s", first(ends, |s| speed(s) < SLOW_M_S).map(|(t, _)| t));

    let back = trace.of(segment("return"));
    let from_m = back.clone().next().map_or(0.0, |(_, s)| flat(s.position).length());
    let half = first(back.clone(), |s| flat(s.position).length() < from_m / 2.0).map(|(t, _)| t);
    put("return: command to half way", "s", half);
    put("return: fastest", "m/s", most(back.clone().map(|(_, s)| speed(s))));
    let home = |s: &Sample| flat(s.position).length() < 1.0 && speed(s) < 0.5;
    put("return: command to rest at home", "s", first(back, home).map(|(t, _)| t));

    let down = trace.of(segment("land"));
    let touch = first(down.clone(), |s| s.position.z < 0.15).map(|(t, _)| t);
    put("land: command to 10 m", "s", first(down.clone(), |s| s.position.z < 10.0).map(|(t, _)| t));
    put("land: command to touch-down (0.15 m)", "s", touch);
    put("land: fastest descent", "m/s", most(down.clone().map(|(_, s)| -s.velocity.z)));
    put("land: command to disarm", "s", down.last().map(|(t, _)| t));
    all
}

pub(super) fn legs(trace: &Trace, segment: Segment, put: &mut impl FnMut(&str, &'static str, Option<f64>)) {
    let legs = trace.of(segment);
    let moves = first(legs.clone(), |s| speed(s) > 0.15).map(|(t, _)| t);
    put("legs: command to 0.15 m/s", "s", moves);
    put("legs: fastest", "m/s", most(legs.clone().map(|(_, s)| speed(s))));
    for (i, corner) in LEGS[1..3].iter().enumerate() {
        let closest = least(legs.clone().map(|(_, s)| flat(*corner - s.position).length()));
        put(&format!("legs: corner {} cut", i + 1), "m", closest);
        let near = legs.clone().filter(|(_, s)| flat(*corner - s.position).length() < 15.0);
        put(&format!("legs: slowest at corner {}", i + 1), "m/s", least(near.map(|(_, s)| speed(s))));
    }
    let (before, last) = (LEGS[2], LEGS[3]);
    let way = flat(last - before);
    let along = |s: &Sample| flat(s.position - before).dot(way) / way.length();
    // Only on the last leg: the first one runs parallel to it in the other direction.
    let on_last = legs.clone().filter(|(_, s)| (s.position.x - last.x).abs() < 5.0);
    put("legs: overshoot at the end", "m", most(on_last.map(|(_, s)| along(s) - way.length())));
    let rest = |s: &Sample| flat(last - s.position).length() < ARRIVED_M && speed(s) < 0.5;
    put("legs: command to rest at the end", "s", first(legs, rest).map(|(t, _)| t));
}

pub(super) fn brake(
    trace: &Trace,
    segment: Segment,
    name: &str,
    put: &mut impl FnMut(&str, &'static str, Option<f64>),
) {
    let samples = trace.of(segment);
    let Some((_, start)) = samples.clone().next() else {
        put(&format!("{name}: speed at the command"), "m/s", None);
        return;
    };
    let ahead = flat(start.velocity).normalize_or_zero();
    let forward = |s: &Sample| flat(s.position - start.position).dot(ahead);
    let slow = first(samples.clone(), |s| speed(s) < SLOW_M_S);
    put(&format!("{name}: speed at the command"), "m/s", Some(speed(start)));
    put(&format!("{name}: time to 0.6 m/s"), "s", slow.map(|(t, _)| t));
    put(&format!("{name}: distance to 0.6 m/s"), "m", slow.map(|(_, s)| forward(s)));
    put(&format!("{name}: farthest"), "m", most(samples.clone().map(|(_, s)| forward(s))));
    put(&format!("{name}: at rest after 12 s"), "m", samples.last().map(|(_, s)| forward(s)));
}

fn circle(trace: &Trace, segment: Segment, put: &mut impl FnMut(&str, &'static str, Option<f64>)) {
    let steady = trace.of(segment).filter(|(t, _)| *t > CIRCLE_FROM_S);
    let error = |(t, s): (f64, &Sample)| flat(on_circle(t).0 - s.position).length();
    let (middle, radius_m, _) = CIRCLE;
    let outside = |(_, s): (f64, &Sample)| flat(s.position - middle).length() - radius_m;
    let start = trace.of(segment).filter(|(t, _)| *t <= CIRCLE_FROM_S);
    put("circle: largest error, first 20 s", "m", most(start.map(error)));
    put("circle: error after 20 s, mean", "m", mean(steady.clone().map(error)));
    put("circle: error after 20 s, largest", "m", most(steady.clone().map(error)));
    put("circle: outside by", "m", mean(steady.clone().map(outside)));
    put("circle: speed, mean", "m/s", mean(steady.map(|(_, s)| speed(s))));
}

pub(super) fn speed(sample: &Sample) -> f64 {
    flat(sample.velocity).length()
}

pub(super) fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}
