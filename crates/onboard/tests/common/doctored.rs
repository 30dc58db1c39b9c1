//! An aircraft that is made up: files below a root, a pseudo-terminal with a flight controller behind it, and
//! what programs would print. Healthy unless a test changes something.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinHandle,
    time::interval,
};
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_autopilot::{
    codec::{Decoder, FRAME_LEN_MAX, MavHeader, encode_v1, encode_v2, text},
    dialect::{
        EKF_STATUS_REPORT_DATA, GLOBAL_POSITION_INT_DATA, GPS_RAW_INT_DATA, HEARTBEAT_DATA, MavAutopilot,
        MavMessage, MavModeFlag, MavType, NAV_CONTROLLER_OUTPUT_DATA, PARAM_VALUE_DATA, SYS_STATUS_DATA,
    },
};
use wingbeat_onboard::keys::{
    Request, Store, Timestamp,
    enrolment::{self, Change},
};
use wingbeat_onboard::{
    config,
    doctor::{Finding, Options, Report, System, examine},
};
use wingbeat_wire::{Role, Signer, VehicleId};

/// Between two rounds of telemetry on the pseudo-terminal; the flight controller's clock runs as it likes.
const ROUND: Duration = Duration::from_millis(20);

/// The aircraft's id.
const ME: u64 = 0x00b8_27eb_0102_0304;

fn secret(id: u64) -> [u8; 32] {
    [id as u8; 32]
}

/// What the flight controller does.
#[derive(Clone)]
pub(crate) struct Play {
    /// Says nothing.
    pub(crate) mute: bool,
    /// Its rate: at any other it is noise. Nothing: every rate will do, as on a pseudo-terminal it does.
    pub(crate) baud: Option<u32>,
    pub(crate) mavlink_1: bool,
    pub(crate) systems: Vec<u8>,
    pub(crate) autopilot: MavAutopilot,
    /// Between two position reports, by its own clock.
    pub(crate) position_ms: u32,
    /// Messages other than heartbeat and position.
    pub(crate) complete: bool,
    /// Every frame of this number is lost on the way.
    pub(crate) loses: Option<u64>,
    pub(crate) parameters: BTreeMap<&'static str, f32>,
    /// A daemon may command it; the doctor may not.
    pub(crate) is_commanded: bool,
}

impl Default for Play {
    fn default() -> Self {
        Self {
            mute: false,
            baud: None,
            mavlink_1: false,
            systems: vec![1],
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            position_ms: 250,
            complete: true,
            loses: None,
            parameters: BTreeMap::from([("SYSID_MYGCS", 255.0), ("BRD_SER2_RTSCTS", 0.0)]),
            is_commanded: false,
        }
    }
}

/// The peer on the far end of the pseudo-terminal.
struct Peer {
    play: Play,
    sequences: BTreeMap<u8, u8>,
    frames: u64,
    rounds: u32,
    noise: u64,
}

impl Peer {
    async fn run(mut self, mut far: SerialStream) {
        let (mut decoder, mut buffer, mut tick) = (Decoder::default(), [0; 1024], interval(ROUND));
        loop {
            let mut out = vec![];
            tokio::select! {
                _ = tick.tick() => if !self.play.mute {
                    if self.play.baud.is_none_or(|baud| far.baud_rate().is_ok_and(|now| now == baud)) {
                        self.round(&mut out);
                    } else {
                        self.noise(&mut out);
                    }
                },
                read = far.read(&mut buffer) => match read {
                    Ok(length) => decoder.push(&buffer[..length], |frame| self.answer(&frame.message, &mut out)),
                    // Nobody has the line open: as between two attempts of the doctor.
                    Err(_) => tokio::time::sleep(ROUND).await,
                },
            }
            if !out.is_empty() && far.write_all(&out).await.is_err() {
                tokio::time::sleep(ROUND).await;
            }
        }
    }

    fn frame(&mut self, system: u8, message: &MavMessage, out: &mut Vec<u8>) {
        let sequence = self.sequences.entry(system).or_default();
        let header = MavHeader { system_id: system.into(), component_id: 1, sequence: *sequence };
        *sequence = sequence.wrapping_add(1);
        self.frames += 1;
        if self.play.loses.is_some_and(|every| self.frames.is_multiple_of(every)) {
            return;
        }
        let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        let encoded = match self.play.mavlink_1 {
            true => encode_v1(header, message, &mut frame),
            false => encode_v2(header, message, &mut frame),
        };
        encoded.unwrap();
        out.extend_from_slice(&frame);
    }

    fn round(&mut self, out: &mut Vec<u8>) {
        self.rounds += 1;
        let mut messages = vec![
            MavMessage::HEARTBEAT(HEARTBEAT_DATA {
                mavtype: MavType::MAV_TYPE_QUADROTOR,
                autopilot: self.play.autopilot,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
                ..HEARTBEAT_DATA::default()
            }),
            MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
                time_boot_ms: self.rounds * self.play.position_ms,
                ..GLOBAL_POSITION_INT_DATA::default()
            }),
        ];
        if self.play.complete {
            messages.push(MavMessage::SYS_STATUS(SYS_STATUS_DATA::default()));
            messages.push(MavMessage::GPS_RAW_INT(GPS_RAW_INT_DATA::default()));
            messages.push(MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA::default()));
            messages.push(MavMessage::NAV_CONTROLLER_OUTPUT(NAV_CONTROLLER_OUTPUT_DATA::default()));
        }
        for system in self.play.systems.clone() {
            for message in &messages {
                self.frame(system, message, out);
            }
        }
    }

    /// The bytes as another baud rate receives them. No byte begins a frame, so that none is formed by coincidence.
    fn noise(&mut self, out: &mut Vec<u8>) {
        for _ in 0..64 {
            self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let byte = (self.noise >> 56) as u8;
            out.push(if byte >= 0xfd { 0 } else { byte });
        }
    }

    fn answer(&mut self, message: &MavMessage, out: &mut Vec<u8>) {
        let MavMessage::PARAM_REQUEST_READ(request) = message else {
            assert!(self.play.is_commanded, "the doctor commands nothing, found {message:?}");
            return;
        };
        let name = text(&request.param_id[..]);
        let Some((&name, &param_value)) = self.play.parameters.get_key_value(name) else { return };
        let system = request.target_system;
        let value = PARAM_VALUE_DATA { param_value, param_id: name.into(), ..PARAM_VALUE_DATA::default() };
        self.frame(system, &MavMessage::PARAM_VALUE(value), out);
    }
}

/// Output of the programs, and the clock.
pub(crate) struct Machine {
    pub(crate) iw: Result<String, String>,
    /// Of `wingbeat-network check`.
    pub(crate) network: Result<String, String>,
    pub(crate) synchronised: Result<String, String>,
    pub(crate) unix_time_s: u64,
    pub(crate) own: Vec<IpAddr>,
}

impl System for Machine {
    fn output(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        match (program, arguments) {
            ("iw", ["dev", "wlan0", "info"]) => self.iw.clone(),
            ("wingbeat-network", ["check", "wlan0"]) => self.network.clone(),
            ("timedatectl", _) => self.synchronised.clone(),
            _ => panic!("the doctor ran {program} {arguments:?}"),
        }
    }
    fn unix_time_s(&self) -> u64 {
        self.unix_time_s
    }
    fn is_own_address(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }
}

/// What `iw dev wlan0 info` prints.
pub(crate) fn iw(kind: &str, channel: &str) -> String {
    format!(
        "Interface wlan0\n\tifindex 3\n\twdev 0x1\n\taddr b8:27:eb:01:02:03\n\ttype {kind}\n\twiphy 0\n{channel}"
    )
}

/// An aircraft.
pub(crate) struct Aircraft {
    root: TempDir,
    pub(crate) machine: Machine,
    pub(crate) endpoint: String,
    pub(crate) http: String,
    pub(crate) radio_port: u16,
    pub(crate) radio: String,
    /// The section `security`.
    pub(crate) security: String,
    far: Option<SerialStream>,
    peer: Option<JoinHandle<()>>,
}

impl Drop for Aircraft {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            peer.abort();
        }
    }
}

impl Aircraft {
    pub(crate) fn healthy() -> Self {
        let (far, near) = SerialStream::pair().unwrap();
        let device = PathBuf::from(near.name().unwrap());
        drop(near);
        fs::set_permissions(&device, fs::Permissions::from_mode(0o660)).unwrap();
        let metadata = fs::metadata(&device).unwrap();
        let group = metadata.gid();
        let mut aircraft = Self {
            root: TempDir::new().unwrap(),
            machine: Machine {
                iw: Ok(iw("IBSS", "\tchannel 36 (5180 MHz), width: 20 MHz (no HT), center1: 5180 MHz\n")),
                network: Err("not asked where there is no network.conf".into()),
                synchronised: Ok("yes\n".into()),
                unix_time_s: 1_795_219_200,
                own: vec![[127, 0, 0, 1].into()],
            },
            endpoint: "serial:/dev/ttyAMA0:921600".into(),
            http: "127.0.0.1:1".into(),
            radio_port: std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
            radio: "interface = \"wlan0\"\nfrequency_mhz = 5180\n".into(),
            security: String::new(),
            far: Some(far),
            peer: None,
        };
        aircraft.security = aircraft.write_keys();
        aircraft.link("dev/ttyAMA0", &device);
        aircraft.link("dev/serial0", Path::new("ttyAMA0"));
        aircraft.link("dev/serial1", Path::new("ttyS0"));
        aircraft.write("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0");
        aircraft.write(
            "proc/self/status",
            &format!("Uid:\t0\t1000\t1000\t1000\nGid:\t7\t1000\t7\t7\nGroups:\t4 {group} \n"),
        );
        aircraft.write("etc/group", &format!("root:x:999999:\ndialout:x:{group}:pi\n"));
        aircraft.write("proc/consoles", "tty1                 -WU (EC  p  )    4:1\n");
        aircraft.write("proc/cmdline", "console=tty1 root=PARTUUID=1234-02 rootwait\n");
        aircraft.write("boot/firmware/cmdline.txt", "console=tty1 root=PARTUUID=1234-02 rootwait\n");
        aircraft.write("boot/firmware/config.txt", "enable_uart=1\ndtoverlay=disable-bt\n");
        aircraft.write("sys/class/net/wlan0/flags", "0x1003\n");
        aircraft.write("sys/class/net/wlan0/phy80211/name", "phy0\n");
        aircraft.write("sys/class/net/lo/flags", "0x9\n");
        aircraft
    }

    /// Its secret and its fleet's bundle, which holds for ten days, and the section that names them.
    fn write_keys(&self) -> String {
        let now = Timestamp::from_second(self.machine.unix_time_s as i64).unwrap();
        fs::create_dir_all(self.path("keys")).unwrap();
        let fleet = self.path("keys/fleet");
        enrolment::init(&fleet, now, 10).unwrap();
        for id in [8, 9, ME] {
            let request = Request::new(VehicleId(id), &secret(id));
            enrolment::change(&fleet, &Change::Enrol { request, role: Role::Aircraft }, now).unwrap();
        }
        let digits: String = secret(ME).iter().map(|byte| format!("{byte:02x}")).collect();
        let [key, bundle] = ["keys/aircraft.key", "keys/fleet.bundle"].map(|path| self.path(path));
        self.write("keys/aircraft.key", &digits);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let store = Store::of_aircraft(VehicleId(ME), key.clone(), bundle.clone());
        store.accept(enrolment::read(&fleet).unwrap().text()).unwrap();
        format!("secret_key_file = {key:?}\nbundle_file = {bundle:?}\n")
    }

    /// Of an aircraft of its fleet.
    #[allow(dead_code, reason = "one of the tests has neighbours")]
    pub(crate) fn signer(&self, id: u64) -> Signer {
        let bundle = enrolment::read(&self.path("keys/fleet")).unwrap();
        bundle.keys(VehicleId(id), &secret(id)).unwrap().signer
    }

    /// Healthy, but for its flight controller.
    pub(crate) fn with(play: Play) -> Self {
        let mut aircraft = Self::healthy();
        aircraft.fly(play);
        aircraft
    }

    /// Switches the flight controller on.
    pub(crate) fn fly(&mut self, play: Play) {
        let peer = Peer { play, sequences: BTreeMap::new(), frames: 0, rounds: 0, noise: 1 };
        self.peer = Some(tokio::spawn(peer.run(self.far.take().expect("one flight controller"))));
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// The device behind `/dev/ttyAMA0`.
    pub(crate) fn device(&self) -> PathBuf {
        self.path("dev/ttyAMA0").canonicalize().unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &Path) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// A process that has the device open.
    pub(crate) fn process(&self, id: u32, name: &str) {
        self.write(&format!("proc/{id}/comm"), &format!("{name}\n"));
        self.link(&format!("proc/{id}/fd/5"), &self.device());
    }

    pub(crate) fn options(&self) -> Options {
        let text = format!(
            "id = \"00b827eb01020304\"\n[autopilot]\nendpoint = \"{}\"\n[radio]\nport = {}\n{}[http]\nbind = \"{}\"\n\
             [security]\n{}[muscop]\nmaster = \"00b827eb01020304\"\naircraft = 1\nalone = true\n",
            self.endpoint, self.radio_port, self.radio, self.http, self.security
        );
        Options {
            root: self.root.path().to_owned(),
            listen: Duration::from_millis(1_000),
            listen_baud: Duration::from_millis(800),
            ask_period: Duration::from_millis(300),
            listen_radio: Duration::from_millis(300),
            ..Options::new(config::read_with(&config::Layers::of("wingbeatd.toml", &text), &|_| {
                Err("no MAC".into())
            }))
        }
    }

    pub(crate) async fn examined(&self) -> Report {
        let report = examine(&self.options(), &self.machine).await;
        let peer_lives = self.peer.as_ref().is_none_or(|peer| !peer.is_finished());
        assert!(peer_lives, "the flight controller saw what it may not see; {report}");
        report
    }

    /// The line of one check.
    pub(crate) async fn line(&self, name: &str) -> String {
        line(&self.examined().await, name)
    }
}

/// The line of one check.
pub(crate) fn line(report: &Report, name: &str) -> String {
    let found: Vec<&Finding> = report.findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "lines named {name} in\n{report}");
    found[0].to_string()
}
