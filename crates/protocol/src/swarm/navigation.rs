//! Flying to a target: whether it is reached, and holding on the way to it.

use wingbeat_geo::{Duration, Frame, Instant};
use wingbeat_wire::{Message, Point};

use super::clearance::Approach;
use super::plan::position;
use super::timer::Timer;
use super::{State, Swarm, TakeOffPhase, Urgency};
use crate::{Action, Actions, Input, Order, Severity, push, text};

/// An aircraft that holds behind another does so for at least this long.
const HOLD_LEAST: Duration = Duration::from_secs(1);

/// An aircraft that climbed off the way of one that drifts stays there for at least this long: the
/// drift of that one is known from positions that err, so that it seems to stop at times.
pub(super) const CLIMBED_LEAST: Duration = Duration::from_secs(10);

/// One that makes less way than this makes none, metres per second. Generous: any wind that can be flown in is beaten.
const SLOWEST_M_S: f64 = 0.5;

/// The target of the present state, and how far this aircraft is with it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Navigation {
    target: Option<Point>,
    has_arrived: bool,
    hold: Option<LegHold>,
    /// How long it held on its way there before without coming nearer: all such holds together are bounded.
    held: Duration,
    /// When it began to hold last, and how far it was then, metres.
    held_at: Option<(Instant, f64)>,
    /// It was found on its way there, and has not continued: of others it knows what it has received since.
    is_found: bool,
}

/// The aircraft holds on its leg, because another is too near ahead.
#[derive(Clone, Copy, Debug)]
struct LegHold {
    since: Instant,
    /// It lasts at least until then.
    least_until: Instant,
    /// The autopilot holds; before that it takes no other order.
    is_confirmed: bool,
    /// It has climbed out of the way of an aircraft that drifts.
    has_climbed: bool,
}

impl Navigation {
    pub(super) fn target(&self) -> Option<Point> {
        self.target
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    pub(super) fn confirm_hold(&mut self) {
        if let Some(hold) = &mut self.hold {
            hold.is_confirmed = true;
        }
    }
}

#[cfg(test)]
impl Navigation {
    /// Everything that decides what follows, for [`Swarm::fingerprint`].
    pub(super) fn fingerprint(
        &self,
        ages: &super::table::fingerprint::Ages,
        state: &mut impl core::hash::Hasher,
    ) {
        use core::hash::Hash as _;
        (self.target.map(super::table::fingerprint::coordinates), self.has_arrived).hash(state);
        self.is_found.hash(state);
        let hold = |hold: LegHold| {
            (ages.of(hold.since), ages.of(hold.least_until), (hold.is_confirmed, hold.has_climbed))
        };
        self.hold.map(hold).hash(state);
        self.held.as_millis().hash(state);
        self.held_at.map(|(at, off_m)| (ages.of(at), off_m.to_bits())).hash(state);
    }
}

/// Arrived at a height within this (reference: 1 m up to 20 m, 5 % up to 50 m, 2.5 m above).
fn height_tolerance_m(height_m: f64) -> f64 {
    match height_m {
        ..=20.0 => 1.0,
        ..=50.0 => 0.05 * height_m,
        _ => 2.5,
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    pub(super) fn is_at(&self, target: Point) -> bool {
        let Some(own) = self.ownship.telemetry() else { return false };
        let height_m = f64::from(target.height_mm) / 1e3;
        self.distance_m(target).is_some_and(|d| d <= self.config.arrival_m)
            && (own.height_m - height_m).abs()
                <= self.config.arrival_height_m.unwrap_or(height_tolerance_m(height_m))
    }

    fn distance_m(&self, target: Point) -> Option<f64> {
        let own = self.ownship.telemetry()?;
        Some(Frame::new(position(target)).to_local(own.position).truncate().length())
    }

    /// How far this aircraft is from its target over the ground, metres.
    pub(super) fn off_target_m(&self) -> Option<f64> {
        self.distance_m(self.navigation.target?)
    }

    pub(super) fn check_arrival(&mut self) {
        self.navigation.has_arrived = if self.state == State::TakingOff(TakeOffPhase::Climbing) {
            let enough_m = f64::from(self.assignment.first_height_mm()) / 1e3 * 0.95;
            self.ownship.telemetry().is_some_and(|own| own.height_m >= enough_m)
        } else {
            self.navigation.target.is_some_and(|target| self.is_at(target))
        };
    }

    /// Orders the flight to a target.
    pub(crate) fn fly_to(&mut self, now: Instant, target: Option<Point>, out: &mut Actions) {
        let Some(target) = target else { return };
        self.navigation.target = Some(target);
        let seconds = self.distance_m(target).unwrap_or(0.0) / SLOWEST_M_S + 60.0;
        self.timers.set(Timer::Leg, now + Duration::from_millis((seconds * 1e3) as u64));
        push(out, Action::Order(Order::FlyTo(target)));
    }

    /// Where this aircraft makes room.
    #[cfg(test)]
    pub(super) fn fingerprint_aside(
        &self,
        ages: &super::table::fingerprint::Ages,
        state: &mut impl core::hash::Hasher,
    ) {
        core::hash::Hash::hash(&self.aside.is_some(), state);
        if let Some(aside) = &self.aside {
            aside.fingerprint(ages, state);
        }
    }

    /// Whether an input is an occasion to check what is ahead. Not each message: a large swarm receives many. One that
    /// holds ahead is not waited for.
    pub(crate) fn checks_path(&self, now: Instant, input: &Input<'_>) -> bool {
        match input {
            Input::Message { message, .. } => {
                matches!(message, Message::Holding { .. }) || self.timers.is_due(Timer::Broadcast, now)
            }
            Input::Passed { .. } => self.timers.is_due(Timer::Broadcast, now),
            Input::Wake
            | Input::Telemetry(_)
            | Input::Operator(_)
            | Input::Reached(_)
            | Input::Done(_)
            | Input::Failed(_)
            | Input::TakenOver(_)
            | Input::BatteryLow(_) => true,
        }
    }

    /// Holds behind a member that is too near ahead on the path, and continues once it no longer is.
    pub(crate) fn keep_distance(
        &mut self,
        now: Instant,
        approach: Approach,
        out: &mut Actions,
    ) -> Option<Urgency> {
        let (target, holds) = (self.navigation.target?, self.holds_leg());
        let is_near = self.clearance().closes_up(now, target, holds, approach)
            || !self.is_adrift() && self.clearance().is_drifted_ahead(now, target, holds);
        if is_near && !holds {
            self.hold_leg(now, out);
            self.timers.set(Timer::Yield, self.config.patience_after(now) - self.navigation.held);
            // Those behind hold on this message, not when they notice that this aircraft slows down.
            return Some(Urgency::Immediate);
        }
        if self.climbs_off(now, out) {
            return None;
        }
        let is_in_doubt = self.navigation.is_found && self.clearance().may_hide_another(target);
        if !is_near && !is_in_doubt && self.may_resume_leg(now) {
            self.timers.stop(Timer::Yield);
            self.resume_leg(now, out);
        }
        None
    }

    /// Climbs out of the way of an aircraft that drifts towards this one while it holds. Whether it waits for that to pass.
    fn climbs_off(&mut self, now: Instant, out: &mut Actions) -> bool {
        if self.is_adrift() || !self.navigation.hold.is_some_and(|hold| hold.is_confirmed) {
            return false;
        }
        if let Some(above) = self.clearance().above_adrift(now) {
            if self.clearance().may_drift_next(now) {
                return true;
            }
            if let Some(hold) = &mut self.navigation.hold {
                hold.least_until = hold.least_until.max(now + CLIMBED_LEAST);
            }
            let hold = self.navigation.hold.as_mut().filter(|hold| !hold.has_climbed);
            if let Some(hold) = hold {
                hold.has_climbed = true;
                push(out, Action::Log(Severity::Warning, text!("another drifts towards here: climbing")));
                push(out, Action::Order(Order::FlyTo(above)));
            }
            return true;
        }
        self.navigation.hold.is_some_and(|hold| hold.has_climbed) && self.clearance().is_drifted_over(now)
    }

    /// Holds on the leg. On the way to land it ends with landing there, and not with the deadline of the leg.
    fn hold_leg(&mut self, now: Instant, out: &mut Actions) {
        let off_m = self.off_target_m().unwrap_or(0.0);
        let comes_nearer =
            |(at, was_m): (Instant, f64)| was_m - off_m >= SLOWEST_M_S * now.since(at).as_secs_f64();
        if self.navigation.held_at.is_some_and(comes_nearer) {
            self.navigation.held = Duration::ZERO;
        }
        self.navigation.held_at = Some((now, off_m));
        self.begin_hold(now, now + HOLD_LEAST, out);
        if self.state == State::MovingToLand {
            self.timers.stop(Timer::Leg);
        }
    }

    fn begin_hold(&mut self, now: Instant, least_until: Instant, out: &mut Actions) {
        self.navigation.hold =
            Some(LegHold { since: now, least_until, is_confirmed: false, has_climbed: false });
        push(out, Action::Order(Order::Hold));
    }

    /// An aircraft that is found in flight holds where it is; with a target it holds on its way there, at least until then.
    pub(super) fn hold_found(
        &mut self,
        now: Instant,
        target: Option<Point>,
        least_until: Instant,
        out: &mut Actions,
    ) {
        self.navigation = Navigation { target, is_found: target.is_some(), ..Navigation::default() };
        if target.is_none() {
            return push(out, Action::Order(Order::Hold));
        }
        self.begin_hold(now, least_until, out);
        self.timers.set(Timer::Yield, self.config.patience_after(now));
    }

    /// Whether it holds on its leg.
    pub(crate) fn holds_leg(&self) -> bool {
        self.navigation.hold.is_some()
    }

    /// Whether it has held on its leg for long enough, and stands.
    fn may_resume_leg(&self, now: Instant) -> bool {
        let has_held = |hold: LegHold| hold.is_confirmed && now >= hold.least_until;
        self.navigation.hold.is_some_and(has_held) && self.ownship.is_standing()
    }

    /// Continues the leg.
    fn resume_leg(&mut self, now: Instant, out: &mut Actions) {
        self.navigation.is_found = false;
        self.navigation.held +=
            self.navigation.hold.take().map_or(Duration::ZERO, |hold| now.since(hold.since));
        self.fly_to(now, self.navigation.target, out);
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::DVec3;

    use super::super::Config;
    use super::super::tests::{MASTER, Member, OTHER};
    use super::*;
    use crate::{Input, Telemetry};

    #[test]
    fn a_configured_tolerance_of_the_height_counts_at_every_height() {
        for (arrival_height_m, off_m, has_arrived) in
            [(None, 0.9, true), (None, 1.1, false), (Some(2.5), 2.4, true), (Some(0.5), 0.9, false)]
        {
            let config = Config { arrival_height_m, ..Config::new(OTHER, MASTER, 3) };
            config.check().unwrap();
            let mut member = Member::with(config);
            let target = Point { height_mm: 20_000, ..Member::stand(OTHER) };
            member.handle(Input::Telemetry(Telemetry {
                position: position(target),
                height_m: 20.0 - off_m,
                velocity_m_s: DVec3::ZERO,
                heading_rad: 0.0,
                armed: true,
                landing: false,
                is_located: true,
            }));
            assert_eq!(member.swarm.is_at(target), has_arrived, "{arrival_height_m:?}, {off_m} m below");
        }
        for arrival_height_m in [0.0, 2.6] {
            let config = Config { arrival_height_m: Some(arrival_height_m), ..Config::new(OTHER, MASTER, 3) };
            assert_eq!(config.check().unwrap_err().key, "arrival_height_m");
        }
    }

    #[test]
    fn the_tolerance_of_a_height_is_the_references() {
        for (height_m, tolerance_m) in [(5.0, 1.0), (20.0, 1.0), (40.0, 2.0), (50.0, 2.5), (90.0, 2.5)] {
            assert_eq!(height_tolerance_m(height_m), tolerance_m, "{height_m} m");
        }
    }
}
