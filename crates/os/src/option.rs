//! Socket options that no safe crate sets.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

pub(crate) fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set(fd, level, name, &value)
}

/// Sets an option whose value is the plain C structure `T`.
pub(crate) fn set<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` octets from `value`, which is a live reference to a T.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads an option of `N` words.
pub(crate) fn words<const N: usize>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
) -> io::Result<[u32; N]> {
    let mut value = [0_u32; N];
    let mut size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` octets, the size of `value`, and any bit pattern is a u32.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    match result {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}
