//! GIOP as octets, written by the letter of the standard and not with the writer of the ORB.

/// Octets of a message that grow, aligned from the beginning of the message.
pub struct Octets {
    octets: Vec<u8>,
    is_little: bool,
}

/// Types of messages.
pub const REQUEST: u8 = 0;
pub const REPLY: u8 = 1;
pub const CANCEL_REQUEST: u8 = 2;
pub const LOCATE_REQUEST: u8 = 3;
pub const LOCATE_REPLY: u8 = 4;
pub const CLOSE_CONNECTION: u8 = 5;
pub const MESSAGE_ERROR: u8 = 6;
pub const FRAGMENT: u8 = 7;

/// Octets of a header.
pub const HEADER: usize = 12;

impl Octets {
    /// Begins a message of GIOP 1.`minor`.
    pub fn message(minor: u8, is_little: bool, kind: u8) -> Self {
        let flags = u8::from(is_little);
        let octets = vec![b'G', b'I', b'O', b'P', 1, minor, flags, kind, 0, 0, 0, 0];
        Self { octets, is_little }
    }

    /// Begins an encapsulation.
    pub fn encapsulation(is_little: bool) -> Self {
        Self {
            octets: vec![u8::from(is_little)],
            is_little,
        }
    }

    pub fn align(&mut self, to: usize) {
        self.octets
            .resize(self.octets.len().next_multiple_of(to), 0);
    }

    pub fn octet(&mut self, value: u8) {
        self.octets.push(value);
    }

    pub fn short(&mut self, value: u16) {
        self.align(2);
        self.octets.extend(if self.is_little {
            value.to_le_bytes()
        } else {
            value.to_be_bytes()
        });
    }

    pub fn long(&mut self, value: u32) {
        self.align(4);
        let octets = self.of_long(value);
        self.octets.extend(octets);
    }

    fn of_long(&self, value: u32) -> [u8; 4] {
        if self.is_little {
            value.to_le_bytes()
        } else {
            value.to_be_bytes()
        }
    }

    pub fn sequence(&mut self, octets: &[u8]) {
        self.long(octets.len() as u32);
        self.octets.extend(octets);
    }

    pub fn string(&mut self, text: &[u8]) {
        self.long(text.len() as u32 + 1);
        self.octets.extend(text);
        self.octets.push(0);
    }

    /// The octets of an encapsulation.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// The whole message, with its size.
    pub fn into_message(mut self) -> Vec<u8> {
        let size = self.of_long((self.octets.len() - HEADER) as u32);
        self.octets[8..HEADER].copy_from_slice(&size);
        self.octets
    }
}

/// Sets the size and the flag for further fragments in the header of a message.
pub fn settle(message: &mut [u8], is_followed: bool) {
    let size = (message.len() - HEADER) as u32;
    let is_little = message[6] & 1 != 0;
    message[6] = u8::from(is_little) | u8::from(is_followed) << 1;
    message[8..HEADER].copy_from_slice(&if is_little {
        size.to_le_bytes()
    } else {
        size.to_be_bytes()
    });
}
