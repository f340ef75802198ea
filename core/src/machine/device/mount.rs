//! The mount that covers a directory.
//!
//! Parses `/proc/self/mountinfo`, the view of this process's mount namespace. Lines that can't be read are
//! skipped: one odd line must not hide the others. Spaces, tabs, newlines and backslashes in names appear
//! as three octal digits (`\040`), which are decoded. The order in which options were given is lost.
//!
//! Source: `proc_pid_mountinfo(5)`.

use std::array;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::DeviceNumber;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `st_dev` of its files; a btrfs subvolume's files have another.
    pub device_number: DeviceNumber,
    /// The directory of the file system that is mounted: `/`, or below it after a bind mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Its type, such as `ext4`.
    pub fs_type: String,
    /// What is mounted: a device node, a server's export, or a word without meaning.
    pub source: Option<String>,
    /// The options of the mount and of the file system, `ro` or `rw` first, then by name.
    pub options: String,
}

/// The mounts of a mountinfo file, in the order of mounting.
pub(super) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    String::from_utf8_lossy(mountinfo).lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Before them are the numbers of the mount and of its parent. A field may be empty.
    let mut fields = line.split(' ').skip(2);
    let [number, root, mount_point, of_mount] = array::from_fn(|_| fields.next());
    // A dash ends fields of which there are any number.
    fields.find(|field| *field == "-")?;
    let [fs_type, source, of_file_system] = array::from_fn(|_| fields.next());
    Some(Mount {
        device_number: number?.parse().ok()?,
        root: decode(root?).into(),
        mount_point: decode(mount_point?).into(),
        fs_type: decode_text(fs_type?),
        source: Some(source?).filter(|source| !matches!(*source, "none" | "")).map(decode_text),
        options: options([of_mount?, of_file_system?]),
    })
}

/// The mount that holds `path`: of the prefixes of its device number the longest, and of equals the last. A
/// btrfs subvolume has an anonymous number (major 0), which mountinfo doesn't show: there any prefix does.
pub(super) fn covering(mounts: Vec<Mount>, path: &Path, number: Option<DeviceNumber>) -> Option<Mount> {
    let mut candidates: Vec<Mount> =
        mounts.into_iter().filter(|mount| path.starts_with(&mount.mount_point)).collect();
    if let Some(number) = number {
        if candidates.iter().any(|mount| mount.device_number == number) {
            candidates.retain(|mount| mount.device_number == number);
        } else if number.major != 0 {
            return None;
        }
    }
    let longest = candidates.into_iter().max_by_key(|mount| mount.mount_point.components().count())?;
    let matches = number.is_none_or(|number| number.major == longest.device_number.major);
    matches.then_some(longest)
}

/// One text of the options of both levels, without repetitions. A mount is read-only if either level is.
fn options<'a>(levels: [&'a str; 2]) -> String {
    // Of options with the same name the last one counts.
    let by_name =
        |level: &'a str| level.split(',').map(|option| (option.split('=').next(), option)).collect();
    let levels: [HashMap<Option<&str>, &str>; 2] = levels.map(by_name);
    let first = if levels.iter().any(|level| level.contains_key(&Some("ro"))) { "ro" } else { "rw" };
    let options = levels.iter().flatten().filter(|(name, _)| !matches!(name, Some("ro" | "rw" | "")));
    let mut others: Vec<String> = options.map(|(_, option)| decode_text(option)).collect();
    others.sort_unstable();
    others.dedup();
    others.insert(0, first.to_owned());
    others.join(",")
}

/// Replaces `\` and three octal digits by the byte that they stand for, in one pass: an escaped backslash
/// before digits stays a backslash.
fn decode(text: &str) -> OsString {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                decoded.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                at += 4;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(decoded)
}

fn decode_text(text: &str) -> String {
    decode(text).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTS: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw,discard,resuid=70
30 27 254:2 /a /data rw,noatime - xfs /dev/vda2 rw,attr2
31 30 254:3 / /data/old\040disk\134040 ro - ext4 /dev/vda3 rw
32 27 0:30 / /data/deep/er rw - tmpfs none rw,size=4k
33 27 254:2 / /data rw,noatime - xfs /dev/vda2 ro,noatime,attr2
34 27 0:45 / /b rw - btrfs /dev/vdb rw,subvolid=5,subvol=/
";

    fn find(path: &str, number: &str) -> Option<Mount> {
        covering(parse(MOUNTS.as_bytes()), Path::new(path), number.parse().ok())
    }

    #[test]
    fn reads_every_field() {
        let root = find("/", "254:1").unwrap();
        assert_eq!(root.device_number, DeviceNumber { major: 254, minor: 1 });
        assert_eq!(root.mount_point, Path::new("/"));
        assert_eq!(root.fs_type, "ext4");
        assert_eq!(root.source.as_deref(), Some("/dev/vda1"));
        assert_eq!(root.options, "rw,discard,relatime,resuid=70");
    }

    #[test]
    fn a_mount_is_read_only_when_one_level_is() {
        assert_eq!(find("/data", "254:2").unwrap().options, "ro,attr2,noatime");
        assert_eq!(find(r"/data/old disk\040/x", "254:3").unwrap().options, "ro");
    }

    #[test]
    fn decodes_escapes_once() {
        assert_eq!(find(r"/data/old disk\040/x", "254:3").unwrap().source.as_deref(), Some("/dev/vda3"));
        assert_eq!(decode_text(r"\303\251"), "é");
        assert_eq!(decode(r"a\011b\012c\134d\0400\43\999\400"), *"a\tb\nc\\d 0\\43\\999\\400");
    }

    #[test]
    fn the_longest_prefix_of_whole_components_wins() {
        assert_eq!(find("/data/base", "254:2").unwrap().mount_point, Path::new("/data"));
        let database = covering(parse(MOUNTS.as_bytes()), Path::new("/database"), None).unwrap();
        assert_eq!(database.mount_point, Path::new("/"));
    }

    #[test]
    fn of_equal_mount_points_the_last_wins() {
        let twice = "1 0 8:1 / /d rw - ext3 /dev/a rw\n2 1 8:1 / /d rw - ext4 /dev/b rw\n";
        let mount = covering(parse(twice.as_bytes()), Path::new("/d"), None).unwrap();
        assert_eq!(mount.fs_type, "ext4");
    }

    #[test]
    fn the_device_number_beats_a_mount_that_is_hidden_below() {
        assert_eq!(find("/data/deep/er/x", "254:2").unwrap().mount_point, Path::new("/data"));
    }

    #[test]
    fn an_unknown_number_matches_by_prefix_only_between_anonymous_devices() {
        assert_eq!(find("/b/subvolume", "0:46").unwrap().fs_type, "btrfs");
        assert_eq!(find("/b/subvolume", "8:1"), None);
        assert_eq!(find("/data/x", "254:9"), None);
        assert_eq!(find("/data/x", "0:46"), None);
    }

    #[test]
    fn skips_lines_that_it_cannot_read() {
        let mixed = b"garbage\n27 1 254:1 / / rw - ext4\n\n28 1 8:x / /x rw - ext4 a rw\n\
            29 1 8:1 / /y rw - ext4 /dev/sda1 rw";
        let mounts = parse(mixed);
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].mount_point, Path::new("/y"));
    }

    proptest! {
        #[test]
        fn decoding_undoes_the_kernels_escaping(name in r"[ \t\n\\0-9a-zé]{0,20}") {
            let mut escaped = String::new();
            for character in name.chars() {
                match character {
                    ' ' | '\t' | '\n' | '\\' => escaped += &format!("\\{:03o}", character as u32),
                    other => escaped.push(other),
                }
            }
            prop_assert_eq!(decode_text(&escaped), name);
        }
    }
}
