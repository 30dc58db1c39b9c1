//! Lost link: a member that is not received may return without our knowing. Its radio is dead, and its operator, or
//! its autopilot, makes it return. Its layer and its home follow from the plan, so where it may be then is known: on the
//! column above any point of the legs that it may have flown, in its layer between those and its home, and on the
//! column of its home. An aircraft that returns crosses none of that.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point, WAYPOINTS_MAX};

use super::super::path::Path;
use super::Clearance;

/// Layers lie apart by exactly what is clear; numbers are rounded.
const ROUNDING_M: f64 = 0.1;

/// Where a member with a lost link may be if it returns.
struct Region {
    /// The points between which it may have begun to, one after the other, over the ground.
    legs_m: Vec<DVec2, { WAYPOINTS_MAX + 2 }>,
    home_m: DVec2,
    layer_m: f64,
}

fn flat(a: DVec2, b: DVec2) -> Path {
    Path { from_m: a.extend(0.0), to_m: b.extend(0.0) }
}

/// Distance from a point to a triangle, over the ground.
fn to_triangle_m(point: DVec2, corners: [DVec2; 3]) -> f64 {
    let side = |i: usize| (corners[(i + 1) % 3] - corners[i]).perp_dot(point - corners[i]);
    let sides = [side(0), side(1), side(2)];
    if sides.iter().all(|s| *s > 0.0) || sides.iter().all(|s| *s < 0.0) {
        return 0.0;
    }
    let edge_m = |i: usize| flat(corners[i], corners[(i + 1) % 3]).distance_m(&flat(point, point));
    edge_m(0).min(edge_m(1)).min(edge_m(2))
}

impl Region {
    fn legs(&self) -> impl Iterator<Item = (DVec2, DVec2)> + '_ {
        let last = self.legs_m.len().saturating_sub(1);
        self.legs_m.iter().enumerate().map(move |(i, &from)| (from, self.legs_m[(i + 1).min(last)]))
    }

    /// Whether its path home in its layer keeps clear of a column.
    fn passes_by(&self, column: DVec2, clear_m: f64) -> bool {
        self.legs().all(|(from, to)| to_triangle_m(column, [from, to, self.home_m]) >= clear_m)
    }

    /// Whether a point is over or under the legs: there no aircraft waits, because the lost one may fly on along them.
    fn has_on_its_leg(&self, point: DVec2, clear_m: f64) -> bool {
        let here = flat(point, point);
        self.legs().any(|(from, to)| flat(from, to).distance_m(&here) < clear_m)
    }

    /// Whether a path keeps clear of it. Of paths in another layer only the columns count: layers are apart.
    fn is_clear(&self, path: &Path, clear_m: f64) -> bool {
        let (low_m, high_m) = (path.from_m.z.min(path.to_m.z), path.from_m.z.max(path.to_m.z));
        let room_m = clear_m - ROUNDING_M;
        if low_m >= self.layer_m + room_m {
            return true;
        }
        let (from, to) = (path.from_m.truncate(), path.to_m.truncate());
        let over_ground = flat(from, to);
        let home_is_clear = flat(self.home_m, self.home_m).distance_m(&over_ground) >= clear_m;
        if !home_is_clear || self.has_on_its_leg(from, clear_m) {
            return home_is_clear;
        }
        let is_column = from.distance(to) < ROUNDING_M;
        let crosses = is_column && high_m > self.layer_m - room_m;
        self.legs().all(|(from, to)| flat(from, to).distance_m(&over_ground) >= clear_m)
            && (!crosses || self.passes_by(from, clear_m))
    }
}

impl Clearance<'_> {
    /// Members that may return with a lost link: silent for so long that it is an answer, and not known to be down.
    fn lost_links(&self, now: Instant) -> impl Iterator<Item = usize> {
        let is_silent = move |&slot: &usize| {
            self.traffic.ending(slot) != Some(Ending::Down)
                && now >= self.received_at(slot) + self.config.silence
        };
        self.members.peers().iter().filter(is_silent)
    }

    pub(super) fn received_at(&self, slot: usize) -> Instant {
        self.members.received_at(slot).unwrap_or(Instant::ZERO)
    }

    /// Where a member may be that returns with a lost link; none where that is not known.
    fn region(&self, now: Instant, slot: usize) -> Option<Region> {
        let track = self.traffic.get(slot)?;
        let last = self.assignment.plan().waypoints.len().checked_sub(1)?;
        let mut legs_m = Vec::new();
        let mut add = |point: Point| {
            let _ = legs_m.push(self.local(point).truncate());
        };
        let is_in_formation = track.reached.is_some() || self.take_off.is_in_slot(slot);
        match track.departure {
            Some((at, _)) => add(at),
            None if self.landing.is_landing(slot) => {
                add(track.position.or_else(|| self.assignment.slot_position(slot, last))?);
                if let Some(site) = self.landing.leader_site() {
                    add(self.assignment.landing_position(slot, self.members.leader(), site, 0));
                }
            }
            None if is_in_formation => {
                let from = usize::from(track.reached.unwrap_or(0)).min(last);
                // One that counts all others as lost may have continued alone.
                let is_alone = now >= self.received_at(slot) + self.config.time_to_live;
                let to = if is_alone { last } else { from + 1 };
                for waypoint in from..=to.min(last) {
                    add(self.assignment.slot_position(slot, waypoint)?);
                }
            }
            None => {
                add(track.position.or(track.home)?);
                add(self.assignment.slot_position(slot, 0)?);
            }
        }
        let layer_m = f64::from(self.assignment.return_height_mm(slot)?) / 1e3;
        Some(Region { legs_m, home_m: self.local(track.home?).truncate(), layer_m })
    }

    /// A member that was not received for as long as a return takes, and the hold before it, has landed.
    pub(super) fn patience(&self) -> Duration {
        self.config.hold_before_landing * 4
    }

    fn has_landed(&self, now: Instant, slot: usize) -> bool {
        now >= self.received_at(slot) + self.patience()
    }

    /// Whether paths keep clear of every member that may return with a lost link. An aircraft under way flies past those
    /// that have landed by all accounts; one that waits does so for as long once more, because a return may have begun
    /// late.
    pub(super) fn is_clear_of_lost_links(
        &self,
        now: Instant,
        waits_since: Option<Instant>,
        paths: &[Path],
    ) -> bool {
        let has_waited = waits_since.is_none_or(|since| now >= since + self.patience());
        let lost = self.lost_links(now).filter(|&slot| !(has_waited && self.has_landed(now, slot)));
        self.keeps_clear_of(now, lost, paths)
    }

    /// Whether a column is clear for an aircraft that has waited for long, and has to land. If a member that was lost
    /// long ago hovers at that height, a straight descent brings none nearer to it. One that holds well above waits for
    /// those below it: otherwise both would wait for ever.
    pub(super) fn is_clear_to_land(&self, now: Instant, column: Path) -> bool {
        let over_m = column.from_m.z + self.config.separation_m;
        let is_clear = |slot: usize| match self.traffic.track(slot).departure {
            Some((at, Ending::Holding)) if self.local(at).z > over_m => true,
            // So does one in its layer, before it descends.
            Some((at, Ending::Returning))
                if self.local(at).z > over_m && self.is_member_in_layer(slot, at) =>
            {
                true
            }
            // A member whose home was never received returns from where it is as far as is known: it waits for that,
            // and all wait for each other.
            Some((at, Ending::Returning)) if self.return_path(slot, at).is_none() => {
                self.path(at, at).distance_m(&column) >= self.clear_m()
            }
            _ => self.is_clear(slot, &[column]),
        };
        let mut others = self.members.peers().iter().filter(|&slot| !self.has_landed(now, slot));
        let lost = self.lost_links(now).filter(|&slot| !self.has_landed(now, slot));
        others.all(is_clear) && self.keeps_clear_of(now, lost, &[column])
    }

    fn keeps_clear_of(&self, now: Instant, lost: impl Iterator<Item = usize>, paths: &[Path]) -> bool {
        if self.assignment.layers().is_none() {
            return true;
        }
        let clear_m = self.clear_m();
        let mut lost = lost;
        lost.all(|slot| {
            self.region(now, slot).is_some_and(|region| paths.iter().all(|p| region.is_clear(p, clear_m)))
        })
    }

    /// Whether an aircraft that climbs already may continue: the layer of a member with a lost link whose path home may
    /// lead past is not crossed, while there is room to stop below it.
    pub(super) fn may_climb_on(&self, now: Instant) -> bool {
        let Some(here) = self.ownship.point() else { return true };
        let (here_m, clear_m): (DVec3, f64) = (self.local(here), self.clear_m());
        let own_m = self.own_return_height_mm().map_or(0.0, |mm| f64::from(mm) / 1e3);
        self.assignment.layers().is_none()
            || self.receives_none(now)
            || self
                .lost_links(now)
                .filter(|&slot| !self.has_landed(now, slot))
                .filter_map(|slot| self.region(now, slot))
                .all(|region| {
                    region.layer_m > own_m
                        || here_m.z > region.layer_m - clear_m
                        || region.has_on_its_leg(here_m.truncate(), clear_m)
                        || region.passes_by(here_m.truncate(), clear_m)
                })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(east_m: f64, north_m: f64, to_m: f64) -> Path {
        let point = DVec2::new(east_m, north_m);
        Path { from_m: point.extend(20.0), to_m: point.extend(to_m) }
    }

    #[test]
    fn muscop_29_a_climb_keeps_out_of_the_layer_between_leg_and_home() {
        let points = [DVec2::new(0.0, 0.0), DVec2::new(0.0, 60.0)];
        let region =
            Region { legs_m: points.into_iter().collect(), home_m: DVec2::new(100.0, 30.0), layer_m: 40.0 };
        // In the triangle: up to below the layer only.
        assert!(!region.is_clear(&column(40.0, 30.0, 48.0), 8.0));
        assert!(region.is_clear(&column(40.0, 30.0, 32.0), 8.0));
        // Beside it, 7 and 9 m from the edge from (0, 0) to the home.
        let abeam = |m: f64| {
            let edge = DVec2::new(100.0, 30.0);
            edge * 0.5 - edge.perp().normalize() * m
        };
        assert!(!region.is_clear(&column(abeam(7.0).x, abeam(7.0).y, 48.0), 8.0));
        assert!(region.is_clear(&column(abeam(9.0).x, abeam(9.0).y, 48.0), 8.0));
        // The column of the home is occupied from the ground up to the layer; an aircraft on the leg leaves.
        assert!(region.is_clear(&column(5.0, 30.0, 48.0), 8.0));
        let to_leg = Path { from_m: DVec3::new(-50.0, 30.0, 32.0), to_m: DVec3::new(-5.0, 30.0, 32.0) };
        assert!(!region.is_clear(&to_leg, 8.0));
        assert!(!region.is_clear(&column(95.0, 30.0, 25.0), 8.0));
        let level = |z: f64| Path { from_m: DVec3::new(90.0, -50.0, z), to_m: DVec3::new(100.0, 90.0, z) };
        assert!(!region.is_clear(&level(32.0), 8.0));
        assert!(region.is_clear(&level(48.0), 8.0));
        // In another layer across the path home.
        let across = Path { from_m: DVec3::new(60.0, -50.0, 32.0), to_m: DVec3::new(60.0, 90.0, 32.0) };
        assert!(region.is_clear(&across, 8.0));
    }
}
