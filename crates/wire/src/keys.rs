//! What a sender signs with, and what a receiver knows of the fleet.
//!
//! Two keys keep two things apart. The fleet's key, which every aircraft has, makes the tag that is checked first: what
//! an outsider sends ends there. The sender's own key makes the signature: an aircraft that was captured has the fleet's
//! key and its own, and can state nothing in another's name.

use core::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey};
use zeroize::Zeroize as _;

use crate::envelope::{Kind, SIGNATURE_LEN, TAG_LEN};
use crate::verifier::Verifier;
use crate::{Places, Refused, Role, SWARM_MAX, VehicleId};

/// Aircraft and consoles in a [`Roster`]: as many aircraft as a flight can have, and eight consoles.
pub const ROSTER_MAX: usize = SWARM_MAX + 8;

/// An aircraft's own secret: the seed of its Ed25519 key (RFC 8032, section 5.1.5).
pub type SecretKey = [u8; 32];

/// The public half of an aircraft's key.
pub type PublicKey = [u8; 32];

/// Begins every statement that a TLS 1.3 handshake signs.
const HANDSHAKE_PAD: [u8; 64] = [b' '; 64];

/// The secret that all aircraft of a fleet share in one epoch.
#[derive(Clone, PartialEq, Eq)]
pub struct FleetKey(pub [u8; 32]);

/// Leaves no copy in memory that is used again.
impl Drop for FleetKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Without the key.
impl fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FleetKey")
    }
}

/// Of datagrams that are not secured: their tag is a checksum, and proves nothing.
const NO_FLEET: FleetKey = FleetKey([0; 32]);

/// The first eight bytes of the keyed BLAKE3 of everything but the tag itself.
pub(crate) fn tag(fleet: &FleetKey, [head, tail]: [&[u8]; 2]) -> [u8; TAG_LEN] {
    let hash = blake3::Hasher::new_keyed(&fleet.0).update(head).update(tail).finalize();
    let mut tag = [0; TAG_LEN];
    tag.copy_from_slice(&hash.as_bytes()[..TAG_LEN]);
    tag
}

/// The keys of one sender. [`Signer::seal`] is its one door for datagrams, [`Signer::sign_handshake`] that for connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Signer {
    pub(crate) epoch: u8,
    pub(crate) fleet: FleetKey,
    proof: Proof,
}

// Without an allocator: each aircraft has one of them.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, PartialEq, Eq)]
enum Proof {
    Ed25519(SigningKey),
    None,
    #[cfg(feature = "stand-in")]
    StandIn(SecretKey),
}

/// Without the keys.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("kind", &self.kind())
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// One that signs.
    pub fn new(secret: &SecretKey, epoch: u8, fleet: FleetKey) -> Self {
        Self { epoch, fleet, proof: Proof::Ed25519(SigningKey::from_bytes(secret)) }
    }

    /// One without keys: any program may send in its name.
    pub fn insecure() -> Self {
        Self { epoch: 0, fleet: NO_FLEET, proof: Proof::None }
    }

    /// One whose signatures have the length of real ones and a hundredth of their cost. All senders of a bench share the
    /// secret.
    #[cfg(feature = "stand-in")]
    pub fn stand_in(secret: &SecretKey, epoch: u8, fleet: FleetKey) -> Self {
        Self { epoch, fleet, proof: Proof::StandIn(*secret) }
    }

    /// What others check its signatures with; none of one that has no key of its own.
    pub fn public_key(&self) -> Option<PublicKey> {
        match &self.proof {
            Proof::Ed25519(key) => Some(key.verifying_key().to_bytes()),
            Proof::None => None,
            #[cfg(feature = "stand-in")]
            Proof::StandIn(_) => None,
        }
    }

    /// Signs its part of a TLS 1.3 handshake (RFC 8446, section 4.4.3). `None` without a key of its own, and for what does
    /// not begin like one, which no datagram does: a signature made here proves nothing there.
    pub fn sign_handshake(&self, transcript: &[u8]) -> Option<[u8; 64]> {
        match &self.proof {
            Proof::Ed25519(key) => {
                transcript.starts_with(&HANDSHAKE_PAD).then(|| key.sign(transcript).to_bytes())
            }
            Proof::None => None,
            #[cfg(feature = "stand-in")]
            Proof::StandIn(_) => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.proof {
            Proof::Ed25519(_) => Kind::Signed,
            Proof::None => Kind::Insecure,
            #[cfg(feature = "stand-in")]
            Proof::StandIn(_) => Kind::StandIn,
        }
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Option<[u8; SIGNATURE_LEN]> {
        match &self.proof {
            Proof::Ed25519(key) => Some(key.sign(statement).to_bytes()),
            Proof::None => None,
            #[cfg(feature = "stand-in")]
            Proof::StandIn(secret) => Some(stand_in(secret, statement)),
        }
    }
}

#[cfg(feature = "stand-in")]
fn stand_in(secret: &SecretKey, statement: &[u8]) -> [u8; SIGNATURE_LEN] {
    let mut signature = [0; SIGNATURE_LEN];
    blake3::Hasher::new_keyed(secret).update(statement).finalize_xof().fill(&mut signature);
    signature
}

/// What one receiver knows of the fleet: epoch, fleet key, and the public key of each aircraft. [`Roster::open`] is its
/// one door.
#[derive(Clone, PartialEq)]
pub struct Roster {
    pub(crate) epoch: u8,
    pub(crate) fleet: FleetKey,
    check: Check,
}

// Without an allocator a roster is as large as all its keys: its owner keeps it where it need not move.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, PartialEq)]
enum Check {
    Members(Members),
    None,
    #[cfg(feature = "stand-in")]
    StandIn(SecretKey),
}

#[derive(Clone, Default)]
struct Members {
    keys: heapless::Vec<(VehicleId, Role, Verifier), ROSTER_MAX>,
    places: Places,
}

/// The index follows from the keys.
impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

/// Why an aircraft or a console does not enter a roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// It is full.
    #[error("found more than {ROSTER_MAX} aircraft and consoles, expected at most so many")]
    Full,
    /// The id is in it.
    #[error("found {0} twice, expected each id once")]
    Duplicate(VehicleId),
    /// No signature can be checked with this key.
    #[error("public key of {0}: found no point of the curve, or a weak one, expected an Ed25519 key")]
    Key(VehicleId),
    /// It asks for no keys.
    #[error("found a key for {0}, expected none: this roster is without keys")]
    Keyless(VehicleId),
}

/// Without the fleet's key.
impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.len();
        f.debug_struct("Roster")
            .field("kind", &self.kind())
            .field("epoch", &self.epoch)
            .field("members", &members)
            .finish_non_exhaustive()
    }
}

impl Roster {
    /// One that knows no aircraft yet.
    pub fn new(epoch: u8, fleet: FleetKey) -> Self {
        Self { epoch, fleet, check: Check::Members(Members::default()) }
    }

    /// One that opens what [`Signer::insecure`] seals, whatever sender it names, and nothing that is signed.
    pub fn insecure() -> Self {
        Self { epoch: 0, fleet: NO_FLEET, check: Check::None }
    }

    /// One that opens what [`Signer::stand_in`] seals with this secret.
    #[cfg(feature = "stand-in")]
    pub fn stand_in(secret: &SecretKey, epoch: u8, fleet: FleetKey) -> Self {
        Self { epoch, fleet, check: Check::StandIn(*secret) }
    }

    /// Adds an aircraft or a console with its public key.
    ///
    /// # Errors
    /// Why it cannot be added; the roster is as before then.
    pub fn add(&mut self, id: VehicleId, role: Role, key: &PublicKey) -> Result<(), RosterError> {
        let Check::Members(Members { keys, places }) = &mut self.check else {
            return Err(RosterError::Keyless(id));
        };
        if keys.iter().any(|(known, ..)| *known == id) {
            return Err(RosterError::Duplicate(id));
        }
        let key = Verifier::new(key).ok_or(RosterError::Key(id))?;
        keys.push((id, role, key)).map_err(|_| RosterError::Full)?;
        places.learn(keys.iter().map(|(id, ..)| *id));
        Ok(())
    }

    /// Computes a table of each key, 41 kB, with which a verification takes half of its instructions and decides the same: for a roster that is complete
    /// and opens many datagrams. A table costs as much as two verifications.
    #[cfg(feature = "tables")]
    pub fn precompute(&mut self) {
        if let Check::Members(Members { keys, .. }) = &mut self.check {
            let base = crate::verifier::Base::new();
            keys.iter_mut().for_each(|(.., key)| key.precompute(&base));
        }
    }

    /// The aircraft and consoles that it knows by their keys.
    pub fn len(&self) -> usize {
        match &self.check {
            Check::Members(members) => members.keys.len(),
            Check::None => 0,
            #[cfg(feature = "stand-in")]
            Check::StandIn(_) => 0,
        }
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it asks for signatures.
    pub fn is_secured(&self) -> bool {
        self.kind() != Kind::Insecure
    }

    /// The public key of an aircraft or a console.
    pub fn public_key(&self, id: VehicleId) -> Option<PublicKey> {
        self.member(id).map(|(_, key)| key.public_key())
    }

    /// The role of a sender, where keys tell roles apart.
    pub fn role(&self, id: VehicleId) -> Option<Role> {
        self.member(id).map(|(role, _)| role)
    }

    /// The aircraft and consoles that it knows by their keys, in the order in which they were added.
    pub fn senders(&self) -> impl Iterator<Item = (VehicleId, Role)> {
        let keys = match &self.check {
            Check::Members(members) => members.keys.as_slice(),
            Check::None => &[],
            #[cfg(feature = "stand-in")]
            Check::StandIn(_) => &[],
        };
        keys.iter().map(|(id, role, _)| (*id, *role))
    }

    fn member(&self, id: VehicleId) -> Option<(Role, &Verifier)> {
        let Check::Members(Members { keys, places }) = &self.check else { return None };
        let index = places.find(id, |i| keys.get(i).is_some_and(|(known, ..)| *known == id))?;
        keys.get(index).map(|(_, role, key)| (*role, key))
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.check {
            Check::Members(_) => Kind::Signed,
            Check::None => Kind::Insecure,
            #[cfg(feature = "stand-in")]
            Check::StandIn(_) => Kind::StandIn,
        }
    }

    /// Whether `id` may send at all: cheap, before the signature.
    pub(crate) fn check_sender(&self, id: VehicleId) -> Result<(), Refused> {
        match &self.check {
            Check::Members(_) => self.member(id).map(|_| ()).ok_or(Refused::UnknownSender),
            Check::None => Ok(()),
            #[cfg(feature = "stand-in")]
            Check::StandIn(_) => Ok(()),
        }
    }

    pub(crate) fn check_signature(
        &self,
        id: VehicleId,
        statement: &[u8],
        signature: &[u8],
    ) -> Result<(), Refused> {
        match &self.check {
            Check::Members(_) => {
                let (_, key) = self.member(id).ok_or(Refused::UnknownSender)?;
                let signature = Signature::from_slice(signature).map_err(|_| Refused::Signature)?;
                if key.verify(statement, &signature) { Ok(()) } else { Err(Refused::Signature) }
            }
            Check::None => Ok(()),
            #[cfg(feature = "stand-in")]
            Check::StandIn(secret) => {
                if signature == stand_in(secret, statement) {
                    Ok(())
                } else {
                    Err(Refused::Signature)
                }
            }
        }
    }
}
