import org.jacorb.util.Time;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SetOverrideType;
import org.omg.Messaging.REPLY_END_TIME_POLICY_TYPE;
import org.omg.Messaging.REQUEST_END_TIME_POLICY_TYPE;
import org.omg.TimeBase.UtcT;
import org.omg.TimeBase.UtcTHelper;

/** Calls with end times in ten minutes: prints them, and what comes of each call. */
final class Times {
    private static Policy until(ORB orb, int kind, UtcT end) throws Exception {
        Any any = orb.create_any();
        UtcTHelper.insert(any, end);
        return orb.create_policy(kind, any);
    }

    static void call(ORB orb, String reference) throws Exception {
        int[] kinds = {REQUEST_END_TIME_POLICY_TYPE.value, REPLY_END_TIME_POLICY_TYPE.value};
        for (int kind : kinds) {
            UtcT end = Time.corbaFuture(600L * 10_000_000);
            Policy[] policies = {until(orb, kind, end)};
            org.omg.CORBA.Object object = orb.string_to_object(reference)._set_policy_override(policies, SetOverrideType.ADD_OVERRIDE);
            try {
                object._non_existent();
                System.out.println("times " + kind + " " + end.time + " answered");
            } catch (org.omg.CORBA.SystemException exception) {
                System.out.println("times " + kind + " " + end.time + " " + exception.getClass().getSimpleName());
            }
        }
    }
}
