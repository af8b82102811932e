//! Many messages with one system call, and answers over the connection of their messages.

use std::sync::Arc;

use deckwatch_carrier::arrival::{Arrival, Handler, Shared};
use deckwatch_carrier::carrier::{ReceiverSettings, SocketSettings};

use crate::stand::{Stand, Taken, Taking};
use crate::{assert_delivered, carriers, may_lose};

const UNSTAMPED: SocketSettings = SocketSettings {
    send_buffer: deckwatch_carrier::carrier::BufferSize::Own,
    delays: false,
    unstamped: true,
};

#[test]
fn messages_sent_many_at_a_time_arrive_each_once_and_in_order() {
    for carrier in carriers() {
        // Stamped messages are sent one at a time, and arrive no differently.
        for (socket, size) in [(UNSTAMPED, 8), (UNSTAMPED, 3_000), (Default::default(), 64)] {
            let stand = Stand::new(carrier, size);
            let end = stand.listen_with(socket.unstamped);
            let mut sending = stand.connect_with(&end, socket);
            let mut next = 0;
            while next < 900 {
                next += sending.send_many(next..900.min(next + 90));
                end.taken.wait(next as usize, may_lose(carrier));
            }
            assert_delivered(carrier, &(0..900).collect::<Vec<_>>(), &end.stop());
        }
    }
}

/// Sends each message back.
struct Answering {
    stand: Stand,
    sender: Box<dyn deckwatch_carrier::sender::Sender>,
}

impl Handler for Answering {
    fn handle(&mut self, arrival: Arrival) {
        let mut body = self.stand.body();
        body.set_sequence(arrival.sequence);
        let sent = self.sender.send(arrival.sequence, &body);
        sent.expect("the connection is there");
    }
}

#[test]
fn an_answer_comes_back_over_the_connection_of_its_message() {
    for carrier in carriers().filter(|carrier| carrier.carries_answers()) {
        for socket in [UNSTAMPED, SocketSettings::default()] {
            let stand = Stand::new(carrier, 100);
            let mut serving = stand.receiver(socket.unstamped);
            let answers = serving.receiver.answering(socket, &stand.body());
            let handler = Box::new(Answering {
                stand: Stand::new(carrier, 100),
                sender: answers.expect("a sender"),
            });
            let server = serving.run(handler);
            let mut sending = stand.connect_with(&server, socket);
            let settings = ReceiverSettings {
                unstamped: socket.unstamped,
                ..ReceiverSettings::default()
            };
            let mut back = sending
                .answers(settings, &stand.body())
                .expect("a receiver");
            let taken = Arc::new(Taken::default());
            let shared = Arc::new(Shared::default());
            let handler = Box::new(Taking(Arc::clone(&taken)));
            let of_thread = Arc::clone(&shared);
            let thread = std::thread::spawn(move || back.receive_all(handler, &of_thread));
            for sequence in 0..200 {
                assert!(sending.send(sequence), "{carrier}: {sequence}");
                taken.wait(sequence as usize + 1, false);
            }
            shared
                .stop
                .store(true, std::sync::atomic::Ordering::Relaxed);
            thread.join().expect("no panic");
            assert_eq!(taken.sequences(), (0..200).collect::<Vec<u64>>());
            drop(server.stop());
        }
    }
}
