//! A terminal of somebody's own: a pair of ends, the far one for the processes, the near one for
//! whoever sits at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWrite, Interest};

/// The near end of a terminal. Clones are handles to the same one; when the last is gone, so is the
/// terminal, and whoever holds its far end is told by SIGHUP.
#[derive(Clone, Debug)]
pub struct Terminal {
    near: Arc<AsyncFd<OwnedFd>>,
}

impl Terminal {
    /// A new terminal and its far end, which belongs to this user.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(user: Option<u32>) -> io::Result<(Terminal, OwnedFd)> {
        use rustix::fs::Uid;
        use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        // Not by its name, which leads elsewhere in another mount namespace.
        let far = ioctl_tiocgptpeer(&near, flags)?;
        if let Some(user) = user {
            rustix::fs::fchown(&far, Some(Uid::from_raw(user)), None)?;
        }
        rustix::io::ioctl_fionbio(&near, true)?;
        Ok((Terminal { near: Arc::new(crate::process::watch(near)?) }, far))
    }

    /// There are none where containers do not run.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn open(_: Option<u32>) -> io::Result<(Terminal, OwnedFd)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Tells those at the far end how large the screen is.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // Who has ended does not mind.
        let _ = rustix::termios::tcsetwinsize(self.near.get_ref(), size);
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.near.readable().await.map(drop)
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |near: &OwnedFd| rustix::io::read(near, &mut *buffer).map_err(io::Error::from);
        self.near.try_io(Interest::READABLE, read)
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.near.get_ref().as_fd()
    }
}

/// What is typed.
impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        typed: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.near.poll_write_ready(context))?;
            let written =
                guard.try_io(|near| rustix::io::write(near, typed).map_err(io::Error::from));
            if let Ok(written) = written {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A terminal has no end that could be typed in.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
