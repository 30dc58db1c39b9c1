//! The request of an aircraft or a console to be enrolled: its id and public key, signed by the secret that it made for itself and
//! never hands out.
//!
//! The signature shows that it has that secret. That the request is the one that it made, and no other's, shows the code, which the
//! operator compares with what the aircraft printed.

use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};
use wingbeat_wire::{PublicKey, SecretKey, VehicleId};

use crate::signed::{self, Hex};

const VERSION: u8 = 1;
const PURPOSE: &str = "wingbeat request";
/// A longer file is no request, bytes.
pub const REQUEST_LEN_MAX: usize = 1024;
/// Groups of digits in a code, and digits in each: 66 bits, so that no second key with the same code is found by trying.
const GROUPS: usize = 4;
const GROUP: u32 = 100_000;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Body {
    version: u8,
    id: String,
    key: Hex<32>,
}

/// A request whose signature is its key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    id: VehicleId,
    key: PublicKey,
    text: String,
}

impl Request {
    /// The request of the owner of this secret.
    pub fn new(id: VehicleId, secret: &SecretKey) -> Self {
        let signing = SigningKey::from_bytes(secret);
        let key = signing.verifying_key().to_bytes();
        let body = Body { version: VERSION, id: id.to_string(), key: Hex(key) };
        Self { id, key, text: signed::sign(&signing, PURPOSE, &body).unwrap_or_default() }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// What was found instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body: Body = signed::read(text, REQUEST_LEN_MAX, PURPOSE, |body: &Body| body.key.0)?;
        if body.version != VERSION {
            return Err(format!("version {}, not {VERSION}", body.version));
        }
        let id = VehicleId::from_hexadecimal(&body.id)
            .ok_or_else(|| format!("id {:?}, not 16 hexadecimal digits", short(&body.id)))?;
        Ok(Self { id, key: body.key.0, text: text.to_owned() })
    }

    /// The id that it asks for.
    pub fn id(&self) -> VehicleId {
        self.id
    }

    /// The public half of its secret.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// What [`Request::parse`] reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Four groups of five digits for id and key, which the operator compares.
    pub fn code(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"wingbeat code\n").update(&self.id.0.to_be_bytes()).update(&self.key);
        let hash = hasher.finalize();
        let groups = hash.as_bytes().as_chunks::<8>().0.iter().take(GROUPS);
        // Of 64 bits the remainder is as good as even.
        let groups: Vec<String> =
            groups.map(|bytes| format!("{:05}", u64::from_be_bytes(*bytes) % u64::from(GROUP))).collect();
        groups.join(" ")
    }

    /// Whether this is its code, however its groups are separated.
    pub fn has_code(&self, code: &str) -> bool {
        let digits = |text: &str| text.chars().filter(|c| !matches!(c, ' ' | '-')).collect::<String>();
        digits(&self.code()) == digits(code)
    }
}

/// The beginning of a text from outside, for a message.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: VehicleId = VehicleId(0x00b8_27eb_0102_0304);

    #[test]
    fn a_request_is_read_as_it_was_made_and_no_other_is() {
        let request = Request::new(ID, &[7; 32]);
        assert_eq!(Request::parse(request.text()).as_ref(), Ok(&request));
        assert!(request.text().len() < REQUEST_LEN_MAX && !request.text().contains(&"07".repeat(8)));
        for at in 0..request.text().len() {
            let mut bytes = request.text().as_bytes().to_vec();
            bytes[at] ^= 1;
            assert!(Request::parse(&String::from_utf8(bytes).unwrap()).is_err(), "byte {at}");
        }
        for (text, found) in [
            ("", "no line with a signature"),
            (&"x".repeat(REQUEST_LEN_MAX + 1), "more than 1024 bytes"),
            (&request.text()[..200], "string"),
        ] {
            let message = Request::parse(text).unwrap_err();
            assert!(message.contains(found), "{message}");
        }
    }

    #[test]
    fn a_code_is_of_one_id_and_one_key() {
        let request = Request::new(ID, &[7; 32]);
        let code = request.code();
        assert_eq!(code.split(' ').map(str::len).collect::<Vec<_>>(), [5; 4]);
        assert!(request.has_code(&code) && request.has_code(&code.replace(' ', "-")));
        assert!(!Request::new(VehicleId(1), &[7; 32]).has_code(&code));
        assert!(!Request::new(ID, &[8; 32]).has_code(&code));
        assert!(!request.has_code("") && !request.has_code(&code[..17]));
    }
}
