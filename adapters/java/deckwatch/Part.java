package deckwatch;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Plays the part that standard input asks for: a supplier or a consumer.
 *
 * <p>System.nanoTime is CLOCK_MONOTONIC on Linux. The pacing sleeps with LockSupport.parkNanos: a message leaves after
 * its due time by what the kernel and the JVM need to wake a thread. Unless the script that starts Java sets the slack of
 * timers, the kernel adds up to 50 us. A pause for garbage collection is a late message. The records hold the true times.
 */
public final class Part implements Carrier.Arrivals, Carrier.Settings {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    private final Set<String> honoured = new LinkedHashSet<>(), ignored = new LinkedHashSet<>();
    private final AtomicLong arrivals = new AtomicLong(), unrecorded = new AtomicLong(), malformed = new AtomicLong();
    private Plan plan;
    private Records consumed;
    private long messages, capacity, handleForNs;
    private boolean measure;

    private Part() {}

    /** Plays the part, then ends the process. */
    public static void play(Carrier carrier) {
        int status = 0;
        try {
            new Part().run(carrier);
        } catch (Failure failure) {
            status = fail(failure.getMessage());
        } catch (IOException | InterruptedException | RuntimeException error) {
            status = fail("The adapter failed: " + error + ".");
        }
        // The middleware's threads are not stopped first.
        Runtime.getRuntime().halt(status);
    }

    private void run(Carrier carrier) throws Failure, IOException, InterruptedException {
        plan = new Plan(in);
        if (plan.text("role").equals("supplier")) supply(carrier); else consume(carrier);
    }

    // --- Supplier ---

    private void supply(Carrier carrier) throws Failure, IOException, InterruptedException {
        int slots = (int) plan.number("slots", 1);
        int messages = (int) plan.number("messages", 0);
        long slotRecords = plan.number("capacity", messages);
        if (slotRecords < messages) {
            throw new Failure("The plan has records for " + slotRecords + " of " + messages + " messages.");
        }
        byte[] file = Files.readAllBytes(Path.of(plan.text("dues")));
        if (file.length < 8L * messages) throw new Failure("The file of due times is too short.");
        LongBuffer dues = ByteBuffer.wrap(file).order(ByteOrder.nativeOrder()).asLongBuffer();
        Thread[] threads = new Thread[slots];
        AtomicLong start = new AtomicLong();
        for (int slot = 0; slot < slots; ++slot) {
            Carrier.Sender sender = carrier.connect(plan, slot, this);
            Records records = new Records(plan, slot * slotRecords, messages, Records.SUPPLIER_OCTETS);
            threads[slot] = new Thread(() -> send(sender, records, messages, dues, start.get()), "slot " + slot);
            threads[slot].setDaemon(true);
        }
        answerReady(null);
        Long startNs = awaitGo();
        if (startNs == null) {
            answerDone();
            return;
        }
        start.set(startNs);
        for (Thread thread : threads) thread.start();
        Thread ending = new Thread(() -> {
            awaitStop();
            // `stop` before the last message ends the stream here.
            answerDone();
            Runtime.getRuntime().halt(0);
        }, "stop");
        ending.setDaemon(true);
        ending.start();
        for (Thread thread : threads) thread.join();
        answerDone();
        ending.join();
    }

    private void send(Carrier.Sender sender, Records records, int messages, LongBuffer dues, long startNs) {
        byte[] message = plan.newMessage();
        for (int sequence = 0; sequence < messages; ++sequence) {
            long dueNs = startNs + dues.get(sequence);
            plan.setSequence(message, sequence);
            for (long left; (left = dueNs - System.nanoTime()) > 0;) LockSupport.parkNanos(left);
            long sentNs = System.nanoTime();
            int error = sender.send(message);
            records.sent(sequence, sentNs, System.nanoTime(), error);
        }
    }

    // --- Consumer ---

    private void consume(Carrier carrier) throws Failure, IOException {
        messages = plan.number("messages", 0);
        capacity = plan.number("capacity", 0);
        handleForNs = plan.number("handle-for-ns", 0);
        measure = plan.number("measure", 0) != 0;
        consumed = new Records(plan, 0, capacity, Records.CONSUMER_OCTETS);
        answerReady(carrier.listen(plan, this, this));
        awaitStop();
        answerDone();
    }

    @Override
    public void arrived(byte[] message) {
        long receivedNs = System.nanoTime();
        if (message.length != plan.sizeBytes()) {
            malformed.incrementAndGet();
            return;
        }
        long sequence = plan.sequence(message);
        if (Long.compareUnsigned(sequence, messages) >= 0) {
            malformed.incrementAndGet();
            return;
        }
        long executionNs = 0;
        if (handleForNs > 0 || measure) {
            long before = THREADS.getCurrentThreadCpuTime();
            do {
                executionNs = THREADS.getCurrentThreadCpuTime() - before;
            } while (executionNs < handleForNs);
        }
        long index = arrivals.getAndIncrement();
        if (index >= capacity) {
            unrecorded.incrementAndGet();
            return;
        }
        // Zero means that the execution was not measured.
        consumed.arrived(index, sequence, receivedNs, System.nanoTime(), measure ? Math.max(1, executionNs) : 0);
    }

    // --- Standard input and output ---

    /** Returns the start of the schedule, or null if the part must finish. */
    private Long awaitGo() throws IOException, Failure {
        for (String line; (line = in.readLine()) != null && !line.equals("stop");) {
            if (!line.startsWith("go ")) continue;
            try {
                return Long.parseLong(line.substring(3).trim());
            } catch (NumberFormatException error) {
                throw new Failure("`" + line + "` is not `go START_NS`.");
            }
        }
        return null;
    }

    private void awaitStop() {
        try {
            for (String line; (line = in.readLine()) != null && !line.equals("stop");) {
            }
        } catch (IOException error) {
            // A broken standard input means the same as its end.
        }
    }

    @Override
    public void honoured(String setting) { if (plan.has(key(setting))) honoured.add(setting); }

    @Override
    public void ignored(String setting) { if (plan.has(key(setting))) ignored.add(setting); }

    /** Returns the plan's key of a setting. */
    private static String key(String setting) {
        return switch (setting) {
            case "deadline" -> "deadline-ns";
            case "receive-buffer" -> "receive-buffer-bytes";
            case "locked-memory" -> "lock-memory";
            default -> setting;
        };
    }

    private void answerReady(Carrier.Announcement announcement) {
        StringBuilder line = new StringBuilder("{\"event\":\"ready\"");
        if (announcement != null) {
            line.append(",\"endpoint\":").append(quoted(announcement.endpoint()));
            line.append(",\"listening\":").append(quoted(announcement.listening()));
        }
        line.append(",\"honoured\":").append(list(honoured)).append(",\"ignored\":").append(list(ignored)).append('}');
        answer(line.toString());
    }

    private boolean done;

    private synchronized void answerDone() {
        if (done) return;
        done = true;
        answer("{\"event\":\"done\",\"unrecorded\":" + unrecorded.get() + ",\"malformed\":" + malformed.get()
            + ",\"overflows\":0,\"refusals\":0}");
    }

    private static int fail(String text) {
        answer("{\"event\":\"error\",\"text\":" + quoted(text) + "}");
        return 1;
    }

    private static synchronized void answer(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String list(Set<String> names) {
        StringBuilder text = new StringBuilder();
        for (String name : names) text.append(text.length() == 0 ? "" : ",").append(quoted(name));
        return "[" + text + "]";
    }

    private static String quoted(String text) {
        StringBuilder line = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') line.append('\\').append(c);
            else if (c < 0x20) line.append(String.format("\\u%04x", (int) c));
            else line.append(c);
        }
        return line.append('"').toString();
    }
}
