//! What the autopilot gets, from whom, in order.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use wingbeat_autopilot::{codec::Decoder, dialect::MavMessage};

/// What the autopilot received: sender's system and component, and the message.
pub(crate) type Received = Arc<Mutex<Vec<(u32, u8, MavMessage)>>>;

/// Carries bytes between the daemon and the flight controller, and writes down what the latter gets.
pub(crate) async fn spy(far: SocketAddr) -> (SocketAddr, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, received) = (listener.local_addr().unwrap(), Received::default());
    let book = received.clone();
    tokio::spawn(async move {
        let (mut daemon, mut autopilot) =
            (listener.accept().await.unwrap().0, TcpStream::connect(far).await.unwrap());
        let (mut decoder, mut up, mut down) = (Decoder::default(), [0; 4096], [0; 4096]);
        loop {
            tokio::select! {
                Ok(length @ 1..) = daemon.read(&mut up) => {
                    decoder.push(&up[..length], |frame| {
                        book.lock().unwrap().push((frame.header.system_id, frame.header.component_id, frame.message));
                    });
                    autopilot.write_all(&up[..length]).await.unwrap();
                }
                Ok(length @ 1..) = autopilot.read(&mut down) => {
                    if daemon.write_all(&down[..length]).await.is_err() { return }
                }
                else => return,
            }
        }
    });
    (address, received)
}
