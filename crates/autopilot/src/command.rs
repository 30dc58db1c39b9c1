//! The command protocol: one COMMAND_LONG, its acknowledgement, and the effect where telemetry shows one
//! (<https://mavlink.io/en/services/command.html>).
//!
//! A command that is in progress is waited for, one that is rejected for now is asked again, any other
//! refusal ends it. Of an effect the acknowledgement alone is no proof.

// MAVLink has deprecated MAV_CMD_GET_HOME_POSITION since; 3.5.7 knows no other way.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant, Position};

use crate::copter::Mode;
use crate::dialect::{MavCmd, MavMessage, MavResult};
use crate::job::{COMPONENT_ID, Failure, Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

const PERIOD: Duration = Duration::from_millis(1_000);
const TRIES: u8 = 4;
/// A command that is in progress says so again within this time.
const IN_PROGRESS: Duration = Duration::from_secs(10);
/// Heartbeats come at 1 Hz, and one may be lost.
const EFFECT_TIMEOUT: Duration = Duration::from_millis(3_500);
/// A Pixhawk speaks again some ten seconds after its reboot, and its clock comes when it was asked for.
const REBOOT_TIMEOUT: Duration = Duration::from_secs(30);

/// What telemetry shows when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The acknowledgement is all there is.
    Acknowledged,
    Disarmed,
    Mode(Mode),
    /// Home was told after the question.
    HomeTold,
    /// Its clock has begun anew once more than so often.
    Rebooted(u32),
}

/// Wants a command carried out.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    command: MavCmd,
    params: [f32; 7],
    what: &'static str,
    effect: Effect,
    retry: Retry,
    asked_at: Option<Instant>,
    accepted_at: Option<Instant>,
    /// No repetition before this time: it is in progress.
    wait_until: Option<Instant>,
    rejected: Option<MavResult>,
    refused: Option<MavResult>,
}

impl Command {
    /// Any command; done when it is accepted. `what` names it for people.
    pub fn new(now: Instant, what: &'static str, command: MavCmd, params: [f32; 7]) -> Self {
        Self::with(now, what, command, params, Effect::Acknowledged)
    }
    fn with(now: Instant, what: &'static str, command: MavCmd, params: [f32; 7], effect: Effect) -> Self {
        Self {
            command,
            params,
            what,
            effect,
            retry: Retry::new(now, PERIOD, TRIES),
            asked_at: None,
            accepted_at: None,
            wait_until: None,
            rejected: None,
            refused: None,
        }
    }
    /// Motors off. In the air ArduCopter refuses it.
    pub fn disarm(now: Instant) -> Self {
        Self::with(now, "disarming", MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, [0.0; 7], Effect::Disarmed)
    }
    /// The speed along a track, over the ground. 3.5.7 writes it into WPNAV_SPEED.
    pub fn planned_speed(now: Instant, speed_m_s: f32) -> Self {
        // Type 1 is ground speed, throttle −1 leaves it alone.
        let params = [1.0, speed_m_s, -1.0, 0.0, 0.0, 0.0, 0.0];
        Self::new(now, "the planned speed", MavCmd::MAV_CMD_DO_CHANGE_SPEED, params)
    }
    /// Asks where home is; it stands in [`Telemetry::home`] when this is done.
    pub fn get_home(now: Instant) -> Self {
        Self::with(now, "home", MavCmd::MAV_CMD_GET_HOME_POSITION, [0.0; 7], Effect::HomeTold)
    }
    /// Puts home at a place, or where the aircraft is. A place travels as 32-bit degrees: it may come to
    /// lie half a metre beside.
    pub fn set_home(now: Instant, place: Option<Position>) -> Self {
        let params = place.map_or([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], |p| {
            let (latitude, longitude) = (p.latitude_deg() as f32, p.longitude_deg() as f32);
            [0.0, 0.0, 0.0, 0.0, latitude, longitude, p.altitude_m() as f32]
        });
        Self::new(now, "another home", MavCmd::MAV_CMD_DO_SET_HOME, params)
    }
    /// Starts the autopilot anew: done when its clock has begun anew. 3.5.7 does not look whether motors are
    /// armed, so that is looked at before each try.
    ///
    /// # Errors
    /// Motors are armed.
    pub fn reboot(now: Instant, telemetry: &Telemetry) -> Result<Self, Failure> {
        let what = "a reboot";
        if telemetry.armed {
            return Err(Failure::Armed { what });
        }
        let params = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let effect = Effect::Rebooted(telemetry.reboots);
        Ok(Self::with(now, what, MavCmd::MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, params, effect))
    }
    /// Starts the mission: done when the mode is AUTO.
    pub fn start_mission(now: Instant) -> Self {
        Self::with(
            now,
            "the mission's start",
            MavCmd::MAV_CMD_MISSION_START,
            [0.0; 7],
            Effect::Mode(Mode::Auto),
        )
    }
    /// Pauses a mission within AUTO, or lets it go on. 4.x only; elsewhere BRAKE and then AUTO do that.
    pub fn pause(now: Instant, pause: bool) -> Self {
        let params = [if pause { 0.0 } else { 1.0 }, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        Self::new(now, "a pause", MavCmd::MAV_CMD_DO_PAUSE_CONTINUE, params)
    }

    /// When it wants polling.
    pub fn due(&self) -> Instant {
        match (self.accepted_at, self.wait_until) {
            _ if self.refused.is_some() => Instant::ZERO,
            (Some(at), _) => at + self.effect_timeout(),
            (None, Some(until)) => until,
            (None, None) => self.retry.due(),
        }
    }
    fn effect_timeout(&self) -> Duration {
        if matches!(self.effect, Effect::Rebooted(_)) { REBOOT_TIMEOUT } else { EFFECT_TIMEOUT }
    }
    /// Hears the acknowledgement.
    pub fn hear(&mut self, now: Instant, message: &MavMessage) {
        let MavMessage::COMMAND_ACK(ack) = message else { return };
        // 4.x names whom it answers: a ground station may ask for the same.
        let ours = ack.target_component == 0 || ack.target_component == COMPONENT_ID;
        if ack.command != self.command || !ours || self.asked_at.is_none() || self.accepted_at.is_some() {
            return;
        }
        match ack.result {
            MavResult::MAV_RESULT_ACCEPTED => self.accepted_at = Some(now),
            MavResult::MAV_RESULT_IN_PROGRESS => self.wait_until = Some(now + IN_PROGRESS),
            MavResult::MAV_RESULT_TEMPORARILY_REJECTED => self.rejected = Some(ack.result),
            result => self.refused = Some(result),
        }
    }
    fn is_seen(&self, telemetry: &Telemetry) -> bool {
        let Some(asked_at) = self.asked_at else { return false };
        match self.effect {
            Effect::Acknowledged => self.accepted_at.is_some(),
            Effect::Disarmed => !telemetry.armed,
            Effect::Mode(mode) => telemetry.mode() == Some(mode),
            Effect::HomeTold => telemetry.home_at.is_some_and(|at| at >= asked_at),
            Effect::Rebooted(before) => telemetry.reboots > before,
        }
    }
    /// Sends when due; done when the effect is seen.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        if self.is_seen(telemetry) {
            return Progress::Done;
        }
        let refused = |result: MavResult| Failure::Refused { what: self.what, result: result as u8 };
        if let Some(result) = self.refused {
            return Progress::Failed(refused(result));
        }
        if let Some(at) = self.accepted_at {
            let over = now >= at + self.effect_timeout();
            let failure = Progress::Failed(Failure::NoEffect { what: self.what });
            return if over { failure } else { Progress::Pending };
        }
        if let Some(until) = self.wait_until {
            let failure = Progress::Failed(Failure::NoEffect { what: self.what });
            return if now >= until { failure } else { Progress::Pending };
        }
        if matches!(self.effect, Effect::Rebooted(_)) && telemetry.armed {
            return Progress::Failed(Failure::Armed { what: self.what });
        }
        match (self.retry.poll(now), self.rejected) {
            (Err(_), Some(result)) => Progress::Failed(refused(result)),
            (Err(silent), None) => Progress::Failed(silent),
            (Ok(false), _) => Progress::Pending,
            (Ok(true), _) => {
                let _ = transmit.command(self.command, self.params);
                self.asked_at = self.asked_at.or(Some(now));
                Progress::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::{ack, sent};

    /// Frames sent, how it ended, and after how many seconds; `answer` to the n-th frame.
    fn run(
        mut job: Command,
        telemetry: &Telemetry,
        answer: impl Fn(usize) -> Option<MavResult>,
    ) -> (usize, Progress, u64) {
        let (mut frames, mut progress) = (0, Progress::Pending);
        for ms in (0..60_000).step_by(100) {
            let now = Instant::from_millis(ms);
            let count = sent(|t| progress = job.poll(now, telemetry, t)).len();
            frames += count;
            if progress != Progress::Pending {
                return (frames, progress, ms / 1_000);
            }
            if count > 0
                && let Some(result) = answer(frames)
            {
                job.hear(now, &ack(job.command, result));
                job.hear(now, &ack(job.command, result));
            }
        }
        panic!("never ended");
    }

    fn speed() -> Command {
        Command::planned_speed(Instant::ZERO, 7.0)
    }

    #[test]
    fn every_answer_has_its_end() {
        use MavResult::*;
        let t = Telemetry::default();
        let what = "the planned speed";
        let refused = |result| Progress::Failed(Failure::Refused { what, result });
        assert_eq!(run(speed(), &t, |_| Some(MAV_RESULT_ACCEPTED)), (1, Progress::Done, 0));
        assert_eq!(run(speed(), &t, |_| Some(MAV_RESULT_UNSUPPORTED)), (1, refused(3), 0));
        assert_eq!(run(speed(), &t, |_| Some(MAV_RESULT_TEMPORARILY_REJECTED)), (4, refused(1), 4));
        let later = |n| Some(if n < 3 { MAV_RESULT_TEMPORARILY_REJECTED } else { MAV_RESULT_ACCEPTED });
        assert_eq!(run(speed(), &t, later), (3, Progress::Done, 2));
        assert_eq!(run(speed(), &t, |n| (n == 3).then_some(MAV_RESULT_ACCEPTED)), (3, Progress::Done, 2));
        assert_eq!(run(speed(), &t, |_| None), (4, Progress::Failed(Failure::Silent { tries: 4 }), 4));
        let stuck = Progress::Failed(Failure::NoEffect { what });
        assert_eq!(run(speed(), &t, |_| Some(MAV_RESULT_IN_PROGRESS)), (1, stuck, 10));
    }

    #[test]
    fn accepted_without_its_effect_is_a_failure() {
        let accepted = |_| Some(MavResult::MAV_RESULT_ACCEPTED);
        let armed = Telemetry { armed: true, ..Telemetry::default() };
        let failure = Progress::Failed(Failure::NoEffect { what: "disarming" });
        assert_eq!(run(Command::disarm(Instant::ZERO), &armed, accepted), (1, failure, 3));
        let disarmed = Telemetry::default();
        assert_eq!(run(Command::disarm(Instant::ZERO), &disarmed, accepted), (1, Progress::Done, 0));
        // Home that was told before the question is not the answer to it.
        let told = |at| Telemetry { home_at: Some(at), ..Telemetry::default() };
        let ask = Command::get_home(Instant::from_millis(100));
        assert_eq!(run(ask, &told(Instant::ZERO), accepted).0, 1);
        assert!(matches!(run(ask, &told(Instant::ZERO), accepted).1, Progress::Failed(_)));
        assert_eq!(run(ask, &told(Instant::from_millis(200)), accepted).1, Progress::Done);
    }

    #[test]
    fn an_answer_to_somebody_else_or_before_the_question_is_none() {
        let mut job = speed();
        let accepted = ack(job.command, MavResult::MAV_RESULT_ACCEPTED);
        job.hear(Instant::ZERO, &accepted);
        let telemetry = Telemetry::default();
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let MavMessage::COMMAND_ACK(mut other) = accepted.clone() else { unreachable!() };
        other.target_component = 190;
        job.hear(Instant::ZERO, &MavMessage::COMMAND_ACK(other));
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        job.hear(Instant::ZERO, &accepted);
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Done));
    }

    #[test]
    fn no_reboot_under_way() {
        let armed = Telemetry { armed: true, ..Telemetry::default() };
        let refused = Command::reboot(Instant::ZERO, &armed).err();
        assert_eq!(refused, Some(Failure::Armed { what: "a reboot" }));
        // Somebody arms between two tries.
        let mut job = Command::reboot(Instant::ZERO, &Telemetry::default()).unwrap();
        let mut progress = Progress::Pending;
        assert_eq!(sent(|t| progress = job.poll(Instant::ZERO, &Telemetry::default(), t)).len(), 1);
        assert!(sent(|t| progress = job.poll(Instant::from_secs(1), &armed, t)).is_empty());
        assert_eq!(progress, Progress::Failed(Failure::Armed { what: "a reboot" }));
    }

    #[test]
    fn a_reboot_is_proved_by_the_clock() {
        let accepted = |_| Some(MavResult::MAV_RESULT_ACCEPTED);
        let job = Command::reboot(Instant::ZERO, &Telemetry::default()).unwrap();
        let failure = Progress::Failed(Failure::NoEffect { what: "a reboot" });
        assert_eq!(run(job, &Telemetry::default(), accepted), (1, failure, 30));
        let rebooted = Telemetry { reboots: 1, ..Telemetry::default() };
        assert_eq!(run(job, &rebooted, accepted), (1, Progress::Done, 0));
    }
}
