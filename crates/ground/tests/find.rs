//! Aircraft that announce themselves by multicast DNS are found, once each; a name without an aircraft behind it is not.

use crate::support;

use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use support::{Fake, all_up, eventually, ground, id, picture};
use wingbeat_ground::find::SERVICE;

/// Announces on this computer alone.
fn announce(daemon: &ServiceDaemon, name: &str, port: u16) {
    let host = format!("{name}.local.");
    let info = ServiceInfo::new(SERVICE, name, &host, "127.0.0.1", port, &[("id", name)][..]);
    daemon.register(info.expect("a service")).expect("it is announced");
}

#[tokio::test(flavor = "multi_thread")]
async fn announced_aircraft_are_followed_once_and_names_without_one_are_not() {
    let Ok(daemon) = ServiceDaemon::new() else {
        println!("skipped: no socket for multicast DNS here");
        return;
    };
    daemon.disable_interface(IfKind::All).expect("it listens");
    daemon.enable_interface(IfKind::LoopbackV4).expect("it listens");
    let fakes = [Fake::start(1).await, Fake::start(2).await, Fake::start(3).await];
    // The first is listed, and announced too.
    let mut handle = ground(&fakes[..1]).await;
    picture(&handle, "the one that is listed reports", all_up).await;
    handle.find().expect("it finds");
    for (name, fake) in ["wb-a", "wb-b", "wb-c"].iter().zip(&fakes) {
        announce(&daemon, name, fake.address.port());
    }
    // The same aircraft under another name, and a port where nothing is.
    announce(&daemon, "wb-again", fakes[1].address.port());
    announce(&daemon, "wb-nothing", 9);
    let all = picture(&handle, "all three are up", |now| now.aircraft.len() >= 3 && all_up(now)).await;
    let ids: Vec<_> =
        all.aircraft.iter().filter_map(|one| one.status.as_ref()).map(|s| s.id.clone()).collect();
    assert_eq!(ids, [id(1), id(2), id(3)]);
    // One that was found is commanded like the others.
    let request = support::request("h", wingbeat_api::Command::Hold, &[]);
    handle.command(request).await.expect("it is sent");
    eventually("all receive it", async || fakes.iter().all(|fake| !fake.received().is_empty()).then_some(()))
        .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(handle.picture().await.expect("it runs").aircraft.len(), 3, "asked again, and added once");
    handle.stop().await;
    let _ = daemon.shutdown();
}
