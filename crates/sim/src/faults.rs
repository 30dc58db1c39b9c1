//! What goes wrong in a world, and when: part of its input, like an operator's commands. The same faults at
//! the same times and the same seed give the same bytes; what faults draw does not disturb other generators.

use wingbeat_agent::guardian::{self, Before, Guardian, Pulse, Then};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};

use crate::autopilot::Incident;
use crate::rng::{self, Pcg64Mcg};

/// Which part of what a companion exchanges on a link is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What it sends, and what it receives.
    Both,
    /// What it sends.
    Sent,
    /// What it receives.
    Received,
}

impl Direction {
    /// Whether the companion's sending is lost.
    pub(crate) fn loses_sent(self) -> bool {
        self != Self::Received
    }
    /// Whether its reception is lost.
    pub(crate) fn loses_received(self) -> bool {
        self != Self::Sent
    }
}

/// One thing that goes wrong. What has an `until` ends then; [`Instant::NEVER`] stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The companion computer dies: it receives, sends and commands nothing any more. Its flight controller
    /// continues with its last order, as ArduCopter does.
    CompanionDies {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// Whether a guardian watched over it, which then brings the aircraft down.
        guarded: bool,
    },
    /// The whole aircraft fails: motors and companion stop in the same instant.
    Falls {
        /// Index of the aircraft, from 0.
        vehicle: usize,
    },
    /// The motors fail and the aircraft falls. Companion and radio continue.
    MotorsFail {
        /// Index of the aircraft, from 0.
        vehicle: usize,
    },
    /// The companion's process ends, and another begins with the same configuration and no memory. Meanwhile it
    /// receives and sends nothing. A guardian that took the flight controller keeps it until it is done, or gives it back to
    /// the new process, which takes up its flight.
    DaemonRestarts {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// Whether a guardian watches over it.
        guarded: bool,
        /// When the new process begins.
        until: Instant,
    },
    /// The guardian ends: a companion that dies later dies unguarded.
    GuardianDies {
        /// Index of the aircraft, from 0.
        vehicle: usize,
    },
    /// A radio is silent. Companion and flight controller continue.
    RadioSilent {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// What does not work: a radio that only sends is deaf, one that only receives is mute.
        lost: Direction,
        /// When it works again.
        until: Instant,
    },
    /// The serial line between companion and flight controller loses bytes. The port stays open.
    SerialLine {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// What is lost.
        lost: Direction,
        /// It is cut and whole by turns, each for so long; cut all the time where zero.
        flaps: Duration,
        /// When it works again.
        until: Instant,
    },
    /// The flight controller restarts with its memory lost. In flight the motors stop.
    AutopilotReboots {
        /// Index of the aircraft, from 0.
        vehicle: usize,
    },
    /// The pilot centres the sticks and turns the mode switch.
    PilotTakes {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// The mode of the switch.
        mode: Mode,
    },
    /// The pilot's transmitter is lost; ArduCopter acts as `FS_THR_ENABLE` says.
    TransmitterLost {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When it is received again.
        until: Instant,
    },
    /// The battery has this charge left. ArduCopter's failsafes act as their parameters say; the motors of an empty
    /// one stop.
    BatteryAt {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// State of charge, 0 to 100.
        percent: f64,
    },
    /// No satellites: five seconds later the position is unknown.
    GnssLost {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When they are received again.
        until: Instant,
    },
    /// The position estimate diverges, as by a compass that is disturbed: it is unknown immediately.
    EstimateDiverges {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When it is known again.
        until: Instant,
    },
    /// The position estimate moves away from the truth, and back after the end: a biased or spoofed GNSS, a jump (within
    /// a few seconds: ArduCopter fuses a jump over some), a barometer that drifts (upwards).
    EstimateDrifts {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// Estimate minus truth after `within`: metres east, north and up.
        offset_m: DVec3,
        /// How long it takes to get there.
        within: Duration,
        /// When it begins to go back.
        until: Instant,
    },
    /// Modes are taken and acknowledged, and the aircraft hovers where it is all the same.
    Stuck {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When it moves again.
        until: Instant,
    },
    /// What the flight controller announces by STATUSTEXT is cut after a few letters and full of rubbish.
    TextsGarbled {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When texts are whole again.
        until: Instant,
    },
    /// A gust front reaches the aircraft: the mean wind changes at once and stays changed until the end.
    GustFront {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// The change of the air's velocity, metres per second east, north and up.
        change_m_s: DVec3,
        /// When the front has passed.
        until: Instant,
    },
    /// A second ground station, on a radio of its own, commands the flight controller into a mode.
    SecondGround {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// The mode.
        mode: Mode,
    },
    /// The companion's process gets no processor for stretches. What it receives meanwhile waits
    /// for it, and it takes everything at the end of each stretch.
    Starved {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// Length of a stretch without a processor.
        stall: Duration,
        /// From the beginning of one stretch to that of the next.
        every: Duration,
        /// When the process has a processor again.
        until: Instant,
    },
    /// A share of receptions comes late, each by a draw of its own, so that datagrams overtake each other.
    Late {
        /// Share that is late, 0 to 1.
        share: f64,
        /// The latest.
        most: Duration,
        /// End of the fault, simulated time.
        until: Instant,
    },
    /// A share of receptions comes a second time, each so much later by a draw of its own.
    Doubled {
        /// Share that is received twice, 0 to 1.
        share: f64,
        /// The latest.
        most: Duration,
        /// End of the fault, simulated time.
        until: Instant,
    },
    /// Datagrams are lost on every link, in addition to those lost by distance, each by a draw of its own.
    Loss {
        /// Share lost, 0 to 1.
        share: f64,
        /// End of the fault, simulated time.
        until: Instant,
    },
    /// Links fall silent for whole stretches, both ways alike, each pair and stretch by a draw of its own.
    Bursts {
        /// Share of stretches lost, 0 to 1.
        share: f64,
        /// Length of a stretch.
        stretch: Duration,
        /// End of the fault, simulated time.
        until: Instant,
    },
    /// Two groups do not receive each other.
    Partition {
        /// One group as bits, the lowest for the first aircraft; all others are the other group.
        group: u128,
        /// End of the partition, simulated time.
        until: Instant,
    },
}

impl Fault {
    /// The aircraft that it concerns, and its end.
    fn parts(&mut self) -> (Option<&mut usize>, Option<&mut Instant>) {
        match self {
            Self::CompanionDies { vehicle, .. }
            | Self::Falls { vehicle }
            | Self::MotorsFail { vehicle }
            | Self::GuardianDies { vehicle }
            | Self::AutopilotReboots { vehicle }
            | Self::PilotTakes { vehicle, .. }
            | Self::SecondGround { vehicle, .. }
            | Self::BatteryAt { vehicle, .. } => (Some(vehicle), None),
            Self::DaemonRestarts { vehicle, until, .. }
            | Self::RadioSilent { vehicle, until, .. }
            | Self::SerialLine { vehicle, until, .. }
            | Self::TransmitterLost { vehicle, until }
            | Self::GnssLost { vehicle, until }
            | Self::EstimateDiverges { vehicle, until }
            | Self::EstimateDrifts { vehicle, until, .. }
            | Self::Stuck { vehicle, until }
            | Self::TextsGarbled { vehicle, until }
            | Self::Starved { vehicle, until, .. }
            | Self::GustFront { vehicle, until, .. } => (Some(vehicle), Some(until)),
            Self::Late { until, .. }
            | Self::Doubled { until, .. }
            | Self::Loss { until, .. }
            | Self::Bursts { until, .. }
            | Self::Partition { until, .. } => (None, Some(until)),
        }
    }

    /// The aircraft that it concerns; none where it concerns the channel.
    pub fn vehicle(mut self) -> Option<usize> {
        self.parts().0.copied()
    }

    /// When it ends; none where it does not end by itself.
    pub fn until(mut self) -> Option<Instant> {
        self.parts().1.copied().filter(|until| *until != Instant::NEVER)
    }

    /// The same for another aircraft, if it concerns one, and with its end so much later: for what is drawn before it is
    /// known which aircraft it will be, and when.
    #[must_use]
    pub fn moved(mut self, to: usize, later: Duration) -> Self {
        let (vehicle, until) = self.parts();
        if let Some(vehicle) = vehicle {
            *vehicle = to;
        }
        if let Some(until) = until {
            *until = *until + later;
        }
        self
    }

    /// What it does to an autopilot when it begins.
    pub fn incident(self) -> Option<Incident> {
        match self {
            Self::Falls { .. } | Self::MotorsFail { .. } => Some(Incident::MotorsFail),
            Self::AutopilotReboots { .. } => Some(Incident::Restarts),
            Self::PilotTakes { mode, .. } => Some(Incident::PilotTakes(mode)),
            Self::TransmitterLost { .. } => Some(Incident::TransmitterLost(true)),
            Self::BatteryAt { percent, .. } => Some(Incident::BatteryAt { percent }),
            Self::GnssLost { .. } => Some(Incident::GnssLost(true)),
            Self::EstimateDiverges { .. } => Some(Incident::EstimateDiverges(true)),
            Self::EstimateDrifts { offset_m: to_m, within, .. } => {
                Some(Incident::PositionDrifts { to_m, within })
            }
            Self::Stuck { .. } => Some(Incident::Stuck(true)),
            Self::TextsGarbled { .. } => Some(Incident::TextsGarbled(true)),
            Self::GustFront { change_m_s, .. } => Some(Incident::WindShifts { by_m_s: change_m_s }),
            Self::CompanionDies { .. }
            | Self::DaemonRestarts { .. }
            | Self::GuardianDies { .. }
            | Self::SecondGround { .. }
            | Self::Starved { .. }
            | Self::RadioSilent { .. }
            | Self::SerialLine { .. }
            | Self::Late { .. }
            | Self::Doubled { .. }
            | Self::Loss { .. }
            | Self::Bursts { .. }
            | Self::Partition { .. } => None,
        }
    }

    /// What happens to the autopilot when it ends; what does not end has none.
    pub(crate) fn relief(self) -> Option<Incident> {
        match self.incident()? {
            Incident::TransmitterLost(_) => Some(Incident::TransmitterLost(false)),
            Incident::GnssLost(_) => Some(Incident::GnssLost(false)),
            Incident::EstimateDiverges(_) => Some(Incident::EstimateDiverges(false)),
            Incident::PositionDrifts { within, .. } => {
                Some(Incident::PositionDrifts { to_m: DVec3::ZERO, within })
            }
            Incident::Stuck(_) => Some(Incident::Stuck(false)),
            Incident::TextsGarbled(_) => Some(Incident::TextsGarbled(false)),
            Incident::WindShifts { .. } => Some(Incident::WindShifts { by_m_s: DVec3::ZERO }),
            Incident::MotorsFail
            | Incident::Restarts
            | Incident::PilotTakes(_)
            | Incident::BatteryAt { .. } => None,
        }
    }

    /// Whether it disturbs the channel.
    fn is_of_channel(self) -> bool {
        self.vehicle().is_none() || matches!(self, Self::RadioSilent { .. })
    }
}

/// The serial lines that are cut, or flap.
#[derive(Default)]
pub(crate) struct SerialLines {
    /// Those that never ended yet.
    active: Vec<Fault>,
}

impl SerialLines {
    /// Begins one; other faults cut no line.
    pub(crate) fn begin(&mut self, fault: Fault) {
        if matches!(fault, Fault::SerialLine { .. }) {
            self.active.push(fault);
        }
    }

    /// Whether what a companion sends, and what it receives, is lost on its line now.
    pub(crate) fn lose(&mut self, now: Instant, on: usize) -> (bool, bool) {
        self.active.retain(|fault| fault.until().is_none_or(|until| now < until));
        let (mut sent, mut received) = (false, false);
        for fault in &self.active {
            if let Fault::SerialLine { vehicle, lost, flaps, .. } = *fault
                && vehicle == on
                && (flaps == Duration::ZERO || (now.as_micros() / flaps.as_micros() as u64).is_multiple_of(2))
            {
                sent |= lost.loses_sent();
                received |= lost.loses_received();
            }
        }
        (sent, received)
    }
}

/// What disturbs a channel, in addition to distance and random loss of its model.
pub struct Disturbances {
    seed: u64,
    count: usize,
    /// Those that never ended yet, with the time from which they count.
    active: Vec<Fault>,
    /// One generator per directed link, as the channel's own; made with the first loss.
    links: Vec<Pcg64Mcg>,
    /// The same for delays.
    delays: Vec<Pcg64Mcg>,
}

impl Disturbances {
    /// None, among `count` radios.
    pub fn new(seed: u64, count: usize) -> Self {
        Self { seed, count, active: Vec::new(), links: Vec::new(), delays: Vec::new() }
    }

    /// Begins one. Faults of aircraft disturb no channel.
    pub fn begin(&mut self, fault: Fault) {
        if !fault.is_of_channel() {
            return;
        }
        let children = |stream: &'static str| {
            let child = |link| rng::child(self.seed, stream, link as u64);
            (0..self.count * self.count).map(child).collect()
        };
        if matches!(fault, Fault::Loss { .. }) && self.links.is_empty() {
            self.links = children("radio fault");
        }
        if matches!(fault, Fault::Late { .. } | Fault::Doubled { .. }) && self.delays.is_empty() {
            self.delays = children("radio delay");
        }
        self.active.push(fault);
    }

    /// Whether there are any.
    pub fn are_any(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether nothing that one radio sends is at the antenna of another now. Draws nothing.
    pub fn cut(&self, now: Instant, from: usize, to: usize) -> bool {
        let is_over = |fault: &Fault| fault.until().is_some_and(|until| until <= now);
        self.active.iter().filter(|fault| !is_over(fault)).any(|fault| {
            if let Fault::Partition { group, .. } = *fault {
                (group >> from ^ group >> to) & 1 == 1
            } else if let Fault::RadioSilent { vehicle, lost, .. } = *fault {
                vehicle == from && lost.loses_sent() || vehicle == to && lost.loses_received()
            } else {
                false
            }
        })
    }

    /// Whether a datagram from one radio to another is lost by what disturbs the channel now.
    pub fn lose(&mut self, now: Instant, from: usize, to: usize) -> bool {
        if self.active.is_empty() {
            return false;
        }
        self.active.retain(|fault| fault.until().is_none_or(|until| now < until));
        let (seed, count, links) = (self.seed, self.count, &mut self.links);
        let mut lost = false;
        for fault in &self.active {
            // Each draws, whatever the one before it has decided: the draws do not depend on their order.
            lost |= if let Fault::RadioSilent { vehicle, lost, .. } = *fault {
                vehicle == from && lost.loses_sent() || vehicle == to && lost.loses_received()
            } else if let Fault::Loss { share, .. } = *fault {
                rng::uniform(&mut links[from * count + to]) < share
            } else if let Fault::Bursts { share, stretch, .. } = *fault {
                let pair = (from.min(to) * count + from.max(to)) as u64;
                let number = now.as_micros() / (stretch.as_micros() as u64).max(1);
                rng::uniform(&mut rng::child(seed, "radio burst", pair << 32 | number)) < share
            } else if let Fault::Partition { group, .. } = *fault {
                (group >> from ^ group >> to) & 1 == 1
            } else {
                false
            };
        }
        lost
    }

    /// How late a reception is that is not lost, and how much later it comes a second time, if it does.
    pub fn delay(&mut self, now: Instant, from: usize, to: usize) -> (Duration, Option<Duration>) {
        let (mut late, mut again) = (Duration::ZERO, None);
        if self.delays.is_empty() {
            return (late, again);
        }
        let generator = &mut self.delays[from * self.count + to];
        for fault in &self.active {
            let (Fault::Late { share, most, until } | Fault::Doubled { share, most, until }) = *fault else {
                continue;
            };
            // Both draws in any case, so that the later ones do not depend on the earlier.
            let (is_hit, part) = (rng::uniform(generator) < share, rng::uniform(generator));
            if is_hit && now < until {
                let by = Duration::from_micros((most.as_secs_f64() * part * 1e6) as u64);
                if matches!(fault, Fault::Late { .. }) {
                    late = late.max(by);
                } else {
                    again = Some(by);
                }
            }
        }
        (late, again)
    }
}

/// From the guardian's wish to the open port.
const OPENING: Duration = Duration::from_millis(100);

/// The guardian of an aircraft whose companion died: it takes the flight controller as the real one does.
pub(crate) struct Guard {
    guardian: Guardian,
    wanted_at: Option<Instant>,
    port_open: bool,
    /// Whether another daemon has connected, and what was reported to it last.
    is_connected: bool,
    before: Before,
    /// The flight controller that it receives, until that was reported.
    held: Option<u8>,
    is_told: bool,
}

impl Guard {
    /// It has watched until now, and its daemon's socket closes.
    pub(crate) fn take_over(now: Instant, last: Pulse) -> Self {
        let config = guardian::Config {
            silence: Duration::from_secs(1),
            hold: Duration::from_secs(10),
            then: Then::Land,
            land_below_mv: 0,
            below_for_s: 10,
            other_batteries: 0,
            endpoint: last.endpoint,
            signing: None,
        };
        let mut guard = Self {
            guardian: Guardian::new(config),
            wanted_at: None,
            port_open: false,
            is_connected: false,
            before: Before::Unknown,
            held: None,
            is_told: false,
        };
        let mut out = Vec::new();
        for input in [guardian::Input::Connected, guardian::Input::Pulse(last), guardian::Input::Gone] {
            guard.feed(now, input, &mut out);
        }
        guard
    }

    /// Whether it has the flight controller, or is about to take it.
    pub(crate) fn has_flight_controller(&self) -> bool {
        self.port_open || self.guardian.wants_port()
    }

    /// The pulse of the daemon that was started again. What that learns with the answer.
    pub(crate) fn pulse(&mut self, now: Instant, pulse: Pulse) -> Before {
        let mut out = Vec::new();
        if !core::mem::replace(&mut self.is_connected, true) {
            self.feed(now, guardian::Input::Connected, &mut out);
        }
        self.feed(now, guardian::Input::Pulse(pulse), &mut out);
        self.before
    }

    /// Returns the system id of the flight controller that it holds and receives, once, for the daemon.
    pub(crate) fn tell(&mut self) -> Option<u8> {
        let held = self.held.filter(|_| !self.is_told && self.guardian.wants_port());
        self.is_told |= held.is_some();
        held
    }

    /// Takes what the flight controller sent; appends bytes for it to `out`.
    pub(crate) fn step(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) {
        match (self.guardian.wants_port(), self.wanted_at) {
            (true, None) => self.wanted_at = Some(now),
            (true, Some(at)) if !self.port_open && now >= at + OPENING => {
                self.port_open = true;
                self.feed(now, guardian::Input::AutopilotLink(true), out);
            }
            (true, Some(_)) => {}
            (false, _) => (self.wanted_at, self.port_open) = (None, false),
        }
        if self.port_open && !bytes.is_empty() {
            self.feed(now, guardian::Input::Autopilot(bytes), out);
        }
        if now >= self.guardian.poll_timeout() {
            self.feed(now, guardian::Input::Wake, out);
        }
    }

    fn feed(&mut self, now: Instant, input: guardian::Input<'_>, out: &mut Vec<u8>) {
        let mut asked = guardian::Outputs::default();
        self.guardian.handle(now, input, &mut asked);
        if asked.sample {
            // A simulated process shows nothing of itself.
            self.guardian.handle(now, guardian::Input::Process(None), &mut asked);
        }
        if let Some(report) = asked.report {
            self.before = report.before;
            self.held = Some(report.system_id).filter(|id| *id != 0);
        }
        if self.port_open {
            out.extend_from_slice(&asked.autopilot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_lost(disturbances: &mut Disturbances, from: usize, to: usize, datagrams: u64) -> f64 {
        let lose = |k| disturbances.lose(Instant::from_millis(k * 50), from, to);
        (0..datagrams).map(lose).filter(|lost| *lost).count() as f64 / datagrams as f64
    }

    #[test]
    fn loss_and_bursts_lose_their_share_and_end() {
        for fault in [
            Fault::Loss { share: 0.6, until: Instant::from_secs(500) },
            Fault::Bursts { share: 0.6, stretch: Duration::from_millis(200), until: Instant::from_secs(500) },
        ] {
            let mut disturbances = Disturbances::new(3, 4);
            disturbances.begin(fault);
            let share = share_lost(&mut disturbances, 1, 2, 10_000);
            assert!((share - 0.6).abs() < 0.02, "{fault:?}: {share}");
            assert!(!disturbances.lose(Instant::from_secs(500), 1, 2), "{fault:?} ends");
            assert!(disturbances.active.is_empty());
        }
    }

    #[test]
    fn a_stretch_is_lost_whole_and_both_ways() {
        let mut disturbances = Disturbances::new(3, 2);
        let until = Instant::NEVER;
        disturbances.begin(Fault::Bursts { share: 0.5, stretch: Duration::from_secs(1), until });
        let mut both = [false; 2];
        let other = |k: u64| (k % 2) as usize;
        for second in 0..100 {
            let at = |ms: u64| Instant::from_millis(second * 1000 + ms);
            let lost = disturbances.lose(at(0), 0, 1);
            assert!((1..10).all(|k| disturbances.lose(at(k * 100), other(k), other(k + 1)) == lost));
            both[usize::from(lost)] = true;
        }
        assert_eq!(both, [true, true]);
    }

    #[test]
    fn a_partition_and_a_silent_radio_cut_what_they_name_and_nothing_else() {
        let mut disturbances = Disturbances::new(3, 4);
        disturbances.begin(Fault::Partition { group: 0b0101, until: Instant::from_secs(30) });
        let cut = |d: &mut Disturbances, s, from, to| d.lose(Instant::from_secs(s), from, to);
        assert!(cut(&mut disturbances, 1, 0, 1) && cut(&mut disturbances, 1, 3, 2));
        assert!(!cut(&mut disturbances, 1, 0, 2) && !cut(&mut disturbances, 1, 3, 1));
        assert!(!cut(&mut disturbances, 30, 0, 1), "it heals");
        let (lost, until) = (Direction::Both, Instant::NEVER);
        disturbances.begin(Fault::RadioSilent { vehicle: 2, lost, until });
        assert!(cut(&mut disturbances, 31, 2, 0) && cut(&mut disturbances, 31, 1, 2));
        assert!(!cut(&mut disturbances, 31, 0, 1));
    }
}
