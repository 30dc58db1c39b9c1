//! Companions without a processor, and what a second ground station sends: faults of a world that
//! concern no channel and no sensor.

use std::sync::Arc;

use wingbeat_autopilot::codec::{FRAME_LEN_MAX, MavHeader, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{COMMAND_LONG_DATA, MavCmd, MavMessage};
use wingbeat_geo::Instant;

use crate::faults::Fault;

/// The system id of the second ground station: not the one of the consoles.
const SECOND_GROUND: u8 = 254;

/// Returns the frame by which the second ground station commands a mode.
pub(crate) fn mode_order(mode: Mode) -> heapless::Vec<u8, FRAME_LEN_MAX> {
    let order = MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
        command: MavCmd::MAV_CMD_DO_SET_MODE,
        // A mode of ArduCopter, for every flight controller on its radio: that is one.
        param1: 1.0,
        param2: mode.number() as f32,
        ..COMMAND_LONG_DATA::DEFAULT
    });
    let header = MavHeader { system_id: SECOND_GROUND.into(), component_id: 190, sequence: 0 };
    let mut frame = heapless::Vec::new();
    encode_v2(header, &order, &mut frame).expect("a frame has room for its message");
    frame
}

/// The input that waits for a process until it gets a processor again.
#[derive(Default)]
pub(crate) struct Backlog {
    vehicle: usize,
    /// The bytes of its flight controller.
    pub(crate) bytes: Vec<u8>,
    /// Datagrams in the order in which they came.
    pub(crate) datagrams: Vec<Arc<[u8]>>,
}

/// The companions without a processor.
#[derive(Default)]
pub(crate) struct Stalls {
    /// The faults that have not ended.
    active: Vec<Fault>,
    waiting: Vec<Backlog>,
}

impl Stalls {
    /// Begins a stall; other faults starve no process.
    pub(crate) fn begin(&mut self, fault: Fault) {
        if matches!(fault, Fault::Starved { .. }) {
            self.active.push(fault);
        }
    }

    /// Returns whether the companion of an aircraft has no processor now.
    pub(crate) fn hold(&mut self, now: Instant, on: usize) -> bool {
        self.active.retain(|fault| fault.until().is_none_or(|until| now < until));
        self.active.iter().any(|fault| {
            let Fault::Starved { vehicle, stall, every, .. } = *fault else { return false };
            let period_us = every.as_micros().max(1) as u64;
            vehicle == on && now.as_micros() % period_us < stall.as_micros() as u64
        })
    }

    /// Returns whether something that comes now waits: behind what waits already, too.
    fn waits(&mut self, now: Instant, of: usize) -> bool {
        self.hold(now, of) || self.waiting.iter().any(|waiting| waiting.vehicle == of)
    }

    fn backlog(&mut self, of: usize) -> &mut Backlog {
        let found = self.waiting.iter().position(|waiting| waiting.vehicle == of);
        let i = found.unwrap_or_else(|| {
            self.waiting.push(Backlog { vehicle: of, ..Backlog::default() });
            self.waiting.len() - 1
        });
        &mut self.waiting[i]
    }

    /// Keeps bytes of the flight controller, or none, where the companion has no processor. Returns
    /// whether they wait.
    pub(crate) fn keep_bytes(&mut self, now: Instant, of: usize, bytes: &[u8]) -> bool {
        let waits = self.waits(now, of);
        if waits {
            self.backlog(of).bytes.extend_from_slice(bytes);
        }
        waits
    }

    /// Keeps a datagram where the companion has no processor. Returns whether it waits.
    pub(crate) fn keep_datagram(&mut self, now: Instant, of: usize, datagram: &Arc<[u8]>) -> bool {
        let waits = self.waits(now, of);
        if waits {
            self.backlog(of).datagrams.push(Arc::clone(datagram));
        }
        waits
    }

    /// Takes what waited for a companion that has a processor again.
    pub(crate) fn take(&mut self, now: Instant, of: usize) -> Option<Backlog> {
        if self.waiting.is_empty() || self.hold(now, of) {
            return None;
        }
        let i = self.waiting.iter().position(|waiting| waiting.vehicle == of)?;
        Some(self.waiting.swap_remove(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::Duration;

    #[test]
    fn what_comes_without_a_processor_waits_for_the_end_of_the_stretch() {
        let mut stalls = Stalls::default();
        let (stall, every) = (Duration::from_millis(1_500), Duration::from_secs(4));
        stalls.begin(Fault::Starved { vehicle: 1, stall, every, until: Instant::from_secs(9) });
        let datagram: Arc<[u8]> = Arc::from([1, 2, 3].as_slice());
        let at = Instant::from_millis;
        assert!(!stalls.keep_bytes(at(4_500), 0, &[7]), "of another aircraft");
        assert!(stalls.keep_bytes(at(4_500), 1, &[7]) && stalls.keep_bytes(at(5_000), 1, &[8]));
        assert!(stalls.keep_datagram(at(5_200), 1, &datagram));
        assert!(stalls.take(at(5_400), 1).is_none(), "it has none yet");
        assert!(stalls.keep_bytes(at(5_500), 1, &[9]), "behind what waits already");
        let taken = stalls.take(at(5_500), 1).unwrap();
        assert_eq!((taken.bytes, taken.datagrams), (vec![7, 8, 9], vec![datagram.clone()]));
        assert!(!stalls.keep_datagram(at(5_600), 1, &datagram) && stalls.take(at(5_600), 1).is_none());
        assert!(stalls.hold(at(8_500), 1) && !stalls.hold(at(9_100), 1), "it ends");
    }
}
