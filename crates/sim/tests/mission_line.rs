//! How long a mission of 100 and of 600 waypoints takes over a serial line, uploaded and read back, on the line that also carries the
//! telemetry that the agent asks for. Virtual time: the figures are the same on every machine.
//!
//! The table: `cargo test -p wingbeat-sim --test sim mission_line:: -- --nocapture`

use std::collections::VecDeque;

use wingbeat_autopilot::codec::{Decoder, framing::Framing};
use wingbeat_autopilot::heartbeat::Heartbeat;
use wingbeat_autopilot::mission::{Download, Item, Upload, items_of};
use wingbeat_autopilot::parameter::Watch;
use wingbeat_autopilot::streams::Streams;
use wingbeat_autopilot::target::RelativePosition;
use wingbeat_autopilot::{Progress, Telemetry, Transmit};
use wingbeat_geo::{Duration, Instant, Position};
use wingbeat_sim::flight_controller::{Config, FlightController};
use wingbeat_sim::motion::Profile;

/// One direction of a serial line: 8N1, ten bits a byte, nothing lost.
struct Line {
    baud: u64,
    free_at: Instant,
    on_the_way: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl Line {
    fn new(baud: u64) -> Self {
        Self { baud, free_at: Instant::ZERO, on_the_way: VecDeque::new(), bytes: 0 }
    }
    fn write(&mut self, now: Instant, bytes: &[u8]) {
        // A UART hands over what it has every few bytes: sixteen is a usual FIFO.
        for piece in bytes.chunks(16) {
            let time = Duration::from_micros(piece.len() as u64 * 10_000_000 / self.baud);
            self.free_at = self.free_at.max(now) + time;
            self.on_the_way.push_back((self.free_at, piece.to_vec()));
            self.bytes += piece.len();
        }
    }
    fn read(&mut self, now: Instant) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.on_the_way.front().is_some_and(|(at, _)| *at <= now) {
            bytes.extend(self.on_the_way.pop_front().unwrap().1);
        }
        bytes
    }
    fn due(&self) -> Instant {
        self.on_the_way.front().map_or(Instant::NEVER, |(at, _)| *at)
    }
}

/// What is flown over: a mission of `waypoints`, its time up and back, a download's time, and the share
/// of the line to the companion that telemetry took before.
struct Figures {
    upload: Duration,
    download: Duration,
    busy_percent: usize,
}

enum Job {
    Wait(Instant),
    Upload(Box<Upload>),
    Download(Box<Download>),
}

fn fly(profile: Profile, baud: u64, waypoints: usize) -> Figures {
    let home = Position::from_degrees(39.48, -0.34, 50.0).unwrap();
    let config = Config { profile, ..Config::new(1, home) };
    let mut autopilot = FlightController::new(config, 1, Instant::ZERO);
    let (mut up, mut down) = (Line::new(baud), Line::new(baud));
    let (mut decoder, mut telemetry) = (Decoder::default(), Telemetry::default());
    let mut now = Instant::ZERO;
    let mut streams = Streams::new(now, Duration::from_millis(250));
    let (mut heartbeat, mut watch) = (Heartbeat::new(now), Watch::new(now));
    let place = |i: usize| RelativePosition {
        latitude_e7: 394_800_000 + 900 * i as i32,
        longitude_e7: -3_400_000,
        height_mm: 20_000 + 10 * i as i32,
    };
    let items = items_of((0..waypoints).map(place)).unwrap();
    let steady = Instant::from_secs(30);
    let (mut job, mut started, mut sequence) = (Job::Wait(steady), steady, 0);
    let (mut upload, mut bytes_before, mut busy_percent) = (Duration::ZERO, 0, 0);
    let mut from_autopilot = Vec::new();
    loop {
        assert!(now < Instant::from_secs(600), "never ended at {baud} baud");
        let received = down.read(now);
        let mut messages = Vec::new();
        decoder.push(&received, |frame| {
            telemetry.on_frame(now, &frame);
            if telemetry.is_ours(&frame) {
                streams.on_message(now, &frame.message);
                watch.on_message(&frame.message);
                messages.push(frame.message);
            }
        });
        for message in &messages {
            match &mut job {
                Job::Wait(_) => {}
                Job::Upload(job) => job.on_message(now, message),
                Job::Download(job) => job.on_message(now, message),
            }
        }
        let mut bytes = heapless::Vec::new();
        if let Some(system_id) = telemetry.system_id {
            let framing = Framing::V2;
            let mut transmit = Transmit { system_id, sequence: &mut sequence, framing, bytes: &mut bytes };
            heartbeat.poll(now, &mut transmit).unwrap();
            streams.poll(now, &mut transmit).unwrap();
            watch.poll(now, &mut transmit).unwrap();
            let progress = match &mut job {
                Job::Wait(at) if now >= *at => Progress::Done,
                Job::Wait(_) => Progress::Pending,
                Job::Upload(job) => job.poll(now, &mut transmit),
                Job::Download(job) => job.poll(now, &mut transmit),
            };
            if let Progress::Failed(failure) = progress {
                panic!("{baud} baud: {failure}");
            }
            if progress == Progress::Done {
                let next = match job {
                    Job::Wait(_) => {
                        busy_percent = (down.bytes - bytes_before) * 1_000 / (baud as usize * 5);
                        Job::Upload(Box::new(Upload::new(now, items.clone())))
                    }
                    Job::Upload(_) => {
                        upload = now.since(started);
                        Job::Download(Box::new(Download::new(now)))
                    }
                    Job::Download(job) => {
                        let held: &[Item] = job.items();
                        assert_eq!((held.len(), held[1..].len()), (items.len(), waypoints + 1));
                        assert_eq!(held[waypoints].latitude_e7, items[waypoints].latitude_e7);
                        return Figures { upload, download: now.since(started), busy_percent };
                    }
                };
                (job, started) = (next, now);
            }
        }
        up.write(now, &bytes);
        if now < Instant::from_secs(25) {
            bytes_before = down.bytes;
        }
        autopilot.receive(&up.read(now));
        from_autopilot.clear();
        autopilot.advance(now, &mut from_autopilot);
        down.write(now, &from_autopilot);
        let job_due = match &job {
            Job::Wait(at) => *at,
            Job::Upload(job) => job.due(),
            Job::Download(job) => job.due(),
        };
        let next = [autopilot.poll_timeout(), up.due(), down.due(), heartbeat.due(), streams.due(), job_due];
        let next = next.into_iter().fold(watch.due(), Instant::min);
        now = next.max(now + Duration::from_micros(100));
    }
}

#[test]
fn a_hundred_waypoints_within_the_time_that_was_promised() {
    println!("100 waypoints          upload+verify   download   telemetry on the line");
    for (profile, name) in [(Profile::Copter357, "3.5.7"), (Profile::Copter462, "4.6.2")] {
        for (baud, most_s) in [(921_600, 3.0), (57_600, 15.0)] {
            let f = fly(profile, baud, 100);
            let (upload_s, download_s) = (f.upload.as_secs_f64(), f.download.as_secs_f64());
            println!(
                "{name} at {baud:6} baud   {upload_s:6.2} s        {download_s:6.2} s      {:3} %",
                f.busy_percent
            );
            assert!(upload_s <= most_s, "{name} at {baud} baud: found {upload_s} s, expected {most_s} s");
        }
    }
}

#[test]
fn six_hundred_waypoints_go_up_and_come_back_on_the_slowest_line() {
    println!("600 waypoints          upload+verify   download");
    for (profile, name) in [(Profile::Copter357, "3.5.7"), (Profile::Copter462, "4.6.2")] {
        for (baud, most_s) in [(921_600, 18.0), (57_600, 90.0)] {
            let f = fly(profile, baud, wingbeat_geo::ROUTE_MAX);
            let (upload_s, download_s) = (f.upload.as_secs_f64(), f.download.as_secs_f64());
            println!("{name} at {baud:6} baud   {upload_s:6.2} s        {download_s:6.2} s");
            assert!(upload_s <= most_s, "{name} at {baud} baud: found {upload_s} s, expected {most_s} s");
        }
    }
}
