//! The height at which the autopilot returns, lent to a swarm: set to the aircraft's own layer while the route is
//! loaded, and given back to the pilot on the ground.
//!
//! RTL climbs to `RTL_ALT`, and by `RTL_CLIMB_MIN` at least, unless the cone of `RTL_CONE_SLOPE` over home lets it
//! climb less (<https://ardupilot.org/copter/docs/rtl-mode.html>). A return in a layer wants the height alone. The
//! autopilot keeps what is written when it is switched off: where nobody gives it back, the pilot finds the values
//! that the log told.

use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::parameter::{Kind, Names, Read, Value, Write};
use wingbeat_autopilot::{Failure, Progress, Transmit};
use wingbeat_geo::Instant;
use wingbeat_protocol::{Text, text};

const NAMES: [(Names, Kind); 3] = [
    (Names::one("RTL_CONE_SLOPE"), Kind::Real),
    (Names::one("RTL_CLIMB_MIN"), Kind::Integer),
    (Names::one("RTL_ALT"), Kind::Integer),
];

#[derive(Clone, Copy, Debug)]
enum Job {
    Keep(Read),
    Set(Write),
}

/// What the pilot had set, and what is being done about it.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    pilots: [Option<Value>; NAMES.len()],
    /// Which is being set to which height, or given back.
    under_way: Option<(usize, Option<i32>)>,
    job: Option<Job>,
}

impl Returns {
    /// Begins to set the height, millimetres above home.
    pub(crate) fn set(&mut self, height_mm: i32) {
        (self.under_way, self.job) = (Some((0, Some(height_mm))), None);
    }

    /// Whether the pilot's values are elsewhere than in the autopilot.
    pub(crate) fn are_lent(&self) -> bool {
        self.pilots.iter().any(Option::is_some)
    }

    /// Begins to give them back.
    pub(crate) fn give_back(&mut self) {
        if !matches!(self.under_way, Some((_, None))) {
            (self.under_way, self.job) = (Some((0, None)), None);
        }
    }

    /// When giving back wants polling.
    pub(crate) fn give_back_due(&self) -> Instant {
        if self.under_way.is_some() { self.due() } else { Instant::ZERO }
    }

    /// Stops whatever is being done.
    pub(crate) fn stop(&mut self) {
        (self.under_way, self.job) = (None, None);
    }

    /// When it wants polling.
    pub(crate) fn due(&self) -> Instant {
        match (&self.job, self.under_way) {
            (Some(Job::Keep(job)), _) => job.due(),
            (Some(Job::Set(job)), _) => job.due(),
            (None, Some(_)) => Instant::ZERO,
            (None, None) => Instant::NEVER,
        }
    }

    /// Hears the autopilot.
    pub(crate) fn hear(&mut self, now: Instant, message: &MavMessage) {
        match &mut self.job {
            Some(Job::Keep(job)) => job.hear(now, message),
            Some(Job::Set(job)) => job.hear(now, message),
            None => {}
        }
    }

    /// Goes on; done when the autopilot says that it holds all. What cannot be given back is forgotten: the answer
    /// says so.
    pub(crate) fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        loop {
            let Some((index, height_mm)) = self.under_way else { return Progress::Done };
            let Some((names, kind)) = NAMES.get(index) else {
                self.stop();
                return Progress::Done;
            };
            let job = match &mut self.job {
                Some(job) => job,
                None => {
                    let wanted = match (height_mm, self.pilots[index]) {
                        (None, None) => {
                            self.under_way = Some((index + 1, None));
                            continue;
                        }
                        (None, pilots) => pilots,
                        (Some(_), None) => None,
                        (Some(height_mm), Some(_)) => Some(match (*kind, index) {
                            (Kind::Real, _) => Value::Real(0.0),
                            (Kind::Integer, 2) => Value::Integer(i64::from(height_mm) / 10),
                            (Kind::Integer, _) => Value::Integer(0),
                        }),
                    };
                    self.job.insert(match wanted {
                        Some(value) => Job::Set(Write::new(now, *names, value)),
                        None => Job::Keep(Read::new(now, *names, *kind)),
                    })
                }
            };
            let progress = match job {
                Job::Keep(job) => job.poll(now, transmit),
                Job::Set(job) => job.poll(now, transmit),
            };
            match (progress, *job) {
                (Progress::Pending, _) => return Progress::Pending,
                (Progress::Failed(failure), _) => {
                    if height_mm.is_none() {
                        self.pilots[index] = None;
                    }
                    self.stop();
                    return Progress::Failed(failure);
                }
                (Progress::Done, Job::Keep(job)) => self.pilots[index] = job.value().map(|(_, value)| value),
                (Progress::Done, Job::Set(_)) => {
                    if height_mm.is_none() {
                        self.pilots[index] = None;
                    }
                    self.under_way = Some((index + 1, height_mm));
                }
            }
            self.job = None;
        }
    }

    /// What the pilot had set, for people.
    pub(crate) fn pilots(&self) -> Text {
        let number = |i: usize| self.pilots[i].map_or(f64::NAN, Value::as_f64);
        text!("RTL_ALT {}, RTL_CONE_SLOPE {}, RTL_CLIMB_MIN {}", number(2), number(0), number(1))
    }
}

/// Why they are not given back, for people.
pub(crate) fn not_given_back(pilots: &Text, failure: &Failure) -> Text {
    text!("the pilot's {pilots} not given back: {failure}")
}
