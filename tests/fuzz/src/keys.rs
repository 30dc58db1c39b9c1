//! What comes from others of keys: requests, and bundles from a USB stick or over HTTP.

use ed25519_dalek::{Signer as _, SigningKey};
use wingbeat_keys::{Bundle, Request};
use wingbeat_wire::{ROSTER_MAX, VehicleId};

/// Of the authority and the aircraft of the corpus: 64 times the digit 9 or 7.
const AUTHORITY: [u8; 32] = [0x99; 32];
const AIRCRAFT: [u8; 32] = [0x77; 32];

/// The first byte says whether it is a request or a bundle, and whether it is signed here: what an attacker has signed himself is read
/// further than what he changed.
pub fn keys(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match kind % 4 {
        0 => request(&text),
        1 => bundle(&text),
        2 => request(&signed("wingbeat request", &AIRCRAFT, &text)),
        _ => bundle(&signed("wingbeat bundle", &AUTHORITY, &text)),
    }
}

/// With a new first line.
fn signed(purpose: &str, secret: &[u8; 32], text: &str) -> String {
    let body = text.split_once('\n').map_or("", |(_, body)| body);
    let signature = SigningKey::from_bytes(secret).sign(format!("{purpose}\n{body}").as_bytes()).to_bytes();
    let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("signature = \"{digits}\"\n{body}")
}

fn request(text: &str) {
    match Request::parse(text) {
        Ok(request) => {
            assert_eq!(request.text(), text);
            assert!(request.has_code(&request.code()));
            assert_eq!(request.code().len(), 23);
        }
        Err(message) => is_one_line(&message),
    }
}

fn bundle(text: &str) {
    match Bundle::parse(text) {
        Ok(bundle) => {
            assert_eq!(bundle.text(), text);
            assert!(bundle.members().len() <= ROSTER_MAX && bundle.terms().issued < bundle.terms().expires);
            let ids = bundle.members().iter().map(|member| member.id).chain([VehicleId(0)]);
            for id in ids.take(8) {
                match bundle.keys(id, &AIRCRAFT) {
                    Ok(keys) => assert_eq!(keys.roster.public_key(id), keys.signer.public_key()),
                    Err(message) => is_one_line(&message),
                }
            }
        }
        Err(message) => is_one_line(&message),
    }
}

fn is_one_line(message: &str) {
    assert!(!message.is_empty() && message.len() < 1_000 && !message.contains('\n'), "{message:?}");
}
