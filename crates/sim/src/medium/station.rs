//! One radio: its queue, its access to the medium (IEEE 802.11-2020, 10.3.4) and its receiver.

use std::collections::VecDeque;
use std::sync::Arc;

use super::csma::Capture;
use super::reception::{ErrorRates, PREAMBLE_RATIO};
use super::timing::{CONTENTION_WINDOW, DIFS_NS, EIFS_NS, Nanos, PREAMBLE_NS, SENSE_NS, SLOT_NS};
use crate::rng::{self, Pcg64Mcg};

/// The start of a frame of this power is found (minimum sensitivity at 6 Mbit/s, -82 dBm: Table 17-18, 17.3.10.6). The
/// standard lets a radio that missed the start sense frames from -62 dBm on only; this one, as that of ns-3, senses them
/// from here on in any case. Milliwatts.
pub(super) const SENSE_MW: f64 = 6.309_573_444_801_93e-9;
/// Anything of this power makes the medium busy (-62 dBm: 17.3.10.6), milliwatts.
const ENERGY_MW: f64 = 6.309_573_444_801_93e-7;
/// With [`Capture::Later`]: how much stronger a later frame must be (5 dB).
const LATER_RATIO: f64 = 3.162_277_660_168_38;

/// No frame.
const NONE: u64 = 0;

/// A datagram that waits.
pub(super) struct Queued {
    pub(super) bytes: Arc<[u8]>,
    pub(super) handed_at: Nanos,
    /// Whether the medium was busy when it could have been sent.
    pub(super) waited: bool,
}

/// The frame that a receiver follows.
#[derive(Clone, Copy)]
struct Followed {
    id: u64,
    /// When it arrived.
    at: Nanos,
    power_mw: f64,
    /// Whether its preamble was found.
    is_found: bool,
    /// What is not in `exponent` yet.
    counted_to: Nanos,
    /// Negative logarithm of its success so far.
    exponent: f64,
    /// Another frame overlapped.
    is_overlapped: bool,
    /// Another frame that could be found overlapped.
    is_contested: bool,
}

/// How the reception of a frame ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ended {
    /// Another frame was followed, or none.
    Unfollowed,
    /// Followed to its end.
    Followed {
        /// Negative logarithm of its success.
        exponent: f64,
        /// Whether another frame overlapped.
        is_overlapped: bool,
    },
}

/// A radio.
pub(super) struct Station {
    pub(super) queue: VecDeque<Queued>,
    backoff: Pcg64Mcg,
    /// Slots to count down yet.
    slots: u64,
    /// From when on they are counted: DIFS or EIFS after the medium became idle, later moved by counted slots.
    counted_from: Nanos,
    /// When it sends if the medium stays idle.
    pub(super) ready_at: Nanos,
    /// It sends without backoff.
    is_immediate: bool,
    /// Since when carrier sense reports the medium busy.
    busy_from: Nanos,
    /// EIFS after a frame that was received with errors.
    eifs_until: Nanos,
    /// End of its last frame.
    pub(super) sends_until: Nanos,
    /// All frames on the air together, here.
    frames_mw: f64,
    /// Jammers and a receiver's own noise.
    noise_mw: f64,
    jam_mw: f64,
    followed: Followed,
}

impl Station {
    pub(super) fn new(backoff: Pcg64Mcg, noise_mw: f64) -> Self {
        Self {
            queue: VecDeque::new(),
            backoff,
            slots: 0,
            counted_from: Nanos::ZERO,
            ready_at: Nanos::NEVER,
            is_immediate: false,
            busy_from: Nanos::NEVER,
            eifs_until: Nanos::ZERO,
            sends_until: Nanos::ZERO,
            frames_mw: 0.0,
            noise_mw,
            jam_mw: 0.0,
            followed: Followed {
                id: NONE,
                at: Nanos::ZERO,
                power_mw: 0.0,
                is_found: false,
                counted_to: Nanos::ZERO,
                exponent: 0.0,
                is_overlapped: false,
                is_contested: false,
            },
        }
    }

    fn draw_slots(&mut self) {
        // 10.3.3: uniform over [0, CW].
        self.slots = (rng::uniform(&mut self.backoff) * (CONTENTION_WINDOW + 1) as f64) as u64;
    }

    fn count_down(&mut self, now: Nanos) {
        let counted = (now.since(self.counted_from) / SLOT_NS).min(self.slots);
        self.slots -= counted;
        self.counted_from = self.counted_from.plus(counted * SLOT_NS);
    }

    /// The first datagram of the queue wants to be sent, and no earlier one is on the air.
    pub(super) fn contend(&mut self, now: Nanos) {
        if self.busy_from != Nanos::NEVER {
            // 10.3.4.3: the procedure begins when the medium is found busy; a backoff that runs already goes on.
            if self.slots == 0 {
                self.draw_slots();
            }
            self.wait_for_medium();
            return;
        }
        self.count_down(now);
        // 10.3.4.2: at once when the medium is idle as the frame is queued, remains so for DIFS and no backoff runs.
        self.is_immediate = self.slots == 0;
        self.ready_at = if self.is_immediate {
            now.plus(DIFS_NS).max(self.counted_from)
        } else {
            self.counted_from.plus(self.slots * SLOT_NS)
        };
    }

    fn wait_for_medium(&mut self) {
        self.ready_at = Nanos::NEVER;
        if let Some(first) = self.queue.front_mut() {
            first.waited = true;
        }
    }

    fn become_busy(&mut self, at: Nanos) {
        if self.busy_from != Nanos::NEVER {
            return;
        }
        self.busy_from = at;
        if self.ready_at <= at {
            // It sends before it senses anything.
            return;
        }
        self.count_down(at);
        if self.ready_at != Nanos::NEVER {
            if std::mem::take(&mut self.is_immediate) {
                self.draw_slots();
            }
            self.wait_for_medium();
        }
    }

    fn become_idle(&mut self, at: Nanos) {
        self.busy_from = Nanos::NEVER;
        self.counted_from = at.plus(DIFS_NS).max(self.eifs_until);
        if !self.queue.is_empty() {
            self.ready_at = self.counted_from.plus(self.slots * SLOT_NS);
        }
    }

    fn senses_energy(&self) -> bool {
        self.frames_mw >= SENSE_MW || self.frames_mw + self.jam_mw >= ENERGY_MW
    }

    /// It begins to send what it took from its queue.
    pub(super) fn send(&mut self, until: Nanos) {
        (self.sends_until, self.ready_at) = (until, Nanos::NEVER);
        (self.is_immediate, self.slots, self.eifs_until) = (false, 0, Nanos::ZERO);
        self.followed.id = NONE;
    }

    /// It had nothing to send after all.
    pub(super) fn give_up_access(&mut self, now: Nanos) {
        (self.ready_at, self.is_immediate, self.counted_from) = (Nanos::NEVER, false, now);
        self.draw_slots();
    }

    /// Its own frame ended. A backoff follows in any case (10.3.4.3).
    pub(super) fn sent(&mut self, now: Nanos) {
        self.draw_slots();
        if self.senses_energy() {
            self.busy_from = self.busy_from.min(now);
            self.wait_for_medium();
        } else {
            self.become_idle(now);
        }
    }

    /// A frame begins to arrive.
    pub(super) fn arrive(&mut self, at: Nanos, id: u64, power_mw: f64, capture: Capture, rates: &ErrorRates) {
        if at < self.sends_until {
            self.frames_mw += power_mw;
            return;
        }
        self.settle(at, rates);
        let others_mw = self.frames_mw;
        self.frames_mw += power_mw;
        let followed = &mut self.followed;
        let is_taken = power_mw >= SENSE_MW
            && match capture {
                _ if followed.id == NONE => true,
                _ if !followed.is_found => power_mw > followed.power_mw,
                Capture::Never | Capture::Stronger => false,
                Capture::Later => {
                    at.since(followed.at) < PREAMBLE_NS && power_mw >= LATER_RATIO * followed.power_mw
                }
            };
        if is_taken {
            self.followed = Followed {
                id,
                at,
                power_mw,
                is_found: false,
                counted_to: at.plus(PREAMBLE_NS),
                exponent: 0.0,
                is_overlapped: others_mw > 0.0,
                is_contested: others_mw >= SENSE_MW,
            };
        } else {
            followed.is_overlapped = true;
            followed.is_contested |= power_mw >= SENSE_MW;
        }
        if self.senses_energy() {
            self.become_busy(at.plus(SENSE_NS));
        }
    }

    /// What the followed frame came to up to now, with the interference that was there.
    fn settle(&mut self, now: Nanos, rates: &ErrorRates) {
        let followed = &mut self.followed;
        if followed.id == NONE || now < followed.at.plus(SENSE_NS) {
            return;
        }
        let interference_mw = (self.frames_mw - followed.power_mw).max(0.0) + self.jam_mw;
        let ratio = followed.power_mw / (self.noise_mw + interference_mw);
        if !followed.is_found {
            followed.is_found = ratio >= PREAMBLE_RATIO;
            if !followed.is_found {
                followed.id = NONE;
                return;
            }
        }
        if now > followed.counted_to {
            followed.exponent += rates.exponent(ratio, followed.counted_to, now);
            followed.counted_to = now;
        }
    }

    /// A frame has arrived to its end. `left_mw` is what the frames that are still on the air amount to here.
    pub(super) fn end(
        &mut self,
        at: Nanos,
        id: u64,
        capture: Capture,
        left_mw: f64,
        rates: &ErrorRates,
    ) -> Ended {
        self.settle(at, rates);
        self.frames_mw = left_mw;
        if self.followed.id != id {
            return Ended::Unfollowed;
        }
        self.followed.id = NONE;
        let is_destroyed = capture == Capture::Never && self.followed.is_contested;
        let exponent = if is_destroyed { 1e3 } else { self.followed.exponent };
        Ended::Followed { exponent, is_overlapped: self.followed.is_overlapped }
    }

    /// Whether the frame that it followed arrived whole (10.3.2.3.7: EIFS begins with one that did not, and ends with
    /// one that did).
    pub(super) fn judge(&mut self, at: Nanos, is_whole: bool) {
        self.eifs_until = if is_whole { Nanos::ZERO } else { at.plus(EIFS_NS) };
    }

    /// Another power of all jammers.
    pub(super) fn jam(&mut self, now: Nanos, jam_mw: f64, rates: &ErrorRates) {
        self.settle(now, rates);
        self.jam_mw = jam_mw;
        if now < self.sends_until {
            return;
        }
        if self.senses_energy() {
            self.become_busy(now.plus(SENSE_NS));
        } else {
            self.rest(now);
        }
    }

    /// Carrier sense after something ended.
    pub(super) fn rest(&mut self, now: Nanos) {
        if self.busy_from != Nanos::NEVER && now >= self.sends_until && !self.senses_energy() {
            self.become_idle(now);
        }
    }
}
