//! Ports for a process. SITL binds its ports on every interface and ends without a word that says which where one is taken;
//! and the kernel hands ports from 32768 on to others at any time, so those are not used.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use anyhow::{Result, anyhow};

/// Where blocks of ports begin.
const FIRST: u16 = 10_240;
/// Below this no port is handed out by the kernel (`net.ipv4.ip_local_port_range`).
const END: u16 = 32_768;
/// Ports of one process.
const STEP: u16 = 10;

/// The ports of one process, ours among them bound already: as long as it is held no other bench takes the block.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    /// Where the program's outputs arrive.
    pub outputs: UdpSocket,
}

impl Ports {
    /// The first block that is free, searched from a place of this process's own.
    ///
    /// # Errors
    /// None is free; names what was in use at the last try.
    pub fn free() -> Result<Self> {
        let blocks = (END - FIRST) / STEP;
        let start = (std::process::id() % u32::from(blocks)) as u16;
        let mut found = String::new();
        for i in 0..blocks {
            let first = FIRST + (start + i * 7) % blocks * STEP;
            match Self::at(first) {
                Ok(ports) => return Ok(ports),
                Err(taken) => found = taken,
            }
        }
        Err(anyhow!(
            "ports: found {found} in use, expected a block of {STEP} free ports from {FIRST} to {END}"
        ))
    }

    fn at(first: u16) -> Result<Self, String> {
        let any = Ipv4Addr::UNSPECIFIED;
        let udp = |port: u16| UdpSocket::bind((any, port)).map_err(|_| format!("UDP port {port}"));
        // Ours first: it keeps the block.
        let outputs = UdpSocket::bind((Ipv4Addr::LOCALHOST, first + 7))
            .map_err(|_| format!("UDP port {}", first + 7))?;
        for port in [first, first + 2, first + 3] {
            TcpListener::bind((any, port)).map_err(|_| format!("TCP port {port}"))?;
        }
        for port in [first + 5, first + 6] {
            udp(port)?;
        }
        Ok(Self { first, outputs })
    }

    /// The base port, on which the program serves SERIAL0; SERIAL1 and SERIAL2 are 2 and 3 higher.
    pub fn base(&self) -> u16 {
        self.first
    }
    /// The simulated receiver's input.
    pub fn receiver(&self) -> u16 {
        self.first + 5
    }
    /// Where the program expects what its sensors measure.
    pub fn sensors(&self) -> u16 {
        self.first + 6
    }
    /// Where the program's outputs arrive.
    pub fn outputs_port(&self) -> u16 {
        self.first + 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_blocks_are_apart_and_below_the_kernels_range() {
        let (one, two) = (Ports::free().unwrap(), Ports::free().unwrap());
        assert_ne!(one.base(), two.base());
        assert!(one.base() >= FIRST && one.outputs_port() < END);
    }

    #[test]
    fn a_port_in_use_is_named_and_its_block_is_passed_over() {
        let held = Ports::free().unwrap();
        let taken = Ports::at(held.base()).unwrap_err();
        assert_eq!(taken, format!("UDP port {}", held.outputs_port()));
        let other = Ports::free().unwrap();
        let base = other.base();
        drop(other);
        let _serial = TcpListener::bind((Ipv4Addr::UNSPECIFIED, base + 2)).unwrap();
        assert_eq!(Ports::at(base).unwrap_err(), format!("TCP port {}", base + 2));
    }
}
