//! Turns a protocol's orders into jobs for the autopilot, one order at a time: a later order replaces
//! an earlier one. An order is done when its effect was seen, failed when it will not be.

use heapless::Deque;
use wingbeat_autopilot::arming::Arm;
use wingbeat_autopilot::command::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::mission::{ItemList, ReadBack, Transfer};
use wingbeat_autopilot::mode::SetMode;
use wingbeat_autopilot::parameter::{Name, Value};
use wingbeat_autopilot::takeoff::TakeOff;
use wingbeat_autopilot::target::{FlyTo, RelativePosition};
use wingbeat_autopilot::{Failure, Progress, Telemetry, Transmit};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Fence, Order, Protocol, Text, text};
use wingbeat_wire::Point;

use crate::given;
use crate::guardian::Modes;
use crate::owed::Owed;
use crate::parameters::Requested;
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
    /// Whether the autopilot still holds the route that was loaded.
    Compare,
    /// The speed of AUTO, which each of its beginnings takes from the parameter again.
    RouteSpeed,
    /// The speed of the leg that is flown, which AUTO forgets where it is entered again.
    LegSpeed,
    /// The height of RTL.
    ReturnHeight,
}

/// Steps of the longest order.
const STEPS_MAX: usize = 5;

/// The job that carries out the order.
enum Job {
    Mode(SetMode),
    Arm(Arm),
    Climb(TakeOff),
    Fly(FlyTo),
    Load(Transfer),
    Speed(Command),
    /// [`Executor::returns`] does it.
    Override,
    /// No order's: the mission is read where nothing else is done.
    Read(ReadBack),
    /// No order's: parameters that the operator asked for.
    Parameters(Requested),
}

/// The place of a point.
pub(crate) fn place(point: Point) -> RelativePosition {
    RelativePosition {
        latitude_e7: point.latitude_e7,
        longitude_e7: point.longitude_e7,
        height_mm: point.height_mm,
    }
}

/// What of a route goes to the autopilot.
fn items(protocol: &dyn Protocol) -> Result<impl ItemList, Failure> {
    given::items(protocol).map_err(|_| Failure::NoEffect { what: "a route that is too long" })
}

/// A mode that we asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    mode: Mode,
    /// Since when, with no other asked for in between.
    since: Instant,
    /// The last time.
    at: Instant,
}

/// So many changes of mode within [`OWN_MODE_WITHIN`] are told from a pilot's: three commands of two consoles, and one to come.
const ASKED_MOST: usize = 7;

impl Asked {
    fn may_show(&self, now: Instant) -> bool {
        now.since(self.at) <= OWN_MODE_WITHIN
    }
}

/// Carries out one order.
#[derive(Default)]
pub(crate) struct Executor {
    order: Option<Order>,
    steps: Deque<Step, STEPS_MAX>,
    /// The route was just found to be the one that was loaded, and arming comes next.
    is_compared: bool,
    /// What distinguishes the route that was just read back from others.
    held: Option<u64>,
    job: Option<Job>,
    /// The pilot's height of RTL, which a swarm borrows.
    returns: Returns,
    /// Modes that we asked for and have not seen, newest last: a heartbeat that shows one of them is our
    /// own doing, once. One that was asked for again after another is there twice.
    asked: Deque<Asked, ASKED_MOST>,
    /// The mode of our own doing that was seen last.
    own: Option<Mode>,
}

/// One that stands at the highest height wanders, and may be sent to where it is, metres.
const WANDERS_M: f64 = 5.0;

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
            Order::FlyRoute { height_mm } => &[
                Step::Compare,
                Step::Mode(Mode::Guided),
                Step::Arm,
                Step::Climb { height_mm },
                Step::Mode(Mode::Auto),
            ],
            Order::Resume => &[Step::Mode(Mode::Auto), Step::LegSpeed],
            Order::ResumeHeld => &[Step::Compare, Step::Mode(Mode::Auto), Step::LegSpeed],
            Order::Hold => &[Step::Mode(Mode::Brake)],
            Order::Return => &[Step::Mode(Mode::Rtl)],
            Order::Land => &[Step::Mode(Mode::Land)],
        };
        for step in steps {
            // As many as any order has fit.
            let _ = self.steps.push_back(*step);
        }
    }

    /// Whether the route was just read back, and arming comes next; asked once.
    pub(crate) fn take_compared(&mut self) -> bool {
        core::mem::take(&mut self.is_compared)
    }

    /// Of the route that was just read back, whole and as it was sent: [`Transfer::held`]; asked once.
    pub(crate) fn take_held(&mut self) -> Option<u64> {
        self.held.take()
    }

    /// Ends the order without another step.
    pub(crate) fn refuse(&mut self) -> Option<(Order, Result<(), Failure>)> {
        let order = self.order?;
        self.clear();
        Some((order, Err(Failure::NoEffect { what: "a check that no longer holds" })))
    }

    /// Drops the present job.
    pub(crate) fn clear(&mut self) {
        (self.order, self.job) = (None, None);
        self.steps.clear();
        self.returns.stop();
    }

    /// Returns the order under way.
    #[cfg(test)]
    pub(crate) fn order(&self) -> Option<Order> {
        self.order
    }

    /// Whether an order that must be repeated until its effect is seen is under way.
    fn insists(&self) -> bool {
        matches!(self.order, Some(Order::Hold | Order::Return | Order::Land))
    }

    /// Whether a mode that a heartbeat newly shows is our own doing. A mode is expected once for all that it
    /// was asked without another in between: when it has been seen, it and whatever was asked before it are past, and a pilot
    /// who enters it again is the pilot.
    pub(crate) fn expected(&mut self, now: Instant, mode_number: u32) -> bool {
        let is_it = |asked: &Asked| asked.mode.number() == mode_number && asked.may_show(now);
        let Some(position) = self.asked.iter().position(is_it) else { return false };
        self.own = seen(&mut self.asked, position);
        true
    }

    /// Nothing was received between these times: a mode that could still show at the first can at the second.
    pub(crate) fn bridge_gap(&mut self, last: Instant, now: Instant) {
        for asked in self.asked.iter_mut().filter(|asked| asked.may_show(last)) {
            asked.at = now;
        }
    }

    /// Wants a mode. While another that we asked for may still come over the aircraft, the mode that the last
    /// heartbeat shows proves nothing: *Hold* and a target a moment later would find the aircraft in GUIDED still,
    /// and send the target to one that brakes.
    fn want(&self, now: Instant, mode: Mode) -> SetMode {
        let job = if self.insists() { SetMode::insist(now, mode) } else { SetMode::new(now, mode) };
        if !self.asked.iter().any(|asked| asked.mode != mode && asked.may_show(now)) {
            return job;
        }
        let since = self.asked.back().filter(|newest| newest.mode == mode).map_or(now, |newest| newest.since);
        job.proved_after(since)
    }

    /// The reading of the mission; it begins where no order is under way, and ends with the next one.
    pub(crate) fn reading(&mut self, now: Instant) -> Option<&mut ReadBack> {
        if self.order.is_none() && !matches!(self.job, Some(Job::Read(_))) {
            self.job = Some(Job::Read(ReadBack::new(now)));
        }
        self.reading_begun()
    }

    /// It has ended.
    pub(crate) fn end_reading(&mut self) {
        if self.reading_begun().is_some() {
            self.job = None;
        }
    }

    /// That, if it has begun.
    pub(crate) fn reading_begun(&mut self) -> Option<&mut ReadBack> {
        match &mut self.job {
            Some(Job::Read(job)) => Some(job),
            Some(
                Job::Mode(_)
                | Job::Arm(_)
                | Job::Climb(_)
                | Job::Fly(_)
                | Job::Load(_)
                | Job::Speed(_)
                | Job::Override
                | Job::Parameters(_),
            )
            | None => None,
        }
    }

    /// When the reading wants polling.
    pub(crate) fn reading_due(&self) -> Instant {
        match &self.job {
            Some(Job::Read(job)) => job.due(),
            Some(
                Job::Mode(_)
                | Job::Arm(_)
                | Job::Climb(_)
                | Job::Fly(_)
                | Job::Load(_)
                | Job::Speed(_)
                | Job::Override
                | Job::Parameters(_),
            )
            | None => Instant::NEVER,
        }
    }

    /// Begins what was asked of the parameters, where no order is under way; the next order ends it. Whether it began.
    pub(crate) fn request(&mut self, requested: Requested) -> bool {
        let is_free = self.order.is_none() && self.job.is_none();
        if is_free {
            self.job = Some(Job::Parameters(requested));
        }
        is_free
    }

    /// That, while it is under way.
    pub(crate) fn requested(&mut self) -> Option<&mut Requested> {
        match &mut self.job {
            Some(Job::Parameters(job)) => Some(job),
            Some(
                Job::Mode(_)
                | Job::Arm(_)
                | Job::Climb(_)
                | Job::Fly(_)
                | Job::Load(_)
                | Job::Speed(_)
                | Job::Override
                | Job::Read(_),
            )
            | None => None,
        }
    }

    /// When it wants polling.
    pub(crate) fn requested_due(&self) -> Instant {
        match &self.job {
            Some(Job::Parameters(job)) => job.due(),
            Some(
                Job::Mode(_)
                | Job::Arm(_)
                | Job::Climb(_)
                | Job::Fly(_)
                | Job::Load(_)
                | Job::Speed(_)
                | Job::Override
                | Job::Read(_),
            )
            | None => Instant::NEVER,
        }
    }

    /// It has ended.
    pub(crate) fn end_requested(&mut self) {
        if self.requested().is_some() {
            self.job = None;
        }
    }

    /// A mode that the agent before this one, or its guardian, asked for.
    pub(crate) fn adopt(&mut self, mode: Mode) {
        self.own = Some(mode);
    }

    /// Forgets every mode that was asked for: from here on each is the pilot's.
    pub(crate) fn expect_nothing(&mut self) {
        self.asked.clear();
        self.own = None;
    }

    /// Modes that are our own doing, seen or still to be seen.
    pub(crate) fn own_modes(&self, now: Instant) -> Modes {
        let pending = self.asked.iter().filter(|asked| asked.may_show(now));
        pending
            .map(|asked| asked.mode)
            .chain(self.own)
            .fold(Modes::default(), |all, mode| all.with(Modes::one(mode.number())))
    }

    /// Whether an order is under way that moves the aircraft or arms it.
    pub(crate) fn flies(&self) -> bool {
        self.order.is_some_and(|order| order != Order::LoadRoute)
    }

    /// Whether an order is under way that arms the motors. While it still reads the mission back, they are not armed by us.
    pub(crate) fn arms(&self) -> bool {
        let is_reading = matches!(self.job, Some(Job::Load(_)))
            || self.steps.front().is_some_and(|step| matches!(step, Step::Compare));
        matches!(self.order, Some(Order::TakeOff { .. } | Order::FlyRoute { .. })) && !is_reading
    }

    /// Whether an order is under way that brings the aircraft down.
    pub(crate) fn ends_flight(&self) -> bool {
        matches!(self.order, Some(Order::Return | Order::Land))
    }

    /// Whether something is being done.
    pub(crate) fn is_busy(&self) -> bool {
        self.order.is_some()
    }

    /// Takes a message of the autopilot; the route of `protocol` is what is loaded.
    pub(crate) fn on_message(&mut self, now: Instant, message: &MavMessage, protocol: &dyn Protocol) {
        match &mut self.job {
            Some(Job::Arm(job)) => job.on_message(message),
            Some(Job::Climb(job)) => job.on_message(now, message),
            // One that is too long fails when it is polled.
            Some(Job::Load(job)) => {
                items(protocol).iter().for_each(|items| job.on_message(now, message, items));
            }
            Some(Job::Speed(job)) => job.on_message(now, message),
            Some(Job::Mode(_) | Job::Fly(_) | Job::Read(_)) => {}
            Some(Job::Override | Job::Parameters(_)) | None => self.returns.on_message(now, message),
        }
    }

    /// When it wants polling: never without an order, because then [`Executor::poll`] does nothing. Giving back the
    /// pilot's settings has a time of its own ([`Executor::restore_due`]).
    pub(crate) fn due(&self) -> Instant {
        if self.order.is_none() {
            return Instant::NEVER;
        }
        match &self.job {
            Some(Job::Mode(job)) => job.due(),
            Some(Job::Arm(job)) => job.due(),
            Some(Job::Climb(job)) => job.due(),
            Some(Job::Fly(job)) => job.due(),
            Some(Job::Load(job)) => job.due(),
            Some(Job::Speed(job)) => job.due(),
            Some(Job::Override) => self.returns.due(),
            Some(Job::Read(job)) => job.due(),
            Some(Job::Parameters(job)) => job.due(),
            None if self.steps.is_empty() => self.returns.due(),
            None => Instant::ZERO,
        }
    }

    /// Goes on; `reported_speed` is what the autopilot reported last as the speed of AUTO. Returns the order that ended now, and
    /// how.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        telemetry: &Telemetry,
        protocol: &dyn Protocol,
        reported_speed: Option<(Name, Value)>,
        transmit: &mut Transmit<'_>,
    ) -> Option<(Order, Result<(), Failure>)> {
        let order = self.order?;
        loop {
            if self.job.is_none() {
                let Some(step) = self.steps.pop_front() else {
                    self.clear();
                    return Some((order, Ok(())));
                };
                match self.start(now, step, telemetry, protocol, reported_speed) {
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
                        // It has taken effect, and with it whatever was asked before: a pilot who enters that
                        // again is the pilot.
                        if let Some(newest) = self.asked.iter().rposition(|asked| asked.mode == mode) {
                            seen(&mut self.asked, newest);
                        }
                    }
                    progress
                }
                Job::Arm(job) => job.poll(now, telemetry, transmit),
                Job::Climb(job) => job.poll(now, telemetry, transmit),
                Job::Fly(job) => job.poll(now, telemetry, transmit),
                Job::Load(job) => match items(protocol) {
                    Ok(items) => job.poll(now, &items, transmit),
                    Err(failure) => Progress::Failed(failure),
                },
                Job::Speed(job) => job.poll(now, telemetry, transmit),
                Job::Override => self.returns.poll(now, transmit),
                // An order has dropped it.
                Job::Read(_) | Job::Parameters(_) => Progress::Done,
            };
            match progress {
                Progress::Pending => return None,
                Progress::Done => {
                    if let Some(Job::Load(read)) = self.job.take() {
                        self.held = Some(read.held());
                        // The owner judges once more whether it may arm.
                        if matches!(order, Order::FlyRoute { .. }) {
                            self.is_compared = true;
                            return None;
                        }
                    }
                }
                Progress::Failed(failure) => {
                    self.clear();
                    return Some((order, Err(failure)));
                }
            }
        }
    }

    /// Whether settings of the pilot wait to be restored: on the ground, between flights.
    pub(crate) fn owes_settings(&self) -> bool {
        self.order.is_none() && self.returns.are_overridden()
    }

    /// Gives them back. A log line when that has ended.
    pub(crate) fn restore_settings(
        &mut self,
        now: Instant,
        transmit: &mut Transmit<'_>,
    ) -> Option<Result<Text, Text>> {
        let pilots = self.returns.pilots();
        self.returns.restore();
        match self.returns.poll(now, transmit) {
            Progress::Pending => None,
            Progress::Done => Some(Ok(text!("the pilot's {pilots} restored"))),
            Progress::Failed(failure) => Some(Err(returns::not_restored(&pilots, &failure))),
        }
    }

    /// When giving back wants polling.
    pub(crate) fn restore_due(&self) -> Instant {
        self.returns.restore_due()
    }

    /// What of the pilot's settings is owed.
    pub(crate) fn owed(&self) -> impl Iterator<Item = Owed> + '_ {
        self.returns.owed()
    }

    /// Takes what an agent before this one owed. Whether it is one of these.
    pub(crate) fn owe(&mut self, owed: &Owed) -> bool {
        self.returns.owe(owed)
    }

    /// The pilot's settings of RTL while they are overridden, as text.
    pub(crate) fn overridden_return_height(&self) -> Option<Text> {
        self.returns.is_height_overridden().then(|| self.returns.pilots())
    }

    /// The pilot's speed of AUTO while it is overridden, under its name.
    pub(crate) fn pilots_speed(&self) -> Option<(&'static str, Value)> {
        self.returns.pilots_speed()
    }

    /// The job of a step, or none where nothing is to be done.
    fn start(
        &mut self,
        now: Instant,
        step: Step,
        telemetry: &Telemetry,
        protocol: &dyn Protocol,
        reported_speed: Option<(Name, Value)>,
    ) -> Result<Option<Job>, Failure> {
        Ok(Some(match step {
            Step::Mode(mode) => Job::Mode(self.want(now, mode)),
            Step::Arm => Job::Arm(Arm::new(now)),
            Step::Climb { height_mm } => {
                Job::Climb(TakeOff::new(now, f64::from(height_mm) * 1e-3, telemetry))
            }
            Step::Fly(point) => {
                is_inside(protocol.fence(), telemetry, point)?;
                Job::Fly(FlyTo::new(now, place(point)))
            }
            Step::Load => Job::Load(Transfer::new(now, items(protocol)?.count())),
            Step::Compare => Job::Load(Transfer::comparing(now, items(protocol)?.count())),
            Step::RouteSpeed => {
                let Some(speed_m_s) = protocol.view().route_speed_m_s else { return Ok(None) };
                // ArduCopter 3 writes the speeds of legs into the pilot's parameter.
                let writes = telemetry.version.is_some_and(|version| version.major < 4);
                let has_speeds = protocol.extras().legs().any(|leg| leg.speed_cm_s > 0);
                self.returns.set_speed(now, speed_m_s, reported_speed, writes && has_speeds);
                Job::Override
            }
            Step::LegSpeed => {
                let next = protocol.view().reached.map_or(0, |reached| usize::from(reached) + 1);
                let Some(speed_m_s) = protocol.extras().speed_m_s(next) else { return Ok(None) };
                Job::Speed(Command::planned_speed(now, speed_m_s as f32))
            }
            Step::ReturnHeight => {
                let Some(height_mm) = protocol.view().return_height_mm else { return Ok(None) };
                self.returns.set_height(height_mm);
                Job::Override
            }
        }))
    }
}

/// Holds a target against the fence, seen from the own home, whichever aircraft named the target. Without a home it is not known
/// where the fence is: the autopilot's own is left.
fn is_inside(fence: Fence, telemetry: &Telemetry, at: Point) -> Result<(), Failure> {
    let outside = |of, found_m: f64, most_m: f64, slack_m: f64| {
        let is_outside = found_m > most_m + slack_m;
        let (found_m, most_m) = (found_m as i32, most_m as i32);
        if is_outside { Err(Failure::Outside { of, found_m, most_m }) } else { Ok(()) }
    };
    outside("above home", f64::from(at.height_mm) * 1e-3, fence.height_most_m, WANDERS_M)?;
    let Some(home) = telemetry.disarmed_position.or(telemetry.home) else { return Ok(()) };
    outside("from home", Fence::distance_m(home, at), fence.distance_most_m, Fence::ASIDE_M)
}

/// Notes that a mode was asked for, in the order in which the autopilot obeys.
fn note(asked: &mut Deque<Asked, ASKED_MOST>, mode: Mode, now: Instant) {
    if let Some(newest) = asked.back_mut().filter(|newest| newest.mode == mode) {
        newest.at = now;
        return;
    }
    if asked.is_full() {
        asked.pop_front();
    }
    let _ = asked.push_back(Asked { mode, since: now, at: now });
}

/// Drops what was asked for up to a request whose effect was seen; its mode.
fn seen(asked: &mut Deque<Asked, ASKED_MOST>, position: usize) -> Option<Mode> {
    (0..=position).filter_map(|_| asked.pop_front()).last().map(|asked| asked.mode)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use wingbeat_autopilot::codec::Decoder;
    use wingbeat_autopilot::codec::framing::Framing;
    use wingbeat_geo::{DVec3, Frame, Position};
    use wingbeat_protocol::mission::{Config, Mission};
    use wingbeat_wire::VehicleId;

    use super::*;

    const POINT: Point = Point { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

    /// What an executor sends to an autopilot whose heartbeats are written by the test.
    #[derive(Default)]
    struct Line {
        executor: Executor,
        telemetry: Telemetry,
    }

    impl Line {
        /// The last heartbeat came at that time and showed that mode.
        fn heartbeat(&mut self, ms: u64, mode: Mode) {
            self.telemetry.heartbeat_at = Some(Instant::from_millis(ms));
            let before = self.telemetry.mode_number.replace(mode.number());
            if before.is_some_and(|before| before != mode.number()) {
                assert!(
                    self.executor.expected(Instant::from_millis(ms), mode.number()),
                    "taken for a pilot's"
                );
            }
        }

        /// Modes that are asked for now, and `true` for a target.
        fn sends(&mut self, ms: u64) -> (Vec<u32>, bool) {
            let (mut sequence, mut bytes) = (0, heapless::Vec::new());
            let framing = Framing::default();
            let mut transmit = Transmit { system_id: 1, sequence: &mut sequence, framing, bytes: &mut bytes };
            let protocol = Mission::new(Config::new(VehicleId(1)));
            let now = Instant::from_millis(ms);
            let _ = self.executor.poll(now, &self.telemetry, &protocol, None, &mut transmit);
            let (mut modes, mut target) = (Vec::new(), false);
            Decoder::default().push(&bytes, |frame| match frame.message {
                #[allow(deprecated, reason = "3.5.7 supports no other")]
                MavMessage::SET_MODE(m) => modes.push(m.custom_mode),
                MavMessage::SET_POSITION_TARGET_GLOBAL_INT(_) => target = true,
                _ => {}
            });
            (modes, target)
        }
    }

    /// Motors that start while the height is given back suspend that: there was no order, and a time in the past.
    #[test]
    fn without_an_order_nothing_is_due_whatever_is_being_given_back() {
        let mut executor = Executor::default();
        executor.returns.set_height(20_000);
        assert_eq!((executor.restore_due(), executor.due()), (Instant::ZERO, Instant::NEVER));
        executor.begin(Order::Hold);
        assert_eq!(executor.due(), Instant::ZERO);
        executor.clear();
        assert_eq!(executor.due(), Instant::NEVER);
    }

    const GUIDED: u32 = 4;
    const AUTO: u32 = 3;
    const BRAKE: u32 = 17;

    #[test]
    fn a_target_right_after_a_hold_waits_until_the_aircraft_is_in_guided_again() {
        let mut line = Line::default();
        line.heartbeat(0, Mode::Guided);
        line.executor.begin(Order::Hold);
        assert_eq!(line.sends(100), (std::vec![BRAKE], false));
        // It brakes, and its last heartbeat does not show it.
        line.executor.begin(Order::FlyTo(POINT));
        assert_eq!(line.sends(200), (std::vec![GUIDED], false));
        // This one was on its way.
        line.heartbeat(210, Mode::Guided);
        assert_eq!(line.sends(210), (std::vec![], false));
        line.heartbeat(1_200, Mode::Guided);
        assert_eq!(line.sends(1_200), (std::vec![], true));
        // What was asked is past: a brake from here on is the pilot's.
        assert!(!line.executor.expected(Instant::from_millis(1_300), BRAKE));
    }

    #[test]
    fn targets_one_after_the_other_do_not_put_the_first_off_for_ever() {
        let mut line = Line::default();
        line.heartbeat(0, Mode::Guided);
        line.executor.begin(Order::Hold);
        line.sends(100);
        // Each replaces the one before, half a second after the last heartbeat and half before the next.
        let mut targets = 0;
        for second in 0..5 {
            line.executor.begin(Order::FlyTo(POINT));
            targets += usize::from(line.sends(second * 1_000 + 500).1);
            line.heartbeat(second * 1_000 + 1_000, Mode::Guided);
            targets += usize::from(line.sends(second * 1_000 + 1_000).1);
        }
        assert_eq!(targets, 5);
    }

    #[test]
    fn a_stop_right_after_a_resume_is_asked_for_though_the_last_heartbeat_showed_it() {
        let mut line = Line::default();
        line.heartbeat(0, Mode::Brake);
        line.executor.begin(Order::Resume);
        assert_eq!(line.sends(100), (std::vec![AUTO], false));
        line.executor.begin(Order::Hold);
        assert_eq!(line.sends(200), (std::vec![BRAKE], false));
        // The request was lost, and it flies on: asked again.
        line.heartbeat(1_000, Mode::Auto);
        assert_eq!(line.sends(1_500), (std::vec![BRAKE], false));
        line.heartbeat(2_000, Mode::Brake);
        line.sends(2_000);
        assert!(!line.executor.is_busy());
    }

    /// Nothing is sent for a target outside the own fence, and the order fails with what was found.
    #[test]
    fn a_target_outside_the_fence_is_not_flown_to() {
        let home =
            Position { latitude_e7: POINT.latitude_e7, longitude_e7: POINT.longitude_e7, altitude_mm: 0 };
        let away = |east_m: f64, height_mm: i32| {
            let there = Frame::new(home).to_position(DVec3::new(east_m, 0.0, 0.0));
            Point { latitude_e7: there.latitude_e7, longitude_e7: there.longitude_e7, height_mm }
        };
        let outside = |of, found_m, most_m| Some(Failure::Outside { of, found_m, most_m });
        for (target, failure) in [
            (away(4_990.0, 20_000), None),
            // Aside of one that stands below.
            (away(5_140.0, 20_000), None),
            (away(22_000.0, 20_000), outside("from home", 22_000, 5_000)),
            (away(0.0, 300_000), outside("above home", 300, 120)),
        ] {
            let mut line = Line::default();
            line.telemetry.disarmed_position = Some(home);
            line.heartbeat(0, Mode::Guided);
            line.executor.begin(Order::FlyTo(target));
            let protocol = Mission::new(Config::new(VehicleId(1)));
            let (mut sequence, mut bytes) = (0, heapless::Vec::new());
            let mut transmit = Transmit {
                system_id: 1,
                sequence: &mut sequence,
                framing: Framing::default(),
                bytes: &mut bytes,
            };
            let now = Instant::from_millis(100);
            let ended = line.executor.poll(now, &line.telemetry, &protocol, None, &mut transmit);
            assert_eq!(ended, failure.map(|failure| (Order::FlyTo(target), Err(failure))));
            assert_eq!(bytes.is_empty(), failure.is_some());
        }
    }

    /// Three commands of two consoles within an instant: whichever of the modes the heartbeats show, they are our own.
    #[test]
    fn a_mode_that_is_asked_for_again_does_not_make_a_pilots_of_those_between() {
        let mut line = Line::default();
        line.heartbeat(0, Mode::Guided);
        let orders = [Order::Hold, Order::Land, Order::Return, Order::Hold, Order::Land];
        for (ms, order) in (100..).step_by(20).zip(orders) {
            line.executor.begin(order);
            line.sends(ms);
        }
        // Each is asserted to be no pilot's.
        for (ms, mode) in
            [(110, Mode::Brake), (130, Mode::Land), (150, Mode::Rtl), (170, Mode::Brake), (1_190, Mode::Land)]
        {
            line.heartbeat(ms, mode);
            line.sends(ms.max(200));
        }
        assert!(!line.executor.is_busy());
        for mode in [BRAKE, Mode::Rtl.number()] {
            assert!(
                !line.executor.expected(Instant::from_millis(1_300), mode),
                "from here on it is the pilot's"
            );
        }
    }

    /// A mode that was asked for just before the line was silent shows when it is received again, however long that took; one
    /// that was asked for long before does not.
    #[test]
    fn a_mode_that_was_asked_for_before_a_gap_may_show_after_it() {
        for (asked_ms, is_ours) in [(9_000, true), (3_000, false)] {
            let mut line = Line::default();
            line.heartbeat(0, Mode::Guided);
            line.executor.begin(Order::Resume);
            assert_eq!(line.sends(asked_ms), (std::vec![AUTO], false));
            let (last, now) = (Instant::from_millis(9_500), Instant::from_millis(40_000));
            line.executor.bridge_gap(last, now);
            assert_eq!(line.executor.expected(now, AUTO), is_ours, "asked at {asked_ms} ms");
        }
    }
}
