//! Following one aircraft: its identity, then its event stream, for ever. Every message and every reason
//! for silence goes to the owner.

use std::time::Duration;

use reqwest::Client;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use wingbeat_api::paths;

use crate::client::{self, ANSWER_LIMIT};
use crate::owner::Message;
use crate::sse;

/// First and last wait before the next attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A stream that is silent this long is given up: fifteen statuses are missing, and a new connection may
/// get through where an old one waits for retransmissions.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// Follows one aircraft until the owner is gone.
pub(crate) async fn follow(client: Client, index: usize, address: String, owner: mpsc::Sender<Message>) {
    let mut wait = BACKOFF.0;
    while !owner.is_closed() {
        let mut received = false;
        let reason = listen(&client, index, &address, &owner, &mut received).await;
        if owner.send(Message::Troubled { index, reason }).await.is_err() {
            return;
        }
        wait = if received { BACKOFF.0 } else { BACKOFF.1.min(wait * 2) };
        sleep(wait).await;
    }
}

/// One connection; returns why it ended. `received` says whether it ever carried a status.
async fn listen(
    client: &Client,
    index: usize,
    address: &str,
    owner: &mpsc::Sender<Message>,
    received: &mut bool,
) -> String {
    match client::identity(client, address).await {
        Ok(identity) => {
            if owner.send(Message::Identified { index, identity }).await.is_err() {
                return String::new();
            }
        }
        Err(reason) => return reason,
    }
    let request = client.get(format!("{address}{}", paths::EVENTS)).header("accept", "text/event-stream");
    let mut response = match timeout(ANSWER_LIMIT, request.send()).await {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Ok(response)) => return format!("{} answers {}", paths::EVENTS, response.status()),
        Ok(Err(error)) => return client::reason(&error),
        Err(_) => return "no answer in time".to_owned(),
    };
    let (mut parser, mut events) = (sse::Parser::default(), Vec::new());
    loop {
        let chunk = match timeout(SILENCE_LIMIT, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return "it closed its event stream".to_owned(),
            Ok(Err(error)) => return client::reason(&error),
            Err(_) => return format!("its event stream was silent for {} s", SILENCE_LIMIT.as_secs()),
        };
        if let Err(broken) = parser.feed(&chunk, &mut events) {
            return broken.to_string();
        }
        for event in events.drain(..) {
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
fn understand(index: usize, event: &sse::Event) -> Result<Option<Message>, String> {
    let wrong =
        |error: serde_json::Error| format!("its event `{}` is not what was expected: {error}", event.name);
    match event.name.as_str() {
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
