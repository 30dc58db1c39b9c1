//! Rules of who commands: the pilot before the operator, the operator before the protocol.

use wingbeat_agent::{Command, Rejection, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};

use super::Rule;
use crate::drills::faults::{TURNS_AGAIN, is_overridden};
use crate::drills::operator::Press;
use crate::drills::run::Run;

/// ArduCopter 3.5.7 shows a mode by its next heartbeat, one a second, and reads what is sent in its next tick: an order
/// that left before overtakes the pilot, who then turns the switch once more. From then on none may.
const SHOWN_WITHIN: Duration = Duration::from_millis(1_100);

pub(super) struct Pilot {
    /// How long each aircraft may be in another mode than its pilot's first choice.
    overtaken: Vec<Duration>,
}

impl Pilot {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { overtaken: vec![SHOWN_WITHIN + TURNS_AGAIN; aircraft] }
    }
}

impl Rule for Pilot {
    fn name(&self) -> &'static str {
        "pilot"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let now = run.sky.world.now();
        run.sky.struck.iter().enumerate().find_map(|(i, struck)| {
            let taken = struck.pilot?;
            // Until it shows, and until he has turned it again.
            let within = if taken.turns == 1 { self.overtaken[i] } else { SHOWN_WITHIN };
            if !is_overridden(&run.sky, i) {
                // It was his for longer than an order could be on its way: from now on none may leave.
                if now > taken.since + SHOWN_WITHIN {
                    self.overtaken[i] = SHOWN_WITHIN;
                }
                return None;
            }
            (now > taken.since + within).then(|| {
                let (aircraft, at_s) = (i + 1, now.as_secs_f64());
                let mode = run.sky.world.truth(i).mode;
                format!("aircraft {aircraft} at {at_s:.1} s: {mode:?}, of the pilot {:?}", taken.mode)
            })
        })
    }
}

/// The modes that show that a command is carried out, and how long after it one does at the latest. A returning aircraft may hold
/// until its path home is clear, and a landing one may fly aside before.
pub(super) fn effect_of(command: Command) -> Option<(&'static [Mode], Duration)> {
    match command {
        Command::Hold => Some((&[Mode::Brake], Duration::from_secs(3))),
        Command::Return => Some((&[Mode::Rtl, Mode::Brake], Duration::from_secs(5))),
        Command::Land => Some((&[Mode::Land], Duration::from_secs(60))),
        Command::Setup
        | Command::Start
        | Command::Resume
        | Command::RecoverControl
        | Command::Engage
        | Command::SetParameters
        | Command::Exclude { .. } => None,
    }
}

#[derive(Default)]
pub(super) struct Obeyed {
    /// Presses that were judged.
    judged: usize,
    /// The last accepted command of an aircraft whose effect is still to be seen, and since when it counts.
    open: Vec<(usize, Command, Instant)>,
}

impl Obeyed {
    /// A press that was refused although the aircraft flies and is the operator's.
    fn note(&mut self, run: &Run, press: &Press) -> Option<String> {
        let Press { vehicle, command, at, ref reply } = *press;
        effect_of(command)?;
        // A pilot flies the leader of a formation: it gets no order, whatever it accepts on the ground (FOLLOW-02).
        if run.sky.is_piloted(vehicle) {
            return None;
        }
        let (struck, truth) = (run.sky.struck[vehicle], run.sky.world.truth(vehicle));
        let is_ours = run.sky.lives(vehicle) && struck.pilot.is_none() && at > struck.until;
        match reply {
            Reply::Accepted | Reply::AlreadyKnown => {
                self.open.retain(|(i, ..)| *i != vehicle);
                self.open.push((vehicle, command, at));
                None
            }
            Reply::Refused(Rejection::Disengaged(_)) if struck.acts_unannounced => None,
            Reply::Refused(why) if is_ours && truth.armed && !truth.landed => {
                Some(format!("aircraft {}: {command:?} is refused in flight: {why}", vehicle + 1))
            }
            Reply::Refused(_) => None,
        }
    }
}

impl Rule for Obeyed {
    fn name(&self) -> &'static str {
        "obeyed"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (sky, now) = (&run.sky, run.sky.world.now());
        let presses = run.operator.presses();
        let fresh = &presses[self.judged..];
        self.judged = presses.len();
        let refused = fresh.iter().find_map(|press| self.note(run, press));
        self.open.retain(|&(i, command, _)| {
            let truth = sky.world.truth(i);
            // MBCAP flies home by its own orders; an aircraft that has just taken off is home already.
            let is_home = truth.mode == Mode::Land && truth.local.truncate().length() < AT_HOME_M;
            let is_returning =
                command == Command::Return && (is_home || sky.world.agent_of(i).view().is_returning);
            let is_seen =
                is_returning || effect_of(command).is_some_and(|(modes, _)| modes.contains(&truth.mode));
            truth.armed && !is_seen && sky.lives(i) && sky.struck[i].pilot.is_none()
        });
        // The guardian alone has the line: the command waits for it.
        for (_, _, at) in self.open.iter_mut().filter(|(i, ..)| sky.world.is_guarded(*i)) {
            *at = now;
        }
        refused.or_else(|| {
            self.open.iter().find_map(|&(i, command, at)| {
                let (_, bound) = effect_of(command)?;
                let since = at.max(sky.struck[i].until);
                (now > since + bound).then(|| {
                    let bound_s = bound.as_secs_f64();
                    format!("{command:?} without effect after {bound_s:.0} s: {}", sky.describe(|j| i == j))
                })
            })
        })
    }
}

/// An aircraft that lands within this of its home, metres, has returned.
const AT_HOME_M: f64 = 10.0;
/// A reason is logged so long after the landing begins.
const SAYS_WITHIN: Duration = Duration::from_secs(3);
/// And so long before it: an aircraft flies aside first where another is below.
const SAID_BEFORE: Duration = Duration::from_secs(60);
/// So long after a fault an order may fail because of it.
const FAILS_WITHIN: Duration = Duration::from_secs(60);
/// Words by which an aircraft says why it must land elsewhere: its battery, a failsafe, or a path home that others block for longer
/// than an aircraft waits.
const REASONS: [&str; 8] =
    ["battery", "charge", "voltage", "home below", "failsafe", "Failsafe", "EKF", "path home stays blocked"];

/// *Return* is obeyed by a return: an aircraft that lands elsewhere before it is home says why, and the reason is its battery, a
/// failsafe or the blocked path home.
pub(super) struct Returns {
    judged: usize,
    /// Since when each is to return.
    since: Vec<Option<Instant>>,
    /// Since when each lands elsewhere.
    lands: Vec<Option<Instant>>,
}

impl Returns {
    pub(super) fn of(aircraft: usize) -> Self {
        Self { judged: 0, since: vec![None; aircraft], lands: vec![None; aircraft] }
    }
}

impl Rule for Returns {
    fn name(&self) -> &'static str {
        "returns"
    }

    fn on_step(&mut self, run: &Run) -> Option<String> {
        let (sky, now) = (&run.sky, run.sky.world.now());
        let presses = run.operator.presses();
        for press in &presses[self.judged..] {
            let is_taken = matches!(press.reply, Reply::Accepted | Reply::AlreadyKnown);
            if is_taken && effect_of(press.command).is_some() && !sky.is_piloted(press.vehicle) {
                self.since[press.vehicle] = (press.command == Command::Return).then_some(now);
                self.lands[press.vehicle] = None;
            }
        }
        self.judged = presses.len();
        (0..sky.count()).find_map(|i| {
            self.since[i]?;
            let (truth, struck) = (sky.world.truth(i), sky.struck[i]);
            let fails = struck.until > Instant::ZERO && now < struck.until + FAILS_WITHIN;
            let is_anothers = struck.pilot.is_some() || struck.acts_unannounced || sky.falls(i) || fails;
            if !truth.armed || truth.landed || !sky.lives(i) || is_anothers {
                (self.since[i], self.lands[i]) = (None, None);
                return None;
            }
            if truth.mode != Mode::Land || truth.local.truncate().length() < AT_HOME_M {
                self.lands[i] = None;
                return None;
            }
            let began = *self.lands[i].get_or_insert(now);
            if now <= began + SAYS_WITHIN {
                return None;
            }
            self.since[i] = None;
            let mut lines = sky.world.log().iter().rev().take_while(|line| line.at + SAID_BEFORE >= began);
            let is_reason = |text: &str| REASONS.iter().any(|reason| text.contains(reason));
            let says = lines.any(|line| line.vehicle == i && is_reason(&line.entry.text));
            (!says).then(|| {
                let far_m = truth.local.truncate().length();
                format!(
                    "aircraft {} lands {far_m:.0} m from home at {:.1} s without a reason (battery, failsafe, blocked path): {}",
                    i + 1,
                    began.as_secs_f64(),
                    sky.describe(|j| i == j)
                )
            })
        })
    }
}
