//! What an ELF program needs of the machine that it runs on. Pure.

use std::{collections::BTreeSet, fmt};

use object::{
    Endianness,
    elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP, SHT_SYMTAB},
    read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, VerneedIterator},
};

/// Libraries of the system that a portable wheel may use: the ones of the manylinux policies that a Rust program can need.
const SYSTEM_LIBRARIES: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// A processor that packages exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

/// The C library of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LibC {
    /// None: it is linked in.
    Static,
    /// glibc, from this version 2.N on.
    Glibc(u32),
}

/// The needs of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) machine: Machine,
    pub(crate) libc: LibC,
    /// The shared libraries by name.
    pub(crate) libraries: BTreeSet<String>,
    /// Whether it still has the symbols that `strip` removes.
    pub(crate) has_symbols: bool,
}

impl Needs {
    /// The needs of a program that runs wherever both run.
    ///
    /// # Errors
    /// When they are for different processors.
    pub(crate) fn with(self, other: &Self) -> Result<Self, String> {
        if self.machine != other.machine {
            return Err("the two programs are for different processors".to_owned());
        }
        Ok(Self {
            machine: self.machine,
            libc: self.libc.max(other.libc),
            libraries: self.libraries.union(&other.libraries).cloned().collect(),
            has_symbols: self.has_symbols || other.has_symbols,
        })
    }
}

impl fmt::Display for LibC {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => formatter.write_str("no C library"),
            Self::Glibc(minor) => write!(formatter, "glibc 2.{minor}"),
        }
    }
}

/// Reads the needs off a program.
///
/// # Errors
/// When it is no 64-bit Linux program for a processor of [`Machine`], or when it needs libraries that packages could not rely on.
pub(crate) fn needs(program: &[u8]) -> Result<Needs, String> {
    read(program).map_err(|error| error.to_string())?
}

fn read(data: &[u8]) -> object::Result<Result<Needs, String>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let machine = match header.e_machine(endian) {
        EM_X86_64 => Machine::X86_64,
        EM_AARCH64 => Machine::Aarch64,
        other => return Ok(Err(format!("there are no packages for ELF machine {other}"))),
    };
    let segments = header.program_headers(endian, data)?;
    let has_interpreter = segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP);
    let sections = header.sections(endian, data)?;
    let has_symbols = sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB);
    let mut libraries = BTreeSet::new();
    if let Some((entries, link)) = sections.dynamic(endian, data)? {
        let names = sections.strings(endian, data, link)?;
        for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
            let name = entry.string(endian, names)?;
            libraries.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    let mut glibc = None;
    if let Some((mut needed, link)) = sections.gnu_verneed(endian, data)? {
        let names = sections.strings(endian, data, link)?;
        glibc = newest_glibc(endian, &mut needed, names)?;
    }
    let libc = match (has_interpreter, glibc) {
        (false, None) if libraries.is_empty() => LibC::Static,
        (true, Some(minor)) => LibC::Glibc(minor),
        _ => return Ok(Err("it is linked to another C library than glibc; link it statically".to_owned())),
    };
    let strange: Vec<&String> =
        libraries.iter().filter(|name| !SYSTEM_LIBRARIES.contains(&name.as_str())).collect();
    if !strange.is_empty() {
        return Ok(Err(format!("it needs libraries that not every machine has: {strange:?}")));
    }
    Ok(Ok(Needs { machine, libc, libraries, has_symbols }))
}

/// The highest N of the symbol versions `GLIBC_2.N` that are needed.
fn newest_glibc(
    endian: Endianness,
    needed: &mut VerneedIterator<'_, FileHeader64<Endianness>>,
    names: object::read::StringTable<'_>,
) -> object::Result<Option<u32>> {
    let mut newest = None;
    while let Some((_, mut versions)) = needed.next()? {
        while let Some(version) = versions.next()? {
            let name = String::from_utf8_lossy(version.name(endian, names)?).into_owned();
            newest = newest.max(minor_version(&name));
        }
    }
    Ok(newest)
}

/// The N of `GLIBC_2.N` or `GLIBC_2.N.P`.
fn minor_version(name: &str) -> Option<u32> {
    name.strip_prefix("GLIBC_2.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use object::elf::{SHT_PROGBITS, SHT_STRTAB, SectionType};

    use super::*;

    #[test]
    fn this_test_needs_glibc() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = needs(&program).unwrap();
        assert!(matches!(needs.libc, LibC::Glibc(minor) if minor > 16), "{needs:?}");
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
    }

    /// A program made here: whether this test has symbols is a choice of its build.
    #[test]
    fn symbols_are_found_by_their_table() {
        const HEADER: usize = 64;
        let program = |section_type: SectionType| {
            let mut program = vec![0; 4 * HEADER];
            program[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
            program[18..20].copy_from_slice(&EM_X86_64.0.to_le_bytes());
            program[40] = 64; // e_shoff: the sections follow the header
            program[58] = 64; // e_shentsize
            program[60] = 3; // e_shnum: the empty one that is always the first, ours, and the one of names
            program[62] = 2; // e_shstrndx
            program[2 * HEADER + 4..][..4].copy_from_slice(&section_type.0.to_le_bytes());
            program[3 * HEADER + 4..][..4].copy_from_slice(&SHT_STRTAB.0.to_le_bytes());
            needs(&program).unwrap()
        };
        assert!(program(SHT_SYMTAB).has_symbols);
        assert!(!program(SHT_PROGBITS).has_symbols);
    }

    #[test]
    fn versions_are_numbers() {
        assert_eq!(minor_version("GLIBC_2.34"), Some(34));
        assert_eq!(minor_version("GLIBC_2.2.5"), Some(2));
        assert_eq!(minor_version("GCC_3.0"), None);
        assert_eq!(minor_version("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn both_programs_count() {
        let one =
            |libc| Needs { machine: Machine::X86_64, libc, libraries: BTreeSet::new(), has_symbols: false };
        let both = one(LibC::Glibc(17)).with(&one(LibC::Glibc(34))).unwrap();
        assert_eq!(both.libc, LibC::Glibc(34));
        assert_eq!(one(LibC::Static).with(&one(LibC::Glibc(3))).unwrap().libc, LibC::Glibc(3));
        let other = Needs { machine: Machine::Aarch64, ..one(LibC::Static) };
        assert!(one(LibC::Static).with(&other).is_err());
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(needs(b"#!/bin/sh\n").is_err());
        assert!(needs(b"").is_err());
    }
}
