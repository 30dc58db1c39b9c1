//! Frame readers side by side, on the same bytes, in one process: Wingbeat's, the mavlink crate's, and
//! pymavlink's where `--python PATH` names an interpreter that has it.
//!
//! usage: wingbeat-frames-bench [--seed N] [--python PATH]
//!
//! Prints a table in Markdown. Two streams are made from the seed: a clean one, timed, and a noisy one, of
//! which it is counted how many of the frames whose bytes are intact each reader found.

mod stream;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant as Clock;

use mavlink::dialects::ardupilotmega::MavMessage;
use mavlink::{MAVLinkMessageRaw, MavlinkReader};
use wingbeat_autopilot::codec::Decoder;
use wingbeat_autopilot::codec::finder::Finder;
use wingbeat_geo::Instant;

use stream::Noisy;

/// Frames of the timed stream: about 16 MB.
const CLEAN_FRAMES: usize = 400_000;
/// pymavlink is some hundred times slower: it gets the beginning.
const PYTHON_FRAMES: usize = 40_000;
const NOISY_FRAMES: usize = 100_000;
const NOISY_PYTHON_FRAMES: usize = 20_000;
/// Each reader runs so often, in turn with the others; the median counts.
const RUNS: usize = 7;
/// Bytes handed in per call: what the mavlink crate's reader reads per call, and what a serial port of the
/// daemon gives at most.
const PIECE: usize = 16 * 1024;
const PIECE_SMALL: usize = 280;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut seed, mut python) = (1, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name}: found no value"))?;
        match name.as_str() {
            "--seed" => {
                seed = value.parse().map_err(|_| format!("--seed: found {value:?}, expected a number"))?
            }
            "--python" => python = Some(PathBuf::from(value)),
            _ => return Err(format!("{name}: found an unknown argument, expected --seed or --python")),
        }
    }
    let clean = stream::clean(seed, CLEAN_FRAMES);
    let noisy = stream::noisy(seed, NOISY_FRAMES);
    let few = stream::noisy(seed, NOISY_PYTHON_FRAMES);

    let readers: [(&str, &dyn Fn(&[u8]) -> usize); 5] = [
        ("Wingbeat, frames", &|bytes| ours_raw(bytes, PIECE)),
        ("mavlink crate, frames", &crate_raw),
        ("Wingbeat, messages", &|bytes| ours_parsed(bytes, PIECE)),
        ("mavlink crate, messages", &crate_parsed),
        ("Wingbeat, messages, 280 bytes at a time", &|bytes| ours_parsed(bytes, PIECE_SMALL)),
    ];
    let mut speeds = [const { Vec::new() }; 5];
    for _ in 0..RUNS {
        for ((name, read), speeds) in readers.iter().zip(&mut speeds) {
            let began = Clock::now();
            let found = read(&clean.bytes);
            let seconds = began.elapsed().as_secs_f64();
            if found != clean.frames {
                return Err(format!(
                    "{name}: found {found} frames in the clean stream, expected {}",
                    clean.frames
                ));
            }
            speeds.push(clean.bytes.len() as f64 / seconds / 1e6);
        }
    }
    let speeds = speeds.map(|mut runs| {
        runs.sort_by(f64::total_cmp);
        runs[RUNS / 2]
    });

    let kept_ours = noisy.kept(&ours_found(&noisy.bytes));
    let kept_crate = noisy.kept(&crate_found(&noisy.bytes));
    println!(
        "Seed {seed}. Clean: {} frames of {:.0} bytes on average, {} kinds of message, every eighth frame MAVLink 1; median of {RUNS} \
         runs. Noisy: {} frames of which {} are intact.\n",
        clean.frames,
        clean.bytes.len() as f64 / clean.frames as f64,
        stream::KINDS,
        NOISY_FRAMES,
        noisy.intact.len(),
    );
    println!(
        "| reader | frames, checksum checked (MB/s) | parsed to messages (MB/s) | good frames kept in noise |"
    );
    println!("|---|---|---|---|");
    println!("| Wingbeat | {:.0} | {:.0} | {} |", speeds[0], speeds[2], kept_ours);
    println!("| Wingbeat, 280 bytes at a time | | {:.0} | |", speeds[4]);
    println!(
        "| mavlink crate 0.21.0 (std, 16 KiB read-ahead) | {:.0} | {:.0} | {} |",
        speeds[1], speeds[3], kept_crate
    );
    if let Some(python) = python {
        let timed = stream::clean(seed, PYTHON_FRAMES);
        let (seconds, found) = pymavlink(&python, &timed.bytes)?;
        if found.len() != timed.frames {
            return Err(format!(
                "pymavlink: found {} frames in the clean stream, expected {}",
                found.len(),
                timed.frames
            ));
        }
        let (_, found) = pymavlink(&python, &few.bytes)?;
        println!(
            "| pymavlink (first {PYTHON_FRAMES} and {NOISY_PYTHON_FRAMES} frames) | | {:.1} | {} |",
            timed.bytes.len() as f64 / seconds / 1e6,
            few.kept(&found)
        );
    }
    Ok(())
}

fn ours_raw(bytes: &[u8], piece: usize) -> usize {
    let (mut finder, mut count) = (Finder::default(), 0);
    for piece in bytes.chunks(piece) {
        finder.push(Instant::ZERO, piece, |raw| {
            std::hint::black_box(raw);
            count += 1;
        });
    }
    count
}

fn ours_parsed(bytes: &[u8], piece: usize) -> usize {
    let (mut decoder, mut count) = (Decoder::default(), 0);
    for piece in bytes.chunks(piece) {
        decoder.push_at(Instant::ZERO, piece, |frame| {
            std::hint::black_box(&frame);
            count += 1;
        });
    }
    count
}

/// The mavlink crate's reader over a slice, as its documentation shows it. The end of the slice ends it.
fn crate_raw(bytes: &[u8]) -> usize {
    let (mut reader, mut count) = (MavlinkReader::new(bytes), 0);
    while let Ok(raw) = reader.read_any_raw_message::<MavMessage>() {
        std::hint::black_box(&raw);
        count += 1;
    }
    count
}

fn crate_parsed(bytes: &[u8]) -> usize {
    let (mut reader, mut count) = (MavlinkReader::new(bytes), 0);
    while let Ok(message) = reader.read_any_message::<MavMessage>() {
        std::hint::black_box(&message);
        count += 1;
    }
    count
}

fn ours_found(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut finder, mut found) = (Finder::default(), Vec::new());
    for piece in bytes.chunks(PIECE_SMALL) {
        finder.push(Instant::ZERO, piece, |raw| found.push(raw.bytes().to_vec()));
    }
    while finder.due() != Instant::NEVER {
        finder.expire(finder.due(), |raw| found.push(raw.bytes().to_vec()));
    }
    found
}

fn crate_found(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut reader, mut found) = (MavlinkReader::new(bytes), Vec::new());
    while let Ok(raw) = reader.read_any_raw_message::<MavMessage>() {
        found.push(match &raw {
            MAVLinkMessageRaw::V1(m) => m.raw_bytes().to_vec(),
            MAVLinkMessageRaw::V2(m) => m.raw_bytes().to_vec(),
        });
    }
    found
}

/// Seconds, and the frames that pymavlink found.
fn pymavlink(python: &Path, bytes: &[u8]) -> Result<(f64, Vec<Vec<u8>>), String> {
    let folder = std::env::temp_dir().join(format!("wingbeat-frames-{}", std::process::id()));
    let outcome = pymavlink_in(&folder, python, bytes);
    // What is left over is in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn pymavlink_in(folder: &Path, python: &Path, bytes: &[u8]) -> Result<(f64, Vec<Vec<u8>>), String> {
    let io = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir(folder).map_err(io)?;
    let (input, output) = (folder.join("in"), folder.join("out"));
    std::fs::File::create(&input).and_then(|mut file| file.write_all(bytes)).map_err(io)?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/read.py");
    let finished = Command::new(python)
        .arg(script)
        .args([&input, &output])
        .output()
        .map_err(|error| format!("{}: {error}", python.display()))?;
    if !finished.status.success() {
        return Err(format!("{script}: {}", String::from_utf8_lossy(&finished.stderr)));
    }
    let text = String::from_utf8_lossy(&finished.stdout);
    let seconds = text.trim().parse().map_err(|_| format!("{script}: found {text:?}, expected seconds"))?;
    let mut rest = &std::fs::read(&output).map_err(io)?[..];
    let mut frames = Vec::new();
    // Each frame stands behind its length, two bytes.
    while let Some((&[low, high], tail)) = rest.split_first_chunk() {
        let (frame, tail) =
            tail.split_at_checked(usize::from(u16::from_le_bytes([low, high]))).ok_or("cut off")?;
        frames.push(frame.to_vec());
        rest = tail;
    }
    Ok((seconds, frames))
}

impl Noisy {
    /// The share of intact frames that were found, and the number of false ones.
    fn kept(&self, found: &[Vec<u8>]) -> String {
        let (mut kept, mut others, mut next) = (0, 0, 0);
        for frame in found {
            // Sequence numbers repeat after 256 frames: so near, equal bytes are the same frame.
            match self.intact[next..].iter().take(128).position(|intact| intact == frame) {
                Some(skipped) => (kept, next) = (kept + 1, next + skipped + 1),
                None => others += 1,
            }
        }
        let total = self.intact.len();
        let percent = f64::from(kept) / total as f64 * 100.0;
        format!("{percent:.2} % ({} lost, {others} false)", total - kept as usize)
    }
}
