//! Runs the filter on an interpreter of the instructions that it uses.

use super::*;

/// Interprets the instructions that the filter uses, by linux/filter.txt.
fn run(program: &[libc::sock_filter], packet: &[u8]) -> u32 {
    let half = |at: usize| {
        Some(u32::from(u16::from_be_bytes([
            *packet.get(at)?,
            *packet.get(at + 1)?,
        ])))
    };
    let (mut a, mut x, mut scratch, mut at) = (0_u32, 0_usize, 0_u32, 0_usize);
    loop {
        let instruction = program[at];
        let k = instruction.k as usize;
        at += 1;
        let loaded = match instruction.code {
            LOAD_HALF => half(k),
            LOAD_BYTE => packet.get(k).map(|&octet| u32::from(octet)),
            LOAD_HALF_X => half(x + k),
            LOAD_X_IP_HEADER_LEN => {
                let Some(&octet) = packet.get(k) else {
                    return 0;
                };
                x = usize::from(octet & 0xF) * 4;
                continue;
            }
            LOAD_SCRATCH => Some(scratch),
            STORE => {
                scratch = a;
                continue;
            }
            JUMP => {
                at += k;
                continue;
            }
            EQUAL | ANY_BIT => {
                let met = if instruction.code == EQUAL {
                    a == instruction.k
                } else {
                    a & instruction.k != 0
                };
                at += usize::from(if met { instruction.jt } else { instruction.jf });
                continue;
            }
            RETURN => return instruction.k,
            code => panic!("{code:#x}"),
        };
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
    }
}

fn kept(ports: &[u16], packet: &[u8]) -> bool {
    run(&PortFilter::new(ports).program, packet) != DROP
}

fn ipv4(protocol: u8, options: usize, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0; 14 + 20 + options];
    packet[12..14].copy_from_slice(&[0x08, 0x00]);
    packet[14] = 0x40 | u8::try_from(5 + options / 4).expect("small");
    packet[20..22].copy_from_slice(&fragment.to_be_bytes());
    packet[23] = protocol;
    packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    packet
}

fn ipv6(next: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0; 14 + 40];
    packet[12..14].copy_from_slice(&[0x86, 0xDD]);
    packet[20] = next;
    packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    packet
}

#[test]
fn either_port_of_either_family_and_protocol_is_kept() {
    let ports = [5000, 6000];
    for pair in [[5000, 1], [1, 5000], [6000, 5000], [9, 6000]] {
        for protocol in [6, 17] {
            assert!(kept(&ports, &ipv4(protocol, 0, 0, pair)), "{pair:?}");
            assert!(kept(&ports, &ipv4(protocol, 8, 0x4000, pair)), "{pair:?}");
            assert!(kept(&ports, &ipv6(protocol, pair)), "{pair:?}");
        }
    }
}

#[test]
fn other_ports_and_protocols_are_dropped() {
    let ports = [5000, 6000];
    for protocol in [6, 17] {
        assert!(!kept(&ports, &ipv4(protocol, 0, 0, [1, 2])));
        assert!(!kept(&ports, &ipv6(protocol, [1, 2])));
    }
    assert!(!kept(&ports, &ipv4(1, 0, 0, [5000, 5000])));
    assert!(!kept(&ports, &ipv6(58, [5000, 5000])));
    let mut arp = ipv4(6, 0, 0, [5000, 5000]);
    arp[13] = 6;
    assert!(!kept(&ports, &arp));
    assert!(!kept(&ports, &[0; 10]));
}

#[test]
fn later_fragments_are_kept_whatever_they_carry() {
    assert!(kept(&[5000], &ipv4(17, 0, 0x00B9, [1, 2])));
    assert!(kept(&[5000], &ipv6(44, [1, 2])));
}

#[test]
fn without_ports_or_with_too_many_everything_is_kept() {
    assert!(kept(&[], &[0; 10]));
    assert!(kept(&vec![1; PORTS_MAX + 1], &[0; 10]));
    assert!(PortFilter::new(&vec![1; PORTS_MAX]).program.len() <= 4096);
}
