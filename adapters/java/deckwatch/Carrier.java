package deckwatch;

/** What an adapter in Java implements. {@link Part#play} does the rest. */
public interface Carrier {
    /** The message is with the middleware. */
    int SENT = 0;
    /** The middleware refused the message. */
    int REFUSED = 0x0001_0000;
    /** The connection is lost. */
    int DISCONNECTED = 0x0003_0000;
    /** The middleware did not accept the message in {@link Plan#sendBoundNs}. */
    int TIMED_OUT = 0x0004_0000;

    /** Sends to one destination. One thread uses it. */
    interface Sender {
        /** Sends one message and returns one of the codes above, after {@link Plan#sendBoundNs} at the latest. */
        int send(byte[] message);
    }

    /** Returns a sender that is connected to the destination of this slot. */
    Sender connect(Plan plan, int slot, Settings settings) throws Failure;

    /** Starts to receive, and returns how the consumer is found. */
    Announcement listen(Plan plan, Arrivals arrivals, Settings settings) throws Failure;

    /** What a consumer announces: the endpoint for the supplier, and `ADDRESS:PORT` for the user. */
    record Announcement(String endpoint, String listening) {}

    /** Takes the messages that arrive. */
    interface Arrivals {
        /** Records a message that has just arrived. Reads the clock first. May be called by several threads. */
        void arrived(byte[] message);
    }

    /** Reports which settings of the plan the middleware implements. */
    interface Settings {
        void honoured(String setting);

        void ignored(String setting);
    }
}
