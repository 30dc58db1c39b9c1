//! `wingbeat doctor`, beyond the line to the flight controller: clock, radio, identity, a running daemon, a
//! configuration that cannot be read.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
    time::Duration,
};

use crate::doctored::{Aircraft, Play, iw, line};
use tokio::{net::UdpSocket, task::JoinHandle, time::sleep};
use wingbeat_onboard::{
    Clock, config,
    doctor::{Options, Verdict, examine},
};
use wingbeat_radio::{UdpBroadcast, UdpConfig};
use wingbeat_wire::{Datagram, Message, Point, Signer, VehicleId};

/// The clock, the radio and the identity need no flight controller.
fn grounded() -> Aircraft {
    let aircraft = Aircraft::healthy();
    aircraft.remove("dev/ttyAMA0");
    aircraft
}

#[tokio::test]
async fn a_clock_that_is_not_set_or_not_synchronised() {
    let cure = "cure: connect to a time server once (systemd-timesyncd or chrony), or fit a real-time clock";
    let mut aircraft = grounded();
    aircraft.machine.synchronised = Ok("no\n".into());
    assert_eq!(
        aircraft.line("clock").await,
        format!(
            "warning clock: found 2026-11-21, not synchronised since the start, expected a synchronised clock: logs \
             of several aircraft are compared by it; {cure}"
        )
    );
    aircraft.machine.unix_time_s = 1_735_689_599;
    assert_eq!(
        aircraft.line("clock").await,
        format!(
            "FAULT   clock: found 2024-12-31: the clock is not set, expected the date, 2025 or later; {cure}"
        )
    );
    aircraft.machine.unix_time_s += 1;
    aircraft.machine.synchronised = Err("timedatectl not installed".into());
    assert_eq!(
        aircraft.line("clock").await,
        "ok      clock: found 2025-01-01, synchronisation unknown (timedatectl not installed)"
    );
}

#[tokio::test]
async fn a_radio_that_is_missing_down_or_not_chosen() {
    let mut aircraft = grounded();
    aircraft.write("sys/class/net/wlan0/flags", "0x1002\n");
    assert_eq!(
        aircraft.line("radio interface").await,
        "FAULT   radio interface: found wlan0 down, expected wlan0 up; cure: ip link set wlan0 up; rfkill unblock \
         wifi; the unit that joins the ad-hoc network"
    );
    aircraft.remove("sys/class/net/wlan0");
    aircraft.write("sys/class/net/eth0/flags", "0x1003\n");
    assert_eq!(
        aircraft.line("radio interface").await,
        "FAULT   radio interface: found no wlan0 (there is eth0), expected wlan0; cure: plug the radio in, load its \
         driver, or correct radio.interface"
    );
    aircraft.radio = "interface = \"eth0\"\n".into();
    assert_eq!(
        aircraft.line("radio mode").await,
        "warning radio mode: found eth0 not wireless, expected an 802.11 interface; cure: radio.interface, if the \
         aircraft use another interface"
    );
    aircraft.radio = String::new();
    assert_eq!(
        aircraft.line("radio interface").await,
        "warning radio interface: found none configured: datagrams leave by whatever interface the kernel chooses, \
         expected the interface to the other aircraft; cure: radio.interface, for example wlan0"
    );
}

#[tokio::test]
async fn a_radio_in_the_wrong_mode_or_on_the_wrong_channel() {
    let mut aircraft = grounded();
    let join = "iw dev wlan0 set type ibss (interface down), up, iw dev wlan0 ibss join SSID 5180";
    aircraft.machine.iw = Ok(iw("managed", "\tchannel 36 (5180 MHz), width: 20 MHz\n"));
    assert_eq!(
        aircraft.line("radio mode").await,
        format!("FAULT   radio mode: found wlan0 managed, expected IBSS (ad-hoc); cure: {join}")
    );
    aircraft.machine.iw = Ok(iw("IBSS", "\ttxpower 20.00 dBm\n"));
    assert_eq!(
        aircraft.line("radio mode").await,
        format!(
            "FAULT   radio mode: found wlan0 IBSS, joined to no network, expected a joined network; cure: {join}"
        )
    );
    aircraft.machine.iw = Ok(iw("IBSS", "\tchannel 6 (2437 MHz), width: 20 MHz\n"));
    assert_eq!(
        aircraft.line("radio mode").await,
        "FAULT   radio mode: found wlan0 IBSS at 2437 MHz, expected 5180 MHz (radio.frequency_mhz); cure: iw dev wlan0 \
         ibss leave; iw dev wlan0 ibss join SSID 5180"
    );
    aircraft.radio = "interface = \"wlan0\"\n".into();
    assert_eq!(
        aircraft.line("radio mode").await,
        "warning radio mode: found wlan0 IBSS at 2437 MHz, expected 5 GHz (802.11a); cure: a channel of 5 GHz, the \
         same on every aircraft, and radio.frequency_mhz to have it checked"
    );
    aircraft.machine.iw = Err("iw not installed".into());
    assert_eq!(
        aircraft.line("radio mode").await,
        "warning radio mode: found it unknown (iw not installed), expected IBSS (ad-hoc); cure: apt install iw"
    );
}

#[tokio::test]
async fn an_aircraft_that_is_not_in_the_cell_of_the_others() {
    let mut aircraft = grounded();
    aircraft.write("etc/wingbeat/network.conf", "INTERFACE=wlan0\n");
    let status = "wlan0: IBSS, 5180 MHz, cell 02:57:42:00:00:01, address 10.18.52.0/8, country ES";
    aircraft.machine.network = Ok(format!("{status}, 4 stations received\n"));
    assert_eq!(
        aircraft.line("radio cell").await,
        format!("ok      radio cell: found {status}, 4 stations received")
    );
    aircraft.machine.network = Ok(format!("{status}, 0 stations received\n"));
    assert_eq!(
        aircraft.line("radio cell").await,
        format!(
            "warning radio cell: found {status}, 0 stations received, expected another aircraft in the cell; cure: \
             switch another on; compare /etc/wingbeat/network.conf of both"
        )
    );
    let complaint = |key: &str, found: &str, cure: &str| {
        format!(
            "wingbeat-network: /etc/wingbeat/network.conf: {key}: found {found}, expected one; cure: {cure}"
        )
    };
    let cell = "another cell with the SSID wingbeat: 02:57:42:00:00:02@5180";
    let address = "10.18.52.2, which 02:00:00:12:34:02 in the cell has too";
    let both = [complaint("ADDRESS", address, "another"), complaint("CELL_ID", cell, "the same")].join(" ");
    // As `System::output` puts the program before what it complained about.
    aircraft.machine.network = Err(format!("wingbeat-network: {both}"));
    let report = aircraft.examined().await;
    let lines: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.name == "radio cell")
        .map(|finding| finding.to_string())
        .collect();
    let fault = |key: &str, found: &str, cure: &str| {
        format!(
            "FAULT   radio cell: found /etc/wingbeat/network.conf: {key}: {found}, expected one; cure: {cure}"
        )
    };
    assert_eq!(lines, [fault("ADDRESS", address, "another"), fault("CELL_ID", cell, "the same")]);
    aircraft.machine.network = Err("wingbeat-network not installed".into());
    assert_eq!(
        aircraft.line("radio cell").await,
        "warning radio cell: found wingbeat-network not installed, expected one cell; cure: install it, and run \
         wingbeat-network check"
    );
    let as_root = "wlan0: found user pi, expected root; cure: sudo wingbeat-network check";
    aircraft.machine.network = Err(format!("wingbeat-network: wingbeat-network: {as_root}"));
    assert_eq!(
        aircraft.line("radio cell").await,
        "warning radio cell: found wlan0: user pi, expected root; cure: sudo wingbeat-network check"
    );
    aircraft.machine.network = Ok(format!("{status}, 4 stations received\n"));
    aircraft.radio = "interface = \"wlan0\"\nfrequency_mhz = 5200\n".into();
    assert_eq!(
        aircraft.line("radio cell").await,
        format!(
            "FAULT   radio cell: found {status}, 4 stations received, expected 5200 MHz (radio.frequency_mhz); cure: \
             radio.frequency_mhz, or FREQUENCY_MHZ in /etc/wingbeat/network.conf, alike on every aircraft"
        )
    );
}

#[tokio::test]
async fn no_keys() {
    let mut aircraft = Aircraft::healthy();
    aircraft.security = "insecure = true\n".into();
    assert_eq!(
        aircraft.line("keys").await,
        "warning keys: found none (security.insecure): any transmitter in reach flies this aircraft, expected \
         datagrams that are signed; cure: wingbeatd enrol, and no security.insecure (docs/operating.md)"
    );
}

#[tokio::test]
async fn keys_that_have_expired_and_a_clock_that_cannot_show_it() {
    let mut aircraft = Aircraft::healthy();
    aircraft.machine.unix_time_s += 10 * 86_400;
    assert_eq!(
        aircraft.line("keys").await,
        "FAULT   keys: found those of 3 aircraft and consoles, epoch 1, serial 4, until 2026-12-01T00:00:00Z, expected keys that \
         hold: no setup begins; cure: on the operator's computer: wingbeat fleet renew, wingbeat fleet push"
    );
    aircraft.machine.unix_time_s = 0;
    let line = aircraft.line("keys").await;
    assert!(line.starts_with("warning keys: ") && line.contains("cure: set the clock"), "{line}");
}

/// An aircraft at an address of the loopback network that broadcasts its id periodically.
fn neighbour(address: [u8; 4], port: u16, id: u64, signer: Signer) -> JoinHandle<()> {
    tokio::spawn(async move {
        let socket = UdpSocket::bind(SocketAddrV4::new(address.into(), 0)).await.unwrap();
        for counter in 0.. {
            let message = Message::Hello { at: Point::default() };
            let datagram = Datagram { from: VehicleId(id), counter, flight: 0, message };
            let mut draft = datagram.draft().unwrap();
            let bytes = signer.seal(&mut draft);
            // Refused while the doctor does not listen yet.
            let _ = socket.send_to(bytes, (Ipv4Addr::LOCALHOST, port)).await;
            sleep(Duration::from_millis(5)).await;
        }
    })
}

#[tokio::test]
async fn an_id_that_another_aircraft_has_too() {
    let cure = "cure: another id (key id, or another radio) for one of the two";
    let aircraft = grounded();
    let port = aircraft.radio_port;
    let others = [
        neighbour([127, 0, 0, 8], port, 8, aircraft.signer(8)),
        neighbour([127, 0, 0, 9], port, 9, aircraft.signer(9)),
    ];
    assert_eq!(
        aircraft.line("identity").await,
        "ok      identity: found 00b827eb01020304, ours alone; received from 2 other aircraft"
    );
    let double = neighbour([127, 0, 0, 10], port, 9, aircraft.signer(9));
    assert_eq!(
        aircraft.line("identity").await,
        format!(
            "FAULT   identity: found id 0000000000000009 used by 127.0.0.9 and 127.0.0.10, expected an id for each \
             aircraft; {cure}"
        )
    );
    let thief =
        neighbour([127, 0, 0, 11], port, 0x00b8_27eb_0102_0304, aircraft.signer(0x00b8_27eb_0102_0304));
    assert_eq!(
        aircraft.line("identity").await,
        format!(
            "FAULT   identity: found our id 00b827eb01020304 used by 127.0.0.11 too, expected an id of our own; {cure}"
        )
    );
    others.into_iter().chain([double, thief]).for_each(|task| task.abort());
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_is_one_line() {
    let error =
        config::read_with(&config::Layers::of("wingbeatd.toml", "colour = 1\n"), &|_| Err("no MAC".into()))
            .unwrap_err();
    let aircraft = grounded();
    let report = examine(&Options::new(Err(error)), &aircraft.machine).await;
    let text = line(&report, "configuration");
    assert!(text.starts_with("FAULT   configuration: found wingbeatd.toml: "), "{text}");
    assert!(text.contains("unknown field `colour`") && text.lines().count() == 1, "{text}");
    assert_eq!(report.exit_code(), 2);
}

#[tokio::test]
async fn a_running_daemon_is_asked_and_keeps_its_line() {
    let mut aircraft = Aircraft::with(Play { is_commanded: true, ..Play::default() });
    aircraft.endpoint = format!("serial:{}:921600", aircraft.device().display());
    aircraft.http = "127.0.0.1:0".into();
    let settings = aircraft.options().settings.unwrap();
    let radio = UdpConfig { interface: None, ..settings.radio.clone() };
    // The doctored machine has other addresses than the one whose radio this is.
    let configured = wingbeat_onboard::Config { link_probe_period: None, ..settings.daemon };
    let daemon =
        wingbeat_onboard::start(configured, Clock::real_time(), UdpBroadcast::spawn(radio)).await.unwrap();
    let mut status = daemon.status();
    let up = wingbeat_api::LinkState::Up;
    let received = status.wait_for(|status| status.flight_controller.link == up);
    drop(tokio::time::timeout(Duration::from_secs(60), received).await.expect("telemetry").unwrap());

    aircraft.endpoint = "serial:/dev/ttyAMA0:921600".into();
    aircraft.http = daemon.address().to_string();
    aircraft.process(733, "wingbeatd");
    let report = aircraft.examined().await;
    assert_eq!(
        line(&report, "daemon"),
        "ok      daemon: found wingbeatd running; it holds the line and answers for it"
    );
    assert_eq!(line(&report, "line"), "ok      line: found telemetry");
    assert_eq!(
        line(&report, "identity"),
        "ok      identity: found 00b827eb01020304, ours alone; received from 0 other aircraft"
    );
    assert_eq!(report.verdict, Verdict::Ok, "{report}");
    assert_eq!(status.borrow_and_update().flight_controller.link, up, "the doctor took nothing from it");
    daemon.stop().await;
}

#[tokio::test]
async fn a_running_daemon_without_telemetry_is_reported() {
    let mut aircraft = Aircraft::with(Play { mute: true, ..Play::default() });
    aircraft.endpoint = format!("serial:{}:921600", aircraft.device().display());
    aircraft.http = "127.0.0.1:0".into();
    let settings = aircraft.options().settings.unwrap();
    let radio = UdpConfig { interface: None, ..settings.radio.clone() };
    // The doctored machine has other addresses than the one whose radio this is.
    let configured = wingbeat_onboard::Config { link_probe_period: None, ..settings.daemon };
    let daemon =
        wingbeat_onboard::start(configured, Clock::real_time(), UdpBroadcast::spawn(radio)).await.unwrap();
    let mut status = daemon.status();
    let silent = |fault: &wingbeat_api::LinkFault| fault.kind == wingbeat_api::LinkFaultKind::Silent;
    let open = status.wait_for(|status| status.flight_controller.link_fault.as_ref().is_some_and(silent));
    drop(tokio::time::timeout(Duration::from_secs(60), open).await.expect("an open port").unwrap());
    aircraft.link("dev/ttyAMA0", Path::new("/dev/null"));
    aircraft.endpoint = "serial:/dev/ttyAMA0:921600".into();
    aircraft.http = daemon.address().to_string();
    assert_eq!(
        aircraft.line("line").await,
        "FAULT   line: found no telemetry since the daemon started (the port is open and no byte comes: power, wiring, \
         SERIALn_PROTOCOL), expected telemetry; cure: systemctl stop wingbeatd \
         on the ground and ask the doctor again: it then listens to the line itself"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn the_daemon_distinguishes_no_data_noise_and_a_closed_port() {
    use wingbeat_api::LinkFaultKind::{NoMavlink, PortClosed, Silent};
    for (play, expected) in [
        (Some(Play { mute: true, ..Play::default() }), Silent),
        (Some(Play { baud: Some(1_200), ..Play::default() }), NoMavlink),
        (None, PortClosed),
    ] {
        let mut aircraft = Aircraft::healthy();
        aircraft.endpoint = format!("serial:{}:921600", aircraft.device().display());
        aircraft.http = "127.0.0.1:0".into();
        match play {
            Some(play) => aircraft.fly(play),
            None => aircraft.endpoint = "serial:/dev/ttyWINGBEAT:921600".into(),
        }
        let settings = aircraft.options().settings.unwrap();
        let radio = UdpConfig { interface: None, ..settings.radio.clone() };
        let radio = UdpBroadcast::spawn(radio);
        let daemon = wingbeat_onboard::start(settings.daemon, Clock::real_time(), radio).await.unwrap();
        let mut status = daemon.status();
        let reported = status.wait_for(|status| {
            let fault = &status.flight_controller.link_fault;
            fault.as_ref().is_some_and(|fault| fault.kind == expected && !fault.detail.is_empty())
        });
        let reported = tokio::time::timeout(Duration::from_secs(60), reported).await;
        drop(reported.unwrap_or_else(|_| panic!("never {expected:?}")).unwrap());
        daemon.stop().await;
    }
}
