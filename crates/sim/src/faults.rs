//! What goes wrong in a world, and when: part of its input, like an operator's commands. The same faults at
//! the same times and the same seed give the same bytes; what faults draw does not disturb other generators.

use wingbeat_agent::guardian::{self, Guardian, Pulse, Then};
use wingbeat_geo::{Duration, Instant};

use crate::rng::{self, Pcg64Mcg};

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
    /// A radio neither sends nor receives. Companion and flight controller continue.
    RadioSilent {
        /// Index of the aircraft, from 0.
        vehicle: usize,
        /// When it works again.
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

/// What disturbs a channel, in addition to distance and random loss of its model.
pub(crate) struct Disturbances {
    seed: u64,
    count: usize,
    /// Those that never ended yet, with the time from which they count.
    active: Vec<Fault>,
    /// One generator per directed link, as the channel's own; made with the first loss.
    links: Vec<Pcg64Mcg>,
}

impl Disturbances {
    /// None, among `count` radios.
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        Self { seed, count, active: Vec::new(), links: Vec::new() }
    }

    /// Begins one. Faults of aircraft disturb no channel.
    pub(crate) fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::CompanionDies { .. } | Fault::Falls { .. } => return,
            Fault::Loss { .. } if self.links.is_empty() => {
                let child = |link| rng::child(self.seed, "radio fault", link as u64);
                self.links = (0..self.count * self.count).map(child).collect();
            }
            Fault::RadioSilent { .. }
            | Fault::Loss { .. }
            | Fault::Bursts { .. }
            | Fault::Partition { .. } => {}
        }
        self.active.push(fault);
    }

    /// Whether a datagram from one radio to another is lost by what disturbs the channel now.
    pub(crate) fn lose(&mut self, now: Instant, from: usize, to: usize) -> bool {
        if self.active.is_empty() {
            return false;
        }
        self.active.retain(|fault| match *fault {
            Fault::RadioSilent { until, .. }
            | Fault::Loss { until, .. }
            | Fault::Bursts { until, .. }
            | Fault::Partition { until, .. } => now < until,
            Fault::CompanionDies { .. } | Fault::Falls { .. } => false,
        });
        let (seed, count, links) = (self.seed, self.count, &mut self.links);
        let mut lost = false;
        for fault in &self.active {
            // Each draws, whatever the one before it has decided: the draws do not depend on their order.
            lost |= match *fault {
                Fault::RadioSilent { vehicle, .. } => vehicle == from || vehicle == to,
                Fault::Loss { share, .. } => rng::uniform(&mut links[from * count + to]) < share,
                Fault::Bursts { share, stretch, .. } => {
                    let pair = (from.min(to) * count + from.max(to)) as u64;
                    let number = now.as_micros() / (stretch.as_micros() as u64).max(1);
                    rng::uniform(&mut rng::child(seed, "radio burst", pair << 32 | number)) < share
                }
                Fault::Partition { group, .. } => (group >> from ^ group >> to) & 1 == 1,
                Fault::CompanionDies { .. } | Fault::Falls { .. } => false,
            };
        }
        lost
    }
}

/// From the guardian's wish to the open port.
const OPENING: Duration = Duration::from_millis(100);

/// The guardian of an aircraft whose companion died: it takes the flight controller as the real one does.
pub(crate) struct Guard {
    guardian: Guardian,
    wanted_at: Option<Instant>,
    port_open: bool,
}

impl Guard {
    /// It has watched until now, and its daemon's socket closes.
    pub(crate) fn take_over(now: Instant, last: Pulse) -> Self {
        let config = guardian::Config {
            silence: Duration::from_secs(1),
            hold: Duration::from_secs(10),
            then: Then::Land,
            endpoint: last.endpoint,
            signing: None,
        };
        let mut guard = Self { guardian: Guardian::new(config), wanted_at: None, port_open: false };
        let mut out = Vec::new();
        for input in [guardian::Input::Connected, guardian::Input::Pulse(last), guardian::Input::Gone] {
            guard.feed(now, input, &mut out);
        }
        guard
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
        disturbances.begin(Fault::RadioSilent { vehicle: 2, until: Instant::NEVER });
        assert!(cut(&mut disturbances, 31, 2, 0) && cut(&mut disturbances, 31, 1, 2));
        assert!(!cut(&mut disturbances, 31, 0, 1));
    }
}
