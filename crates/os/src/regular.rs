//! Regular files that a user names, or that a folder of results holds. A FIFO or a device in the place of such a file is
//! refused: its opening or reading might never end.

use std::fs::{File, FileType, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
/// `InvalidInput`, with the kind of file in the text, if it is not a regular file; else the error of the system.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a regular file as `options` ask; they may create it. Its custom flags are replaced.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Opening alone may change the state of a device.
    match std::fs::metadata(path) {
        Ok(about) => refuse_others(about.file_type())?,
        // `options` may create it; else opening returns the same error.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Another file may be there by now: opening a FIFO must not wait for its other end.
    let file = options
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    refuse_others(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a regular file that only its user may read and write, also if it was there with other rights. A symbolic link
/// in its place is refused: one who may write the folder could lead the writer, who may be root, to any file.
///
/// # Errors
/// As [`open`]; `PermissionDenied` if others may use the file, and another user owns it.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(about) => refuse_others(about.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = options
        .mode(PRIVATE)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW)
        .open(path)?;
    let about = file.metadata()?;
    refuse_others(about.file_type())?;
    if about.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    Ok(file)
}

/// Sets the mode of a regular file to 0600 if other users have rights to it and the user of this process owns it.
/// Returns the mode before, or `None` if the file stays as it is.
///
/// # Errors
/// As [`open`].
pub fn make_private(path: &Path) -> io::Result<Option<u32>> {
    let file = open(path)?;
    let about = file.metadata()?;
    let mode = about.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 || about.uid() != crate::process::effective_user() {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    Ok(Some(mode))
}

/// The rights of a file that only its user may read and write.
const PRIVATE: u32 = 0o600;

/// Returns the octets of a regular file.
///
/// # Errors
/// As [`open`]; `FileTooLarge` if there are more than `size_max`.
pub fn read(path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_large = || {
        let fact = format!("it is larger than {size_max} octets");
        io::Error::new(io::ErrorKind::FileTooLarge, fact)
    };
    let size = file.metadata()?.len();
    if size > size_max {
        return Err(too_large());
    }
    let mut octets = Vec::new();
    octets.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
    // It may grow meanwhile.
    file.take(size_max.saturating_add(1))
        .read_to_end(&mut octets)?;
    if octets.len() as u64 > size_max {
        return Err(too_large());
    }
    Ok(octets)
}

/// Returns the text of a regular file.
///
/// # Errors
/// As [`read`]; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, size_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, size_max)?).map_err(|error| {
        let fact = format!("it is not UTF-8: {}", error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, fact)
    })
}

/// Refuses what is not a regular file. For the opening of a file by a library of others.
///
/// # Errors
/// As [`open`].
pub fn check(path: &Path) -> io::Result<()> {
    refuse_others(std::fs::metadata(path)?.file_type())
}

fn refuse_others(kind: FileType) -> io::Result<()> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a pipe (FIFO)"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let fact = format!("it is {what}, and only regular files are read and written");
    Err(io::Error::new(io::ErrorKind::InvalidInput, fact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;

    /// A folder that is removed again.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("dw-regular-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).expect("a new folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_its_kind() {
        let folder = Folder::new("kinds");
        let (pipe, socket) = (folder.0.join("pipe"), folder.0.join("socket"));
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a FIFO");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        for (path, what) in [
            (&*pipe, "it is a pipe (FIFO)"),
            (&*socket, "it is a socket"),
            (&*folder.0, "it is a directory"),
            (Path::new("/dev/zero"), "it is a device"),
        ] {
            let writing = open_with(path, OpenOptions::new().append(true).create(true));
            for refused in [open(path).err(), writing.err(), check(path).err()] {
                let error = refused.unwrap_or_else(|| panic!("{path:?} was opened"));
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
                assert!(error.to_string().starts_with(what), "{path:?}: {error}");
            }
        }
        // A link to one, too; and one behind a descriptor, as a shell's `<(...)` gives it.
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&pipe, &link).expect("a link");
        assert!(open(&link).is_err());
        let (end, _other) = io::pipe().expect("a pipe");
        let behind = format!("/dev/fd/{}", end.as_raw_fd());
        let error = read(Path::new(&behind), 10).expect_err("a pipe");
        assert!(error.to_string().starts_with("it is a pipe"), "{error}");
    }

    #[test]
    fn a_private_file_is_its_users_and_is_reached_by_no_link() {
        let folder = Folder::new("private");
        let (new, old) = (folder.0.join("new"), folder.0.join("old"));
        std::fs::write(&old, "kept").expect("written");
        std::fs::set_permissions(&old, Permissions::from_mode(0o664)).expect("its own");
        let open = |path: &Path| open_private(path, OpenOptions::new().append(true).create(true));
        for path in [&new, &old] {
            let file = open(path).expect("a file");
            let mode = file.metadata().expect("open").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{path:?}");
        }
        assert_eq!(read_text(&old, 9).expect("read"), "kept");
        for to in [&*old, Path::new("nothing")] {
            let link = folder.0.join("link");
            std::os::unix::fs::symlink(to, &link).expect("a link");
            let error = open(&link).expect_err("a link");
            assert!(error.to_string().starts_with("it is a symbolic link"));
            std::fs::remove_file(&link).expect("removed");
        }
    }

    #[test]
    fn a_regular_file_is_read_up_to_its_bound() {
        let folder = Folder::new("bound");
        let path = folder.0.join("file");
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "twelve chars").expect("written");
        assert_eq!(read_text(&path, 12).expect("within"), "twelve chars");
        let error = read(&path, 11).expect_err("beyond");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        // The kernel gives no size for this one, and it is longer.
        let error = read(Path::new("/proc/self/status"), 11).expect_err("beyond");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff\n").expect("written");
        let error = read_text(&path, 12).expect_err("no text");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
