//! Keys of a fleet, from the request to the next epoch, against whole daemons.

use crate::common::aircraft;
use crate::common::config;
use crate::common::operator;

use std::path::PathBuf;

use aircraft::{flight_controller, until};
use config::config;
use operator::send;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
};
use wingbeat_api::{AircraftStatus, ApiError, CommandReply, KeysValidity, LeaseGrant, paths};
use wingbeat_ground::{Receipt, push_keys};
use wingbeat_hub::{Hub, HubRadio};
use wingbeat_link::Endpoint;
use wingbeat_onboard::{
    Clock, Config, Handle,
    keys::{
        Bundle, ConsoleKeys, Enrolled, Held, Store, Timestamp,
        enrolment::{self, Change},
    },
    start,
};
use wingbeat_protocol::muscop;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    keys::CONSOLE,
    motion::Profile,
};
use wingbeat_tls::Identity;
use wingbeat_wire::{Role, VehicleId};

const ONE: VehicleId = VehicleId(0xa1);
const TWO: VehicleId = VehicleId(0xa2);
const THREE: VehicleId = VehicleId(0xa3);
const LOST_CONSOLE: VehicleId = VehicleId(0xc2);
const OCTETS: &str = "application/octet-stream";

/// The operator's computer, and the files of each aircraft.
struct Fleet {
    folder: tempfile::TempDir,
    made: Timestamp,
}

impl Fleet {
    /// Its bundles hold for 30 days from then on.
    fn made(made: Timestamp) -> Self {
        let fleet = Self { folder: tempfile::tempdir().unwrap(), made };
        enrolment::init(&fleet.path("fleet"), made, 30).unwrap();
        fleet
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self, id: VehicleId) -> Store {
        Store::of_aircraft(id, self.path(&format!("{id}.key")), self.path(&format!("{id}.bundle")))
    }

    fn change(&self, change: &Change) -> Bundle {
        enrolment::change(&self.path("fleet"), change, self.made).unwrap()
    }

    fn enrol(&self, id: VehicleId) -> Bundle {
        let request = self.store(id).request().unwrap();
        self.change(&Change::Enrol { request, role: Role::Aircraft })
    }

    /// Enrols another console.
    fn add_console(&self, id: VehicleId) {
        let request = Store::of_console(id, &self.path(&id.to_string())).request().unwrap();
        self.change(&Change::Enrol { request, role: Role::Operator });
    }

    /// A console that accepts this.
    fn console(&self, id: VehicleId, bundle: &Bundle) -> Desk {
        let keys = Store::of_console(id, &self.path(&id.to_string())).accept(bundle.text()).unwrap().keys;
        Desk(ConsoleKeys { id, role: Role::Operator, keys })
    }

    /// A daemon with what its aircraft holds.
    async fn start(
        &self,
        id: VehicleId,
        aircraft: usize,
        autopilot: Endpoint,
        clock: Clock,
        radio: HubRadio,
    ) -> Handle {
        let store = self.store(id);
        let Held { keys, terms } = store.read().unwrap();
        let agent = wingbeat_agent::Config::new(muscop::Config::new(id, ONE, aircraft));
        let config = Config {
            keys,
            enrolled: Some(Enrolled { store, terms }),
            seed: id.0,
            ..config(agent, autopilot)
        };
        start(config, clock, radio).await.unwrap()
    }
}

fn hub(count: usize, clock: Clock) -> (Hub, Vec<HubRadio>) {
    Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, count), count, clock)
}

fn closed_port() -> Endpoint {
    Endpoint::TcpClient { host: "127.0.0.1".into(), port: 1 }
}

fn tcp(address: std::net::SocketAddr) -> Endpoint {
    Endpoint::TcpClient { host: address.ip().to_string(), port: address.port() }
}

/// A console of the fleet, by the keys that it has accepted.
struct Desk(ConsoleKeys);

impl Desk {
    fn identity(&self) -> Identity {
        Identity::new(&self.0.keys.signer, &self.0.keys.roster).unwrap()
    }

    async fn put(&self, to: &Handle, bundle: &str) -> (u16, String) {
        send(&self.identity(), to, ("PUT", paths::KEYS), "", OCTETS, bundle.as_bytes()).await
    }
}

fn refused_by_reason(status: &AircraftStatus, name: &str) -> u64 {
    status.radio.refused.iter().filter(|refusal| refusal.reason == name).map(|refusal| refusal.count).sum()
}

fn epoch(receipt: &Receipt) -> Option<u8> {
    receipt.result.as_ref().ok().map(|keys| keys.epoch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_capture_the_next_epoch_is_pushed_and_the_lost_one_is_refused() {
    let clock = Clock::real_time();
    let fleet = Fleet::made(Timestamp::now());
    fleet.add_console(CONSOLE);
    fleet.add_console(LOST_CONSOLE);
    let first = fleet.enrol(ONE);
    fleet.enrol(TWO);
    let all = fleet.enrol(THREE);
    for id in [ONE, TWO, THREE] {
        fleet.store(id).accept(all.text()).unwrap();
    }
    let [desk, lost_desk] = [CONSOLE, LOST_CONSOLE].map(|id| fleet.console(id, &all));
    let (_hub, radios) = hub(3, clock);
    let (_online, online) = watch::channel(true);
    let mut daemons = vec![];
    for (index, (id, radio)) in [ONE, TWO, THREE].into_iter().zip(radios).enumerate() {
        let address = flight_controller(
            Profile::Copter357,
            (index as u8, 12.0 * index as f64),
            clock,
            None,
            online.clone(),
        )
        .await;
        daemons.push(fleet.start(id, 3, tcp(address), clock, radio).await);
    }
    // Each receives another: of the swarm's members, those that are not its master.
    for daemon in &daemons {
        let status = until(daemon, "received", |s| s.radio.received > 3).await;
        let keys = status.radio.keys.as_ref().unwrap();
        assert_eq!((keys.epoch, keys.serial, keys.validity), (1, 6, KeysValidity::Valid));
    }

    // What is older than what is held, and what is of another fleet, or nothing.
    let (code, answer) = desk.put(&daemons[0], first.text()).await;
    let error: ApiError = serde_json::from_str(&answer).unwrap();
    assert_eq!((code, error.code.as_str()), (409, "replayed"), "{answer}");
    let other = Fleet::made(Timestamp::now());
    let request = fleet.store(ONE).request().unwrap();
    let theirs = other.change(&Change::Enrol { request, role: Role::Aircraft });
    // A key has one id: lost under that, it would stay under another.
    let again = wingbeat_onboard::keys::Request::parse(
        Store::of_aircraft(VehicleId(0xa9), fleet.path(&format!("{ONE}.key")), fleet.path("none"))
            .request()
            .unwrap()
            .text(),
    );
    let refused = enrolment::change(
        &fleet.path("fleet"),
        &Change::Enrol { request: again.unwrap(), role: Role::Aircraft },
        Timestamp::now(),
    );
    assert!(refused.unwrap_err().to_string().contains("its key enrolled already, under 00000000000000a1"));
    let (code, answer) = desk.put(&daemons[0], theirs.text()).await;
    assert!(code == 403 && answer.contains("authority"), "{code} {answer}");
    assert_eq!(desk.put(&daemons[0], "signature = \"\"\n").await.0, 400);
    let plain = send(&desk.identity(), &daemons[0], ("PUT", paths::KEYS), "", "text/plain", b"").await;
    assert_eq!(plain.0, 415);
    assert_eq!(desk.put(&daemons[0], &"x".repeat(70_000)).await.0, 413);

    // The third is lost, with a console. One address has no listener. A connection of that console is open.
    let status = |desk: &Desk, to: &Handle| {
        let (identity, address) = (desk.identity(), to.address());
        async move { identity.connect(TcpStream::connect(address).await.unwrap()).await }
    };
    let mut open = status(&lost_desk, &daemons[0]).await.unwrap();
    let next = fleet.change(&Change::Renew { without: vec![THREE, LOST_CONSOLE] });
    let mut to: Vec<String> = daemons.iter().map(|daemon| daemon.address().to_string()).collect();
    to.push("127.0.0.1:1".into());
    let receipts = push_keys(&to, next.text(), &desk.0).await.unwrap();
    assert_eq!(
        receipts.iter().map(epoch).collect::<Vec<_>>(),
        [Some(2), Some(2), None, None],
        "{receipts:?}"
    );
    let [lost, unreached] = [&receipts[2], &receipts[3]];
    let why = lost.result.as_ref().unwrap_err();
    assert!(
        lost.aircraft == Some(THREE.to_string()) && why.contains("no 00000000000000a3 in the roster"),
        "{why}"
    );
    assert!(unreached.aircraft.is_none() && unreached.result.is_err());
    // Its connection is of no use any more, and it gets no other.
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", paths::STATUS);
    open.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // It may end without the end of TLS.
    let _ = open.read_to_string(&mut answer).await;
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("expected one of the present epoch"),
        "{answer}"
    );
    let mut again = status(&lost_desk, &daemons[0]).await.unwrap();
    // The aircraft judges the key of a console after that has finished its side of the handshake (RFC 8446).
    let _ = again.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let ended = again.read_to_end(&mut answer).await;
    assert!(ended.is_err() && answer.is_empty(), "{ended:?}");
    let (code, _) = send(&desk.identity(), &daemons[0], ("GET", paths::STATUS), "", OCTETS, b"").await;
    assert_eq!(code, 200, "the other console goes on");
    // From the next datagram on: the master receives the other again (before setup it broadcasts nothing itself), and for both the lost
    // one counts by its epoch.
    let received = daemons[0].status().borrow().radio.received;
    until(&daemons[0], "the other again", |s| s.radio.received > received + 3).await;
    for daemon in &daemons[..2] {
        let status = until(daemon, "the lost one refused", |s| refused_by_reason(s, "epoch") > 3).await;
        assert_eq!(status.radio.keys.as_ref().unwrap().epoch, 2);
    }
    // It is on the disk: a restart begins with it, and what was pushed before is refused then too.
    assert_eq!(fleet.store(ONE).read().unwrap().terms.order(), (2, 7));
    assert_eq!(desk.put(&daemons[0], all.text()).await.0, 409);
    // Once more changes nothing.
    assert_eq!(desk.put(&daemons[0], next.text()).await.0, 200);
    // Without the file another fleet's is still not taken over the network.
    std::fs::remove_file(fleet.store(ONE).bundle_file()).unwrap();
    let (code, answer) = desk.put(&daemons[0], theirs.text()).await;
    assert!(code == 403 && answer.contains("authority"), "{code} {answer}");
    for daemon in daemons {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_keys_refuse_setup_until_others_are_pushed() {
    let clock = Clock::real_time();
    let fleet = Fleet::made("2020-01-01T00:00:00Z".parse().unwrap());
    fleet.add_console(CONSOLE);
    let bundle = fleet.enrol(ONE);
    fleet.store(ONE).accept(bundle.text()).unwrap();
    let desk = fleet.console(CONSOLE, &bundle);
    let (_hub, mut radios) = hub(1, clock);
    let daemon = fleet.start(ONE, 1, closed_port(), clock, radios.remove(0)).await;
    let status = until(&daemon, "expired", |s| {
        s.radio.keys.as_ref().is_some_and(|keys| keys.validity == KeysValidity::Expired)
    })
    .await;
    let check = status.checks.iter().find(|check| check.name == "keys").unwrap();
    assert!(!check.passed && check.detail.contains("expired"), "{check:?}");
    let lease = br#"{"console":"one","ttl_ms":60000}"#;
    let mut sender = wingbeat_console::Console::new(CONSOLE, 1_795_435_200_000_000);
    let mut setup = async |id: &str, desk: &Desk| {
        // New keys end a lease: its console may have been left out.
        let (_, answer) =
            send(&desk.identity(), &daemon, ("POST", paths::LEASE), "", "application/json", lease).await;
        let token = serde_json::from_str::<LeaseGrant>(&answer).unwrap().token.unwrap();
        let press = wingbeat_console::Press {
            id: wingbeat_wire::CommandId::try_from(id).unwrap(),
            command: wingbeat_wire::Command::Setup,
            flight: 0,
        };
        let mut draft = sender.draft(clock.now(), &press, wingbeat_wire::Addressees::All);
        let sealed = desk.0.keys.signer.seal(&mut draft).to_vec();
        let (code, answer) =
            send(&desk.identity(), &daemon, ("POST", paths::ORDERS), &token, OCTETS, &sealed).await;
        assert_eq!(code, 409, "{answer}");
        serde_json::from_str::<CommandReply>(&answer).unwrap_or_else(|_| panic!("{answer}")).reason
    };
    let reason = setup("a", &desk).await;
    assert!(reason.contains("keys") && reason.contains("expired"), "{reason}");
    // Others that hold: what refuses now is that it has no autopilot.
    let now = enrolment::change(&fleet.path("fleet"), &Change::Renew { without: vec![] }, Timestamp::now())
        .unwrap();
    let receipts = push_keys(&[daemon.address().to_string()], now.text(), &desk.0).await.unwrap();
    assert_eq!(receipts[0].result.as_ref().unwrap().validity, KeysValidity::Valid);
    let desk = fleet.console(CONSOLE, &now);
    let reason = setup("b", &desk).await;
    assert!(!reason.contains("keys"), "{reason}");
    daemon.stop().await;
}
