//! Whom we do not hear may be returning without our knowing: its radio is dead, and its operator, or its autopilot,
//! sends it home. Its layer and its home are of the plan, so where it may be then is known: on the column above
//! any place of the legs that it may have flown, in its layer between those and its home, and on the column of
//! its home. Who returns crosses none of that.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point, WAYPOINTS_MAX};

use super::Swarm;
use super::conflict::Way;

/// Layers lie apart by exactly what is clear; numbers are rounded.
const ROUNDING_M: f64 = 0.1;

/// Where somebody unheard may be if it returns.
struct Region {
    /// The places between which it may have begun to, one after the other, over the ground.
    legs_m: Vec<DVec2, { WAYPOINTS_MAX + 2 }>,
    home_m: DVec2,
    layer_m: f64,
}

fn flat(a: DVec2, b: DVec2) -> Way {
    Way { from_m: a.extend(0.0), to_m: b.extend(0.0) }
}

/// How near a place comes to a triangle, over the ground.
fn to_triangle_m(place: DVec2, corners: [DVec2; 3]) -> f64 {
    let side = |i: usize| (corners[(i + 1) % 3] - corners[i]).perp_dot(place - corners[i]);
    let sides = [side(0), side(1), side(2)];
    if sides.iter().all(|s| *s > 0.0) || sides.iter().all(|s| *s < 0.0) {
        return 0.0;
    }
    let edge_m = |i: usize| flat(corners[i], corners[(i + 1) % 3]).distance_m(&flat(place, place));
    edge_m(0).min(edge_m(1)).min(edge_m(2))
}

impl Region {
    fn legs(&self) -> impl Iterator<Item = (DVec2, DVec2)> + '_ {
        let last = self.legs_m.len().saturating_sub(1);
        self.legs_m.iter().enumerate().map(move |(i, &from)| (from, self.legs_m[(i + 1).min(last)]))
    }

    /// Whether its way home in its layer keeps clear of a column.
    fn passes_by(&self, column: DVec2, clear_m: f64) -> bool {
        self.legs().all(|(from, to)| to_triangle_m(column, [from, to, self.home_m]) >= clear_m)
    }

    /// Whether a place is over or under the legs: there nobody waits, because who is lost may fly on along them.
    fn has_on_its_leg(&self, place: DVec2, clear_m: f64) -> bool {
        let here = flat(place, place);
        self.legs().any(|(from, to)| flat(from, to).distance_m(&here) < clear_m)
    }

    /// Whether a way keeps clear of it. Of ways in another layer only the columns count: layers are apart.
    fn is_clear(&self, way: &Way, clear_m: f64) -> bool {
        let (low_m, high_m) = (way.from_m.z.min(way.to_m.z), way.from_m.z.max(way.to_m.z));
        let room_m = clear_m - ROUNDING_M;
        if low_m >= self.layer_m + room_m {
            return true;
        }
        let (from, to) = (way.from_m.truncate(), way.to_m.truncate());
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

impl<F: Copy + PartialEq> Swarm<F> {
    /// Members that may return unheard: silent for so long that it is an answer, and not known to be down.
    fn unheard(&self, now: Instant) -> impl Iterator<Item = usize> {
        let silent = move |&slot: &usize| {
            let peer = &self.peers[slot];
            let is_down = matches!(peer.left, Some((_, Ending::Down)));
            slot != self.slot && !is_down && now >= peer.heard_at + self.config.silence
        };
        (0..self.peers.len()).filter(silent)
    }

    /// Where a member may be that returns unheard; nothing where that is not known.
    fn region(&self, now: Instant, slot: usize) -> Option<Region> {
        let peer = self.peers.get(slot)?;
        let last = self.plan.waypoints.len().checked_sub(1)?;
        let mut legs_m = Vec::new();
        let mut add = |place: Point| {
            let _ = legs_m.push(self.local(place).truncate());
        };
        let is_placed = self.in_slot >> slot & 1 == 1 || self.all_in_slots;
        match (peer.left, peer.reached) {
            (Some((at, _)), _) => add(at),
            (None, _) if self.coming_down >> slot & 1 == 1 => {
                add(peer.at.or_else(|| self.slot_place(slot, last))?);
                if let Some(leader_at) = self.land_at {
                    add(self.place_around(slot, leader_at, 0));
                }
            }
            (None, reached) if reached.is_some() || is_placed => {
                let from = usize::from(reached.unwrap_or(0)).min(last);
                // Who counts all others as lost may have gone on alone.
                let alone = now >= peer.heard_at + self.config.time_to_live;
                let to = if alone { last } else { from + 1 };
                for waypoint in from..=to.min(last) {
                    add(self.slot_place(slot, waypoint)?);
                }
            }
            (None, _) => {
                add(peer.at.or(peer.home)?);
                add(self.slot_place(slot, 0)?);
            }
        }
        let layer_m = f64::from(self.layer_mm(slot)?) / 1e3;
        Some(Region { legs_m, home_m: self.local(peer.home?).truncate(), layer_m })
    }

    /// Somebody who was not heard for as long as a return takes, beside the wait before it, has come down.
    fn patience(&self) -> Duration {
        self.config.hold_before_landing * 4
    }

    fn is_past(&self, now: Instant, slot: usize) -> bool {
        now >= self.peers[slot].heard_at + self.patience()
    }

    /// Whether ways keep clear of everybody who may return unheard. Who is under way goes on past those who have come
    /// down by all accounts; who waits does so for as long once more, because a return may have begun late.
    pub(super) fn is_clear_of_unheard(
        &self,
        now: Instant,
        waits_since: Option<Instant>,
        ways: &[Way],
    ) -> bool {
        let waited = waits_since.is_none_or(|since| now >= since + self.patience());
        let unheard = self.unheard(now).filter(|&slot| !(waited && self.is_past(now, slot)));
        self.keeps_clear_of(now, unheard, ways)
    }

    /// Whether a column is clear for whoever has waited for long, and has to come down. If somebody who was lost long
    /// ago hovers at that height, coming down straight brings nobody nearer to it. One that holds well above waits for
    /// those below it: otherwise both would wait for ever.
    pub(super) fn is_clear_to_land(&self, now: Instant, column: Way) -> bool {
        let over_m = column.from_m.z + self.config.separation_m;
        let hangs_above = |slot: usize| {
            let left = self.peers[slot].left;
            left.is_some_and(|(at, how)| how == Ending::Holding && self.local(at).z > over_m)
        };
        let others = (0..self.peers.len()).filter(|&slot| slot != self.slot && !self.is_past(now, slot));
        // Whose home was never heard leaves where it is as what is known of it: who returns waits for it, and all
        // for each other.
        let is_clear = |slot: usize| match self.peers[slot].left {
            Some((at, Ending::Returning)) if self.way_home(slot, at).is_none() => {
                self.way(at, at).distance_m(&column) >= self.clear_m()
            }
            _ => self.is_clear(slot, &[column]),
        };
        let mut in_the_way = others.filter(|&slot| !hangs_above(slot) && !is_clear(slot));
        let unheard = self.unheard(now).filter(|&slot| !self.is_past(now, slot));
        in_the_way.next().is_none() && self.keeps_clear_of(now, unheard, &[column])
    }

    fn keeps_clear_of(&self, now: Instant, unheard: impl Iterator<Item = usize>, ways: &[Way]) -> bool {
        if self.layers.is_none() {
            return true;
        }
        let clear_m = self.clear_m();
        let mut unheard = unheard;
        unheard.all(|slot| {
            self.region(now, slot).is_some_and(|region| ways.iter().all(|w| region.is_clear(w, clear_m)))
        })
    }

    /// Whether who climbs already may go on: the layer of somebody unheard whose way home may lead past is not
    /// crossed, while there is room to stop below it.
    pub(super) fn may_go_on_climbing(&self, now: Instant) -> bool {
        let Some(at) = self.at else { return true };
        let (here, clear_m): (DVec3, f64) = (self.local(at.point()), self.clear_m());
        let own_m = self.return_height_mm().map_or(0.0, |mm| f64::from(mm) / 1e3);
        self.layers.is_none()
            || self.hears_nobody(now)
            || self
                .unheard(now)
                .filter(|&slot| !self.is_past(now, slot))
                .filter_map(|slot| self.region(now, slot))
                .all(|region| {
                    region.layer_m > own_m
                        || here.z > region.layer_m - clear_m
                        || region.has_on_its_leg(here.truncate(), clear_m)
                        || region.passes_by(here.truncate(), clear_m)
                })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(east_m: f64, north_m: f64, to_m: f64) -> Way {
        let place = DVec2::new(east_m, north_m);
        Way { from_m: place.extend(20.0), to_m: place.extend(to_m) }
    }

    #[test]
    fn muscop_29_a_climb_keeps_out_of_the_layer_between_leg_and_home() {
        let places = [DVec2::new(0.0, 0.0), DVec2::new(0.0, 60.0)];
        let region =
            Region { legs_m: places.into_iter().collect(), home_m: DVec2::new(100.0, 30.0), layer_m: 40.0 };
        // In the triangle: up to below the layer only.
        assert!(!region.is_clear(&column(40.0, 30.0, 48.0), 8.0));
        assert!(region.is_clear(&column(40.0, 30.0, 32.0), 8.0));
        // Beside it, 7 and 9 m from the edge from (0, 0) to the home.
        let beside = |m: f64| {
            let way = DVec2::new(100.0, 30.0);
            way * 0.5 - way.perp().normalize() * m
        };
        assert!(!region.is_clear(&column(beside(7.0).x, beside(7.0).y, 48.0), 8.0));
        assert!(region.is_clear(&column(beside(9.0).x, beside(9.0).y, 48.0), 8.0));
        // The column of the home is taken from the ground on, up to the layer; who is on the leg goes.
        assert!(region.is_clear(&column(5.0, 30.0, 48.0), 8.0));
        let to_leg = Way { from_m: DVec3::new(-50.0, 30.0, 32.0), to_m: DVec3::new(-5.0, 30.0, 32.0) };
        assert!(!region.is_clear(&to_leg, 8.0));
        assert!(!region.is_clear(&column(95.0, 30.0, 25.0), 8.0));
        let level = |z: f64| Way { from_m: DVec3::new(90.0, -50.0, z), to_m: DVec3::new(100.0, 90.0, z) };
        assert!(!region.is_clear(&level(32.0), 8.0));
        assert!(region.is_clear(&level(48.0), 8.0));
        // In another layer across the way home.
        let across = Way { from_m: DVec3::new(60.0, -50.0, 32.0), to_m: DVec3::new(60.0, 90.0, 32.0) };
        assert!(region.is_clear(&across, 8.0));
    }
}
