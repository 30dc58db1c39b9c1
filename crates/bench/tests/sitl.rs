//! Every microservice of `wingbeat-autopilot` against a real ArduCopter, on the ground and in the air.
//!
//! `WINGBEAT_SITL` is the path of an ArduCopter SITL program; without it the test prints one line and passes.
#![cfg(target_os = "linux")]

use std::path::PathBuf;

use crate::sitl_client::Client;
use wingbeat_autopilot::arming::Arm;
use wingbeat_autopilot::command::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMissionType;
use wingbeat_autopilot::mission::{
    Clear, Download, Item, LegacyKind, LegacyPoint, LegacyUpload, SetCurrent, Upload, items_of,
};
use wingbeat_autopilot::mode::SetMode;
use wingbeat_autopilot::parameter::{Kind, List, Names, Read, Value, Write};
use wingbeat_autopilot::rc::{Override, ReadCalibration, Sticks};
use wingbeat_autopilot::takeoff::TakeOff;
use wingbeat_autopilot::target::RelativePosition;
use wingbeat_autopilot::telemetry::TelemetryEvent;
use wingbeat_autopilot::{Failure, Progress, Telemetry, Transmit, guided};
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant};

/// The real program; none, with a line that gives the reason, where the test is skipped.
fn real() -> Option<PathBuf> {
    wingbeat_cosim::program::named("WINGBEAT_SITL")
}

const HEIGHT_M: f64 = 25.0;
const RTL_ALT: Names = Names::one("RTL_ALT");
const MISSION: MavMissionType = MavMissionType::MAV_MISSION_TYPE_MISSION;

#[test]
fn every_microservice_of_a_real_arducopter() {
    let Some(binary) = real() else { return };
    let mut client = Client::new(&binary);
    assert!(client.wait(Duration::from_secs(30), |t| t.system_id.is_some()), "no heartbeat");
    parameters(&mut client);
    missions(&mut client);
    points(&mut client);
    commands_on_the_ground(&mut client);
    if flies(&mut client) {
        streams_that_end(&mut client);
        sticks(&mut client);
    }
    lands(&mut client);
    reboots(&mut client);
    let (table, failed) = client.table();
    println!("\n{table}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A job whose poll takes no telemetry.
fn plain<J>(
    poll: impl Fn(&mut J, Instant, &mut Transmit<'_>) -> Progress,
) -> impl FnMut(&mut J, Instant, &Telemetry, &mut Transmit<'_>) -> Progress {
    move |job, now, _, transmit| poll(job, now, transmit)
}

fn write(client: &mut Client, name: &'static str, names: Names, value: Value) -> Progress {
    let mut job = Write::new(client.now(), names, value);
    let describe = |j: &Write, _: &Telemetry| Ok(format!("{} holds {value}", j.name().unwrap()));
    client.run(name, &mut job, Write::on_message, plain(Write::poll), describe)
}

fn parameters(client: &mut Client) {
    let mut listed = Vec::new();
    let mut job = List::new(client.now());
    client.run(
        "list of parameters",
        &mut job,
        |j, now, m| listed.extend(j.on_message(now, m)),
        plain(List::poll),
        |j, _| match j.progress() {
            (seen, Some(count)) if seen == count && count > 800 => Ok(format!("{count}")),
            other => Err(format!("{other:?}")),
        },
    );
    let bad = listed.iter().filter(|l| l.is_err()).count();
    let from = client.now();
    let result = if bad == 0 { Ok("none".into()) } else { Err(format!("{bad}")) };
    client.note("of them not understood", from, result);

    let mut job = Read::new(client.now(), RTL_ALT, Kind::Integer);
    let describe =
        |j: &Read, _: &Telemetry| Ok(j.value().map_or(String::new(), |(n, v)| format!("{n} = {v}")));
    client.run("read a parameter", &mut job, Read::on_message, plain(Read::poll), describe);
    let before = job.value().map_or(Value::Integer(1_500), |(_, value)| value);
    write(client, "write a parameter", RTL_ALT, Value::Integer(1_800));
    write(client, "write it back", RTL_ALT, before);

    let mut job = Read::new(client.now(), Names::SYSTEM_ID, Kind::Integer);
    client.run("read under two names", &mut job, Read::on_message, plain(Read::poll), describe);

    let from = client.now();
    let mut job = Read::new(from, Names::one("NO_SUCH_NAME"), Kind::Real);
    let (until, mut progress) = (from + Duration::from_secs(10), Progress::Pending);
    while progress == Progress::Pending && client.now() < until {
        client.turn(&mut |_, _| {}, &mut |now, _, out| progress = job.poll(now, out));
    }
    let result = match progress {
        Progress::Failed(failure @ (Failure::Silent { .. } | Failure::NoParameter { .. })) => {
            Ok(failure.to_string())
        }
        other => Err(format!("{other:?}")),
    };
    client.note("read an unknown name", from, result);
}

/// A route of `count` places around home.
fn route(count: u32) -> Vec<RelativePosition> {
    let frame = Frame::new(wingbeat_bench::scenario::ORIGIN);
    (0..count)
        .map(|i| {
            let angle = f64::from(i) * 0.35;
            let at = frame.to_position(DVec2::new(60.0 * angle.cos(), 60.0 * angle.sin()).extend(0.0));
            RelativePosition {
                latitude_e7: at.latitude_e7,
                longitude_e7: at.longitude_e7,
                height_mm: 25_000 + i as i32 * 10,
            }
        })
        .collect()
}

fn missions(client: &mut Client) {
    let mut items = items_of(route(18).into_iter()).unwrap();
    items[5] = Item::speed(4.0);
    let mut job = Upload::new(client.now(), items.clone());
    let describe = |_: &Upload, _: &Telemetry| Ok("20 items, read back".to_owned());
    client.run("mission upload", &mut job, Upload::on_message, plain(Upload::poll), describe);

    let mut job = Download::new(client.now());
    client.run("mission download", &mut job, Download::on_message, plain(Download::poll), |j, _| {
        let same = j.items().iter().zip(&items).skip(1).filter(|(held, sent)| {
            held.command == sent.command
                && (held.latitude_e7, held.longitude_e7) == (sent.latitude_e7, sent.longitude_e7)
        });
        let (found, same) = (j.items().len(), same.count());
        let words = format!("{found} items, {same} of 19 as sent");
        if (found, same) == (20, 19) { Ok(words) } else { Err(words) }
    });

    let mut job = SetCurrent::new(client.now(), 7);
    let describe = |_: &SetCurrent, _: &Telemetry| Ok("item 7".to_owned());
    client.run("set current", &mut job, |j, _, m| j.on_message(m), plain(SetCurrent::poll), describe);

    let mut job = Clear::new(client.now(), MISSION);
    let describe = |_: &Clear, _: &Telemetry| Ok("counts nothing".to_owned());
    client.run("mission clear", &mut job, Clear::on_message, plain(Clear::poll), describe);

    let mut job = Download::new(client.now());
    client.run("download of nothing", &mut job, Download::on_message, plain(Download::poll), |j, _| {
        let found = j.items().len();
        if found <= 1 { Ok(format!("{found} items")) } else { Err(format!("{found} items")) }
    });

    // What is flown later.
    let mut job = Upload::new(client.now(), items_of(route(4).into_iter()).unwrap());
    let describe = |_: &Upload, _: &Telemetry| Ok("6 items, read back".to_owned());
    client.run("upload over nothing", &mut job, Upload::on_message, plain(Upload::poll), describe);
}

fn points(client: &mut Client) {
    let corners = |places: &[RelativePosition]| {
        let point = |p: &RelativePosition| LegacyPoint {
            latitude_e7: p.latitude_e7,
            longitude_e7: p.longitude_e7,
            height_m: 20,
        };
        places.iter().map(point).collect::<wingbeat_autopilot::mission::LegacyPoints>()
    };
    let mut fence = corners(&route(5));
    let first = fence[1];
    fence.push(first).unwrap();
    for (name, kind, points) in [
        ("fence upload", LegacyKind::Fence, fence),
        ("rally points upload", LegacyKind::Rally, corners(&route(3))),
    ] {
        let count = points.len();
        let mut job = LegacyUpload::new(client.now(), kind, points);
        let describe = |_: &LegacyUpload, _: &Telemetry| Ok(format!("{count} points, read back"));
        client.run(name, &mut job, LegacyUpload::on_message, plain(LegacyUpload::poll), describe);
    }
}

fn command(client: &mut Client, name: &'static str, mut job: Command) -> Progress {
    client.run(name, &mut job, Command::on_message, Command::poll, |_, t| {
        Ok(t.mode().map_or(String::new(), |mode| format!("done, in {mode:?}")))
    })
}

fn commands_on_the_ground(client: &mut Client) {
    // Its first position comes after 30 to 40 s of its time.
    write(client, "ten times as fast", Names::one("SIM_SPEEDUP"), Value::Real(10.0));
    let from = client.now();
    let ready =
        client.wait(Duration::from_secs(120), |t| t.ekf_position == Some(true) && t.position.is_some());
    client.note("has a position", from, ready.then(String::new).ok_or("not within 120 s".into()));
    write(client, "as fast as time", Names::one("SIM_SPEEDUP"), Value::Real(1.0));

    let from = client.now();
    let refused = client.intervals_refused;
    let count = std::cell::Cell::new(0);
    let (until, first) = (from + Duration::from_secs(5), client.telemetry.boot.boot_ms().unwrap_or(0));
    while client.now() < until {
        let mut each = |_, m: &_| {
            if matches!(m, wingbeat_autopilot::dialect::MavMessage::GLOBAL_POSITION_INT(_)) {
                count.set(count.get() + 1);
            }
        };
        client.turn(&mut each, &mut |_, _, _| {});
    }
    let passed_s = f64::from(client.telemetry.boot.boot_ms().unwrap_or(0) - first) * 1e-3;
    let rate_hz = f64::from(count.get()) / passed_s;
    let words = format!("10 Hz asked, {rate_hz:.1} Hz come; single intervals refused: {refused}");
    let good = (8.0..=12.0).contains(&rate_hz) && client.telemetry.ekf_position.is_some();
    client.note("message rates", from, if good { Ok(words) } else { Err(words) });

    let now = client.now();
    command(client, "planned speed", Command::planned_speed(now, 4.0));
    let mut job = Read::new(client.now(), Names::one("WPNAV_SPEED"), Kind::Real);
    client.run("planned speed, read back", &mut job, Read::on_message, plain(Read::poll), |j, _| {
        match j.value() {
            Some((name, value)) if value == Value::Real(400.0) => Ok(format!("{name} = {value}")),
            other => Err(format!("{other:?}")),
        }
    });

    let now = client.now();
    let mut job = Command::get_home(now);
    client.run("home", &mut job, Command::on_message, Command::poll, |_, t| {
        t.home.map(|h| format!("{:.7} {:.7}", h.latitude_deg(), h.longitude_deg())).ok_or("unknown".into())
    });
    if let Some(home) = client.telemetry.home {
        let mut other = home;
        other.latitude_e7 += 900;
        let now = client.now();
        command(client, "home, 10 m to the north", Command::set_home(now, Some(other)));
        let mut job = Command::get_home(client.now());
        client.run("home, read back", &mut job, Command::on_message, Command::poll, |_, t| {
            let moved_e7 = t.home.map_or(0, |h| h.latitude_e7 - home.latitude_e7);
            let words = format!("{moved_e7}e-7 degrees to the north");
            if (850..=950).contains(&moved_e7) { Ok(words) } else { Err(words) }
        });
        let now = client.now();
        command(client, "home, here", Command::set_home(now, None));
    }

    let now = client.now();
    set_mode(client, "mode GUIDED", Mode::Guided);
    let mut job = Arm::new(now);
    client.run("arm", &mut job, |j, _, m| j.on_message(m), Arm::poll, |_, _| Ok("armed".into()));
    let now = client.now();
    command(client, "disarm", Command::disarm(now));
}

fn set_mode(client: &mut Client, name: &'static str, mode: Mode) -> Progress {
    let mut job = SetMode::new(client.now(), mode);
    client.run(name, &mut job, |_, _, _| {}, SetMode::poll, |_, _| Ok(format!("{mode:?}")))
}

/// Arms and takes off: whether it flies.
fn flies(client: &mut Client) -> bool {
    let mut job = Arm::new(client.now());
    client.run("arm again", &mut job, |j, _, m| j.on_message(m), Arm::poll, |_, _| Ok("armed".into()));
    let mut job = TakeOff::new(client.now(), HEIGHT_M, &client.telemetry);
    let progress = client.run("guided take-off", &mut job, TakeOff::on_message, TakeOff::poll, |_, t| {
        Ok(format!("{:.1} m high", t.height_m))
    });
    let from = client.now();
    let high = client.wait(Duration::from_secs(60), |t| t.height_m > HEIGHT_M - 1.0);
    let words = format!("{:.1} m", client.telemetry.height_m);
    client.note("climb to 25 m", from, if high { Ok(words) } else { Err(words) });
    progress == Progress::Done && high
}

/// Streams targets for six seconds, stops, and measures how long the aircraft takes to stop too.
fn stream_that_ends(
    client: &mut Client,
    name: &'static str,
    cruise: DVec3,
    mut target: impl FnMut(Instant, f64, &mut Transmit<'_>),
) {
    let from = client.now();
    let mut due = from;
    while client.now().since(from) < Duration::from_secs(6) {
        client.turn(&mut |_, _| {}, &mut |now, _, out| {
            if now >= due {
                due = now + Duration::from_millis(200);
                target(now, now.since(from).as_secs_f64(), out);
            }
        });
    }
    let speed = |t: &Telemetry| t.velocity_m_s.truncate().length();
    let flown = client.telemetry.velocity_m_s;
    let boot_s = |t: &Telemetry| f64::from(t.boot.boot_ms().unwrap_or(0)) * 1e-3;
    let silent_from_s = boot_s(&client.telemetry);
    let (mut began_s, mut rest_s) = (None, None);
    client.wait(Duration::from_secs(20), |t| {
        let age_s = boot_s(t) - silent_from_s;
        if speed(t) < 0.85 * cruise.length() {
            began_s = began_s.or(Some(age_s));
        }
        if speed(t) < 0.3 {
            rest_s = rest_s.or(Some(age_s));
        }
        rest_s.is_some()
    });
    let words = format!(
        "{:.1} m/s; slows {:.1} s after the last target, at rest after {:.1} s",
        flown.length(),
        began_s.unwrap_or(f64::NAN),
        rest_s.unwrap_or(f64::NAN)
    );
    let good = (flown - cruise).length() < 0.5
        && began_s.is_some_and(|s| (2.5..=4.5).contains(&s))
        && rest_s.is_some_and(|s| s < 8.0);
    client.note(name, from, if good { Ok(words) } else { Err(words) });
}

fn streams_that_end(client: &mut Client) {
    let cruise = DVec3::new(0.0, 3.0, 0.0);
    stream_that_ends(client, "velocity, then silence", cruise, |now, _, out| {
        guided::velocity(now, cruise, out).unwrap();
    });
    let Some(position) = client.telemetry.position else { return };
    let frame = Frame::new(position);
    let cruise = DVec3::new(3.0, 0.0, 0.0);
    stream_that_ends(client, "position and velocity, then silence", cruise, |now, age_s, out| {
        let at = frame.to_position(cruise * age_s);
        let place = RelativePosition {
            latitude_e7: at.latitude_e7,
            longitude_e7: at.longitude_e7,
            height_mm: (HEIGHT_M * 1e3) as i32,
        };
        guided::position_velocity(now, place, cruise, out).unwrap();
    });
}

/// Roll by override in LOITER, then the sticks go back to SITL's pilot, whose throttle lies at the bottom.
fn sticks(client: &mut Client) {
    let mut job = ReadCalibration::new(client.now());
    client.run(
        "calibration of the sticks",
        &mut job,
        ReadCalibration::on_message,
        plain(ReadCalibration::poll),
        |j, _| j.calibration().map(|c| format!("channels {:?}", c.map)).ok_or("contradicts itself".into()),
    );
    let Some(calibration) = job.calibration() else { return };
    let mut hand = Override::new(calibration);
    let begin = client.now();
    hand.take(begin);
    let (mut mode_job, mut in_loiter, mut rolled, mut released) =
        (SetMode::new(begin, Mode::Loiter), None, false, None);
    let (mut held_m_s, mut east_m_s, mut sank_m_s): (f64, f64, f64) = (0.0, 0.0, 0.0);
    while client.now().since(begin) < Duration::from_secs(30) {
        client.turn(&mut |_, _| {}, &mut |now, telemetry, out| {
            let since = |at: Option<Instant>| at.map_or(0.0, |at| now.since(at).as_secs_f64());
            if in_loiter.is_none() && mode_job.poll(now, telemetry, out) == Progress::Done {
                in_loiter = Some(now);
            }
            let velocity = telemetry.velocity_m_s;
            match (since(in_loiter), released) {
                (0.0..2.0, None) => {}
                (2.0..4.0, None) => held_m_s = held_m_s.max(velocity.z.abs()),
                (4.0..8.0, None) => {
                    if !rolled {
                        rolled = true;
                        hand.set(now, Sticks { roll: 0.5, ..Sticks::default() });
                    }
                    east_m_s = east_m_s.max(velocity.x);
                }
                (_, None) => {
                    hand.release(now);
                    released = Some(now);
                }
                (_, Some(_)) => sank_m_s = sank_m_s.max(-velocity.z),
            }
            hand.poll(now, telemetry.mode(), 255, out);
        });
        if released.is_some_and(|at| client.now().since(at) >= Duration::from_secs(3)) {
            break;
        }
    }
    let row = |good: bool, words: String| if good { Ok(words) } else { Err(words) };
    let words = format!("centred, climbs or sinks by at most {held_m_s:.2} m/s");
    client.note("override of all sticks in LOITER", begin, row(in_loiter.is_some() && held_m_s < 0.5, words));
    let words = format!("{east_m_s:.1} m/s to the right after 4 s");
    client.note("half roll to the right", begin, row(east_m_s > 1.0, words));
    let words = format!("sinks by {sank_m_s:.1} m/s: the throttle of SITL's pilot is down");
    client.note("release", begin, row(sank_m_s > 1.0 && !hand.is_active(), words));
}

fn lands(client: &mut Client) {
    let from = client.now();
    set_mode(client, "mode LAND", Mode::Land);
    let down = client.wait(Duration::from_secs(90), |t| !t.armed);
    let words = format!("disarmed at {:.1} m", client.telemetry.height_m);
    client.note("landing", from, if down { Ok(words) } else { Err("still armed after 90 s".into()) });
}

/// Reboots. SITL of 3.5.7 acknowledges that and flies on; the job must report it, and the process is then
/// restarted in its place.
fn reboots(client: &mut Client) {
    let from = client.now();
    let Ok(mut job) = Command::reboot(from, &client.telemetry) else {
        client.note("reboot", from, Err("still armed".into()));
        return;
    };
    let before = client.telemetry.reboots;
    let mut progress = Progress::Pending;
    let cell = std::cell::RefCell::new(&mut job);
    while progress == Progress::Pending && client.now().since(from) < Duration::from_secs(60) {
        let up =
            client.turn(&mut |now, m| cell.borrow_mut().on_message(now, m), &mut |now, telemetry, out| {
                progress = cell.borrow_mut().poll(now, telemetry, out);
            });
        if !up {
            break;
        }
    }
    let result = match progress {
        Progress::Done => Ok("its clock began anew".into()),
        // The program may end as a reboot.
        Progress::Pending => Ok("its program ended".into()),
        Progress::Failed(failure @ Failure::NoEffect { .. }) => {
            Ok(format!("{failure} (SITL does not reboot)"))
        }
        Progress::Failed(failure) => Err(failure.to_string()),
    };
    client.note("reboot", from, result);
    let from = client.now();
    if progress != Progress::Done {
        client.begin_again();
    }
    let noticed = client.wait(Duration::from_secs(30), |t| t.reboots > before);
    let reported = client.events.contains(&TelemetryEvent::Rebooted);
    let words = format!("noticed: {noticed}, reported as an event: {reported}");
    client.note("started anew", from, if noticed && reported { Ok(words) } else { Err(words) });
}
