//! Returning: each climbs straight up into a layer of its own above all waypoints, flies home in it, and comes
//! down on its own home.
//!
//! In the layers nobody meets anybody. Where one changes height it crosses the layers of others, so:
//!
//! - nobody begins to climb while another's way leads past its column, or comes down there;
//! - who flies home stops short of a column in which another climbs or comes down;
//! - nobody begins to come down while another's way leads past its column;
//! - nobody crosses where somebody may be who returns unheard ([`super::unheard`]).
//!
//! Who climbs or comes down waits for nobody, who flies home for those only, and who stands for those and the
//! flying: so nobody waits in a ring. The autopilot flies all of it in its mode RTL, whose height is set to the
//! layer while the plan is taken; waiting is holding position.

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point};

use super::conflict::Way;
use super::obstacles::STRAY_M;
use super::{Abort, State, Swarm, plan};

/// Nearer to its home over the ground than this an aircraft is above it, metres.
const HOME_WITHIN_M: f64 = 4.0;

/// So far below its layer an aircraft is on its way up to it or down from it, millimetre.
const LAYER_WITHIN_MM: i32 = 2_000;

/// Slower than this an aircraft stands, metres per second.
const STANDS_M_S: f64 = 0.5;

/// Faster than this an aircraft above its home flies past it, metres per second.
const HOVERS_M_S: f64 = 2.0;

/// Who holds on its way home does so for at least so long.
const HOLD_LEAST: Duration = Duration::from_secs(1);

impl<F: Copy + PartialEq> Swarm<F> {
    /// Height above home at which we return, millimetre; nothing where the pilot's own setting stays.
    pub fn return_height_mm(&self) -> Option<i32> {
        self.layer_mm(self.slot)
    }

    /// Whether returns at one height could meet.
    pub(super) fn needs_layers(&self) -> bool {
        self.plan.slots.len() > 1 && !self.config.piloted_master
    }

    pub(super) fn layer_mm(&self, slot: usize) -> Option<i32> {
        Some(self.layers?.height_mm(&self.plan, slot))
    }

    fn over_ground_m(&self, a: Point, b: Point) -> f64 {
        (self.local(a) - self.local(b)).truncate().length()
    }

    /// What the operator's *Return* begins with.
    pub(super) fn begin_return(&self, now: Instant) -> Abort {
        let above_home = self.at.zip(self.home).is_some_and(|(at, home)| {
            self.layers.is_some()
                && self.over_ground_m(at.point(), home) < HOME_WITHIN_M
                && at.velocity_m_s.truncate().length() < HOVERS_M_S
        });
        match () {
            () if above_home && !self.is_aloft() => Abort::Land,
            () if self.may_climb(now, None) => Abort::Return,
            () => Abort::ReturnHeld { since: now },
        }
    }

    /// What follows while returning. Looked at as often as others tell where they are.
    pub(super) fn next_in_return(&self, now: Instant) -> Abort {
        let State::Aborted(unchanged) = self.state else { return Abort::Return };
        if now < self.talk_at {
            return unchanged;
        }
        match unchanged {
            Abort::Return if self.is_aloft() && !self.may_fly_home(now, None) => {
                Abort::ReturnHeld { since: now }
            }
            Abort::Return if self.is_climbing() && !self.may_go_on_climbing(now) => {
                Abort::ReturnHeld { since: now }
            }
            Abort::ReturnHeld { since } if now.since(since) < HOLD_LEAST => unchanged,
            Abort::ReturnHeld { since } if self.is_aloft() && self.may_fly_home(now, Some(since)) => {
                Abort::Return
            }
            Abort::ReturnHeld { since } if !self.is_aloft() && self.may_climb(now, Some(since)) => {
                Abort::Return
            }
            Abort::ReturnHeld { since } if now >= self.gives_up_at(since) && self.may_land_here(now) => {
                Abort::Land
            }
            _ => unchanged,
        }
    }

    fn gives_up_at(&self, since: Instant) -> Instant {
        since + self.config.hold_before_landing + self.config.hold_before_landing
    }

    /// Whether we are below our layer, and not because we come down on our home.
    fn is_climbing(&self) -> bool {
        let away =
            |(at, home): (crate::Telemetry, Point)| self.over_ground_m(at.point(), home) >= HOME_WITHIN_M;
        self.layers.is_some() && !self.is_aloft() && self.at.zip(self.home).is_some_and(away)
    }

    /// Whether we have reached our layer.
    pub(super) fn is_aloft(&self) -> bool {
        let at_mm = self.at.map_or(0, |at| at.point().height_mm);
        self.return_height_mm().is_some_and(|layer_mm| at_mm >= layer_mm - LAYER_WITHIN_MM)
    }

    /// What is left of the way of a member that returns and was last heard at `at`: up, home, down. Nothing where
    /// that is not known.
    pub(super) fn way_home(&self, slot: usize, at: Point) -> Option<[Way; 3]> {
        let peer = self.peers.get(slot)?;
        let (layer_mm, home) = (self.layer_mm(slot)?, peer.home?);
        let up = Point { height_mm: layer_mm.max(at.height_mm), ..at };
        let over = Point { height_mm: up.height_mm, ..home };
        let down = Point { height_mm: 0, ..home };
        if at.height_mm < layer_mm - LAYER_WITHIN_MM && self.over_ground_m(at, home) < HOME_WITHIN_M {
            // Coming down, or about to climb from there.
            let from = if peer.velocity_m_s.z < -STANDS_M_S / 2.0 { at } else { over };
            return Some([self.way(from, down); 3]);
        }
        Some([self.way(at, up), self.way(up, over), self.way(over, down)])
    }

    /// What of that nobody may cross now: the column in which it climbs or comes down, and, unless it stands, its
    /// way home in its layer.
    fn occupies(&self, slot: usize, at: Point) -> Option<[Way; 2]> {
        let [up, home, down] = self.way_home(slot, at)?;
        if up == down {
            return Some([down; 2]);
        }
        let stands = self.peers[slot].velocity_m_s.length() < STANDS_M_S;
        let is_aloft = self.layer_mm(slot).is_some_and(|mm| at.height_mm >= mm - LAYER_WITHIN_MM);
        Some([up, if is_aloft && stands { up } else { home }])
    }

    /// Members that said that they return, and where they were.
    fn returning(&self) -> impl Iterator<Item = (usize, Point)> {
        (0..self.peers.len()).filter(|&s| s != self.slot).filter_map(|slot| match self.peers[slot].left {
            Some((at, Ending::Returning)) => Some((slot, at)),
            _ => None,
        })
    }

    pub(super) fn clear_m(&self) -> f64 {
        self.config.separation_m + STRAY_M
    }

    /// Whether we may climb into our layer: nobody who returns passes our column, and those who share the layer
    /// are down. `held` tells since when we wait.
    fn may_climb(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some((at, layer_mm)) = self.at.map(|at| at.point()).zip(self.return_height_mm()) else {
            return true;
        };
        if !self.has_layer(now, held) {
            return false;
        }
        let up = Point { height_mm: layer_mm.max(at.height_mm), ..at };
        let column = self.way(at, up);
        let clear_m = self.clear_m();
        let passes = self.returning().any(|(slot, at)| {
            self.occupies(slot, at).is_none_or(|ways| ways.iter().any(|w| w.distance_m(&column) < clear_m))
        });
        // From below the flight's height the column leads through the ways of all others.
        let lowest_mm = self.route.iter().map(|w| w.height_mm).min().unwrap_or(0);
        let is_below = at.height_mm < lowest_mm - LAYER_WITHIN_MM;
        let unheard =
            !self.hears_nobody(now) && !self.is_clear_of_unheard(now, Some(held.unwrap_or(now)), &[column]);
        !passes && !unheard && (!is_below || self.is_clear_of_all(&[column]))
    }

    /// Whether our layer is ours: nobody else has it, or those who have it are down or on the mission, and we have
    /// listened for long enough to know.
    fn has_layer(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some(layers) = self.layers else { return true };
        let own_rank = plan::rank(&self.plan, self.slot);
        let mut sharers = (0..self.peers.len())
            .filter(|&s| s != self.slot && layers.are_shared(&self.plan, s, self.slot))
            .peekable();
        if sharers.peek().is_none() {
            return true;
        }
        let listened = own_rank == 0 || held.is_some_and(|since| now.since(since) >= self.config.silence);
        listened
            && sharers.all(|slot| match self.peers[slot].left {
                Some((_, Ending::Returning)) => false,
                Some((_, Ending::Holding)) => plan::rank(&self.plan, slot) > own_rank,
                Some((_, Ending::Landing | Ending::Down)) => true,
                None => self.silent >> slot & 1 == 0,
            })
    }

    /// Whether we may fly on in our layer, and come down at its end. `held` tells since when we stand.
    fn may_fly_home(&self, now: Instant, held: Option<Instant>) -> bool {
        let Some((at, home)) = self.at.zip(self.home) else { return true };
        let here = at.point();
        let stop_m = self.stopping_m(&at, held.is_some());
        let (clear_m, from_m) = (self.clear_m(), self.local(here));
        let left_m = (self.local(home) - from_m) * DVec3::new(1.0, 1.0, 0.0);
        let reach_m = stop_m + clear_m;
        let ahead = Way { from_m, to_m: from_m + left_m.clamp_length_max(reach_m) };
        let is_met = self.returning().any(|(slot, at)| {
            let Some([up, ..]) = self.way_home(slot, at) else { return true };
            let is_aloft = self.layer_mm(slot).is_some_and(|mm| at.height_mm >= mm - LAYER_WITHIN_MM);
            let place = self.way(at, at);
            let column = if is_aloft { place } else { up };
            column.distance_m(&ahead) < clear_m
        });
        if is_met {
            return false;
        }
        if self.hears_nobody(now) {
            return true;
        }
        let column = self.way(Point { height_mm: here.height_mm, ..home }, Point { height_mm: 0, ..home });
        self.is_clear_of_unheard(now, held, &[ahead])
            && (left_m.length() > reach_m
                || self.is_clear_of_all(&[column])
                    && self.is_clear_of_unheard(now, held, &[column])
                    && self.is_free(home))
    }

    /// Whether nobody was heard for so long that none will be: what others do now is not known and never will be,
    /// and one's own home is the place that they keep clear of.
    pub(super) fn hears_nobody(&self, now: Instant) -> bool {
        let mut others = (0..self.peers.len()).filter(|&s| s != self.slot);
        others.all(|slot| now >= self.gives_up_at(self.peers[slot].heard_at))
    }

    /// Whether we may come down where we are.
    fn may_land_here(&self, now: Instant) -> bool {
        let Some(here) = self.at.map(|at| at.point()) else { return true };
        let column = self.way(here, Point { height_mm: 0, ..here });
        self.is_clear_to_land(now, column) && self.is_free(here)
    }

    /// Whether all others keep clear of `ways`, wherever they may be.
    pub(super) fn is_clear_of_all(&self, ways: &[Way]) -> bool {
        (0..self.peers.len()).filter(|&s| s != self.slot).all(|slot| self.is_clear(slot, ways))
    }

    /// Whether nobody stands there on the ground, or will.
    pub(super) fn is_free(&self, place: Point) -> bool {
        let near_m = self.config.separation_m + 1.0;
        self.peers.iter().all(|peer| match peer.left {
            Some((at, Ending::Landing | Ending::Down)) => self.over_ground_m(at, place) >= near_m,
            _ => true,
        })
    }
}
