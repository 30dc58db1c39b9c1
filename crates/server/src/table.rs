//! Which connections there are, and which gives way when there are too many.
//!
//! Connections are counted by *share*: the peer's address, of IPv6 its network of 64 bits, because a peer that has one
//! address of it may have all. Of what may give way, the share that has the most gives. Of it an address without a session
//! gives, then the address that has the most, then the oldest: a peer cannot close another's connection before it has closed
//! all but as many of its own as that other has, and on an IPv6 network no stranger closes those of an address with a session.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::peers::{Trusted, network};

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Waits for the peer: for a head, a body, or to take an answer.
    Waits,
    /// A whole request is being answered.
    Answers,
    /// Carries an event stream.
    Streams,
}

struct Entry {
    id: u64,
    share: IpAddr,
    address: IpAddr,
    doing: Doing,
    /// Its request has a large body.
    large: bool,
    /// Rank of the last change of `doing`: the lowest has waited longest.
    since: u64,
    leave: Arc<Notify>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    /// Ids and ranks that were given.
    count: u64,
}

/// The connections of one server.
#[derive(Clone)]
pub(crate) struct Table {
    entries: Arc<Mutex<Entries>>,
    connections: usize,
    streams: usize,
    large: usize,
    trusted: Arc<Trusted>,
}

/// One connection, as a handler sees it.
#[derive(Clone)]
pub struct Connection {
    place: Arc<Place>,
}

/// The entry of a connection in the table; it is removed when the last handle is dropped.
struct Place {
    table: Table,
    id: u64,
    peer: IpAddr,
    leave: Arc<Notify>,
}

/// A connection that carries an event stream, for as long as this lives.
pub struct Stream {
    connection: Connection,
}

/// A request with a large body, for as long as this lives.
pub(crate) struct LargeBody {
    connection: Connection,
}

/// By what a peer's connections are counted.
fn share(peer: IpAddr) -> IpAddr {
    network(peer).unwrap_or_else(|| peer.to_canonical())
}

impl Entries {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Asks the oldest of the greatest share to leave, of those that `may`; true if there is one. `guest` counts for
    /// its share and stays.
    fn give_way(&mut self, guest: Option<u64>, trusted: &Trusted, may: impl Fn(&Entry) -> bool) -> bool {
        let now = Instant::now();
        let counted = |is_of: &dyn Fn(&Entry) -> bool| {
            self.all.iter().filter(|entry| is_of(entry) && (may(entry) || Some(entry.id) == guest)).count()
        };
        let rank = |entry: &Entry| {
            let of_share = counted(&|other| other.share == entry.share);
            let of_address = counted(&|other| other.address == entry.address);
            (of_share, !trusted.holds(entry.address, now), of_address, std::cmp::Reverse(entry.since))
        };
        let candidates =
            self.all.iter().enumerate().filter(|(_, entry)| may(entry) && Some(entry.id) != guest);
        let victim = candidates.max_by_key(|(_, entry)| rank(entry));
        let Some((index, _)) = victim else { return false };
        // It does not count any more, however long its task takes to end.
        self.all.remove(index).leave.notify_one();
        true
    }
}

impl Table {
    pub(crate) fn new(connections: usize, streams: usize, large: usize) -> Self {
        Self { entries: Arc::default(), connections, streams, large, trusted: Arc::default() }
    }

    /// A panic while it is held leaves every entry whole.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new connection in; another gives way where there is no room.
    pub(crate) fn enter(&self, peer: IpAddr) -> Connection {
        let mut entries = self.entries();
        let id = entries.next();
        let leave = Arc::new(Notify::new());
        let entry = Entry {
            id,
            share: share(peer),
            address: peer.to_canonical(),
            doing: Doing::Waits,
            large: false,
            since: id,
            leave: leave.clone(),
        };
        entries.all.push(entry);
        if entries.all.len() > self.connections {
            let trusted = &self.trusted;
            let _ = entries.give_way(Some(id), trusted, |entry| entry.doing == Doing::Waits)
                || entries.give_way(Some(id), trusted, |entry| entry.doing != Doing::Streams)
                || entries.give_way(Some(id), trusted, |_| true);
        }
        drop(entries);
        Connection { place: Arc::new(Place { table: self.clone(), id, peer: peer.to_canonical(), leave }) }
    }

    /// One that waits leaves: the system is short of something.
    pub(crate) fn give_way(&self) {
        self.entries().give_way(None, &self.trusted, |entry| entry.doing == Doing::Waits);
    }

    pub(crate) fn trusted(&self) -> &Arc<Trusted> {
        &self.trusted
    }
}

impl Connection {
    /// The address of the peer.
    #[must_use]
    pub fn peer(&self) -> IpAddr {
        self.place.peer
    }

    /// The peer proved who it is by a session; a key is proved in the handshake. No stranger of its network takes its share for an hour.
    pub fn trust(&self) {
        self.place.table.trusted.add(self.place.peer, Instant::now());
    }

    /// Waits until the connection has to end because another needs its room.
    pub(crate) async fn given_way(&self) {
        self.place.leave.notified().await;
    }

    fn change(&self, doing: Doing) {
        let mut entries = self.place.table.entries();
        let rank = entries.next();
        if let Some(entry) = entries.all.iter_mut().find(|entry| entry.id == self.place.id) {
            (entry.doing, entry.since) = (doing, rank);
        }
    }

    /// The peer's turn: it sends a body or takes an answer. An event stream stays one.
    pub(crate) fn waits(&self) {
        let mut entries = self.place.table.entries();
        let rank = entries.next();
        let entry = entries.all.iter_mut().find(|entry| entry.id == self.place.id);
        if let Some(entry) = entry.filter(|entry| entry.doing != Doing::Streams) {
            (entry.doing, entry.since) = (Doing::Waits, rank);
        }
    }

    /// A whole request is there.
    pub(crate) fn answers(&self) {
        self.change(Doing::Answers);
    }

    /// The connection carries an event stream from now on. There is always room for one: where there are too many, of
    /// the address that has the most the oldest ends.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.change(Doing::Streams);
        let mut entries = self.place.table.entries();
        let streams = |entry: &Entry| entry.doing == Doing::Streams;
        if entries.all.iter().filter(|entry| streams(entry)).count() > self.place.table.streams {
            entries.give_way(Some(self.place.id), &self.place.table.trusted, streams);
        }
        drop(entries);
        Stream { connection: self.clone() }
    }

    /// The request has a large body. There is always room for one, as for a stream.
    pub(crate) fn large_body(&self) -> LargeBody {
        let mut entries = self.place.table.entries();
        if let Some(entry) = entries.all.iter_mut().find(|entry| entry.id == self.place.id) {
            entry.large = true;
        }
        if entries.all.iter().filter(|entry| entry.large).count() > self.place.table.large {
            entries.give_way(Some(self.place.id), &self.place.table.trusted, |entry| entry.large);
        }
        drop(entries);
        LargeBody { connection: self.clone() }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.change(Doing::Waits);
    }
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        let mut entries = self.connection.place.table.entries();
        if let Some(entry) = entries.all.iter_mut().find(|entry| entry.id == self.connection.place.id) {
            entry.large = false;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.entries().all.retain(|entry| entry.id != self.id);
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Connection {
    type Rejection = std::convert::Infallible;

    /// A router that is asked without a server has no other connection.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let served = parts.extensions.get::<Self>().cloned();
        Ok(served.unwrap_or_else(|| Table::new(1, 1, 1).enter(Ipv6Addr::UNSPECIFIED.into())))
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.place.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("id", &self.connection.place.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Whether it was asked to leave.
    fn left(connection: &Connection) -> bool {
        !connection.place.table.entries().all.iter().any(|entry| entry.id == connection.place.id)
    }

    #[test]
    fn the_oldest_that_waits_of_the_greatest_share_gives_way() {
        let table = Table::new(4, 2, 1);
        let console = table.enter(peer(1));
        let flood: Vec<_> = (0..100).map(|_| table.enter(peer(2))).collect();
        assert!(!left(&console), "the flood closes its own");
        assert_eq!(flood.iter().filter(|one| !left(one)).count(), 3);
        assert!(flood[97..].iter().all(|one| !left(one)), "the newest stay");
        let other = table.enter(peer(3));
        assert!(left(&flood[97]) && !left(&other) && !left(&console));
    }

    #[test]
    fn on_an_ipv6_network_a_stranger_closes_no_connection_of_an_address_with_a_session() {
        let on_lan = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let table = Table::new(8, 2, 1);
        let operator: Vec<_> = (0..4).map(|_| table.enter(on_lan(1))).collect();
        operator[0].trust();
        // Each of the stranger's connections has an address of its own.
        let flood: Vec<_> = (10..200).map(|last| table.enter(on_lan(last))).collect();
        assert!(operator.iter().all(|one| !left(one)));
        assert_eq!(flood.iter().filter(|one| !left(one)).count(), 4);
        // Without a session the address that has the most gives way.
        let table = Table::new(8, 2, 1);
        let console: Vec<_> = (0..2).map(|_| table.enter(on_lan(1))).collect();
        let _flood: Vec<_> = (0..100).map(|_| table.enter(on_lan(2))).collect();
        assert!(console.iter().all(|one| !left(one)));
    }

    #[test]
    fn what_is_being_answered_stays_while_another_waits_and_a_stream_always() {
        let table = Table::new(4, 2, 1);
        let [stream, answered, waiting, last] = [(); 4].map(|()| table.enter(peer(1)));
        let kept = stream.stream();
        answered.answers();
        let fifth = table.enter(peer(1));
        assert!(left(&waiting) && !left(&last) && !left(&answered));
        for one in [&last, &fifth] {
            one.answers();
        }
        let sixth = table.enter(peer(1));
        assert!(left(&answered) && !left(&stream) && !left(&sixth), "the oldest that is answered");
        drop(kept);
        sixth.answers();
        let seventh = table.enter(peer(1));
        assert!(left(&stream) && !left(&seventh), "a stream that ended waits again");
    }

    #[test]
    fn a_console_that_comes_back_always_has_a_stream() {
        let table = Table::new(64, 16, 1);
        let idle: Vec<_> = (0..16).map(|_| table.enter(peer(1))).collect();
        let held: Vec<_> = idle.iter().map(Connection::stream).collect();
        let same = table.enter(peer(1));
        let first = same.stream();
        assert!(left(&idle[0]) && !left(&idle[1]) && !left(&same), "the oldest of the same address");
        let other = table.enter(peer(2));
        let second = other.stream();
        assert!(left(&idle[1]) && !left(&other), "the greatest share gives way to another address");
        let again: Vec<_> = (0..32).map(|_| table.enter(peer(1))).collect();
        let more: Vec<_> = again.iter().map(Connection::stream).collect();
        assert!(!left(&other), "and never takes the place of the only one of another");
        drop((held, first, second, more));
    }

    #[test]
    fn few_large_bodies_at_the_same_time() {
        let table = Table::new(64, 16, 2);
        let some: Vec<_> = (0..5).map(|_| table.enter(peer(1))).collect();
        let bodies: Vec<_> = some.iter().map(Connection::large_body).collect();
        assert!(some[..3].iter().all(left) && !left(&some[3]) && !left(&some[4]));
        drop(bodies);
        let next = table.enter(peer(1));
        let _body = next.large_body();
        assert!(!left(&some[3]) && !left(&some[4]), "theirs have ended");
    }

    #[test]
    fn a_network_of_64_bits_is_one_peer_and_a_mapped_address_is_what_it_maps() {
        let of = |text: &str| share(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
