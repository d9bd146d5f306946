// SPDX-License-Identifier: Apache-2.0

/** What a virtual thread costs to switch to (Thread.yield between two on one carrier) and to start and end. */
public class Switches {
    static double yieldNanos(int rounds) throws InterruptedException {
        Thread[] threads = new Thread[2];
        long began = System.nanoTime();
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Thread.startVirtualThread(() -> {
                for (int n = 0; n < rounds; n++) {
                    Thread.yield();
                }
            });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return (double) (System.nanoTime() - began) / (2.0 * rounds);
    }

    static double spawnNanos(int rounds) throws InterruptedException {
        long began = System.nanoTime();
        for (int n = 0; n < rounds; n++) {
            Thread.startVirtualThread(() -> { }).join();
        }
        return (double) (System.nanoTime() - began) / rounds;
    }

    public static void main(String[] arguments) throws InterruptedException {
        yieldNanos(1_000_000); // until it is compiled
        spawnNanos(200_000);
        System.out.printf(java.util.Locale.ROOT, "{\"switch_ns\":%.1f,\"spawn_ns\":%.1f}%n", yieldNanos(3_000_000),
            spawnNanos(500_000));
    }
}
