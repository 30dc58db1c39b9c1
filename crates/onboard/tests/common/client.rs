//! A client of the API that can also misbehave.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Longer than an answer takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request; the status code and the body.
pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    ask_with("", address, method, path, body).await
}

/// The same with the token of a lease.
pub(crate) async fn ask_with(
    token: &str,
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         wingbeat-lease: {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(address, request.as_bytes(), true).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no HTTP: {answer:?}")), body.into())
}

/// Bytes out, whatever comes back until the daemon disconnects. Half a request is followed by our own end,
/// because its rest would be awaited; a whole one is not, because the daemon drops a client that has gone.
pub(crate) async fn raw(address: SocketAddr, request: &[u8], whole: bool) -> String {
    timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A daemon that disconnects early has refused the rest.
        let _ = stream.write_all(request).await;
        if !whole {
            let _ = stream.shutdown().await;
        }
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
    .expect("an answer or the end")
}
