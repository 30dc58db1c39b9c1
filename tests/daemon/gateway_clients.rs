//! The gateway's and the lease's bounds, through a running daemon on the ground: which clients are served, for how long,
//! which of their frames pass, and that no client delays another.
#![allow(deprecated, reason = "ground stations answer PING, although MAVLink would merge it with TIMESYNC")]

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;
use crate::common::spy;

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use aircraft::{flight_controller, until};
use client::ask;
use config::{config, tcp};
use spy::{Received, spy};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket},
    runtime::{Builder, Runtime},
    sync::watch,
    time::{sleep, timeout},
};
use wingbeat_api::{AircraftStatus, LeaseGrant, paths};
use wingbeat_autopilot::{
    codec::{Decoder, FRAME_LEN_MAX, MavHeader, encode_v2},
    dialect::{
        COMMAND_LONG_DATA, FILE_TRANSFER_PROTOCOL_DATA, HEARTBEAT_DATA, MavAutopilot, MavCmd, MavMessage,
        MavType, PARAM_REQUEST_LIST_DATA, PARAM_REQUEST_READ_DATA, PING_DATA,
    },
};
use wingbeat_hub::{Hub, HubRadio};
use wingbeat_onboard::{Clock, Config, Handle, Radio, gateway, start};
use wingbeat_protocol::muscop;
use wingbeat_radio::{RadioEvent, SendError};
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    motion::Profile,
};
use wingbeat_wire::{Class, VehicleId};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who the daemon's console heartbeats are of: ground station 255, the companion's component.
const CONSOLE: (u32, u8) = (255, 191);
const CLIENT: (u32, u8) = (255, 190);

fn served(autopilot: SocketAddr, udp: &[&str]) -> Config {
    let me = VehicleId(0xa1);
    let agent = wingbeat_agent::Config::new(muscop::Config::new(me, me, 1));
    Config {
        gateway: gateway::Config {
            udp: udp.iter().map(|endpoint| endpoint.parse().unwrap()).collect(),
            tcp: Some(([127, 0, 0, 1], 0).into()),
            ..gateway::Config::default()
        },
        ..config(agent, tcp(autopilot))
    }
}

fn radio(clock: Clock) -> (Hub, HubRadio) {
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 1);
    let (hub, mut radios) = Hub::spawn(channel, 1, clock);
    (hub, radios.remove(0))
}

/// An aircraft that stands on the ground, five times as fast as the clock.
struct Ground {
    handle: Handle,
    received: Received,
    _hub: Hub,
    _online: watch::Sender<bool>,
}

async fn ground(udp: &[&str]) -> Ground {
    ground_with(udp, |_| {}).await
}

async fn ground_with(udp: &[&str], change: impl FnOnce(&mut gateway::Config)) -> Ground {
    let clock = Clock::start(5.0).unwrap();
    let (_hub, radio) = radio(clock);
    let (_online, online) = watch::channel(true);
    let far = flight_controller(Profile::Copter357, (0, 0.0), clock, None, online).await;
    let (address, received) = spy(far).await;
    let mut config = served(address, udp);
    change(&mut config.gateway);
    let handle = start(config, clock, radio).await.unwrap();
    until(&handle, "an autopilot", |s| s.flight_controller.heartbeat_age_ms.is_some()).await;
    Ground { handle, received, _hub, _online }
}

impl Ground {
    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.handle.gateway().last().unwrap()).await.unwrap()
    }

    /// What the autopilot got of one sender.
    fn of(&self, sender: (u32, u8), wanted: fn(&MavMessage) -> bool) -> usize {
        let received = self.received.lock().unwrap();
        received.iter().filter(|(system, component, m)| (*system, *component) == sender && wanted(m)).count()
    }

    async fn clients(&self, count: usize) -> Arc<AircraftStatus> {
        let what = format!("{count} clients");
        until(&self.handle, &what, |s| s.gateway.as_ref().is_some_and(|g| g.clients.len() == count)).await
    }

    async fn lease(&self, console: &str, token: Option<&str>) -> (u16, String) {
        let token = token.map_or(String::new(), |token| format!(r#","token":"{token}""#));
        let body = format!(r#"{{"console":"{console}","ttl_ms":1000{token}}}"#);
        ask(self.handle.address(), "POST", paths::LEASE, &body).await
    }

    /// Lets `duration_ms` of the agent's time pass.
    async fn pass(&self, duration_ms: u64) {
        let from = self.handle.status().borrow().time_ms;
        until(&self.handle, "time passes", |s| s.time_ms > from + duration_ms).await;
    }
}

fn count(status: &AircraftStatus, reason: &str) -> u64 {
    let refused = &status.gateway.as_ref().unwrap().refused;
    refused.iter().find(|refusal| refusal.reason == reason).map_or(0, |refusal| refusal.count)
}

fn frame((system_id, component_id): (u32, u8), message: &MavMessage) -> Vec<u8> {
    let mut out = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    encode_v2(MavHeader { system_id, component_id, sequence: 0 }, message, &mut out).unwrap();
    out.to_vec()
}

fn heartbeat(mavtype: MavType, autopilot: MavAutopilot) -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA { mavtype, autopilot, mavlink_version: 3, ..Default::default() })
}

fn ground_station() -> Vec<u8> {
    frame(CLIENT, &heartbeat(MavType::MAV_TYPE_GCS, MavAutopilot::MAV_AUTOPILOT_INVALID))
}

fn is_heartbeat(message: &MavMessage) -> bool {
    matches!(message, MavMessage::HEARTBEAT(_))
}

fn read_parameter(name: &str) -> Vec<u8> {
    frame(
        CLIENT,
        &MavMessage::PARAM_REQUEST_READ(PARAM_REQUEST_READ_DATA {
            target_system: 1,
            target_component: 1,
            param_index: -1,
            param_id: name.into(),
        }),
    )
}

/// Reads a datagram that holds a message that is wanted; returns its sender.
async fn receives(socket: &UdpSocket, wanted: fn(&MavMessage) -> bool) -> SocketAddr {
    let mut buffer = [0; 2048];
    timeout(PATIENCE, async {
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let mut found = false;
            Decoder::default().push(&buffer[..length], |frame| found |= wanted(&frame.message));
            if found {
                return from;
            }
        }
    })
    .await
    .expect("the message")
}

/// Throws away what has arrived, and counts it.
fn drain(socket: &UdpSocket) -> usize {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.try_recv_from(&mut buffer).ok()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn heartbeats_reach_the_autopilot_only_while_one_console_holds_the_lease() {
    let aircraft = ground(&[]).await;
    let mut client = aircraft.tcp().await;
    client.write_all(&ground_station()).await.unwrap();
    until(&aircraft.handle, "refused", |s| count(s, "heartbeat_without_lease") == 1).await;

    let (code, answer) = aircraft.lease("tower", None).await;
    assert_eq!(code, 200, "{answer}");
    let lease: LeaseGrant = serde_json::from_str(&answer).unwrap();
    assert_eq!((lease.console.as_str(), lease.left_ms), ("tower", 1_000));
    let token = lease.token.expect("what renews it");
    assert_eq!(
        (token.len(), format!("{:?}", aircraft.handle.status().borrow()).contains(&token)),
        (32, false)
    );
    // The name stands in the status for everybody: it renews nothing.
    for guess in [None, Some("0123456789abcdef0123456789abcdef")] {
        let (code, answer) = aircraft.lease("tower", guess).await;
        assert!(code == 409 && answer.contains("held by console"), "{code} {answer}");
    }
    let (code, answer) = aircraft.lease("hut", None).await;
    assert!(code == 409 && answer.contains("tower"), "{code} {answer}");
    let mut log = aircraft.handle.log();
    // Renewed until both heartbeats are through, however slow the machine.
    let since = Instant::now();
    client.write_all(&ground_station()).await.unwrap();
    while aircraft.of(CONSOLE, is_heartbeat) < 3 || aircraft.of(CLIENT, is_heartbeat) == 0 {
        assert!(since.elapsed() < PATIENCE, "{:?}", aircraft.handle.status().borrow().gateway);
        let (code, answer) = aircraft.lease("tower", Some(&token)).await;
        assert!(code == 200 && !answer.contains("token"), "told once: {code} {answer}");
        let held = until(&aircraft.handle, "held", |s| s.lease.is_some()).await;
        assert_eq!(held.lease.as_ref().unwrap().console, "tower");
        sleep(Duration::from_millis(50)).await;
    }

    // Nobody renews it: it ends, and with it the heartbeats.
    let status = until(&aircraft.handle, "ended", |s| s.lease.is_none()).await;
    let refused_before = count(&status, "heartbeat_without_lease");
    let mut log_text = String::new();
    while let Ok(line) = log.try_recv() {
        log_text += &line.text;
    }
    assert!(log_text.contains("the lease of console \"tower\" has ended"), "{log_text}");
    // What left just before has arrived.
    aircraft.pass(500).await;
    let before = (aircraft.of(CONSOLE, is_heartbeat), aircraft.of(CLIENT, is_heartbeat));
    client.write_all(&ground_station()).await.unwrap();
    until(&aircraft.handle, "refused again", |s| count(s, "heartbeat_without_lease") == refused_before + 1)
        .await;
    aircraft.pass(4_000).await;
    assert_eq!((aircraft.of(CONSOLE, is_heartbeat), aircraft.of(CLIENT, is_heartbeat)), before);

    let (code, answer) = aircraft.lease("hut", None).await;
    assert_eq!(code, 200, "{answer}");
    aircraft.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_ninth_client_is_turned_away_and_the_eight_are_served() {
    let aircraft = ground(&["udp:127.0.0.1:0"]).await;
    let mut eight = vec![];
    for _ in 0..gateway::CLIENTS_MAX {
        let mut client = aircraft.tcp().await;
        client.write_all(&ground_station()).await.unwrap();
        eight.push(client);
    }
    until(&aircraft.handle, "eight that send", |s| {
        count(s, "heartbeat_without_lease") == gateway::CLIENTS_MAX as u64
    })
    .await;
    let mut ninth = aircraft.tcp().await;
    let mut buffer = vec![];
    let end = timeout(PATIENCE, ninth.read_to_end(&mut buffer)).await.expect("the daemon hangs up");
    assert!(end.is_ok_and(|length| length == 0), "nothing is sent to it");
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&ground_station(), aircraft.handle.gateway()[0]).await.unwrap();
    until(&aircraft.handle, "two are turned away", |s| count(s, "turned_away") == 2).await;
    for client in &mut eight {
        let mut byte = [0];
        timeout(PATIENCE, client.read_exact(&mut byte)).await.expect("telemetry").unwrap();
    }
    assert_eq!(drain(&socket), 0);
    // Whoever leaves makes room.
    drop(eight.pop());
    aircraft.clients(gateway::CLIENTS_MAX - 1).await;
    socket.send_to(&ground_station(), aircraft.handle.gateway()[0]).await.unwrap();
    receives(&socket, is_heartbeat).await;
    aircraft.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn eight_silent_tcp_clients_shut_out_no_ground_station() {
    let aircraft = ground(&[]).await;
    let mut silent = vec![];
    // Each is known before the next one comes: otherwise they are in any order.
    for count in 1..=gateway::CLIENTS_MAX {
        silent.push(aircraft.tcp().await);
        aircraft.clients(count).await;
    }
    let mut ninth = aircraft.tcp().await;
    ninth.write_all(&read_parameter("SYSID_MYGCS")).await.unwrap();
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 4096];
    timeout(PATIENCE, async {
        let mut is_served = false;
        while !is_served {
            let length = ninth.read(&mut buffer).await.unwrap();
            assert!(length > 0, "the daemon hung up");
            decoder.push(&buffer[..length], |frame| {
                is_served |= matches!(frame.message, MavMessage::PARAM_VALUE(_));
            });
        }
    })
    .await
    .expect("it is served");
    // The one that had been silent for the longest time left.
    let first = &mut silent[0];
    timeout(PATIENCE, async { while first.read(&mut buffer).await.is_ok_and(|length| length > 0) {} })
        .await
        .expect("the daemon hangs up");
    aircraft.clients(gateway::CLIENTS_MAX).await;
    aircraft.handle.stop().await;
}

/// What a datagram sender that forges its address could have sent to another, and to the autopilot.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_udp_peer_is_sent_no_more_than_it_sent_and_commands_nothing_until_it_proved_its_address() {
    let aircraft = ground_with(&["udp:127.0.0.1:0"], |gateway| gateway.udp_clients.clear()).await;
    let listening = aircraft.handle.gateway()[0];
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addressed = |message: MavMessage| frame(CLIENT, &message);
    let stops_motors = addressed(MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
        target_system: 1,
        target_component: 1,
        command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
        param2: 21_196.0,
        ..Default::default()
    }));
    let list = addressed(MavMessage::PARAM_REQUEST_LIST(PARAM_REQUEST_LIST_DATA {
        target_system: 1,
        target_component: 1,
    }));
    let (mut sent, mut received, mut answers) = (0, 0, 0);
    let mut buffer = [0; 2048];
    let mut asked = None;
    let since = Instant::now();
    // Until a heartbeat of the autopilot and a challenge have come, which a ground station needs.
    let mut known = false;
    while asked.is_none() || !known {
        assert!(since.elapsed() < PATIENCE, "found {answers} answers, expected a heartbeat and a PING");
        for datagram in [&stops_motors, &list, &ground_station()] {
            sent += peer.send_to(datagram, listening).await.unwrap();
            sleep(Duration::from_millis(50)).await;
            while let Ok((length, _)) = peer.try_recv_from(&mut buffer) {
                received += length;
                answers += 1;
                assert!(received <= sent, "found {received} bytes for {sent}");
                Decoder::default().push(&buffer[..length], |frame| match frame.message {
                    MavMessage::PING(ping) => asked = Some((frame.header, ping)),
                    MavMessage::HEARTBEAT(_) => known |= frame.header.component_id == 1,
                    other => panic!("{other:?}"),
                });
            }
        }
    }
    let status = until(&aircraft.handle, "they are counted", |s| count(s, "unproved") > 2).await;
    assert!(status.gateway.as_ref().unwrap().clients.is_empty());
    let commands =
        |m: &MavMessage| matches!(m, MavMessage::COMMAND_LONG(_) | MavMessage::PARAM_REQUEST_LIST(_));
    assert_eq!(aircraft.of(CLIENT, commands), 0, "nothing of it reached the autopilot");

    // Another's answer proves nothing.
    let (header, ping) = asked.unwrap();
    let (system, component) = (header.system_id as u8, header.component_id);
    let answer = PING_DATA { target_system: system, target_component: component, ..ping };
    let answer = addressed(MavMessage::PING(answer));
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other.send_to(&answer, listening).await.unwrap();
    aircraft.pass(500).await;
    aircraft.clients(0).await;
    // Its own does, and it is served.
    peer.send_to(&answer, listening).await.unwrap();
    aircraft.clients(1).await;
    peer.send_to(&read_parameter("SYSID_MYGCS"), listening).await.unwrap();
    receives(&peer, |m| matches!(m, MavMessage::PARAM_VALUE(_))).await;
    aircraft.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn udp_goes_both_ways_and_only_the_configured_receiver_may_be_silent() {
    let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let out = format!("udpout:{}", receiver.local_addr().unwrap());
    let aircraft = ground(&[&out, "udp:127.0.0.1:0"]).await;
    let listening = aircraft.handle.gateway()[0];

    // The receiver receives without having sent anything, and is answered.
    let daemon = receives(&receiver, |m| matches!(m, MavMessage::GLOBAL_POSITION_INT(_))).await;
    receiver.send_to(&read_parameter("SYSID_MYGCS"), daemon).await.unwrap();
    receives(&receiver, |m| matches!(m, MavMessage::PARAM_VALUE(_))).await;
    // Datagrams of others are ignored there.
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let sender = SocketAddr::from(([127, 0, 0, 1], daemon.port()));
    peer.send_to(&ground_station(), sender).await.unwrap();

    // Rubbish is counted and not answered; a whole frame is.
    peer.send_to(&[0x55; 100], listening).await.unwrap();
    until(&aircraft.handle, "garbage", |s| count(s, "garbage_bytes") == 100).await;
    let mut broken = ground_station();
    *broken.last_mut().unwrap() ^= 1;
    let mut client = aircraft.tcp().await;
    client.write_all(&[&broken[..], &ground_station()].concat()).await.unwrap();
    let status = until(&aircraft.handle, "a bad checksum", |s| count(s, "bad_checksum") == 1).await;
    assert_eq!(count(&status, "heartbeat_without_lease"), 1, "the whole one was found; the sender's not");
    drop(client);
    aircraft.clients(1).await;
    assert_eq!(drain(&peer), 0);
    peer.send_to(&read_parameter("SYSID_MYGCS"), listening).await.unwrap();
    let sent_at = Instant::now();
    receives(&peer, |m| matches!(m, MavMessage::PARAM_VALUE(_))).await;
    aircraft.clients(2).await;

    // Ten seconds of silence: it is forgotten, the receiver is not.
    let status = aircraft.clients(1).await;
    assert!(sent_at.elapsed() >= gateway::IDLE, "forgotten after {:?}", sent_at.elapsed());
    assert_eq!(status.gateway.as_ref().unwrap().clients, [format!("udp {}", receiver.local_addr().unwrap())]);
    aircraft.pass(500).await;
    drain(&peer);
    drain(&receiver);
    aircraft.pass(2_000).await;
    assert_eq!(drain(&peer), 0, "nothing is sent to it any more");
    assert!(drain(&receiver) > 0);
    peer.send_to(&ground_station(), listening).await.unwrap();
    receives(&peer, is_heartbeat).await;
    aircraft.handle.stop().await;
}

/// Reads until a batch's number is received; the decoder keeps count of what was damaged.
async fn receives_batch(client: &mut TcpStream, decoder: &mut Decoder, batch: u32) {
    let mut buffer = vec![0; 65_536];
    timeout(PATIENCE, async {
        let mut found = false;
        while !found {
            let length = client.read(&mut buffer).await.unwrap();
            assert!(length > 0, "the daemon hung up");
            decoder.push(&buffer[..length], |frame| {
                if let MavMessage::FILE_TRANSFER_PROTOCOL(m) = frame.message {
                    found |= m.payload[..4] == batch.to_le_bytes();
                }
            });
        }
    })
    .await
    .unwrap_or_else(|_| panic!("batch {batch} never came"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_slow_client_loses_whole_frames_and_slows_no_other() {
    let clock = Clock::real_time();
    let (_hub, radio) = radio(clock);
    // An autopilot that sends whatever is handed to it, as fast as it is.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let handle = start(served(listener.local_addr().unwrap(), &[]), clock, radio).await.unwrap();
    let (mut autopilot, _) = listener.accept().await.unwrap();
    let copter = heartbeat(MavType::MAV_TYPE_QUADROTOR, MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA);
    autopilot.write_all(&frame((1, 1), &copter)).await.unwrap();
    let address = *handle.gateway().last().unwrap();
    let mut quick = TcpStream::connect(address).await.unwrap();
    // Little of what it does not read is kept for it.
    let slow = TcpSocket::new_v4().unwrap();
    slow.set_recv_buffer_size(4_096).unwrap();
    let mut slow = slow.connect(address).await.unwrap();
    until(&handle, "two clients", |s| s.gateway.as_ref().is_some_and(|g| g.clients.len() == 2)).await;

    let mut decoder = Decoder::default();
    let mut batch = 0_u32;
    let status = handle.status();
    while count(&status.borrow(), "slow_client") == 0 {
        batch += 1;
        assert!(batch < 10_000, "28 MB found room");
        // Ten frames of which the quick client has read all before the next ten come.
        let mut payload = [1; 251];
        payload[..4].copy_from_slice(&batch.to_le_bytes());
        let message = MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
            payload,
            ..FILE_TRANSFER_PROTOCOL_DATA::default()
        });
        autopilot.write_all(&frame((1, 1), &message).repeat(10)).await.unwrap();
        receives_batch(&mut quick, &mut decoder, batch).await;
    }
    assert_eq!(decoder.refused().bad_checksum, 0);
    assert_eq!(until(&handle, "both", |_| true).await.gateway.as_ref().unwrap().clients.len(), 2);

    // The slow one reads again: what is left of its stream is whole.
    let mut decoder = Decoder::default();
    receives_batch(&mut slow, &mut decoder, 1).await;
    let message = MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
        payload: [7; 251],
        ..FILE_TRANSFER_PROTOCOL_DATA::default()
    });
    let reading = tokio::spawn(async move {
        receives_batch(&mut slow, &mut decoder, u32::from_le_bytes([7; 4])).await;
        decoder
    });
    // Sent again: the first may be lost as those before it.
    let since = Instant::now();
    while !reading.is_finished() {
        assert!(since.elapsed() < PATIENCE, "it receives nothing new");
        autopilot.write_all(&frame((1, 1), &message)).await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    let refused = reading.await.unwrap().refused();
    assert_eq!((refused.bad_checksum, refused.garbage_bytes), (0, 0), "{refused:?}");
    handle.stop().await;
}

/// A runtime of the daemon's own. A thread that hangs may be the one that also serves its runtime's timers
/// and sockets; the watchdog must not need them. Ended without waiting for a thread that hangs.
struct Apart(Option<Runtime>);

impl Apart {
    fn new() -> Self {
        Self(Some(Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()))
    }

    async fn start(&self, config: Config, clock: Clock, radio: Stuck) -> Handle {
        self.0.as_ref().unwrap().spawn(start(config, clock, radio)).await.unwrap().unwrap()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

/// A radio whose `send` does not return while it is held: against its contract, as a broken driver would.
struct Stuck {
    inner: HubRadio,
    hold: Arc<(Mutex<Hold>, Condvar)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Free,
    /// The next to send stays.
    Armed,
    Holding,
}

impl Radio for Stuck {
    fn send(&self, class: Class, datagram: &[u8]) -> Result<(), SendError> {
        let (hold, changed) = &*self.hold;
        let mut now = hold.lock().unwrap();
        if *now == Hold::Armed {
            *now = Hold::Holding;
        }
        while *now == Hold::Holding {
            now = changed.wait(now).unwrap();
        }
        drop(now);
        self.inner.send(class, datagram)
    }
    fn send_to(&self, radio: std::net::SocketAddr, datagram: &[u8]) -> Result<(), SendError> {
        self.inner.send_to(radio, datagram)
    }
    async fn recv(&mut self) -> Option<RadioEvent> {
        self.inner.recv().await
    }
    fn overflows(&self) -> u64 {
        self.inner.overflows()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_hangs_sends_no_heartbeat() {
    let clock = Clock::start(5.0).unwrap();
    let (_hub, inner) = radio(clock);
    let hold = Arc::new((Mutex::new(Hold::Free), Condvar::new()));
    let (_online, online) = watch::channel(true);
    let far = flight_controller(Profile::Copter357, (0, 0.0), clock, None, online).await;
    let (address, received) = spy(far).await;
    let stuck = Stuck { inner, hold: hold.clone() };
    let apart = Apart::new();
    let mut config = served(address, &[]);
    // A follower calls its master all the time.
    config.agent.coordination = muscop::Config::new(VehicleId(0xa1), VehicleId(0xb2), 2).into();
    let handle = apart.start(config, clock, stuck).await;
    let ours = || {
        let received = received.lock().unwrap();
        received.iter().filter(|(_, component, m)| *component == 191 && is_heartbeat(m)).count()
    };
    let since = Instant::now();
    let wait = async |what: &str, holds: &dyn Fn() -> bool| {
        while !holds() {
            assert!(since.elapsed() < PATIENCE, "never: {what}");
            sleep(Duration::from_millis(10)).await;
        }
    };
    wait("heartbeats", &|| ours() >= 3).await;
    *hold.0.lock().unwrap() = Hold::Armed;
    wait("it hangs", &|| *hold.0.lock().unwrap() == Hold::Holding).await;
    // What left just before arrives.
    sleep(Duration::from_millis(200)).await;
    let before = ours();
    // Its whole runtime may stand still with it, and then another task may be the latest.
    wait("it is missed", &|| handle.liveness().late().is_some()).await;
    // Two seconds: ten heartbeats at this clock.
    assert_eq!(ours(), before, "no other task feeds it");
    *hold.0.lock().unwrap() = Hold::Free;
    hold.1.notify_all();
    wait("heartbeats again", &|| ours() > before).await;
    handle.stop().await;
}
