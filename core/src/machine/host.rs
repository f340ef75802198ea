//! The machine, as the kernel names itself and it.
//!
//! Source: uname(2). In a container the name is the container's and the kernel the host's.

/// Names of the machine and of its kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name and release of the kernel, such as `Linux 6.1.0-28-amd64`.
    pub kernel: String,
    /// What the machine is called.
    pub name: String,
}

impl Host {
    /// This machine; None if the kernel does not tell.
    pub fn here() -> Option<Self> {
        let names = nix::sys::utsname::uname().ok()?;
        let [system, release, name] =
            [names.sysname(), names.release(), names.nodename()].map(|name| name.to_string_lossy());
        Some(Self { kernel: format!("{system} {release}"), name: name.into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_what_proc_says() {
        let read = |name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        let (Ok(kind), Ok(release), Ok(name)) = (read("ostype"), read("osrelease"), read("hostname")) else {
            return;
        };
        let kernel = format!("{} {}", kind.trim(), release.trim());
        assert_eq!(Host::here(), Some(Host { kernel, name: name.trim().to_owned() }));
    }
}
