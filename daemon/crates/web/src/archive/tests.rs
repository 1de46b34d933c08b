use std::io::Write as _;

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder},
};
use proptest::{collection::vec, prelude::*};

use super::*;

fn base() -> Url {
    Url::parse("https://example.org/files/a").unwrap()
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// An archive of these files, packed or as they are, with a comment.
fn zip(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content, is_packed) in files {
        let (method, data) = if *is_packed { (8_u16, deflated(content)) } else { (0, content.to_vec()) };
        let (packed, unpacked) = (u32::try_from(data.len()).unwrap(), u32::try_from(content.len()).unwrap());
        let (at, name_length) = (u32::try_from(out.len()).unwrap(), u16::try_from(name.len()).unwrap());
        let mut common = Vec::new();
        for number in [20_u16, 0, method, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        for number in [0_u32, packed, unpacked] {
            common.extend(number.to_le_bytes());
        }
        common.extend(name_length.to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (at, count) = (u32::try_from(out.len()).unwrap(), u16::try_from(files.len()).unwrap());
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend(6_u16.to_le_bytes());
    out.extend(b"a note");
    out
}

/// An archive of these entries: name, kind, content.
fn tar(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, kind, content) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = *kind;
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend(header);
        out.extend(*content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn shown(body: &[u8]) -> Unpacked {
    read(Packed::sniff(body).unwrap(), body, &base(), 10_000).unwrap()
}

#[test]
fn archives_are_listed() {
    let archive =
        zip(&[("src/", b"", false), ("src/a.rs", b"fn main() {}", true), ("b\u{1b}\n", b"xx", false)]);
    let Unpacked { method, text, note } = shown(&archive);
    assert_eq!(
        text,
        "ZIP archive: 3 entries, 14 bytes unpacked\n\n- src/\n- src/a.rs (12 bytes)\n- b\\u{1b}\\n (2 bytes)\n"
    );
    assert_eq!((method, note), ("archive", None));
    assert!(shown(&zip(&[])).text.starts_with("ZIP archive: 0 entries"));

    let long = "d/".repeat(100) + "name";
    let archive = tar(&[
        ("folder", b'5', b""),
        ("folder/a", b'0', &[1; 700]),
        ("././@LongLink", b'L', long.as_bytes()),
        ("cut", b'0', b"x"),
        ("pax", b'x', b"20 path=of/posix\n11 mtime=1\n"),
        ("short", b'0', b""),
        ("link", b'2', b""),
    ]);
    let expected = format!(
        "TAR archive: 5 entries, 701 bytes unpacked\n\n- folder/\n- folder/a (700 bytes)\n- {long} (1 bytes)\n- of/posix (0 bytes)\n- link (0 bytes)\n"
    );
    assert_eq!(shown(&archive).text, expected);
    assert_eq!(shown(&gzip(&archive)).text, expected.replace("TAR", "TAR (gzip)"));
}

#[test]
fn what_is_damaged_is_said() {
    let archive = tar(&[("a", b'0', &[1; 700]), ("b", b'0', b"")]);
    assert_eq!(shown(&archive[..1000]).note.as_deref(), Some("not all entries: the archive is cut off"));
    let mut broken = archive;
    broken[512 + 1024 + 3] = 7;
    assert_eq!(shown(&broken).note.as_deref(), Some("not all entries: a header in it is damaged"));
    let failed = |body: &[u8]| read(Packed::sniff(body).unwrap(), body, &base(), 100).unwrap_err();
    assert!(failed(b"PK\x03\x04 and then nothing").contains("no directory"));
    assert!(failed(&gzip(b"a text")).contains("no TAR archive"));
    let mut broken = zip(&[("word/document.xml", b"<w:document/>", true)]);
    broken[4..40].fill(0xff);
    assert!(failed(&broken).contains("damaged at word/document.xml"));
}

#[test]
fn many_entries_are_counted() {
    let names: Vec<String> = (0..2500).map(|number| format!("f{number}")).collect();
    let files: Vec<(&str, &[u8], bool)> = names.iter().map(|name| (name.as_str(), &b""[..], false)).collect();
    let Unpacked { text, note, .. } = shown(&zip(&files));
    assert!(
        text.starts_with("ZIP archive: 2500 entries") && text.contains("f1999 ") && !text.contains("f2000 ")
    );
    assert_eq!(note.as_deref(), Some("500 more entries are left out"));
}

const DOCUMENT: &str = r#"<?xml version="1.0"?><w:document xmlns:w="w" xmlns:r="r"><w:body>
<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>The </w:t></w:r><w:r><w:t>title</w:t></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Part</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Words &amp; a </w:t></w:r><w:hyperlink r:id="r1"><w:r><w:t>link</w:t></w:r></w:hyperlink><w:r><w:br/><w:t>next line</w:t></w:r>
<w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>one</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr><w:r><w:t>inner</w:t></w:r></w:p>
<w:p/>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>B|C</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p><w:p><w:r><w:t>2</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t>End.</w:t></w:r></w:p></w:body></w:document>"#;

const LINKS: &str = r#"<Relationships><Relationship Id="r1" Target="https://example.org/x(1)" TargetMode="External"/>
<Relationship Id="r2" Target="media/image1.png"/></Relationships>"#;

#[test]
fn the_text_of_a_document_is_markdown() {
    let body = zip(&[
        ("[Content_Types].xml", b"<Types/>", true),
        ("word/document.xml", DOCUMENT.as_bytes(), true),
        ("word/_rels/document.xml.rels", LINKS.as_bytes(), false),
    ]);
    let Unpacked { method, text, note } = shown(&body);
    assert_eq!(
        text.trim(),
        "# The title\n\n## Part\n\nWords & a [link](https://example.org/x%281%29)\nnext line\n\n- one\n  - inner\n\n\
         | A | B\\|C |\n| --- | --- |\n| 1 2 |  |\n\nEnd."
    );
    assert_eq!((method, note), ("docx", None));
    let short = read(Packed::Zip, &body, &base(), 20).unwrap();
    assert!(short.note.unwrap().contains("end is left out") && short.text.starts_with("# The title"));
}

proptest! {
    #[test]
    fn any_bytes_are_read(data in vec(any::<u8>(), 0..1200), at in 0_usize..600, byte: u8) {
        let whole = [
            zip(&[("word/document.xml", DOCUMENT.as_bytes(), true)]),
            tar(&[("a", b'L', b"b"), ("c", b'0', &[3; 30])]),
        ];
        for mut body in whole.into_iter().chain([data]) {
            if let Some(place) = body.get_mut(at) {
                *place = byte;
            }
            for packed in [Packed::Zip, Packed::Tar, Packed::Gzip] {
                // Whatever comes of it.
                let _ = read(packed, &body, &base(), 1000);
            }
        }
    }
}
