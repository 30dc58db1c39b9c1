//! Measures the flights with the definitions of the reference summary.

use wingbeat_geo::DVec3;
use wingbeat_sim::motion::{Profile, Task};

use super::fly::{DT_S, MotionRecord, Sample, Setup};

type Found = Vec<(String, f64)>;

/// Every manoeuvre, measured.
pub(crate) fn everything(profile: Profile) -> Found {
    let mut found = Found::new();
    let new = profile == Profile::Copter462;
    let with = |speed| Setup::speed(profile, speed);
    let plain = Setup::plain(profile);
    for altitude_m in [10.0, 30.0] {
        take_off(plain, altitude_m, &mut found);
    }
    let corner = std::f64::consts::FRAC_PI_2;
    for (name, setup) in [("v5", with(5.0)), ("v10", with(10.0)), ("v15", with(15.0))] {
        auto(&format!("auto_turn90_{name}"), setup, corner, false, &mut found);
    }
    if new {
        auto("auto_wind5_v10", with(10.0).east_wind(5.0), corner, false, &mut found);
        auto("auto_wind10_v10_a45", Setup::steep(profile, 10.0).east_wind(10.0), corner, false, &mut found);
        stall("auto_wind10_v10", with(10.0).east_wind(10.0), &mut found);
        auto("auto_turn90_v15_a45", Setup::steep(profile, 15.0), corner, false, &mut found);
    }
    auto("auto_turn45_v10", with(10.0), corner / 2.0, false, &mut found);
    auto("auto_lastwp_v10", with(10.0), corner, true, &mut found);
    auto("auto_turn135_v10", with(10.0), 1.5 * corner, false, &mut found);
    short_leg(with(10.0), &mut found);
    // The speed set, and where each reference got the command.
    for (speed, old_m, new_m) in [
        (1.0, 78.2, 11.4),
        (2.5, 29.6, 22.0),
        (5.0, 64.7, 46.0),
        (10.0, 225.2, 99.6),
        (12.5, 357.3, 732.5),
        (15.0, 506.0, 733.2),
    ] {
        brake(&format!("brake_v{speed}"), with(speed), if new { new_m } else { old_m }, &mut found);
    }
    if new {
        brake("brake_v12.5_a45", Setup::steep(profile, 12.5), 126.8, &mut found);
        brake("brake_v15_a45", Setup::steep(profile, 15.0), 159.6, &mut found);
    }
    guided_step("guided_step_10", plain, 10.0, &mut found);
    guided_step("guided_step_50", plain, 50.0, &mut found);
    chase("guided_chase", plain, &mut found);
    circle("guided_posvel_circle", plain, false, &mut found);
    line("guided_posvel_line", plain, 10.0, &mut found);
    if new {
        chase("guided_chase_w5", with(5.0), &mut found);
        for (name, period_s) in [("10hz", 0.1), ("4hz", 0.25)] {
            found.push((format!("guided_hold {name} lag behind moving target"), hold(plain, period_s)));
        }
        circle("guided_posvel_circle_local", plain, false, &mut found);
        // The global message's acceleration is ignored.
        circle("guided_posvelacc_circle", plain, false, &mut found);
        circle("guided_posvelacc_circle_local", plain, true, &mut found);
        line("guided_posvelacc_line", plain, 10.0, &mut found);
        line("guided_posvel_line5", plain, 5.0, &mut found);
        line("guided_posvel_line_w15_a45", Setup::steep(profile, 15.0), 10.0, &mut found);
        line("guided_posvelacc_line_w15_a45", Setup::steep(profile, 15.0), 10.0, &mut found);
    } else {
        guided_step("guided_step_10_w10", with(10.0), 10.0, &mut found);
        guided_step("guided_step_50_w10", with(10.0), 50.0, &mut found);
        chase("guided_chase_w10", with(10.0), &mut found);
        circle("guided_posvel_circle_w10", with(10.0), false, &mut found);
        line("guided_posvel_line5_w10", with(10.0), 5.0, &mut found);
        line("guided_posvel_line_w15", with(15.0), 10.0, &mut found);
        positions(plain, &mut found);
    }
    time_out("gto_vel", plain, Stream::Velocity, &mut found);
    time_out("gto_posvel", plain, Stream::PositionVelocity, &mut found);
    time_out("gto_pos", plain, Stream::Position, &mut found);
    altitude_steps(plain, &mut found);
    land(plain, &mut found);
    loiter("loiter_half", plain, 0.48, &mut found);
    loiter("loiter_full", plain, 1.0, &mut found);
    found
}

fn first(samples: &[Sample], condition: impl Fn(&Sample) -> bool) -> Option<Sample> {
    samples.iter().copied().find(|s| condition(s))
}

fn last(samples: &[Sample], condition: impl Fn(&Sample) -> bool) -> Option<Sample> {
    samples.iter().rev().copied().find(|s| condition(s))
}

fn max(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}

fn mean(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).sum::<f64>() / samples.len() as f64
}

fn settled(samples: &[Sample], condition: impl Fn(&Sample) -> bool) -> f64 {
    last(samples, |s| !condition(s)).map_or(samples[0].t_s, |s| s.t_s + DT_S)
}

fn take_off(setup: Setup, altitude_m: f64, found: &mut Found) {
    let mut flight = MotionRecord::new(setup);
    flight.set(Task::TakeOff { altitude_m });
    flight.run(60.0);
    let r = &flight.record;
    let up = |s: &Sample| s.position.z;
    let climb = max(r, |s| s.velocity.z);
    let lift_off = first(r, |s| up(s) > 0.1).expect("lifts off").t_s;
    let near = first(r, |s| up(s) >= 0.95 * altitude_m).expect("climbs").t_s;
    let mut put = |name: &str, value| found.push((format!("takeoff_{altitude_m:.0} {name}"), value));
    put("ack to 0.1 m up", lift_off);
    put("ack to 95 % alt", near);
    put("0.1 m to 95 % alt", near - lift_off);
    put("max climb rate", climb);
    put("overshoot", max(r, up) - altitude_m);
    // The reference run of 10 m ends 17 s after the command, that of 30 m 68 s.
    let end_s = if altitude_m < 20.0 { 16.8 } else { 60.0 };
    put("final alt", up(&flight.since(end_s - DT_S)[0]));
    let fast = first(r, |s| s.velocity.z >= 0.9 * climb).expect("climbs").t_s;
    put("lift-off to 90 % climb rate", fast - lift_off);
    if altitude_m < 20.0 || setup.profile == Profile::Copter462 {
        put("ack to within 0.1 m", settled(flight.since(0.0), |s| (up(s) - altitude_m).abs() < 0.1));
    }
}

/// 20 m up, 300 m north, a turn right, 300 m on.
fn auto(name: &str, setup: Setup, turn_rad: f64, last_wp: bool, found: &mut Found) {
    // A waypoint as the last item: 3.5.7 flies through it, 4.6.2 stops there.
    let last_is_fast = last_wp && setup.profile == Profile::Copter357;
    let speed = setup.wpnav_speed_m_s;
    let mut flight = MotionRecord::new(setup);
    flight.take_off();
    let reached1 = flight.t_s;
    let corner = DVec3::new(0.0, 300.0, 20.0);
    let (sin, cos) = turn_rad.sin_cos();
    let direction = DVec3::new(sin, cos, 0.0);
    let end = corner + direction * 300.0;
    flight.leg(corner, true, Some(end));
    flight.run_until(200.0, |f| f.aircraft.destination_reached());
    let reached2 = *flight.record.last().expect("flown");
    flight.leg(end, last_is_fast, None);
    flight.run_until(200.0, |f| f.aircraft.destination_reached());
    let reached3 = *flight.record.last().expect("flown");
    if last_is_fast {
        // The mission is over: AUTO loiters where the aircraft would stop.
        let stop = flight.aircraft.stopping_point();
        flight.leg(stop, false, None);
    }
    flight.run(60.0);

    let legs = flight.since(reached1);
    let along = |s: &Sample| (s.position - corner).dot(direction);
    // Positive to the inside of the turn, which goes right.
    let inside = |s: &Sample| (s.position - corner).dot(DVec3::new(cos, -sin, 0.0));
    let moving = first(legs, |s| s.speed() > 0.15).expect("starts").t_s;
    let top = max(legs, Sample::speed);
    let closest = legs.iter().copied().min_by(|a, b| a.distance(corner).total_cmp(&b.distance(corner)));
    let closest = closest.expect("flown");
    let turning = flight.since(reached2.t_s);
    let before = first(legs, |s| s.position.y > 150.0).expect("flies leg 1").t_s;
    let after = first(legs, |s| along(s) > 150.0).expect("flies leg 2").t_s;
    let leg2 = flight.since(closest.t_s + 0.1);
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("AUTO takeoff: MISSION_START ack to reached1", reached1);
    put("max speed", top);
    put("mean accel first 3 s", flight.since(moving + 3.0)[0].speed() / 3.0);
    put("reached1 to 0.15 m/s", moving - reached1);
    for percent in [50, 90, 95] {
        let Some(at) = first(legs, |s| s.speed() >= 0.01 * f64::from(percent) * speed) else { continue };
        put(&format!("0.15 m/s to {percent} % of WPNAV_SPEED"), at.t_s - moving);
        put(&format!("distance at {percent} % of WPNAV_SPEED"), at.distance(DVec3::ZERO));
    }
    put("corner cut", closest.distance(corner));
    let around: Vec<Sample> = turning.iter().copied().filter(|s| along(s) < 100.0).collect();
    put("min speed in turn", -max(&around, |s| -s.speed()));
    put("time 150 m before to 150 m after corner", after - before);
    put("time lost vs sharp corner at WPNAV_SPEED", after - before - 300.0 / speed);
    put("time lost vs sharp corner at max speed reached", after - before - 300.0 / top);
    put("overshoot past corner along leg 1", max(legs, |s| s.position.y) - 300.0);
    put("max outside cross-track on leg 2", max(leg2, |s| -inside(s)));
    put("max inside cross-track on leg 2", max(leg2, inside));
    put("overshoot at last WP", max(leg2, along) - 300.0);
    let there = first(leg2, |s| s.distance(end) < 1.0 && s.speed() < 0.5).expect("arrives").t_s;
    put("start of motion to <1 m of last WP and <0.5 m/s", there - moving);
    put("same minus length/WPNAV_SPEED", there - moving - 600.0 / speed);
    put("distance to WP reached2 msg (+-1 sample)", reached2.distance(corner));
    put("distance to WP reached3 msg (+-1 sample)", reached3.distance(end));
    // Against the wind the second leg never gets that fast.
    let Some(braking) = last(leg2, |s| s.speed() > 0.9 * top && along(s) > 150.0) else { return };
    let slow = first(flight.since(braking.t_s), |s| s.speed() < 0.2 * top).expect("stops");
    put("yaw rate max", max(&around, |s| s.yaw_rate_rad_s.abs()).to_degrees());
    put("final deceleration 90->20 % speed", 0.7 * top / (slow.t_s - braking.t_s));
    put("distance from last WP at 90 % speed when braking", braking.distance(end));
}

/// Too much wind from the side for ANGLE_MAX: the aircraft stops on the leg.
fn stall(name: &str, setup: Setup, found: &mut Found) {
    let mut flight = MotionRecord::new(setup);
    flight.take_off();
    flight.leg(DVec3::new(0.0, 300.0, 20.0), true, Some(DVec3::new(300.0, 300.0, 20.0)));
    flight.run(120.0);
    let end = *flight.record.last().expect("flown");
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("distance out when stalled", end.position.y);
    put("distance off track when stalled", end.position.x.abs());
}

/// On a 60 m leg the speed never gets high and the leash stays short.
fn short_leg(setup: Setup, found: &mut Found) {
    let mut flight = MotionRecord::new(setup);
    flight.take_off();
    let corner = DVec3::new(0.0, 60.0, 20.0);
    flight.leg(corner, true, Some(DVec3::new(60.0, 60.0, 20.0)));
    flight.run_until(100.0, |f| f.aircraft.destination_reached());
    let reached = flight.record.last().expect("flown").distance(corner);
    found.push((String::from("auto_legs60_v10 distance to WP reached2 msg (+-1 sample)"), reached));
}

fn brake(name: &str, setup: Setup, at_m: f64, found: &mut Found) {
    let mut flight = MotionRecord::new(setup);
    flight.take_off();
    flight.leg(DVec3::new(0.0, 1500.0, 20.0), false, None);
    flight.run_until(200.0, |f| f.aircraft.state().position.y > at_m);
    let start = *flight.record.last().expect("flown");
    flight.set(Task::Brake);
    flight.run(18.0);
    let r = flight.since(start.t_s);
    let forward = |s: &Sample| s.position.y - start.position.y;
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("speed at command", start.speed());
    for limit in [0.6, 0.1] {
        let at = first(r, |s| s.speed() < limit).expect("stops");
        put(&format!("distance to <{limit}"), forward(&at));
        put(&format!("time to <{limit}"), at.t_s - start.t_s);
    }
    put("max forward distance", max(r, forward));
    put("distance at rest (18 s)", forward(r.last().expect("flown")));
    // As the references: over one sample of the stream.
    let steps = if setup.profile == Profile::Copter357 { 6 } else { 5 };
    let pairs = r.iter().zip(&r[steps..]);
    let peak = pairs.map(|(a, b)| (a.velocity.y - b.velocity.y) / (b.t_s - a.t_s)).fold(0.0, f64::max);
    put("peak deceleration", peak);
}

fn guided_step(name: &str, setup: Setup, metres: f64, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    let start = flight.t_s;
    let from = flight.aircraft.state().position.y;
    flight.go_to(DVec3::new(0.0, metres, 20.0));
    flight.run(30.0);
    let r = flight.since(start);
    let flown = |s: &Sample| s.position.y - from;
    let moving = first(r, |s| s.speed() > 0.15).expect("starts").t_s;
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("max speed", max(r, Sample::speed));
    put("mean accel first 3 s", flight.since(moving + 3.0)[0].speed() / 3.0);
    put("command to 0.15 m/s", moving - start);
    put("command to 50 % distance", first(r, |s| flown(s) > 0.5 * metres).expect("flies").t_s - start);
    put("command to 90 % distance", first(r, |s| flown(s) > 0.9 * metres).expect("flies").t_s - start);
    put("command to settled within 1 m", settled(r, |s| (s.position.y - metres).abs() < 1.0) - start);
    put("overshoot", max(r, |s| s.position.y) - metres);
}

/// A position target once a second that flies 5 m/s north for 60 s, then stands.
fn chase(name: &str, setup: Setup, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    let start = flight.t_s;
    let target = |t_s: f64| 5.0 * (t_s - start);
    let (mut lags, mut lags_sent) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let sent = target(flight.t_s);
        flight.go_to(DVec3::new(0.0, sent, 20.0));
        for _ in 0..(1.0 / DT_S) as usize {
            flight.step();
            let t_s = flight.t_s - start;
            if t_s > 30.0 {
                let at = flight.aircraft.state().position.y;
                lags.push(target(flight.t_s) - at);
                lags_sent.push(sent - at);
            }
        }
    }
    let stop = flight.t_s;
    let last_target = target(stop);
    flight.go_to(DVec3::new(0.0, last_target, 20.0));
    flight.run(25.0);
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let steady: Vec<Sample> = flight.since(start + 30.0).iter().copied().filter(|s| s.t_s <= stop).collect();
    let r = flight.since(stop);
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("steady lag behind moving target mean", average(&lags));
    put("steady lag min", lags.iter().copied().fold(f64::INFINITY, f64::min));
    put("steady lag max", lags.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    put("steady lag behind last sent target mean", average(&lags_sent));
    put("speed mean", mean(&steady, Sample::speed));
    put("speed min", -max(&steady, |s| -s.speed()));
    put("speed max", max(&steady, Sample::speed));
    put("overshoot after target stops", max(r, |s| s.position.y) - last_target);
    put("target stop to settled within 1 m", settled(r, |s| (s.position.y - last_target).abs() < 1.0) - stop);
}

/// Lag behind a position target that flies 5 m/s and is sent with this period.
fn hold(setup: Setup, period_s: f64) -> f64 {
    let mut flight = MotionRecord::guided(setup);
    let start = flight.t_s;
    let (mut sum, mut count) = (0.0, 0.0);
    let mut sent_at = f64::NEG_INFINITY;
    for _ in 0..(50.0 / DT_S) as usize {
        let t_s = flight.t_s - start;
        if t_s - sent_at >= period_s - 1e-9 {
            sent_at = t_s;
            flight.go_to(DVec3::new(0.0, 5.0 * t_s, 20.0));
        }
        flight.step();
        if t_s > 30.0 {
            sum += 5.0 * (flight.t_s - start) - flight.aircraft.state().position.y;
            count += 1.0;
        }
    }
    sum / count
}

/// Position and velocity targets at 10 Hz around a circle of 50 m at 5 m/s for 60 s, then silence.
fn circle(name: &str, setup: Setup, accelerate: bool, found: &mut Found) {
    const RADIUS_M: f64 = 50.0;
    const SPEED_M_S: f64 = 5.0;
    let mut flight = MotionRecord::guided(setup);
    flight.go_to(DVec3::new(0.0, RADIUS_M, 20.0));
    flight.run(25.0);
    let start = flight.t_s;
    let target = |t_s: f64| {
        let (sin, cos) = (SPEED_M_S / RADIUS_M * (t_s - start)).sin_cos();
        let position = DVec3::new(RADIUS_M * sin, RADIUS_M * cos, 20.0);
        let velocity = DVec3::new(SPEED_M_S * cos, -SPEED_M_S * sin, 0.0);
        let inwards = DVec3::new(-sin, -cos, 0.0) * (SPEED_M_S * SPEED_M_S / RADIUS_M);
        (position, velocity, inwards)
    };
    for _ in 0..600 {
        let (position, velocity, inwards) = target(flight.t_s);
        let acceleration = if accelerate { inwards } else { DVec3::ZERO };
        flight.set(Task::PositionVelocity { position, velocity, acceleration });
        flight.run(0.1);
    }
    let stop = flight.t_s;
    let (last_target, ..) = target(stop - 0.1);
    flight.run(15.0);
    let off = |s: &Sample| s.distance(target(s.t_s).0);
    let flown: Vec<Sample> = flight.since(start).iter().copied().filter(|s| s.t_s <= stop).collect();
    let (begin, steady): (Vec<Sample>, Vec<Sample>) = flown.iter().partition(|s| s.t_s - start <= 20.0);
    let along = |s: &Sample| {
        let (position, velocity, _) = target(s.t_s);
        (position - s.position).dot(velocity) / SPEED_M_S
    };
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("tracking error mean (t>20 s)", mean(&steady, off));
    put("tracking error max (t>20 s)", max(&steady, off));
    put("along-track lag mean", mean(&steady, along));
    put("radius error mean", mean(&steady, |s| s.distance(DVec3::ZERO) - RADIUS_M));
    put("tracking error max first 20 s (standing start)", max(&begin, off));
    put("speed mean", mean(&steady, Sample::speed));
    put("speed max", max(&steady, Sample::speed));
    let rest = flight.record.last().expect("flown").distance(last_target);
    put("rest position - last target (15 s after stop)", rest);
}

/// Positions alone at 10 Hz for a minute: around a circle of 50 m at 5 m/s, and along a line, 5 m ahead.
fn positions(setup: Setup, found: &mut Found) {
    const RADIUS_M: f64 = 50.0;
    const SPEED_M_S: f64 = 5.0;
    let fly = |flight: &mut MotionRecord, target: &dyn Fn(f64) -> DVec3| {
        let start = flight.t_s;
        for n in 0..600 {
            flight.go_to(target(f64::from(n) * 0.1));
            flight.run(0.1);
        }
        flight.since(start + 30.0).to_vec()
    };
    let around = |t_s: f64| {
        let (sin, cos) = (SPEED_M_S / RADIUS_M * t_s).sin_cos();
        DVec3::new(RADIUS_M * sin, RADIUS_M * cos, 20.0)
    };
    let mut flight = MotionRecord::guided(setup);
    flight.go_to(around(0.0));
    flight.run(25.0);
    let steady = fly(&mut flight, &around);
    let radius_m = mean(&steady, |s| s.distance(DVec3::ZERO));
    found.push(("guided_pos_circle speed mean 30-60 s".into(), mean(&steady, Sample::speed)));
    found.push(("guided_pos_circle distance from the centre mean 30-60 s".into(), radius_m));
    let flown =
        fly(&mut MotionRecord::guided(setup), &|t_s| DVec3::new(0.0, SPEED_M_S * t_s + SPEED_M_S, 20.0));
    found.push(("guided_pos_line speed after 30 s".into(), flown[0].speed()));
    found.push(("guided_pos_line speed after 60 s".into(), flown[flown.len() - 1].speed()));
}

/// Position and velocity targets at 10 Hz along a line for 40 s, then silence.
fn line(name: &str, setup: Setup, target_speed: f64, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    let start = flight.t_s;
    let velocity = DVec3::new(0.0, target_speed, 0.0);
    let mut lags = Vec::new();
    for _ in 0..400 {
        let position = velocity * (flight.t_s - start) + DVec3::new(0.0, 0.0, 20.0);
        flight.set(Task::PositionVelocity { position, velocity, acceleration: DVec3::ZERO });
        for _ in 0..5 {
            flight.step();
            let t_s = flight.t_s - start;
            lags.push((t_s, target_speed * t_s - flight.aircraft.state().position.y));
        }
    }
    let stop = flight.t_s;
    let last_target = target_speed * (stop - start);
    flight.run(20.0);
    let lag = |from: f64, to: f64| {
        let part: Vec<f64> = lags.iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, l)| *l).collect();
        part.iter().sum::<f64>() / part.len() as f64
    };
    let r = flight.since(start);
    let after = flight.since(stop);
    let moving = first(r, |s| s.speed() > 0.15).expect("starts").t_s;
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("lag mean 10-20 s", lag(10.0, 20.0));
    put("lag mean 30-40 s", lag(30.0, 40.0));
    put("lag max", lags.iter().map(|(_, l)| *l).fold(f64::NEG_INFINITY, f64::max));
    put("lag min", lags.iter().map(|(_, l)| *l).fold(f64::INFINITY, f64::min));
    put("speed max", max(r, Sample::speed));
    put("mean accel first 3 s", flight.since(moving + 3.0)[0].speed() / 3.0);
    put("furthest beyond last target (t=39.9 s)", max(after, |s| s.position.y) - last_target);
    put("rest position - last target", after.last().expect("flown").position.y - last_target);
    // A line that was left behind is stopped at before the record ends, or it is not.
    let stops = first(after, |s| s.speed() < 0.1).map_or(f64::NAN, |s| s.t_s - stop);
    put("stream end to <0.1 m/s", stops);
}

#[derive(Clone, Copy, PartialEq)]
enum Stream {
    Velocity,
    PositionVelocity,
    Position,
}

/// A stream at 5 m/s, then silence. The reference counted 5 Hz but sent every 0.2034 s (75 messages in
/// 15.05 s, targets 1 m apart); its positions without a velocity were 5 m ahead.
fn time_out(name: &str, setup: Setup, stream: Stream, found: &mut Found) {
    const PERIOD_S: f64 = 0.2034;
    let mut flight = MotionRecord::guided(setup);
    let start = flight.t_s;
    let velocity = DVec3::new(0.0, 5.0, 0.0);
    let mut stop = start;
    for n in 0..75 {
        while flight.t_s < start + PERIOD_S * f64::from(n) {
            flight.step();
        }
        let position = DVec3::new(0.0, f64::from(n), 20.0);
        match stream {
            Stream::Velocity => flight.set(Task::Velocity { velocity }),
            Stream::PositionVelocity => {
                flight.set(Task::PositionVelocity { position, velocity, acceleration: DVec3::ZERO });
            }
            Stream::Position => flight.go_to(position + velocity),
        }
        stop = flight.t_s;
    }
    flight.run(25.0);
    let r = flight.since(start);
    let streaming: Vec<Sample> = r.iter().copied().filter(|s| s.t_s <= stop).collect();
    let after = flight.since(stop);
    let here = after[0];
    let moving = first(r, |s| s.speed() > 0.15).expect("starts").t_s;
    let forward = |s: &Sample| s.position.y - here.position.y;
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("mean accel first 3 s", flight.since(moving + 3.0)[0].speed() / 3.0);
    if let Some(s) = first(r, |s| s.speed() > 4.5) {
        put("first message to 4.5 m/s", s.t_s - start);
    }
    put("speed max while streaming", max(&streaming, Sample::speed));
    put("speed at last message", here.speed());
    // A target that is far ahead is flown to first: the braking is the last one.
    let far = stream == Stream::Position && setup.profile == Profile::Copter357;
    let top = max(after, Sample::speed);
    let from = if far { last(after, |s| s.speed() > 0.98 * top).expect("flown").t_s } else { stop };
    let fall = flight.since(from);
    let slower = first(fall, |s| s.speed() < here.speed() - 0.3).expect("stops");
    put("last message to speed -0.3 m/s", slower.t_s - stop);
    put("distance until then", forward(&slower));
    for limit in [0.6, 0.1] {
        let at = first(fall, |s| s.speed() < limit).expect("stops");
        put(&format!("last message to <{limit} m/s time"), at.t_s - stop);
        put(&format!("last message to <{limit} m/s distance"), forward(&at));
    }
    put("max forward distance", max(after, forward));
    let end = after.last().expect("flown");
    put("rest position - position at last message (25 s)", forward(end));
    put("speed at end of record", end.speed());
}

/// 20 to 40 m and back, on the spot and on 60 m legs.
fn altitude_steps(setup: Setup, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    for (name, north, up) in [
        ("20->40", 0.0, 40.0),
        ("40->20", 0.0, 20.0),
        ("20->40 + 60 m horizontal", 60.0, 40.0),
        ("40->20 + 60 m horizontal", 0.0, 20.0),
    ] {
        let start = flight.t_s;
        let from = flight.aircraft.state().position.z;
        flight.go_to(DVec3::new(0.0, north, up));
        flight.run(25.0);
        let r = flight.since(start);
        let sign = if up > 30.0 { 1.0 } else { -1.0 };
        let top = max(r, |s| sign * s.velocity.z);
        let after =
            |condition: &dyn Fn(&Sample) -> bool| first(r, condition).map_or(f64::NAN, |s| s.t_s - start);
        let mut put =
            |quantity: &str, value| found.push((format!("guided_alt_step {name} {quantity}"), value));
        put("max vertical speed", sign * top);
        put("command to 0.3 m/s", after(&|s| sign * s.velocity.z > 0.3));
        put("command to 90 % vertical speed", after(&|s| sign * s.velocity.z > 0.9 * top));
        let height = 0.95 * (up - from).abs();
        put("command to 95 % of height", after(&|s| sign * (s.position.z - from) > height));
        put(
            "overshoot",
            sign * (if sign > 0.0 { max(r, |s| s.position.z) } else { -max(r, |s| -s.position.z) } - up),
        );
    }
}

fn land(setup: Setup, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    flight.run(1.7);
    let start = flight.t_s;
    flight.set(Task::Land);
    flight.run(60.0);
    let r = flight.since(start);
    let down = first(r, |s| s.position.z < 0.15).expect("lands").t_s;
    let landed = first(r, |s| s.landed).expect("the land detector sees it").t_s;
    let part = |from: f64, to: f64| -> Vec<Sample> {
        let inside = |s: &&Sample| s.position.z < from && s.position.z > to && s.t_s > start + 3.0;
        r.iter().filter(inside).copied().collect()
    };
    let slow = first(r, |s| s.t_s > start + 3.0 && s.velocity.z > -0.6).expect("slows").position.z;
    let mut put = |quantity: &str, value| found.push((format!("land_20 {quantity}"), value));
    put("LAND start to disarm", landed - start);
    put("max descent", max(r, |s| -s.velocity.z));
    put("descent above 12 m mean (after 3 s)", mean(&part(100.0, 12.0), |s| -s.velocity.z));
    put("descent between 7 and 1 m mean", mean(&part(7.0, 1.0), |s| -s.velocity.z));
    put("altitude where descent falls below 0.6 m/s", slow);
    put("LAND start to touch-down (0.15 m)", down - start);
    put("touch-down to disarm", landed - down);
}

/// Loiter: the stick forward for 10 s, then let go.
fn loiter(name: &str, setup: Setup, stick: f64, found: &mut Found) {
    let mut flight = MotionRecord::guided(setup);
    flight.loiter(stick);
    flight.run(10.0);
    let release = *flight.record.last().expect("flown");
    flight.loiter(0.0);
    flight.run(12.0);
    let r = flight.since(release.t_s);
    let rest = first(r, |s| s.speed() < 0.1).expect("stops");
    let mut put = |quantity: &str, value| found.push((format!("{name} {quantity}"), value));
    put("speed after 10 s", release.speed());
    put("distance to rest", max(r, |s| s.position.y) - release.position.y);
    put("time to rest", rest.t_s - release.t_s);
}
