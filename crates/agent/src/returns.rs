//! The height at which the autopilot returns and the speed of AUTO, overridden for a flight: a swarm's aircraft returns in its
//! own layer, an aircraft on a route flies at the planned speed. Set while the route is loaded, and restored to the pilot's
//! values on the ground.
//!
//! RTL climbs to `RTL_ALT`, and by `RTL_CLIMB_MIN` at least, unless the cone of `RTL_CONE_SLOPE` over home lets it
//! climb less (<https://ardupilot.org/copter/docs/rtl-mode.html>). A return in a layer wants the height alone. The
//! autopilot keeps what is written when it is switched off: where it is not restored, the pilot finds the values
//! in the log.

use core::fmt::Write as _;

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

/// Parameters that make the height, from index 0.
const OF_HEIGHT: usize = 3;
/// Index of the speed.
const SPEED: usize = OF_HEIGHT;
/// Parameters of both.
pub(crate) const COUNT: usize = OF_HEIGHT + 1;

/// What they are overridden for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    /// Returns at this height above home, millimetres.
    Height(i32),
    /// AUTO at this speed over the ground, metres per second.
    Speed(f64),
}

impl Wanted {
    /// The first of its parameters, and the one after its last.
    fn span(wanted: Option<Self>) -> (usize, usize) {
        match wanted {
            Some(Self::Height(_)) => (0, OF_HEIGHT),
            Some(Self::Speed(_)) => (SPEED, COUNT),
            None => (0, COUNT),
        }
    }
}

impl Units {
    fn name(self, index: usize) -> Option<(&'static str, Kind)> {
        let names = match self {
            Self::Centimetres => [
                ("RTL_CONE_SLOPE", Kind::Real),
                ("RTL_CLIMB_MIN", Kind::Integer),
                ("RTL_ALT", Kind::Integer),
                ("WPNAV_SPEED", Kind::Real),
            ],
            Self::Metres => [
                ("RTL_CONE_SLOPE", Kind::Real),
                ("RTL_CLIMB_MIN_M", Kind::Real),
                ("RTL_ALT_M", Kind::Real),
                ("WP_SPD", Kind::Real),
            ],
        };
        names.get(index).copied()
    }

    /// What is set. Of a return the height alone counts.
    fn overridden(self, index: usize, wanted: Wanted) -> Value {
        match (self, wanted, index) {
            (Self::Centimetres, Wanted::Speed(m_s), _) => Value::Real((m_s * 100.0) as f32),
            (Self::Metres, Wanted::Speed(m_s), _) => Value::Real(m_s as f32),
            (Self::Centimetres, Wanted::Height(mm), 2) => Value::Integer(i64::from(mm) / 10),
            (Self::Centimetres, Wanted::Height(_), 1) => Value::Integer(0),
            (Self::Metres, Wanted::Height(mm), 2) => Value::Real(mm as f32 / 1e3),
            (Self::Centimetres | Self::Metres, Wanted::Height(_), _) => Value::Real(0.0),
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
    /// Whether the autopilot writes the speeds of legs into its own: the pilot's is restored also where it is the planned one.
    is_rewritten: bool,
    /// The parameter that is being overridden, or restored.
    under_way: Option<(usize, Option<Wanted>)>,
    job: Option<Job>,
}

impl Returns {
    /// Begins to set the height of returns, millimetres above home.
    pub(crate) fn set_height(&mut self, height_mm: i32) {
        self.begin(Wanted::Height(height_mm));
    }

    /// Begins to set the speed of AUTO, metres per second; `reported` is the pilot's, under its name, where the autopilot has
    /// reported it. Under its other name it is read again, in its own unit: not by a rounding less than the pilot's is restored.
    /// `is_rewritten` is true where the autopilot writes the speeds of legs into it.
    pub(crate) fn set_speed(
        &mut self,
        now: Instant,
        speed_m_s: f64,
        reported: Option<(Name, Value)>,
        is_rewritten: bool,
    ) {
        self.is_rewritten = is_rewritten;
        let wanted = Wanted::Speed(speed_m_s);
        self.begin(wanted);
        let Some((usual, _)) = Units::Centimetres.name(SPEED) else { return };
        let Some((_, pilots)) = reported.filter(|(name, _)| name.as_str() == usual) else { return };
        if self.pilots[SPEED].is_some() {
            return;
        }
        self.units = Units::Centimetres;
        let ours = self.units.overridden(SPEED, wanted);
        if pilots == ours && !is_rewritten {
            // Nothing is owed. It is written all the same: the report may be old.
            self.job = Some(Job::Set(Write::new(now, Names::one(usual), ours)));
        } else {
            self.pilots[SPEED] = Some(pilots);
        }
    }

    fn begin(&mut self, wanted: Wanted) {
        let (first, _) = Wanted::span(Some(wanted));
        (self.under_way, self.job) = (Some((first, Some(wanted))), None);
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

    /// Whether the pilot's height of returns is.
    pub(crate) fn is_height_overridden(&self) -> bool {
        self.pilots.iter().take(OF_HEIGHT).any(Option::is_some)
    }

    /// Begins to give them back.
    pub(crate) fn restore(&mut self) {
        if !matches!(self.under_way, Some((_, None))) {
            (self.under_way, self.job) = (Some((0, None)), None);
        }
    }

    /// The pilot's speed of AUTO while it is overridden, under its name.
    pub(crate) fn pilots_speed(&self) -> Option<(&'static str, Value)> {
        let (name, _) = self.units.name(SPEED)?;
        Some((name, self.pilots[SPEED]?))
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
            let Some((index, override_with)) = self.under_way else { return Progress::Done };
            let (_, end) = Wanted::span(override_with);
            let Some((name, kind)) = self.units.name(index).filter(|_| index < end) else {
                // Known until then: what was given back is told together.
                if override_with.is_none() {
                    self.pilots = [None; COUNT];
                }
                self.stop();
                return Progress::Done;
            };
            let job = match &mut self.job {
                Some(job) => job,
                None => {
                    let value = match (override_with, self.pilots[index]) {
                        (None, None) => {
                            self.under_way = Some((index + 1, None));
                            continue;
                        }
                        (None, pilots) => pilots,
                        (Some(_), None) => None,
                        (Some(wanted), Some(_)) => Some(self.units.overridden(index, wanted)),
                    };
                    self.job.insert(match value {
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
                    if override_with.is_none() {
                        self.pilots[index] = None;
                    }
                    self.stop();
                    return Progress::Failed(failure);
                }
                (Progress::Done, Job::Keep(job)) => {
                    let pilots = job.value().map(|(_, value)| value);
                    let wanted = override_with.map(|wanted| self.units.overridden(index, wanted));
                    // The pilot's speed is the planned one: nothing is written, and nothing owed.
                    if index == SPEED && pilots == wanted && !self.is_rewritten {
                        self.under_way = Some((index + 1, override_with));
                    } else {
                        self.pilots[index] = pilots;
                    }
                }
                (Progress::Done, Job::Set(_)) => self.under_way = Some((index + 1, override_with)),
            }
            self.job = None;
        }
    }

    /// What the pilot had set of what is overridden, as text.
    pub(crate) fn pilots(&self) -> Text {
        let mut text = Text::new();
        // The heights first: a text that is too long loses its end.
        for index in [2, 0, 1, SPEED] {
            let Some(((name, _), value)) = self.units.name(index).zip(self.pilots[index]) else { continue };
            let separator = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{separator}{name} {value}");
        }
        text
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

    #[test]
    fn the_speed_is_overridden_in_the_unit_of_its_name_and_only_where_it_differs() {
        let real = MavParamType::MAV_PARAM_TYPE_REAL32;
        for (name, pilots, ours) in [("WPNAV_SPEED", 500.0, 800.0), ("WP_SPD", 5.0, 8.0)] {
            let mut autopilot = Autopilot(BTreeMap::from([(name.to_string(), (pilots, real))]));
            let mut returns = Returns::default();
            returns.set_speed(Instant::ZERO, 8.0, None, false);
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done, "{name}");
            assert_eq!((autopilot.values(), returns.is_height_overridden()), (std::vec![ours], false));
            assert_eq!(returns.pilots(), std::format!("{name} {pilots}").as_str());
            // A second route keeps what the pilot had before the first.
            returns.set_speed(Instant::ZERO, 9.0, None, false);
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            let owed: std::vec::Vec<Owed> = returns.owed().collect();
            assert_eq!((owed.len(), owed[0].name.as_str(), owed[0].pilots), (1, name, Value::Real(pilots)));
            // The next agent gives it back.
            let mut next = Returns::default();
            assert!(next.owe(&owed[0]));
            next.restore();
            assert_eq!(run(&mut next, &mut autopilot), Progress::Done);
            assert_eq!((autopilot.values(), next.are_overridden()), (std::vec![pilots], false));
            // The planned speed is the pilot's.
            let mut same = Returns::default();
            same.set_speed(Instant::ZERO, 5.0, None, false);
            assert_eq!(run(&mut same, &mut autopilot), Progress::Done);
            assert!(!same.are_overridden());
            // What was reported is not asked for again; under the other name it is, for its own unit.
            let reported = (Name::new(name).unwrap(), Value::Real(500.0));
            for (speed_m_s, owes) in [(8.0, true), (5.0, false)] {
                let mut known = Returns::default();
                known.set_speed(Instant::ZERO, speed_m_s, Some(reported), false);
                assert_eq!(run(&mut known, &mut autopilot), Progress::Done);
                assert_eq!(known.owed().next().map(|owed| owed.pilots), owes.then_some(Value::Real(pilots)));
                known.restore();
                assert_eq!(run(&mut known, &mut autopilot), Progress::Done);
                assert_eq!(autopilot.values(), std::vec![pilots]);
            }
        }
        let mut without = Returns::default();
        without.set_speed(Instant::ZERO, 8.0, None, false);
        let progress = run(&mut without, &mut Autopilot(BTreeMap::new()));
        assert!(matches!(progress, Progress::Failed(_)), "{progress:?}");
    }

    #[test]
    fn a_speed_that_legs_are_written_into_is_restored_also_where_it_is_the_planned_one() {
        let real = MavParamType::MAV_PARAM_TYPE_REAL32;
        let name = "WPNAV_SPEED";
        for reported in [None, Some((Name::new(name).unwrap(), Value::Real(500.0)))] {
            let mut autopilot = Autopilot(BTreeMap::from([(name.to_string(), (500.0, real))]));
            let mut returns = Returns::default();
            returns.set_speed(Instant::ZERO, 5.0, reported, true);
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert!(returns.are_overridden(), "{reported:?}");
            // A leg of 2 m/s, as 3.5.7 flies it.
            autopilot.0.insert(name.to_string(), (200.0, real));
            returns.restore();
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!(autopilot.values(), std::vec![500.0]);
        }
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
            returns.set_height(25_500);
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!((autopilot.values(), returns.pilots().as_str()), (overridden.to_vec(), pilots));
            returns.restore();
            assert_eq!(run(&mut returns, &mut autopilot), Progress::Done);
            assert_eq!(autopilot.values(), before);
            assert!(!returns.are_overridden());
        }
    }
}
