//! Following one aircraft: its identity, then its event stream, for ever, and questions beside it ([`crate::ask`]). Every message and
//! every reason for silence goes to the owner.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::time::Duration;

use sse_core::{MessageEvent, PayloadTooLargeError, SseDecoder, SseEvent};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use wingbeat_api::paths;

use crate::ask::Questions;
use crate::client::{self, ANSWER_LIMIT, Clients};
use crate::owner::Message;

/// First and last wait before the next attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A stream without an event for this long is closed: fifteen statuses are missing, and a new connection may
/// get through where an old one waits for retransmissions.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// More than any status with a hundred neighbours needs; a sender that exceeds it is broken.
const EVENT_LEN_MAX: NonZeroUsize = NonZeroUsize::new(1 << 20).expect("not zero");

/// Follows one aircraft until the owner is gone. `closely` has the addresses of those that are to show the effect of a recovery command.
pub(crate) async fn follow(
    clients: Clients,
    index: usize,
    address: String,
    owner: mpsc::Sender<Message>,
    closely: watch::Receiver<BTreeSet<String>>,
) {
    let mut questions = Questions::new(clients.clone(), index, address.clone(), owner.clone(), closely);
    let mut wait = BACKOFF.0;
    while !owner.is_closed() {
        let mut received = false;
        let Err(reason) = listen(&clients, index, &address, &owner, &mut questions, &mut received).await;
        if owner.send(Message::Troubled { index, reason }).await.is_err() {
            return;
        }
        wait = if received { BACKOFF.0 } else { BACKOFF.1.min(wait * 2) };
        if let Err(reason) = questions.beside(sleep(wait)).await {
            let _ = owner.send(Message::Troubled { index, reason }).await;
            sleep(wait).await;
        }
    }
}

/// One connection, until it ends. `received` is set when it carries a status.
///
/// # Errors
/// Why it ended.
async fn listen(
    clients: &Clients,
    index: usize,
    address: &str,
    owner: &mpsc::Sender<Message>,
    questions: &mut Questions,
    received: &mut bool,
) -> Result<Infallible, String> {
    let identity = questions.beside(client::identity(clients, address)).await??;
    let id = identity.id.clone();
    questions.identified(&id);
    let gone = |_| String::new();
    owner.send(Message::Identified { index, identity }).await.map_err(gone)?;
    let request =
        clients.any().get(format!("{address}{}", paths::EVENTS)).header("accept", "text/event-stream");
    let mut response = match questions.beside(timeout(ANSWER_LIMIT, request.send())).await? {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Ok(response)) => return Err(format!("{} answers {}", paths::EVENTS, response.status())),
        Ok(Err(error)) => return Err(client::reason(&error)),
        Err(_) => return Err("no answer in time".to_owned()),
    };
    // It may be another connection.
    client::check_key(clients.keys(), &response, &id)?;
    let mut decoder = SseDecoder::with_limit(EVENT_LEN_MAX);
    let mut heard_at = Instant::now();
    loop {
        let piece = questions.beside(timeout_at(heard_at + SILENCE_LIMIT, response.chunk())).await?;
        let mut chunk = match piece {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Err("it closed its event stream".to_owned()),
            Ok(Err(error)) => return Err(client::reason(&error)),
            Err(_) => return Err(format!("its event stream was silent for {} s", SILENCE_LIMIT.as_secs())),
        };
        heard_at = Instant::now();
        let mut is_status = false;
        while let Some(event) = decoder.next(&mut chunk) {
            let event = match event {
                Ok(SseEvent::Message(event)) => event,
                // It proposes a wait before reconnecting; ours is bounded.
                Ok(SseEvent::Retry(_)) => continue,
                Err(PayloadTooLargeError) => {
                    return Err(format!("its event stream has an event of more than {EVENT_LEN_MAX} bytes"));
                }
            };
            let message = match understand(index, &event) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(reason) => Message::Troubled { index, reason },
            };
            if let Message::Status { status, .. } = &message {
                is_status = true;
                if !questions.is_news(&id, status, !*received)? {
                    continue;
                }
                *received = true;
            }
            owner.send(message).await.map_err(gone)?;
        }
        // One may come in several pieces, at once.
        if is_status {
            questions.streamed(heard_at);
        }
    }
}

/// What an event means; `None` for a kind that a newer aircraft may send.
fn understand(index: usize, event: &MessageEvent) -> Result<Option<Message>, String> {
    let wrong =
        |error: serde_json::Error| format!("its event `{}` is not what was expected: {error}", event.event);
    match &*event.event {
        "status" => {
            let status = serde_json::from_str(&event.data).map_err(wrong)?;
            Ok(Some(Message::Status { index, status }))
        }
        "log" => {
            let line = serde_json::from_str(&event.data).map_err(wrong)?;
            Ok(Some(Message::Log { index, line }))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures_util::StreamExt as _;
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;
    use wingbeat_api::{AircraftStatus, Identity};

    use super::*;

    /// What the owner receives of an aircraft whose event stream consists of these pieces and then ends: the
    /// log lines, and why the connection ended.
    async fn followed(pieces: Vec<Bytes>) -> (Vec<String>, String) {
        let pieces = Arc::new(pieces);
        let events = move || {
            let pieces = Arc::clone(&pieces);
            async move {
                let pieces: Vec<_> = pieces.iter().cloned().map(Ok::<_, std::io::Error>).collect();
                Body::from_stream(futures_util::stream::iter(pieces))
            }
        };
        let (address, server) = serve(Router::new().route(paths::EVENTS, get(events))).await;
        let (owner, mut messages) = mpsc::channel(64);
        let reason = listened(address, owner).await;
        server.abort();
        let mut lines = vec![];
        while let Some(message) = messages.recv().await {
            if let Message::Log { line, .. } = message {
                lines.push(line.text);
            }
        }
        (lines, reason)
    }

    /// Why the connection to that address ended.
    async fn listened(address: String, owner: mpsc::Sender<Message>) -> String {
        let (clients, closely) = (Clients::new(None).unwrap(), watch::Sender::default());
        let mut questions =
            Questions::new(clients.clone(), 0, address.clone(), owner.clone(), closely.subscribe());
        let Err(reason) = listen(&clients, 0, &address, &owner, &mut questions, &mut false).await;
        reason
    }

    /// An aircraft of tests: its address and its task.
    async fn serve(router: Router) -> (String, JoinHandle<std::io::Result<()>>) {
        let identity = || async {
            axum::Json(Identity {
                id: "00000000000000a1".into(),
                name: "one".into(),
                version: "0".into(),
                api_version: 1,
                protocol: "mission".into(),
            })
        };
        let router = router.route(paths::IDENTITY, get(identity));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        (address, tokio::spawn(async move { axum::serve(listener, router).await }))
    }

    fn at(time_ms: u64) -> AircraftStatus {
        AircraftStatus {
            time_ms,
            ..crate::fleet::tests::status("00000000000000a1", wingbeat_api::StateId::SetupFinished)
        }
    }

    fn event(time_ms: u64) -> String {
        format!("event: status\ndata: {}\n\n", serde_json::to_string(&at(time_ms)).unwrap())
    }

    #[tokio::test]
    async fn a_stream_that_stalls_is_passed_by_questions() {
        let goes_on = Arc::new(tokio::sync::Notify::new());
        let stalled = Arc::clone(&goes_on);
        let events = move || {
            let stalled = Arc::clone(&stalled);
            async move {
                let rest = async move {
                    stalled.notified().await;
                    // What was lost comes at last, and then what is new.
                    event(1_400) + &event(2_000)
                };
                let begin = futures_util::stream::iter([event(1_000)]);
                let pieces = begin.chain(futures_util::stream::once(rest));
                Body::from_stream(pieces.map(|text| Ok::<_, std::io::Error>(Bytes::from(text))))
            }
        };
        let now = move || async move { axum::Json(at(1_500)) };
        let router = Router::new().route(paths::EVENTS, get(events)).route(paths::STATUS, get(now));
        let (address, server) = serve(router).await;
        let (owner, mut messages) = mpsc::channel(64);
        let listening = tokio::spawn(listened(address, owner));
        let mut times_ms = Vec::new();
        while let Some(message) = messages.recv().await {
            let Message::Status { status, .. } = message else { continue };
            times_ms.push(status.time_ms);
            if status.time_ms == 1_500 {
                goes_on.notify_one();
            }
        }
        server.abort();
        assert_eq!(listening.await.unwrap(), "it closed its event stream");
        assert_eq!(times_ms, [1_000, 1_500, 2_000]);
    }

    /// Two aircraft whose streams consist of these pieces, each so many milliseconds after the one before, and then stall: which of both, which
    /// begin one after the other, is asked for its status first. `watched`: the effect of a recovery is waited for at the second.
    async fn asked_first(pieces: [Vec<(u64, String)>; 2], watched: bool) -> Option<&'static str> {
        let (asked, mut order) = mpsc::unbounded_channel();
        let closely = watch::Sender::default();
        let (owner, mut messages) = mpsc::channel(64);
        let mut servers = Vec::new();
        for (name, pieces) in ["first", "second"].into_iter().zip(pieces) {
            let events = move || async move {
                let pieces = futures_util::stream::iter(pieces).then(|(after_ms, text)| async move {
                    sleep(Duration::from_millis(after_ms)).await;
                    Ok::<_, std::io::Error>(Bytes::from(text))
                });
                Body::from_stream(pieces.chain(futures_util::stream::pending()))
            };
            let asked = asked.clone();
            let now = move || async move {
                let _ = asked.send(name);
                axum::Json(at(1))
            };
            let router = Router::new().route(paths::EVENTS, get(events)).route(paths::STATUS, get(now));
            let (address, server) = serve(router).await;
            servers.push(server);
            let clients = Clients::new(None).unwrap();
            tokio::spawn(follow(clients, 0, address.clone(), owner.clone(), closely.subscribe()));
            while !matches!(messages.recv().await, Some(Message::Status { .. })) {}
            if watched && name == "second" {
                closely.send_replace(BTreeSet::from([address]));
            }
        }
        let first = order.recv().await;
        servers.iter().for_each(JoinHandle::abort);
        first
    }

    #[tokio::test]
    async fn the_aircraft_that_is_watched_is_asked_sooner() {
        // Where more than a second passes between both streams, the machine is at fault, and is given another chance.
        for _ in 0..5 {
            if asked_first([vec![(0, event(1))], vec![(0, event(1))]], true).await == Some("second") {
                return;
            }
        }
        panic!("five times the one that was not watched was asked first");
    }

    #[tokio::test]
    async fn a_status_in_two_pieces_makes_no_stream_look_faster() {
        let whole = vec![(0, event(1)), (600, event(2))];
        let text = event(2);
        let (begin, end) = text.split_at(500);
        let split = vec![(0, event(1)), (600, begin.to_owned()), (5, end.to_owned())];
        assert_eq!(asked_first([whole, split], false).await, Some("first"));
    }

    #[tokio::test]
    async fn an_answer_that_comes_late_is_older_than_the_stream() {
        let (asked, late) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (was_asked, is_late) = (Arc::clone(&asked), Arc::clone(&late));
        let events = move || async move {
            let rest = async move {
                was_asked.notified().await;
                event(2_000)
            };
            let end = async move {
                sleep(Duration::from_millis(300)).await;
                event(3_000)
            };
            let pieces = futures_util::stream::iter([event(1_000)])
                .chain(futures_util::stream::once(rest))
                .chain(futures_util::stream::once(end));
            Body::from_stream(pieces.map(|text| Ok::<_, std::io::Error>(Bytes::from(text))))
        };
        let now = move || async move {
            asked.notify_one();
            is_late.notified().await;
            axum::Json(at(1_500))
        };
        let router = Router::new().route(paths::EVENTS, get(events)).route(paths::STATUS, get(now));
        let (address, server) = serve(router).await;
        let (owner, mut messages) = mpsc::channel(64);
        tokio::spawn(listened(address, owner));
        let mut times_ms = Vec::new();
        while let Some(message) = messages.recv().await {
            let Message::Status { status, .. } = message else { continue };
            times_ms.push(status.time_ms);
            if status.time_ms == 2_000 {
                late.notify_waiters();
                late.notify_one();
            }
        }
        server.abort();
        assert_eq!(times_ms, [1_000, 2_000, 3_000]);
    }

    /// Between two connections the aircraft is asked: the first stream ends, and the second is never answered.
    #[tokio::test]
    async fn an_aircraft_is_asked_while_its_stream_is_connected_again() {
        let connected = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let events = move || {
            let is_first = connected.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            async move {
                match is_first {
                    true => Body::from(event(1_000)),
                    false => std::future::pending().await,
                }
            }
        };
        let asked = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let now = move || {
            let times = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move { axum::Json(at(1_500 + times)) }
        };
        let router = Router::new().route(paths::EVENTS, get(events)).route(paths::STATUS, get(now));
        let (address, server) = serve(router).await;
        let (owner, mut messages) = mpsc::channel(64);
        let closely = watch::Sender::default();
        tokio::spawn(follow(Clients::new(None).unwrap(), 0, address, owner, closely.subscribe()));
        let (mut times_ms, mut reasons) = (Vec::new(), Vec::new());
        while times_ms.len() < 4 {
            match messages.recv().await.expect("it is followed") {
                Message::Status { status, .. } => times_ms.push(status.time_ms),
                Message::Troubled { reason, .. } => reasons.push(reason),
                _ => {}
            }
        }
        server.abort();
        assert_eq!(times_ms, [1_000, 1_500, 1_501, 1_502]);
        assert_eq!(reasons, ["it closed its event stream"]);
    }

    fn log_event(text: &str) -> String {
        let line = format!(r#"{{"id":"a","time_ms":1,"severity":"info","text":"{text}"}}"#);
        format!(": keep-alive\r\nretry: 5\nevent: log\r\ndata: {line}\r\n\r\nevent: newer\ndata: x\n\n")
    }

    #[tokio::test]
    async fn every_cut_of_a_stream_gives_the_same_events() {
        let text = log_event("é") + &log_event("b");
        for size in [1, 2, 7, 64, text.len()] {
            let pieces = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let (lines, reason) = followed(pieces).await;
            assert_eq!((lines.join(" "), reason.as_str()), ("é b".to_owned(), "it closed its event stream"));
        }
    }

    #[tokio::test]
    async fn an_event_without_end_is_refused() {
        let (begin, piece) = (Bytes::from(log_event("a") + "data: "), Bytes::from(vec![b'x'; 1 << 16]));
        let pieces = std::iter::once(begin).chain(std::iter::repeat_n(piece, 17)).collect();
        let (lines, reason) = followed(pieces).await;
        assert_eq!(lines, ["a"]);
        assert_eq!(reason, "its event stream has an event of more than 1048576 bytes");
    }
}
