package deckwatch;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The plan of this part: what standard input says before its first blank line. adapters/README.md lists the keys. */
public final class Plan {
    private static final int VERSION = 1;
    private static final List<String> ROLES = List.of("supplier", "consumer");

    /** A consumer, as the supplier sees it. */
    public record Destination(String host, String endpoint) {}

    private final Map<String, String> values = new HashMap<>();
    private final TreeMap<Integer, Destination> destinations = new TreeMap<>();
    private final byte[] body;
    private final int sequenceAt, sequenceSize;
    private final boolean sequenceIsBig;

    Plan(BufferedReader in) throws IOException, Failure {
        String first = in.readLine();
        if (first == null || !first.startsWith("deckwatch-carrier ")) {
            throw new Failure("Standard input is not a plan. This program is started by `deckwatch run`.");
        }
        if (!first.equals("deckwatch-carrier " + VERSION)) {
            throw new Failure("Deckwatch says `" + first + "`; this adapter was built for version " + VERSION
                + " of the protocol. Build it again.");
        }
        for (String line; (line = in.readLine()) == null || !line.isEmpty();) {
            if (line == null) throw new Failure("Standard input ended within the plan.");
            String[] words = line.split(" ", 2);
            String value = words.length > 1 ? words[1] : "";
            if (words[0].equals("destination")) addDestination(value); else values.put(words[0], value);
        }
        if (!ROLES.contains(text("role"))) {
            throw new Failure("The plan's `role` is `" + text("role") + "`; it must be one of " + ROLES + ".");
        }
        body = Files.readAllBytes(Path.of(text("body")));
        sequenceAt = (int) number("sequence-at", 0);
        sequenceSize = (int) number("sequence-size", 8);
        sequenceIsBig = text("sequence-order", "big").equals("big");
        if (sequenceAt < 0 || sequenceSize < 1 || sequenceSize > 8 || sequenceAt + sequenceSize > body.length) {
            throw new Failure("A message of " + body.length + " octets has no room for its sequence number.");
        }
    }

    private void addDestination(String value) throws Failure {
        String[] parts = value.split(" ", 3);
        try {
            destinations.put(Integer.parseInt(parts[0]), new Destination(parts[1], parts[2]));
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException error) {
            throw new Failure("A `destination` line of the plan is not `INDEX HOST ENDPOINT`.");
        }
    }

    /** Returns whether the plan has the key. */
    public boolean has(String key) { return values.containsKey(key); }

    /** Returns the value of a key that each plan has. */
    public String text(String key) throws Failure {
        String value = values.get(key);
        if (value == null) throw new Failure("The plan lacks `" + key + "`.");
        return value;
    }

    /** Returns the value of a key, or `other` if the plan does not have it. */
    public String text(String key, String other) { return values.getOrDefault(key, other); }

    /** Returns the number of a key, or `other` if the plan does not have it. */
    public long number(String key, long other) throws Failure {
        try {
            return has(key) ? Long.parseLong(text(key)) : other;
        } catch (NumberFormatException error) {
            throw new Failure("The plan's `" + key + "` is `" + text(key) + "`; it must be a number.");
        }
    }

    /** Returns the consumer with this index. */
    public Destination destination(int index) throws Failure {
        Destination found = destinations.get(index);
        if (found == null) throw new Failure("The plan has no destination " + index + ".");
        return found;
    }

    /** Returns the longest time that a `send` may block: the deadline, from 1 ms to 5 s. */
    public long sendBoundNs() throws Failure {
        return Math.max(1_000_000, Math.min(number("deadline-ns", 0), 5_000_000_000L));
    }

    /** Returns a message with sequence number 0. The caller owns it. */
    public byte[] newMessage() { return body.clone(); }

    /** Returns the octets of one message. */
    public int sizeBytes() { return body.length; }

    void setSequence(byte[] message, long sequence) {
        for (int i = 0; i < sequenceSize; ++i) {
            int shift = 8 * (sequenceIsBig ? sequenceSize - 1 - i : i);
            message[sequenceAt + i] = (byte) (sequence >>> shift);
        }
    }

    long sequence(byte[] message) {
        long sequence = 0;
        for (int i = 0; i < sequenceSize; ++i) {
            int from = sequenceIsBig ? i : sequenceSize - 1 - i;
            sequence = sequence << 8 | message[sequenceAt + from] & 0xFF;
        }
        return sequence;
    }
}
