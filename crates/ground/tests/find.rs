//! Aircraft that announce themselves by multicast DNS, or broadcast on the radio, are found, once each; a name or a datagram without an
//! aircraft behind it is not.

use crate::support;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use support::{Fake, all_up, eventually, ground, id, picture};
use wingbeat_ground::Listening;
use wingbeat_ground::find::SERVICE;
use wingbeat_radio::{Destination, UdpBroadcast, UdpConfig};
use wingbeat_wire::{Draft, FleetKey, Message, Point, Signer, VehicleId};

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

/// Broadcasts once on the loopback interface, from one of its addresses.
fn broadcast(from: Ipv4Addr, port: u16, number: u64, counter: u64, by: &Signer) {
    let at = Point { latitude_e7: 394_800_000, longitude_e7: -3_400_000, height_mm: 0 };
    let mut draft = Draft::default();
    draft.write(VehicleId(number), counter, 0, &Message::Alive { at }).expect("it fits");
    let socket = UdpSocket::bind((from, 0)).expect("a port");
    socket.set_broadcast(true).expect("it broadcasts");
    socket.send_to(by.seal(&mut draft), ("127.255.255.255", port)).expect("it is sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn aircraft_are_followed_by_their_datagrams_once_and_what_no_aircraft_answers_for_is_shown() {
    let place = |last: u8| Ipv4Addr::new(127, 0, 0, last);
    let first = Fake::start(1).await;
    // The others have addresses of their own, and the port that the first has by chance.
    let api_port = first.address.port();
    let second = Fake::start_at(SocketAddr::from((place(2), api_port)), &id(2)).await;
    let fourth = Fake::start_at(SocketAddr::from((place(4), api_port)), &id(4)).await;
    // The first is listed.
    let mut handle = ground(std::slice::from_ref(&first)).await;
    picture(&handle, "the one that is listed reports", all_up).await;
    assert_eq!(handle.picture().await.expect("it runs").listening, None);

    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let loopback = Destination::Broadcast(Ipv4Addr::new(127, 255, 255, 255));
    let radio = UdpBroadcast::spawn(UdpConfig { interface: None, port, destination: loopback });
    handle.listen(Listening { radio: format!("lo:{port}"), api_port }, radio);
    picture(&handle, "it listens", |now| now.listening.as_ref().is_some_and(|l| l.problem.is_none())).await;

    let open = Signer::insecure();
    let keyed = Signer::new(&[1; 32], 1, FleetKey([3; 32]));
    for counter in 1..=3 {
        broadcast(place(1), port, 1, counter, &open);
        broadcast(place(2), port, 2, counter, &open);
        // Nothing answers there, and there another.
        broadcast(place(3), port, 3, counter, &open);
        broadcast(place(4), port, 5, counter, &open);
        broadcast(place(4), port, 6, counter, &keyed);
    }
    let all = picture(&handle, "the second is found, and why the others are not", |now| {
        now.aircraft.len() == 2
            && all_up(now)
            && now.listening.as_ref().is_some_and(|l| {
                // All senders are known after the first round; later ones may still be on their way.
                l.received == 4
                    && l.refused.iter().map(|r| r.count).sum::<u64>() >= 3
                    && l.unanswered.iter().all(|one| one.problem != "is being asked")
            })
    })
    .await;
    let ids: Vec<_> =
        all.aircraft.iter().filter_map(|one| one.status.as_ref()).map(|s| s.id.clone()).collect();
    assert_eq!(ids, [id(1), id(2)]);
    let listening = all.listening.expect("it listens");
    let unanswered: Vec<_> = listening
        .unanswered
        .iter()
        .map(|one| (one.id.clone(), one.address.as_str(), one.problem.as_str()))
        .collect();
    let other = format!("found the aircraft {} at its address, expected the sender", id(4));
    assert_eq!(
        unanswered,
        [(id(3), "127.0.0.3", "connection refused"), (id(5), "127.0.0.4", other.as_str())]
    );
    let refused: Vec<_> = listening.refused.iter().map(|r| (r.reason.as_str(), r.count)).collect();
    assert_eq!(refused, [("version", 3)], "signed, and this console has no keys");
    // Nothing was commanded by what was received.
    assert!([&first, &second, &fourth].iter().all(|fake| fake.received().is_empty()));

    // One that is found is commanded like the others.
    let request = support::request("h", wingbeat_api::Command::Hold, &[]);
    handle.command(request).await.expect("it is sent");
    eventually("both receive it", async || {
        [&first, &second].iter().all(|fake| !fake.received().is_empty()).then_some(())
    })
    .await;
    assert!(fourth.received().is_empty());
    handle.stop().await;
}
