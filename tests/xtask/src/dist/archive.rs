//! Archives whose bytes depend on their content alone: names in order, one time for all, root as owner.

use std::{collections::BTreeMap, io::Write};

use flate2::{Compression, Crc, GzBuilder, write::DeflateEncoder};

use crate::outcome::{About as _, Outcome};

/// Files by their paths, which are relative and use `/`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files(BTreeMap<String, Entry>);

#[derive(Debug, Clone)]
struct Entry {
    content: Vec<u8>,
    is_program: bool,
}

impl Files {
    pub(crate) fn add(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Entry { content: content.into(), is_program: false });
    }

    /// Adds a file that can be executed.
    pub(crate) fn add_program(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Entry { content: content.into(), is_program: true });
    }

    /// Adds the files of another set below a folder.
    pub(crate) fn add_below(&mut self, folder: &str, files: &Self) {
        let below = files.0.iter().map(|(path, entry)| (format!("{folder}/{path}"), entry.clone()));
        self.0.extend(below);
    }

    /// The paths and contents, in the order of the paths' bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry.content.as_slice()))
    }

    /// All folders above the files, each before what it holds.
    fn folders(&self) -> Vec<&str> {
        let mut folders: Vec<&str> =
            self.0.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// A tar archive. Every name begins with `prefix`; folders are listed where `with_folders` is set.
    ///
    /// # Errors
    /// When a name is too long.
    pub(crate) fn tar(&self, epoch: u64, prefix: &str, with_folders: bool) -> Outcome<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let header = |kind: tar::EntryType, mode: u32, size: usize| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(size as u64);
            header.set_mtime(epoch);
            header.set_uid(0);
            header.set_gid(0);
            header
        };
        for folder in self.folders().into_iter().filter(|_| with_folders) {
            let mut header = header(tar::EntryType::Directory, 0o755, 0);
            header.set_path(format!("{prefix}{folder}/")).about(folder)?;
            // `set_path` drops a leading `./`, which Debian packages have.
            write_name(&mut header, &format!("{prefix}{folder}/"));
            header.set_cksum();
            archive.append(&header, std::io::empty()).about(folder)?;
        }
        for (path, entry) in &self.0 {
            let mode = if entry.is_program { 0o755 } else { 0o644 };
            let mut header = header(tar::EntryType::Regular, mode, entry.content.len());
            header.set_path(format!("{prefix}{path}")).about(path)?;
            write_name(&mut header, &format!("{prefix}{path}"));
            header.set_cksum();
            archive.append(&header, entry.content.as_slice()).about(path)?;
        }
        archive.into_inner().about("tar")
    }

    /// A ZIP archive, as wheels are. The time of its entries is that of `epoch`, in UTC.
    ///
    /// # Errors
    /// When it would need the 64-bit form.
    pub(crate) fn zip(&self, epoch: u64) -> Outcome<Vec<u8>> {
        let mut archive = Vec::new();
        let mut directory = Vec::new();
        for (path, entry) in &self.0 {
            let mut deflater = DeflateEncoder::new(Vec::new(), Compression::new(6));
            deflater.write_all(&entry.content).about(path)?;
            let compressed = deflater.finish().about(path)?;
            let mut crc = Crc::new();
            crc.update(&entry.content);
            let mut common = Vec::new();
            // Version needed, flags (names are UTF-8), method, time, date.
            for value in [20, 1 << 11, 8, dos_time(epoch), dos_date(epoch)] {
                common.extend(u16::to_le_bytes(value));
            }
            for value in [crc.sum(), size(compressed.len(), path)?, size(entry.content.len(), path)?] {
                common.extend(value.to_le_bytes());
            }
            common.extend(short(path.len(), path)?.to_le_bytes());
            common.extend([0, 0]); // no extra fields
            let offset = size(archive.len(), path)?;
            archive.extend(b"PK\x03\x04");
            archive.extend(&common);
            archive.extend(path.as_bytes());
            archive.extend(&compressed);

            directory.extend(b"PK\x01\x02");
            directory.extend([20, 3]); // made on Unix
            directory.extend(&common);
            directory.extend([0; 6]); // no comment, first disk, no internal attributes
            let mode: u32 = if entry.is_program { 0o100_755 } else { 0o100_644 };
            directory.extend((mode << 16).to_le_bytes());
            directory.extend(offset.to_le_bytes());
            directory.extend(path.as_bytes());
        }
        let (start, length) = (size(archive.len(), "zip")?, size(directory.len(), "zip")?);
        let count = short(self.0.len(), "zip")?.to_le_bytes();
        archive.extend(directory);
        archive.extend(b"PK\x05\x06\0\0\0\0");
        archive.extend(count);
        archive.extend(count);
        archive.extend(length.to_le_bytes());
        archive.extend(start.to_le_bytes());
        archive.extend([0, 0]);
        Ok(archive)
    }
}

fn size(length: usize, what: &str) -> Outcome<u32> {
    u32::try_from(length).about(what)
}

fn short(length: usize, what: &str) -> Outcome<u16> {
    u16::try_from(length).about(what)
}

fn write_name(header: &mut tar::Header, name: &str) {
    let field = &mut header.as_old_mut().name;
    if name.len() <= field.len() {
        field.fill(0);
        field[..name.len()].copy_from_slice(name.as_bytes());
    }
}

/// Compresses an archive as `gzip -n` does: without a name and a time.
pub(crate) fn gzip(content: &[u8]) -> Outcome<Vec<u8>> {
    compressed(content, Compression::new(6))
}

/// Compresses a page as `gzip -9n` does, which Debian demands.
pub(crate) fn gzip_best(content: &[u8]) -> Outcome<Vec<u8>> {
    compressed(content, Compression::best())
}

fn compressed(content: &[u8], level: Compression) -> Outcome<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), level);
    writer.write_all(content).about("gzip")?;
    writer.finish().about("gzip")
}

/// Seconds in two, minutes, hours.
fn dos_time(epoch: u64) -> u16 {
    let seconds = epoch % 86_400;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    u16::try_from((hour << 11) | (minute << 5) | (second / 2)).unwrap_or(0)
}

/// Days, months, years since 1980. Earlier times are the first day of 1980.
fn dos_date(epoch: u64) -> u16 {
    let (year, month, day) = date(epoch);
    match year.checked_sub(1980) {
        Some(years) => u16::try_from(years.min(127) << 9 | month << 5 | day).unwrap_or(0),
        None => 1 << 5 | 1,
    }
}

/// Year, month and day in UTC: the civil calendar counted in eras of 400 years that begin in March.
pub(crate) fn date(epoch: u64) -> (u64, u64, u64) {
    let days = epoch / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn files() -> Files {
        let mut files = Files::default();
        files.add_program("b/run", "#!/bin/sh\n");
        files.add("a.txt", vec![b'x'; 10_000]);
        files
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (epoch, expected) in [
            (0, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (1_709_164_800, (2024, 2, 29)),
            (1_735_689_599, (2024, 12, 31)),
            (4_107_542_400, (2100, 3, 1)),
        ] {
            assert_eq!(date(epoch), expected, "{epoch}");
        }
        assert_eq!(dos_date(0), 0b10_0001);
        assert_eq!(
            (dos_date(1_709_164_800), dos_time(1_709_164_800 + 3_661)),
            (44 << 9 | 2 << 5 | 29, 1 << 11 | 1 << 5)
        );
    }

    #[test]
    fn a_tar_archive_holds_the_files_in_order() {
        let bytes = files().tar(7, "./", true).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let seen: Vec<(String, u32, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                (name, entry.header().mode().unwrap(), entry.header().mtime().unwrap())
            })
            .collect();
        let expected = [("./b/", 0o755, 7), ("./a.txt", 0o644, 7), ("./b/run", 0o755, 7)]
            .map(|(name, mode, time)| (name.to_owned(), mode, time));
        assert_eq!(seen, expected);
        assert_eq!(bytes, files().tar(7, "./", true).unwrap());
    }

    #[test]
    fn gzip_gives_the_content_back_and_knows_no_time() {
        let packed = gzip(b"content").unwrap();
        assert_eq!(packed[4..8], [0; 4]);
        let mut content = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
    }

    #[test]
    fn a_zip_archive_names_its_files_twice() {
        let bytes = files().zip(951_782_400).unwrap();
        let name = b"a.txt";
        assert_eq!(bytes.windows(name.len()).filter(|part| part == name).count(), 2);
        assert!(bytes.len() < 1_000);
    }
}
