//! Following one aircraft: its identity, then its event stream, for ever. Every message and every reason
//! for silence goes to the owner.

use std::num::NonZeroUsize;
use std::time::Duration;

use reqwest::Client;
use sse_core::{MessageEvent, PayloadTooLargeError, SseDecoder, SseEvent};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use wingbeat_api::paths;

use crate::client::{self, ANSWER_LIMIT};
use crate::owner::Message;

/// First and last wait before the next attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A stream without an event for this long is closed: fifteen statuses are missing, and a new connection may
/// get through where an old one waits for retransmissions.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// More than any status with a hundred neighbours needs; a sender that exceeds it is broken.
const EVENT_LEN_MAX: NonZeroUsize = NonZeroUsize::new(1 << 20).expect("not zero");

/// Follows one aircraft until the owner is gone.
pub(crate) async fn follow(
    client: Client,
    keys: Option<wingbeat_tls::Identity>,
    index: usize,
    address: String,
    owner: mpsc::Sender<Message>,
) {
    let mut wait = BACKOFF.0;
    while !owner.is_closed() {
        let mut received = false;
        let reason = listen((&client, keys.as_ref()), index, &address, &owner, &mut received).await;
        if owner.send(Message::Troubled { index, reason }).await.is_err() {
            return;
        }
        wait = if received { BACKOFF.0 } else { BACKOFF.1.min(wait * 2) };
        sleep(wait).await;
    }
}

/// One connection; returns why it ended. `received` is set when it carries a status.
async fn listen(
    (client, keys): (&Client, Option<&wingbeat_tls::Identity>),
    index: usize,
    address: &str,
    owner: &mpsc::Sender<Message>,
    received: &mut bool,
) -> String {
    let id = match client::identity(client, keys, address).await {
        Ok(identity) => {
            let id = identity.id.clone();
            if owner.send(Message::Identified { index, identity }).await.is_err() {
                return String::new();
            }
            id
        }
        Err(reason) => return reason,
    };
    let request = client.get(format!("{address}{}", paths::EVENTS)).header("accept", "text/event-stream");
    let mut response = match timeout(ANSWER_LIMIT, request.send()).await {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Ok(response)) => return format!("{} answers {}", paths::EVENTS, response.status()),
        Ok(Err(error)) => return client::reason(&error),
        Err(_) => return "no answer in time".to_owned(),
    };
    // It may be another connection.
    if let Err(reason) = client::check_key(keys, &response, &id) {
        return reason;
    }
    let mut decoder = SseDecoder::with_limit(EVENT_LEN_MAX);
    loop {
        let mut chunk = match timeout(SILENCE_LIMIT, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return "it closed its event stream".to_owned(),
            Ok(Err(error)) => return client::reason(&error),
            Err(_) => return format!("its event stream was silent for {} s", SILENCE_LIMIT.as_secs()),
        };
        while let Some(event) = decoder.next(&mut chunk) {
            let event = match event {
                Ok(SseEvent::Message(event)) => event,
                // It proposes a wait before reconnecting; ours is bounded.
                Ok(SseEvent::Retry(_)) => continue,
                Err(PayloadTooLargeError) => {
                    return format!("its event stream has an event of more than {EVENT_LEN_MAX} bytes");
                }
            };
            let message = match understand(index, &event) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(reason) => Message::Troubled { index, reason },
            };
            *received = *received || matches!(message, Message::Status { .. });
            if owner.send(message).await.is_err() {
                return String::new();
            }
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
    use tokio::net::TcpListener;
    use wingbeat_api::Identity;

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
        let identity = || async {
            axum::Json(Identity {
                id: "00000000000000a1".into(),
                name: "one".into(),
                version: "0".into(),
                api_version: 1,
                protocol: "mission".into(),
            })
        };
        let router = Router::new().route(paths::IDENTITY, get(identity)).route(paths::EVENTS, get(events));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let (owner, mut messages) = mpsc::channel(64);
        let reason = listen((&client::new(None).unwrap(), None), 0, &address, &owner, &mut false).await;
        server.abort();
        drop(owner);
        let mut lines = vec![];
        while let Some(message) = messages.recv().await {
            if let Message::Log { line, .. } = message {
                lines.push(line.text);
            }
        }
        (lines, reason)
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
