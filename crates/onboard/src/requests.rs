//! The driver's queue of requests: bounded, with its last places for what recovers, and with a share for each sender.
//!
//! An order may cost a verification of its signature before it shows that it is none: a console that sends such orders without end
//! fills its own share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::mpsc;
use wingbeat_wire::VehicleId;

use crate::http::Request;

/// Places that are left to requests that recover: others are refused before the queue is full.
const RESERVED_FOR_RECOVERY: usize = 8;
/// Requests of one sender that wait at the same time, and so many more that recover.
pub(crate) const SHARE: usize = 8;

/// A sender, and whether its request recovers.
type Lane = (VehicleId, bool);

/// How many requests of each lane wait; a lane without any has no entry.
#[derive(Clone, Debug, Default)]
struct Shares(Arc<Mutex<BTreeMap<Lane, usize>>>);

/// A place in a lane, until the request is taken.
#[derive(Debug)]
struct Place {
    shares: Shares,
    lane: Lane,
}

impl Shares {
    fn enter(&self, lane: Lane) -> Option<Place> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = lanes.entry(lane).or_insert(0);
        if *waiting >= SHARE {
            return None;
        }
        *waiting += 1;
        Some(Place { shares: self.clone(), lane })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lanes = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get_mut(&self.lane) {
            Some(waiting) if *waiting > 1 => *waiting -= 1,
            _ => drop(lanes.remove(&self.lane)),
        }
    }
}

/// Why a request does not wait for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotQueued {
    /// Its sender has as many that wait as it may.
    Share,
    /// The queue is full, but for what recovers.
    Full,
    /// The driver has ended.
    Stopping,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    _place: Option<Place>,
}

/// Where requests are put.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    queue: mpsc::Sender<Waiting>,
    shares: Shares,
}

/// Where the driver takes them.
#[derive(Debug)]
pub(crate) struct Receiver(mpsc::Receiver<Waiting>);

/// A queue of so many requests.
pub(crate) fn channel(room: usize) -> (Sender, Receiver) {
    let (queue, requests) = mpsc::channel(room);
    (Sender { queue, shares: Shares::default() }, Receiver(requests))
}

impl Sender {
    /// Puts a request into the queue; `from` is its sender, where keys prove that.
    pub(crate) fn put(&self, request: Request, from: Option<VehicleId>) -> Result<(), NotQueued> {
        let recovers = request.recovers();
        let reserved = RESERVED_FOR_RECOVERY.min(self.queue.max_capacity() / 2);
        if !recovers && !self.queue.is_closed() && self.queue.capacity() <= reserved {
            return Err(NotQueued::Full);
        }
        let place = match from {
            Some(from) => Some(self.shares.enter((from, recovers)).ok_or(NotQueued::Share)?),
            None => None,
        };
        self.queue.try_send(Waiting { request, _place: place }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotQueued::Full,
            mpsc::error::TrySendError::Closed(_) => NotQueued::Stopping,
        })
    }

    /// Requests for which there is room.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.queue.capacity()
    }
}

impl Receiver {
    /// The next request; none when no sender is left. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self) -> Option<Request> {
        self.0.recv().await.map(|waiting| waiting.request)
    }

    /// Whether none waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
