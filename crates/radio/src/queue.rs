//! Received datagrams that wait for their owner.
//!
//! Each sender has a lane, and the lanes are served by turns: who sends much, or sends in another's name, waits behind
//! himself. When the queue is full, the last of the longest lane gives way. This is start-time fair queuing (Goyal, Vin and Cheng
//! 1996) with one unit for each datagram: the first that waits in a lane is of the next round, its second of the one after, and the
//! least round is served first.

use std::{collections::VecDeque, net::SocketAddr};

use wingbeat_wire::VehicleId;

use crate::RECEIVED_MAX;

/// Datagrams of one sender that wait at the same time.
pub(crate) const LANE_MAX: usize = RECEIVED_MAX / 4;

/// A datagram with the radio that sent it.
pub(crate) type Received = (SocketAddr, Vec<u8>);

#[derive(Debug)]
struct Waiting {
    /// The sender that the datagram claims; none where nothing is known of senders.
    lane: Option<VehicleId>,
    round: u64,
    received: Received,
}

/// The queue. Every operation takes one pass over at most [`RECEIVED_MAX`] entries.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// In the order of arrival.
    waiting: VecDeque<Waiting>,
    /// That of the last datagram that was served.
    round: u64,
}

impl Queue {
    /// Adds a datagram. False where one was dropped for it, or it itself was.
    pub(crate) fn push(&mut self, lane: Option<VehicleId>, received: Received) -> bool {
        let (mut ahead, mut last) = (0, self.round);
        for waiting in self.waiting.iter().filter(|waiting| waiting.lane == lane) {
            ahead += 1;
            last = last.max(waiting.round);
        }
        if lane.is_some() && ahead >= LANE_MAX {
            return false;
        }
        let round = last + 1;
        let is_full = self.waiting.len() >= RECEIVED_MAX;
        if is_full {
            // Of equal ones the last.
            let longest = self.waiting.iter().enumerate().max_by_key(|(_, waiting)| waiting.round);
            match longest.map(|(index, waiting)| (index, waiting.round)) {
                Some((index, most)) if most > round => drop(self.waiting.remove(index)),
                _ => return false,
            }
        }
        self.waiting.push_back(Waiting { lane, round, received });
        !is_full
    }

    /// The next one.
    pub(crate) fn pop(&mut self) -> Option<Received> {
        // Of equal ones the first.
        let (index, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| waiting.round)?;
        let Waiting { round, received, .. } = self.waiting.remove(index)?;
        self.round = round;
        Some(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u16) -> Received {
        (([127, 0, 0, 1], number).into(), vec![])
    }

    fn sender(number: u64) -> Option<VehicleId> {
        Some(VehicleId(number))
    }

    fn drained(queue: &mut Queue) -> Vec<u16> {
        std::iter::from_fn(|| queue.pop()).map(|(from, _)| from.port()).collect()
    }

    #[test]
    fn lanes_are_served_by_turns_and_each_in_order() {
        let mut queue = Queue::default();
        for number in 1..=4 {
            assert!(queue.push(sender(1), datagram(number)));
        }
        assert!(queue.push(sender(2), datagram(11)) && queue.push(sender(2), datagram(12)));
        assert_eq!(queue.pop(), Some(datagram(1)));
        assert!(
            queue.push(sender(3), datagram(21)),
            "one that comes later waits for no more than the others' next"
        );
        assert_eq!(drained(&mut queue), [11, 2, 12, 21, 3, 4]);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_flood_in_the_names_of_many_drops_its_own() {
        let mut queue = Queue::default();
        let pushed =
            |queue: &mut Queue, name| (0..1_000).filter(|_| queue.push(sender(name), datagram(9))).count();
        let taken: Vec<_> = (1..=4).map(|name| pushed(&mut queue, name)).collect();
        assert_eq!(taken, [LANE_MAX; 4], "as many as a lane holds");
        assert!(!queue.push(sender(5), datagram(1)), "full: another gives way");
        assert_eq!(queue.waiting.len(), RECEIVED_MAX);
        let place = drained(&mut queue).iter().position(|number| *number == 1);
        assert!(place.is_some_and(|place| place <= 4), "{place:?}, expected it after one of each other");
    }

    #[test]
    fn without_senders_it_is_one_queue() {
        let mut queue = Queue::default();
        for number in 0..RECEIVED_MAX {
            assert!(queue.push(None, datagram(number as u16)));
        }
        assert!(!queue.push(None, datagram(1_000)));
        let all = (0..RECEIVED_MAX as u16).collect::<Vec<_>>();
        assert_eq!(drained(&mut queue), all);
    }
}
