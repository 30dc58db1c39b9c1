//! The bundle: all that a fleet's members hold of its keys but their own secrets, in one text that the fleet's authority has signed.
//!
//! It is the same for all members: the roster of public keys with their roles, epoch and serial, from when until when it holds, and the
//! fleet's key, sealed to each member. So nothing in it is secret, one file replaces another whole, and it may travel by any path.
//!
//! A key is sealed by HPKE (RFC 9180, base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305) to the X25519 form of the
//! member's Ed25519 key.

use std::fmt;

use ed25519_dalek::{SigningKey, VerifyingKey};
use hpke::{
    Deserializable as _, OpModeR, OpModeS, Serializable as _, aead::ChaCha20Poly1305, kdf::HkdfSha256,
    kem::X25519HkdfSha256, single_shot_open, single_shot_seal,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wingbeat_wire::{FleetKey, PublicKey, Role, Roster, SecretKey, Signer, VehicleId};

use crate::{
    Keys,
    request::short,
    signed::{self, Hex},
};

const VERSION: u8 = 1;
const PURPOSE: &str = "wingbeat bundle";
/// A longer file is no bundle, bytes: a full one has 41 kB.
pub const BUNDLE_LEN_MAX: usize = 64 * 1024;
/// Encapsulated key, key and tag, bytes.
const SEALED_LEN: usize = 32 + 32 + 16;
const SEALED_FOR: &[u8] = b"wingbeat fleet key 1";

type Kem = X25519HkdfSha256;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Body {
    version: u8,
    authority: Hex<32>,
    epoch: u8,
    serial: u64,
    issued: Timestamp,
    expires: Timestamp,
    sealed: Hex<SEALED_LEN>,
    #[serde(default)]
    member: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    role: String,
    key: Hex<32>,
    sealed: Hex<SEALED_LEN>,
}

/// An aircraft or a console of the roster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: VehicleId,
    /// What it may send.
    pub role: Role,
    /// Its public key.
    pub key: PublicKey,
}

/// What one bundle states of itself: which one it is, and when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The fleet's authority: its public key.
    pub authority: PublicKey,
    /// The epoch of the keys: another fleet key.
    pub epoch: u8,
    /// Counts the bundles of an authority, over all epochs.
    pub serial: u64,
    /// When it was made, by the clock of the operator's computer.
    pub issued: Timestamp,
    /// From when on no flight begins with it.
    pub expires: Timestamp,
}

/// Whether a bundle holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It holds, as far as the clock shows.
    Valid,
    /// It holds no more.
    Expired,
    /// The clock shows a time before the bundle was made: it is not set, and whether the bundle has expired is not known.
    ClockNotSet,
}

impl Validity {
    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::ClockNotSet => "clock_not_set",
        }
    }
}

impl Terms {
    /// Whether they hold so many seconds after 1970. A clock that was never set is behind, so a clock that shows a time after the expiry is
    /// believed.
    pub fn validity(&self, unix_s: i64) -> Validity {
        if unix_s < self.issued.as_second() {
            Validity::ClockNotSet
        } else if unix_s < self.expires.as_second() {
            Validity::Valid
        } else {
            Validity::Expired
        }
    }

    /// Of two bundles of one authority the greater is the later.
    pub fn order(&self) -> (u8, u64) {
        (self.epoch, self.serial)
    }
}

/// As it stands in logs: epoch 2, serial 7, until 2027-11-24T00:00:00Z.
impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, serial, expires, .. } = self;
        write!(f, "epoch {epoch}, serial {serial}, until {expires}")
    }
}

/// A bundle whose signature is that of the authority that it names; whose authority that is, the reader judges.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    body: Body,
    members: Vec<Member>,
    text: String,
}

impl Bundle {
    /// Makes and signs a bundle for these members.
    ///
    /// # Errors
    /// Members that no roster holds, or keys to which nothing can be sealed.
    pub(crate) fn sign(
        authority: &SecretKey,
        terms: &Terms,
        fleet: &FleetKey,
        members: &[Member],
    ) -> Result<Self, String> {
        let signing = SigningKey::from_bytes(authority);
        let seal = |key: &PublicKey| seal(key, fleet, terms).map(Hex);
        let entries = members.iter().map(|member| {
            let Member { id, role, key } = member;
            Ok(Entry { id: id.to_string(), role: role.name().into(), key: Hex(*key), sealed: seal(key)? })
        });
        let body = Body {
            version: VERSION,
            authority: Hex(terms.authority),
            epoch: terms.epoch,
            serial: terms.serial,
            issued: terms.issued,
            expires: terms.expires,
            sealed: seal(&terms.authority)?,
            member: entries.collect::<Result<_, String>>()?,
        };
        // What no member would read is not handed out.
        Self::parse(&signed::sign(&signing, PURPOSE, &body).ok_or("a bundle that cannot be written")?)
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// What was found instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body: Body = signed::read(text, BUNDLE_LEN_MAX, PURPOSE, |body: &Body| body.authority.0)?;
        if body.version != VERSION {
            return Err(format!("version {}, not {VERSION}", body.version));
        }
        if body.expires <= body.issued {
            return Err(format!("issued {} and expired {}, not later", body.issued, body.expires));
        }
        let member = |entry: &Entry| {
            let id = VehicleId::from_hexadecimal(&entry.id)
                .ok_or_else(|| format!("id {:?}, not 16 hexadecimal digits", short(&entry.id)))?;
            let role = Role::from_name(&entry.role)
                .ok_or_else(|| format!("role {:?} of {id}, not one of the roles", short(&entry.role)))?;
            Ok(Member { id, role, key: entry.key.0 })
        };
        let members = body.member.iter().map(member).collect::<Result<Vec<_>, String>>()?;
        roster(body.epoch, FleetKey([0; 32]), &members)?;
        Ok(Self { body, members, text: text.to_owned() })
    }

    /// What [`Bundle::parse`] reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Which one it is, and when it holds.
    pub fn terms(&self) -> Terms {
        let Body { authority, epoch, serial, issued, expires, .. } = self.body;
        Terms { authority: authority.0, epoch, serial, issued, expires }
    }

    /// The aircraft and consoles.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The entry of an id.
    pub fn member(&self, id: VehicleId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The keys of the member whose secret this is.
    ///
    /// # Errors
    /// It is no member, or the fleet's key is not sealed to it.
    pub fn keys(&self, me: VehicleId, secret: &SecretKey) -> Result<Keys, String> {
        let signing = SigningKey::from_bytes(secret);
        let key = signing.verifying_key().to_bytes();
        let member = self.members.iter().zip(&self.body.member).find(|(member, _)| member.id == me);
        let Some((_, entry)) = member else { return Err(format!("no {me} in the roster")) };
        if entry.key.0 != key {
            return Err(format!("another key of {me} in the roster"));
        }
        let fleet = open(&signing, &entry.sealed.0, &self.terms())?;
        let roster = roster(self.body.epoch, fleet.clone(), &self.members)?;
        Ok(Keys { signer: Signer::new(secret, self.body.epoch, fleet), roster })
    }

    /// The fleet's key, for the authority alone.
    ///
    /// # Errors
    /// This is not the authority's secret.
    pub(crate) fn fleet_key(&self, authority: &SecretKey) -> Result<FleetKey, String> {
        open(&SigningKey::from_bytes(authority), &self.body.sealed.0, &self.terms())
    }
}

fn roster(epoch: u8, fleet: FleetKey, members: &[Member]) -> Result<Box<Roster>, String> {
    let mut roster = Box::new(Roster::new(epoch, fleet));
    for Member { id, role, key } in members {
        roster.add(*id, *role, key).map_err(|error| error.to_string())?;
    }
    roster.precompute();
    Ok(roster)
}

/// What a sealed key is tied to: it opens in no other epoch, and in no other fleet.
fn tied_to(terms: &Terms) -> [u8; 33] {
    let mut tied = [terms.epoch; 33];
    tied[1..].copy_from_slice(&terms.authority);
    tied
}

fn seal(to: &PublicKey, fleet: &FleetKey, terms: &Terms) -> Result<[u8; SEALED_LEN], String> {
    let unusable = |_| "a public key to which nothing can be sealed".to_owned();
    let key = VerifyingKey::from_bytes(to).map_err(|_| "a public key that is no point of the curve")?;
    let key = <Kem as hpke::Kem>::PublicKey::from_bytes(&key.to_montgomery().to_bytes()).map_err(unusable)?;
    let (encapsulated, sealed) = single_shot_seal::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeS::Base,
        &key,
        SEALED_FOR,
        &fleet.0,
        &tied_to(terms),
    )
    .map_err(unusable)?;
    let bytes = [encapsulated.to_bytes().as_slice(), &sealed].concat();
    bytes.try_into().map_err(|_| "a sealed key of another length".into())
}

fn open(own: &SigningKey, sealed: &[u8; SEALED_LEN], terms: &Terms) -> Result<FleetKey, String> {
    let closed = |_| "a fleet key that is not sealed to this key".to_owned();
    let (encapsulated, sealed) = sealed.split_at(32);
    let own = <Kem as hpke::Kem>::PrivateKey::from_bytes(&own.to_scalar_bytes()).map_err(closed)?;
    let encapsulated = <Kem as hpke::Kem>::EncappedKey::from_bytes(encapsulated).map_err(closed)?;
    let key = single_shot_open::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeR::Base,
        &own,
        &encapsulated,
        SEALED_FOR,
        sealed,
        &tied_to(terms),
    )
    .map_err(closed)?;
    key.try_into().map(FleetKey).map_err(|_| "a fleet key of another length".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_wire::{Datagram, ROSTER_MAX};

    fn terms() -> Terms {
        let [issued, expires] = ["2026-11-24T00:00:00Z", "2027-11-24T00:00:00Z"].map(|t| t.parse().unwrap());
        let authority = SigningKey::from_bytes(&[9; 32]).verifying_key().to_bytes();
        Terms { authority, epoch: 3, serial: 12, issued, expires }
    }

    fn member(id: u64, role: Role) -> (Member, SecretKey) {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&id.to_be_bytes());
        (Member { id: VehicleId(id), role, key: crate::Request::new(VehicleId(id), &secret).key() }, secret)
    }

    #[test]
    fn each_member_opens_it_and_no_other() {
        let [(one, secret), (two, other)] = [member(1, Role::Aircraft), member(2, Role::Operator)];
        let fleet = FleetKey([5; 32]);
        let bundle = Bundle::sign(&[9; 32], &terms(), &fleet, &[one, two]).unwrap();
        let read = Bundle::parse(bundle.text()).unwrap();
        assert_eq!((read.terms(), &read), (terms(), &bundle));
        let [a, b] = [(1, secret), (2, other)].map(|(id, secret)| read.keys(VehicleId(id), &secret).unwrap());
        let mut draft = Datagram { from: VehicleId(1), ..Datagram::blank() }.draft().unwrap();
        assert_eq!(b.roster.open(a.signer.seal(&mut draft)).map(|o| o.from()), Ok(VehicleId(1)));
        assert_eq!(
            (a.roster.role(VehicleId(2)), a.signer.public_key()),
            (Some(Role::Operator), Some(read.members()[0].key))
        );
        assert!(read.keys(VehicleId(1), &other).unwrap_err().contains("another key of"));
        assert!(read.keys(VehicleId(3), &secret).unwrap_err().contains("no 0000000000000003"));
        assert_eq!(read.fleet_key(&[9; 32]).unwrap(), fleet);
        assert!(read.fleet_key(&secret).unwrap_err().contains("not sealed to this key"));
        // Sealed for each anew: nothing shows that two have the same key.
        assert!(!read.text().contains(&"05".repeat(8)));
    }

    #[test]
    fn a_sealed_key_opens_in_its_own_epoch_and_fleet_alone() {
        let (one, secret) = member(1, Role::Aircraft);
        let sealed = seal(&one.key, &FleetKey([5; 32]), &terms()).unwrap();
        let own = SigningKey::from_bytes(&secret);
        assert!(open(&own, &sealed, &terms()).is_ok());
        assert!(open(&own, &sealed, &Terms { epoch: 4, ..terms() }).is_err());
        assert!(open(&own, &sealed, &Terms { authority: one.key, ..terms() }).is_err());
    }

    /// Made in Python from RFC 9180 and RFC 8032 alone.
    #[test]
    fn what_another_implementation_signed_and_sealed_is_opened() {
        let text = include_str!("../../../fuzz/corpus/keys/bundle").trim_start_matches('\u{1}');
        let bundle = Bundle::parse(text).unwrap();
        assert_eq!(bundle.terms().order(), (3, 12));
        assert_eq!(bundle.fleet_key(&[0x99; 32]), Ok(FleetKey([5; 32])));
        let me = VehicleId(0x00b8_27eb_0102_0304);
        let keys = bundle.keys(me, &[0x77; 32]).unwrap();
        assert_eq!(keys.signer, Signer::new(&[0x77; 32], 3, FleetKey([5; 32])));
    }

    #[test]
    fn the_largest_fleet_has_room_and_one_more_has_not() {
        let members: Vec<_> = (1..=ROSTER_MAX as u64 + 1).map(|id| member(id, Role::Aircraft).0).collect();
        let sign = |members: &[Member]| Bundle::sign(&[9; 32], &terms(), &FleetKey([5; 32]), members);
        let largest = sign(&members[1..]).unwrap();
        assert!(largest.text().len() < BUNDLE_LEN_MAX, "{}", largest.text().len());
        assert!(sign(&members).unwrap_err().contains("more than"));
    }

    #[test]
    fn what_is_no_bundle_is_named() {
        let (one, _) = member(1, Role::Aircraft);
        let bundle =
            Bundle::sign(&[9; 32], &terms(), &FleetKey([5; 32]), std::slice::from_ref(&one)).unwrap();
        // Another's signature, which is right of its kind.
        let forged = signed::sign(&SigningKey::from_bytes(&[8; 32]), PURPOSE, &bundle.body).unwrap();
        assert_eq!(Bundle::parse(&forged), Err("a signature that is not of this text".into()));
        // The authority's, for another purpose.
        let signed_with =
            |purpose, body: &Body| signed::sign(&SigningKey::from_bytes(&[9; 32]), purpose, body).unwrap();
        assert!(Bundle::parse(&signed_with("wingbeat request", &bundle.body)).is_err());
        let body = |change: &dyn Fn(&mut Body)| {
            let mut body = bundle.body.clone();
            change(&mut body);
            Bundle::parse(&signed_with(PURPOSE, &body)).unwrap_err()
        };
        for (message, found) in [
            (body(&|b| b.version = 2), "version 2"),
            (body(&|b| b.expires = b.issued), "not later"),
            (body(&|b| b.member[0].id = "12".into()), "id \"12\""),
            (body(&|b| b.member[0].role = "pilot".into()), "role \"pilot\""),
            (body(&|b| b.member[0].key = Hex([0; 32])), "public key of 0000000000000001"),
            (body(&|b| b.member.push(b.member[0].clone())), "twice"),
        ] {
            assert!(message.contains(found), "{message}");
        }
    }

    #[test]
    fn a_clock_that_was_never_set_judges_no_expiry() {
        let terms = terms();
        let (issued, expires) = (terms.issued.as_second(), terms.expires.as_second());
        assert_eq!(terms.validity(0), Validity::ClockNotSet);
        assert_eq!([issued, expires - 1].map(|s| terms.validity(s)), [Validity::Valid; 2]);
        assert_eq!(terms.validity(expires), Validity::Expired);
        assert_eq!(terms.to_string(), "epoch 3, serial 12, until 2027-11-24T00:00:00Z");
    }
}
