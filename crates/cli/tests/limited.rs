//! Servers that may have little memory, and strangers that take all that they can: the servers live, and serve others.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::cos_event_comm::PushConsumerRef;
use deckwatch_orb::cos_naming::NamingContextRef;
use deckwatch_orb::{Orb, OrbBuilder};
use deckwatch_os::stream::StreamSocket;

const MIB: usize = 1 << 20;

/// What a server may have.
const MEMORY: usize = 256 * MIB;

/// How a server is kept to [`MEMORY`].
enum Limit {
    /// RLIMIT_AS.
    Addresses,
    /// A control group, removed with the server.
    Group(Group),
}

/// A control group for memory that this test has made.
struct Group(PathBuf);

impl Group {
    /// Counts a skip if this process may not make one.
    fn new(name: &str) -> Option<Self> {
        let made = Self::make(name);
        if let Err(error) = &made {
            deckwatch_testkit::skip("memory control group", &error.to_string());
        }
        made.ok()
    }

    fn make(name: &str) -> std::io::Result<Self> {
        let name = format!("deckwatch-{name}-{}", std::process::id());
        let first = PathBuf::from("/sys/fs/cgroup/memory");
        let (folder, file) = if first.is_dir() {
            (first, "memory.limit_in_bytes")
        } else {
            let root = PathBuf::from("/sys/fs/cgroup");
            std::fs::write(root.join("cgroup.subtree_control"), "+memory")?;
            (root, "memory.max")
        };
        let group = Self(folder.join(name));
        std::fs::create_dir(&group.0)?;
        std::fs::write(group.0.join(file), MEMORY.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let removed = std::fs::remove_dir(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// A server that is killed when this is dropped.
struct Server {
    process: Child,
    ior: String,
    /// Removed behind the process.
    _limit: Limit,
}

impl Server {
    fn start(limit: Limit, arguments: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_deckwatch");
        let confine = match &limit {
            Limit::Addresses => format!("ulimit -v {}", MEMORY >> 10),
            Limit::Group(Group(folder)) => {
                format!("echo $$ > {}/cgroup.procs", folder.display())
            }
        };
        let script = format!("{confine} && exec {program} {arguments} --listen 127.0.0.1:0");
        let mut process = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut ior = String::new();
        let said = process.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut ior).expect("a line");
        Self {
            process,
            ior: ior.trim().to_owned(),
            _limit: limit,
        }
    }

    /// Fails if it has ended, or holds more memory than it may.
    fn check(&mut self) {
        let ended = self.process.try_wait().expect("a child");
        assert_eq!(ended, None, "the server lives");
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).expect("the kernel tells it");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most = most.and_then(|most| most.trim().strip_suffix(" kB"));
        let kib: usize = most.and_then(|kib| kib.parse().ok()).expect("KiB");
        assert!(kib << 10 <= MEMORY, "{kib} KiB");
    }

    fn address(&self, orb: &Orb) -> SocketAddr {
        let object = orb.string_to_object(&self.ior).expect("an IOR");
        let text = object.expect("not nil").ior().explain().to_string();
        let port = text.split("port ").nth(1).expect("a port");
        let digits = port.split(|one: char| !one.is_ascii_digit()).next();
        let port = digits.and_then(|port| port.parse().ok()).expect("a port");
        (Ipv4Addr::LOCALHOST, port).into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

fn client() -> Orb {
    OrbBuilder::default().build().expect("an ORB")
}

/// Begins messages of `size` octets from two dozen addresses, so that their shares add up to all there is. Sends all of
/// each message but the last octet. A server may refuse any.
fn begin_messages(at: SocketAddr, count: u8, size: usize) -> Vec<StreamSocket> {
    let mut whole = b"GIOP\x01\x02\x01\x00".to_vec();
    let body = u32::try_from(size - 12).expect("it fits");
    whole.extend(body.to_le_bytes());
    whole.resize(size - 1, 0);
    let all = (0..count).map(|number| {
        let from = Ipv4Addr::new(127, 0, 0, 2 + number % 24).into();
        let stream = StreamSocket::connect_from(from, at, None).expect("a listener");
        let _refused = stream.write_all(&whole, None);
        stream
    });
    all.collect()
}

/// Strangers begin so many messages of this size at a naming service, which others use meanwhile and afterwards.
fn attack_names(limit: Limit, options: &str, count: u8, size: usize) {
    let mut server = Server::start(limit, &format!("names serve {options}"));
    let orb = client();
    let object = orb.string_to_object(&server.ior).expect("an IOR");
    let names = NamingContextRef::unchecked_narrow(object.expect("not nil"));
    let use_names = || {
        let made = names.new_context().expect("an answer");
        made.expect("a context").destroy().expect("destroyed");
        names.list(10).expect("an answer");
    };
    use_names();
    for _ in 0..2 {
        let begun = begin_messages(server.address(&orb), count, size);
        for _ in 0..10 {
            use_names();
        }
        server.check();
        drop(begun);
    }
    use_names();
    server.check();
}

/// Hundreds of consumers that never read are pushed events of this size; one that reads gets its events.
fn attack_channel(limit: Limit, size: usize) {
    const SILENT: usize = 420;
    let mut server = Server::start(limit, "channel");
    let orb = client();
    let object = orb.string_to_object(&server.ior).expect("an IOR");
    let channel = EventChannelRef::unchecked_narrow(object.expect("not nil"));
    let admin = channel.for_consumers().expect("an answer").expect("one");
    // The kernel connects what nobody accepts.
    let silent: Vec<_> = (0..SILENT)
        .map(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let consumer = orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/silent"));
            let consumer =
                PushConsumerRef::unchecked_narrow(consumer.expect("a URL").expect("one"));
            let proxy = admin
                .obtain_push_supplier()
                .expect("an answer")
                .expect("one");
            proxy.connect_push_consumer(Some(&consumer)).expect("room");
            listener
        })
        .collect();
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let supplier = admin
        .obtain_push_consumer()
        .expect("an answer")
        .expect("one");
    supplier.connect_push_supplier(None).expect("connected");
    let event = Any::from_value(&vec![7_u8; size]).expect("an event");
    for _ in 0..20 {
        supplier.push(&event).expect("pushed");
    }
    server.check();
    let begun = begin_messages(server.address(&orb), 24, size);
    // So many strangers leave little of the room for unfinished messages.
    let small = Any::from_value(&vec![7_u8; 64 << 10]).expect("an event");
    supplier.push(&small).expect("pushed");
    server.check();
    drop((begun, silent));
    supplier.push(&event).expect("pushed");
    server.check();
}

#[test]
fn names_outlive_unfinished_messages_where_addresses_are_few() {
    attack_names(Limit::Addresses, "", 120, 250 << 10);
}

#[test]
fn names_outlive_want_of_memory_for_what_strangers_announce() {
    // More than there is: requests for memory fail.
    attack_names(Limit::Addresses, "--memory 65536", 24, 15 * MIB);
}

#[test]
fn names_outlive_unfinished_messages_in_a_small_control_group() {
    if let Some(group) = Group::new("names") {
        attack_names(Limit::Group(group), "", 120, 400 << 10);
    }
}

#[test]
fn channel_outlives_silent_consumers_where_addresses_are_few() {
    attack_channel(Limit::Addresses, MIB);
}

#[test]
fn channel_outlives_silent_consumers_in_a_small_control_group() {
    if let Some(group) = Group::new("channel") {
        attack_channel(Limit::Group(group), 3 * MIB);
    }
}
