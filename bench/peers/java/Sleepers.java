// SPDX-License-Identifier: Apache-2.0
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** Sleepers COUNT SECONDS: so many virtual threads that sleep so long; when they were started, what they hold, when they woke. */
public class Sleepers {
    static long residentKiB() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        long sleepNanos = (long) (Double.parseDouble(arguments[1]) * 1e9);
        long before = residentKiB();
        long began = System.nanoTime();
        AtomicLong latest = new AtomicLong();
        CountDownLatch all = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread.startVirtualThread(() -> {
                long due = System.nanoTime() + sleepNanos;
                try {
                    Thread.sleep(java.time.Duration.ofNanos(sleepNanos));
                } catch (InterruptedException e) {
                    return;
                }
                long late = System.nanoTime() - due;
                latest.accumulateAndGet(late, Math::max);
                all.countDown();
            });
        }
        double started = (System.nanoTime() - began) / 1e9;
        double held = residentKiB() - before;
        all.await();
        System.out.printf(java.util.Locale.ROOT,
            "{\"started_s\":%.3f,\"resident_kib_each\":%.3f,\"done_s\":%.3f,\"latest_s\":%.3f}%n", started,
            held / count, (System.nanoTime() - began) / 1e9, latest.get() / 1e9);
    }
}
