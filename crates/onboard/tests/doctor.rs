//! `wingbeat doctor` against aircraft with one fault each: every fault has its exact line, and a
//! healthy aircraft has none.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use crate::doctored::{Aircraft, Play, line};
use wingbeat_autopilot::dialect::MavAutopilot;
use wingbeat_onboard::doctor::Verdict;

#[tokio::test]
async fn a_healthy_aircraft_has_no_fault() {
    let aircraft = Aircraft::with(Play::default());
    let report = aircraft.examined().await;
    assert_eq!(
        report.to_string(),
        "ok      configuration: found aircraft 00b827eb01020304\n\
         ok      device: found /dev/ttyAMA0\n\
         ok      permission: found /dev/ttyAMA0 of group dialout, mode 660\n\
         ok      console: found none on ttyAMA0\n\
         ok      bluetooth: found ttyAMA0 free of it\n\
         ok      port: found it free\n\
         ok      line: found serial:/dev/ttyAMA0:921600 with MAVLink\n\
         ok      MAVLink: found MAVLink 2\n\
         ok      autopilot: found ArduPilot multicopter, system 1\n\
         ok      telemetry: found the position at 4.0 Hz and all that the agent needs\n\
         ok      frames: found no gaps\n\
         ok      ground station id: found SYSID_MYGCS = 255\n\
         ok      flow control: found BRD_SER2_RTSCTS = 0, off on our side\n\
         ok      clock: found 2026-11-21, synchronised\n\
         ok      radio interface: found wlan0 up\n\
         ok      radio mode: found wlan0 IBSS at 5180 MHz\n\
         ok      keys: found those of 3 aircraft and consoles, epoch 1, serial 4, until 2026-12-01T00:00:00Z\n\
         ok      identity: found 00b827eb01020304, ours alone; received from 0 other aircraft\n"
    );
    assert_eq!((report.verdict, report.exit_code()), (Verdict::Ok, 0));
}

#[tokio::test]
async fn no_device() {
    let aircraft = Aircraft::healthy();
    aircraft.remove("dev/ttyAMA0");
    let report = aircraft.examined().await;
    assert_eq!(
        line(&report, "device"),
        "FAULT   device: found no /dev/ttyAMA0, expected a serial device; cure: connect it; on a Raspberry Pi \
         enable_uart=1 in config.txt, then restart; `ls -l /dev/serial*` shows those that there are"
    );
    assert_eq!((report.verdict, report.exit_code()), (Verdict::Fault, 2));
}

#[tokio::test]
async fn a_file_that_is_no_device() {
    let aircraft = Aircraft::healthy();
    aircraft.remove("dev/ttyAMA0");
    aircraft.write("dev/ttyAMA0", "");
    assert_eq!(
        aircraft.line("device").await,
        "FAULT   device: found /dev/ttyAMA0, which is no character device, expected a serial device; cure: correct \
         autopilot.endpoint"
    );
}

#[tokio::test]
async fn a_user_outside_the_group() {
    let aircraft = Aircraft::healthy();
    aircraft.write(
        "proc/self/status",
        "Uid:\t1001\t1001\t1001\t1001\nGid:\t1001\t1001\t1001\t1001\nGroups:\t \n",
    );
    assert_eq!(
        aircraft.line("permission").await,
        "FAULT   permission: found /dev/ttyAMA0 of group dialout, mode 660, and user 1001 may not open it, expected a \
         device that this user may open; cure: usermod --append --groups dialout USER and log in anew; if the device \
         is not of that group: chgrp dialout and chmod 660 by a udev rule, and no getty on it"
    );
}

#[tokio::test]
async fn a_device_that_only_root_may_open() {
    let aircraft = Aircraft::with(Play::default());
    fs::set_permissions(aircraft.device(), fs::Permissions::from_mode(0o600)).unwrap();
    aircraft.write("proc/self/status", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0\n");
    let report = aircraft.examined().await;
    assert_eq!(
        line(&report, "permission"),
        "FAULT   permission: found /dev/ttyAMA0 of group dialout, mode 600, expected group dialout with read and \
         write, which is what wingbeatd has; cure: usermod --append --groups dialout USER and log in anew; if the \
         device is not of that group: chgrp dialout and chmod 660 by a udev rule, and no getty on it"
    );
    assert_eq!(line(&report, "MAVLink"), "ok      MAVLink: found MAVLink 2", "root checks further");
}

#[tokio::test]
async fn a_console_on_the_kernels_command_line() {
    let aircraft = Aircraft::healthy();
    aircraft.write("boot/firmware/cmdline.txt", "console=serial0,115200 console=tty1 rootwait\n");
    aircraft.write("proc/cmdline", "console=ttyAMA0,115200 console=tty1 rootwait\n");
    assert_eq!(
        aircraft.line("console").await,
        "FAULT   console: found console=serial0,115200 in /boot/firmware/cmdline.txt, console=ttyAMA0,115200 in \
         /proc/cmdline, expected no console on it; cure: remove console=serial0,115200 from \
         /boot/firmware/cmdline.txt and restart; restart"
    );
    // A console on another device is no fault.
    aircraft.link("dev/serial0", Path::new("ttyS0"));
    aircraft.link("dev/serial1", Path::new("ttyS1"));
    aircraft.write("proc/cmdline", "console=tty1 rootwait\n");
    assert_eq!(aircraft.line("console").await, "ok      console: found none on ttyAMA0");
}

#[tokio::test]
async fn the_kernels_own_console() {
    let aircraft = Aircraft::healthy();
    let device = fs::metadata(aircraft.device()).unwrap().rdev();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff);
    let consoles = format!("tty1 -WU (EC  p  )    4:1\nttyAMA0 -W- (EC  p a)  {major}:{minor}\n");
    aircraft.write("proc/consoles", &consoles);
    assert_eq!(
        aircraft.line("console").await,
        "FAULT   console: found the kernel's console ttyAMA0, expected no console on it; cure: remove console= for \
         this device from the kernel's command line and restart"
    );
}

#[tokio::test]
async fn a_login_on_the_line() {
    let aircraft = Aircraft::healthy();
    let unit = "serial-getty@ttyAMA0.service";
    let wants = format!("etc/systemd/system/getty.target.wants/{unit}");
    aircraft.link(&wants, Path::new("/lib/systemd/system/serial-getty@.service"));
    let cure =
        format!("expected no console on it; cure: systemctl disable --now {unit} && systemctl mask {unit}");
    assert_eq!(aircraft.line("console").await, format!("FAULT   console: found {unit} enabled, {cure}"));
    aircraft.process(612, "agetty");
    assert_eq!(
        aircraft.line("console").await,
        format!("FAULT   console: found a login on it, process 612 (agetty), {cure}")
    );
    aircraft.remove("proc/612");
    aircraft.link(&format!("etc/systemd/system/{unit}"), Path::new("/dev/null"));
    assert_eq!(aircraft.line("console").await, "ok      console: found none on ttyAMA0", "masked");
}

#[tokio::test]
async fn bluetooth_on_the_good_uart() {
    let aircraft = Aircraft::healthy();
    aircraft.link("dev/serial0", Path::new("ttyS0"));
    aircraft.link("dev/serial1", Path::new("ttyAMA0"));
    let found = "FAULT   bluetooth: found ttyAMA0 on the Bluetooth modem and the mini UART on the pins, expected \
                 ttyAMA0 on the pins; cure: ";
    assert_eq!(
        aircraft.line("bluetooth").await,
        format!("{found}restart: dtoverlay=disable-bt is in /boot/firmware/config.txt and not yet in effect")
    );
    aircraft.write("boot/firmware/config.txt", "enable_uart=1\n#dtoverlay=disable-bt\n");
    assert_eq!(
        aircraft.line("bluetooth").await,
        format!(
            "{found}dtoverlay=disable-bt in /boot/firmware/config.txt, systemctl disable hciuart, restart, and \
             serial:/dev/ttyAMA0:RATE as autopilot.endpoint"
        )
    );
}

#[tokio::test]
async fn a_program_that_has_the_line() {
    let aircraft = Aircraft::with(Play::default());
    aircraft.process(733, "ModemManager");
    let report = aircraft.examined().await;
    assert_eq!(
        line(&report, "port"),
        "FAULT   port: found it open in process 733 (ModemManager), expected a device that no other process has open; \
         cure: end that program; ModemManager: systemctl disable --now ModemManager"
    );
    assert!(!report.to_string().contains("MAVLink"), "the line is left alone");
}

#[tokio::test]
async fn a_daemon_that_does_not_answer() {
    let aircraft = Aircraft::with(Play::default());
    aircraft.process(733, "wingbeatd");
    assert_eq!(
        aircraft.line("port").await,
        "FAULT   port: found it open in process 733 (wingbeatd), which does not answer on http.bind, expected a daemon \
         that answers, or none; cure: systemctl restart wingbeatd, or stop it and ask again"
    );
}

#[tokio::test]
async fn a_guardian_that_has_the_aircraft() {
    let aircraft = Aircraft::healthy();
    aircraft.process(734, "wingbeat-guard");
    assert_eq!(
        aircraft.line("port").await,
        "FAULT   port: found it open in the guardian, which has taken over the aircraft since its daemon stopped sending, expected a \
         daemon that holds it; cure: leave an aircraft that flies to it; on the ground systemctl restart wingbeatd"
    );
}

#[tokio::test]
async fn silence() {
    let aircraft = Aircraft::with(Play { mute: true, ..Play::default() });
    assert_eq!(
        aircraft.line("line").await,
        "FAULT   line: found no byte within 1 s, expected telemetry; cure: power of the flight controller; its TX on \
         our RX and a common ground; SERIAL2_PROTOCOL = 2 (SERIALn of the port in use)"
    );
}

#[tokio::test]
async fn a_wrong_rate_and_the_one_that_works() {
    let aircraft = Aircraft::with(Play { baud: Some(115_200), ..Play::default() });
    assert_eq!(
        aircraft.line("baud rate").await,
        "FAULT   baud rate: found bytes and no MAVLink at 921600, MAVLink at 115200, expected MAVLink at 921600; cure: \
         115200 in autopilot.endpoint, or SERIAL2_BAUD = 921 on the flight controller"
    );
}

#[tokio::test]
async fn noise_at_every_rate() {
    let aircraft = Aircraft::with(Play { baud: Some(1_200), ..Play::default() });
    assert_eq!(
        aircraft.line("baud rate").await,
        "FAULT   baud rate: found bytes and no MAVLink at 921600 nor at any usual rate, expected MAVLink at 921600; \
         cure: SERIAL2_PROTOCOL = 2 and SERIAL2_BAUD (SERIALn of the port in use); a common ground; 3.3 V levels"
    );
}

#[tokio::test]
async fn mavlink_1_only() {
    let aircraft = Aircraft::with(Play { mavlink_1: true, ..Play::default() });
    let report = aircraft.examined().await;
    assert_eq!(
        line(&report, "MAVLink"),
        "warning MAVLink: found MAVLink 1 only, expected MAVLink 2; cure: SERIAL2_PROTOCOL = 2 (SERIALn of the port in \
         use) and restart the flight controller"
    );
    assert_eq!((report.verdict, report.exit_code()), (Verdict::Warning, 1));
}

#[tokio::test]
async fn telemetry_too_slow_or_incomplete() {
    let cure = "cure: SERIAL2_BAUD = 921 and the same rate in autopilot.endpoint; no ground station that sets other \
                rates; wingbeatd asks for what it needs";
    let aircraft = Aircraft::with(Play { position_ms: 1_000, ..Play::default() });
    assert_eq!(
        aircraft.line("telemetry").await,
        format!("warning telemetry: found the position at 1.0 Hz, expected 4.0 Hz; {cure}")
    );
    let aircraft = Aircraft::with(Play { complete: false, ..Play::default() });
    assert_eq!(
        aircraft.line("telemetry").await,
        format!(
            "warning telemetry: found the position and no SYS_STATUS, no GPS_RAW_INT, no EKF_STATUS_REPORT, no \
             NAV_CONTROLLER_OUTPUT, expected each at 1 Hz at least; {cure}"
        )
    );
}

#[tokio::test]
async fn several_autopilots() {
    let aircraft = Aircraft::with(Play { systems: vec![1, 7], ..Play::default() });
    assert_eq!(
        aircraft.line("autopilot").await,
        "FAULT   autopilot: found 2 autopilots on the line, systems 1, 7, expected one; cure: autopilot.system_id = N, \
         this aircraft's own; or no telemetry radio or router that forwards another's frames"
    );
}

#[tokio::test]
async fn another_autopilot_and_none() {
    let px4 = MavAutopilot::MAV_AUTOPILOT_PX4;
    let aircraft = Aircraft::with(Play { autopilot: px4, ..Play::default() });
    assert_eq!(
        aircraft.line("autopilot").await,
        "FAULT   autopilot: found another autopilot or vehicle, system 1, expected ArduCopter; cure: load ArduCopter, \
         or connect the right flight controller"
    );
    let none = MavAutopilot::MAV_AUTOPILOT_INVALID;
    let aircraft = Aircraft::with(Play { autopilot: none, ..Play::default() });
    assert_eq!(
        aircraft.line("autopilot").await,
        "FAULT   autopilot: found MAVLink of system 1 and no heartbeat of an autopilot, expected the heartbeat of a \
         flight controller; cure: connect the companion computer to a telemetry port of the flight controller itself"
    );
}

#[tokio::test]
async fn a_wrong_ground_station_id_by_either_name() {
    for name in ["SYSID_MYGCS", "MAV_GCS_SYSID"] {
        let aircraft = Aircraft::with(Play { parameters: [(name, 252.0)].into(), ..Play::default() });
        assert_eq!(
            aircraft.line("ground station id").await,
            format!(
                "FAULT   ground station id: found {name} = 252, expected 255; cure: {name} = 255: overrides and \
                 heartbeats of another id are not obeyed"
            )
        );
    }
}

#[tokio::test]
async fn lost_frames() {
    let aircraft = Aircraft::with(Play { loses: Some(5), position_ms: 50, ..Play::default() });
    assert_eq!(
        aircraft.line("frames").await,
        "warning frames: found one in 5 lost, by the gaps in their numbers, expected no gaps; cure: flow control is \
         suspected: connect RTS and CTS, set BRD_SER2_RTSCTS = 1 and :rtscts at the end of autopilot.endpoint; or a \
         lower rate; shorter wires, a common ground"
    );
}

#[tokio::test]
async fn an_autopilot_that_does_not_receive_us() {
    let mut aircraft = Aircraft::with(Play { parameters: [].into(), ..Play::default() });
    assert_eq!(
        aircraft.line("answers").await,
        "FAULT   answers: found telemetry and no answer: our bytes do not arrive, expected an answer to a parameter \
         request; cure: the wire from our TX to the flight controller's RX; flow control: BRD_SER2_RTSCTS = 0 without \
         RTS and CTS wires; signing: no key that only a ground station has"
    );
    aircraft.endpoint += ":rtscts";
    assert_eq!(
        aircraft.line("answers").await,
        "FAULT   answers: found telemetry and no answer, with flow control on: our bytes wait for CTS, expected an \
         answer to a parameter request; cure: no :rtscts in autopilot.endpoint unless RTS and CTS are connected and \
         BRD_SER2_RTSCTS = 1"
    );
}

#[tokio::test]
async fn flow_control_on_one_side() {
    let parameters = |on: f32| [("SYSID_MYGCS", 255.0), ("BRD_SER2_RTSCTS", on)].into();
    let aircraft = Aircraft::with(Play { parameters: parameters(1.0), ..Play::default() });
    assert_eq!(
        aircraft.line("flow control").await,
        "warning flow control: found BRD_SER2_RTSCTS = 1 and none on our side, expected both or neither; cure: \
         BRD_SER2_RTSCTS = 0; or connect RTS and CTS and add :rtscts to autopilot.endpoint"
    );
    let mut aircraft = Aircraft::with(Play { parameters: parameters(0.0), ..Play::default() });
    aircraft.endpoint += ":rtscts";
    assert_eq!(
        aircraft.line("flow control").await,
        "FAULT   flow control: found BRD_SER2_RTSCTS = 0 and :rtscts on our side: our bytes may wait for ever, \
         expected both or neither; cure: BRD_SER2_RTSCTS = 1, or no :rtscts in autopilot.endpoint"
    );
}
