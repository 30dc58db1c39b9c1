//! Probes of the link: which are due, and what was received, is their host's; the agent knows where the aircraft is, and
//! numbers and reads datagrams.

use serde::{Deserialize, Serialize};
use wingbeat_geo::Instant;
use wingbeat_wire::{Location, Message, Padding, Probe, SenderMotion};

use crate::{Agent, Outputs};

/// Faster than any multicopter, centimetre per second: what a receiver refuses.
const SPEED_MAX_CM_S: f64 = 10_000.0;

/// A probe to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// The test that it belongs to; 0 of those that are broadcast all the time.
    pub test: u32,
    /// Its number.
    pub sequence: u32,
    /// Time from one to the next, milliseconds, at least 1.
    pub period_ms: u16,
    /// Bytes of the datagram before its signature: a shorter one is padded.
    pub unsigned_len: usize,
}

impl Agent {
    /// Where the aircraft is and how it flies, where the flight controller reports it.
    pub fn motion(&self, now: Instant) -> Option<SenderMotion> {
        let t = &self.telemetry;
        let at = t.position.filter(|_| self.is_located && t.is_up(now))?;
        let cm_s = |m_s: f64| (m_s * 100.0).clamp(-SPEED_MAX_CM_S, SPEED_MAX_CM_S) as i16;
        let heading_cdeg = t.heading_rad.to_degrees() * 100.0;
        Some(SenderMotion {
            at: Location {
                latitude_e7: at.latitude_e7,
                longitude_e7: at.longitude_e7,
                altitude_mm: at.altitude_mm,
            },
            heading_cdeg: (heading_cdeg as i64).rem_euclid(36_000) as u16,
            east_cm_s: cm_s(t.velocity_m_s.x),
            north_cm_s: cm_s(t.velocity_m_s.y),
            up_cm_s: cm_s(t.velocity_m_s.z),
        })
    }

    pub(crate) fn broadcast_probe(&mut self, now: Instant, order: ProbeOrder, out: &mut Outputs) {
        let ProbeOrder { test, sequence, period_ms, unsigned_len } = order;
        let probe = Probe { test, sequence, period_ms, motion: self.motion(now), padding: Padding(0) };
        self.broadcast(now, 0, &Message::Probe(probe), out);
        // Its length shows when it is written.
        let (me, counter) = (self.id(), self.counter);
        let Some(draft) = out.datagrams.last_mut() else { return };
        let missing = unsigned_len.saturating_sub(draft.unsigned_len());
        let Ok(padding @ 1..) = u16::try_from(missing) else { return };
        let padded = Message::Probe(Probe { padding: Padding(padding), ..probe });
        if draft.write(me, counter, 0, &padded).is_err() {
            // It does not fit: the host asks for too much, and counts what left.
            out.datagrams.pop();
        }
    }
}
