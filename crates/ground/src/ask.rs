//! Asking one aircraft for its status where its event stream gives none: it stalls, or is being connected again.
//!
//! A stream that stalls waits for a lost packet: TCP sends it again after 200 ms at least, and after twice as long each further time
//! (RFC 6298, section 5); a new one waits for a second where the first packet of it is lost. Meanwhile the aircraft is asked by other
//! connections; sooner where the effect of a recovery command is waited for.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use reqwest::{Client, Response};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use wingbeat_api::{AircraftStatus, paths};

use crate::client::{self, Clients};
use crate::owner::Message;

/// A stream is stalled when it is silent for this and twice as long as between its last two statuses, which come ten times a second
/// in flight, and twice on the ground.
const STALLED_AFTER: Duration = Duration::from_millis(100);
const APART: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(600));
/// Where the effect of a recovery command is waited for, a stream is stalled when it is silent for this.
const STALLED_CLOSELY: Duration = Duration::from_millis(100);
/// An aircraft whose stream was silent for so long is asked only where such an effect is waited for: that it answers is no stream.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// A program that began anew counts its time from zero: one that is so much younger is another, and no status that was held up.
const BEGINS_ANEW_MS: u64 = 5_000;

/// How an aircraft whose stream stalls is asked. A question opens a connection unless one is idle, and waits for a second where the first
/// packet of that is lost, in either direction: of ten packets lost one, that is each fifth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asking {
    /// Since the last status of the stream.
    after: Duration,
    /// The next question.
    again_after: Duration,
    /// Under way.
    at_once: usize,
}

impl Asking {
    /// Where the statuses come so far apart, and the effect of a recovery command is waited for or not.
    fn of(apart: Duration, is_close: bool) -> Self {
        let again_after = Duration::from_millis(if is_close { 80 } else { 120 });
        match is_close {
            true => Self { after: STALLED_CLOSELY, again_after, at_once: 8 },
            false => Self { after: 2 * apart + STALLED_AFTER, again_after, at_once: 4 },
        }
    }
}

/// A status that was asked for, and by which connection it came.
type Answer = Result<(Response, Box<AircraftStatus>), String>;

/// What one aircraft is asked while it is followed.
pub(crate) struct Questions {
    clients: Clients,
    index: usize,
    address: String,
    owner: mpsc::Sender<Message>,
    /// The addresses of those that are to show the effect of a recovery command.
    closely: watch::Receiver<BTreeSet<String>>,
    /// The aircraft that has given a status, and the client of its commands, whose connections the questions keep open.
    of: Option<(String, Client)>,
    asked: FuturesUnordered<BoxFuture<'static, Answer>>,
    asking: Asking,
    ask_at: Instant,
    /// The last status of the stream, and how long it came after the one before.
    streamed_at: Instant,
    apart: Duration,
    /// An answer, or an event, that was held up on its way is older than what came by another connection.
    newest_ms: u64,
}

impl Questions {
    pub(crate) fn new(
        clients: Clients,
        index: usize,
        address: String,
        owner: mpsc::Sender<Message>,
        closely: watch::Receiver<BTreeSet<String>>,
    ) -> Self {
        let (now, apart) = (Instant::now(), APART.1);
        let mut questions = Self {
            clients,
            index,
            address,
            owner,
            closely,
            of: None,
            asked: FuturesUnordered::new(),
            asking: Asking::of(apart, false),
            ask_at: now,
            streamed_at: now,
            apart,
            newest_ms: 0,
        };
        questions.pace();
        questions
    }

    /// Waits for that, and asks meanwhile.
    ///
    /// # Errors
    /// Another aircraft answers, or the owner is gone.
    pub(crate) async fn beside<T>(&mut self, what: impl Future<Output = T>) -> Result<T, String> {
        let mut what = pin!(what);
        loop {
            let (is_due, ask_at) = (self.may_ask(), self.ask_at);
            tokio::select! {
                done = &mut what => return Ok(done),
                Some(answer) = self.asked.next() => self.take(answer).await?,
                () = sleep_until(ask_at), if is_due => self.ask(),
                Ok(()) = self.closely.changed() => {
                    self.pace();
                    self.ask_at = self.ask_at.min(Instant::now() + self.asking.after);
                }
            }
        }
    }

    /// What answers at the address now says that it is this aircraft: another that was there is asked no more.
    pub(crate) fn identified(&mut self, id: &str) {
        // What was asked before may be answered by a program that has ended meanwhile.
        self.asked = FuturesUnordered::new();
        if self.of.as_ref().is_some_and(|(known, _)| known != id) {
            self.of = None;
        }
    }

    /// A status by the stream of this aircraft; `is_first` of that connection. Whether it is newer than what was heard before.
    ///
    /// # Errors
    /// There is no client for such an aircraft.
    pub(crate) fn is_news(
        &mut self,
        id: &str,
        status: &AircraftStatus,
        is_first: bool,
    ) -> Result<bool, String> {
        if self.of.is_none() {
            self.of = Some((id.to_owned(), self.clients.of(id)?));
        }
        let begins_anew = is_first && status.time_ms + BEGINS_ANEW_MS < self.newest_ms;
        let is_news = begins_anew || status.time_ms >= self.newest_ms;
        if is_news {
            self.newest_ms = status.time_ms;
        }
        Ok(is_news)
    }

    /// Statuses came by the stream, at once.
    pub(crate) fn streamed(&mut self, at: Instant) {
        self.apart = (at - self.streamed_at).clamp(APART.0, APART.1);
        self.pace();
        (self.streamed_at, self.ask_at) = (at, at + self.asking.after);
    }

    fn is_close(&self) -> bool {
        self.closely.borrow().contains(&self.address)
    }

    fn pace(&mut self) {
        self.asking = Asking::of(self.apart, self.is_close());
    }

    fn may_ask(&self) -> bool {
        let is_there = self.streamed_at.elapsed() < GONE_AFTER || self.is_close();
        self.of.is_some() && is_there && self.asked.len() < self.asking.at_once
    }

    fn ask(&mut self) {
        let Some((_, client)) = &self.of else { return };
        let (client, address) = (client.clone(), self.address.clone());
        self.asked.push(Box::pin(async move { client::answered(&client, &address, paths::STATUS).await }));
        self.ask_at = Instant::now() + self.asking.again_after;
    }

    async fn take(&mut self, answer: Answer) -> Result<(), String> {
        // One that does not answer shows by the stream, too.
        let (Ok((response, status)), Some((id, _))) = (answer, &self.of) else { return Ok(()) };
        client::check_key(self.clients.keys(), &response, id)?;
        if status.time_ms > self.newest_ms {
            self.newest_ms = status.time_ms;
            let message = Message::Status { index: self.index, status };
            self.owner.send(message).await.map_err(|_| String::new())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_stalled_sooner_where_an_effect_is_waited_for() {
        let ms = Duration::from_millis;
        for (apart_ms, is_close, after_ms, again_after_ms, at_once) in [
            (100, false, 300, 120, 4),
            (600, false, 1_300, 120, 4),
            (100, true, 100, 80, 8),
            (600, true, 100, 80, 8),
        ] {
            let expected = Asking { after: ms(after_ms), again_after: ms(again_after_ms), at_once };
            assert_eq!(Asking::of(ms(apart_ms), is_close), expected);
        }
    }
}
