package deckwatch;

/** Why this part ends: whole sentences that say what failed and what to do. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    public Failure(String text) { super(text); }
}
