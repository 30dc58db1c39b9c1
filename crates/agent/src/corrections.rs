//! Corrections of satellite navigation: from a console's datagram to the flight controller's receiver, once each.
//!
//! Forged ones shift positions, so only an operator's console may send them (its key, [`wingbeat_wire::Role`]). That a datagram
//! counts once, and none that is older than 2 s, holds for them as for every other. The flight controller gets those of one base
//! station at a time, at a bounded rate.

use wingbeat_autopilot::rtcm;
use wingbeat_geo::{Duration, Instant, Rate};
use wingbeat_wire::{Corrections, VehicleId};

use crate::{Agent, Outputs, transmit};

/// Another console's base station counts when the first has been silent for so long: corrections of two are for two places.
const BASE_SILENT: Duration = Duration::from_secs(10);
/// Bytes a second, without MAVLink's own: half of a serial line of 57600 baud.
const RATE_BYTES_S: u64 = 2_500;
/// So much at once: what a base station with four systems sends each second.
const BURST_BYTES: u64 = 2_500;

/// Why a frame is not handed to the flight controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrectionRefused {
    /// Another console's base station is used.
    OtherBase,
    /// More bytes than the line has room for.
    TooMany,
    /// No flight controller, or no room towards it.
    NoFlightController,
}

impl CorrectionRefused {
    /// Every reason, in the order of their counters.
    pub const ALL: [Self; 3] = [Self::OtherBase, Self::TooMany, Self::NoFlightController];

    /// Its name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherBase => "other_base",
            Self::TooMany => "too_many",
            Self::NoFlightController => "no_flight_controller",
        }
    }
}

/// What is kept of corrections.
#[derive(Clone, Debug)]
pub(crate) struct CorrectionsState {
    /// The console with the base station, and when the flight controller was handed its last frame.
    base: Option<(VehicleId, Instant)>,
    /// Bytes that may leave, and when that was so.
    bucket: (u64, Instant),
    rate: Rate,
    injected: u32,
    refused: [u32; CorrectionRefused::ALL.len()],
}

/// What an operator sees of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionsStatus {
    /// The console with the base station, and when the flight controller was handed its last frame; nothing before the first.
    pub base: Option<(VehicleId, Instant)>,
    /// Bytes a second that it is handed.
    pub bytes_s: u32,
    /// Frames that it was handed.
    pub injected: u32,
    /// Frames that it was not handed, in the order of [`CorrectionRefused::ALL`].
    pub refused: [u32; CorrectionRefused::ALL.len()],
}

impl CorrectionsState {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            base: None,
            bucket: (BURST_BYTES, now),
            rate: Rate::default(),
            injected: 0,
            refused: [0; CorrectionRefused::ALL.len()],
        }
    }

    fn judge(&mut self, now: Instant, from: VehicleId, length: usize) -> Result<(), CorrectionRefused> {
        if self.base.is_some_and(|(base, at)| base != from && now.since(at) < BASE_SILENT) {
            return Err(CorrectionRefused::OtherBase);
        }
        let (held, at) = self.bucket;
        let filled = now.since(at).as_micros() as u64 * RATE_BYTES_S / 1_000_000;
        // Less than a byte is not lost.
        if filled > 0 {
            self.bucket = (held.saturating_add(filled).min(BURST_BYTES), now);
        }
        self.bucket.0 = self.bucket.0.checked_sub(length as u64).ok_or(CorrectionRefused::TooMany)?;
        Ok(())
    }
}

impl Agent {
    /// A frame of a base station, which its console broadcast. A pilot's takeover ends no corrections: they command nothing. Not
    /// inlined: at most a few come in a second, and their room on the stack costs at every datagram.
    #[inline(never)]
    pub(crate) fn on_corrections(
        &mut self,
        now: Instant,
        from: VehicleId,
        corrections: &Corrections,
        out: &mut Outputs,
    ) {
        match self.inject(now, from, &corrections.frame, out) {
            Ok(()) => {
                let state = &mut self.corrections;
                state.base = Some((from, now));
                state.rate.add(now, corrections.frame.len() as u32);
                state.injected = state.injected.saturating_add(1);
            }
            Err(reason) => {
                let count = &mut self.corrections.refused[reason as usize];
                *count = count.saturating_add(1);
            }
        }
    }

    fn inject(
        &mut self,
        now: Instant,
        from: VehicleId,
        frame: &[u8],
        out: &mut Outputs,
    ) -> Result<(), CorrectionRefused> {
        let sequence = self.corrections.injected as u8;
        let mut transmit = transmit(&self.telemetry, &mut self.outgoing, out)
            .filter(|_| self.telemetry.is_up(now))
            .ok_or(CorrectionRefused::NoFlightController)?;
        self.corrections.judge(now, from, frame.len())?;
        rtcm::inject(frame, sequence, &mut transmit).map_err(|_| CorrectionRefused::NoFlightController)
    }

    /// Nothing before the first frame.
    pub(crate) fn corrections_status(&self, now: Instant) -> Option<CorrectionsStatus> {
        let CorrectionsState { base, ref rate, injected, refused, .. } = self.corrections;
        let is_used = injected > 0 || refused.iter().any(|count| *count > 0);
        is_used.then(|| CorrectionsStatus { base, bytes_s: rate.per_second(now), injected, refused })
    }
}
