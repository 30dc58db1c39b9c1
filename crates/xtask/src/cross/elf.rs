//! What the ELF headers of a program require of the machine that starts it.

use anyhow::{Context, Result, ensure};
use object::elf::{FileHeader32, FileHeader64, Machine};
use object::read::elf::FileHeader;
use object::{Endianness, FileKind};

const GLIBC: &str = "GLIBC_";

/// What starting a program requires.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requirements {
    pub(super) machine: Machine,
    /// The newest version of glibc among the symbol versions that it needs; none if it needs no glibc.
    pub(super) glibc: Option<(u32, u32)>,
}

/// Reads the requirements of a program.
pub(super) fn requirements(bytes: &[u8]) -> Result<Requirements> {
    let kind = FileKind::parse(bytes).context("found no ELF header")?;
    match kind {
        FileKind::Elf32 => read::<FileHeader32<Endianness>>(bytes),
        FileKind::Elf64 => read::<FileHeader64<Endianness>>(bytes),
        other => anyhow::bail!("found {other:?}, expected an ELF file"),
    }
}

fn read<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Requirements> {
    let header = Elf::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    // A program that is cut off may keep its header, and lose the table of sections at its end.
    ensure!(!sections.is_empty(), "found an ELF header without sections, expected a whole program");
    let mut glibc = None;
    if let Some((mut needs, names)) = sections.gnu_verneed(endian, bytes)? {
        let names = sections.strings(endian, bytes, names)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                glibc = glibc.max(glibc_version(version.name(endian, names)?));
            }
        }
    }
    Ok(Requirements { machine: header.e_machine(endian), glibc })
}

/// The version in a name like `GLIBC_2.34`; none for other libraries and for `GLIBC_PRIVATE`.
fn glibc_version(name: &[u8]) -> Option<(u32, u32)> {
    let mut numbers = std::str::from_utf8(name).ok()?.strip_prefix(GLIBC)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::{EM_AARCH64, EM_X86_64};

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn this_program_requires_this_machine_and_a_glibc() {
        let found = requirements(&this_program()).unwrap();
        assert_eq!(found.machine, if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 });
        assert!(found.glibc >= Some((2, 2)), "{found:?}");
    }

    #[test]
    fn what_is_no_whole_program_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh and a long line after it", b"\x7fELF", &this_program()[..1_000]] {
            assert!(requirements(bytes).is_err(), "{} bytes", bytes.len());
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(glibc_version(b"GLIBC_2.34") > glibc_version(b"GLIBC_2.4"));
        assert_eq!(glibc_version(b"GLIBC_2.9.1"), Some((2, 9)));
        for other in [&b"GLIBC_PRIVATE"[..], b"GCC_3.0", b"GLIBC_2", b"\xff"] {
            assert_eq!(glibc_version(other), None);
        }
    }
}
