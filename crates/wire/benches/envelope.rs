//! What the envelope of a datagram costs: `cargo bench --package wingbeat-wire --bench envelope`.
//!
//! Each figure is the median of batches, with the allocations of all of them. `cargo xtask bench` reads the lines that begin
//! with `envelope: `.
//!
//! `RUSTFLAGS='--cfg curve25519_dalek_backend="serial"' cargo bench --package wingbeat-wire --bench envelope -- instructions` counts, by
//! `valgrind`, the instructions of one verification with the arithmetic that an ARM core has (64 bits, no SIMD), and prints what 100 neighbours
//! at 5 Hz cost a Raspberry Pi 3.
#![allow(clippy::disallowed_methods, reason = "time is measured")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wingbeat_wire::{Beacon, Datagram, Draft, FleetKey, Location, Message, Role, Roster, Signer, VehicleId};

const BATCHES: usize = 41;
const EPOCH: u8 = 1;
const ME: VehicleId = VehicleId(0xb827_eb01_0203);

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Prints one line.
fn measure(what: &str, calls: u32, act: impl FnMut()) {
    println!("envelope: {what}: {}", measured(calls, act));
}

/// The median of `act`, called `calls` times in each batch.
fn measured(calls: u32, mut act: impl FnMut()) -> String {
    let mut batches_us = [0.0; BATCHES];
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for batch_us in &mut batches_us {
        let began = Instant::now();
        (0..calls).for_each(|_| act());
        *batch_us = began.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    batches_us.sort_by(f64::total_cmp);
    format!("{:.2} us, {allocations} allocations", batches_us[BATCHES / 2])
}

/// One of an aircraft at 10 m/s.
fn beacon() -> Message {
    let place = |n: i32| Location {
        latitude_e7: 394_825_940 + n * 450 + n % 2,
        longitude_e7: -3_462_650 - n * 580,
        altitude_mm: 52_300,
    };
    Message::Beacon(Beacon {
        event: 3,
        planned_speed_cm_s: 1_000,
        speed_cm_s: 998,
        age_ms: 120,
        locations: (0..11).map(place).collect(),
        ..Beacon::default()
    })
}

/// A Raspberry Pi 3's core (Cortex-A53): 1.2 GHz, 0.8 instructions in a cycle.
const PI_3_PER_S: f64 = 1.2e9 * 0.8;
/// A product of 64 bits is one instruction here and two there (`mul`, `umulh`); half of the arithmetic are products.
const ARM_FOR_X86: f64 = 1.5;
/// Datagrams per second of 100 neighbours at 5 Hz.
const NEIGHBOURS_HZ: f64 = 500.0;

/// Found by its name: valgrind counts inside it only.
#[inline(never)]
#[unsafe(no_mangle)]
fn wingbeat_counted_verification(roster: &Roster, bytes: &[u8], datagram: &mut Datagram) -> bool {
    roster.open(black_box(bytes)).and_then(|opened| opened.read_into(datagram)).is_ok()
}

/// Found by its name, as above: one table of a key, and that of the base point.
#[inline(never)]
#[unsafe(no_mangle)]
fn wingbeat_counted_tables(roster: &mut Roster) {
    black_box(roster).precompute();
}

/// Instructions of the function of this name, by this program under valgrind with these arguments.
fn counted(function: &str, arguments: &[&str]) -> Result<f64, Box<dyn Error>> {
    let output = std::process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind: found {error}, expected it installed"))?;
    let text = String::from_utf8(output.stderr)?;
    if !output.status.success() {
        return Err(format!(
            "valgrind: found {}, expected a datagram that is verified: {text}",
            output.status
        )
        .into());
    }
    let counted = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, counted) = counted.ok_or_else(|| format!("valgrind: found no count in {text:?}"))?;
    Ok(counted.trim().parse()?)
}

fn count_instructions() -> Result<(), Box<dyn Error>> {
    for (how, arguments) in
        [("with a table of the key", &["once"][..]), ("without a table", &["once", "plain"])]
    {
        let count = counted("wingbeat_counted_verification", arguments)?;
        let percent = count * ARM_FOR_X86 * NEIGHBOURS_HZ / PI_3_PER_S * 100.0;
        println!(
            "envelope: one verification {how} {count} instructions; 100 neighbours at 5 Hz {percent:.1} % of a Raspberry Pi 3 core (estimated \
             with {ARM_FOR_X86} of its instructions for one)"
        );
    }
    let count = counted("wingbeat_counted_tables", &["once"])?;
    let ms = count / 2.0 * ARM_FOR_X86 / PI_3_PER_S * 1e3;
    println!("envelope: one table {} instructions; {ms:.1} ms of a Raspberry Pi 3 core", count / 2.0);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mode = arguments.first().map(String::as_str);
    if mode == Some("instructions") {
        return count_instructions();
    }
    let fleet = FleetKey([5; 32]);
    let signer = Signer::new(&[7; 32], EPOCH, fleet.clone());
    let mut roster = Box::new(Roster::new(EPOCH, fleet));
    roster.add(ME, Role::Aircraft, &signer.public_key().ok_or("it signs")?)?;
    let plain = roster.clone();
    wingbeat_counted_tables(&mut roster);
    let foreign = Signer::new(&[7; 32], EPOCH, FleetKey([6; 32]));
    let message = beacon();
    let counter = 1_795_435_200_000_000;
    let mut draft = Draft::default();
    draft.write(ME, counter, 0, &message)?;
    let forged = foreign.seal(&mut draft).to_vec();
    let bytes = signer.seal(&mut draft).to_vec();
    let mut datagram = Datagram::blank();
    if mode == Some("once") {
        let roster = if arguments.iter().any(|argument| argument == "plain") { &plain } else { &roster };
        assert!(wingbeat_counted_verification(roster, &bytes, &mut datagram));
        return Ok(());
    }
    println!("a datagram of {} bytes", bytes.len());
    measure("fleet tag checked and rejected", 20_000, || {
        assert!(black_box(roster.open(black_box(&forged))).is_err());
    });
    measure("encode and sign", 500, || {
        let _ = draft.write(ME, counter, 0, black_box(&message));
        black_box(signer.seal(&mut draft));
    });
    measure("verify and decode", 500, || {
        assert!(black_box(wingbeat_counted_verification(&roster, &bytes, &mut datagram)));
    });
    let without = measured(500, || {
        assert!(black_box(wingbeat_counted_verification(&plain, &bytes, &mut datagram)));
    });
    println!("the same without a table of the key: {without}");
    Ok(())
}
