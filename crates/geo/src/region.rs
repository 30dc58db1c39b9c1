//! Areas of a fence: whether they can be flown in, and whether a place or a leg is permitted by them.
//!
//! As ArduCopter judges them: a place is permitted where it lies inside of every inclusion and outside of every exclusion.

use glam::DVec2;

use crate::position::{Frame, Position};

/// Corners of a polygon at least.
pub const CORNERS_MIN: usize = 3;
/// Points of one list that a flight controller counts: corners and centres.
pub const POINTS_MAX: usize = 127;
/// The smallest radius of a circle, metres.
pub const RADIUS_MIN_M: f64 = 1.0;
/// The largest radius of a circle, metres.
pub const RADIUS_MAX_M: f64 = 100_000.0;

/// One area; the altitude of its points does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Area<'a> {
    /// A polygon, its last corner joined to the first.
    Polygon {
        /// Whether the aircraft must be inside.
        is_inclusion: bool,
        /// The corners.
        corners: &'a [Position],
    },
    /// A circle.
    Circle {
        /// Whether the aircraft must be inside.
        is_inclusion: bool,
        /// Its centre.
        centre: Position,
        /// Its radius, metres.
        radius_m: f64,
    },
}

/// Why an area is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AreaError {
    /// Too few corners.
    #[error("found {found} corners, expected at least {CORNERS_MIN}")]
    Corners {
        /// Number found.
        found: usize,
    },
    /// A corner twice in a row.
    #[error("corner {corner}: found the place of the corner before it, expected another")]
    Repeated {
        /// The corner, from 1.
        corner: usize,
    },
    /// It crosses itself.
    #[error(
        "found its side from corner {first} crossing the one from corner {second}, expected a polygon that does not cross itself"
    )]
    Crossing {
        /// The corner, from 1, that the one side begins at.
        first: usize,
        /// The corner, from 1, that the other side begins at.
        second: usize,
    },
    /// A radius out of range.
    #[error("radius_m: found {found_m}, expected {RADIUS_MIN_M} to {RADIUS_MAX_M}")]
    Radius {
        /// Found, metres.
        found_m: f64,
    },
}

impl Area<'_> {
    /// Whether it is an area.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), AreaError> {
        match *self {
            Self::Circle { radius_m, .. } if (RADIUS_MIN_M..=RADIUS_MAX_M).contains(&radius_m) => Ok(()),
            Self::Circle { radius_m, .. } => Err(AreaError::Radius { found_m: radius_m }),
            Self::Polygon { corners, .. } => check_polygon(corners),
        }
    }

    /// Whether it permits a place.
    pub fn permits(&self, at: Position) -> bool {
        let frame = Frame::new(at);
        let flat = |position: Position| frame.to_local(position).truncate();
        match *self {
            Self::Circle { is_inclusion, centre, radius_m } => {
                (flat(centre).length() <= radius_m) == is_inclusion
            }
            Self::Polygon { is_inclusion, corners } => contains(corners, flat) == is_inclusion,
        }
    }

    /// Whether it permits the straight way between two places that it permits.
    pub fn permits_leg(&self, from: Position, to: Position) -> bool {
        let frame = Frame::new(from);
        let flat = |position: Position| frame.to_local(position).truncate();
        let end = flat(to);
        match *self {
            // What lies between two places in a circle lies in it.
            Self::Circle { is_inclusion: true, .. } => true,
            Self::Circle { is_inclusion: false, centre, radius_m } => {
                let centre = flat(centre);
                let length_squared = end.length_squared();
                let along = if length_squared > 0.0 {
                    (centre.dot(end) / length_squared).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                (end * along - centre).length() > radius_m
            }
            Self::Polygon { corners, .. } => {
                !sides(corners).any(|(a, b)| do_cross((DVec2::ZERO, end), (flat(a), flat(b))))
            }
        }
    }
}

fn sides(corners: &[Position]) -> impl Iterator<Item = (Position, Position)> + '_ {
    corners.iter().zip(corners.iter().cycle().skip(1)).map(|(a, b)| (*a, *b))
}

/// Whether the origin of a frame lies in a polygon: how often a line to the east of it crosses its sides.
fn contains(corners: &[Position], flat: impl Fn(Position) -> DVec2) -> bool {
    sides(corners)
        .filter(|&(a, b)| {
            let (a, b) = (flat(a), flat(b));
            (a.y > 0.0) != (b.y > 0.0) && a.x - a.y * (b.x - a.x) / (b.y - a.y) > 0.0
        })
        .count()
        % 2
        == 1
}

/// On which side of the line from `a` to `b` a point lies.
fn side(a: DVec2, b: DVec2, point: DVec2) -> f64 {
    (b - a).perp_dot(point - a)
}

/// Whether two straight ways cross or touch.
fn do_cross((a, b): (DVec2, DVec2), (c, d): (DVec2, DVec2)) -> bool {
    let is_within = |a: DVec2, b: DVec2, p: DVec2| {
        p.x >= a.x.min(b.x) && p.x <= a.x.max(b.x) && p.y >= a.y.min(b.y) && p.y <= a.y.max(b.y)
    };
    let (of_a, of_b) = (side(c, d, a), side(c, d, b));
    let (of_c, of_d) = (side(a, b, c), side(a, b, d));
    of_a * of_b < 0.0 && of_c * of_d < 0.0
        || of_a == 0.0 && is_within(c, d, a)
        || of_b == 0.0 && is_within(c, d, b)
        || of_c == 0.0 && is_within(a, b, c)
        || of_d == 0.0 && is_within(a, b, d)
}

fn check_polygon(corners: &[Position]) -> Result<(), AreaError> {
    let count = corners.len();
    if count < CORNERS_MIN {
        return Err(AreaError::Corners { found: count });
    }
    let frame = Frame::new(corners[0]);
    let flat = |i: usize| frame.to_local(corners[i % count]).truncate();
    if let Some(i) = (0..count).find(|&i| flat(i) == flat(i + 1)) {
        return Err(AreaError::Repeated { corner: (i + 1) % count + 1 });
    }
    for i in 0..count {
        for j in i + 1..count {
            let is_next = j == i + 1 || (i == 0 && j == count - 1);
            let crosses = match is_next {
                false => do_cross((flat(i), flat(i + 1)), (flat(j), flat(j + 1))),
                // Two sides of one corner cross where one leads back over the other.
                true => {
                    let (before, at, after) = if j == i + 1 {
                        (flat(i), flat(j), flat(j + 1))
                    } else {
                        (flat(j), flat(0), flat(1))
                    };
                    side(before, at, after) == 0.0 && (before - at).dot(after - at) > 0.0
                }
            };
            if crosses {
                return Err(AreaError::Crossing { first: i + 1, second: j + 1 });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use glam::DVec3;
    use std::vec::Vec;

    const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

    fn at(east_m: f64, north_m: f64) -> Position {
        Frame::new(HOME).to_position(DVec3::new(east_m, north_m, 0.0))
    }

    fn polygon(corners: &[(f64, f64)]) -> Vec<Position> {
        corners.iter().map(|&(east_m, north_m)| at(east_m, north_m)).collect()
    }

    /// A square with a notch from the north.
    const NOTCHED: [(f64, f64); 8] = [
        (-50.0, -50.0),
        (50.0, -50.0),
        (50.0, 50.0),
        (10.0, 50.0),
        (10.0, 0.0),
        (-10.0, 0.0),
        (-10.0, 50.0),
        (-50.0, 50.0),
    ];

    #[test]
    fn what_is_no_area_is_named() {
        let check =
            |corners: &[(f64, f64)]| Area::Polygon { is_inclusion: true, corners: &polygon(corners) }.check();
        assert_eq!(check(&NOTCHED), Ok(()));
        assert_eq!(check(&NOTCHED[..2]), Err(AreaError::Corners { found: 2 }));
        let bow = [(0.0, 0.0), (10.0, 10.0), (10.0, 0.0), (0.0, 10.0)];
        assert_eq!(check(&bow), Err(AreaError::Crossing { first: 1, second: 3 }));
        let twice = [(0.0, 0.0), (10.0, 0.0), (10.0, 0.0), (0.0, 10.0)];
        assert_eq!(check(&twice), Err(AreaError::Repeated { corner: 3 }));
        let closed = [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0), (0.0, 0.0)];
        assert_eq!(check(&closed), Err(AreaError::Repeated { corner: 1 }));
        let circle = |radius_m| Area::Circle { is_inclusion: true, centre: HOME, radius_m }.check();
        assert!(circle(1.0).is_ok() && circle(0.9).is_err() && circle(f64::NAN).is_err());
    }

    #[test]
    fn a_place_and_a_leg_are_permitted_by_inclusions_and_exclusions() {
        let corners = polygon(&NOTCHED);
        let inside = Area::Polygon { is_inclusion: true, corners: &corners };
        let outside = Area::Polygon { is_inclusion: false, corners: &corners };
        for (east_m, north_m, is_in) in [
            (0.0, -20.0, true),
            (0.0, 20.0, false),
            (30.0, 20.0, true),
            (60.0, 0.0, false),
            (0.0, -60.0, false),
        ] {
            let place = at(east_m, north_m);
            assert_eq!(
                (inside.permits(place), outside.permits(place)),
                (is_in, !is_in),
                "{east_m} {north_m}"
            );
        }
        // Both ends are inside, and the notch lies between them.
        assert!(!inside.permits_leg(at(-30.0, 30.0), at(30.0, 30.0)));
        assert!(inside.permits_leg(at(-30.0, -30.0), at(30.0, -30.0)));
        assert!(!outside.permits_leg(at(-60.0, -10.0), at(60.0, -10.0)));
        let circle = |is_inclusion| Area::Circle { is_inclusion, centre: HOME, radius_m: 20.0 };
        assert!(circle(true).permits(at(19.0, 0.0)) && !circle(true).permits(at(21.0, 0.0)));
        assert!(circle(true).permits_leg(at(-19.0, 0.0), at(19.0, 0.0)));
        assert!(!circle(false).permits_leg(at(-30.0, 5.0), at(30.0, 5.0)));
        assert!(circle(false).permits_leg(at(-30.0, 21.0), at(30.0, 21.0)));
        assert!(circle(false).permits_leg(at(30.0, 0.0), at(30.0, 0.0)), "a leg of no length");
    }
}
