//! Turns a protocol's orders into jobs for the autopilot, one order at a time: a later order replaces
//! an earlier one. An order is done when its effect was seen, failed when it will not be.

use heapless::Deque;
use wingbeat_autopilot::arming::Arm;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::mission::{self, Upload};
use wingbeat_autopilot::mode::SetMode;
use wingbeat_autopilot::parameter::{Names, Value, Write};
use wingbeat_autopilot::takeoff::TakeOff;
use wingbeat_autopilot::target::{FlyTo, Place};
use wingbeat_autopilot::{Failure, Progress, Telemetry, Transmit};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Order, Protocol, Text, text};
use wingbeat_wire::Point;

use crate::guardian::Modes;
use crate::returns::{self, Returns};

/// What is to be done, in order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Mode(Mode),
    Arm,
    Climb {
        height_mm: i32,
    },
    Fly(Point),
    Load,
    /// The speed of AUTO, which each of its beginnings takes from the parameter again.
    RouteSpeed,
    /// The height of RTL.
    ReturnHeight,
}

/// What is being done.
// One job lives at a time; the upload holds the mission that it compares with.
#[allow(clippy::large_enum_variant)]
enum Job {
    Mode(SetMode),
    Arm(Arm),
    Climb(TakeOff),
    Fly(FlyTo),
    Load(Upload),
    RouteSpeed(Write),
    /// [`Executor::returns`] does it.
    ReturnHeight,
}

/// The place of a point.
pub(crate) fn place(point: Point) -> Place {
    Place { latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7, height_mm: point.height_mm }
}

/// Carries out one order.
#[derive(Default)]
pub(crate) struct Executor {
    order: Option<Order>,
    steps: Deque<Step, 4>,
    job: Option<Job>,
    /// The pilot's height of RTL, which a swarm borrows.
    returns: Returns,
    /// Modes that we asked for and have not seen, newest last: a heartbeat that shows one of them is our
    /// own doing, once.
    asked: Deque<(Mode, Instant), 4>,
    /// The mode of our own doing that was seen last.
    own: Option<Mode>,
}

/// A mode that we asked for may show this late: the heartbeat that was on its way, and one that is lost.
const OWN_MODE_WITHIN: Duration = Duration::from_secs(5);

impl Executor {
    /// Takes a new order.
    pub(crate) fn begin(&mut self, order: Order) {
        self.clear();
        self.order = Some(order);
        let steps: &[Step] = match order {
            Order::LoadRoute => &[Step::Load, Step::RouteSpeed, Step::ReturnHeight],
            Order::TakeOff { height_mm } => &[Step::Mode(Mode::Guided), Step::Arm, Step::Climb { height_mm }],
            Order::FlyTo(point) => &[Step::Mode(Mode::Guided), Step::Fly(point)],
            Order::FlyRoute { height_mm } => {
                &[Step::Mode(Mode::Guided), Step::Arm, Step::Climb { height_mm }, Step::Mode(Mode::Auto)]
            }
            Order::Resume => &[Step::Mode(Mode::Auto)],
            Order::Hold => &[Step::Mode(Mode::Brake)],
            Order::Return => &[Step::Mode(Mode::Rtl)],
            Order::Land => &[Step::Mode(Mode::Land)],
        };
        for step in steps {
            // Four steps fit.
            let _ = self.steps.push_back(*step);
        }
    }

    /// Drops whatever is being done.
    pub(crate) fn clear(&mut self) {
        (self.order, self.job) = (None, None);
        self.steps.clear();
        self.returns.stop();
    }

    /// Whether an order that must not be given up is being carried out.
    fn insists(&self) -> bool {
        matches!(self.order, Some(Order::Hold | Order::Return | Order::Land))
    }

    /// Whether a mode that a heartbeat shows anew is our own doing. A mode is expected once for all that it
    /// was asked: when it has been seen, it and whatever was asked before it are past, and who enters it
    /// again is the pilot.
    pub(crate) fn expected(&mut self, now: Instant, mode_number: u32) -> bool {
        let is_it =
            |(mode, at): &(Mode, Instant)| mode.number() == mode_number && now.since(*at) <= OWN_MODE_WITHIN;
        let Some(position) = self.asked.iter().position(is_it) else { return false };
        for _ in 0..=position {
            self.own = self.asked.pop_front().map(|(mode, _)| mode);
        }
        true
    }

    /// Forgets every mode that was asked for: from here on each is the pilot's.
    pub(crate) fn expect_nothing(&mut self) {
        self.asked.clear();
        self.own = None;
    }

    /// Modes that are our own doing, seen or still to be seen.
    pub(crate) fn own_modes(&self, now: Instant) -> Modes {
        let pending = self.asked.iter().filter(|(_, at)| now.since(*at) <= OWN_MODE_WITHIN);
        pending
            .map(|(mode, _)| mode)
            .chain(self.own.as_ref())
            .fold(Modes::default(), |all, mode| all.with(Modes::one(mode.number())))
    }

    /// Whether an order is under way that moves the aircraft or arms it.
    pub(crate) fn flies(&self) -> bool {
        self.order.is_some_and(|order| order != Order::LoadRoute)
    }

    /// Whether something is being done.
    pub(crate) fn is_busy(&self) -> bool {
        self.order.is_some()
    }

    /// Hears the autopilot.
    pub(crate) fn hear(&mut self, now: Instant, message: &MavMessage) {
        match &mut self.job {
            Some(Job::Arm(job)) => job.hear(message),
            Some(Job::Climb(job)) => job.hear(now, message),
            Some(Job::Load(job)) => job.hear(now, message),
            Some(Job::RouteSpeed(job)) => job.hear(now, message),
            Some(Job::Mode(_) | Job::Fly(_)) => {}
            Some(Job::ReturnHeight) | None => self.returns.hear(now, message),
        }
    }

    /// When it wants polling.
    pub(crate) fn due(&self) -> Instant {
        match &self.job {
            Some(Job::Mode(job)) => job.due(),
            Some(Job::Arm(job)) => job.due(),
            Some(Job::Climb(job)) => job.due(),
            Some(Job::Fly(job)) => job.due(),
            Some(Job::Load(job)) => job.due(),
            Some(Job::RouteSpeed(job)) => job.due(),
            Some(Job::ReturnHeight) => self.returns.due(),
            None if self.steps.is_empty() => self.returns.due(),
            None => Instant::ZERO,
        }
    }

    /// Goes on. Returns the order that ended now, and how.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        telemetry: &Telemetry,
        protocol: &dyn Protocol,
        transmit: &mut Transmit<'_>,
    ) -> Option<(Order, Result<(), Failure>)> {
        let order = self.order?;
        loop {
            if self.job.is_none() {
                let Some(step) = self.steps.pop_front() else {
                    self.clear();
                    return Some((order, Ok(())));
                };
                match self.start(now, step, telemetry, protocol) {
                    Ok(Some(job)) => self.job = Some(job),
                    Ok(None) => continue,
                    Err(failure) => {
                        self.clear();
                        return Some((order, Err(failure)));
                    }
                }
            }
            let progress = match self.job.as_mut()? {
                Job::Mode(job) => {
                    let mode = job.mode();
                    let sent = transmit.bytes.len();
                    let progress = job.poll(now, telemetry, transmit);
                    if transmit.bytes.len() > sent {
                        note(&mut self.asked, mode, now);
                    }
                    if progress == Progress::Done {
                        self.own = Some(mode);
                    }
                    progress
                }
                Job::Arm(job) => job.poll(now, telemetry, transmit),
                Job::Climb(job) => job.poll(now, telemetry, transmit),
                Job::Fly(job) => job.poll(now, telemetry, transmit),
                Job::Load(job) => job.poll(now, transmit),
                Job::RouteSpeed(job) => job.poll(now, transmit),
                Job::ReturnHeight => self.returns.poll(now, transmit),
            };
            match progress {
                Progress::Pending => return None,
                Progress::Done => self.job = None,
                Progress::Failed(failure) => {
                    self.clear();
                    return Some((order, Err(failure)));
                }
            }
        }
    }

    /// Whether the pilot's height of RTL waits to be given back: on the ground, between flights.
    pub(crate) fn owes_return_height(&self) -> bool {
        self.order.is_none() && self.returns.are_lent()
    }

    /// Gives it back. A line for people when that has ended.
    pub(crate) fn give_back_return_height(
        &mut self,
        now: Instant,
        transmit: &mut Transmit<'_>,
    ) -> Option<Result<Text, Text>> {
        let pilots = self.returns.pilots();
        self.returns.give_back();
        match self.returns.poll(now, transmit) {
            Progress::Pending => None,
            Progress::Done => Some(Ok(text!("the pilot's settings of RTL are back"))),
            Progress::Failed(failure) => Some(Err(returns::not_given_back(&pilots, &failure))),
        }
    }

    /// When giving back wants polling.
    pub(crate) fn give_back_due(&self) -> Instant {
        self.returns.give_back_due()
    }

    /// The pilot's settings of RTL while they are lent, for people.
    pub(crate) fn lent_return_height(&self) -> Option<Text> {
        self.returns.are_lent().then(|| self.returns.pilots())
    }

    /// The job of a step, or none where nothing is to be done.
    fn start(
        &mut self,
        now: Instant,
        step: Step,
        telemetry: &Telemetry,
        protocol: &dyn Protocol,
    ) -> Result<Option<Job>, Failure> {
        Ok(Some(match step {
            Step::Mode(mode) if self.insists() => Job::Mode(SetMode::insist(now, mode)),
            Step::Mode(mode) => Job::Mode(SetMode::new(now, mode)),
            Step::Arm => Job::Arm(Arm::new(now)),
            Step::Climb { height_mm } => {
                Job::Climb(TakeOff::new(now, f64::from(height_mm) * 1e-3, telemetry))
            }
            Step::Fly(point) => Job::Fly(FlyTo::new(now, place(point))),
            Step::Load => {
                let items = mission::items_of(protocol.route().iter().map(|p| place(*p)))
                    .map_err(|_| Failure::NoEffect { what: "a route that is too long" })?;
                Job::Load(Upload::new(now, items))
            }
            Step::RouteSpeed => {
                let Some(speed_m_s) = protocol.route_speed_m_s() else { return Ok(None) };
                let speed_cm_s = Value::Real((speed_m_s * 100.0) as f32);
                Job::RouteSpeed(Write::new(now, Names::one("WPNAV_SPEED"), speed_cm_s))
            }
            Step::ReturnHeight => {
                let Some(height_mm) = protocol.return_height_mm() else { return Ok(None) };
                self.returns.set(height_mm);
                Job::ReturnHeight
            }
        }))
    }
}

fn note(asked: &mut Deque<(Mode, Instant), 4>, mode: Mode, now: Instant) {
    // In the order of the last request, which is the order in which the autopilot obeys.
    asked.retain(|(m, _)| *m != mode);
    if asked.is_full() {
        asked.pop_front();
    }
    let _ = asked.push_back((mode, now));
}
