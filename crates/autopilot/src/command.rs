//! The command protocol: one COMMAND_LONG, its acknowledgement, and the effect where telemetry shows one
//! (<https://mavlink.io/en/services/command.html>).
//!
//! A command in progress is waited for, one that is rejected for now is repeated, any other refusal ends it. The
//! acknowledgement alone does not prove an effect.

// MAVLink has deprecated MAV_CMD_GET_HOME_POSITION since; 3.5.7 has no other request.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant, Position};

use crate::copter::Mode;
use crate::dialect::{MavCmd, MavMessage, MavResult};
use crate::job::{COMPONENT_ID, Failure, Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

const PERIOD: Duration = Duration::from_millis(1_000);
const TRIES: u8 = 4;
/// A command in progress is reported again within this time.
const IN_PROGRESS: Duration = Duration::from_secs(10);
/// Heartbeats come at 1 Hz, and one may be lost.
const EFFECT_TIMEOUT: Duration = Duration::from_millis(3_500);
/// A Pixhawk sends again some ten seconds after its reboot, and its clock once that was requested.
const REBOOT_TIMEOUT: Duration = Duration::from_secs(30);

/// What telemetry shows when the command has taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// No more than the acknowledgement.
    Acknowledged,
    Disarmed,
    Mode(Mode),
    /// HOME_POSITION came after the request.
    HomeReceived,
    /// More reboots than this many.
    Rebooted(u32),
}

/// Sends a command until it is carried out.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    command: MavCmd,
    params: [f32; 7],
    what: &'static str,
    effect: Effect,
    retry: Retry,
    requested_at: Option<Instant>,
    accepted_at: Option<Instant>,
    /// No repetition before this time: it is in progress.
    wait_until: Option<Instant>,
    rejected: Option<MavResult>,
    refused: Option<MavResult>,
}

impl Command {
    /// Any command; done when it is accepted. `what` names it in messages.
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
            requested_at: None,
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
    /// Requests the home position; done when [`Telemetry::home`] holds it.
    pub fn get_home(now: Instant) -> Self {
        Self::with(now, "home", MavCmd::MAV_CMD_GET_HOME_POSITION, [0.0; 7], Effect::HomeReceived)
    }
    /// Sets home to a position, or to the position of the aircraft. MAVLink carries 32-bit degrees: home may
    /// be half a metre off.
    pub fn set_home(now: Instant, position: Option<Position>) -> Self {
        let params = position.map_or([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], |p| {
            let (latitude, longitude) = (p.latitude_deg() as f32, p.longitude_deg() as f32);
            [0.0, 0.0, 0.0, 0.0, latitude, longitude, p.altitude_m() as f32]
        });
        Self::new(now, "another home", MavCmd::MAV_CMD_DO_SET_HOME, params)
    }
    /// Reboots the autopilot: done when its clock has started from zero. 3.5.7 does not check whether motors are
    /// armed, so that is checked before each try.
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
    /// Pauses a mission within AUTO, or continues it. 4.x only; elsewhere BRAKE and then AUTO do that.
    pub fn pause(now: Instant, pause: bool) -> Self {
        let params = [if pause { 0.0 } else { 1.0 }, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        Self::new(now, "a pause", MavCmd::MAV_CMD_DO_PAUSE_CONTINUE, params)
    }

    /// When the job is due.
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
    /// Takes the acknowledgement.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        let MavMessage::COMMAND_ACK(ack) = message else { return };
        // 4.x names the component that it answers: a ground station may send the same command.
        let ours = ack.target_component == 0 || ack.target_component == COMPONENT_ID;
        if ack.command != self.command || !ours || self.requested_at.is_none() || self.accepted_at.is_some() {
            return;
        }
        match ack.result {
            MavResult::MAV_RESULT_ACCEPTED => self.accepted_at = Some(now),
            MavResult::MAV_RESULT_IN_PROGRESS => self.wait_until = Some(now + IN_PROGRESS),
            MavResult::MAV_RESULT_TEMPORARILY_REJECTED => self.rejected = Some(ack.result),
            result => self.refused = Some(result),
        }
    }
    fn has_effect(&self, telemetry: &Telemetry) -> bool {
        let Some(requested_at) = self.requested_at else { return false };
        match self.effect {
            Effect::Acknowledged => self.accepted_at.is_some(),
            Effect::Disarmed => !telemetry.armed,
            Effect::Mode(mode) => telemetry.mode() == Some(mode),
            Effect::HomeReceived => telemetry.home_at.is_some_and(|at| at >= requested_at),
            Effect::Rebooted(before) => telemetry.reboots > before,
        }
    }
    /// Sends when due; done when telemetry shows the effect.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        if self.has_effect(telemetry) {
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
                self.requested_at = self.requested_at.or(Some(now));
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
                job.on_message(now, &ack(job.command, result));
                job.on_message(now, &ack(job.command, result));
            }
        }
        panic!("never ended");
    }

    fn speed() -> Command {
        Command::planned_speed(Instant::ZERO, 7.0)
    }

    #[test]
    fn every_result_ends_the_job() {
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
        // A home position from before the request does not answer it.
        let received = |at| Telemetry { home_at: Some(at), ..Telemetry::default() };
        let request = Command::get_home(Instant::from_millis(100));
        assert_eq!(run(request, &received(Instant::ZERO), accepted).0, 1);
        assert!(matches!(run(request, &received(Instant::ZERO), accepted).1, Progress::Failed(_)));
        assert_eq!(run(request, &received(Instant::from_millis(200)), accepted).1, Progress::Done);
    }

    #[test]
    fn an_acknowledgement_to_another_component_or_before_the_command_does_not_count() {
        let mut job = speed();
        let accepted = ack(job.command, MavResult::MAV_RESULT_ACCEPTED);
        job.on_message(Instant::ZERO, &accepted);
        let telemetry = Telemetry::default();
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let MavMessage::COMMAND_ACK(mut other) = accepted.clone() else { unreachable!() };
        other.target_component = 190;
        job.on_message(Instant::ZERO, &MavMessage::COMMAND_ACK(other));
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        job.on_message(Instant::ZERO, &accepted);
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Done));
    }

    #[test]
    fn armed_motors_refuse_a_reboot() {
        let armed = Telemetry { armed: true, ..Telemetry::default() };
        let refused = Command::reboot(Instant::ZERO, &armed).err();
        assert_eq!(refused, Some(Failure::Armed { what: "a reboot" }));
        // Armed between two tries.
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
