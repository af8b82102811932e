//! CDR written and read by hand, in few lines and without the crate `cdr`: the crate's writer and reader could share a
//! misreading of the standard.

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most significant octet first: flag 0.
    Big,
    /// Least significant octet first: flag 1.
    Little,
}

pub(crate) const ORDERS: [Order; 2] = [Order::Big, Order::Little];

impl Order {
    /// The byte-order flag of message headers and encapsulations.
    pub(crate) fn flag(self) -> u8 {
        u8::from(self == Self::Little)
    }

    fn of(self, big_endian: &[u8]) -> Vec<u8> {
        let mut octets = big_endian.to_vec();
        if self == Self::Little {
            octets.reverse();
        }
        octets
    }
}

/// A CDR writer. Alignment counts from the first octet.
#[derive(Clone, Debug)]
pub(crate) struct Octets {
    pub(crate) order: Order,
    pub(crate) octets: Vec<u8>,
}

impl Octets {
    pub(crate) fn new(order: Order) -> Self {
        Self {
            order,
            octets: Vec::new(),
        }
    }

    /// An encapsulation: its first octet is the byte-order flag.
    pub(crate) fn encapsulation(order: Order) -> Self {
        let mut octets = Self::new(order);
        octets.u8(order.flag());
        octets
    }

    pub(crate) fn align(&mut self, to: usize) -> &mut Self {
        self.octets
            .resize(self.octets.len().next_multiple_of(to), 0);
        self
    }

    pub(crate) fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.octets.extend_from_slice(octets);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        let octets = self.order.of(&value.to_be_bytes());
        self.align(2).raw(&octets)
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        let octets = self.order.of(&value.to_be_bytes());
        self.align(4).raw(&octets)
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        let octets = self.order.of(&value.to_be_bytes());
        self.align(8).raw(&octets)
    }

    /// A `sequence<octet>`.
    pub(crate) fn sequence(&mut self, octets: &[u8]) -> &mut Self {
        self.u32(len(octets)).raw(octets)
    }

    /// A `string`, with its terminating NUL.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        self.u32(len(text.as_bytes()) + 1)
            .raw(text.as_bytes())
            .u8(0)
    }
}

fn len(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).expect("tests are short")
}

/// A CDR reader. Alignment counts from the first octet.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) order: Order,
    octets: Vec<u8>,
    at: usize,
}

impl Cursor {
    pub(crate) fn new(order: Order, octets: &[u8], at: usize) -> Self {
        Self {
            order,
            octets: octets.to_vec(),
            at,
        }
    }

    /// Reads an encapsulation; its first octet gives the byte order.
    pub(crate) fn encapsulated(octets: &[u8]) -> Self {
        let order = ORDERS[usize::from(octets[0])];
        Self::new(order, octets, 1)
    }

    pub(crate) fn align(&mut self, to: usize) -> &mut Self {
        self.at = self.at.next_multiple_of(to);
        self
    }

    pub(crate) fn raw(&mut self, count: usize) -> Vec<u8> {
        let taken = self.octets[self.at..self.at + count].to_vec();
        self.at += count;
        taken
    }

    fn number(&mut self, size: usize) -> u64 {
        let mut octets = self.align(size).raw(size);
        if self.order == Order::Little {
            octets.reverse();
        }
        octets
            .iter()
            .fold(0, |sum, octet| sum << 8 | u64::from(*octet))
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.raw(1)[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::try_from(self.number(2)).expect("two octets")
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::try_from(self.number(4)).expect("four octets")
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.number(8)
    }

    pub(crate) fn sequence(&mut self) -> Vec<u8> {
        let count = self.u32();
        self.raw(count as usize)
    }

    /// A `string`; panics if the terminating NUL is missing.
    pub(crate) fn string(&mut self) -> String {
        let mut octets = self.sequence();
        assert_eq!(octets.pop(), Some(0), "a string ends with NUL");
        String::from_utf8(octets).expect("the tests' strings are ASCII")
    }

    /// The octets not read yet.
    pub(crate) fn rest(&self) -> &[u8] {
        self.octets.get(self.at..).unwrap_or_default()
    }
}
