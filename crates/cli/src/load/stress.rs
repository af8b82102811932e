//! `deckwatch load memory` and `deckwatch load disk`: pressure by the program `stress-ng`.

use std::path::PathBuf;
use std::process::ExitCode;

use deckwatch_load::{StressPlan, Work};

use super::{At, Common};

/// Take memory, and write and read it without pause
#[derive(clap::Args)]
#[command(after_help = MEMORY_NOTES)]
pub(super) struct MemoryArgs {
    /// How much memory, as 512M or 4G: at least 64M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: u64,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    common: Common,
}

/// Write and read a file without pause, each write on the disk before the next one
#[derive(clap::Args)]
#[command(after_help = DISK_NOTES)]
pub(super) struct DiskArgs {
    /// The folder for the file; its file system is what is loaded
    #[arg(long, value_name = "DIR")]
    path: PathBuf,
    /// How long the file is, as 256M or 1G: at least 1M
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256M")]
    size: u64,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    common: Common,
}

const MEMORY_NOTES: &str = "\
The load is made by the program stress-ng, a package of Debian (apt-get install stress-ng). Its worker takes about one \
processor too. What was achieved is read from the kernel: the memory that the worker really has, each second. At the \
end stand the program's own figures, and the share of the time in which tasks of the machine waited for memory \
(/proc/pressure). More memory than is available, less 512 MiB for the rest of the machine, is refused. The size is held \
if its mean is within 2%.

Exit status: 0 if the size was held; 1 if it was not held.

Examples:
  deckwatch load memory --size 512M --for 10s
  deckwatch load memory --size 4G --for 1min --json
  deckwatch load memory --size 512M --hosts ship.toml --on RTS";

const DISK_NOTES: &str = "\
The load is made by the program stress-ng, a package of Debian (apt-get install stress-ng). It has no target. What was \
achieved is read from the kernel: the octets that the worker had written to the disk, each second; 0 for a folder in \
memory (tmpfs). At the end stand the program's own figures, and the share of the time in which tasks of the machine \
waited for input and output (/proc/pressure). The file is removed at the end. A file that would leave less than 256 MiB \
free is refused.

Examples:
  deckwatch load disk --path /var/tmp --for 10s
  deckwatch load disk --path /var/tmp --size 1G --for 1min --json
  deckwatch load disk --path /var/tmp --hosts ship.toml --on RTS";

/// Parses a size, as 512M: octets, or units of 2^10, 2^20 or 2^30 octets.
fn size(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches("iB");
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units
        .into_iter()
        .find_map(|(unit, shift)| Some((number.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let size = digits
        .parse::<u64>()
        .ok()
        .and_then(|size| size.checked_mul(1 << shift));
    size.ok_or_else(|| "write a size such as 512M or 4G".to_owned())
}

pub(super) fn memory(args: &MemoryArgs) -> anyhow::Result<ExitCode> {
    let size_bytes = args.size;
    let memory = Work::Stress(StressPlan::Memory { size_bytes });
    args.common.carry_out_at(&args.at, memory)
}

pub(super) fn disk(args: DiskArgs) -> anyhow::Result<ExitCode> {
    let plan = StressPlan::Disk {
        path: args.path,
        size_bytes: args.size,
    };
    args.common.carry_out_at(&args.at, Work::Stress(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("4GiB"), Ok(4 << 30));
        for wrong in ["", "M", "-1M", "1.5G", "512MB", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
