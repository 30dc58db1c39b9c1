//! Missions that meet: head-on, crossing and following, at any angle and height (MBCAP); and missions longer than a battery.

use wingbeat_geo::DVec2;
use wingbeat_sim::channel::Draw;

use super::{Dice, below, between, one_of};
use crate::drills::failure::Protocol;
use crate::scenario::{OwnMission, OwnTask, Scenario, Task, Variant, route};

/// Nearer to each other aircraft neither start nor end, metres.
const APART_M: f64 = 15.0;
/// So often the places are drawn until they are.
const DRAWN_MOST: usize = 40;
/// Between the places where pairs meet, metres.
const PLACES_M: f64 = 250.0;
/// The shortest endurance of the field's batteries, seconds.
const BATTERY_S: f64 = 900.0;
/// Between the lanes of aircraft with long missions, metres.
const LANE_M: f64 = 60.0;

/// A straight way: from where, to where, metres east and north, how high and how fast.
#[derive(Clone, Copy)]
struct Way {
    from: DVec2,
    to: DVec2,
    height_m: f64,
    speed_m_s: f64,
}

impl Way {
    /// Draws a way through a place that is reached after this time at this bearing.
    fn through(
        dice: &mut Dice,
        place: DVec2,
        bearing_rad: f64,
        speed_m_s: f64,
        after_s: f64,
        height_m: f64,
    ) -> Self {
        let (east, north) = libm::sincos(bearing_rad);
        let direction = DVec2::new(east, north);
        let before_m = speed_m_s * after_s;
        let beyond_m = before_m + between(dice, 20.0, 60.0);
        Self { from: place - direction * before_m, to: place + direction * beyond_m, height_m, speed_m_s }
    }

    fn is_clear_of(&self, other: &Self) -> bool {
        let apart = |a: DVec2, b: DVec2| a.distance(b) > APART_M;
        apart(self.from, other.from)
            && apart(self.to, other.to)
            && apart(self.from, other.to)
            && apart(self.to, other.from)
    }
}

/// Draws aircraft that meet in pairs, or all in one place.
pub(super) fn meet(dice: &mut Dice, aircraft: usize) -> Scenario {
    let is_crowd = below(dice, 3) == 0;
    let mut ways: Vec<Way> = vec![];
    for i in 0..aircraft {
        let pair = i / 2;
        let place =
            if is_crowd { DVec2::ZERO } else { DVec2::new((pair % 4) as f64, (pair / 4) as f64) * PLACES_M };
        let partner = if i % 2 == 1 { ways.last().copied() } else { None };
        let mut way = draw(dice, place, partner);
        for _ in 0..DRAWN_MOST {
            if ways.iter().all(|other| way.is_clear_of(other)) {
                break;
            }
            way = draw(dice, place, partner);
        }
        ways.push(way);
    }
    let missions = ways.into_iter().map(|way| {
        let corners = [way.from, way.to].map(|at| [at.x, at.y]);
        OwnMission {
            speed_m_s: way.speed_m_s,
            points: route(&corners, way.height_m),
            start: None,
            leaves_at_s: Vec::new(),
        }
    });
    finish(Variant::MbcapE, missions.collect())
}

/// Draws a way through a place; with a partner one that meets it head-on, across, or from behind.
fn draw(dice: &mut Dice, place: DVec2, partner: Option<Way>) -> Way {
    let after_s = between(dice, 15.0, 30.0);
    let speed_m_s = one_of(dice, [3.0, 5.0, 10.0]);
    let (bearing_rad, height_m) = (between(dice, 0.0, core::f64::consts::TAU), between(dice, 10.0, 25.0));
    let manner = below(dice, 4);
    let (turn_rad, is_level, gap_s) =
        (between(dice, -0.25, 0.25), below(dice, 2) == 0, between(dice, -3.0, 3.0));
    let Some(other) = partner else {
        return Way::through(dice, place, bearing_rad, speed_m_s, after_s, height_m);
    };
    let height_m = if is_level { other.height_m } else { height_m };
    let along = other.to - other.from;
    let its_rad = libm::atan2(along.x, along.y);
    let its_s = other.from.distance(place) / other.speed_m_s;
    match manner {
        0 | 1 => Way::through(
            dice,
            place,
            its_rad + core::f64::consts::PI + turn_rad,
            other.speed_m_s,
            its_s + gap_s,
            height_m,
        ),
        2 => Way::through(dice, place, bearing_rad, speed_m_s, its_s + gap_s, height_m),
        // Twice as fast, it comes up from behind: twice as far away at first.
        _ => Way::through(dice, place, its_rad + turn_rad * 0.2, other.speed_m_s * 2.0, its_s, height_m),
    }
}

/// Draws missions along lanes, out and back, that take longer than the batteries last.
pub(super) fn long_way(dice: &mut Dice, protocol: Protocol, aircraft: usize) -> Scenario {
    let variant = if protocol == Protocol::Mbcap { Variant::MbcapE } else { Variant::Off };
    let speed_m_s = one_of(dice, [2.0, 3.0, 5.0]);
    let (out_m, height_m) = (speed_m_s * BATTERY_S * between(dice, 0.25, 0.45), between(dice, 15.0, 25.0));
    let (sin, cos) = libm::sincos(between(dice, 0.0, core::f64::consts::TAU));
    let (along, across) = (DVec2::new(sin, cos), DVec2::new(cos, -sin));
    let mission = |i: usize| {
        let at = |way_m: f64| (across * (LANE_M * i as f64) + along * way_m).to_array();
        let corners = [at(0.0), at(out_m), at(50.0), at(out_m), at(50.0)];
        OwnMission { speed_m_s, points: route(&corners, height_m), start: None, leaves_at_s: Vec::new() }
    };
    finish(variant, (0..aircraft).map(mission).collect())
}

fn finish(variant: Variant, missions: Vec<OwnMission>) -> Scenario {
    let mut scenario = Scenario::new("drill", Task::Own(OwnTask { variant, missions }));
    scenario.draw = Draw::PerPacket;
    scenario
}
