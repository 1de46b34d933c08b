//! The recipe of a container image, which installs the Debian package.

use crate::outcome::{Outcome, fail};

use super::{elf::LibC, release::Release};

const RECIPE: &str = include_str!("../../files/Containerfile");

/// Debian's releases with the N of their glibc 2.N, the oldest first.
const BASES: &[(u32, &str)] = &[(36, "bookworm"), (41, "trixie")];

/// The recipe for the oldest Debian on which the programs of all platforms run.
///
/// # Errors
/// When they run on none.
pub(crate) fn recipe(releases: &[Release]) -> Outcome<String> {
    let libc = releases.iter().map(|release| release.programs.needs.libc).max();
    let version = releases.first().map(|release| release.version.as_str()).unwrap_or_default();
    match base(libc.unwrap_or(LibC::Static)) {
        Ok(base) => {
            Ok(RECIPE.replace("@BASE@", &format!("debian:{base}-slim")).replace("@VERSION@", version))
        }
        Err(text) => fail(text),
    }
}

fn base(libc: LibC) -> Result<&'static str, String> {
    let runs_on = |(minor, _): &&(u32, &str)| libc <= LibC::Glibc(*minor);
    BASES.iter().find(runs_on).map(|(_, name)| *name).ok_or_else(|| {
        format!("the programs need {libc}, which no Debian of tests/xtask/src/dist/container.rs has")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_has_the_c_library() {
        assert_eq!(base(LibC::Static), Ok("bookworm"));
        assert_eq!(base(LibC::Glibc(36)), Ok("bookworm"));
        assert_eq!(base(LibC::Glibc(37)), Ok("trixie"));
        assert!(base(LibC::Glibc(99)).is_err());
    }
}
