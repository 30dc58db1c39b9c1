//! AUTO: flies the stored mission item by item.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{MISSION_ITEM_REACHED_DATA, MavCmd, MavMessage, MavSeverity};
use wingbeat_geo::{DVec3, Duration, Instant};

use super::mission::Item;
use super::{FlightController, Parameter};
use crate::motion::{Profile, Task};

/// Speed changes that may stand in a row before a place to go to: more is a mission of nothing else.
const STEPS_PER_TICK: usize = 32;

/// What is being done about the current item.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leg {
    TakeOff,
    /// On the way to a place, or waiting there since `reached`.
    Fly {
        wait: Option<Duration>,
        reached: Option<Instant>,
    },
    /// On the way to where it lands.
    FlyToLand,
    Land,
    Return,
    /// The mission is over, or halted: hold the place.
    Hold,
}

#[derive(Debug, Default)]
pub(super) struct Auto {
    /// The item that is flown; 0 before the first.
    current: usize,
    leg: Option<Leg>,
    /// Heading of the leg, radians clockwise from north, where the mission states one.
    yaw_rad: Option<f64>,
    /// Whether an item without a place ran since the last leg ended: ArduCopter runs the first at once, and the leg that
    /// begins behind it resets its yaw.
    has_run: bool,
    /// No item was left: AUTO, entered again, begins the mission anew.
    ended: bool,
}

impl Auto {
    pub(super) fn current(&self) -> usize {
        self.current
    }
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
    /// Whether it goes somewhere, for telemetry.
    pub(super) fn going(&self) -> bool {
        matches!(self.leg, Some(Leg::TakeOff | Leg::Fly { .. } | Leg::FlyToLand | Leg::Return))
    }
}

impl FlightController {
    /// Starts the mission or resumes it at the item where it was left, or anew if it has ended.
    pub(super) fn resume_mission(&mut self) {
        if self.auto.ended || self.parameters.flag(Parameter::MIS_RESTART) == 1 {
            self.auto.current = 0;
        }
        (self.auto.leg, self.auto.ended) = (None, false);
    }

    pub(super) fn pause_mission(&mut self) {
        self.auto.leg = Some(Leg::Hold);
        self.stop_here();
    }

    pub(super) fn jump_to_item(&mut self, number: usize) {
        self.auto = Auto { current: number, ..Auto::default() };
    }

    /// `MAV_CMD_MISSION_START`: AUTO, and the leave to take off without a raised throttle. Armed only.
    pub(super) fn start_mission(&mut self) -> bool {
        if !self.armed() || self.mission.is_empty() || !self.set_mode(Mode::Auto) {
            return false;
        }
        self.arming.may_take_off = true;
        true
    }

    /// One tick of AUTO.
    pub(super) fn run_mission(&mut self) {
        // On the ground without leave to take off, motors idle.
        if !self.arming.may_take_off {
            return self.ensure(Task::Idle);
        }
        for _ in 0..STEPS_PER_TICK {
            match self.auto.leg {
                None => self.start_item(),
                Some(leg) => {
                    if !self.leg_done(leg) {
                        return;
                    }
                    self.next_item();
                }
            }
            if !self.armed() {
                return;
            }
        }
    }

    fn next_item(&mut self) {
        self.auto.current += 1;
        (self.auto.leg, self.auto.yaw_rad, self.auto.has_run) = (None, None, false);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn start_item(&mut self) {
        self.auto.current = self.auto.current.max(1);
        let Some(item) = self.mission.item(self.auto.current).copied() else {
            return self.end_mission();
        };
        let wait = Duration::from_millis((f64::from(item.p[0]).clamp(0.0, 86_400.0) * 1e3) as u64);
        match item.command {
            MavCmd::MAV_CMD_DO_CHANGE_SPEED => {
                self.change_speed(item.p[0], f64::from(item.p[1]));
                (self.auto.current, self.auto.has_run) = (self.auto.current + 1, true);
            }
            MavCmd::MAV_CMD_CONDITION_YAW => {
                // A relative turn is not modelled: it is answered by flying on without it.
                let is_kept = self.auto.has_run && item.p[3] == 0.0;
                self.auto.yaw_rad = is_kept.then(|| f64::from(item.p[0]).to_radians());
                (self.auto.current, self.auto.has_run) = (self.auto.current + 1, true);
            }
            MavCmd::MAV_CMD_NAV_TAKEOFF => self.start_take_off(&item),
            // Everything else needs the air under it.
            _ if self.landed() => {
                self.auto.leg = Some(Leg::Hold);
                self.ensure(Task::Idle);
            }
            MavCmd::MAV_CMD_NAV_WAYPOINT => {
                let fast = wait.is_zero() && self.fast_after(self.auto.current);
                self.start_flying(&item, fast, Leg::Fly { wait: Some(wait), reached: None });
            }
            MavCmd::MAV_CMD_NAV_LOITER_TIME => {
                self.start_flying(&item, false, Leg::Fly { wait: Some(wait), reached: None });
            }
            MavCmd::MAV_CMD_NAV_LOITER_UNLIM => {
                self.start_flying(&item, false, Leg::Fly { wait: None, reached: None });
            }
            MavCmd::MAV_CMD_NAV_LAND if item.latitude_e7 != 0 || item.longitude_e7 != 0 => {
                // Fly there at the present altitude, then land.
                self.start_flying(&Item { z: 0.0, ..item }, false, Leg::FlyToLand);
            }
            MavCmd::MAV_CMD_NAV_LAND => self.auto.leg = Some(Leg::Land),
            MavCmd::MAV_CMD_NAV_RETURN_TO_LAUNCH => {
                self.auto.leg = Some(Leg::Return);
                self.start_return();
            }
            // An upload takes no other command.
            _ => self.auto.current += 1,
        }
    }

    /// Whether a waypoint without delay is flown through. 3.5.7 does so even if it is the last.
    fn fast_after(&self, number: usize) -> bool {
        if self.profile() == Profile::Copter357 {
            return true;
        }
        self.next_navigation(number).is_some_and(|i| {
            matches!(
                i.command,
                MavCmd::MAV_CMD_NAV_WAYPOINT
                    | MavCmd::MAV_CMD_NAV_LOITER_TIME
                    | MavCmd::MAV_CMD_NAV_LOITER_UNLIM
            )
        })
    }

    /// The first item after this one that flies somewhere.
    fn next_navigation(&self, number: usize) -> Option<&Item> {
        let mut later = (number + 1..).map_while(|n| self.mission.item(n));
        later.find(|i| i.navigates())
    }

    fn start_take_off(&mut self, item: &Item) {
        let up = self.place(0, 0, f64::from(item.z), item.frame).map_or(0.0, |p| p.z);
        let here = self.vehicle.state().position;
        // Already higher: 3.5.7 reaches the item immediately.
        self.auto.leg = Some(Leg::TakeOff);
        if up > here.z {
            self.vehicle.set_task(Task::TakeOff { altitude_m: up }, &self.nav);
        } else if self.landed() {
            // A take-off to the ground does nothing, and the mission waits.
            self.auto.leg = Some(Leg::Hold);
            self.ensure(Task::Idle);
        }
    }

    fn start_flying(&mut self, item: &Item, fast: bool, leg: Leg) {
        let Some(destination) = self.item_place(item) else { return self.end_mission() };
        self.auto.leg = Some(leg);
        let next = self.next_navigation(self.auto.current).filter(|_| fast).copied();
        let next = next.and_then(|item| self.item_place(&item));
        let yaw = self.auto.yaw_rad;
        self.vehicle.set_task(Task::Waypoint { destination, fast, next, yaw }, &self.nav);
    }

    /// Whether the leg is done; reports it if a waypoint was reached.
    fn leg_done(&mut self, leg: Leg) -> bool {
        let reached = self.vehicle.destination_reached();
        match leg {
            Leg::TakeOff => {
                let climbing = matches!(self.vehicle.task(), Task::TakeOff { .. });
                if climbing && !reached {
                    return false;
                }
                self.report_reached(false);
                true
            }
            Leg::Fly { wait, reached: None } => {
                if reached {
                    self.auto.leg = Some(Leg::Fly { wait, reached: Some(self.now) });
                }
                // Without a delay the next item starts in this tick, so that the corner is cut.
                if reached && wait.is_some_and(|w| w.is_zero()) {
                    self.report_reached(true);
                    return true;
                }
                false
            }
            Leg::Fly { wait, reached: Some(at) } => {
                let done = wait.is_some_and(|w| self.now.since(at) >= w);
                if done {
                    self.report_reached(true);
                }
                done
            }
            Leg::FlyToLand => {
                if reached {
                    self.auto.leg = Some(Leg::Land);
                }
                false
            }
            Leg::Land => {
                if self.landed() {
                    self.report_reached(false);
                }
                self.run_landing();
                false
            }
            Leg::Return => {
                self.run_return();
                false
            }
            Leg::Hold => {
                if self.landed() && !self.taking_off() {
                    self.ensure(Task::Idle);
                }
                false
            }
        }
    }

    fn report_reached(&mut self, with_text: bool) {
        let seq = self.auto.current as u16;
        if with_text {
            self.send_text(MavSeverity::MAV_SEVERITY_INFO, format_args!("Reached command #{seq}"));
        }
        self.send(&MavMessage::MISSION_ITEM_REACHED(MISSION_ITEM_REACHED_DATA { seq }));
    }

    /// No item is left: stay here, or disarm on the ground.
    fn end_mission(&mut self) {
        if self.landed() {
            self.disarm();
            return;
        }
        let last = self.mission.count().saturating_sub(1);
        self.auto = Auto { current: usize::from(last), leg: Some(Leg::Hold), ended: true, ..Auto::default() };
        // A last waypoint is still being flown to; anything else stops here.
        if !matches!(self.vehicle.task(), Task::Waypoint { .. } | Task::TakeOff { .. }) {
            let destination: DVec3 = self.vehicle.state().position;
            self.ensure(Task::Waypoint { destination, fast: false, next: None, yaw: None });
        }
    }
}
