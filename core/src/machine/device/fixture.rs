//! Trees that look like `/proc`, `/sys` and `/dev`, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Placement, Roots, resolve};

/// A temporary tree. Devices stand below `sys/devices`, with links to them from `class/block` and, if they
/// have a number, from `dev/block`, as the kernel arranges them.
pub struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let fixture = Fixture { directory: tempfile::tempdir().unwrap() };
        for directory in
            ["proc/self", "dev", "sys/dev/block", "sys/class/block", "sys/class/bdi", "sys/fs/btrfs"]
        {
            fs::create_dir_all(fixture.path(directory)).unwrap();
        }
        fixture
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub fn roots(&self) -> Roots {
        Roots { proc: self.path("proc"), sys: self.path("sys"), dev: self.path("dev") }
    }

    /// A file with the newline that sysfs puts at the end. A reader finds it as it was or as it will be.
    pub fn file(&self, relative: impl AsRef<Path>, text: &str) -> &Self {
        let path = self.directory.path().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("new");
        fs::write(&new, format!("{text}\n")).unwrap();
        fs::rename(new, path).unwrap();
        self
    }

    pub fn mounts(&self, lines: &[&str]) -> &Self {
        self.file("proc/self/mountinfo", &lines.join("\n"))
    }

    /// A whole device; without a number it is hidden, as NVMe paths are.
    pub fn disk(&self, name: &str, number: &str) -> &Self {
        self.device(&format!("sys/devices/{name}"), name, number)
    }

    /// A partition of a disk that exists.
    pub fn partition(&self, disk: &str, name: &str, number: &str) -> &Self {
        let directory = format!("sys/devices/{disk}/{name}");
        self.device(&directory, name, number).file(format!("{directory}/partition"), "1")
    }

    /// Puts `lower` below `upper`.
    pub fn slave(&self, upper: &str, lower: &str) -> &Self {
        self.link(&format!("sys/class/block/{lower}"), &format!("sys/devices/{upper}/slaves/{lower}"))
    }

    pub fn attribute(&self, disk: &str, name: &str, value: &str) -> &Self {
        self.file(format!("sys/devices/{disk}/{name}"), value)
    }

    /// A symbolic link at `at` to `target`, both in the tree.
    pub fn link(&self, target: &str, at: &str) -> &Self {
        let at = self.path(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.path(target), at).unwrap();
        self
    }

    pub fn resolve(&self, directory: &str, number: &str) -> Placement {
        resolve(directory.into(), number.parse().ok(), &self.roots())
    }

    fn device(&self, directory: &str, name: &str, number: &str) -> &Self {
        fs::create_dir_all(self.path(directory)).unwrap();
        self.link(directory, &format!("sys/class/block/{name}"));
        if number.is_empty() {
            return self;
        }
        self.link(directory, &format!("sys/dev/block/{number}")).file(format!("{directory}/dev"), number)
    }
}
