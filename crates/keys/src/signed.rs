//! A text that its maker has signed: a first line with the signature, and TOML after it, of which every byte is signed.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _};

use crate::file::{digits, hexadecimal};

const BEFORE: &str = "signature = \"";
const AFTER: &str = "\"\n";
/// The longest message about a text, characters.
const MESSAGE_MAX: usize = 200;

/// Bytes as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hexadecimal(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        digits(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{} characters, not {} hexadecimal digits", text.chars().count(), 2 * N))
        })
    }
}

/// What a signature is for stands before what is signed: none counts as another's.
fn statement(purpose: &str, body: &str) -> Vec<u8> {
    [purpose.as_bytes(), b"\n", body.as_bytes()].concat()
}

/// Signs a value for a purpose; none when it is not TOML.
pub(crate) fn sign<T: Serialize>(key: &SigningKey, purpose: &str, value: &T) -> Option<String> {
    let body = toml::to_string(value).ok()?;
    let signature = key.sign(&statement(purpose, &body)).to_bytes();
    Some(format!("{BEFORE}{}{AFTER}{body}", hexadecimal(&signature)))
}

/// Reads a value of at most `bytes_max` that was signed for a purpose by the key that it names itself: whose that is, the caller
/// judges.
///
/// # Errors
/// What was found instead.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    bytes_max: usize,
    purpose: &str,
    key: impl Fn(&T) -> [u8; 32],
) -> Result<T, String> {
    if text.len() > bytes_max {
        return Err(format!("more than {bytes_max} bytes"));
    }
    let head = text.strip_prefix(BEFORE).and_then(|rest| rest.split_once(AFTER));
    let Some((signature, body)) = head.and_then(|(hex, body)| Some((digits::<64>(hex)?, body))) else {
        return Err("no line with a signature at the beginning".into());
    };
    // It may name a key of the text, as long as that is.
    let in_short =
        |message: &str| message.chars().filter(|c| !c.is_control()).take(MESSAGE_MAX).collect::<String>();
    let value: T = toml::from_str(body).map_err(|error| in_short(error.message()))?;
    let key = VerifyingKey::from_bytes(&key(&value)).ok().filter(|key| !key.is_weak());
    let key = key.ok_or("a public key that is no point of the curve, or a weak one")?;
    // Strictly, as for datagrams: one text has one signature.
    let verified = key.verify_strict(&statement(purpose, body), &Signature::from_bytes(&signature));
    verified.map_err(|_| "a signature that is not of this text")?;
    Ok(value)
}
