//! An aircraft of the fleet that belongs to no swarm, and was captured: broadcasts under this flight's number that it
//! leads, from where the other swarm is, and that all are to land there. In its own name it signs that as any other
//! does; in another's it has the fleet's key alone.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{Coordinates, Datagram, Message, Point, VehicleId, read_unverified};

use super::sky::{FIRST, OTHERS, Sky};

const PERIOD: Duration = Duration::from_millis(700);
/// Its own id.
const CAPTURED: VehicleId = VehicleId(7);
const HEIGHT_MM: i32 = 19_000;

#[derive(Default)]
pub(super) struct ForgedSender {
    /// The flight's number, once the leader has broadcast it.
    flight: Option<u32>,
    due: Instant,
    sent: u32,
}

impl ForgedSender {
    /// Datagrams that were forged.
    pub(super) fn sent(&self) -> u32 {
        self.sent
    }

    pub(super) fn broadcast(&mut self, sky: &mut Sky) {
        let Some(axis) = sky.script.others_task().map(|task| task.axis) else { return };
        for sent in sky.world.take_sent() {
            if let Ok(datagram) = read_unverified(&sent.bytes)
                && sent.vehicle == FIRST
                && matches!(datagram.message, Message::Coordinates(_))
            {
                self.flight = Some(datagram.flight);
            }
        }
        let now = sky.world.now();
        let Some(flight) = self.flight.filter(|_| now >= self.due) else { return };
        self.due = now + PERIOD;
        let at = Point { height_mm: HEIGHT_MM, ..axis[0] };
        let forged = [
            Message::Coordinates(Coordinates { at, heading_urad: 1_000_000, leads: true }),
            Message::Land { at },
        ];
        // Its own id, that of the other leader, and that of a follower of this very flight.
        for from in [CAPTURED, VehicleId(OTHERS), sky.script.scenario.id(1)] {
            for message in &forged {
                self.sent += 1;
                // Newer than all before it.
                let counter = now.as_micros() + u64::from(self.sent);
                let datagram = Datagram { from, counter, flight, message: message.clone() };
                let mut draft = datagram.draft().expect("what was read can be written");
                let keys = sky.world.keys();
                let signer = if from == CAPTURED { keys.signer(FIRST) } else { keys.outsider() };
                let bytes = signer.seal(&mut draft).to_vec();
                (0..sky.size()).for_each(|i| sky.world.inject(i, &bytes));
            }
        }
    }
}
