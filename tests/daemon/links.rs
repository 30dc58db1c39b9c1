//! Links between whole daemons: what they lose of each other's probes, and tests of one link, over the simulated channel.

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;

use std::{collections::BTreeMap, time::Duration};

use aircraft::{flight_controller, until};
use client::ask;
use config::{config, tcp};
use tokio::{sync::watch, time::sleep};
use wingbeat_api::{ApiError, FleetLinks, LinkTestReport, LinkTestRequest, LinkTestRole, Links, paths};
use wingbeat_ground::remote::Remote;
use wingbeat_ground::{ConsoleConfig, Ground, Reach, run_link_test};
use wingbeat_hub::Hub;
use wingbeat_linktest::{Fit, Record, Report};
use wingbeat_onboard::{Clock, Config, Handle, keys::ConsoleKeys, start};
use wingbeat_protocol::muscop;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    keys::{CONSOLE, Keys, Signatures},
    motion::Profile,
};
use wingbeat_wire::{Role, VehicleId};

const FIRST: u64 = 0xa1;
/// Where the aircraft stand, metres east: fifteen pairs from 100 to 1300 m.
const EAST_M: [f64; 6] = [0.0, 100.0, 400.0, 650.0, 950.0, 1_300.0];

fn id(index: usize) -> String {
    VehicleId(FIRST + index as u64).to_string()
}

fn fleet_keys(count: usize) -> Keys {
    let ids = (0..count).map(|i| VehicleId(FIRST + i as u64));
    Keys::new(Signatures::Ed25519, 1, ids).unwrap()
}

fn keys(fleet: &Keys, signer: &wingbeat_wire::Signer) -> wingbeat_onboard::keys::Keys {
    wingbeat_onboard::keys::Keys { signer: signer.clone(), roster: Box::new(fleet.roster().clone()) }
}

struct Fleet {
    daemons: Vec<Handle>,
    _hub: Hub,
    _online: watch::Sender<bool>,
}

impl Fleet {
    /// Aircraft that stand, with or without keys, and know where they are.
    async fn standing(model: Model, east_m: &[f64], secured: Option<&Keys>, clock: Clock) -> Self {
        let channel = Channel::new(model, Draw::PerPacket, 5, east_m.len());
        let (hub, radios) = Hub::spawn(channel, east_m.len(), clock);
        let (sender, online) = watch::channel(true);
        let mut daemons = vec![];
        for (i, (east_m, radio)) in east_m.iter().zip(radios).enumerate() {
            let (profile, positions) = (Profile::Copter357, Some(hub.positions()));
            let place = (i as u8, *east_m);
            let port = flight_controller(profile, place, clock, positions, online.clone()).await;
            let me = VehicleId(FIRST + i as u64);
            let agent = wingbeat_agent::Config::new(muscop::Config::new(me, VehicleId(FIRST), 1));
            let config = Config {
                keys: match secured {
                    Some(fleet) => keys(fleet, fleet.signer(i)),
                    None => wingbeat_onboard::keys::Keys::insecure(),
                },
                link_probe_period: Some(Duration::from_secs(1)),
                ..config(agent, tcp(port))
            };
            daemons.push(start(config, clock, radio).await.unwrap());
        }
        for daemon in &daemons {
            until(daemon, "a position", |status| status.navigation.is_some()).await;
        }
        Self { daemons, _hub: hub, _online: sender }
    }

    fn addresses(&self) -> Vec<String> {
        self.daemons.iter().map(|daemon| daemon.address().to_string()).collect()
    }

    /// What aircraft `i` receives, once it has received each of the others.
    async fn links(&self, i: usize) -> Links {
        loop {
            let (code, answer) = ask(self.daemons[i].address(), "GET", paths::LINKS, "").await;
            let links: Links = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}"));
            if links.links.len() + 1 == self.daemons.len() {
                return links;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn stop(self) {
        for daemon in self.daemons {
            daemon.stop().await;
        }
    }
}

fn request(receivers: &[usize]) -> LinkTestRequest {
    LinkTestRequest {
        number: None,
        sender: id(0),
        receivers: receivers.iter().map(|i| id(*i)).collect(),
        rate_hz: 50.0,
        payload_bytes: 400,
        seconds: 30,
        unicast: false,
    }
}

fn records(files: &[(String, String)]) -> Vec<Record> {
    files.iter().map(|(_, text)| Record::from_csv(text).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_daemons_recover_the_model_that_the_channel_was_given() {
    let clock = Clock::start(10.0).unwrap();
    let fleet_keys = fleet_keys(EAST_M.len());
    let fleet = Fleet::standing(Model::Ieee80211a, &EAST_M, Some(&fleet_keys), clock).await;
    let console =
        ConsoleKeys { id: CONSOLE, role: Role::Operator, keys: keys(&fleet_keys, fleet_keys.console()) };
    let ground = Ground::start(wingbeat_ground::Config {
        bind: ([127, 0, 0, 1], 0).into(),
        aircraft: fleet.addresses(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_onboard::Hosts::default(),
        console: Some(ConsoleConfig { keys: console, clock, state: None, rtcm: None }),
        protection: Default::default(),
    })
    .await
    .unwrap();

    // In the background: received and lost of each pair, either direction, in windows of thirty that do not overlap.
    let mut pairs = BTreeMap::<(usize, usize), (u32, u32)>::new();
    let index = |id: &str| (0..EAST_M.len()).find(|i| self::id(*i) == id).unwrap();
    for _ in 0..8 {
        sleep(Duration::from_millis(3_100)).await;
        let (code, answer) = ask(ground.address(), "GET", paths::FLEET_LINKS, "").await;
        let matrix: FleetLinks = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}"));
        assert_eq!((matrix.aircraft.len(), matrix.missing.len()), (EAST_M.len(), 0));
        for links in &matrix.aircraft {
            for link in &links.links {
                let (to, from) = (index(&links.id), index(&link.from));
                let counted = pairs.entry((to.min(from), to.max(from))).or_default();
                *counted = (counted.0 + link.received, counted.1 + link.lost);
                let apart_m = (EAST_M[to] - EAST_M[from]).abs();
                let distance_m = link.distance_m.unwrap();
                assert!((distance_m - apart_m).abs() < 10.0, "{distance_m} m, expected {apart_m}");
            }
        }
    }
    assert_eq!(pairs.len(), 15);
    for ((a, b), (received, lost)) in pairs {
        let distance_m = EAST_M[b] - EAST_M[a];
        let expected = Model::Ieee80211a.loss(distance_m);
        let found = f64::from(lost) / f64::from(received + lost);
        println!("{distance_m} m: {found:.3} of {}, expected {expected:.3}", received + lost);
        assert!(
            received + lost >= 300 && (found - expected).abs() < 0.1,
            "{distance_m} m: {found}, {expected}"
        );
    }

    // On demand, from the first to all others, as the command line does it.
    let mut seen = 0;
    let reach = Reach::Ground(Remote::new(&ground.address().to_string(), None).expect("an address"));
    let files = run_link_test(reach, request(&[1, 2, 3, 4, 5]), |_| seen += 1).await.unwrap();
    let records = records(&files);
    assert!(seen > 0 && records.len() == 5);
    for (record, east_m) in records.iter().zip(&EAST_M[1..]) {
        let (report, expected) = (Report::of(record), Model::Ieee80211a.loss(*east_m));
        let loss = report.loss;
        println!("{east_m} m: {loss:.3} of {}, expected {expected:.3}", record.test.count);
        assert!((1_400..=1_500).contains(&record.test.count), "{}", record.test.count);
        assert!((loss - expected).abs() < 0.06, "{east_m} m: {loss}, {expected}");
        let known = record.distances();
        assert!(known.len() + 10 >= record.test.count as usize, "both records say where lost ones were");
        assert!(known.iter().all(|(distance_m, _)| (distance_m - east_m).abs() < 10.0));
    }
    let fit = Fit::of(&records, 50.0);
    for (distance_m, share) in fit.table().unwrap().rows() {
        assert!((share - Model::Ieee80211a.loss(*distance_m)).abs() < 0.1, "{distance_m} m: {share}");
    }
    ground.stop().await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_by_unicast_reaches_one_alone_and_a_command_that_recovers_ends_it() {
    let clock = Clock::start(5.0).unwrap();
    let fleet = Fleet::standing(Model::Unrestricted, &EAST_M[..3], None, clock).await;
    // Its address shows in its probes.
    fleet.links(0).await;
    let unicast = LinkTestRequest { unicast: true, seconds: 5, payload_bytes: 1_400, ..request(&[1]) };
    // The third records the same test, without being its receiver, by a request of its own.
    let mut eavesdropping = LinkTestRequest { number: Some(77), ..unicast.clone() };
    eavesdropping.receivers = vec![id(1), id(2)];
    eavesdropping.unicast = false;
    let (code, answer) = ask(
        fleet.daemons[2].address(),
        "POST",
        paths::LINK_TEST,
        &serde_json::to_string(&eavesdropping).unwrap(),
    )
    .await;
    assert_eq!(code, 202, "{answer}");
    let unicast = LinkTestRequest { number: Some(77), ..unicast };
    let files = run_link_test(Reach::Aircraft(fleet.addresses()), unicast, |_| {}).await.unwrap();
    let record = &records(&files)[0];
    assert!(record.test.count >= 240, "{}", record.test.count);
    assert_eq!(record.receptions().count(), record.test.count as usize, "nothing is lost here");
    let report = async |i: usize| -> LinkTestReport {
        let (_, answer) = ask(fleet.daemons[i].address(), "GET", paths::LINK_TEST, "").await;
        serde_json::from_str(&answer).unwrap()
    };
    assert_eq!((report(1).await.count, report(2).await.count), (record.test.count, 0));

    // A long one, which the operator's command ends at its sender.
    let long = LinkTestRequest { number: Some(78), seconds: 600, ..request(&[1]) };
    let body = serde_json::to_string(&long).unwrap();
    let sender = fleet.daemons[0].address();
    let (code, answer) = ask(sender, "POST", paths::LINK_TEST, &body).await;
    assert_eq!(code, 202, "{answer}");
    assert_eq!(report(0).await.role, LinkTestRole::Sender);
    let (code, answer) =
        ask(sender, "POST", paths::COMMANDS, r#"{"id":"r","command":"recover_control"}"#).await;
    assert_eq!(code, 202, "{answer}");
    let ended = report(0).await;
    assert_eq!(ended.ended.as_deref(), Some("a command that recovers"));
    sleep(Duration::from_millis(200)).await;
    assert_eq!(report(0).await.count, ended.count, "nothing is sent any more");
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_tested_is_refused_with_one_message() {
    let fleet = Fleet::standing(Model::Unrestricted, &EAST_M[..2], None, Clock::start(5.0).unwrap()).await;
    let refused = async |change: &dyn Fn(&mut LinkTestRequest)| {
        let mut test = request(&[1]);
        change(&mut test);
        let message =
            run_link_test(Reach::Aircraft(fleet.addresses()), test, |_| {}).await.unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    type Change = Box<dyn Fn(&mut LinkTestRequest)>;
    let cases: [(Change, &str); 6] = [
        (Box::new(|t| t.rate_hz = 101.0), "rate_hz: found 101, expected 1 to 100"),
        (Box::new(|t| t.payload_bytes = 1_473), "payload_bytes: found 1473, expected 86 to 1408"),
        (Box::new(|t| t.seconds = 601), "seconds: found 601, expected 1 to 600"),
        (Box::new(|t| t.receivers = vec![t.sender.clone()]), "receivers: found 1, expected 1 to 16"),
        (Box::new(|t| t.sender = id(9)), "expected 00000000000000aa among them"),
        (Box::new(|t| t.number = Some(0)), "number: found 0"),
    ];
    for (change, words) in cases {
        let message = refused(&change).await;
        assert!(message.contains(words), "{message}: expected {words}");
    }
    let address = fleet.daemons[0].address();
    for (method, path, body, expected, words) in [
        ("GET", "/api/v1/links/test".to_owned(), "", 404, "no link test since this daemon started"),
        ("DELETE", "/api/v1/links/test".to_owned(), "", 404, "no link test"),
        ("GET", "/api/v1/links/test/rows?from=-1".to_owned(), "", 400, "/api/v1/links/test/rows"),
        ("GET", "/api/v1/links/test/rows?form=1".to_owned(), "", 400, "form"),
        ("POST", "/api/v1/links/test".to_owned(), r#"{"sender":"1"}"#, 400, "/api/v1/links/test"),
    ] {
        let (code, answer) = ask(address, method, &path, body).await;
        let error: ApiError = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}"));
        assert!(code == expected && error.message.contains(words), "{method} {path}: {code} {answer}");
    }
    // Nothing listens there.
    let nowhere = Reach::Ground(Remote::new("127.0.0.1:1", None).expect("an address"));
    let message = run_link_test(nowhere, request(&[1]), |_| {}).await.unwrap_err().to_string();
    assert!(message.contains("127.0.0.1:1: connection refused"), "{message}");
    // One of two refuses: neither runs.
    let one = LinkTestRequest { number: Some(5), ..request(&[1]) };
    let body = serde_json::to_string(&one).unwrap();
    let (code, _) = ask(fleet.daemons[0].address(), "POST", paths::LINK_TEST, &body).await;
    assert_eq!(code, 202);
    // The receiver may have received the other's datagrams, and is asked first.
    let message = refused(&|_| {}).await;
    let words = ["found test 5 running, expected none", "found a datagram of another test"];
    assert!(words.iter().any(|words| message.contains(words)), "{message}");
    let running = async |i: usize| {
        let (_, answer) = ask(fleet.daemons[i].address(), "GET", paths::LINK_TEST, "").await;
        // None at all where it refused.
        serde_json::from_str::<LinkTestReport>(&answer).is_ok_and(|report| report.ended.is_none())
    };
    assert!(running(0).await && !running(1).await);
    fleet.stop().await;
}
