//! The binary from outside: its output and its exit codes.
#![allow(clippy::disallowed_methods, reason = "processes run in real time")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_api::{Identity, paths};

/// A configuration file in a folder of its own, with the HTTP port for the system to choose.
struct Files {
    folder: TempDir,
    config: PathBuf,
}

fn files(endpoint: &str, more: &str) -> Files {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("wingbeatd.toml");
    let text = format!(
        "id = \"00b827eb01020304\"\n[autopilot]\nendpoint = \"{endpoint}\"\n[security]\ninsecure = true\n[muscop]\nmaster = \"00b827eb01020304\"\n\
         aircraft = 1\nalone = true\n[http]\nbind = \"127.0.0.1:0\"\n[radio]\nbroadcast = \"127.255.255.255\"\nport = {}\n{more}",
        radio_port()
    );
    std::fs::write(&config, text).unwrap();
    Files { folder, config }
}

fn radio_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wingbeatd(config: &PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeatd"));
    command
        .arg("--config")
        .arg(config)
        .env_remove("NOTIFY_SOCKET")
        .env_remove("JOURNAL_STREAM")
        .env_remove("RUST_LOG");
    command
}

/// It must exit; a daemon that keeps running is ended after a while, and that is a failure.
fn ended(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Exit code 2, and one message with these parts; what was logged before it does not count.
fn refused(command: &mut Command, parts: &[&str]) {
    let output = ended(command);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    let (_, reason) = message.split_once("wingbeatd: ").unwrap_or_else(|| panic!("{message}"));
    for part in parts {
        assert!(reason.contains(part), "expected {part:?} in {message}");
    }
}

#[test]
fn a_configuration_that_cannot_be_flown_is_one_message_and_code_2() {
    refused(
        &mut wingbeatd(&"/nonexistent.toml".into()),
        &["/nonexistent.toml", "found No such file", "expected"],
    );
    let unknown = files("tcp:127.0.0.1:1", "colour = 1\n");
    refused(
        &mut wingbeatd(&unknown.config),
        &["wingbeatd.toml", "line", "unknown field `colour`", "expected"],
    );
    let fence = files("tcp:127.0.0.1:1", "[fence]\nheight_most_m = nan\n");
    refused(&mut wingbeatd(&fence.config), &["fence.height_most_m: found NaN, expected"]);
    let good = files("tcp:127.0.0.1:1", "");
    refused(
        wingbeatd(&good.config).env("WINGBEAT_MUSCOP__AIRCRAFT", "many"),
        &["environment", "muscop.aircraft"],
    );
    refused(wingbeatd(&good.config).env("RUST_LOG", "a=b=c"), &["RUST_LOG: found \"a=b=c\", expected"]);
}

#[test]
fn a_port_in_use_is_one_message_and_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let files = files("tcp:127.0.0.1:1", "");
    refused(
        wingbeatd(&files.config).env("WINGBEAT_HTTP__BIND", &address),
        &[&format!("http {address}: found the port in use, expected a free port")],
    );
    let radio = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = radio.local_addr().unwrap().port().to_string();
    refused(
        wingbeatd(&files.config).env("WINGBEAT_RADIO__PORT", &port),
        &[&port, "found the port refused", "expected"],
    );
}

#[test]
fn a_guardians_socket_that_is_none_is_one_message_and_code_2_and_stays() {
    let files = files("tcp:127.0.0.1:1", "");
    let precious = files.folder.path().join("precious");
    std::fs::write(&precious, "kept").unwrap();
    let expected =
        format!("guard.socket {}: found a regular file, expected a guardian's socket", precious.display());
    for arguments in [&[][..], &["--check"]] {
        let mut command = wingbeatd(&files.config);
        refused(command.args(arguments).env("WINGBEAT_GUARD__SOCKET", &precious), &[&expected]);
    }
    let mut guard = Command::new(env!("CARGO_BIN_EXE_wingbeat-guard"));
    guard
        .arg("--config")
        .arg(&files.config)
        .env_remove("NOTIFY_SOCKET")
        .env("WINGBEAT_GUARD__SOCKET", &precious);
    let output = ended(&mut guard);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("wingbeat-guard: guard.socket") && message.contains("found a regular file"),
        "{message}"
    );
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
}

#[tokio::test]
async fn a_busy_serial_device_is_one_message_and_code_2() {
    let (_far, near) = SerialStream::pair().unwrap();
    let path = near.name().unwrap();
    let files = files(&format!("serial:{path}:57600"), "");
    for arguments in [&[][..], &["--check"]] {
        let command = &mut wingbeatd(&files.config);
        refused(
            command.args(arguments),
            &[
                &format!("serial:{path}:57600: found the device open in process"),
                "expected a device that no other process",
            ],
        );
    }
    drop(near);
    let output = ended(wingbeatd(&files.config).arg("--check"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("autopilot serial:{path}:57600: fine")), "{text}");
}

/// What is wrong with a machine: the message names the place of the key, the key, what is there, and a cure.
#[test]
fn what_is_configured_and_cannot_be_opened_names_file_key_and_cure() {
    let files = files("serial:/tmp:57600", "");
    let file = files.config.display().to_string();
    for arguments in [&[][..], &["--check"]] {
        refused(
            wingbeatd(&files.config).args(arguments),
            &[
                &format!("{file}: autopilot.endpoint: "),
                "found a directory",
                "a serial device",
                "cure: correct",
            ],
        );
    }
    refused(
        wingbeatd(&files.config).args(["--check", "--set", "autopilot.endpoint=serial:/etc/passwd:57600"]),
        &["--set autopilot.endpoint: ", "found Not a typewriter", "cure: "],
    );
    refused(
        wingbeatd(&files.config)
            .args(["--check", "--set", "autopilot.endpoint=udp:127.0.0.1:0"])
            .env("WINGBEAT_RADIO__INTERFACE", "wingbeat9"),
        &["WINGBEAT_RADIO__INTERFACE: radio.interface: ", "wingbeat9", "found no such interface", "cure: "],
    );
    // No address of this machine: RFC 5737 keeps it for documents.
    refused(
        wingbeatd(&files.config)
            .args(["--set", "autopilot.endpoint=udp:127.0.0.1:0"])
            .env("WINGBEAT_HTTP__BIND", "192.0.2.1:80"),
        &["WINGBEAT_HTTP__BIND: http.bind: ", "http 192.0.2.1:80: found ", "cure: "],
    );
    // The id is the radio's by default.
    let text = std::fs::read_to_string(&files.config).unwrap().replace("id = ", "#id = ");
    std::fs::write(&files.config, text).unwrap();
    let folder = files.folder.path().join("conf.d");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("50-radio.toml"), "[radio]\ninterface = \"wingbeat9\"\n").unwrap();
    refused(
        wingbeatd(&files.config).arg("check-config"),
        &[
            &format!("{file}: id: found none, and no interface wingbeat9"),
            "cure: set id, or correct radio.interface",
        ],
    );
    // By a newer version.
    std::fs::write(folder.join("60-newer.toml"), "[radio]\nhops = 3\n").unwrap();
    refused(
        wingbeatd(&files.config).arg("check-config"),
        &[
            "60-newer.toml: ",
            "line 2",
            "unknown field `hops`",
            "Wingbeat 0.",
            "remove it, also if a newer version",
        ],
    );
    // A file that is fine but for a value.
    std::fs::write(folder.join("60-newer.toml"), "[radio]\nport = 0\n").unwrap();
    refused(
        wingbeatd(&files.config).arg("check-config").env("WINGBEAT_ID", "00b827eb01020304"),
        &["60-newer.toml: radio.port: found 0"],
    );
}

/// A running daemon and where its API is.
fn running(command: &mut Command) -> (Child, SocketAddr, std::thread::JoinHandle<String>) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    let address = loop {
        let from = text.len();
        assert!(lines.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        if let Some((_, rest)) = text[from..].split_once("API http://") {
            break rest.split(',').next().unwrap().trim().parse().unwrap();
        }
    };
    let rest = std::thread::spawn(move || {
        lines.read_to_string(&mut text).unwrap();
        text
    });
    (child, address, rest)
}

#[tokio::test]
async fn it_serves_notifies_systemd_and_ends_when_asked() {
    let files = files("serial:/dev/ttyWINGBEAT:57600", "");
    let path = files.folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut command = wingbeatd(&files.config);
    let (mut child, address, rest) = running(
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000000").env("WINGBEAT_NAME", "one"),
    );

    let (code, body) = crate::client::ask(address, "GET", paths::IDENTITY, "").await;
    let identity: Identity = serde_json::from_str(&body).unwrap();
    assert_eq!((code, identity.id.as_str(), identity.name.as_str()), (200, "00b827eb01020304", "one"));

    let wait_for = |wanted: &str| {
        let mut buffer = [0; 256];
        let mut all = String::new();
        while !all.contains(wanted) {
            let length = systemd.recv(&mut buffer).unwrap_or_else(|_| panic!("never {wanted}: {all}"));
            all += &String::from_utf8_lossy(&buffer[..length]);
            all += "\n";
        }
        all
    };
    let first = wait_for("READY=1");
    assert!(!first.contains("WATCHDOG"), "not before it is ready: {first}");
    wait_for("WATCHDOG=1");
    wait_for("WATCHDOG=1");

    let killed = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    wait_for("STOPPING=1");
    let status = child.wait().unwrap();
    let text = rest.join().unwrap();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("no such device") && text.contains("stopping: SIGTERM"), "{text}");
}

/// What it printed must be said once and end with this code.
fn enrolled(config: &PathBuf, arguments: &[&str], code: i32) -> (String, String) {
    let output = ended(wingbeatd(config).args(arguments));
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{error}");
    (out, error)
}

#[test]
fn an_aircraft_is_enrolled_by_its_own_request_and_its_secret_may_be_a_credential() {
    use std::os::unix::fs::PermissionsExt as _;
    use wingbeat_onboard::keys::{
        Request, Timestamp,
        enrolment::{self, Change},
    };
    let files = files("tcp:127.0.0.1:1", "");
    let path = |name: &str| files.folder.path().join(name);
    let (secret, bundle) = (path("state/aircraft.key"), path("state/fleet.bundle"));
    let keys = |secret: &PathBuf| format!("secret_key_file = {secret:?}\nbundle_file = {bundle:?}\n");
    let insecure = std::fs::read_to_string(&files.config).unwrap();
    let configure =
        |secret| std::fs::write(&files.config, insecure.replace("insecure = true\n", &keys(secret))).unwrap();
    configure(&secret);

    let (request, code) = enrolled(&files.config, &["enrol", "--request", "-"], 0);
    let request = Request::parse(&request).unwrap();
    assert_eq!(request.id().to_string(), "00b827eb01020304");
    assert!(code.contains(&format!("code {}", request.code())), "{code}");
    assert_eq!(secret.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (_, error) = enrolled(&files.config, &["check-config"], 2);
    assert!(error.contains("security.bundle_file: found") && error.lines().count() == 1, "{error}");

    let fleet = path("fleet");
    enrolment::init(&fleet, Timestamp::now(), 1).unwrap();
    let change = Change::Enrol { request, role: wingbeat_wire::Role::Aircraft };
    enrolment::change(&fleet, &change, Timestamp::now()).unwrap();
    let from = fleet.join("fleet.bundle");
    let accept = ["enrol", "--accept", from.to_str().unwrap()];
    assert!(
        enrolled(&files.config, &accept, 0)
            .0
            .contains("00b827eb01020304 holds keys of the fleet: epoch 1, serial 2")
    );
    enrolled(&files.config, &["check-config"], 0);
    std::fs::write(path("half"), &std::fs::read_to_string(&from).unwrap()[..300]).unwrap();
    let (_, error) = enrolled(&files.config, &["enrol", "--accept", path("half").to_str().unwrap()], 2);
    assert!(error.contains("not taken: found") && error.lines().count() == 1, "{error}");
    enrolled(&files.config, &["check-config"], 0);

    // As systemd hands it over: readable for a group, by its access control list.
    let credentials = path("credentials");
    std::fs::create_dir(&credentials).unwrap();
    let credential = credentials.join("aircraft.key");
    std::fs::copy(&secret, &credential).unwrap();
    std::fs::set_permissions(&credential, std::fs::Permissions::from_mode(0o440)).unwrap();
    configure(&credential);
    let (_, error) = enrolled(&files.config, &["check-config"], 2);
    assert!(error.contains("mode 440"), "{error}");
    let given =
        ended(wingbeatd(&files.config).arg("check-config").env("CREDENTIALS_DIRECTORY", &credentials));
    assert_eq!(given.status.code(), Some(0), "{given:?}");
    std::fs::set_permissions(&credential, std::fs::Permissions::from_mode(0o444)).unwrap();
    let open = ended(wingbeatd(&files.config).arg("check-config").env("CREDENTIALS_DIRECTORY", &credentials));
    assert_eq!(open.status.code(), Some(2), "{open:?}");
}
