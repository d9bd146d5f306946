// SPDX-License-Identifier: Apache-2.0

// sleepers COUNT SECONDS: so many goroutines that sleep so long; when they were started, what they hold, when they woke.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func residentKiB() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			kib, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return kib
		}
	}
	return 0
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	sleep := time.Duration(seconds * float64(time.Second))
	before := residentKiB()
	began := time.Now()
	var late atomic.Int64
	var all sync.WaitGroup
	all.Add(count)
	for i := 0; i < count; i++ {
		go func() {
			due := time.Now().Add(sleep)
			time.Sleep(sleep)
			lateness := int64(time.Since(due))
			for old := late.Load(); lateness > old && !late.CompareAndSwap(old, lateness); old = late.Load() {
			}
			all.Done()
		}()
	}
	started := time.Since(began)
	held := residentKiB() - before
	all.Wait()
	fmt.Printf("{\"started_s\":%.3f,\"resident_kib_each\":%.3f,\"done_s\":%.3f,\"latest_s\":%.3f}\n",
		started.Seconds(), float64(held)/float64(count), time.Since(began).Seconds(), float64(late.Load())/1e9)
}
