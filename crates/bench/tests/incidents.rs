//! What happens to a real ArduCopter in lock step has the effect that it has in the field, and what it reports of how it flies is so.
//! Needs `WINGBEAT_SITL` (3.5) or `WINGBEAT_SITL_4` (4.x).
#![cfg(target_os = "linux")]
#![allow(deprecated, reason = "ArduCopter 3.5 takes modes by SET_MODE")]

use std::path::Path;
use std::time::Duration as Wall;

use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::codec::{Decoder, MavHeader, encode_v1};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    COMMAND_LONG_DATA, MavCmd, MavFrame, MavMessage, MavModeFlag, PositionTargetTypemask, SET_MODE_DATA,
    SET_POSITION_TARGET_LOCAL_NED_DATA,
};
use wingbeat_autopilot::telemetry::TelemetryEvent;
use wingbeat_bench::sitl::parameters::{self, Wanted};
use wingbeat_cosim::copter::{Config, Copter, LockStep, STRETCH};
use wingbeat_cosim::incidents::Sensors;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_sim::autopilot::{Autopilot, Incident};
use wingbeat_sim::flight_controller::Truth;
use wingbeat_sim::motion::{BatteryParameters, WindParameters};
use wingbeat_sim::rigid::Body;
use wingbeat_sim::sensors::ImuNoise;

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };
/// A value of `WPNAV_SPEED`, which nothing here depends on.
const SPEED_M_S: f64 = 5.0;

struct Bench {
    copter: Copter,
    now: Instant,
    decoder: Decoder,
    /// What it reported last.
    percent: i8,
    at: Option<DVec3>,
    up_ms: u32,
    bytes: Vec<u8>,
    telemetry: Telemetry,
    /// What a companion knew with each position report, and what was so.
    reported: Vec<(Telemetry, Truth)>,
}

impl Bench {
    fn new(program: &Path, sensors: Sensors) -> Self {
        let extra = "SR0_POSITION 5\nSR0_EXTRA1 5\nSR0_EXT_STAT 5\nBATT_CAPACITY 5000\nBATT_AMP_PERVOLT 17\nFS_GCS_ENABLE 0\n";
        let wind = WindParameters::default();
        let wanted = Wanted { speed_m_s: SPEED_M_S, wind, log: false, position_hz: 0, extra };
        let config = Config {
            home: HOME,
            heading_rad: 0.0,
            booted_at: Instant::ZERO,
            wind,
            wind_full_m: 10.0,
            weather: (1, HOME),
            body: Body::default(),
            battery: BatteryParameters::default(),
            physics: None,
            sensors,
            stretch: STRETCH,
            defaults: parameters::file(&wanted),
            silence: Wall::from_secs(60),
        };
        let copter = Copter::start(&LockStep::find(program).unwrap(), config).unwrap();
        let decoder = Decoder::default();
        Self {
            copter,
            now: Instant::ZERO,
            decoder,
            percent: -1,
            at: None,
            up_ms: 0,
            bytes: Vec::new(),
            telemetry: Telemetry::default(),
            reported: Vec::new(),
        }
    }

    fn send(&mut self, message: &MavMessage) {
        let mut frame = heapless::Vec::<u8, 300>::new();
        let header = MavHeader { system_id: 255, component_id: 190, sequence: 0 };
        encode_v1(header, message, &mut frame).unwrap();
        self.copter.receive(&frame);
    }

    fn command(&mut self, command: MavCmd, param1: f32, param7: f32) {
        let target = (1, 1);
        self.send(&MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            command,
            param1,
            param7,
            target_system: target.0,
            target_component: target.1,
            ..COMMAND_LONG_DATA::DEFAULT
        }));
    }

    /// Until it is so, within so many seconds.
    fn until(&mut self, what: &str, within_s: u64, is_so: impl Fn(&Self, Truth) -> bool) {
        let end = self.now + Duration::from_secs(within_s);
        while !is_so(self, self.copter.truth()) {
            let (percent, at, truth) = (self.percent, self.at, self.copter.truth());
            assert!(self.now < end, "not within {within_s} s: {what}; {percent} %, at {at:?}, {truth:?}");
            self.now = self.now + STRETCH;
            self.copter.begin(self.now);
            let mut bytes = Vec::new();
            self.copter.finish(&mut bytes).unwrap();
            self.bytes.extend_from_slice(&bytes);
            let (percent, at, up_ms) = (&mut self.percent, &mut self.at, &mut self.up_ms);
            let (now, truth) = (self.now, self.copter.truth());
            let (telemetry, reported) = (&mut self.telemetry, &mut self.reported);
            self.decoder.push(&bytes, |frame| {
                if telemetry.on_frame(now, &frame) == TelemetryEvent::Position {
                    reported.push((telemetry.clone(), truth));
                }
                match frame.message {
                    MavMessage::SYS_STATUS(status) => *percent = status.battery_remaining,
                    MavMessage::GLOBAL_POSITION_INT(place) => {
                        *up_ms = place.time_boot_ms;
                        // As ArduCopter says that it has no position.
                        if (place.lat, place.lon) == (0, 0) {
                            return;
                        }
                        let place = Position {
                            latitude_e7: place.lat,
                            longitude_e7: place.lon,
                            altitude_mm: HOME.altitude_mm + place.relative_alt,
                        };
                        *at = Some(Frame::new(HOME).to_local(place));
                    }
                    _ => {}
                }
            });
        }
    }

    fn fly(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.until("time passes", seconds + 1, |bench, _| bench.now >= end);
    }

    fn suffer(&mut self, incident: Incident) {
        self.copter.suffer(incident).unwrap();
    }

    fn is_in(&mut self, mode: Mode, within_s: u64) {
        self.until(&format!("{mode:?}"), within_s, |_, truth| truth.mode == mode);
    }

    /// Measured minus true, metres east, north and up.
    fn off_m(&self) -> DVec3 {
        self.at.unwrap() - self.copter.truth().local
    }

    fn takes_off(&mut self) {
        self.fly(60);
        let custom_mode = Mode::Guided.number();
        let base_mode = MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED;
        self.send(&MavMessage::SET_MODE(SET_MODE_DATA { custom_mode, target_system: 1, base_mode }));
        self.is_in(Mode::Guided, 2);
        self.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, 1.0, 0.0);
        self.until("armed", 5, |_, truth| truth.armed);
        self.command(MavCmd::MAV_CMD_NAV_TAKEOFF, 0.0, 20.0);
        self.until("in the air", 30, |_, truth| truth.local.z > 18.0);
    }
}

/// Climbs, flies east, sinks and lands: what a companion knows of that is so.
fn reports(program: &Path) {
    let mut bench = Bench::new(program, Sensors::default());
    bench.fly(30);
    bench.command(MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES, 1.0, 0.0);
    bench.until("its version", 5, |bench, _| bench.telemetry.version.is_some());
    bench.reported.clear();
    bench.takes_off();
    for _ in 0..10 {
        bench.send(&MavMessage::SET_POSITION_TARGET_LOCAL_NED(SET_POSITION_TARGET_LOCAL_NED_DATA {
            vy: 4.0,
            // Velocities alone.
            type_mask: PositionTargetTypemask::from_bits_truncate(0x0dc7),
            target_system: 1,
            coordinate_frame: MavFrame::MAV_FRAME_LOCAL_NED,
            ..Default::default()
        }));
        bench.fly(1);
    }
    bench.suffer(Incident::PilotTakes(Mode::Land));
    bench.until("on the ground", 60, |_, truth| truth.landed && !truth.armed);
    let of = |share: fn(&Telemetry) -> f64| {
        let all = bench.reported.iter().map(|(telemetry, _)| share(telemetry));
        all.fold((0.0_f64, 0.0_f64), |(least, most), share| (least.min(share), most.max(share)))
    };
    let ((sinks, climbs), (_, east)) = (of(|t| t.velocity_m_s.z), of(|t| t.velocity_m_s.x));
    assert!(sinks < -1.0 && climbs > 2.0 && east > 3.0, "{sinks} {climbs} {east} m/s");
    for (telemetry, truth) in &bench.reported {
        let off_m_s = (telemetry.velocity_m_s - truth.velocity).length();
        let off_m = (Frame::new(HOME).to_local(telemetry.position.unwrap()) - truth.local).length();
        let turned_rad = (telemetry.heading_rad - truth.heading_rad).sin().abs();
        let height_off_m = (telemetry.height_m - truth.local.z).abs();
        assert!(
            off_m_s < 1.0 && off_m < 2.0 && height_off_m < 1.0 && turned_rad < 0.1,
            "{off_m_s} m/s, {off_m} m, {height_off_m} m, {turned_rad} rad off: {telemetry:?}, {truth:?}"
        );
    }
}

/// Each incident of one flight, to its end on the ground; the bytes that the program sent.
fn flight(program: &Path, sensors: Sensors) -> Vec<u8> {
    let mut bench = Bench::new(program, sensors);
    bench.takes_off();
    bench.suffer(Incident::PilotTakes(Mode::Loiter));
    bench.is_in(Mode::Loiter, 2);
    bench.suffer(Incident::TransmitterLost(true));
    bench.is_in(Mode::Rtl, 3);
    // A pilot who takes it has a transmitter again; of two turns of the switch at once the last counts.
    bench.suffer(Incident::PilotTakes(Mode::Brake));
    bench.suffer(Incident::PilotTakes(Mode::AltHold));
    bench.is_in(Mode::AltHold, 2);
    bench.suffer(Incident::PilotTakes(Mode::Brake));
    bench.fly(0);
    bench.suffer(Incident::PilotTakes(Mode::AltHold));
    bench.is_in(Mode::AltHold, 2);
    bench.suffer(Incident::PilotTakes(Mode::Loiter));
    bench.is_in(Mode::Loiter, 2);

    bench.suffer(Incident::BatteryAt { percent: 40.0 });
    bench.until("40 %", 10, |bench, _| (38..=41).contains(&bench.percent));
    bench.fly(5);
    assert!((37..=41).contains(&bench.percent), "{} %", bench.percent);

    let to_m = DVec3::new(0.0, 3.0, 0.0);
    bench.suffer(Incident::PositionDrifts { to_m, within: Duration::from_secs(10) });
    bench.until("the estimate has drifted", 40, |bench, _| (bench.off_m() - to_m).truncate().length() < 1.0);
    // It holds the place that it measures.
    assert!(bench.copter.truth().local.y < -1.5, "{:?}", bench.copter.truth());
    bench.suffer(Incident::PositionDrifts { to_m: DVec3::ZERO, within: Duration::from_secs(10) });
    bench.until("the estimate is back", 40, |bench, _| bench.off_m().truncate().length() < 1.0);

    bench.suffer(Incident::GnssLost(true));
    bench.is_in(Mode::Land, 40);
    bench.suffer(Incident::GnssLost(false));
    bench.fly(2);
    assert!(!bench.copter.truth().landed);
    bench.suffer(Incident::MotorsFail);
    bench.until("it has fallen", 10, |_, truth| truth.landed && truth.touchdown_m_s > 5.0);

    let up_ms = bench.up_ms;
    assert!(up_ms > 60_000, "{up_ms} ms");
    bench.suffer(Incident::Restarts);
    bench.fly(30);
    assert!((10_000..31_000).contains(&bench.up_ms) && !bench.copter.truth().armed, "{} ms", bench.up_ms);
    // Its monitor began again with a full battery, and knows what is left.
    assert!((30..=41).contains(&bench.percent), "{} %", bench.percent);
    bench.bytes
}

/// A battery without end until it has one, minutes after take-off; it goes on being used, and a reboot in flight forgets neither that nor
/// that there are no satellites.
fn battery_and_reboot(program: &Path) {
    let mut bench = Bench::new(program, Sensors { seed: 1, ..Sensors::default() });
    bench.takes_off();
    bench.suffer(Incident::PilotTakes(Mode::Loiter));
    bench.is_in(Mode::Loiter, 2);
    bench.fly(180);
    bench.suffer(Incident::BatteryAt { percent: 60.0 });
    bench.fly(5);
    assert!((59..=61).contains(&bench.percent), "{} %", bench.percent);
    // 19 A of 10 Ah for 300 s are 16 %.
    bench.fly(300);
    assert!((42..=46).contains(&bench.percent), "{} %", bench.percent);
    bench.suffer(Incident::BatteryAt { percent: 80.0 });
    bench.fly(5);
    assert!((78..=81).contains(&bench.percent), "{} %", bench.percent);
    bench.suffer(Incident::GnssLost(true));
    bench.suffer(Incident::Restarts);
    bench.until("it has fallen", 10, |_, truth| truth.landed && truth.touchdown_m_s > 5.0);
    let fell_at = bench.now;
    bench.at = None;
    bench.fly(60);
    assert!(bench.at.is_none(), "a position without satellites: {:?}", bench.at);
    assert!((77..=81).contains(&bench.percent), "{} % {fell_at:?}", bench.percent);
    bench.suffer(Incident::GnssLost(false));
    bench.until("satellites again", 60, |bench, _| bench.at.is_some());
}

fn suffers(key: &str) {
    let Some(program) = wingbeat_cosim::program::named(key) else { return };
    reports(&program);
    battery_and_reboot(&program);
    let sensors = Sensors { seed: 1, battery_mah: Some(5_000.0), ..Sensors::default() };
    let noisy = Sensors {
        position_m: 0.3,
        imu: ImuNoise { rate_rad_s: 0.1_f64.to_radians(), force_m_s2: 0.3 },
        ..sensors
    };
    let quiet = flight(&program, sensors);
    let bytes = flight(&program, noisy);
    assert!(bytes == flight(&program, noisy), "two flights differ");
    assert!(bytes != flight(&program, Sensors { seed: 2, ..noisy }), "another seed flies the same bytes");
    assert!(bytes != quiet, "noise does nothing");
}

#[test]
fn what_happens_to_a_real_arducopter_has_its_effect_and_repeats() {
    suffers("WINGBEAT_SITL");
}

#[test]
fn what_happens_to_a_real_arducopter_4_has_its_effect_and_repeats() {
    suffers("WINGBEAT_SITL_4");
}
