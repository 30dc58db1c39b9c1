//! The height at which the autopilot returns, overridden for a swarm: set to the aircraft's own layer while the route is
//! loaded, and restored to the pilot's value on the ground.
//!
//! RTL climbs to `RTL_ALT`, and by `RTL_CLIMB_MIN` at least, unless the cone of `RTL_CONE_SLOPE` over home lets it
//! climb less (<https://ardupilot.org/copter/docs/rtl-mode.html>). A return in a layer wants the height alone. The
//! autopilot keeps what is written when it is switched off: where it is not restored, the pilot finds the values
//! in the log.

use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::parameter::{Kind, Name, Names, Read, Value, Write};
use wingbeat_autopilot::{Failure, Progress, Transmit};
use wingbeat_geo::Instant;
use wingbeat_protocol::{Text, text};

use crate::owed::Owed;

/// How this autopilot calls them: up to 4.6 whole centimetres, from 4.7 on metres under other names
/// (<https://github.com/ArduPilot/ardupilot/pull/31970>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Units {
    #[default]
    Centimetres,
    Metres,
}

/// Parameters that make it.
pub(crate) const COUNT: usize = 3;

impl Units {
    fn name(self, index: usize) -> Option<(&'static str, Kind)> {
        let names = match self {
            Self::Centimetres => {
                [("RTL_CONE_SLOPE", Kind::Real), ("RTL_CLIMB_MIN", Kind::Integer), ("RTL_ALT", Kind::Integer)]
            }
            Self::Metres => {
                [("RTL_CONE_SLOPE", Kind::Real), ("RTL_CLIMB_MIN_M", Kind::Real), ("RTL_ALT_M", Kind::Real)]
            }
        };
        names.get(index).copied()
    }

    /// What is set for returns at this height: the height alone counts.
    fn overridden(self, index: usize, height_mm: i32) -> Value {
        match (self, index) {
            (Self::Centimetres, 2) => Value::Integer(i64::from(height_mm) / 10),
            (Self::Centimetres, 1) => Value::Integer(0),
            (Self::Metres, 2) => Value::Real(height_mm as f32 / 1e3),
            _ => Value::Real(0.0),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Keep(Read),
    Set(Write),
}

/// What the pilot had set, and what is being done about it.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    pilots: [Option<Value>; COUNT],
    units: Units,
    /// The parameter that is being set to a height, or restored.
    under_way: Option<(usize, Option<i32>)>,
    job: Option<Job>,
}

impl Returns {
    /// Begins to set the height, millimetres above home.
    pub(crate) fn set(&mut self, height_mm: i32) {
        (self.under_way, self.job) = (Some((0, Some(height_mm))), None);
    }

    /// What is owed to the pilot.
    pub(crate) fn owed(&self) -> impl Iterator<Item = Owed> + '_ {
        self.pilots.iter().enumerate().filter_map(|(index, pilots)| {
            let name = self.units.name(index).and_then(|(name, _)| Name::new(name))?;
            pilots.map(|pilots| Owed { name, pilots, ours: None })
        })
    }

    /// Takes what an agent before this one owed. Whether it is one of these.
    pub(crate) fn owe(&mut self, owed: &Owed) -> bool {
        for units in [Units::Centimetres, Units::Metres] {
            // The slope has one name in both; the others tell which units these are.
            let found = (0..COUNT).find(|&index| {
                units
                    .name(index)
                    .is_some_and(|(name, kind)| name == owed.name.as_str() && kind == owed.pilots.kind())
            });
            if let Some(index) = found {
                self.pilots[index] = Some(owed.pilots);
                if index > 0 {
                    self.units = units;
                }
                return true;
            }
        }
        false
    }

    /// Whether the pilot's values are elsewhere than in the autopilot.
    pub(crate) fn are_overridden(&self) -> bool {
        self.pilots.iter().any(Option::is_some)
    }

    /// Begins to give them back.
    pub(crate) fn restore(&mut self) {
        if !matches!(self.under_way, Some((_, None))) {
            (self.under_way, self.job) = (Some((0, None)), None);
        }
    }

    /// When giving back wants polling.
    pub(crate) fn restore_due(&self) -> Instant {
        if self.under_way.is_some() { self.due() } else { Instant::ZERO }
    }

    /// Stops the present job.
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

    /// Takes a message of the autopilot.
    pub(crate) fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match &mut self.job {
            Some(Job::Keep(job)) => job.on_message(now, message),
            Some(Job::Set(job)) => job.on_message(now, message),
            None => {}
        }
    }

    /// Continues; done when the autopilot reports that it holds all. What cannot be restored is forgotten: the answer
    /// contains it.
    pub(crate) fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        loop {
            let Some((index, height_mm)) = self.under_way else { return Progress::Done };
            let Some((name, kind)) = self.units.name(index) else {
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
                        (Some(height_mm), Some(_)) => Some(self.units.overridden(index, height_mm)),
                    };
                    self.job.insert(match wanted {
                        Some(value) => Job::Set(Write::new(now, Names::one(name), value)),
                        None => Job::Keep(Read::new(now, Names::one(name), kind)),
                    })
                }
            };
            let progress = match job {
                Job::Keep(job) => job.poll(now, transmit),
                Job::Set(job) => job.poll(now, transmit),
            };
            match (progress, *job) {
                (Progress::Pending, _) => return Progress::Pending,
                // It does not have that name: then the other.
                (Progress::Failed(Failure::NoParameter { .. } | Failure::Silent { .. }), Job::Keep(_))
                    if self.units == Units::Centimetres && index > 0 =>
                {
                    self.units = Units::Metres
                }
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

    /// What the pilot had set, as text.
    pub(crate) fn pilots(&self) -> Text {
        let number = |i: usize| self.pilots[i].map_or(f64::NAN, Value::as_f64);
        let name = |i: usize| self.units.name(i).map_or("", |(name, _)| name);
        text!("{} {}, {} {}, {} {}", name(2), number(2), name(0), number(0), name(1), number(1))
    }
}

/// Why they are not restored, as text.
pub(crate) fn not_restored(pilots: &Text, failure: &Failure) -> Text {
    text!("the pilot's {pilots} not restored: {failure}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeMap;
    use std::string::{String, ToString};

    use wingbeat_autopilot::codec::Decoder;
    use wingbeat_autopilot::codec::framing::Framing;
    use wingbeat_autopilot::dialect::{MavParamType, PARAM_VALUE_DATA};

    use super::*;

    /// An autopilot with these parameters; others it does not answer.
    struct Autopilot(BTreeMap<String, (f32, MavParamType)>);

    impl Autopilot {
        fn answer(&mut self, message: &MavMessage) -> Option<MavMessage> {
            let name = match message {
                MavMessage::PARAM_REQUEST_READ(m) => {
                    wingbeat_autopilot::codec::text(&*m.param_id).to_string()
                }
                MavMessage::PARAM_SET(m) => {
                    let name = wingbeat_autopilot::codec::text(&*m.param_id).to_string();
                    self.0.get_mut(&name)?.0 = m.param_value;
                    name
                }
                _ => return None,
            };
            let &(param_value, param_type) = self.0.get(&name)?;
            let param_id = name.as_str().into();
            let known = PARAM_VALUE_DATA { param_id, param_value, param_type, ..PARAM_VALUE_DATA::default() };
            Some(MavMessage::PARAM_VALUE(known))
        }

        fn values(&self) -> std::vec::Vec<f32> {
            self.0.values().map(|(value, _)| *value).collect()
        }
    }

    #[test]
    fn what_an_agent_before_owed_is_restored_under_its_names() {
        let (int, real) = (MavParamType::MAV_PARAM_TYPE_INT16, MavParamType::MAV_PARAM_TYPE_REAL32);
        let old = [("RTL_ALT", 2_550.0, int), ("RTL_CLIMB_MIN", 0.0, int), ("RTL_CONE_SLOPE", 0.0, real)];
        let new = [("RTL_ALT_M", 25.5, real), ("RTL_CLIMB_MIN_M", 0.0, real), ("RTL_CONE_SLOPE", 0.0, real)];
        let owed = |name: &str, pilots| Owed { name: Name::new(name).unwrap(), pilots, ours: None };
        let of_old = [
            owed("RTL_CONE_SLOPE", Value::Real(3.0)),
            owed("RTL_CLIMB_MIN", Value::Integer(100)),
            owed("RTL_ALT", Value::Integer(1_500)),
        ];
        let of_new = [
            owed("RTL_CONE_SLOPE", Value::Real(3.0)),
            owed("RTL_CLIMB_MIN_M", Value::Real(1.0)),
            owed("RTL_ALT_M", Value::Real(15.0)),
        ];
        for (has, owed, pilots) in [(old, of_old, [1_500.0, 100.0, 3.0]), (new, of_new, [15.0, 1.0, 3.0])] {
            let named = |(name, value, kind): (&str, f32, MavParamType)| (name.to_string(), (value, kind));
            let mut autopilot = Autopilot(has.into_iter().map(named).collect());
            let mut returns = Returns::default();
            assert!(owed.iter().all(|one| returns.owe(one)));
            assert_eq!(returns.owed().collect::<std::vec::Vec<_>>(), owed);
            returns.restore();
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!(autopilot.values(), pilots);
            assert!(!returns.are_overridden() && returns.owed().next().is_none());
        }
        // Another kind is another's parameter.
        assert!(!Returns::default().owe(&owed("RTL_ALT", Value::Real(15.0))));
        assert!(!Returns::default().owe(&owed("FENCE_ALT_MAX", Value::Real(15.0))));
    }

    fn run(returns: &mut Returns, autopilot: &mut Autopilot) -> Progress {
        let mut progress = Progress::Pending;
        for ms in (0..30_000).step_by(100) {
            let now = Instant::from_millis(ms);
            let (mut sequence, mut bytes) = (0, heapless::Vec::new());
            let framing = Framing::default();
            let mut transmit = Transmit { system_id: 1, sequence: &mut sequence, framing, bytes: &mut bytes };
            progress = returns.poll(now, &mut transmit);
            if progress != Progress::Pending {
                break;
            }
            Decoder::default().push(&bytes, |frame| {
                if let Some(answer) = autopilot.answer(&frame.message) {
                    returns.on_message(now, &answer);
                }
            });
        }
        progress
    }

    #[test]
    fn the_height_is_overridden_and_restored_under_the_names_of_every_version() {
        let (int, real) = (MavParamType::MAV_PARAM_TYPE_INT16, MavParamType::MAV_PARAM_TYPE_REAL32);
        let old = [("RTL_ALT", 1_500.0, int), ("RTL_CLIMB_MIN", 100.0, int), ("RTL_CONE_SLOPE", 3.0, real)];
        let new = [("RTL_ALT_M", 15.0, real), ("RTL_CLIMB_MIN_M", 1.0, real), ("RTL_CONE_SLOPE", 3.0, real)];
        for (has, overridden, pilots) in [
            (old, [2_550.0, 0.0, 0.0], "RTL_ALT 1500, RTL_CONE_SLOPE 3, RTL_CLIMB_MIN 100"),
            (new, [25.5, 0.0, 0.0], "RTL_ALT_M 15, RTL_CONE_SLOPE 3, RTL_CLIMB_MIN_M 1"),
        ] {
            let named = |(name, value, kind): (&str, f32, MavParamType)| (name.to_string(), (value, kind));
            let mut autopilot = Autopilot(has.into_iter().map(named).collect());
            let before = autopilot.values();
            let mut returns = Returns::default();
            returns.set(25_500);
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!((autopilot.values(), returns.pilots().as_str()), (overridden.to_vec(), pilots));
            returns.restore();
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!(autopilot.values(), before);
            assert!(!returns.are_overridden());
        }
    }
}
