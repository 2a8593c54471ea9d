//! Messages with descriptors over a pair of sockets. A message is one packet, so that any number
//! of processes can write to the same socket; what is too long for a packet goes by a file in
//! memory that nobody else can see.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The most bytes of a packet: below what a socket takes in at once by default (some 200 KB), so
/// that several fit; arguments and environment may have 2 MB.
const PACKET_BYTES: usize = 32 * 1024;

/// The most descriptors with a packet: two outputs, an input and a long message.
const DESCRIPTORS: usize = 4;

const INLINE: u8 = 0;
const IN_FILE: u8 = 1;

/// Two ends. Packets stay whole and in order, and each end sees when the other is gone.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// A message on its way out.
#[derive(Debug)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Packet {
    /// A packet of this message, and these descriptors.
    pub(super) fn new(message: &[u8], mut fds: Vec<OwnedFd>) -> io::Result<Self> {
        if message.len() < PACKET_BYTES {
            return Ok(Packet { bytes: [&[INLINE], message].concat(), fds });
        }
        let mut file = File::from(memfd_create("stint-message", MemfdFlags::CLOEXEC)?);
        file.write_all(message)?;
        file.rewind()?;
        fds.push(file.into());
        Ok(Packet { bytes: vec![IN_FILE], fds })
    }

    /// Sends it. It can be sent again if the socket had no room for it.
    pub(super) fn send(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(
                ancillary.push(SendAncillaryMessage::ScmRights(&fds)),
                "no message has more descriptors"
            );
        }
        loop {
            let slices = [IoSlice::new(&self.bytes)];
            match sendmsg(socket, &slices, &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What receives messages: a buffer that is used again.
#[derive(Debug)]
pub(super) struct Receiver {
    buffer: Vec<u8>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Receiver { buffer: vec![0; PACKET_BYTES + 1] }
    }

    /// The next message and its descriptors; `None` if the other end is gone.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let count = loop {
            let mut slices = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut fds: Vec<OwnedFd> = ancillary
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        let Some((kind, inline)) = self.buffer[..count].split_first() else {
            return Ok(None);
        };
        if *kind == INLINE {
            return Ok(Some((inline.to_vec(), fds)));
        }
        let mut file = File::from(fds.pop().ok_or(io::ErrorKind::InvalidData)?);
        let mut message = Vec::new();
        file.read_to_end(&mut message)?;
        Ok(Some((message, fds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_every_length_arrive_whole_with_their_descriptors() {
        let (here, there) = pair().unwrap();
        let mut receiver = Receiver::new();
        for length in [0, 1, PACKET_BYTES - 1, PACKET_BYTES, PACKET_BYTES + 1, 3 << 20] {
            let message: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (read, write) = std::io::pipe().unwrap();
            Packet::new(&message, vec![write.into()]).unwrap().send(here.as_fd()).unwrap();
            let (arrived, fds) = receiver.receive(there.as_fd()).unwrap().unwrap();
            assert_eq!(arrived, message, "of {length} bytes");
            let [fd] = fds.try_into().unwrap();
            File::from(fd).write_all(b"through").unwrap();
            assert_eq!(std::io::read_to_string(read).unwrap(), "through");
        }
        drop(here);
        assert!(receiver.receive(there.as_fd()).unwrap().is_none());
    }
}
