//! The throw-away keys of a bench's aircraft, made from its seed: every flight is a secured one.

use rand_core::Rng;
use wingbeat_wire::{FleetKey, Role, Roster, RosterError, Signer, VehicleId};

use crate::rng;

const EPOCH: u8 = 1;

/// The id of a world's console.
pub const CONSOLE: VehicleId = VehicleId(0x0200_0000_c001);

/// What proves the sender of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// Ed25519, as between aircraft: some 70 µs for each datagram.
    #[default]
    Ed25519,
    /// As long on the air and a hundred times cheaper: for crowds, and for thousands of flights. No aircraft accepts them.
    StandIn,
}

impl Signatures {
    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::StandIn => "stand-in",
        }
    }
}

impl std::str::FromStr for Signatures {
    type Err = String;
    /// `ed25519` or `stand-in`.
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Ed25519, Self::StandIn]
            .into_iter()
            .find(|signatures| signatures.name() == text)
            .ok_or_else(|| format!("signatures: found '{text}', expected ed25519 or stand-in"))
    }
}

/// The keys of one fleet.
#[derive(Clone, Debug)]
pub struct Keys {
    signatures: Signatures,
    signers: Vec<Signer>,
    /// The operator's.
    console: Signer,
    /// A sender's that has the fleet's key and no aircraft's own.
    outsider: Signer,
    roster: Box<Roster>,
}

impl Keys {
    /// Keys for these aircraft. Two with one id have one key.
    ///
    /// # Errors
    /// More aircraft than a roster holds.
    pub fn new(
        signatures: Signatures,
        seed: u64,
        ids: impl IntoIterator<Item = VehicleId>,
    ) -> Result<Self, RosterError> {
        let secret = |what: &str, index: u64| {
            let mut key = [0; 32];
            rng::child(seed, what, index).fill_bytes(&mut key);
            key
        };
        let fleet = FleetKey(secret("fleet key", 0));
        let signer = |secret: [u8; 32]| match signatures {
            Signatures::Ed25519 => Signer::new(&secret, EPOCH, fleet.clone()),
            Signatures::StandIn => Signer::stand_in(&secret, EPOCH, fleet.clone()),
        };
        // All stand-ins share one secret.
        let shared = secret("stand-in", 0);
        let mut roster = Box::new(match signatures {
            Signatures::Ed25519 => Roster::new(EPOCH, fleet.clone()),
            Signatures::StandIn => Roster::stand_in(&shared, EPOCH, fleet.clone()),
        });
        let mut signers = Vec::new();
        for id in ids {
            let signer = match signatures {
                Signatures::Ed25519 => signer(secret("aircraft key", id.0)),
                Signatures::StandIn => signer(shared),
            };
            if let Some(key) = signer.public_key() {
                match roster.add(id, Role::Aircraft, &key) {
                    Ok(()) | Err(RosterError::Duplicate(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            signers.push(signer);
        }
        let console = match signatures {
            Signatures::Ed25519 => signer(secret("console key", 0)),
            Signatures::StandIn => signer(shared),
        };
        if let Some(key) = console.public_key() {
            roster.add(CONSOLE, Role::Operator, &key)?;
        }
        let outsider = signer(secret("outsider", 0));
        Ok(Self { signatures, signers, console, outsider, roster })
    }

    /// What proves the sender.
    pub fn signatures(&self) -> Signatures {
        self.signatures
    }

    /// Those of one aircraft, by its index.
    ///
    /// # Panics
    /// If there are fewer aircraft.
    pub fn signer(&self, aircraft: usize) -> &Signer {
        &self.signers[aircraft]
    }

    /// Those of the operator's console.
    pub fn console(&self) -> &Signer {
        &self.console
    }

    /// Those of a sender that has the fleet's key and no aircraft's own: it can state nothing in another's name.
    pub fn outsider(&self) -> &Signer {
        &self.outsider
    }

    /// What each aircraft knows of all.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }
}
