package deckwatch;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Records of one slot or consumer in the mapped record file. Its layout is in adapters/README.md. */
final class Records {
    static final int SUPPLIER_OCTETS = 32, CONSUMER_OCTETS = 48;
    private static final VarHandle LONG =
        MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final MappedByteBuffer file;

    Records(Plan plan, long first, long count, int octets) throws Failure {
        long size = count * octets;
        if (size > Integer.MAX_VALUE) {
            throw new Failure("A Java adapter has room for " + Integer.MAX_VALUE / octets + " records, not " + count
                + ". Shorten the run or lower the rate.");
        }
        try (FileChannel channel = FileChannel.open(Path.of(plan.text("records")), StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            long at = plan.number("records-at", 0) + first * octets;
            if (channel.size() < at + size) throw new Failure("The record file is shorter than the plan says.");
            file = channel.map(FileChannel.MapMode.READ_WRITE, at, size);
            // The first writes to the pages happen here, not in the stream.
            file.load();
        } catch (IOException error) {
            throw new Failure("The record file " + plan.text("records") + " cannot be mapped: " + error + ".");
        }
        file.order(ByteOrder.nativeOrder());
    }

    void sent(long sequence, long sentNs, long returnedNs, int error) {
        int at = (int) sequence * SUPPLIER_OCTETS;
        file.putLong(at, sentNs);
        file.putInt(at + 24, error);
        // Last: a record is whole when this is not zero.
        LONG.setRelease(file, at + 8, returnedNs);
    }

    void arrived(long index, long sequence, long receivedNs, long handledNs, long executionNs) {
        int at = (int) index * CONSUMER_OCTETS;
        file.putLong(at, sequence);
        file.putLong(at + 24, handledNs);
        file.putLong(at + 32, executionNs);
        // Last, as above.
        LONG.setRelease(file, at + 16, receivedNs);
    }
}
