mod sample;

use std::net::Ipv4Addr;

use wingbeat_agent::{
    Coordination,
    guardian::{self, Then},
};
use wingbeat_keys::enrolment;
use wingbeat_link::Endpoint;
use wingbeat_protocol::{mbcap, mission, muscop, sweep};
use wingbeat_radio::Destination;

use super::*;

const LEAST: &str = r#"
id = "00b827eb01020304"
[security]
insecure = true
[autopilot]
endpoint = "tcp:127.0.0.1:5760"
[muscop]
master = "00b827eb01020304"
aircraft = 3
"#;

fn no_mac(interface: &str) -> Result<u64, String> {
    Err(format!("no interface {interface}"))
}

fn from_file(text: &str) -> Result<Settings, ConfigError> {
    read_with(&Layers::of("wingbeatd.toml", text), &no_mac)
}

fn with_environment(text: &str, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let variables = variables.iter().map(|(key, value)| ((*key).into(), (*value).into()));
    read_with(&Layers::of("wingbeatd.toml", text).environment(variables), &no_mac)
}

fn from_path(path: &Path) -> Result<Settings, ConfigError> {
    read(&Layers::read(&Flags { config: path.into(), overrides: Vec::new() })?)
}

#[test]
fn the_least_file_takes_the_published_numbers() {
    let settings = from_file(LEAST).unwrap();
    let me = VehicleId(0x00b8_27eb_0102_0304);
    assert_eq!(settings.daemon.agent, wingbeat_agent::Config::new(muscop::Config::new(me, me, 3)));
    assert_eq!(settings.daemon.name, "uav-0304");
    assert!(settings.daemon.http.ip().is_loopback(), "by default only this machine commands the aircraft");
    assert_eq!(settings.radio.destination, Destination::Broadcast(Ipv4Addr::BROADCAST));
}

#[test]
fn the_protocol_is_chosen_and_the_other_s_section_is_not_needed() {
    let alone = "id = \"00b827eb01020304\"\n[autopilot]\nendpoint = \"tcp:127.0.0.1:5760\"\n[security]\ninsecure = true\n";
    let mut expected = mbcap::Config::mbcap();
    expected.me = VehicleId(0x00b8_27eb_0102_0304);
    expected.planned_speed_m_s = 8.0;
    expected.height_most_m = 60.0;
    expected.beacon_period = std::time::Duration::from_millis(400);
    let file = format!(
        "protocol = \"mbcap\"\n{alone}[fence]\nheight_most_m = 60.0\n[mbcap]\nvariant = \"mbcap\"\n\
         planned_speed_m_s = 8.0\nbeacon_period_ms = 400\n"
    );
    assert_eq!(from_file(&file).unwrap().daemon.agent, wingbeat_agent::Config::new(expected));
    let mut expected = mission::Config::new(VehicleId(0x00b8_27eb_0102_0304));
    expected.fence.height_most_m = 60.0;
    expected.planned_speed_m_s = 8.0;
    let file = format!(
        "protocol = \"mission\"\n{alone}[fence]\nheight_most_m = 60.0\n[mission]\nplanned_speed_m_s = 8.0\n"
    );
    assert_eq!(from_file(&file).unwrap().daemon.agent, wingbeat_agent::Config::new(expected));
    let mut expected = sweep::Config::new(VehicleId(0x00b8_27eb_0102_0304), 2, 3);
    expected.mission.planned_speed_m_s = 6.0;
    let file = format!(
        "protocol = \"sweep\"\n{alone}[mission]\nplanned_speed_m_s = 6.0\n[sweep]\naircraft = 3\nstrip = 2\n"
    );
    assert_eq!(from_file(&file).unwrap().daemon.agent, wingbeat_agent::Config::new(expected));
    for (file, words) in [
        (alone.to_owned(), "muscop.master: found nothing, expected the id"),
        (
            format!("protocol = \"mscop\"\n{alone}"),
            "unknown variant `mscop`, expected one of `muscop`, `mbcap`, `follow_me`, `mission`, `sweep`",
        ),
        (format!("protocol = \"sweep\"\n{alone}"), "sweep.aircraft: found nothing, expected how many"),
        (
            format!(
                "protocol = \"sweep\"\n{alone}[sweep]\naircraft = 3\nstrip = 0\nlane_distance_m = -1.0\n"
            ),
            "sweep.lane_distance_m: found -1",
        ),
        (
            format!("protocol = \"mission\"\n{alone}[mission]\nhold_before_landing_ms = 9999999\n"),
            "mission.hold_before_landing_ms: found 9999999, expected 0 to 3600000 ms",
        ),
        (
            format!("protocol = \"mission\"\n{alone}[mission]\nplanned_speed_m_s = 30.0\n"),
            "mission.planned_speed_m_s: found 30, expected 0.5 to 20 m/s",
        ),
        (
            format!("protocol = \"mbcap\"\n{alone}[mbcap]\nvariant = \"x\"\n"),
            "unknown variant `x`, expected `mbcap` or",
        ),
        (
            format!("protocol = \"mbcap\"\n{alone}[mbcap]\nbrake = \"x\"\n"),
            "unknown variant `x`, expected `published`",
        ),
        (
            format!("protocol = \"mbcap\"\n{alone}[mbcap]\nhorizon_s = 20.0\n"),
            "mbcap.horizon_s: found a value, expected none with mbcap.variant = \"mbcap-e\"",
        ),
        (
            format!("protocol = \"mbcap\"\n{alone}[mbcap]\nvariant = \"mbcap\"\nloss_s = 1.0\n"),
            "mbcap.loss_s: found a value, expected none with mbcap.variant = \"mbcap\"",
        ),
        // Defects of the reference program are for the bench.
        (format!("protocol = \"mbcap\"\n{alone}[mbcap]\naside_tests = \"avoided\"\n"), "unknown field"),
        (format!("protocol = \"mbcap\"\n{alone}[mbcap]\ncurves = \"as-coded\"\n"), "unknown field"),
        (
            format!("protocol = \"mbcap\"\n{alone}[mbcap]\nplanned_speed_m_s = nan\n"),
            "mbcap.planned_speed_m_s: found NaN",
        ),
    ] {
        let message = from_file(&file).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_formation_that_follows_a_pilot_is_configured_and_each_mistake_is_named() {
    let head = "id = \"0000000000000002\"\nprotocol = \"follow_me\"\n[autopilot]\nendpoint = \"tcp:127.0.0.1:5760\"\n[security]\ninsecure = true\n";
    let least = format!("{head}[follow_me]\nleader = \"0000000000000001\"\naircraft = 3\n");
    let expected = wingbeat_protocol::follow_me::Config::new(VehicleId(2), VehicleId(1), 3);
    assert_eq!(from_file(&least).unwrap().daemon.agent, wingbeat_agent::Config::new(expected));
    let file = format!(
        "{least}refresh_ms = 500\ndistance_m = 95.0\nleader_timeout_s = 1.5\nleader_lost = \"land\"\n\
         follows_again = true\nlanding = \"formation\"\nformation = \"matrix\"\nheight_m = 25.0\n"
    );
    let Coordination::FollowMe(config) = from_file(&file).unwrap().daemon.agent.coordination else {
        panic!("follow_me")
    };
    assert_eq!((config.refresh.as_millis(), config.leader_timeout.as_millis()), (500, 1_500));
    assert_eq!((config.swarm.distance_m, config.height_m, config.follows_again), (95.0, 25.0, true));
    for (line, words) in [
        ("leader_lost = \"panic\"", "unknown variant `panic`, expected `hold` or `land`"),
        ("landing = \"x\"", "unknown variant `x`, expected `in_place` or `formation`"),
        (
            "formation = \"arrow\"",
            "follow_me.formation: found \"arrow\", expected one of linear, matrix, circular",
        ),
        ("formation = \"custom\"", "follow_me.formation_file: found none, expected the file of the slots"),
        (
            "formation = \"custom\"\nformation_file = \"/nowhere/x.csv\"",
            "follow_me.formation_file: found /nowhere/x.csv",
        ),
        ("refresh_ms = 10", "follow_me.refresh_ms: found 10, expected 250 to 5000 ms"),
        ("turn_m_s = nan", "follow_me.turn_m_s: found NaN"),
        ("leader_timeout_s = nan", "found NaN, expected a time in seconds"),
        (
            "refresh_ms = 2000\nleader_timeout_s = 2.0",
            "follow_me.leader_timeout_s: found 2, expected at least 4 s: two refreshes",
        ),
        ("distance_m = 25.0", "follow_me.distance_m: found 25, expected at least 60 m"),
        ("refresh_ms = 500", "follow_me.distance_m: found 60, expected at least 90 m"),
        ("refresh_ms = 200", "follow_me.refresh_ms: found 200, expected 250 to 5000 ms"),
        ("height_m = 200.0", "follow_me.height_m: found 200, expected 2 to 120 m"),
        ("speed = 5", "unknown field `speed`"),
    ] {
        let message = from_file(&format!("{least}{line}\n")).unwrap_err().to_string();
        assert!(message.contains(words), "{line}: {message}");
    }
    let close = format!("{least}distance_m = 25.0\naccepts_close = true\n");
    assert!(from_file(&close).is_ok());
    let message = from_file(head).unwrap_err().to_string();
    assert!(message.contains("follow_me.leader: found nothing"), "{message}");
}

#[test]
fn ground_stations_are_served_only_where_configured() {
    assert_eq!(from_file(LEAST).unwrap().daemon.gateway, crate::gateway::Config::default());
    let text = format!("{LEAST}[gateway]\nudp = [\"udpout:10.0.0.2:14550\"]\ntcp = \"127.0.0.1:5790\"\n");
    let gateway = from_file(&text).unwrap().daemon.gateway;
    assert_eq!(gateway.udp, [Endpoint::UdpSend(([10, 0, 0, 2], 14550).into())]);
    assert_eq!(gateway.tcp, Some(([127, 0, 0, 1], 5790).into()));
    assert!(gateway.udp_clients.iter().all(std::net::IpAddr::is_loopback) && gateway.udp_clients.len() == 2);
    let listed = from_file(&format!("{text}udp_clients = [\"10.0.0.9\"]\n")).unwrap().daemon.gateway;
    assert_eq!(listed.udp_clients, ["10.0.0.9".parse::<std::net::IpAddr>().unwrap()]);
    let off = with_environment(&text, &[("WINGBEAT_GATEWAY__TCP", "")]).unwrap().daemon.gateway;
    assert_eq!(off.tcp, None, "the environment can switch it off");
}

#[test]
fn every_mistake_names_its_key() {
    let long = "x".repeat(65);
    for (change, expected) in [
        // (what is added, what the message must say)
        ("colour = \"red\"", "unknown field `colour`"),
        ("name = \"\"", "name: found \"\""),
        (&format!("name = {long:?}"), "name: found"),
        ("[radio]\nport = 0", "radio.port: found 0"),
        ("[radio]\nport = 70000", "port = 70000"),
        ("[radio]\nport = 5.7", "port = 5.7"),
        ("[radio]\nport = '5'", "port = '5'"),
        ("[radio]\nfrequency_mhz = 36", "radio.frequency_mhz: found 36"),
        ("[radio]\nbroadcast = \"everybody\"", "radio.broadcast: found \"everybody\""),
        (
            "[radio]\nbroadcast = \"ff12::5742\"",
            "radio.broadcast: found \"ff12::5742\", expected a radio.interface",
        ),
        ("[radio]\nchannel = 36", "unknown field `channel`"),
        ("[http]\nbind = \"8080\"", "http.bind: found \"8080\""),
        ("[gateway]\nudp = [\"tcp:127.0.0.1:5790\"]", "gateway.udp: found \"tcp:127.0.0.1:5790\""),
        ("[gateway]\nudp = [\"udpout:gcs:14550\"]", "gateway.udp: found \"udpout:gcs:14550\""),
        ("[gateway]\nudp = [\"\", \"\", \"\", \"\", \"\"]", "gateway.udp: found 5 endpoints"),
        ("[gateway]\ntcp = \"5790\"", "gateway.tcp: found \"5790\""),
        ("[gateway]\nudp_clients = [\"gcs\"]", "gateway.udp_clients: found \"gcs\", expected an IP address"),
        (
            "[http]\nallowed_hosts = [\"http://uav\"]",
            "http.allowed_hosts: found \"http://uav\", expected a host name",
        ),
        ("[fence]\nheight_most_m = nan", "fence.height_most_m: found NaN"),
        ("[fence]\nheight_most_m = -5.0", "fence.height_most_m: found -5"),
        (
            "[fence]\nheight_most_m = 1.0",
            "fence.height_most_m: found 1, expected more than 2 and at most 100000 m",
        ),
        ("[fence]\ndistance_most_m = inf", "fence.distance_most_m: found inf"),
        ("[preflight]\nbattery_least_percent = 101", "preflight.battery_least_percent: found 101"),
        ("[preflight]\nbattery_least_percent = 300", "battery_least_percent = 300"),
        ("[energy]\nreturn_below_v = 3600", "energy.return_below_v: found 3600, expected 3 to 60 V"),
        ("[energy]\nreturn_below_v = -14.0", "energy.return_below_v: found -14, expected 3 to 60 V"),
        ("[energy]\nland_below_v = nan", "energy.land_below_v: found NaN, expected 3 to 60 V"),
        (
            "[energy]\nreturn_below_v = 13.4\nland_below_v = 14.0",
            "energy.return_below_v: found 13.4, expected at least 14 V: energy.land_below_v",
        ),
        ("[energy]\nbelow_for_s = 0", "energy.below_for_s: found 0, expected 1 to 120"),
    ] {
        // A section's keys end the top level, so the change comes last and a bare key comes first.
        let text =
            if change.starts_with('[') { format!("{LEAST}{change}\n") } else { format!("{change}\n{LEAST}") };
        let error = from_file(&text).expect_err(change).to_string();
        assert!(error.contains(expected), "{change}: {error}");
    }
    for (from, to, expected) in [
        ("00b827eb01020304", "b827eb", "id: found \"b827eb\", expected 16 hexadecimal digits"),
        ("00b827eb01020304", "+0b827eb01020304", "id: found"),
        ("00b827eb01020304", "0000000000000000", "id: found"),
        ("tcp:127.0.0.1:5760", "usb:0", "autopilot.endpoint: found \"usb:0\""),
        ("aircraft = 3", "aircraft = 0", "aircraft: found 0, expected 1 to 128"),
        ("aircraft = 3", "aircraft = 1", "muscop.aircraft: found 1, expected 2 to 128, or muscop.alone"),
        ("aircraft = 3", "aircraft = -1", "aircraft = -1"),
        ("aircraft = 3", "aircraft = 129", "aircraft: found 129"),
        ("aircraft = 3", "", "muscop.aircraft: found nothing"),
        (
            "aircraft = 3",
            "aircraft = 3\nformation = \"vee\"",
            "muscop.formation: found \"vee\", expected one of linear",
        ),
        ("aircraft = 3", "aircraft = 3\ndistance_m = 0.0", "muscop.distance_m: found 0"),
        (
            "aircraft = 3",
            "aircraft = 3\nsend_period_ms = 1",
            "muscop.send_period_ms: found 1, expected 20 to",
        ),
        ("aircraft = 3", "aircraft = 3\nsend_period_ms = 60000", "send_period_ms: found 60000"),
        (
            "5760\"",
            "5760\"\nground_station_system_id = 0",
            "autopilot.ground_station_system_id: found 0, expected 1 to 255",
        ),
        ("5760\"", "5760\"\nposition_interval_ms = 5", "autopilot.position_interval_ms: found 5"),
        ("master = \"00b827eb01020304\"", "master = \"?\"", "muscop.master: found \"?\""),
        ("id = \"00b827eb01020304\"\n", "", "id: found none, and no radio.interface"),
        (
            "id = \"00b827eb01020304\"\n",
            "[radio]\ninterface = \"wlan7\"\n",
            "id: found none, and no interface wlan7",
        ),
        (
            "[muscop]",
            "[separation]\nalarm_distance_m = 4.5\n[muscop]",
            "separation.alarm_distance_m: found 4.5, expected at least 5 m: separation.collision_distance_m",
        ),
        ("[muscop]", "[separation]\nalarm_time_s = nan\n[muscop]", "separation.alarm_time_s: found NaN"),
        ("[muscop]", "[separation]\nrule_period_ms = 5\n[muscop]", "separation.rule_period_ms: found 5"),
        (
            "[muscop]",
            "[separation]\nrule_vertical_m = -1.0\n[muscop]",
            "separation.rule_vertical_m: found -1",
        ),
        ("[muscop]", "[muscop", "wingbeatd.toml: TOML parse error at line"),
    ] {
        assert!(LEAST.contains(from), "{from}");
        let error = from_file(&LEAST.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_wrong_type_shows_its_line() {
    let error = from_file(&format!("{LEAST}[radio]\nport = \"x\"\n")).unwrap_err().to_string();
    assert!(error.contains("line 11") && error.contains('^'), "{error}");
}

#[test]
fn the_environment_overrides_the_file() {
    let settings = with_environment(
        LEAST,
        &[
            ("WINGBEAT_ID", "0123456789012345"),
            ("WINGBEAT_NAME", "0123"),
            ("WINGBEAT_RADIO__PORT", "14601"),
            ("WINGBEAT_MUSCOP__DISTANCE_M", "12.5"),
            ("WINGBEAT_HTTP__BIND", "0.0.0.0:9000"),
            ("HOME", "/root"),
        ],
    )
    .unwrap();
    assert_eq!(settings.daemon.agent.coordination.me(), VehicleId(0x0123_4567_8901_2345), "digits stay text");
    assert_eq!(settings.daemon.name, "0123");
    assert_eq!(settings.radio.port, 14_601);
    let Coordination::Muscop(muscop) = settings.daemon.agent.coordination else { panic!("muscop") };
    assert_eq!(muscop.swarm.distance_m, 12.5);
    assert_eq!(settings.daemon.http.port(), 9_000);
}

#[test]
fn variables_of_other_programs_are_no_keys_and_unknown_ones_are_named() {
    let own = ["GROUND", "TRUST", "USER", "PASSWORD", "SESSIONS", "SITL", "SITL_4"];
    let strange = ["COLOUR", "RADIO_PORT"];
    for name in own.iter().chain(&strange) {
        let settings =
            with_environment(LEAST, &[(&format!("WINGBEAT_{name}"), "http://127.0.0.1:1")]).unwrap();
        assert_eq!(settings, from_file(LEAST).unwrap(), "{name}");
    }
    let all = own.iter().chain(&strange).chain(&["RADIO__PORT", "NAME"]);
    let lines = Layers::warnings(all.map(|name| (format!("WINGBEAT_{name}"), String::new())));
    let [colour, port] = &lines[..] else { panic!("{lines:?}") };
    assert!(colour.contains("found WINGBEAT_COLOUR, which is no key"), "{colour}");
    assert!(port.ends_with("did you mean WINGBEAT_RADIO__PORT?"), "{port}");
}

#[test]
fn a_mistake_in_the_environment_names_its_key() {
    for (key, found, expected) in [
        ("WINGBEAT_RADIO__PORT", "70000", "radio.port"),
        ("WINGBEAT_RADIO__PORT", "5.7", "radio.port"),
        ("WINGBEAT_RADIO__PORT", "many", "radio.port"),
        ("WINGBEAT_RADIO__PORT", "0", "radio.port: found 0"),
        ("WINGBEAT_PREFLIGHT__BATTERY_LEAST_PERCENT", "300", "preflight.battery_least_percent"),
        ("WINGBEAT_RADIO__COLOUR", "red", "colour"),
        ("WINGBEAT_MUSCOP__FORMATION", "vee", "muscop.formation: found \"vee\""),
        ("WINGBEAT_AUTOPILOT__ENDPOINT", "", "autopilot.endpoint"),
        ("WINGBEAT_MUSCOP__LANDING", "x", "unknown variant `x`, expected `sequential` or `simultaneous`"),
        ("WINGBEAT_MUSCOP__LANDING", "x", "muscop.landing"),
        ("WINGBEAT_MUSCOP__SILENCE_MS", "20", "muscop.silence_ms: found 20, expected 100 to 3600000 ms"),
    ] {
        let error = with_environment(LEAST, &[(key, found)]).expect_err(key).to_string();
        assert!(error.contains(expected), "{key}={found}: {error}");
    }
}

#[test]
fn a_file_that_is_missing_a_folder_or_endless_is_one_message() {
    for path in ["/nonexistent/wingbeatd.toml", "/", "/dev/zero"] {
        let error = from_path(Path::new(path)).unwrap_err();
        assert!(matches!(error, ConfigError::File { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.starts_with(path) && message.contains("found") && message.contains("expected"),
            "{message}"
        );
    }
}

#[test]
fn without_keys_nothing_starts_unless_that_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let [secret, bundle] = ["aircraft.key", "fleet.bundle"].map(|name| folder.path().join(name));
    let files = format!("secret_key_file = {secret:?}\nbundle_file = {bundle:?}\n");
    let enrolled = LEAST.replace("insecure = true\n", &files);
    let refused = || from_file(&enrolled).unwrap_err().to_string();
    assert!(refused().starts_with("wingbeatd.toml: security.secret_key_file: found "), "{}", refused());
    assert!(refused().contains("wingbeatd enrol") && refused().contains("insecure = true"), "{}", refused());
    assert!(!from_file(LEAST).unwrap().daemon.keys.roster.is_secured());
    let both = LEAST.replace("insecure = true", "insecure = true\nbundle_file = \"x\"");
    let message = from_file(&both).unwrap_err().to_string();
    assert!(message.starts_with("wingbeatd.toml: security.insecure: found true and files"), "{message}");
    // Enrolled by its own request.
    let store = read_store(&Layers::of("wingbeatd.toml", &enrolled)).unwrap();
    let request = store.request().unwrap();
    assert!(
        refused().starts_with("wingbeatd.toml: security.bundle_file: found ")
            && refused().contains("no bundle"),
        "{}",
        refused()
    );
    let (fleet, now) = (folder.path().join("fleet"), "2026-11-24T00:00:00Z".parse().unwrap());
    enrolment::init(&fleet, now, 1).unwrap();
    let enrol = enrolment::Change::Enrol { request, role: wingbeat_wire::Role::Aircraft };
    store.accept(enrolment::change(&fleet, &enrol, now).unwrap().text()).unwrap();
    let daemon = from_file(&enrolled).unwrap().daemon;
    assert!(daemon.keys.roster.is_secured());
    assert_eq!(daemon.enrolled.map(|enrolled| enrolled.terms.order()), Some((1, 2)));
    let open = from_file(&format!("{enrolled}\n[gateway]\ntcp = \"0.0.0.0:5790\"\n")).unwrap().daemon;
    let warning = open.open_gateway().expect("a warning");
    assert!(warning.starts_with("gateway.tcp 0.0.0.0:5790: other computers command"), "{warning}");
    std::fs::write(&bundle, "garbled").unwrap();
    assert!(
        refused().starts_with("wingbeatd.toml: security.bundle_file: found ")
            && refused().contains("signature"),
        "{}",
        refused()
    );
}

#[test]
fn a_gateway_that_others_reach_is_warned_of_where_there_are_keys() {
    let settings = |gateway: &str| from_file(&format!("{LEAST}\n[gateway]\n{gateway}\n")).unwrap().daemon;
    for (gateway, is_open) in [
        ("tcp = \"0.0.0.0:5790\"", true),
        ("tcp = \"127.0.0.1:5790\"", false),
        ("udp = [\"udp:127.0.0.1:14550\"]", false),
        ("udp = [\"udpout:192.168.1.5:14550\"]", true),
        ("", false),
    ] {
        let found = settings(gateway);
        assert_eq!(found.open_gateway(), None, "without keys everything is open");
        assert_eq!(found.gateway.reached_by_others().is_some(), is_open, "{gateway}");
    }
}

#[test]
fn a_signing_key_comes_from_a_file_of_its_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "07".repeat(32)).unwrap();
    let text = LEAST
        .replace("[muscop]", &format!("signing_key_file = {:?}\nsigning_link_id = 5\n[muscop]", file.path()));
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let signing = from_file(&text).unwrap().daemon.agent.signing.unwrap();
    assert_eq!(
        (signing.key, signing.link_id, signing.setup),
        (wingbeat_agent::SigningKey::new([7; 32]), 5, false)
    );
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o604)).unwrap();
    let message = from_file(&text).unwrap_err().to_string();
    assert!(
        message.starts_with("wingbeatd.toml: autopilot.signing_key_file: found ")
            && message.contains("mode 604"),
        "{message}"
    );
    let message =
        from_file(&LEAST.replace("[muscop]", "signing_setup = true\n[muscop]")).unwrap_err().to_string();
    assert!(message.starts_with("wingbeatd.toml: autopilot.signing_setup: "), "{message}");
}

#[test]
fn the_guardian_reads_its_own_keys_and_no_others() {
    let guard = |text: &str, variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let file: GuardFile = Layers::of("wingbeatd.toml", text).environment(variables).merged()?;
        file.guard.settings(file.autopilot.endpoint()?, None, file.energy)
    };
    let plain = guard(LEAST, &[]).unwrap();
    assert_eq!(plain.socket, Path::new("/run/wingbeat/guard.sock"));
    assert_eq!(plain.guardian.endpoint, guardian::fingerprint("tcp:127.0.0.1:5760"));
    assert_eq!((plain.guardian.hold.as_secs(), plain.guardian.then), (10, Then::Land));
    assert_eq!(from_file(LEAST).unwrap().daemon.guard.unwrap(), plain.socket, "both meet there");
    // Whatever else is wrong in the file, the aircraft has its guardian; and both take the same overrides.
    let wrong = LEAST.replace("aircraft = 3", "aircraft = 0\ncolour = \"red\"");
    let moved = [("WINGBEAT_AUTOPILOT__ENDPOINT", "tcp:127.0.0.1:5770"), ("WINGBEAT_COLOUR", "red")];
    assert_eq!(guard(&wrong, &moved).unwrap().endpoint.to_string(), "tcp:127.0.0.1:5770");
    // The voltage to land at is the daemon's.
    assert_eq!((plain.guardian.land_below_mv, plain.guardian.below_for_s), (0, 10));
    let low = "[energy]\nland_below_v = 13.4\nbelow_for_s = 20\nother_batteries = [2]\nwait_s = \"long\"\n";
    let lands = guard(&format!("{LEAST}{low}"), &[]).unwrap().guardian;
    assert_eq!((lands.land_below_mv, lands.below_for_s, lands.other_batteries), (13_400, 20, 0b10));
    let wrong = guard(&format!("{LEAST}[energy]\nland_below_v = 2.0\n"), &[]).unwrap_err().to_string();
    assert!(wrong.contains("energy.land_below_v: found 2, expected 3 to 60 V"), "{wrong}");
    for (keys, expected) in [
        ("socket = \"guard.sock\"", "guard.socket: found guard.sock, expected an absolute path"),
        ("silence_ms = 100", "guard.silence_ms: found 100, expected 500 to 10000 ms"),
        ("hold_s = 0", "guard.hold_s: found 0, expected 1 to 600 s"),
        ("then = \"crash\"", "unknown variant `crash`, expected one of `land`, `rtl`, `hold`"),
        ("colour = 1", "unknown field `colour`"),
    ] {
        let text = format!("{LEAST}[guard]\n{keys}\n");
        for error in [guard(&text, &[]).unwrap_err(), from_file(&text).unwrap_err()] {
            assert!(error.to_string().contains(expected), "{keys}: {error}");
        }
    }
}

#[test]
fn a_formation_s_file_is_found_relative_to_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("diamond.csv"), "0,0\n60,-60\n-60,-60,5\n").unwrap();
    let path = folder.path().join("wingbeatd.toml");
    let text = format!("{LEAST}formation = \"custom\"\nformation_file = \"diamond.csv\"\n");
    std::fs::write(&path, text).unwrap();
    let Coordination::Muscop(muscop) = from_path(&path).unwrap().daemon.agent.coordination else {
        panic!("muscop")
    };
    assert_eq!((muscop.swarm.offsets.len(), muscop.swarm.offsets[2].up_dm), (3, 50));
    let follow_me = "id = \"0000000000000002\"\nprotocol = \"follow_me\"\n[security]\ninsecure = true\n[autopilot]\nendpoint = \"tcp:127.0.0.1:5760\"\n\
                     [follow_me]\nleader = \"0000000000000001\"\naircraft = 3\nformation = \"custom\"\n\
                     formation_file = \"diamond.csv\"\n";
    let other = folder.path().join("follow.toml");
    std::fs::write(&other, follow_me).unwrap();
    let Coordination::FollowMe(follow_me) = from_path(&other).unwrap().daemon.agent.coordination else {
        panic!("follow_me")
    };
    assert_eq!(follow_me.swarm.offsets[2].up_dm, 50);
    std::fs::write(folder.path().join("diamond.csv"), "0,0\n60,-60\n60,-20\n").unwrap();
    let message = from_path(&path).unwrap_err().to_string();
    assert!(
        message.contains("slots 1 and 2 are 40.0 m apart over the ground, expected at least 50 m"),
        "{message}"
    );
}

/// A folder with the main file of this text and files of `conf.d`, and the flags that name it.
fn folder(main: &str, drop_ins: &[(&str, &str)]) -> (tempfile::TempDir, Flags) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("wingbeatd.toml");
    std::fs::write(&config, main).unwrap();
    for (name, text) in drop_ins {
        std::fs::create_dir_all(folder.path().join("conf.d")).unwrap();
        std::fs::write(folder.path().join("conf.d").join(name), text).unwrap();
    }
    (folder, Flags { config, overrides: Vec::new() })
}

#[test]
fn later_files_environment_and_flags_override_earlier_ones() {
    let drop_ins = [
        ("20-lab.toml", "name = \"lab\"\n[radio]\nport = 14620\n"),
        ("10-site.toml", "name = \"site\"\n[radio]\nport = 14610\n[muscop]\ndistance_m = 40.0\n"),
        ("README", "no configuration = ["),
    ];
    let (_folder, mut flags) = folder(LEAST, &drop_ins);
    let layers = Layers::read(&flags).unwrap();
    let names: Vec<_> = layers.paths().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["wingbeatd.toml", "10-site.toml", "20-lab.toml"]);
    let read = |layers: &Layers| read_with(layers, &no_mac).unwrap();
    let files = read(&layers);
    assert_eq!((files.daemon.name.as_str(), files.radio.port), ("lab", 14_620));
    let Coordination::Muscop(muscop) = files.daemon.agent.coordination else { panic!("muscop") };
    assert_eq!(muscop.swarm.distance_m, 40.0);
    let variable = || [("WINGBEAT_RADIO__PORT".to_owned(), "14630".to_owned())];
    assert_eq!(read(&layers.environment(variable())).radio.port, 14_630);
    flags.overrides = vec![("radio.port".into(), "14640".into()), ("name".into(), "0123".into())];
    let both = read(&Layers::read(&flags).unwrap().environment(variable()));
    assert_eq!((both.radio.port, both.daemon.name.as_str()), (14_640, "0123"));
}

#[test]
fn a_mistake_in_a_file_of_conf_d_names_that_file_and_its_line() {
    for (text, words) in [
        ("[radio]\nport = \"x\"\n", "line 2"),
        ("[radio]\n\nprot = 1\n", "did you mean radio.port?"),
        ("[muscop", "line 1"),
    ] {
        let (_folder, flags) = folder(LEAST, &[("10-site.toml", text)]);
        let error =
            Layers::read(&flags).and_then(|layers| read_with(&layers, &no_mac)).unwrap_err().to_string();
        assert!(error.contains("conf.d/10-site.toml: ") && error.contains(words), "{error}");
    }
    let (folder, flags) = folder(LEAST, &[]);
    std::fs::write(folder.path().join("conf.d"), "a file").unwrap();
    let error = Layers::read(&flags).unwrap_err().to_string();
    assert!(error.contains("conf.d: found ") && error.contains("expected a readable folder"), "{error}");
}

#[test]
fn an_unknown_key_is_told_the_nearest_known_one() {
    let message = |text: &str| from_file(text).unwrap_err().to_string();
    for (unknown, known) in [
        ("[radio]\nintreface = \"lo\"\n", Some("radio.interface")),
        // In another section.
        ("distance_most_m = 5.0\n", Some("fence.distance_most_m")),
        ("[radio]\ncolour = 5\n", None),
    ] {
        let found = message(&format!("{LEAST}{unknown}"));
        assert_eq!(
            found.split_once("did you mean ").and_then(|(_, rest)| rest.split_once('?')).map(|(key, _)| key),
            known,
            "{found}"
        );
        assert!(found.contains("Wingbeat 0.") && found.contains("newer version"), "{found}");
    }
    let error = with_environment(LEAST, &[("WINGBEAT_RADIO__PROT", "1")]).unwrap_err().to_string();
    assert!(error.contains("did you mean radio.port?"), "{error}");
}

#[test]
fn a_flag_is_a_key_and_a_value() {
    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        flags: Flags,
    }
    let parse = |set: &str| <Program as clap::Parser>::try_parse_from(["program", "--set", set]);
    let flags = parse("autopilot.endpoint=tcp:h:1=2").unwrap().flags;
    assert_eq!(flags.overrides, [("autopilot.endpoint".to_owned(), "tcp:h:1=2".to_owned())]);
    assert_eq!(flags.config, Path::new(DEFAULT_PATH));
    for wrong in ["radio.port", "=1", "Radio.port=1", "radio..port=1", "radio[0]=1"] {
        let error = parse(wrong).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("expected KEY=VALUE"), "{wrong}: {error}");
    }
    let (_folder, mut flags) = folder(LEAST, &[]);
    flags.overrides = vec![("radio.port".into(), "many".into())];
    let error = read_with(&Layers::read(&flags).unwrap(), &no_mac).unwrap_err().to_string();
    assert!(error.contains("--set") && error.contains("radio.port"), "{error}");
}

#[test]
fn files_that_are_refused_are_replaced_by_those_of_the_last_start() {
    let state = tempfile::tempdir().unwrap();
    let (folder, flags) = folder(LEAST, &[("10-site.toml", "name = \"site\"\n")]);
    let read = |layers: &Layers| read_with(layers, &no_mac);
    let start = || kept::read_or_kept(&flags, Some(state.path()), kept::Kept::AsSecure, read);
    let first = start().unwrap();
    assert_eq!((first.settings.daemon.name.as_str(), &first.fault), ("site", &None));
    // Nothing was kept yet.
    std::fs::write(&flags.config, "[muscop").unwrap();
    assert!(start().is_err());
    kept::keep(state.path(), &first.layers).unwrap();
    for garbled in ["[muscop", "", "\0\0\0\0", "id = \"1\"\n"] {
        std::fs::write(&flags.config, garbled).unwrap();
        let second = start().unwrap();
        assert_eq!(second.settings, first.settings);
        let fault = second.fault.unwrap();
        assert!(!fault.contains('\n') && !fault.is_empty(), "{fault}");
    }
    std::fs::remove_dir_all(folder.path().join("conf.d")).unwrap();
    std::fs::remove_file(&flags.config).unwrap();
    assert!(start().unwrap().fault.unwrap().contains("wingbeatd.toml: found No such file"));
    // What was kept is no better.
    std::fs::write(state.path().join("configuration.toml"), "x").unwrap();
    assert!(start().unwrap_err().to_string().contains("wingbeatd.toml"));
}

/// A trial flight without keys is what was kept; then the operator enrols the aircraft, and a slip happens.
#[test]
fn a_fault_of_security_never_falls_back_to_a_configuration_without_keys() {
    let state = tempfile::tempdir().unwrap();
    let (folder, flags) = folder(LEAST, &[]);
    let read = |layers: &Layers| read_with(layers, &no_mac);
    let start = || kept::read_or_kept(&flags, Some(state.path()), kept::Kept::AsSecure, read);
    kept::keep(state.path(), &start().unwrap().layers).unwrap();
    let at = |name: &str| folder.path().join(name);
    let named =
        format!("secret_key_file = {:?}\nbundle_file = {:?}\n", at("aircraft.key"), at("fleet.bundle"));
    let enrolled = LEAST.replace("insecure = true\n", &named);
    let refused = |what: &str, text: &str| {
        std::fs::write(&flags.config, text).unwrap();
        let error = start().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("not used in its place: it flies without keys"), "{what}: {error}");
    };
    refused("no key file", &enrolled);
    std::fs::write(at("aircraft.key"), "00".repeat(32)).unwrap();
    set_mode(&at("aircraft.key"), 0o644);
    refused("a key that others may read", &enrolled);
    std::fs::write(at("aircraft.key"), "00ff").unwrap();
    set_mode(&at("aircraft.key"), 0o600);
    refused("half a key", &enrolled);
    std::fs::write(at("aircraft.key"), format!("{}\n", "0f".repeat(32))).unwrap();
    std::fs::write(at("fleet.bundle"), "epoch = 1\nserial").unwrap();
    refused("half a bundle", &enrolled);
    refused("insecure and keys", &LEAST.replace("insecure = true\n", &format!("insecure = true\n{named}")));
    // The slip is elsewhere, and in a half-written file.
    refused("another section", &format!("{enrolled}\n[log]\ncolour = 1\n"));
    refused("no TOML", &format!("{enrolled}\n[musc"));
    refused("cut off in the name of a key file", &enrolled[..enrolled.find("fleet.bundle").unwrap()]);
    refused("a section without a word", "id = \"1\"\n[security]\n");
    for header in ["[securty]", "[Security]", "#[security]", "[[security]]"] {
        refused(header, &enrolled.replace("[security]", header));
    }
    refused("keys in no section", &format!("{named}{}", LEAST.replace("[security]\n", "")));
    refused("misspelt and dotted", &format!("securty.secret_key_file = \"a\"\n{LEAST}"));
    refused("a misspelt section without a word", "id = \"1\"\n[Secruity]\nname = \"UAV");
    // Where nothing asks for keys the aircraft flies as before.
    for same in [format!("{LEAST}\n[musc"), String::new(), "\0".repeat(4096)] {
        std::fs::write(&flags.config, same).unwrap();
        assert!(start().unwrap().fault.is_some());
    }
}

#[test]
fn a_kept_configuration_with_keys_serves_and_none_that_is_more_open() {
    let state = tempfile::tempdir().unwrap();
    let (folder, flags) = folder(LEAST, &[]);
    let read = |layers: &Layers| read_with(layers, &no_mac);
    let start = || kept::read_or_kept(&flags, Some(state.path()), kept::Kept::AsSecure, read);
    let keep = |text: &str| {
        std::fs::write(&flags.config, text).unwrap();
        kept::keep(state.path(), &start().unwrap().layers).unwrap();
    };
    let signing = folder.path().join("mavlink.key");
    std::fs::write(&signing, "5f".repeat(32)).unwrap();
    set_mode(&signing, 0o600);
    let section = format!("[autopilot]\nsigning_key_file = {signing:?}\n");
    let signed = LEAST.replace("[autopilot]\n", &section);
    assert_ne!(signed, LEAST);
    keep(&signed);
    std::fs::write(&flags.config, format!("{LEAST}\n[log]\ncolour = 1\n")).unwrap();
    assert!(start().unwrap().settings.daemon.agent.signing.is_some(), "the kept one is the more secure");
    keep(LEAST);
    std::fs::write(&flags.config, format!("{signed}\n[log]\ncolour = 1\n")).unwrap();
    let error = start().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it takes unsigned MAVLink"), "{error}");
    keep(&format!("{LEAST}\n[gateway]\ntcp = \"127.0.0.1:5790\"\n"));
    std::fs::write(&flags.config, format!("{LEAST}\n[log]\ncolour = 1\n")).unwrap();
    let error = start().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it opens a gateway"), "{error}");
    // The guardian starts whatever is wrong.
    let guard = |layers: &Layers| read_guard(layers);
    std::fs::write(&flags.config, "[autopilot").unwrap();
    assert!(kept::read_or_kept(&flags, Some(state.path()), kept::Kept::Any, guard).is_ok());
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
