//! The streams: what an ArduCopter sends, clean, and with noise between and inside frames.

use mavlink::dialects::ardupilotmega::MavMessage;
use mavlink::{MavHeader, MavlinkVersion, Message};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_autopilot::codec::{FRAME_LEN_MAX, encode_v1, encode_v2};

/// Messages of ArduCopter's telemetry, a mission and a list of parameters.
const IDS: [u32; 24] =
    [0, 1, 2, 22, 24, 27, 29, 30, 32, 33, 35, 36, 42, 44, 62, 65, 73, 74, 77, 125, 136, 163, 193, 253];
/// How many kinds of message there are.
pub const KINDS: usize = IDS.len();

/// Frame behind frame.
pub struct Clean {
    pub bytes: Vec<u8>,
    pub frames: usize,
}

/// Frames with noise, and those among them that it left alone.
pub struct Noisy {
    pub bytes: Vec<u8>,
    pub intact: Vec<Vec<u8>>,
}

/// One generator per consumer.
fn generator(seed: u64, consumer: u64) -> Pcg64Mcg {
    let mut generator =
        Pcg64Mcg::new((u128::from(seed) << 64 | u128::from(consumer)) ^ 0x5851_f42d_4c95_7f2d);
    generator.next_u64();
    generator
}

fn below(generator: &mut Pcg64Mcg, bound: usize) -> usize {
    (generator.next_u64() >> 33) as usize % bound
}

/// A message with every field drawn. Where a drawn number names nothing the default message stands.
fn message(generator: &mut Pcg64Mcg) -> MavMessage {
    let id = IDS[below(generator, KINDS)];
    let mut payload = [0; 255];
    for byte in &mut payload {
        *byte = generator.next_u64() as u8;
    }
    MavMessage::parse(MavlinkVersion::V2, id, &payload)
        .ok()
        .or_else(|| MavMessage::default_message_from_id(id))
        .expect("the messages are of the dialect")
}

fn frame(generator: &mut Pcg64Mcg, number: usize) -> Vec<u8> {
    let header = MavHeader { system_id: 1, component_id: 1, sequence: number as u8 };
    let mut out = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    let message = message(generator);
    let encoded = if number % 8 == 7 {
        encode_v1(header, &message, &mut out)
    } else {
        encode_v2(header, &message, &mut out)
    };
    encoded.expect("the longest frame fits");
    out.to_vec()
}

pub fn clean(seed: u64, frames: usize) -> Clean {
    let mut generator = generator(seed, 0);
    let bytes = (0..frames).flat_map(|number| frame(&mut generator, number)).collect();
    Clean { bytes, frames }
}

pub fn noisy(seed: u64, frames: usize) -> Noisy {
    let (mut content, mut rng) = (generator(seed, 1), generator(seed, 2));
    let mut noisy = Noisy { bytes: Vec::new(), intact: Vec::new() };
    for number in 0..frames {
        // Before every third frame 1 to 40 bytes, a start byte among eight of them.
        if below(&mut rng, 3) == 0 {
            for _ in 0..=below(&mut rng, 40) {
                let byte = match below(&mut rng, 16) {
                    0 => 0xfd,
                    1 => 0xfe,
                    _ => rng.next_u64() as u8,
                };
                noisy.bytes.push(byte);
            }
        }
        let whole = frame(&mut content, number);
        let mut hurt = whole.clone();
        // Every fifth frame is hurt once to three times: a byte changed, lost or added.
        if below(&mut rng, 5) == 0 {
            for _ in 0..=below(&mut rng, 3) {
                let at = below(&mut rng, hurt.len());
                match below(&mut rng, 3) {
                    0 => hurt[at] ^= 1 + below(&mut rng, 255) as u8,
                    1 => drop(hurt.remove(at)),
                    _ => hurt.insert(at, rng.next_u64() as u8),
                }
            }
        }
        noisy.bytes.extend(&hurt);
        // A byte added before the first hurts nothing.
        if hurt.windows(whole.len()).any(|bytes| bytes == whole) {
            noisy.intact.push(whole);
        }
    }
    noisy
}
