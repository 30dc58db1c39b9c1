//! Holding the lease of one aircraft: taken again each second for as long as the service follows it. While
//! it is held the aircraft sends its flight controller a ground station's heartbeat; when the service dies it
//! expires.

use std::time::Duration;

use reqwest::Client;
use tokio::time::{MissedTickBehavior, interval};
use wingbeat_api::{LeaseRequest, paths};

use crate::client;

/// Between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Four renewals may be lost.
const TTL_MS: u64 = 5_000;
/// One attempt, the connection included; the next is then due anyway.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);

/// This service's name on the network: the computer's and its port, so that after a restart it is the same.
pub(crate) fn console(port: u16) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // The aircraft takes 64 characters.
    let host: String = host.trim().chars().filter(|c| !c.is_control()).take(50).collect();
    format!("{}:{port}", if host.is_empty() { "ground" } else { &host })
}

/// Takes the lease and renews it until dropped. An aircraft that another console holds is asked again, and
/// shows in its status which that is.
pub(crate) async fn hold(client: Client, address: String, console: String) {
    let mut logged = String::new();
    let mut tick = interval(RENEW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let body = LeaseRequest { console: console.clone(), ttl_ms: TTL_MS };
        let request = client.post(format!("{address}{}", paths::LEASE)).json(&body).timeout(ATTEMPT_LIMIT);
        let answer = match request.send().await {
            Ok(response) if response.status().is_success() => String::new(),
            Ok(mut response) => {
                let status = response.status();
                client::body(&mut response)
                    .await
                    .map_or_else(|why| why, |body| client::refusal(status, &body))
            }
            Err(error) => client::reason(&error),
        };
        if answer != logged {
            tracing::debug!(address, answer, "lease");
            logged = answer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[test]
    fn the_name_is_the_computers_and_fits() {
        let name = console(8_700);
        assert!(name.ends_with(":8700") && name.len() > 5 && name.chars().count() <= 64, "{name}");
    }

    #[tokio::test]
    async fn a_lease_that_another_holds_is_asked_for_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let holding = tokio::spawn(hold(client::new().expect("a client"), address, "one:1".to_owned()));
        for answer in ["409 Conflict", "500 Internal Server Error", "200 OK", "200 OK"] {
            let (mut stream, _) = listener.accept().await.expect("a request");
            let mut request = String::new();
            while !request.contains("ttl_ms") {
                let mut buffer = [0; 1024];
                let length = stream.read(&mut buffer).await.expect("a request");
                request += &String::from_utf8_lossy(&buffer[..length]);
            }
            assert!(request.starts_with("POST /api/v1/lease ") && request.contains(r#""console":"one:1""#));
            let reply = format!("HTTP/1.1 {answer}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            stream.write_all(reply.as_bytes()).await.expect("the service listens");
        }
        holding.abort();
    }
}
